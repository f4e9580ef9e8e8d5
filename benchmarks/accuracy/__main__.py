"""Error at equal epsilon for every aggregate: privsql, the textbook and, where installed, OpenDP, SmartNoise SQL, diffprivlib.

    python benchmarks/accuracy [--rows 10000] [--share 1] [--only AVG] [--python PATH] [--write PAGE] [--json]

The other tools are looked for in this interpreter, or in those that --python names (their requirements
rarely go together with pandas 3). The same made-up data without NULL, ranges, keys, epsilon and delta for
all. Neighbours are add-remove; privsql also answers under replace-one, and an entry marked r takes the
number of rows as known, which is private under replace-one only: it stands against privsql's replace-one
column. An entry is the mean over a fixed number of answers of the mean error over the cells (for choices:
the share of wrong labels). The exact part is computed once; the noise of every answer is drawn anew.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import textbook
from compare import SURE, Mean, judge
from lines import LINES, POLICY, Line, tables
from rivals import REPLACE_ONE, TOOLS

import privsql
from privsql.audit.epsilon import Words
from privsql.engines.duckdb.calculator import calculator
from privsql.noise.add_noise import add_noise
from privsql.results.finish import finish
from privsql.session import Session

OURS = {"add-remove": "privsql", "replace-one": "privsql (r)"}
COLUMNS = [*OURS.values(), "textbook", *TOOLS]
MEASURES = {"off": "error", "%": "error in %", "wrong": "share wrong", "missed": "keys missed"}
Means = dict[str, dict[str, Mean]]  # line -> tool


def relation(tool: str, line: str) -> str:
    return "replace-one" if tool == OURS["replace-one"] or line in REPLACE_ONE.get(tool, ()) else "add-remove"


def groups(line: Line, means: dict[str, Mean]) -> dict[str, dict[str, Mean]]:
    """The tools by the neighbours under which they answer."""
    return {
        neighbours: {tool: mean for tool, mean in means.items() if relation(tool, line.name) == neighbours}
        for neighbours in OURS
    }


def verdicts(line: Line, means: dict[str, Mean]) -> str:
    """By neighbours, what the data tell."""
    found = {neighbours: judge(group) for neighbours, group in groups(line, means).items()}
    return "; ".join(f"{neighbours}: {each}" for neighbours, each in found.items() if each is not None)


def behind(line: Line, means: dict[str, Mean]) -> list[str]:
    found = []
    for neighbours, group in groups(line, means).items():
        ours = group.get(OURS[neighbours])
        for tool, other in group.items():
            if ours is not None and ours.above(other) > SURE:
                ratio, error = ours.ratio(other)
                found.append(
                    f"{line.name} ({neighbours}): {ratio:.2f} ± {error:.2f} times the error of {tool} "
                    f"({_shown(ours)} against {_shown(other)})"
                )
    return found


def _shown(mean: Mean) -> str:
    digits = max(0, 1 - int(np.floor(np.log10(mean.error)))) if mean.error else 2
    return f"{mean.value:.{digits}f} ± {mean.error:.{digits}f}"


def header() -> list[str]:
    return ["line", "measure", "answers", *COLUMNS, "least"]


def row(line: Line, means: dict[str, Mean]) -> list[str]:
    least = {
        tool: min(group.values(), key=lambda mean: mean.value)
        for group in groups(line, means).values()
        for tool in group
    }

    def shown(tool: str) -> str:
        if tool not in means:
            return "-"
        known = "r, " if relation(tool, line.name) == "replace-one" and tool not in OURS.values() else ""
        return f"{_shown(means[tool])} ({known}{means[tool].ratio(least[tool])[0]:.2f})"

    draws = max(mean.draws for mean in means.values())
    return [line.name, MEASURES[line.measure], f"{draws:,}", *map(shown, COLUMNS), verdicts(line, means)]


def text(cells: list[str]) -> str:
    first, entries = f"{cells[0]:<22} {cells[1]:<12} {cells[2]:>7}", cells[3:-1]
    return first + "".join(f"{cell:>27}" for cell in entries) + f"  {cells[-1]}"


def drawn(session: Session, line: Line) -> Callable[[], list[Any]]:
    """Answers whose exact part is computed once, with noise by the system's randomness each time."""
    plan = session.explain(line.sql, epsilon=line.epsilon, delta=line.delta, show_all=True)

    def run(sql: str) -> Any:
        return session._pipeline.engine.run(sql, plan.keys)

    exact, words = [run(statement) for statement in plan.runs], Words()

    def answer() -> list[Any]:
        noisy = add_noise(plan, exact, words, run)
        return line.answer(finish(plan, noisy, calculator().finish).fetchall())

    return answer


def database(data: dict[str, pd.DataFrame]) -> duckdb.DuckDBPyConnection:
    exact = duckdb.connect()
    for name, frame in data.items():
        exact.execute(f"CREATE TABLE {name} AS FROM frame LIMIT 0")
        for column in frame.columns:  # as the other tools are told, or take for granted
            exact.execute(f'ALTER TABLE {name} ALTER "{column}" SET NOT NULL')
        exact.execute(f"INSERT INTO {name} FROM frame")
    return exact


def measured(
    lines: list[Line],
    data: dict[str, pd.DataFrame],
    exact: duckdb.DuckDBPyConnection,
    truths: dict[str, list[Any]],
    share: float,
    progress: Callable[[str], None],
) -> Means:
    """privsql and the textbook."""
    sessions = {
        tool: privsql.connect(exact, policy=POLICY | {"neighbours": each}) for each, tool in OURS.items()
    }
    naive = textbook.answers(data)
    found: Means = {}
    for line in lines:
        progress(line.name)
        runs = {tool: drawn(each, line) for tool, each in sessions.items()} | {"textbook": naive[line.name]}
        errors = {tool: line.errors(run, truths[line.name], share) for tool, run in runs.items()}
        found[line.name] = {tool: Mean.of(each) for tool, each in errors.items()}
    return found


def others(python: str, folder: str, share: float, only: str) -> dict[str, Any]:
    """What the tools of one interpreter answer."""
    script = [str(Path(__file__).with_name("rivals.py")), folder, f"--share={share}", f"--only={only}"]
    done = subprocess.run([python, *script], stdout=subprocess.PIPE, text=True, check=True)
    return {tool: about for tool, about in json.loads(done.stdout).items() if "version" in about}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--share", type=float, default=1.0, help="of the answers, for a quick look")
    parser.add_argument(
        "--python", nargs="+", default=[sys.executable], help="interpreters that have the other tools"
    )
    parser.add_argument("--only", default="", help="lines whose names have this in them")
    parser.add_argument("--write", type=Path, help="write the table to this page, too")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    start = time.perf_counter()

    def progress(what: str) -> None:
        if sys.stderr.isatty():
            print(
                f"\r\033[K{time.perf_counter() - start:5.0f} s  {what}", end="", file=sys.stderr, flush=True
            )

    data, lines = tables(args.rows), [line for line in LINES if args.only in line.name]
    exact = database(data)
    truths = {line.name: line.answer(exact.execute(line.sql).fetchall()) for line in lines}
    means = measured(lines, data, exact, truths, args.share, progress)
    versions, failures = {"privsql": privsql.__version__}, []
    with tempfile.TemporaryDirectory() as folder:
        for name, frame in data.items():
            frame.to_csv(Path(folder) / f"{name}.csv", index=False)
        (Path(folder) / "truths.json").write_text(json.dumps(truths))
        for python in args.python:
            progress(f"the other tools, by {python}")
            for tool, about in others(python, folder, args.share, args.only).items():
                versions[tool] = about["version"]
                for name, errors in about["errors"].items():
                    if isinstance(errors, str):
                        failures.append(f"{tool}, {name}: {errors}")
                    else:
                        means[name][tool] = Mean.of(errors)
    progress("")
    report(args, lines, means, versions, failures, time.perf_counter() - start)


def report(
    args: argparse.Namespace,
    lines: list[Line],
    means: Means,
    versions: dict[str, str],
    failures: list[str],
    seconds: float,
) -> None:
    lagging = [each for line in lines for each in behind(line, means[line.name])]
    if args.json:
        found = {
            name: {tool: asdict(each) for tool, each in by_tool.items()} for name, by_tool in means.items()
        }
        about = {"versions": versions, "rows": args.rows, "behind": lagging, "failures": failures}
        print(json.dumps({**about, "errors": found}))
    else:
        print(text(header()))
        for line in lines:
            print(text(row(line, means[line.name])))
        print(
            f"\n{', '.join(f'{tool} {version}' for tool, version in versions.items())}; {args.rows:,} rows; {seconds:.0f} s"
        )
        print("".join(f"failed: {each}\n" for each in failures), end="")
        told = [f"behind: {each}" for each in lagging] or ["behind: on no line by three standard errors"]
        print("\n".join(told))
    if args.write:
        args.write.write_text(page(args, lines, means, versions, failures, lagging), encoding="utf-8")


def page(
    args: argparse.Namespace,
    lines: list[Line],
    means: Means,
    versions: dict[str, str],
    failures: list[str],
    lagging: list[str],
) -> str:
    def cells(found: list[str]) -> str:
        return f"| {' | '.join(found)} |"

    epsilons = sorted({(line.epsilon, line.delta) for line in lines})
    rows = [cells(row(line, means[line.name])) for line in lines]
    table = [cells(header()), "|---" * len(header()) + "|", *rows]
    parts = [
        "# Accuracy beside others",
        "Written by `python benchmarks/accuracy --write docs/accuracy.md` (`make accuracy`) on "
        f"{dt.date.today()}; do not edit. Versions: "
        + ", ".join(f"{tool} {version}" for tool, version in versions.items())
        + f", numpy {np.__version__}. {args.rows:,} made-up rows. (epsilon, delta): "
        + ", ".join(f"({epsilon:g}, {delta:g})" for epsilon, delta in epsilons)
        + "; the choices have the smallest epsilon, the overlapping counts and unknown keys the delta.",
        "Same data without NULL, ranges, keys and cost for all, under add-remove neighbours; `privsql "
        "(r)` is privsql under replace-one, and an entry with r takes the number of rows as known, so "
        "that it stands beside that column. OpenDP and diffprivlib have no MIN and MAX: theirs are the "
        "quantiles .001 and .999.",
        "An entry is a mean ± its standard error, over so many answers, of the mean error over the cells "
        "(choices: share of wrong labels), and in parentheses its ratio to the least mean under the same "
        "neighbours. The number of answers is fixed beforehand, so that a difference of 10% is about "
        "three standard errors. `least` names the tool with the least mean where all others under the "
        "same neighbours are more than three standard errors of the difference above it, and otherwise "
        "those that the data do not tell apart. Of many comparisons, about one in 700 passes three "
        "standard errors by chance. Other data, ranges and epsilons give other ratios.",
        "\n".join(table),
        "## Where privsql is behind",
        "\n".join([*(f"- {each}" for each in lagging), "", "Why: [known limits](known-limits.md)."])
        if lagging
        else "On no line here is another tool's mean below privsql's by three standard errors.",
    ]
    if failures:
        parts += ["## What failed", "\n".join(f"- {each}" for each in failures)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
