"""SQL that cannot be read is refused with an error of ours, at once, and before the charge."""

from __future__ import annotations

import duckdb
import pytest

import privsql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(trunc(x, 1)) FROM t",
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
