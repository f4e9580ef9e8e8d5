"""The entries of a ledger file go in; a table with one line for each comes out, for people and programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privsql.budget.amount import ATTO
from privsql.budget.ledger_file.format import Row
from privsql.budget.ledger_file.show import unit_of
from privsql.policy.checks import NANO

_WIDEST = 72  # characters of a query in a table for people
_KINDS = {"charge": "", "open": "ledger opened", "renew": "cap raised", "forgive": "failures reset"}


def entries_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Everything of each entry that a person may want to know, for JSON and CSV."""
    unit = unit_of(rows)
    return [
        {
            "number": row.number,
            "when": row.time,
            "kind": row.kind,
            "analyst": row.analyst,
            unit: row.epsilon / NANO,
            "delta": row.delta / ATTO,
            f"total_{unit}": row.total_epsilon / NANO,
            "query": row.question,
        }
        for row in rows
    ]


def show_history(rows: Sequence[Row]) -> str:
    """The charges, in order, with what they cost and what was spent by then."""
    table = [["when (UTC)", "analyst", unit_of(rows), "total", "query"]]
    table += [
        [
            row.time[:19].replace("T", " "),
            row.analyst,
            f"{row.epsilon / NANO:g}" if row.kind == "charge" else "",
            f"{row.total_epsilon / NANO:g}",
            _on_one_line(row),
        ]
        for row in rows
    ]
    widths = [max(len(row[place]) for row in table) for place in range(len(table[0]) - 1)]
    lines = [
        "  ".join(
            [
                cell.rjust(width) if place in (2, 3) else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=False))
            ]
            + [row[-1]]
        ).rstrip()
        for row in table
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _on_one_line(row: Row) -> str:
    text = " ".join(row.question.split())
    shown = text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
    kind = _KINDS.get(row.kind, row.kind)
    return f"[{kind}] {shown}".rstrip() if kind else shown
