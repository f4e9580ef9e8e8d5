"""A node goes in; if a table has another way to write it, that comes out, with the node's arguments in place.

A table has one line for each function: what stands left of `=>` is replaced by the DuckDB SQL right of it, in
which a, b, c ... are the arguments in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import sqlglot
from sqlglot import exp

from privsql.errors import SqlError

MOST_COPIED = 6_000  # nodes of arguments that are written more than once, in a whole query
PLACEHOLDERS = "abcdef"
# What identifies a function: its name and number of arguments, or sqlglot's class and the arguments set.
Key = tuple[str, int | frozenset[str]]


@dataclass(frozen=True)
class Template:
    """What is written in place of a function. `names`: the arguments of sqlglot's class, in order."""

    written: str
    names: tuple[str, ...] = ()


Table = Mapping[Key, Template]


def read_templates(table: str) -> Table:
    """`square 1 => pow(a, 2)` is a function that is called by name, with one argument; `Cot this => ...` is a
    class of sqlglot's, with the arguments that are set. A line that begins with spaces goes on with the one
    before.
    """
    return dict(_entries(table))


def _entries(table: str) -> Iterator[tuple[Key, Template]]:
    for line in table.strip().replace("\n    ", " ").splitlines():
        left, _, written = line.partition(" => ")
        first, *rest = left.split()
        if rest and rest[-1].isdigit():
            for name in (first, *rest[:-1]):
                yield (name, int(rest[-1])), Template(written.strip())
        else:
            yield (first, frozenset(rest)), Template(written.strip(), tuple(rest))


@dataclass
class Rewriter:
    """Writes nodes by a table; to be used from the innermost node outwards."""

    table: Table
    copied: int = 0

    def rewritten(self, node: exp.Expr) -> tuple[exp.Expr, list[exp.AggFunc]] | None:
        """What to write in place of a node, and the aggregates that are new in it; None: the node stays."""
        found = self._found(node)
        if found is None:
            return None
        written, arguments = found
        # below something, so that what is written can itself be a hole or an aggregate
        above = exp.Paren(this=_parsed(written).copy())
        aggregates = list(above.find_all(exp.AggFunc))
        holes = [each for each in above.find_all(exp.Column) if each.name in PLACEHOLDERS]
        used: set[str] = set()
        for hole in holes:
            argument = arguments[PLACEHOLDERS.index(hole.name)]
            if hole.name in used:
                self._count(argument)
                argument = argument.copy()
            used.add(hole.name)
            hole.replace(exp.Paren(this=argument) if isinstance(argument, exp.Binary) else argument)
        return above.this, aggregates

    def _found(self, node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
        if isinstance(node, (exp.Anonymous, exp.AnonymousAggFunc, exp.CombinedAggFunc)):
            template = self.table.get((str(node.this).lower(), len(node.expressions)))
            return None if template is None else (template.written, list(node.expressions))
        present = frozenset(name for name, value in node.args.items() if value not in (None, False, []))
        template = self.table.get((type(node).__name__, present))
        if template is None:
            return None
        values = [node.args[name] for name in template.names]
        flat = [part for value in values for part in (value if isinstance(value, list) else [value])]
        arguments = [each for each in flat if isinstance(each, exp.Expr)]
        return (template.written, arguments) if len(arguments) == len(template.names) else None

    def _count(self, argument: exp.Expr) -> None:
        self.copied += sum(1 for _ in argument.walk())
        if self.copied > MOST_COPIED:
            raise SqlError("sql-too-long", "the query has too many parts", "write a simpler query")


@cache
def _parsed(written: str) -> exp.Expr:
    return sqlglot.parse_one(written, dialect="duckdb")
