"""Which fruit do most children like? Only the winner's name is published, by report-noisy-max."""

import pandas as pd

import privsql

# The table of the lecture notes: five children, who like apples 1, oranges 4 and bananas 3 times.
likes = pd.DataFrame(
    {
        "child": ["Alice", "Bob", "Charlie", "Dave", "Erica"],
        "apple": [True, False, False, False, False],
        "orange": [True, True, True, True, False],
        "banana": [False, True, False, True, True],
    }
)
QUESTION = """
    SELECT fruit
    FROM (UNPIVOT likes ON apple, orange, banana INTO NAME fruit VALUE liked)
    WHERE liked GROUP BY fruit ORDER BY COUNT(*) DESC LIMIT 1"""

for copies in (1, 10, 100):
    session = privsql.connect({"likes": pd.concat([likes] * copies, ignore_index=True)})
    told = [session.query(QUESTION, epsilon=0.5, fresh=True).fetchall()[0][0] for _ in range(20)]
    print(f"{5 * copies:>4} children: 'orange' {told.count('orange')} times out of 20")

print()
print(session.explain(QUESTION, epsilon=0.5))
