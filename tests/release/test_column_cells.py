"""The cells of a column: which row is in which, what they are called, and what conditions on them tell."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

import duckdb
import pytest

import privsql
from privsql.planning.marginals.mwem_plan import measure_mwem
from privsql.planning.marginals.residual_measurement import measure_residuals
from privsql.privacy.marginals.residual_price import Neighbouring, squared_change
from privsql.privacy.marginals.residual_variances import planned_variances

PRICE = {"epsilon": 50.0, "delta": 1e-3}  # hardly any noise
DECLARED = {
    "small": {"range": [3, 7]},
    "weight": {"range": [0, 10]},
    "price": {"range": [0, 4]},
    "day": {"range": ["2024-01-01", "2024-12-30"]},
    "moment": {"range": ["2024-01-01", "2024-12-31"]},
    "level": {"values": [1, 5]},
    "holiday": {"values": ["2024-05-01"]},
    "flag": {"values": [True]},
    "same": {"range": [2, 2]},
}


@pytest.fixture(scope="module")
def session():
    source = duckdb.connect()
    source.execute(
        "CREATE TABLE t AS SELECT CAST(i % 9 AS TINYINT) AS small, i / 40.0::DOUBLE AS weight, "
        "CAST(i % 5 AS DECIMAL(6, 2)) AS price, DATE '2024-01-01' + CAST(i % 366 AS INTEGER) AS day, "
        "TIMESTAMP '2024-01-01' + to_hours(CAST(20 * i AS INTEGER)) AS moment, i % 7 AS level, "
        "DATE '2024-05-01' + CAST(i % 2 AS INTEGER) AS holiday, i % 4 = 0 AS flag, 2 AS same "
        "FROM range(400) AS r(i)"
    )
    with privsql.connect(source, {"tables": {"t": {"columns": DECLARED}}}) as session:
        session.truth = lambda sql: source.execute(sql).fetchall()[0][0]
        yield session


def released(session, column, bins=None):
    workload = privsql.marginals([column], bins=None if bins is None else {column: bins})
    return session.release(workload, "t", **PRICE)


@pytest.mark.parametrize(
    ("column", "bins", "labels", "counts"),
    [
        ("small", None, [3, 4, 5, 6, 7, None], [180, 44, 44, 44, 88, 0]),  # ends take what lies beyond
        ("small", 2, ["[3, 5)", "[5, 8)", None], [224, 176, 0]),
        ("weight", [0.0, 2.5, 5], ["[0, 2.5)", "[2.5, 5]", None], [100, 300, 0]),
        ("price", 2, ["[0, 2)", "[2, 4]", None], [160, 240, 0]),
        ("day", ["2024-01-01", "2024-07-01"], ["[2024-01-01, 2024-07-01)", None], [400, 0]),
        ("level", None, [1, 5, None, "(other)"], [57, 57, 0, 286]),
        ("flag", None, [True, None, "(other)"], [100, 0, 300]),
        ("same", None, [2, None], [400, 0]),
    ],
)
def test_every_row_is_counted_in_its_cell(session, column, bins, labels, counts):
    table = released(session, column, bins).df([column], level=0.9999)
    shown = [None if each is None or each != each else each for each in table[column]]
    assert [str(each).replace("]", ")") for each in shown] == [str(each).replace("]", ")") for each in labels]
    assert table["n"].tolist() == pytest.approx(counts, abs=6)


@pytest.mark.parametrize(
    ("column", "bins", "condition"),
    [
        ("small", None, "small > 3 AND small < 7 AND small % 2 = 0"),
        ("small", 2, "small <= 4"),
        ("small", 2, "5 > small"),
        ("weight", 4, "weight >= 2.5"),
        ("price", 2, "price < 2"),
        ("day", ["2024-01-01", "2024-07-01", "2025-01-01"], "day <= DATE '2024-06-30'"),
        ("day", ["2024-01-01", "2024-07-01", "2025-01-01"], "day IS NOT NULL"),
        ("moment", ["2024-01-01", "2024-07-01", "2025-01-01"], "moment < TIMESTAMP '2024-07-01'"),
        ("level", None, "level <> 5"),
        ("holiday", None, "holiday <> DATE '2024-05-01'"),
        ("flag", None, "flag = TRUE"),
        ("flag", None, "flag <> TRUE"),
        ("small", 2, "small < NULL"),
    ],
)
def test_a_condition_counts_the_same_rows_as_in_plain_sql(session, column, bins, condition):
    sql = f"SELECT COUNT(*) AS n FROM t WHERE {condition}"
    found = released(session, column, bins).query(sql).intervals(0.9999).iloc[0]
    assert found.n_low <= session.truth(sql) <= found.n_high
    assert found.n == pytest.approx(session.truth(sql), abs=8)


@pytest.mark.parametrize(
    ("column", "bins", "condition"),
    [
        ("small", 2, "small + 1 < 5"),
        ("small", 2, "small < same"),
        ("moment", 2, "moment <= TIMESTAMP '2024-07-01'"),
        ("flag", None, "flag"),
        ("flag", None, "flag IS NOT TRUE"),
        ("level", None, "level > 1"),
    ],
)
def test_a_condition_that_parts_a_cell_is_refused(session, column, bins, condition):
    workload = privsql.marginals(["small", "same"], 2, {"small": 2}) if "same" in condition else None
    release = session.release(workload, "t", **PRICE) if workload else released(session, column, bins)
    with pytest.raises(privsql.Refused) as caught:
        release.query(f"SELECT COUNT(*) AS n FROM t WHERE {condition}")
    assert caught.value.code == "refused-not-released"


def test_a_query_over_more_than_rows_of_the_table_is_refused(session):
    release = released(session, "small")
    with pytest.raises(privsql.Refused, match="more than rows"):
        release.query("SELECT COUNT(*) AS n FROM (SELECT small FROM t UNION ALL SELECT small FROM t) AS u")


@pytest.mark.parametrize(
    ("column", "edges"),
    [
        ("weight", [0, float("nan")]),
        ("weight", [True, 2]),
        ("day", ["2024-01-01", "soon"]),
        ("day", ["2024-01-01", None]),
        ("small", [0, True]),
        ("small", [0, 1, 1]),
    ],
)
def test_edges_that_are_no_values_of_the_column_are_rejected(session, column, edges):
    with pytest.raises(privsql.ArgumentError, match="increasing values"):
        session.explain_release(privsql.marginals([column], bins={column: edges}), "t", **PRICE)


def test_bins_must_be_a_mapping():
    with pytest.raises(privsql.ArgumentError, match="must map"):
        privsql.marginals(["age"], bins=[1, 2])


def test_columns_of_one_cell_need_no_noise():
    source = duckdb.connect()
    source.execute("CREATE TABLE t (same INTEGER NOT NULL, small INTEGER NOT NULL)")
    source.execute("INSERT INTO t SELECT 2, i % 3 FROM range(300) AS r(i)")
    ranges = {"same": {"range": [2, 2]}, "small": {"range": [0, 2]}}
    with privsql.connect(source, {"tables": {"t": {"columns": ranges}}}) as session:
        assert session.release(privsql.marginals(["same"]), "t", **PRICE).df()["n"].tolist() == [300]
        both = session.release(privsql.marginals(["same", "small"], ways=2), "t", **PRICE)
        assert both.df()["n"].tolist() == pytest.approx([100] * 3, abs=6)
        assert both.df(["small", "same"])["small"].tolist() == [0, 1, 2]


# -- plans ---------------------------------------------------------------------------------------------------
def test_a_plan_says_what_it_would_do(session):
    plan = session.explain_release(privsql.marginals(["small", "flag", "level"], ways=2), "t", **PRICE)
    assert "small (6 cells)" in str(plan) and "more in between" not in str(plan)
    released(session, "small")
    assert "is stored, and free" in str(session.explain_release(privsql.marginals(["small"]), "t", **PRICE))
    many = privsql.marginals(["small", "flag", "level", "same", "price"], ways=3)
    assert "more in between" in str(session.explain_release(many, "t", **PRICE))


def test_a_plan_says_why_the_budget_does_not_allow_it():
    frame = duckdb.sql("SELECT TRUE AS flag").df()
    with privsql.connect({"t": frame}, {"budget": {"epsilon": 0.1, "delta": 1e-9}}) as session:
        assert "refused now" in str(session.explain_release(privsql.marginals(["flag"]), "t", **PRICE))


def test_noise_that_does_not_fit_is_refused():
    by, tiny = Neighbouring(10**6, replaced=False), Fraction(1, 10**6)
    with pytest.raises(privsql.ArgumentError, match="64-bit"):
        measure_residuals([1_000, 1_000], [(0, 1)], by, tiny, Fraction(1, 10**9))
    with pytest.raises(privsql.ArgumentError, match="64-bit"):
        measure_mwem(Neighbouring(10**7, replaced=True), 1_000, tiny)
    with pytest.raises(privsql.ArgumentError, match="cells"):
        measure_residuals([5_000, 5_000], [(0, 1)], Neighbouring(1, False), Fraction(1), Fraction(1, 10**6))


def test_prices_of_nonsense_are_rejected():
    with pytest.raises(ValueError, match="at least one row"):
        Neighbouring(0, replaced=True)
    with pytest.raises(ValueError, match="exactly one"):
        Neighbouring(2, replaced=True, always=True)
    with pytest.raises(ValueError, match="and noise"):
        squared_change([2], {(0,): Fraction(0)}, Neighbouring(1, False))
    with pytest.raises(ValueError, match="columns of the table"):
        squared_change([2], {(1,): Fraction(1)}, Neighbouring(1, False))
    assert set(planned_variances([1], [(0,)], Fraction(1), Neighbouring(1, False))) == {()}


def test_dates_are_declared_as_dates(session):
    labels = released(session, "holiday").df()["holiday"].tolist()
    assert labels[0] == dt.date(2024, 5, 1) and labels[-1] == "(other)"
