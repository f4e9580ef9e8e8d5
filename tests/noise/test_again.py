"""Many releases of one query at once are releases like any other: of the same cells, each with independent
noise.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import privsql
from privsql.noise.add_noise import laid_out
from privsql.noise.again import MISSING, differing, one_by_one, release_again
from privsql.noise.randomness import SystemRandomness

COLUMNS = {"k": {"values": ["a", "b", "c"]}, "g": {"values": ["u", "v"]}, "n": {"range": [0, 99]}}
ROWS = [("a", "u", 5)] * 400 + [("b", "u", 70)] * 200 + [("b", "v", 5)] * 300 + [("c", "v", 9)] * 100


def session(rows=ROWS, neighbours="replace-one") -> privsql.Session:
    frame = pd.DataFrame(rows, columns=["k", "g", "n"])
    return privsql.connect({"t": frame}, {"neighbours": neighbours, "tables": {"t": {"columns": COLUMNS}}})


def again(asked: privsql.Session, sql: str, times: int, epsilon: float = 50, cells=None, **options):
    plan = asked.explain(sql, epsilon=epsilon, **options)

    def run(text):
        return asked._pipeline.engine.run(text, plan.keys)

    exact = [run(each) for each in plan.statements]
    return plan, exact, release_again(plan, exact, times, SystemRandomness(), run, cells)


def test_every_cell_is_released_each_time():
    _, _, found = again(session(), "SELECT k, g, COUNT(*) AS n FROM t GROUP BY k, g", 50)
    assert found.seen.shape == (50, 4 * 3)
    assert found.names[0] == "count_1 of cell 1"
    assert len(set(found.names)) == 12
    # cells in the order of the keys, g fastest, NULL last
    assert np.median(found.seen, axis=0).tolist() == [400, 0, 0, 200, 300, 0, 0, 100, 0, 0, 0, 0]


def test_a_single_cell_needs_no_number():
    _, _, found = again(session(), "SELECT COUNT(*) AS n, SUM(n) AS s FROM t", 20)
    assert not any("cell" in each for each in found.names)
    assert found.seen.shape == (20, len(found.names))


def test_releases_have_independent_noise():
    _, _, found = again(session(), "SELECT COUNT(*) AS n FROM t", 400, epsilon=0.1)
    assert len(np.unique(found.seen)) > 20


@pytest.mark.parametrize(("order", "best"), [("DESC", 1), ("ASC", 2)])
def test_a_selection_is_repeated(order, best):
    sql = f"SELECT k FROM t WHERE k IS NOT NULL GROUP BY k ORDER BY COUNT(*) {order} LIMIT 1"
    plan, _, found = again(session(), sql, 30)
    assert one_by_one(plan)
    assert found.names == ("place 1",)
    assert found.seen.tolist() == [[best]] * 30


def test_several_winners_are_repeated():
    plan, _, found = again(
        session(), "SELECT k FROM t GROUP BY k ORDER BY COUNT(*) DESC LIMIT 2", 10, mechanism="gumbel"
    )
    assert plan.chooses
    assert found.names == ("place 1", "place 2")
    assert found.seen.tolist() == [[1, 0]] * 10


def test_a_grouped_selection_is_drawn_in_one_pass():
    plan, _, found = again(
        session(), "SELECT g, mode(k) AS k FROM t WHERE g IS NOT NULL AND k IS NOT NULL GROUP BY g", 10
    )
    assert plan.chooses
    assert not one_by_one(plan)
    assert found.names == ("group 1", "group 2")
    assert found.seen.tolist() == [[0, 4]] * 10  # of u the first of three, of v the second


def test_undeclared_keys_are_released_each_time():
    frame = pd.DataFrame({"city": ["x"] * 500 + ["y"] * 300 + ["z"]})
    asked = privsql.connect({"t": frame})
    _, _, found = again(asked, "SELECT city, COUNT(*) AS n FROM t GROUP BY city", 20, epsilon=5, delta=1e-6)
    shown = dict(zip(found.names, found.seen.T, strict=True))
    assert set(shown) >= {"key is shown: x", "key is shown: y", "count_1: x", "count_1: y"}
    assert (shown["key is shown: x"] == 1).all()
    assert abs(np.median(shown["count_1: y"]) - 300) < 5
    assert "count_1: z" not in shown or (shown["count_1: z"] == MISSING).sum() > 10


def test_no_key_is_shown():
    asked = privsql.connect({"t": pd.DataFrame({"city": ["x", "y"]})})
    _, _, found = again(asked, "SELECT city, COUNT(*) AS n FROM t GROUP BY city", 5, epsilon=1, delta=1e-9)
    assert found.names == ()
    assert found.seen.shape == (5, 0)


# -- only the cells that differ ------------------------------------------------------------------------------------
def pair(sql: str, rows=ROWS):
    """The exact tables of two neighbours: the last row is another."""
    plan = session(rows).explain(sql, epsilon=50)
    tables = [[asked._pipeline.engine.run(each, plan.keys) for each in plan.statements]
              for asked in (session(rows), session([*rows[:-1], ("a", "u", 98)]))]  # fmt: skip
    return plan, *tables


def test_many_cells_are_reduced_to_differing_ones_and_two_more():
    plan, exact, other = pair("SELECT n, k, COUNT(*) AS m FROM t GROUP BY n, k")
    cells = differing(plan, exact, other)
    one, two = (laid_out(plan.space, each[0])["count_1"] for each in (exact, other))
    moved = set(np.flatnonzero(one != two).tolist())
    assert moved == {9 * 4 + 2, 98 * 4}
    assert moved < set(cells)
    assert len(cells) == len(set(cells)) == 4
    _, _, found = again(session(), "SELECT n, k, COUNT(*) AS m FROM t GROUP BY n, k", 30, cells=cells)
    assert np.median(found.seen, axis=0).tolist() == one[list(cells)].tolist()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, COUNT(*) AS m FROM t GROUP BY k",
        "SELECT n FROM t GROUP BY n ORDER BY COUNT(*) DESC LIMIT 1",
    ],
)
def test_few_cells_and_selections_are_not_reduced(sql):
    assert differing(*pair(sql)) is None


def test_equal_tables_are_not_reduced():
    plan, exact, _ = pair("SELECT n, k, COUNT(*) AS m FROM t GROUP BY n, k")
    assert differing(plan, exact, exact) is None
