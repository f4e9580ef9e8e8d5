"""What the tests share: a small clinic and its ledger (tests/noise/statistics.py: what tests of noise share)."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # before numpy: the tests' own processes take all cores already
os.environ.setdefault("MPLBACKEND", "agg")  # without importing it: most processes need no plots

import numpy as np
import pandas as pd
import pytest

import privsql
from privsql.budget.ledger_file.file_ledger import FileLedger, open_ledger
from tests.budget.ledgers import VISITS, policy
from tests.support.databases import database
from tests.tempo import SLICES, outside_slice, slice_of_commit, thin_out

SLICE = pytest.StashKey[int | None]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slow-slice",
        default="",
        choices=["", "commit", *map(str, range(SLICES))],
        metavar="N",
        help=f"of the slow tests only one slice of {SLICES}: its number, or 'commit' for the one that HEAD chooses",
    )


def pytest_configure(config: pytest.Config) -> None:
    given = config.getoption("--slow-slice")
    config.stash[SLICE] = slice_of_commit() if given == "commit" else int(given) if given else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    chosen = config.stash[SLICE]
    if chosen is not None:
        terminalreporter.write_line(f"slow tests: slice {chosen} of {SLICES} (again: --slow-slice={chosen})")


@pytest.hookimpl(tryfirst=True)  # before -m "not slow" is looked at
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    thin_out(items)
    chosen = config.stash[SLICE]
    if chosen is not None:
        dropped = outside_slice(items, chosen)
        config.hook.pytest_deselected(items=dropped)
        others = {each.nodeid for each in dropped}
        items[:] = [each for each in items if each.nodeid not in others]


def pytest_collection_finish() -> None:
    """Exclude everything loaded so far from garbage collection, which took a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_unconfigure() -> None:
    """Include it again at the end: DuckDB reports objects that are left over."""
    gc.unfreeze()


POLICY = {
    "tables": {
        "visits": {
            "columns": {
                "age": {"range": [0, 120]},
                "cost": {"range": [0, 1000]},
                "change": {"range": [-5, 20]},
                "state": {"values": ["CA", "NY", "TX"]},
            }
        }
    }
}


def clinic(rows: int = 300) -> pd.DataFrame:
    """A table in which everything occurs: NULL, NaN, values outside their declared range and keys nobody declared."""
    index = np.arange(rows)
    age = pd.array((index * 7) % 130, dtype="Int64")
    age[index % 11 == 0] = pd.NA
    return pd.DataFrame(
        {
            "user": index,
            "age": age,
            "cost": np.where(index % 13 == 0, np.nan, (index * 37.5) % 1100),
            "change": (index % 30) - 7,
            "state": np.array(["CA", "NY", "TX", "ZZ"])[index % 4],
            "smoker": index % 3 == 0,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(index % 400, unit="D"),
        }
    )


@pytest.fixture
def visits() -> pd.DataFrame:
    return clinic()


@pytest.fixture
def session(visits) -> privsql.Session:
    return privsql.connect({"visits": visits}, POLICY)


@pytest.fixture
def two_rows() -> Iterator[privsql.Session]:
    """A session on two people, in a table with a column named nan."""
    connection = database(
        "CREATE TABLE t (a INTEGER, b BOOLEAN, x DOUBLE, tm TIME, nan VARCHAR)",
        "INSERT INTO t VALUES (5, true, 0.5, '12:00', 'Alice'), (7, false, 0.25, '13:00', 'Bob')",
    )
    columns = {"a": {"range": [0, 10]}, "x": {"range": [0, 1]}}
    yield privsql.connect(connection, {"tables": {"t": {"columns": columns}}})
    connection.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of the ledger."""
    return tmp_path / "clinic.ledger"


@pytest.fixture
def ledger(path: Path) -> Iterator[FileLedger]:
    made = open_ledger(path, policy(10, delta=1e-3), VISITS)
    yield made
    made.close()
