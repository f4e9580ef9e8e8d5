"""The durable ledger: it keeps every charge, belongs to one dataset, and only its owner can raise its
caps.
"""

from __future__ import annotations

import contextlib
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import privsql
from privsql import PrivsqlError
from privsql.budget.caps import Loss
from privsql.budget.ledger_file.file_ledger import open_ledger, renew
from privsql.budget.ledger_file.format import FORMAT
from privsql.budget.ledger_file.ledger_reader import open_reader
from privsql.budget.ledger_file.verify import verify
from privsql.policy import Policy, load_policy
from privsql.schema import Schema, SchemaTable
from tests.budget.ledgers import VISITS, charge, policy
from tests.budget.refusals import code_of, refusal

COUNT = "SELECT COUNT(*) AS n FROM visits"


def test_charges_persist(path, ledger):
    charge(ledger, 1.5, "1e-6", analyst="ana", question="first")
    other = open_ledger(path, policy(10, delta=1e-3), VISITS)
    charge(other, 2, analyst="ben")
    assert ledger.budget == other.budget
    ledger.close()
    other.close()
    with_new_eyes = open_reader(path)
    assert with_new_eyes.budget.spent.epsilon == 3.5
    assert with_new_eyes.budget.spent.delta == 1e-6
    assert [(each.analyst, each.query) for each in with_new_eyes.entries()] == [
        ("ana", "first"),
        ("ben", "q"),
    ]
    with_new_eyes.close()
    assert not Path(f"{path}-wal").exists() or not Path(f"{path}-wal").stat().st_size


def test_sessions_share_a_ledger(path):
    declared = {"budget": {"epsilon": 2.0, "analysts": {"ana": 1.5, "ben": 1.0}}}
    data = {"visits": pd.DataFrame({"age": range(50)})}
    with privsql.connect(data, declared, ledger=path, analyst="ana") as session:
        session.query(COUNT, epsilon=1.0)
        assert session.budget.share.remaining.epsilon == 0.5
        assert "your share: epsilon 0.5 of epsilon 1.5 remaining" in str(session.budget)
    with privsql.connect(data, declared, ledger=str(path), analyst="ben") as session:
        assert session.budget.remaining.epsilon == 1
        assert session.explain(COUNT, epsilon=0.5).remaining == 1.0
        session.query(f"{COUNT} WHERE age > 3", epsilon=0.75)
        assert refusal(session.query, f"{COUNT} WHERE age > 4", epsilon=0.5).code == "budget-exhausted"
        assert session.explain(COUNT, epsilon=0.5).remaining == 0.25
        history = session.history()
        assert history["analyst"].tolist() == ["ana", "ben"]
        assert history["released"].str.startswith("discrete Laplace of COUNT(*)").all()
    with privsql.connect(data, declared, ledger=path, analyst="zoe") as session:
        assert refusal(session.query, COUNT, epsilon=0.1).code == "budget-analyst"


def test_the_charge_is_on_the_disk_before_data_is_read(path):
    """Seen by another process's eyes: a connection of its own."""
    with privsql.connect(
        {"visits": pd.DataFrame({"age": range(50)})}, {"budget": {"epsilon": 3}}, ledger=path
    ) as session:
        seen = []
        engine_run = session._pipeline.engine.run

        def watched(sql, keys):
            reader = open_reader(path)
            seen.append(reader.budget.spent.epsilon)
            reader.close()
            return engine_run(sql, keys)

        session._pipeline.engine.run = watched
        session.query(COUNT, epsilon=1)
        session.query(f"{COUNT} WHERE age > 7", epsilon=0.5)
        assert seen == [1.0, 1.5]


def test_a_query_with_a_range_search_is_checked_as_a_whole(path):
    declared = {
        "budget": {"epsilon": 9, "per_query": 0.9},
        "tables": {"visits": {"columns": {"age": {"range": "auto"}}}},
    }
    with privsql.connect({"visits": pd.DataFrame({"age": range(500)})}, declared, ledger=path) as session:
        assert refusal(session.query, "SELECT SUM(age) FROM visits", epsilon=1).code == "budget-query"
        assert session.history().empty
        session.query("SELECT SUM(age) FROM visits", epsilon=0.9)
        assert session.budget.spent.epsilon == pytest.approx(0.9)
        assert len(session.history()) == 2


def test_files_are_durable_by_their_settings(ledger):
    with ledger._store.reading():
        assert ledger._store.execute("PRAGMA journal_mode") == [("wal",)]
        assert ledger._store.execute("PRAGMA synchronous") == [(2,)]


def test_a_ledger_with_another_journal_mode_is_read_only(path, ledger):
    """Without its log of writes a crash could lose a charge; nothing is lost by looking at it."""
    charge(ledger, 1)
    ledger.close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode = DELETE").fetchall() == [("delete",)]
    assert len(list(open_reader(path).rows())) == 2
    assert refusal(charge, ledger, 1).code == "budget-corrupt"


# -- whose ledger it is ----------------------------------------------------------------------------------------
def tables(**units: Any) -> Schema:
    return Schema(tuple(SchemaTable(name, ()) for name in units))


def declared(units: dict[str, Any], **budget: Any) -> Policy:
    named = {name: unit for name, unit in units.items() if unit}
    return load_policy({"budget": {"epsilon": 10, **budget}, "tables": named})


def attached(path: Path, units: dict[str, Any], neighbours: str = "replace-one", **budget: Any) -> None:
    """Opened, and charged once."""
    plain = declared(units, **budget)
    again = Policy(**{**plain.__dict__, "neighbours": load_policy({"neighbours": neighbours}).neighbours})
    ledger = open_ledger(path, again, tables(**units))
    charge(ledger, Fraction(1, 10), analyst="ana", neighbours=again.neighbours)
    ledger.close()


def test_the_ledger_of_another_dataset_is_refused(path):
    units = {"people": {"unit": "id"}, "orders": {"unit": "who -> people.id"}, "states": {"public": True}}
    attached(path, units)
    attached(
        path, {**units, "states": {"public": True, "columns": {"x": {"range": [0, 1]}}}}
    )  # ranges are no part of it
    attached(path, {**units, "orders": {"unit": "WHO -> People.ID", "max_rows": 7}})
    others: list[dict[str, Any]] = [
        {"clients": {"unit": "id"}},
        {**units, "orders": {"unit": "id"}},
        {**units, "orders": {}},
        {**units, "orders": {"public": True}},
        {"people": {"unit": "id"}},
    ]
    for other in others:
        caught = refusal(attached, path, other)
        assert caught.code == "budget-dataset"
    assert refusal(attached, path, units, neighbours="add-remove").code == "budget-neighbours"
    assert refusal(attached, path, units, dataset="another clinic").code == "budget-dataset"
    assert len([row for row in verify(path) if row.kind == "charge"]) == 3


def test_added_tables_become_part_of_the_dataset(path):
    attached(path, {"people": {"unit": "id"}})
    attached(path, {"people": {"unit": "id"}, "orders": {"unit": "who"}})
    assert [row.kind for row in verify(path)] == ["open", "charge", "tables", "charge"]
    assert refusal(attached, path, {"people": {"unit": "id"}, "orders": {}}).code == "budget-dataset"
    assert refusal(attached, path, {"people": {"unit": "id"}}).code == "budget-dataset"


def test_a_name_distinguishes_similar_datasets(path):
    attached(path, {"visits": {}}, dataset="north")
    attached(path, {"visits": {}}, dataset="north")
    for other in ({"dataset": "south"}, {}):
        assert refusal(attached, path, {"visits": {}}, **other).code == "budget-dataset"


def test_an_invalid_policy_creates_no_ledger(path):
    wrong = {"tables": {"visits": {"unit": "nobody"}}}
    assert (
        refusal(privsql.connect, {"visits": pd.DataFrame({"age": [1]})}, wrong, ledger=path).code
        == "policy-unit"
    )
    assert not path.exists()


def test_a_newer_format_is_refused(path, ledger):
    ledger.close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    connection.close()
    for call in (lambda: open_ledger(path, policy(10, delta=1e-3), VISITS), lambda: verify(path)):
        assert refusal(call).code == "budget-version"


@pytest.mark.parametrize("name", ["", " ana", "a\nb", "*", "x" * 201, None, 5, "\ud800"])
def test_names_of_analysts(name, ledger):
    caught = refusal(privsql.connect, pd.DataFrame({"a": [1]}), analyst=name)
    assert caught.code == "argument-analyst"
    if isinstance(name, str):
        assert refusal(charge, ledger, 0.1, analyst=name).code == "argument-analyst"


# -- caps ------------------------------------------------------------------------------------------------------
def limit(path: Path, declared: Policy) -> float:
    ledger = open_ledger(path, declared, VISITS)
    try:
        return ledger.budget.limit.epsilon
    finally:
        ledger.close()


def test_a_policy_can_tighten_but_not_raise_a_cap(path):
    assert limit(path, policy(10)) == 10
    assert limit(path, policy()) == 10
    assert limit(path, policy(4)) == 4
    caught = refusal(limit, path, policy(11))
    assert caught.code == "budget-caps"
    assert "ledger renew" in caught.suggestion
    assert refusal(limit, path, policy(10, delta=1e-9)).code == "budget-caps"
    renew(path, Loss(5 * 10**9), "more people came")
    assert limit(path, policy(10)) == 15  # the policy as it was
    assert limit(path, policy(15)) == 15  # the policy as it is now
    assert limit(path, policy(12)) == 12
    assert refusal(limit, path, policy(16)).code == "budget-caps"


def test_a_tightened_cap_below_what_is_spent(path):
    ledger = open_ledger(path, policy(10), VISITS)
    charge(ledger, 6)
    ledger.close()
    tight = open_ledger(path, policy(4), VISITS)
    assert tight.budget.remaining.epsilon == 0
    assert code_of(tight, 0.1) == "budget-exhausted"
    tight.close()


def test_renewals_are_recorded(path):
    shared = policy(2, per_query=1, analysts={"ana": 1.0})
    ledger = open_ledger(path, shared, VISITS)
    charge(ledger, 1)
    assert code_of(ledger, 0.5) == "budget-analyst"
    renew(path, Loss(3 * 10**9), "half a year more", "analyst", "ana")
    charge(ledger, 1)
    assert code_of(ledger, 0.5) == "budget-exhausted"
    renew(path, Loss(2 * 10**9), "the board, 12 March")
    assert code_of(ledger, 1.5) == "budget-query"
    renew(path, Loss(10**9), "one large question", "query")
    charge(ledger, 1.5)
    assert code_of(ledger, 0.1, analyst="ben") == "budget-analyst"
    renew(path, Loss(10**8), "new here", "analyst", "ben")
    charge(ledger, 0.1, analyst="ben")
    ledger.close()
    rows = [row for row in verify(path) if row.kind == "renew"]
    assert [(row.read["scope"], row.analyst, row.question) for row in rows] == [
        ("analyst", "ana", "half a year more"),
        ("dataset", "", "the board, 12 March"),
        ("query", "", "one large question"),
        ("analyst", "ben", "new here"),
    ]
    assert rows[-1].cap_epsilon == 4 * 10**9


def test_invalid_renewals_are_refused(path):
    open_ledger(path, policy(), VISITS).close()
    for scope in ("dataset", "query", "analyst"):
        assert refusal(renew, path, Loss(1), "why", scope, "ana").code == "budget-caps"
    assert refusal(renew, path, Loss(), "why").code == "argument-epsilon"
    assert refusal(renew, path, Loss(-1), "why").code == "argument-epsilon"
    assert refusal(renew, path, Loss(1), "  ").code == "argument-shape"
    assert refusal(renew, path.with_name("missing"), Loss(1), "why").code == "budget-ledger"
    assert len(verify(path)) == 1


@pytest.mark.parametrize(
    "budget",
    [{"per_query": 0}, {"per_query": "1"}, {"analysts": {"ana": -1}}, {"analysts": {"": 1}}, {"analysts": ["ana"]},
     {"analysts": {"ana": {"delta": 0.1}}}, {"analysts": {"ana": {"epsilon": 1, "x": 2}}}, {"dataset": ""}, {"dataset": 5}],
)  # fmt: skip
def test_invalid_budgets_are_refused(budget):
    with pytest.raises(PrivsqlError) as caught:
        load_policy({"budget": budget})
    assert caught.value.code in ("policy-shape", "policy-unknown", "argument-epsilon")
