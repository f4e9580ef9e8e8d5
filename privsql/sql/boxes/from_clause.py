"""FROM and its joins go in; the rows that there may be, and the names of their columns, come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from privsql.sql.boxes.box_scope import Scope, Tables
from privsql.sql.boxes.cells import (
    TRUE,
    Cell,
    Fixed,
    NoRule,
    Sql,
    Truth,
    Value,
    both,
    holds,
)
from privsql.sql.boxes.evaluate import Evaluator, TableOf
from privsql.sql.boxes.program import BoxRows, Columns, Program, ValueTable, reading

Query = Callable[[exp.Expr, Tables], ValueTable]
_SIDES = ("", "LEFT", "RIGHT", "FULL")
_KINDS = ("", "INNER", "CROSS", "OUTER")


@dataclass
class _Joined:
    """What has been joined so far."""

    rows: BoxRows
    sources: dict[str, Columns]
    merged: dict[str, Value] = field(default_factory=dict)


def from_clause(node: exp.Select, tables: Tables, program: Program, query: Query, table_of: TableOf) -> Scope:
    """The scope of a SELECT: the rows of its FROM, before WHERE."""
    first = node.args.get("from_")
    if node.args.get("laterals"):
        raise NoRule
    if first is None:
        alone = exp.Select(expressions=[exp.alias_(TRUE, program.column(), quoted=True)])
        return Scope(program, BoxRows(program.add(alone)), {}, tables)
    name, table = _source(first.this, tables, program, query)
    joined = _Joined(table.rows, {name: table.columns})
    for join in node.args.get("joins") or []:
        _join(join, joined, tables, program, query, table_of)
    return Scope(program, joined.rows, joined.sources, tables, joined.merged)


def _source(node: exp.Expr, tables: Tables, program: Program, query: Query) -> tuple[str, ValueTable]:
    """A table of FROM under the name that columns call it by."""
    if node.args.get("pivots") or node.args.get("sample") or node.args.get("joins"):
        raise NoRule
    match node:
        case exp.Table(this=exp.Identifier()):
            found = tables.get(node.name.lower())
            if found is None:
                raise NoRule
        case exp.Subquery():
            found = query(node.this, tables)
        case _:
            raise NoRule
    alias = node.args.get("alias")
    name = (node.alias_or_name or f"#{len(program.tables)}").lower()
    return name, program.again(found if alias is None else renamed(found, alias))


def renamed(table: ValueTable, alias: exp.Expr) -> ValueTable:
    """A table with the names of columns that its alias gives."""
    names = [each.name for each in alias.args.get("columns") or []]
    pairs = [
        (names[place] if place < len(names) else name, value)
        for place, (name, value) in enumerate(table.columns)
    ]
    return ValueTable(table.rows, tuple(pairs))


def _join(
    join: exp.Join, joined: _Joined, tables: Tables, program: Program, query: Query, table_of: TableOf
) -> None:
    side, kind = (join.args.get(each) or "" for each in ("side", "kind"))
    if join.args.get("method") or side not in _SIDES or kind not in _KINDS:
        raise NoRule
    name, table = _source(join.this, tables, program, query)
    if name in joined.sources:
        raise NoRule
    left, right = joined.rows, table.rows
    sources = {**joined.sources, name: table.columns}
    using = [each.name for each in join.args.get("using") or []]
    condition = join.args.get("on")
    if not side:
        _inner(joined, table, sources, program)
        scope = Scope(program, joined.rows, sources, tables, joined.merged)
        for each in using:
            same = exp.EQ(this=_one_of(joined.merged, sources, name, each), expression=_fixed(table, each))
            scope.rows = program.where(scope.rows, Fixed(same))
        if condition is not None:
            Evaluator(scope, table_of).filter(condition)
        joined.rows = scope.rows
    else:
        scope = Scope(program, BoxRows(""), sources, tables, joined.merged)
        terms: list[Sql] = [
            exp.EQ(this=_one_of(joined.merged, sources, name, each), expression=_fixed(table, each))
            for each in using
        ]
        if condition is not None:
            terms.append(Evaluator(scope, table_of).fixed(condition))
        sources = _outer(joined, table, sources, name, side, both(*terms), program)
    for each in using:
        joined.merged[each.lower()] = Fixed(_merged(joined.merged, sources, name, each, side))
    joined.sources = sources
    joined.rows = BoxRows(joined.rows.name, joined.rows.must, left.open or right.open)


def _inner(joined: _Joined, table: ValueTable, sources: Mapping[str, Columns], program: Program) -> None:
    """All pairs of rows; what the join asks of them is a WHERE."""
    written = reading(joined.rows.name)
    written.set("joins", [exp.Join(this=_table(table.rows.name), kind="CROSS")])
    written.set("expressions", [exp.Star()])
    must = both(joined.rows.must, table.rows.must)
    joined.rows = BoxRows(program.add(written), must)


def _outer(
    joined: _Joined,
    table: ValueTable,
    sources: Mapping[str, Columns],
    name: str,
    side: str,
    condition: Sql,
    program: Program,
) -> dict[str, Columns]:
    """An outer join on what noise does not reach. What is padded must be there for certain: else a row may
    be padded, or not.
    """
    padded_right, padded_left = side in ("LEFT", "FULL"), side in ("RIGHT", "FULL")
    for padded, rows in ((padded_right, table.rows), (padded_left, joined.rows)):
        if padded and (rows.must != TRUE or rows.open):
            raise NoRule
    written = reading(joined.rows.name)
    written.set("joins", [exp.Join(this=_table(table.rows.name), side=side, on=condition)])
    written.set("expressions", [exp.Star()])
    # of a row that stands on one side only, the flag of the other is missing
    must = both(*(each if each == TRUE else holds(each) for each in (joined.rows.must, table.rows.must)))
    joined.rows = BoxRows(program.add(written), must)
    found = {}
    for each, columns in sources.items():
        padded = padded_right if each == name else padded_left
        found[each] = tuple((known, _padded(value)) for known, value in columns) if padded else columns
    if padded_left:
        joined.merged = {each: _padded(value) for each, value in joined.merged.items()}
    return found


def _padded(value: Value) -> Value:
    """A value that is missing in padded rows."""
    match value:
        case Cell():
            return Cell(value.low, value.high, holds_null(value.low, value.null), value.whole)
        case Truth():
            return Truth(holds(value.true), holds(value.false), holds(value.null, TRUE))
        case _:
            return value


def holds_null(low: Sql, null: Sql) -> Sql:
    """Whether a number may be NULL, where padding makes it so."""
    if isinstance(null, exp.Column):
        return holds(null, TRUE)
    return exp.Is(this=low, expression=exp.null())


def _table(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name, quoted=True))


def _fixed(table: ValueTable, name: str) -> Sql:
    value = table.find(name)
    if not isinstance(value, Fixed):
        raise NoRule
    return value.sql


def _one_of(merged: Mapping[str, Value], sources: Mapping[str, Columns], last: str, name: str) -> Sql:
    """The column of USING in what was joined before."""
    known = merged.get(name.lower())
    found = [] if known is None else [known]
    if known is None:
        before = (columns for alias, columns in sources.items() if alias != last)
        found = [value for columns in before for each, value in columns if each.lower() == name.lower()]
    if len(found) != 1 or not isinstance(found[0], Fixed):
        raise NoRule
    return found[0].sql


def _merged(
    merged: Mapping[str, Value], sources: Mapping[str, Columns], last: str, name: str, side: str
) -> Sql:
    left = _one_of(merged, sources, last, name)
    right = next(value for each, value in sources[last] if each.lower() == name.lower())
    assert isinstance(right, Fixed)
    if side == "FULL":
        return exp.Coalesce(this=left, expressions=[right.sql])
    return right.sql if side == "RIGHT" else left
