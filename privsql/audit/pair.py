"""A pair of states goes in; two neighbouring databases come out, to read, and to create again anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from privsql.audit.scratch import Scratch
from privsql.audit.search import Pair
from privsql.render.duckdb import identifier, text

_MOST_ROWS = 8

Texts = tuple[tuple[str | None, ...], ...]  # rows, each value as DuckDB writes it, NULL as None


@dataclass(frozen=True)
class PairTable:
    """One table of the pair: the rows of the other people, and those of one person in either database."""

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    ddl: str
    others: Texts
    one: Texts
    other: Texts
    telling: tuple[int, ...]  # the columns that matter to the query


@dataclass(frozen=True)
class NeighbouringTables:
    """Two databases that differ in one person's rows."""

    parts: tuple[PairTable, ...]

    @property
    def one(self) -> dict[str, pd.DataFrame]:
        return {each.name: _frame(each, each.one) for each in self.parts}

    @property
    def other(self) -> dict[str, pd.DataFrame]:
        return {each.name: _frame(each, each.other) for each in self.parts}

    def script(self, other: bool = False) -> str:
        """SQL that creates one of the databases, or the `other`, in plain DuckDB, without public tables."""
        lines = []
        for each in self.parts:
            lines.append(f"{each.ddl};")
            rows = [*each.others, *(each.other if other else each.one)]
            values = [
                [_literal(value, type_) for value, type_ in zip(row, each.types, strict=True)] for row in rows
            ]
            listed = ", ".join(f"({', '.join(row)})" for row in values)
            lines += [f"INSERT INTO {identifier(each.name)} VALUES {listed};"] if rows else []
        return "\n".join(lines)

    def __str__(self) -> str:
        return "\n".join(line for each in self.parts for line in _lines(each))


def shown_pair(scratch: Scratch, pair: Pair) -> NeighbouringTables:
    world = scratch.world
    others, one, other = (
        scratch.texts(*each) for each in ((pair.crowd, world.absent), ((), pair.one), ((), pair.other))
    )
    return NeighbouringTables(
        tuple(
            PairTable(
                table.name,
                tuple(each.name for each in table.columns),
                tuple(each.type_name for each in table.columns),
                table.ddl,
                others[table.name],
                one[table.name],
                other[table.name],
                tuple(place for place, each in enumerate(table.columns) if len(each.texts) != 1),
            )
            for table in world.tables
        )
    )


def _frame(part: PairTable, own: Texts) -> pd.DataFrame:
    return pd.DataFrame([*part.others, *own], columns=list(part.columns), dtype=object)


def _literal(value: str | None, type_name: str) -> str:
    return "NULL" if value is None else f"CAST({text(value)} AS {type_name})"


def _lines(part: PairTable) -> list[str]:
    telling = part.telling or tuple(range(len(part.columns)))
    names = [part.columns[place] for place in telling]
    here, there, both = (_counted(rows, telling) for rows in (part.one, part.other, part.others))
    left, right = _table(names, here), _table(names, there)
    width = max(map(len, left))
    lines = [
        f"{part.name}: one person's rows, {len(part.one)} in one table and {len(part.other)} in the other"
    ]
    height = max(len(left), len(right))
    left, right = left + [""] * (height - len(left)), right + [""] * (height - len(right))
    lines += [f"  {a.ljust(width)}  |  {b}".rstrip() for a, b in zip(left, right, strict=True)]
    if both:
        lines += [
            f"  and {len(part.others)} rows of other people, the same in both",
            *(f"  {line}" for line in _table(names, both)),
        ]
    return lines


def _counted(rows: Texts, telling: Sequence[int]) -> list[list[str]]:
    """Rows to show, each with how often it occurs; the rest is left out."""
    counts = Counter(
        tuple("NULL" if row[place] is None else str(row[place]) for place in telling) for row in rows
    )
    shown = [[f"{count} x" if count > 1 else "", *row] for row, count in counts.items()]
    more = len(shown) - _MOST_ROWS
    return shown if more <= 0 else [*shown[:_MOST_ROWS], [f"... {more} more", *([""] * len(telling))]]


def _table(names: Sequence[str], rows: list[list[str]]) -> list[str]:
    if not rows:
        return ["(no row)"]
    lines = [["", *names], *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    first = 0 if widths[0] else 1  # if no row occurs twice, no column says how often
    return [
        "  ".join(c.ljust(w) for c, w in zip(line[first:], widths[first:], strict=True)).rstrip()
        for line in lines
    ]
