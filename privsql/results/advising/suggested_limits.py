"""Noisy histograms of units go in; limits come out, with a table of what each would cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from privsql.errors import ArgumentError
from privsql.planning.limits.limit_histograms import NoisyHistogram
from privsql.results.extras import optional

_NAMES = {"max_rows": "rows", "max_groups": "keys"}
_COLUMNS = ["limit_of", "limit", "units_cut", "give_or_take", "kept", "noise", "error", "suggested"]


@dataclass(frozen=True)
class FoundLimit:
    """The result of a search for a limit. `found`: whether the units stood out of the noise."""

    name: str
    limit: int
    epsilon: float
    units_cut: int
    give_or_take: int  # how far units_cut may be off, 19 times in 20
    units: int
    found: bool = True

    @property
    def sentence(self) -> str:
        paid = f"for epsilon {self.epsilon:g}" if self.epsilon else "from an earlier answer, at no cost"
        if not self.found:
            return (
                f"{self.name} stays {self.limit:,}: the search {paid} could not tell enough units from noise "
                "to find a better limit."
            )
        told = f"{self.name} = {self.limit:,} was found {paid}: about {self.units_cut:,} "
        return f"{told}(±{self.give_or_take:,}) of {self.units:,} units have more."


@dataclass(frozen=True, eq=False)
class LimitTable:
    """Units by their rows or keys, and the error of a count under each limit on them.

    `noise`: the error from noise, per row or key of the limit. `cells`: how many cells share what is dropped.
    """

    name: str
    of: str  # rows or keys of what, for people
    spread: NoisyHistogram
    noise: float
    cells: float

    @property
    def suggested(self) -> int | None:
        """The limit with the least error; None if too few units stand out of the noise."""
        return min(self.spread.candidates, key=self.error, default=None)

    def bias(self, limit: int) -> float:
        return self.spread.lost(limit) / self.cells

    def error(self, limit: int) -> float:
        return self.bias(limit) + self.noise * limit

    def rows(self) -> list[list[Any]]:
        whole = self.spread.total
        return [
            [
                self.name,
                limit,
                self.spread.cut(limit),
                self.spread.give_or_take(limit),
                1 - self.spread.lost(limit) / whole,
                limit,
                self.error(limit),
                limit == self.suggested,
            ]
            for limit in self.spread.candidates
        ]


@dataclass(frozen=True, eq=False)
class SuggestedLimits:
    """The result of session.suggest_limits: for each limit, about how many units it cuts and how
    much it keeps.

    `max_rows` and `max_groups` are the limits with the least error of a count at `query_epsilon`, or None.
    """

    table: str
    unit: str
    tables: tuple[LimitTable, ...]
    query_epsilon: float
    receipt: Mapping[str, Any]

    @property
    def max_rows(self) -> int | None:
        return self._suggested("max_rows")

    @property
    def max_groups(self) -> int | None:
        return self._suggested("max_groups")

    def _suggested(self, name: str) -> int | None:
        return next((each.suggested for each in self.tables if each.name == name), None)

    def df(self) -> pd.DataFrame:
        """A row for each limit: units_cut (about, give_or_take so many), kept (the share of rows or keys),
        noise (times that of a limit of 1), error (bias plus noise of a count at query_epsilon), suggested."""
        return pd.DataFrame([row for each in self.tables for row in each.rows()], columns=_COLUMNS)

    def __str__(self) -> str:
        return "\n".join([*(_text(each, self.unit) for each in self.tables), self._footer()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _footer(self) -> str:
        lines = [f"{name} = {limit}" for name in _NAMES if (limit := self._suggested(name)) is not None]
        suggested = (
            f"suggested for {self.table}: {', '.join(lines)}"
            if lines
            else "too few units stand out of the noise to suggest a limit"
        )
        by = (
            ""
            if any(each.name == "max_groups" for each in self.tables)
            else '\nKeys per unit: name a column, by="...".'
        )
        cost = f"cost epsilon {self.receipt['charged']:g}, {self.receipt['neighbours']}"
        error = f"error: of a count at epsilon {self.query_epsilon:g}"
        return f"{suggested}\n[numbers are noisy; {error}]  {cost}{by}"

    def plot(self, ax: Any = None) -> Any:
        """Bias, noise and their sum over the limit, for rows and for keys (extra: privsql[plot])."""
        pyplot = optional("matplotlib.pyplot", "plot")
        known = [each for each in self.tables if each.spread.candidates]
        if not known:
            raise ArgumentError(
                "argument-plot",
                "too few units stand out of the noise, so there is nothing to plot",
                "search with a larger epsilon",
            )
        if ax is None:
            _, axes = pyplot.subplots(
                1, len(known), figsize=(5.5 * len(known), 4.0), squeeze=False, layout="constrained"
            )
            ax = list(axes[0])
        for each, one in zip(known, ax if isinstance(ax, list) else [ax], strict=False):
            _draw(each, one, self.query_epsilon)
        return ax[0] if isinstance(ax, list) and len(ax) == 1 else ax


def _draw(table: LimitTable, ax: Any, epsilon: float) -> None:
    limits = table.spread.candidates
    ax.plot(
        limits,
        [table.bias(each) for each in limits],
        marker="o",
        markersize=3,
        color="#b5533c",
        label="dropped (bias)",
    )
    ax.plot(limits, [table.noise * each for each in limits], color="#4878a8", label="noise")
    ax.plot(limits, [table.error(each) for each in limits], color="#333333", linewidth=2, label="both")
    assert table.suggested is not None
    ax.axvline(table.suggested, color="#5a8f5a", linestyle="--", label=f"{table.name} = {table.suggested:,}")
    ax.set_xscale("log")
    ticks = [
        each for each in limits if each & (each - 1) == 0 or len(limits) < 8
    ]  # powers of two, if there are many limits
    ax.set_xticks(ticks, [f"{each:,}" for each in ticks], rotation=45 if len(ticks) > 8 else 0)
    ax.minorticks_off()
    ax.set_yscale("symlog", linthresh=1)
    ax.set_ylim(bottom=0)
    ax.set_xlabel(f"{table.name}, {table.of}")
    ax.set_ylabel(f"error of a count at epsilon {epsilon:g}")
    ax.legend(fontsize=8, loc="lower left")


def _text(table: LimitTable, unit: str) -> str:
    """One histogram as a table for the terminal."""
    head = [table.name, "units cut", f"{_NAMES[table.name]} kept", "noise", "error", ""]
    rows = [
        [
            f"{limit:,}",
            f"{cut:,} ±{margin:,}",
            f"{kept:.1%}",
            f"x{noise:,}",
            f"{error:,.0f}",
            "<- suggested" if best else "",
        ]
        for _, limit, cut, margin, kept, noise, error, best in table.rows()
    ]
    widths = [*(max(len(row[place]) for row in [head, *rows]) for place in range(len(head) - 1)), 0]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [head, *rows]
    ]
    title = f"{table.of} per {unit}, about {round(table.spread.units):,} units"
    return "\n".join([title[0].upper() + title[1:], lines[0], "-" * max(map(len, lines)), *lines[1:], ""])
