"""The accuracy of a query at several prices goes in; a table, a picture and plain words come out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Any

import pandas as pd

from privsql.budget.ledger import Budget
from privsql.planning.plan import Accuracy
from privsql.results.extras import optional


@dataclass(frozen=True, eq=False)
class PricedAccuracy:
    """What a query would cost, and how accurate each of its numbers would be."""

    epsilon: float
    accuracy: Accuracy

    @property
    def belief(self) -> float:
        """How sure an attacker can become who knows everything else and held it for even odds before."""
        return 1.0 / (1.0 + math.exp(-self.epsilon))


@dataclass(frozen=True, eq=False)
class Advice:
    """The result of session.advise: the error of a query against epsilon.

    Example:
        >>> session.advise("SELECT COUNT(*) AS n FROM visits").df()["epsilon"].tolist()
        [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0]
    """

    prices: tuple[PricedAccuracy, ...]
    delta: float
    neighbours: str
    budget: Budget

    @property
    def level(self) -> float:
        return self.prices[0].accuracy.level

    def df(self) -> pd.DataFrame:
        """A row for each epsilon: the half-width of each number's interval, how sure an attacker can become,
        and how many such queries the remaining budget allows.

        Returns:
            A new frame.

        Example:
            >>> session.advise("SELECT COUNT(*) AS n FROM visits").df().columns.tolist()[:3]
            ['epsilon', 'n', 'attacker_at_most']
        """
        return pd.DataFrame([self._row(each) for each in self.prices])

    def _row(self, price: PricedAccuracy) -> dict[str, float | None]:
        left = self._left(price)
        row = {"epsilon": price.epsilon, **price.accuracy, "attacker_at_most": price.belief}
        return row if left is None else {**row, "queries_left": left}

    def _left(self, price: PricedAccuracy) -> int | None:
        """How many such queries the remaining budget allows; None where losses do not just add up."""
        remaining = min(each.remaining.epsilon for each in (self.budget, self.budget.share) if each)
        if not math.isfinite(remaining) or self.budget.spent.rho is not None:
            return None
        return int(Fraction(str(remaining)) / Fraction(str(price.epsilon)))

    def __str__(self) -> str:
        names = list(self.prices[0].accuracy)
        head = ["epsilon", *(f"{name} within" for name in names), "attacker at most"]
        rows = [
            [
                f"{price.epsilon:g}",
                *(_width(price.accuracy, name) for name in names),
                f"{price.belief:.1%} sure",
                *([] if (left := self._left(price)) is None else [f"{left:,}"]),
            ]
            for price in self.prices
        ]
        head = [*head, "queries left"][: len(rows[0])]
        widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in [head, *rows]]
        return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:], "", *self._words()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _words(self) -> list[str]:
        """What the table means, for people who know no privacy theory."""
        doubt = (
            "which of two values somebody's data have"
            if self.neighbours == "replace-one"
            else "whether somebody is in the data"
        )
        lines = [
            f"within: in {self.level:.0%} of answers, noise changes the number by no more than this.",
            f"attacker: whoever knows everyone else's data and could only guess (50%) {doubt}",
            "  becomes at most so sure by this answer. The epsilons of several answers add up.",
        ]
        if self.delta:
            lines.append(f"This holds but for a chance of delta = {self.delta:g}.")
        return lines

    def plot(self, ax: Any = None) -> Any:
        """Plot the error of each number against epsilon (extra: privsql[plot]).

        Arguments:
            ax: matplotlib axes to draw on; by default new ones.

        Returns:
            The axes.

        Raises:
            ArgumentError: matplotlib is not installed.

        Example:
            >>> axes = session.advise("SELECT COUNT(*) AS n FROM visits").plot()
        """
        pyplot = optional("matplotlib.pyplot", "plot")
        if ax is None:
            _, ax = pyplot.subplots(figsize=(6.0, 4.0), layout="constrained")
        for name in self.prices[0].accuracy:
            known = [(each.epsilon, each.accuracy[name]) for each in self.prices]
            drawn = [(epsilon, width) for epsilon, width in known if width is not None]
            if drawn:
                ax.plot(*zip(*drawn), marker="o", markersize=4, label=name)
        ax.set_xscale("log")
        ax.set_yscale("log")
        shown = [each.epsilon for each in self.prices]
        ax.set_xticks(shown, [f"{each:g}" for each in shown])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
        ax.set_xlabel("epsilon (smaller is more private)")
        ax.set_ylabel(f"error, in {self.level:.0%} of answers at most")
        if len(self.prices[0].accuracy) > 1:
            ax.legend(fontsize=9)
        return ax


def _width(accuracy: Accuracy, name: str) -> str:
    width, note = accuracy[name], accuracy.notes.get(name, "")
    if width is not None:
        return f"±{width:,.4g}"
    return note.replace("+- ", "±") or "depends on the data"
