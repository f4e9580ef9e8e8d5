"""Bounds on how far one person can move a vector of whole numbers, with the reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sensitivity:
    """Between neighbouring tables, the cells' absolute changes sum to at most `l1`, and no cell changes by
    more than `linf`.

    `monotone`: adding one person moves every cell the same way, so selection needs half the noise under
    add-remove neighbours. `squares`: a bound on the sum of squared changes, if one better than l1 linf is
    known. `total_times`: in a vector with sums over several sets of keys, the total is measured this many
    times larger, because it changes that much less than the others.
    """

    l1: int
    linf: int
    why: str
    monotone: bool = False
    squares: int | None = None
    total_times: int = 1

    @property
    def l2_squared(self) -> int:
        """A bound on the sum of squared changes: each square is at most linf times the absolute change."""
        return self.l1 * self.linf if self.squares is None else min(self.squares, self.l1 * self.linf)

    @property
    def usual(self) -> float:
        """How far one person can move a cell that is not scaled by `total_times`."""
        return self.linf / self.total_times

    def __post_init__(self) -> None:
        if not 0 <= self.linf <= self.l1:
            raise ValueError("a sensitivity needs 0 <= linf <= l1")
