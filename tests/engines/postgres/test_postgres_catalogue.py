"""What PostgreSQL's catalogue promises: keys and constraints are used, and what could fail on a row is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import privsql
from privsql.schema import ForeignKey, Schema
from tests.support import postgres

pytestmark = postgres.needs_server()
SCHEMA = "privsql_catalogue"
TABLES = """
    CREATE TYPE mood AS ENUM ('sad', 'ok');
    CREATE DOMAIN small AS integer CHECK (VALUE < 10);
    CREATE TABLE people (id integer PRIMARY KEY, mood mood NOT NULL, age integer CHECK (age >= 0 AND age <= 120), label char(3),
        pay numeric(10, 2) NOT NULL, score numeric, seen timestamptz, odd small, extra jsonb, code text UNIQUE,
        double_age integer GENERATED ALWAYS AS (age * 2) STORED);
    CREATE TABLE visits (person integer REFERENCES people (id), day date);
    CREATE UNIQUE INDEX ON visits (person, day);
    CREATE UNIQUE INDEX ON visits (day) WHERE person > 5;
    CREATE VIEW old AS SELECT * FROM people WHERE age > 60;
    CREATE MATERIALIZED VIEW grown AS SELECT id, age FROM people WHERE age > 18;
    CREATE TABLE parts (id integer PRIMARY KEY, n integer) PARTITION BY RANGE (id);
    CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
    CREATE TABLE parent (id integer PRIMARY KEY); CREATE TABLE child () INHERITS (parent);
    CREATE TABLE secured (id integer); ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
    ALTER TABLE secured FORCE ROW LEVEL SECURITY;
    CREATE FUNCTION abs(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1 / 0';
    INSERT INTO people (id, mood, age, label, pay, score, seen, code)
        SELECT i, 'ok', i % 100, 'a', 1.5, 'NaN', now(), 'c' || i FROM generate_series(1, 50) AS r(i);
    INSERT INTO people (id, mood, pay) VALUES (51, 'sad', 'NaN');
    INSERT INTO parts SELECT i, i FROM generate_series(1, 50) AS r(i);
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with postgres.connect() as owner:
        owner.execute(
            f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}; SET search_path = {SCHEMA}"
        )
        owner.execute(TABLES)
        owner.execute(
            "DROP OWNED BY privsql_reader; DROP ROLE privsql_reader" if _exists(owner) else "SELECT"
        )
        owner.execute(f"CREATE ROLE privsql_reader LOGIN; GRANT USAGE ON SCHEMA {SCHEMA} TO privsql_reader")
        owner.execute(
            "GRANT SELECT ON people, secured TO privsql_reader; GRANT SELECT (person) ON visits TO privsql_reader"
        )
        yield owner


def _exists(owner: Any) -> bool:
    return bool(owner.execute("SELECT 1 FROM pg_roles WHERE rolname = 'privsql_reader'").fetchall())


def connected(policy: Any = None, role: str = "postgres") -> privsql.Session:
    address = postgres.schema_address(SCHEMA).replace("//postgres@", f"//{role}@")
    return privsql.connect(address, policy)


@pytest.fixture(scope="module")
def schema(server: Any) -> Schema:
    with connected() as session:
        return session._pipeline.schema


def test_constraints_are_read(schema: Schema) -> None:
    people, visits = schema.table("people"), schema.table("visits")
    assert people is not None
    assert visits is not None
    assert set(people.keys) == {frozenset({"id"}), frozenset({"code"})}
    assert visits.keys == (frozenset({"person", "day"}),)  # an index over some rows promises nothing
    assert visits.foreign_keys == (ForeignKey(("person",), "people", ("id",)),)
    assert len(people.checks) == 1
    mood, pay, score = (people.column(name) for name in ("mood", "pay", "score"))
    assert mood is not None
    assert mood.labels == ("sad", "ok")
    assert mood.required
    assert pay is not None
    assert (str(pay.type), pay.required) == ("DECIMAL(10,2)", False)  # it may be NaN
    assert score is not None
    assert str(score.type) == "DOUBLE"
    assert all(people.column(name).type is None for name in ("odd", "extra"))  # type: ignore[union-attr]


def test_parts_of_tables_are_left_out_and_children_break_promises(schema: Schema) -> None:
    names = {table.name for table in schema.tables}
    assert names == {"people", "visits", "old", "grown", "parts", "parent", "secured"}
    parent, parts = schema.table("parent"), schema.table("parts")
    assert parent is not None
    assert parent.keys == ()
    assert parts is not None
    assert parts.keys == (frozenset({"id"}),)


@pytest.mark.parametrize(("table", "code"), [("old", "refused-view"), ("grown", "refused-view")])
def test_a_view_needs_a_policy(server: Any, table: str, code: str) -> None:
    with connected() as session, pytest.raises(privsql.Refused):
        session.explain(f"SELECT COUNT(*) AS n FROM {table}", epsilon=1)


def test_a_view_computes_whatever_its_owner_wrote(server: Any) -> None:
    with connected({"tables": {"old": {}, "grown": {}}}) as session:
        with pytest.raises(privsql.Refused) as raised:
            session.explain("SELECT COUNT(*) AS n FROM old", epsilon=1)
        assert raised.value.code == "refused-view"
        assert session.query("SELECT COUNT(*) AS n FROM grown", epsilon=100).df()["n"][0] == pytest.approx(
            0, abs=50
        )


def test_a_public_view_is_refused_too(server: Any) -> None:
    with (
        connected({"tables": {"old": {"public": True}}}) as session,
        pytest.raises(privsql.Refused) as raised,
    ):
        session.explain("SELECT COUNT(*) AS n FROM visits JOIN old ON person = id", epsilon=1)
    assert raised.value.code == "refused-view"


def test_an_audit_and_prepare_are_refused(server: Any) -> None:
    with connected() as session:
        with pytest.raises(privsql.PrivsqlError) as raised:
            session.audit("SELECT COUNT(*) AS n FROM people", epsilon=1)
        assert raised.value.code == "argument-source"
        with pytest.raises(privsql.PrivsqlError):
            session.prepare("people")
        with pytest.raises(privsql.PrivsqlError):
            privsql.connect(postgres.ADDRESS, memory_limit="1GB")


def test_row_level_security_is_refused(server: Any) -> None:
    with connected(role="privsql_reader") as session, pytest.raises(privsql.Refused):
        session.query("SELECT COUNT(*) AS n FROM secured", epsilon=1)


def test_a_role_that_can_only_read_is_enough(server: Any) -> None:
    with connected(role="privsql_reader") as session:
        n = session.query("SELECT COUNT(*) AS n FROM people WHERE abs(age) >= 0", epsilon=100).df()["n"][0]
        assert n == pytest.approx(50, abs=3)  # and a function of theirs is not called
        assert "day" not in {column.name for column in session._pipeline.schema.table("visits").columns}  # type: ignore[union-attr]


def test_answers_are_those_of_the_tables(server: Any) -> None:
    policy = {
        "tables": {
            "people": {"unit": "id", "columns": {"age": {"range": [0, 120]}, "pay": {"range": [0, 10]}}}
        }
    }
    with connected(policy) as session:
        found = session.query(
            "SELECT mood, COUNT(*) AS n, SUM(pay) AS s FROM people GROUP BY mood", epsilon=1000
        ).df()
        assert found["mood"].tolist() == ["sad", "ok"]
        assert found["n"].tolist() == pytest.approx([1, 50], abs=1)
        assert found["s"].tolist() == pytest.approx([0, 75], abs=1)  # NaN is NULL
        days = session.query(
            "SELECT COUNT(*) AS n FROM people WHERE seen >= DATE '2020-01-01'", epsilon=1000
        ).df()
        assert days["n"][0] == pytest.approx(50, abs=1)


def test_long_names_are_refused(server: Any) -> None:
    with connected({"tables": {"people": {"columns": {"age": {"range": [0, 120]}}}}}) as session:
        name = "x" * 70
        with pytest.raises(privsql.PrivsqlError) as raised:
            session.explain(
                f'SELECT "{name}", COUNT(*) AS n FROM (SELECT age AS "{name}" FROM people) GROUP BY 1',
                epsilon=1,
            )
        assert "too long" in str(raised.value)


def test_the_schema_may_be_written(server: Any) -> None:
    with connected({"tables": {f"{SCHEMA}.people": {"unit": "id"}}}) as session:
        for name in ("people", f"{SCHEMA}.people", f"postgres.{SCHEMA}.people", f"{SCHEMA.upper()}.People"):
            plan = session.explain(f"SELECT COUNT(*) AS n FROM {name} WHERE age > 5", epsilon=1)
            assert f'FROM "{SCHEMA}"."people"' in plan.sql
            assert "privacy unit: id" in str(plan) or "1 row per" in str(plan)
        sql = f"SELECT COUNT(*) AS n FROM {SCHEMA}.people WHERE {SCHEMA}.people.mood = 'ok'"
        assert session.query(sql, epsilon=1000).df()["n"][0] == pytest.approx(50, abs=1)
        for name in ("pg_catalog.pg_class", "public.people", "information_schema.tables"):
            with pytest.raises(privsql.UnknownName):
                session.explain(f"SELECT COUNT(*) FROM {name}", epsilon=1)
