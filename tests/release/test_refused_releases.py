"""Each code with which a release is refused."""

from __future__ import annotations

import dataclasses
import datetime as dt

import duckdb
import numpy as np
import pytest

import privsql
from tests.release.people import WORKLOAD, connect, people

PRICE = {"epsilon": 1.0, "delta": 1e-6}


def code_of(call):
    with pytest.raises(privsql.PrivsqlError) as caught:
        call()
    assert caught.value.suggestion
    return caught.value.code


def test_each_refusal_has_its_code():
    named = ["smoker"]
    assert code_of(lambda: privsql.marginals([])) == "argument-columns"
    assert code_of(lambda: privsql.marginals(named, ways=9)) == "argument-ways"
    assert code_of(lambda: privsql.marginals(named, bins={"smoker": []})) == "argument-bins"
    assert code_of(lambda: privsql.marginals([f"c{i}" for i in range(60)], 5)) == "argument-marginals"
    many = {"columns": {"state": {"values": [f"s{i}" for i in range(1_001)]}}}
    with connect(people(10), table=many) as session:
        explain = session.explain_release
        assert code_of(lambda: explain(named, "people", **PRICE)) == "argument-workload"
        assert (
            code_of(lambda: explain(privsql.marginals(["state"]), "people", **PRICE)) == "refused-many-cells"
        )
        release = session.release(privsql.marginals(named), "people", **PRICE)
        assert code_of(lambda: release.query("SELECT SUM(smoker) FROM people")) == "refused-not-released"
    with connect(people(10).assign(name="x")) as session:
        undeclared = privsql.marginals(["name"])
        assert code_of(lambda: session.release(undeclared, "people", **PRICE)) == "refused-unknown-cells"
    with connect(people(10), table={"public": True}) as session:
        assert code_of(lambda: session.release(WORKLOAD, "people", **PRICE)) == "refused-public-release"


def test_so_has_each_refusal_of_a_synthetic_table():
    with connect(people(10)) as session:
        make = session.synthesize
        assert code_of(lambda: make("people", **PRICE, method="magic")) == "argument-method"
        assert code_of(lambda: make("people", epsilon=1, rounds=0)) == "argument-rounds"
        assert code_of(lambda: make("people", **PRICE, method="mwem")) == "argument-delta"
        assert code_of(lambda: make("people", epsilon=1, method="maxent")) == "argument-delta"
    copies = people(10).drop(columns="income").assign(a=lambda f: f.age, b=lambda f: f.age, c=lambda f: f.age)
    ranges = {"columns": {each: {"range": [0, 99]} for each in ("a", "b", "c", "age")}}
    with connect(copies, table=ranges) as session:
        columns = ["age", "a", "b", "c"]
        assert code_of(lambda: session.synthesize("people", columns, **PRICE)) == "refused-large-domain"


@pytest.mark.parametrize(
    ("column", "edges"),
    [
        ("b", [0, float("inf")]),
        ("b", [float("nan"), 1]),
        ("f", [0, 10**400]),
        ("f", [0, float("inf")]),
        ("ts", [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2021, 1, 1, tzinfo=dt.UTC)]),
    ],
)
def test_edges_without_a_value_are_rejected_before_the_charge(session_of_dates, column, edges):
    workload = privsql.marginals([column], 1, {column: edges})
    assert code_of(lambda: session_of_dates.release(workload, "t", **PRICE)) == "argument-bins"


def test_ranges_to_the_end_of_the_calendar(session_of_dates):
    explain = session_of_dates.explain_release
    assert code_of(lambda: explain(privsql.marginals(["d"]), "t", **PRICE)) == "refused-unknown-cells"
    parts = {"d": ["2000-01-01", "2010-01-01", "2020-01-01"]}  # as suggested
    assert explain(privsql.marginals(["d"], 1, parts), "t", **PRICE).columns[0].listed == 2
    many = explain(privsql.marginals(["ts"], 1, {"ts": 1_000}), "t", **PRICE).columns[0]
    assert many.listed == 1_000 and many.edges[-1].year == 9999


def test_arguments_of_the_wrong_type_are_rejected_before_the_charge(session_of_dates):
    release = session_of_dates.release(privsql.marginals(["b"], 1), "t", **PRICE)
    spent = session_of_dates.budget.spent.epsilon
    for columns in (5, np.array(["b"]), np.array(["b", "d"]), [], "b"):
        assert code_of(lambda columns=columns: release.df(columns)) == "argument-columns"
    make = session_of_dates.synthesize
    array = np.array([0.1, 0.2])
    assert code_of(lambda: make("t", ["b"], epsilon=1, delta=array)) == "argument-delta"
    assert code_of(lambda: make("t", ["b"], epsilon=1, method=array)) == "argument-method"
    assert code_of(lambda: make("t", ["b"], epsilon=1, method=["mwem"])) == "argument-method"
    assert session_of_dates.budget.spent.epsilon == spent


@pytest.fixture(scope="module")
def session_of_dates():
    source = duckdb.connect()
    source.execute(
        "CREATE TABLE t AS SELECT i AS b, i / 9.0::DOUBLE AS f, DATE '2020-01-01' AS d, "
        "TIMESTAMP '2020-01-01' AS ts FROM range(9) AS r(i)"
    )
    late = {"range": ["2020-01-01", "9999-12-31"]}
    ranges = {"b": {"range": [0, 9]}, "f": {"range": [0, 1]}, "d": late, "ts": late}
    with privsql.connect(source, {"tables": {"t": {"columns": ranges}}}) as session:
        yield session


@pytest.mark.parametrize(
    ("workload", "changes"),
    [
        (WORKLOAD, {"columns": None}),
        (WORKLOAD, {"columns": (1, 2)}),
        (WORKLOAD, {"ways": "many"}),
        (WORKLOAD, {"ways": 0}),
        (WORKLOAD, {"bins": 5}),
        (WORKLOAD, {"bins": {"age": (object(), 3)}}),
        (WORKLOAD, {"bins": {3: 4}}),
        (WORKLOAD, {"chosen": ((9, 10),), "columns": ()}),
        (privsql.ranges("age"), {"column": None}),
        (privsql.ranges("age"), {"bins": {}}),
        (privsql.ranges("age"), {"bins": ("a", None)}),
    ],
)
def test_a_workload_whose_fields_were_changed_is_checked_again(workload, changes):
    with connect(people(10)) as session, pytest.raises(privsql.PrivsqlError):
        session.release(dataclasses.replace(workload, **changes), "people", **PRICE)
