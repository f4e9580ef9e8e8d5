"""A DuckDB file and a policy file: the owner writes both, the analyst queries."""

import tempfile
from pathlib import Path

import duckdb

import privsql

POLICY = """
[budget]
epsilon = 3.0

[tables.visits.columns]
age  = { range = [0, 120] }
ward = { values = ["north", "south", "children"] }
"""

with tempfile.TemporaryDirectory() as folder:
    database, policy = Path(folder) / "clinic.duckdb", Path(folder) / "clinic.toml"
    policy.write_text(POLICY, encoding="utf-8")
    with duckdb.connect(str(database)) as owner:
        owner.execute("CREATE TABLE visits (age INTEGER NOT NULL, ward VARCHAR NOT NULL, day DATE NOT NULL)")
        owner.execute(
            "INSERT INTO visits SELECT 1 + i * 7 % 90, ['north', 'south', 'children'][1 + i % 3], "
            "DATE '2024-01-01' + CAST(i % 366 AS INTEGER) FROM range(5000) t(i)"
        )

    session = privsql.connect(database, policy=policy)
    print(
        session.query(
            "SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward ORDER BY visits DESC", epsilon=0.5
        )
    )
    print()
    by_quarter = """
        SELECT date_trunc('quarter', day) AS quarter, COUNT(*) AS visits FROM visits
        WHERE day BETWEEN DATE '2024-01-01' AND DATE '2024-12-31' GROUP BY 1 ORDER BY 1"""
    print(session.explain(by_quarter, epsilon=0.5))
    print()
    print(session.query(by_quarter, epsilon=0.5))
