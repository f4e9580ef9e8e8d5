"""What is written of a query above the noise means what the analyst wrote: the same rows in DuckDB, on random tables."""

# ruff: noqa: E501 -- queries read better in one line each
from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import duckdb
import pytest
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from privsql.errors import PrivsqlError, Refused
from privsql.render.write_above import write_above
from privsql.sql.parse.above import permit_above

TABLES = {"r0", "r1"}
COLUMNS = "a VARCHAR, b VARCHAR, n INTEGER, x DOUBLE, d DATE, p BOOLEAN, l INTEGER[]"


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": "1"}) as connection:
        draw = random.Random(1)
        for table in sorted(TABLES):
            connection.execute(f"CREATE TABLE {table} ({COLUMNS})")
            for _ in range(14):
                values = [
                    draw.choice(["CA", "NY", "TX", "o'k", None]),
                    draw.choice(["x", "y", None]),
                    draw.choice([*range(-3, 9), None]),
                    draw.choice([-1.5, 0.0, 0.25, 2.0, 7.5, float("nan"), None]),
                    draw.choice(["2024-01-31", "2024-02-29", "1969-12-31", None]),
                    draw.choice([True, False, None]),
                    draw.choice([[1, 2], [3], [], None]),
                ]
                connection.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        yield connection


def rows_of(engine: duckdb.DuckDBPyConnection, sql: str) -> list[str] | None:
    try:
        answered = engine.execute(sql)
        return sorted(map(repr, [[each[0] for each in answered.description or ()], *answered.fetchall()]))
    except duckdb.Error:
        return None


def check(engine: duckdb.DuckDBPyConnection, sql: str) -> bool:
    """Whether a text was answered, permitted and written; then both mean the same. Names of columns may differ
    only where nobody gave one.
    """
    expected = rows_of(engine, sql)
    if expected is None:
        return False
    try:
        tree = sqlglot.parse_one(sql, read="duckdb")
        permit_above(tree, TABLES)
    except (PrivsqlError, ParseError):
        return False
    before = repr(tree)
    written = write_above(tree)
    assert repr(tree) == before, "the tree stays as it is"
    assert rows_of(engine, written) == expected, (sql, written)
    return True


# -- random queries -------------------------------------------------------------------------------------------
class Queries:
    """Draws queries of all kinds, few of which fail."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)

    def one(self, *options: str) -> str:
        return self._draw.choice(options)

    def number(self, depth: int = 2) -> str:
        if depth == 0:
            return self.one("n", "x", "1", "2.5", "-3", "n", "length(a)", "list_sum(l)")
        left, right, other = self.number(depth - 1), self.number(depth - 1), self.number(depth - 1)
        return self.one(
            f"{left} {self.one(*'+-*/%')} {right}", f"{left} // nullif({right}, 0)", f"({left}) * {right}", f"-{left}",
            f"round({left}, 1)", f"abs({left})", f"coalesce({left}, {right})", f"greatest({left}, {right}, {other})",
            f"CASE WHEN {self.condition(depth - 1)} THEN {left} ELSE {right} END", f"CAST({left} AS DOUBLE)",
            f"if({self.condition(depth - 1)}, {left}, {right})", f"TRY_CAST({self.text(depth - 1)} AS INTEGER)", f"({left})::DECIMAL(18, 3)",
            f"date_diff('day', {self.date(depth - 1)}, {self.date(0)})", f"extract(year FROM {self.date(depth - 1)})", f"{left} ** 2",
            "list_sum(list_transform(l, lambda v: v * n))", "len([v + 1 FOR v IN l IF v > 1])", "l[1]", "{'u': n, 'v': x}.u",
        )  # fmt: skip

    def text(self, depth: int = 2) -> str:
        if depth == 0:
            return self.one("a", "b", "'it''s'", "'%'", "a", "''")
        inner = self.text(depth - 1)
        return self.one(
            f"{inner} || {self.text(depth - 1)}", f"upper({inner})", f"substring({inner}, 1, 2)", f"replace({inner}, 'C', 'c')",
            f"CAST({self.number(depth - 1)} AS VARCHAR)", f"coalesce({inner}, 'none')", f"strftime({self.date(depth - 1)}, '%Y-%m')",
            f"concat_ws('-', {inner}, n)", f"left({inner}, 1)", f"regexp_replace({inner}, '[A-C]', '<\\0>', 'g')", f"{inner}[1:2]",
            f"CASE {inner} WHEN 'CA' THEN 'west' WHEN 'NY' THEN 'east' END", f"trim({inner})", f"lpad({inner}, 4, '*')", f"typeof({inner})",
            f"array_to_string([{inner}, b], '+')", "string_agg('z', ',') OVER ()", f"format('{{}}!', {inner})", f"md5({inner})",
        )  # fmt: skip

    def date(self, depth: int = 2) -> str:
        if depth == 0:
            return self.one("d", "DATE '2024-02-29'", "d")
        inner = self.date(depth - 1)
        return self.one(
            f"{inner} + INTERVAL 1 MONTH", f"{inner} - INTERVAL '3' DAY", f"date_trunc('month', {inner})", f"last_day({inner})",
            f"{inner} + n * INTERVAL 1 DAY", "make_date(2024, 1, 31)", f"CAST({inner} AS TIMESTAMP)", f"coalesce({inner}, DATE '2020-01-01')",
        )  # fmt: skip

    def condition(self, depth: int = 2) -> str:
        if depth == 0:
            return self.one("p", "n > 2", "a = 'CA'", "x IS NULL", "b <> 'x'", "d < DATE '2024-02-01'")
        left, right, number, text = (
            self.condition(depth - 1),
            self.condition(depth - 1),
            self.number(depth - 1),
            self.text(depth - 1),
        )
        return self.one(
            f"{left} AND {right}", f"{left} OR {right}", f"NOT {left}", f"NOT ({left} OR {right})", f"{number} BETWEEN -1 AND {self.number(0)}",
            f"{number} {self.one('=', '<>', '<', '>=', 'IS DISTINCT FROM', 'IS NOT DISTINCT FROM')} {self.number(0)}", f"({left}) IS NOT TRUE",
            f"{text} LIKE '%A%'", f"{text} NOT LIKE 'x#_%' ESCAPE '#'", f"{text} ILIKE 'c%'", f"{text} IN ('CA', 'o''k', NULL)", f"{text} ~ '[A-C]'",
            f"{number} NOT IN (1, 2, 3)", f"{number} IS NOT NULL", f"{text} IS NULL", f"{number} IN (SELECT n FROM r1)", f"list_contains(l, {self.number(0)})",
            "EXISTS (SELECT 1 FROM r1 AS q WHERE q.a = r0.a AND q.n > r0.n)", f"{number} > (SELECT avg(n) FROM r1)", f"{number} >= ALL (SELECT n FROM r1 WHERE n IS NOT NULL)",
            f"{number} = ANY (SELECT n FROM r1)", f"starts_with({text}, 'C')", f"isfinite({self.number(0)}::DOUBLE)",
        )  # fmt: skip

    def window(self) -> str:
        over = self.one(
            "()", "(PARTITION BY a)", "(ORDER BY n, a, b, x)", "(PARTITION BY b ORDER BY n DESC NULLS FIRST, a, x)",
            "(PARTITION BY a ORDER BY n, x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", "(ORDER BY n RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW)",
            "(ORDER BY n, x, a GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)", "(ORDER BY d RANGE BETWEEN INTERVAL 40 DAY PRECEDING AND CURRENT ROW)",
        )  # fmt: skip
        value = self.number(1)
        framed = self.one(
            f"sum({value})", f"avg({value})", "count(*)", f"max({value})", f"count(*) FILTER (WHERE {self.condition(0)})",
            "first_value(n IGNORE NULLS)", "last_value(n)", "nth_value(n, 2)", "list(n)",
        )  # fmt: skip
        ranked = self.one(
            "row_number()",
            "rank()",
            "dense_rank()",
            "percent_rank()",
            "ntile(3)",
            "lag(n)",
            "lead(n, 2, -1)",
            "cume_dist()",
        )
        return f"{self.one(framed, ranked)} OVER {over}"

    def aggregate(self) -> str:
        value = self.number(1)
        return self.one(
            f"sum({value})", f"count(DISTINCT {value})", "count(*)", f"avg({value}) FILTER (WHERE {self.condition(1)})", f"max({self.text(1)})",
            f"min({self.date(1)})", "list(a ORDER BY n DESC, a)", "string_agg(a, '; ' ORDER BY n, a)", f"median({value})", f"quantile_cont({value}, 0.25)",
            "arg_max(a, n)", "bool_or(p)", f"stddev_samp({value})", "mode(b)", f"sum({value}) * 100.0 / sum(sum({value})) OVER ()", "histogram(b)",
        )  # fmt: skip

    def query(self) -> str:
        where = self.one("", f" WHERE {self.condition()}")
        select = f"SELECT a, {self.number()} AS u, {self.text()} AS v FROM r0{where}"
        grouping = self.one(
            "b", "ROLLUP (b, p)", "CUBE (b, p)", "GROUPING SETS ((b), (p), ())", "b, p", "ALL"
        )
        keys = "b" if grouping in ("b", "ALL") else "b, p"
        join = self.one(
            "JOIN r1 USING (a)", "LEFT JOIN r1 ON r0.a = r1.a AND r1.n > 1", "FULL JOIN r1 USING (a, b)", "CROSS JOIN r1", "SEMI JOIN r1 USING (b)",
            "ANTI JOIN r1 USING (a)", "NATURAL JOIN r1", "RIGHT JOIN r1 ON r0.n = r1.n", "POSITIONAL JOIN r1", "ASOF JOIN r1 ON r0.a = r1.a AND r0.d >= r1.d",
        )  # fmt: skip
        union = self.one(
            "UNION",
            "UNION ALL",
            "EXCEPT",
            "EXCEPT ALL",
            "INTERSECT",
            "INTERSECT ALL",
            "UNION ALL BY NAME",
            "UNION BY NAME",
        )
        return self.one(
            select,
            f"SELECT a, {self.window()} AS w FROM r0{where}",
            f"SELECT a, n FROM r0 QUALIFY {self.window()} IS NOT NULL",
            f"SELECT {keys}, {self.aggregate()} AS g, {self.aggregate()} AS h FROM r0{where} GROUP BY {grouping}",
            f"SELECT b, {self.aggregate()} AS g FROM r0 GROUP BY b HAVING {self.one('count(*) > 2', 'sum(n) > 5')}",
            f"SELECT count(*) AS c, count(n) AS m FROM (SELECT * FROM (SELECT a, b, n, d FROM r0) AS r0 {join}) AS q",
            f"SELECT * FROM r0 {join} ORDER BY ALL LIMIT 5" if "SEMI" in join or "ANTI" in join else f"{select} ORDER BY 1, 2, 3 LIMIT 4 OFFSET 1",
            f"(SELECT a, n FROM r0{where}) {union} SELECT a, n FROM r1",
            f"WITH w AS ({select}), z AS (SELECT v, count(*) AS c FROM w GROUP BY v) SELECT w.u, z.c FROM w JOIN z ON w.v IS NOT DISTINCT FROM z.v",
            f"SELECT a, (SELECT {self.one('max', 'min', 'count')}(q.n) FROM r1 AS q WHERE q.a = r0.a) AS m FROM r0{where}",
            f"PIVOT (SELECT b, p, n FROM r0) ON {self.one('b', 'p::VARCHAR')} IN ('x', 'y', 'true') USING {self.one('sum(n)', 'count(*) AS c', 'max(n) AS m, sum(n) AS s')}",
            f"SELECT * FROM (SELECT a, b, n FROM r0) PIVOT ({self.one('sum(n)', 'max(n) AS m')} FOR b IN ('x', 'y') GROUP BY a)",
            f"UNPIVOT (SELECT a, n, x::INTEGER AS y FROM r0 WHERE NOT isnan(x)) ON n, y INTO NAME k VALUE {self.one('v', 'w')}",
            "SELECT * FROM (SELECT a, n, n + 1 AS m FROM r0) UNPIVOT INCLUDE NULLS (v FOR k IN (n, m))",
            f"SELECT DISTINCT ON ({self.one('a', 'b', 'a, b')}) a, b, n FROM r0 ORDER BY a, b, n DESC, x",
            f"SELECT DISTINCT {self.text(1)} AS t, {self.condition(1)} AS c FROM r0",
            f"SELECT a, u, m FROM r0, UNNEST(l) AS q(u), LATERAL (SELECT max(n) AS m FROM r1 WHERE r1.n < u + {self.one('1', 'r0.n')}) AS z",
            f"SELECT i, j, {self.one('i + j', 'i * j', 'i - j')} AS k FROM range({self.one('3', '1, 4', '0, 9, 4')}) AS t(i), generate_series(1, 2) AS s(j)",
            f"SELECT {self.one('* EXCLUDE (l, x)', 'COLUMNS(*EXCLUDE (l))', '* REPLACE (n * 2 AS n)', 'r0.* EXCLUDE (a)')} FROM r0{where}",
            f"SELECT a, sum(n) OVER w AS s, rank() OVER (w ROWS 1 PRECEDING) AS k FROM r0 WINDOW w AS (PARTITION BY b ORDER BY {self.one('n', 'n DESC, a')}, x)",
            f"FROM (VALUES (1, 'u'), (2, {self.one(repr('v'), 'NULL')})) AS t(k, w) SELECT k, w, {self.one('k + 1', 'w || k', 'MAP {w: k}', '[k, k]', 'row(k, w)')} AS z",
        )  # fmt: skip


def test_hundreds_of_random_queries_mean_the_same(engine: duckdb.DuckDBPyConnection) -> None:
    queries = Queries(19)
    answered = sum(check(engine, queries.query()) for _ in range(500))
    assert answered > 350


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_thousands_of_random_queries_mean_the_same(engine: duckdb.DuckDBPyConnection, seed: int) -> None:
    queries = Queries(1_000 + seed)
    answered = sum(check(engine, queries.query()) for _ in range(2_000))
    assert answered > 1_400


# -- operators side by side -----------------------------------------------------------------------------------
BETWEEN = [
    *"+ - * / // % ** ^ || & | << >> = <> < <= > >= AND OR LIKE ILIKE GLOB ~ !~ ^@ ~~ && @> -> ->>".split(),
    "NOT LIKE",
    "SIMILAR TO",
    "IS DISTINCT FROM",
    "IS NOT DISTINCT FROM",
]
BEFORE = ["-", "NOT ", "~", "@"]
BEHIND = [
    " IS NULL", " IS NOT NULL", "::INT", "::VARCHAR", "::DOUBLE", " IN (1, 2)", " BETWEEN 1 AND 2", " IS TRUE", " IS NOT FALSE",
    " NOT IN (1)", " COLLATE nocase", " ISNULL", " NOT BETWEEN 0 AND 1", "[1]",
]  # fmt: skip
# Columns, as @true is a name to some.
OPERANDS = [
    ("i", "j", "k"),
    ("s", "t", "s"),
    ("p", "q", "p"),
    ("i", "s", "j"),
    ("s", "i", "t"),
    ("l", "l", "i"),
    ("o", "t", "i"),
    ("p", "i", "j"),
]
OPERATORS_TABLE = """
SELECT 3 AS i, 2 AS j, 5 AS k, 'ab' AS s, '1' AS t, true AS p, false AS q, [3, 1] AS l, '{"1": "ab", "ab": [7]}'::JSON AS o
"""


def side_by_side() -> Iterator[str]:
    yield from (f"{{0}} {one} {{1}} {other} {{2}}" for one, other in itertools.product(BETWEEN, repeat=2))
    for one, other in itertools.product(BETWEEN, BEFORE):
        yield from (f"{other}{{0}} {one} {{1}}", f"{{0}} {one} {other}{{1}}")
    for one, other in itertools.product(BETWEEN, BEHIND):
        yield from (f"{{0}}{other} {one} {{1}}", f"{{0}} {one} {{1}}{other}")
    yield from (f"{one}{{0}}{other}" for one, other in itertools.product(BEFORE, BEHIND))
    yield from (f"{{0}}{one}{other}" for one, other in itertools.product(BEHIND, repeat=2))
    yield from (f"{one}{other}{{0}}" for one, other in itertools.product(BEFORE, repeat=2))


def check_operators(texts: Iterator[str]) -> tuple[int, int]:
    """How many were answered, and refused."""
    engine = duckdb.connect(config={"threads": "1"})
    engine.execute(f"CREATE TABLE r0 AS {OPERATORS_TABLE}")
    answered = refused = 0
    for text in texts:
        for operands in OPERANDS:
            sql = f"SELECT {text.format(*operands)} AS z FROM r0"
            try:
                tree = sqlglot.parse_one(sql, read="duckdb")
                permit_above(tree, TABLES)
            except (PrivsqlError, ParseError):
                refused += 1
                break
            expected = rows_of(engine, sql)
            if expected is not None:
                answered += 1
                written = write_above(tree)
                assert rows_of(engine, written) == expected, (sql, written)
    engine.close()
    return answered, refused


def test_operators_side_by_side_are_grouped_as_in_duckdb_or_refused() -> None:
    """What sqlglot groups otherwise would be another query; every operand is written in parentheses."""
    answered, refused = check_operators(itertools.islice(side_by_side(), 3, None, 7))
    assert answered > 200 and refused < 150


@pytest.mark.slow
def test_all_operators_side_by_side_are_grouped_as_in_duckdb_or_refused() -> None:
    answered, refused = check_operators(side_by_side())
    assert answered > 1_400 and refused < 1_000


# -- the text itself ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sql", "written"),
    [
        ("select N + 1 as m from R0 -- a remark", 'SELECT "N" + 1 AS "m" FROM "R0"'),
        ("SELECT /*+ hint(a) */ /* b */ a FROM r0", 'SELECT "a" FROM "r0"'),
        ("SELECT n + n * n - n FROM r0", 'SELECT ("n" + ("n" * "n")) - "n" FROM "r0"'),
        (
            "SELECT a FROM r0 WHERE p AND NOT n > 1 OR p",
            'SELECT "a" FROM "r0" WHERE ("p" AND (NOT ("n" > 1))) OR "p"',
        ),
        ("SELECT 'it''s', '\\', '\"' FROM r0", "SELECT 'it''s', '\\', '\"' FROM \"r0\""),
        ('SELECT "a""b", "select" FROM r0 AS "t"""', 'SELECT "a""b", "select" FROM "r0" AS "t"""'),
        ("SELECT $$it's$$ FROM r0", "SELECT 'it''s' FROM \"r0\""),
    ],
)
def test_names_are_quoted_operands_in_parentheses_and_remarks_left_out(sql: str, written: str) -> None:
    tree = sqlglot.parse_one(sql, read="duckdb")
    permit_above(tree, TABLES)
    assert write_above(tree) == written


def test_a_long_chain_is_written() -> None:
    chain = " AND ".join(f"n <> {number}" for number in range(900))
    tree = sqlglot.parse_one(f"SELECT a FROM r0 WHERE {chain} OR p", read="duckdb")
    permit_above(tree, TABLES)
    assert write_above(tree).count("AND") == 899


def test_what_duckdb_has_no_equal_for_is_refused() -> None:
    tree = exp.select(exp.ApproxTopK(this=exp.column("a"), expression=exp.Literal.number(2))).from_("r0")
    with pytest.raises(Refused) as caught:
        write_above(tree)
    assert caught.value.code == "refused-dialect"
