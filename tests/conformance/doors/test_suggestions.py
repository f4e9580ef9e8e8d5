"""Every suggestion is followed as it is written, at each door, and the query then gets past the refusal."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import pandas as pd
import pytest

import privsql
from privsql import PrivsqlError
from privsql.cli import main
from privsql.suggestions import PolicyDoor
from tests.conformance.doors.doors import DOORS, Door, door_of
from tests.conftest import clinic

FILLED_IN = {"VALUES": '"CA", "NY"', "LOWEST": "0", "HIGHEST": "120", "WIDTH": "10", "COLUMN": "user"}
DAYS = {"LOWEST": "2024-01-01", "HIGHEST": "2024-12-31"}


@dataclass(frozen=True)
class Case:
    """A query that is refused. `{where}` and `{key}`: where a suggested condition and key go."""

    sql: str
    code: str
    ways: int
    key: str = ""
    given: dict[str, Any] = field(default_factory=dict)
    filled_in: dict[str, str] = field(default_factory=dict)


UNKNOWN, UNBOUNDED, NO_AGGREGATE = "refused-unknown-keys", "refused-unbounded", "refused-no-aggregate"
BY_KEY = "SELECT {key}, COUNT(*) AS n FROM df {where} GROUP BY {key}"
DELTA = {"delta": 1e-6}
CASES = [
    Case(BY_KEY, UNKNOWN, 2, key="state"),
    Case(BY_KEY, UNKNOWN, 2, key="upper(state)"),
    Case(BY_KEY, UNKNOWN, 2, key="state, user"),
    Case(BY_KEY, UNKNOWN, 2, key="age"),
    Case(BY_KEY, UNKNOWN, 2, key="age // 10, state"),
    Case(BY_KEY, UNKNOWN, 2, key="cost"),
    Case(BY_KEY, UNKNOWN, 2, key="day", filled_in=DAYS),
    Case(BY_KEY, UNKNOWN, 2, key="date_trunc('month', day)", filled_in=DAYS),
    Case("SELECT s, COUNT(*) AS n FROM (SELECT state AS s FROM df) GROUP BY s", UNKNOWN, 2),
    Case("SELECT state, COUNT(*) AS n FROM df GROUP BY ROLLUP (state)", UNKNOWN, 1),
    Case("SELECT mode(state) AS s FROM df", UNKNOWN, 1),
    Case("SELECT mode(state) AS s FROM df", UNKNOWN, 1, given=DELTA),
    Case("SELECT state FROM df GROUP BY state", NO_AGGREGATE, 3),
    Case("SELECT SUM(cost) AS s FROM df {where}", UNBOUNDED, 3),
    Case("SELECT AVG(cost) AS s FROM df {where}", UNBOUNDED, 3, given=DELTA),
    Case("SELECT SUM(cost * age) AS s FROM df {where}", UNBOUNDED, 3),
    Case("SELECT stddev(cost) AS s FROM df {where}", UNBOUNDED, 3),
    Case("SELECT median(cost) AS s FROM df {where}", UNBOUNDED, 3),
    Case("SELECT max(age) AS s FROM df {where}", UNBOUNDED, 3),
    Case("SELECT max(day) AS s FROM df {where}", UNBOUNDED, 2, filled_in=DAYS),
    Case("SELECT SUM(x) AS s FROM (SELECT cost + 2 * change AS x FROM df) {where}", UNBOUNDED, 3),
    Case("SELECT SUM(1 / cost) AS s FROM df {where}", UNBOUNDED, 2, filled_in={"LOWEST": "1"}),
    Case("SELECT COUNT(*) AS n FROM df", "argument-delta", 1, given={"mechanism": "gaussian"}),
    Case("SELECT COUNT(*) AS n FROM df", "argument-epsilon", 1, given={"epsilon": -1.0}),
    Case("SELECT COUNT(*) AS n FROM df", "argument-limits", 1, given={"max_rows": 0}),
]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.key or case.sql}".replace(" ", "_")[:60])
def test_suggestions_run(case: Case, door: str, tmp_path: Any, capsys: Any) -> None:
    asked = door_of(door, tmp_path, capsys)
    asked.arguments |= case.given
    error = refusal(asked, case.sql.format(where="", key=case.key))
    assert error.code == case.code
    ways = error.suggestion.split(", or ")
    assert len(ways) == case.ways, ways
    for way in ways:
        assert "delta" not in way or "delta" not in case.given, "what was given is not suggested"
        follower = door_of(door, tmp_path, capsys)
        follower.arguments |= case.given
        sql = followed(follower, case, filled_in(way, case))
        if case.code == NO_AGGREGATE and "delta" not in way:
            assert (
                refusal(follower, sql).code == UNKNOWN
            )  # past this refusal, and on to the next, which says what to declare
        else:
            follower.ask(sql)


def refusal(door: Door, sql: str) -> PrivsqlError:
    with pytest.raises(PrivsqlError) as caught:
        door.ask(sql)
    return caught.value


def filled_in(way: str, case: Case) -> str:
    """The way with the words in capitals filled in."""
    return re.sub("|".join(FILLED_IN), lambda found: {**FILLED_IN, **case.filled_in}[found[0]], way)


def followed(door: Door, case: Case, way: str) -> str:
    """The query as the way would have it, with the door's arguments and policy likewise."""
    door.follow(way)
    if way == "add COUNT(*)":
        return case.sql.replace("SELECT state", "SELECT state, COUNT(*) AS n")
    order = re.search(r"\((ORDER BY .*)\)$", way)
    if order:
        return f"{case.sql} {order[1]}"
    where = re.search(r"WHERE .*$", way)
    key = re.search(r"group by (.*)$", way)
    return case.sql.format(where=where[0] if where else "", key=key[1] if key else case.key)


# -- what is not suggested ------------------------------------------------------------------------------------
def test_a_delta_that_the_budget_does_not_have_is_not_suggested() -> None:
    sql, df = "SELECT state, COUNT(*) AS n FROM df GROUP BY state", clinic(60)
    with (
        privsql.connect({"df": df}, {"budget": {"epsilon": 1.0}}) as session,
        pytest.raises(PrivsqlError) as caught,
    ):
        session.explain(sql, epsilon=1)
    assert "delta" not in caught.value.suggestion and "[tables.df.columns]" in caught.value.suggestion
    df.dp.protect(budget=1)
    with pytest.raises(PrivsqlError) as caught:
        df.dp.explain(sql, epsilon=1)
    assert caught.value.suggestion == 'declare the keys: keys={"state": [VALUES]}'
    roomy = clinic(60)
    roomy.dp.protect(budget=1, delta=1e-5)
    with pytest.raises(PrivsqlError) as caught:
        roomy.dp.explain(sql, epsilon=1)
    assert caught.value.suggestion.endswith(", or let keys be shown that enough people have: delta=1e-6")


def test_declared_facts_are_not_suggested_again() -> None:
    sql = "SELECT state, age, SUM(cost * change) AS s FROM df GROUP BY state, age"
    df = clinic(60)
    with pytest.raises(PrivsqlError) as caught:
        df.dp.explain(sql, epsilon=1, keys={"state": ["CA"]}, ranges={"cost": (0, 9)})
    assert "state" not in caught.value.suggestion and '"age"' in caught.value.suggestion
    with pytest.raises(PrivsqlError) as caught:
        df.dp.explain(sql, epsilon=1, keys={"state": ["CA"]}, ranges={"cost": (0, 9), "age": (0, 9)})
    assert (
        '"cost"' not in caught.value.suggestion and '"change": (LOWEST, HIGHEST)' in caught.value.suggestion
    )


def test_a_key_whose_range_is_known_is_made_coarser() -> None:
    sql, known = "SELECT {key}, COUNT(*) AS n FROM df GROUP BY ALL", {"cost": (0, 120)}
    with pytest.raises(PrivsqlError) as caught:
        clinic(60).dp.explain(sql.format(key="cost"), epsilon=1, ranges=known)
    way = caught.value.suggestion.split(", or ")[0]
    assert way == "group by CAST(floor(cost / WIDTH) AS INTEGER)"
    clinic(60).dp.explain(
        sql.format(key=way.removeprefix("group by ").replace("WIDTH", "10")), epsilon=1, ranges=known
    )


def test_no_range_is_invented() -> None:
    """A literal range that the person did not write would be followed literally, and the average be wrong."""
    for case in CASES:
        with pytest.raises(PrivsqlError) as caught:
            clinic(60).astype({"user": str}).dp.explain(
                case.sql.format(where="", key=case.key), **{"epsilon": 1.0, **case.given}
            )
        assert not re.search(r"(\[|\(|BETWEEN )['\"]?\d", caught.value.suggestion), caught.value.suggestion


def test_a_column_with_an_odd_name_is_quoted_at_each_door() -> None:
    df = pd.DataFrame({'of "birth"': ["a", "b"]})
    sql = 'SELECT "of ""birth""" AS x, COUNT(*) AS n FROM df GROUP BY x'
    with pytest.raises(PrivsqlError) as caught:
        df.dp.explain(sql, epsilon=1)
    assert r'keys={"of \"birth\"": [VALUES]}' in caught.value.suggestion
    with privsql.connect({"df": df}) as session, pytest.raises(PrivsqlError) as caught:
        session.explain(sql, epsilon=1)
    assert r'"of \"birth\"" = { values = [VALUES] }' in caught.value.suggestion


def test_units_are_suggested_as_each_door_writes_them() -> None:
    df = clinic(60)
    with pytest.raises(PrivsqlError) as caught:
        df.dp.suggest_limits()
    assert caught.value.suggestion.endswith('unit="COLUMN"')
    df.dp.suggest_limits(unit="user")
    with privsql.connect({"df": df}) as session, pytest.raises(PrivsqlError) as caught:
        session.suggest_limits("df")
    assert caught.value.suggestion.endswith('unit = "COLUMN" (in the policy, under [tables.df])')


def test_policy_suggestions_are_not_made_for_frames() -> None:
    sql = "SELECT COUNT(*) AS n FROM df a JOIN df b ON a.user = b.user AND a.age < b.age"
    df = clinic(60)
    with pytest.raises(PrivsqlError) as caught:
        df.dp.explain(sql, epsilon=1)
    assert caught.value.suggestion == 'join on the unit (unit="COLUMN")'
    df.dp.explain(sql, epsilon=1, unit="user")


def test_a_policy_that_was_named_is_named_in_the_suggestion(tmp_path: Any, capsys: Any) -> None:
    clinic(60).to_parquet(tmp_path / "df.parquet")
    (tmp_path / "clinic.toml").write_text("")
    sql = "SELECT SUM(cost) AS s FROM df"
    assert (
        main(
            [
                "explain",
                str(tmp_path / "df.parquet"),
                sql,
                "--epsilon",
                "1",
                "--policy",
                str(tmp_path / "clinic.toml"),
            ]
        )
        == 2
    )
    assert f"(in {tmp_path / 'clinic.toml'}, under [tables.df.columns])" in capsys.readouterr().err


# -- arguments -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["protect", "query", "explain", "suggest_limits"])
def test_unknown_arguments_list_the_known_ones(name: str) -> None:
    call: Callable[..., Any] = getattr(clinic(9).dp, name)
    with pytest.raises(privsql.ArgumentError) as caught:
        call(**({"sql": "SELECT 1"} if name in ("query", "explain") else {}), epsilonn=1)
    listed = caught.value.suggestion.rpartition("are: ")[2].split(", ")
    named = set(signature(call).parameters) - {"unknown"}
    assert set(listed) == named and len(listed) == len(named)
    if name in ("query", "explain"):
        assert listed[:3] == ["sql", "epsilon", "delta"]
        assert caught.value.suggestion.startswith("did you mean epsilon?")
        assert {
            "unit",
            "ranges",
            "keys",
            "neighbours",
            "within",
            "max_rows",
            "nonnegative",
            "mechanism",
            "weights",
            "fresh",
        } <= named


def test_the_door_of_an_error_can_be_changed() -> None:
    with privsql.connect({"df": clinic(9)}) as session, pytest.raises(PrivsqlError) as caught:
        session.explain("SELECT SUM(cost) AS s FROM df", epsilon=1)
    assert "(in ward.toml, under [tables.df.columns])" in str(caught.value.said_at(PolicyDoor("ward.toml")))
