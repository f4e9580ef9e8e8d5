"""session.tables: what an analyst may know of the tables, from schema and policy alone."""

from __future__ import annotations

import duckdb
import pytest

import privsql
from privsql import UnknownName
from tests.conftest import clinic

POLICY = {
    "tables": {
        "visits": {
            "unit": "user",
            "columns": {
                "age": {"range": [0, 120]},
                "state": {"values": [*"ABCDEFGHIJ"]},
                "cost": {"range": "auto"},
            },
        },
        "states": {"public": True},
    }
}


def made() -> duckdb.DuckDBPyConnection:
    owner, visits = duckdb.connect(), clinic(20)  # noqa: F841 -- DuckDB reads it by name
    owner.execute("CREATE TABLE visits AS FROM visits")
    owner.execute("CREATE TABLE states (code VARCHAR NOT NULL, name VARCHAR)")
    owner.execute("CREATE VIEW old AS FROM visits WHERE age > 60")
    return owner


def test_columns_have_types_roles_and_what_is_declared() -> None:
    with made() as owner, privsql.connect(owner, POLICY) as session:
        found = session.tables("visits").set_index("column")
    assert found.loc["user", "role"] == "unit"
    assert found.loc["age", "declared"] == "range 0 to 120"
    assert found.loc["cost", "declared"] == "range found privately"
    assert found.loc["state", "declared"] == "values A, B, C, D, E, F, G, H, ... (10 values)"
    assert set(found["role"]) == {"unit", "private"}


def test_tables_that_no_query_may_name_are_left_out() -> None:
    with made() as owner, privsql.connect(owner, POLICY) as session:
        found = session.tables()
    assert set(found["table"]) == {"states", "visits"}
    public = found[found["table"] == "states"].set_index("column")
    assert public["role"].tolist() == ["public", "public"]
    assert public["nullable"].tolist() == [False, True]


def test_tables_that_are_made_later_are_found() -> None:
    with made() as owner, privsql.connect(owner, POLICY) as session:
        owner.execute("CREATE TABLE late (x INTEGER)")
        assert session.tables("late")["type"].tolist() == ["INTEGER"]
        assert session.budget.spent.epsilon == 0


@pytest.mark.parametrize("name", ["old", "nothing", 'visits"; DROP TABLE visits'])
def test_other_names_are_refused(name: str) -> None:
    with (
        made() as owner,
        privsql.connect(owner, POLICY) as session,
        pytest.raises(privsql.SqlError) as caught,
    ):
        session.tables(name)
    assert isinstance(caught.value, UnknownName) or caught.value.code == "refused-view"
