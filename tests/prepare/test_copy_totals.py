"""Totals by rank: what they hold, and which queries read them instead of the copy, with the same numbers."""

from __future__ import annotations

import duckdb
import pytest

import privsql
from tests.prepare.visits import (
    BY_STATE,
    POLICY,
    WRITTEN,
    change,
    change_elsewhere,
    copy_of,
    make,
    other,
    reads_totals,
    with_copies,
)

ROWS = "SELECT COUNT(*) FROM visits"
UNITS = "SELECT COUNT(DISTINCT user_id) FROM visits"
FROM_TOTALS = [
    ROWS,
    "SELECT COUNT(*) AS n FROM (SELECT amount + 1 AS more FROM visits)",
    "SELECT COUNT(user_id), COUNT(state), COUNT(price) FROM visits",
    "SELECT SUM(amount) FROM visits",
    "SELECT SUM(price), COUNT(*) FROM visits",
    "SELECT AVG(price), COUNT(*), COUNT(*) FILTER (WHERE price IS NULL) FROM visits",
    "SELECT AVG(amount), AVG(price), COUNT(amount), SUM(amount) FROM visits",
    UNITS,
    "SELECT COUNT(DISTINCT u) FROM (SELECT user_id AS u FROM visits)",
]
FROM_ROWS = [
    "SELECT COUNT(*) FROM visits WHERE amount > 5",
    "SELECT COUNT(*) FILTER (WHERE amount > 5) FROM visits",
    "SELECT state, COUNT(*) FROM visits GROUP BY state",
    "SELECT SUM(amount + 1) FROM visits",
    "SELECT COUNT(amount) FROM (SELECT CASE WHEN state = 'CA' THEN amount END AS amount FROM visits)",
    "SELECT SUM(state) FROM (SELECT amount AS state FROM visits)",
    "SELECT COUNT(*), COUNT(DISTINCT amount) FROM visits",
    "SELECT VAR_POP(amount) FROM visits",
    "SELECT COUNT(*) FROM (UNPIVOT visits ON amount, user_id INTO NAME k VALUE v)",
    "SELECT state FROM visits GROUP BY state ORDER BY COUNT(*) DESC LIMIT 1",
]


def forget_totals(path):
    """As a file of copies from before there were totals."""
    change(f"{path}.prepared", "DELETE FROM privsql_signs WHERE name LIKE '%_by_rank'")


def test_stored_totals_equal_the_sums_of_the_copy(tmp_path):
    path = make(tmp_path / "clinic.duckdb")
    with privsql.connect(path, POLICY) as session:
        session.prepare("visits")
        name = copy_of(session.explain(BY_STATE, epsilon=1))
    plain = with_copies(path)
    columns = [column for column, *_ in plain.execute(f'DESCRIBE privsql_prepared."{name}"').fetchall()]
    columns.remove("privsql_rank")
    assert len(columns) == 8, "six of the table, and what the sums of two add up"
    for column in columns:
        value = column.startswith("privsql_value_")
        stored = f"{column}, {column}_rows" if value else f"privsql_has_{column}"
        again = f"coalesce(sum({column}), 0), count({column})" if value else f"count({column})"
        for most in (*range(0, 60, 4), 200, 65_534):
            here = f"{most} BETWEEN privsql_rank AND privsql_last"
            kept = f'privsql_rows, {stored} FROM privsql_prepared."{name}_by_rank" WHERE {here}'
            added_up = f'count(*), {again} FROM privsql_prepared."{name}" WHERE privsql_rank <= {most}'
            assert (
                plain.execute(f"SELECT {kept}").fetchall() == plain.execute(f"SELECT {added_up}").fetchall()
            )


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("rows", [2000, 3, 0])
def test_the_numbers_and_bounds_are_those_of_the_copy(tmp_path, relation, rows):
    path, policy = make(tmp_path / "clinic.duckdb", rows), {**POLICY, "neighbours": relation}
    asked = [*FROM_TOTALS, *FROM_ROWS]
    with privsql.connect(path, policy) as session:
        session.prepare("visits")
        plans = [session.explain(sql, epsilon=1) for sql in asked]
        assert [sql for sql, plan in zip(asked, plans, strict=True) if reads_totals(plan)] == FROM_TOTALS
        for sql in asked:
            session.query(sql, epsilon=1)
    forget_totals(path)
    with privsql.connect(path, policy) as session:
        from_rows = [session.explain(sql, epsilon=1) for sql in asked]
    with with_copies(path) as plain:
        for sql, plan, slow in zip(asked, plans, from_rows, strict=True):
            assert not reads_totals(slow) and copy_of(slow) == copy_of(plan)
            assert sorted(plain.execute(plan.sql).fetchall(), key=str) == sorted(
                plain.execute(slow.sql).fetchall(), key=str
            ), sql
            described = [plain.execute(f"DESCRIBE {each.sql}").fetchall() for each in (plan, slow)]
            assert described[0] == described[1], "types and names, too"
            assert [(m.columns, m.l1, m.linf, m.scale) for m in plan.measurements] == \
                [(m.columns, m.l1, m.linf, m.scale) for m in slow.measurements], sql  # fmt: skip


def test_units_are_counted_whole(tmp_path):
    path = make(tmp_path / "clinic.duckdb")
    with privsql.connect(path, POLICY) as session:
        session.prepare("visits")
        plan, plain = session.explain(UNITS, epsilon=1), session.explain(UNITS, epsilon=1, prepared=False)
        exact = session._pipeline.engine.read_public("SELECT count(DISTINCT user_id) FROM visits")
        assert (
            session._pipeline.engine.read_public(plan.sql)
            == session._pipeline.engine.read_public(plain.sql)
            == exact
        )
        assert (
            [(m.l1, m.scale) for m in plan.measurements]
            == [(m.l1, m.scale) for m in plain.measurements]
            == [(1, 1)]
        )
        assert "Keep the first row of each unit, by a stored rank: 1 row per person" in str(plan)


def test_composite_units_and_parts_of_them(tmp_path):
    path = make(tmp_path / "clinic.duckdb")
    with privsql.connect(path, other(unit=["user_id", "kind"])) as session:
        session.prepare("visits")
        pairs = session.explain("SELECT COUNT(DISTINCT (user_id, kind)) FROM visits", epsilon=1)
        assert reads_totals(pairs) and pairs.measurements[0].l1 == 1
        exact = "SELECT count(DISTINCT (user_id, kind)) FROM visits WHERE user_id IS NOT NULL AND kind IS NOT NULL"
        assert session._pipeline.engine.read_public(pairs.sql) == session._pipeline.engine.read_public(exact)
        part = session.explain("SELECT COUNT(DISTINCT kind) FROM visits", epsilon=1)
        assert copy_of(pairs) not in part.sql and part.measurements[0].l1 == 1, "with the copy it would be 3"


def test_explain_names_the_stored_totals(tmp_path):
    path = make(tmp_path / "clinic.duckdb")
    with privsql.connect(path, POLICY) as session:
        session.prepare("visits")
        assert "Scan the prepared totals of visits by rank" in str(session.explain(ROWS, epsilon=1))
        assert "Keep at most 3 rows per unit, by a stored rank: 3 rows per person" in str(
            session.explain(ROWS, epsilon=1)
        )
        for sql in FROM_ROWS:
            shown = str(session.explain(sql, epsilon=1))
            assert "Scan the prepared copy of visits" in shown and "totals" not in shown


def test_a_write_outdates_the_totals(tmp_path):
    path = make(tmp_path / "clinic.duckdb")

    def asked() -> tuple[list[bool], list[tuple[int, ...]]]:
        with privsql.connect(path, POLICY) as session:
            plans = [session.explain(sql, epsilon=1) for sql in (ROWS, UNITS)]
            if not all(map(reads_totals, plans)):
                assert all(WRITTEN in str(plan) for plan in plans)
            return [reads_totals(plan) for plan in plans], [
                session._pipeline.engine.read_public(plan.sql)[0] for plan in plans
            ]

    with privsql.connect(path, POLICY) as session:
        session.prepare("visits")
    units = with_copies(path).execute("SELECT count(DISTINCT user_id) FROM visits").fetchone()[0]
    assert asked() == ([True, True], [(3 * units,), (units,)])
    change_elsewhere(path, "INSERT INTO visits (user_id, amount) VALUES (1000, 1), (NULL, 2)")
    assert asked() == ([False, False], [(3 * units + 1,), (units + 1,)])
    with privsql.connect(path, POLICY) as session:
        session.prepare("visits")
    assert asked() == ([True, True], [(3 * units + 1,), (units + 1,)])


def test_a_copy_without_totals_is_used_and_renewed(tmp_path):
    path = make(tmp_path / "clinic.duckdb")
    for _ in range(2):
        with privsql.connect(path, POLICY) as session:
            session.prepare("visits")
            assert reads_totals(session.explain(ROWS, epsilon=1))
        forget_totals(path)
        with privsql.connect(path, POLICY) as session:
            plan = session.explain(ROWS, epsilon=1)
            assert not reads_totals(plan) and copy_of(plan) in plan.sql


def test_totals_of_other_tables_are_kept(tmp_path):
    path = make(tmp_path / "clinic.duckdb")
    change(path, "CREATE TABLE calls AS SELECT user_id, amount AS minutes FROM visits")
    with privsql.connect(
        path, {"tables": {"visits": POLICY["tables"]["visits"], "calls": {"unit": "user_id"}}}
    ) as session:
        session.prepare("visits")
        session.prepare("calls")
        assert all(
            reads_totals(session.explain(f"SELECT COUNT(*) FROM {table}", epsilon=1))
            for table in ("visits", "calls")
        )


def test_the_callers_memory_is_restored(tmp_path):
    path = make(tmp_path / "clinic.duckdb")
    caller = duckdb.connect(str(path))
    with privsql.connect(caller, POLICY) as session:
        session.prepare("visits")
        plan = session.explain(ROWS, epsilon=1)
        assert reads_totals(plan) and caller.execute(plan.sql).fetchone()[0] > 0
    assert ("privsql_prepared",) not in caller.execute(
        "SELECT database_name FROM duckdb_databases()"
    ).fetchall()
