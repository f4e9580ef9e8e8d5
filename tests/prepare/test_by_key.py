"""Units by key: which queries read the stored counts, with the same numbers and bounds as without them."""

from __future__ import annotations

import pytest

import privsql
from tests.prepare.visits import POLICY, change, change_elsewhere, make, other, uses_copy, with_copies

BY_STATE = "SELECT state, COUNT(DISTINCT user_id) AS n FROM visits GROUP BY state"
FROM_COUNTS = [
    BY_STATE,
    "SELECT kind, COUNT(DISTINCT user_id) FROM visits GROUP BY kind",
    "SELECT s, COUNT(DISTINCT u), COUNT(DISTINCT u) AS again FROM (SELECT user_id AS u, state AS s FROM visits) GROUP BY s",
    "SELECT kind AS state, COUNT(DISTINCT user_id) FROM visits GROUP BY 1 HAVING COUNT(DISTINCT user_id) > 3",
]
OTHERWISE = [
    "SELECT state, COUNT(DISTINCT user_id) FROM visits WHERE amount > 3 GROUP BY state",
    "SELECT state, COUNT(DISTINCT user_id) FILTER (WHERE amount > 3) FROM visits GROUP BY state",
    "SELECT state, kind, COUNT(DISTINCT user_id) FROM visits GROUP BY state, kind",
    "SELECT lower(state) AS s, COUNT(DISTINCT user_id) FROM visits GROUP BY s",
    "SELECT state, COUNT(DISTINCT user_id), COUNT(*) FROM visits GROUP BY state",
    "SELECT state, COUNT(DISTINCT amount) FROM visits GROUP BY state",
    "SELECT amount, COUNT(DISTINCT user_id) FROM visits GROUP BY amount",
    "SELECT s, COUNT(DISTINCT user_id) FROM (SELECT user_id, CASE WHEN amount > 1 THEN 'NY' END AS s FROM visits) GROUP BY s",
]  # fmt: skip


def reads_counts(plan):
    return (
        uses_copy(plan)
        and plan.sql.count("_by_") == plan.sql.count("privsql_prepared") == 1
        and "_by_rank" not in plan.sql
    )


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("case", [(2000, 2), (2000, 1), (2000, 3), (9, 2), (0, 2)])
def test_answers_and_bounds_equal_those_without_a_copy(tmp_path, relation, case):
    rows, most = case
    path, policy = make(tmp_path / "clinic.duckdb", rows), {**other(max_groups=most), "neighbours": relation}
    with privsql.connect(path, policy) as session:
        session.prepare("visits")
        plans = [session.explain(sql, epsilon=1) for sql in FROM_COUNTS]
        slow = [session.explain(sql, epsilon=1, prepared=False) for sql in FROM_COUNTS]
        few = [session.explain(BY_STATE, epsilon=1, max_groups=1, prepared=each) for each in (True, False)]
        assert all(map(reads_counts, [*plans, few[0]])) and not any(map(uses_copy, [*slow, few[1]]))
        for sql in FROM_COUNTS:
            session.query(sql, epsilon=1)
        assert not any(reads_counts(session.explain(sql, epsilon=1)) for sql in OTHERWISE)
    with with_copies(path) as plain:
        for ours, theirs in [*zip(plans, slow, strict=True), few]:
            found, expected = (sorted(plain.execute(each.sql).fetchall(), key=str) for each in (ours, theirs))
            assert found == expected and (found or not rows)
            assert (
                plain.execute(f"DESCRIBE {ours.sql}").fetchall()
                == plain.execute(f"DESCRIBE {theirs.sql}").fetchall()
            )
            assert [(m.columns, m.l1, m.linf, m.scale) for m in ours.measurements] == \
                [(m.columns, m.l1, m.linf, m.scale) for m in theirs.measurements]  # fmt: skip


def test_each_unit_counts_for_its_first_keys(tmp_path):
    """Forty people with several rows in each of five keys, one of which nobody declared."""
    path = make(tmp_path / "clinic.duckdb", 0)
    for times in (1, 2):
        states = f"['CA', 'NY', 'TX', 'ZZ', NULL][1 + i // {40 * times}]"
        change(
            path,
            f"INSERT INTO visits (user_id, state) SELECT i % 40, {states} FROM range({200 * times}) r(i)",
        )
    with privsql.connect(path, other(max_groups=4)) as session:
        session.prepare("visits")
        for most in (1, 2, 3, 4):
            plan = session.explain(BY_STATE, epsilon=1, max_groups=most)
            counts = dict(session._pipeline.engine.read_public(plan.sql))
            assert (
                reads_counts(plan)
                and sum(counts.values()) == most * 40
                and set(counts) == {"CA", "NY", "TX", None}
            )
            assert max(counts.values()) <= 40


def test_explain_names_the_stored_counts(tmp_path):
    with privsql.connect(make(tmp_path / "clinic.duckdb"), POLICY) as session:
        session.prepare("visits")
        shown = str(session.explain(BY_STATE, epsilon=1))
        assert (
            "Scan the prepared number of units of each key in visits" in shown and "is not used" not in shown
        )
        assert "Bound contributions: at most 2 keys per unit" in shown


def test_other_values_use_new_counts(tmp_path):
    """Under a policy with other values the stored counts are not used, until the table is prepared under it."""
    path, more = (
        make(tmp_path / "clinic.duckdb"),
        {**POLICY["tables"]["visits"]["columns"], "state": {"values": ["CA", "ZZ"]}},
    )
    with privsql.connect(path, POLICY) as session:
        session.prepare("visits")
    for stored in (False, True):
        with privsql.connect(path, other(columns=more)) as session:
            if stored:
                session.prepare("visits")
            plan, slow = (
                session.explain(BY_STATE, epsilon=1),
                session.explain(BY_STATE, epsilon=1, prepared=False),
            )
            assert reads_counts(plan) == stored
            found, expected = (
                sorted(session._pipeline.engine.read_public(each.sql), key=str) for each in (plan, slow)
            )
            assert found == expected and "ZZ" in dict(found)


def test_a_write_outdates_the_counts(tmp_path):
    path = make(tmp_path / "clinic.duckdb")
    with privsql.connect(path, POLICY) as session:
        session.prepare("visits")
    change_elsewhere(path, "INSERT INTO visits (user_id, state) VALUES (1000, 'CA')")
    with privsql.connect(path, POLICY) as session:
        plan = session.explain(BY_STATE, epsilon=1)
        assert not uses_copy(plan) and any("has changed since" in note for note in plan.notes)
        session.prepare("visits")
        assert reads_counts(session.explain(BY_STATE, epsilon=1))


def test_a_worker_reads_the_stored_counts(tmp_path):
    path = make(tmp_path / "clinic.duckdb")
    with privsql.connect(path, POLICY, deadline=30) as session:
        session.prepare("visits")
        assert reads_counts(session.explain(BY_STATE, epsilon=1))
        assert session.query(BY_STATE, epsilon=1000).df()["n"].sum() == 12
