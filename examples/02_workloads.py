"""Note 001: k counts at once as shares of n rows, how many rows they need, and randomised response."""

import numpy as np
import pandas as pd

import privsql
from privsql import mechanisms, theory

K, WITHIN, EPSILON, CONFIDENCE = 10, 0.05, 1.0, 0.95
wanted = {"queries": K, "within": WITHIN, "epsilon": EPSILON, "confidence": CONFIDENCE}
rows = privsql.rows_needed(**wanted)

print(
    f"1. {K} overlapping counts, each within {WITHIN:.0%} of the rows, "
    f"with {CONFIDENCE:.0%} confidence, at epsilon {EPSILON:g}."
)
missed = theory.share_failure(within=WITHIN, rows=rows, epsilon=EPSILON, queries=K)
print(f"   the note: n >= k ln(k/b) / (a epsilon); privsql.rows_needed: {rows}")
print(f"   with so many rows some count is further off with probability {missed:.4f} at most")
print(f"   the error of twice as many: {theory.share_error(rows=2 * rows, epsilon=EPSILON, queries=K):.1%}")
assert rows == 1060 and missed <= 1 - CONFIDENCE
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
print(f"   the note: n >= 2 ln(k/b) / (a epsilon); privsql, in whole counts: {partition}")
plan = session.explain("SELECT age // 10 AS decade, COUNT(*) AS n FROM people GROUP BY 1", epsilon=EPSILON)
print(f"   check: {plan.cells} decades, l1 {plan.measurements[0].l1}")
assert plan.measurements[0].l1 == 2

print(
    "\n3. Randomised response: everybody turns their answers round themselves, each of the ten at epsilon/10."
)
enough = theory.rows_needed(**wanted, mechanism="randomised-response")
print(f"   the note: n of the order of k^2 ln(k/b) / (a epsilon)^2, 212 thousand; provably enough: {enough}")
answers = pd.DataFrame({f"q{place}": np.arange(enough) % (place + 2) == 0 for place in range(K)})
responses = mechanisms.randomised_columns(answers, EPSILON)  # each of the ten at epsilon/10
errors = {name: abs(responses.estimates[name] - answers[name].mean()) for name in answers}
low, high = responses.intervals(CONFIDENCE)["q9"]
print(
    f"   the last: exact {answers['q9'].mean():.3f}, privsql {responses.estimates['q9']:.3f}, "
    f"interval {low:.3f} to {high:.3f}, all ten at once with {CONFIDENCE:.0%} confidence"
)
print(
    f"   check: the largest of ten errors is {max(errors.values()):.1%}; "
    f"Laplace noise needs {enough / rows:.0f} times fewer people"
)
assert enough == 480_117 and max(errors.values()) < 2.5 * WITHIN
