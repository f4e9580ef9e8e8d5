"""From psql to a private answer: data stay in PostgreSQL; only sums leave it, and get noise here.

Run it beside a server of your own (PRIVSQL_POSTGRES=postgresql://...), or beside a private one:

    python tools/with_postgres.py python examples/from_psql.py
"""

import os

import privsql

# what the data owner declares: whose the rows are, how many of one patient are used, and what can occur
POLICY = {
    "tables": {
        "visits": {
            "unit": "patient",
            "max_rows": 5,
            "max_groups": 3,
            "columns": {"cost": {"range": [0, 500]}},
        }
    }
}


def fill(address: str) -> None:
    """What the data owner has already."""
    import psycopg  # an extra: pip install 'privsql[postgres]'

    with psycopg.connect(address, autocommit=True) as owner:
        owner.execute("DROP SCHEMA IF EXISTS clinic CASCADE; CREATE SCHEMA clinic")
        owner.execute("CREATE TYPE clinic.ward AS ENUM ('north', 'south', 'children')")
        owner.execute("CREATE TABLE clinic.patients (id integer PRIMARY KEY, born date NOT NULL)")
        owner.execute(
            "CREATE TABLE clinic.visits (patient integer NOT NULL REFERENCES clinic.patients, "
            "ward clinic.ward NOT NULL, "
            "age integer CHECK (age >= 0 AND age <= 120), cost numeric(8, 2), seen timestamptz NOT NULL)"
        )
        owner.execute(
            "INSERT INTO clinic.patients SELECT i, '1960-01-01'::date + i "
            "FROM generate_series(1, 3000) AS r(i)"
        )
        owner.execute(
            "INSERT INTO clinic.visits SELECT 1 + i % 3000, "
            "(ARRAY['north', 'south', 'children']::clinic.ward[])[1 + i % 3], "
            "20 + i % 60, (i % 50000) / 100.0, '2024-01-01'::timestamptz + i * interval '1 hour' "
            "FROM generate_series(1, 9000) AS r(i)"
        )


def ask(address: str) -> None:
    joined = "&" if "?" in address else "?"
    with privsql.connect(f"{address}{joined}options=-csearch_path%3Dclinic", POLICY, deadline=60) as session:
        by_ward = (
            "SELECT ward, COUNT(*) AS visits, AVG(cost) AS cost "
            "FROM visits GROUP BY ward ORDER BY visits DESC"
        )
        print(session.explain(by_ward, epsilon=1.0))
        print()
        print(session.query(by_ward, epsilon=1.0))
        print()
        print("spent", session.budget.spent.epsilon)


if __name__ == "__main__":
    given = os.environ.get("PRIVSQL_POSTGRES")
    if given is None:
        print("PRIVSQL_POSTGRES is not set: give the address of a PostgreSQL server, as psql takes it")
    else:
        fill(given)
        ask(given)
