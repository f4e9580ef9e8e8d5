"""Every door: the same query has the same answer, the same refusal and the same rules, whichever door it comes through."""

from __future__ import annotations

from typing import Any

import pytest

from privsql import PrivsqlError
from tests.conformance.doors.doors import DOORS, Door, door_of

EXACT = 10_000.0  # an epsilon at which the noise is 0 but for a chance of exp(-5000)
COUNTS = "SELECT smoker, COUNT(*) AS n FROM df WHERE smoker IS NOT NULL GROUP BY smoker"
REFUSED = {
    "SELECT SUM(cost) AS s FROM df": "refused-unbounded",
    "SELECT state, COUNT(*) AS n FROM df GROUP BY state": "refused-unknown-keys",
    "SELECT * FROM df": "refused-rows",
    "SELECT COUNT(*) AS n FROM nowhere": "name-table",
    "SELECT COUNT(* FROM df": "sql-syntax",
}
ARGUMENTS = {
    "epsilon": (-1.0, "argument-epsilon"),
    "delta": (2.0, "argument-delta"),
    "max_rows": (0, "argument-limits"),
    "confidence": (2.0, "argument-level"),
}


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest, tmp_path: Any, capsys: Any) -> Door:
    return door_of(request.param, tmp_path, capsys)


def refusal(door: Door, sql: str) -> PrivsqlError:
    with pytest.raises(PrivsqlError) as caught:
        door.query(sql)
    return caught.value


def test_counts_are_close_to_the_data(door: Door) -> None:
    door.arguments["epsilon"] = EXACT
    smokers = int(door.df["smoker"].sum())
    assert sorted(door.query(COUNTS)) == [(False, len(door.df) - smokers), (True, smokers)]


def test_exact_counts_are_not_shown(door: Door) -> None:
    """Two counts have the noise of a millionth of epsilon: that both are right has a chance near 1e-13."""
    door.arguments["epsilon"] = 1e-6
    smokers = int(door.df["smoker"].sum())
    assert sorted(door.query(COUNTS)) != [(False, len(door.df) - smokers), (True, smokers)]


@pytest.mark.parametrize("sql", REFUSED)
def test_refusals_have_the_same_code(door: Door, sql: str) -> None:
    assert refusal(door, sql).code == REFUSED[sql]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_are_checked_the_same_way(door: Door, name: str) -> None:
    door.arguments[name], code = ARGUMENTS[name]
    assert refusal(door, COUNTS).code == code


def test_undeclared_keys_are_shown_with_delta(door: Door) -> None:
    door.arguments |= {"epsilon": EXACT, "delta": 1e-6}
    found = door.query("SELECT state, COUNT(*) AS n FROM df GROUP BY state")
    assert dict(found) == door.df["state"].value_counts().to_dict()
