"""Seeded mistakes go in, one at a time, into a copy of the package; each must be caught by a named quick test.

python tests/mutants.py [words]: all mutants, or those whose names contain one of the words; exits 1 if one survives,
or if its text is no longer found (then the code has moved on: write the mutant anew).
"""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROCESSES = 2
_PYTEST = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml")]
_TESTS = ROOT / "tests"
COMMANDS: dict[str, list[str]] = {
    "soundness": [str(_TESTS / "soundness"), "1500", "0", "1", "1"],
    "tightness": [*_PYTEST, str(_TESTS / "test_tightness.py")],
    "rows": [*_PYTEST, str(_TESTS / "test_soundness.py"), "-k", "once_failed or expression_fail or pattern"],
    "noise": [*_PYTEST, str(_TESTS / "test_noise_end_to_end.py")],
    "samplers": [*_PYTEST, str(_TESTS / "noise")],
    "budget": [*_PYTEST, str(_TESTS / "test_budget.py")],
    "review": [*_PYTEST, str(_TESTS / "test_review.py")],
}


@dataclass(frozen=True)
class Mutant:
    """A mistake: in this file, this text becomes that; and the commands that should see it, in order."""

    name: str
    file: str
    old: str
    new: str
    by: tuple[str, ...] = ("tightness", "soundness")


_SENSITIVITY, _PARTS, _GRID, _EXACT = "analysis/sensitivity.py", "planning/parts.py", "planning/grid.py", "planning/exact_sql.py"
_STABILITY, _RENDER, _DISJOINT, _NOISE = "analysis/stability.py", "planning/render.py", "analysis/disjoint.py", "noise/add_noise.py"
_ROWS, _NOISY = ("rows", "soundness"), ("noise",)

MUTANTS = [
    # -- sensitivity
    Mutant("GROUP BY without the factor 2 for replace-one", _SENSITIVITY, "2 * rows * size, shared * width", "rows * size, shared * width"),
    Mutant("rows of one person not counted, add-remove", _SENSITIVITY, "rows * size, shared * size", "size, size"),
    Mutant("rows of one person not counted, one total", _SENSITIVITY, "l1 = linf = rows * width", "l1 = linf = width"),
    Mutant("linf does not count rows that share a key", _SENSITIVITY, "2 * rows * size, shared * width", "2 * rows * size, width"),
    Mutant("AVG bounded like a single total", _SENSITIVITY, "keys is None and cells == 1", "keys is None"),
    Mutant("monotone under replace-one", _SENSITIVITY, "monotone and neighbours is Neighbours.ADD_REMOVE", "monotone"),
    Mutant("sums of both signs called monotone", _PARTS, "monotone=grid.low >= 0 or grid.high <= 0", "monotone=True"),
    Mutant("AVG bounded by one side", _PARTS, "around.bound(grid.steps, grid.steps, 2, reason)", "around.bound(1, 1, 2, reason)"),
    Mutant("width without 0 although NULL may occur", _GRID, "if always and not self.nullable:", "if always:"),
    Mutant("width without 0 although rows may be filtered", _PARTS, "always = around.always_counts and condition is None", "always = around.always_counts"),
    Mutant("size is the width, not the magnitude", _GRID, "return max(abs(self.low), abs(self.high))", "return self.high - self.low"),
    # -- stability
    Mutant("UNION ALL does not add up", _STABILITY, "rows = sum(side.rows for side in sides)", "rows = max(side.rows for side in sides)"),
    Mutant("UNPIVOT does not multiply", _STABILITY, "rows = below.rows * count", "rows = below.rows"),
    Mutant("tags keep copies apart even if they are alike", _STABILITY, "max(by_label.values(), default=0) + unlabelled", "1"),
    Mutant("a filter leaves the number of rows fixed", _STABILITY, "steady=below.rows == 0, why=text", "why=text"),
    Mutant("private rows called public", _STABILITY, "case Scan(private=True):", "case Scan(private=True, unit=str()):"),
    # -- disjoint counts
    Mutant("overlapping counts taken as disjoint", _DISJOINT, "return any(_contradict(a, b) for a in left for b in right)", "return True"),
    Mutant("ranges that touch taken as disjoint", _DISJOINT, "and (high_open or other_low_open))", "and True)"),
    Mutant("different columns taken as disjoint", _DISJOINT, "and one[0] == two[0] and _apart", "and _apart", ("soundness",)),
    # -- the exact SQL
    Mutant("no clamp from above", _GRID, "WHEN {test} > {high} THEN {high} ELSE {value} END", "ELSE {value} END", _ROWS[1:]),
    Mutant("NULL clamped to a bound", _GRID, "WHEN {test} > {high} THEN {high} ELSE {value} END", "WHEN {test} <= {high} THEN {value} ELSE {high} END"),
    Mutant("rounding past the ends of the grid", _GRID, "math.floor(low / step), math.ceil(high / step)", "math.ceil(low / step), math.floor(high / step) - 1", ("tightness", "soundness", "noise")),
    Mutant("key test dropped", _EXACT, "    if not tests:\n", "    if True:\n"),
    Mutant("NULL key dropped", _EXACT, 'f"({test} OR {name} IS NULL)" if with_null else test', "test", ("noise", "tightness")),
    Mutant("empty sum is NULL", _PARTS, 'total = _clean(f"coalesce(sum({value}){_where(condition)}, 0)")', 'total = _clean(f"sum({value}){_where(condition)}")', ("soundness",)),
    Mutant("sum not whole", _PARTS, 'return f"CAST({bounded} AS BIGINT)"', 'return f"CAST({bounded} AS DOUBLE)"'),
    Mutant("TRY_CAST becomes CAST", _RENDER, 'return f"TRY_CAST({args[0]} AS', 'return f"CAST({args[0]} AS', _ROWS),
    Mutant("integers not widened", _RENDER, "integer(min(each.low for each in types), max(each.high for each in types))", "call.args[0].type", _ROWS),
    Mutant("CAST to TINYINT lets an INTEGER through", _RENDER, "return next(exact, type_.sql) if type_.kind is Kind.INTEGER else type_.sql", "return type_.sql", _ROWS),
    Mutant("operands cast to the type of the result", _RENDER, "integer(min(each.low for each in types), max(each.high for each in types))", "call.type", _ROWS),
    Mutant("dates added without TRY", _RENDER, 'case "date_add" | "date_shift":\n            return f"TRY(({args[0]}) + ({args[1]}))"',
           'case "date_add" | "date_shift":\n            return f"(({args[0]}) + ({args[1]}))"', _ROWS),
    Mutant("dates made without TRY", "sql/functions.py", '"TRY(make_date({args}))"', '"make_date({args})"', _ROWS),
    Mutant("CASE has the type of its last branch", "sql/bind_expression.py", "(*args, values[-1]), build.shared_type(values))", "(*args, values[-1]), values[-1].type)", _ROWS),
    Mutant("escape patterns not checked", "sql/build.py", 'if name in ("like_escape", "ilike_escape"):', "if False:", _ROWS),
    # -- price and noise
    Mutant("scale 0.7 times too small", _NOISE, "discrete_laplace(measurement.rate, size", "discrete_laplace(measurement.rate * 10 / 7, size", _NOISY),
    Mutant("AVG noised once", _NOISE, "            if measurement.mechanism is Mechanism.PUBLIC:\n                noisy",
           '            if measurement.mechanism is Mechanism.PUBLIC or column.startswith("below"):\n                noisy', _NOISY),
    Mutant("epsilon not divided among measurements", "planning/choose.py", "share = epsilon / len(parts)", "share = epsilon", ("tightness", "soundness", "noise")),
    Mutant("selection noise halved in the price", "planning/measurement.py", "return 1 if sensitivity.monotone else 2", "return 1", ("soundness", "noise")),
    Mutant("selection noise halved in the draw", _NOISE, "select(exact_scores, measurement.rate,", "select(exact_scores, measurement.rate * 2,", _NOISY),
    Mutant("absent keys left out of the answer", _NOISE, "return NoisyTable(np.arange(size, dtype=np.int64), noisy)",
           "here = np.flatnonzero(next(iter(exact_columns.values())))\n    return NoisyTable(here, {name: each[here] for name, each in noisy.items()})", _NOISY),
    Mutant("half-width too small", "privacy/accuracy.py", "/ rate - 1.0 - 1e-12", "/ rate * 0.9 - 1.0", _NOISY),
    Mutant("exponential noise where geometric is due", "noise/samplers.py", "_TAIL_EXPONENT = 64", "_TAIL_EXPONENT = 1", ("samplers",)),
    # -- what a hostile review found
    Mutant("helper columns beside * instead of names", _EXACT, "kept = [render.identifier(field.name) for field in release.input.fields]", 'kept = ["*"]', ("review",)),
    Mutant("a DECIMAL that is no number is kept", "sql/literals.py", "if not Decimal(value).is_finite():", "if False:", ("review",)),
    Mutant("offsets of times are kept", "sql/literals.py", "return clock if clock.tzinfo is None else None", "return clock", ("review",)),
    Mutant("divisor guard removed", _RENDER, "nullif({below}, {zero})", "{below}", ("rows", "soundness")),
    # -- budget
    Mutant("charge after the run", "session.py",
           "        self._ledger.charge(plan.loss, plan.relation_of_neighbours, self._analyst, sql, _released(plan))\n        try:\n            exact = self._engine.run(plan.sql, plan.keys)\n",
           "        try:\n            exact = self._engine.run(plan.sql, plan.keys)\n            self._ledger.charge(plan.loss, plan.relation_of_neighbours, self._analyst, sql, _released(plan))\n", ("budget",)),
    Mutant("charge skipped", "session.py", "self._ledger.charge(plan.loss, plan.relation_of_neighbours", "self._ledger.charge(plan.loss * 0, plan.relation_of_neighbours", ("budget",)),
    Mutant("stored answer redrawn", "session.py", "if not fresh and question in self._stored:", "if False:", ("budget",)),
    Mutant("limit not checked", "budget/ledger.py", "self._spent + price > self._limit", "price > self._limit", ("budget",)),
]  # fmt: skip


def run(command: str, package: Path) -> tuple[bool, str]:
    """Whether the command passes with that copy of the package."""
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *COMMANDS[command]], cwd=package, env=environment, capture_output=True, text=True, timeout=900, check=False)
    return done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def copied(into: str) -> Path:
    shutil.copytree(ROOT / "privsql", Path(into) / "privsql", ignore=shutil.ignore_patterns("__pycache__"))
    return Path(into)


def try_mutant(mutant: Mutant) -> tuple[Mutant, str, float]:
    """What caught it: a command, 'SURVIVED' or 'STALE'."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="privsql_mutant_") as folder:
        path = copied(folder) / "privsql" / mutant.file
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if text.count(mutant.old) != 1:
            return mutant, "STALE", 0.0
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        for command in mutant.by:
            passed, _ = run(command, Path(folder))
            if not passed:
                return mutant, command, time.monotonic() - started
    return mutant, "SURVIVED", time.monotonic() - started


def main() -> int:
    words = sys.argv[1:]
    chosen = [each for each in MUTANTS if not words or any(word.lower() in each.name.lower() for word in words)]
    with tempfile.TemporaryDirectory(prefix="privsql_mutant_") as folder, ThreadPoolExecutor(PROCESSES) as pool:
        package = copied(folder)
        needed = list(dict.fromkeys(command for each in chosen for command in each.by))
        for command, (passed, output) in zip(needed, pool.map(lambda each: run(each, package), needed), strict=True):
            if not passed:  # else every mutant would seem to be caught
                print(f"{command} fails without any mutant:\n{output}")
                return 1
        bad = 0
        for mutant, caught, seconds in pool.map(try_mutant, chosen):
            bad += caught in ("SURVIVED", "STALE")
            print(f"{mutant.name:<55} {caught:<10} {seconds:5.1f} s", flush=True)
    print(f"{len(chosen) - bad} of {len(chosen)} mutants caught")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
