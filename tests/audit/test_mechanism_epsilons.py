"""The epsilon of every mechanism end to end: what is measured is at most what is charged, and 0.7 times the noise is found out.

0.7 times the noise is the noise of a plan at epsilon / 0.7, charged as if it were one at epsilon. A bound that is passed is passed
by three independent sets of releases, each 99.9% sure: right noise fails a test with a chance of 1e-9.
"""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from privsql.audit.audit import CONFIDENCE
from privsql.audit.epsilon import MeasuredEpsilon, measure
from privsql.audit.scratch import Scratch
from privsql.audit.search import PairSearch
from privsql.audit.world import world_of
from privsql.planning.measurements.noised import Mechanism
from tests.audit.tables import session

ADD = "add-remove"
LESS = 0.7


@dataclass(frozen=True)
class Case:
    """A query answered by a mechanism, with enough releases to detect 0.7 of its noise."""

    mechanism: Mechanism
    sql: str
    releases: int
    epsilon: float = 1.0
    neighbours: str = "replace-one"
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.mechanism.name


BY_WORD, TOP = (
    "SELECT word, COUNT(*) FROM {} GROUP BY word",
    "SELECT s FROM t GROUP BY s ORDER BY COUNT(*) DESC LIMIT 2",
)
QUICK = [
    Case(Mechanism.LAPLACE, "SELECT COUNT(*) FROM t WHERE k", 40_000),
    Case(Mechanism.GAUSSIAN, "SELECT s, COUNT(*) FROM t GROUP BY s", 80_000, options={"mechanism": "gaussian", "delta": 0.05}),
]  # fmt: skip
LONG = [
    Case(Mechanism.KEYS_GEOMETRIC, BY_WORD.format("t"), 40_000, neighbours=ADD, options={"delta": 0.01}),
    Case(Mechanism.KEYS_GAUSSIAN, BY_WORD.format("visits"), 100_000, neighbours=ADD, options={"delta": 0.03, "max_rows": 1, "mechanism": "gaussian"}),
    Case(Mechanism.KEYS_CHOSEN, "SELECT word FROM t GROUP BY word", 50_000, options={"delta": 0.01}),
    Case(Mechanism.CHOICE_FLIP, "SELECT k, mode(s) FROM t GROUP BY k", 60_000),
    Case(Mechanism.CHOICE_FLIP, "SELECT mode(s) FROM t", 26_000),
    Case(Mechanism.CHOICE_LAPLACE, "SELECT k, mode(s) FROM t GROUP BY k", 200_000, 2.0, options={"mechanism": "laplace"}),
    Case(Mechanism.CHOICE_GUMBEL, "SELECT mode(s) FROM t", 26_000, 2.0, options={"mechanism": "gumbel"}),
    Case(Mechanism.CHOICE_EXPONENTIAL, "SELECT mode(s) FROM t", 26_000, 2.0, options={"mechanism": "exponential"}),
    Case(Mechanism.CHOICE_HISTOGRAM, TOP, 60_000, 2.0, ADD),
    Case(Mechanism.ORDER, "SELECT median(w) FROM t", 150_000, neighbours=ADD),
]  # fmt: skip
CASES = [*QUICK, *(pytest.param(each, marks=pytest.mark.slow) for each in LONG)]


def _measured(case: Case, noise: float) -> MeasuredEpsilon:
    """By a plan with this part of the noise, charged for all of it."""
    asked = session(case.neighbours)
    plan = asked.explain(case.sql, epsilon=case.epsilon / noise, **case.options)
    assert [each.mechanism for each in plan.measurements] == [case.mechanism]
    scratch = Scratch(world_of(plan, asked._pipeline.engine.schema(), asked._pipeline.engine.read_public))
    try:
        pairs = PairSearch(plan, scratch, 40, lambda _: None).run().pairs
        found = measure(
            plan, scratch, pairs, case.releases, CONFIDENCE, (case.epsilon, plan.delta), lambda _: None
        )
    finally:
        scratch.close()
    assert found is not None
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_measured_epsilon_is_at_most_the_charged_one(case: Case) -> None:
    bound = _measured(replace(case, releases=20_000 if case.sql == TOP else case.releases), 1.0).bound
    assert bound.lower <= bound.charged == case.epsilon
    assert bound.lower > 0.5 * case.epsilon  # or the measurement would find nothing out


@pytest.mark.parametrize("case", CASES, ids=str)
def test_reduced_noise_is_detected(case: Case) -> None:
    bound = _measured(case, LESS).bound
    assert bound.passed, f"at least {bound.lower} of {bound.charged}, by {bound.event}"


def test_every_mechanism_is_measured() -> None:
    assert {each.mechanism for each in (*QUICK, *LONG)} == set(Mechanism)
