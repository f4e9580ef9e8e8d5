"""A query that can be derived from earlier answers is: free, without reading data, correct, and as accurate
as asked.
"""

# ruff: noqa: E501 -- pairs of texts read better in one line each
from __future__ import annotations

import functools
import itertools
import math

import duckdb
import numpy as np
import pandas as pd
import pytest

import privsql
from privsql.answers.ways import MOST_CELLS
from privsql.errors import EngineError

N = 4_000
PLACES = np.arange(N)
ROWS = pd.DataFrame({
    "age": PLACES * 7919 % 100, "state": np.array(["CA", "NY", "TX"])[PLACES * 31 % 97 % 3], "smoker": PLACES * 17 % 5 == 0,
    "d": pd.to_datetime("2024-01-01") + pd.to_timedelta(PLACES * 13 % 366, unit="D"), "n": PLACES * 11 % 7,
    "x": (PLACES % 50).astype(float), "y": pd.array(np.where(PLACES % 9 == 0, None, PLACES % 20), dtype="Int64"),
})  # fmt: skip
COLUMNS = {
    "age": {"range": [0, 99]}, "state": {"values": ["CA", "NY", "TX"]}, "d": {"range": ["2024-01-01", "2024-12-31"]},
    "n": {"range": [0, 6]}, "x": {"range": [0, 50]}, "y": {"range": [0, 20]},
}  # fmt: skip
POLICY = {"tables": {"df": {"columns": COLUMNS}}}
SURE, LITTLE = 4_000, 0.01  # so much epsilon that all noise is 0; so little that earlier answers are as good

FOLLOWS = [
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT COUNT(*) FROM df"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT COUNT(*) FROM df WHERE state = 'CA'"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT COUNT(*) FROM df WHERE state IN ('CA', 'TX')"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT COUNT(*) FROM df WHERE NOT state = 'CA'"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT COUNT(*) FROM df WHERE state IS NOT NULL"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT COUNT(state) FROM df"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT state, COUNT(*) AS n FROM df WHERE state <> 'NY' GROUP BY state"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT lower(state) AS s, COUNT(*) FROM df GROUP BY s"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT state = 'CA' AS west, COUNT(*) FROM df GROUP BY west"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT state FROM df GROUP BY state ORDER BY COUNT(*) DESC LIMIT 1"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT state FROM df GROUP BY state ORDER BY COUNT(*) DESC LIMIT 1"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT COUNT(*) FILTER (WHERE state = 'CA') AS ca, COUNT(*) FILTER (WHERE state = 'NY') AS ny FROM df"),
    ("SELECT age, COUNT(*) FROM df GROUP BY age", "SELECT age // 10 AS decade, COUNT(*) FROM df GROUP BY decade"),
    ("SELECT age, COUNT(*) FROM df GROUP BY age", "SELECT COUNT(*) FROM df WHERE age BETWEEN 20 AND 29"),
    ("SELECT age, COUNT(*) FROM df GROUP BY age", "SELECT CASE WHEN age < 18 THEN 'young' WHEN age < 65 THEN 'middle' ELSE 'old' END AS g, COUNT(*) FROM df GROUP BY g"),
    ("SELECT age, COUNT(*) FROM df GROUP BY age", "SELECT COUNT(*) FROM df WHERE age >= 65 AND age % 2 = 0"),
    ("SELECT age // 10 AS decade, COUNT(*) FROM df GROUP BY 1", "SELECT COUNT(*) FROM df WHERE age // 10 > 5"),
    ("SELECT age // 10 AS decade, COUNT(*) FROM df GROUP BY 1", "SELECT (age // 10) * 10 AS from_age, COUNT(*) FROM df GROUP BY 1"),
    ("SELECT state, age, COUNT(*) FROM df GROUP BY state, age", "SELECT age, COUNT(*) FROM df WHERE state = 'TX' GROUP BY age"),
    ("SELECT state, age, COUNT(*) FROM df GROUP BY state, age", "SELECT state, age >= 65 AS old, COUNT(*) FROM df GROUP BY 1, 2"),
    ("SELECT state, age, COUNT(*) FROM df GROUP BY state, age", "WITH w AS (SELECT * FROM df WHERE age < 50) SELECT state, COUNT(*) FROM w GROUP BY state"),
    ("SELECT state, age, COUNT(*) FROM df GROUP BY state, age", "SELECT age, state, COUNT(*) FROM df WHERE age < 5 GROUP BY age, state"),
    ("SELECT state, COUNT(*) FROM df WHERE smoker GROUP BY state", "SELECT COUNT(*) FROM df WHERE smoker AND state = 'CA'"),
    ("SELECT state, COUNT(*) FROM df WHERE smoker AND age > 30 GROUP BY state", "SELECT COUNT(*) FROM df WHERE 30 < age AND smoker"),
    ("SELECT smoker, COUNT(*) FROM df GROUP BY smoker", "SELECT COUNT(*) FROM df WHERE smoker"),
    ("SELECT smoker, COUNT(*) FROM df GROUP BY smoker", "SELECT COUNT(*) FILTER (WHERE smoker) FROM df"),
    ("SELECT smoker, state, SUM(n) FROM df GROUP BY ALL", "SELECT SUM(n) FROM df"),
    ("SELECT smoker, state, SUM(n) FROM df GROUP BY ALL", "SELECT smoker, SUM(n) FROM df WHERE state = 'CA' GROUP BY smoker"),
    ("SELECT smoker, state, SUM(n), COUNT(*) FROM df GROUP BY ALL", "SELECT state, AVG(n) FROM df GROUP BY state"),
    ("SELECT smoker, state, SUM(n), COUNT(*) FROM df GROUP BY ALL", "SELECT state, SUM(n) FROM df WHERE smoker GROUP BY state"),
    ("SELECT smoker, state, SUM(n), COUNT(*) FROM df GROUP BY ALL", "SELECT smoker, COUNT(*) FROM df GROUP BY smoker"),
    ("SELECT smoker, state, AVG(n) FROM df GROUP BY ALL", "SELECT state, AVG(n), SUM(n) FROM df WHERE smoker GROUP BY state"),
    ("SELECT state, AVG(y) FROM df GROUP BY state", "SELECT SUM(y), COUNT(y) FROM df"),
    ("SELECT state, SUM(x) FROM df GROUP BY state", "SELECT SUM(x) FROM df WHERE state <> 'TX'"),
    ("SELECT date_trunc('day', d) AS d, COUNT(*) FROM df GROUP BY 1", "SELECT date_trunc('month', d) AS d, COUNT(*) FROM df GROUP BY 1"),
    ("SELECT date_trunc('month', d) AS d, COUNT(*) FROM df GROUP BY 1", "SELECT date_trunc('quarter', d) AS d, COUNT(*) FROM df GROUP BY 1"),
    ("SELECT COUNT(*) FROM df WHERE smoker", "SELECT COUNT(*) AS n FROM df WHERE smoker AND NOT smoker IS NULL"),
    ("SELECT n, state, COUNT(*) FROM (SELECT n, state FROM df WHERE age > 50) GROUP BY n, state", "SELECT n FROM df WHERE age > 50 GROUP BY n ORDER BY COUNT(*) DESC LIMIT 3"),
]  # fmt: skip

DOES_NOT_FOLLOW = [
    ("SELECT COUNT(*) FROM df", "SELECT state, COUNT(*) FROM df GROUP BY state"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT smoker, COUNT(*) FROM df GROUP BY smoker"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT COUNT(*) FROM df WHERE age > 50"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT COUNT(y) FROM df"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT SUM(n) FROM df"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT COUNT(DISTINCT age) FROM df"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT COUNT(*) FROM (SELECT * FROM df UNION ALL SELECT * FROM df)"),
    ("SELECT state, COUNT(*) FROM df GROUP BY state", "SELECT MEDIAN(age) FROM df"),
    ("SELECT state, COUNT(*) FROM df WHERE smoker GROUP BY state", "SELECT COUNT(*) FROM df"),
    ("SELECT state, COUNT(*) FROM df WHERE smoker GROUP BY state", "SELECT COUNT(*) FROM df WHERE NOT smoker"),
    ("SELECT state, COUNT(*) FROM df WHERE state <> 'TX' GROUP BY state", "SELECT state, COUNT(*) FROM df GROUP BY state"),
    ("SELECT state, COUNT(y) FROM df GROUP BY state", "SELECT state, COUNT(*) FROM df GROUP BY state"),
    ("SELECT state, COUNT(*) FILTER (WHERE smoker) FROM df GROUP BY state", "SELECT COUNT(*) FROM df"),
    ("SELECT age // 10 AS decade, COUNT(*) FROM df GROUP BY 1", "SELECT COUNT(*) FROM df WHERE age >= 65"),
    ("SELECT age // 10 AS decade, COUNT(*) FROM df GROUP BY 1", "SELECT age // 5 AS five, COUNT(*) FROM df GROUP BY 1"),
    ("SELECT date_trunc('month', d) AS d, COUNT(*) FROM df GROUP BY 1", "SELECT date_trunc('week', d) AS d, COUNT(*) FROM df GROUP BY 1"),
    ("SELECT date_trunc('week', d) AS d, COUNT(*) FROM df GROUP BY 1", "SELECT date_trunc('month', d) AS d, COUNT(*) FROM df GROUP BY 1"),
    ("SELECT state, SUM(n) FROM df GROUP BY state", "SELECT AVG(n) FROM df WHERE state = 'CA'"),
    ("SELECT state, SUM(n) FROM df GROUP BY state", "SELECT SUM(n + 1) FROM df"),
    ("SELECT state, SUM(x) FROM df GROUP BY state", "SELECT SUM(LEAST(x, 10)) FROM df"),
    ("SELECT state, AVG(y) FROM df GROUP BY state", "SELECT COUNT(*) FROM df"),
    ("SELECT state, MAX(age) FROM df GROUP BY state", "SELECT MAX(age) FROM df"),
    ("SELECT state, COUNT(DISTINCT age) FROM df GROUP BY state", "SELECT COUNT(DISTINCT age) FROM df"),
    ("SELECT state FROM df GROUP BY state ORDER BY COUNT(*) DESC LIMIT 1", "SELECT COUNT(*) FROM df WHERE state = 'CA'"),
]  # fmt: skip


@functools.cache
def database() -> duckdb.DuckDBPyConnection:
    """One for all tests: opening another takes longer than most of them."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE df AS FROM ROWS")
    for name in (
        name for name, dtype in ROWS.dtypes.items() if isinstance(dtype, np.dtype) and dtype.kind in "iub"
    ):
        connection.execute(f"ALTER TABLE df ALTER {name} SET NOT NULL")
    return connection


def session(neighbours: str = "replace-one") -> privsql.Session:
    return privsql.connect(database(), {**POLICY, "neighbours": neighbours})


def without_data(opened: privsql.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on every look at data fails."""

    def refuse(*_: object) -> None:
        raise EngineError

    for name in ("run", "check"):
        monkeypatch.setattr(type(opened._pipeline.engine), name, refuse)


def exact(sql: str) -> list[tuple[object, ...]]:
    return database().execute(sql).fetchall()


def same(answer: privsql.Answer, sql: str) -> bool:
    plain = exact(sql)
    keys = len(answer.plan.keys) if len(answer.columns) > len(answer.plan.keys) else len(answer.columns)
    numbers_of = [
        [math.nan if v is None else float(v) for v in row[keys:]] for row in answer.fetchall()
    ]  # NULL: too few rows
    found = {
        tuple(str(v)[:10] for v in row[:keys]): row_of
        for row, row_of in zip(answer.fetchall(), numbers_of, strict=True)
    }
    wanted = {tuple(str(v)[:10] for v in row[:keys]): [float(v) for v in row[keys:]] for row in plain}
    for key, numbers in wanted.items():
        if not np.allclose(found[key], numbers, rtol=1e-4):
            return False
    return all(
        sum(map(abs, numbers)) < 1 or math.isnan(sum(numbers)) or key in wanted or "AVG" in sql
        for key, numbers in found.items()
    )


RELATIONS = ("replace-one", "add-remove")
EITHER_WAY = [
    (*pair, each) for place, pair in enumerate(FOLLOWS) for each in RELATIONS[:: -1 if place % 2 else 1]
]


@pytest.mark.parametrize("case", EITHER_WAY, ids=str)  # now under one of the relations, by turns
def test_a_derived_answer_is_correct_and_reads_no_data(case, monkeypatch):
    stored, wanted, neighbours = case
    opened = session(neighbours)
    opened.query(stored, epsilon=SURE)
    spent = opened.budget.spent.epsilon
    with monkeypatch.context() as patch:
        without_data(opened, patch)
        answer = opened.query(wanted, epsilon=LITTLE)
    assert answer.stored
    assert answer.receipt["charged"] == 0
    assert opened.budget.spent.epsilon == spent
    assert answer.plan.free
    assert answer.receipt["from_answers"][0]["question"] == stored
    assert same(answer, wanted)


@pytest.mark.parametrize(("stored", "wanted"), DOES_NOT_FOLLOW)
def test_other_queries_are_not_derived(stored, wanted):
    opened = session("add-remove")
    opened.query(stored, epsilon=SURE)
    assert not opened.query(wanted, epsilon=LITTLE).stored


@pytest.mark.slow
def test_every_derived_answer_is_correct():
    """Every wanted query after every stored one, whether or not the pair was planned for."""
    texts = list(dict.fromkeys(text for pair in (*FOLLOWS, *DOES_NOT_FOLLOW) for text in pair))
    free = 0
    for stored in [text for text in texts if "GROUP BY" in text and "LIMIT" not in text][::5]:
        opened = session()
        opened.query(stored, epsilon=SURE)
        for wanted in texts:
            plan = opened.explain(wanted, epsilon=LITTLE)
            if plan.free:
                free += 1
                assert same(opened.query(wanted, epsilon=LITTLE), wanted), (stored, wanted)
    assert free > 30


def test_a_less_accurate_derivation_is_measured_again():
    opened = session()
    opened.query("SELECT state, age, COUNT(*) FROM df GROUP BY state, age", epsilon=1)
    assert opened.query("SELECT COUNT(*) FROM df WHERE age < 3", epsilon=0.1).stored
    assert not opened.query("SELECT state, COUNT(*) FROM df GROUP BY state", epsilon=0.5).stored
    assert (
        opened.query("SELECT COUNT(*) FROM df WHERE age < 3", epsilon=0.1, fresh=True).receipt["charged"]
        == 0.1
    )


@pytest.mark.slow
def test_intervals_of_derived_sums_cover():
    """Of 120 sums of 100 cells each, at 80%: 96 on average, and fewer than 70 with a chance below 1e-8."""
    inside = 0
    for _ in range(40):
        opened = session()
        opened.query("SELECT state, age, COUNT(*) FROM df GROUP BY state, age", epsilon=1)
        answer = opened.query("SELECT state, COUNT(*) AS n FROM df GROUP BY state", epsilon=LITTLE)
        found = answer.intervals(0.8).set_index("state")
        for state, count in exact("SELECT state, COUNT(*) FROM df GROUP BY state"):
            inside += found.loc[state, "n_low"] <= count <= found.loc[state, "n_high"]
    assert 70 <= inside <= 118


@pytest.mark.parametrize("rounds", [5, pytest.param(10, marks=pytest.mark.slow)])
def test_a_second_answer_is_combined_with_the_first(rounds):
    """0.55 of the squared error on average, over 400 cells or so a round: the shares scatter by 0.03, of ten rounds by 0.02."""
    sql, wide, narrow = "SELECT state, age, COUNT(*) AS n FROM df GROUP BY state, age", 0.0, 0.0
    truth = {(state, age): n for state, age, n in exact(sql)}
    for _ in range(rounds):
        opened = session()
        opened.query(sql, epsilon=0.09)
        both = opened.query(sql, epsilon=0.1)
        assert both.receipt["charged"] == 0.1
        assert len(both.receipt["from_answers"]) == 2
        again = opened.query("SELECT COUNT(*) AS m, state AS s, age FROM df GROUP BY s, age", epsilon=0.1)
        assert again.stored
        assert {(s, age): m for m, s, age in again.fetchall()} == {
            (state, age): n for state, age, n in both.fetchall()
        }
        alone = opened.query(sql, epsilon=0.1, fresh=True)
        wide += sum((n - truth.get((state, age), 0)) ** 2 for state, age, n in alone.fetchall())
        narrow += sum((n - truth.get((state, age), 0)) ** 2 for state, age, n in both.fetchall())
        ends = both.intervals()
        assert (ends["n_high"] - ends["n_low"]).max() < 2 * alone.plan.measurements[0].half_width(0.95)
    assert narrow < 0.8 * wide


def test_a_derived_query_can_be_explained_and_audited():
    """An audit tests the query as if nothing were stored: a derived query has no statement to run."""
    opened, sql = session(), "SELECT COUNT(*) AS n FROM df WHERE age < 3"
    opened.query("SELECT state, age, COUNT(*) FROM df GROUP BY state, age", epsilon=1)
    assert opened.explain(sql, epsilon=0.1).free
    anew = opened.explain(sql, epsilon=0.1, fresh=True)
    assert not anew.free
    assert anew.measurements[0].l1 == 1
    assert opened.audit(sql, epsilon=0.1, releases=300, tries=10).bounds


def test_repeating_a_query_reveals_nothing_new():
    opened = session()
    opened.query("SELECT state, COUNT(*) FROM df GROUP BY state", epsilon=1)
    texts = ["COUNT(*)", "COUNT(1)", "SUM(1)", "COUNT(*) FILTER (WHERE TRUE)"]
    numbers = {
        opened.query(f"SELECT {text} FROM df WHERE state = 'CA'", epsilon=e).fetchall()[0][0]
        for text, e in itertools.product(texts, (0.1, 0.2, 0.3))
    }
    assert len(numbers) == 1
    assert opened.budget.spent.epsilon == 1


def test_explain_names_the_source_of_a_derived_answer():
    opened = session()
    opened.query("SELECT state, age, COUNT(*) FROM df GROUP BY state, age", epsilon=1)
    text = str(opened.explain("SELECT state, COUNT(*) AS n FROM df GROUP BY state", epsilon=LITTLE))
    assert "From earlier answers, at no cost" in text
    assert "SELECT state, age, COUNT(*) FROM df GROUP BY state, age (epsilon 1" in text
    assert "up to 100 of its cells" in text
    assert "age is not a declared key" in text
    assert "±" in text
    assert "from earlier answers: no cost" in str(
        opened.query("SELECT state, COUNT(*) AS n FROM df GROUP BY state", epsilon=LITTLE)
    )


def test_bounded_units_are_measured_again():
    """The rows kept of a unit depend on the keys, so sums over keys are different numbers."""
    visits = pd.DataFrame({"who": PLACES % 500, "state": ROWS["state"], "n": ROWS["n"]})
    columns = {"state": COLUMNS["state"], "n": COLUMNS["n"]}
    policy = {"tables": {"df": {"unit": "who", "max_groups": 3, "max_rows": 10, "columns": columns}}}
    opened = privsql.connect(visits, policy)
    opened.query("SELECT state, COUNT(*) FROM df GROUP BY state", epsilon=SURE)
    assert not opened.query("SELECT COUNT(*) FROM df", epsilon=LITTLE).stored


def test_unique_units_allow_derivation():
    connection = duckdb.connect()
    connection.register("people", ROWS.assign(who=PLACES))
    connection.execute("CREATE TABLE df AS SELECT state, age, who FROM people")
    connection.execute("ALTER TABLE df ADD PRIMARY KEY (who)")
    opened = privsql.connect(
        connection,
        {"tables": {"df": {"unit": "who", "columns": {"state": COLUMNS["state"], "age": COLUMNS["age"]}}}},
    )
    opened.query("SELECT state, COUNT(*) FROM df GROUP BY state", epsilon=SURE)
    assert opened.query("SELECT COUNT(*) FROM df", epsilon=LITTLE).fetchall() == [(N,)]
    assert opened.budget.spent.epsilon == SURE


def test_too_many_cells_are_not_added_up():
    assert MOST_CELLS >= 100_000


def test_undeclared_key_values_are_named():
    """The declared ages end at 49: the total of a histogram of them is not the number of rows, and explain says so."""
    opened = privsql.connect(ROWS, {"tables": {"df": {"columns": {"age": {"range": [0, 49]}}}}})
    opened.query("SELECT age, COUNT(*) FROM df GROUP BY age", epsilon=SURE)
    assert "age is not a declared key" in str(opened.explain("SELECT COUNT(*) FROM df", epsilon=LITTLE))
    assert opened.query("SELECT COUNT(*) FROM df", epsilon=LITTLE).receipt["only_declared"] == ["age"]


def test_zero_constants_are_not_a_source():
    """A sum of 0 reveals nothing about the number of rows, and later queries still work."""
    opened = session("add-remove")
    opened.query("SELECT state, SUM(0) FROM df GROUP BY state", epsilon=1)
    opened.query("SELECT SUM(n - n) FROM df", epsilon=1)
    assert not opened.query("SELECT COUNT(*) FROM df", epsilon=LITTLE).stored


def test_zero_noise_does_not_divide_by_zero():
    opened = session("add-remove")
    for sql in (
        "SELECT state, AVG(x) FROM df GROUP BY state",
        "SELECT smoker, AVG(x) FROM df GROUP BY smoker",
    ):
        opened.query(sql, epsilon=9_000)
    assert opened.query("SELECT COUNT(x) FROM df", epsilon=LITTLE).fetchall() == [(N,)]


ZEROS = pd.DataFrame({"w": np.where(PLACES % 2 == 0, 0.0, -0.0)})  # one key, two values


@pytest.mark.parametrize(
    ("wanted", "follows"),
    [
        ("SELECT COUNT(*) FROM df WHERE w = 0", True), ("SELECT CAST(w AS INTEGER) AS k, COUNT(*) FROM df GROUP BY k", True),
        ("SELECT CAST(w AS VARCHAR) AS k, COUNT(*) FROM df GROUP BY k", False), ("SELECT COUNT(*) FROM df WHERE atan2(w, -1) > 0", False),
        ("SELECT COUNT(*) FROM df WHERE concat(-w, '') = '0.0'", False), ("SELECT COUNT(*) FROM df WHERE 1 / w > 0", False),
    ],
)  # fmt: skip
def test_expressions_that_distinguish_equal_keys_are_not_derived(wanted, follows):
    opened = privsql.connect(ZEROS, {"tables": {"df": {"columns": {"w": {"values": [0.0]}}}}})
    opened.query("SELECT w, COUNT(*) FROM df GROUP BY w", epsilon=SURE)
    assert opened.explain(wanted, epsilon=LITTLE).free is follows


def test_answers_over_other_rows_are_not_combined():
    """The declared ages end at 49, and half of the rows are older: a paid count covers all, and is not pulled
    down.
    """
    opened = privsql.connect(
        ROWS, {"tables": {"df": {"columns": {"age": {"range": [0, 49]}, "n": {"range": [0, 6]}}}}}
    )
    opened.query("SELECT age, COUNT(*) FROM df GROUP BY age", epsilon=60)
    opened.query("SELECT n, COUNT(*) FROM df GROUP BY n", epsilon=50)
    assert opened.query("SELECT COUNT(*) FROM df WHERE n < 7", epsilon=LITTLE).fetchall()[0][
        0
    ] == pytest.approx(N, abs=20)
    assert opened.query("SELECT COUNT(*) FROM df", epsilon=80).fetchall()[0][0] == pytest.approx(N, abs=20)
    assert opened.query("SELECT COUNT(*) FROM df", epsilon=80).fetchall()[0][0] == pytest.approx(N, abs=20)
