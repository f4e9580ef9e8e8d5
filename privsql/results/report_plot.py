"""The marginals of a synthetic table go in; a matplotlib picture of their errors comes out (extra:
privsql[plot]).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from privsql.results.extras import optional

_MOST_BARS = 24
_COLORS = ("#b8c9dc", "#4878a8")


def plot_report(report: pd.DataFrame, title: str, ax: Any = None) -> Any:
    """For every marginal a pair of bars: the error that noise alone would make, and how far the rows are from
    what was released. Of many marginals the worst ones are shown, and the mean of the others.
    """
    pyplot = optional("matplotlib.pyplot", "plot")
    shown = _shortened(report)
    places = np.arange(len(shown))[::-1]
    if ax is None:
        _, ax = pyplot.subplots(figsize=(7.0, 1.2 + 0.34 * len(shown)), layout="constrained")
    ax.barh(places + 0.2, shown["predicted"], height=0.38, color=_COLORS[0], label="noise alone, predicted")
    ax.barh(
        places - 0.2, shown["rows_off"], height=0.38, color=_COLORS[1], label="rows, from what was released"
    )
    ax.set_yticks(places, shown["columns"])
    ax.set_xlabel("total variation")
    ax.set_title(title, fontsize=10)
    ax.legend(fontsize=8, loc="best")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def _shortened(report: pd.DataFrame) -> pd.DataFrame:
    errors: Sequence[str] = ["predicted", "rows_off"]
    ordered = report.sort_values("predicted", ascending=False, kind="stable")
    if len(ordered) <= _MOST_BARS:
        return ordered
    rest = ordered.iloc[_MOST_BARS - 1 :]
    mean = pd.DataFrame([{"columns": f"mean of {len(rest):,} others", **rest[list(errors)].mean()}])
    return pd.concat([ordered.iloc[: _MOST_BARS - 1], mean], ignore_index=True)
