"""The names that an expression above the releases may use, and the values behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from privsql.sql.boxes.cells import Endless, NoRule, Value
from privsql.sql.boxes.program import BoxRows, Columns, Program, ValueTable, is_short

Tables = Mapping[str, ValueTable]


@dataclass
class Scope:
    """What one SELECT can name: the columns of its FROM, its aliases, and what was computed before."""

    program: Program
    rows: BoxRows
    sources: Mapping[str, Columns]
    tables: Tables  # that its subqueries may name
    merged: Mapping[str, Value] = field(default_factory=dict)  # the columns of USING
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)
    # aggregates and windows that are columns of the rows by now, and keys
    computed: dict[exp.Expr, Value] = field(default_factory=dict)
    resolving: set[str] = field(default_factory=set)

    def column(self, node: exp.Column) -> Value | exp.Expr:
        """The value of a column, or the expression that it is an alias of."""
        name, table = node.name.lower(), node.table.lower()
        if not table and name in self.merged:
            return self.merged[name]
        found = [
            value
            for alias, columns in self.sources.items()
            for known, value in columns
            if known.lower() == name and table in ("", alias)
        ]
        if len(found) == 1:
            return found[0]
        if found or table or name not in self.aliases:
            raise NoRule
        return self.aliases[name]

    def star(self, table: str = "") -> Iterator[tuple[str, Value]]:
        """The columns of `*` or `t.*`."""
        shown: set[str] = set()
        for alias, columns in self.sources.items():
            for name, value in columns:
                if table and alias != table.lower():
                    continue
                if not table and name.lower() in self.merged:
                    if name.lower() not in shown:
                        yield name, self.merged[name.lower()]
                    shown.add(name.lower())
                else:
                    yield name, value

    def short(self, value: Value) -> Value:
        """A value that may be written several times: a column of the rows where it is long."""
        if isinstance(value, Endless) or is_short(value):
            return value
        return self.keep(value)

    def keep(self, value: Value) -> Value:
        """A value as a column of the rows."""
        self.rows, [found] = self.program.keep(self.rows, [value])
        return found
