"""Parts of a query go in; one form for all parsers comes out: nested tuples, in which equal means read alike.

What counts as alike although it is written otherwise is here and nowhere else, so that the list can be read:

- AND and OR are flat; BETWEEN is a pair of comparisons; NOT IN, NOT LIKE, IS NOT NULL are NOT of the plain form
- CASE x WHEN y is CASE WHEN x = y; a missing ELSE is NULL; IF(a, b, c) is a CASE
- x IS TRUE is a cast to BOOLEAN that is not distinct from TRUE
- minus before a number is part of it; plus before anything is nothing
- functions go by one of their names (ALIASES of privsql, NAMES below); EXTRACT(year FROM d), date_part('year', d) and year(d)
  are one; a % b is mod(a, b), a ** b is pow; date_add(d, i) is d + i; ISNULL(x) is x IS NULL
- x & y, x | y and xor(x, y) are bitand, bitor and bitxor; truncate(x, n) is trunc(x, n); a cast of '2 day' to INTERVAL is INTERVAL 2 DAY
- date(x) is a cast; regexp_extract(s, p) is that of group 0
- types go by one of their names; names of tables, columns and aliases have no case
- log2(x) is log(2, x), log10(x) and log(x) are log(10, x); @x is abs(x), a ^@ b is starts_with(a, b)
- regr_sxy(a, b) is the number of pairs without NULL times covar_pop(a, b), and so on; range(n) is range(0, n)
- NULLS LAST is the default; LIMIT ALL is none; GROUP BY is a list of sets, in no order
- a comma between tables is a cross join; what is joined to its right side by CROSS, INNER, LEFT, SEMI or ANTI JOIN may as well be
  joined to both (not so by RIGHT and FULL JOIN, which is why the comma matters)
"""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from privsql.algebra.functions import ALIASES, PARTS

Node = Any  # tuples of tuples, texts, numbers
NULL: Node = ("null",)
STAR: Node = ("star", "", (), (), ())
RUNNING: Node = (
    ("UNBOUNDED_PRECEDING", None),
    ("CURRENT_ROW_RANGE", None),
)  # the frame where none is written

NAMES = {
    **ALIASES, "stddev": "stddev_samp", "variance": "var_samp", "var": "var_samp", "quantile": "quantile_disc", "**": "pow",
    "^": "pow", "mod": "%", "percentile_cont": "quantile_cont", "percentile_disc": "quantile_disc", "ifnull": "coalesce",
    "argmax": "arg_max", "argmin": "arg_min", "max_by": "arg_max", "min_by": "arg_min", "ord": "unicode",
    "regexp_like": "regexp_matches", "array_distinct": "list_distinct", "listdistinct": "list_distinct",
    "countif": "count_if", "list_pack": "list_value", "nvl": "coalesce",
    "fdiv": "//", "divide": "//", "add": "+", "subtract": "-", "multiply": "*", "every": "bool_and",
    "grouping_id": "grouping", "logical_or": "bool_or", "logical_and": "bool_and", "signum": "sign", "epoch_s": "epoch", "similar_to": "regexp_full_match",
    "@": "abs", "^@": "starts_with", "varp": "var_pop", "stdevp": "stddev_pop", "&": "bitand", "|": "bitor", "xor": "bitxor",
    "truncate": "trunc", "favg": "avg", "fsum": "sum", "kahan_sum": "sum", "sumkahan": "sum",
}  # fmt: skip
TYPES = {
    "int": "integer", "int4": "integer", "signed": "integer", "integral": "integer", "int32": "integer", "int8": "bigint",
    "int64": "bigint", "long": "bigint", "oid": "bigint", "int2": "smallint", "int16": "smallint", "short": "smallint",
    "int1": "tinyint", "text": "varchar", "string": "varchar", "char": "varchar", "bpchar": "varchar", "nvarchar": "varchar",
    "float8": "double", "float4": "float", "real": "float", "numeric": "decimal", "dec": "decimal", "bool": "boolean",
    "timestamptz": "timestamp with time zone", "logical": "boolean", "datetime": "timestamp", "timestampntz": "timestamp", "timestamp_us": "timestamp", "uint": "uinteger",
    "int128": "hugeint", "uint64": "ubigint", "uint32": "uinteger", "uint16": "usmallint", "uint8": "utinyint",
}  # fmt: skip
_CONTAINS = (
    "contains",
    "list_contains",
    "array_contains",
    "list_has",
    "array_has",
)  # of a list: x IN [1, 2] is one, to DuckDB
_OF_PAIRS = ("regr_sxx", "regr_syy", "regr_sxy")
_OPERATORS = {
    "~~": "like",
    "~~*": "ilike",
    "!~~": "like",
    "!~~*": "ilike",
    "~": "regexp_full_match",
    "!~": "regexp_full_match",
}


def number(text: str) -> Node:
    """A number with its kind: 1 is an integer, 1.0 a decimal, 1e0 a double."""
    text = text.replace("_", "").lower()
    if text.lstrip("+-").isdigit():
        return ("number", "integer", str(int(text)))
    if "e" in text or text.lstrip("+-") in ("inf", "nan"):
        return ("number", "double", repr(float(text)))
    exact = Decimal(text)
    return ("number", "decimal", f"{exact:f}" if exact else f"{abs(exact):f}")


def text(value: str) -> Node:
    return ("text", value)


def truth(value: bool) -> Node:
    return ("bool", value)


def column(names: Iterable[str]) -> Node:
    return ("column", *(name.lower() for name in names))


def negative(inner: Node) -> Node:
    if inner[0] == "number":
        value = inner[2]
        return (
            "number",
            inner[1],
            value[1:] if value.startswith("-") else value if set(value) <= set("0.") else f"-{value}",
        )
    return ("call", "-", (inner,))


def denied(inner: Node) -> Node:
    return ("not", inner)


def junction(kind: str, parts: Sequence[Node]) -> Node:
    flat: list[Node] = []
    for each in parts:
        flat += each[1] if each[0] == kind else [each]
    return (kind, tuple(flat))


def between(value: Node, low: Node, high: Node) -> Node:
    return junction("and", [(">=", value, low), ("<=", value, high)])


def compared(operator: str, left: Node, right: Node) -> Node:
    if operator in ("is_same", "is_distinct") and right[0] == "bool" and left[:2] == ("cast", ("boolean",)):
        return ("is", right[1], left[2]) if operator == "is_same" else denied(("is", right[1], left[2]))
    return (operator, left, right)


def case(pairs: Iterable[tuple[Node, Node]], otherwise: Node | None) -> Node:
    return ("case", tuple(pairs), NULL if otherwise is None else otherwise)


def cast(to: Node, inner: Node, safe: bool = False) -> Node:
    if to == ("interval",) and inner[0] == "text" and inner[1].strip().count(" ") == 1 and not safe:
        return interval(*inner[1].strip().split(" "))
    return ("try_cast" if safe else "cast", to, inner)


def type_of(name: str, parameters: Sequence[Any] = ()) -> Node:
    name = TYPES.get(name.lower(), name.lower())
    if name == "decimal" and not parameters:
        parameters = (18, 3)
    if name == "decimal" and len(parameters) == 1:
        parameters = (*parameters, 0)
    if name == "varchar":
        parameters = ()  # DuckDB reads VARCHAR(3) and keeps all of it
    return (name, *parameters)


def interval(amount: str, unit: str) -> Node:
    return (
        "interval",
        str(int(amount)) if amount.strip().lstrip("+-").isdigit() else amount,
        unit.lower().rstrip("s"),
    )


def call(
    name: str,
    args: Sequence[Node],
    distinct: bool = False,
    where: Node | None = None,
    order: Sequence[Node] = (),
) -> Node:
    name = name.lower()
    if name in _OPERATORS:
        plain = ("call", _OPERATORS[name], tuple(args))
        return denied(plain) if name.startswith("!") else plain
    if name in ("log", "log2", "log10"):
        return logarithm([number(name[3:]), *args] if name != "log" else args)
    name = NAMES.get(name, name)
    plain_call = not (distinct or where or order)
    if name == "-" and len(args) == 1:
        return negative(args[0])
    if name == "+" and len(args) == 1:
        return args[0]
    if name == "extract" and len(args) == 2 and args[0][0] == "text":
        part = args[0][1].lower().removesuffix("s")
        return ("call", PARTS.get(part, part), (args[1],))
    if name in ("date_trunc", "date_diff", "date_sub") and args and args[0][0] == "text":
        args = (text(_unit(args[0][1])), *args[1:])
    if name in ("coalesce", "nullif", "if", "isnull", "notnull") and plain_call:
        match name, *args:
            case "if", test, yes, no:
                return case([(test, yes)], no)
            case "isnull", one:
                return ("is_null", one)
            case "notnull", one:
                return denied(("is_null", one))
    if name in _OF_PAIRS and len(args) == 2 and plain_call:
        return _of_pairs(name, *args)
    if name in ("range", "generate_series") and len(args) == 1:
        args = (number("0"), *args)
    if name == "date_add" and len(args) == 2:
        name = "+"
    if name == "regexp_extract" and len(args) == 3 and args[2][0] == "number" and args[2][-1] == "0":
        args = args[:2]
    if name == "mode" and not args and len(order) == 1:  # mode() WITHIN GROUP (ORDER BY x)
        return call(name, [order[0][1]], distinct, where)
    if name in _CONTAINS and len(args) == 2 and args[0][:2] == ("call", "list_value"):
        known = tuple(
            each for each in args[0][2] if each != NULL
        )  # passed over: the test is not unknown for it, as IN's would be
        return ("in", args[1], known) if known else ("call", name, tuple(args))
    if name == "date" and len(args) == 1:
        return cast(type_of("date"), args[0])
    if name == "zeroifnull":
        name, args = "coalesce", (*args, number("0"))
    found: Node = ("call", name, tuple(args))
    return found if plain_call else (*found, distinct, where, tuple(order))


def _of_pairs(name: str, left: Node, right: Node) -> Node:
    """The sums of squares and products about the means of pairs without NULL."""
    known = [denied(("is_null", each)) for each in (left, right)]
    pairs = call("count", [STAR], where=junction("and", known))
    match name:
        case "regr_sxy":
            return call("*", [pairs, call("covar_pop", [left, right])])
        case "regr_sxx":
            return call("*", [pairs, call("var_pop", [right], where=known[0])])
        case _:
            return call("*", [pairs, call("var_pop", [left], where=known[1])])


def over(
    function: Node, by: Sequence[Node], order: Sequence[Node], frame: Node = RUNNING, skips_null: bool = False
) -> Node:
    """A function of a window, with its own FILTER, DISTINCT and ORDER BY, its partition, its order and both ends of its frame."""
    return ("over", function, tuple(by), tuple(order), frame, skips_null)


def logarithm(args: Sequence[Node]) -> Node:
    return ("call", "log", tuple(args) if len(args) > 1 else (number("10"), *args))


def _unit(name: str) -> str:
    name = name.lower().removesuffix("s")
    return {
        "mm": "month",
        "mon": "month",
        "yyyy": "year",
        "yy": "year",
        "dd": "day",
        "q": "quarter",
        "w": "week",
    }.get(name, name)


def ordered(inner: Node, descending: bool, nulls_first: bool) -> Node:
    return ("by", inner, descending, nulls_first)


def star(
    table: str,
    excluded: Iterable[str],
    replaced: Iterable[tuple[str, Node]],
    renamed: Iterable[tuple[str, str]] = (),
) -> Node:
    left_out, names = (
        tuple(sorted(each))
        for each in ((each.lower() for each in excluded), ((a.lower(), b.lower()) for a, b in renamed))
    )
    return ("star", table.lower(), left_out, tuple((n.lower(), e) for n, e in replaced), names)


def table(name: str, alias: str, columns: Iterable[str]) -> Node:
    return ("table", name.lower(), alias.lower(), tuple(each.lower() for each in columns))


def subquery(inner: Node, alias: str, columns: Iterable[str]) -> Node:
    """A query in parentheses; VALUES in them is rows with a name."""
    listed = tuple(each.lower() for each in columns)
    plain = select([(STAR, "")], ())
    if (
        inner[0] == "select"
        and inner[3][:1] == ("values",)
        and len(inner[3]) == 2
        and inner == (*plain[:3], inner[3], *plain[4:])
    ):
        return ("values", inner[3][1], alias.lower(), listed)
    return ("subquery", inner, alias.lower(), listed)


def join(kind: str, left: Node, right: Node, on: Node | None = None, using: Iterable[str] = ()) -> Node:
    if kind == "cross" and right[0] == "join" and right[1] in ("cross", "inner", "left", "semi", "anti"):
        _, inner_kind, near, far, inner_on, inner_using = right
        return join(inner_kind, join("cross", left, near), far, inner_on, inner_using)
    return ("join", kind, left, right, on, tuple(each.lower() for each in using))


def groups(sets: Iterable[Iterable[Node]]) -> Node:
    """Sets of keys; several sets in no order, each as often as it is written."""
    return tuple(sorted((tuple(sorted(set(each), key=repr)) for each in sets), key=repr))


def select(
    items: Iterable[tuple[Node, str]], source: Node, where: Node | None = None, by: Node = (), having: Node | None = None,
    distinct: bool | Node = False, qualify: Node | None = None,
) -> Node:  # fmt: skip
    """`distinct`: or the expressions in which rows differ, of DISTINCT ON."""
    return (
        "select",
        distinct,
        tuple((each, alias.lower()) for each, alias in items),
        source,
        where,
        by,
        having,
        qualify,
    )


def tail(query: Node, order: Sequence[Node], limit: Node | None, offset: Node | None) -> Node:
    if limit in (NULL, column(["all"])):
        limit = None
    if offset == number("0"):
        offset = None
    return (
        query
        if not order and limit is None and offset is None
        else ("tail", query, tuple(order), limit, offset)
    )


def with_names(ctes: Sequence[tuple[str, tuple[str, ...], Node]], query: Node) -> Node:
    named = tuple(
        (name.lower(), tuple(each.lower() for each in columns), inner) for name, columns, inner in ctes
    )
    return ("with", named, query) if named else query


def set_operation(kind: str, every: bool, left: Node, right: Node) -> Node:
    """`kind`: union, union by name, except or intersect."""
    return (kind, every, left, right)


def parts_of(node: Node) -> Iterable[Node]:
    """A form and all forms inside it."""
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, tuple):
            yield each
            pending.extend(each)


def first_difference(one: Node, two: Node) -> tuple[Node, Node]:
    """The smallest parts in which two forms differ, on the way down from the left."""
    while isinstance(one, tuple) and isinstance(two, tuple) and len(one) == len(two):
        step = next(((a, b) for a, b in zip(one, two, strict=True) if a != b), None)
        if step is None or not (isinstance(step[0], tuple) and isinstance(step[1], tuple)):
            break
        one, two = step
    return one, two
