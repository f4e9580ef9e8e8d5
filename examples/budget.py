"""A budget: what costs epsilon, what is free, and what happens at the end."""

import pandas as pd

import privsql

patients = pd.DataFrame({"age": [20 + place * 13 % 70 for place in range(800)]})
patients.dp.protect(ranges={"age": (0, 120)}, budget=1.0)

question = "SELECT COUNT(*) AS n FROM df WHERE age >= 65"

plan = patients.dp.explain(question, within=20, confidence=0.95)
print(f"within +-20 with 95% confidence costs epsilon {plan.epsilon:.3f}; nothing is spent yet")
print(patients.dp.query(question, epsilon=0.6))
print(patients.dp.query(question, epsilon=0.6), "  the same query again: the same answer, free")
print(patients.dp.budget)

older = patients[patients["age"] > 40]  # a frame made from it shares its budget
try:
    older.dp.query("SELECT AVG(age) AS age FROM df", epsilon=0.5)
except privsql.BudgetError as error:
    print(error)
