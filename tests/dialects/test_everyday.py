"""Everyday queries as analysts of each system write them: in every dialect, the answer is plain DuckDB's.

At an epsilon so large that there is no noise. `everyday.sql` has the texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot

import privsql
from tests.composed.test_queries import rows_of, unmatched

FILE = Path(__file__).with_name("everyday.sql")
MANY = 10_000
POLICY = {
    "neighbours": "add-remove",
    "tables": {
        "people": {
            "unit": "id",
            "unique": ["id"],
            "columns": {
                "state": {"values": ["CA", "NY", "TX", "WA"], "nullable": False},
                "sex": {"values": ["f", "m"], "nullable": False},
                "age": {"range": [0, 99], "nullable": False},
                "income": {"range": [0, 1000], "nullable": False},
                "score": {"range": [0, 10]},
                "joined": {"range": ["2020-01-01", "2022-12-31"], "nullable": False},
                "seen": {"range": ["2022-01-01", "2022-12-31 23:59:59"], "nullable": False},
                "smoker": {"nullable": False},
            },
        },
        "states": {"public": True},
    },
}
# The system whose SQL another one follows, where that has no text of its own.
FAMILY = {
    "athena": "trino",
    "trino": "presto",
    "dune": "trino",
    "spark2": "spark",
    "databricks": "spark",
    "spark": "hive",
    "fabric": "tsql",
    "materialize": "postgres",
    "risingwave": "postgres",
    "redshift": "postgres",
    "doris": "mysql",
    "starrocks": "mysql",
    "singlestore": "mysql",
}
# Languages of sqlglot in which nobody writes SQL.
NO_SQL = {"prql", "dax"}
DIALECTS = sorted(name for name in sqlglot.Dialect.classes if name and name not in NO_SQL)
# What is refused: the number of a query, the dialect, and why.
_FORMATS = "which letters of its formats mean the same as DuckDB's is not known: refused-dialect"
REFUSED = {
    ("19", "dremio"): _FORMATS,
    ("19", "drill"): _FORMATS,
    (
        "62",
        "oracle",
    ): "TRUNC(x) is that of a number to the parser: write CAST(seen AS DATE), or TRUNC(seen, 'DD')",
}


@cache
def queries() -> dict[str, dict[str, str]]:
    """By name: the text of each system."""
    found: dict[str, dict[str, str]] = {}
    for paragraph in FILE.read_text(encoding="utf-8").split("\n\n"):
        name, *lines = [line for line in paragraph.splitlines() if not line.startswith("--")] or [""]
        for line in lines:
            systems, _, sql = line.partition(": ")
            for system in systems.split(", "):
                found.setdefault(name, {}).setdefault(system, sql)
    return found


def text_of(name: str, dialect: str) -> str:
    """A query as analysts of a system write it."""
    texts, system = queries()[name], dialect
    while system not in texts:
        system = FAMILY.get(system, "*")
    return texts[system]


CASES = [(name, dialect) for name in queries() for dialect in DIALECTS]


def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(
            """
            CREATE TABLE people AS SELECT
                CAST(i AS INTEGER) AS id,
                ['CA', 'CA', 'CA', 'NY', 'NY', 'TX', 'WA', 'CA', 'NY', 'TX'][1 + i % 10] AS state,
                CASE WHEN i * 7 % 13 < 6 THEN 'f' ELSE 'm' END AS sex,
                CAST(i * 37 % 100 AS INTEGER) AS age,
                CAST(i * 613 % 1001 AS INTEGER) AS income,
                CASE WHEN i % 5 > 0 THEN CAST(i * 3 % 11 AS INTEGER) END AS score,
                DATE '2020-01-01' + CAST(i * 17 % 1096 AS INTEGER) AS joined,
                TIMESTAMP '2022-01-01' + INTERVAL (i * 131 % 8760) HOUR AS seen,
                i * 11 % 3 = 0 AS smoker,
                ['Ann', 'Bob', 'Cleo', 'Dan', 'Andrea', 'Ben'][1 + i % 6] AS name
            FROM range(4000) t(i)
            """
        )
        for column in ("state", "sex", "age", "income", "joined", "seen", "smoker", "name"):
            connection.execute(f"ALTER TABLE people ALTER {column} SET NOT NULL")
        connection.execute("CREATE TABLE states (state VARCHAR PRIMARY KEY, region VARCHAR)")
        connection.execute(
            "INSERT INTO states VALUES ('CA', 'west'), ('NY', 'east'), ('TX', 'south'), ('WA', 'west')"
        )
        yield connection


database = pytest.fixture(scope="module", name="database")(tables)


@pytest.fixture(scope="module")
def session(database: duckdb.DuckDBPyConnection) -> privsql.Session:
    return privsql.connect(database, policy=POLICY)


def _rows(frame: Any) -> list[tuple[Any, ...]]:
    """Rows in which a date and its midnight are the same."""
    return [
        tuple(each.removesuffix(" 00:00:00") if isinstance(each, str) else each for each in row)
        for row in rows_of(frame)
    ]


@pytest.mark.parametrize(("name", "dialect"), CASES, ids=lambda each: each.split()[0])
def test_an_everyday_query_means_in_every_dialect_what_it_means_in_duckdb(
    name: str, dialect: str, session: privsql.Session, database: duckdb.DuckDBPyConnection
) -> None:
    case = name.split()[0], dialect
    if case in REFUSED:
        with pytest.raises(privsql.SqlError):
            session.explain(text_of(name, dialect), epsilon=MANY, dialect=dialect)
        return
    exact = database.execute(text_of(name, "duckdb")).df()
    answer = session.query(text_of(name, dialect), epsilon=MANY, dialect=dialect)
    assert unmatched(_rows(answer.df()), _rows(exact)) == []


def test_the_suite_has_every_dialect_and_at_least_sixty_queries() -> None:
    assert len(queries()) >= 60
    assert {name for name in sqlglot.Dialect.classes if name} == {*DIALECTS, *NO_SQL}
    majors = {
        "postgres",
        "mysql",
        "tsql",
        "bigquery",
        "snowflake",
        "oracle",
        "clickhouse",
        "sqlite",
        "presto",
        "spark",
    }
    for system in majors:  # spelled by hand where it differs
        own = [name for name in queries() if text_of(name, system) != queries()[name]["*"]]
        assert len(own) >= 12, (system, own)


# -- what is written in one dialect only ---------------------------------------------------------------------
@pytest.mark.parametrize(
    ("dialect", "one", "other"),
    [
        ("tsql", "COUNT(CONVERT(VARCHAR(10), joined, 23))", "COUNT(strftime(joined, '%Y-%m-%d'))"),
        ("sqlite", "COUNT(date(joined, '-3 days'))", "COUNT(CAST(joined - INTERVAL 3 DAY AS DATE))"),
        ("sqlite", "AVG(julianday(joined) - julianday('2019-12-31'))", "AVG(date_diff('day', DATE '2019-12-31', joined))"),
        ("bigquery", "APPROX_QUANTILES(income, 4)[ORDINAL(2)]", "quantile_disc(income, 0.25)"),
        ("oracle", "COUNT(CASE WHEN TO_CHAR(joined, 'YYYY') = '2021' THEN 1 END)", "COUNT(*) FILTER (WHERE year(joined) = 2021)"),
        ("teradata", "COUNT(OREPLACE(name, 'A', 'B'))", "COUNT(replace(name, 'A', 'B'))"),
        ("clickhouse", "SUM(intDiv(income - 500, 7))", "SUM((income - 500) // 7)"),
    ],
)  # fmt: skip
def test_spellings_of_one_dialect(
    dialect: str, one: str, other: str, session: privsql.Session, database: duckdb.DuckDBPyConnection
) -> None:
    exact = database.execute(f"SELECT {other} AS x FROM people").df()
    answer = session.query(f"SELECT {one} AS x FROM people", epsilon=MANY, dialect=dialect)
    assert unmatched(_rows(answer.df()), _rows(exact)) == []


@pytest.mark.parametrize(
    ("dialect", "expression"),
    [
        ("tsql", "COUNT(CONVERT(VARCHAR(6), joined, 120))"),  # ends inside the month's number
        ("tsql", "COUNT(CONVERT(VARCHAR(10), joined, 9))"),
        ("sqlite", "COUNT(date(joined, '+1 month'))"),  # of 31 January it is 3 March
        ("sqlite", "COUNT(date(joined, 'weekday 0'))"),
        ("sqlite", "AVG(julianday(seen) - julianday(joined))"),  # a fraction
        ("databricks", "AVG(datediff(seen, joined))"),
        ("bigquery", "APPROX_QUANTILES(income, 4)[OFFSET(5)]"),
        ("mysql", "AVG(LENGTH(name))"),  # bytes
        ("oracle", "COUNT(TO_CHAR(joined, 'Q'))"),
        ("snowflake", "COUNT(LEFT(name, age - 1))"),
        ("teradata", "COUNT(REGEXP_SIMILAR(name, 'A', 'i'))"),
    ],
)  # fmt: skip
def test_what_would_mean_something_else_is_refused(
    dialect: str, expression: str, session: privsql.Session
) -> None:
    with pytest.raises(privsql.SqlError) as caught:
        session.explain(f"SELECT {expression} AS x FROM people", epsilon=1, dialect=dialect)
    assert caught.value.suggestion
