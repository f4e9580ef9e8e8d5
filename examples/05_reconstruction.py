"""Note 004: too many accurate counts give the table away (Dinur, Nissim); an auction that is private."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd

import privsql
from privsql import attacks, mechanisms, theory

PEOPLE = 100
generator = np.random.default_rng()
secret = generator.integers(0, 2, PEOPLE) == 1

print("1. Counts over n log^2 n random subsets, then the linear program of section 1.4.")
reach = 0.05 * math.sqrt(PEOPLE)
found = attacks.reconstruct(
    lambda subset: (subset & secret).sum() + generator.uniform(-reach, reach), PEOPLE, error=reach
)
print(
    f"   {found.asked} answers, off by up to 0.05 sqrt n = {reach:g}: "
    f"{found.share_of(secret):.0%} of bits are back"
)
assert found.share_of(secret) == 1.0


def split(epsilon: float):
    """Noisy counts: one bit is in all of them, at most."""
    return lambda subset: mechanisms.laplace(int((subset & secret).sum()), epsilon, sensitivity=2121)


for epsilon in (1, 10):
    found = attacks.reconstruct(split(epsilon), PEOPLE)
    print(
        f"   epsilon {epsilon} split over all of them: {found.share_of(secret):.0%}, a coin would do as well"
    )
    assert found.share_of(secret) < 0.85

print("\n2. privsql charges every count, so that nobody gets that far.")
table = pd.DataFrame({"id": np.arange(PEOPLE), "secret": secret})
session = privsql.connect({"people": table}, {"budget": {"epsilon": 1.0}})


def ask(subset: np.ndarray) -> int:
    ids = ", ".join(str(place) for place in np.flatnonzero(subset))
    count = f"SELECT COUNT(*) AS n FROM people WHERE secret AND id IN ({ids})"
    return session.query(count, epsilon=0.1).fetchall()[0][0]


found = attacks.reconstruct(ask, PEOPLE)
print(
    f"   {found.asked} counts at epsilon 0.1 out of a budget of 1, then no more: {found.share_of(secret):.0%}"
)
assert found.asked == 10 and found.refused and found.share_of(secret) < 0.85

print(
    "\n3. The attack is tight: a mechanism with error sqrt(n) log(n)^1.1 answers nearly everything by |Q|/2."
)
found = attacks.reconstruct(attacks.half_answers(secret), PEOPLE)
print(f"   {found.asked} of its answers: {found.share_of(secret):.0%} of the bits")
assert found.share_of(secret) < 0.85

print("\n4. An auction with unlimited supply: q(b, p) = p * demand at p; exp(epsilon q) costs 2 epsilon.")
values = [Fraction(20 + 61 * place % 75, 100) for place in range(400)]  # each buys a unit at up to this price
revenue = mechanisms.auction_revenues(values, prices=500)
best = max(revenue, key=revenue.__getitem__)
chances = mechanisms.auction_probabilities(values, epsilon=1.0, prices=500)
expected = sum(chances[price] * revenue[price] for price in chances)
bound = theory.auction_revenue(best=revenue[best], sold=revenue[best] / best, epsilon=1.0)
price = mechanisms.auction(values, epsilon=1.0, prices=500)
print(f"   at best {revenue[best]:.1f} at a price of {best:g}; privsql set the price {price:g}")
print(f"   check: the expected revenue is {expected:.1f}, at least {bound:.1f}: with the note's epsilon 0.5,")
print("   OPT - (3/epsilon) ln(e + epsilon^2 OPT m)")
assert expected >= bound
curves = [
    lambda price, most=float(value): most / price for value in values
]  # spend so much, whatever it costs
print(f"   with demand curves: the price {mechanisms.auction(curves, epsilon=1.0):g}, all are equally good")

print("\n5. The same auction in SQL: bids, and demand curves as a table.")
bids = pd.DataFrame({"most": map(float, values)})
prices = pd.DataFrame({"price": [step / 50 for step in range(1, 51)]})
session = privsql.connect({"bids": bids, "prices": prices}, {"tables": {"prices": {"public": True}}})
auction = """SELECT p.price FROM prices p JOIN bids b ON b.most >= p.price
             GROUP BY p.price ORDER BY p.price * COUNT(*) DESC LIMIT 1"""
price = session.query(auction, epsilon=1.0, mechanism="exponential").fetchall()[0][0]
print(f"   one unit each: the price {price}")
steps = [step / 10 for step in range(1, 11)]
wanted = [(bidder, price, max(0.0, 3 - bidder % 3 - 2 * price)) for bidder in range(300) for price in steps]
demand = pd.DataFrame(wanted, columns=["bidder", "price", "units"])
columns = {"price": {"values": steps}, "units": {"range": [0, 3]}}
policy = {"tables": {"demand": {"unit": "bidder", "max_groups": 10, "max_rows": 1, "columns": columns}}}
session = privsql.connect({"demand": demand}, policy)
auction = "SELECT price FROM demand GROUP BY price ORDER BY SUM(LEAST(price * units, 1)) DESC LIMIT 1"
plan = session.explain(auction, epsilon=1.0, mechanism="exponential")
price = session.query(auction, epsilon=1.0, mechanism="exponential").fetchall()[0][0]
measured = plan.measurements[0]
print(
    f"   demand curves: the price {price}; "
    f"nobody counts for more than {measured.linf * float(measured.step):g}"
)
assert measured.linf * measured.step == 1

print("\n6. Telling the truth is nearly the best that anybody can do: no lie gains more than e^epsilon - 1.")
crowd, grid = [0.3, 0.5, 0.8] * 3, [step / 10 for step in range(1, 11)]


def outcomes(bid: float) -> list[float]:
    return list(mechanisms.auction_probabilities([*crowd, bid], epsilon=0.5, prices=grid).values())


truth = 0.9
worth = [max(0.0, truth - price) for price in grid]  # what is saved at each price
gains = {lie: theory.gain_from_lying(outcomes(truth), outcomes(lie), worth) for lie in grid}
lie = max(gains, key=gains.__getitem__)
most = theory.truthfulness(0.5)
print(f"   worth {truth}, the best lie is {lie}: it gains {gains[lie]:.4f}; the bound is {most:.4f}")
print(f"   for at most a hundredth, choose epsilon {theory.epsilon_for_truthfulness(0.01):.5f}")
assert gains[lie] <= most
