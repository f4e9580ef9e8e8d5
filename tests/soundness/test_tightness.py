"""No bound is larger than it need be: for every construct, a pair of neighbouring tables that attains l1 and linf.

Where no pair can, the case says why. All tables are t(k BOOLEAN, x INTEGER in [2, 5], y DOUBLE in [-1, 3], s VARCHAR in
('a', 'b'), r INTEGER NOT NULL in [2, 5], z INTEGER in [-5, -2], likes of three fruits); a row is given by what differs
from the default row.
"""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import duckdb
import pytest

import privsql
from privsql.audit.falsify import differences, run_exactly
from privsql.planning.aggregates.estimate import ALL_ROWS
from tests.soundness.check import Report, check_plan

COLUMNS = {
    "k": "BOOLEAN", "x": "INTEGER", "y": "DOUBLE", "s": "VARCHAR", "r": "INTEGER NOT NULL", "z": "INTEGER",
    "apple": "BOOLEAN", "orange": "BOOLEAN", "banana": "BOOLEAN",
}  # fmt: skip
DEFAULT = {
    "k": True, "x": 5, "y": 3.0, "s": "a", "r": 5, "z": -5, "apple": True, "orange": True, "banana": True,
}  # fmt: skip
DECLARED = {
    "x": {"range": [2, 5]}, "y": {"range": [-1.0, 3.0]}, "s": {"values": ["a", "b"]}, "r": {"range": [2, 5]}, "z": {"range": [-5, -2]},
}  # fmt: skip
GONE = None  # no row: the person is added or removed


@dataclass(frozen=True)
class Tight:
    """A query, the row that leaves and the row that comes (or GONE), and why l1 or linf is not attained, if so."""

    sql: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    l1: bool = True
    linf: bool = True
    why: str = ""

    @property
    def relation(self) -> str:
        return "add-remove" if self.after is GONE else "replace-one"

    def __str__(self) -> str:
        return f"{self.relation}: {self.sql}"


TWICE = "(SELECT * FROM t UNION ALL SELECT * FROM t)"
TAGGED = "(SELECT k, x, 'l' AS tag FROM t UNION ALL SELECT k, x, 'm' FROM t)"
ALIKE = "(SELECT k, x, 'l' AS tag FROM t UNION ALL SELECT k, x, 'l' FROM t)"
LIKES = "(UNPIVOT t ON apple, orange, banana INTO NAME fruit VALUE likes)"

CASES = [
    # -- counts
    Tight("SELECT COUNT(*) FROM t", {}, GONE),
    Tight("SELECT COUNT(*) FROM t", {}, {}, l1=False, linf=False, why="the number of rows is fixed: it cannot move; 1 is kept"),
    Tight("SELECT COUNT(x) FROM t", {}, {"x": None}),
    Tight("SELECT COUNT(x) FROM t", {}, GONE),
    Tight("SELECT COUNT_IF(k) FROM t", {}, {"k": False}),
    Tight("SELECT COUNT(*) FROM t WHERE x > 3", {}, {"x": 2}),
    Tight("SELECT COUNT(*) FILTER (WHERE s = 'a') FROM t", {}, {"s": "b"}),
    Tight("SELECT COUNT(*) FILTER (WHERE x < 3), COUNT(*) FILTER (WHERE x >= 3) FROM t", {}, {"x": 2}),
    Tight("SELECT COUNT(*) FILTER (WHERE x < 3), COUNT(*) FILTER (WHERE x >= 3) FROM t", {}, GONE),
    Tight("SELECT COUNT(*) FILTER (WHERE k), COUNT(*) FILTER (WHERE NOT k) FROM t", {}, {"k": False}),
    Tight("SELECT COUNT_IF(x <= 3), COUNT_IF(x >= 3) FROM t", {"x": 3}, GONE),  # they meet at 3: two measurements
    Tight("SELECT COUNT(*) FILTER (WHERE x > 2), COUNT(*) FILTER (WHERE x > 3) FROM t", {}, {"x": 2}),  # overlapping: two measurements
    # -- sums
    Tight("SELECT SUM(r) FROM t", {}, {"r": 2}),  # NOT NULL: only the width of the range
    Tight("SELECT SUM(r) FROM t", {}, GONE),
    Tight("SELECT SUM(x) FROM t", {}, {"x": None}),  # NULL counts as 0, outside [2, 5]
    Tight("SELECT SUM(x) FROM t", {"x": 99}, {"x": None}),  # clamped
    Tight("SELECT SUM(z) FROM t", {"z": -99}, {"z": None}),
    Tight("SELECT SUM(z) FROM t", {}, GONE),
    Tight("SELECT SUM(r) FROM t WHERE k", {}, {"k": False}),  # filtered out counts as 0
    Tight("SELECT SUM(r) FILTER (WHERE k) FROM t", {}, {"k": False}),
    Tight("SELECT SUM(y) FROM t", {"y": float("inf")}, {"y": float("-inf")}),
    Tight("SELECT SUM(y) FROM t", {"y": float("nan")}, GONE),
    Tight("SELECT SUM(k) FROM t", {}, {"k": False}),
    Tight("SELECT SUM(x * 2 + 1) FROM t", {}, {"x": None}),
    Tight("SELECT SUM(CASE WHEN k THEN r ELSE 0 END) FROM t", {}, {"k": False}),
    Tight("SELECT SUM(COALESCE(x, 0)) FROM t", {}, {"x": None}),
    Tight("SELECT SUM(LEAST(GREATEST(y * 1000, 0), 7)) FROM t", {"y": 3.0}, {"y": -1.0}),
    # -- averages: u to one side, M - u to the other
    Tight("SELECT AVG(r) FROM t", {}, {"r": 2}),
    Tight("SELECT AVG(x) FROM t", {}, {"x": 2}),
    Tight("SELECT AVG(x) FROM t", {}, GONE),
    Tight("SELECT AVG(r), SUM(r), COUNT(*) FROM t", {}, {"r": 2}),
    Tight("SELECT AVG(y) FROM t", {"y": 99.0}, {"y": -99.0}),
    Tight("SELECT AVG(x) FILTER (WHERE k) FROM t", {}, {"x": 2}),
    Tight("SELECT k, AVG(x) FROM t WHERE k GROUP BY k", {}, {"x": 2}),
    Tight("SELECT k, COUNT(*) FROM t WHERE k GROUP BY k", {}, {"k": False}),
    # -- GROUP BY
    Tight("SELECT k, COUNT(*) FROM t GROUP BY k", {}, {"k": False}),
    Tight("SELECT k, COUNT(*) FROM t GROUP BY k", {}, {"k": None}),
    Tight("SELECT k, COUNT(*) FROM t GROUP BY k", {}, GONE),
    Tight("SELECT k, s, COUNT(*) FROM t GROUP BY k, s", {}, {"s": "b"}),
    Tight("SELECT k, SUM(x) FROM t GROUP BY k", {}, {"k": False}),
    Tight("SELECT k, SUM(r) FROM t GROUP BY k", {}, {"k": False}),
    Tight("SELECT k, SUM(z) FROM t GROUP BY k", {}, GONE),
    Tight("SELECT k, AVG(x) FROM t GROUP BY k", {}, {"k": False}),
    Tight("SELECT k, COUNT_IF(x < 3), COUNT_IF(x >= 3) FROM t GROUP BY k", {}, {"k": False, "x": 2}),
    Tight("SELECT x // 2, COUNT(*) FROM t GROUP BY ALL", {"x": 2}, {"x": 4}),
    Tight("SELECT k, SUM(y) FROM t GROUP BY k", {}, {"k": False}, linf=False,
          why="one cell moves by the width of [-1, 3] only if the row stays in it, and then l1 is not attained"),
    Tight("SELECT k, SUM(y) FROM t GROUP BY k", {}, {"y": -1.0}, l1=False, why="see above: linf is"),
    # -- one row becomes several
    Tight(f"SELECT COUNT(*) FROM {TWICE}", {}, GONE),
    Tight(f"SELECT COUNT(*) FROM {TWICE} WHERE k", {}, {"k": False}),
    Tight(f"SELECT SUM(r) FROM {TWICE}", {}, {"r": 2}),
    Tight(f"SELECT k, COUNT(*) FROM {TWICE} GROUP BY k", {}, {"k": False}),
    Tight("WITH w AS (SELECT * FROM t WHERE x > 2) SELECT COUNT(*) FROM (SELECT * FROM w UNION ALL SELECT * FROM w)", {}, {"x": 2}),
    Tight(f"SELECT tag, COUNT(*) FROM {TAGGED} GROUP BY tag", {}, GONE),  # linf 1: the tags keep the copies apart
    Tight(f"SELECT tag, COUNT(*) FROM {ALIKE} GROUP BY tag", {}, GONE),  # linf 2: both copies have the same tag
    Tight(f"SELECT tag, k, COUNT(*) FROM {TAGGED} GROUP BY tag, k", {}, {"k": False}),
    Tight("SELECT COUNT(*) FROM (SELECT x FROM t WHERE k UNION ALL SELECT * FROM (VALUES (1), (2)) AS v(x))", {}, {"k": False}),
    Tight(f"SELECT fruit, COUNT(*) FROM {LIKES} GROUP BY fruit", {}, GONE),
    Tight(f"SELECT fruit, COUNT(*) FILTER (WHERE likes) FROM {LIKES} GROUP BY fruit", {},
          {"apple": False, "orange": False, "banana": False}),
    Tight("SELECT COUNT(v) FROM t UNPIVOT (v FOR n IN (x, r, z))", {}, GONE),
    Tight("SELECT SUM(v) FROM t UNPIVOT INCLUDE NULLS (v FOR n IN (x, r))", {}, {"x": None, "r": 2}, l1=False, linf=False,
          why="x falls by 5 and r by 3: r is NOT NULL, but the values share one column that may be NULL"),
    Tight("SELECT SUM(v) FROM t UNPIVOT (v FOR n IN (x, z))", {"z": None}, GONE, l1=False, linf=False,
          why="z cannot be 5: the two columns share the range [-5, 5]"),
    # -- only the label
    Tight("SELECT k FROM t GROUP BY k ORDER BY COUNT(*) DESC LIMIT 1", {}, {"k": False}),
    Tight("SELECT k FROM t GROUP BY k ORDER BY COUNT(*) DESC LIMIT 1", {}, GONE),
    Tight("SELECT k FROM t GROUP BY k ORDER BY SUM(x) LIMIT 1", {}, {"k": False}),
    Tight("SELECT mode(s) FROM t", {}, {"s": "b"}),
    Tight("SELECT arg_max(k, n) FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k)", {}, {"k": False}),
    Tight(f"SELECT fruit FROM {LIKES} WHERE likes GROUP BY fruit ORDER BY COUNT(*) DESC LIMIT 1", {}, GONE),
]  # fmt: skip


def _table(row: dict[str, Any] | None) -> duckdb.DuckDBPyConnection:
    """Two rows and this one; opened once and never altered."""
    return _filled(None if row is None else tuple(row.items()))


@lru_cache
def _filled(row: tuple[tuple[str, Any], ...] | None) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"threads": "1"})
    connection.execute(f"CREATE TABLE t ({', '.join(f'{name} {type_}' for name, type_ in COLUMNS.items())})")
    for each in [{}, {"k": False, "s": "b"}, *([] if row is None else [dict(row)])]:
        values = {**DEFAULT, **each}
        connection.execute(f"INSERT INTO t VALUES ({', '.join('?' for _ in values)})", list(values.values()))
    return connection


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_pair_attains_the_bound(case: Tight) -> None:
    pair = [_table(case.before), _table(case.after)]
    plan = _plan(case.sql, case.relation)
    assert not check_plan(plan, pair, Report())
    before, after = (run_exactly(plan, each)[1] for each in pair)
    for measurement in plan.measurements:
        changes = [abs(each) for each in differences(before, after, measurement.columns)]
        if measurement.columns == (ALL_ROWS,):  # 1 is charged where 0 would do
            assert not any(changes)
            continue
        found = (sum(changes), max(changes))
        assert (found[0] == measurement.l1) is case.l1, (
            f"l1 {measurement.l1}, moved {found[0]}; {case.why or measurement.why}"
        )
        assert (found[1] == measurement.linf) is case.linf, (
            f"linf {measurement.linf}, moved {found[1]}; {case.why or measurement.why}"
        )


@lru_cache
def _session(relation: str) -> privsql.Session:
    return privsql.connect(
        _table(GONE), policy={"neighbours": relation, "tables": {"t": {"columns": DECLARED}}}
    )


def _plan(sql: str, relation: str = "add-remove") -> Any:
    return _session(relation).explain(sql, epsilon=1.0)


def test_scores_that_one_person_can_move_both_ways_are_not_monotone() -> None:
    both = "(SELECT x AS v, 'l' AS tag FROM t UNION ALL SELECT z, 'm' FROM t)"
    plan = _plan(f"SELECT tag FROM {both} GROUP BY tag ORDER BY SUM(v) DESC LIMIT 1")
    assert not plan.measurements[0].sensitivity.monotone
    one_way = "(SELECT x AS v, 'l' AS tag FROM t UNION ALL SELECT r, 'm' FROM t)"
    assert (
        _plan(f"SELECT tag FROM {one_way} GROUP BY tag ORDER BY SUM(v) DESC LIMIT 1")
        .measurements[0]
        .sensitivity.monotone
    )


@pytest.mark.parametrize(
    "sql", ["SELECT SUM(x) FROM t", "SELECT SUM(y), SUM(z), COUNT(x) FROM t", "SELECT AVG(x), AVG(y) FROM t"]
)
def test_null_adds_nothing(sql: str) -> None:
    rows = [{}, {"x": None, "y": None, "z": None}]
    cells = [run_exactly(_plan(sql), _table(row))[1] for row in rows]
    without = run_exactly(_plan(sql), _table(GONE))[1]
    assert cells[1] == without != cells[0]


def test_the_exact_sql_returns_no_undeclared_keys() -> None:
    table = _table({"s": "private"})
    plan = _plan("SELECT s, COUNT(*) FROM t GROUP BY s")
    assert set(run_exactly(plan, table)[1]) <= {("a",), ("b",), (None,)}
    plan = _plan("SELECT x, COUNT(*) FROM t GROUP BY x")
    assert set(run_exactly(plan, _table({"x": 77}))[1]) <= {(2,), (3,), (4,), (5,), (None,)}


def test_unattained_bounds_have_a_reason() -> None:
    assert all(case.why for case in CASES if not (case.l1 and case.linf))
