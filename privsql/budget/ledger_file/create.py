"""A dataset and its caps go in; a complete new ledger appears under its name, or nothing does."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from privsql.budget.caps import Caps
from privsql.budget.dataset import Dataset
from privsql.budget.ledger_file.format import APPLICATION, FORMAT, INSERT, OBJECTS, START, Row, now
from privsql.budget.ledger_file.store import MADE_ASIDE, OPEN, WRITE, reason_for
from privsql.errors import BudgetError


def create(path: Path, dataset: Dataset, caps: Caps) -> None:
    """Create a ledger under a temporary name, then rename it in one step: no crash leaves half a ledger, and
    of several processes one wins.
    """
    _refuse_orphans(path)
    aside = path.with_name(f".{path.name}.{uuid4().hex}{MADE_ASIDE}")
    try:
        _write(aside, _opening(dataset, caps))
        os.link(aside, path)
        _sync_folder(path.parent)
    except FileExistsError:
        pass  # another process was first; its ledger is opened and checked like any other
    except sqlite3.Error as error:
        raise reason_for(error) from error
    except OSError as error:
        raise BudgetError(*(OPEN if isinstance(error, FileNotFoundError) else WRITE)) from error
    finally:
        for name in (aside, Path(f"{aside}-journal"), Path(f"{aside}-wal"), Path(f"{aside}-shm")):
            with suppress(OSError):
                name.unlink()


def _refuse_orphans(path: Path) -> None:
    """Raise BudgetError if there is a log without a ledger: SQLite would read it into the new one."""
    for end in ("-wal", "-shm", "-journal"):
        if Path(f"{path}{end}").exists() and not path.exists():
            raise BudgetError(
                "budget-ledger",
                f"there is no ledger {path.name}, but there is {path.name}{end}: "
                "the ledger was moved or deleted without its log",
                "put the ledger back, or give the name of a new file",
            )


def _opening(dataset: Dataset, caps: Caps) -> Row:
    details = {
        "id": uuid4().hex,  # no two ledgers share a chain
        "dataset": dataset.name,
        "neighbours": dataset.neighbours.value,
        "tables": dict(dataset.tables),
        "caps": caps.to_json(),
    }
    limit = caps.limits("").dataset
    row = Row(
        1, "open", now(), "", 0, 0, 0, 0, 0, 0, limit.nano, limit.atto_delta, "", json.dumps(details), START
    )
    return replace(row, hash=row.digest())


def _write(aside: Path, opening: Row) -> None:
    with closing(sqlite3.connect(aside, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("BEGIN IMMEDIATE")
        for sql in OBJECTS.values():
            connection.execute(sql)
        connection.execute(INSERT, opening.values())
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that the name is on the disk too, where folders can be synced."""
    with suppress(PermissionError):  # Windows
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
