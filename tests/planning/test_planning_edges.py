"""Planning at its ends: plans that cannot be made, epsilons that cannot be found, levels with too many kinds of rows."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache

import duckdb
import pandas as pd
import pytest

import privsql
from privsql.algebra.exact import Name
from privsql.algebra.expressions import Call, Column, Literal
from privsql.analysis.domain import DayRange, Domain
from privsql.analysis.keys import KeyGroup, KeySpace, NullLast
from privsql.planning.aggregates.measure_aggregates import scaled_column
from privsql.planning.grids.grid import MOST_STEPS, grid_of
from privsql.planning.grids.value_grid import MOST_STEPS as MOST_POINTS
from privsql.planning.grids.value_grid import ValueGrid, value_grid
from privsql.planning.identity import _listed, places_of, strides
from privsql.planning.measurements.gaussian_noise import measure_gaussian, unit_variance
from privsql.planning.measurements.partition_selection import measure_keys
from privsql.planning.precision.noise_of_rows import alike_rows
from privsql.privacy.sensitivity import Sensitivity
from privsql.privacy.weighted_sums import half_width, variance
from privsql.render.duckdb import DUCKDB, text
from privsql.types import BIGINT, BOOLEAN, DATE, DOUBLE, TEXT, TIMESTAMP, decimal, integer

COLUMNS = {
    "k": {"values": ["a", "b"]},
    "x": {"range": [0, 100]},
    "y": {"range": [0, 1]},
    "huge": {"range": [0, 1e15]},
}


@pytest.fixture(scope="module")
def session():
    frame = pd.DataFrame(
        {"k": ["a"], "x": [1], "y": [0.5], "huge": [1.0], "g": [1.0], "who": [1], "city": ["x"], "m": [1]}
    )
    policy = {"tables": {"t": {"columns": COLUMNS}, "u": {"columns": COLUMNS, "unit": "who"}}}
    return privsql.connect({"t": frame, "u": frame}, policy)


# -- within=: the least epsilon ----------------------------------------------------------------------------------
@pytest.mark.parametrize("within", [1, 3, 20, 1000])
@pytest.mark.parametrize(
    "sql", ["SELECT k, COUNT(*) AS n FROM t GROUP BY k", "SELECT SUM(x) AS s, COUNT(*) AS n FROM t"]
)
def test_within_finds_the_least_sufficient_epsilon(session, sql, within):
    """At it all cells of all outputs are as close as asked, together; a billionth less, and they are not."""
    plan = session.explain(sql, within=within, confidence=0.9)
    each = 1 - 0.1 / (plan.cells * len(plan.outputs))
    assert max(plan.accuracy(each).values()) <= within
    less = plan.repriced(Fraction(plan.epsilon) - Fraction(1, 10**9)) if plan.epsilon > 2e-9 else None
    assert less is None or max(less.accuracy(each).values()) > within


def test_within_finds_an_epsilon_whose_noise_fits_64_bits():
    frame = pd.DataFrame({"m": [1], "who": [1]})
    table = {"unit": "who", "max_rows": 10**6, "columns": {"m": {"range": [0, 10**15]}}}
    plan = privsql.connect({"t": frame}, {"tables": {"t": table}}).explain(
        "SELECT SUM(m) AS s FROM t", within=1e300
    )
    assert plan.epsilon > 0.1
    with pytest.raises(privsql.ArgumentError, match="64-bit"):
        plan.repriced(Fraction(plan.epsilon) - Fraction(1, 10**8))


@pytest.mark.parametrize(
    ("sql", "within", "says"),
    [
        ("SELECT SUM(huge) AS s FROM t", 1e-12, "no epsilon gives an answer this accurate"),
        ("SELECT city, COUNT(*) AS n FROM t GROUP BY city", 5, "not known beforehand"),
        ("SELECT AVG(x) AS a FROM t", 5, "depends on the data"),
        ("SELECT COUNT(*) AS n FROM t", 0, "positive number"),
        ("SELECT COUNT(*) AS n FROM t", float("inf"), "positive number"),
        ("SELECT COUNT(*) AS n FROM t", True, "positive number"),
    ],
)
def test_no_epsilon_can_be_found(session, sql, within, says):
    with pytest.raises(privsql.ArgumentError, match=says) as refused:
        session.explain(sql, within=within, **({"delta": 1e-6} if "city" in sql else {}))
    assert refused.value.code == "argument-within"


def test_formulas_over_outputs_have_error_bounds(session):
    """Of two by the sum of both, each half as often off; with a constant by that; of anything else nobody knows beforehand."""
    shown = {
        "n": "COUNT(*)", "s": "SUM(x)", "a": "AVG(x)", "plus": "COUNT(*) + SUM(x)", "minus": "SUM(x) - COUNT(*)",
        "twice": "COUNT(*) * 2", "two": "-2 * COUNT(*)", "half": "SUM(x) / 2", "no": "COUNT(*) / 0", "one": "COUNT(*) + 1",
        "product": "COUNT(*) * SUM(x)", "inverse": "2 / COUNT(*)", "factor": "COUNT(*) * CAST(2 AS DOUBLE)",
        "left": "AVG(x) + COUNT(*)", "right": "COUNT(*) - AVG(x)", "rounded": "round(SUM(x) / 4, 1)",
        "whole": "round(SUM(x) / 4)", "cast": "CAST(SUM(x) / 4 AS INTEGER)",
        "rounded_a": "round(AVG(x), 1)", "cast_a": "CAST(AVG(x) AS INTEGER)", "minus_a": "-AVG(x)",
        "null": "NULL * COUNT(*)", "minus_s": "-(SUM(x) / 4)",
    }  # fmt: skip
    text = ", ".join(f"{each} AS {name}" for name, each in shown.items())
    plan = session.explain(f"SELECT {text} FROM t WHERE x > 1", epsilon=1)
    found, surer = plan.accuracy(0.9), plan.accuracy(0.95)
    n, s = found["n"], found["s"]
    assert 0 < n < s
    expected = {
        "n": n, "s": s, "plus": surer["n"] + surer["s"], "minus": surer["n"] + surer["s"], "twice": 2 * n, "two": 2 * n,
        "half": s / 2, "rounded": s / 4 + 0.05, "whole": s / 4 + 0.5, "one": n, "cast": s / 4 + 0.5,
        "factor": 2 * n, "minus_s": s / 4,
    }  # fmt: skip
    assert {name: each for name, each in found.items() if each is not None} == pytest.approx(expected)


@pytest.mark.parametrize("level", [0, 1, 0.9999999, float("nan"), -0.5, 1.5, True, "much"])
def test_invalid_confidence_levels_are_refused(session, level):
    plan = session.explain("SELECT COUNT(*) AS n FROM t", epsilon=1)
    with pytest.raises(privsql.ArgumentError, match=r"above 0 and at most 0\.999999"):
        plan.accuracy(level)


@pytest.mark.parametrize("rows", [0, -1, 1.5, True])
def test_invalid_row_limits_are_refused(session, rows):
    plan = session.explain("SELECT COUNT(*) AS n FROM t", epsilon=1)
    with pytest.raises(privsql.ArgumentError, match="whole number of at least 1"):
        plan.accuracy(0.9, rows=rows)


@pytest.mark.parametrize(
    ("score", "neighbours", "scale"),
    [
        (
            "COUNT(*)",
            "add-remove",
            2,
        ),  # who comes adds to scores, and takes from none: the lead moves as far as one score
        ("SUM(up)", "add-remove", 10),
        ("SUM(down)", "add-remove", 10),
        ("SUM(both)", "add-remove", 20),  # one score may rise while another falls
        ("SUM(nearly)", "add-remove", 20),
        ("SUM(bit)", "add-remove", 2),
        ("SUM(zero)", "add-remove", 2),  # as if it could move by the least there is
        ("SUM(bit)", "replace-one", 4),
        ("SUM(up)", "replace-one", 20),
        ("SUM(both)", "replace-one", 40),
    ],
)
def test_one_unit_moves_a_winners_lead_within_its_bound(score, neighbours, scale):
    ranges = {
        "up": [0, 5],
        "down": [-5, 0],
        "both": [-5, 5],
        "nearly": [-5, 1],
        "bit": [0, 1],
        "zero": [0, 0],
    }
    frame = pd.DataFrame({"who": [1], "k": ["a"], **{name: [0] for name in ranges}})
    columns = {"k": {"values": list("abcdef")}, **{name: {"range": each} for name, each in ranges.items()}}
    table = {"unit": "who", "max_groups": 3, "max_rows": 2, "columns": columns}
    session = privsql.connect({"t": frame}, {"neighbours": neighbours, "tables": {"t": table}})
    (choice,) = session.explain(
        f"SELECT k FROM t GROUP BY k ORDER BY {score} DESC LIMIT 1", epsilon=1
    ).measurements
    assert choice.scale == scale


# -- plans and measurements that do not hold together ----------------------------------------------------------------
def test_a_plan_costs_what_its_measurements_cost(session):
    plan = session.explain("SELECT COUNT(*) AS n FROM t", epsilon=1)
    (release,) = plan.releases
    twice = replace(plan, releases=(replace(release, measurements=plan.measurements * 2),))
    assert twice.loss == 2 * plan.loss == 2


def test_a_plan_has_one_release(session):
    plan = session.explain("SELECT COUNT(*) AS n FROM t", epsilon=1)
    for releases in ((), plan.releases * 2, (replace(plan.releases[0], parameters=("n",)),)):
        with pytest.raises(ValueError, match="one release"):
            replace(plan, releases=releases)


def test_keys_are_released_once(session):
    plan = session.explain("SELECT city, COUNT(*) AS n FROM t GROUP BY city", epsilon=1, delta=1e-6)
    (keys,) = plan.measurements
    again = replace(keys, columns=("count_2",))
    with pytest.raises(ValueError, match="releases keys only once"):
        replace(plan.releases[0], measurements=(keys, again))


def test_a_release_of_keys_covers_all_that_one_person_changes(session):
    (keys,) = session.explain(
        "SELECT city, COUNT(*) AS n FROM t GROUP BY city", epsilon=1, delta=1e-6
    ).measurements
    one = keys.sensitivity
    with pytest.raises(ValueError, match="release of keys"):
        replace(keys, sensitivity=replace(one, l1=one.l1 + 1))
    with pytest.raises(ValueError, match="release of keys"):
        replace(keys, sensitivity=replace(one, linf=one.linf + 1))
    with pytest.raises(ValueError, match="release of keys"):
        replace(keys, loss=keys.loss - Fraction(1, 10**9))
    assert (
        measure_keys(
            ("n",), one, keys.release.contribution, Fraction(1), Fraction(1, 10**6), 1, True, "n"
        ).loss
        == 1
    )


def test_the_scale_of_gaussian_noise_on_keys_is_its_deviation_rounded_up():
    frame = pd.DataFrame({"who": [1], "city": ["x"]})
    table = {"unit": "who", "max_groups": 9, "max_rows": 4}
    session = privsql.connect({"t": frame}, {"tables": {"t": table}})
    (keys,) = session.explain(
        "SELECT city, COUNT(*) AS n FROM t GROUP BY city", epsilon=1, delta=1e-6
    ).measurements
    assert keys.mechanism.name == "KEYS_GAUSSIAN"
    assert keys.noise_scale - 1 <= math.sqrt(keys.release.variance) <= keys.noise_scale


def test_gaussian_noise_that_would_not_fit():
    most = Sensitivity(2**40, 2**40, "huge")
    assert measure_gaussian(("n",), most, Fraction(1), Fraction(1, 10**6), Fraction(1), "n").loss == 1
    with pytest.raises(privsql.ArgumentError):
        measure_gaussian(("n",), most, Fraction(1, 10**6), Fraction(1, 10**6), Fraction(1), "n")
    with pytest.raises(privsql.ArgumentError) as refused:
        unit_variance(Fraction(1), Fraction(0))
    assert refused.value.code == "argument-delta"


def test_one_units_total_of_what_has_no_range(session):
    with pytest.raises(privsql.Refused, match=r"g = \{ range") as refused:
        session.explain("SELECT AVG(s) FROM (SELECT who, SUM(g) AS s FROM u GROUP BY who)", epsilon=1)
    assert refused.value.code == "refused-unbounded"
    with pytest.raises(privsql.Refused, match="select values between bounds that you know"):
        session.explain(
            "SELECT AVG(s) FROM (SELECT who, SUM(exp(1000::DOUBLE)) AS s FROM u GROUP BY who)", epsilon=1
        )


def test_one_units_total_of_whole_numbers_without_a_range(session):
    """It adds up exactly, but what one unit adds to the average then has no bound."""
    with pytest.raises(privsql.Refused) as refused:
        session.explain("SELECT AVG(s) FROM (SELECT who, SUM(m) AS s FROM u GROUP BY who)", epsilon=1)
    assert refused.value.code == "refused-unbounded"


def test_invalid_characters_are_refused():
    for wrong in ("\x00", "a\ud800", "\udfff"):
        with pytest.raises(privsql.SqlError):
            text(wrong)
    assert text("it's\ud7ff\ue000") == "'it''s\ud7ff\ue000'"


# -- explained ---------------------------------------------------------------------------------------------------
def test_the_least_number_of_units_is_explained():
    session = privsql.connect({"t": pd.DataFrame({"city": ["x"]})}, {"min_units": 12})
    asked = "SELECT city, COUNT(*) AS n FROM t GROUP BY city"
    plan = session.explain(asked, epsilon=1, delta=1e-6)
    assert "no key with fewer than 12 units is ever shown (policy: min_units)" in str(plan)
    session = privsql.connect({"t": pd.DataFrame({"city": ["x"]})}, {"min_units": 1})
    assert "min_units" not in str(session.explain(asked, epsilon=1, delta=1e-6))


def test_explain_shows_the_remaining_budget():
    session = privsql.connect({"t": pd.DataFrame({"x": [1]})}, {"budget": {"epsilon": 3}})
    for epsilon, left in ((1, 2), (3, 0)):
        plan = session.explain("SELECT COUNT(*) AS n FROM t WHERE x > 0", epsilon=epsilon)
        assert f"3 of the budget remains before this query, {left} after" in str(plan)


@pytest.mark.parametrize(
    ("budget", "arguments", "why"),
    [
        ({"epsilon": 3}, {"epsilon": 5}, "this costs epsilon 5, but only 3 of 3 is left"),
        ({"per_query": 0.5}, {"epsilon": 1}, "this costs epsilon 1, but one query may cost at most 0.5"),
        ({"per_query_least": 0.5}, {"epsilon": 0.1}, "this costs less than epsilon 0.5"),
        ({"epsilon": 3}, {"epsilon": 5, "ranges": "auto"}, "this costs epsilon 5, but only 3 of 3 is left"),
        ({"epsilon": 3}, {"epsilon": 5, "max_rows": "auto"}, "this costs epsilon 5, but only 3 of 3 is left"),
    ],
)
def test_explain_says_that_the_budget_does_not_allow_a_query(budget, arguments, why):
    """What EXPLAIN says of the budget is what query() does."""
    arguments = dict(arguments)
    columns = {"v": {"range": arguments.pop("ranges")}} if "ranges" in arguments else {"v": {"range": [0, 9]}}
    unit = {"unit": "x"} if "max_rows" in arguments else {}
    frame = pd.DataFrame({"x": range(50), "v": range(50)})
    session = privsql.connect({"t": frame}, {"budget": budget, "tables": {"t": {"columns": columns, **unit}}})
    asked = "SELECT SUM(v) AS s FROM t WHERE x > 0"
    explained = str(session.explain(asked, **arguments))
    assert f"This would be refused now: {why}" in explained
    assert "remains before this query" not in explained
    with pytest.raises(privsql.BudgetError, match=re.escape(why)):
        session.query(asked, **arguments)
    assert session.history().empty


def test_explain_of_a_stored_answer_takes_nothing_off_the_budget():
    session = privsql.connect({"t": pd.DataFrame({"x": [1]})}, {"budget": {"epsilon": 1}})
    asked = "SELECT COUNT(*) AS n FROM t WHERE x > 0"
    session.query(asked, epsilon=1)
    explained = str(session.explain(asked, epsilon=1))
    assert "the answer is stored" in explained
    assert (
        "0 of the budget remains before this query, 0 after it" in explained
        and "would be refused" not in explained
    )
    assert "This would be refused now" in str(session.explain(asked, epsilon=1, fresh=True))


def test_long_titles_are_cut(session):
    def title(letters: int) -> str:
        plan = session.explain(f"SELECT COUNT(*) AS n FROM t WHERE city = '{'y' * letters}'", epsilon=1)
        (line,) = [line for line in str(plan).splitlines() if "Filter" in line]
        return line[line.index("Filter") :].partition(": ")[0]

    others = len(title(1)) - 1
    assert [len(title(many - others)) for many in (99, 100, 101, 150)] == [99, 100, 100, 100]
    assert [title(many - others).endswith("...") for many in (99, 100, 101, 150)] == [
        False,
        False,
        True,
        True,
    ]


def test_a_single_key_is_explained_in_the_singular(session):
    for where, many in (("k = 'a'", "1 key"), ("TRUE", "3 keys")):
        plan = session.explain(f"SELECT k, COUNT(*) AS n FROM t WHERE {where} GROUP BY k", epsilon=1)
        assert f"Group by k: {many}, all in the answer, including those without rows" in str(plan)


def test_explain_compares_mechanisms_for_a_label(session):
    for where, many in (("k = 'a'", 1), ("k IN ('a', 'b')", 2), ("TRUE", 3)):
        plan = session.explain(
            f"SELECT k FROM t WHERE {where} GROUP BY k ORDER BY COUNT(*) DESC LIMIT 1", epsilon=1
        )
        assert plan.cells == many
        assert plan.notes[0] == "only the label is released, not the score"
        assert len(plan.notes) == (3 if many > 1 else 1)
        assert f"a noisy histogram of {many} cells" in str(plan) or many == 1


def test_a_bound_on_matches_is_explained():
    frames = {"a": pd.DataFrame({"c": ["x"], "x": [1]}), "b": pd.DataFrame({"c": ["x"], "y": [1]})}
    session = privsql.connect(frames, {"tables": {"a": {"matches": {"c": 3}}, "b": {"matches": {"c": 2}}}})
    plan = session.explain("SELECT COUNT(*) AS n FROM a JOIN b ON a.c = b.c", epsilon=1)
    assert "At most 3 rows for each c" in str(plan)
    assert "At most 2 rows for each c" in str(plan)


def test_levels_with_too_many_kinds_of_rows(session):
    """Pairs in no pattern: then each level is as sure as it was measured, or somewhat less, and nothing more is said."""
    listed = pd.DataFrame(
        [(a, b) for a in range(40) for b in range(40) if (a * b) % 7 < 3], columns=["a", "b"]
    )
    listed["x"] = range(len(listed))
    frames = {"t": pd.DataFrame({"x": [1]}), "pairs": listed}
    policy = {"tables": {"t": {"columns": {"x": {"range": [0, 2000]}}}, "pairs": {"public": True}}}
    asked = "SELECT a, b, COUNT(*) AS n, {} AS s FROM t JOIN pairs ON t.x = pairs.x GROUP BY CUBE (a, b)"
    plan = privsql.connect(frames, policy).explain(asked.format("SUM(t.x)"), epsilon=1)
    assert "least squares over all sets makes them agree; the bounds known for the result are wider: " in str(
        plan
    )
    kinds = alike_rows(plan)
    assert [each.level for each in kinds] == [0, 1, 2, 3]
    assert sum(len(each.rows) for each in kinds) == plan.cells
    alone = {name: each for each in plan.measurements for name in each.columns}
    for each in kinds:
        for name, noise in each.noise.items():
            times = alone[name].sensitivity.total_times if each.level == 3 else 1
            assert half_width([(1.0, noise)], 0.95) >= alone[name].half_width(0.95) / times
            assert variance(noise) == pytest.approx(variance(alone[name].law) / times**2)


def test_constants_are_written_out():
    for value, type_, written in [
        (Decimal("1E+2"), decimal(5, 1), "CAST(100 AS DECIMAL(5,1))"),
        (Decimal("-0.001"), decimal(5, 3), "CAST(-0.001 AS DECIMAL(5,3))"),
        (7, decimal(5, 1), "CAST(7 AS DECIMAL(5,1))"),
        (7, DOUBLE, "CAST(7.0 AS DOUBLE)"),
        (math.inf, DOUBLE, "CAST('inf' AS DOUBLE)"),
        (dt.datetime(2024, 1, 2, 3, 4, 5, 6), TIMESTAMP, "TIMESTAMP '2024-01-02 03:04:05.000006'"),
        (dt.date(2024, 1, 2), DATE, "DATE '2024-01-02'"),
        ("it's", TEXT, "'it''s'"),
    ]:
        assert DUCKDB.constant(value, type_) == written


# -- in other orders ---------------------------------------------------------------------------------------------
def test_indices_among_listed_values():
    listed = (["a", "a", None], [1, 2, 2])
    assert places_of(listed, (["a", None, "b", "a"], [2, 2, 1, 1])).tolist() == [1, 2, -1, 0]


DAY = dt.date(2024, 2, 28)


def test_sets_of_keys_are_told_apart():
    """What is stored for one set of keys is no answer for another; the order in which they are listed does not matter."""
    sets = [("a", "b"), ("a", "c"), ("a", "b", "c"), (1, 2), ("1", "2"), range(0, 5), range(0, 6), range(1, 5),
            DayRange(DAY, DAY), DayRange(DAY, dt.date(2024, 3, 1)), DayRange(dt.date(2024, 2, 27), DAY)]  # fmt: skip
    texts = [_listed(each) for each in sets] + [_listed(NullLast(each)) for each in sets]
    assert len(set(texts)) == 2 * len(sets)
    assert all(isinstance(each, str) for each in texts)
    assert _listed(("b", "a")) == _listed(["a", "b"])


def test_strides_of_groups():
    space = KeySpace(
        ("a", "b", "c"),
        tuple(KeyGroup((name,), (range(size),)) for name, size in (("a", 2), ("b", 3), ("c", 5))),
    )
    assert [(group.names, stride) for group, stride in strides(space)] == [
        (("a",), 15),
        (("b",), 5),
        (("c",), 1),
    ]


SPREADS = ["covar_pop", "covar_samp", "corr", "regr_r2", "regr_slope", "regr_intercept"]


@pytest.mark.parametrize("also", SPREADS)
@pytest.mark.parametrize("function", SPREADS)
def test_spreads_of_two_columns_either_way_round(wards, function, also):
    """Of both orders of the arguments in one query, as DuckDB has them; a billion rows would still fit."""
    session, connection = wards
    text = f"SELECT {function}(x, y) AS one, {also}(y, x) AS other, {also}(x, y) AS third FROM t"
    found = session.query(text, epsilon=1e4).fetchall()[0]
    assert found == pytest.approx(connection.execute(text).fetchall()[0], rel=0.02)


@pytest.mark.parametrize("function", ["var_pop", "var_samp", "stddev_pop", "stddev_samp"])
@pytest.mark.parametrize("column", ["x", "y", "n", "d"])
def test_spreads_beside_other_numbers(wards, function, column):
    session, connection = wards
    text = f"SELECT {function}({column}) AS one, SUM({column}) AS s, AVG({column}) AS a, COUNT({column}) AS c FROM t"
    found, exact = session.query(text, epsilon=1e4).fetchall()[0], connection.execute(text).fetchone()
    assert [float(each) for each in found] == pytest.approx([float(each) for each in exact], rel=0.01)


@pytest.fixture(scope="module")
def wards():
    connection = duckdb.connect()
    connection.execute("""CREATE TABLE t AS SELECT (i * 37 % 1000) / 7.0 AS x, (i * 37 % 1000) / 5.0 + (i * 101 % 97) - 40 AS y,
                          (i * 13 % 50)::INTEGER AS n, (i * 17 % 900)::DECIMAL(8, 2) / 100 AS d FROM range(3000) r(i)""")
    columns = {
        "x": {"range": [0, 150]},
        "y": {"range": [-50, 300]},
        "n": {"range": [-3, 60]},
        "d": {"range": [0, 9.5]},
    }
    yield privsql.connect(connection, {"tables": {"t": {"columns": columns}}}), connection
    connection.close()


@pytest.mark.parametrize(("condition", "rows"), [
    ("n IN (3, NULL)", 60), ("n NOT IN (3, NULL)", 0), ("n IN (3, 4)", 120), ("n NOT IN (3, 4)", 2880), ("n NOT IN (NULL)", 0),
    ("(n IN (3, NULL)) IS NULL", 2940), ("(n IN (3, 4)) IS NULL", 0),
])  # fmt: skip
def test_null_in_an_in_list(wards, condition, rows):
    session, connection = wards
    plan = session.explain(f"SELECT COUNT(*) AS c FROM t WHERE {condition}", epsilon=1)
    assert connection.execute(plan.sql).fetchall() == [(rows,)]


def test_undeclared_values_are_in_no_total():
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT CASE WHEN i < 3 THEN 'a' ELSE 'other' END AS k FROM range(8) r(i)"
    )
    policy = {"neighbours": "add-remove", "tables": {"t": {"columns": {"k": {"values": ["a", "b"]}}}}}
    asked = "SELECT CASE WHEN k = 'other' THEN 1 END AS c, COUNT(*) AS n FROM t GROUP BY {}"
    with privsql.connect(connection, policy) as session:
        for by, numbers in (("c", [3]), ("ROLLUP (c)", [3, 3])):
            plan = session.explain(asked.format(by), epsilon=1)
            assert [row[-1] for row in connection.execute(plan.sql).fetchall()] == numbers
    connection.close()


def test_shares_of_a_whole_are_what_duckdb_says(wards):
    """Also of a part of the rows, of several at once, of percents, and upside down."""
    session, connection = wards
    small, large = "COUNT(*) FILTER (WHERE n < 10)", "COUNT(*) FILTER (WHERE n > 30)"
    text = (f"SELECT {small} / COUNT(*) AS a, 100.0 * {large} / COUNT(*) AS b, COUNT(*) / {small} AS c, {large} / {small} AS d, "
            "COUNT(*) AS whole FROM t WHERE x > 20")  # fmt: skip
    found = session.query(text, epsilon=1e4).fetchall()[0]
    assert found == pytest.approx(connection.execute(text).fetchall()[0], rel=0.01)


def test_shares_have_an_error_bound(wards):
    """By the noise of three counts, of which the whole is made, over the whole; that of the part cancels out in part."""
    session, _ = wards
    parts = {"small": "COUNT(*) FILTER (WHERE n < 10)", "large": "COUNT(*) FILTER (WHERE n > 30)"}
    shown = ", ".join(f"{count} AS {name}, {count} / COUNT(*) AS of_{name}" for name, count in parts.items())
    answer = session.query(f"SELECT {shown}, COUNT(*) AS whole FROM t WHERE x > 20", epsilon=1, fresh=True)
    one = answer.intervals().iloc[0]
    for name in parts:
        low, value, high = (one[f"of_{name}{end}"] for end in ("_low", "", "_high"))
        assert low < value < high
        assert value == pytest.approx(one[name] / one["whole"], rel=0.01)
        assert 10 < (high - low) * one["whole"] < 31


# -- grids -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "seconds", [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400]
)
def test_steps_of_time_are_parts_of_a_day(seconds):
    low = dt.datetime(1, 1, 1)
    found = value_grid(
        TIMESTAMP, Domain(TIMESTAMP, low=low, high=low + dt.timedelta(seconds=seconds * MOST_POINTS))
    )
    assert found.step == seconds * 10**6
    assert 86_400 % seconds == 0


@pytest.mark.parametrize(
    ("type_", "low", "points", "wide"),
    [
        (BIGINT, 0, 2**20, "BIGINT"),
        (BIGINT, 0, 2**20 + 1, "HUGEINT"),  # from here on the distance of two values may not fit
        (BIGINT, -(2**61), 2**20, "BIGINT"),
        (integer(0, 2**70), 0, 5, "HUGEINT"),
    ],
)
def test_whole_numbers_are_put_on_a_grid_in_a_type_that_holds_them(type_, low, points, wide):
    found = ValueGrid(type_, Fraction(low), Fraction(2**42), points)
    measured = DUCKDB.scalar(found.measure(Name("x")))
    assert measured.startswith(
        f'(least(greatest(CAST("x" AS {wide}), CAST({f"({low})" if low < 0 else low} AS {wide})), '
    )


@pytest.mark.parametrize(
    ("type_", "low", "high", "text"),
    [
        (DATE, dt.date(2024, 1, 1), dt.date(2024, 12, 31), "[2024-01-01, 2024-12-31]"),
        (DATE, dt.date(1, 1, 1), dt.date(9999, 12, 31), "[0001-01-01, 9999-12-28] on a grid of 5 days"),
        (TIMESTAMP, dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2),
         "[2024-01-01 00:00:00, 2024-01-02 00:00:00] on a grid of 100,000 microseconds"),
        (TIMESTAMP, dt.datetime(2024, 1, 1), dt.datetime(2024, 12, 31),
         "[2024-01-01 00:00:00, 2024-12-31 00:00:00] on a grid of 60 seconds"),
        (BIGINT, Fraction(0), Fraction(9), "[0, 9]"),
        (BIGINT, Fraction(0), Fraction(2 * MOST_POINTS), f"[0, {2 * MOST_POINTS}] on a grid of 2"),
        (decimal(5, 1), Fraction(0), Fraction(3), "[0, 3] on a grid of 0.1"),
        (DOUBLE, Fraction(0), Fraction(1), "[0, 1] on a grid of 1e-06"),
    ],
)  # fmt: skip
def test_a_grid_of_values_in_words(type_, low, high, text):
    assert value_grid(type_, Domain(type_, low=low, high=high)).text == text


@pytest.mark.parametrize(
    ("type_", "low", "high", "grid"),
    [
        (BIGINT, 0, 100, (1, 0, 100)),
        (BIGINT, Fraction(1, 2), Fraction(7, 2), (1, 0, 4)),
        (BIGINT, -5, -2, (1, -5, -2)),
        (BIGINT, 0, MOST_STEPS, (1, 0, MOST_STEPS)),
        (BIGINT, 0, MOST_STEPS + 1, (2, 0, MOST_STEPS // 2 + 1)),
        (BIGINT, -4 * MOST_STEPS, 0, (4, -MOST_STEPS, 0)),
        (decimal(8, 2), 0, 100, (Fraction(1, 100), 0, 10_000)),
        (decimal(8, 2), Fraction(-1, 8), 1, (Fraction(1, 100), -13, 100)),
        (decimal(18, 2), 0, MOST_STEPS, (Fraction(1), 0, MOST_STEPS)),
        (DOUBLE, 0, 1, (Fraction(1, MOST_STEPS), 0, MOST_STEPS)),
        (DOUBLE, -1, Fraction(1, 2), (Fraction(1, MOST_STEPS), -MOST_STEPS, MOST_STEPS // 2)),
        (DOUBLE, 0, 1024, (Fraction(1024, MOST_STEPS), 0, MOST_STEPS)),
        (DOUBLE, 0, 1025, (Fraction(2048, MOST_STEPS), 0, -(-1025 * MOST_STEPS // 2048))),
        (DOUBLE, 0, 0, (1, 0, 0)),
    ],
)
def test_the_steps_of_a_grid(type_, low, high, grid):
    found = grid_of(type_, Domain(type_, low=Fraction(low), high=Fraction(high)))
    assert (found.step, found.low, found.high) == grid
    assert found.whole is (type_ == BIGINT)
    assert found.nullable
    assert not grid_of(type_, Domain(type_, nullable=False, low=Fraction(low), high=Fraction(high))).nullable


@pytest.mark.parametrize(
    ("low", "high", "narrow"),
    [(0, 2**32 - 1, True), (0, 2**32, False), (-(2**31), 5, True), (-(2**31) - 1, 5, False)],
)
def test_narrow_types_stay_narrow(low, high, narrow):
    assert (
        grid_of(integer(low, high), Domain(integer(low, high), low=Fraction(0), high=Fraction(5))).narrow
        is narrow
    )


@pytest.mark.parametrize(
    ("type_", "high", "between"),
    [
        (DOUBLE, 3, 'CAST("x" AS DOUBLE) BETWEEN CAST(0.0 AS DOUBLE) AND CAST(3.0 AS DOUBLE)'),
        (
            BIGINT,
            2 * MOST_STEPS,
            f'CAST("x" AS DOUBLE) BETWEEN CAST(0.0 AS DOUBLE) AND CAST({2.0 * MOST_STEPS} AS DOUBLE)',
        ),
        (decimal(8, 2), 3, '(CAST("x" AS DOUBLE) * CAST(100.0 AS DOUBLE)) BETWEEN 0 AND 300'),
        (decimal(18, 0), 2**31, '(CAST("x" AS DOUBLE) * CAST(0.1 AS DOUBLE)) BETWEEN 0 AND 214748365'),
        (BIGINT, 3, '("x" BETWEEN 0 AND 3)'),
    ],
)
def test_values_are_compared_directly_if_the_bounds_are_doubles(type_, high, between):
    """That is faster, and DuckDB can use its statistics; a step of 1/100 is no double."""
    grid = grid_of(type_, Domain(type_, low=Fraction(0), high=Fraction(high)))
    assert between in DUCKDB.scalar(grid.clamped(Name("x")))


def test_an_empty_range_is_zero():
    found = grid_of(DOUBLE, Domain(DOUBLE, empty=True, values=()))
    assert (found.step, found.low, found.high) == (1, 0, 0)


# -- quotients ---------------------------------------------------------------------------------------------------
N, TWO, HALF = Column("n", BIGINT), Literal(2, BIGINT), Literal(Decimal("0.5"), decimal(3, 1))


@pytest.mark.parametrize(
    ("expression", "scaled"),
    [
        (N, ("n", 1)),
        (Call("*", (N, TWO), BIGINT), ("n", 2)),
        (Call("*", (HALF, N), DOUBLE), ("n", Fraction(1, 2))),
        (Call("*", (Call("*", (N, TWO), BIGINT), HALF), DOUBLE), ("n", 1)),
        (Call("cast", (N,), DOUBLE), ("n", 1)),
        (Call("*", (Call("cast", (TWO,), DOUBLE), Call("cast", (N,), DOUBLE)), DOUBLE), ("n", 2)),
        (Call("cast", (N,), TEXT), (None, 1)),
        (Call("*", (N, N), BIGINT), (None, 1)),
        (Call("*", (N, Literal(None, BIGINT)), BIGINT), (None, 1)),
        (Call("*", (N, Literal(True, BOOLEAN)), BIGINT), (None, 1)),
        (Call("*", (N, Literal(math.inf, DOUBLE)), DOUBLE), (None, 1)),
        (Call("*", (N, Call("cast", (TWO,), TEXT)), DOUBLE), (None, 1)),
        (Call("+", (N, TWO), BIGINT), (None, 1)),
    ],
)
def test_a_column_times_a_constant(expression, scaled):
    assert scaled_column(expression) == scaled


# -- what mutants of the rules left unseen ------------------------------------------------------------------------
def test_two_exhaustive_parts_sum_to_the_total():
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t (b BOOLEAN NOT NULL); INSERT INTO t SELECT i % 3 = 0 FROM range(30) r(i)"
        )
        session = privsql.connect(connection, {"tables": {"t": {}}})
        sql = "SELECT COUNT(*) FILTER (WHERE b) AS yes, COUNT(*) FILTER (WHERE NOT b) AS no, COUNT(*) AS n FROM t"
        (found,) = session.explain(sql, epsilon=1).relations
        assert found.exactly and len(found.parts) == 2


@pytest.mark.parametrize(("ends", "scale"), [([-5, 0], 5), ([0, 5], 5), ([-5, 1], 10)])
def test_a_score_that_everybody_moves_one_way_needs_half_the_noise(ends, scale):
    frame = pd.DataFrame({"who": [1, 1], "k": ["a", "b"], "x": [0, 0]})
    declared = {
        "unit": "who",
        "max_groups": 2,
        "max_rows": 1,
        "columns": {"k": {"values": ["a", "b"]}, "x": {"range": ends}},
    }
    session = privsql.connect({"t": frame}, {"neighbours": "add-remove", "tables": {"t": declared}})
    plan = session.explain(
        "SELECT k FROM t WHERE k IS NOT NULL GROUP BY k ORDER BY SUM(x) DESC LIMIT 1", epsilon=1
    )
    assert plan.measurements[0].scale == scale


def test_the_widest_limits_of_several_tables_apply():
    frame = pd.DataFrame({"who": [1, 1], "k": ["a", "b"]})
    key = {"k": {"values": ["a", "b", "c", "d", "e"]}}
    limits = ({"max_groups": 4, "max_rows": 2}, {"max_groups": 1, "max_rows": 3})
    for first, second in (limits, limits[::-1]):
        policy = {"t": {"unit": "who", "columns": key, **first}, "u": {"unit": "who", **second}}
        session = privsql.connect(
            {"t": frame, "u": frame[["who"]]}, {"neighbours": "add-remove", "tables": policy}
        )
        sql = "SELECT t.k, COUNT(*) AS n FROM t JOIN u ON t.who = u.who WHERE t.k IS NOT NULL GROUP BY t.k"
        assert session.explain(sql, epsilon=1).measurements[0].l1 == 4 * 3


@cache
def _up_to(end: float) -> privsql.Session:
    frame = pd.DataFrame({"x": [0.5, 1.5]})
    return privsql.connect({"t": frame}, {"tables": {"t": {"columns": {"x": {"range": [0, end]}}}}})


@pytest.mark.parametrize("end", [5e-324, 1e-320, 1e-300, 1e9])
@pytest.mark.parametrize(
    "argument", ["least(greatest({e}, -1000), 1000)", "least(greatest(x, {e}), {e})", "x"]
)
@pytest.mark.parametrize("function", ["MAX", "MEDIAN", "AVG", "VAR_POP", "SUM"])
def test_tiny_ranges_are_planned(function, argument, end):
    """The logarithm of a step that a double cannot hold was a bare ValueError."""
    session = _up_to(end)
    assert session.explain(f"SELECT {function}({argument.format(e=end)}) FROM t", epsilon=1).measurements


def test_sensitivities_are_explained_in_the_units_of_the_values():
    """The columns of the exact SQL are whole numbers on a grid: l1 was 105,237,436,194 for prices between 0.01 and 0.99."""
    frame = pd.DataFrame({"price": [0.5, 0.25], "k": ["a", "b"]})
    policy = {"tables": {"t": {"columns": {"price": {"range": [0, 2]}, "k": {"values": ["a", "b"]}}}}}
    session = privsql.connect({"t": frame}, policy)
    for asked, l1, scale in (
        ("SELECT k, AVG(price) AS a FROM t GROUP BY k", "l1 = 4, linf = 2 ", "l1 / epsilon = 4 / 0.5 = 8"),
        ("SELECT SUM(price) AS s FROM t", "l1 = 2, linf = 2 ", "l1 / epsilon = 2 / 0.5 = 4"),
        ("SELECT k, VAR_POP(price) AS v FROM t GROUP BY k", "l1 = 8", "= 16"),
        (
            "SELECT k FROM t GROUP BY k ORDER BY SUM(price) DESC LIMIT 1",
            "linf = 2 ",
            "2 * linf / epsilon = 2 * 2 / 0.5 = 8",
        ),
    ):
        plan = session.explain(asked, epsilon=0.5)
        (measurement,) = plan.measurements
        text = str(plan)
        assert l1 in text and scale in text
        assert f"l1 = {measurement.l1:,}, linf = {measurement.linf:,})" in text, (
            "by which plan.sql can be checked"
        )


@pytest.mark.parametrize("level", [0.999999, 0.9999999, 1 - 1e-16, 1.0, float("nan")])
def test_a_confidence_level_is_one_that_cells_can_share(level):
    """Divided among a thousand cells, what was left to 1 was 0: a bare ZeroDivisionError."""
    policy = {"tables": {"t": {"columns": {"x": {"range": [0, 1000]}}}}}
    session = privsql.connect({"t": pd.DataFrame({"x": [1, 2]})}, policy)
    asked = "SELECT x, COUNT(*) AS n, AVG(x) AS a FROM t GROUP BY x"
    too_sure = (
        contextlib.nullcontext() if level == 0.999999 else pytest.raises(privsql.ArgumentError, match="level")
    )
    with too_sure:
        session.explain(asked.replace(", AVG(x) AS a", ""), within=20, confidence=level)
    with too_sure:
        session.explain(asked, epsilon=1).accuracy(level)
    with too_sure:
        session.query(asked, epsilon=1).intervals(level)
