"""Averages with intervals, which narrow as epsilon grows."""

import pandas as pd

import privsql

staff = pd.DataFrame(
    {
        "salary": [30_000 + place * 3_671 % 60_000 for place in range(2_000)],
        "remote": [place % 3 == 0 for place in range(2_000)],
    }
)
session = privsql.connect(
    {"staff": staff}, policy={"tables": {"staff": {"columns": {"salary": {"range": [0, 150_000]}}}}}
)

# One measurement gives all three numbers: they cost no more than the average alone, and agree.
print(
    session.query(
        "SELECT remote, AVG(salary) AS mean, SUM(salary) AS total, COUNT(*) AS n FROM staff GROUP BY remote",
        epsilon=1.0,
    )
)

for epsilon in (0.1, 0.3, 1.0, 3.0):
    table = session.query("SELECT AVG(salary) AS mean FROM staff", epsilon=epsilon).intervals(0.95)
    mean, low, high = table.loc[0, ["mean", "mean_low", "mean_high"]]
    print(f"epsilon {epsilon:<4}  {mean:>8,.0f}   [{low:,.0f}, {high:,.0f}]")

print("exact, for the data owner only:", f"{staff['salary'].mean():,.0f}")
