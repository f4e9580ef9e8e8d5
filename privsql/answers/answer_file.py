"""Answers go into a file beside their ledger, each under its charge, before they are released; any session
reads them back.

The file contains only noisy numbers. To use an answer, its query is planned again: under a different policy
that may be a different query, and then the answer is ignored. So are damaged entries and entries of another
ledger.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from privsql.answers.stored import Kept, Shown, Signs, signs_of
from privsql.equivalence.written import digest
from privsql.planning.plan import Plan
from privsql.tables import NoisyTable

_TABLE = """CREATE TABLE IF NOT EXISTS answers_1 (
    number INTEGER NOT NULL,
    charge TEXT NOT NULL,
    question TEXT NOT NULL,
    time TEXT NOT NULL,
    version TEXT NOT NULL,
    asked TEXT NOT NULL,
    meaning TEXT NOT NULL,
    rows TEXT,
    beside TEXT NOT NULL,
    noisy BLOB NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (number, charge)
)"""
_NAMES = "number, charge, question, time, version, asked, meaning, rows, beside, noisy, digest"
_PATIENCE = 5.0  # seconds

Replan = Callable[[Mapping[str, Any]], Plan | None]  # the arguments of a call -> the plan they make now
ChargeOf = Callable[[int], str | None]  # the number of an entry -> its hash in the ledger


class AnswerFile:
    """The answers of one ledger. A connection lives for one transaction, so none is open when a process forks
    or dies.
    """

    def __init__(self, ledger: Path, charge_of: ChargeOf, replan: Replan) -> None:
        self.path = file_beside(ledger)
        self._charge_of, self._replan = charge_of, replan
        self._seen = 0  # the last row that was read

    def newer(self) -> list[Kept]:
        """Answers written since the last call, by any session, that belong to the ledger.

        They come in the order of writing, not of charges: of two sessions, the one charged first may write
        last.
        """
        if not self.path.exists():
            return []
        try:
            with opened(self.path, "ro") as connection:
                rows = connection.execute(
                    "SELECT rowid, number, charge, question, time, version, meaning, rows, beside "
                    "FROM answers_1 WHERE rowid > ? ORDER BY rowid",
                    (self._seen,),
                ).fetchall()
        except sqlite3.Error:
            return []
        found = []
        for place, *row in rows:
            self._seen = max(self._seen, place)
            if row[1] == self._charge_of(row[0]):  # others belong to another ledger
                # a damaged entry does not hide the others
                with contextlib.suppress(ValueError, TypeError, RecursionError):
                    found.append(self._kept(*row))
        return found

    def _kept(
        self,
        number: int,
        charge: str,
        question: str,
        time: str,
        version: str,
        meaning: str,
        rows: str | None,
        beside: str,
    ) -> Kept:
        signs = Signs(meaning, rows)
        return Kept(
            number,
            question,
            time,
            version,
            dict,  # it is in the file already
            lambda: self._read(number, charge, signs),
            signs,
            tuple(map(int, json.loads(beside))),
        )

    def _read(self, number: int, charge: str, signs: Signs) -> Shown | None:
        """The query planned again, with its noisy cells; None if it means something else now, or the entry is
        damaged.
        """
        try:
            with opened(self.path, "ro") as connection:
                ((*row, written),) = connection.execute(
                    f"SELECT {_NAMES} FROM answers_1 WHERE number = ? AND charge = ?", (number, charge)
                ).fetchall()
            if digest_of(row) != written:
                return None
            plan, noisy = self._replan(json.loads(row[5])), unpacked(row[9])
            return (
                (plan, noisy) if plan is not None and signs_of(plan) == signs and _fits(plan, noisy) else None
            )
        except Exception:  # noqa: BLE001 -- a writer of the file can write anything, with a valid digest
            return None

    def keep(self, kept: Kept) -> None:
        """Write an answer to disk before anybody sees it. If that fails, the answer is still valid and paid
        for.
        """
        try:
            row = self._row(kept)
            with opened(self.path, "rwc") as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(_TABLE)
                connection.execute(
                    f"INSERT INTO answers_1 ({_NAMES}) VALUES ({', '.join('?' * 11)})", (*row, digest_of(row))
                )
                connection.execute("COMMIT")
        except Exception:  # noqa: BLE001 -- no failure here is a reason to withhold the answer
            warnings.warn(
                "this answer could not be stored beside the ledger: repeating the query will cost again",
                stacklevel=2,
            )

    def _row(self, kept: Kept) -> tuple[Any, ...]:
        """All columns except the digest."""
        assert kept.drawn is not None
        return (
            kept.number,
            self._charge_of(kept.number),
            kept.query,
            kept.when,
            kept.version,
            json.dumps(dict(kept.asked()), default=float),
            kept.signs.meaning,
            kept.signs.rows,
            json.dumps(kept.beside),
            packed(kept.drawn[1]),
        )


def file_beside(ledger: Path) -> Path:
    """Where the answers of a ledger are stored."""
    return Path(f"{ledger}.answers")


@contextlib.contextmanager
def opened(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """A connection to a file of answers, to read it ("ro") or to write ("rwc")."""
    if mode == "rwc" and not path.exists():
        with contextlib.suppress(FileExistsError):  # private from the start
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, timeout=_PATIENCE, isolation_level=None
    )
    try:
        if mode == "rwc":
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        yield connection
    finally:
        connection.close()


def digest_of(row: Any) -> str:
    """What tells whether a row of the file is as it was written."""
    shown = [each.hex() if isinstance(each, bytes) else each for each in row]
    return digest(json.dumps(shown))


def _fits(plan: Plan, noisy: NoisyTable) -> bool:
    """Whether these are integers, one for each cell and column of the plan."""
    arrays = [noisy.cells, *noisy.noisy_columns.values()]
    if any(each.ndim != 1 or each.dtype != np.int64 or len(each) != len(noisy.cells) for each in arrays):
        return False
    if plan.space.open:
        return all(values.shape == noisy.cells.shape for values in noisy.keys.values())
    if plan.chooses:
        return bool(np.all((noisy.cells >= 0) & (noisy.cells < len(plan.space))))
    columns = {column for each in plan.measurements for column in each.columns}
    return np.array_equal(noisy.cells, np.arange(len(plan.space))) and noisy.noisy_columns.keys() >= columns


def packed(noisy: NoisyTable) -> bytes:
    """The arrays in numpy's format, without anything executable; keys with a mask, texts as JSON."""
    arrays: dict[str, Any] = {"cells": noisy.cells}
    for name, values in noisy.noisy_columns.items():
        arrays[f"column {name}"] = values
    for number, (name, values) in enumerate(noisy.keys.items()):
        plain, mask = np.ma.getdata(values), np.ma.getmaskarray(values)
        if plain.dtype == object:
            texts = json.dumps(
                [None if gone else each for each, gone in zip(plain.tolist(), mask, strict=True)]
            )
            arrays[f"text {number} {name}"] = np.frombuffer(
                texts.encode("utf-8", "surrogatepass"), dtype=np.uint8
            )
        else:
            arrays[f"key {number} {name}"], arrays[f"mask {number} {name}"] = plain, mask
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def unpacked(blob: bytes) -> NoisyTable:
    with np.load(io.BytesIO(blob), allow_pickle=False) as arrays:
        columns = {
            name.removeprefix("column "): arrays[name] for name in arrays.files if name.startswith("column ")
        }
        keys: dict[int, tuple[str, Any]] = {}
        for each in arrays.files:
            kind, _, rest = each.partition(" ")
            number, _, name = rest.partition(" ")
            if kind == "text":
                listed = json.loads(arrays[each].tobytes().decode("utf-8", "surrogatepass"))
                values = np.empty(len(listed), dtype=object)
                values[:] = ["" if one is None else one for one in listed]
                keys[int(number)] = name, np.ma.array(values, mask=[one is None for one in listed])
            elif kind == "key":
                keys[int(number)] = name, np.ma.array(arrays[each], mask=arrays[f"mask {rest}"])
        return NoisyTable(
            arrays["cells"], columns, {name: values for _, (name, values) in sorted(keys.items())}
        )
