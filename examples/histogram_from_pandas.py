"""A histogram of grades from a pandas frame, with error bars."""

import pandas as pd

import privsql  # noqa: F401 -- importing it gives every frame the accessor df.dp

students = pd.DataFrame({"grade": list("AABBBBCCCCCDDF") * 25})

histogram = students.dp.query(
    "SELECT grade, COUNT(*) AS n FROM df GROUP BY grade",
    epsilon=1.0,
    keys={"grade": ["A", "B", "C", "D", "F"]},
)
print(histogram)
print(histogram.dp.intervals(0.95))
print("cost: epsilon", histogram.dp.receipt["epsilon"])

# histogram.dp.plot() draws the same with matplotlib (pip install 'privsql[plot]')
