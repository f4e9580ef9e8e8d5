"""A session and a unit go in; noisy counts of units by their number of rows come out, and a max_rows that
suits most of them.

Like the search for ranges, this reads private data as any query does: charged, noised, shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from privsql.algebra.reserved import quoted
from privsql.drafting.guess import Guess
from privsql.errors import EngineError
from privsql.session import Session

_ENDS = [int(2**power) for power in range(11)]  # 1, 2, 4 ... 1024 rows
_COVERED = 0.95
_CLEAR = 10  # the noisy number of units must be this many standard deviations of its noise to mean anything


@dataclass(frozen=True)
class ChosenRows:
    """A limit that was chosen privately; `rows` is None if there was too much noise to choose."""

    rows: int | None
    # units with 1, 2, 3-4, 5-8 ... 513-1024, more rows; () if the query failed
    noisy_counts: tuple[float, ...]
    epsilon: float
    scale: float

    @property
    def lines(self) -> list[str]:
        """The lines of a draft about it."""
        spent = f"Chosen with epsilon {self.epsilon:g}: "
        if not self.noisy_counts:
            return [f"{spent}but the query failed, so this is the default. The epsilon is spent."]
        starts = [1, *(end + 1 for end in _ENDS[:-1])]
        parts = [
            str(end) if start == end else f"{start}-{end}" for start, end in zip(starts, _ENDS, strict=True)
        ]
        counts = [
            f"{part}:{noisy:.0f}"
            for part, noisy in zip([*parts, f">{_ENDS[-1]}"], self.noisy_counts, strict=True)
        ]
        if self.rows is None:
            verdict = "Too few units for this much noise, so this is the default."
        else:
            verdict = (
                f"About {_COVERED:.0%} of the units, give or take the noise, have at most {self.rows} rows"
                + (
                    ". A few units with many more can hold a large part of all rows."
                    if self.rows < _ENDS[-1]
                    else ", or more: this is the largest that was tried."
                )
            )
        numbers = (
            f"noisy numbers of units by their number of rows (noise of scale {self.scale:g}): "
            f"{', '.join(counts)}."
        )
        return [spent + numbers, verdict]


def choose_rows(
    session: Session, units: Mapping[str, Guess], tables: Sequence[str], epsilon: float
) -> dict[str, ChosenRows]:
    """Choose max_rows for each table, at epsilon each, since one person may be in all of them."""
    queries = {table: query(table, units) for table in tables}
    for sql in queries.values():
        session.explain(sql, epsilon)  # refusals come before anything is spent
    found = {}
    for table, sql in queries.items():
        try:
            answer = session.query(sql, epsilon)
        except EngineError:
            found[table] = ChosenRows(None, (), epsilon, math.inf)
            continue
        (noisy,) = answer.fetchall()
        scale = float(answer.plan.measurements[0].l1) / epsilon
        found[table] = ChosenRows(covering(noisy, scale), noisy, epsilon, scale)
    return found


def covering(noisy_counts: Sequence[float], scale: float) -> int | None:
    """The least power of two that suffices for 95% of the units, give or take the noise; None if there is too
    much of it.
    """
    units = sum(noisy_counts)
    if units < _CLEAR * scale * math.sqrt(len(noisy_counts)):
        return None
    for place, end in enumerate(_ENDS):
        rest = noisy_counts[place + 1 :]
        # fewer cannot be told apart from none
        if sum(rest) <= max((1 - _COVERED) * units, 2 * scale * math.sqrt(len(rest))):
            return end
    return _ENDS[-1]


def query(table: str, units: Mapping[str, Guess]) -> str:
    """Count units by their number of rows, in disjoint classes: each unit is in one of them."""
    unit, joins, here = units[table], [f"{quoted(table)} AS t0"], 0
    while unit.table is not None:
        pairs = zip(unit.columns, unit.keys, strict=True)
        on = " AND ".join(f"t{here}.{quoted(own)} = t{here + 1}.{quoted(name)}" for own, name in pairs)
        here += 1
        joins.append(f"JOIN {quoted(unit.table)} AS t{here} ON {on}")
        unit = units[unit.table]
    whose = [f"t{here}.{quoted(column)}" for column in unit.columns]
    named = ", ".join(f"{column} AS u{place}" for place, column in enumerate(whose))
    parts = ["c = 1", *(f"c > {end // 2} AND c <= {end}" for end in _ENDS[1:]), f"c > {_ENDS[-1]}"]
    counts = ", ".join(f"COUNT(*) FILTER (WHERE {part}) AS n{place}" for place, part in enumerate(parts))
    rows = f"SELECT {named}, COUNT(*) AS c FROM {' '.join(joins)} GROUP BY {', '.join(whose)}"
    return f"SELECT {counts} FROM ({rows})"
