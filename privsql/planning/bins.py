"""A histogram of values and a search go in; SQL of a shorter one comes out: value by value near the ranks, elsewhere by bins.

Far from its rank a value is all but never chosen, so that there it is enough to know how many rows a bin of many points has;
and grouping by bins is several times faster. Which bins are near is only a matter of speed: where a bin is chosen after
all, the whole histogram is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from privsql.planning import render
from privsql.privacy.order import Search
from privsql.sql.names import ROWS_COLUMN, VALUE_COLUMN, WIDTH_COLUMN

SHIFT = 10  # a bin has 2^10 points
FEWEST = 2**15  # points of a grid from which on bins are worth a second look at the rows
_SURE = 1e-15  # the chance that a bin is chosen


@dataclass(frozen=True)
class Bins:
    """The rows of a histogram one by one: `rows` is a SELECT of keys and VALUE_COLUMN, `tests` tell declared keys from others."""

    names: tuple[str, ...]  # of the keys, quoted
    rows: str
    tests: tuple[str, ...]

    def sql(self, search: Search) -> str:
        """Keys, the first point of a bin or a value's own, how many points that is, and how many rows."""
        keys, by = "".join(f"{name}, " for name in self.names), f"PARTITION BY {', '.join(self.names)} " if self.names else ""
        where = f" WHERE {' AND '.join(self.tests)}" if self.tests else ""
        ordinals = ", ".join(str(index + 1) for index in range(len(self.names) + 1))
        binned = f"{keys}{VALUE_COLUMN} >> {SHIFT} AS privsql_bin"
        coarse = f"SELECT {binned}, count(*) AS {ROWS_COLUMN} FROM privsql_values GROUP BY {ordinals}"
        before = f"sum({ROWS_COLUMN}) OVER ({by}ORDER BY privsql_bin) - {ROWS_COLUMN}"
        ranked = f"SELECT *, {before} AS privsql_before, sum({ROWS_COLUMN}) OVER ({by}) AS privsql_all FROM privsql_coarse"
        near = f"SELECT *, ({' OR '.join(_near(search))}) AS privsql_near FROM privsql_ranked"
        same = " AND ".join(f"(a.{name} IS NOT DISTINCT FROM b.{name})" for name in (*self.names, "privsql_bin"))
        shown = ", ".join(f"a.{name}" for name in (*self.names, VALUE_COLUMN))
        return (
            f"WITH privsql_values AS NOT MATERIALIZED ({self.rows}), privsql_coarse AS MATERIALIZED "
            f"(SELECT * FROM ({coarse} OFFSET 0) AS privsql_cells{where}), privsql_ranked AS MATERIALIZED ({ranked}), "
            f"privsql_bins AS MATERIALIZED ({near}) "
            f"SELECT {keys}privsql_bin << {SHIFT} AS {VALUE_COLUMN}, {1 << SHIFT} AS {WIDTH_COLUMN}, {ROWS_COLUMN} "
            f"FROM privsql_bins WHERE NOT privsql_near UNION ALL "
            f"SELECT {shown}, 1, count(*) FROM (SELECT *, {VALUE_COLUMN} >> {SHIFT} AS privsql_bin FROM privsql_values) AS a "
            f"JOIN (SELECT * FROM privsql_bins WHERE privsql_near) AS b ON {same} GROUP BY {ordinals}"
        )


def _near(search: Search) -> Sequence[str]:
    """Whether rows of a bin are so near to the rank of a quantile that it may be chosen."""
    tests = []
    for place, step in enumerate(search.steps):
        q, within = search.whole(place), math.ceil(search.rank_error(place, 1.0 - _SURE))
        rank = f"privsql_all * {q.numerator}"
        if step.margin:
            name, end = ("greatest", f"{step.margin}") if 2 * q < 1 else ("least", f"(privsql_all - {step.margin})")
            rank = f"{name}({rank}, {end} * {q.denominator})"
        slack = within * q.denominator
        last = f"(privsql_before + {ROWS_COLUMN}) * {q.denominator}"
        tests.append(f"(privsql_before * {q.denominator} <= {rank} + {slack} AND {last} >= {rank} - {slack})")
    return tests


def bins_of(names: Sequence[str], keys: Sequence[str], tests: Sequence[str], place: str, source: str, where: str) -> Bins:
    columns = ", ".join([*keys, f"{place} AS {render.identifier(VALUE_COLUMN)}"])
    return Bins(tuple(names), f"SELECT {columns} FROM {source} WHERE {where}", tuple(tests))
