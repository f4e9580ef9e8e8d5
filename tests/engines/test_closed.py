"""What privsql opens itself reaches nothing and cannot be changed, by any cursor; what others opened stays as it was."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import privsql
from privsql.engines.duckdb.twin import Twin, without_data
from tests.prepare.visits import BY_STATE, POLICY, make

FRAME = pd.DataFrame({"state": ["CA", "NY"], "amount": [1, 2], "user_id": [1, 2]})
CLOSED = (
    "enable_external_access",
    "autoload_known_extensions",
    "autoinstall_known_extensions",
    "python_enable_replacements",
)
SETTINGS = "SELECT name, value FROM duckdb_settings() ORDER BY name"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = make(tmp_path / "clinic.duckdb", 200)
    (tmp_path / "secret.csv").write_text("name\nAda\n", encoding="utf-8")
    return path


@contextmanager
def _session(source: Any, policy: Any = None) -> Iterator[duckdb.DuckDBPyConnection]:
    with privsql.connect(source, policy) as session:
        yield session._pipeline.engine._connection


@contextmanager
def _parquet(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    FRAME.to_parquet(file.parent / "visits.parquet")
    with _session(file.parent / "visits.parquet") as connection:
        yield connection


@contextmanager
def _prepared(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A file whose copies are attached."""
    with privsql.connect(file, POLICY) as session:
        session.prepare("visits")
        assert "privsql_prepared" in session.explain(BY_STATE, epsilon=1).sql
        yield session._pipeline.engine._connection


@contextmanager
def _twin(file: Path, copies: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    with privsql.connect(file, POLICY) as session:
        twin = Twin(session._pipeline.engine.schema(), {"copy": "user_id INTEGER"} if copies else {})
        yield twin._connection
        twin.close()


@contextmanager
def _without_data(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    yield without_data().cursor()


OURS: dict[str, Callable[[Path], Any]] = {
    "frame": lambda file: _session(FRAME),
    "parquet": _parquet,
    "duckdb": _session,
    "prepared": _prepared,
    "twin": lambda file: _twin(file, False),
    "twin with copies": lambda file: _twin(file, True),
    "calculator": _without_data,
}


def attempts(folder: Path) -> list[str]:
    return [
        f"SELECT * FROM '{folder}/secret.csv'",
        f"SELECT * FROM read_csv('{folder}/secret.csv')",
        f"SELECT * FROM read_text('{folder}/secret.csv')",
        f"SELECT * FROM glob('{folder}/*')",
        f"COPY (SELECT 1) TO '{folder}/out.csv'",
        f"ATTACH '{folder}/other.duckdb' AS other",
        f"EXPORT DATABASE '{folder}/export'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM FRAME",  # a variable of this file
        "SELECT * FROM frame_here",  # a variable of the function that asks
        "SET threads = 3",
        "SET SESSION python_enable_replacements = true",
        "SET GLOBAL python_enable_replacements = true",
        "SET GLOBAL enable_external_access = true",
        "SET GLOBAL lock_configuration = false",
        "SET GLOBAL allowed_directories = ['/']",
        "RESET GLOBAL enable_external_access",
        "RESET lock_configuration",
        "PRAGMA memory_limit = '1TB'",
    ]


@pytest.mark.parametrize("name", OURS)
def test_an_opened_database_reaches_nothing_else(name, file):
    frame_here = FRAME
    with OURS[name](file) as connection:
        for each in (connection, connection.cursor()):
            for sql in attempts(file.parent):
                with pytest.raises(duckdb.Error):
                    each.execute(sql).fetchall()
            found = dict(each.execute(SETTINGS).fetchall())
            for setting in CLOSED:
                assert found[setting] == "false", setting
            assert found["lock_configuration"] == "true"
    assert len(frame_here) == 2
    assert not [each for each in file.parent.iterdir() if each.name in ("out.csv", "other.duckdb", "export")]


def test_a_file_is_read_and_never_written(file):
    before = hashlib.sha256(file.read_bytes()).hexdigest()
    with privsql.connect(file, POLICY) as session:
        session.prepare("visits")
        session.query(BY_STATE, epsilon=1)
    assert hashlib.sha256(file.read_bytes()).hexdigest() == before
    assert sorted(each.name for each in file.parent.iterdir()) == [
        "clinic.duckdb",
        "clinic.duckdb.prepared",
        "secret.csv",
    ]
    with duckdb.connect(str(file)) as owner:  # and is the owner's afterwards as before
        assert owner.execute(f"SELECT name FROM '{file.parent}/secret.csv'").fetchall() == [("Ada",)]
        owner.execute("SET threads = 1; CREATE TABLE more AS SELECT 1")


def test_sessions_share_a_file_and_other_databases_are_not_locked(file):
    with privsql.connect(file, POLICY) as one, privsql.connect(file, POLICY) as two:
        one.prepare("visits")
        for each in (one, two):
            assert "privsql_prepared" in each.explain(BY_STATE, epsilon=1).sql
            each.query(BY_STATE, epsilon=1)
    plain = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",
    }
    with duckdb.connect(
        str(file), read_only=True, config=plain
    ) as owner:  # the very settings of ours, by chance
        with pytest.raises(privsql.SourceError, match="cannot open"):
            privsql.connect(file, POLICY)
        with privsql.connect(owner, POLICY) as session:
            session.query(BY_STATE, epsilon=1)
        owner.execute("SET threads = 1")
        assert owner.execute(f"SELECT name FROM '{file.parent}/secret.csv'").fetchall() == [("Ada",)]


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("given", ["connection", "path", "temporary"])
def test_settings_of_the_owner_are_restored(given, read_only, file):
    with duckdb.connect(str(file), read_only=read_only) as owner:
        owner.execute(
            "SET GLOBAL default_null_order = 'nulls_first'; SET SESSION errors_as_json = true; SET threads = 2"
        )
        if given == "temporary":
            owner.execute("CREATE TEMP TABLE mine AS SELECT 1 AS x")  # so that this very connection is used
        cursor = owner.cursor()
        before = [each.execute(SETTINGS).fetchall() for each in (owner, cursor, owner.cursor())]
        databases = owner.execute(
            "SELECT database_name, path FROM duckdb_databases() ORDER BY ALL"
        ).fetchall()
        session = privsql.connect(file if given == "path" else owner, POLICY)
        session.query(BY_STATE, epsilon=1)
        session.explain(BY_STATE, epsilon=1)
        with pytest.raises(privsql.PrivsqlError):
            session.query("SELECT nothing FROM visits", epsilon=1)
        for when in ("during", "after"):
            assert [
                each.execute(SETTINGS).fetchall() for each in (owner, cursor, owner.cursor())
            ] == before, when
            assert owner.execute("SELECT * FROM duckdb_prepared_statements()").fetchall() == []
            if when == "during":
                session.close()
        assert (
            owner.execute("SELECT database_name, path FROM duckdb_databases() ORDER BY ALL").fetchall()
            == databases
        )
        assert owner.execute(f"SELECT name FROM '{file.parent}/secret.csv'").fetchall() == [("Ada",)]
        assert owner.execute("SELECT count(*) FROM FRAME").fetchall() == [(2,)]


def test_memory_is_limited_in_this_process_too(file):
    for source in (file, FRAME):
        with privsql.connect(source, memory_limit="100MB") as session:
            found = session._pipeline.engine._connection.execute(
                "SELECT current_setting('memory_limit')"
            ).fetchall()
            assert found == [("95.3 MiB",)]
    with duckdb.connect(str(file), read_only=True), pytest.raises(privsql.ArgumentError) as caught:
        privsql.connect(file, memory_limit="100MB")
    assert caught.value.code == "argument-memory"


def test_a_view_of_an_unreachable_file_is_hidden(file):
    """It would fail after the charge. The owner's own connection has it."""
    with duckdb.connect(str(file)) as owner:
        owner.execute(f"CREATE VIEW outside AS SELECT * FROM '{file.parent}/secret.csv'")
        owner.execute("CREATE VIEW inside AS SELECT * FROM visits")
    with privsql.connect(file, {"tables": {"inside": {}}}) as session:
        session.query("SELECT COUNT(*) FROM inside", epsilon=1)
        with pytest.raises(privsql.UnknownName):
            session.query("SELECT COUNT(*) FROM outside", epsilon=1)
        assert session.budget.spent.epsilon == 1
    policy = {"tables": {"outside": {}}}
    with privsql.connect(file, policy) as session, pytest.raises(privsql.PolicyError):
        session.query("SELECT COUNT(*) FROM outside", epsilon=1)
    with duckdb.connect(str(file)) as owner:
        assert privsql.connect(owner, policy).query(
            "SELECT COUNT(*) FROM outside", epsilon=10_000
        ).fetchall() == [(1,)]
