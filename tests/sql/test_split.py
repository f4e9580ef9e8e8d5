"""Queries with several private parts: which releases they are split into, and what stands above them."""

from __future__ import annotations

import duckdb
import pytest

import privsql
from privsql.errors import PrivsqlError
from privsql.render.write_above import write_above
from privsql.sql.read import read, read_composition

TABLES = """
CREATE TABLE people (id INTEGER, state VARCHAR, age INTEGER, income DOUBLE);
CREATE TABLE states (state VARCHAR, region VARCHAR);
"""
POLICY = {
    "tables": {
        "people": {"columns": {"age": {"range": [0, 100]}, "state": {"values": ["CA", "NY"]}}},
        "states": {"public": True},
    }
}


@pytest.fixture(scope="module")
def pipeline():
    with duckdb.connect() as connection:
        connection.execute(TABLES)
        with privsql.connect(connection, policy=POLICY) as session:
            yield session._pipeline


def split(pipeline, sql):
    """The parts of a query as text, and the SQL above them."""
    from privsql.requests.pipeline import described

    found = read_composition(sql, pipeline._catalogue(pipeline.policy), "duckdb", described)
    if found is None:
        return None
    return [f"{each.name}: {each.statement.sql('duckdb')}" for each in found.parts], write_above(found.above)


@pytest.mark.parametrize(
    ("sql", "parts", "above"),
    [
        (
            "SELECT state, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS total FROM people GROUP BY state",
            ['r0: SELECT state AS "state", COUNT(*) AS "n" FROM people GROUP BY state'],
            'SELECT "state" AS "state", "n" AS "n", SUM("n") OVER () AS "total" FROM "r0"',
        ),
        (
            "SELECT AVG(n) AS m FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state)",
            ["r0: SELECT state, COUNT(*) AS n FROM people GROUP BY state"],
            'SELECT AVG("n") AS "m" FROM (SELECT * FROM "r0")',
        ),
        (  # the same release twice is one
            "SELECT (SELECT COUNT(*) FROM people) AS a, (SELECT COUNT(*) FROM people) AS b",
            ["r0: SELECT COUNT(*) FROM people"],
            'SELECT (SELECT * FROM "r0") AS "a", (SELECT * FROM "r0") AS "b"',
        ),
        (  # a public table is a part, too
            "SELECT region, SUM(n) AS n FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state) "
            "JOIN states USING (state) GROUP BY region",
            ["r0: SELECT state, COUNT(*) AS n FROM people GROUP BY state", "r1: SELECT * FROM states"],
            'SELECT "region", SUM("n") AS "n" FROM (SELECT * FROM "r0") JOIN "r1" AS "states" USING ("state") '
            'GROUP BY "region"',
        ),
        (  # private rows that WITH names go below
            "WITH old AS (SELECT * FROM people WHERE age > 64) SELECT (SELECT COUNT(*) FROM old) AS n, "
            "(SELECT AVG(age) FROM old) AS m",
            [
                "r0: WITH old AS (SELECT * FROM people WHERE age > 64) SELECT COUNT(*) FROM old",
                "r1: WITH old AS (SELECT * FROM people WHERE age > 64) SELECT AVG(age) FROM old",
            ],
            'SELECT (SELECT * FROM "r0") AS "n", (SELECT * FROM "r1") AS "m"',
        ),
        (  # a name of ours that the query has, too
            "WITH r0 AS (SELECT state, COUNT(*) AS n FROM people GROUP BY state) SELECT MAX(n) AS m FROM r0",
            ["rr0: SELECT state, COUNT(*) AS n FROM people GROUP BY state"],
            'WITH "r0" AS (SELECT * FROM "rr0") SELECT MAX("n") AS "m" FROM "r0"',
        ),
        (  # an alias that means something else is not the name of a released column
            "SELECT state, COUNT(*) * 2 AS n, RANK() OVER (ORDER BY COUNT(*)) AS p FROM people GROUP BY state",
            ['r0: SELECT state AS "state", COUNT(*) AS "value_1" FROM people GROUP BY state'],
            'SELECT "state" AS "state", "value_1" * 2 AS "n", RANK() OVER (ORDER BY "value_1") AS "p" FROM "r0"',
        ),
        (  # HAVING is a condition on released numbers
            "SELECT age // 10 AS d, COUNT(*) AS n FROM people GROUP BY 1 HAVING n > (SELECT COUNT(*) FROM states)",
            [
                'r0: SELECT age // 10 AS "d", COUNT(*) AS "n" FROM people GROUP BY age // 10',
                "r1: SELECT * FROM states",
            ],
            'SELECT "d" AS "d", "n" AS "n" FROM "r0" WHERE "n" > (SELECT COUNT(*) FROM "r1" AS "states")',
        ),
    ],
)
def test_a_query_is_split_into_releases_and_the_sql_above(pipeline, sql, parts, above):
    assert split(pipeline, sql) == (parts, above)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM people",
        "SELECT state, COUNT(*) AS n FROM people GROUP BY state HAVING COUNT(*) > 9 ORDER BY n LIMIT 3",
        "SELECT state FROM states",
        "SELECT region, COUNT(*) OVER () FROM states",
        "SELECT a.n FROM (SELECT COUNT(*) AS n FROM people) a, (SELECT age FROM people) b",  # people's rows
    ],
)
def test_one_release_or_none_is_not_split(pipeline, sql):
    assert split(pipeline, sql) is None


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        (
            "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people)",
            "r1: SELECT COUNT(*) AS n FROM people WHERE age > CAST(1 AS DOUBLE)",
        ),
        (
            "SELECT COUNT(*) AS n FROM people WHERE state IN (SELECT state FROM people GROUP BY state "
            "HAVING COUNT(*) > 9)",
            "r1: SELECT COUNT(*) AS n FROM people WHERE state IN (CAST('a' AS TEXT))",
        ),
        (
            "SELECT COUNT(*) AS n FROM people JOIN (SELECT state, AVG(age) AS m FROM people GROUP BY state) a "
            "USING (state) WHERE age > a.m",
            "r1: SELECT COUNT(*) AS n FROM people JOIN (VALUES (CAST('a' AS TEXT), CAST(1 AS DOUBLE))) AS "
            'a("state", "m") USING (state) WHERE age > a.m',
        ),
    ],
)
def test_a_noisy_query_among_private_rows_becomes_a_constant(pipeline, sql, part):
    parts, above = split(pipeline, sql)
    assert parts[1] == part
    assert above == 'SELECT * FROM "r1"'


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT state, ROW_NUMBER() OVER () FROM people", "refused-window"),
        (
            "SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM people) WHERE n > (SELECT age FROM people)",
            "refused-rows",
        ),
        (
            "SELECT COUNT(*) FROM people WHERE age > (SELECT COUNT(*) FROM people GROUP BY state)",
            "refused-stages",
        ),
        ("SELECT COUNT(*) FROM people WHERE EXISTS (SELECT AVG(age) FROM people)", "refused-stages"),
        ("SELECT SUM(n) OVER (), random() FROM (SELECT COUNT(*) AS n FROM people)", "refused-function"),
        (
            "SELECT SUM(n) OVER () FROM (SELECT COUNT(*) AS n FROM people), read_csv('x')",
            "refused-table-function",
        ),
    ],
)
def test_what_would_show_or_read_more_is_refused(pipeline, sql, code):
    with pytest.raises(PrivsqlError) as refused:
        split(pipeline, sql)
    assert refused.value.code == code


def test_what_takes_several_releases_is_refused_as_one(pipeline):
    """The binder reads one release; what it refuses so is split."""
    catalogue = pipeline._catalogue(pipeline.policy)
    with pytest.raises(PrivsqlError) as refused:
        read("SELECT AVG(n) FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state)", catalogue)
    assert refused.value.code == "refused-nested-aggregate"
    with pytest.raises(PrivsqlError) as refused:
        read("SELECT COUNT(*) AS n FROM people UNION ALL SELECT COUNT(*) FROM people", catalogue)
    assert refused.value.code == "refused-union"
