"""SQL above the noise: refused by default, with a place and a way out; what is ordinary is permitted."""

# ruff: noqa: E501 -- queries read better in one line each
from __future__ import annotations

import pandas as pd
import pytest
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

import privsql
from privsql.errors import PrivsqlError, Refused
from privsql.sql.parse.above import permit_above
from tests.support.attacks_above import ATTACKS

TABLES = {"r0", "r1"}
PERMITTED = """
SELECT a, n, 100.0 * n / sum(n) OVER () AS pct FROM r0
SELECT a, sum(n) OVER (PARTITION BY b ORDER BY a ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) FROM r0
SELECT a, sum(n) OVER (ORDER BY d RANGE BETWEEN INTERVAL 7 DAY PRECEDING AND CURRENT ROW) FROM r0
SELECT a, avg(n) OVER w, first_value(n IGNORE NULLS) OVER (w ROWS 2 PRECEDING) FROM r0 WINDOW w AS (PARTITION BY b ORDER BY a)
SELECT a FROM r0 QUALIFY row_number() OVER (PARTITION BY b ORDER BY n DESC) <= 3
SELECT a, lag(n, 1, 0) OVER (ORDER BY a), ntile(4) OVER (ORDER BY n), cume_dist() OVER (ORDER BY n) FROM r0
SELECT * FROM r0 LEFT JOIN r1 USING (a) RIGHT JOIN r1 AS x ON x.a = r0.a FULL JOIN r1 AS y ON y.a = r0.a
SELECT * FROM r0 NATURAL JOIN r1 CROSS JOIN r1 AS x
SELECT * FROM r0 SEMI JOIN r1 USING (a) ANTI JOIN r1 AS x USING (b)
SELECT * FROM r0 ASOF JOIN r1 ON r0.a = r1.a AND r0.d >= r1.d
SELECT * FROM (r0 JOIN r1 USING (a))
SELECT * FROM r0 POSITIONAL JOIN r1
SELECT a FROM r0 UNION SELECT a FROM r1 EXCEPT ALL SELECT a FROM r0 INTERSECT SELECT a FROM r1
SELECT a, n FROM r0 UNION ALL BY NAME SELECT n, a FROM r1
SELECT a, (SELECT max(n) FROM r1 WHERE r1.a = r0.a) AS m FROM r0 WHERE n > (SELECT avg(n) FROM r0)
SELECT a FROM r0 WHERE a IN (SELECT a FROM r1) AND EXISTS (SELECT 1 FROM r1 WHERE r1.a = r0.a)
SELECT a FROM r0 WHERE n > ANY (SELECT n FROM r1) AND n <= ALL (SELECT n FROM r1)
PIVOT r0 ON b IN ('x', 'y') USING sum(n) GROUP BY a
WITH p AS (PIVOT r0 ON b IN ('x', 'y') USING sum(n)) SELECT * FROM p
SELECT * FROM (PIVOT r0 ON b IN ('x', 'y'), a IN ('u'))
SELECT * FROM r0 PIVOT (sum(n) AS s FOR b IN ('x', 'y'))
UNPIVOT r0 ON n, m INTO NAME k VALUE v
SELECT * FROM r0 UNPIVOT (v FOR k IN (n, m))
SELECT DISTINCT ON (b) b, a, n FROM r0 ORDER BY b, n DESC
SELECT b, a, sum(n), grouping(b) FROM r0 GROUP BY ROLLUP (b, a)
SELECT b, a, sum(n) FROM r0 GROUP BY CUBE (b, a) HAVING sum(n) > 3
SELECT b, a, sum(n) FROM r0 GROUP BY GROUPING SETS ((b), (a), ())
SELECT b, sum(n) FROM r0 GROUP BY ALL ORDER BY ALL
SELECT list(a ORDER BY n DESC)[1:3], string_agg(a, ', ' ORDER BY a) FILTER (WHERE n > 1) FROM r0
SELECT list_transform([1, 2], lambda x: x + n), [x * 2 FOR x IN [1, 2] IF x > 1], {'a': n, 'b': a}, MAP {'k': n} FROM r0
SELECT arg_max(a, n), max(n, 2), quantile_cont(n, [0.25, 0.75]), median(n), mode(a) FROM r0
SELECT CASE WHEN n > 1 THEN 'x' ELSE 'y' END, CASE b WHEN 'x' THEN 1 END, if(n > 1, 1, 2), coalesce(a, 'none') FROM r0
SELECT CAST(n AS DECIMAL(9, 2)), n::VARCHAR, TRY_CAST(a AS INT), CAST(NULL AS STRUCT(x INT, y VARCHAR[])) FROM r0
SELECT d + INTERVAL 3 DAY, date_trunc('month', d), extract(year FROM d), date_diff('day', d, DATE '2024-01-31'), strftime(d, '%Y-%m') FROM r0
SELECT a LIKE 'x%' AND a NOT ILIKE '%y' ESCAPE '#', a SIMILAR TO 'x.*', regexp_extract(a, '(x)', 1), a || '!', upper(a), split_part(a, '-', 1) FROM r0
WITH x AS (SELECT a FROM r0), y AS MATERIALIZED (SELECT a FROM x) SELECT * FROM y JOIN x USING (a)
SELECT * FROM r0, LATERAL (SELECT max(n) AS m FROM r1 WHERE r1.a = r0.a) AS x
SELECT a, x FROM r0, UNNEST([1, 2]) AS u(x)
SELECT a, unnest([1, 2]) FROM r0
SELECT * FROM range(3) t(i), generate_series(1, 3) AS s(j), (VALUES (1, 'a'), (2, 'b')) AS v(k, l)
SELECT COLUMNS('n.*'), * EXCLUDE (a) REPLACE (n + 1 AS n) FROM r0
SELECT r0.s.x, (s).x, s['x'] FROM r0
SELECT a COLLATE nocase, n & 1, n << 2, ~n, @n, 2 ** 3, n // 2, n % 2 FROM r0
FROM r0 SELECT a LIMIT 3 OFFSET 1
VALUES (1, 2), (3, 4)
(SELECT a FROM r0 ORDER BY n LIMIT 1) UNION ALL (SELECT a FROM r1)
SELECT x -> '$.a', x ->> '$.a', json_extract(x, '$.a') FROM r0
SELECT /*+ hint(a) */ a FROM r0 -- a remark
""".strip().splitlines()
# What is refused: the code, and a word of the way out.
REFUSED = [
    ("SELECT *\nFROM r7", "refused-table", (2, 6), "r0"),
    ("SELECT n,\n  now() FROM r0", "refused-function", (2, 3), "DATE '2024-01-31'"),
    ("SELECT foo(n) FROM r0", "refused-function", (1, 8), ""),
    ("SELECT * FROM read_csv('x')", "refused-table-function", (1, 15), "range(...)"),
    ("PIVOT r0 ON b USING sum(n)", "refused-pivot", (1, 7), "IN ('CA', 'NY')"),
    ("SELECT * FROM r0 PIVOT (sum(n) FOR b IN (SELECT a FROM r1))", "refused-pivot", (1, 25), "IN ('CA', 'NY')"),
    ("PIVOT r0 ON b GROUP BY a", "refused-pivot", (1, 7), "IN ('CA', 'NY')"),
    ("SELECT * FROM (PIVOT r0 ON b, a IN ('x') USING sum(n))", "refused-pivot", (1, 22), "IN ('CA', 'NY')"),
    ("SELECT n::TIMESTAMPTZ FROM r0", "refused-cast", (1, 8), "TIMESTAMP"),
    ("SELECT n::ENUM('a') FROM r0", "refused-cast", (1, 16), "VARCHAR"),
    ("SELECT a COLLATE de FROM r0", "refused-syntax", (1, 8), "nocase"),
    ("SELECT a.upper() FROM r0", "refused-function", (1, 8), "upper(x)"),
    ("SELECT list_aggregate([1], a) FROM r0", "refused-function", (1, 8), "list_sum"),
    ("SELECT * FROM main.r0", "refused-schema", (1, 15), "Leave the schema out"),
    ("SELECT ~n * 2 FROM r0", "refused-syntax", (1, 9), "parentheses"),
    ("SELECT x -> 'a' = 1 FROM r0", "refused-syntax", (1, 8), "parentheses"),
    ("SELECT 1 < n < 3 FROM r0", "sql-syntax", (1, 8), "parentheses"),
    ("SELECT date_add(d, 2) FROM r0", "refused-interval", (1, 8), "INTERVAL 2 DAY"),
    ("SELECT * FROM r0 TABLESAMPLE 10%", "refused-tablesample", (1, 30), "Leave it out"),
]  # fmt: skip


@pytest.mark.parametrize("sql", PERMITTED)
def test_ordinary_sql_is_permitted(sql: str) -> None:
    permit_above(sqlglot.parse_one(sql, read="duckdb"), TABLES)


@pytest.mark.parametrize("sql", ATTACKS)
def test_attacks_are_refused(sql: str) -> None:
    try:
        tree = sqlglot.parse_one(sql, read="duckdb")
    except ParseError:
        return  # no tree, nothing to run
    with pytest.raises(PrivsqlError):
        permit_above(tree, TABLES)


@pytest.mark.parametrize(("sql", "code", "place", "way_out"), REFUSED)
def test_a_refusal_has_a_place_and_a_way_out(
    sql: str, code: str, place: tuple[int, int], way_out: str
) -> None:
    with pytest.raises(PrivsqlError) as caught:
        permit_above(sqlglot.parse_one(sql, read="duckdb"), TABLES)
    error = caught.value
    assert (error.code, (error.line, error.column)) == (code, place)
    assert way_out in error.suggestion


@pytest.mark.parametrize(
    ("sql", "permitted"),
    [
        ("WITH x AS (SELECT 1 AS a) SELECT a FROM X", True),
        ("SELECT a FROM R0", True),
        ("WITH x AS (SELECT a FROM x) SELECT a FROM x", False),
        ("WITH x AS (SELECT a FROM y), y AS (SELECT 1 AS a) SELECT a FROM x", False),
        ("SELECT a FROM (WITH x AS (SELECT 1 AS a) SELECT a FROM x) AS q", True),
        ("SELECT a FROM (WITH x AS (SELECT 1 AS a) SELECT a FROM x) AS q JOIN x USING (a)", False),
        ("WITH x AS (SELECT 1 AS a) SELECT (SELECT max(a) FROM x WHERE a IN (SELECT a FROM x)) AS m", True),
        ("WITH x AS (WITH y AS (SELECT 1 AS a) SELECT a FROM y) SELECT a FROM x", True),
        ("WITH x AS (WITH y AS (SELECT 1 AS a) SELECT a FROM y) SELECT a FROM y", False),
        ("WITH \u212a AS (SELECT 1 AS a) SELECT a FROM k", False),
        ("WITH x AS (SELECT 1 AS a) (SELECT a FROM x) UNION ALL SELECT a FROM x", True),
    ],
)
def test_a_cte_may_be_named_where_it_is_in_sight(sql: str, permitted: bool) -> None:
    tree = sqlglot.parse_one(sql, read="duckdb")
    if permitted:
        permit_above(tree, TABLES)
    else:
        with pytest.raises(Refused, match="no table"):
            permit_above(tree, TABLES)


@pytest.mark.parametrize(
    "node",
    [
        exp.Literal(this="1; SELECT 2", is_string=False),
        exp.Literal(this="1) --", is_string=False),
        exp.Interval(this=exp.Literal.string("1"), unit=exp.Var(this="DAY) --")),
        exp.Anonymous(this="upper(x), getenv", expressions=[exp.Literal.string("x")]),
        exp.Cast(this=exp.Literal.number(1), to=exp.DataType(this=exp.DType.USERDEFINED, kind="INT) --")),
        exp.Window(this=exp.RowNumber(), spec=exp.WindowSpec(kind="ROWS", start="UNBOUNDED) --", start_side="PRECEDING")),
        exp.JSONExtract(this=exp.column("x"), expression=exp.JSONPath(expressions=[exp.JSONPathRoot(), exp.JSONPathKey(this="a' --")])),
    ],
)  # fmt: skip
def test_what_is_written_as_it_stands_must_be_a_word_or_a_number(node: exp.Expr) -> None:
    """No parser makes these; a tree that was changed on the way might have them."""
    with pytest.raises(PrivsqlError):
        permit_above(exp.select(node).from_("r0"), TABLES)


@pytest.mark.parametrize("side", ["LEFT; DROP", "left outer apply"])
def test_a_join_has_one_of_the_known_sides(side: str) -> None:
    tree = sqlglot.parse_one("SELECT 1 AS a FROM r0 JOIN r1 ON true", read="duckdb")
    tree.find(exp.Join).set("side", side)
    with pytest.raises(PrivsqlError):
        permit_above(tree, TABLES)


@pytest.mark.parametrize("dialect", ["postgres", "bigquery", "snowflake", "spark", "mysql", "tsql"])
def test_the_clock_of_other_dialects_is_refused(dialect: str) -> None:
    with pytest.raises(PrivsqlError):
        permit_above(sqlglot.parse_one("SELECT CURRENT_TIMESTAMP FROM r0", read=dialect), TABLES)
    permit_above(sqlglot.parse_one("SELECT a, SUM(n) OVER (ORDER BY a) FROM r0", read=dialect), TABLES)


@pytest.mark.parametrize("clause", ["INTO z FROM people", "FROM people FOR UPDATE", "FROM people FOR SHARE"])
def test_clauses_are_not_lost_when_a_query_is_taken_apart(clause: str) -> None:
    with privsql.connect({"people": pd.DataFrame({"age": [1, 2]})}) as session:
        for text in (f"SELECT COUNT(*) {clause}", f"SELECT n + 1 FROM (SELECT COUNT(*) AS n {clause})"):
            with pytest.raises(Refused) as caught:
                session.explain(text, epsilon=1)
            assert caught.value.code == "refused-syntax"
