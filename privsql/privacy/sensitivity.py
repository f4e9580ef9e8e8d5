"""How far one person can move a vector of whole numbers: bounds, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sensitivity:
    """Over neighbouring tables the cells' absolute changes sum to at most `l1`; no cell moves by more than
    `linf`.

    `monotone`: one person's arrival moves every cell the same way, so that selection needs half the noise
    when neighbours differ by adding or removing one. `squares`: what the squares of the changes sum to at
    most, where that is known better than by l1 and linf. `total_times`: where a vector has sums over several
    sets of keys, the sum over all of them is taken so many times, because it moves so much less than the
    others.
    """

    l1: int
    linf: int
    why: str
    monotone: bool = False
    squares: int | None = None
    total_times: int = 1

    @property
    def l2_squared(self) -> int:
        """The squares of the changes sum to at most this: each is at most linf times its absolute value."""
        return self.l1 * self.linf if self.squares is None else min(self.squares, self.l1 * self.linf)

    @property
    def usual(self) -> float:
        """What one person can move an ordinary cell by, which is not taken several times."""
        return self.linf / self.total_times

    def __post_init__(self) -> None:
        if not 0 <= self.linf <= self.l1:
            raise ValueError("a sensitivity needs 0 <= linf <= l1")
