"""privsql:///... in SQLAlchemy: queries of Core, prices, one budget for all connections, reflection, pandas."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from privsql import dbapi
from tests.conftest import clinic

EXACT = 10_000
VISITS = sa.table("visits", *map(sa.column, ("age", "state", "smoker", "day")))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    visits = clinic(60)  # noqa: F841 -- DuckDB reads it by name
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as made:
        made.execute("CREATE TABLE visits AS FROM visits")
    return tmp_path / "clinic.duckdb"


@pytest.fixture
def engine(path: Path) -> Iterator[sa.Engine]:
    made = sa.create_engine(f"privsql:///{path}?epsilon={EXACT}&delta=1e-6")
    yield made
    made.dispose()


def exactly(sql: str) -> list[Any]:
    visits = clinic(60)  # noqa: F841 -- DuckDB reads it by name
    with duckdb.connect() as plain:
        return plain.execute(sql).fetchall()


def session_of(connection: sa.Connection) -> Any:
    return connection.connection.dbapi_connection.session  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("query", "plain"),
    [
        (sa.select(sa.func.count()).select_from(VISITS), "SELECT COUNT(*) FROM visits"),
        (
            sa.select(VISITS.c.state, sa.func.count().label("n"))
            .where(VISITS.c.age >= 30, VISITS.c.state.ilike("%a%"))
            .group_by(VISITS.c.state)
            .order_by(VISITS.c.state),
            "SELECT state, COUNT(*) FROM visits WHERE age >= 30 AND state ILIKE '%a%' GROUP BY ALL ORDER BY 1",
        ),
        (
            sa.select(sa.func.count()).select_from(VISITS).where(VISITS.c.state.contains("A")),
            "SELECT COUNT(*) FROM visits WHERE state LIKE '%A%'",
        ),
        (
            sa.select(sa.func.count()).select_from(VISITS).where(VISITS.c.state.in_(["CA", "TX"])),
            "SELECT COUNT(*) FROM visits WHERE state IN ('CA', 'TX')",
        ),
        (
            sa.select(
                sa.case((VISITS.c.age < 40, "young"), else_="old").label("band"), sa.func.count().label("n")
            )
            .group_by("band")
            .order_by(sa.desc("n"))
            .limit(1),
            "SELECT CASE WHEN age < 40 THEN 'young' ELSE 'old' END, COUNT(*) FROM visits GROUP BY 1 "
            "ORDER BY 2 DESC LIMIT 1",
        ),
    ],
)
def test_queries_of_core_are_answered(engine: sa.Engine, query: Any, plain: str) -> None:
    with engine.connect() as connection:
        found = [tuple(row) for row in connection.execute(query)]
    assert found == exactly(plain)


def test_pandas_reads_through_an_engine(engine: sa.Engine) -> None:
    sql = "SELECT state, COUNT(*) AS n FROM visits WHERE state = :state GROUP BY state"
    frame = pd.read_sql(sa.text(sql), engine, params={"state": "CA"})
    assert frame["n"].tolist() == [n for (n,) in exactly("SELECT COUNT(*) FROM visits WHERE state = 'CA'")]


def test_the_price_comes_from_the_address_a_statement_or_an_option(engine: sa.Engine) -> None:
    counts = [sa.select(sa.func.count()).select_from(VISITS).where(VISITS.c.age > age) for age in (1, 2, 3)]
    with engine.connect() as connection:
        spent = session_of(connection).budget.spent
        connection.execute(counts[0])
        connection.execute(sa.text("SET epsilon = 0.5"))
        connection.execute(counts[1])
        connection.execution_options(epsilon=0.25).execute(counts[2])
        assert session_of(connection).budget.spent.epsilon - spent.epsilon == EXACT + 0.75
    with engine.connect() as connection:  # a setting ends with its connection
        assert connection.connection.dbapi_connection.settings["epsilon"] == EXACT  # type: ignore[union-attr]


def test_all_connections_share_one_budget(path: Path) -> None:
    policy = path.with_name("policy.toml")
    policy.write_text("[budget]\nepsilon = 1.0\n")
    engine = sa.create_engine(f"privsql:///{path}?epsilon=0.75&policy={policy}")
    with engine.connect() as first, engine.connect() as second:
        first.execute(sa.text("SELECT COUNT(*) FROM visits"))
        with pytest.raises(exc.OperationalError) as caught:
            second.execute(sa.text("SELECT COUNT(*) FROM visits WHERE age > 5"))
    assert isinstance(caught.value.orig, dbapi.OperationalError)
    engine.dispose()


def test_refusals_keep_their_code(engine: sa.Engine) -> None:
    with engine.connect() as connection, pytest.raises(exc.NotSupportedError) as caught:
        connection.execute(sa.text("SELECT * FROM visits"))
    assert caught.value.orig.code == "refused-rows"  # type: ignore[union-attr]


@pytest.mark.parametrize("options", ["epslon=1", "epsilon=1&epsilon=2", "epsilon=(1,2)"])
def test_wrong_options_of_an_address_are_errors(path: Path, options: str) -> None:
    with pytest.raises(exc.ArgumentError):
        sa.create_engine(f"privsql:///{path}?{options}")


def test_an_address_without_a_source_is_an_error() -> None:
    with pytest.raises(exc.ArgumentError, match=r"clinic\.duckdb"):
        sa.create_engine("privsql://")


# -- reflection ----------------------------------------------------------------------------------------------
def test_tables_are_reflected_at_no_cost(engine: sa.Engine) -> None:
    inspected = sa.inspect(engine)
    assert inspected.get_table_names() == ["visits"]
    assert inspected.has_table("VISITS")
    assert not inspected.has_table("other")
    kinds = {each["name"]: type(each["type"]) for each in inspected.get_columns("visits")}
    assert issubclass(kinds["age"], sa.Integer)
    assert issubclass(kinds["state"], sa.String)
    with pytest.raises(exc.NoSuchTableError):
        inspected.get_columns("other")
    with engine.connect() as connection:
        assert session_of(connection).budget.spent.epsilon == 0


def test_a_reflected_table_is_queried(engine: sa.Engine) -> None:
    visits = sa.Table("visits", sa.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        found = connection.execute(sa.select(sa.func.count()).select_from(visits).where(visits.c.age > 30))
        assert found.scalar() == exactly("SELECT COUNT(*) FROM visits WHERE age > 30")[0][0]


@pytest.mark.parametrize("option", ["deadline=soon", "epsilon=1;x", "delta=0.1 ;SET", "a b=1", "max_rows="])
def test_an_option_that_is_none_is_an_error_and_never_left_out(path: Path, option: str) -> None:
    with pytest.raises(exc.ArgumentError):
        sa.create_engine(f"privsql:///{path}").dialect.create_connect_args(
            sa.URL.create("privsql", database=str(path), query=dict([option.split("=")]))
        )
