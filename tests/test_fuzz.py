"""Fuzzers: what DuckDB reads is what was meant, nothing of the data comes out; and what they once found stays mended.

Longer: `make fuzz N=1000000`, or PRIVSQL_FUZZ=100000 with `pytest -m slow tests/test_fuzz.py`.
"""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

import contextlib
import logging
import os
import sys
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
import sqlglot

import privsql
from privsql.render.duckdb import DuckDB
from privsql.render.duckdb_functions import FORMS
from privsql.render.write_expressions import ExpressionWriter
from tests.attacks import judge

sys.path.insert(0, str(Path(__file__).parent))

from fuzz import canaries, differential, neutral, sqlglot_reads, texts
from fuzz.duckdb_reads import DuckDBReader
from fuzz.parsed_once import parsed_once

from privsql.sql import read as reading
from privsql.sql.parse.gate import parse

SHARDS = 4
QUERIES = int(os.environ.get("PRIVSQL_FUZZ", "20000"))


@pytest.fixture(scope="module")
def session() -> privsql.Session:
    connection = duckdb.connect(":memory:")
    connection.execute(judge.SCHEMA)
    return privsql.connect(connection, policy=judge.POLICY)


# -- what is read is what is meant ---------------------------------------------------------------------------
def _assert_alike(report: differential.Report) -> None:
    print(report)
    assert not report.differences, "\n\n".join(report.differences[:5])
    assert report.rendered >= report.accepted - report.accepted // 50
    assert report.same > report.accepted // 10
    assert report.whole > report.accepted // 20


def test_duckdb_reads_what_was_meant() -> None:
    _assert_alike(differential.run(60, 1))


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_duckdb_reads_what_was_meant_at_length(shard: int) -> None:
    _assert_alike(differential.run(QUERIES // SHARDS, 100 + shard))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("contains", "contains({1}, {0})"),
        ("like", "({0} ilike {1})"),
        ("sqrt", "TRY(ln({0}))"),
        ("substring", "TRY(substring({0}, {1}))"),
    ],
)
def test_the_fuzzer_sees_a_function_that_is_rendered_otherwise(
    name: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FORMS, name, wrong)
    assert _differences(
        "contains(name, 'a') AND name LIKE 'b%' AND sqrt(income) > 1 AND substring(name, 2, 1) = 'x'"
    )


@pytest.mark.parametrize(("name", "wrong"), [("<=", "({0} < {1})"), ("=", "({0} <> {1})")])
def test_the_fuzzer_sees_an_operator_that_is_rendered_otherwise(
    name: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DuckDB, "infix", {**DuckDB.infix, name: wrong})
    assert _differences("age <= 3 AND state = 'CA' AND diagnosis IS NOT DISTINCT FROM 'flu'")


def test_the_fuzzer_sees_is_not_distinct_that_is_rendered_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DuckDB, "same", lambda self, left, right, negated=False: f"({left} = {right})")
    assert _differences("age <= 3 AND state = 'CA' AND diagnosis IS NOT DISTINCT FROM 'flu'")


def test_the_fuzzer_sees_parentheses_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ExpressionWriter._call

    def bare(self: ExpressionWriter, call: Any) -> str:
        written = whole(self, call)
        return written[1:-1] if call.function == "or" else written

    assert not _differences("(age = 1 OR age = 2) AND smoker")
    monkeypatch.setattr(ExpressionWriter, "_call", bare)
    assert _differences("(age = 1 OR age = 2) = smoker")


def test_what_looks_like_a_guard_is_no_difference() -> None:
    assert not _differences(
        "(make_date(age, 1, 1) + INTERVAL 0 DAY) IS NULL AND income + 0.0 > 1 AND NOT list_contains(['CA', NULL], state)"
    )


def _differences(condition: str) -> list[str]:
    report = differential.Report()
    comparer = differential.Comparer(report)
    comparer.ask(
        differential.session_for("attacked"), f"SELECT COUNT(*) FROM patients WHERE {condition}", "here", True
    )
    comparer.compare()
    assert report.accepted == 1, report.refused
    return report.differences


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a < b", "b < a"), ("a AND b OR c", "a AND (b OR c)"), ("-a ^ 2", "-(a ^ 2)"), ("a IN (1, 2)", "a IN (1, NULL)"), ("1", "1.0"),
        ("1.0", "1e0"), ("'1'", "1"), ("a BETWEEN 1 AND 2", "a > 1 AND a <= 2"), ("count(a)", "count(DISTINCT a)"), ("a IS NULL", "a = NULL"),
        ("count(*) FILTER (WHERE a)", "count(*) FILTER (WHERE b)"), ("CAST(a AS INTEGER)", "TRY_CAST(a AS INTEGER)"),
        ("CASE WHEN a THEN b ELSE c END", "CASE WHEN a THEN c ELSE b END"), ("CAST(a AS DECIMAL(5,1))", "CAST(a AS DECIMAL(5,2))"),
        ("INTERVAL 3 DAY", "INTERVAL 3 MONTH"), ("substring(a, 1, 2)", "substring(a, 2, 1)"), ("NOT a = b", "(NOT a) = b"),
        ("list_contains([1, NULL], a)", "a = ANY([1, NULL])"),
    ],
)  # fmt: skip
def test_the_neutral_form_tells_apart_what_differs(one: str, other: str) -> None:
    reader = DuckDBReader()
    assert reader.expression(one) != reader.expression(other)
    for each in (one, other):
        assert sqlglot_reads.query(parse(f"SELECT {each} FROM t", "duckdb"))[2][0][0] == reader.expression(
            each
        )


def test_a_tree_is_read_twice_as_it_is_read_once() -> None:
    """Fuzzers parse a text once for several readers: who binds it must not change it."""
    rng, session = Random(1), differential.session_for("patients")
    for schema, sql in rng.sample(texts.corpus(), 200):
        if schema == "patients":
            with contextlib.suppress(privsql.PrivsqlError), parsed_once():
                session.explain(sql, epsilon=1.0)
                assert reading.parse(sql, "duckdb") == parse(sql, "duckdb"), sql
    assert reading.parse is parse


def test_joins_behind_a_comma_are_told_apart_where_it_matters() -> None:
    reader = DuckDBReader()
    assert reader.read("SELECT 1 FROM a, b JOIN c ON x") == reader.read(
        "SELECT 1 FROM a CROSS JOIN b JOIN c ON x"
    )
    assert reader.read("SELECT 1 FROM a, b RIGHT JOIN c ON x") != reader.read(
        "SELECT 1 FROM a CROSS JOIN b RIGHT JOIN c ON x"
    )
    assert neutral.join("cross", ("a",), ("b",)) != neutral.join("inner", ("a",), ("b",), ("c",))


# -- nothing of the data comes out ---------------------------------------------------------------------------
def _assert_silent(report: canaries.Report) -> None:
    print(report)
    assert not report.problems, "\n\n".join(report.problems[:5])
    assert report.answered > report.asked // 10


def test_no_value_comes_out() -> None:
    _assert_silent(canaries.run(40, 1))


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_value_comes_out_at_length(shard: int) -> None:
    _assert_silent(canaries.run(QUERIES // SHARDS, 100 + shard))


def _caught(session: Any) -> list[str]:
    report = canaries.Report()
    sessions = [privsql.connect(canaries.database(20, first), policy=canaries.POLICY) for first in (0, 500)]
    for each in sessions:
        session(each)
    with canaries.ears() as ear:
        canaries._both(
            sessions,
            "query",
            "SELECT COUNT(*) AS n FROM patients",
            {"epsilon": 1.0},
            {7.0},
            report,
            "here",
            ear,
        )
    return [each.split()[0] for each in report.problems]


def test_the_canaries_are_caught_wherever_they_come_out() -> None:
    log = logging.getLogger("privsql.test")

    def value(session: privsql.Session) -> str:
        return str(session._engine._connection.execute("SELECT max(name) FROM patients").fetchall())

    def leaks(how: Any) -> Any:
        def change(session: privsql.Session) -> None:
            asked = session.query
            session.query = lambda *a, **k: (how(session), asked(*a, **k))[1]  # type: ignore[method-assign]

        return change

    def fails(error: type[Exception]) -> Any:
        def how(session: privsql.Session) -> None:
            raise error(value(session))

        return how

    assert _caught(lambda session: None) == []
    assert "CANARY" in _caught(leaks(lambda session: log.info("%s", value(session))))
    assert "CANARY" in _caught(leaks(lambda session: print(value(session))))
    assert {"CANARY", "CRASH"} <= set(_caught(leaks(fails(ValueError))))
    charged = leaks(lambda session: asks_more(session) if "zqc5" in value(session) else None)
    assert "DIFFER" in _caught(charged)


def asks_more(session: privsql.Session) -> None:
    """A question whose price depends on data."""
    type(session).query(session, "SELECT COUNT(*) FROM patients WHERE smoker", epsilon=0.5)


# -- what they found -----------------------------------------------------------------------------------------
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
def test_characters_that_parsers_take_for_different_things_are_refused(
    session: privsql.Session, letter: str
) -> None:
    with pytest.raises(privsql.PrivsqlError, match="cannot be seen") as caught:
        session.explain(f"SELECT COUNT(*)\nFROM{letter} patients", epsilon=1.0)
    assert (caught.value.code, caught.value.line, caught.value.column) == ("sql-syntax", 2, 5)
    session.explain(f"SELECT COUNT(*) AS \"n{letter}\" FROM patients WHERE name = 'a{letter}b'", epsilon=1.0)


@pytest.mark.parametrize(
    "call",
    [
        "approx_quantile(, 0.5)",
        "quantile_cont(, 0.5)",
        "SUM()",
        "corr(age, )",
        "arg_max(, age)",
        "regexp_matches(name, )",
    ],
)
def test_a_missing_argument_is_an_error_of_ours(session: privsql.Session, call: str) -> None:
    with pytest.raises(privsql.PrivsqlError):
        session.explain(f"SELECT {call} FROM patients", epsilon=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "snowflake", "tsql"])
def test_no_argument_is_left_out_without_a_word(dialect: str) -> None:
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
def test_what_is_read_in_two_ways_is_refused(session: privsql.Session, condition: str) -> None:
    with pytest.raises(privsql.SqlError):
        session.explain(f"SELECT COUNT(*) FROM patients WHERE {condition}", epsilon=1.0)
    with pytest.raises(privsql.SqlError):
        session.explain('SELECT COUNT(*) AS "" FROM patients', epsilon=1.0)


def test_a_name_before_a_text_is_no_alias() -> None:
    """To DuckDB it is a type, and the text a constant of it."""
    with pytest.raises(privsql.SqlError, match="AS between"):
        differential.session_for("patients").explain(
            "SELECT k, COUNT(*) FROM patients UNPIVOT (v FOR k IN (age 'years', change AS 'difference')) GROUP BY k",
            epsilon=1.0,
        )


def test_no_rows_at_all_is_what_was_meant_by_limit_0() -> None:
    report = differential.Report()
    comparer = differential.Comparer(report)
    for limit in ("LIMIT 0", "LIMIT 0 OFFSET 0", "LIMIT 1 OFFSET 2", "OFFSET 2"):
        comparer.ask(
            differential.session_for("patients"),
            f"SELECT DISTINCT region FROM states ORDER BY region {limit}",
            "here",
            True,
        )
    comparer.compare()
    assert (report.accepted, report.differences) == (4, [])


def test_quantiles_of_dates_up_to_the_end_of_the_calendar() -> None:
    """A grid of some days once had a last point past 9999-12-31, and could not be written."""
    connection = duckdb.connect(":memory:")
    connection.execute(
        "CREATE TABLE d AS SELECT DATE '9999-12-31' AS day, TIMESTAMP '9999-12-31 23:59:59' AS seen"
    )
    for low in ("0001-01-01", "0001-01-02", "1970-01-01", "9999-01-01"):
        policy = {
            "tables": {"d": {"columns": {name: {"range": [low, "9999-12-31"]} for name in ("day", "seen")}}}
        }
        answer = privsql.connect(connection, policy).query(
            "SELECT MEDIAN(day), MAX(day), MEDIAN(seen) FROM d", epsilon=1.0
        )
        assert len(answer.df()) == 1


@pytest.mark.parametrize("weights", [[1], "n", 5, {1, 2}])
def test_weights_that_are_no_mapping(session: privsql.Session, weights: Any) -> None:
    with pytest.raises(privsql.ArgumentError) as caught:
        session.explain("SELECT COUNT(*) AS n FROM patients", epsilon=1.0, weights=weights)
    assert caught.value.code == "argument-weights"


@pytest.mark.parametrize("begin", ["FETCH", "IF", "KILL", "CACHE TABLE", "DECLARE", "EXECUTE IMMEDIATE", "SHOW", "DESCRIBE", "SELCT", "x",
                                   "WITH u AS (RENAME", "WITH u AS (SELECT age FROM patients) CREATE"])  # fmt: skip
def test_what_is_no_question_is_not_logged(
    session: privsql.Session, begin: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(privsql.SqlError):
        session.explain(f"{begin} secret_word FROM patients", epsilon=1.0)
    assert "secret_word" not in caplog.text


def test_a_name_that_is_made_of_a_text_is_not_logged(
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
def test_what_doubles_at_every_level_is_refused_at_once(session: privsql.Session, sql: str) -> None:
    with pytest.raises(privsql.SqlError) as caught:
        session.explain(sql, epsilon=1.0)
    assert caught.value.code == "sql-too-long"


def test_a_deep_question_leaves_the_next_one_unharmed(session: privsql.Session) -> None:
    """What was stored of a deep one was once compared with all that came later, by recursion."""
    sums = ", ".join(f"t{i} AS (SELECT a + a AS a FROM t{i - 1})" for i in range(1, 12))
    session.query(f"WITH t0 AS (SELECT age AS a FROM patients), {sums} SELECT SUM(a) FROM t11", epsilon=1.0)
    assert len(session.query("SELECT COUNT(*) FROM patients WHERE smoker", epsilon=1.0).df()) == 1


def test_mutations_are_of_many_kinds_and_repeatable() -> None:
    sql = "SELECT COUNT(*) FROM patients WHERE age > 40 AND state = 'CA'"
    first, again = ([texts.mutated(Random(seed), sql) for seed in range(300)] for _ in range(2))
    assert first == again
    assert len(set(first)) > 200
