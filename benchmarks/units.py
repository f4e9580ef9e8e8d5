"""People with many rows: what bounding them costs next to plain DuckDB, ad hoc and prepared, and how far off the answers are.

    python benchmarks/units.py [--rows 10000000] [--repeats 9]        (--rows 1000000 100000000 for others)

Wall and CPU time of privsql (fresh answers, whole) over those of plain DuckDB fetching the exact answer from the same file: they
take turns, medians of each, all in one run; what takes longer than two seconds in all is not repeated. "stmt x" is the prepared
statement alone, plan.sql by plain DuckDB, over the exact query: what else a question takes (reading, planning, charging, noise,
a frame) is a few milliseconds whatever the table, and all there is of a bare count, which DuckDB has in its catalogue and
privsql in the copy's totals. Beside the times the answer's +- at epsilon 1, and what bounding alone loses on this data: the
mean distance of the bounded from the exact answers, as a part of the exact ones.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

import privsql
from privsql.engines.duckdb.opening import CLOSED

BY_STATE = "FROM visits GROUP BY state ORDER BY state"
QUESTIONS = {
    "count": "SELECT COUNT(*) AS n FROM visits",
    "count where (10%)": "SELECT COUNT(*) AS n FROM visits WHERE day < 36",
    "count by 50 keys": f"SELECT state, COUNT(*) AS n {BY_STATE}",
    "count by 50 keys where (10%)": f"SELECT state, COUNT(*) AS n {BY_STATE.replace('GROUP', 'WHERE day < 36 GROUP')}",
    "sum": "SELECT SUM(amount) AS s FROM visits",
    "sum by 50 keys": f"SELECT state, SUM(amount) AS s {BY_STATE}",
    "sum of fractions": "SELECT SUM(price) AS s FROM visits",
    "avg": "SELECT AVG(amount) AS a FROM visits",
    "avg by 50 keys": f"SELECT state, AVG(amount) AS a {BY_STATE}",
    "people": "SELECT COUNT(DISTINCT user_id) AS n FROM visits",
    "people by 50 keys": f"SELECT state, COUNT(DISTINCT user_id) AS n {BY_STATE}",
    "avg of each person's total": "SELECT AVG(t) AS a FROM (SELECT user_id, SUM(amount) AS t FROM visits GROUP BY user_id)",
    "the most frequent key": "SELECT state FROM visits GROUP BY state ORDER BY COUNT(*) DESC LIMIT 1",
    "count, two hops from the unit": "SELECT COUNT(*) AS n FROM items WHERE qty > 2",
    "sum of a join by 10 keys": "SELECT kind, SUM(qty) AS s FROM items JOIN orders USING (oid) GROUP BY kind ORDER BY kind",
    "count of a join where (10%)": "SELECT COUNT(*) AS n FROM items JOIN orders USING (oid) WHERE kind = 3",
}
POLICY: dict[str, Any] = {
    "tables": {
        "visits": {
            "unit": "user_id",
            "columns": {
                "state": {"values": [f"s{index:02d}" for index in range(50)]},
                "amount": {"range": [0, 100]},
                "price": {"range": [0, 100]},
                "day": {"range": [0, 364]},
            },
        },
        "orders": {"unit": "customer", "columns": {"kind": {"range": [0, 9]}}},
        "items": {"unit": "oid -> orders.oid", "columns": {"qty": {"range": [0, 9]}}},
    }
}
# a tenth as many people as rows: half of them have few rows, some have thousands; each is mostly in three states
TABLE = """
CREATE TABLE visits AS
SELECT user_id, 's' || lpad(CAST(hash(user_id, place) % 50 AS VARCHAR), 2, '0') AS state,
       CAST(hash(i + 4) % 101 AS INTEGER) AS amount, CAST(hash(i + 5) % 365 AS INTEGER) AS day,
       CAST(hash(i + 6) % 10001 AS DOUBLE) / 100 AS price
FROM (SELECT i, CAST(floor({people} * pow((hash(i) % 1000000007) / 1000000007.0, 2.5)) AS INTEGER) AS user_id,
             CASE WHEN hash(i + 2) % 10 < 8 THEN hash(i + 3) % 3 ELSE i END AS place
      FROM range({rows}) AS r(i));
CREATE TABLE orders (oid INTEGER PRIMARY KEY, customer INTEGER, kind INTEGER);
INSERT INTO orders SELECT i, CAST(hash(i) % greatest({people} // 5, 1) AS INTEGER), hash(i + 1) % 10 FROM range({people}) AS r(i);
CREATE TABLE items AS
SELECT CAST(hash(i + 7) % {people} AS INTEGER) AS oid, CAST(hash(i + 2) % 10 AS INTEGER) AS qty FROM range({rows}) AS r(i)
"""
PATIENCE = 2.0  # seconds for one way of asking one question


@dataclass(frozen=True)
class Times:
    """Medians in seconds, and the rows of the last answer."""

    wall: float
    cpu: float
    rows: list[tuple[Any, ...]]

    def over(self, other: Times) -> str:
        return f"{self.wall / other.wall:>7.2f} {self.cpu / max(other.cpu, 1e-6):>7.2f}"

    def lost(self, exact: Times) -> str:
        """How far a bounded answer is from the exact one, almost without noise; a label is right or wrong."""
        if isinstance(exact.rows[0][-1], str):
            return "right" if self.rows == exact.rows else "wrong"
        ours = {row[:-1]: float(row[-1]) for row in self.rows}
        off = [abs(ours[row[:-1]] - float(row[-1])) / abs(float(row[-1])) for row in exact.rows if row[-1]]
        return f"{statistics.mean(off):.1%}"


def take_turns(runs: dict[str, Callable[[], pd.DataFrame]], repeats: int) -> dict[str, Times]:
    """The first round warms up, and counts only for what is too slow for another."""
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    last: dict[str, pd.DataFrame] = {}
    for _ in range(repeats + 1):
        for name, run in runs.items():
            if sum(wall for wall, _ in seen[name]) < PATIENCE:
                wall, cpu = time.perf_counter(), time.process_time()
                last[name] = run()
                seen[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    times = {}
    for name, each in seen.items():
        wall, cpu = (statistics.median(column) for column in zip(*(each[1:] or each), strict=True))
        times[name] = Times(wall, cpu, list(last[name].itertuples(index=False, name=None)))
    return times


def measured(path: Path, rows: int, repeats: int) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute(TABLE.format(rows=rows, people=rows // 10))
    session = privsql.connect(path, policy=POLICY)
    start = time.perf_counter()
    session.prepare("visits")
    session.prepare("items")
    size = Path(f"{path}.prepared").stat().st_size / path.stat().st_size
    print(
        f"{rows:>12,}  prepare, two tables: {time.perf_counter() - start:.1f} s, a file {size:.2f} x the size of the tables'"
    )
    with duckdb.connect(str(path), read_only=True, config=CLOSED) as plain:
        for name, sql in QUESTIONS.items():
            plan = session.explain(sql, epsilon=1)
            runs: dict[str, Callable[[], pd.DataFrame]] = {
                "plain": lambda sql=sql: plain.execute(sql).df(),
                "ad hoc": lambda sql=sql: session.query(sql, epsilon=10_000, prepared=False, fresh=True).df(),
            }
            stored = "privsql_prepared" in plan.sql
            if stored:
                runs["prepared"] = lambda sql=sql: session.query(sql, epsilon=10_000, fresh=True).df()
                runs["statement"] = lambda sql=plan.sql: plain.execute(sql).df()
            times = take_turns(runs, repeats)
            exact, ad_hoc, ours = times["plain"], times["ad hoc"], times.get("prepared")
            width = plan.accuracy(0.95, rows=rows // max(1, plan.cells))
            noise = next((f"{each:,.3g}" for each in width.values() if each is not None), "-")
            shown = f"{'as ad hoc':>33}"
            if ours is not None:
                shown = (
                    f"{ours.over(exact)} {ours.wall * 1e3:>9.1f} {times['statement'].wall / exact.wall:>7.2f}"
                )
            print(
                f"{rows:>12,}  {name:<30} {exact.wall * 1e3:>9.1f}  {ad_hoc.over(exact)}  {shown}  "
                f"{noise:>9} {ad_hoc.lost(exact):>8} {'' if ours is None else ours.lost(exact):>8}",
                flush=True,
            )
    session.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000_000], help="table sizes")
    parser.add_argument("--repeats", type=int, default=9)
    args = parser.parse_args()
    print(
        f"{'rows':>12}  {'question':<30} {'plain ms':>9}  {'adhoc x':>7} {'CPU x':>7}  "
        f"{'prep. x':>7} {'CPU x':>7} {'ms':>9} {'stmt x':>7}  "
        f"{'+- noise':>9} {'lost':>8} {'lost':>8}"
    )
    for rows in args.rows:
        with tempfile.TemporaryDirectory() as folder:
            measured(Path(folder) / "visits.duckdb", rows, args.repeats)


if __name__ == "__main__":
    main()
