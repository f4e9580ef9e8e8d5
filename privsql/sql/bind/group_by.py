"""GROUP BY and the SELECT list go in; the distinct keys and the grouping sets come out."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import ErrorLevel, exp

from privsql.algebra.expressions import Column, Expression, Literal
from privsql.algebra.relations import Key, Sets
from privsql.algebra.reserved import key_names
from privsql.errors import Refused, SqlError
from privsql.sql.bind.clauses import selected
from privsql.sql.bind.grouping import grouping_sets
from privsql.sql.bind.release import has_any_aggregate, has_choice
from privsql.sql.parse.places import place_of

# output names, each with an expression or a column that * expands to
Items = list[tuple[str, exp.Expr | Column]]

MOST_KEYS = 30  # with several sets: GROUPING() needs one bit per key


def bind_keys(
    group: exp.Expr | None, items: Items, bind: Callable[[exp.Expr], Expression]
) -> tuple[tuple[Key, ...], Sets]:
    """The distinct keys in the order of their first use, and the grouping sets; no sets for a plain
    GROUP BY.
    """
    if group is None:
        return (), ()
    sets = [[_term(each, items) for each in listed] for listed in grouping_sets(group)]
    if group.args.get("all"):
        kept = [(each, item) for item in items for each in [item[1]]]
        sets = [
            [
                item
                for each, item in kept
                if isinstance(each, Column) or not (has_any_aggregate(each) or has_choice(each))
            ]
        ]
    bound: dict[Expression, tuple[str, exp.Expr | Column]] = {}
    found: list[list[Expression]] = []
    for listed in sets:
        found.append([])
        for name, term in listed:
            expression = term if isinstance(term, Column) else bind(term)
            if not isinstance(expression, Literal):
                bound.setdefault(expression, (name, term))
                found[-1].append(expression)
    names = key_names([name for name, _ in bound.values()])
    keys = tuple(
        Key(
            name,
            expression,
            as_written(term) if isinstance(term, exp.Expr) else term.name,
            place_of(term) if isinstance(term, exp.Expr) else None,
        )
        for name, (expression, (_, term)) in zip(names, bound.items(), strict=True)
    )
    places = {expression: place for place, expression in enumerate(bound)}
    return keys, _checked(
        [tuple(sorted({places[each] for each in listed})) for listed in found], len(keys), group
    )


def _checked(sets: list[tuple[int, ...]], keys: int, group: exp.Expr) -> Sets:
    if len(sets) == 1:
        return ()
    if len(set(sets)) < len(sets):
        raise Refused(
            "refused-grouping-sets",
            "A set of keys is listed twice.",
            "Name each set once: GROUPING SETS ((a, b), (a), ()).",
            place_of(group),
        )
    if keys > MOST_KEYS:
        raise Refused(
            "refused-grouping-sets",
            f"{keys} keys are too many for GROUPING SETS.",
            "GROUP BY fewer.",
            place_of(group),
        )
    return tuple(sets)


def _term(node: exp.Expr, items: Items) -> tuple[str, exp.Expr | Column]:
    """A key as it is written; an ordinal is replaced by the selected expression."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return output_name(node), node
    item = items[selected("GROUP BY", node, len(items), place_of(node))]
    if isinstance(item[1], exp.Expr) and has_any_aggregate(item[1]):
        raise SqlError(
            "sql-aggregate", "an aggregate cannot be a key", "group by another column", place_of(node)
        )
    return item


def as_written(node: exp.Expr) -> str:
    """The text of a node, as a name; sqlglot must not log what DuckDB could not run."""
    return node.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE)


def output_name(node: exp.Expr) -> str:
    """The name that DuckDB would give a column: its alias, its own name, or its text."""
    match node:
        case exp.Alias():
            return node.alias
        case exp.Column():
            return node.name
        case exp.Count() if isinstance(node.this, exp.Star):
            return "count_star()"
        case _:
            return as_written(node).lower()
