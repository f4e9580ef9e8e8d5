"""What a user writes, typed. `make types` checks this file under mypy --strict; test_public_api.py runs it.

Each `assert_type` is a promise of the public interface. To pandas's types `df.dp` is a column, so typed code writes
`privsql.FrameAccessor(df)`, which is the same thing.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, assert_type

import pandas as pd

import privsql
from privsql import attacks, mechanisms, theory
from privsql.policy import ColumnPolicy, Policy, Share, TablePolicy, UnitPolicy, load_policy

COUNT = "SELECT COUNT(*) AS n FROM visits WHERE age >= 65"
BY_STATE = "SELECT state, COUNT(*) AS n, SUM(age) AS years FROM visits GROUP BY state"


def visits() -> pd.DataFrame:
    return pd.DataFrame({"user_id": range(90), "state": ["CA", "NY", "CA"] * 30, "age": [34, 71, 68] * 30})


def policy() -> Policy:
    """A policy is built from objects, or loaded from a dict or a file of the same shape."""
    declared = TablePolicy(
        unit=UnitPolicy(("user_id",)),
        max_groups=1,
        max_rows=2,
        columns={"age": ColumnPolicy(low=0, high=120), "state": ColumnPolicy(values=("CA", "NY"))},
    )
    built = privsql.Policy(
        epsilon=Fraction(5), analysts={"ana": Share(Fraction(4))}, tables={"visits": declared}
    )
    assert_type(built, Policy)
    assert_type(built.table("visits").column("age"), ColumnPolicy)
    assert_type(load_policy({"budget": {"epsilon": 5.0}}), Policy)
    return built


def queries(folder: Path) -> None:
    """Ask, and read every part of an answer."""
    with privsql.connect(
        {"visits": visits()}, policy=policy(), ledger=folder / "clinic.ledger", analyst="ana"
    ) as session:
        assert_type(session, privsql.Session)
        answer = session.query(COUNT, epsilon=0.5)
        assert_type(answer, privsql.Answer)
        assert_type(answer.df(), pd.DataFrame)
        assert_type(answer.fetchall(), list[tuple[Any, ...]])
        assert_type(answer.columns, list[str])
        assert_type(answer.intervals(0.95), pd.DataFrame)
        assert_type(answer.receipt, dict[str, Any])
        assert_type(answer.plan, privsql.Plan)
        assert_type(answer.warnings, tuple[str, ...])
        session.query(COUNT, within=40, confidence=0.9, fresh=True)
        session.query(BY_STATE, 0.5, max_rows=1, max_groups=1, dialect="bigquery", nonnegative=True)
        session.query(BY_STATE, epsilon=0.5, mechanism="laplace", consistent=True)
        budget = session.budget
        assert_type(budget, privsql.Budget)
        assert_type(budget.spent, privsql.Amount)
        assert_type(budget.spent.epsilon, float)
        assert_type(session.history(), pd.DataFrame)


def plans() -> None:
    """Explaining reads no data and spends nothing."""
    with privsql.connect({"visits": visits()}, policy=policy(), analyst="ana") as session:
        plan = session.explain(BY_STATE, epsilon=0.5)
        assert_type(plan, privsql.Plan)
        assert_type(plan.sql, str)
        assert_type(plan.keys, list[str])
        assert_type(plan.neighbours, str)
        assert_type(plan.epsilon, float)
        assert_type(plan.delta, float)
        assert_type(plan.to_dict(), dict[str, object])
        for measurement in plan.measurements:
            assert_type(measurement.columns, tuple[str, ...])
            assert_type(measurement.l1, int)
            assert_type(measurement.linf, int)
            assert_type(measurement.epsilon, float)
        for output in plan.outputs:
            assert_type(output.name, str)
        half_widths: dict[str, float | None] = plan.accuracy(0.95)
        assert set(half_widths) == {"n", "years"}


def batches_and_audits() -> None:
    """Many queries for one epsilon, limits found privately, and an attempt to break a promise."""
    with privsql.connect({"visits": visits()}, policy=policy(), analyst="ana") as session:
        answers = session.batch([COUNT, BY_STATE], epsilon=1.0)
        assert_type(answers, list[privsql.Answer])
        found = session.suggest_limits("visits", epsilon=0.1)
        assert_type(found.df(), pd.DataFrame)
        assert_type(found.max_rows, int | None)
        audit = session.audit(COUNT, epsilon=1.0, releases=300, tries=10)
        assert_type(audit.held, bool)
        assert_type(audit.verdict, str)
        assert_type(audit.to_dict(), dict[str, Any])


def frames() -> None:
    """What `df.dp` is, for a type checker."""
    frame = privsql.FrameAccessor(visits())
    frame.protect(ranges={"age": (0, 120)}, keys={"state": ["CA", "NY"]}, neighbours="add-remove", budget=3.0)
    noisy = frame.query("SELECT state, SUM(age) AS years FROM df GROUP BY state", epsilon=0.5)
    assert_type(noisy, pd.DataFrame)
    answered = privsql.FrameAccessor(noisy)
    assert_type(answered.receipt, dict[str, Any])
    assert_type(answered.intervals(0.95), pd.DataFrame)
    assert_type(frame.explain("SELECT COUNT(*) AS n FROM df", epsilon=0.5), privsql.Plan)
    assert_type(frame.budget, privsql.Budget)


def errors() -> None:
    """Every error has its position, what is wrong and what to write instead."""
    with privsql.connect({"visits": visits()}, policy=policy(), analyst="ana") as session:
        try:
            session.query("SELECT age FROM visits", epsilon=1.0)
        except privsql.Refused as error:
            assert_type(error.code, str)
            assert_type(error.message, str)
            assert_type(error.suggestion, str)
            assert_type(error.line, int | None)
            assert_type(error.column, int | None)
        else:
            raise AssertionError("a list of rows is refused")


def releases() -> None:
    """Counts and rows that are paid for once."""
    columns = {"age": {"range": [0, 120]}}
    with privsql.connect(
        {"visits": visits()}, policy={"tables": {"visits": {"columns": columns}}}
    ) as session:
        workload = privsql.marginals(["age"], ways=1, bins={"age": 4})
        assert_type(session.explain_release(workload, "visits", epsilon=1.0, delta=1e-6).epsilon, float)
        release = session.release(workload, "visits", epsilon=1.0, delta=1e-6)
        assert_type(release, privsql.QueryRelease)
        assert_type(release.df(["age"]), pd.DataFrame)
        assert_type(release.query("SELECT COUNT(*) AS n FROM visits").columns, list[str])
        made = session.synthesize("visits", ["age"], epsilon=1.0, delta=1e-6, bins={"age": 4})
        assert_type(made, privsql.Synthetic)
        assert_type(made.df(), pd.DataFrame)


def outside_sql() -> None:
    """The mechanisms by themselves."""
    assert mechanisms.exponential({"apple": 3, "banana": 900}, epsilon=1.0) in ("apple", "banana")
    assert isinstance(mechanisms.laplace(100, epsilon=1.0), int)
    responses = mechanisms.randomised_response([0, 1, 1], epsilon=1.0)
    assert_type(responses, mechanisms.RandomisedResponse)
    assert_type(responses.estimate, float)
    assert_type(responses.interval(0.9), tuple[float, float])
    assert_type(
        mechanisms.randomised_columns([[0, 1], [1, 1]], epsilon=1.0)[0], mechanisms.RandomisedResponse
    )
    small = mechanisms.smalldb([30, 70], [[0, 1]], epsilon=1.0, rows=4)
    assert_type(small, mechanisms.SmallTable)
    assert_type(small.bounds.theorem_11, float | None)
    assert_type(mechanisms.auction([0.3, 0.8], epsilon=1.0), float)
    assert_type(mechanisms.exponential_interval([0, 1, 2], [3, 4], epsilon=1.0), float)


def theory_and_attacks() -> None:
    """What reads no data, and what shows why noise is needed."""
    assert_type(theory.rows_needed(within=0.05, epsilon=1.0), int)
    assert_type(theory.smalldb_error(universe=4, rows=2000, epsilon=1.0, queries=16), float)
    assert_type(theory.vc_dimension(theory.HalfPlanes()), int)
    found = attacks.reconstruct(lambda subset: int(subset.sum()), 10, method="least-squares")
    assert_type(found, attacks.Reconstruction)
    assert_type(found.refused, bool)
    assert_type(privsql.rows_needed(within=0.05, epsilon=1.0), int)
