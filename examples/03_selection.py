"""Note 002: both kinds of neighbours, Gaussian noise, and three ways of choosing the best."""

import math
from collections import Counter
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd

import privsql
from privsql import mechanisms, theory

print("1. Neighbours: one person's row is replaced, or comes and goes.")
for neighbours, claim in (("replace-one", 2), ("add-remove", 1)):
    session = privsql.connect(pd.DataFrame({"smoker": [True, False]}), {"neighbours": neighbours})
    plan = session.explain("SELECT smoker, COUNT(*) AS n FROM df GROUP BY smoker", epsilon=1.0)
    print(f"   {neighbours}: a histogram has l1 {plan.measurements[0].l1}")
    assert plan.measurements[0].l1 == claim

print("\n2. Noise on 100 counts, one person in each of them, at epsilon 1 (and delta 1e-6).")
zeros = [0] * 100
laplace = np.std([mechanisms.laplace(zeros, epsilon=1, sensitivity=100) for _ in range(20)])
gaussian = np.std([mechanisms.gaussian(zeros, epsilon=1, delta=1e-6, sensitivity=10) for _ in range(20)])
print(f"   Laplace noise, l1 100: standard deviation 141, in 20 draws of all {laplace:.0f}")
print(f"   Gaussian noise, l2 10: standard deviation 42, in 20 draws of all {gaussian:.0f}")
assert gaussian < 60 < 100 < laplace

print("\n3. The most common medical condition; each person has a set of them.")
people = np.arange(400)
table = pd.DataFrame(
    {
        "asthma": people % 3 == 0,
        "diabetes": people % 5 == 0,
        "migraine": people % 2 == 0,
        "gout": people % 7 == 0,
    }
)
question = """SELECT condition
              FROM (UNPIVOT df ON asthma, diabetes, migraine, gout INTO NAME condition VALUE has)
              WHERE has GROUP BY condition ORDER BY COUNT(*) DESC LIMIT 1"""
print(
    "   exact:",
    table.sum().idxmax(),
    "  privsql:",
    table.dp.query(question, epsilon=1.0)["condition"].iloc[0],
)
people_lists = duckdb.connect()  # the same as one list a person
people_lists.execute("CREATE TABLE people (id INTEGER, conditions VARCHAR[])")
held = [(int(person), [name for name in table.columns if table.at[person, name]]) for person in people]
people_lists.executemany("INSERT INTO people VALUES (?, ?)", held)
session = privsql.connect(
    people_lists, {"tables": {"people": {"columns": {"conditions": {"values": list(table.columns)}}}}}
)
question = """SELECT condition FROM (SELECT UNNEST(list_distinct(conditions)) AS condition FROM people)
              GROUP BY condition ORDER BY COUNT(*) DESC LIMIT 1"""
scale = session.explain(question, epsilon=1.0).measurements[0].scale
print(
    "   from lists:",
    session.query(question, epsilon=1.0).fetchall()[0][0],
    "  scale 2 Delta / epsilon with Delta 1:",
    scale,
)
assert scale == 2.0  # however many conditions a person may name

print("\n4. Five candidates, the best 5 ahead, epsilon 1: how often it is chosen.")
scores = {"a": 10, "b": 10, "best": 15, "d": 10, "e": 10}
exact = {
    "exponential": mechanisms.permute_and_flip_probabilities(scores, epsilon=1)["best"],
    "gumbel": mechanisms.exponential_probabilities(scores, epsilon=1)["best"],
    "laplace": 0.76,
}
for noise, chance in exact.items():
    chosen = Counter(mechanisms.noisy_max(scores, epsilon=1, noise=noise) for _ in range(500))["best"] / 500
    print(f"   noisy max with {noise} noise: {chance:.1%}; of 500 draws {chosen:.1%}")
    assert abs(chosen - chance) < 0.14  # seven standard deviations
print(
    "   check: exponential noise is permute-and-flip, "
    "and Gumbel noise the exponential mechanism, to the last digit"
)

print("\n5. Adele's price, out of 99, that sells for the most: q(p) = p #{x >= p}.")
offers = [Fraction(40 + 37 * place % 60, 100) for place in range(500)]  # what 500 people would pay
revenue = {
    Fraction(cent, 100): Fraction(cent, 100) * sum(100 * x >= cent for x in offers) for cent in range(1, 100)
}
session = privsql.connect(
    {
        "offers": pd.DataFrame({"x": map(float, offers)}),
        "prices": pd.DataFrame({"price": map(float, revenue)}),
    },
    {"tables": {"prices": {"public": True}}},
)
question = """SELECT p.price FROM prices p JOIN offers o ON o.x >= p.price
              GROUP BY p.price ORDER BY p.price * COUNT(*) DESC LIMIT 1"""
chosen = Fraction(str(session.query(question, epsilon=1.0).fetchall()[0][0]))
best = max(revenue.values())
print(
    f"   at best {float(best):.2f}; privsql chose {float(chosen):.2f}, "
    f"which makes {float(revenue[chosen]):.2f}"
)
chances = mechanisms.permute_and_flip_probabilities(revenue, epsilon=1, sensitivity=Fraction(99, 100))
for t in (1, 3):
    confidence = 1 - math.exp(-t)
    regret = theory.selection_regret(candidates=99, epsilon=1, sensitivity=0.99, confidence=confidence)
    missed = sum(chance for price, chance in chances.items() if best - revenue[price] > regret)
    print(
        f"   check: the regret is above 2 Delta (ln d + {t})/epsilon = {regret:.1f} "
        f"with probability {missed:.2%}, at most {math.exp(-t):.2%}"
    )
    assert missed <= math.exp(-t)
mean = sum(chance * float(best - revenue[price]) for price, chance in chances.items())
most = theory.expected_regret(candidates=99, epsilon=1, sensitivity=0.99)
print(f"   check: the mean regret is {mean:.2f}, at most 2 Delta ln(d)/epsilon = {most:.2f}")
assert mean <= most
rows = theory.rows_to_select(candidates=100, within=0.05, epsilon=1)
print(f"   the most common of 100 conditions, to within 5% of the people: {rows} people suffice")

print("\n6. The same over all prices from 0 to 1, by the continuous exponential mechanism.")
edges = [Fraction(cent, 100) for cent in range(101)]
scores = [
    edge * sum(x >= edge for x in offers) for edge in edges[:-1]
]  # of [edge, edge + 0.01), sold at edge
price = mechanisms.exponential_interval(edges, scores, epsilon=1, sensitivity=1)
chances = mechanisms.exponential_interval_probabilities(edges, scores, epsilon=1, sensitivity=1)
good = sum(chance for chance, score in zip(chances, scores, strict=True) if score > best - 15)
print(f"   price {price:.6f}; with probability {good:.2%} it makes at most 15 less than the best")
assert good > 1 - theory.selection_failure(candidates=100, regret=15, epsilon=1)
