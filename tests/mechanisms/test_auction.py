"""The auction with unlimited supply: revenue by definition, privacy by the law, note 004's bound, truthfulness."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import privsql
from privsql import mechanisms, theory


def test_revenue_by_definition():
    bids = [0.25, 0.5, 0.5, 1, 0]
    expected = {price: price * sum(bid >= price for bid in bids) for price in (0.25, 0.5, 0.75, 1)}
    assert mechanisms.auction_revenues(bids, prices=4) == expected
    assert mechanisms.auction_revenues(bids, prices=[1, 0.5, 0.25, 0.75, 0.5]) == expected
    steps = [lambda price, bid=bid: int(bid >= price) for bid in bids]
    assert mechanisms.auction_revenues(steps, prices=4) == expected
    assert mechanisms.auction_revenues([0.1, 0.3], prices=[0.1, 0.3]) == {0.1: 0.2, 0.3: 0.3}  # tenths


def test_nobody_counts_for_more_than_1():
    """Demand curves: what somebody would spend beyond 1 is clamped."""
    bids = [lambda price: 0.2 / price, lambda price: 1000, lambda price: 3 if price <= 0.25 else 0]
    revenues = mechanisms.auction_revenues(bids, prices=4)
    assert revenues == {
        0.25: pytest.approx(1.95),
        0.5: pytest.approx(1.2),
        0.75: pytest.approx(1.2),
        1.0: 1.2,
    }


PRICES = [0.3, 0.7, 1]
BIDS = {
    **{f"pays {limit}": limit for limit in (0, 0.3, 0.7, 1)},
    "only cheap": lambda price: 1 / price if price <= 0.3 else 0,
    "spends 1": lambda price: 1 / price,
}


def laws(people: int, epsilon: float) -> dict[tuple[str, ...], list[float]]:
    return {
        names: list(
            mechanisms.auction_probabilities([BIDS[name] for name in names], epsilon, PRICES).values()
        )
        for names in itertools.combinations_with_replacement(BIDS, people)
    }


def test_every_price_over_all_neighbours():
    """And truth-telling: no other bid gains more than exp(epsilon) - 1."""
    epsilon = 0.8
    chances, wrong, gained = laws(3, epsilon), laws(3, 2 * epsilon), 0.0
    worst = worst_wrong = 0.0
    for one, other in itertools.product(chances, repeat=2):
        if (Counter(one) - Counter(other)).total() != 1:
            continue
        worst = max(worst, *(abs(math.log(a / b)) for a, b in zip(chances[one], chances[other])))
        worst_wrong = max(worst_wrong, *(abs(math.log(a / b)) for a, b in zip(wrong[one], wrong[other])))
        (truth,) = Counter(one) - Counter(other)
        if truth.startswith("pays"):
            utilities = [max(0.0, BIDS[truth] - price) for price in PRICES]
            gained = max(gained, theory.gain_from_lying(chances[one], chances[other], utilities))
    assert 0.5 * epsilon < worst <= epsilon + 1e-12 < worst_wrong
    assert 0 < gained <= theory.truthfulness(epsilon)


@pytest.mark.parametrize("epsilon", [0.2, 1, 5])
@pytest.mark.parametrize("prices", [20, 100])
@pytest.mark.parametrize("shape", ["spread", "one price", "demand"])
def test_the_revenue_is_at_least_what_note_004_says(shape, prices, epsilon):
    """By the exact law, for the note's theorem: at 2 epsilon, OPT - (3/epsilon) ln(e + epsilon^2 OPT m)."""
    values = [Fraction(20 + 61 * place % 75, 100) for place in range(300)]
    bids = {
        "spread": values,
        "one price": [Fraction(3, 5)] * 300,
        "demand": [lambda price, value=value: min(4, float(value) / price) for value in values],
    }[shape]
    revenues = mechanisms.auction_revenues(bids, prices)
    chances = mechanisms.auction_probabilities(bids, epsilon, prices)
    expected = sum(chances[price] * revenues[price] for price in revenues)
    price, best = max(revenues.items(), key=lambda each: each[1])
    bound = theory.auction_revenue(best=best, sold=best / price, epsilon=epsilon)
    assert expected >= bound
    if epsilon == 5 and shape != "demand":
        assert bound > 0.7 * best  # and it says something


def test_the_price_follows_the_law():
    chances = mechanisms.auction_probabilities([0.3, 0.7, 1], 6, prices=[0.3, 0.7, 1])
    sold = Counter(mechanisms.auction([0.3, 0.7, 1], 6, prices=[0.3, 0.7, 1]) for _ in range(1500))
    for price, chance in chances.items():
        assert abs(sold[price] - 1500 * chance) < 6.5 * math.sqrt(1500 * chance * (1 - chance)) + 5


def test_refused():
    for bids in (
        [],
        None,
        "ab",
        5,
        {1: 2},
        [-1],
        [None],
        [lambda price: -1],
        [lambda price: "x"],
        [math.nan],
    ):
        with pytest.raises(privsql.ArgumentError) as refused:
            mechanisms.auction(bids, 1)
        assert refused.value.code == "argument-numbers"
    for prices in (0, True, -3, [], [0], [0.5, 1.5], "ab", None, 10**7):
        with pytest.raises(privsql.ArgumentError) as refused:
            mechanisms.auction([0.5], 1, prices=prices)
        assert refused.value.code == "argument-shape"
    with pytest.raises(privsql.ArgumentError):
        mechanisms.auction([0.5], 0)
    assert mechanisms.auction(np.array([0.5, 0.9]), 1, prices=[0.5]) == 0.5
