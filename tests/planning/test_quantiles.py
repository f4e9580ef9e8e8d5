"""Medians, quantiles, MIN and MAX from the query to the answer: near their ranks, of every type, by key and by unit."""

# ruff: noqa: E501 -- questions read better in one line each
from __future__ import annotations

import datetime as dt
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privsql
from privsql.analysis.domain import Domain
from privsql.audit.falsify import run_exactly
from privsql.planning.grids.value_grid import MOST_STEPS, value_grid
from privsql.types import BIGINT, DATE, DOUBLE, TIMESTAMP, Type, decimal, integer

ROWS = 4000
POLICY: dict[str, Any] = {
    "tables": {
        "people": {
            "columns": {
                "age": {"range": [0, 120]},
                "income": {"range": [0, 5000]},
                "price": {"range": [0, 400]},
                "team": {"values": ["a", "b", "c"]},
                "born": {"range": ["1900-01-01", "2024-12-31"]},
                "seen": {"range": ["2024-01-01", "2024-12-31"]},
            }
        }
    }
}


@pytest.fixture(scope="module")
def people() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    connection.execute(f"""
        CREATE TABLE people AS SELECT
            (i * 7919 % 90)::INTEGER AS age, (i * 104729 % 100003) / 100.0::DOUBLE AS income, (i * 31 % 30001 / 100)::DECIMAL(8, 2) AS price,
            ['a', 'b', 'b', 'a'][1 + i % 4] AS team, DATE '1940-01-01' + (i * 53 % 20000)::INTEGER AS born,
            TIMESTAMP '2024-02-01' + to_seconds(i * 25999 % 2000000) AS seen, CASE WHEN i % 3 > 0 THEN i % 50 END AS maybe
        FROM range({ROWS}) r(i)""")
    return connection


@pytest.fixture(scope="module")
def session(people: duckdb.DuckDBPyConnection) -> privsql.Session:
    return privsql.connect(people, policy=POLICY)


def rank_error(
    people: duckdb.DuckDBPyConnection, column: str, value: Any, target: float, where: str = "TRUE"
) -> float:
    """How many rows a value is away from a rank, ties aside."""
    ((below, up_to),) = people.execute(
        f"SELECT count(*) FILTER (WHERE {column} < ?), count(*) FILTER (WHERE {column} <= ?) FROM people WHERE {where}",
        [value, value],
    ).fetchall()
    return max(0.0, below - target, target - up_to)


# --- near their ranks, as far as plan.accuracy says ---

NUMBERS = {"age": 121, "income": 500_001, "price": 40_001, "born": 45_656, "seen": 525_601}


@pytest.mark.parametrize("column", NUMBERS)
@pytest.mark.parametrize("fraction", [0.5, 0.3, 0.97])
def test_a_quantile_is_near_its_rank(
    people: duckdb.DuckDBPyConnection, session: privsql.Session, column: str, fraction: float
) -> None:
    answer = session.query(
        f"SELECT quantile_disc({column}, {fraction}) AS q FROM people", epsilon=1.0, fresh=True
    )
    ((value,),) = answer.fetchall()
    (measurement,) = answer.plan.measurements
    search = measurement.search
    assert search is not None
    assert search.points <= MOST_STEPS + 1
    target = min(fraction * ROWS, ROWS - search.steps[0].margin)
    # the bound at 1e-9 holds with that chance; what is typical is a fifth of it
    step = 1e-9
    assert rank_error(people, column, value, target) <= search.rank_error(0, 1 - step)
    assert search.rank_error(0, 1 - step) < (
        220 if search.steps[0].lean else 80
    )  # (ln weights + ln 1e9) * 2 / epsilon at most


@pytest.mark.slow
def test_rank_bounds_have_their_stated_coverage(
    people: duckdb.DuckDBPyConnection, session: privsql.Session
) -> None:
    sql = "SELECT quantile_cont(income, [0.25, 0.5, 0.75]) AS q, MAX(income) AS m FROM people"
    errors: list[list[float]] = [[] for _ in range(4)]
    for _ in range(60):
        answer = session.query(sql, epsilon=2.0, fresh=True)
        ((quartiles, most),) = answer.fetchall()
        search = answer.plan.measurements[0].search
        assert search is not None
        targets = [0.25 * ROWS, 0.5 * ROWS, 0.75 * ROWS, ROWS - search.steps[3].margin]
        for place, value in enumerate([*quartiles, most]):
            errors[place].append(rank_error(people, "income", value, targets[place]))
    for place, found in enumerate(errors):
        bound = search.rank_error(place, 0.5, ROWS)
        # at a level of 50% more than 57 of 60 past the bound would have a chance below 1e-13
        assert sum(error <= bound for error in found) > 3
        assert np.mean(found) < bound


@pytest.mark.slow
def test_more_epsilon_gives_smaller_errors(
    people: duckdb.DuckDBPyConnection, session: privsql.Session
) -> None:
    def mean(epsilon: float) -> float:
        values = [
            session.query("SELECT MEDIAN(income) AS m FROM people", epsilon=epsilon, fresh=True).fetchall()[
                0
            ][0]
            for _ in range(40)
        ]
        return float(np.mean([rank_error(people, "income", value, ROWS / 2) for value in values]))

    near, far = mean(2.0), mean(0.02)
    assert near < 12  # about 1/rate = 1
    assert far > 5 * near


# --- types ---


def test_types_are_those_of_duckdb(people: duckdb.DuckDBPyConnection, session: privsql.Session) -> None:
    shown = {
        "MEDIAN(age)": float, "quantile_disc(age, 0.5)": int, "MIN(age)": int, "quantile_cont(age, 0.5)": float, "MEDIAN(income)": float,
        "MEDIAN(born)": pd.Timestamp, "quantile_disc(born, 0.5)": dt.date, "MAX(born)": dt.date, "MEDIAN(seen)": pd.Timestamp, "MIN(seen)": pd.Timestamp,
        "MAX(price)": float, "MEDIAN(price)": float,
    }  # fmt: skip
    for text, kind in shown.items():
        answer = session.query(f"SELECT {text} AS x FROM people", epsilon=5.0)
        ((value,),) = answer.fetchall()
        assert isinstance(value, kind), text
        theirs = people.execute(f"SELECT {text} FROM people").description[0][1]
        assert str(answer.plan.outputs[0].expression.type) == str(theirs), text


def test_grids_have_steps_that_people_would_choose() -> None:
    def grid(type_: Type, low: Any, high: Any) -> Any:
        return value_grid(type_, Domain(type_, low=low, high=high))

    assert grid(integer(0, 120), Fraction(0), Fraction(120)).text == "[0, 120]"
    assert (
        grid(BIGINT, Fraction(10**9), Fraction(10**9 + 100)).points == 101
    )  # the width counts, not the size
    wide = grid(BIGINT, Fraction(-3), Fraction(10**9))
    assert (wide.step, wide.low, wide.points <= MOST_STEPS + 2) == (1000, -1000, True)
    fine = grid(DOUBLE, Fraction(0), Fraction(1000))
    assert (fine.step, fine.points, fine.text) == (
        Fraction(1, 1000),
        1_000_001,
        "[0, 1000] on a grid of 0.001",
    )
    assert grid(DOUBLE, Fraction(10**15), Fraction(10**15 + 1)).step >= Fraction(
        1, 8
    )  # doubles tell no more apart
    assert grid(DOUBLE, Fraction(7), Fraction(7)).points == 1
    assert grid(decimal(8, 2), Fraction(0), Fraction(400)).text == "[0, 400] on a grid of 0.01"
    assert grid(DATE, dt.date(2024, 1, 1), dt.date(2024, 12, 31)).points == 366
    year = grid(TIMESTAMP, dt.datetime(2024, 1, 1), dt.datetime(2024, 12, 31))
    assert year.text == "[2024-01-01 00:00:00, 2024-12-31 00:00:00] on a grid of 60 seconds"
    assert grid(TIMESTAMP, dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 1)).step == 1
    assert grid(TIMESTAMP, dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)).points <= MOST_STEPS + 2


@pytest.mark.parametrize(
    ("type_", "values", "expected"),
    [
        (
            "DOUBLE",
            "(NULL), ('nan'::DOUBLE), ('inf'::DOUBLE), ('-inf'::DOUBLE), (-7.0), (3.25), (1e300)",
            {"0": 2, "325": 1, "1000": 3},
        ),
        (
            "BIGINT",
            "(NULL), (-9223372036854775808), (9223372036854775807), (3), (3)",
            {"0": 1, "3": 2, "10": 1},
        ),
        (
            "HUGEINT",
            "(170141183460469231731687303715884105727), (5), (-170141183460469231731687303715884105727)",
            {"0": 1, "5": 1, "10": 1},
        ),
        ("UBIGINT", "(18446744073709551615), (5), (NULL)", {"5": 1, "10": 1}),
        ("TINYINT", "(-128), (127), (5)", {"0": 1, "5": 1, "10": 1}),
        (
            "DECIMAL(38, 1)",
            "(9999999999999999999999999999999999999.9), (5.5), (-1.0)",
            {"0": 1, "55": 1, "100": 1},
        ),
    ],
)
def test_values_are_clamped_and_null_is_not_counted(
    type_: str, values: str, expected: dict[str, int]
) -> None:
    connection = duckdb.connect(":memory:")
    connection.execute(f"CREATE TABLE t (x {type_}); INSERT INTO t VALUES {values}")
    plan = privsql.connect(
        connection, policy={"tables": {"t": {"columns": {"x": {"range": [0, 10]}}}}}
    ).explain("SELECT MEDIAN(x) FROM t", epsilon=1)
    rows = connection.execute(plan.sql).fetchall()
    points = plan.measurements[0].search.points  # type: ignore[union-attr]
    scale = (points - 1) // 10
    found = dict(rows)
    wanted = {"DOUBLE": {0: 2, round(3.25 * scale): 1, points - 1: 3}}.get(
        type_, {int(k): v for k, v in expected.items()}
    )
    assert found == wanted


def test_infinite_dates_are_clamped() -> None:
    connection = duckdb.connect(":memory:")
    connection.execute("CREATE TABLE t (d DATE, m TIMESTAMP)")
    connection.execute(
        "INSERT INTO t VALUES ('infinity', 'infinity'), ('-infinity', '-infinity'), ('2024-01-05', '2024-01-05 12:00:00'), (NULL, NULL)"
    )
    connection.execute("INSERT INTO t VALUES ('0044-03-15 (BC)', '0044-03-15 (BC) 00:00:00')")
    ends = {"range": ["2024-01-01", "2024-01-11"]}
    session = privsql.connect(connection, policy={"tables": {"t": {"columns": {"d": ends, "m": ends}}}})
    days = session.explain("SELECT MEDIAN(d) FROM t", epsilon=1)
    assert sorted(connection.execute(days.sql).fetchall()) == [(0, 2), (4, 1), (10, 1)]
    moments = session.explain("SELECT MEDIAN(m) FROM t", epsilon=1)
    ((low, two), (_, one), (high, other)) = sorted(connection.execute(moments.sql).fetchall())
    assert (low, two, one, other, high) == (0, 2, 1, 1, moments.measurements[0].search.points - 1)  # type: ignore[union-attr]
    ((median, most),) = session.query("SELECT MEDIAN(d), MAX(m) FROM t", epsilon=5, show_all=True).fetchall()
    assert dt.datetime(2024, 1, 1) <= median <= dt.datetime(2024, 1, 11)
    assert dt.datetime(2024, 1, 1) <= most <= dt.datetime(2024, 1, 11)


# --- keys, filters, lists, what stands above ---


def test_every_key_has_its_own_quantile(people: duckdb.DuckDBPyConnection, session: privsql.Session) -> None:
    answer = session.query(
        "SELECT team, MEDIAN(income) AS m, COUNT(*) AS n, MIN(age) FILTER (WHERE age > 30) AS low FROM people GROUP BY team",
        epsilon=20.0,
    )
    rows = {row[0]: row[1:] for row in answer.fetchall()}
    assert set(rows) == {"a", "b", "c", None}
    assert answer.plan.keys == ["team"]
    for team in ("a", "b"):
        assert rank_error(people, "income", rows[team][0], 0.25 * ROWS, f"team = '{team}'") < 40
        assert abs(rows[team][1] - ROWS / 2) < 40
        assert 31 <= rows[team][2] <= 36
    assert (
        rows["c"][0] is None or 0 <= rows["c"][0] <= 5000
    )  # nobody: one time in twenty, at most, any point of the range
    assert len(answer.plan.runs) == 3


def test_several_quantiles_rise_and_are_lists_of_numbers(session: privsql.Session) -> None:
    answer = session.query(
        "SELECT team, quantile_cont(income, [0.75, 0.25, 0.5]) AS q, COUNT(*) AS n FROM people GROUP BY team ORDER BY n",
        epsilon=1.0,
    )
    for team, quartiles, _ in answer.fetchall():
        if team in ("c", None) and quartiles is None:
            continue  # too few rows
        assert isinstance(quartiles, list)
        assert all(isinstance(each, float) for each in quartiles)
        high, low, middle = quartiles
        assert low <= middle <= high
    assert answer.df()["q"].dropna().map(type).eq(list).all()
    assert str(answer.arrow().schema.field("q").type).startswith("list<")
    assert "q_low" not in answer.intervals()
    assert "q" in str(answer)
    moments = session.query(
        "SELECT quantile_disc(born, [0.25, 0.75]) AS q FROM people", epsilon=5.0
    ).fetchall()[0][0]
    assert all(isinstance(each, dt.date) for each in moments)
    seen = session.query("SELECT quantile_cont(seen, [0.25, 0.75]) AS q FROM people", epsilon=5.0).fetchall()[
        0
    ][0]
    assert all(isinstance(each, dt.datetime) for each in seen)


def test_post_processing_of_quantiles_works(session: privsql.Session) -> None:
    sql = "SELECT team, MEDIAN(income) / 2 AS half FROM people GROUP BY team HAVING MEDIAN(income) > 100 ORDER BY half DESC LIMIT 2"
    answer = session.query(sql, epsilon=20.0)
    halves = [half for _, half in answer.fetchall()]
    assert halves == sorted(halves, reverse=True)
    assert len(halves) <= 2
    assert (answer.intervals()["half_low"] == 0).all()
    assert (answer.intervals()["half_high"] == 2500).all()
    ((inner,),) = session.query(
        "SELECT m + 1 AS x FROM (SELECT MEDIAN(age) AS m FROM people)", epsilon=20.0
    ).fetchall()
    assert 40 <= inner <= 50


# --- the plan ---


def test_the_plan_describes_the_quantile_search(session: privsql.Session) -> None:
    plan = session.explain("SELECT MEDIAN(income) AS m, MAX(income) AS top FROM people", epsilon=1.0)
    text = str(plan)
    assert "exponential mechanism over values" in text
    assert "[0, 5000] on a grid of 0.005" in text
    assert "rows of the 0.5 quantile at 95%, ties aside" in text
    assert "rows of the largest value at 95%, ties aside" in text
    assert "points near an end of the range get less weight" in text
    assert (
        "undetermined where there are too few rows: with probability at least 95% if there are none" in text
    )
    (measurement,) = plan.measurements
    assert (measurement.l1, measurement.linf, measurement.score_sensitivity) == (
        2,
        1,
        3.0,
    )  # 2 for a median, 1 for MAX
    assert measurement.scale == 3.0
    dates = str(session.explain("SELECT MAX(born) AS m FROM people", epsilon=1.0))
    assert "the value that about 32 rows exceed" in dates  # (ln 45,656 + 5) * 2 / epsilon
    assert plan.sql == plan.statements[0]
    assert not plan.counts
    assert json.loads(json.dumps(plan.to_dict()))["measurements"][0]["score_sensitivity"] == 3.0
    accuracy = plan.accuracy(0.95)
    assert accuracy["m"] is None
    assert "ties aside; may be undetermined with fewer than" in accuracy.notes["m"]


@pytest.mark.parametrize("sql", [
    "SELECT MEDIAN(income) AS m FROM people", "SELECT team, quantile_cont(income, [0, 0.1, 0.5, 0.9, 1]) AS q FROM people GROUP BY team",
    "SELECT quantile_disc(seen, 0.9) AS m FROM people WHERE age < 50", "SELECT maybe IS NULL AS k, MIN(income) AS m FROM people GROUP BY 1",
])  # fmt: skip
def test_the_shorter_histogram_has_the_same_rows(
    people: duckdb.DuckDBPyConnection, session: privsql.Session, sql: str
) -> None:
    plan = session.explain(sql, epsilon=20.0)
    (short,) = plan.runs
    assert plan.statements == (plan.sql, short)
    whole = {row[:-1]: row[-1] for row in people.execute(plan.sql).fetchall()}
    rows = people.execute(short).fetchall()
    assert {width for *_, width, _ in rows} == {1, 1024}
    for *key, value, width, count in rows:
        assert sum(whole.pop((*key, point), 0) for point in range(value, value + width)) == count
    assert not whole
    assert len(rows) < 0.9 * ROWS


SPECIAL = [
    "0e0",
    "-0e0",
    "'nan'",
    "'inf'",
    "'-inf'",
    "NULL",
    "1e300",
    "-1e300",
    "99.99999999999999",
    "50.000025",
]
ENDS = [
    ("DOUBLE", [0, 100], "i * 7919 % 100003 / 1000.0", SPECIAL),
    (
        "DOUBLE",
        [1e15, 1e15 + 40_000],
        "1e15 + i * 7919 % 40000 + 0.5",
        SPECIAL,
    ),  # a step is all that doubles tell apart
    ("FLOAT", [-3, -1], "-1 - i * 7919 % 1000 / 500", ["0e0", "'nan'", "'inf'", "'-inf'", "NULL", "1e38"]),
    ("DECIMAL(12, 2)", [0, 5000], "i * 104729 % 500000 / 100", ["NULL", "-7", "5000.01"]),
    (
        "BIGINT",
        [-(10**12), 10**12],
        "(i * 15485863 % 2000003 - 1000000) * 1000001",
        ["NULL", "2::BIGINT ** 62"],
    ),
    ("INTEGER", [0, 2**20], "i * 15485863 % 1000003", ["NULL", "-1", "2147483647"]),
    ("HUGEINT", [0, 10**6], "i * 15485863 % 1000003", ["NULL", "10::HUGEINT ** 30", "-(10::HUGEINT ** 30)"]),
    (
        "DATE",
        ["1000-01-01", "2024-12-31"],
        "DATE '1200-01-01' + (i * 7919 % 280000)::INTEGER",
        ["NULL", "'infinity'", "'-infinity'"],
    ),
    (
        "TIMESTAMP",
        ["2024-01-01", "2024-12-31"],
        "TIMESTAMP '2024-02-01' + to_seconds(i * 25999 % 2000000)",
        ["NULL", "'infinity'"],
    ),
]


@pytest.mark.parametrize("column", ENDS, ids=[f"{each[0]} {each[1][0]}" for each in ENDS])
@pytest.mark.parametrize("what", ["MIN(x), MAX(x)", "MIN(x)", "MAX(x)"])
def test_binned_extremes_have_the_same_rows(column: tuple[str, list[Any], str, list[str]], what: str) -> None:
    """More rows than matter and fewer, none at all, and so many ties at an end that they are all it has."""
    kind, ends, sql, special = column
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (x {kind})")
    session = privsql.connect(connection, {"tables": {"t": {"columns": {"x": {"range": ends}}}}})
    binned = 0
    for fill in (f"SELECT {sql} FROM range(0) r(i)", f"SELECT {sql} FROM range(40) r(i)", f"SELECT {sql} FROM range(3000) r(i)",
                 f"VALUES ({'), ('.join(special)})", "SELECT (SELECT max(x) FROM t) FROM range(700)", "SELECT (SELECT min(x) FROM t) FROM range(700)"):  # fmt: skip
        connection.execute(f"INSERT INTO t {fill}")
        for epsilon in (0.1, 1.0, 30.0):
            plan = session.explain(f"SELECT {what} FROM t", epsilon=epsilon)
            (short,) = plan.runs
            assert short != plan.sql
            whole = dict(connection.execute(plan.sql).fetchall())
            size = sum(whole.values())
            rows = connection.execute(short).fetchall()
            for value, width, count in rows:
                assert type(value) is type(width) is type(count) is int and width > 0
                inside = (
                    [point for point in whole if value <= point < value + width] if width > 1 else [value]
                )
                assert sum(whole.pop(point) for point in inside) == count > 0
            assert not whole
            wide = [(value, width) for value, width, _ in rows if width > 1]
            assert len(wide) <= 1
            binned += len(wide)
            for (
                value,
                width,
            ) in wide:  # at either end that is asked for there are as many rows outside as may matter
                search = plan.measurements[0].search
                for place, step in enumerate(search.steps):
                    outside = sum(
                        count
                        for other, _, count in rows
                        if (other < value if step.fraction == 0 else other >= value + width)
                    )
                    assert outside >= min(size, search.rank_error(place, 1 - 1e-15))
    assert binned > 5


@pytest.mark.slow
def test_a_chosen_bin_is_read_value_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one row alone is taken for near, what is below is chosen all but always: the answers keep their law."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT DATE '1901-01-01' + (i * 900)::INTEGER AS x FROM range(50) r(i)"
    )
    policy = {"tables": {"t": {"columns": {"x": {"range": ["1900-01-01", "2024-12-31"]}}}}}
    sql = "SELECT MAX(x) FROM t"

    def answers() -> tuple[list[int], tuple[str, ...]]:
        session = privsql.connect(connection, policy)  # a new one: plans are kept by their session
        asked = (session.query(sql, epsilon=2.0, fresh=True) for _ in range(60))
        found = [answer.fetchall()[0][0].toordinal() for answer in asked]
        return found, session.explain(sql, epsilon=2.0).runs

    usual, short = answers()
    monkeypatch.setattr("privsql.planning.rewrites.value_bins._ends", lambda search: {1: 1})
    narrow, runs = answers()
    assert runs != short
    assert sum(value < dt.date(2021, 1, 1).toordinal() for value in narrow) > 30  # the bin was chosen
    assert stats.ks_2samp(narrow, usual).pvalue > 1e-9


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [("DECIMAL(38, 2)", 2**99 + 2**46 - 1, 2**99 + 2**46 + 1), ("DECIMAL(38, 2)", 10**30, 10**30 + 1)],
)
def test_decimals_equal_as_doubles_are_distinguished(kind: str, low: int, high: int) -> None:
    """A step is never finer than doubles are: else a value past the high end would be at a point that no INTEGER holds."""
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE t AS SELECT CAST(x AS {kind}) AS x FROM (VALUES ('{low!r}'), ('{high!r}')) v(x)"
    )
    session = privsql.connect(connection, {"tables": {"t": {"columns": {"x": {"range": [low, high]}}}}})
    for what in ("MIN(x)", "MAX(x)", "MEDIAN(x)"):
        ((value,),) = session.query(f"SELECT {what} FROM t", epsilon=5.0, show_all=True).fetchall()
        assert math.isclose(value, low, rel_tol=1e-15)


def test_the_price_is_charged_once(people: duckdb.DuckDBPyConnection) -> None:
    session = privsql.connect(people, policy={**POLICY, "budget": {"epsilon": 3.0}})
    first = session.query(
        "SELECT quantile_cont(age, [0.25, 0.5, 0.75]) AS q, COUNT(*) AS n FROM people", epsilon=1.0
    )
    assert math.isclose(session.budget.spent.epsilon, 1.0, abs_tol=1e-8)
    again = session.query(
        "SELECT quantile_cont(age, [0.25, 0.5, 0.75]) AS q, COUNT(*) AS n FROM people", epsilon=1.0
    )
    assert again.fetchall() == first.fetchall()
    assert again.stored
    assert math.isclose(session.budget.spent.epsilon, 1.0, abs_tol=1e-8)
    assert first.receipt["measurements"][1]["mechanism"] == "exponential mechanism over values"
    json.dumps(first.receipt)
    with pytest.raises(privsql.PrivsqlError):
        session.query("SELECT MEDIAN(age) FROM people", epsilon=2.5)


# --- people with many rows ---


@pytest.fixture(scope="module")
def visits() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    connection.execute(
        "CREATE TABLE visits AS SELECT i % 500 AS who, i % 4 AS page, (i % 500) / 10.0 AS minutes FROM range(3000) r(i)"
    )
    connection.execute(
        "INSERT INTO visits SELECT 7, i % 4, 99.0 FROM range(50000) r(i)"
    )  # one of them comes very often
    return connection


VISITS = {
    "tables": {
        "visits": {
            "unit": "who",
            "max_groups": 2,
            "max_rows": 3,
            "columns": {"page": {"range": [0, 3]}, "minutes": {"range": [0, 100]}},
        }
    }
}


def test_one_person_does_not_decide(visits: duckdb.DuckDBPyConnection) -> None:
    session = privsql.connect(visits, policy=VISITS)
    assert visits.execute("SELECT MEDIAN(minutes) FROM visits").fetchall() == [(99.0,)]
    ((median,),) = session.query("SELECT MEDIAN(minutes) AS m FROM visits", epsilon=5.0).fetchall()
    assert 20 < median < 30
    for page, middle in session.query(
        "SELECT page, MEDIAN(minutes) AS m FROM visits WHERE page IS NOT NULL GROUP BY page", epsilon=20.0
    ).fetchall():
        assert 15 < middle < 35, page


@pytest.mark.parametrize("limits", [{}, {"max_rows": 1}, {"max_groups": 1}])
def test_a_unit_has_no_more_rows_in_the_histogram_than_allowed(
    visits: duckdb.DuckDBPyConnection, limits: dict[str, int]
) -> None:
    session = privsql.connect(visits, policy=VISITS)
    most = {"max_groups": 2, "max_rows": 3, **limits}
    plan = session.explain(
        "SELECT page, MEDIAN(minutes) AS m FROM visits GROUP BY page", epsilon=1.0, **limits
    )
    assert plan.measurements[0].l1 == 2 * most["max_groups"] * most["max_rows"]
    before = {row[:-1]: row[-1] for row in visits.execute(plan.sql).fetchall()}
    alone = duckdb.connect(":memory:")
    alone.register("rest", visits.execute("SELECT * FROM visits WHERE who <> 7").df())
    alone.execute("CREATE TABLE visits AS SELECT * FROM rest")
    after = {row[:-1]: row[-1] for row in alone.execute(plan.sql).fetchall()}
    changes = [before.get(key, 0) - after.get(key, 0) for key in before.keys() | after.keys()]
    assert 0 < sum(map(abs, changes)) <= most["max_groups"] * most["max_rows"]
    kept = [visits.execute(plan.sql).fetchall() for _ in range(3)]
    assert sorted(kept[0]) == sorted(kept[1]) == sorted(kept[2])


def test_a_prepared_table_answers_quantiles(visits: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    visits.execute("SELECT * FROM visits").df().to_parquet(tmp_path / "visits.parquet")
    session = privsql.connect(tmp_path / "visits.parquet", policy=VISITS)
    session.prepare("visits")
    answer = session.query("SELECT MEDIAN(minutes) AS m FROM visits", epsilon=5.0)
    assert "stored rank" in str(answer.plan)
    assert 20 < answer.fetchall()[0][0] < 30
    session.close()


# --- keys that nobody declared, ranges that nobody knows, public rows, frames ---


def test_undeclared_keys_have_quantiles(people: duckdb.DuckDBPyConnection) -> None:
    policy = {"tables": {"people": {"columns": {"income": {"range": [0, 5000]}}}}}
    session = privsql.connect(people, policy=policy)
    answer = session.query(
        "SELECT team, MEDIAN(income) AS m FROM people GROUP BY team", epsilon=20.0, delta=1e-6
    )
    rows = dict(answer.fetchall())
    assert set(rows) == {"a", "b"}
    for team, median in rows.items():
        assert rank_error(people, "income", median, 0.25 * ROWS, f"team = '{team}'") < 40
    with_count = session.query(
        "SELECT team, quantile_cont(income, [0.25, 0.75]) AS q, COUNT(*) AS n FROM people GROUP BY team",
        epsilon=20.0,
        delta=1e-6,
    )
    assert [row[0] for row in with_count.fetchall()] == ["a", "b"]


def test_an_unknown_range_is_found_first(people: duckdb.DuckDBPyConnection) -> None:
    session = privsql.connect(
        people, policy={"tables": {"people": {"columns": {"income": {"range": "auto"}}}}}
    )
    answer = session.query("SELECT MEDIAN(income) AS m FROM people", epsilon=5.0)
    assert rank_error(people, "income", answer.fetchall()[0][0], 0.5 * ROWS) < 100
    assert answer.found[0].high == 1024.0


def test_public_rows_have_exact_quantiles() -> None:
    connection = duckdb.connect(":memory:")
    connection.execute("CREATE TABLE p AS SELECT i AS x, i % 2 AS k FROM range(11) r(i)")
    session = privsql.connect(connection, policy={"tables": {"p": {"public": True}}})
    sql = "SELECT k, MEDIAN(x), quantile_disc(x, 0.3), MIN(x), quantile_cont(x, [0.25, 0.5]), percentile_cont(0.25) WITHIN GROUP (ORDER BY x DESC) FROM p GROUP BY k ORDER BY k"
    assert session.query(sql, epsilon=1.0).fetchall() == connection.execute(sql).fetchall()


def test_quantiles_work_on_frames(people: duckdb.DuckDBPyConnection) -> None:
    frame = pd.DataFrame({"x": np.arange(1000) % 100, "k": ["u", "v"] * 500})
    out = frame.dp.query(
        "SELECT k, MEDIAN(x) AS m FROM df GROUP BY k",
        epsilon=20.0,
        ranges={"x": (0, 99)},
        keys={"k": ["u", "v"]},
    )
    assert out["k"].tolist() == ["u", "v"]
    assert out["m"].between(40, 60).all()


@pytest.mark.slow
def test_an_empty_table_gives_some_point_of_the_range() -> None:
    connection = duckdb.connect(":memory:")
    connection.execute("CREATE TABLE t (x INTEGER, k BOOLEAN)")
    session = privsql.connect(connection, policy={"tables": {"t": {"columns": {"x": {"range": [5, 9]}}}}})
    seen = {
        session.query("SELECT MEDIAN(x) FROM t", epsilon=1.0, fresh=True, show_all=True).fetchall()[0][0]
        for _ in range(110)
    }
    assert seen == {5.0, 6.0, 7.0, 8.0, 9.0}  # one is missed with a chance of 5 * 0.8^110 < 2e-10
    assert len(session.query("SELECT k, MAX(x) FROM t GROUP BY k", epsilon=1.0).fetchall()) == 3


def test_only_quantiles_have_no_other_mechanism(session: privsql.Session) -> None:
    for wanted in ("gaussian", "laplace"):
        with pytest.raises(privsql.PrivsqlError) as caught:
            session.explain("SELECT MEDIAN(age) FROM people", epsilon=1.0, delta=1e-6, mechanism=wanted)
        assert caught.value.code == "argument-mechanism"
    plan = session.explain(
        "SELECT MEDIAN(age), COUNT(*) FROM people", epsilon=1.0, delta=1e-6, mechanism="gaussian"
    )
    assert [each.mechanism.value for each in plan.measurements] == [
        "Gaussian, rounded",
        "exponential mechanism over values",
    ]


NEAR = 8e14  # where doubles are 1/8 apart and a grid has steps of 1/5: its ends, 0.8 and 1.2 above, are read as 0.75 and 1.25  # where doubles are 1/8 apart and a grid has steps of 1/5: its ends, 0.8 and 1.2 above, are read as 0.75 and 1.25


@pytest.fixture(scope="module")
def near() -> Any:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (x DOUBLE)")
    columns = {"x": {"range": [NEAR + 0.875, NEAR + 1.125]}}
    return connection, privsql.connect(connection, {"tables": {"t": {"columns": columns}}})


@pytest.mark.parametrize("value", ["1e300", "'inf'::DOUBLE", "'nan'::DOUBLE", str(NEAR + 1.125), "-1e300"])
@pytest.mark.parametrize("function", ["MEDIAN", "MIN", "MAX"])
def test_every_value_falls_on_a_grid_point(near: Any, function: str, value: str) -> None:
    """The ends of a range were rounded apart, to three steps where the grid has three points."""
    connection, session = near
    plan = session.explain(f"SELECT {function}(x) AS m FROM t", epsilon=1)
    connection.execute(f"DELETE FROM t; INSERT INTO t VALUES ({value})")
    _, cells = run_exactly(plan, connection)  # which looks whether the points are those of the grid
    assert [key[-1] for key in cells] == [0 if value.startswith("-") else 2]
