"""Noisy cells go in with the plan that was paid for; those of any question that measures the same at the same price come out.

What is measured is told by its meaning, not by its text: names, order, whitespace, CTEs, and what is done after the noise make
no difference. A second draw of noise would cost a second time, and averaging over many would undo it.
"""

from __future__ import annotations

from typing import Any

from privsql.planning.identity import Identity, cells_of, identity
from privsql.planning.plan import Plan
from privsql.tables import NoisyTable

Text = tuple[Any, ...]


class StoredAnswers:
    """What was released in this session."""

    def __init__(self) -> None:
        self._by_text: dict[Text, tuple[Plan, NoisyTable]] = {}
        self._by_meaning: dict[Text, Text] = {}
        self._unread: list[Text] = []  # plans whose meaning was not asked for yet: it takes a while to work out

    def keep(self, plan: Plan, noisy: NoisyTable) -> None:
        text = _text(plan)
        self._by_text[text] = plan, noisy
        self._unread.append(text)

    def find(self, plan: Plan) -> NoisyTable | None:
        """The noisy cells of a plan that measures the same, under this plan's names and in its order."""
        same = self._by_text.get(_text(plan))
        if same is not None:
            return same[1]
        if not self._by_text:
            return None
        for text in self._unread:
            kept, _ = self._by_text[text]
            self._by_meaning[_priced(kept, identity(kept))] = text
        self._unread.clear()
        wanted = identity(plan)
        found = self._by_meaning.get(_priced(plan, wanted))
        return None if found is None else _reread(*self._by_text[found], plan, wanted)


def _text(plan: Plan) -> Text:
    """Enough to be the same plan, but for what is done after the noise."""
    return (
        plan.statements, plan.measurements, plan.relation_of_neighbours, plan.space.names, plan.cells,
        tuple(plan.estimates.items()), plan.chooses,
    )  # fmt: skip


def _priced(plan: Plan, what: Identity) -> Text:
    place = {column: index for index, column in enumerate(what.columns)}
    ordered = sorted(plan.measurements, key=lambda each: place[each.columns[0]])
    return (what.digest, *((each.loss, each.delta_loss, each.noise_scale) for each in ordered))


def _reread(stored: Plan, noisy: NoisyTable, plan: Plan, wanted: Identity) -> NoisyTable:
    """The same cells under other names and in another order."""
    known = identity(stored)
    columns, keys = dict(zip(wanted.columns, known.columns, strict=True)), dict(zip(wanted.keys, known.keys, strict=True))
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
