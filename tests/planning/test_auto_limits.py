"""Limits that nobody knows: units are counted privately by their rows and keys, and limits are read off."""

from __future__ import annotations

import math
import re

import duckdb
import numpy as np
import pandas as pd
import pytest

import privsql
from privsql.planning.limits.limit_histograms import EDGES, LARGEST, NoisyHistogram, best_limits

COUNT = "SELECT COUNT(*) AS n FROM v"
BY_KEY = "SELECT k, COUNT(*) AS n FROM v GROUP BY k"
SURE = 500  # the noise of a histogram is then 0, but once in 10^20 times
COLUMNS = {"k": {"range": [0, 11]}, "x": {"range": [0, 9]}}


def visits(rows: dict[int, int]) -> pd.DataFrame:
    """So many units, by the number of rows that each of them has; a unit's rows go round the keys."""
    units = np.repeat(np.arange(sum(rows.values())), np.repeat(list(rows), list(rows.values())))
    place = np.arange(len(units)) - np.searchsorted(units, units)
    return pd.DataFrame({"u": units, "k": place % 12, "x": place % 10})


DATA = visits({1: 2000, 20: 1000, 300: 200})  # 82,000 rows


def opened(data=DATA, neighbours="replace-one", **declared):
    policy = {"neighbours": neighbours, "tables": {"v": {"unit": "u", "columns": COLUMNS, **declared}}}
    return privsql.connect({"v": data}, policy)


@pytest.fixture(scope="module")
def session():
    return opened()


@pytest.fixture(scope="module")
def plain():
    with duckdb.connect() as connection:
        yield connection


# -- the price and the bound ---------------------------------------------------------------------------------
def test_the_price_is_stated_and_exact():
    session = opened()
    plan = session.explain(
        COUNT, epsilon=1, max_rows="auto", max_groups="auto"
    )  # without keys there is no limit on them
    assert plan.epsilon == pytest.approx(0.2)
    assert "at epsilon 0.8" in plan.notes[-1]
    assert session.budget.spent.epsilon == 0
    answer = session.query(COUNT, epsilon=1, max_rows="auto", max_groups="auto")
    assert answer.receipt["epsilon"] == answer.receipt["charged"] == pytest.approx(1)
    assert session.budget.spent.epsilon == pytest.approx(1)
    assert "cost epsilon 1," in str(answer)
    again = session.query(COUNT, epsilon=1, max_rows="auto", max_groups="auto")
    assert again.receipt["charged"] == 0
    assert again.fetchall() == answer.fetchall()
    assert "from an earlier answer, at no cost" in again.warnings[-1]
    assert session.history()["question"][0] == f"units by rows, of {COUNT}"


def test_two_limits_share_what_one_costs(session):
    answer = session.query(BY_KEY, epsilon=1, max_rows="auto", max_groups="auto")
    assert [(each.name, each.epsilon) for each in answer.limits_found] == [
        ("max_rows", 0.1),
        ("max_groups", 0.1),
    ]
    assert answer.receipt["epsilon"] == pytest.approx(1)


def test_nothing_is_spent_if_the_total_is_not_affordable():
    data = DATA.copy().dp.protect(budget=0.5, unit="u")
    with pytest.raises(privsql.BudgetError):
        data.dp.query("SELECT COUNT(*) AS n FROM df", epsilon=1, max_rows="auto")
    with pytest.raises(privsql.BudgetError):  # with the search for a range, too
        data.dp.query("SELECT SUM(x) AS n FROM df", epsilon=0.51, max_rows="auto", ranges="auto")
    assert data.dp.budget.spent.epsilon == 0
    data.dp.query("SELECT SUM(x) AS n FROM df", epsilon=0.5, max_rows="auto", ranges="auto")
    assert data.dp.budget.spent.epsilon == pytest.approx(0.5)


@pytest.mark.parametrize(("neighbours", "l1"), [("replace-one", 2), ("add-remove", 1)])
@pytest.mark.parametrize(
    "sql", [COUNT, BY_KEY, "SELECT AVG(c) FROM (SELECT u, COUNT(*) AS c FROM v GROUP BY u)"]
)
def test_one_unit_moves_the_histogram_by_one_bucket_each_way(plain, sql, neighbours, l1):
    """The exact SQL, run on tables that differ in one unit: its rows are any number, in any keys."""
    plan = opened(DATA[:10], neighbours).explain(sql, epsilon=1, max_rows="auto", max_groups="auto")
    (measured,) = plan.measurements
    assert (measured.l1, measured.linf) == (l1, 1)
    others, generator, reached = visits({2: 3, 40: 2}), np.random.default_rng(7), 0
    for _ in range(8):
        pair = []
        for there in (True, neighbours == "replace-one"):
            count = int(generator.integers(1, 400)) if there else 0
            own = pd.DataFrame({"u": 99, "k": generator.integers(0, 12, count), "x": 0}, dtype="int64")
            plain.register("v", pd.concat([others, own]))
            pair.append(dict(plain.execute(plan.sql).fetchall()))
        changes = [abs(pair[0].get(key, 0) - pair[1].get(key, 0)) for key in {*pair[0], *pair[1]}]
        assert sum(changes) <= measured.l1
        assert max(changes) <= measured.linf
        reached = max(reached, sum(changes))
    assert reached == l1


def test_rows_are_counted_after_where_and_joins():
    connection = duckdb.connect()
    connection.register("given", DATA)
    connection.execute("CREATE TABLE v AS FROM given")
    connection.execute("CREATE TABLE w AS SELECT DISTINCT u FROM v WHERE u % 2 = 0")
    connection.execute("ALTER TABLE w ADD PRIMARY KEY (u)")
    session = privsql.connect(
        connection, {"tables": {"v": {"unit": "u", "columns": COLUMNS}, "w": {"unit": "u"}}}
    )
    whole = session.query(COUNT, epsilon=SURE, max_rows="auto").limits_found[0]
    some = session.query(f"{COUNT} WHERE k = 1 AND x < 5", epsilon=SURE, max_rows="auto").limits_found[0]
    joined = session.query(
        "SELECT COUNT(*) AS n FROM v JOIN w ON v.u = w.u", epsilon=SURE, max_rows="auto"
    ).limits_found[0]
    assert whole.limit == 384
    assert some.limit <= 24  # 300 / 12 keys
    assert whole.units == pytest.approx(3200, abs=20)
    assert joined.units == pytest.approx(1600, abs=20)


# -- the limits ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "sql", [COUNT, "SELECT SUM(x) AS n FROM v", "SELECT AVG(x) AS n FROM v", "SELECT MEDIAN(x) FROM v"]
)
def test_the_found_limit_keeps_most_rows(session, sql):
    answer = session.query(sql, epsilon=SURE, max_rows="auto")
    (found,) = answer.limits_found
    assert (found.name, found.limit, found.found) == ("max_rows", 384, True)
    assert found.units_cut <= found.give_or_take
    assert answer.warnings[0].startswith("At most 384 rows per u are used")
    paid = r"(for epsilon 100|from an earlier answer, at no cost)"
    assert re.match(
        rf"max_rows = 384 was found {paid}: about 0 \(±\d\) of 3,200 units have more", answer.warnings[1]
    )


def test_the_answer_is_much_nearer_than_with_default_limits(session):
    error = {}
    for limit in (10, "auto"):
        answer = session.query(COUNT, epsilon=1, max_rows=limit)
        error[limit] = abs(answer.fetchall()[0][0] - len(DATA))
    assert error[10] > 60_000
    assert error["auto"] < 6_000  # noise of scale 480, ten times over


def test_keys_and_rows_in_a_key_are_found_together(session):
    answer = session.query(BY_KEY, epsilon=SURE, max_rows="auto", max_groups="auto")
    limits = {each.name: each.limit for each in answer.limits_found}
    assert limits == {"max_rows": 32, "max_groups": 12}  # 300 rows of a unit go round 12 keys
    assert not any("keys per u" in each for each in answer.warnings)  # 12 are all there are
    found = session.query(BY_KEY, epsilon=SURE, max_rows=8, max_groups="auto").limits_found
    assert [(each.name, each.limit) for each in found] == [("max_groups", 12)]
    found = session.query(BY_KEY, epsilon=SURE, max_rows="auto", max_groups=2).limits_found
    assert [(each.name, each.limit) for each in found] == [("max_rows", 32)]


@pytest.mark.slow
def test_undeclared_keys_and_labels(session):
    sql = "SELECT x * 2 AS y, COUNT(DISTINCT u) AS n FROM v GROUP BY y"
    answer = session.query(sql, epsilon=SURE, delta=1e-6, max_rows="auto", max_groups="auto")
    assert {each.name for each in answer.limits_found} == {"max_groups"}  # each unit counts once in a key
    data = DATA.assign(word=DATA["k"].map(str))
    out = data.dp.query(
        "SELECT word, COUNT(*) AS n FROM df GROUP BY word",
        epsilon=SURE,
        delta=1e-6,
        unit="u",
        max_rows="auto",
        max_groups="auto",
    )
    limits = {each["name"]: each["limit"] for each in out.dp.receipt["limits_found"]}
    assert 8 <= limits["max_groups"] <= 16
    assert limits["max_rows"] >= 16
    rows_only = data.dp.query(
        "SELECT word, COUNT(*) AS n FROM df GROUP BY word",
        epsilon=SURE,
        delta=1e-6,
        unit="u",
        max_rows="auto",
        max_groups=3,
    )
    assert rows_only.dp.receipt["limits_found"][0]["limit"] >= 16
    most = "SELECT k FROM v GROUP BY k ORDER BY COUNT(*) DESC LIMIT 1"
    label = session.query(most, epsilon=SURE, max_rows="auto", max_groups="auto")
    assert {each.name: each.limit for each in label.limits_found} == {"max_rows": 32, "max_groups": 12}


def test_values_and_totals_within_a_unit(session):
    (found,) = session.query(
        "SELECT COUNT(DISTINCT x) AS n FROM v", epsilon=SURE, max_rows="auto"
    ).limits_found
    assert found.limit in (8, 12)  # ten different values
    per_unit = "(SELECT u, COUNT(*) AS c FROM v GROUP BY u)"
    answer = session.query(f"SELECT AVG(c) AS n FROM {per_unit}", epsilon=SURE, max_rows="auto")
    assert answer.limits_found[0].limit == 384
    assert answer.fetchall()[0][0] == pytest.approx(len(DATA) / 3200, abs=2)
    counted = session.query(
        f"SELECT c, COUNT(*) AS n FROM {per_unit} GROUP BY c", epsilon=SURE, max_rows="auto"
    )
    assert dict(counted.fetchall())[300] == pytest.approx(200, abs=10)


def test_declared_limits_are_never_passed():
    answer = opened(max_rows=50).query(COUNT, epsilon=SURE, max_rows="auto")
    assert answer.limits_found[0].limit == 50
    assert answer.limits_found[0].units_cut == pytest.approx(200, abs=answer.limits_found[0].give_or_take)
    found = opened(max_groups=5).query(BY_KEY, epsilon=SURE, max_rows="auto", max_groups="auto").limits_found
    assert {each.name: each.limit for each in found}["max_groups"] == 5


def test_no_search_runs_if_no_limit_matters(session):
    totals = "SELECT COUNT(*) FROM (SELECT u, SUM(x) AS s FROM v GROUP BY u) WHERE s > 3"
    for sql in ("SELECT COUNT(DISTINCT u) AS n FROM v", totals):
        answer = session.query(sql, epsilon=1, max_rows="auto", max_groups="auto")
        assert answer.limits_found == ()
        assert answer.plan.epsilon == 1
        assert session.explain(sql, epsilon=1, max_rows="auto", max_groups="auto", fresh=True).epsilon == 1
    assert session.query("SELECT COUNT(*) FROM (VALUES (1)) t(x)", epsilon=1, max_rows="auto").plan.public


def test_too_few_units_keep_the_default_limit():
    answer = opened(visits({30: 4})).query(COUNT, epsilon=1, max_rows="auto")
    assert answer.limits_found[0].found is False
    assert answer.limits_found[0].limit == 10
    assert answer.warnings[-1].startswith("max_rows stays 10: the search for epsilon ")


def test_with_ranges_and_with_stored_searches(session):
    out = DATA.dp.query("SELECT SUM(x) AS n FROM df", epsilon=5, unit="u", ranges="auto", max_rows="auto")
    receipt = out.dp.receipt
    assert receipt["charged"] == pytest.approx(5)
    assert [len(receipt["ranges_found"]), len(receipt["limits_found"])] == [1, 1]
    plan = DATA.dp.explain("SELECT SUM(x) AS n FROM df", epsilon=5, unit="u", ranges="auto", max_rows="auto")
    assert plan.epsilon == pytest.approx(1)


def test_answers_of_a_ledger_are_found_by_another_session(tmp_path):
    file = tmp_path / "v.duckdb"
    with duckdb.connect(str(file)) as owner:
        owner.register("given", visits({3: 500, 40: 500}))
        owner.execute("CREATE TABLE v AS FROM given")
    policy = {"budget": {"epsilon": 1.0}, "tables": {"v": {"unit": "u"}}}
    seen = []
    for _ in range(2):
        with privsql.connect(file, policy, ledger=tmp_path / "l", version="1") as session:
            seen.append(session.query(COUNT, epsilon=1, max_rows="auto"))
            assert session.budget.spent.epsilon == pytest.approx(1)
    assert seen[0].fetchall() == seen[1].fetchall()
    assert seen[1].receipt["charged"] == 0


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"within": 5, "max_rows": "auto"}, "argument-within"),
        ({"epsilon": 1, "max_rows": "automatic"}, "argument-limits"),
        ({"epsilon": 1, "max_groups": "AUTO"}, "argument-limits"),
    ],
)
def test_invalid_limit_arguments_are_refused(session, options, code):
    for ask in (session.query, session.explain):
        with pytest.raises(privsql.ArgumentError) as caught:
            ask(COUNT, **options)
        assert caught.value.code == code


def test_refusals_precede_the_search():
    session = opened()
    with pytest.raises(privsql.Refused):
        session.query("SELECT SUM(u) AS n FROM v", epsilon=1, max_rows="auto")
    assert session.budget.spent.epsilon == 0


# -- reading off ---------------------------------------------------------------------------------------------
def spread(counts: dict[int, float], scale: float = 10.0) -> NoisyHistogram:
    return NoisyHistogram(
        {edge: counts.get(edge, 0.0) for edge in (*EDGES, LARGEST)}, 10 * scale, math.sqrt(2) * scale
    )


def test_edges_are_half_octaves():
    assert EDGES[:8] == (1, 2, 3, 4, 6, 8, 12, 16)
    assert EDGES[-1] < 10**6 < LARGEST


def test_the_limit_ends_where_counts_exceed_the_noise():
    assert spread({8: 500, 4096: 90}).last == 8  # noise, for all that can be told
    assert spread({8: 500, 4096: 150}).last == 4096
    assert spread({8: 500, 12: 20, 16: 15, 24: 5, 32: 40}).last == 32  # a thin tail, next to what stands out
    assert spread({8: 500, 12: 0, 16: -30, 24: 5}).last == 8
    assert spread({8: 50}).last is None
    assert spread({8: 50}).candidates == ()
    assert spread({4: 500}).candidates == (1, 2, 3, 4)
    assert spread({LARGEST: 500}).last == LARGEST


def test_the_bias_of_a_limit_is_estimated():
    some = spread({2: 300, 8: 200})  # 2 and 7.5 rows
    assert some.total == pytest.approx(2 * 300 + 7.5 * 200)
    assert some.lost(8) == 0
    assert some.lost(2) == pytest.approx(5.5 * 200)
    assert some.kept(2) == 2
    assert (some.cut(2), some.cut(8), some.cut(1)) == (200, 0, 500)
    assert some.give_or_take(EDGES[-1]) == math.ceil(2 * math.sqrt(2) * 10)
    assert spread({2: 300, 8: 200, 6: -90}).lost(2) == some.lost(2)  # fewer than none are none


def test_bias_and_noise_are_weighed():
    rows, fixed = spread({2: 3000, 8: 200}), {"max_rows": 1, "max_groups": 1}
    chosen = best_limits({"max_rows": rows}, {}, fixed, 1, lambda groups: 1.0)
    assert chosen.limits == {"max_rows": 8}
    assert chosen.error == 8
    assert best_limits({"max_rows": rows}, {}, fixed, 1, lambda groups: 250.0).limits == {"max_rows": 2}
    assert best_limits({"max_rows": rows}, {"max_rows": 5}, fixed, 1, lambda groups: 1.0).limits == {
        "max_rows": 5
    }
    keys = spread({1: 2000, 12: 2000})
    both = {"max_rows": rows, "max_groups": keys}
    assert best_limits(both, {}, fixed, 12, lambda groups: float(groups)).limits == {
        "max_rows": 8,
        "max_groups": 12,
    }
    few = best_limits(both, {}, fixed, 12, lambda groups: 4000.0 * groups)
    assert few.limits == {"max_rows": 1, "max_groups": 1}
    alone = best_limits(
        {"max_groups": keys}, {}, {"max_rows": 3, "max_groups": 3}, 12, lambda groups: float(groups)
    )
    assert alone.limits == {"max_groups": 12}
