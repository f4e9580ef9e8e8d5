"""Which operations of pandas keep the budget of a protected frame; the table in docs/pandas.md says the same."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import privsql
from privsql import BudgetError
from tests.frame.operations import ACROSS_ROWS, OUTSIDE, ROW_BY_ROW, as_python_objects, made, table

COUNT = "SELECT COUNT(*) AS n FROM df"
DOCS = Path(privsql.__file__).parent.parent / "docs" / "pandas.md"
WARDS = pd.DataFrame({"state": ["CA", "NY", "TX"], "ward": [1, 2, 3]})
KEPT, LOST = "kept", "lost"
IN_ATTRS = "kept, in `attrs`"
BY_MEMORY = "kept, by shared memory"


def fate(operation: str) -> str:
    """What becomes of the budget, on tables whose texts are pyarrow's and Python's; the worse of the two."""
    found = set()
    for form in (lambda each: each, as_python_objects):
        df, other, wards = form(table()), form(table()), form(WARDS.copy())
        df.dp.protect(budget=5)
        frame = made(operation, df, other, wards)
        marked = "privsql" in frame.attrs
        frame.columns = [str(each) for each in frame.columns]
        kept = frame.dp.budget.limit.epsilon == 5
        found.add(LOST if not kept else IN_ATTRS if marked else BY_MEMORY)
    return LOST if LOST in found else BY_MEMORY if BY_MEMORY in found else IN_ATTRS


@pytest.fixture(scope="module")
def fates() -> dict[str, str]:
    return {operation: fate(operation) for operation in (*ROW_BY_ROW, *ACROSS_ROWS, *OUTSIDE)}


def test_the_table_in_the_docs_is_what_pandas_does(fates):
    shown = dict(
        re.findall(r"^\| `(.+)` \| (kept.*|lost) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert shown == fates


def test_most_operations_on_rows_keep_the_budget(fates):
    lost = [operation for operation in ROW_BY_ROW if fates[operation] == LOST]
    assert len(ROW_BY_ROW) == 60 and len(lost) <= 6
    assert {"pd.DataFrame(df)", "df.copy()", "df.merge(wards, on='state', how='left')"} & set(lost) == set()


def test_a_lost_budget_is_restored_by_budget_of(fates):
    for operation in (each for each, what in fates.items() if what == LOST):
        df = as_python_objects(table())
        df.dp.protect(budget=5)
        frame = made(operation, df, as_python_objects(table()), WARDS)
        frame.columns = [str(each) for each in frame.columns]
        assert frame.dp.protect(budget_of=df) is frame
        frame.dp.query(COUNT, epsilon=1)
        assert df.dp.budget.spent.epsilon == 1 == frame.head(3).dp.budget.spent.epsilon


def test_shared_memory_is_known_after_the_protected_frame_is_gone():
    df = table()
    df.dp.protect(budget=1)
    df = pd.DataFrame(df)
    df.dp.query(COUNT, epsilon=0.5)
    df = pd.DataFrame(df).drop(columns="user")
    df.attrs.clear()
    df = pd.DataFrame(df)
    assert df.dp.budget.spent.epsilon == 0.5
    with pytest.raises(BudgetError):
        df.dp.query(f"{COUNT} WHERE age > 3", epsilon=0.6)


def test_frames_made_before_protect_share_the_budget():
    df = table()
    early = pd.DataFrame(df)
    df.dp.protect(keys={"state": ["CA"]})
    made_early = df.head(10)
    df.dp.protect(budget=1)
    assert early.dp.budget.limit.epsilon == made_early.dp.budget.limit.epsilon == 1


def test_frames_of_others_have_no_budget():
    array = np.arange(100.0)
    df, other = pd.DataFrame({"a": array}), pd.DataFrame({"a": array.copy()})
    df.dp.protect(budget=1)
    assert other.dp.budget.limit.epsilon == float("inf")
    assert df.dp.query(COUNT, epsilon=0.5).dp.budget.limit.epsilon == float(
        "inf"
    )  # an answer is nobody's rows


def test_reused_memory_is_not_mistaken_for_an_old_frame():
    for _ in range(50):
        df = pd.DataFrame({"a": np.arange(100_000)})
        assert df.dp.budget.limit.epsilon == float("inf")
        df.dp.protect(budget=1)
        del df


# -- several frames with budgets ---------------------------------------------------------------------------------
def test_a_frame_made_from_two_protected_frames_is_refused_where_pandas_shows_both():
    one, two = table().add_prefix("a_"), table().add_prefix("b_")
    one.dp.protect(budget=1)
    two.dp.protect(budget=1)
    both = pd.concat([one, two], axis=1)
    added = one.copy()
    added["cost"] = two["b_cost"]
    for frame in (both, added):
        for ask in (
            lambda each=frame: each.dp.query(COUNT, epsilon=0.1),
            lambda each=frame: each.dp.explain(COUNT, epsilon=0.1),
            lambda each=frame: each.dp.budget,
            lambda each=frame: each.dp.protect(budget=9),
            lambda each=frame: each.dp.protect(budget_of=one),
        ):
            with pytest.raises(BudgetError) as caught:
                ask()
            assert caught.value.code == "budget-frames"
    assert one.dp.budget.spent.epsilon == two.dp.budget.spent.epsilon == 0


def test_parts_of_one_protected_frame_may_be_put_together():
    df = table()
    df.dp.protect(budget=1)
    together = pd.concat([df[["age"]], df[["cost"]]], axis=1)
    together.dp.query(COUNT, epsilon=0.25)
    assert df.dp.budget.spent.epsilon == 0.25


def test_declarations_of_dropped_columns_are_ignored():
    df = table()
    df.dp.protect(ranges={"cost": (0, 1100)}, keys={"state": ["CA", "NY"]}, budget=1)
    df[["age", "state"]].dp.query("SELECT state, COUNT(*) AS n FROM df GROUP BY state", epsilon=0.1)
    with pytest.raises(privsql.PolicyError) as caught:
        table().dp.protect(ranges={"costs": (0, 1)})
    assert caught.value.code == "policy-column" and "cost" in caught.value.suggestion


@pytest.mark.parametrize("wrong", [{"budget_of": 3}, {"budget_of": table()}])
def test_budget_of_is_a_frame_with_a_budget(wrong):
    with pytest.raises(privsql.ArgumentError) as caught:
        table().dp.protect(**wrong)
    assert caught.value.code == "argument-budget"


def test_budget_of_excludes_other_arguments_and_earlier_queries():
    df, merged = table(), table()
    df.dp.protect(budget=1)
    with pytest.raises(privsql.ArgumentError):
        merged.dp.protect(budget_of=df, budget=3)
    merged.dp.query(COUNT, epsilon=0.5)
    with pytest.raises(BudgetError) as caught:
        merged.dp.protect(budget_of=df)
    assert caught.value.code == "budget-asked"


# -- ledgers in files ----------------------------------------------------------------------------------------------
def test_a_ledger_in_a_file_outlives_the_frame(tmp_path):
    path = tmp_path / "clinic.ledger"
    df = table()
    df.dp.protect(budget=1, ledger=path)
    df.dp.query(COUNT, epsilon=0.75)
    again = table().merge(WARDS, on="state")
    again.dp.protect(ledger=path)
    assert again.dp.budget.limit.epsilon == 1 and again.dp.budget.spent.epsilon == 0.75
    assert len(again.dp.history()) == 1
    for frame in (again, df, df.head()):
        with pytest.raises(BudgetError) as caught:
            frame.dp.query(f"{COUNT} WHERE age > 3", epsilon=0.5)
        assert caught.value.code == "budget-exhausted"
    with privsql.connect({"df": table()}, ledger=path) as session:  # what connect() keeps is the same file
        assert session.budget.spent.epsilon == 0.75


def test_a_ledger_of_another_unit_or_relation_is_refused(tmp_path):
    path = tmp_path / "clinic.ledger"
    table().dp.protect(budget=1, ledger=path)
    for other, code in (
        ({"unit": "user"}, "budget-dataset"),
        ({"neighbours": "add-remove"}, "budget-neighbours"),
    ):
        with pytest.raises(BudgetError) as caught:
            table().dp.protect(ledger=path, **other)
        assert caught.value.code == code
    asked = table()
    asked.dp.query(COUNT, epsilon=0.5)
    with pytest.raises(BudgetError) as caught:
        asked.dp.protect(ledger=path)
    assert caught.value.code == "budget-asked"


# -- units -----------------------------------------------------------------------------------------------------
def test_a_unit_later_than_the_budget_is_refused():
    df = table()
    df.dp.protect(budget=1)
    for ask in (df.dp.query, df.dp.explain):
        with pytest.raises(BudgetError) as caught:
            ask(COUNT, epsilon=0.5, unit="user", max_rows=2)
        assert caught.value.code == "budget-unit"
    with pytest.raises(BudgetError):
        df.dp.suggest_limits(unit="user")
    assert df.dp.budget.spent.epsilon == 0


def test_losses_by_row_and_by_unit_are_not_added():
    df = table()
    df.dp.query(COUNT, epsilon=0.5)
    assert df.dp.budget.spent.epsilon == 0.5
    df.dp.query(COUNT, epsilon=0.25, unit="user", max_rows=2, max_groups=1)
    assert (
        df.dp.budget.spent.epsilon == 0.25 == df.dp.history()["epsilon"].sum()
    )  # of the relation asked under last
    for unit in (None, "user"):
        with pytest.raises(BudgetError) as caught:
            df.dp.protect(unit=unit, budget=1)
        assert caught.value.code == "budget-asked"
    of_units = table()
    of_units.dp.query(COUNT, epsilon=0.25, unit="user", max_rows=2, max_groups=1)
    of_units.dp.protect(unit="user", budget=1)
    assert of_units.dp.budget.spent.epsilon == 0.25


def test_one_row_can_move_a_count_of_units_by_twice_what_one_unit_can():
    """Why a loss of units is no bound for rows: a row that changes its owner changes two units."""
    sql = "SELECT COUNT(*) AS n FROM (SELECT user, COUNT(*) AS visits FROM df GROUP BY user) WHERE visits = 2"
    before, after = pd.DataFrame({"user": [1, 1, 1, 2]}), pd.DataFrame({"user": [1, 1, 2, 2]})
    assert (before["user"] != after["user"]).sum() == 1  # one row differs
    counts = [int((frame["user"].value_counts() == 2).sum()) for frame in (before, after)]
    plan = before.dp.explain(sql, epsilon=1, unit="user")
    assert abs(counts[0] - counts[1]) == 2 == 2 * plan.measurements[0].l1
