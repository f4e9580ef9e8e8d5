"""Formats, patterns and options: what has a rule is accepted and means what DuckDB makes of it, all else is refused."""

from __future__ import annotations

import duckdb
import pytest

import privsql
from privsql.algebra.patterns import DIRECTIVES, OPTIONS


@pytest.fixture(scope="module")
def session() -> privsql.Session:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT TIMESTAMP '2024-03-05 14:07:09.123456' AS ts, 'flu' AS diag, 'x1é' AS s"
    )
    return privsql.connect(connection)


def ask(session: privsql.Session, condition: str) -> None:
    session.query(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", epsilon=1.0)


def refusal(session: privsql.Session, condition: str) -> privsql.PrivsqlError:
    before = session.budget.spent.epsilon
    with pytest.raises(privsql.SqlError) as caught:
        ask(session, condition)
    assert caught.value.code == "refused-pattern"
    assert session.budget.spent.epsilon == before
    return caught.value


@pytest.mark.parametrize("directive", DIRECTIVES)
def test_every_directive_gives_text_and_leaves_strptime_a_timestamp(directive: str) -> None:
    with duckdb.connect() as connection:
        written, read = connection.execute(
            f"SELECT typeof(strftime(TIMESTAMP '2024-03-05', '{directive}')), typeof(try_strptime('2024', '{directive}'))"
        ).fetchall()[0]
    assert (written, read) == ("VARCHAR", "TIMESTAMP")


@pytest.mark.parametrize("function", ["strftime(ts, '{}') = 'x'", "strptime(diag, '{}') < ts"])
@pytest.mark.parametrize(
    "format_", ["%n", "%n%f", "%Y.%n", "%z", "%Y %Z", "%-a", "%", "100%", "%-", "%Q", "%%%n"]
)
def test_other_directives_are_refused(session: privsql.Session, function: str, format_: str) -> None:
    error = refusal(session, function.format(format_))
    assert "is not supported" in error.message


def test_supported_formats_are_answered(session: privsql.Session) -> None:
    ask(session, "strftime(ts, '%Y-%m-%d 100%% %H:%M:%S.%f') = 'x' OR strptime(diag, '%Y-%m-%d') < ts")


@pytest.mark.parametrize(
    "pattern", [r"\C", r"(\C)$", r"(?:\C)$", r"a\Cb", r"\G", r"(?=a)", r"(?<!a)", r"\1", r"(?#a)", r"\y"]
)
@pytest.mark.parametrize(
    "function", ["regexp_matches(s, {})", "regexp_extract(s, {}) = 'x'", "regexp_replace(s, {}, 'b') = 'x'"]
)
def test_other_regular_expression_syntax_is_refused(
    session: privsql.Session, function: str, pattern: str
) -> None:
    refusal(session, function.format(f"'{pattern}'"))


@pytest.mark.parametrize(
    "pattern",
    [
        r"\d+",
        r"^\pL\p{Greek}?",
        r"(?i)x",
        r"(?P<name>a)",
        r"(?:a|b)",
        r"\.\\\(",
        r"[\d-]",
        r"\x41",
        r"\Qa.b\E",
        r"[[:alpha:]]",
        r"(?i-s:a)",
        r"\bx\b",
    ],
)
def test_supported_regular_expressions_are_answered(session: privsql.Session, pattern: str) -> None:
    ask(
        session,
        f"regexp_matches(s, '{pattern}') OR regexp_extract(s, '{pattern}') = 'x' OR s SIMILAR TO '{pattern}'",
    )


@pytest.mark.parametrize("option", ["é", "x", "iq"])
def test_other_options_are_refused(session: privsql.Session, option: str) -> None:
    refusal(session, f"regexp_matches(s, 'a', '{option}')")
    refusal(session, f"regexp_replace(s, 'a', 'b', '{option}') = 'x'")


def test_supported_options_are_answered(session: privsql.Session) -> None:
    for option in OPTIONS:
        ask(session, f"regexp_replace(s, 'a', 'b', '{option}') = 'x'")


def test_a_backslash_in_a_replacement_must_precede_a_group(session: privsql.Session) -> None:
    refusal(session, r"regexp_replace(s, '(a)', '\q') = 'x'")
    ask(session, r"regexp_replace(s, '(a)', '[\1\\]') = 'x'")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("diag LIKE '%' || 'A' || '%'", "diag LIKE '%A%'"),
        ("lower(diag) LIKE lower('%Ca%')", "lower(diag) LIKE '%ca%'"),
        ("upper(diag) LIKE upper('%' || 'ca')", "upper(diag) LIKE '%CA'"),
        ("regexp_matches(diag, concat('^C', 'A'))", "regexp_matches(diag, '^CA')"),
    ],
)
def test_patterns_are_joined_from_constants(session: privsql.Session, written: str, meant: str) -> None:
    plans = [
        session.explain(f"SELECT COUNT(*) AS n FROM t WHERE {each}", epsilon=1) for each in (written, meant)
    ]
    assert plans[0].sql == plans[1].sql


@pytest.mark.parametrize("pattern", ["'%' || diag", "lower('%É%')", "'%' || NULL", "trim('%A%')"])
def test_other_expressions_are_no_patterns(session: privsql.Session, pattern: str) -> None:
    refusal(session, f"diag LIKE {pattern}")
