"""Note 001: k counts at once as shares of n rows, how many rows they need, and randomised response."""

import math

import numpy as np
import pandas as pd

import privsql
from privsql import mechanisms

K, WITHIN, EPSILON, CONFIDENCE = 10, 0.05, 1.0, 0.95
wanted = {"queries": K, "within": WITHIN, "epsilon": EPSILON, "confidence": CONFIDENCE}
rows = privsql.rows_needed(**wanted)

print(
    f"1. {K} overlapping counts, each within {WITHIN:.0%} of the rows, "
    f"with {CONFIDENCE:.0%} confidence, at epsilon {EPSILON:g}."
)
print(
    f"   the note: n >= k ln(k/b) / (a epsilon) = {K * math.log(K / 0.05) / WITHIN:.0f} rows; "
    f"privsql.rows_needed: {rows}"
)
people = pd.DataFrame({"age": np.arange(rows) * 7 % 90, "smoker": np.arange(rows) % 4 == 0})
counts = ", ".join(f"COUNT(*) FILTER (WHERE smoker AND age >= {9 * place}) AS c{place}" for place in range(K))
session = privsql.connect(
    {"people": people}, {"tables": {"people": {"columns": {"age": {"range": [0, 90]}}}}}
)
exact = np.array([(people["smoker"] & (people["age"] >= 9 * place)).sum() for place in range(K)])
question = f"SELECT {counts} FROM people"
errors = [
    np.abs(session.query(question, epsilon=EPSILON, fresh=True).df().to_numpy()[0] - exact).max() / rows
    for _ in range(20)
]
within = sum(error <= WITHIN for error in errors)
print(
    f"   check: asked 20 times, all ten were within {WITHIN:.0%} in {within} of them; "
    f"the largest error was {max(errors):.1%}"
)
assert within >= 8  # below that once in a billion runs

print("\n2. Counts that partition the rows: their l1 is 2/n, however many there are.")
partition = privsql.rows_needed(**wanted, mechanism="partition")
print(
    f"   the note: n >= 2 ln(k/b) / (a epsilon) = {2 * math.log(K / 0.05) / WITHIN:.0f}; "
    f"privsql, in whole counts: {partition}"
)
plan = session.explain("SELECT age // 10 AS decade, COUNT(*) AS n FROM people GROUP BY 1", epsilon=EPSILON)
print(f"   check: {plan.cells} decades, l1 {plan.measurements[0].l1}")
assert plan.measurements[0].l1 == 2

print(
    "\n3. Randomised response: everybody turns their answers round themselves, each of the ten at epsilon/10."
)
order = K**2 * math.log(K / 0.05) / (WITHIN * EPSILON) ** 2
enough = privsql.rows_needed(**wanted, mechanism="randomised-response")
print(f"   the note: n of the order of k^2 ln(k/b) / (a epsilon)^2 = {order:.0f}; provably enough: {enough}")
errors = []
for place in range(K):
    bits = np.arange(enough) % (place + 2) == 0
    response = mechanisms.randomised_response(bits, EPSILON / K)
    errors.append(abs(response.estimate - bits.mean()))
low, high = response.interval(CONFIDENCE)
print(
    f"   the last: exact {bits.mean():.3f}, privsql {response.estimate:.3f}, interval {low:.3f} to {high:.3f}"
)
print(
    f"   check: the largest of ten errors is {max(errors):.1%}; "
    f"Laplace noise needs {enough / rows:.0f} times fewer people"
)
assert max(errors) < 2.5 * WITHIN
