"""Note 000: histograms, noisy max, the exponential mechanism, and the same query asked again."""

import math
from collections import Counter

import pandas as pd

import privsql
from privsql import attacks, mechanisms, teaching, theory

print("1. A histogram costs the same however many keys it has: l1 is 2, not the number of keys (claim 1).")
GRADES = ["A", "B", "C", "D", "F"]
grades = pd.DataFrame({"grade": list("AABBBCCCDF") * 50})
histogram = "SELECT grade, COUNT(*) AS n FROM df GROUP BY grade"
out = grades.dp.query(histogram, epsilon=1.0, keys={"grade": GRADES})
print("   exact:", grades["grade"].value_counts().reindex(GRADES).tolist(), "  privsql:", out["n"].tolist())
for names in (GRADES, [f"grade {number}" for number in range(500)]):
    measured = grades.dp.explain(histogram, epsilon=1.0, keys={"grade": names}).measurements[0]
    print(f"   check: {len(names)} keys, l1 {measured.l1}, noise of scale {measured.scale:g}")
    assert (measured.l1, measured.scale) == (2, 2.0)

print("\n2. The most popular fruit, by noisy max: only the label comes out (theorem 3).")
counts = {"apple": 1, "orange": 4, "banana": 3}
for noise in ((1, -1, -1), (0, -1, 1)):
    print(f"   on paper: counts {counts}, noise {noise}: {teaching.noisy_max(counts, noise)}")
assert teaching.noisy_max(counts, (1, -1, -1)) == "orange"
assert teaching.noisy_max(counts, (0, -1, 1)) == "banana"
likes = pd.DataFrame(
    {
        "apple": [True, False, False, False, False],
        "orange": [True, True, True, True, False],
        "banana": [False, True, False, True, True],
    }
)
fruit = """SELECT fruit FROM (UNPIVOT likes ON apple, orange, banana INTO NAME fruit VALUE liked)
           WHERE liked GROUP BY fruit ORDER BY COUNT(*) DESC LIMIT 1"""
for copies in (1, 50):
    session = privsql.connect({"likes": pd.concat([likes] * copies, ignore_index=True)})
    told = Counter(session.query(fruit, epsilon=0.5, fresh=True).fetchall()[0][0] for _ in range(20))
    print(f"   {5 * copies} children: {dict(told)}")
assert told["orange"] >= 18  # a lead of 50 is wrong once in 100,000 questions or less

print("\n3. Pumpkins at 1 or 2 dollars, by the exponential mechanism: epsilon 0.2, Delta u 2.")
prices = pd.DataFrame({"price": [1, 2]})
pumpkins = """SELECT p.price FROM prices p JOIN bids b ON b.bid >= p.price
              GROUP BY p.price ORDER BY p.price * COUNT(*) DESC LIMIT 1"""
for bids, claim in (([1, 1, 2], "51% / 49%"), ([1] * 90 + [2] * 10, "98.2% / 1.8%")):
    revenue = {price: price * sum(bid >= price for bid in bids) for price in (1, 2)}
    chances = mechanisms.exponential_probabilities(revenue, epsilon=0.2, sensitivity=2)
    print(f"   revenue {revenue}: the note says {claim}; computed {chances[1]:.2%} / {chances[2]:.2%}")
    session = privsql.connect(
        {"bids": pd.DataFrame({"bid": bids}), "prices": prices}, {"tables": {"prices": {"public": True}}}
    )
    measured = session.explain(pumpkins, epsilon=0.2, mechanism="exponential").measurements[0]
    sold = Counter(mechanisms.exponential(revenue, epsilon=0.2, sensitivity=2) for _ in range(1000))
    answer = session.query(pumpkins, epsilon=0.2, mechanism="exponential").fetchall()[0][0]
    print(f"   in SQL: price {answer}, Delta u {measured.linf}, noise of scale {measured.scale:g}")
    print(f"   check: of 1000 draws {sold[1]} at 1 dollar")
    gap = max(revenue.values()) - min(revenue.values())
    bound = theory.selection_failure(candidates=2, regret=gap, epsilon=0.2, sensitivity=2)
    print(f"   check: a price that makes {gap} less has a chance of {bound:.1%} at most (theorem 6)")
    assert min(chances.values()) < bound
    assert measured.linf == 2 and measured.scale == 2 * 2 / 0.2
    assert abs(sold[1] - 1000 * chances[1]) < 6.5 * math.sqrt(1000 * chances[1] * chances[2]) + 5

print("\n4. The same query again: averaging independent answers undoes the noise (section 3).")
session = privsql.connect(grades, {"tables": {"df": {"columns": {"grade": {"values": GRADES}}}}})
count = "SELECT COUNT(*) AS n FROM df WHERE grade = 'A'"
repeats = theory.repeats_to_average(epsilon=0.1, confidence=0.999999)
found = attacks.averaging(lambda: mechanisms.laplace(100, epsilon=0.1), times=repeats)
print(f"   exact 100; the mean of {found.asked} independent answers at epsilon 0.1: {found.estimate:.2f}")
print("   (some 1/epsilon^2 answers: so many go wrong one time in a million)")
assert round(found.estimate) == 100
found = attacks.averaging(lambda: session.query(count, epsilon=0.1).fetchall()[0][0], times=100)
print(f"   {found.asked} times privsql: {found.distinct} answer, spent {session.budget.spent.epsilon}")
assert found.distinct == 1 and session.budget.spent.epsilon == 0.1
