"""Prepared copies: what they store, when they are used, how they change answers, and what cannot be
prepared.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privsql
from tests.prepare.visits import (
    BY_STATE,
    POLICY,
    ROWS,
    STATES,
    VISITS,
    WRITTEN,
    change,
    copy_of,
    make,
    other,
    uses_copy,
    with_copies,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make(tmp_path / "clinic.duckdb")


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """A session in which visits are prepared, for tests that only ask."""
    path = make(tmp_path_factory.mktemp("clinic") / "clinic.duckdb")
    change(
        path,
        "CREATE TABLE regions AS FROM (VALUES ('CA', 'west'), ('NY', 'east'), ('NY', 'coast')) r(state, region)",
    )
    with privsql.connect(path, {"tables": {"visits": VISITS, "regions": {"public": True}}}) as session:
        session.prepare("visits")
        yield session


# -- what is stored ------------------------------------------------------------------------------------------
def test_the_copy_is_stored_beside_the_file_with_all_rows_that_have_a_unit(path):
    with privsql.connect(path, POLICY) as session:
        session.prepare("visits")
        name = copy_of(session.explain(BY_STATE, epsilon=1))
    plain, columns = with_copies(path), "user_id, state, amount, price, kind, day"
    kept = plain.execute(f'SELECT {columns} FROM privsql_prepared."{name}" ORDER BY ALL').fetchall()
    assert (
        kept
        == plain.execute(f"SELECT {columns} FROM visits WHERE user_id IS NOT NULL ORDER BY ALL").fetchall()
    )
    ranks = plain.execute(
        f'SELECT list_sort(list(privsql_rank)) FROM privsql_prepared."{name}" GROUP BY user_id'
    ).fetchall()
    assert all(list(range(1, len(each) + 1)) == each for (each,) in ranks)
    stored = plain.execute(f'SELECT privsql_rank FROM privsql_prepared."{name}"').fetchall()
    assert stored == sorted(stored), "in the order of ranks, so that DuckDB can skip the rest"
    names = [each for each, *_ in plain.execute(f'DESCRIBE privsql_prepared."{name}"').fetchall()]
    assert "privsql_unit" not in names, "whose a row is one of its columns says already"


@pytest.mark.slow
def test_another_process_uses_what_one_has_stored(path):
    with privsql.connect(path, POLICY) as session:
        session.prepare("visits")
    counted = "SELECT state, COUNT(*) AS n FROM visits GROUP BY state"
    program = f"""
import json, privsql
session = privsql.connect({str(path)!r}, {POLICY!r})
plan = session.explain({counted!r}, epsilon=1)
print(json.dumps([plan.sql, session.query({counted!r}, epsilon=10_000).fetchall()]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    sql, answer = json.loads(done.stdout)
    exact = dict(with_copies(path).execute(sql).fetchall())
    assert dict(answer) == {state: exact.get(state, 0) for state in [*STATES, None]}


def test_the_copy_has_the_files_read_permissions(path):
    path.chmod(0o640)
    with privsql.connect(path, POLICY) as session:
        session.prepare("visits")
    assert stat.S_IMODE(os.stat(f"{path}.prepared").st_mode) == 0o640
    assert sorted(each.name for each in path.parent.iterdir()) == ["clinic.duckdb", "clinic.duckdb.prepared"]


def test_several_tables_share_the_file(path):
    change(path, "CREATE TABLE calls AS SELECT user_id, amount AS minutes FROM visits")
    policy = {
        "tables": {"visits": VISITS, "calls": {"unit": "user_id", "columns": {"minutes": {"range": [0, 9]}}}}
    }
    with privsql.connect(path, policy) as session:
        session.prepare("visits")
        session.prepare("calls")
        assert uses_copy(session.explain(BY_STATE, epsilon=1))
        assert uses_copy(session.explain("SELECT SUM(minutes) FROM calls", epsilon=1))
        before = os.stat(f"{path}.prepared")
        session.prepare("visits")
        assert os.stat(f"{path}.prepared").st_ino == before.st_ino, "preparing again writes nothing"


def test_a_unit_reached_by_reference(path):
    change(path, """
        CREATE TABLE orders AS SELECT i::INTEGER AS oid, (i % 23)::INTEGER AS who FROM range(200) r(i);
        ALTER TABLE orders ADD PRIMARY KEY (oid);
        CREATE TABLE items AS SELECT (i % 230)::INTEGER AS oid, (i % 10)::INTEGER AS qty FROM range(3000) r(i);
    """)  # fmt: skip
    items = {"unit": "oid -> orders.oid", "max_rows": 7, "columns": {"qty": {"range": [0, 9]}}}
    with privsql.connect(path, {"tables": {"orders": {"unit": "who"}, "items": items}}) as session:
        session.prepare("items")
        plan = session.explain("SELECT COUNT(*) FROM items", epsilon=1)
        assert uses_copy(plan) and plan.measurements[0].l1 == 7
        assert session.query("SELECT COUNT(*) FROM items", epsilon=10_000).fetchall() == [(7 * 23,)]


def test_a_copy_for_another_unit_or_other_columns_is_not_used(path):
    def served(policy) -> bool:
        with privsql.connect(path, policy) as session:
            return uses_copy(session.explain(BY_STATE, epsilon=1))

    with privsql.connect(path, POLICY) as session:
        session.prepare("visits")
    assert not served(other(unit="day"))
    assert served(other(max_rows=5)), "limits are not part of the copy"
    change(path, "ALTER TABLE visits ADD COLUMN z INTEGER")
    assert not served(POLICY)


# -- what sums add up is stored too --------------------------------------------------------------------------
def stored_value(plan) -> bool:
    return (
        bool(re.search("privsql_value_[0-9a-f]{12}", plan.sql))
        and "abs(" not in plan.sql
        and "CASE" not in plan.sql
    )


def test_sums_of_declared_columns_are_computed_beforehand(session):
    for column in ("amount", "price"):
        for sql in (f"SELECT SUM({column}) FROM visits", f"SELECT state, AVG({column}) FROM visits GROUP BY state",
                    f"SELECT SUM({column}) FILTER (WHERE kind = 'a') FROM visits WHERE day > DATE '2024-01-09'"):  # fmt: skip
            assert stored_value(session.explain(sql, epsilon=1)), sql
        for sql in (f"SELECT SUM({column} + 1) FROM visits", f"SELECT SUM({column}) FROM visits WHERE {column} < 5",
                    f"SELECT SUM(c) FROM (SELECT {column} AS c FROM visits)"):  # fmt: skip
            plan = session.explain(sql, epsilon=1)
            assert uses_copy(plan) and not stored_value(plan), f"{sql}: another value, or under another name"


def test_stored_values_equal_computed_ones(tmp_path):
    """Of people with few rows nothing is left out, so that the sums from a copy are those without."""
    path, double = (
        tmp_path / "x.duckdb",
        "[NULL, 'nan', 'inf', '-inf', '-0.0', '0.0', '7.35', '1e300', '-3', '10']",
    )
    change(path, f"""
        CREATE TABLE visits AS SELECT i // 2 AS user_id, ({double})[1 + i % 10]::DOUBLE AS price,
            (i * 7 % 130 - 10)::INTEGER AS amount, (i % 300)::DECIMAL(6, 2) / 7 AS fee,
            CASE WHEN i % 4 > 0 THEN i * 1_000_000_007 END AS large FROM range(400) r(i)
    """)  # fmt: skip
    columns = {"price": [0, 9], "amount": [-5, 99], "fee": [1, 30], "large": [-7, 10**11]}
    policy = {
        "tables": {
            "visits": {
                "unit": "user_id",
                "columns": {name: {"range": ends} for name, ends in columns.items()},
            }
        }
    }
    asked = [f"SELECT {function}({name}) FROM visits" for name in columns for function in ("SUM", "AVG")]
    with privsql.connect(path, policy) as session:
        session.prepare("visits")
        for sql in asked:
            plan, plain = session.explain(sql, epsilon=1), session.explain(sql, epsilon=1, prepared=False)
            assert stored_value(plan)
            assert session._pipeline.engine.read_public(plan.sql) == session._pipeline.engine.read_public(
                plain.sql
            ), sql


def test_another_range_is_computed_until_stored(path):
    with privsql.connect(path, POLICY) as session:
        session.prepare("visits")
    with privsql.connect(path, other(columns={"amount": {"range": [0, 50]}})) as session:
        sql = "SELECT SUM(amount) FROM visits"
        plan = session.explain(sql, epsilon=1)
        assert uses_copy(plan) and not stored_value(plan) and plan.measurements[0].l1 == 150
        exact = session._pipeline.engine.read_public(plan.sql)
        session.prepare("visits")
        plan = session.explain(sql, epsilon=1)
        assert stored_value(plan) and session._pipeline.engine.read_public(plan.sql) == exact


# -- when it is used -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sql", "l1", "linf"),
    [
        ("SELECT COUNT(*) FROM visits", 3, 3),
        ("SELECT COUNT(*) FROM visits WHERE amount > 50", 3, 3),
        ("SELECT state, COUNT(*) FROM visits GROUP BY state", 12, 6),
        ("SELECT SUM(amount) FROM visits", 297, 297),
        ("SELECT COUNT(DISTINCT amount) FROM visits", 3, 3),
        ("SELECT kind, COUNT(*) FROM visits GROUP BY kind", 8, 4),
        ("SELECT state FROM visits GROUP BY state ORDER BY COUNT(*) DESC LIMIT 1", 6, 3),
        ("SELECT k, COUNT(*) FROM (UNPIVOT visits ON amount, user_id INTO NAME k VALUE v) GROUP BY k", 6, 3),
        ("SELECT region, COUNT(*), SUM(amount) FROM visits JOIN regions USING (state) GROUP BY region", 891, 297),
    ],
)  # fmt: skip
def test_queries_that_use_a_copy(session, sql, l1, linf):
    """The noise is never more than without it."""
    plan, plain = session.explain(sql, epsilon=1), session.explain(sql, epsilon=1, prepared=False)
    assert uses_copy(plan) and not uses_copy(plain)
    measurement = plan.measurements[0]
    assert (measurement.l1, measurement.linf) == (l1, linf)
    assert measurement.l1 <= plain.measurements[0].l1 and measurement.scale <= plain.measurements[0].scale
    session.query(sql, epsilon=1)


@pytest.mark.parametrize(
    ("sql", "named", "why"),
    [
        ("SELECT COUNT(DISTINCT user_id) FROM visits WHERE amount > 50", {}, "each unit counts once"),
        (
            "SELECT COUNT(DISTINCT user_id) FILTER (WHERE amount > 50) FROM visits",
            {},
            "each unit counts once",
        ),
        ("SELECT COUNT(*), COUNT(DISTINCT user_id) FROM visits", {}, "each unit counts once"),
        (
            "SELECT state, COUNT(DISTINCT user_id), COUNT(*) FROM visits GROUP BY state",
            {},
            "each unit counts once",
        ),
        ("SELECT AVG(c) FROM (SELECT user_id, COUNT(*) AS c FROM visits GROUP BY user_id)", {}, ""),
        ("SELECT COUNT(*) FROM visits a JOIN visits b USING (user_id)", {}, "the query joins"),
        (
            "SELECT COUNT(*) FROM (SELECT amount FROM visits UNION ALL SELECT amount FROM visits)",
            {},
            "the query joins",
        ),
        ("SELECT day, COUNT(*) FROM visits GROUP BY day", {"delta": 1e-6}, ""),
        ("SELECT COUNT(*) FROM visits", {"prepared": False}, ""),
    ],
)
def test_queries_that_do_not_use_a_copy(session, sql, named, why):
    plan = session.explain(sql, epsilon=1, **named)
    assert not uses_copy(plan)
    said = [each.split(": ")[1] for each in plan.notes if "the copy of visits is not used" in each]
    assert len(said) == bool(why) and all(each.startswith(why) for each in said)
    session.query(sql, epsilon=1, **named)


def test_a_limit_beyond_the_largest_rank_uses_no_copy(path):
    with privsql.connect(path, other(max_groups=1, max_rows=65_535)) as session:
        session.prepare("visits")
        assert not uses_copy(session.explain("SELECT COUNT(*) FROM visits", epsilon=1))
        assert uses_copy(session.explain("SELECT COUNT(*) FROM visits", epsilon=1, max_rows=65_534))


def test_ranks_beyond_the_largest_are_merged():
    frame = pd.DataFrame(
        {"user_id": np.zeros(70_000, dtype=np.int32), "x": np.arange(70_000, dtype=np.int32)}
    )
    with privsql.connect({"t": frame}, {"tables": {"t": {"unit": "user_id", "max_rows": 65_534}}}) as session:
        session.prepare("t")
        plan = session.explain("SELECT COUNT(*) FROM t", epsilon=1)
        assert session._pipeline.engine.read_public(plan.sql) == [(65_534,)]


def test_the_explanation_names_the_step_and_what_it_loses(session):
    shown = str(session.explain(f"{BY_STATE.replace('GROUP', 'WHERE amount < 9 GROUP')}", epsilon=1))
    assert "Keep at most 6 rows per unit, by a stored rank: 6 rows per person" in shown
    assert "chosen before WHERE" in shown and "prepared=False" in shown
    assert "answers are low where people exceed these limits" in shown
    assert "chosen before WHERE" not in str(session.explain(BY_STATE, epsilon=1))
    assert "stored rank" not in str(session.explain(BY_STATE, epsilon=1, prepared=False))


# -- other sources -------------------------------------------------------------------------------------------
def frame(rows: int = 500) -> pd.DataFrame:
    return duckdb.sql(ROWS.format(rows=rows)).df().drop(columns="unusable")


@pytest.mark.parametrize("kind", ["pandas", "arrow", "polars", "dict"])
def test_frames_can_be_prepared(kind):
    """A session is about a frame as it was when it was given; so is the copy, which nothing can outdate."""
    made = frame()
    match kind:
        case "arrow":
            source = {"visits": pa.Table.from_pandas(made)}
        case "polars":
            source = {"visits": pl.from_pandas(made)}
        case _:
            source = {"visits": made, **({"other": made} if kind == "dict" else {})}
    session = privsql.connect(source, POLICY)
    session.prepare("visits")
    before = session.explain(BY_STATE, epsilon=1)
    assert uses_copy(before)
    exact = sorted(session._pipeline.engine.read_public(before.sql), key=str)
    made.loc[:, "amount"] = 0
    assert (
        sorted(session._pipeline.engine.read_public(session.explain(BY_STATE, epsilon=1).sql), key=str)
        == exact
    )
    if kind in (
        "pandas",
        "dict",
    ):  # pandas copies what it writes to; what else shares its memory it does not know
        plain = session.explain("SELECT SUM(amount) FROM visits", epsilon=1, prepared=False)
        assert session._pipeline.engine.read_public(plain.sql)[0][0] > 0


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_parquet_and_csv_files_can_be_prepared(tmp_path, suffix):
    def write(made: pd.DataFrame) -> None:
        made.to_parquet(file) if suffix == "parquet" else made.to_csv(file, index=False)

    file = tmp_path / f"visits.{suffix}"
    write(frame())
    session = privsql.connect(file, POLICY)
    session.prepare("visits")
    assert uses_copy(session.explain(BY_STATE, epsilon=1))
    assert [each.name for each in tmp_path.iterdir()] == [file.name], "kept in memory"
    write(frame())
    if suffix == "csv":  # it was read into a table of our own, which nobody writes to
        assert uses_copy(session.explain(BY_STATE, epsilon=1))
        return
    assert WRITTEN in str(session.explain(BY_STATE, epsilon=1)), "written to, if the same again"
    session.prepare("visits")
    assert uses_copy(session.explain(BY_STATE, epsilon=1))


def test_preparing_works_within_a_memory_limit(tmp_path):
    caller = duckdb.connect(str(tmp_path / "large.duckdb"), config={"threads": "2"})
    caller.execute(f"CREATE TABLE visits AS SELECT * EXCLUDE unusable FROM ({ROWS.format(rows=300_000)})")
    caller.execute("SET memory_limit = '40MB'")
    session = privsql.connect(caller, POLICY)
    session.prepare("visits")
    plan = session.explain("SELECT COUNT(*) FROM visits", epsilon=1)
    assert uses_copy(plan)
    units = caller.execute("SELECT count(DISTINCT user_id) FROM visits").fetchone()[0]
    assert caller.execute(plan.sql).fetchone() == (3 * units,)


# -- mistakes ------------------------------------------------------------------------------------------------
def test_sources_that_cannot_be_prepared_are_refused(path):
    codes = {"vists": "name-table", None: "name-table", "people": "argument-prepare", "notes": "argument-prepare",
             "codes": "argument-prepare", "ranked": "source-columns"}  # fmt: skip
    change(path, """
        CREATE TABLE people (id INTEGER PRIMARY KEY, age INTEGER); CREATE TABLE notes (x INTEGER);
        CREATE TABLE codes (x INTEGER); CREATE TABLE ranked (u INTEGER, privsql_rank INTEGER);
    """)  # fmt: skip
    policy = {
        "tables": {
            "visits": VISITS,
            "people": {"unit": "id"},
            "codes": {"public": True},
            "ranked": {"unit": "u"},
        }
    }
    with privsql.connect(path, policy) as session:
        for table, code in codes.items():
            with pytest.raises(privsql.PrivsqlError) as caught:
                session.prepare(table)
            assert caught.value.code == code and caught.value.suggestion


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(path):
    path.parent.chmod(0o500)
    try:
        with privsql.connect(path, POLICY) as session, pytest.raises(privsql.PrivsqlError) as caught:
            session.prepare("visits")
        assert caught.value.code == "source-prepare"
    finally:
        path.parent.chmod(0o700)


def test_a_broken_copy_is_ignored(path):
    Path(f"{path}.prepared").write_bytes(b"no database at all")
    with privsql.connect(path, POLICY) as session:
        assert not uses_copy(session.explain(BY_STATE, epsilon=1))
        session.query(BY_STATE, epsilon=1)
        session.prepare("visits")
        assert uses_copy(session.explain(BY_STATE, epsilon=1))


def test_analysts_cannot_name_the_copy(session):
    name = copy_of(session.explain(BY_STATE, epsilon=1))
    value = session.explain(BY_STATE, epsilon=1).sql.split('"privsql_value_')[1].split('"')[0]
    for sql in (f'SELECT COUNT(*) FROM privsql_prepared.main."{name}"', f'SELECT COUNT(*) FROM "{name}"',
                f'SELECT COUNT(*) FROM privsql_prepared.main."{name}_by_rank"',
                "SELECT COUNT(*) FROM visits WHERE privsql_rank = 1",
                f"SELECT SUM(privsql_value_{value}) FROM visits"):  # fmt: skip
        with pytest.raises(privsql.SqlError):
            session.explain(sql, epsilon=1)
