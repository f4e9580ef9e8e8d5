"""Releases go into the file of answers beside their ledger, each under its charge; any session reads them
back.

The file contains noisy numbers alone. To use a release, its workload is planned again: under a different
policy that may be another one, and then it is ignored. So are damaged entries and entries of another ledger.
"""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privsql.answers.answer_file import digest_of, file_beside, opened

_TABLE = """CREATE TABLE IF NOT EXISTS releases_1 (
    number INTEGER NOT NULL,
    charge TEXT NOT NULL,
    what TEXT NOT NULL,
    time TEXT NOT NULL,
    version TEXT NOT NULL,
    asked TEXT NOT NULL,
    signature TEXT NOT NULL,
    noisy BLOB NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (number, charge)
)"""
_NAMES = "number, charge, what, time, version, asked, signature, noisy, digest"

NoisyArrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class ReleaseEntry:
    """A release as it is stored. `asked`: the arguments of the call, as JSON. `signature`: of its plan."""

    number: int
    what: str
    when: str
    version: str
    asked: Mapping[str, Any]
    signature: str
    noisy: NoisyArrays


class ReleaseFile:
    """The releases of one ledger. `charge_of`: from the number of an entry of the ledger to its hash."""

    def __init__(self, ledger: Path, charge_of: Callable[[int], str | None]) -> None:
        self._path, self._charge_of = file_beside(ledger), charge_of
        self._seen = 0  # the last row that was read

    def newer(self) -> Iterator[ReleaseEntry]:
        """Releases written since the last call, by any session, that belong to the ledger."""
        if not self._path.exists():
            return
        try:
            with opened(self._path, "ro") as connection:
                rows = connection.execute(
                    f"SELECT rowid, {_NAMES} FROM releases_1 WHERE rowid > ? ORDER BY rowid", (self._seen,)
                ).fetchall()
        except sqlite3.Error:  # there are none yet
            return
        for place, *row, written in rows:
            self._seen = max(self._seen, place)
            # a writer of the file can write anything, with a valid digest
            with contextlib.suppress(Exception):
                if row[1] == self._charge_of(row[0]) and digest_of(row) == written:
                    number, _, what, when, version, asked, signature, noisy = row
                    yield ReleaseEntry(
                        number, what, when, version, json.loads(asked), signature, _unpacked(noisy)
                    )

    def keep(self, entry: ReleaseEntry) -> None:
        """Write a release to disk. If that fails, it is still valid and paid for."""
        try:
            row = (
                entry.number,
                self._charge_of(entry.number),
                entry.what,
                entry.when,
                entry.version,
                json.dumps(dict(entry.asked)),
                entry.signature,
                _packed(entry.noisy),
            )
            with opened(self._path, "rwc") as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(_TABLE)
                connection.execute(
                    f"INSERT INTO releases_1 ({_NAMES}) VALUES ({', '.join('?' * 9)})", (*row, digest_of(row))
                )
                connection.execute("COMMIT")
        except Exception:  # noqa: BLE001 -- no failure here is a reason to withhold the release
            warnings.warn(
                "this release could not be stored beside the ledger: another session would pay for it again",
                stacklevel=2,
            )


def _packed(arrays: NoisyArrays) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **dict(arrays))
    return file.getvalue()


def _unpacked(blob: bytes) -> NoisyArrays:
    with np.load(io.BytesIO(blob), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
