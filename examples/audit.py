"""Audit a query: try to break its privacy promise, without reading a row."""

import pandas as pd

import privsql

visits = pd.DataFrame({"state": ["CA", "NY", "CA"], "age": [34, 71, 68]})
policy = {"tables": {"df": {"columns": {"state": {"values": ["CA", "NY"]}, "age": {"range": [0, 120]}}}}}
session = privsql.connect(visits, policy=policy)

question = "SELECT state, SUM(age) AS total FROM df WHERE age >= 65 GROUP BY state"
audit = session.audit(question, epsilon=1.0, releases=50_000)
print(audit)

print("\none of the two tables as SQL, for plain DuckDB:")
print(audit.pair.script())
print(f"spent so far: {session.budget.spent.epsilon}")
