"""Clauses of a query above the releases go in; what they group by, order by and contain comes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from privsql.algebra.literals import ordinal
from privsql.sql.boxes.aggregates import CARRIED, Over
from privsql.sql.boxes.box_scope import Scope
from privsql.sql.boxes.cells import Endless, Fixed, NoRule, Sql, Value, cell_of, parts_of, with_parts
from privsql.sql.boxes.evaluate import Evaluator
from privsql.sql.boxes.program import Columns
from privsql.sql.boxes.ranks import OrderKey

_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


# -- aggregates and windows ----------------------------------------------------------------------------------
def clauses(node: exp.Select) -> Iterator[exp.Expr]:
    """The clauses that stand above the groups."""
    yield from node.expressions
    for name in ("having", "qualify", "order"):
        clause = node.args.get(name)
        if clause is not None:
            yield clause


def aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregates of a query, not those of its subqueries; the function of a window is none."""
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        function = node.this
        while isinstance(function, _AROUND):
            function = function.this
        for each in function.iter_expressions():
            yield from aggregates(each)
        for each in node.iter_expressions():
            if each is not node.this:
                yield from aggregates(each)
    elif isinstance(node, (exp.AggFunc, exp.Filter, exp.WithinGroup)):
        yield node
    else:
        for each in node.iter_expressions():
            yield from aggregates(each)


def windows(node: exp.Expr) -> Iterator[exp.Window]:
    """The windows of a query, not those of its subqueries."""
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        yield node
    else:
        for each in node.iter_expressions():
            yield from windows(each)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the function of a window is an aggregate of its frame."""
    function = node.this if isinstance(node, exp.Filter) else node
    return isinstance(function, exp.AggFunc) and not isinstance(function, CARRIED)


# -- GROUP BY ------------------------------------------------------------------------------------------------
def group_keys(node: exp.Select, scope: Scope) -> list[exp.Expr]:
    """What a query is grouped by, with names and numbers of its outputs as the expressions behind them."""
    group = node.args.get("group")
    if group is None:
        return []
    values = [each.this if isinstance(each, exp.Alias) else each for each in node.expressions]
    if group.args.get("all"):
        return [each for each in values if not any(aggregates(each))]
    if {name for name, value in group.args.items() if value} - {"expressions"}:
        raise NoRule
    found = []
    for each in group.expressions:
        place = ordinal(each.sql())
        if place is not None:
            if not 0 < place <= len(values):
                raise NoRule
            each = values[place - 1]
        elif isinstance(each, exp.Column):
            behind = scope.column(each)
            each = behind if isinstance(behind, exp.Expr) else each
        found.append(each)
    return found


def grouped_by(keys: Sequence[Sql]) -> exp.Group:
    return exp.Group(expressions=[exp.Paren(this=each.copy()) for each in keys])


def of_keys(columns: Columns, keys: Mapping[Sql, Value]) -> Columns:
    """The columns that are keys of the groups: no others can be named above them."""
    return tuple(
        (name, keys[value.sql]) for name, value in columns if isinstance(value, Fixed) and value.sql in keys
    )


# -- ORDER BY, LIMIT -----------------------------------------------------------------------------------------
def order_keys(order: exp.Expr | None, evaluator: Evaluator, columns: Columns) -> list[OrderKey]:
    """What rows are ordered by; `columns`: the outputs, which ORDER BY may name or number."""
    found = []
    for each in order.expressions if order is not None else []:
        value = _output(each.this, columns)
        cell = cell_of(evaluator.value(each.this) if value is None else value)
        nulls_first = bool(each.args.get("nulls_first"))
        found.append(OrderKey(cell, bool(each.args.get("desc")), nulls_first))
    return found


def _output(node: exp.Expr, columns: Columns) -> Value | None:
    place = ordinal(node.sql()) if columns and isinstance(node, exp.Literal) else None
    if place is not None:
        if not 0 < place <= len(columns):
            raise NoRule
        return columns[place - 1][1]
    if not isinstance(node, exp.Column) or node.table:
        return None
    return next((value for name, value in columns if name.lower() == node.name.lower()), None)


def whole_number(clause: exp.Expr | None) -> int | None:
    """The number of LIMIT or OFFSET."""
    if clause is None:
        return None
    number = clause.expression
    others = {name for name, value in clause.args.items() if value} - {"expression"}
    if others or not isinstance(number, exp.Literal) or not number.is_int:
        raise NoRule
    return int(number.this)


def over(
    partition: Sequence[Sql], order: exp.Expr | None, evaluator: Evaluator, spec: exp.Expr | None
) -> Over:
    """Makes a plain function one over a window that noise does not reach."""
    written = order.copy() if order is not None else None
    for place, each in enumerate(order.expressions if order is not None else []):
        assert written is not None
        written.expressions[place].set("this", evaluator.fixed(each.this))

    def of_window(plain: Sql) -> Sql:
        return exp.Window(
            this=plain,
            partition_by=[each.copy() for each in partition],
            order=None if written is None else written.copy(),
            spec=None if spec is None else spec.copy(),
            over="OVER",
        )

    return of_window


# -- UNION ---------------------------------------------------------------------------------------------------
def alike(one: Value, other: Value) -> tuple[Value, Value]:
    """Two values of one kind, for the two sides of a UNION."""
    if isinstance(one, Endless) or isinstance(other, Endless):
        return Endless(), Endless()
    if isinstance(one, Fixed) and isinstance(other, Fixed):
        return one, other
    return cell_of(one), cell_of(other)


def with_next(value: Value, columns: Iterator[exp.Expr]) -> Value:
    """A value made of the next columns."""
    return with_parts(value, [next(columns) for _ in parts_of(value)])
