"""Mutants and the tests to try on each go in; what caught each comes out.

Every mutant has a forked process and a copy of the tree. The heavy libraries are imported once, here, before the fork;
privsql and the tests are imported after it, from the copy.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.mutate import Mutant, mutated
from tests.mutation.reach import ROOT

HEAVY = (
    "pytest",
    "hypothesis",
    "numpy",
    "pandas",
    "duckdb",
    "sqlglot.optimizer.qualify",
    "scipy.stats",
    "matplotlib.pyplot",
)
PATIENCE = 6.0  # times what the tests took when they were recorded
LEAST_PATIENCE = 60.0
SURVIVED = "survived"
BROKEN = 70  # the exit code of a process that could not run its tests


@dataclass(frozen=True)
class Trial:
    mutant: Mutant | None  # None: the rooms as `ast.unparse` writes them, unchanged
    tests: tuple[str, ...]
    seconds: float  # that the tests took when they were recorded


@dataclass
class _Running:
    trial: Trial
    slot: Path
    process: int
    until: float


def copy_tree(into: Path) -> Path:
    """Everything that git would keep, and what it does not know yet."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, into / name)
    return into


def try_all(
    trials: Sequence[Trial], sources: Mapping[str, str], folder: Path, processes: int
) -> Iterator[tuple[Trial, str]]:
    """Each with what caught it: a test, 'timeout', 'import' or SURVIVED; as they end."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for name in HEAVY:
        importlib.import_module(name)
    free = [copy_tree(folder / str(number)) for number in range(processes)]
    left, running, made = list(trials), [], 0
    while left or running:
        while left and free:
            made += 1
            running.append(_start(left.pop(0), sources, free.pop(), made))
        time.sleep(0.05)
        for each in list(running):
            ended = os.waitid(os.P_PID, each.process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
            late = not ended and time.monotonic() > each.until
            if ended or late:
                _kill(each.process)  # and what its tests left running, while its number is still its own
                _, status = os.waitpid(each.process, 0)
                yield each.trial, "timeout" if late else _caught(each.slot, os.waitstatus_to_exitcode(status))
                running.remove(each)
                if each.trial.mutant:
                    _put(each.slot, {each.trial.mutant.file: sources[each.trial.mutant.file]}, 0)
                free.append(each.slot)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _put(slot: Path, texts: Mapping[str, str], made: int) -> None:
    """Each time with a time of its own: Python tells compiled files apart by whole seconds."""
    for file, text in texts.items():
        path = slot / "privsql" / file
        path.write_text(text, encoding="utf-8")
        os.utime(path, (1_000_000_000 + made, 1_000_000_000 + made))


def _start(trial: Trial, sources: Mapping[str, str], slot: Path, made: int) -> _Running:
    mutant = trial.mutant
    if mutant:
        _put(slot, {mutant.file: mutated(mutant, sources[mutant.file])}, made)
    else:
        _put(slot, {file: ast.unparse(ast.parse(text)) for file, text in sources.items()}, made)
    (slot / "caught").unlink(missing_ok=True)
    process = os.fork()
    if not process:
        code = BROKEN
        try:
            code = _run(slot, trial.tests)
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)
    return _Running(trial, slot, process, time.monotonic() + max(LEAST_PATIENCE, PATIENCE * trial.seconds))


def _run(slot: Path, tests: Sequence[str]) -> int:
    """In the forked process."""
    os.setsid()
    os.chdir(slot)
    output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for each in (1, 2):
        os.dup2(output, each)
    os.environ["PYTHONPATH"] = str(slot)
    sys.path[:] = [
        str(slot),
        *(each for each in sys.path if Path(each).resolve() not in (ROOT, ROOT / "tests" / "mutation")),
    ]
    for name in [each for each in sys.modules if each.split(".")[0] in ("tests", "privsql")]:
        del sys.modules[name]
    import pytest

    class Catch:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                Path(slot, "caught").write_text(report.nodeid, encoding="utf-8")

    options = [
        "-x",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "--tb=short",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ]
    first = likely(tests)
    for batch in (first, [each for each in tests if each not in first]):
        code = int(pytest.main([*options, *batch], plugins=[Catch()])) if batch else 0
        if (
            code == pytest.ExitCode.USAGE_ERROR
        ):  # the mutant may be in the names of tests: then all of their parameters
            code = int(
                pytest.main(
                    [*options, *dict.fromkeys(each.split("[")[0] for each in batch)], plugins=[Catch()]
                )
            )
        if code:
            return code
    return 0


def likely(tests: Sequence[str]) -> list[str]:
    """The quickest tests of the files with most of them: they catch most mutants, before the other files are even imported."""
    files = Counter(each.split("::")[0] for each in tests)
    return [
        each
        for file, _ in files.most_common(3)
        for each in [t for t in tests if t.startswith(f"{file}::")][:8]
    ]


def _caught(slot: Path, code: int) -> str:
    caught, output = slot / "caught", (slot / "output").read_text(encoding="utf-8")
    if code == BROKEN or (
        code == 4 and not re.search("ERROR collecting|while loading conftest", output)
    ):  # tests not found
        raise RuntimeError(output[-3000:])
    if code == 0:
        return SURVIVED
    return caught.read_text(encoding="utf-8") if caught.exists() else f"import (pytest ended with {code})"
