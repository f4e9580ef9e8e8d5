"""A second dialect is one file: DuckDB under another name, which spells differently all that a dialect may spell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest

import privsql
from privsql.algebra.reserved import CELL
from privsql.render import base, write_expressions, write_relations, write_statements
from privsql.render.duckdb import DUCKDB, DuckDB
from privsql.render.duckdb_functions import FORMS

PREFIX = "toy_"  # before the names of functions: macros of the database below


class Toy(DuckDB):
    """Says without QUALIFY, SEMI JOIN, REPLACE, IS NOT DISTINCT FROM and OFFSET what DuckDB says with them."""

    forms = {
        **FORMS,
        **{name: FORMS[name].replace(f"{name}(", f"{PREFIX}{name}(") for name in ("lower", "year")},
    }
    infix = {**DuckDB.infix, "=": "({0} == {1})"}

    def same(self, left: str, right: str, negated: bool = False) -> str:
        test = f"CASE WHEN {left} IS NULL OR {right} IS NULL THEN {left} IS NULL AND {right} IS NULL ELSE {left} == {right} END"
        return f"(NOT ({test}))" if negated else f"({test})"

    def row_of(self, values):
        return f"({', '.join(values)})" if len(values) > 1 else super().row_of(values)

    def list_of(self, values):
        return f"[{', '.join(values)}]"

    def fence(self) -> str:
        return ""

    def ranked(self, shown: str, rest: str, rank: str, most: int, names: Sequence[str]) -> str:
        inner = f"SELECT {shown}, {rank} AS toy_rank {rest}"
        return f"SELECT * EXCLUDE (toy_rank) FROM ({inner}) WHERE toy_rank <= {most}"

    def semi_join(self, left: str, right: str, condition: str) -> str:
        return f"(SELECT * FROM {left} WHERE EXISTS (SELECT 1 FROM {right} WHERE {condition}))"

    def with_column_replaced(self, name, value, others, source):
        return f"SELECT {', '.join(others)}, {value} AS {name} FROM {source}"


QUERIES = [
    "SELECT lower(word) AS w, COUNT(*) AS n FROM t WHERE lower(word) IS NOT DISTINCT FROM 'a' GROUP BY w",
    "SELECT COUNT(*) AS n FROM t WHERE (word = 'a' OR x // 2 = 3) AND x <> 5",
    "SELECT AVG(x) AS a FROM t WHERE year(day) = 2024",
    "SELECT word, COUNT(*) AS n FROM t GROUP BY word ORDER BY n DESC LIMIT 2",
    "SELECT COUNT(DISTINCT x) AS n FROM t",
    "SELECT MEDIAN(x) AS m FROM t",
    "SELECT word, SUM(x) AS s FROM t WHERE u IN (SELECT u FROM t WHERE x > 3) GROUP BY word HAVING SUM(x) > 2",
]
POLICY = {
    "tables": {
        "t": {
            "unit": "u",
            "max_rows": 3,
            "max_groups": 2,
            "columns": {"word": {"values": ["a", "b", "c"]}, "x": {"range": [0, 9]}},
        }
    }
}
TABLE = """
CREATE TABLE t AS SELECT i % 40 AS u, chr((97 + i % 3)::INTEGER) AS word, (i % 10)::INTEGER AS x,
    DATE '2024-01-01' + (i % 900)::INTEGER AS day FROM range(400) r(i)
"""


@pytest.fixture
def session() -> privsql.Session:
    connection = duckdb.connect()
    connection.execute(TABLE)
    return privsql.connect(connection, POLICY)


def rows(sql: str) -> list[tuple]:
    with duckdb.connect() as connection:
        connection.execute(TABLE)
        connection.execute(
            f"CREATE MACRO {PREFIX}lower(x) AS lower(x); CREATE MACRO {PREFIX}year(x) AS year(x)"
        )
        return sorted(connection.execute(sql).fetchall(), key=repr)


@pytest.mark.parametrize("sql", QUERIES)
def test_a_dialect_with_its_own_spelling_computes_the_same(sql: str, session: privsql.Session) -> None:
    plan = session.explain(sql, epsilon=1)
    toy = Toy()
    statements = [plan.releases[0].counted, *(each.statement for each in plan.of_values)]
    for statement in filter(None, statements):
        spelled = toy.statement(statement)
        assert not re.search(r"QUALIFY|SEMI JOIN|DISTINCT FROM|OFFSET 0|REPLACE", spelled)
        assert rows(spelled) == rows(DUCKDB.statement(statement))
    assert plan.above is not None
    assert "REPLACE" not in toy.finishing(plan.above.relation, plan.above.guards)


def test_post_processing_in_another_dialect_gives_the_same_rows(session: privsql.Session) -> None:
    plan = session.explain(QUERIES[3], epsilon=1)
    assert plan.above is not None
    noisy = f"WITH noisy AS (SELECT * FROM (VALUES (0, 'a', 5), (1, 'b', 7), (2, 'c', 6)) v({CELL}, word, "
    noisy += f"{DUCKDB.identifier(plan.release.aggregates[0][0])})) "  # type: ignore[union-attr]
    found = [rows(noisy + each.finishing(plan.above.relation, plan.above.guards)) for each in (DUCKDB, Toy())]
    assert found[0] == found[1]
    assert len(found[0]) == 2


def test_shared_dialect_code_does_not_mention_duckdb() -> None:
    own = re.compile(
        r"QUALIFY|TRY_CAST|\bTRY\(|SEMI JOIN|OFFSET 0|\* REPLACE|DISTINCT FROM|list_value|\.main\.|EXCLUDE"
    )
    for module in (write_expressions, write_relations, write_statements):
        assert not own.search(Path(module.__file__).read_text(encoding="utf-8")), module.__name__
    assert len(own.findall(Path(base.__file__).read_text(encoding="utf-8"))) == 1, (
        "the standard's IS DISTINCT FROM"
    )
