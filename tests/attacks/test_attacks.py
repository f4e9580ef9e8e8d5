"""Attack cases, shared and our own: none succeeds, none tells two neighbouring tables apart, and people still get answers."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import duckdb
import pytest

import privsql
from tests.attacks import judge


@pytest.mark.slow
@pytest.mark.parametrize("path", [judge.SHARED, judge.OWN], ids=["shared", "own"])
def test_the_attack_cases(path: Path) -> None:
    """One test a file, because running the cases is what takes the time, and workers share no fixtures."""
    if not path.exists():
        pytest.skip("the shared attack cases are not on this machine")
    results = judge.run([path])
    print(judge.summary(results))
    # the three tables cannot be told apart
    assert [(each.id, each.differences) for each in results if each.differences] == []
    # no canary comes back
    assert [(each.id, each.leaks) for each in results if each.leaks] == []
    # nothing runs long, breaks the session, or is charged for a refusal
    assert [(each.id, each.trouble) for each in results if each.trouble] == []
    # every attack is held
    through = {each.id: each.outcome for each in results if not each.is_control and not each.as_expected}
    assert through == (
        {name: outcome for name, (outcome, _) in judge.OTHERWISE.items()} if path == judge.SHARED else {}
    )
    # every control is answered
    assert [each.id for each in results if each.is_control and each.outcome != "noisy"] == []
    assert judge.is_held(results)


def test_there_are_many_distinct_attack_cases() -> None:
    cases = [json.loads(line) for line in judge.OWN.read_text(encoding="utf-8").split("\n") if line]
    assert len([each for each in cases if not each["id"].startswith("ctl-")]) >= 150
    assert len({each["id"] for each in cases}) == len({each["sql"] for each in cases}) == len(cases)
    assert all(each["leaks"] and each["expected"] in ("reject", "noisy") for each in cases)


def test_the_judge_detects_differences() -> None:
    """A layer that hands out exact counts, and one that fails on Bob's row alone, are both caught."""
    one = judge.Seen("noisy", columns=("n",), rows=1, charge=(1.0, 0.0, 1))
    assert "charge" in one.unlike(judge.Seen("noisy", columns=("n",), rows=1, charge=(0.5, 0.0, 1)))
    assert "outcome" in one.unlike(
        judge.Seen("failed engine-failed", columns=("n",), rows=1, charge=(1.0, 0.0, 1))
    )
    assert one.unlike(one) == ""
    leaking = judge.Went("x-1", "select 1", ("reject",), "reject", leaks=["'Canary'"])
    assert not judge.is_held([leaking])
    assert "attacks held:       0 of 1" in judge.summary([leaking])


def test_division_with_a_range_without_zero() -> None:
    """num-007 where the owner declared that nobody earns less than 1: clamped after the division, and answered."""
    connection = duckdb.connect(":memory:")
    connection.execute(judge.SCHEMA)
    connection.execute(
        "INSERT INTO patients VALUES (1, 'a', 30, 0.0, 'CA', 'flu', true), (2, 'b', 40, 'nan', 'NY', 'flu', true)"
    )
    policy = copy.deepcopy(judge.POLICY)
    policy["tables"]["patients"]["columns"]["income"]["range"] = [1, 200_000]
    answer = privsql.connect(connection, policy=policy).query(
        "select sum(1 / income) as s from patients", epsilon=1.0
    )
    assert abs(answer.df()["s"][0]) < 1_000
