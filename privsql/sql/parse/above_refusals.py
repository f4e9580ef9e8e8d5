"""What may not stand above the noise goes in; the refusal comes out: what it is, why, and what to write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from privsql.errors import Place, Refused, did_you_mean
from privsql.sql.parse.engine_functions import ALLOWED, REFUSED, unlisted

# By the category of a function: why it is refused, and what to write instead. {name} is the function.
_CATEGORIES: Mapping[str, tuple[str, str]] = {
    "catalogue": (
        "{name} reads the engine's catalogue, not the query's tables.",
        "Name the columns that you need in the SELECT list.",
    ),
    "clock": (
        "{name} reads the clock: the same text would be another query each time.",
        "Write the date out: DATE '2024-01-31'.",
    ),
    "collations": (
        "{name} sorts by a language's own rules, which are not supported.",
        "Write ORDER BY lower(x).",
    ),
    "dynamic-sql": (
        "{name} runs or writes SQL of its own, which nothing has checked.",
        "Write that SQL as a subquery: FROM (SELECT ...).",
    ),
    "internals": (
        "{name} is a part of DuckDB's own machinery.",
        "Write it with ordinary SQL functions.",
    ),
    "misread": (
        "{name} is read differently by different engines.",
        "Write list_transform(x, ...), list_reduce(x, ...), or ORDER BY COUNT(*) DESC LIMIT 3.",
    ),
    "operators": (
        "{name} is the name of an operator.",
        "Write the operator between its operands: x + y.",
    ),
    "other-types": (
        "{name} is about a type (geometry, variant or bit string) that is not supported.",
        "Use numbers, text, dates, lists, structs or JSON.",
    ),
    "random": (
        "{name} is random: the same query would have another answer each time.",
        "Leave it out. The noise that protects people is in the released values already.",
    ),
    "settings": (
        "{name} tells about the engine and its session, not about the data.",
        "Write the value into the query as a constant.",
    ),
    "side-effects": (
        "{name} does something beside computing a value, or fails on purpose.",
        "Leave it out; write CASE WHEN ... THEN NULL ELSE x END to mark a row.",
    ),
    "table-functions": (
        "{name} reads something other than the tables of this query.",
        "Name a table of this query, or write unnest(...), range(...) or (VALUES (...)) in FROM.",
    ),
    "time-zone": (
        "{name} needs a time zone, and results here have none.",
        "Use TIMESTAMP: epoch_ms(x), make_timestamp(...), date_part('hour', x).",
    ),
    "unjudged": (
        "{name} is new in this version of DuckDB, and nobody has checked yet what it does.",
        "Write it with other functions.",
    ),
}
_ONLY_HERE = "Nothing outside the query can be read or changed by what is computed from released values."


def function_refused(name: str, place: Place | None) -> Refused:
    """The refusal of a function that is not on the list, by its DuckDB name."""
    lowered = name.lower()
    listed = (category for category, names in REFUSED.items() if lowered in names)
    category = next(listed, unlisted(lowered))
    if category is not None:
        why, way_out = _CATEGORIES[category]
        return Refused("refused-function", why.format(name=f"{lowered}()"), way_out, place)
    return Refused(
        "refused-function",
        f"There is no function {lowered}() that may be used on released values.",
        did_you_mean(lowered, ALLOWED) if len(lowered) < 40 else "",
        place,
    )


def table_refused(name: str, known: Iterable[str], place: Place | None) -> Refused:
    return Refused(
        "refused-table",
        f"There is no table {name} above the noise. {_ONLY_HERE}",
        did_you_mean(name, sorted(known)),
        place,
    )


def table_function_refused(name: str, place: Place | None) -> Refused:
    """The refusal of what stands in FROM and is no table."""
    why, way_out = _CATEGORIES["table-functions"]
    return Refused("refused-table-function", why.format(name=f"{name.lower()}()"), way_out, place)


def syntax_refused(shown: str, place: Place | None) -> Refused:
    """The refusal of a node or an argument without a rule."""
    return Refused(
        "refused-syntax",
        f"{shown} is not supported above the noise.",
        "Write it with joins, subqueries, aggregates, window functions, CASE, PIVOT or UNION.",
        place,
    )


# Other refusals: the code, why, and what to write instead.
_OTHERS: Mapping[str, tuple[str, str, str]] = {
    "pivot": (
        "refused-pivot",
        "PIVOT needs the values that become columns: the columns must not depend on the data.",
        "List them: PIVOT t ON state IN ('CA', 'NY') USING sum(n).",
    ),
    "recursive": (
        "refused-recursive",
        "Recursive queries are not supported: they may never end.",
        "Write the steps out, or use range(...) in FROM.",
    ),
    "schema": (
        "refused-schema",
        "Only tables and their columns are named with a schema.",
        "Leave the schema out.",
    ),
    "cast": (
        "refused-cast",
        "This type is not supported for results.",
        "Cast to BOOLEAN, a number, VARCHAR, DATE, TIME, TIMESTAMP, INTERVAL, JSON, or lists and structs "
        "of them.",
    ),
    "collate": (
        "refused-syntax",
        "This collation is not supported.",
        "Write COLLATE nocase, COLLATE noaccent or COLLATE binary.",
    ),
    "method": (
        "refused-function",
        "Functions are not called with a dot here.",
        "Write upper(x), not x.upper().",
    ),
    "days": (
        "refused-interval",
        "A number of days is added differently by different engines.",
        "Write d + INTERVAL 2 DAY, or CAST(d + INTERVAL 2 DAY AS DATE).",
    ),
    "tablesample": (
        "refused-tablesample",
        "Sampling is random: the same query would have another answer each time.",
        "Leave it out. The noise that protects people is in the released values already.",
    ),
    "time-zone": (
        "refused-function",
        "Time zones are not supported here: results have none.",
        "Use TIMESTAMP, and add or subtract an INTERVAL.",
    ),
    "age": (
        "refused-function",
        "age() of one argument reads the clock: the same text would be another query each time.",
        "Give it both moments: age(TIMESTAMP '2024-01-31', x).",
    ),
    "aggregate-name": (
        "refused-function",
        "list_aggregate() needs the name of an aggregate as a constant.",
        "Write list_sum(x), or list_aggregate(x, 'sum').",
    ),
    "precedence": (
        "refused-syntax",
        "DuckDB and other engines group these operators differently.",
        "Write parentheses around the operands.",
    ),
    "constant": (
        "refused-syntax",
        "This constant is not written as in SQL.",
        "Write numbers like 1.5 or 1e6, and text like 'CA'.",
    ),
}


def refused_above(what: str, place: Place | None) -> Refused:
    """The refusal of what _OTHERS knows by this name."""
    return Refused(*_OTHERS[what], place)
