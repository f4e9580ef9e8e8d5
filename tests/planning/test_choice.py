"""Queries for labels: scores, several places, one for each group; and that no neighbour makes an outcome e^epsilon likelier.

Probabilities are computed, not sampled: from plan.sql on all neighbouring tables over a small domain, and the plan's own scale.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import duckdb
import numpy as np
import pandas as pd
import pytest

import privsql
from tests.planning.test_lecture_notes import winning

PUMPKINS = """
SELECT p.price FROM prices p JOIN bids b ON b.bid >= p.price GROUP BY p.price ORDER BY p.price * COUNT(*) DESC LIMIT 1
"""
NAMED = """
SELECT price FROM (SELECT p.price AS price, {} AS bid FROM prices p JOIN bids b ON b.bid >= p.price)
GROUP BY price ORDER BY COUNT(*) DESC LIMIT 1
"""


def market(
    prices: Sequence[float], bids: Sequence[float], neighbours: str = "replace-one"
) -> privsql.Session:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE prices (price DECIMAL(4, 2)); CREATE TABLE bids (bid DECIMAL(4, 2))")
    fill(connection, "prices", prices)
    fill(connection, "bids", bids)
    return privsql.connect(connection, {"neighbours": neighbours, "tables": {"prices": {"public": True}}})


def fill(connection: duckdb.DuckDBPyConnection, table: str, values: Sequence[float]) -> None:
    connection.execute(
        f"DELETE FROM {table}; INSERT INTO {table} SELECT unnest(?::DECIMAL(4, 2)[])", [list(values)]
    )


def scores_of(session: privsql.Session, plan: privsql.Plan) -> list[int]:
    """The exact score of every candidate, in the order of the key space; absent ones have 0."""
    found = {row[:-1]: row[-1] for row in session._pipeline.engine._connection.execute(plan.sql).fetchall()}
    (group,) = plan.space.groups
    return [found.get(key, 0) for key in zip(*group.columns, strict=True)]


@pytest.mark.parametrize(("bids", "first"), [([1, 1, 2], 0.5125), ([1] * 90 + [2] * 10, 0.9820)])
def test_the_pumpkins_of_note_000(bids, first):
    session = market([1, 2], bids)
    plan = session.explain(PUMPKINS, epsilon=0.2, mechanism="exponential")
    (measurement,) = plan.measurements
    assert measurement.linf == 200  # 2 dollars, in cents
    assert measurement.scale == pytest.approx(2 * 200 / 0.2)
    chance = winning("exponential", tuple(scores_of(session, plan)), 1 / measurement.scale)
    assert chance[0] == pytest.approx(first, abs=5e-5)
    assert sum(chance) == pytest.approx(1)


def test_the_default_mechanism_beats_the_textbook_on_pumpkins():
    session = market([1, 2], [1] * 90 + [2] * 10)
    plan = session.explain(PUMPKINS, epsilon=0.2)
    (measurement,) = plan.measurements
    assert measurement.sensitivity.monotone
    assert measurement.scale == pytest.approx(200 / 0.2)  # half: all scores move the same way
    chance = winning(
        "permute-and-flip", tuple(each // 100 for each in scores_of(session, plan)), 100 / measurement.scale
    )
    assert chance[0] > 0.999
    assert any("exponential mechanism about" in note for note in plan.notes)


@pytest.mark.parametrize("asked", [15, pytest.param(40, marks=pytest.mark.slow)])
def test_adeles_99_prices_of_note_002(asked):
    dice = np.random.default_rng(1)
    values = np.round(dice.beta(2, 3, 400), 2)
    prices = [round(0.01 * each, 2) for each in range(1, 100)]
    session = market(prices, values)
    plan = session.explain(PUMPKINS, epsilon=1)
    assert plan.cells == 99
    assert plan.measurements[0].scale == pytest.approx(99)  # 99 cents
    revenue = {price: price * np.sum(values >= price - 1e-9) for price in prices}
    best = max(revenue.values())
    regret = [
        best - revenue[float(session.query(PUMPKINS, epsilon=1, fresh=True).fetchall()[0][0])]
        for _ in range(asked)
    ]
    assert max(regret) < 2 * 0.99 * (math.log(99) + 20)  # note 002: passed with probability e^-20
    assert (
        np.mean(regret) < 0.05 * best
    )  # 3.92, of regrets of 0.68 each with a deviation of 0.8: passed with a chance of 1e-14


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_selection_of_a_price_is_private_on_neighbours(neighbours):
    """All tables of two bids out of four, all neighbours, all mechanisms."""
    domain, prices, epsilon = [0, 1, 2, 3], [1, 2, 3], 1.0
    tables = list(itertools.combinations_with_replacement(domain, 2))
    chances: dict[tuple[str, tuple[int, ...]], np.ndarray] = {}
    sizes = [1, 2, 3] if neighbours == "add-remove" else [2]
    tables = [bids for size in sizes for bids in itertools.combinations_with_replacement(domain, size)]
    session = market(prices, [], neighbours)  # plans are made without data
    mechanisms = ("permute-and-flip", "laplace", "gumbel", "exponential")
    plans = {each: session.explain(PUMPKINS, epsilon=epsilon, mechanism=each) for each in mechanisms}
    for bids in tables:
        fill(session._pipeline.engine._connection, "bids", bids)
        for mechanism, plan in plans.items():
            dollars = tuple(each // 100 for each in scores_of(session, plan))
            chances[mechanism, bids] = winning(mechanism, dollars, 100 / plan.measurements[0].scale)
    worst: dict[str, float] = {}
    for (mechanism, one), (other_mechanism, two) in itertools.permutations(chances, 2):
        if mechanism == other_mechanism and are_neighbours(one, two, neighbours):
            ratio = float(np.max(chances[mechanism, one] / chances[mechanism, two]))
            worst[mechanism] = max(worst.get(mechanism, 0.0), ratio)
    assert all(ratio <= math.exp(epsilon) * (1 + 1e-9) for ratio in worst.values()), worst
    assert worst["permute-and-flip"] > math.exp(0.5), "the bound is far from used: no power"


def are_neighbours(one: tuple[int, ...], two: tuple[int, ...], relation: str) -> bool:
    left, right = list(one), list(two)
    for each in one:
        if each in right:
            left.remove(each)
            right.remove(each)
    return (len(left), len(right)) in ([(1, 1)] if relation == "replace-one" else [(1, 0), (0, 1)])


def sequence_chances(plan: privsql.Plan, scores: Sequence[int]) -> dict[tuple[int, ...], float]:
    """The probability of every ordered outcome of a choice of several, one after the other."""
    (measurement,) = plan.measurements
    found: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(measurement.picks):
        longer: dict[tuple[int, ...], float] = {}
        for outcome, chance in found.items():
            left = [index for index in range(len(scores)) if index not in outcome]
            wins = winning("permute-and-flip", tuple(scores[index] for index in left), 1 / measurement.scale)
            for index, win in zip(left, wins, strict=True):
                longer[(*outcome, index)] = longer.get((*outcome, index), 0.0) + chance * float(win)
        found = longer
    return found


TOP_TWO = "SELECT x FROM df GROUP BY x ORDER BY COUNT(*) DESC LIMIT 2"


def test_selection_of_several_winners_is_private():
    epsilon = 1.0
    tables = list(itertools.combinations_with_replacement([0, 1, 2], 3))
    chances = {}
    for rows in tables:
        session = privsql.connect(
            pd.DataFrame({"x": rows}), {"tables": {"df": {"columns": {"x": {"range": [0, 2]}}}}}
        )
        plan = session.explain(TOP_TWO, epsilon=epsilon, mechanism="permute-and-flip")
        assert plan.measurements[0].picks == 2
        chances[rows] = sequence_chances(plan, [rows.count(each) for each in (0, 1, 2)])
    worst = max(
        chances[one][outcome] / chances[two][outcome]
        for one, two in itertools.permutations(tables, 2)
        if are_neighbours(one, two, "replace-one")
        for outcome in chances[one]
    )
    assert math.exp(0.4) < worst <= math.exp(epsilon) * (1 + 1e-9)


def test_several_winners_use_the_more_accurate_mechanism():
    many = pd.DataFrame({"x": [each for each in range(20) for _ in range(200 - 10 * each)]})
    session = privsql.connect(many, {"tables": {"df": {"columns": {"x": {"range": [0, 19]}}}}})
    plan = session.explain(TOP_TWO, epsilon=1)
    assert (
        "histogram" in plan.measurements[0].mechanism.value
    )  # one row is in one key: all cells at once cost what one costs
    assert plan.measurements[0].scale == 2
    visits = pd.DataFrame({"who": np.arange(3000) // 10, "page": np.arange(3000) % 10 // 2})
    policy = {
        "tables": {
            "df": {"unit": "who", "max_groups": 5, "max_rows": 2, "columns": {"page": {"range": [0, 4]}}}
        }
    }
    plan = privsql.connect(visits, policy).explain(
        "SELECT page FROM df GROUP BY page ORDER BY COUNT(*) DESC LIMIT 2", epsilon=1
    )
    assert (
        "permute-and-flip" in plan.measurements[0].mechanism.value
    )  # a unit is in 5 keys: two choices cost less


def test_the_best_come_first():
    rows = pd.DataFrame({"x": [each for each in range(5) for _ in range(1000 * (each + 1))]})
    session = privsql.connect(rows, {"tables": {"df": {"columns": {"x": {"range": [0, 4]}}}}})
    for mechanism in (None, "permute-and-flip", "laplace", "gumbel"):
        for order, expected in (("DESC", [4, 3, 2]), ("ASC", [0, 1, 2])):
            sql = f"SELECT x FROM df GROUP BY x ORDER BY COUNT(*) {order} LIMIT 3"
            found = session.query(sql, epsilon=5, mechanism=mechanism).fetchall()
            assert [each for (each,) in found] == expected
    assert len(session.query("SELECT x FROM df GROUP BY x ORDER BY COUNT(*) LIMIT 99", epsilon=5)) == 5


def grouped(rows: Sequence[tuple[int, int]], neighbours: str = "replace-one") -> privsql.Session:
    frame = pd.DataFrame(rows, columns=["g", "x"])
    columns = {"g": {"range": [0, 1]}, "x": {"range": [0, 1]}}
    return privsql.connect(frame, {"neighbours": neighbours, "tables": {"df": {"columns": columns}}})


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT g, MODE(x) FROM df GROUP BY g",
        "SELECT g, arg_max(x, n) FROM (SELECT g, x, COUNT(*) AS n FROM df GROUP BY g, x) GROUP BY g",
    ],
)
def test_grouped_selection_is_private(neighbours, sql):
    epsilon = 1.0
    cells = list(itertools.product((0, 1), (0, 1)))
    sizes = [2, 3] if neighbours == "add-remove" else [2]
    tables = [rows for size in sizes for rows in itertools.combinations_with_replacement(cells, size)]
    chances = {}
    rate = 1 / grouped(tables[0], neighbours).explain(sql, epsilon=epsilon).measurements[0].scale
    for rows in tables:
        wins = [winning("permute-and-flip", (rows.count((g, 0)), rows.count((g, 1))), rate) for g in (0, 1)]
        chances[rows] = {(a, b): wins[0][a] * wins[1][b] for a, b in cells}
    ratios = [
        chances[one][outcome] / chances[two][outcome]
        for one, two in itertools.permutations(tables, 2)
        if are_neighbours(one, two, neighbours)
        for outcome in cells
    ]
    assert math.exp(0.5) < max(ratios) <= math.exp(epsilon) * (1 + 1e-9)


def test_mode_by_group_finds_the_most_frequent():
    rows = [(0, 1)] * 500 + [(0, 0)] * 100 + [(1, 0)] * 700 + [(1, 1)] * 20
    session = grouped(rows)
    assert session.query("SELECT g, MODE(x) AS m FROM df GROUP BY g", epsilon=5).fetchall() == [
        (0, 1),
        (1, 0),
    ]
    nested = "SELECT arg_min(x, n) AS m, g FROM (SELECT x, g, COUNT(*) AS n FROM df GROUP BY x, g) GROUP BY g"
    assert session.query(nested, epsilon=5).fetchall() == [(0, 0), (1, 1)]


@pytest.mark.parametrize(
    ("score", "winner"),
    [("COUNT(*)", 0), ("x * COUNT(*)", 2), ("3 * x * COUNT(*) - 2 * COUNT(*)", 2), ("-COUNT(*)", 2), ("COUNT(*) / 2", 0),
     ("SUM(x)", 2), ("SUM(x) - COUNT(*) FILTER (WHERE x = 2) * 4", 1), ("(x + 1) * SUM(x) / 10", 2)],
)  # fmt: skip
def test_scores(score, winner):
    rows = pd.DataFrame({"x": [0] * 1000 + [1] * 800 + [2] * 600})
    session = privsql.connect(rows, {"tables": {"df": {"columns": {"x": {"range": [0, 2]}}}}})
    sql = f"SELECT x FROM df GROUP BY x ORDER BY {score} DESC LIMIT 1"
    plan = session.explain(sql, epsilon=1)
    assert plan.chooses, plan
    assert session.query(sql, epsilon=50).fetchall() == [(winner,)]
    assert duckdb.sql(sql.replace("df", "rows")).fetchall() == [(winner,)]
    nested = f"SELECT x FROM (SELECT x, {score} AS s FROM df GROUP BY x) ORDER BY s DESC LIMIT 1"
    assert session.explain(nested, epsilon=1).chooses


@pytest.mark.parametrize("score", ["AVG(x)", "COUNT(*) * COUNT(*)", "SUM(x) / COUNT(*)", "abs(COUNT(*) - 5)"])
def test_other_scores_are_selected_from_a_noisy_histogram(score):
    session = privsql.connect(
        pd.DataFrame({"x": [0, 1]}), {"tables": {"df": {"columns": {"x": {"range": [0, 2]}}}}}
    )
    assert not session.explain(
        f"SELECT x FROM df GROUP BY x ORDER BY {score} DESC LIMIT 1", epsilon=1
    ).chooses


@pytest.mark.parametrize(
    "sql",
    [
        PUMPKINS.replace("b.bid >= p.price", "b.bid <> p.price"),
        PUMPKINS.replace("b.bid >= p.price", "b.bid >= p.price AND b.bid < p.price + 1"),
        PUMPKINS.replace("b.bid >= p.price", "b.bid + p.price >= 2 * p.price"),
        PUMPKINS.replace("p.price * COUNT(*)", "SUM(least(greatest(b.bid, 0), 3))"),
        PUMPKINS.replace("GROUP BY", "WHERE b.bid + p.price < 4 GROUP BY"),
        PUMPKINS.replace("p.price * COUNT(*)", "(2 - p.price) * COUNT(*)"),
        PUMPKINS.replace("JOIN bids b", "JOIN (SELECT bid FROM bids UNION ALL SELECT bid FROM bids) b"),
        NAMED.format("least(greatest(b.bid + p.price, 0), 3)").replace("COUNT(*)", "SUM(bid)"),
        NAMED.format("b.bid + p.price").replace("GROUP BY", "WHERE bid > 1 GROUP BY"),
    ],
)  # fmt: skip
def test_scores_that_move_both_ways_are_not_a_chain(sql):
    session = market([1, 2, 3], [1, 2])
    assert not session.explain(sql, epsilon=1).measurements[0].sensitivity.monotone


@pytest.mark.parametrize(
    "sql",
    [
        PUMPKINS,
        PUMPKINS.replace(">=", "<="),
        PUMPKINS.replace("GROUP BY", "WHERE b.bid > 0 AND p.price < 3 GROUP BY"),
        NAMED.format("b.bid"),
        NAMED.format("b.bid").replace("COUNT(*)", "SUM(price)").replace("GROUP BY", "WHERE bid > 1 GROUP BY"),
    ],
)
def test_scores_of_a_chain_move_one_way(sql):
    session = market([1, 2, 3], [1, 2])
    assert session.explain(sql, epsilon=1).measurements[0].sensitivity.monotone
    before = scores_of(session, session.explain(sql, epsilon=1))
    for bid in (0, 1, 2, 3):
        other = market([1, 2, 3], [bid, 2])
        after = scores_of(other, other.explain(sql, epsilon=1))
        changes = [b - a for a, b in zip(before, after, strict=True)]
        assert min(changes) >= 0 or max(changes) <= 0
