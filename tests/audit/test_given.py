"""session.audit(data=...): people of given tables are tried and are the others, so that what only they show is found."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import privsql
from privsql.audit.audit import Audit, audit
from privsql.audit.given import people_of, read_given, with_values
from privsql.audit.world import world_of
from privsql.cli import main
from privsql.planning.plan import Plan
from tests.tempo import one_now

SHOP = """
    CREATE TABLE people (id INTEGER PRIMARY KEY, age INTEGER);
    CREATE TABLE orders (oid INTEGER PRIMARY KEY, who INTEGER);
    CREATE TABLE items (oid INTEGER, price INTEGER, kind VARCHAR);
"""
POLICY: dict[str, Any] = {
    "tables": {
        "people": {"unit": "id", "columns": {"age": {"range": [0, 120]}}},
        "orders": {"unit": "who -> people.id"},
        "items": {
            "unit": "oid -> orders.oid", "max_rows": 3,
            "columns": {"price": {"range": [0, 9]}, "kind": {"values": ["a", "b"]}},
        },
    },
}  # fmt: skip
PEOPLE = pd.DataFrame({"id": [7, 8, 9], "age": [30, 37, 130]})
ORDERS = pd.DataFrame({"oid": [70, 71, 80], "who": [7, 7, 8]})
ITEMS = pd.DataFrame({"oid": [70, 71, 71, 80, 99], "price": [5, 6, 7, 8, 1], "kind": ["a", "b", "zz", None, "a"]})
GIVEN = {"people": PEOPLE, "orders": ORDERS, "items": ITEMS}


def shop() -> privsql.Session:
    connection = duckdb.connect()
    connection.execute(SHOP)
    return privsql.connect(connection, policy=POLICY)



def audited(session: privsql.Session, plan: Plan, data: Any = None) -> Audit:
    return audit(plan, "", session._engine.schema(), session._engine.read_public, Fraction(1), 300, 60, data=data)


def test_rows_are_those_of_their_person_over_references() -> None:
    session = shop()
    plan = session.explain("SELECT kind, SUM(price) FROM items GROUP BY kind", epsilon=1)
    world = world_of(plan, session._engine.schema(), session._engine.read_public)
    given = read_given(world, GIVEN)
    world = with_values(world, given)
    states = people_of(world, given)
    rows = {table.name: [len(state[place]) for state in states] for place, table in enumerate(world.tables)}
    assert sorted(zip(rows["people"], rows["orders"], rows["items"], strict=True)) == [(1, 0, 0), (1, 1, 1), (1, 2, 3)]
    place = world.table("items")
    column = next(n for n, each in enumerate(world.tables[place].tried) if each.name == "kind")
    texts = world.tables[place].tried[column].texts
    kinds = sorted(texts[row[column]] for state in states for row in state[place])
    assert kinds == ["CAST('a' AS VARCHAR)", "CAST('b' AS VARCHAR)", "CAST('zz' AS VARCHAR)", "NULL"]


@pytest.mark.parametrize("neighbours", one_now(["add-remove", "replace-one"]))
def test_what_only_one_value_shows_is_found_in_data_that_has_it(neighbours: str) -> None:
    """A mistake in the exact SQL about people of 37: nobody thinks of them, but the data has one."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people (age INTEGER)")
    policy = {"neighbours": neighbours, "tables": {"people": {"columns": {"age": {"range": [0, 120]}}}}}
    session = privsql.connect(connection, policy=policy)
    plan = session.explain("SELECT COUNT(*) FROM people WHERE age > 18", epsilon=1)
    wrong = replace(plan, sql=plan.sql.replace("count(*)", "count(*) + 5 * count(*) FILTER (WHERE age = 37)"))
    assert wrong.sql != plan.sql
    assert audited(session, wrong).held, "made-up tables have nobody of 37"
    found = audited(session, wrong, PEOPLE)
    assert not found.held
    assert "moves by 6" in found.verdict
    assert "37" in str(found.pair)
    assert audited(session, plan, PEOPLE).held


@pytest.mark.slow
def test_people_are_counted_and_the_rest_is_as_without() -> None:
    found = shop().audit("SELECT kind, SUM(price) FROM items GROUP BY kind", 1.0, releases=300, tries=60, data=GIVEN)
    assert found.held
    assert any(note == "3 people of the data given were tried, and were the others" for note in found.notes)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"people": PEOPLE}, "the data of the audit has no table"),
        ({**GIVEN, "items": ITEMS.drop(columns="price")}, "the data of the audit has no column price in items"),
        (5, "cannot be a source of data"),
    ],
)
def test_data_that_is_not_like_the_source(data: Any, words: str) -> None:
    with pytest.raises(privsql.PrivsqlError, match=words):
        shop().audit("SELECT SUM(price) FROM items", 1.0, data=data)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "people.csv").write_text("id,age\n1,2\n", encoding="utf-8")
    PEOPLE.to_csv(tmp_path / "made_up.csv", index=False)
    question = ["audit", str(tmp_path / "people.csv"), "SELECT COUNT(*) FROM people WHERE age > 1", "--epsilon", "1"]
    code = main([*question, "--releases", "300", "--data", str(tmp_path / "made_up.csv")])
    assert code == 0
    assert "3 people of the data given were tried" in capsys.readouterr().out
