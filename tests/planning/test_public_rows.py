"""If all neighbours have equally many rows, their number is released almost exactly, and reduces other
noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import duckdb
import numpy as np
import pytest

import privsql
from privsql.planning.aggregates.estimate import ALL_ROWS, PARTS_OF_A_ROW
from privsql.planning.pricing import SLIVER

ROWS = 500
COLUMNS = {
    "x": {"range": [10, 110]},
    "z": {"range": [0, 20]},
    "k": {"values": ["a", "b"]},
    "f": {"range": [-1, 3]},
}
POLICY = {
    "tables": {
        "t": {"columns": COLUMNS},
        "u": {"unit": "who", "columns": COLUMNS},
        "shown": {"columns": COLUMNS},
    },
    "neighbours": "replace-one",
}


@pytest.fixture(scope="module")
def data() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    columns = "who INTEGER UNIQUE, x INTEGER NOT NULL, z INTEGER, k VARCHAR NOT NULL, f DOUBLE NOT NULL"
    for name in ("t", "u"):
        connection.execute(f"CREATE TABLE {name} ({columns})")
        connection.execute(
            f"INSERT INTO {name} SELECT i, 10 + i * 7 % 40, i % 20, ['a', 'b'][1 + i % 2], (i % 9) / 9.0 FROM range({ROWS}) r(i)"
        )
    connection.execute("CREATE VIEW shown AS SELECT * FROM t WHERE x > 20")
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def session(data: duckdb.DuckDBPyConnection) -> privsql.Session:
    return privsql.connect(data, policy=POLICY)


def uses_public_rows(session: privsql.Session, sql: str, **options: float) -> bool:
    plan = session.explain(sql, epsilon=1.0, **options)
    return any(ALL_ROWS in each.columns for each in plan.measurements)


@pytest.mark.parametrize(
    "what",
    [
        "AVG(x)", "AVG(x), SUM(x)", "COUNT(*), SUM(x)", "AVG(f), AVG(x)", "VAR_POP(x)", "STDDEV(f), AVG(f)", "AVG(x), MEDIAN(x)",
        "AVG(COALESCE(z, 0))", "AVG(CASE WHEN z > 3 THEN 1.0 ELSE 0 END)", "COUNT(*) FILTER (WHERE x > 20) / COUNT(*)",
    ],
)  # fmt: skip
def test_the_public_row_count_applies_to_whole_tables(session: privsql.Session, what: str) -> None:
    plan = session.explain(f"SELECT {what} FROM t", epsilon=1.0)
    (rows,) = (each for each in plan.measurements if ALL_ROWS in each.columns)
    assert rows.loss == SLIVER
    assert sum(each.loss for each in plan.measurements) == 1
    assert "the number of rows is public" in str(plan)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(z) FROM t",  # NULL is left out
        "SELECT VAR_POP(z) FROM t",
        "SELECT COUNT(*) FILTER (WHERE x > 20) / COUNT(z) FROM t",
        "SELECT AVG(x) FROM t WHERE x > 20",
        "SELECT AVG(x) FROM t WHERE z IS NOT NULL",
        "SELECT AVG(x) FILTER (WHERE k = 'a') FROM t",
        "SELECT VAR_POP(x) FILTER (WHERE k = 'a') FROM t",
        "SELECT k, AVG(x) FROM t GROUP BY k",
        "SELECT k, AVG(x) FROM t GROUP BY ROLLUP (k)",
        "SELECT k, VAR_POP(x) FROM t GROUP BY k",
        "SELECT AVG(x) FROM (SELECT x FROM t UNION ALL SELECT x FROM t)",
        "SELECT AVG(v) FROM (UNPIVOT (SELECT x, z FROM t) ON x, z INTO NAME n VALUE v)",
        "SELECT AVG(x) FROM u",  # who is unique, but may be NULL
        "SELECT AVG(COALESCE(x, 10)) FROM shown",  # a view may leave rows out
        "SELECT COUNT(*) FROM t",  # by itself it is noised as ever
        "SELECT SUM(x) FROM t",
    ],
)
def test_a_variable_row_count_is_not_public(session: privsql.Session, sql: str) -> None:
    assert not uses_public_rows(session, sql)


@pytest.mark.parametrize(
    "what", ["AVG(x)", "VAR_POP(x)", "COUNT(*), SUM(x)", "COUNT(*) FILTER (WHERE x > 20) / COUNT(*)"]
)
def test_the_row_count_is_private_under_add_remove(data: duckdb.DuckDBPyConnection, what: str) -> None:
    assert not uses_public_rows(
        privsql.connect(data, policy=POLICY | {"neighbours": "add-remove"}), f"SELECT {what} FROM t"
    )


def test_one_row_replaced_moves_the_rest_alone(
    data: duckdb.DuckDBPyConnection, session: privsql.Session
) -> None:
    """The statements themselves, over all pairs of what one row may be."""
    plan = session.explain("SELECT AVG(x), VAR_POP(f), COUNT(*) FROM t", epsilon=1.0)
    cursor, found = data.cursor(), []
    for x, f in itertools.product((-5, 10, 60, 110, 999), (-9.0, -1.0, 0.0, 1.0, 2.0, 3.0, math.nan)):
        cursor.execute("BEGIN")
        cursor.execute("UPDATE t SET x = ?, f = ? WHERE who = 7", [x, f])
        found.append(cursor.execute(plan.sql).fetchall()[0])
        cursor.execute("ROLLBACK")
    names = [column for each in plan.measurements for column in each.columns]
    for measurement in plan.measurements:
        cells = [[row[names.index(column)] for column in measurement.columns] for row in found]
        worst = max(
            sum(abs(a - b) for a, b in zip(one, two, strict=True))
            for one, two in itertools.combinations(cells, 2)
        )
        assert worst <= (0 if ALL_ROWS in measurement.columns else measurement.l1)
        assert ALL_ROWS in measurement.columns or worst > 0.8 * measurement.l1


@pytest.mark.parametrize("steps", [1, 2, 7, 40, 128])
def test_moments_move_by_nine_eighths_at_most(steps: int) -> None:
    moments = [(steps * h, 2 * h * (steps - h)) for h in range(steps + 1)]
    worst = max(abs(a[0] - b[0]) + abs(a[1] - b[1]) for a in moments for b in moments)
    assert Fraction(worst, steps**2) <= Fraction(9, 8)
    assert steps % 4 or Fraction(worst, steps**2) == Fraction(9, 8)


ANSWERS = 300


@pytest.mark.slow
def test_noise_is_that_of_the_sum_alone(data: duckdb.DuckDBPyConnection, session: privsql.Session) -> None:
    """Mean |Laplace| is its scale, of 300 with a deviation of 1 / sqrt(300): seven of them are passed with a chance of 2e-10
    (the Gamma law; six with 3e-8), and what AVG used to have, twice as much, is far beyond."""
    sql = "SELECT AVG(x) AS a, COUNT(*) AS n, SUM(x) AS s, AVG(x) BETWEEN 10 AND 110 AS inside FROM t"
    average, total = data.execute("SELECT AVG(x), SUM(x) FROM t").fetchall()[0]
    found = [session.query(sql, epsilon=0.5, fresh=True).fetchall()[0] for _ in range(ANSWERS)]
    scale = 100 / (0.5 * (1 - float(SLIVER)))
    for errors in (
        [abs(s - total) for _, _, s, _ in found],
        [abs(a - average) * ROWS for a, _, _, _ in found],
    ):
        assert abs(np.mean(errors) / scale - 1) < 7 / math.sqrt(ANSWERS)
    assert all(n == ROWS for _, n, _, _ in found)  # off by one with a chance below exp(-4000)


@pytest.mark.slow
def test_intervals_cover_as_often_as_they_say(
    data: duckdb.DuckDBPyConnection, session: privsql.Session
) -> None:
    sql = "SELECT AVG(x) AS a, VAR_POP(f) AS v, STDDEV_SAMP(f) AS d, COUNT(*) FILTER (WHERE x > 20) / COUNT(*) AS p FROM t"
    exact = dict(zip("avdp", data.execute(sql).fetchall()[0], strict=True))
    low, covered, widths = 0.8, dict.fromkeys("avdp", 0), dict.fromkeys("avdp", 0.0)
    for _ in range(ANSWERS):
        frame = session.query(sql, epsilon=1.0, fresh=True).intervals(low)
        for name in exact:
            ends = frame[f"{name}_low"].iloc[0], frame[f"{name}_high"].iloc[0]
            covered[name] += int(ends[0] - 1e-6 <= exact[name] <= ends[1] + 1e-6)
            widths[name] += (ends[1] - ends[0]) / ANSWERS
    least = ANSWERS * low - 6 * math.sqrt(ANSWERS * low * (1 - low))
    assert all(each >= least for each in covered.values()), covered
    assert covered["a"] < ANSWERS * 0.8 + 6.5 * math.sqrt(ANSWERS * 0.16)  # and hardly wider than that
    assert 0 < widths["v"] < 4


def test_the_row_count_keeps_its_share_under_gaussian_noise_and_weights(session: privsql.Session) -> None:
    plan = session.explain(
        "SELECT AVG(x) AS a, VAR_POP(f) AS v FROM t", epsilon=1.0, delta=1e-6, mechanism="gaussian"
    )
    assert plan.measurements[-1].columns == (ALL_ROWS,)
    assert plan.measurements[-1].loss == SLIVER
    assert plan.epsilon <= 1.0
    weighed = session.explain("SELECT AVG(x) AS a, VAR_POP(f) AS v FROM t", epsilon=1.0, weights={"a": 3})
    assert [each.loss / (1 - SLIVER) for each in weighed.measurements[:2]] == [Fraction(1, 4), Fraction(3, 4)]


def test_an_empty_table(session: privsql.Session) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (x INTEGER NOT NULL)")
        empty = privsql.connect(connection, policy={"tables": {"t": {"columns": {"x": {"range": [0, 10]}}}}})
        sql = "SELECT AVG(x) AS a, COUNT(*) AS n, VAR_SAMP(x) AS v FROM t"
        answer = empty.query(sql, epsilon=1.0, show_all=True)
        ((average, rows, variance),) = answer.fetchall()
        assert 0 <= average <= 10 and rows == 0 and 0 <= variance <= 50
        assert answer.intervals()["v_high"].iloc[0] >= 25
        assert empty.query(sql, epsilon=1.0).fetchall() == [(None, 0, None)]


def test_fractions_of_a_row_fit_into_integers() -> None:
    assert PARTS_OF_A_ROW * 10**10 < 2**60


def test_answers_are_correct_for_all_ranges_and_steps(
    data: duckdb.DuckDBPyConnection, session: privsql.Session
) -> None:
    for what in (
        "AVG(f)",
        "AVG(x)",
        "AVG(f), SUM(f)",
        "COUNT(*), SUM(f)",
        "COUNT(*), SUM(x)",
        "VAR_POP(f), AVG(f)",
    ):
        sql = f"SELECT {what} FROM t"
        assert uses_public_rows(session, sql)
        (found,), (true,) = session.query(sql, epsilon=9000).fetchall(), data.execute(sql).fetchall()
        assert found == pytest.approx(true, rel=1e-3)
