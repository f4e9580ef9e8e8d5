"""Note 004: too many accurate counts give the table away (Dinur, Nissim); an auction that is private."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd

import privsql
from privsql import mechanisms

PEOPLE = 100
generator = np.random.default_rng()
secret = generator.integers(0, 2, PEOPLE)
ASKED = round(PEOPLE * math.log(PEOPLE) ** 2)
subsets = generator.integers(0, 2, (ASKED, PEOPLE))
exact = subsets @ secret


def rebuilt(answers: np.ndarray) -> float:
    """The share of bits recovered, by least squares (the note has a linear program) and rounding."""
    solution, *_ = np.linalg.lstsq(subsets.astype(float), np.asarray(answers, dtype=float), rcond=None)
    return float(((solution > 0.5) == secret).mean())


print(f"1. {ASKED} counts over random subsets of {PEOPLE} people: n log^2 n of them.")
reach = 0.05 * math.sqrt(PEOPLE)
share = rebuilt(exact + generator.uniform(-reach, reach, ASKED))
print(f"   noise up to 0.05 sqrt n = {reach:g}: {share:.0%} of the bits are recovered")
assert share == 1.0
for epsilon in (1, 10):
    noisy = mechanisms.laplace(
        exact.tolist(), epsilon=epsilon, sensitivity=ASKED
    )  # one bit is in all of them, at most
    share = rebuilt(np.array(noisy))
    print(f"   epsilon {epsilon} split over all of them: {share:.0%}, a coin would do as well")
    assert share < 0.85

print("\n2. privsql charges every count, so that nobody gets that far.")
table = pd.DataFrame({"id": np.arange(PEOPLE), "secret": secret == 1})
session = privsql.connect({"people": table}, {"budget": {"epsilon": 1.0}})
answered = 0
try:
    for subset in subsets:
        ids = ", ".join(str(place) for place in np.flatnonzero(subset))
        session.query(f"SELECT COUNT(*) AS n FROM people WHERE secret AND id IN ({ids})", epsilon=0.1)
        answered += 1
except privsql.BudgetError as refused:
    print(f"   {answered} counts at epsilon 0.1 out of a budget of 1, then: {refused.message}")
assert answered == 10

print("\n3. An auction with unlimited supply: q(b, p) = p * demand at p; exp(epsilon q) costs 2 epsilon.")
values = [
    Fraction(20 + 61 * place % 75, 100) for place in range(400)
]  # each buys one unit at up to this price
prices = [Fraction(step, 500) for step in range(1, 501)]
revenue = [price * sum(price <= value for value in values) for price in prices]
best = max(range(len(prices)), key=revenue.__getitem__)
top, sold, epsilon = float(revenue[best]), int(revenue[best] / prices[best]), 0.5
chances = mechanisms.exponential_probabilities(revenue, epsilon=2 * epsilon, sensitivity=1)
expected = sum(chance * float(each) for chance, each in zip(chances, revenue, strict=True))
bound = top - 3 / epsilon * math.log(math.e + epsilon**2 * top * sold)
price = prices[mechanisms.exponential(revenue, epsilon=2 * epsilon, sensitivity=1)]
print(f"   at best {top:.1f}, {sold} sold at {float(prices[best]):g}; privsql set the price {float(price):g}")
print(
    f"   check: the expected revenue is {expected:.1f}, "
    f"at least OPT - (3/epsilon) ln(e + epsilon^2 OPT m) = {bound:.1f}"
)
assert expected >= bound
