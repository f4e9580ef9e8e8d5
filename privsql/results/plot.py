"""An Answer goes in; a matplotlib bar chart with error bars comes out (extra: privsql[plot])."""

from __future__ import annotations

from typing import Any

import numpy as np

from privsql.errors import ArgumentError
from privsql.results.composed_answer import AnyAnswer
from privsql.results.extras import optional


def plot(answer: AnyAnswer, level: float = 0.95, ax: Any = None) -> Any:
    """Plot the first numeric output over the keys, with intervals. Undetermined cells are marked NULL."""
    pyplot = optional("matplotlib.pyplot", "plot")
    table = answer.intervals(level)
    values = [name for name in answer.columns if f"{name}_low" in table.columns]
    if not values:
        raise ArgumentError(
            "argument-plot", "the answer has no number with an interval to plot", "select a COUNT, SUM or AVG"
        )
    name = values[0]
    labels = [each for each in answer.columns if each not in values]
    heights = table[name].to_numpy(dtype=float, na_value=np.nan)
    known, places = np.isfinite(heights), np.arange(len(heights))
    low, high = table[f"{name}_low"].to_numpy(dtype=float), table[f"{name}_high"].to_numpy(dtype=float)
    reach = np.vstack([np.maximum(heights - low, 0), np.maximum(high - heights, 0)])
    reach = np.where(np.isfinite(reach), reach, 0)
    ticks = [", ".join(str(row[label]) for label in labels) or name for _, row in table.iterrows()]
    if ax is None:
        _, ax = pyplot.subplots(figsize=(max(5.5, 0.5 * len(heights)), 4.0))
    ax.bar(places[known], heights[known], yerr=reach[:, known], capsize=4, color="#4878a8", ecolor="#333333")
    for place in places[~known]:  # a bar would look like a number
        ax.text(
            place, 0.02, "NULL", transform=ax.get_xaxis_transform(), color="#888888", rotation=90, ha="center"
        )
    ax.set_xlim(-0.6, len(heights) - 0.4)
    ax.set_xticks(
        range(len(heights)),
        ticks,
        rotation=45 if len(heights) > 6 else 0,
        ha="right" if len(heights) > 6 else "center",
    )
    ax.set_ylabel(name)
    ax.set_title(
        f"{name} with {level:.0%} intervals (noise only), epsilon {answer.plan.epsilon:g}", fontsize=10
    )
    return ax
