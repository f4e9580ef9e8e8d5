"""A list of constants, or a series from one constant to another, goes in; public rows come out.

UNNEST([1, 2, 3]), generate_series(1, 10), range(DATE '2024-01-01', DATE '2025-01-01', INTERVAL 1 MONTH). All
rows are written out here, so that how many there are is known while planning. Moments are added up one by
one, as DuckDB does: a month after January 31 is February 29, and a month after that March 29.
"""

from __future__ import annotations

import datetime as dt
from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from privsql.algebra import build
from privsql.algebra.expressions import Expression, Literal
from privsql.algebra.functions import common
from privsql.algebra.relations import Field, Filter, Project, Relation, Values
from privsql.algebra.reserved import unique_names
from privsql.errors import Refused, SqlError
from privsql.sql.bind.scalar.binder import ExpressionBinder
from privsql.sql.bind.scope import Source
from privsql.sql.parse.places import place_of
from privsql.types import BIGINT, BOOLEAN, DATE, TEXT, TIMESTAMP, Kind

MOST_ROWS = 10_000
_LISTS = (exp.Array, exp.GenerateSeries, exp.GenerateDateArray)
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}

Bind = Callable[[exp.Expr], Expression]


def is_constant_list(node: exp.Expr) -> bool:
    """Whether this is a list that is written out, or a series."""
    while isinstance(node, (exp.Paren, exp.ArrayDistinct)) or _is_list_cast(node):
        node = node.this
    return isinstance(node, _LISTS)


def _is_list_cast(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and node.to.is_type(exp.DType.ARRAY, exp.DType.LIST)


def generated(node: exp.Expr, listed: exp.Expr, called: str) -> Source:
    """UNNEST, range or generate_series in FROM, whose one column has the name of its alias, or its own."""
    alias = node.args.get("alias")
    columns = [each.name for each in (alias.args.get("columns") or [])] if alias is not None else []
    table = alias.this.name if alias is not None and alias.this is not None else None
    if len(columns) > 1:
        raise SqlError("sql-alias", "more column aliases than columns", "leave some out", place_of(node))
    if columns or table is None:
        name = columns[0] if columns else called
        return constant_rows(listed, name, table or called)
    found = constant_rows(listed, table, table)
    if table.lower() == called:
        return found
    column = found.relation.fields[0].column  # range(3) AS g: g.g is also g.range
    both = Project(found.relation, ((table, column), (called, column)))
    return Source(both, table, (table, called), hidden=frozenset({1}))


def constant_rows(node: exp.Expr, name: str, table: str | None) -> Source:
    """One row for each element of a list, in a column of that name."""

    def no_columns(column: exp.Column) -> Expression:
        raise _not_constant(column)

    values = _elements(node, ExpressionBinder(no_columns).bind)
    if len(values) > MOST_ROWS:
        raise _too_many(node)
    unified = build.same_type(values) if values else []
    type_ = (common([each.type for each in unified]) if unified else None) or TEXT
    (inside,) = unique_names([name])
    field = Field(inside, TEXT if type_.kind is Kind.NULL else type_)
    return Source(rows_of([(each,) for each in unified], (field,)), table, (name,))


def rows_of(rows: Sequence[tuple[Expression, ...]], fields: tuple[Field, ...]) -> Relation:
    """Rows of constants; none of them is one row that no condition keeps."""
    if rows:
        return Values(tuple(rows), fields)
    nothing = Values((tuple(Literal(None, each.type) for each in fields),), fields)
    return Filter(nothing, Literal(False, BOOLEAN))


def _elements(node: exp.Expr, bind: Bind) -> list[Expression]:
    match node:
        case exp.Paren():
            return _elements(node.this, bind)
        case exp.ArrayDistinct():
            there = (each for each in _elements(node.this, bind) if not _is_null(each))
            return list(dict.fromkeys(there))
        case exp.Cast():
            inner = node.to.expressions
            if len(inner) != 1 or not isinstance(_bare(node.this), exp.Array):
                raise _not_constant(node)
            listed = _bare(node.this).expressions
            return [bind(exp.Cast(this=each.copy(), to=inner[0].copy())) for each in listed]
        case exp.Array():
            return [bind(each) for each in node.expressions]
        case exp.GenerateSeries() | exp.GenerateDateArray():
            return list(_series(node, bind))
    raise _not_constant(node)


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_null(value: Expression) -> bool:
    return isinstance(value, Literal) and value.value is None


# -- series --------------------------------------------------------------------------------------------------
def _series(node: exp.GenerateSeries | exp.GenerateDateArray, bind: Bind) -> Iterator[Literal]:
    step = node.args.get("step")
    of_dates = isinstance(node, exp.GenerateDateArray)
    if isinstance(step, exp.Interval) or of_dates:
        type_ = DATE if of_dates else TIMESTAMP
        start, end = (_moment(node.args[each], bind) for each in ("start", "end"))
        months, time = (0, dt.timedelta(days=1)) if step is None else _interval(step, bind)
        if of_dates and time % dt.timedelta(days=1):
            raise _not_constant(node)
        found = _moments(start, end, months, time, node)
        return (Literal(each.date() if of_dates else each, type_) for each in found)
    first, last = (_whole(node.args[each], bind) for each in ("start", "end"))
    by = 1 if step is None else _whole(step, bind)
    if by == 0:
        raise _no_step(node)
    inclusive = 0 if node.args.get("is_end_exclusive") else (1 if by > 0 else -1)
    numbers = range(first, last + inclusive, by)
    if len(numbers) > MOST_ROWS:
        raise _too_many(node)
    return (Literal(each, BIGINT) for each in numbers)


def _moments(
    start: dt.datetime, end: dt.datetime, months: int, time: dt.timedelta, node: exp.Expr
) -> Iterator[dt.datetime]:
    exclusive, count, now = bool(node.args.get("is_end_exclusive")), 0, start
    rising = months > 0 or time > dt.timedelta()
    while (now < end if rising else now > end) or (now == end and not exclusive):
        count += 1
        if count > MOST_ROWS:
            raise _too_many(node)
        yield now
        try:
            now = _months_later(now, months) + time
        except (OverflowError, ValueError):  # past Python's calendar, so past the end
            return


def _months_later(moment: dt.datetime, months: int) -> dt.datetime:
    if months == 0:
        return moment
    years, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    return moment.replace(year=years, month=month + 1, day=min(moment.day, monthrange(years, month + 1)[1]))


def _interval(node: exp.Expr, bind: Bind) -> tuple[int, dt.timedelta]:
    """An interval of one unit: months, or a time."""
    value = bind(node)
    if not isinstance(value, Literal) or value.type.kind is not Kind.INTERVAL:
        raise _not_constant(node)
    amount, unit = str(value.value).split(" ")
    if amount == "0":
        raise _no_step(node)
    if unit in _MONTHS:
        return int(amount) * _MONTHS[unit], dt.timedelta()
    return 0, dt.timedelta(**{f"{unit}s": int(amount)})


def _whole(node: exp.Expr, bind: Bind) -> int:
    value = bind(node)
    if not isinstance(value, Literal) or not _fits(value):
        raise _not_constant(node)
    return int(value.value)


def _fits(value: Literal) -> bool:
    return value.type.kind is Kind.INTEGER and isinstance(value.value, int) and abs(value.value) < 2**62


def _moment(node: exp.Expr, bind: Bind) -> dt.datetime:
    value = bind(node)
    if isinstance(value, Literal) and value.type.kind is Kind.TEXT:
        value = build.convert(value, TIMESTAMP)
    match value:
        case Literal(value=dt.datetime() as moment):
            return moment
        case Literal(value=dt.date() as day):
            return dt.datetime.combine(day, dt.time())
    raise _not_constant(node)


# -- refusals ------------------------------------------------------------------------------------------------
def _too_many(node: exp.Expr) -> Refused:
    return Refused(
        "refused-table-function",
        f"A series or list of constants has at most {MOST_ROWS:,} rows here.",
        "Use a coarser step, or a public table.",
        place_of(node),
    )


def _no_step(node: exp.Expr) -> SqlError:
    return SqlError(
        "sql-values", "the step of a series is 0", "give it a step, as in INTERVAL 1 DAY", place_of(node)
    )


def _not_constant(node: exp.Expr) -> Refused:
    return Refused(
        "refused-table-function",
        "In FROM, a series or list must be of constants: what comes from rows could be of any length.",
        "Write generate_series(1, 10), range(DATE '2024-01-01', DATE '2024-02-01', INTERVAL 1 DAY) or "
        "UNNEST([1, 2, 3]).",
        place_of(node),
    )
