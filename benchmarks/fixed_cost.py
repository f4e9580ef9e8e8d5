"""What a private answer costs beyond the engine's own time, as ratios to plain DuckDB from one run.

    python benchmarks/fixed_cost.py [--repeats 201] [--rows 1000] [--large 10000000]

On a table of 1,000 rows nearly all of a query's time is fixed: parsing, planning, reading the catalogue, the charge and the
noise. Every query is asked in two ways, "new" (another column name each time, so that it is planned anew) and "repeated"
(the same text each time), of a file that privsql opens itself and of a connection that its owner keeps open.
Medians of runs that are interleaved with plain DuckDB, so that a busy moment of the machine meets both; ratios of wall and
of CPU time, since the latter says more on a busy machine.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import duckdb
from run import POLICY, TABLE, asked_anew, seconds

import privsql
from privsql.engines.duckdb.opening import CLOSED
from privsql.noise.randomness import SystemRandomness
from privsql.noise.samplers import discrete_laplace

SMALL = {
    "count": "SELECT COUNT(*) FROM t",
    "sum": "SELECT SUM(age) FROM t",
    "avg by 50 keys": "SELECT state, AVG(age) FROM t GROUP BY state",
    "group by 100,000 keys": "SELECT k, COUNT(*) FROM t GROUP BY k",
}
LARGE = {
    "sum": "SELECT SUM(age) FROM t",
    "sum (double)": "SELECT SUM(income) FROM t",
    "avg (double)": "SELECT AVG(income) FROM t",
}
CELLS = 100_000
Run = Callable[[], object]
Times = tuple[float, float]  # wall and CPU


def medians(runs: Sequence[Run], repeats: int) -> list[Times]:
    """The median wall and CPU seconds of each, run in turn."""
    for run in runs:
        run()
    rounds = [[seconds(run) for run in runs] for _ in range(repeats)]
    return [
        (statistics.median(wall for wall, _ in each), statistics.median(cpu for _, cpu in each))
        for each in zip(*rounds, strict=True)
    ]


def compare(source: Path, kept_open: bool, queries: dict[str, str], repeats: int) -> Iterator[str]:
    """A line for each query: plain DuckDB, a new text, a repeated text."""
    number = itertools.count()
    config = {} if kept_open else CLOSED
    with (
        duckdb.connect(str(source), True, config) as plain,
        privsql.connect(plain if kept_open else source, policy=POLICY) as session,
    ):
        for name, sql in queries.items():
            exact, new, repeated = medians(
                (
                    lambda sql=sql: plain.execute(sql).df(),
                    lambda sql=sql: session.query(asked_anew(sql, next(number)), epsilon=1, fresh=True).df(),
                    lambda sql=sql: session.query(sql, epsilon=1, fresh=True).df(),
                ),
                max(7, repeats // 5) if "100,000" in name else repeats,
            )
            yield f"{'connection' if kept_open else 'file':<10}  {name:<22} {line(exact, new, repeated)}"


def line(exact: Times, new: Times, repeated: Times) -> str:
    walls = [f"{1e3 * wall:>12.2f}" for wall, _ in (exact, new, repeated)]
    ratios = [f"{each[kind] / exact[kind]:>12.2f}" for each in (new, repeated) for kind in (0, 1)]
    return " ".join([*walls, *ratios])


def noise_milliseconds(rate: Fraction, repeats: int = 21) -> float:
    return medians([lambda: discrete_laplace(rate, CELLS, SystemRandomness())], repeats)[0][0] * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument(
        "--large", type=int, default=10_000_000, help="rows for SUM and AVG; 0 leaves them out"
    )
    parser.add_argument("--repeats", type=int, default=201)
    args = parser.parse_args()
    shown = ("duckdb ms", "new ms", "repeated ms", "new x", "CPU x", "repeated x", "CPU x")
    header = " ".join([f"{'source':<10}  {'query':<22}", *(f"{each:>12}" for each in shown)])
    with tempfile.TemporaryDirectory() as folder:
        for rows, queries, repeats in ((args.rows, SMALL, args.repeats), (args.large, LARGE, 9)):
            if not rows:
                continue
            path = Path(folder) / f"bench_{rows}.duckdb"
            with duckdb.connect(str(path)) as connection:
                connection.execute(TABLE.format(rows=rows))
            print(f"\n{rows:,} rows\n{header}")
            for kept_open in (False, True):
                for each in compare(path, kept_open, queries, repeats):
                    print(each, flush=True)
    print(f"\nnoise of {CELLS:,} cells")
    for epsilon in (Fraction(10), Fraction(1), Fraction(1, 10), Fraction(1, 10**9)):
        print(f"  rate {epsilon!s:<12} {noise_milliseconds(epsilon):>7.2f} ms")


if __name__ == "__main__":
    main()
