"""An Answer goes in; a table for the terminal or for Jupyter comes out, each number with its interval."""

from __future__ import annotations

import html as escaping
import math
from typing import Any

import numpy as np
import pandas as pd

from privsql.results.answer import Answer
from privsql.results.composed_answer import AnyAnswer, ComposedAnswer

MOST_ROWS = 20


_GREY = "#888888"
_DIMMED = "\x1b[2m{}\x1b[0m"  # ANSI codes


def _cells(answer: AnyAnswer) -> tuple[list[str], list[list[str]], list[bool]]:
    head = answer.frame.head(MOST_ROWS)
    ends = answer.intervals(0.95).head(MOST_ROWS)
    names = answer.columns
    lows = {
        name: f"{name}_low"
        for name in names
        if f"{name}_low" in ends.columns and list(ends.columns).count(f"{name}_low") == 1
    }
    rows = []
    for index in range(len(head)):
        row = []
        for position, name in enumerate(names):
            value = head.iloc[index, position]
            text = _text(value)
            if hasattr(value, "__index__") and not isinstance(value, bool) and name not in lows:
                text = str(value)  # a key: 2024 is a year, not 2,024
            if name in lows:
                low, high = ends[lows[name]].iloc[index], ends[f"{name}_high"].iloc[index]
                text += f"  [{_text(_neat(low, value))}, {_text(_neat(high, value))}]"
            row.append(text)
        rows.append(row)
    return (
        names,
        rows,
        [
            name in lows or pd.api.types.is_numeric_dtype(answer.frame.iloc[:, i])
            for i, name in enumerate(names)
        ],
    )


def _neat(end: Any, value: Any) -> Any:
    if end is pd.NA or isinstance(end, (bool, np.bool_)):
        return end
    end = float(end)
    return int(end) if math.isfinite(end) and end == int(end) and not isinstance(value, float) else end


def _text(value: Any) -> str:
    if value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "NULL"
    if isinstance(value, pd.Timestamp):
        return str(value.date()) if value == value.normalize() else str(value)
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, bool) or str(value) in ("True", "False"):
        return str(value).lower()
    return f"{value:,}" if hasattr(value, "__index__") else str(value)


def _footer(answer: AnyAnswer) -> str:
    more = f"{len(answer.frame):,} rows, {MOST_ROWS} shown. " if len(answer.frame) > MOST_ROWS else ""
    if answer.plan.public:
        return f"{more}[public tables only: exact]  no cost"
    cost = f"cost epsilon {answer.receipt['epsilon']:g}"
    derived = isinstance(answer, ComposedAnswer) or answer.plan.free
    if answer.stored:
        cost = "from earlier answers: no cost" if derived else "repeated query: no cost"
    label = isinstance(answer, Answer) and answer.plan.chooses
    shown = "label only" if label else "95% intervals, noise only"
    return "\n".join([f"{more}[{shown}]  {cost}, {answer.plan.neighbours}", *answer.warnings])


def _is_greyed(answer: AnyAnswer, row: int, place: int) -> bool:
    masks = answer.undetermined if isinstance(answer, Answer) else ()
    return bool(masks) and bool(masks[place][row])


def shown(answer: AnyAnswer, terminal: bool = False) -> str:
    """A text table. In a terminal, undetermined cells are dimmed."""
    names, rows, right = _cells(answer)
    widths = [
        max(len(name), *(len(row[i]) for row in rows)) if rows else len(name) for i, name in enumerate(names)
    ]

    def line(cells: list[str], row: int | None = None) -> str:
        padded = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True)]
        if terminal and row is not None:
            padded = [
                _DIMMED.format(c) if _is_greyed(answer, row, place) else c for place, c in enumerate(padded)
            ]
        return "  ".join(padded).rstrip()

    rule = "-" * max(1, sum(widths) + 2 * (len(widths) - 1))
    return "\n".join(
        [line(names), rule, *(line(cells, row) for row, cells in enumerate(rows)), rule, _footer(answer)]
    )


def html(answer: AnyAnswer) -> str:
    """A table for notebooks."""
    names, rows, right = _cells(answer)
    style = ["right" if each else "left" for each in right]
    grey = f";color:{_GREY}"
    head = "".join(
        f"<th style='text-align:{s}'>{escaping.escape(n)}</th>" for n, s in zip(names, style, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td style='text-align:{s}{grey if _is_greyed(answer, row, place) else ''}'>"
            f"{escaping.escape(c)}</td>"
            for place, (c, s) in enumerate(zip(cells, style, strict=True))
        )
        + "</tr>"
        for row, cells in enumerate(rows)
    )
    footer = "<br>".join(escaping.escape(_footer(answer)).splitlines())
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{footer}</p>"
