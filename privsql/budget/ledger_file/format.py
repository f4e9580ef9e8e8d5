"""The file format of a ledger: one table of entries that only grows, each chained to the previous one by its
hash.

The database itself enforces the rules: no entry is changed or removed, sums are right, the dataset's cap is
never exceeded. In charges, sums and caps, `epsilon` is in the accountant's unit: billionths of epsilon or of
rho.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from privsql.budget.amount import Loss
from privsql.errors import BudgetError

APPLICATION = 0x70737161  # "psqa": SQLite's mark for the application that owns the file
FORMAT = 3  # increases with every change to the definitions below, or to their meaning
# format 1 had no accountant, and different details of events: losses added up, as they still do in such a
# ledger
KNOWN = (1, 2, FORMAT)
START = "0" * 64  # what the first entry is chained to

_NUMBERS = ("epsilon", "delta", "total_epsilon", "total_delta", "share_epsilon", "share_delta")
_WHOLE = "\n".join(
    f"    {name} INTEGER NOT NULL CHECK (typeof({name}) = 'integer' AND {name} >= 0)," for name in _NUMBERS
)
_FREE_BEFORE = "'open', 'tables'"
_FREE = f"{_FREE_BEFORE}, 'failure', 'forgive'"


def _entries(free: str) -> str:
    """The table of entries: charges, renewals, and kinds of entries that cost nothing."""
    return f"""CREATE TABLE entries (
    number INTEGER PRIMARY KEY CHECK (number >= 1),
    kind TEXT NOT NULL CHECK (kind IN ({free}, 'charge', 'renew')),
    time TEXT NOT NULL,
    analyst TEXT NOT NULL,
{_WHOLE}
    cap_epsilon INTEGER CHECK (cap_epsilon IS NULL OR typeof(cap_epsilon) = 'integer' AND cap_epsilon >= 0),
    cap_delta INTEGER CHECK (cap_delta IS NULL OR typeof(cap_delta) = 'integer' AND cap_delta >= 0),
    question TEXT NOT NULL,
    details TEXT NOT NULL,
    previous TEXT NOT NULL CHECK (length(previous) = 64),
    hash TEXT NOT NULL CHECK (length(hash) = 64),
    CHECK (cap_epsilon IS NULL OR total_epsilon <= cap_epsilon),
    CHECK (cap_delta IS NULL OR total_delta <= cap_delta),
    CHECK (total_delta <= 1000000000000000000),
    CHECK (kind <> 'charge' OR epsilon > 0 AND analyst <> ''),
    CHECK (kind <> 'renew' OR epsilon > 0 OR delta > 0),
    CHECK (kind NOT IN ({free}) OR epsilon = 0 AND delta = 0),
    CHECK ((kind = 'open') = (number = 1))
)"""


_CHAIN = f"""CREATE TRIGGER entries_follow_each_other BEFORE INSERT ON entries BEGIN
    SELECT RAISE(ABORT, 'number') WHERE NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM entries);
    SELECT RAISE(ABORT, 'chain') WHERE NEW.previous IS NOT
        coalesce((SELECT hash FROM entries WHERE number = NEW.number - 1), '{START}');
    SELECT RAISE(ABORT, 'sum') WHERE
        NEW.total_epsilon IS NOT iif(NEW.kind = 'charge', NEW.epsilon, 0)
            + coalesce((SELECT total_epsilon FROM entries WHERE number = NEW.number - 1), 0)
        OR NEW.total_delta IS NOT iif(NEW.kind = 'charge', NEW.delta, 0)
            + coalesce((SELECT total_delta FROM entries WHERE number = NEW.number - 1), 0);
    SELECT RAISE(ABORT, 'cap') FROM entries WHERE number = NEW.number - 1 AND NEW.kind <> 'renew'
        AND (NEW.cap_epsilon IS NOT cap_epsilon OR NEW.cap_delta IS NOT cap_delta);
END"""
# Charged queries that are not known to have ended, by the number of the first charge. A row is inserted with
# the charge and deleted, without waiting for the disk, when the query ends; a row left by a crash, a kill or
# a power cut counts as a failure.
_RUNS = """CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    charges INTEGER NOT NULL,
    analyst TEXT NOT NULL
)"""
OWNERS = "kind NOT IN ('charge', 'failure')"  # entries that set terms rather than record events
_AS_EVER = {
    "charges_by_analyst": "CREATE INDEX charges_by_analyst ON entries (analyst, number) "
    "WHERE kind = 'charge'",
    "entries_follow_each_other": _CHAIN,
    "entries_are_not_changed": "CREATE TRIGGER entries_are_not_changed BEFORE UPDATE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'entries are not changed'); END",
    "entries_are_not_removed": "CREATE TRIGGER entries_are_not_removed BEFORE DELETE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'entries are not removed'); END",
}
OBJECTS = {
    "entries": _entries(_FREE),
    "owners_entries": f"CREATE INDEX owners_entries ON entries (number) WHERE {OWNERS}",
    "failures_by_analyst": "CREATE INDEX failures_by_analyst ON entries (analyst, number) "
    "WHERE kind = 'failure'",
    "runs": _RUNS,
    **_AS_EVER,
}
OBJECTS_BEFORE = {  # of formats 1 and 2, which had no failures
    "entries": _entries(_FREE_BEFORE),
    "not_charges": "CREATE INDEX not_charges ON entries (number) WHERE kind <> 'charge'",
    **_AS_EVER,
}


@dataclass(frozen=True)
class Row:
    """An entry as stored in the file. `share_`: what this analyst has spent, this entry included."""

    number: int
    kind: str
    time: str
    analyst: str
    epsilon: int
    delta: int
    total_epsilon: int
    total_delta: int
    share_epsilon: int
    share_delta: int
    cap_epsilon: int | None
    cap_delta: int | None
    question: str
    details: str
    previous: str
    hash: str = ""

    @property
    def loss(self) -> Loss:
        return Loss(self.epsilon, self.delta)

    @property
    def total(self) -> Loss:
        return Loss(self.total_epsilon, self.total_delta)

    @property
    def share(self) -> Loss:
        return Loss(self.share_epsilon, self.share_delta)

    @property
    def when(self) -> dt.datetime:
        return dt.datetime.fromisoformat(self.time)

    @property
    def read(self) -> Any:
        """The details, parsed from JSON."""
        return json.loads(self.details)

    def values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in NAMES)

    def digest(self) -> str:
        """The hash of all other fields, including the hash of the previous entry."""
        text = json.dumps(self.values()[:-1], separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()


NAMES = tuple(each.name for each in fields(Row))
SELECT = f"SELECT {', '.join(NAMES)} FROM entries"
UPGRADE = (  # inside a transaction: copies the entries to a table that allows more kinds
    "ALTER TABLE entries RENAME TO entries_before",
    OBJECTS["entries"],
    f"INSERT INTO entries ({', '.join(NAMES)}) SELECT {', '.join(NAMES)} FROM entries_before ORDER BY number",
    "DROP TABLE entries_before",
    *(sql for name, sql in OBJECTS.items() if name != "entries"),
)
INSERT = f"INSERT INTO entries ({', '.join(NAMES)}) VALUES ({', '.join('?' * len(NAMES))})"


def row_of(values: Sequence[Any]) -> Row:
    """An entry from its columns. Raises BudgetError if its hash does not match."""
    row = Row(*values)
    try:
        whole = row.digest() == row.hash
    except (TypeError, ValueError):  # bytes in place of text
        whole = False
    if not whole:
        raise BudgetError(
            "budget-corrupt",
            f"entry {row.number} of the ledger has been altered",
            "run privsql ledger verify",
        )
    return row


def written(text: str) -> str:
    """The text as SQLite can store it: lone surrogates are escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="microseconds")
