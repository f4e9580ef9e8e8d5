"""A text that comes again is not parsed again, and is bound to the tables as they are each time."""

from __future__ import annotations

import duckdb
import pytest

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
