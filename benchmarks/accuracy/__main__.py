"""Error at equal epsilon for every aggregate: privsql, the textbook and, where installed, OpenDP, SmartNoise SQL, diffprivlib.

    python benchmarks/accuracy [--rows 10000] [--repeats 300] [--seconds 1] [--only AVG] [--python PATH] [--write PAGE] [--json]

The other tools are looked for in this interpreter, or in those that --python names (their requirements rarely go together with
pandas 3). The same made-up data without NULL, ranges, keys, epsilon and delta for all. Neighbours are add-remove; privsql also
answers under replace-one, and an entry marked r takes the number of rows as known, which is private under replace-one only: it
stands against privsql's replace-one column. An entry is a median over as many answers as there is time for, of the mean error
over the cells (for choices: the share of wrong labels). * is the best, with all that a rank test at z = 3.5 cannot tell from it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import textbook
from lines import LINES, POLICY, Line, tables
from rivals import REPLACE_ONE, TOOLS, repeated

import privsql

OURS = {"add-remove": "privsql", "replace-one": "privsql (r)"}
COLUMNS = [*OURS.values(), "textbook", *TOOLS]
MEASURES = {"off": "error", "%": "error in %", "wrong": "share wrong", "missed": "keys missed"}
CERTAIN = 3.5
Errors = dict[str, dict[str, list[float]]]  # line -> tool -> one of each answer


def relation(tool: str, line: str) -> str:
    return "replace-one" if tool == OURS["replace-one"] or line in REPLACE_ONE.get(tool, ()) else "add-remove"


def rank_test(one: list[float], other: list[float]) -> float:
    """Mann and Whitney's z, ties taken into account: above 0 if the first tends to be greater."""
    sizes, both = (len(one), len(other)), pd.Series([*one, *other])
    ranks, ties = both.rank(), both.value_counts().to_numpy()
    total = sum(sizes)
    spread = sizes[0] * sizes[1] / 12 * (total + 1 - (ties**3 - ties).sum() / (total * (total - 1)))
    above = ranks[: sizes[0]].sum() - sizes[0] * (total + 1) / 2
    return float(above / spread**0.5) if spread > 0 else 0.0


def best(line: Line, errors: dict[str, list[float]]) -> set[str]:
    """The tools that are not certainly worse than the best one under the same neighbours."""
    found = set()
    for neighbours in OURS:
        group = {tool: each for tool, each in errors.items() if relation(tool, line.name) == neighbours}
        if len(group) > 1:
            least = min(group, key=lambda tool: line.summary(group[tool]))
            found |= {tool for tool, each in group.items() if tool == least or rank_test(each, group[least]) < CERTAIN}
    return found


def behind(line: Line, errors: dict[str, list[float]]) -> list[str]:
    found = []
    for tool, each in errors.items():
        ours = OURS[relation(tool, line.name)]
        if tool != ours and ours in errors and (z := rank_test(errors[ours], each)) > CERTAIN:
            found.append(
                f"{line.name}: {ours} {line.summary(errors[ours]):.3g}, {tool} {line.summary(each):.3g} (z = {z:.1f}, "
                f"{len(errors[ours])} and {len(each)} answers, {relation(tool, line.name)})"
            )
    return found


@dataclass
class Table:
    """Lines printed as they are known."""

    errors: Errors

    def header(self) -> list[str]:
        return ["line", "measure", *COLUMNS]

    def row(self, line: Line) -> list[str]:
        errors = self.errors[line.name]
        stars = best(line, errors)

        def shown(tool: str) -> str:
            if tool not in errors:
                return "-"
            known = " r" if relation(tool, line.name) == "replace-one" and tool not in OURS.values() else ""
            return f"{line.summary(errors[tool]):.3g}{known}{'*' if tool in stars else ' '}"

        return [line.name, MEASURES[line.measure], *map(shown, COLUMNS)]

    def text(self, cells: list[str]) -> str:
        return f"{cells[0]:<22} {cells[1]:<12}" + "".join(f"{cell:>13}" for cell in cells[2:])


def asked(session: privsql.Session, line: Line) -> list[Any]:
    answer = session.query(line.sql, epsilon=line.epsilon, delta=line.delta, fresh=True)
    return line.answer(answer.fetchall())


def measured(
    lines: list[Line], data: dict[str, pd.DataFrame], seconds: float, repeats: int, progress: Callable[[str], None]
) -> Errors:
    """privsql and the textbook."""
    exact = duckdb.connect()
    for name, frame in data.items():
        exact.execute(f"CREATE TABLE {name} AS FROM frame LIMIT 0")
        for column in frame.columns:  # as the other tools are told, or take for granted
            exact.execute(f'ALTER TABLE {name} ALTER "{column}" SET NOT NULL')
        exact.execute(f"INSERT INTO {name} FROM frame")
    sessions = {tool: privsql.connect(exact, policy=POLICY | {"neighbours": each}) for each, tool in OURS.items()}
    naive = textbook.answers(data)
    found: Errors = {}
    for line in lines:
        progress(line.name)
        truth = line.answer(exact.execute(line.sql).fetchall())
        runs: dict[str, Callable[[], list[Any]]] = {tool: partial(asked, each, line) for tool, each in sessions.items()}
        runs["textbook"] = naive[line.name]
        answers = {tool: repeated(run, seconds, repeats) for tool, run in runs.items()}
        found[line.name] = {tool: [line.error(each, truth) for each in given] for tool, given in answers.items()}
        found[line.name][""] = truth
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=300, help="answers a line and tool, at most")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for a line and tool, once it has 8 answers")
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="interpreters that have the other tools")
    parser.add_argument("--only", default="", help="lines whose names have this in them")
    parser.add_argument("--write", type=Path, help="write the table to this page, too")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    start = time.perf_counter()

    def progress(what: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{time.perf_counter() - start:5.0f} s  {what}", end="", file=sys.stderr, flush=True)

    data, lines = tables(args.rows), [line for line in LINES if args.only in line.name]
    with tempfile.TemporaryDirectory() as folder:
        for name, frame in data.items():
            frame.to_csv(Path(folder) / f"{name}.csv", index=False)
        limits = [f"--seconds={args.seconds}", f"--repeats={args.repeats}", f"--only={args.only}"]
        script = [str(Path(__file__).with_name("rivals.py")), folder, *limits]
        others = [subprocess.Popen([python, *script], stdout=subprocess.PIPE, text=True) for python in args.python]
        errors = measured(lines, data, args.seconds, args.repeats, progress)
        progress("the other tools")
        told = [json.loads(other.communicate()[0]) for other in others]
    truths = {line.name: errors[line.name].pop("") for line in lines}
    versions, failures = {"privsql": privsql.__version__}, []
    for tool, about in ((tool, about) for each in told for tool, about in each.items() if "version" in about):
        versions[tool] = about["version"]
        for line in lines:
            match about["answers"].get(line.name):
                case list() as answers:
                    errors[line.name][tool] = [line.error(each, truths[line.name]) for each in answers]
                case str() as failure:
                    failures.append(f"{tool}, {line.name}: {failure}")
    progress("")
    report(args, lines, Table(errors), versions, failures, time.perf_counter() - start)


def report(
    args: argparse.Namespace,
    lines: list[Line],
    table: Table,
    versions: dict[str, str],
    failures: list[str],
    seconds: float,
) -> None:
    lagging = [each for line in lines for each in behind(line, table.errors[line.name])]
    if args.json:
        medians = {
            line.name: {tool: line.summary(each) for tool, each in table.errors[line.name].items()} for line in lines
        }
        print(
            json.dumps(
                {"versions": versions, "rows": args.rows, "errors": medians, "behind": lagging, "failures": failures}
            )
        )
    else:
        print(table.text(table.header()))
        for line in lines:
            print(table.text(table.row(line)))
        print(
            f"\n{', '.join(f'{tool} {version}' for tool, version in versions.items())}; {args.rows:,} rows; {seconds:.0f} s"
        )
        print("".join(f"failed: {each}\n" for each in failures), end="")
        print("\n".join(f"behind: {each}" for each in lagging) or "privsql is not behind on any line.")
    if args.write:
        args.write.write_text(page(args, lines, table, versions, failures, lagging), encoding="utf-8")


def page(
    args: argparse.Namespace,
    lines: list[Line],
    table: Table,
    versions: dict[str, str],
    failures: list[str],
    lagging: list[str],
) -> str:
    def row(cells: list[str]) -> str:
        return f"| {' | '.join(cell.strip().replace('*', ' **best**') for cell in cells)} |"

    answers = [len(each) for found in table.errors.values() for each in found.values()]
    epsilons = sorted({(line.epsilon, line.delta) for line in lines})
    parts = [
        "# Accuracy beside others",
        "Written by `python benchmarks/accuracy --write docs/accuracy.md` (`make accuracy`); do not edit. Versions: "
        + ", ".join(f"{tool} {version}" for tool, version in versions.items())
        + f", numpy {np.__version__}. {args.rows:,} made-up rows, {min(answers)} to {max(answers)} answers an entry. "
        "(epsilon, delta): "
        + ", ".join(f"({epsilon:g}, {delta:g})" for epsilon, delta in epsilons)
        + "; the choices have the smallest epsilon, the overlapping counts and unknown keys the delta.",
        "Same data without NULL, ranges, keys and cost for all, under add-remove neighbours; `privsql (r)` is privsql under "
        "replace-one, and an entry with r takes the number of rows as known, so that it stands beside that column. Median over "
        "the answers of the mean error over the cells (choices: share of wrong labels). Best: the least, and whatever a rank "
        "test (z = 3.5) cannot tell from it under the same neighbours. OpenDP and diffprivlib have no MIN and MAX: theirs are "
        "the quantiles .001 and .999.",
        "\n".join([row(table.header()), "|---" * (len(COLUMNS) + 2) + "|", *(row(table.row(line)) for line in lines)]),
        "## Where privsql is behind",
        "\n".join([*(f"- {each}" for each in lagging), "", "Why: [known limits](known-limits.md)."]) if lagging else "Nowhere.",
    ]
    if failures:
        parts += ["## What failed", "\n".join(f"- {each}" for each in failures)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
