"""An `Audit` goes in; a matplotlib figure comes out: bounds on the left, releases on the right."""

from __future__ import annotations

from typing import Any

from privsql.audit.audit import Audit
from privsql.errors import ArgumentError
from privsql.results.extras import optional

_ONE, _OTHER, _PASSED = "#4878a8", "#e08a3c", "#cf222e"


def plot(audit: Audit, path: str | None = None) -> Any:
    """Draw the figure, and write it to `path` if given."""
    pyplot = optional("matplotlib.pyplot", "plot")
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    parts = [
        (f"{each.what}, {each.norm}", each.found / each.claimed if each.claimed else 2.0)
        for each in audit.bounds
    ]
    if audit.epsilon is not None:
        parts.append(("epsilon, at least", audit.epsilon.lower / audit.epsilon.charged))
    colours = [_PASSED if part > 1 else _ONE for _, part in parts]
    left.barh([name for name, _ in parts], [part for _, part in parts], color=colours)
    left.axvline(1.0, color="#333333", linewidth=1)
    left.invert_yaxis()
    left.set_xlabel("found / claimed")
    places = range(len(audit.picture))
    for offset, index, colour, label in ((-0.2, 1, _ONE, "one table"), (0.2, 2, _OTHER, "its neighbour")):
        right.bar(
            [place + offset for place in places],
            [each[index] for each in audit.picture],
            0.4,
            color=colour,
            label=label,
        )
    right.set_xticks(list(places), [each[0] for each in audit.picture], rotation=45, ha="right")
    right.set_ylabel("releases")
    if audit.picture:
        right.legend()
    figure.suptitle(audit.verdict if len(audit.verdict) < 110 else f"{audit.verdict[:107]}...", fontsize=10)
    if path is not None:
        try:
            figure.savefig(path)
        except (OSError, ValueError):
            raise ArgumentError(
                "argument-plot", "the picture cannot be written to this path", "give a path that ends in .png"
            ) from None
        finally:
            pyplot.close(figure)
    return figure
