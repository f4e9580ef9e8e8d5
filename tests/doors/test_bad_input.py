"""Every mistake raises its own clear error, nothing is charged, and the next query still works."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sqlglot

import privsql
from privsql import ArgumentError, PolicyError, PrivsqlError, Refused, SourceError, SqlError, UnknownName
from tests.conftest import POLICY, clinic

EXACT = 10_000
COUNT = "SELECT COUNT(*) AS n FROM visits"
UNASKED = "SELECT COUNT(*) AS n FROM visits WHERE age > 77"  # without a price, what was asked before is free


@pytest.fixture(scope="module")
def session() -> privsql.Session:
    """One for all: whatever goes wrong must leave it as it was."""
    return privsql.connect({"visits": clinic()}, POLICY)


def refused(session, kind, call) -> PrivsqlError:
    """The error of a call: of that kind, complete, free, and without harm."""
    before = session.budget.spent.epsilon
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert isinstance(error, PrivsqlError)
    assert error.code
    assert error.code == error.code.lower()
    assert isinstance(error.suggestion, str)
    assert (error.line is None) == (error.column is None)
    assert error.message in str(error)
    assert error.code in str(error)
    assert session.budget.spent.epsilon == before
    assert len(session.query(COUNT, epsilon=0.01).fetchall()) == 1
    return error


# -- SQL -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sql", "kind", "code"),
    [
        ("", SqlError, "sql-empty"),
        ("  \n ", SqlError, "sql-empty"),
        (";", SqlError, "sql-empty"),
        ("-- nothing", SqlError, "sql-empty"),
        (None, SqlError, "sql-syntax"),
        (7, SqlError, "sql-syntax"),
        (b"SELECT 1", SqlError, "sql-syntax"),
        ("this is not SQL at all", SqlError, None),
        ("SELECT", SqlError, "sql-syntax"),
        ("SELECT COUNT(* FROM visits", SqlError, "sql-syntax"),
        ("SELECT 'open FROM visits", SqlError, "sql-syntax"),
        (f"{COUNT}; {COUNT}", SqlError, "sql-statements"),
        (f"{COUNT}; DROP TABLE visits", SqlError, "sql-statements"),
        ("DROP TABLE visits", Refused, "refused-statement"),
        ("CREATE TABLE t AS SELECT 1", Refused, "refused-statement"),
        ("INSERT INTO visits VALUES (1)", Refused, "refused-statement"),
        ("DELETE FROM visits", Refused, "refused-statement"),
        ("UPDATE visits SET age = 1", Refused, "refused-statement"),
        ("COPY visits TO 'x.csv'", Refused, "refused-statement"),
        ("ATTACH 'x.duckdb'", Refused, "refused-statement"),
        ("SET threads = 1", Refused, "refused-statement"),
        ("PRAGMA database_list", Refused, "refused-statement"),
        ("ALTER TABLE visits ADD COLUMN x INT", Refused, None),
        ("SELECT * FROM visits", Refused, "refused-rows"),
        ("SELECT age FROM visits", Refused, "refused-rows"),
        ("SELECT COUNT(*) FROM visits LIMIT 99999999999999999999999", SqlError, "sql-limit"),
        ("SELECT arg_max(state, ) FROM visits", SqlError, None),
        ("SELECT regexp_extract(state, :: '(.)', 1) AS c, COUNT(*) FROM visits GROUP BY c", SqlError, None),
        ("SELECT regexp_extract(state, '(') AS c, COUNT(*) FROM visits GROUP BY c", SqlError, "sql-engine"),
        (f"{COUNT} WHERE {'NOT ' * 500} smoker", SqlError, "sql-too-deep"),
        (f"SELECT COUNT(*) FROM {'(' * 500}visits{')' * 500}", SqlError, "sql-too-deep"),
        ("SELECT COUNT(*) FROM visits WHERE age = " + "1" * 30_000, SqlError, "sql-too-long"),
        ("SELECT COUNT(*) FROM read_csv('/etc/passwd')", Refused, None),
        ("SELECT COUNT(*) FROM '/etc/passwd'", SqlError, None),
        ("SELECT COUNT(*) FROM information_schema.tables", PrivsqlError, None),
        ("SELECT getenv('HOME'), COUNT(*) FROM visits", Refused, "refused-function"),
    ],
)
def test_unanswerable_sql_raises_a_privsql_error(session, sql, kind, code):
    for ask in (session.query, session.explain):
        error = refused(session, kind, lambda ask=ask: ask(sql, epsilon=1))
        assert code in (None, error.code)


def test_malformed_patterns(session):
    sql = "SELECT COUNT(*) FROM visits WHERE regexp_matches(state, '(')"
    assert refused(session, SqlError, lambda: session.query(sql, epsilon=1)).code == "sql-engine"


def test_unknown_names_suggest_similar_ones(session):
    error = refused(session, UnknownName, lambda: session.query("SELECT COUNT(*)\nFROM visit", epsilon=1))
    assert (error.code, error.line, error.suggestion) == ("name-table", 2, "did you mean visits?")
    error = refused(session, UnknownName, lambda: session.query("SELECT COUNT(smokr) FROM visits", epsilon=1))
    assert (error.code, error.line, error.column, error.suggestion) == (
        "name-column",
        1,
        14,
        "did you mean smoker?",
    )
    error = refused(
        session, UnknownName, lambda: session.query("SELECT COUNT(v.qqqqq) FROM visits AS v", epsilon=1)
    )
    assert "user" in error.suggestion


@pytest.mark.parametrize("hole", ["{0}", "{1}", "{args}", "%s", "$1", "?", "\\", "'", '"', "\x00"])
def test_text_constants_cannot_inject_sql(hole):
    """A constant that looks like a place in a template was once filled in, and ran as SQL."""
    frame = pd.DataFrame({"g": [hole, "x"], hole: ["p", "q"]})
    session = privsql.connect(frame)
    quoted, column = hole.replace("'", "''"), hole.replace('"', '""')
    for test in (
        f"regexp_matches('{quoted}', ' || (SELECT max(g) FROM df) || ')",
        f"contains('{quoted}', g)",
        f"('{quoted}' LIKE ' || (SELECT 1) || ')",
        f"starts_with(g, '{quoted}')",
        f"replace(g, '{quoted}', '{quoted}') = '{quoted}'",
        f'contains("{column}", g) OR ("{column}" || g) = \'px\'',
    ):
        try:
            plan = session.explain(f"SELECT COUNT(*) FROM df WHERE {test}", epsilon=1)
        except PrivsqlError:
            continue
        tree = sqlglot.parse_one(plan.sql, read="duckdb")
        assert len(list(tree.find_all(sqlglot.exp.Select))) <= 2, plan.sql
        assert "max" not in {each.name.lower() for each in tree.find_all(sqlglot.exp.Func)}
    if hole != "\x00":
        answer = session.query(f"SELECT COUNT(*) FROM df WHERE contains('{quoted}', g)", epsilon=EXACT)
        assert answer.fetchall() == [(1,)]


# -- arguments -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "epsilon",
    [
        0,
        0.0,
        -1,
        -0.5,
        float("nan"),
        float("inf"),
        -float("inf"),
        "1",
        "",
        True,
        False,
        None,
        1e-7,
        1e-300,
        5e-324,
        10_001,
        1e300,
        10**400,
        [],
        {},
        1 + 0j,
        np.array([1.0, 2.0]),
        pd.NA,
        object(),
    ],
)
def test_epsilon(session, epsilon):
    error = refused(session, ArgumentError, lambda: session.query(UNASKED, epsilon=epsilon))
    assert error.code == "argument-epsilon"
    refused(session, ArgumentError, lambda: session.explain(UNASKED, epsilon=epsilon))


@pytest.mark.parametrize("epsilon", [1, 0.5, np.float64(0.5), np.float32(0.5), np.int64(2), 1e-6, 10_000])
def test_epsilons_that_are_numbers(session, epsilon):
    assert session.query(COUNT, epsilon=epsilon, fresh=True).plan.epsilon == pytest.approx(float(epsilon))


@pytest.mark.parametrize("delta", [-1, -1e-9, 1, 1.5, float("nan"), float("inf"), "x", True, None])
def test_delta(session, delta):
    assert refused(session, ArgumentError, lambda: session.query(COUNT, 1, delta)).code == "argument-delta"


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.1, 95, float("nan"), "0.95", None, True])
def test_levels(session, level):
    plan, answer = session.explain(COUNT, epsilon=1), session.query(COUNT, epsilon=1)
    for call in (
        lambda: plan.accuracy(level),
        lambda: answer.intervals(level),
        lambda: answer.plot(level),
        lambda: session.query(COUNT, within=5, confidence=level),
    ):
        assert refused(session, ArgumentError, call).code == "argument-level"


@pytest.mark.parametrize("within", [0, -3, float("nan"), float("inf"), "20", True])
def test_within(session, within):
    assert (
        refused(session, ArgumentError, lambda: session.query(COUNT, within=within)).code == "argument-within"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"epsilon": 1, "within": 5},
        {"epsilon": 1, "epsilom": 2},
        {"epsilon": 1, "mechanism": "gumbel"},
        {"epsilon": 1, "mechanism": 3},
        {"epsilon": 1, "dialect": "klingon"},
        {"epsilon": 1, "dialect": 5},
    ],
)
def test_invalid_query_arguments_are_refused(session, arguments):
    refused(session, PrivsqlError, lambda: session.query(UNASKED, **arguments))
    refused(session, PrivsqlError, lambda: session.explain(UNASKED, **arguments))


def test_unknown_arguments_are_named(session):
    frame = clinic(5)
    for call in (
        lambda: session.query(COUNT, epsilon=1, frehs=True),
        lambda: session.explain(COUNT, epsilon=1, frehs=True),
        lambda: privsql.connect(frame, policcy={}),
        lambda: frame.dp.protect(bugdet=1),
        lambda: frame.dp.query("SELECT COUNT(*) FROM df", epsilon=1, foo=1),
        lambda: frame.dp.explain("SELECT COUNT(*) FROM df", epsilon=1, frehs=True),
    ):
        assert refused(session, ArgumentError, call).code == "argument-unknown"


def test_mechanisms(session):
    sql = "SELECT mode(state) FROM visits"
    for mechanism in ("normal", 3, []):
        error = refused(
            session, ArgumentError, lambda each=mechanism: session.query(sql, epsilon=1, mechanism=each)
        )
        assert error.code == "argument-mechanism"


def test_noise_that_would_not_fit_is_refused_before_the_charge(session):
    sums = ", ".join(f"AVG(cost + {index})" for index in range(40))
    error = refused(
        session,
        ArgumentError,
        lambda: session.query(f"SELECT state, {sums} FROM visits GROUP BY state", epsilon=1e-6),
    )
    assert error.code == "argument-epsilon"


# -- frames ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame([[1, 2]], columns=["a", "A"]),
        pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])),
        pd.DataFrame([[1, 2]]),
        pd.DataFrame([[1, 2]], columns=["a", None]),
        pd.DataFrame([[1, 2]], columns=["a", ("b", "c")]),
        pd.DataFrame(),
        pd.DataFrame(index=range(3)),
        pd.DataFrame({"a": [1j, 2j]}),
        pd.DataFrame({"a": pd.period_range("2024", periods=2)}),
        pa.table({}),
    ],
    ids=[
        "twice",
        "by case",
        "levels",
        "numbers",
        "none",
        "tuple",
        "no columns",
        "rows only",
        "complex",
        "period",
        "arrow",
    ],
)
def test_frames_that_cannot_be_named_in_sql(session, frame):
    refused(session, SourceError, lambda: privsql.connect(frame))
    refused(session, SourceError, lambda: privsql.connect({"t": frame}))
    if isinstance(frame, pd.DataFrame):
        refused(session, SourceError, lambda: frame.dp.query("SELECT COUNT(*) FROM df", epsilon=1))


ODD = [
    "privsq_l",
    "cells",
    "noisy",
    "count_1",
    "Count_1",
    "sum_1",
    "above_1",
    "below_1",
    "score_1",
    "df",
    "c0",
    "c1",
    "place",
    "noisy_values",
    "public_values",
    "a b",
    'q"t',
    "o'k",
    "select",
    "group",
    "naïve",
    "数",
    "🍎",
    "count",
    "avg",
    "sum",
    "v",
    "label_0",
    "a.b",
    "{0}",
    "{args}",
    "%s",
    "x_low",
    "n",
    "rowid",
    "1",
    "--",
]


@pytest.mark.parametrize("name", ODD)
def test_odd_column_names_are_harmless(name):
    frame = pd.DataFrame({name: [1, 2, 3, 1], "other": [1.0, 2.0, 3.0, 4.0]})
    column = '"' + name.replace('"', '""') + '"'
    policy = {"tables": {"df": {"columns": {name: {"range": [1, 3]}, "other": {"range": [0, 10]}}}}}
    session = privsql.connect(frame, policy)

    def ask(sql):
        answer = session.query(sql, epsilon=EXACT)
        assert len(answer.intervals()) == len(answer)
        assert len(answer._repr_html_()) > len(str(answer.columns))
        assert session.explain(sql, epsilon=1).keys == answer.plan.keys
        assert str(answer)
        return answer

    answer = ask(
        f"SELECT {column}, COUNT(*) AS n, AVG(other) AS m FROM df GROUP BY {column} ORDER BY n DESC, {column}"
    )
    assert answer.columns == [name, "n", "m"] if name != "n" else answer.columns == ["n", "n_2", "m"]
    if name != "n":
        assert [row[:2] for row in answer.fetchall()] == [(1, 2), (2, 1), (3, 1)]
    assert [row[:2] for row in ask(f"SELECT {column} + 1 AS k, COUNT(*) FROM df GROUP BY 1").fetchall()] == [
        (2, 2),
        (3, 1),
        (4, 1),
    ]
    assert ask(f"SELECT SUM({column}) AS {column} FROM df").fetchall() == [(7,)]
    assert ask(f"SELECT {column} FROM df GROUP BY {column} ORDER BY COUNT(*) DESC LIMIT 1").fetchall() == [
        (1,)
    ]
    assert ask(f"SELECT mode({column}) AS {column} FROM df").fetchall() == [(1,)]
    sql = (
        f"SELECT {column} FROM (SELECT {column}, COUNT(*) AS many FROM df GROUP BY {column}) WHERE many > 1.5"
    )
    assert ask(sql).fetchall() == [(1,)]
    sql = f"SELECT DISTINCT {column}, SUM(other) FROM df WHERE {column} > 1 GROUP BY ALL HAVING COUNT(*) > -100 ORDER BY ALL LIMIT 1"  # noqa: E501
    assert ask(sql).fetchall()[0][0] == 2


def test_duplicate_output_names_are_refused(session):
    answer = session.query(
        "SELECT COUNT(*), COUNT(*), SUM(change) AS count_star() FROM visits".replace(" AS count_star()", ""),
        epsilon=1,
    )
    assert len(set(answer.columns)) == 3
    assert len(answer.arrow().column_names) == len(answer.pl().columns) == len(answer.fetchall()[0]) == 3
    assert answer.intervals().shape == (1, 9)
    answer.plot()


def test_an_empty_frame_is_answered():
    frame = pd.DataFrame({"k": pd.Series([], dtype="str"), "x": pd.Series([], dtype="float64")})
    session = privsql.connect(
        frame, {"tables": {"df": {"columns": {"k": {"values": ["a"]}, "x": {"range": [0, 1]}}}}}
    )
    assert session.query("SELECT k, COUNT(*), SUM(x) FROM df GROUP BY k", epsilon=EXACT).fetchall()[0][
        :2
    ] == ("a", 0)
    assert 0 <= session.query("SELECT AVG(x) FROM df", epsilon=1, show_all=True).fetchall()[0][0] <= 1


# -- policies and sources --------------------------------------------------------------------------------------
def column(**settings) -> dict:
    return {"tables": {"df": {"columns": {"a": settings}}}}


@pytest.mark.parametrize(
    "policy",
    [
        5,
        [],
        "missing.toml",
        {"x": 1},
        {1: 2},
        {"tables": 3},
        {"tables": {"df": 3}},
        {"tables": {1: {}}},
        {"tables": {"zz": {}}},
        {"tables": {"df": {"columns": 3}}},
        {"tables": {"df": {"columns": {1: {}}}}},
        {"tables": {"df": {"columns": {"a": 3}}}},
        {"tables": {"df": {"columns": {"zz": {}}}}},
        {"tables": {"df": {"columns": {"zz": {"range": [0, 1]}}}}},
        column(range=3),
        column(range=[3, 1]),
        column(range=[1]),
        column(range=[float("nan"), 1]),
        column(range=[0, float("inf")]),
        column(range=["x", "y"]),
        column(range=[None, 1]),
        column(range="01"),
        column(rnge=[0, 1]),
        column(values=[]),
        column(values="abc"),
        column(values=[[1]]),
        column(values=[{}]),
        column(values=["x"]),
        column(values=[10**30]),
        column(values=[1.5]),
        column(values=7),
        {"tables": {"df": {"unit": 3}}},
        {"tables": {"df": {"unit": "zz"}}},
        {"tables": {"df": {"unit": "a -> b"}}},
        {"tables": {"df": {"unit": "a -> b.c"}}},
        {"tables": {"df": {"unit": "a -> df.a"}}},
        {"tables": {"df": {"unit": ["a", "a"]}}},
        {"tables": {"df": {"unit": []}}},
        {"tables": {"df": {"unit": ""}}},
        {"tables": {"df": {"unique": "a"}}},
        {"tables": {"df": {"unique": ["b"], "unit": "a"}}},
        {"tables": {"df": {"max_rows": 0}}},
        {"tables": {"df": {"public": "yes"}}},
        {"budget": 3},
        {"budget": {"epsilon": -1}},
        {"budget": {"epsilon": "x"}},
        {"budget": {"delta": 2}},
        {"budget": {"eps": 1}},
        {"neighbours": "x"},
        {"neighbours": []},
    ],
)
def test_invalid_policies_are_refused(session, policy):
    def ask():
        privsql.connect(pd.DataFrame({"a": [1, 2]}), policy).query(
            "SELECT a, COUNT(*) FROM df GROUP BY a", epsilon=1
        )

    error = refused(session, PrivsqlError, ask)
    assert isinstance(error, (PolicyError, ArgumentError))


def test_a_policy_file_that_is_not_toml(session, tmp_path):
    for content in (b"[tables", b"\xff\xfe\x00"):
        (tmp_path / "p.toml").write_bytes(content)
        error = refused(session, PolicyError, lambda: privsql.connect(clinic(3), tmp_path / "p.toml"))
        assert error.code == "policy-file"


@pytest.mark.parametrize(
    "bounds", [{"range": [0, 10**400]}, {"range": [-(10**30), 10**30]}, {"range": [0, 10**7]}]
)
def test_key_sets_that_are_too_large(session, bounds):
    frame = privsql.connect(pd.DataFrame({"a": [1, 2]}), column(**bounds))
    error = refused(session, Refused, lambda: frame.query("SELECT a, COUNT(*) FROM df GROUP BY a", epsilon=1))
    assert error.code == "refused-many-keys"


@pytest.mark.parametrize(
    "source",
    [
        None,
        3,
        {},
        [],
        {"a": 3},
        {1: pd.DataFrame({"a": [1]})},
        {"": pd.DataFrame({"a": [1]})},
        {"a": pd.DataFrame({"a": [1]}), "A": pd.DataFrame({"b": [2]})},
        "",
        "no.duckdb",
        "no.csv",
        "no.xyz",
        "/",
        "postgresql://host/db",
        object(),
    ],
)
def test_invalid_sources_are_refused(session, source):
    refused(session, SourceError, lambda: privsql.connect(source))


def test_broken_files_are_refused(session, tmp_path):
    for name in ("a.parquet", "b.duckdb"):
        (tmp_path / name).write_bytes(b"not what it says" * 500)
        assert (
            refused(session, SourceError, lambda each=name: privsql.connect(tmp_path / each)).code
            == "source-file"
        )
    with duckdb.connect(str(tmp_path / "gone.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT 1 AS a; CREATE VIEW v AS SELECT * FROM t; DROP TABLE t CASCADE"
        )


# -- anything at all -------------------------------------------------------------------------------------------
QUERIES = [
    "SELECT state, COUNT(*) AS n FROM visits GROUP BY state ORDER BY n DESC LIMIT 2",
    "SELECT AVG(age), SUM(cost) / COUNT(*), round(AVG(cost), 1) FROM visits WHERE smoker AND age BETWEEN 20 AND 60",
    "SELECT age // 10 AS d, COUNT(*) FILTER (WHERE smoker) AS s FROM visits GROUP BY 1 HAVING COUNT(*) > 3 ORDER BY ALL",
    "WITH t AS (SELECT *, CASE WHEN cost > 500 THEN 'dear' ELSE 'cheap' END AS kind FROM visits) SELECT kind, AVG(age) FROM t "
    "WHERE state IN ('CA', 'NY') GROUP BY kind",
    "SELECT state FROM visits WHERE coalesce(age, 0) <> 5 GROUP BY state ORDER BY COUNT(*) DESC LIMIT 1",
    "SELECT arg_max(state, n) FROM (SELECT state, SUM(age) AS n FROM visits GROUP BY state)",
    "SELECT mode(state) FROM visits WHERE state LIKE 'C%' OR NOT smoker",
    "SELECT f, COUNT(*) FROM (UNPIVOT (SELECT smoker AS a, smoker AS b FROM visits) ON a, b INTO NAME f VALUE w) WHERE w GROUP BY f",  # noqa: E501
    "SELECT date_trunc('month', day) AS m, extract(year FROM day), COUNT(*) FROM visits WHERE day >= DATE '2024-01-01' AND "
    "day < TIMESTAMP '2024-03-01 00:00:00' GROUP BY 1, 2",
    "SELECT x, COUNT(*) FROM (SELECT age + 1 AS x FROM visits UNION ALL SELECT change * 2 FROM visits) WHERE x BETWEEN 1 AND 5 GROUP BY x",  # noqa: E501
    "SELECT k.a, COUNT(*) FROM (VALUES (1, 'x'), (2, NULL)) AS k(a, b) GROUP BY k.a",
    "FROM visits SELECT COUNT(*) + 1, -SUM(change), abs(AVG(change)), sqrt(COUNT(*)), ln(SUM(age)), exp(COUNT(*)), "
    "CAST(COUNT(*) AS TINYINT), pow(COUNT(*), 100), COUNT(*) % 7, nullif(COUNT(*), 0), greatest(COUNT(*), 5)",
    "SELECT * EXCLUDE (n) FROM (SELECT state, COUNT(*) AS n, AVG(cost) a FROM visits GROUP BY ALL) WHERE a > 10 ORDER BY a DESC OFFSET 1",  # noqa: E501
]
WORDS = [
    "NULL",
    "*",
    "(",
    ")",
    ",",
    "'x'",
    "1",
    "0",
    "-",
    "1e400",
    "9" * 45,
    "''",
    "AND",
    "NOT",
    "state",
    "age",
    "cost",
    "day",
    "SELECT",
    "FROM",
    "GROUP",
    "BY",
    "LIMIT",
    "COUNT",
    "SUM",
    "AVG",
    "visits",
    "CASE",
    "END",
    "INTERVAL",
    "DATE",
    "::",
    "[",
    "]",
    "{",
    "}",
    ";",
    "--",
    "/*",
    "$1",
    "?",
    "@",
    "'{1}'",
    '""',
    "OVER",
    "DISTINCT",
    "ALL",
    "EXISTS",
    "WITH",
    "AS",
    "IN",
    "IS",
    "LIKE",
    "%",
    "//",
    "^",
    "!",
    "~",
    "CAST",
    "0.1",
    "TRUE",
    "'2024-01-01'",
    "UNION",
    "VALUES",
    "JOIN",
    "HAVING",
    "\x00",
    "é",
    "0x1F",
    "1_000",
    "$$a$$",
]


def mutants(count: int, seed: int):
    dice = random.Random(seed)
    texts = [
        [sql[token.start : token.end + 1] for token in sqlglot.tokenize(sql, read="duckdb")]
        for sql in QUERIES
    ]
    for _ in range(count):
        words = list(dice.choice(texts))
        for _ in range(dice.choice([1, 1, 1, 2, 3])):
            place = dice.randrange(len(words))
            match dice.randrange(6):
                case 0:
                    words[place : place + 1] = [] if len(words) > 1 else words
                case 1:
                    words.insert(place, words[place])
                case 2:
                    other = dice.randrange(len(words))
                    words[place], words[other] = words[other], words[place]
                case 3:
                    words[place] = dice.choice(WORDS)
                case 4:
                    words.insert(place, dice.choice(WORDS))
                case _:
                    source = dice.choice(texts)
                    start = dice.randrange(len(source))
                    words[place : place + 1] = source[start : start + dice.randrange(1, 6)]
        yield " ".join(words), dice.choice([1, 0.001, 1e-6, 100])


def survive(seed: int, count: int) -> int:
    session = privsql.connect({"visits": clinic(60)}, POLICY)
    answered = 0
    for sql, epsilon in mutants(count, seed):
        before = session.budget.spent.epsilon
        try:
            answer = session.query(sql, epsilon=epsilon)
        except PrivsqlError as error:
            # what is computed from released values may fail after the charge; the engine never does
            above = error.code in ("engine-post-processing", "refused-stages")
            assert above or session.budget.spent.epsilon == before, sql
            assert error.code, sql  # noqa: PT017
        else:
            answered += 1
            assert str(answer)
            assert str(answer.plan)
            assert len(answer.fetchall()) == len(answer.intervals()) == len(answer.df())
            answer.plan.accuracy()
    return answered


def test_mutilated_queries_are_answered_or_refused():
    assert survive(seed=1, count=150) > 5


@pytest.mark.slow
def test_many_mutilated_queries_are_answered_or_refused():
    assert survive(seed=2, count=8_000) > 300


@pytest.mark.parametrize("given", [{"confidence": pd.NA}, {"confidence": 2}, {"weights": {"n": 1e308}},
                                   {"epsilon": None, "within": 10**400}])  # fmt: skip
def test_arguments_are_refused_before_the_charge(given: dict[str, Any]) -> None:
    session = privsql.connect(pd.DataFrame({"x": [1, 2]}))
    with pytest.raises(privsql.PrivsqlError) as caught:
        session.query("SELECT COUNT(*) AS n FROM df WHERE x > 1", **{"epsilon": 1.0, **given})
    assert caught.value.code.startswith("argument-")
    assert session.budget.spent.epsilon == 0


@pytest.mark.parametrize("given", [{"fresh": pd.NA}, {"prepared": pd.NA}, {"weights": pd.NA}, {"fresh": 1}])
def test_flags_must_be_true_or_false(given: dict[str, Any]) -> None:
    session = privsql.connect(pd.DataFrame({"x": [1, 2, 3]}))
    for ask in (session.query, session.explain):
        with pytest.raises(privsql.ArgumentError):
            ask("SELECT COUNT(*) AS n FROM df", epsilon=1, **given)
    assert session.budget.spent.epsilon == 0


@pytest.mark.parametrize("given", [{"ranges": pd.NA}, {"keys": pd.NA}, {"ranges": {"x": (0, Decimal("NaN"))}},
                                   {"ranges": {"x": np.array([0, 1])}}])  # fmt: skip
def test_malformed_ranges_and_keys_raise_a_privsql_error(given: dict[str, Any]) -> None:
    with pytest.raises(privsql.PrivsqlError):
        pd.DataFrame({"x": [1, 2, 3]}).dp.query("SELECT SUM(x) AS n FROM df", epsilon=1, **given)


@pytest.mark.parametrize("weights", [[1], "n", 5, {1, 2}])
def test_weights_must_be_a_mapping(session: privsql.Session, weights) -> None:
    with pytest.raises(privsql.ArgumentError) as caught:
        session.explain("SELECT COUNT(*) AS n FROM visits", epsilon=1.0, weights=weights)
    assert caught.value.code == "argument-weights"
