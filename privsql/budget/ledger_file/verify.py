"""A ledger and perhaps an earlier anchor go in; the verified entries come out, or an error that says what is
wrong.

The hashes show that no entry was changed by accident. Anyone who can write the file can also write a new
chain, or restore an old copy; only an anchor, kept elsewhere, shows that.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from privsql.budget.amount import Loss
from privsql.budget.caps import Caps
from privsql.budget.ledger_file.format import SELECT, START, Row, row_of
from privsql.budget.ledger_file.ledger_reader import LedgerTerms, entry_of, followed, named, rules_of
from privsql.budget.ledger_file.store import Store
from privsql.errors import ArgumentError, BudgetError
from privsql.neighbours import Accounting

_PREFIX = "privsql-1"
_SHOWN = 32  # of the 64 digits of the hash: 128 bits


@dataclass(frozen=True)
class Anchor:
    """The state of a ledger at some time. Kept elsewhere, it shows later that no charge was removed."""

    entries: int
    total: Loss
    hash: str

    def __str__(self) -> str:
        return f"{_PREFIX}:{self.entries}:{self.total.nano}:{self.total.atto_delta}:{self.hash[:_SHOWN]}"


def anchor_of(rows: Sequence[Row]) -> Anchor:
    return Anchor(rows[-1].number, rows[-1].total, rows[-1].hash)


def read_anchor(text: str) -> Anchor:
    found = re.fullmatch(
        rf"{_PREFIX}:([0-9]{{1,18}}):([0-9]{{1,20}}):([0-9]{{1,20}}):([0-9a-f]{{{_SHOWN}}})", text.strip()
    )
    if found is None or int(found[1]) < 1:
        raise ArgumentError(
            "argument-anchor", "this is no anchor", "use a line that `privsql ledger anchor` printed"
        )
    return Anchor(int(found[1]), Loss(int(found[2]), int(found[3])), found[4])


def verify(path: str | Path, anchor: Anchor | None = None) -> list[Row]:
    """All entries. Raises BudgetError unless the file, the chain, the sums, the caps and the anchor are
    valid.
    """
    store = Store(named(path), read_only=True)
    try:
        with store.reading():
            problems = store.execute("PRAGMA integrity_check(1)")
            rows = [row_of(each) for each in store.execute(f"{SELECT} ORDER BY number")]
    finally:
        store.close()
    if problems != [("ok",)]:
        raise _broken("the file is damaged: SQLite's integrity check fails")
    replay(rows)
    if anchor is not None:
        held_to(rows, anchor)
    return rows


def replay(rows: Sequence[Row]) -> None:
    """Check every entry from the first on, recomputing every sum."""
    if not rows:
        raise _broken("it has no entries")
    rules, previous, total = rules_of(rows[:1]), START, Loss()
    own: dict[str, Loss] = defaultdict(Loss)
    for number, row in enumerate(rows, start=1):
        if row.number != number or row.previous != previous or (row.kind == "open") != (number == 1):
            raise _broken(f"entry {number} does not follow the one before")
        try:
            rules = followed(rules, row)
            paid = row.kind != "charge" or _paid(rules, row)
            if row.kind == "charge":
                total += row.loss
                own[row.analyst] += row.loss
            known = row.kind != "failure" or _known(rows[: number - 1], row)
        except (KeyError, ValueError, TypeError, AttributeError, BudgetError):
            raise _broken(f"entry {number} cannot be read") from None
        if not known:
            raise _broken(f"entry {number} is the failure of a query that was not charged")
        if not paid:
            raise _broken(f"entry {number} charges less than its releases cost")
        if row.kind == "charge" and row.share != own[row.analyst]:
            raise _broken(f"the sum of {row.analyst} in entry {number} is wrong")
        if row.total != total or not _same_cap(rules.caps, row):
            raise _broken(f"the sum or the cap in entry {number} is wrong")
        _within(rules.caps, row, total)
        previous = row.hash


def _known(earlier: Sequence[Row], failure: Row) -> bool:
    """Whether the failed query was charged earlier, to this analyst."""
    return all(
        0 < number <= len(earlier)
        and (earlier[number - 1].kind, earlier[number - 1].analyst) == ("charge", failure.analyst)
        for number in failure.read["charges"]
    )


def _same_cap(caps: Caps, row: Row) -> bool:
    """Whether the caps agree. A conversion to rho that was proved once stays valid, even if a later version
    of privsql computes a slightly different one.
    """
    limit = caps.limits("").dataset
    if limit.nano is None or row.cap_epsilon is None:
        return (limit.nano, limit.atto_delta) == (row.cap_epsilon, row.cap_delta)
    hair = 1 + limit.nano // 10**6 if caps.accounting is Accounting.ZCDP else 0
    return abs(limit.nano - row.cap_epsilon) <= hair and limit.atto_delta == row.cap_delta


def _paid(rules: LedgerTerms, row: Row) -> bool:
    """Whether the charge is at least the accountant's price of the releases; format 1 did not record enough
    to tell.
    """
    events = [each.event for each in entry_of(row, rules.caps.accountant.unit).released]
    if not all("event" in each for each in row.read):
        return True
    price = rules.caps.accountant.price(events)
    return row.epsilon >= price.nano and row.delta >= price.atto_delta


def _within(caps: Caps, row: Row, total: Loss) -> None:
    held = caps.limits(row.analyst)
    limits = [(total.nano, held.dataset.nano), (total.atto_delta, held.dataset.atto_delta)]
    if row.kind == "charge":
        share = held.share
        limits += [
            (row.epsilon, held.query),
            (row.share_epsilon, share.nano),
            (row.share_delta, share.atto_delta),
        ]
    if any(cap is not None and spent > cap for spent, cap in limits):
        raise _broken(f"entry {row.number} spends more than its cap allows")


def held_to(rows: Sequence[Row], anchor: Anchor) -> None:
    """Raise BudgetError unless the ledger continues from this anchor."""
    if len(rows) < anchor.entries:
        raise BudgetError(
            "budget-anchor",
            f"the ledger has {len(rows)} entries, but had {anchor.entries} when the anchor was taken: "
            "it is an older copy, and charges are missing",
            "restore the newest copy; until then do not run queries on it",
        )
    row = rows[anchor.entries - 1]
    if row.hash[:_SHOWN] != anchor.hash or row.total != anchor.total:
        raise BudgetError(
            "budget-anchor",
            f"entry {anchor.entries} differs from the anchor: the ledger was rewritten, "
            "or it is a different one",
            "compare it with a copy; until then do not run queries on it",
        )


def _broken(why: str) -> BudgetError:
    return BudgetError(
        "budget-corrupt",
        f"the ledger is not valid: {why}",
        "do not run queries on it; restore a copy only if an anchor shows that it is the newest",
    )
