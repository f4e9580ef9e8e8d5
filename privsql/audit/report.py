"""An `Audit` goes in; a report comes out: text with bars, HTML for notebooks, or a dict for programs."""

from __future__ import annotations

import html as escaping
from typing import Any

from privsql.audit.audit import Audit

_WIDTH = 32
_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(part: float, width: int = _WIDTH) -> str:
    """A bar of this part of the full width; more than the whole ends in an arrow."""
    if part > 1:
        return "█" * (width - 1) + "▶"
    eighths = round(max(0.0, part) * width * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def shown(audit: Audit) -> str:
    """The report as text."""
    lines = [audit.verdict, ""]
    if audit.bounds:
        lines += ["how far apart neighbours were found, out of what is claimed", *_bounds(audit), ""]
    if audit.epsilon is not None:
        lines += [*_epsilon(audit), ""]
    if audit.pair is not None:
        title = "the worst pair of neighbouring tables" if audit.broken else "the pair that came closest"
        lines += [title, *_indented(str(audit.pair)), ""]
    if audit.tables:
        how = "an exhaustive search over the values tried" if audit.exhaustive else "a guided search"
        tried = f"{audit.tables:,} tables made up, {audit.pairs:,} pairs of neighbours compared"
        lines.append(f"{tried} in {how}; no private row was read")
    lines += [f"Note: {note}" for note in audit.notes]
    if not audit.broken:
        lines.append("held: nothing worse was found. This is not a proof; for those see docs/proofs.md.")
    return "\n".join(lines).rstrip()


def _bounds(audit: Audit) -> list[str]:
    rows = [[each.what, each.norm, f"{each.found:,.6g}", f"of {each.claimed:,.6g}"] for each in audit.bounds]
    widths = [max(len(row[place]) for row in rows) for place in range(4)]
    lines = []
    for each, (what, norm, found, claimed) in zip(audit.bounds, rows, strict=True):
        word = "PASSED" if each.passed else "attained" if each.attained else ""
        numbers = f"{found.rjust(widths[2])} {claimed.ljust(widths[3])}"
        drawn = f"{bar(each.found / each.claimed)} {word}"
        lines.append(f"  {what.ljust(widths[0])}  {norm.ljust(widths[1])}  {numbers}  {drawn}".rstrip())
    return lines


def _epsilon(audit: Audit) -> list[str]:
    bound = audit.epsilon
    assert bound is not None
    delta = f", delta {bound.delta:g}" if bound.delta else ""
    passed = " PASSED" if bound.passed else ""
    lines = [
        f"epsilon, measured on {bound.releases:,} releases of each table "
        f"({bound.confidence:.1%} confidence{delta})",
        f"  at least {bound.lower:.3f} of {bound.charged:g}  {bar(bound.lower / bound.charged)}{passed}",
        f"  by the event: {bound.event}; it happened {bound.hits:,} times on one table, "
        f"{bound.other_hits:,} times on the other",
    ]
    most = max((max(a, b) for _, a, b in audit.picture), default=0)
    if most:
        width = max(len(label) for label, _, _ in audit.picture)
        lines.append("  the distribution of the releases of one table, and of the other")
        for label, one, other in audit.picture:
            lines.append(
                f"  {label.rjust(width)}  {bar(one / most, 20).ljust(20)} | {bar(other / most, 20)}".rstrip()
            )
    return lines


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]


def html(audit: Audit) -> str:
    """The report with its verdict in colour."""
    colour = "#1a7f37" if audit.held else "#cf222e"
    verdict, _, rest = shown(audit).partition("\n")
    heading = f"<p style='color:{colour};font-weight:bold'>{escaping.escape(verdict)}</p>"
    return f"{heading}<pre>{escaping.escape(rest.strip())}</pre>"


def as_dict(audit: Audit) -> dict[str, Any]:
    """The report as a dict that can be written as JSON."""
    bound = audit.epsilon
    return {
        "held": audit.held,
        "verdict": audit.verdict,
        "broken": list(audit.broken),
        "sql": audit.sql,
        "bounds": [
            {
                "measurement": each.measurement,
                "what": each.what,
                "norm": each.norm,
                "found": each.found,
                "claimed": each.claimed,
            }
            for each in audit.bounds
        ],
        "epsilon": None
        if bound is None
        else {
            "at_least": bound.lower,
            "charged": bound.charged,
            "delta": bound.delta,
            "confidence": bound.confidence,
            "event": bound.event,
            "hits": bound.hits,
            "other_hits": bound.other_hits,
            "releases": bound.releases,
        },
        "pair": None
        if audit.pair is None
        else {"one": audit.pair.script(), "other": audit.pair.script(other=True)},
        "tables": audit.tables,
        "pairs": audit.pairs,
        "exhaustive": audit.exhaustive,
        "notes": list(audit.notes),
    }
