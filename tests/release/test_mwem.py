"""Synthetic tables by multiplicative weights: what a round costs, which marginal it selects, and what is learned."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import privsql
from privsql.noise.marginals.mwem_rounds import mwem_rounds
from privsql.planning.marginals.mwem_plan import MwemMeasurement, measure_mwem
from privsql.privacy.marginals.residual_price import Neighbouring
from privsql.release.releases import ReleaseRequest
from privsql.release.rows.dense_fit import grouped, marginal_of
from privsql.release.rows.multiplicative_weights import learned
from tests.noise.statistics import FALSE_ALARM, Buffered, p_value
from tests.release.people import BINS, connect, people
from tests.release.test_residual_noise import exact_of

RELATIONS = [
    Neighbouring(1, False),
    Neighbouring(1, True, True),
    Neighbouring(4, True),
    Neighbouring(3, False),
]


@pytest.mark.parametrize("by", RELATIONS)
def test_rounds_spend_epsilon_and_no_more(by):
    found = measure_mwem(by, 7, Fraction(3, 2))
    assert sum(event.epsilon for _, event in found.events) == Fraction(3, 2)
    with pytest.raises(ValueError, match="does not cover"):
        MwemMeasurement(by, 7, Fraction(3, 2), found.selection_rate * 2, found.noise_rate)
    with pytest.raises(ValueError, match="does not cover"):
        MwemMeasurement(by, 7, Fraction(3, 2), found.selection_rate, found.noise_rate * 2)
    more = Neighbouring(by.rows + 1, by.replaced)
    with pytest.raises(ValueError, match="does not cover"):
        MwemMeasurement(more, 7, Fraction(3, 2), found.selection_rate, found.noise_rate)


def planned(frame, neighbours, epsilon, rounds):
    workload = privsql.marginals(["age", "state", "smoker", "income"], ways=2, bins=BINS)
    with connect(frame, neighbours=neighbours) as session:
        return session._releases.plan_mwem(ReleaseRequest(workload, "people", epsilon), rounds)


def scores(plan, frame, believed):
    exact = exact_of(plan, frame)
    codes = [np.asarray(exact.exact_keys[name]).astype(int) for name in plan.keys]
    found = []
    for columns in plan.sets:
        counts = np.zeros([plan.sizes[each] for each in columns], dtype=np.int64)
        np.add.at(counts, tuple(codes[each] for each in columns), exact.exact_columns["count_0"])
        found.append(int(np.abs(counts - believed[columns]).sum()))
    return np.array(found)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_one_row_changes_a_score_by_at_most_its_sensitivity(neighbours):
    frame = people(60)
    plan = planned(frame, neighbours, 1.0, 3)
    random = np.random.default_rng(1)
    widest = 0
    for _ in range(40):
        believed = {
            each: random.integers(0, 9, [plan.sizes[column] for column in each]) for each in plan.sets
        }
        other = people(1, seed=int(random.integers(1_000)))
        rest = frame.iloc[:-1]
        near = pd.concat([rest, other]).astype(frame.dtypes) if neighbours == "replace-one" else rest
        moved = np.abs(scores(plan, frame, believed) - scores(plan, near, believed)).max()
        widest = max(widest, moved)
        assert moved <= plan.measurement.moves
    assert widest == plan.measurement.moves


def test_a_marginal_is_selected_as_often_as_the_exponential_mechanism_says():
    """3,000 first rounds; the chance of a false alarm is 1e-9, and twice the rate is found."""
    frame = people(40)
    plan = planned(frame, "add-remove", 0.4, 1)
    believed = {each: np.zeros([plan.sizes[column] for column in each], dtype=np.int64) for each in plan.sets}
    for place, each in enumerate(plan.sets):
        believed[each].reshape(-1)[0] = 6 * place  # so that scores differ
    exact, source = exact_of(plan, frame), Buffered()
    picks = Counter(mwem_rounds(plan, exact, lambda _: believed, source)[0][0] for _ in range(3_000))
    found = [picks[each] for each in plan.sets]
    wanted = scores(plan, frame, believed)
    for times, passes in ((1, True), (2, False)):
        law = np.exp(float(plan.measurement.selection_rate) * times * (wanted - wanted.max()))
        assert (p_value(found, law / law.sum()) > FALSE_ALARM) is passes


def test_the_estimate_sees_nothing_but_noisy_marginals():
    frame = people(40)
    plan = planned(frame, "add-remove", 1.0, 3)
    seen = []

    def estimate(measured):
        seen.append([columns for columns, _ in measured])
        return {each: np.zeros([plan.sizes[c] for c in each], dtype=np.int64) for each in plan.sets}

    measured = mwem_rounds(plan, exact_of(plan, frame), estimate, Buffered())
    assert seen == [[columns for columns, _ in measured[:rounds]] for rounds in range(3)]


def test_what_is_measured_is_learned():
    random = np.random.default_rng(3)
    sizes = (3, 2, 4)
    truth = random.dirichlet(np.ones(24)).reshape(sizes)
    pairs = list(combinations(range(3), 2))
    exact = {
        each: np.rint(1e5 * truth.sum(axis=tuple({0, 1, 2} - set(each)))).astype(np.int64) for each in pairs
    }
    groups = grouped(sizes, 3)
    even = learned(groups, [])
    weights = learned(groups, list(exact.items()))
    assert weights.rows == pytest.approx(1e5, rel=1e-3)
    for each in pairs:
        goal = exact[each] / 1e5
        before = np.abs(marginal_of(groups, even.table, each) - goal).sum()
        assert np.abs(marginal_of(groups, weights.table, each) - goal).sum() < 0.5 * before


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_table_is_made_without_a_delta(neighbours):
    frame = people(20_000)
    with connect(frame, neighbours=neighbours, budget={"epsilon": 2.0}) as session:
        made = session.synthesize("people", ["age", "state", "smoker"], epsilon=2.0, ways=2, bins={"age": 4})
        assert made.method == "mwem" and made.release is None
        assert session.budget.spent.epsilon == 2 and session.budget.spent.delta == 0
        assert made.receipt["charged"] == 2 and len(made.report()) == 10
        assert 19_000 < len(made) < 21_000
        assert made.df()["smoker"].mean() == pytest.approx(frame["smoker"].mean(), abs=0.1)
        with pytest.raises(privsql.BudgetError):
            session.synthesize("people", ["age", "smoker"], epsilon=0.1, bins={"age": 4})


def test_under_zcdp_rounds_cost_their_squares():
    budget = {"epsilon": 3.0, "delta": 1e-5, "accountant": "zcdp"}
    with connect(people(500), neighbours="add-remove", budget=budget) as session:
        made = session.synthesize("people", ["smoker", "state"], epsilon=1.0, rounds=5, method="mwem")
        part = 0.1  # of epsilon, for each of 5 selections and 5 measurements
        assert made.receipt["rho"] == pytest.approx(5 * part**2 / 8 + 5 * part**2 / 2)
        assert session.budget.spent.rho == pytest.approx(made.receipt["rho"], abs=1e-8)


def test_believed_counts_and_scores_never_wrap():
    groups = grouped([2, 2], 2)
    counts = np.array([2**62, 2**62], dtype=np.int64)  # their sum does not fit into 64 bits
    weights = learned(groups, [((0,), counts)])
    believed = weights.believed([(0,), (1,)])
    assert weights.rows == 2.0**53
    assert all(each.min() >= 0 and each.sum() <= 2**53 for each in believed.values())
