"""`policy check` shows every cap of a budget, and warns of those that protect little or never apply."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from privsql.drafting.budget_lines import budget_lines, warnings
from privsql.drafting.check_policy import check_policy
from privsql.policy import load_policy

ANALYSTS = {"ana": 2.0, "ben": {"epsilon": 1.0, "delta": 1e-7}}


def warned(**budget: Any) -> list[str]:
    return warnings(load_policy({"budget": budget}))


def test_check_shows_all_caps_and_warnings() -> None:
    budget = {"epsilon": 12, "delta": 1e-6, "per_query": 0.5, "analysts": {**ANALYSTS, "*": 0.25}}
    with duckdb.connect() as owner:
        owner.execute("CREATE TABLE t (x INTEGER)")
        shown = check_policy(load_policy({"budget": budget}), owner).splitlines()
    assert shown[1:6] == [
        "budget      epsilon 12, delta 1e-06",
        "per query   at most epsilon 0.5",
        "analyst     ana: at most epsilon 2",
        "analyst     ben: at most epsilon 1, delta 1e-07",
        "analyst     everyone else: at most epsilon 0.25",
    ]
    assert shown[6].startswith(
        "WARNING     The budget is epsilon 12. An epsilon of 10 or more protects little:"
    )


def test_unlisted_analysts_get_nothing_and_check_says_so() -> None:
    lines = budget_lines(load_policy({"budget": {"epsilon": 3, "delta": 1e-6, "analysts": ANALYSTS}}))
    assert lines[-1] == ("analyst", "anyone else: nothing")


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"epsilon": 10}, "The budget is epsilon 10. An epsilon of 10 or more protects little"),
        ({}, "There is no budget"),
        (
            {"epsilon": 3, "per_query": 4},
            "The cap of one query, epsilon 4, is above the budget of 3, so it never applies.",
        ),
        ({"epsilon": 3, "analysts": {"ana": 5}}, "The cap of ana, epsilon 5, is above the budget of 3"),
        (
            {"epsilon": 3, "analysts": {"*": 5}},
            "The cap of everyone else, epsilon 5, is above the budget of 3",
        ),
        (
            {"epsilon": 3, "delta": 1e-7, "analysts": {"ana": {"epsilon": 1, "delta": 1e-6}}},
            "The cap of ana, delta 1e-06, is above the budget's delta of 1e-07",
        ),
        ({"epsilon": 3, "analysts": {"ana": 2, "ben": 2}}, "The caps of the analysts add up to epsilon 4"),
    ],
)
def test_one_warning_for_each_mistake(budget: dict[str, Any], words: str) -> None:
    (found,) = warned(**budget)
    assert found.startswith(words)


def test_a_large_cap_is_warned_of_only_where_no_budget_is_below_it() -> None:
    assert warned(epsilon=9.9, per_query=9.9, analysts={"ana": 4, "ben": 5, "*": 9}) == []
    found = warned(per_query=10, analysts={"ana": 11})
    assert [each.partition(".")[0] for each in found] == [
        "There is no budget, so nothing is promised about all answers together",
        "The cap of one query is epsilon 10",
        "The cap of ana is epsilon 11",
    ]
