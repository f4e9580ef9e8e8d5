"""How noise reaches the columns of SQL above releases, which decides what intervals they can have."""

from __future__ import annotations

import pytest
import sqlglot

from privsql.sql.split.influence import Influence, Reached, simulated

NONE, CELL, SMOOTH, JUMPS = Influence.NONE, Influence.CELL, Influence.SMOOTH, Influence.JUMPS
TABLES = {
    "r0": Reached((("state", NONE), ("n", CELL), ("m", CELL))),
    "r1": Reached((("state", NONE), ("k", CELL))),
    "shown": Reached((("state", NONE), ("n", CELL)), rows=True),
}


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT state, n FROM r0", (NONE, CELL)),
        ("SELECT * FROM r0", (NONE, CELL, CELL)),
        ("SELECT state, 100 * n / SUM(n) OVER () AS pct FROM r0", (NONE, SMOOTH)),
        ("SELECT state, n - LAG(n) OVER (ORDER BY state) AS d FROM r0", (NONE, SMOOTH)),
        ("SELECT state, RANK() OVER (ORDER BY n) AS r FROM r0", (NONE, JUMPS)),
        ("SELECT state, SUM(m) OVER (ORDER BY n) AS r FROM r0", (NONE, JUMPS)),
        ("SELECT AVG(n) AS a, MAX(n) AS b, COUNT(*) AS c FROM r0", (SMOOTH, JUMPS, NONE)),
        ("SELECT state, CASE WHEN state = 'CA' THEN n ELSE m END AS x FROM r0", (NONE, SMOOTH)),
        ("SELECT state, CASE WHEN n > 5 THEN n ELSE m END AS x FROM r0", (NONE, JUMPS)),
        ("SELECT state, n > 5 AS x FROM r0", (NONE, JUMPS)),
        ("SELECT a.state, n, k FROM r0 a JOIN r1 b ON a.state = b.state", (NONE, CELL, CELL)),
        ("WITH c AS (SELECT state, n + m AS s FROM r0) SELECT state, s FROM c", (NONE, SMOOTH)),
        ("SELECT state, n FROM r0 UNION ALL SELECT state, k FROM r1", (NONE, CELL)),
        ("SELECT n - (SELECT AVG(k) FROM r1) AS d FROM r0", (SMOOTH,)),
        ("SELECT state, n FROM r0 WHERE n > 5", (NONE, CELL)),  # of the rows that are shown
        ("SELECT state, n FROM r0 ORDER BY n DESC LIMIT 2", (NONE, CELL)),
        ("SELECT state, SUM(n) AS s FROM r0 GROUP BY 1", (NONE, SMOOTH)),
        ("SELECT state, CAST(n AS VARCHAR) AS t FROM r0", (NONE, JUMPS)),
    ],
)
def test_noise_reaches_each_column_as_smoothly_as_its_expression(sql, columns):
    found = simulated(sqlglot.parse_one(sql, dialect="duckdb"), TABLES)
    assert found is not None
    assert found.columns == columns


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(n) AS s FROM shown",  # which rows it adds up depends on noise
        "SELECT state, n FROM shown",
        "SELECT SUM(n) AS s FROM (SELECT n FROM r0 WHERE n > 5)",
        "SELECT state FROM r0 GROUP BY state, n",
        "SELECT n > 5 AS big, COUNT(*) AS c FROM r0 GROUP BY 1",
        "SELECT DISTINCT n FROM r0",
        "SELECT state, n FROM r0 JOIN r1 ON n = k",
        "SELECT * FROM (SELECT state, n FROM r0 LIMIT 2)",
        "SELECT state, n FROM r0 EXCEPT SELECT state, k FROM r1",
        "SELECT x FROM elsewhere",
    ],
)
def test_where_rows_depend_on_noise_no_interval_is_claimed(sql):
    found = simulated(sqlglot.parse_one(sql, dialect="duckdb"), TABLES)
    assert found is None or set(found.columns) <= {NONE, JUMPS}
