"""Tables of values that are known up to the noise go in; a WITH of one table after the other comes out.

Every column of every table has a name of its own, so that a later table may name all columns of the earlier
ones that it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from privsql.sql.boxes.cells import (
    TRUE,
    Fixed,
    Sql,
    Truth,
    Value,
    both,
    parts_of,
    truth_of,
    with_parts,
)

Columns = tuple[tuple[str, Value], ...]
_CONSTANTS = (exp.Literal, exp.Boolean, exp.Null)
_BOUND = 60  # nodes of SQL that are written out wherever they are used


@dataclass(frozen=True)
class BoxRows:
    """A table of the program: all rows that there may be. `must`: which of them are there for certain;
    `open`: there may be others that are not in it.
    """

    name: str
    must: Sql = TRUE
    open: bool = False


@dataclass(frozen=True)
class ValueTable:
    """BoxRows, and the values that they have under each name."""

    rows: BoxRows
    columns: Columns

    def find(self, name: str) -> Value | None:
        return next((each for known, each in self.columns if known.lower() == name.lower()), None)


@dataclass
class Program:
    """The tables, each of which reads those before it."""

    tables: dict[str, exp.Expr] = field(default_factory=dict)
    _columns: int = 0

    def column(self) -> str:
        self._columns += 1
        return f"privsql c{self._columns}"

    def add(self, select: exp.Expr) -> str:
        name = f"privsql t{len(self.tables)}"
        self.tables[name] = select
        return name

    def project(
        self, columns: Iterable[tuple[str, Value]], must: Sql, select: exp.Select, is_open: bool
    ) -> ValueTable:
        """A table of these values only; `select` says where they come from."""
        items: dict[str, Sql] = {}
        named = []
        for name, value in columns:
            named.append((name, with_parts(value, [self._named(each, items) for each in parts_of(value)])))
        must = self._named(must, items)
        written = select.copy()
        aliased = [exp.alias_(each.copy(), name, quoted=True) for name, each in items.items()]
        written.set("expressions", [*written.expressions, *aliased] or [exp.alias_(TRUE, self.column())])
        return ValueTable(BoxRows(self.add(written), must, is_open), tuple(named))

    def _named(self, part: Sql, items: dict[str, Sql]) -> Sql:
        """A column for a part of a value, unless it is a constant."""
        if isinstance(part, _CONSTANTS):
            return part
        name = self.column()
        items[name] = part
        return column(name)

    def again(self, table: ValueTable) -> ValueTable:
        """The same table under names of its own, as every use of it in a FROM needs them."""
        return self.project(table.columns, table.rows.must, reading(table.rows.name), table.rows.open)

    def keep(self, rows: BoxRows, values: Sequence[Value]) -> tuple[BoxRows, list[Value]]:
        """The rows with further columns for these values, and the values as these columns."""
        items: dict[str, Sql] = {}

        def kept(part: Sql) -> Sql:
            return part if isinstance(part, exp.Column) else self._named(part, items)

        found = [with_parts(each, [kept(part) for part in parts_of(each)]) for each in values]
        return (self.extend(rows, items) if items else rows), found

    def extend(self, rows: BoxRows, items: Mapping[str, Sql], alias: str = "") -> BoxRows:
        """The rows with further columns."""
        named = [exp.alias_(each.copy(), name, quoted=True) for name, each in items.items()]
        star: exp.Expr = exp.Column(this=exp.Star(), table=exp.to_identifier(alias)) if alias else exp.Star()
        written = reading(rows.name, alias)
        written.set("expressions", [star, *named])
        return replace(rows, name=self.add(written))

    def where(self, rows: BoxRows, condition: Value) -> BoxRows:
        """The rows that may fulfil a condition."""
        truth = truth_of(condition)
        rows, [kept] = self.keep(rows, [truth])
        assert isinstance(kept, Truth)
        written = reading(rows.name)
        written.set("expressions", [exp.Star()])
        written.set("where", exp.Where(this=kept.true.copy()))
        if isinstance(condition, Fixed):
            return replace(rows, name=self.add(written))
        found = replace(rows, name=self.add(written), must=both(rows.must, kept.certain))
        return self._with_must(found)

    def _with_must(self, rows: BoxRows) -> BoxRows:
        rows, [kept] = self.keep(rows, [Fixed(rows.must)])
        return replace(rows, must=parts_of(kept)[0])

    # -- the whole -------------------------------------------------------------------------------------------
    def finished(self, last: exp.Select) -> exp.Select:
        """The last table, with those that it needs and the columns that are needed of them."""
        live = names_in(last)
        tables = tables_in(last)
        kept: list[exp.Expr] = []
        for name, select in reversed(self.tables.items()):
            if name in tables:
                written = _pruned(select, live)
                live |= names_in(written)
                tables |= tables_in(written)
                alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
                kept.append(exp.CTE(this=written, alias=alias))
        whole = last.copy()
        whole.set("with_", exp.With(expressions=kept[::-1]) if kept else None)
        return whole


def _pruned(select: exp.Expr, live: set[str]) -> exp.Expr:
    """A table of the program without columns that nothing needs. Sides of a UNION keep theirs, in order."""
    written = select.copy()
    if isinstance(written, exp.Select):
        needed = [
            each for each in written.expressions if not isinstance(each, exp.Alias) or each.alias in live
        ]
        written.set("expressions", needed or written.expressions[:1])
    return written


def is_short(value: Value) -> bool:
    """Whether a value is written so shortly that it may stand in several places."""
    return sum(1 for part in parts_of(value) for _ in part.walk()) <= _BOUND


def column(name: str, table: str = "") -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=table or None)


def reading(name: str, alias: str = "") -> exp.Select:
    """SELECT ... FROM a table of the program; what it selects is for the caller to set."""
    source = exp.Table(this=exp.to_identifier(name, quoted=True))
    if alias:
        source.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
    return exp.Select(from_=exp.From(this=source))


def names_in(node: exp.Expr) -> set[str]:
    return {each.name for each in node.find_all(exp.Column)}


def tables_in(node: exp.Expr) -> set[str]:
    return {each.name for each in node.find_all(exp.Table)}


def at(value: Value, alias: str) -> Value:
    """A value of one of two rows that are compared: its columns, qualified."""
    return with_parts(value, [qualified(each, alias) for each in parts_of(value)])


def qualified(sql: Sql, alias: str) -> Sql:
    def named(node: exp.Expr) -> exp.Expr:
        return column(node.name, alias) if isinstance(node, exp.Column) else node

    return sql.copy().transform(named)
