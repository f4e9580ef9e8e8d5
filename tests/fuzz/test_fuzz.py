"""Fuzzers: DuckDB reads what was meant, no data value comes out, and a planted mistake is seen.

Longer: `make fuzz N=1000000`, or PRIVSQL_FUZZ=100000 with `pytest -m slow tests/fuzz/test_fuzz.py`.
"""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

import logging
import os
from random import Random
from typing import Any

import duckdb
import pytest
from sqlglot import exp

import privsql
from privsql.render.duckdb import DuckDB
from privsql.render.duckdb_functions import FORMS
from privsql.render.write_expressions import ExpressionWriter
from privsql.sql.parse import gate
from tests.attacks import judge
from tests.cases.test_cases import session_of
from tests.fuzz import canaries, differential, neutral, sqlglot_reads, texts
from tests.fuzz.duckdb_reads import DuckDBReader
from tests.fuzz.parsed_once import parsed_once

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


def test_both_parsers_agree() -> None:
    _assert_alike(differential.run(60, 1))


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_both_parsers_agree_at_length(shard: int) -> None:
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
def test_the_fuzzer_detects_a_wrong_function(name: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMS, name, wrong)
    assert _differences(
        "contains(name, 'a') AND name LIKE 'b%' AND sqrt(income) > 1 AND substring(name, 2, 1) = 'x'"
    )


@pytest.mark.parametrize(("name", "wrong"), [("<=", "({0} < {1})"), ("=", "({0} <> {1})")])
def test_the_fuzzer_detects_a_wrong_operator(name: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DuckDB, "infix", {**DuckDB.infix, name: wrong})
    assert _differences("age <= 3 AND state = 'CA' AND diagnosis IS NOT DISTINCT FROM 'flu'")


def test_the_fuzzer_detects_a_wrong_is_not_distinct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DuckDB, "same", lambda self, left, right, negated=False: f"({left} = {right})")
    assert _differences("age <= 3 AND state = 'CA' AND diagnosis IS NOT DISTINCT FROM 'flu'")


def test_the_fuzzer_detects_missing_parentheses(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ExpressionWriter._call

    def bare(self: ExpressionWriter, call: Any) -> str:
        written = whole(self, call)
        return written[1:-1] if call.function == "or" else written

    assert not _differences("(age = 1 OR age = 2) AND smoker")
    monkeypatch.setattr(ExpressionWriter, "_call", bare)
    assert _differences("(age = 1 OR age = 2) = smoker")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("PARTITION BY privsql_unit", "PARTITION BY 1"),
        (" IGNORE NULLS", ""),
        ("ROWS BETWEEN 2 PRECEDING", "ROWS BETWEEN 1 PRECEDING"),
        ("ROWS BETWEEN", "GROUPS BETWEEN"),
        ("RANGE BETWEEN CAST(259200000000", "RANGE BETWEEN CAST(3"),
        ("DATE '1970-01-01'", "DATE '1970-01-02'"),
        ('ORDER BY "day" DESC', 'ORDER BY "day" ASC'),
        (', "oid" ASC NULLS LAST', ""),
    ],
)
def test_the_fuzzer_detects_a_wrong_window(right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _windowed()
    whole = DuckDB.window
    written: list[str] = []

    def changed(self: DuckDB, *given: Any) -> str:
        written.append(whole(self, *given))
        return written[-1].replace(right, wrong)

    monkeypatch.setattr(DuckDB, "window", changed)
    assert _windowed()
    assert right in " ".join(written)


def _windowed() -> list[str]:
    report = differential.Report()
    comparer = differential.Comparer(report)
    session = session_of.__wrapped__("shop")  # one that remembers no plan
    for call, over in (
        ("COUNT(*)", "ORDER BY day, oid ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
        ("COUNT(*)", "ORDER BY day RANGE BETWEEN INTERVAL 3 DAY PRECEDING AND CURRENT ROW"),
        ("ROW_NUMBER()", "ORDER BY day DESC"),
        ("LAG(oid IGNORE NULLS)", "ORDER BY day"),
    ):
        inner = f"SELECT *, {call} OVER (PARTITION BY customer_id {over}) AS k FROM orders"
        sql = f"SELECT COUNT(*) AS n FROM ({inner}) WHERE k = 1"
        comparer.ask(session, sql, "here", True)
    comparer.compare()
    assert report.accepted == 4, report.refused
    return report.differences


def test_guards_are_not_differences() -> None:
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
        ("list_contains([1, NULL], a)", "a = ANY([1, NULL])"), ("lpad(a, 3, 'x')", "rpad(a, 3, 'x')"), ("a & b", "a | b"),
        ("trunc(a)", "trunc(a, 1)"), ("epoch_ms(a)", "to_timestamp(a)"), ("time_bucket(INTERVAL 1 DAY, a)", "time_bucket(INTERVAL 2 DAY, a)"),
        ("lag(a IGNORE NULLS) OVER (ORDER BY b)", "lag(a) OVER (ORDER BY b)"), ("lag(a, 2) OVER (ORDER BY b)", "lag(a, 1) OVER (ORDER BY b)"),
        ("sum(DISTINCT a) OVER (PARTITION BY b)", "sum(a) OVER (PARTITION BY b)"),
        ("count(a) FILTER (WHERE c) OVER (PARTITION BY b)", "count(a) OVER (PARTITION BY b)"),
        ("sum(a) OVER (ORDER BY b)", "sum(a) OVER (ORDER BY b ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"),
    ],
)  # fmt: skip
def test_the_neutral_form_distinguishes_different_queries(one: str, other: str) -> None:
    reader = DuckDBReader()
    assert reader.expression(one) != reader.expression(other)
    for each in (one, other):
        assert sqlglot_reads.query(gate.parse(f"SELECT {each} FROM t", "duckdb"))[2][0][
            0
        ] == reader.expression(each)


def test_every_reader_of_a_text_has_a_tree_of_its_own() -> None:
    """Fuzzers parse a text once for several readers: what one of them changes, the others do not see."""
    with parsed_once():
        first, again = (gate.parse("SELECT COUNT(*) FROM t", "duckdb") for _ in range(2))
        first.set("limit", None)
        first.expressions[0].replace(exp.Null())
        assert again == gate.parse("SELECT COUNT(*) FROM t", "duckdb")
    assert first != again


def test_joins_after_a_comma_are_distinguished() -> None:
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
    assert report.answered > report.asked // 20


def test_no_private_value_leaks() -> None:
    _assert_silent(canaries.run(40, 1))


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_private_value_leaks_at_length(shard: int) -> None:
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


def test_leaked_canaries_are_detected_everywhere() -> None:
    log = logging.getLogger("privsql.test")

    def value(session: privsql.Session) -> str:
        return str(session._pipeline.engine._connection.execute("SELECT max(name) FROM patients").fetchall())

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
    """A query whose price depends on data."""
    type(session).query(session, "SELECT COUNT(*) FROM patients WHERE smoker", epsilon=0.5)


def test_limit_0_returns_no_rows() -> None:
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


def test_mutations_are_varied_and_repeatable() -> None:
    sql = "SELECT COUNT(*) FROM patients WHERE age > 40 AND state = 'CA'"
    first, again = ([texts.mutated(Random(seed), sql) for seed in range(300)] for _ in range(2))
    assert first == again
    assert len(set(first)) > 200
