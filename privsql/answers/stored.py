"""A paid plan and its noisy cells go in; the answers of later queries that measure the same, or follow from
it, come out.

A stored answer is found by what it measures, not by its text: names, order, whitespace, CTEs and
post-processing make no difference. A second draw of noise would cost again, and averaging many draws would
undo the noise.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from privsql.algebra.relations import Choose
from privsql.analysis.keys import Evaluate
from privsql.answers.additive import Additive, Known, additive
from privsql.answers.derivation import chosen, derive, is_as_good
from privsql.equivalence.written import digest
from privsql.planning.identity import Identity, cells_of, identity
from privsql.planning.plan import Derived, Plan
from privsql.tables import Integers, NoisyTable

Shown = tuple[Plan, NoisyTable]


@dataclass(frozen=True)
class Signs:
    """What is known of an answer without planning its query again: its measurements and price, and
    its rows.
    """

    meaning: str
    rows: str | None  # None if its columns are not sums over rows


@dataclass(eq=False)
class Kept:
    """A paid answer, as drawn.

    `version`: of the data at that time. `beside`: the numbers of the earlier answers combined with it. `read`
    returns None if the query means something else under the current policy.
    """

    number: int
    query: str
    when: str
    version: str | None
    asked: Callable[[], Mapping[str, Any]]  # the arguments of the call, to plan it again
    read: Callable[[], Shown | None]
    given: Signs | None = None
    beside: tuple[int, ...] = ()

    @cached_property
    def drawn(self) -> Shown | None:
        return self.read()

    @cached_property
    def signs(self) -> Signs:
        """Computed on first use, because that takes as long as planning."""
        if self.given is not None:
            return self.given
        assert self.drawn is not None
        return signs_of(self.drawn[0])

    @cached_property
    def source(self) -> Known | None:
        """The cells for deriving other answers; None for labels, which do not show their scores."""
        if self.drawn is None or self.drawn[0].chooses:
            return None
        meant = additive(self.drawn[0])
        return None if meant is None else Known(meant, self.drawn[1], self.query, self.when)


def signs_of(plan: Plan) -> Signs:
    meant = None if plan.chooses else additive(plan)
    return Signs(_priced(plan, identity(plan)), None if meant is None else digest(meant.rows.text))


class Shelf(Protocol):
    """Storage of answers beyond this session, shared with other sessions."""

    def newer(self) -> list[Kept]:
        """Answers stored since the last call."""
        ...

    def keep(self, kept: Kept) -> None:
        """Store an answer; after that it survives a crash."""
        ...


class StoredAnswers:
    """Everything released in this session or under its ledger."""

    def __init__(self, evaluate: Evaluate, shelf: Shelf | None = None) -> None:
        self._evaluate, self._shelf = evaluate, shelf
        self._kept: dict[int, Kept] = {}
        self._by_plan: dict[tuple[int, str | None], int] = {}  # by the identity of a plan that is kept
        self._by_meaning: dict[tuple[str, str | None], int] = {}
        self._unread: deque[int] = deque()  # answers whose signs are not computed yet

    def keep(self, kept: Kept, combine: bool) -> Shown:
        """Keep an answer for this session, and return what to show: with `combine`, averaged with earlier
        answers.
        """
        assert kept.drawn is not None
        plan, _ = shown = kept.drawn
        wanted = additive(plan) if combine and not plan.chooses and self._some() else None
        if wanted is not None and kept.source is not None:
            others = self._about(wanted, kept.version)
            together = [kept.source, *(known for _, known in others)]
            found = derive(wanted, together, self._evaluate, paid=True) if others else None
            if found is not None and len(found[0].sources) > 1:
                shown = _shown(plan, *found, paid=True)
                kept.beside = tuple(number for number, _ in others)
        self._kept[kept.number] = kept
        self._by_plan[id(plan), kept.version] = kept.number
        self._unread.append(kept.number)
        return shown

    def share(self, number: int) -> None:
        """Store the answer of this charge, if there is one, for other sessions."""
        kept = self._kept.get(number)
        if kept is not None and self._shelf is not None and kept.version is not None:
            self._shelf.keep(kept)

    def find(self, plan: Plan, version: str | None) -> Shown | None:
        """The stored answer to the same query, under this plan's names and in its order."""
        number = self._by_plan.get((id(plan), version))
        if number is not None and not self._kept[number].beside and self._kept[number].drawn is not None:
            return plan, self._kept[number].drawn[1]  # type: ignore[index]
        if not self._some():
            return None
        wanted = identity(plan)
        kept = self._kept.get(self._by_meaning.get((_priced(plan, wanted), version), 0))
        if kept is None or kept.drawn is None:
            return None
        meant = additive(plan) if kept.beside else None
        if meant is not None:
            together = [self._kept[each].source for each in (kept.number, *kept.beside) if each in self._kept]
            found = derive(meant, [each for each in together if each is not None], self._evaluate, paid=True)
            if found is not None:  # pragma: no branch -- its own answer is among the sources
                return _shown(plan, *found, paid=True)
        return plan, _reread(*kept.drawn, plan, wanted)

    def derived(self, plan: Plan, version: str | None) -> Shown | None:
        """An answer from earlier ones, if it is at least as accurate as the plan."""
        for each in (plan, plan.apart):
            found = None if each is None else self._derived(each, version)
            if each is not None and found is not None and is_as_good(plan, each, found[0]):
                return _shown(each, *found, paid=False)
        return None

    def known(self, plan: Plan, version: str | None) -> Shown | None:
        """The best answer from earlier ones, however accurate."""
        for each in (plan, plan.apart):
            found = None if each is None else self._derived(each, version)
            if each is not None and found is not None:
                return _shown(each, *found, paid=False)
        return self.find(plan, version)

    def _derived(self, plan: Plan, version: str | None) -> tuple[Derived, dict[str, Integers]] | None:
        wanted = additive(plan) if self._some() else None
        if wanted is None:
            return None
        return derive(wanted, [known for _, known in self._about(wanted, version)], self._evaluate)

    def _some(self) -> bool:
        """Whether there are any answers, after loading new ones."""
        while self._unread:
            with contextlib.suppress(IndexError):  # another thread may have taken the last one
                number = self._unread.popleft()
                self._index(self._kept[number])
        if self._shelf is not None:
            for kept in self._shelf.newer():
                if kept.number not in self._kept:
                    self._kept[kept.number] = kept
                    self._index(kept)
        return bool(self._kept)

    def _index(self, kept: Kept) -> None:
        self._by_meaning[kept.signs.meaning, kept.version] = kept.number

    def _about(self, wanted: Additive, version: str | None) -> list[tuple[int, Known]]:
        """Answers over the same rows."""
        rows = digest(wanted.rows.text)
        same = (
            each for each in list(self._kept.values()) if each.version == version and each.signs.rows == rows
        )
        return [(each.number, each.source) for each in same if each.source is not None]


def _shown(plan: Plan, derived: Derived, columns: Mapping[str, Integers], paid: bool) -> Shown:
    answered, release = plan.from_stored(derived, paid), plan.release
    if isinstance(release, Choose):
        (scores,) = columns.values()
        assert plan.selected_by is not None
        return answered, NoisyTable(chosen(release, plan.space, plan.selected_by.picks, scores), {})
    return answered, NoisyTable(np.arange(len(plan.space), dtype=np.int64), columns)


def _priced(plan: Plan, what: Identity) -> str:
    place = {column: index for index, column in enumerate(what.columns)}
    ordered = sorted(plan.measurements, key=lambda each: place[each.columns[0]])
    return digest(repr((what.digest, *((each.loss, each.delta_loss, each.noise_scale) for each in ordered))))


def _reread(stored: Plan, noisy: NoisyTable, plan: Plan, wanted: Identity) -> NoisyTable:
    """The same cells under other names and in another order."""
    known = identity(stored)
    columns, keys = (
        dict(zip(wanted.columns, known.columns, strict=True)),
        dict(zip(wanted.keys, known.keys, strict=True)),
    )
    if plan.space.open:
        return NoisyTable(
            noisy.cells,
            {name: noisy.noisy_columns[old] for name, old in columns.items() if old in noisy.noisy_columns},
            {name: noisy.keys[old] for name, old in keys.items()},
        )
    if plan.chooses:
        return NoisyTable(cells_of(plan, stored)[noisy.cells], {})
    order = cells_of(stored, plan)
    return NoisyTable(noisy.cells, {name: noisy.noisy_columns[old][order] for name, old in columns.items()})
