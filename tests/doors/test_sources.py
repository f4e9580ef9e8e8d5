"""Every way to bring data: frames, files, connections; every way to declare a policy. Real files, real databases."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privsql
from tests.support.databases import ask

EXACT = 10_000  # an epsilon at which the noise is 0 but for a chance of exp(-5000)
FRAME = pd.DataFrame({"k": ["a", "b", "a", None], "x": [1.5, 2.5, None, 40.0], "n": [1, 2, 3, 4]})
COLUMNS = {"k": {"values": ["a", "b", "c"]}, "x": {"range": [0, 10]}}
COUNTS = [("a", 2), ("b", 1), ("c", 0), (None, 1)]


def policy(table: str) -> dict:
    return {"tables": {table: {"columns": COLUMNS}}}


def counts(session: privsql.Session, table: str) -> list:
    return session.query(f'SELECT k, COUNT(*) AS n FROM "{table}" GROUP BY k', epsilon=EXACT).fetchall()


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE visits AS SELECT * FROM FRAME")
    return path


# -- frames ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "source",
    [FRAME, pa.Table.from_pandas(FRAME), pl.from_pandas(FRAME), pl.from_pandas(FRAME).lazy()],
    ids=["pandas", "arrow", "polars", "lazy"],
)
def test_a_frame_is_the_table_df(source):
    session = privsql.connect(source, policy("df"))
    assert counts(session, "df") == COUNTS
    total = session.query("SELECT SUM(x) AS s FROM df", epsilon=EXACT).fetchall()[0][0]
    assert total == pytest.approx(14.0, abs=0.05)


def test_a_dict_of_frames_of_all_kinds():
    frames = {"one": FRAME, "two": pa.Table.from_pandas(FRAME), "Three": pl.from_pandas(FRAME)}
    session = privsql.connect(frames, {"tables": {name: {"columns": COLUMNS} for name in frames}})
    for name in ("one", "two", "three", "THREE"):
        assert counts(session, name) == COUNTS


def test_a_public_frame_beside_a_private_one_is_exact_and_free():
    session = privsql.connect(
        {"visits": FRAME, "states": FRAME}, {"tables": {"states": {"public": True, "columns": COLUMNS}}}
    )
    answer = session.query("SELECT k, COUNT(*) AS n FROM states GROUP BY k ORDER BY k", epsilon=0.01)
    assert answer.fetchall() == [each for each in COUNTS if each[1]]  # only keys that occur, as in plain SQL
    assert session.budget.spent.epsilon == 0


def test_a_frame_is_read_as_is_and_never_changed():
    frame = FRAME.copy()
    before = frame.copy(deep=True)
    counts(privsql.connect(frame, policy("df")), "df")
    pd.testing.assert_frame_equal(frame, before)


def test_categories_of_a_frame_are_not_keys_unless_declared():
    frame = FRAME.assign(k=FRAME["k"].astype("category"))
    with pytest.raises(privsql.Refused, match="which values occur is itself private"):
        privsql.connect(frame).explain("SELECT k, COUNT(*) FROM df GROUP BY k", epsilon=1)
    assert counts(privsql.connect(frame, policy("df")), "df") == COUNTS


# -- files -----------------------------------------------------------------------------------------------------
def test_parquet_and_csv(tmp_path):
    FRAME.to_parquet(tmp_path / "visits.parquet")
    FRAME.to_csv(tmp_path / "visits.csv", index=False)
    FRAME.to_csv(tmp_path / "visits.tsv", index=False, sep="\t")
    FRAME.to_csv(tmp_path / "visits.csv.gz", index=False)
    for name in ("visits.parquet", "visits.csv", "visits.tsv", "visits.csv.gz"):
        for path in (tmp_path / name, str(tmp_path / name)):
            assert counts(privsql.connect(path, policy("visits")), "visits") == COUNTS, name


def test_odd_paths(tmp_path):
    folder = tmp_path / "it's a [folder]"
    folder.mkdir()
    path = folder / "o'brien visits.parquet"
    FRAME.to_parquet(path)
    assert counts(privsql.connect(path, policy("o'brien visits")), "o'brien visits") == COUNTS


def test_a_session_on_a_file_reaches_no_other_file(tmp_path):
    FRAME.to_parquet(tmp_path / "visits.parquet")
    FRAME.to_parquet(tmp_path / "other.parquet")
    session = privsql.connect(tmp_path / "visits.parquet")
    with pytest.raises(duckdb.Error):
        session._pipeline.engine._connection.execute(f"SELECT * FROM '{tmp_path}/other.parquet'")
    with pytest.raises(duckdb.Error):
        session._pipeline.engine._connection.execute("SET enable_external_access = true")


def test_a_duckdb_file_is_opened_read_only(database):
    session = privsql.connect(database, policy("visits"))
    assert counts(session, "visits") == COUNTS
    with pytest.raises(duckdb.Error, match=r"read-only|read only"):
        session._pipeline.engine._connection.execute("CREATE TABLE more AS SELECT 1")
    assert counts(privsql.connect(database, policy("visits")), "visits") == COUNTS  # twice in one process


@pytest.mark.parametrize("settings", [{}, {"read_only": True}])
def test_a_duckdb_file_that_is_open_in_this_process(database, settings):
    with duckdb.connect(str(database), **settings) as mine:
        session = privsql.connect(database, policy("visits"))
        assert counts(session, "visits") == COUNTS
        assert mine.execute("SELECT count(*) FROM visits").fetchall() == [(4,)]


def test_a_duckdb_file_that_is_open_with_other_settings(database):
    with duckdb.connect(str(database), config={"threads": "1"}) as mine:
        with pytest.raises(privsql.SourceError, match="give that connection"):
            privsql.connect(database, policy("visits"))
        assert counts(privsql.connect(mine, policy("visits")), "visits") == COUNTS


def test_constraints_of_a_duckdb_file_are_used(tmp_path):
    path = tmp_path / "rules.ddb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('it''s fine', 'a,b', 'sad')")
        connection.execute(
            "CREATE TABLE t (who INTEGER PRIMARY KEY, m mood NOT NULL, age INTEGER CHECK (age BETWEEN 0 AND 9))"
        )
        connection.execute("INSERT INTO t VALUES (1, 'sad', 3), (2, 'a,b', NULL)")
        connection.execute("CREATE VIEW seen AS SELECT * FROM t")
    session = privsql.connect(path, {"tables": {"t": {"unit": "who"}}})
    answer = session.query("SELECT m, COUNT(*) FROM t GROUP BY m", epsilon=EXACT)
    assert answer.fetchall() == [("it's fine", 0), ("a,b", 1), ("sad", 1)]
    assert session.query("SELECT SUM(age) FROM t", epsilon=EXACT).fetchall() == [(3,)]
    with pytest.raises(privsql.Refused, match="is a view") as caught:  # whose rows it holds, nobody has said
        session.query("SELECT COUNT(*) FROM seen", epsilon=EXACT)
    assert caught.value.code == "refused-view"
    declared = privsql.connect(path, {"tables": {"seen": {}}})
    assert declared.query("SELECT COUNT(*) FROM seen", epsilon=EXACT).fetchall() == [(2,)]


# -- connections -----------------------------------------------------------------------------------------------
def test_an_open_connection_with_tables_views_temporary_tables_and_registered_frames():
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE plain AS SELECT * FROM FRAME")
        mine.execute("CREATE VIEW seen AS SELECT * FROM plain")
        mine.execute("CREATE TEMP TABLE passing AS SELECT * FROM FRAME")
        mine.register("registered", FRAME)
        names = ("plain", "seen", "passing", "registered")
        session = privsql.connect(mine, {"tables": {name: {"columns": COLUMNS} for name in names}})
        for name in names:
            assert counts(session, name) == COUNTS


def test_a_temporary_table_hides_another_of_its_name():
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE t (k VARCHAR, who INTEGER PRIMARY KEY, extra INTEGER)")
        mine.execute("CREATE TEMP TABLE t AS SELECT k, 7 AS who FROM FRAME")
        session = privsql.connect(mine, {"tables": {"t": {"columns": {"k": {"values": ["a", "b", "c"]}}}}})
        assert counts(session, "t") == COUNTS
        with pytest.raises(privsql.UnknownName):
            session.explain("SELECT COUNT(extra) FROM t", epsilon=1)
        owned = privsql.connect(mine, {"tables": {"t": {"unit": "who"}}})
        assert (
            owned.explain("SELECT COUNT(*) FROM t", epsilon=1).limits is not None
        )  # the other's UNIQUE is not this one's


def test_a_schema_that_the_caller_chose():
    with duckdb.connect() as mine:
        mine.execute(
            "CREATE TABLE t AS SELECT 1 AS who; CREATE SCHEMA s; CREATE TABLE s.t AS SELECT * FROM FRAME; USE s"
        )
        assert counts(privsql.connect(mine, policy("t")), "t") == COUNTS


def test_categories_of_a_registered_frame_are_not_keys():
    with duckdb.connect() as mine:
        mine.register("frame", FRAME.assign(k=FRAME["k"].astype("category")))
        with pytest.raises(privsql.Refused, match="which values occur is itself private"):
            privsql.connect(mine).explain("SELECT k, COUNT(*) FROM frame GROUP BY k", epsilon=1)


def test_unread_results_of_the_caller_are_kept():
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE t AS SELECT * FROM FRAME")
        mine.execute("SELECT range FROM range(3)")
        assert mine.fetchone() == (0,)
        session = privsql.connect(mine, policy("t"))
        assert counts(session, "t") == COUNTS
        assert mine.fetchall() == [(1,), (2,)]


def test_a_transaction_of_the_caller_is_kept():
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE t AS SELECT * FROM FRAME")
        session = privsql.connect(mine, policy("t"))
        mine.begin()
        mine.execute("INSERT INTO t VALUES ('a', 1, 1)")
        with pytest.raises(privsql.SqlError):
            session.query("SELECT COUNT(*) FROM t WHERE regexp_matches(k, '(')", epsilon=1)
        assert counts(session, "t") == COUNTS  # what is not committed is not seen
        mine.commit()
        assert mine.execute("SELECT count(*) FROM t").fetchall() == [(5,)]


def test_settings_of_the_caller_are_not_changed(tmp_path):
    settings = "SELECT name, value FROM duckdb_settings() ORDER BY name"
    with duckdb.connect() as mine:
        mine.execute(
            "CREATE TABLE t AS SELECT * FROM FRAME; SET threads = 1; SET default_null_order = 'nulls_first'"
        )
        mine.execute("CREATE TEMP TABLE own AS SELECT * FROM FRAME")
        before = mine.execute(settings).fetchall()
        session = privsql.connect(mine, policy("own"))
        counts(session, "own")
        assert mine.execute(settings).fetchall() == before
        assert mine.execute("SELECT * FROM duckdb_prepared_statements()").fetchall() == []
        FRAME.to_parquet(tmp_path / "x.parquet")
        assert mine.execute(f"SELECT count(*) FROM '{tmp_path}/x.parquet'").fetchall() == [(4,)]


@pytest.mark.parametrize(
    "setting",
    [
        "integer_division = true",
        "default_order = 'DESC'",
        "default_null_order = 'nulls_first'",
        "ieee_floating_point_ops = false",
        "preserve_identifier_case = false",
        "old_implicit_casting = true",
    ],
)
def test_settings_of_the_caller_do_not_change_answers(setting):
    with duckdb.connect() as mine:
        mine.execute(f"CREATE TEMP TABLE t AS SELECT * FROM FRAME; SET {setting}")
        session = privsql.connect(mine, policy("t"))
        assert counts(session, "t") == COUNTS
        sql = "SELECT COUNT(*), COUNT(*) FILTER (WHERE k = 'A'), COUNT(*) FILTER (WHERE 1 / (n - 2) IS NULL) FROM t WHERE n / 4 > 0.3"  # noqa: E501
        assert session.query(sql, epsilon=EXACT).fetchall() == [(3, 0, 1)]


def test_collations_do_not_make_different_texts_equal():
    """Under NOCASE one row is in both counts, and a cell's name depends on which row came first."""
    with duckdb.connect() as mine:
        mine.execute(
            "CREATE TABLE t (k VARCHAR COLLATE NOCASE, n INTEGER); INSERT INTO t VALUES ('a', 1), ('A', 2), ('b', 3)"
        )
        mine.execute("CREATE VIEW seen AS SELECT * FROM t")
        for table in ("t", "seen"):
            session = privsql.connect(
                mine, {"tables": {table: {"columns": {"k": {"values": ["a", "A", "b"]}}}}}
            )
            plan = session.explain(
                f"SELECT COUNT(*) FILTER (WHERE k = 'A'), COUNT(*) FILTER (WHERE k = 'a') FROM {table}",
                epsilon=1,
            )
            assert mine.execute(plan.sql).fetchall() == [(1, 1)]
            answer = session.query(f"SELECT k, COUNT(*) FROM {table} GROUP BY k", epsilon=EXACT)
            assert answer.fetchall() == [("a", 1), ("A", 1), ("b", 1), (None, 0)]
        mine.execute("SET default_collation = 'nocase'")
        with pytest.raises(privsql.SourceError, match="default_collation"):
            privsql.connect(mine).query("SELECT COUNT(*) FROM t", epsilon=1)


def test_a_closed_connection_is_refused():
    mine = duckdb.connect()
    mine.close()
    with pytest.raises(privsql.SourceError, match="cannot be used"):
        privsql.connect(mine)


def test_tables_may_have_the_names_of_helper_tables(tmp_path):
    with duckdb.connect(str(tmp_path / "odd.duckdb")) as mine:
        for name in ("cells", "noisy", "noisy_values", "public_values", "v", "privsql_1"):
            mine.execute(f"CREATE TABLE {name} AS SELECT * FROM FRAME")
            assert counts(privsql.connect(mine, policy(name)), name) == COUNTS


# -- policies --------------------------------------------------------------------------------------------------
def test_a_policy_as_dict_file_and_object(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(
        """
        neighbours = "add-remove"
        [budget]
        epsilon = 20000.0
        [tables.DF.columns]
        K = { values = ["a", "b", "c"] }
        x = { range = [0, 10] }
        """.replace("20000.0", "10000.0"),
        encoding="utf-8",
    )
    written = {"neighbours": "add-remove", "budget": {"epsilon": 10000.0}, **policy("df")}
    for each in (path, str(path), written, privsql.policy.load_policy(written)):
        session = privsql.connect(FRAME, each)
        assert counts(session, "df") == COUNTS
        assert session.budget.remaining.epsilon == 0
        with pytest.raises(privsql.BudgetError):
            session.query("SELECT COUNT(*) FROM df", epsilon=0.001, fresh=True)
    assert isinstance(privsql.policy.load_policy(path), privsql.Policy)


def test_by_default_each_row_is_one_person_without_a_budget():
    session = privsql.connect(FRAME)
    plan = session.explain("SELECT COUNT(*) FROM df", epsilon=1)
    assert (plan.neighbours, plan.measurements[0].l1) == ("replace-one", 1)
    assert session.budget.limit.epsilon == float("inf")
    assert session.budget.remaining.epsilon == float("inf")


@pytest.mark.parametrize("last", ["60000,abc,abc", "60000,7,abc,zzz,yyy", "60000,99999999999999999999,abc"])
def test_a_csv_file_is_read_to_its_end_at_connect(tmp_path: Path, last: str) -> None:
    """DuckDB guesses types from the first lines. A later line that did not fit failed every query, after its charge."""
    file, lines = tmp_path / "people.csv", ["id,x,s", *(f"{each},{each % 50},abc" for each in range(60_000))]
    file.write_text("\n".join([*lines, last]), encoding="utf-8")
    with pytest.raises(privsql.PrivsqlError, match="to its end") as refused:
        privsql.connect(file)
    assert refused.value.code == "source-file" and "abc" not in str(refused.value)
    file.write_text("\n".join(lines), encoding="utf-8")
    assert abs(ask(file, "SELECT COUNT(*) FROM people")[0][0] - 60_000) < 100


@pytest.mark.parametrize("type_", ["TIMESTAMPTZ", "INTEGER[]", "STRUCT(a INTEGER)"])
def test_a_table_of_unsupported_columns_can_be_counted(type_: str) -> None:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (x {type_}); INSERT INTO t SELECT NULL FROM range(30)")
    assert privsql.connect(connection).query("SELECT COUNT(*) FROM t", epsilon=5000).fetchall() == [(30,)]
