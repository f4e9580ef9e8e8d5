"""A text that comes again is not parsed again, and is bound to the tables as they are each time. The catalogue is read
by statements that are planned once, and lists what is there each time.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from privsql.engines.duckdb.catalogue.catalogue_statements import TABLES, VIEWS
from privsql.engines.duckdb.connection import _LONGEST_KEPT, _MOST_KEPT, Sharing, SourceConnection


@pytest.fixture
def source() -> SourceConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 1 AS x")
    return SourceConnection(connection, Sharing.NOBODY)


def test_the_same_text_is_planned_anew_for_other_tables(source: SourceConnection) -> None:
    assert source.rows("SELECT * FROM t") == [(1,)]
    source.connection.execute("DROP TABLE t; CREATE TABLE t AS SELECT 'a' AS y, 2 AS z")
    assert source.rows("SELECT * FROM t") == [("a", 2)]
    source.connection.execute("DROP TABLE t")
    with pytest.raises(duckdb.CatalogException):
        source.rows("SELECT * FROM t")


def test_current_settings_apply_to_a_parsed_text(source: SourceConnection) -> None:
    assert source.rows("SELECT x FROM (VALUES (1), (2)) v(x) ORDER BY x") == [(1,), (2,)]
    source.connection.execute("SET default_order = 'DESC'")
    assert source.rows("SELECT x FROM (VALUES (1), (2)) v(x) ORDER BY x") == [(2,), (1,)]


def test_several_statements_and_malformed_ones(source: SourceConnection) -> None:
    for _ in range(2):
        assert source.rows("CREATE OR REPLACE TABLE u AS SELECT 3 AS x; SELECT * FROM u") == [(3,)]
        with pytest.raises(duckdb.ParserException):
            source.rows("SELECT FROM WHERE")


def test_only_few_and_short_texts_are_kept(source: SourceConnection) -> None:
    for number in range(_MOST_KEPT + 10):
        assert source.rows(f"SELECT {number}") == [(number,)]
    assert len(source._parsed) <= _MOST_KEPT
    long = f"SELECT '{'a' * _LONGEST_KEPT}' = ''"
    assert source.rows(long) == [(False,)] and long not in source._parsed


# -- the catalogue -------------------------------------------------------------------------------------------
CHANGES = (
    "CREATE TABLE u (b INTEGER PRIMARY KEY)",
    "ALTER TABLE t ADD COLUMN z INTEGER",
    "CREATE VIEW w AS SELECT * FROM t",
    "CREATE OR REPLACE VIEW w AS SELECT x + 1 AS x FROM t",
    "DROP TABLE u",
    "CREATE SCHEMA other; CREATE TABLE other.t (y INTEGER)",
    "ATTACH ':memory:' AS beside; CREATE TABLE beside.t (y INTEGER); CREATE VIEW beside.w AS SELECT 1",
    "DETACH beside",
    "CREATE MACRO least(a, b) AS a",
    "CREATE TYPE colour AS ENUM ('red')",
    "INSERT INTO t VALUES (1, 2); CHECKPOINT",
    "DROP VIEW w; CREATE TABLE w (x INTEGER)",
    "BEGIN; DROP TABLE t; COMMIT",
    "CREATE TEMP TABLE t (x INTEGER)",
)


@pytest.fixture
def owner() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS x")
        yield connection


def listed(source: SourceConnection) -> list[list[str]]:
    return [sorted(map(repr, source.rows_again(sql))) for sql in (TABLES, VIEWS)]


def test_a_planned_statement_lists_the_catalogue_as_it_is_after_every_change(owner):
    source = SourceConnection(owner.cursor(), Sharing.DATABASE)
    seen = []
    for change in ("SELECT 1", *CHANGES):
        owner.execute(change)
        with source.snapshot():
            seen.append(listed(source))
            assert seen[-1] == [sorted(map(repr, source.rows(sql))) for sql in (TABLES, VIEWS)], change
    assert len({str(each) for each in seen}) > len(CHANGES) // 2, "most of the changes show"


def test_a_planned_statement_sees_the_state_of_its_transaction(owner):
    source = SourceConnection(owner.cursor(), Sharing.DATABASE)
    owner.execute("BEGIN; CREATE TABLE u (x INTEGER)")
    with source.snapshot():
        before = listed(source)
        owner.execute("COMMIT")
        assert listed(source) == before
    with source.snapshot():
        assert listed(source) != before


def test_a_planned_statement_survives_a_failure_in_its_transaction(owner):
    source = SourceConnection(owner.cursor(), Sharing.DATABASE)
    with source.snapshot():
        before = listed(source)
        with pytest.raises(duckdb.Error):
            source.rows("SELECT error('no')")
        assert listed(source) == before


def test_a_connection_that_was_opened_again_plans_anew(owner):
    source = SourceConnection(owner.cursor(), Sharing.DATABASE, reopen=owner.cursor)
    before = listed(source)
    source.reopen()
    assert listed(source) == before


def test_planned_statements_are_no_changes_and_those_of_others_still_are(owner):
    source = SourceConnection(owner.cursor(), Sharing.DATABASE)
    found = []
    for meddle in (None, None, None, "CREATE MACRO least(a, b) AS a", None, None):
        with source.snapshot():
            found.append(source.changed)
            listed(source)
            source.note_unchanged()
            if meddle:
                owner.execute(meddle)
            listed(source)
    assert found == [True, False, False, False, True, False]


def test_nothing_is_planned_ahead_on_a_connection_of_the_callers(owner):
    source = SourceConnection(owner, Sharing.CONNECTION)
    with source.snapshot():
        assert listed(source)[0]
    assert owner.execute("SELECT name FROM duckdb_prepared_statements()").fetchall() == []
