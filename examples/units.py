"""People with many rows: the privacy unit, the limits on its rows, and what the limits drop."""

import duckdb

import privsql

owner = duckdb.connect()
owner.execute("""
    CREATE TABLE visits (user_id INTEGER, page VARCHAR NOT NULL, minutes INTEGER NOT NULL);
    CREATE TABLE pages (page VARCHAR PRIMARY KEY, section VARCHAR NOT NULL);
    INSERT INTO pages VALUES
        ('home', 'front'), ('news', 'front'), ('chess', 'games'), ('cards', 'games'), ('help', 'service');
    -- 4,000 users come 1 to 8 times; ten of them come a thousand times
    INSERT INTO visits
    SELECT u, ['home', 'news', 'chess', 'cards', 'help'][1 + (u * 7 + v * v) % 5], 1 + (u + 3 * v) % 20
    FROM range(4000) users(u), range(1000) visits(v)
    WHERE v < CASE WHEN u < 10 THEN 1000 ELSE 1 + u % 8 END
""")
policy = {
    "tables": {
        "visits": {
            "unit": "user_id",  # privacy for all rows of a user together
            "max_groups": 2,  # in how many keys one user may count
            "max_rows": 8,  # how many rows of one user may count in one key
            "columns": {"minutes": {"range": [0, 20]}},
        },
        "pages": {"public": True},
    }
}
session = privsql.connect(owner, policy=policy)

print("Time by section: a public table has the sections, and so the keys of the answer")
by_section = """SELECT section, COUNT(*) AS visits, SUM(minutes) AS minutes
                FROM visits JOIN pages ON visits.page = pages.page GROUP BY section ORDER BY section"""
print(session.query(by_section, epsilon=1.0), "\n")

print("Why so much noise? A user may be in 2 sections, with 8 visits in each, and be replaced by another:")
print(session.explain(by_section, epsilon=1.0), "\n")

print("How many users come how often: each user counts in one key only, so the noise is small")
per_user = """SELECT n AS visits, COUNT(*) AS users
              FROM (SELECT user_id, COUNT(*) AS n FROM visits GROUP BY user_id) GROUP BY n"""
print(session.query(per_user, epsilon=1.0), "\n")
print(
    session.query("SELECT COUNT(DISTINCT user_id) AS users FROM visits WHERE page = 'chess'", epsilon=1.0),
    "\n",
)

print("What the limits cost: rows beyond max_rows are dropped. Fewer rows, less noise")
print("(an analyst can lower a declared limit, but not raise it)")
count = "SELECT COUNT(*) AS visits FROM visits"
everything = owner.execute(count).fetchone()[0]
print(
    f"{'max_rows':>8} {'counted':>8} {'dropped':>8} {'noise, 95%':>12}    "
    f"of {everything:,} visits, 10,000 of them by ten users"
)
for rows in (1, 2, 4, 8):
    plan = session.explain(count, epsilon=1.0, max_rows=rows)
    counted = owner.execute(plan.sql).fetchone()[0]  # exact, before any noise: for the owner only
    noise = f"+-{round(plan.accuracy(0.95)['visits'])}"
    print(f"{rows:>8} {counted:>8,} {everything - counted:>8,} {noise:>12}")
try:
    session.explain(count, epsilon=1.0, max_rows=1000)
except privsql.PrivsqlError as error:
    print(error)

print("\nA list of users is a list of people:")
try:
    session.query(
        "SELECT user_id, COUNT(*) AS n FROM visits GROUP BY user_id ORDER BY n DESC LIMIT 10", epsilon=1.0
    )
except privsql.PrivsqlError as error:
    print(error)
