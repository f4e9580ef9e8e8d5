"""SQL that cannot be read is refused with an error of ours, at once, and before the charge."""

# ruff: noqa: E501 -- queries read better in one line each
from __future__ import annotations

import contextlib
import logging

import duckdb
import pytest
import sqlglot

import privsql
from privsql.sql.parse.gate import parse
from tests.attacks import judge
from tests.fuzz import differential


@pytest.fixture(scope="module")
def session() -> privsql.Session:
    connection = duckdb.connect(":memory:")
    connection.execute(judge.SCHEMA)
    return privsql.connect(connection, policy=judge.POLICY)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM t LIMIT " + "1" * 5000,
        "SELECT COUNT(*) FROM t WHERE a < " + "9" * 400,
        "SELECT COUNT(*) FROM t WHERE a < 1." + "9" * 5000,
        "SELECT COUNT(*) FROM t GROUP BY " + "1" * 5000,
        "SELECT COUNT(*) FROM t ORDER BY \u00b2",
        "SELECT COUNT(*) FROM t WHERE a < CAST(1 AS DECIMAL(" + "9" * 5000 + "))",
        'SELECT COUNT(*) AS "\ud800" FROM t',
        'SELECT COUNT(*) AS "a\x00b" FROM t',
    ],
)
def test_unreadable_sql_raises_a_privsql_error(two_rows, sql):
    with pytest.raises(privsql.PrivsqlError):
        two_rows.query(sql, epsilon=1)
    assert two_rows.budget.spent.epsilon == 0


@pytest.mark.parametrize(
    "written", ["CAST(CAST({} AS VARCHAR) AS TIMESTAMP)", "cbrt({})", "CAST(CAST({} AS VARCHAR) AS TIME)"]
)
@pytest.mark.parametrize("below", [False, True])
def test_size_limit_counts_duplicated_subexpressions(written: str, below: bool) -> None:
    """Each nested cast tripled the SQL: twenty of them were gigabytes of text, or a day of DuckDB's time."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t (x " + ("DOUBLE" if "cbrt" in written else written.split()[-1].rstrip(")")) + ")"
    )
    inner = "t" if below else "x"
    for _ in range(14 if "cbrt" in written else 9):
        inner = f"(SELECT {written.format('x')} AS x FROM {inner})" if below else written.format(inner)
    sql = f"SELECT COUNT(x) AS n FROM {inner}" if below else f"SELECT COUNT({inner}) AS n FROM t"
    with pytest.raises(privsql.PrivsqlError) as caught:
        privsql.connect(connection).explain(sql, epsilon=1)
    assert caught.value.code == "sql-too-long"


@pytest.mark.parametrize(
    "letter",
    [
        "\x1c",
        "\x1f",
        "\x85",
        "\u1680",
        "\u200b",
        "\u2028",
        "\u2029",
        "\u2060",
        "\ufeff",
        "\u202e",
        "\u00a0",
        "\u3000",
    ],
)
def test_invisible_characters_outside_quotes_are_refused(session: privsql.Session, letter: str) -> None:
    with pytest.raises(privsql.PrivsqlError, match="cannot be seen") as caught:
        session.explain(f"SELECT COUNT(*)\nFROM{letter} patients", epsilon=1.0)
    assert (caught.value.code, caught.value.line, caught.value.column) == ("sql-syntax", 2, 5)
    session.explain(f"SELECT COUNT(*) AS \"n{letter}\" FROM patients WHERE name = 'a{letter}b'", epsilon=1.0)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT approx_quantile(, 0.5) FROM patients",
        "SELECT quantile_cont(, 0.5) FROM patients",
        "SELECT SUM() FROM patients",
        "SELECT corr(age, ) FROM patients",
        "SELECT arg_max(, age) FROM patients",
        "SELECT regexp_matches(name, ) FROM patients",
        "SELECT COUNT(*) FROM patients WHERE regexp_replace(, 'a', 'b', 'g') = 'z'",
        "SELECT COUNT(*),, 1 FROM patients",
        "SELECT COUNT(*) FROM patients WHERE age IN (, 1)",
        "SELECT COUNT(*) FROM patients GROUP BY (,age)",
    ],
)
def test_a_missing_argument_is_a_syntax_error(session: privsql.Session, sql: str) -> None:
    with pytest.raises(privsql.SqlError) as caught:
        session.query(sql, epsilon=1.0)
    assert caught.value.code == "sql-syntax"
    assert str(caught.value).startswith("line 1, column ")


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "snowflake", "tsql"])
def test_the_parser_drops_no_argument_of_a_known_function(dialect: str) -> None:
    """sqlglot once read log2(x, 5) as log2(x), and others likewise; whatever it knows, in any number."""
    left_out = []
    for name in sorted(sqlglot.Dialect.get_or_raise(dialect).parser_class.FUNCTIONS):
        for count in range(1, 6):
            with contextlib.suppress(privsql.PrivsqlError):
                read = repr(
                    parse(f"SELECT {name}({', '.join(f'c{n}_' for n in range(count))}) FROM t", dialect)
                ).lower()
                left_out += [(name, count)] if f"c{count - 1}_" not in read else []
    assert not left_out


@pytest.mark.parametrize(
    "condition",
    ["DATE '2024-12-31'::VARCHAR = name", "income::DECIMAL(10, FALSE) > 1", "income::DECIMAL(10, -1) > 1", '"" = 1',
     "log2(income, 5) > 1", "mod(age, 2, 3) = 1", "ltrim(name, 'a', 'b') = ''", "log10(income,(1),) > 1",
     "smoker IN (state = ANY(['CA']))", "smoker NOT IN ((name = SOME(['a'])))"],
)  # fmt: skip
def test_ambiguous_sql_is_refused(session: privsql.Session, condition: str) -> None:
    with pytest.raises(privsql.SqlError):
        session.explain(f"SELECT COUNT(*) FROM patients WHERE {condition}", epsilon=1.0)
    with pytest.raises(privsql.SqlError):
        session.explain('SELECT COUNT(*) AS "" FROM patients', epsilon=1.0)


def test_a_name_before_a_string_is_not_an_alias() -> None:
    """To DuckDB it is a type, and the text a constant of it."""
    with pytest.raises(privsql.SqlError, match="AS between"):
        differential.session_for("patients").explain(
            "SELECT k, COUNT(*) FROM patients UNPIVOT (v FOR k IN (age 'years', change AS 'difference')) GROUP BY k",
            epsilon=1.0,
        )


@pytest.mark.parametrize("begin", ["FETCH", "IF", "KILL", "CACHE TABLE", "DECLARE", "EXECUTE IMMEDIATE", "SHOW", "DESCRIBE", "SELCT", "x",
                                   "WITH u AS (RENAME", "WITH u AS (SELECT age FROM patients) CREATE"])  # fmt: skip
def test_text_that_is_not_a_query_is_not_logged(
    session: privsql.Session, begin: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(privsql.SqlError):
        session.explain(f"{begin} secret_word FROM patients", epsilon=1.0)
    assert "secret_word" not in caplog.text


def test_options_of_a_pattern_are_not_logged(
    session: privsql.Session, caplog: pytest.LogCaptureFixture
) -> None:
    """sqlglot said which flags of a pattern DuckDB does not have, in the middle of writing a column's name."""
    with caplog.at_level(logging.DEBUG), contextlib.suppress(privsql.SqlError):
        session.explain(
            "SELECT COUNT(regexp_replace(name, 'a', 'b', 'secret_word')) FROM patients", epsilon=1.0
        )
    assert not caplog.text


def _nested(step: str, inner: str, times: int) -> str:
    for _ in range(times):
        inner = step.format(inner)
    return inner


@pytest.mark.parametrize(
    "sql",
    [
        "WITH t0 AS (FROM patients SELECT *), " + ", ".join(f"t{i} AS (FROM t{i - 1} SELECT * UNION ALL FROM t{i - 1} SELECT *)" for i in range(1, 40))
        + " SELECT COUNT(*) FROM t39",
        "WITH t0 AS (SELECT state, COUNT(*) AS a FROM patients GROUP BY state), "
        + ", ".join(f"t{i} AS (SELECT state, a + a AS a FROM t{i - 1} WHERE a > a)" for i in range(1, 40)) + " SELECT * FROM t39",
        f"SELECT COUNT(*) FROM patients WHERE {_nested('CAST({} BETWEEN 0 AND 1 AS INTEGER)', 'age', 36)} = 1",
        f"SELECT {_nested('CASE {} WHEN 1 THEN 2 WHEN 2 THEN 3 ELSE 4 END', 'COUNT(*)', 36)} FROM patients",
    ],
    ids=["unions", "columns", "between", "case"],
)  # fmt: skip
def test_sql_that_doubles_at_every_level_is_refused_at_once(session: privsql.Session, sql: str) -> None:
    with pytest.raises(privsql.SqlError) as caught:
        session.explain(sql, epsilon=1.0)
    assert caught.value.code == "sql-too-long"
