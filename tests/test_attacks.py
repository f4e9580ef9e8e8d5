"""The shared attack cases: none may succeed, none may tell two neighbouring tables apart, and people still get answers."""

from __future__ import annotations

import copy
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pytest

import privsql


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("privsql_attacks", Path(__file__).with_name("attacks.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


attacks = _load()

# Answered with noise where the file asks for a refusal of the exact value: correlation from noisy moments, and MAX by the
# exponential mechanism over values, which came later.
NOISY_INSTEAD = {"num-018", "rel-006"}
# Refused although the file asks for a noisy answer: 1 / income has no range where income may be 0 (a DOUBLE in
# [0, 200000]). The refusal is safe and says what to declare; test_division_with_a_range_without_zero is the way out.
REFUSED_INSTEAD = {"num-007"}

pytestmark = pytest.mark.skipif(not attacks.ATTACKS.exists(), reason="the shared attack cases are not on this machine")


@pytest.mark.slow
def test_the_attack_cases() -> None:
    """One test, because running the cases is what takes the time, and workers share no fixtures."""
    results: list[Any] = attacks.run()
    print(attacks.summary(results))
    # the three tables cannot be told apart
    assert [(each.id, each.differences) for each in results if each.differences] == []
    # no canary comes back
    assert [(each.id, each.leaks) for each in results if each.leaks] == []
    # nothing runs long, breaks the session, or is charged for a refusal
    assert [(each.id, each.trouble) for each in results if each.trouble] == []
    # every attack is held
    through = {each.id: each.outcome for each in results if not each.is_control and not each.as_expected}
    assert through == {**dict.fromkeys(REFUSED_INSTEAD, "reject"), **dict.fromkeys(NOISY_INSTEAD, "noisy")}
    # every control is answered
    assert [each.id for each in results if each.is_control and each.outcome != "noisy"] == []


def test_division_with_a_range_without_zero() -> None:
    """num-007 where the owner declared that nobody earns less than 1: clamped after the division, and answered."""
    connection = duckdb.connect(":memory:")
    connection.execute(attacks.SCHEMA)
    connection.execute("INSERT INTO patients VALUES (1, 'a', 30, 0.0, 'CA', 'flu', true), (2, 'b', 40, 'nan', 'NY', 'flu', true)")
    policy = copy.deepcopy(attacks.POLICY)
    policy["tables"]["patients"]["columns"]["income"]["range"] = [1, 200_000]
    answer = privsql.connect(connection, policy=policy).query("select sum(1 / income) as s from patients", epsilon=1.0)
    assert abs(answer.df()["s"][0]) < 1_000
