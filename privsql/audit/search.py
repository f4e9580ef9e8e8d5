"""A plan and a scratch database go in; the neighbouring tables that come closest to its bounds, or exceed
them, come out.

Each person tried is put beside a crowd of other people once, and the exact cells are computed. Then any two
of these tables are neighbours (replace-one), or any one and the crowd alone (add-remove), so n runs compare
n^2 / 2 pairs. If there are too many people to try, people similar to the best pair so far are tried, until
the distance stops growing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from privsql.audit.falsify import (
    Cells,
    Movement,
    NotAsPromised,
    both_ways,
    differences,
    measured_columns,
    movements,
)
from privsql.audit.scratch import Crowd, Scratch
from privsql.audit.states import (
    all_states,
    crowd_like,
    crowds,
    crowds_without_one,
    fits,
    like,
    sampled,
    starts,
)
from privsql.audit.world import State
from privsql.neighbours import Neighbours
from privsql.planning.plan import Plan

EXHAUSTIVE = 260  # up to so many possible people, all are tried
_CLIMBS = 4
# among how many people to look for one who moves anything, by the number of tables
_SAMPLED = (20_000, 1_500, 300)

Floats = npt.NDArray[np.float64]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Pair:
    """Two neighbouring tables: the same crowd, and a person in two states."""

    crowd: Crowd
    one: State
    other: State


@dataclass
class Found:
    """What a search found."""

    # by measurement and norm
    bounds: dict[tuple[int, str], tuple[Movement, Pair | None]] = field(default_factory=dict)
    pairs: list[Pair] = field(default_factory=list)  # the largest movement first
    broken: list[tuple[str, Pair | None]] = field(default_factory=list)
    tables: int = 0
    tried: int = 0  # pairs compared
    exhaustive: bool = False

    def accuse(self, what: str, pair: Pair | None = None) -> None:
        if what.split(":")[0] not in {each.split(":")[0] for each, _ in self.broken}:
            self.broken.append((what, pair))


class PairSearch:
    """One search; it makes at most `tries` tables for each crowd."""

    def __init__(
        self, plan: Plan, scratch: Scratch, tries: int, progress: Progress, given: Sequence[State] = ()
    ) -> None:
        self.plan, self.scratch, self.world, self.tries = plan, scratch, scratch.world, tries
        self.progress, self.found, self.given = progress, Found(), given
        self._losses: dict[Pair, float] = {}
        self._alive: list[State] | None = None
        self._shape: Any = None

    def run(self) -> Found:
        every = all_states(self.world, min(EXHAUSTIVE, self.tries))
        self.found.exhaustive = every is not None
        known = list(dict.fromkeys(self.given))[: self.tries // 2]
        everybody = [*crowds_without_one(self.world, self.given), *crowds(self.world)]
        for crowd in dict.fromkeys(tuple(filter(self.scratch.lawful, each)) for each in everybody):
            self.progress(f"searching for neighbours, {'alone' if not crowd else 'among others'}")
            pool: dict[State, Cells] = {}
            self._try(crowd, [*known, *(every if every is not None else starts(self.world))], pool)
            best = self._compare(crowd, pool)
            if every is None and len({index for index, _ in best} - {-1}) < len(self.plan.measurements):
                self._try(crowd, self._counted(), pool)
                best = self._compare(crowd, pool)
            for _ in range(0 if every is not None else _CLIMBS):
                tried = len(pool)
                around = [
                    each for pair in best.values() for state in pair for each in like(self.world, state)
                ]
                self._try(crowd, dict.fromkeys(around), pool)
                if len(pool) == tried:
                    break
                before, best = best, self._compare(crowd, pool)
                if best == before:
                    break
            self._look(crowd, pool, best)
            if any(moved.passed for moved, _ in self.found.bounds.values()):
                break
        self.found.pairs = sorted(self._losses, key=lambda pair: -self._losses[pair])
        self._in_plain_tables()
        self._unmoved()
        return self.found

    # -- somebody who moves anything at all
    def _counted(self) -> list[State]:
        """A person who moves each measurement. If a row must satisfy many conditions, hardly anybody does.

        Very many people are put into one table. If they move the measurement, so does one half of them, and
        one half of that half.
        """
        if self._alive is None:
            self._alive = []
            everybody = sampled(self.world, _SAMPLED[min(len(self.world.tables), len(_SAMPLED)) - 1])
            for measurement in self.plan.measurements:
                found = self._isolated(everybody, measured_columns(measurement))
                self._alive += [found] if found is not None and found not in self._alive else []
        return self._alive

    def _isolated(self, people: list[State], columns: tuple[str, ...]) -> State | None:
        while len(people) > 1:
            half = people[: len(people) // 2]
            people = half if self._moves(half, columns) else people[len(people) // 2 :]
        return people[0] if people and self._moves(people, columns) else None

    def _moves(self, people: list[State], columns: tuple[str, ...]) -> bool:
        try:
            _, nobody = self.scratch.cells(self.plan, (), self.world.absent)
            _, somebody = self.scratch.cells(self.plan, crowd_like(self.world, people), self.world.absent)
        except (duckdb.Error, NotAsPromised):  # reported when people are tried one by one
            return False
        return any(differences(nobody, somebody, columns))

    # -- trying
    def _try(self, crowd: Crowd, people: Iterable[State], pool: dict[State, Cells]) -> None:
        new = (
            each
            for each in people
            if each not in pool and fits(self.world, crowd, each) and self.scratch.lawful(each)
        )
        wanted = list(itertools.islice(new, max(0, self.tries - len(pool))))
        if self.world.neighbours is Neighbours.ADD_REMOVE and self.world.absent not in pool:
            wanted.insert(0, self.world.absent)
        self.scratch.store([crowd], wanted)
        for state in wanted:
            self.found.tables += 1
            try:
                shape, cells = self.scratch.cells(self.plan, crowd, state)
            except duckdb.Error as error:
                self.found.accuse(
                    f"the plan's SQL fails on some rows: {str(error).splitlines()[0]}",
                    Pair(crowd, state, state),
                )
                continue
            except NotAsPromised as error:
                self.found.accuse(
                    f"the plan's SQL does not return what was promised: {error}", Pair(crowd, state, state)
                )
                continue
            if self._shape is None:
                self._shape = shape
            elif shape != self._shape:
                self.found.accuse(
                    "the column types of the plan's SQL depend on the rows", Pair(crowd, state, state)
                )
            pool[state] = cells

    # -- comparing
    def _compare(self, crowd: Crowd, pool: dict[State, Cells]) -> dict[tuple[int, str], tuple[State, State]]:
        """The two states farthest apart, for each measurement and norm."""
        states = list(pool)
        best: dict[tuple[int, str], tuple[State, State]] = {}
        together = []
        for index, measurement in enumerate(self.plan.measurements):
            matrix = _matrix([pool[each] for each in states], measured_columns(measurement))
            together.append(matrix * (measurement.epsilon / measurement.l1))
            for norm, (one, other) in _farthest(matrix, self._firsts(states)).items():
                best[index, norm] = states[one], states[other]
        # the pair that moves all measurements at once most, in units of epsilon for Laplace noise
        for norm, (one, other) in _farthest(np.concatenate(together, axis=1), self._firsts(states)).items():
            if norm == "l1":
                best[-1, norm] = states[one], states[other]
        return best

    def _firsts(self, states: list[State]) -> list[int]:
        """The states that others are compared with: all, or the one in which the person is absent."""
        if self.world.neighbours is Neighbours.REPLACE_ONE:
            return list(range(len(states)))
        return [states.index(self.world.absent)] if self.world.absent in states else []

    def _look(
        self, crowd: Crowd, pool: dict[State, Cells], best: dict[tuple[int, str], tuple[State, State]]
    ) -> None:
        """Measure the best pairs again, in whole numbers and by every norm."""
        firsts = len(self._firsts(list(pool)))
        self.found.tried += firsts * (len(pool) - 1) // (2 if firsts > 1 else 1)
        for one, other in dict.fromkeys(best[each] for each in sorted(best)):
            self._measure(Pair(crowd, one, other), pool[one], pool[other])
        if any(each.sensitivity.monotone for each in self.plan.measurements) and firsts == 1:
            for state, cells in pool.items():
                for index, changes in both_ways(self.plan, pool[self.world.absent], cells):
                    what = self.plan.measurements[index].what
                    problem = f"scores claimed to be monotone move both ways: {changes} of {what}"
                    self.found.accuse(problem, Pair(crowd, self.world.absent, state))

    def _measure(self, pair: Pair, one: Cells, other: Cells) -> None:
        loss = 0.0  # the privacy loss of this pair, taking all noise for Laplace noise
        for moved in movements(self.plan, one, other):
            known = self.found.bounds.get((moved.measurement, moved.norm))
            if known is None or moved.found > known[0].found:
                self.found.bounds[moved.measurement, moved.norm] = moved, pair
            if moved.norm == "l1":
                loss += self.plan.measurements[moved.measurement].epsilon * float(moved.ratio)
        if loss:
            self._losses[pair] = loss

    def _unmoved(self) -> None:
        """Add the bounds of measurements that nobody moved."""
        for moved in movements(self.plan, {}, {}):
            self.found.bounds.setdefault((moved.measurement, moved.norm), (moved, None))
        self.found.bounds = dict(sorted(self.found.bounds.items(), key=lambda each: each[0][0]))

    # -- confirming
    def _in_plain_tables(self) -> None:
        """Confirm the findings in ordinary tables with constraints, and in another order of rows."""
        self.progress("confirming in plain tables")
        for (index, norm), (moved, pair) in list(self.found.bounds.items()):
            if pair is not None and moved.passed and not self._confirmed(moved, pair):
                del self.found.bounds[index, norm]
        for pair in self.found.pairs[:2]:
            cells = [
                self.scratch.plain_cells(self.plan, pair.crowd, pair.one, turned) for turned in (False, True)
            ]
            if None not in cells and cells[0] != cells[1]:
                self.found.accuse(
                    "the cells depend on the order of rows", Pair(pair.crowd, pair.one, pair.one)
                )

    def _confirmed(self, moved: Movement, pair: Pair) -> bool:
        one, other = (
            self.scratch.plain_cells(self.plan, pair.crowd, state) for state in (pair.one, pair.other)
        )
        return (
            one is not None
            and other is not None
            and any(each == moved for each in movements(self.plan, one, other))
        )


def _matrix(results: list[Cells], columns: tuple[str, ...]) -> Floats:
    """A matrix with a row for each table and a column for each cell that occurs in any of them."""
    names = {
        name: place
        for place, name in enumerate(
            dict.fromkeys((k, c) for cells in results for k in cells for c in columns)
        )
    }
    matrix = np.zeros((len(results), max(1, len(names))))
    for row, cells in enumerate(results):
        for key, cell in cells.items():
            for column in columns:
                matrix[row, names[key, column]] = cell.get(column, 0)
    return matrix


def _farthest(matrix: Floats, firsts: list[int]) -> dict[str, tuple[int, int]]:
    """The two rows farthest apart, by l1, linf and l2."""
    best: dict[str, tuple[float, int, int]] = {}
    for first in firsts:
        apart = np.abs(matrix - matrix[first])
        for norm, values in (
            ("l1", apart.sum(axis=1)),
            ("linf", apart.max(axis=1)),
            ("l2 squared", (apart * apart).sum(axis=1)),
        ):
            other = int(np.argmax(values))
            if values[other] > best.get(norm, (0.0, 0, 0))[0]:
                best[norm] = float(values[other]), first, other
    return {norm: (one, other) for norm, (_, one, other) in best.items()}
