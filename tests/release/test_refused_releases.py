"""Each code with which a release is refused."""

from __future__ import annotations

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
