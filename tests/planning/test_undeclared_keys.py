"""Keys that nobody declared: shown with delta only, never one that few have, at the declared (epsilon, delta)."""

from __future__ import annotations

import itertools
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privsql
from privsql.budget.ledger import MemoryLedger
from privsql.engines.duckdb.open_source import open_engine
from privsql.planning.keys.undeclared_keys import key_release
from privsql.planning.measurements.noised import Mechanism
from privsql.planning.measurements.partition_selection import KeyMeasurement
from privsql.policy import load_policy
from privsql.privacy.key_selection import Contribution, truncated_geometric
from tests.support.databases import database

COUNTED = "SELECT city, COUNT(*) AS n FROM df GROUP BY city"
FALSE_ALARM = 1e-9


def people(**counts: int) -> pd.DataFrame:
    return pd.DataFrame({"city": [city for city, count in counts.items() for _ in range(count)]})


def test_undeclared_keys_need_delta():
    for sql in (COUNTED, "SELECT DISTINCT city FROM df", "SELECT city FROM df GROUP BY city"):
        with pytest.raises(privsql.Refused) as caught:
            people(a=5).dp.query(sql, epsilon=1)
        assert "delta" in caught.value.suggestion


def test_large_keys_are_shown_and_lone_ones_never_at_a_tiny_delta():
    frame = people(big=500, alone=1)
    filtered = "SELECT city, COUNT(*) FILTER (WHERE city > 'c') AS n FROM df GROUP BY city"
    for sql in (COUNTED, "SELECT DISTINCT city FROM df", filtered):
        answer = frame.dp.query(sql, epsilon=2, delta=1e-9)
        assert list(answer["city"]) == ["big"]
        assert answer.dp.receipt["delta"] == pytest.approx(1e-9)
        assert answer.dp.receipt["keys_may_be_missing"]


def test_delta_is_charged_and_limited():
    session = privsql.connect(people(a=100), {"budget": {"epsilon": 10, "delta": 1e-6}})
    session.query(COUNTED, epsilon=1, delta=6e-7)
    assert session.budget.spent.delta == pytest.approx(6e-7)
    with pytest.raises(privsql.BudgetError) as caught:
        session.query(COUNTED, epsilon=2, delta=6e-7)
    assert caught.value.code == "budget-delta"
    session.query(
        "SELECT COUNT(*) FROM df", epsilon=1, delta=1e-9
    )  # Laplace noise is smaller: needs none, is charged none
    assert session.budget.spent.delta == pytest.approx(6e-7)


def test_a_useless_delta_is_refused():
    with pytest.raises(privsql.ArgumentError) as caught:
        people(a=100).dp.query(COUNTED, epsilon=0.001, delta=0.4)
    assert caught.value.code == "argument-delta"


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_lone_key_is_shown_as_often_as_delta_says(neighbours):
    """6,000 keys of one person each, which is 6,000 trials: the share shown is delta, neither more nor much less."""
    trials, delta = 6000, 0.04
    frame = pd.DataFrame({"city": [f"c{i}" for i in range(trials)]})
    session = privsql.connect(frame, {"neighbours": neighbours})
    answer = session.query(COUNTED, epsilon=1, delta=delta)
    changes = 2 if neighbours == "replace-one" else 1
    chance = truncated_geometric(Fraction(1), Fraction(4, 100), Contribution(1, 1, changes)).chance(1)
    assert chance <= delta / changes
    shown = len(answer)
    assert stats.binomtest(shown, trials, chance).pvalue > FALSE_ALARM
    assert (
        stats.binomtest(shown, trials, 3 * chance).pvalue < FALSE_ALARM
    )  # power: three times delta would be seen
    assert stats.binomtest(shown, trials, delta / changes, alternative="greater").pvalue > FALSE_ALARM


@pytest.mark.parametrize("wrong", [0.7, 1.3])
def test_the_noise_of_shown_counts_has_its_scale(wrong):
    count, keys = 150, 5000
    frame = pd.DataFrame({"city": np.repeat([f"c{i}" for i in range(keys)], count)})
    answer = frame.dp.query(COUNTED, epsilon=0.5, delta=1e-6)
    assert len(answer) == keys
    noise = (answer["n"] - count).to_numpy()
    scale = 4.0  # l1 = 2 at epsilon 0.5

    def pvalue(b: float) -> float:
        values = np.arange(-12, 13)
        law = np.tanh(1 / (2 * b)) * np.exp(-np.abs(values) / b)
        seen = np.array([(noise == value).sum() for value in values])
        return float(
            stats.chisquare([*seen, keys - seen.sum()], keys * np.array([*law, 1 - law.sum()])).pvalue
        )

    assert pvalue(scale) > FALSE_ALARM
    assert pvalue(scale * wrong) < FALSE_ALARM


def test_min_units_is_kept_for_certain():
    frame = people(a=9, b=12, c=500)
    seen: set[str] = set()
    engine, policy = open_engine(frame), load_policy({"min_units": 10})
    for _ in range(60):
        session = privsql.Session(
            engine, policy, MemoryLedger.under(policy), "ana"
        )  # a budget each: deltas may not add up to 1
        answer = session.query(COUNTED, epsilon=9, delta=0.3)
        seen |= set(answer.df()["city"])
    assert "a" not in seen
    assert "c" in seen
    assert "b" in seen


@pytest.mark.parametrize("sql", [COUNTED, "SELECT DISTINCT city FROM df"])
def test_explain_says_how_large_a_key_must_be_and_it_is_so(sql):
    plan = privsql.connect(people(a=1)).explain(sql, epsilon=1, delta=0.01)
    release = plan.keys_shown_by.release
    half, sure = release.shows_at(0.5), release.shows_at(0.95)
    text = str(plan)
    assert f"50% from {half:,}" in text
    assert f"95% from {sure:,}" in text
    for count, chance in ((half, 0.5), (sure, 0.95)):
        frame = pd.DataFrame({"city": np.repeat([f"c{i}" for i in range(600)], count)})
        shown = len(frame.dp.query(sql, epsilon=1, delta=0.01))
        assert stats.binomtest(shown, 600, chance, alternative="less").pvalue > FALSE_ALARM


def test_declared_and_undeclared_keys_together():
    frame = pd.DataFrame({"state": ["CA"] * 300 + ["ZZ"] * 300, "city": ["a", "b", None] * 200})
    out = frame.dp.query("SELECT state, city, COUNT(*) AS n FROM df GROUP BY state, city", epsilon=2, delta=1e-6,
                         keys={"state": ["CA", "NY"]})  # fmt: skip
    assert sorted(map(str, out["city"])) == ["None", "a", "b"] or out["city"].isna().sum() == 1
    assert set(out["state"]) == {"CA"}
    assert len(out) == 3


def test_units_and_several_keys_use_the_better_noise():
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE v AS SELECT i % 3000 AS u, 'c' || (i * 7 // 3000 + i) % 9 AS city, i % 11 AS x FROM range(30000) r(i)"
    )
    policy = {
        "tables": {"v": {"unit": "u", "max_groups": 9, "max_rows": 1, "columns": {"x": {"range": [0, 10]}}}}
    }
    session = privsql.connect(connection, policy)
    sql = "SELECT city, COUNT(*) AS n, SUM(x) AS s FROM v GROUP BY city"
    plan = session.explain(sql, epsilon=1, delta=1e-6)
    shows = plan.keys_shown_by
    assert "Gaussian" in shows.mechanism.value
    answer = session.query(sql, epsilon=1, delta=1e-6)
    assert len(answer) == 9
    ends = answer.intervals(0.95)
    assert not ends["n_near_threshold"].any()
    exact = dict(connection.execute("SELECT city, count(DISTINCT u) FROM v GROUP BY city").fetchall())
    off = [abs(n - exact[city]) for city, n in zip(ends["city"], ends["n"], strict=True)]
    assert max(off) < 8 * shows.scale


@pytest.mark.parametrize(
    ("mechanism", "wanted"), [("laplace", "KEYS_GEOMETRIC"), ("gaussian", "KEYS_GAUSSIAN")]
)
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.1])
def test_mechanism_forces_the_noise_of_keys(mechanism, wanted, delta):
    session = privsql.connect(pd.DataFrame({"k": ["a", "b"] * 50}), {"neighbours": "add-remove"})
    plan = session.explain(
        "SELECT k, COUNT(*) FROM df GROUP BY k", epsilon=1, delta=delta, mechanism=mechanism
    )
    assert plan.measurements[0].mechanism.name == wanted


# -- by rows or by units ------------------------------------------------------------------------------------------
def shown_by(plan):
    """The release of the keys, and what it counts."""
    found = plan.keys_shown_by
    return found, "units" if found.release.contribution.rows == 1 else "rows"


def visits(keys, people, rows, **limits):
    """As many keys as said, each of so many people who are in no other, with so many rows each."""
    frame = pd.DataFrame({"u": np.repeat(np.arange(keys * people), rows)})
    frame["k"] = frame["u"] // people
    return privsql.connect(
        {"v": frame}, {"tables": {"v": {"unit": "u", "max_groups": 1, "max_rows": 20, **limits}}}
    )


BY_KEY = "SELECT k, COUNT(*) AS n FROM v GROUP BY k"


@pytest.mark.parametrize("rows", [1, 20])
@pytest.mark.parametrize("epsilon", [100, 10_000])
def test_a_key_of_seven_people_is_shown_at_a_large_epsilon(rows, epsilon):
    """By rows 20 are one person's, so that it took 21 of them, whatever epsilon."""
    answer = visits(3, 7, rows).query(BY_KEY, epsilon=epsilon, delta=1e-6)
    assert shown_by(answer.plan)[1] == "units"
    assert len(answer) == 3
    ends = answer.intervals(0.99999)
    assert (ends["n_low"] <= 7 * rows).all() and (ends["n_high"] >= 7 * rows).all()
    assert "n_near_threshold" not in ends, "the noise of the count had no part in it"


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("sql", [BY_KEY, "SELECT k, COUNT(*) AS n, COUNT(DISTINCT x) AS d FROM v GROUP BY k"])
def test_no_fewer_keys_than_by_rows_where_people_have_up_to_max_rows(relation, sql):
    """A key whose people have (1 + max_rows) / 2 rows on average is as likely to be shown as by COUNT(*), at any epsilon."""
    frame, columns = pd.DataFrame({"u": [1], "k": [1], "x": [1]}), {"x": {"range": [0, 1]}}
    for groups, rows, epsilon in itertools.product((1, 4), (1, 3, 20), (1, 50)):
        table = {"unit": "u", "max_groups": groups, "max_rows": rows, "columns": columns}
        session = privsql.connect({"v": frame}, {"neighbours": relation, "tables": {"v": table}})
        plan = session.explain(sql, epsilon=epsilon, delta=1e-6)
        release = shown_by(plan)[0].release
        other = plan.pricing.keys.other
        if rows == 1:
            assert other is None and shown_by(plan)[0].what == "COUNT(*)", "one release serves both"
        elif release.contribution.rows == 1:
            before = key_release(other, Fraction(epsilon))
            assert before.contribution.rows == rows
            people = release.shows_at(0.5)
            assert before.chance(people * (1 + rows) // 2 - rows) <= 0.51, (groups, rows, epsilon)


def test_a_unit_count_also_selects_the_keys():
    plan = visits(1, 7, 1).explain(
        "SELECT k, COUNT(*) AS n, COUNT(DISTINCT u) AS m FROM v GROUP BY k", epsilon=1, delta=1e-6
    )
    found, what = shown_by(plan)
    assert (found.what, what, len(plan.measurements)) == ("COUNT DISTINCT(u)", "units", 2)


def test_rows_show_the_keys_where_units_would_take_more():
    for groups, rows in ((1, 2), (9, 20)):
        plan = visits(1, 7, 1, max_groups=groups, max_rows=rows).explain(BY_KEY, epsilon=1, delta=1e-6)
        assert shown_by(plan)[1] == "rows" and len(plan.measurements) == 1
        assert "a key is shown if it has enough rows, which takes" in str(
            plan
        ) and "; counting units would take" in str(plan)


def test_gaussian_noise_that_is_asked_for_is_the_noise_of_the_count():
    plan = visits(1, 7, 1).explain(BY_KEY, epsilon=10, delta=1e-6, mechanism="gaussian")
    assert [each.mechanism.name for each in plan.measurements] == ["KEYS_GAUSSIAN"]


def test_explain_says_by_what_keys_are_shown_and_why():
    plan = visits(1, 7, 1).explain(BY_KEY, epsilon=1, delta=1e-6)
    assert (
        "a key is shown if it has enough units; counting rows would take 536 rows, so 52 units if each has half of its"
        in str(plan)
    )
    assert "50% from 51 units" in str(plan)
    assert sum(each.epsilon for each in plan.measurements) == 1
    assert sum(each.delta for each in plan.measurements) == pytest.approx(1e-6)


def test_min_units_counts_units_not_rows():
    plan = visits(1, 7, 1, max_rows=50).explain(BY_KEY, epsilon=1000, delta=1e-6)
    assert shown_by(plan)[1] == "units"
    frame = pd.DataFrame({"u": range(30), "k": ["a"] * 12 + ["b"] * 18})
    policy = {"min_units": 15, "tables": {"v": {"unit": "u", "max_groups": 1, "max_rows": 50}}}
    answer = privsql.connect({"v": frame}, policy).query(BY_KEY, epsilon=1000, delta=1e-6)
    assert list(answer.df()["k"]) == ["b"]


@pytest.mark.slow
@pytest.mark.parametrize(("max_rows", "epsilon"), [(20, 1), (20, 4), (8, 10)])
def test_more_keys_are_kept_where_most_people_have_few_rows(max_rows, epsilon):
    """Small keys, of people of whom each has 1 row, or 2, or 3 ... ever more seldom."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(5, 60 // epsilon + 20, 300)
    people_of = np.repeat(np.arange(300), sizes)
    rows = np.minimum(rng.geometric(0.4, len(people_of)), 40)
    frame = pd.DataFrame({"u": np.repeat(np.arange(len(people_of)), rows), "k": np.repeat(people_of, rows)})
    policy = {"tables": {"v": {"unit": "u", "max_groups": 1, "max_rows": max_rows}}}
    plan = privsql.connect({"v": frame}, policy).explain(BY_KEY, epsilon=epsilon, delta=1e-6)
    release = shown_by(plan)[0].release
    assert release.contribution.rows == 1
    before = key_release(plan.pricing.keys.other, Fraction(epsilon))
    counts = np.bincount(people_of, np.minimum(rows, max_rows)).astype(int)
    kept = sum(release.chance(int(size)) for size in sizes)
    assert kept > 1.5 * sum(before.chance(int(count)) for count in counts)
    shown = len(privsql.connect({"v": frame}, policy).query(BY_KEY, epsilon=epsilon, delta=1e-6))
    assert abs(shown - kept) < 6 * max(1, kept) ** 0.5


def test_types_of_shown_keys_do_not_depend_on_hidden_ones():
    sql = "SELECT CASE WHEN hiv THEN NULL ELSE x END AS k, COUNT(*) AS n FROM t GROUP BY 1"
    kinds = set()
    for hiv in ("true", "false"):
        for rows in (1, 500):  # one key hidden alone, and beside one that is shown
            connection = database(
                "CREATE TABLE t (hiv BOOLEAN, x INTEGER)", f"INSERT INTO t VALUES ({hiv}, 5)"
            )
            connection.execute(f"INSERT INTO t SELECT false, 7 FROM range({rows})")
            answer = privsql.connect(connection).query(sql, epsilon=1, delta=1e-9)
            seen = (answer.arrays[0], answer.noisy.keys["k"])
            kinds.add((rows, str(answer.df().dtypes["k"]), *(type(each).__name__ for each in seen)))
    assert len(kinds) == 2


def of_units(max_rows: int, max_groups: int = 7) -> privsql.Session:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT range % 50 AS u, 'k' || (range % 7) AS k, range AS x FROM range(1000)"
    )
    table = {
        "unit": "u",
        "max_groups": max_groups,
        "max_rows": max_rows,
        "columns": {"x": {"range": [0, 1000]}},
    }
    return privsql.connect(connection, {"tables": {"t": table}})


BOTH = "SELECT k, COUNT(*), COUNT(DISTINCT u) FROM t GROUP BY k"


def test_keys_are_released_once_and_other_counts_have_enough_noise():
    """The second count got Laplace noise at the scale for Gaussian noise: it lost many times its price."""
    plan = of_units(1, 50).explain(BOTH, epsilon=1, delta=1e-6)
    assert plan.delta <= 1e-6
    first, *others = sorted(plan.measurements, key=lambda each: not isinstance(each, KeyMeasurement))
    assert isinstance(first, KeyMeasurement)
    for each in others:  # what noise/add_noise.py draws for them is discrete Laplace of this scale
        assert each.mechanism is Mechanism.LAPLACE
        assert each.l1 / each.scale <= each.epsilon * 1.0000001


@pytest.mark.parametrize("max_rows", [1, 3])
def test_rows_and_units_of_undeclared_keys_share_one_delta(max_rows):
    answer = of_units(max_rows).query(BOTH, epsilon=1, delta=1e-6)
    assert answer.receipt["delta"] == 1e-6


@pytest.mark.parametrize(
    "sql", ["SELECT k, MEDIAN(x) FROM t GROUP BY k", "SELECT k, MAX(x), COUNT(*) FROM t GROUP BY k"]
)
def test_quantiles_are_empty_when_no_key_is_shown(sql):
    """At this price almost surely no key is shown: the query was charged, and then failed."""
    assert len(of_units(1).query(sql, epsilon=0.01, delta=1e-12)) == 0


def test_keys_without_an_aggregate_take_no_mechanism() -> None:
    connection = duckdb.connect(":memory:")
    connection.execute("CREATE TABLE t AS SELECT 'a' AS k FROM range(100)")
    with pytest.raises(privsql.PrivsqlError, match="this query releases only keys"):
        privsql.connect(connection).explain(
            "SELECT DISTINCT k FROM t", epsilon=1.0, delta=1e-6, mechanism="gaussian"
        )
