"""Ledger entries go in; who spent what and when comes out, as bars for people and as JSON for programs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from privsql.budget.accountants import LEVEL, WITHIN
from privsql.budget.amount import ATTO, Amount, Cap, Loss
from privsql.budget.caps import Caps
from privsql.budget.dataset import EACH_ROW
from privsql.budget.fuse import Failures
from privsql.budget.ledger import Budget, budget_of, counts_text
from privsql.budget.ledger_file.format import Row
from privsql.budget.ledger_file.ledger_reader import LedgerTerms, Run, rules_of
from privsql.policy.checks import EVERYONE, NANO

_BAR = 30


@dataclass(frozen=True)
class Spending:
    """The charges of one analyst or one day. `cap` is as declared, `limit` in the accountant's unit."""

    name: str
    answers: int
    spent: Loss
    cap: Cap
    limit: Cap


def report(rows: Sequence[Row], by: str | None, runs: Sequence[Run] = ()) -> dict[str, Any]:
    """Everything about a ledger except the text of its queries, for JSON. Null means no limit."""
    rules, last = _rules(rows), rows[-1]
    budget = _budget(rules, last)
    document: dict[str, Any] = {
        "dataset": rules.dataset.name,
        "neighbours": rules.dataset.neighbours.value,
        "tables": dict(rules.dataset.tables),
        "opened": rows[0].time,
        "entries": last.number,
        "answers": sum(row.kind == "charge" for row in rows),
        "accountant": budget.accountant,
        **{name: _finite(getattr(budget, name)) for name in ("limit", "spent", "remaining")},
        "more_counts": {"within": WITHIN, "level": LEVEL, "counts": budget.counts},
        "per_query": None if rules.caps.query is None else rules.caps.query / NANO,
        "per_query_least": None if rules.caps.least is None else rules.caps.least / NANO,
        "max_failures": rules.caps.most_failures,
        "failures": {
            name: {"failed": each.failed, "unfinished": each.unfinished}
            for name, each in failures(rows, runs).items()
        },
        "failures_forgiven": [
            {
                "when": row.time,
                "analyst": row.analyst or None,
                "unfinished": row.read["unfinished"],
                "reason": row.question,
            }
            for row in rows
            if row.kind == "forgive"
        ],
        "renewals": [
            {
                "when": row.time,
                "scope": row.read["scope"],
                "analyst": row.analyst or None,
                "epsilon": row.loss.size,
                "delta": row.loss.delta,
                "reason": row.question,
            }
            for row in rows
            if row.kind == "renew"
        ],
    }
    if by is not None:
        document[f"by_{by}"] = [
            {by: each.name, "answers": each.answers}
            | _finite(rules.caps.accountant.stands_for(each.spent, rules.caps.dataset))
            | ({"cap": None if each.cap.nano is None else each.cap.nano / NANO} if by == "analyst" else {})
            for each in groups(rows, by)
        ]
    return document


def groups(rows: Sequence[Row], by: str) -> list[Spending]:
    """Charges by analyst, each with a cap, or by day (UTC)."""
    rules, spent, answers = _rules(rows), defaultdict[str, Loss](Loss), defaultdict[str, int](int)
    if by == "analyst":
        for name in rules.caps.analysts:
            if name != EVERYONE:
                spent[name] += Loss()
    for row in rows:
        if row.kind == "charge":
            name = row.analyst if by == "analyst" else row.time[:10]
            spent[name] += row.loss
            answers[name] += 1
    names = {name: name if by == "analyst" else None for name in sorted(spent)}
    caps = {
        name: (Cap(), Cap()) if who is None else (rules.caps.share(who), rules.caps.limits(who).share)
        for name, who in names.items()
    }
    return [Spending(name, answers[name], spent[name], *caps[name]) for name in names]


def failures(rows: Sequence[Row], runs: Sequence[Run] = ()) -> dict[str, Failures]:
    """Failures since the last renewal, by analyst. Analysts without failures are left out."""
    rules = _rules(rows)
    failed = Counter(
        row.analyst for row in rows if row.kind == "failure" and row.number > rules.counts_from(row.analyst)
    )
    unfinished = Counter(run.analyst for run in runs if run.number > rules.counts_from(run.analyst))
    most = rules.caps.most_failures
    return {name: Failures(failed[name], unfinished[name], most) for name in sorted({*failed, *unfinished})}


def show(name: str, rows: Sequence[Row], by: str | None, runs: Sequence[Run] = ()) -> str:
    """A table with bars, for people."""
    rules, last = _rules(rows), rows[-1]
    answers = sum(row.kind == "charge" for row in rows)
    of = f" of {rules.dataset.name}" if rules.dataset.name else ""
    tables = ", ".join(f"{table} ({whose})" for table, whose in rules.dataset.tables.items()) or "none"
    budget, limit, unit = _budget(rules, last), rules.caps.limits("").dataset, rules.caps.accountant.unit
    lines = [
        f"{name}: the ledger{of}, {rules.dataset.neighbours.value} neighbours, since {rows[0].time[:10]}",
        f"private tables: {tables}",
        f"answers: {answers}{_each(rules.caps)}",
        "",
        _line(unit, last.total.nano, limit.nano, NANO),
    ]
    if limit.atto_delta or last.total_delta:
        keys = " (for keys that nobody declared)" if budget.spent.rho is not None else ""
        lines.append(_line("delta", last.total.atto_delta, limit.atto_delta, ATTO) + keys)
    lines += _meaning(budget)
    if by is not None:
        lines += ["", *_grouped(groups(rows, by), by, unit)]
    failed = failures(rows, runs)
    if failed:
        lines += [
            "",
            "queries that failed after they were charged",
            *(f"  {who}: {each}" for who, each in failed.items()),
        ]
    renewals = [row for row in rows if row.kind in ("renew", "forgive")]
    if renewals:
        lines += ["", "renewals by the owner", *(f"  {_renewal(row)}" for row in renewals)]
    return "\n".join(lines)


def unit_of(rows: Sequence[Row]) -> str:
    """What the ledger adds up: epsilon, or rho."""
    return _rules(rows).caps.accountant.unit


def _each(caps: Caps) -> str:
    most = f", each for at most epsilon {caps.query / NANO:g}" if caps.query else ""
    return most + (f", each for at least epsilon {caps.least / NANO:g}" if caps.least else "")


def _line(name: str, spent: int, limit: int | None, unit: int) -> str:
    used = spent / unit
    if limit is None:
        return f"{name:8} {used:g} spent, no limit"
    left = max(limit - spent, 0) / unit
    return (
        f"{name:8} {_bar(spent / limit if limit else 1.0)}  {used:g} of {limit / unit:g} spent, {left:g} left"
    )


def _meaning(budget: Budget) -> list[str]:
    """What a sum of rho means in epsilon, and how many counts the rest pays for."""
    lines = []
    if budget.spent.rho is not None:
        lines.append(f"that is {_plain(budget.spent)} spent, of {_plain(budget.limit)}")
    if budget.counts is not None:
        lines.append(f"enough for {counts_text(budget.counts, budget.spent.rho is not None)}")
    return lines


def _plain(amount: Amount) -> str:
    return str(replace(amount, rho=None))


def _grouped(found: Sequence[Spending], by: str, unit: str) -> list[str]:
    head = "day (UTC)" if by == "day" else by
    if not found:
        return ["no answers yet"]
    deltas = any(each.spent.atto_delta for each in found)
    widest = max(each.spent.nano for each in found) or 1
    table = [
        [head, "answers", unit, *(["delta"] if deltas else []), *(["cap"] if by == "analyst" else []), ""]
    ]
    for each in found:
        cap = each.limit.nano
        part = each.spent.nano / (widest if cap is None else cap or 1)
        table.append(
            [
                each.name,
                str(each.answers),
                f"{each.spent.size:g}",
                *([f"{each.spent.delta:g}"] if deltas else []),
                *(["none" if cap is None else f"{cap / NANO:g}"] if by == "analyst" else []),
                _bar(part),
            ]
        )
    widths = [max(len(row[place]) for row in table) for place in range(len(table[0]))]
    aligned = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in table]
    return ["  ".join(row).rstrip() for row in aligned]


def _bar(part: float) -> str:
    full = min(max(round(part * _BAR), 1 if part > 0 else 0), _BAR)
    return "[" + "#" * full + "." * (_BAR - full) + "]"


def _renewal(row: Row) -> str:
    if row.kind == "forgive":
        whose = f" of {row.analyst}" if row.analyst else ""
        return f"{row.time[:10]}  failures{whose} forgiven" + (f": {row.question}" if row.question else "")
    whose = {"dataset": "", "query": " for one query", "analyst": f" for {row.analyst}"}[row.read["scope"]]
    delta = f", delta +{row.loss.delta:g}" if row.delta else ""
    return f"{row.time[:10]}  epsilon +{row.loss.size:g}{delta}{whose}: {row.question}"


def _rules(rows: Sequence[Row]) -> LedgerTerms:
    return rules_of([row for row in rows if row.kind != "charge"])


def _budget(rules: LedgerTerms, last: Row) -> Budget:
    """The budget, without a number of counts unless every table is protected by row: the ledger does not know
    the policy's limit on rows per person.
    """
    budget = budget_of(rules.caps, last.total)
    return (
        budget
        if all(whose == EACH_ROW for whose in rules.dataset.tables.values())
        else budget.without_counts()
    )


def _finite(amount: Amount) -> dict[str, float | None]:
    """For JSON: infinity becomes null, and rho is left out where there is none."""
    numbers = {name: value for name, value in asdict(amount).items() if value is not None}
    return {name: None if value == float("inf") else value for name, value in numbers.items()}
