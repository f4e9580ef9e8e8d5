"""What a private answer costs next to plain DuckDB: the same questions, measured in one run, as ratios.

    python benchmarks/run.py [--rows 1000 1000000 10000000] [--repeats 15]

Wall and CPU time of privsql (fresh answers: reading, planning, charge, exact query, noise, finishing) over those of plain
DuckDB fetching the same result from the same pages in memory, one after the other in turn. Ratios of the fastest of each;
absolute times only to show what they are ratios of. Each time the question has another name for its last column, so that it
is read, planned and charged anew.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

import privsql
from privsql.engines.duckdb.opening import CLOSED

QUESTIONS = {
    "count": "SELECT COUNT(*) FROM t",
    "filtered count": "SELECT COUNT(*) FROM t WHERE age > 40",
    "group by 50 keys": "SELECT state, COUNT(*) FROM t GROUP BY state",
    "group by 100,000 keys": "SELECT k, COUNT(*) FROM t GROUP BY k",
    "sum": "SELECT SUM(age) FROM t",
    "sum (double)": "SELECT SUM(income) FROM t",
    "avg": "SELECT AVG(age) FROM t",
    "avg by 50 keys": "SELECT state, AVG(age) FROM t GROUP BY state",
    "median": "SELECT MEDIAN(age) FROM t",
    "median (double)": "SELECT MEDIAN(income) FROM t",
    "quartiles (double)": "SELECT quantile_cont(income, [0.25, 0.5, 0.75]) FROM t",
    "max (double)": "SELECT MAX(income) FROM t",
    "median by 50 keys": "SELECT state, MEDIAN(age) FROM t GROUP BY state",
    "median (double) by 50 keys": "SELECT state, MEDIAN(income) FROM t GROUP BY state",
}
POLICY = {
    "tables": {
        "t": {
            "columns": {
                "age": {"range": [0, 120]},
                "income": {"range": [0, 200_000]},
                "state": {"values": [f"s{index:02d}" for index in range(50)]},
                "k": {"range": [0, 99_999]},
            }
        }
    }
}
TABLE = """
CREATE TABLE t AS SELECT CAST(hash(i) % 121 AS INTEGER) AS age, (hash(i + 1) % 20000000) / 100.0::DOUBLE AS income,
    's' || lpad(CAST(hash(i + 2) % 50 AS VARCHAR), 2, '0') AS state, CAST(hash(i + 3) % 100000 AS INTEGER) AS k
FROM range({rows}) AS r(i)
"""


def seconds(run: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def measured(*runs: Callable[[], object], repeats: int) -> list[tuple[float, float]]:
    """The least wall and CPU seconds of each, in turn, so that a busy moment of the machine meets them all."""
    for run in runs:
        run()
    times = [[seconds(run) for run in runs] for _ in range(repeats)]
    return [(min(wall for wall, _ in each), min(cpu for _, cpu in each)) for each in zip(*times, strict=True)]


def compared(path: Path, repeats: int) -> dict[str, list[tuple[float, float]]]:
    """The times of plain DuckDB and of privsql for each question."""
    number = itertools.count()
    with privsql.connect(path, policy=POLICY) as session, duckdb.connect(str(path), True, CLOSED) as plain:
        return {
            name: measured(
                lambda sql=sql: plain.execute(sql).df(),
                lambda sql=sql: session.query(asked_anew(sql, next(number)), epsilon=1, fresh=True).df(),
                repeats=repeats,
            )
            for name, sql in QUESTIONS.items()
        }


def asked_anew(sql: str, number: int) -> str:
    """The same question with another name for its last column."""
    return sql.replace(" FROM t", f" AS n{number} FROM t")


def import_seconds(modules: str) -> float:
    """The fastest of several fresh interpreters."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {modules}"], check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[1_000, 1_000_000, 10_000_000], help="table sizes"
    )
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args()
    four = import_seconds("pandas, sqlglot, duckdb, numpy")
    print(
        f"import privsql: {import_seconds('privsql') / four:.2f} x importing its four packages ({four * 1e3:.0f} ms)\n"
    )
    print(
        f"{'rows':>12}  {'question':<22} {'duckdb ms':>10} {'privsql ms':>10} {'wall x':>7} {'CPU x':>7} {'extra ms':>9}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for rows in args.rows:
            path = Path(folder) / f"bench_{rows}.duckdb"
            with duckdb.connect(str(path)) as connection:
                connection.execute(TABLE.format(rows=rows))
            for name, ((exact_wall, exact_cpu), (noisy_wall, noisy_cpu)) in compared(
                path, args.repeats
            ).items():
                print(
                    f"{rows:>12,}  {name:<22} {exact_wall * 1e3:>10.2f} {noisy_wall * 1e3:>10.2f} "
                    f"{noisy_wall / exact_wall:>7.2f} {noisy_cpu / max(exact_cpu, 1e-6):>7.2f} "
                    f"{(noisy_wall - exact_wall) * 1e3:>9.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
