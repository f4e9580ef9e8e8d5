"""What DuckDB accepts before the charge does not fail on rows: whether it failed would tell whether there are such rows."""

from __future__ import annotations

import itertools

import duckdb
import pandas as pd
import pytest

import privsql
from privsql.algebra.functions import FUNCTIONS
from privsql.render.duckdb_functions import FORMS
from tests.support.databases import ask, database

TEXTS = ["'*'", "'('", "'['", "'\\'", "'%'", "'%Q'", "''", "'Q'", "'\\9'", "'\\1'", "'(a)'", "'a{9999}'", "'(?P<'", "'g'", "'é'",
         "'l'", "'month'", "'\\C'", "'(?:(?:a{99}){99}){99}'", f"'{'(' * 500}'", f"'{'(a|b)*' * 300}'", "NULL"]  # fmt: skip
NUMBERS = ["-1", "0", "1", "9", "99", "2147483648", "9223372036854775807", "-9223372036854775808", "NULL"]
COLUMNS = {
    "text": ["t"],
    "int": ["n"],
    "num": ["n"],
    "double": ["x"],
    "moment": ["d", "s"],
    "alike": ["d", "s"],
    "clock": ["d", "s"],
    "any": ["t"],
    "bool": ["b"],
}
OTHERWISE = {
    "like_escape",
    "ilike_escape",
    "lpad",
    "rpad",
}  # their patterns and fills are read by the binder: tests/cases, refused-pattern


def written(takes: tuple[str, ...], text: str) -> list[str]:
    """A function with every odd constant where it takes constants, and columns elsewhere."""
    odd = {"INT": NUMBERS, **COLUMNS}
    found = []
    for count in range(sum(not each.endswith(("?", "*")) for each in takes), len(takes) + 1):
        for combination in itertools.product(*(odd.get(each.rstrip("?*"), TEXTS) for each in takes[:count])):
            args = [f"({each})" for each in combination]
            sql = text.replace("{args}", ", ".join(args))
            for place, each in enumerate(args):
                sql = sql.replace(f"{{{place}}}", each)
            found.append(sql)
    return found


@pytest.fixture(scope="module")
def tables() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    columns = "t VARCHAR, n BIGINT, d DATE, s TIMESTAMP, x DOUBLE, b BOOLEAN"
    connection.execute(f'CREATE TABLE empty ({columns}); CREATE TABLE "full" ({columns})')
    connection.execute("""INSERT INTO "full" VALUES
        ('abc', 5, '2024-02-29', '2024-02-29 10:11:12', 1.5, true), ('', 0, '1970-01-01', '1970-01-01', 0, false),
        (NULL, NULL, NULL, NULL, NULL, NULL), ('a*b(é', -7, '0001-01-01', '9999-12-31 23:59:59', -1e300, true)""")
    return connection


LITERAL = [each for each in FUNCTIONS.values() if any(want.rstrip("?*").isupper() for want in each.takes)]


@pytest.mark.parametrize("name", [each.name for each in LITERAL if each.name not in OTHERWISE])
def test_accepted_constants_fail_on_no_row(tables, name):
    function, accepted = FUNCTIONS[name], 0
    texts = written(function.takes, FORMS[name])
    for sql in texts[:: 1 + len(texts) // 250]:
        try:
            tables.execute(f"PREPARE question AS SELECT count({sql}) FROM empty")
        except (duckdb.Error, UnicodeDecodeError):  # DuckDB may cut its message within a letter
            continue
        accepted += 1
        tables.execute(f'SELECT count({sql}) FROM "full"').fetchall()
    assert accepted


MALFORMED = [
    "regexp_replace(name, '*', 'x') = 'z'",
    "regexp_extract(name, '*') = 'z'",
    "regexp_extract(name, '(a)', 1) = 'z' AND regexp_extract(name, '(', 1) = 'z'",
    "regexp_replace('a', '[', 'x') = 'z'",
    "regexp_replace(name, 'a', 'b', 'é') = 'z'",
    "regexp_matches(name, 'a', 'é')",
]


@pytest.mark.parametrize("condition", MALFORMED)
@pytest.mark.parametrize("top", [1, 1000])
def test_a_malformed_pattern_is_refused_whatever_the_data(condition, top):
    """It failed, after the charge, only if DuckDB could not tell from its statistics that nobody has so much: an exact bit."""
    connection = duckdb.connect()
    connection.register("frame", pd.DataFrame({"name": ["Al", "Bob"], "income": [0, top]}))
    connection.execute("CREATE TABLE people AS FROM frame")
    session = privsql.connect(connection)
    for sql in (
        f"SELECT COUNT(*) FROM people WHERE income > 100 AND {condition}",
        f"SELECT COUNT(*) FILTER (WHERE income > 100 AND {condition}) FROM people",
        f"SELECT CASE WHEN {condition.replace('name', 'n::VARCHAR')} THEN 1 END FROM (SELECT COUNT(*) AS n FROM people)",
    ):
        with pytest.raises(privsql.SqlError) as caught:
            session.query(sql, epsilon=1)
        assert caught.value.code in ("sql-engine", "refused-pattern")
        assert session.budget.spent.epsilon == 0


def test_nothing_that_can_fail_is_shared_outside_of_try() -> None:
    """What two TRYs share, DuckDB 2.0 computes once and outside of both: TRY(n * n), TRY(n * n * 2) fails. So all functions stand
    side by side here, on rows that most of them fail on, by themselves and within one another."""
    given = {"UNIT": "'month'", "INT": "1", **{kind: columns[0] for kind, columns in COLUMNS.items()}}
    calls = []
    for function in (each for each in FUNCTIONS.values() if each.name not in OTHERWISE):
        takes = [each for each in function.takes if not each.endswith(("?", "*"))]
        args = [given.get(each, "'g'") for each in takes]
        filled = FORMS[function.name].replace("{args}", ", ".join(f"({each})" for each in args))
        for place, each in enumerate(args):
            filled = filled.replace(f"{{{place}}}", f"({each})")
        calls.append(filled)
    numbers, days, floats = (
        (0, 2**63 - 1, -(2**63) + 1),
        ("5881580-07-10", "infinity"),
        ("1e308", "-1", "0", "'inf'", "'nan'"),
    )
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE e (t VARCHAR, n BIGINT, d DATE, s TIMESTAMP, x DOUBLE, b BOOLEAN)")
        for n, d, x in itertools.product(numbers, days, floats):
            connection.execute(
                f"INSERT INTO e VALUES ('(', {n}, '{d}', '290309-12-22 (BC) 00:00:00', {x}, true)"
            )
        shown = [f"{call} AS a{place}, ({call}) IS NULL AS b{place}" for place, call in enumerate(calls)]
        connection.execute(f"CREATE TABLE found AS SELECT {', '.join(shown)} FROM e")
        counted = [
            f"count({call}), count(DISTINCT {call}), count(*) FILTER (WHERE ({call}) IS NULL)"
            for call in calls
        ]
        ((*counts,),) = connection.execute(f"SELECT {', '.join(counted)} FROM e").fetchall()
        assert sum(counts[2::3]) > 30 * 5  # many did fail


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ("CASE WHEN hiv THEN 100000000000 ELSE 0 END", "SELECT CAST(a AS DECIMAL(38, 30)) FROM (VALUES (5)) v(a)"),
        ("CASE WHEN hiv THEN DATE '2024-01-01' + 1800000000 ELSE DATE '2024-01-01' END",
         "SELECT CAST('2024-01-02' AS TIMESTAMP) FROM (VALUES (5)) v(a)"),
        ("CASE WHEN hiv THEN 18446744073709551615 ELSE 0 END", "SELECT CAST(a AS DECIMAL(38, 37)) FROM (VALUES (5)) v(a)"),
    ],
)  # fmt: skip
def test_not_in_fails_on_no_row(value, other):
    sql = f"SELECT COUNT(*) AS n FROM t WHERE {value} NOT IN ({other})"
    outcomes = set()
    for hiv in ("true", "false"):
        connection = database("CREATE TABLE t (hiv BOOLEAN)", f"INSERT INTO t VALUES ({hiv})")
        try:
            privsql.connect(connection).query(sql, epsilon=1)
            outcomes.add("answered")
        except privsql.PrivsqlError as error:
            outcomes.add(error.code)
    assert len(outcomes) == 1
    assert outcomes != {"engine-failed"}


@pytest.mark.parametrize(
    "key",
    [
        "CASE WHEN hiv THEN DATE '2024-01-01' + 1800000000 ELSE DATE '2024-01-01' END",
        "CASE WHEN hiv THEN CAST('infinity' AS DATE) ELSE DATE '2024-01-01' END",
        "CASE WHEN hiv THEN CAST('infinity' AS TIMESTAMP) ELSE CAST('2024-01-01' AS TIMESTAMP) END",
        "CASE WHEN hiv THEN CAST('24:00:00' AS TIME) ELSE CAST('12:00:00' AS TIME) END",
        "d", "ts", "tm", "iv", "h", "c", "u", "dbl",
    ],
)  # fmt: skip
def test_reading_undeclared_keys_fails_on_no_row(key):
    columns = "hiv BOOLEAN, d DATE, ts TIMESTAMP, tm TIME, iv INTERVAL, h HUGEINT, c DECIMAL(18, 3), u UBIGINT, dbl DOUBLE"
    rows = {
        "odd": "(true, 'infinity', '290000-01-01', '24:00:00', INTERVAL 5000000 YEAR, "
        "-170141183460469231731687303715884105727, 1, 18446744073709551615, 'nan')",
        "plain": "(false, '2024-01-01', '2024-01-01', '12:00', INTERVAL 1 DAY, 1, 1, 1, 1)",
    }
    outcomes = set()
    for row in rows.values():
        connection = database(f"CREATE TABLE t ({columns})", f"INSERT INTO t VALUES {row}")
        try:
            privsql.connect(connection).query(
                f"SELECT {key} AS k, COUNT(*) AS n FROM t GROUP BY 1", epsilon=1, delta=1e-9
            )
            outcomes.add("answered")
        except privsql.PrivsqlError as error:
            outcomes.add(error.code)
    assert len(outcomes) == 1
    assert outcomes != {"engine-failed"}


LARGEST = 2**127 - 1


@pytest.mark.parametrize("argument", [f"CASE WHEN k >= 0 THEN {LARGEST} ELSE 0 END", "CAST('9e37' AS DECIMAL(38,0)) + 0 * k",
                                      "CASE WHEN k >= 0 THEN CAST('9e37' AS DECIMAL(38,0)) END"])  # fmt: skip
@pytest.mark.parametrize("function", ["SUM", "AVG"])
def test_sums_over_public_tables_do_not_overflow(argument: str, function: str) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT i AS x FROM range(5) r(i)")
    connection.execute("CREATE TABLE codes AS SELECT i AS k FROM range(5) r(i)")
    sql = f"SELECT COUNT(*) AS n FROM people JOIN (SELECT {function}({argument}) AS a FROM codes) AS p ON people.x < p.a"
    assert ask(connection, sql, {"tables": {"codes": {"public": True}}})
