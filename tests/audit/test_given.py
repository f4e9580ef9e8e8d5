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
from tests.support.says import Says

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
ITEMS = pd.DataFrame(
    {"oid": [70, 71, 71, 80, 99], "price": [5, 6, 7, 8, 1], "kind": ["a", "b", "zz", None, "a"]}
)
GIVEN = {"people": PEOPLE, "orders": ORDERS, "items": ITEMS}


def shop() -> privsql.Session:
    connection = duckdb.connect()
    connection.execute(SHOP)
    return privsql.connect(connection, policy=POLICY)


def audited(session: privsql.Session, plan: Plan, data: Any = None) -> Audit:
    return audit(
        plan,
        "",
        session._pipeline.engine.schema(),
        session._pipeline.engine.read_public,
        Fraction(1),
        300,
        60,
        data=data,
    )


def test_rows_belong_to_their_person_through_references() -> None:
    session = shop()
    plan = session.explain("SELECT kind, SUM(price) FROM items GROUP BY kind", epsilon=1)
    world = world_of(plan, session._pipeline.engine.schema(), session._pipeline.engine.read_public)
    given = read_given(world, GIVEN)
    world = with_values(world, given)
    states = people_of(world, given)
    rows = {table.name: [len(state[place]) for state in states] for place, table in enumerate(world.tables)}
    assert sorted(zip(rows["people"], rows["orders"], rows["items"], strict=True)) == [
        (1, 0, 0),
        (1, 1, 1),
        (1, 2, 3),
    ]
    place = world.table("items")
    column = next(n for n, each in enumerate(world.tables[place].tried) if each.name == "kind")
    texts = world.tables[place].tried[column].texts
    kinds = sorted(texts[row[column]] for state in states for row in state[place])
    assert kinds == ["CAST('a' AS VARCHAR)", "CAST('b' AS VARCHAR)", "CAST('zz' AS VARCHAR)", "NULL"]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_fault_at_one_value_is_found_in_data_with_that_value(neighbours: str) -> None:
    """A mistake in the exact SQL about people of 37: nobody thinks of them, but the data has one."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people (age INTEGER)")
    policy = {"neighbours": neighbours, "tables": {"people": {"columns": {"age": {"range": [0, 120]}}}}}
    session = privsql.connect(connection, policy=policy)
    plan = session.explain("SELECT COUNT(*) FROM people WHERE age > 18", epsilon=1)
    sql = plan.sql.replace("count(*)", "count(*) + 5 * count(*) FILTER (WHERE age = 37)")
    wrong = replace(plan, releases=(replace(plan.releases[0], dialect=Says(sql)),))
    assert wrong.sql != plan.sql
    assert audited(session, wrong).held, "made-up tables have nobody of 37"
    found = audited(session, wrong, PEOPLE)
    assert not found.held
    assert "moves by 6" in found.verdict
    assert "37" in str(found.pair)
    assert audited(session, plan, PEOPLE).held


@pytest.mark.slow
def test_people_in_the_given_data_are_counted() -> None:
    found = shop().audit(
        "SELECT kind, SUM(price) FROM items GROUP BY kind", 1.0, releases=300, tries=60, data=GIVEN
    )
    assert found.held
    assert any(
        note == "3 people from the data given were tried, also as the other people" for note in found.notes
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"people": PEOPLE}, "the data of the audit has no table"),
        (
            {**GIVEN, "items": ITEMS.drop(columns="price")},
            "the data of the audit has no column price in items",
        ),
        (5, "is not a supported data source"),
    ],
)
def test_data_with_another_schema_is_refused(data: Any, words: str) -> None:
    with pytest.raises(privsql.PrivsqlError, match=words):
        shop().audit("SELECT SUM(price) FROM items", 1.0, data=data)


QUESTION = "SELECT COUNT(*) FROM people WHERE age > 1"


def is_own(session: privsql.Session, data: Any) -> bool:
    """Whether it is refused as the session's own source."""
    with pytest.raises(privsql.PrivsqlError) as caught:
        session.audit(QUESTION, 1.0, releases=0, data=data)
    own = caught.value.code == "argument-data"
    assert own or caught.value.code == "argument-shape", "releases=0 is refused before data is looked at"
    return own


def test_the_own_database_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, other = tmp_path / "people.duckdb", tmp_path / "other.duckdb"
    for each in (file, other):
        with duckdb.connect(str(each)) as connection:
            connection.execute("CREATE TABLE people AS SELECT 1 AS id, 2 AS age")
    (tmp_path / "link.duckdb").symlink_to(file)
    (tmp_path / "hard.duckdb").hardlink_to(file)
    monkeypatch.chdir(tmp_path)
    with privsql.connect(file) as session:
        for name in (file, str(file), "people.duckdb", tmp_path / "link.duckdb", tmp_path / "hard.duckdb"):
            assert is_own(session, name), name
        assert not is_own(session, other)
        assert not is_own(session, "no such file")
    with duckdb.connect(str(file)) as connection, privsql.connect(connection) as session:
        assert is_own(session, file)
        assert is_own(session, connection)
        assert not is_own(session, other)
        with duckdb.connect() as beside:
            assert not is_own(session, beside)
    with privsql.connect(other) as session, duckdb.connect() as beside:
        assert not is_own(session, beside)
        beside.execute(f"ATTACH '{file}' AS file (READ_ONLY)")
        assert not is_own(session, beside)
        with privsql.connect(beside) as over:
            assert is_own(over, file), "attached, and so in its sight"


def test_the_own_connection_is_refused() -> None:
    connection, other = duckdb.connect(), duckdb.connect()
    for each in (connection, other):
        each.execute("CREATE TABLE people AS SELECT 1 AS id, 2 AS age")
    session = privsql.connect(connection)
    for _ in range(3):
        assert is_own(session, connection)
        assert is_own(session, connection.cursor())
        assert not is_own(session, other)
        other.cursor().close()  # its connections have other numbers now
    connection.execute(
        "CREATE TEMP TABLE visits AS SELECT 1 AS id"
    )  # seen by that connection alone, which is used itself
    assert is_own(privsql.connect(connection), connection)
    other.close()
    assert not is_own(session, other)


def test_the_own_frame_is_refused() -> None:
    session = privsql.connect({"people": PEOPLE, "orders": ORDERS})
    for data in (
        PEOPLE,
        {"made_up": PEOPLE},
        {"people": PEOPLE.copy(), "orders": ORDERS},
        PEOPLE.copy(deep=False),
    ):
        assert is_own(session, data)
    for data in (PEOPLE.copy(), {"people": PEOPLE.copy(), "items": ITEMS}, 5, {"people": 5}):
        assert not is_own(session, data)
    text = pd.DataFrame({"name": pd.Series(["x"], dtype=object), "age": [3]})
    named = privsql.connect({"people": text})
    assert is_own(named, text), "also where a copy of it is read"
    text["age"] = 4
    assert is_own(named, text), "also where it was written to since"


def test_the_own_frame_of_others_is_refused() -> None:
    arrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    for frame in (arrow.table({"age": [2]}), polars.DataFrame({"age": [2]}), polars.LazyFrame({"age": [2]})):
        session = privsql.connect({"people": frame})
        assert is_own(session, frame)
        assert not is_own(session, PEOPLE)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_own_file_of_rows_is_refused(suffix: str, tmp_path: Path) -> None:
    file, other = tmp_path / f"people.{suffix}", tmp_path / f"other.{suffix}"
    for each in (file, other):
        PEOPLE.to_csv(each, index=False) if suffix == "csv" else PEOPLE.to_parquet(each)
    with privsql.connect(file) as session:
        assert is_own(session, str(file))
        assert is_own(session, tmp_path / "." / file.name)
        assert not is_own(session, other)


def test_the_own_source_is_refused_under_limits() -> None:
    with privsql.connect({"people": PEOPLE}, deadline=30.0, time_quantum=1e-3) as session:
        assert is_own(session, PEOPLE)
        assert not is_own(session, PEOPLE.copy())


def test_the_command_line_refuses_its_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "people.csv"
    PEOPLE.to_csv(file, index=False)
    assert main(["audit", str(file), QUESTION, "--epsilon", "1", "--data", str(file)]) == 2
    said = capsys.readouterr()
    assert "private source itself" in said.err
    assert "hint: give tables that are made up" in said.err
    assert not said.out


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "people.csv").write_text("id,age\n1,2\n", encoding="utf-8")
    PEOPLE.to_csv(tmp_path / "made_up.csv", index=False)
    question = [
        "audit",
        str(tmp_path / "people.csv"),
        "SELECT COUNT(*) FROM people WHERE age > 1",
        "--epsilon",
        "1",
    ]
    code = main([*question, "--releases", "300", "--data", str(tmp_path / "made_up.csv")])
    assert code == 0
    assert "3 people from the data given were tried" in capsys.readouterr().out
