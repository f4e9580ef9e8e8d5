"""A histogram of values and a search go in; SQL of a shorter one comes out: value by value near the ranks,
elsewhere by bins.

Far from its rank a value is all but never chosen, so that there it is enough to know how many rows a bin of
many points has; and grouping by bins is several times faster. For MIN and MAX all but the first or last rows,
a public number of them, are one bin: the others need not even be grouped. Which bins are near is only a
matter of speed: where a bin is chosen after all, the whole histogram is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from privsql.algebra.reserved import ROWS_COLUMN, VALUE_COLUMN, WIDTH_COLUMN
from privsql.planning import render
from privsql.planning.value_grid import ValueGrid
from privsql.privacy.order import Search

SHIFT = 10  # a bin has 2^10 points
FEWEST = 2**15  # points of a grid from which on bins are worth a second look at the rows
MOST_ROWS = 2**16  # at one end, which the engine keeps in order
_SURE = 1e-15  # the chance that a bin is chosen


@dataclass(frozen=True)
class Bins:
    """The rows of a histogram one by one, with keys and a value on a grid; `tests` tell declared keys from
    others.
    """

    names: tuple[str, ...]  # of the keys, quoted
    keys: tuple[str, ...]  # their SQL
    tests: tuple[str, ...]
    value: str
    grid: ValueGrid
    source: str  # FROM and WHERE

    def sql(self, search: Search) -> str:
        """Keys, the first point of a bin or a value's own, how many points that is, and how many rows."""
        ends = _ends(search)
        if not self.names and ends and max(ends.values()) <= MOST_ROWS:
            return self._by_ends(ends)
        columns = ", ".join(
            [*self.keys, f"{self.grid.place(self.value)} AS {render.identifier(VALUE_COLUMN)}"]
        )
        rows = f"SELECT {columns} FROM {self.source}"
        keys, by = (
            "".join(f"{name}, " for name in self.names),
            f"PARTITION BY {', '.join(self.names)} " if self.names else "",
        )
        where = f" WHERE {' AND '.join(self.tests)}" if self.tests else ""
        ordinals = ", ".join(str(index + 1) for index in range(len(self.names) + 1))
        binned = f"{keys}{VALUE_COLUMN} >> {SHIFT} AS privsql_bin"
        coarse = f"SELECT {binned}, count(*) AS {ROWS_COLUMN} FROM privsql_values GROUP BY {ordinals}"
        before = f"sum({ROWS_COLUMN}) OVER ({by}ORDER BY privsql_bin ASC NULLS LAST) - {ROWS_COLUMN}"
        ranked = f"SELECT *, {before} AS privsql_before, sum({ROWS_COLUMN}) OVER ({by}) AS privsql_all FROM privsql_coarse"
        near = f"SELECT *, ({' OR '.join(_near(search))}) AS privsql_near FROM privsql_ranked"
        same = " AND ".join(
            f"(a.{name} IS NOT DISTINCT FROM b.{name})" for name in (*self.names, "privsql_bin")
        )
        shown = ", ".join(f"a.{name}" for name in (*self.names, VALUE_COLUMN))
        return (
            f"WITH privsql_values AS NOT MATERIALIZED ({rows}), privsql_coarse AS MATERIALIZED "
            f"(SELECT * FROM ({coarse} OFFSET 0) AS privsql_cells{where}), privsql_ranked AS MATERIALIZED ({ranked}), "
            f"privsql_bins AS MATERIALIZED ({near}) "
            f"SELECT {keys}privsql_bin << {SHIFT} AS {VALUE_COLUMN}, {1 << SHIFT} AS {WIDTH_COLUMN}, {ROWS_COLUMN} "
            f"FROM privsql_bins WHERE NOT privsql_near UNION ALL "
            f"SELECT {shown}, 1, count(*) FROM (SELECT *, {VALUE_COLUMN} >> {SHIFT} AS privsql_bin FROM privsql_values) AS a "
            f"JOIN (SELECT * FROM privsql_bins WHERE privsql_near) AS b ON {same} GROUP BY {ordinals}"
        )

    def _by_ends(self, ends: Mapping[int, int]) -> str:
        """Value by value what has the place of one of so many first (0) or last (1) rows or is further out;
        one bin between.

        Rows are put in order by their measure, which is faster than to place them all; only those that may be
        near are placed.
        """
        grid = self.grid
        measured = f"SELECT {grid.measure(self.value)} AS privsql_measure FROM {self.source}"

        def edge(end: int) -> str:
            order, last = (("ASC", "max"), ("DESC", "min"))[end]
            some = f"SELECT privsql_measure FROM ({measured}) ORDER BY privsql_measure {order} NULLS LAST LIMIT {ends[end]}"
            return grid.place_of(f"(SELECT {last}(privsql_measure) FROM ({some}))")

        low, high = (edge(0) if 0 in ends else "-1"), (edge(1) if 1 in ends else str(grid.points))
        limits = {
            0: f"privsql_measure <= (SELECT {grid.to_place('privsql_low')} FROM privsql_edges)",
            1: f"privsql_measure >= (SELECT {grid.from_place('privsql_high')} FROM privsql_edges)",
        }
        within = " OR ".join(limits[end] for end in ends)
        placed = (
            f"SELECT {grid.place_of('privsql_measure')} AS {VALUE_COLUMN} FROM ({measured}) WHERE {within}"
        )
        counted = f"SELECT {VALUE_COLUMN}, count(*) AS {ROWS_COLUMN} FROM ({placed}) GROUP BY {VALUE_COLUMN}"
        rest = f"(SELECT count(*) FROM ({measured})) - (SELECT coalesce(sum({ROWS_COLUMN}), 0) FROM privsql_near)"
        return (
            f"WITH privsql_edges AS MATERIALIZED (SELECT {low} AS privsql_low, {high} AS privsql_high), "
            f"privsql_near AS MATERIALIZED (SELECT {VALUE_COLUMN}, {ROWS_COLUMN} FROM ({counted}), privsql_edges "
            f"WHERE {VALUE_COLUMN} <= privsql_low OR {VALUE_COLUMN} >= privsql_high), "
            f"privsql_rest AS MATERIALIZED (SELECT TRY_CAST({rest} AS BIGINT) AS {ROWS_COLUMN}) "
            f"SELECT {VALUE_COLUMN}, 1 AS {WIDTH_COLUMN}, {ROWS_COLUMN} FROM privsql_near UNION ALL "
            f"SELECT privsql_low + 1, privsql_high - privsql_low - 1, {ROWS_COLUMN} FROM privsql_rest, privsql_edges "
            f"WHERE {ROWS_COLUMN} > 0"
        )


def _ends(search: Search) -> dict[int, int]:
    """Of MIN (0) and MAX (1) how many rows from that end may matter; none if something else is sought."""
    if any(step.fraction not in (0, 1) for step in search.steps):
        return {}
    return {
        int(step.fraction): step.margin + math.ceil(search.rank_error(place, 1.0 - _SURE))
        for place, step in enumerate(search.steps)
    }


def _near(search: Search) -> Sequence[str]:
    """Whether rows of a bin are so near to the rank of a quantile that it may be chosen."""
    tests = []
    for place, step in enumerate(search.steps):
        q, within = search.whole(place), math.ceil(search.rank_error(place, 1.0 - _SURE))
        rank = f"privsql_all * {q.numerator}"
        if step.margin:
            name, end = (
                ("greatest", f"{step.margin}") if q == 0 else ("least", f"(privsql_all - {step.margin})")
            )
            rank = f"{name}({rank}, {end} * {q.denominator})"
        slack = within * q.denominator
        last = f"(privsql_before + {ROWS_COLUMN}) * {q.denominator}"
        tests.append(f"(privsql_before * {q.denominator} <= {rank} + {slack} AND {last} >= {rank} - {slack})")
    return tests
