"""The default tests go in, run once under coverage; for each line of the rooms the tests that reach it come out.

Kept in .cache/mutation.json with the texts it was seen on: later only test files that changed are run again, and lines of
the rooms that moved are followed. A line's tests are the quickest of each test file.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.mutation.mutate import Mutant

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "mutation.json"
ROOMS = ("analysis", "planning", "noise", "budget")
KEPT = 150  # tests of one file for one line
FEW = 5  # tests that reach a line: then those of its function's users too


@dataclass
class Reach:
    sources: dict[str, str] = field(default_factory=dict)  # the rooms, as they were
    tests: dict[str, str] = field(default_factory=dict)  # test file -> hash
    seconds: dict[str, float] = field(default_factory=dict)  # of tests that passed
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)  # file -> line -> tests

    def of(self, mutant: Mutant, most_seconds: float) -> list[str]:
        """The tests to try, quickest first, up to so many seconds: those that reach the line before those of its users."""
        reached = set() if mutant.at_import else set(self.lines.get(mutant.file, {}).get(mutant.line, ()))
        others = self._users(mutant.function) - reached if len(reached) < FEW and mutant.function else set()
        if not reached | others:
            others = {test for tests in self.lines.get(mutant.file, {}).values() for test in tests}
        chosen: list[str] = []
        for test in [*self._in_turn(reached), *self._in_turn(others)]:
            if self.seconds[test] <= most_seconds or not chosen:
                chosen.append(test)
                most_seconds -= self.seconds[test]
        return sorted(chosen, key=lambda each: self.seconds[each])

    def _in_turn(self, tests: set[str]) -> list[str]:
        """The two quickest of each file of tests, and then the quickest of all."""
        ordered = sorted(tests, key=lambda each: self.seconds[each])
        of_files: Counter[str] = Counter()
        first = []
        for test in ordered:
            of_files[test.split("::")[0]] += 1
            if of_files[test.split("::")[0]] <= 2:
                first.append(test)
        return list(dict.fromkeys([*first, *ordered]))

    def _users(self, name: str) -> set[str]:
        """Tests that reach a line of the rooms which names this."""
        word = re.compile(rf"\b{re.escape(name)}\b")
        return {
            test
            for file, reached in self.lines.items()
            for line, tests in reached.items()
            if line <= len(self._texts[file]) and word.search(self._texts[file][line - 1])
            for test in tests
        }

    @cached_property
    def _texts(self) -> dict[str, list[str]]:
        return {file: text.splitlines() for file, text in self.sources.items()}


def rooms() -> dict[str, str]:
    package = ROOT / "privsql"
    paths = [path for room in ROOMS for path in sorted((package / room).rglob("*.py"))]
    return {path.relative_to(package).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def reach() -> Reach:
    """As kept, brought up to date."""
    kept = Reach()
    if CACHE.exists():
        raw = json.loads(CACHE.read_text(encoding="utf-8"))
        names = raw.pop("names")
        lines = raw.pop("lines")
        known = {
            file: {int(line): [names[each] for each in tests] for line, tests in of.items()}
            for file, of in lines.items()
        }
        kept = Reach(**raw, lines=known)
    now = {
        path.relative_to(ROOT).as_posix(): _hash(path) for path in sorted((ROOT / "tests").rglob("test_*.py"))
    }
    changed = [file for file, seen in now.items() if kept.tests.get(file) != seen]
    followed = follow(kept, rooms(), {file for file in kept.tests if now.get(file) == kept.tests[file]})
    if changed:
        print(f"which tests reach which lines: {len(changed)} of {len(now)} test files to run", flush=True)
        with tempfile.TemporaryDirectory(prefix="privsql_reach_") as folder:
            add(followed, Path(folder), changed if kept.tests else [])
    followed.tests = now
    save(followed)
    return followed


def _hash(path: Path) -> str:
    """Of a file of tests and the texts that it reads."""
    beside = [*path.parent.glob("*.test"), *path.parent.glob("*.txt")]
    return hashlib.sha256(b"".join(each.read_bytes() for each in (path, *sorted(beside)))).hexdigest()


def save(kept: Reach) -> None:
    names = list(kept.seconds)
    places = {test: place for place, test in enumerate(names)}
    lines = {
        file: {line: [places[each] for each in tests] for line, tests in of.items()}
        for file, of in kept.lines.items()
    }
    CACHE.parent.mkdir(exist_ok=True)
    raw = {
        "sources": kept.sources,
        "tests": kept.tests,
        "seconds": kept.seconds,
        "names": names,
        "lines": lines,
    }
    CACHE.write_text(json.dumps(raw), encoding="utf-8")


def follow(kept: Reach, sources: Mapping[str, str], files: set[str]) -> Reach:
    """Lines that stayed where they now are, a changed line as the nearest one before it; only tests of these files."""
    seconds = {test: each for test, each in kept.seconds.items() if test.split("::")[0] in files}
    lines = {}
    for file, text in sources.items():
        old = {
            line: [each for each in tests if each in seconds]
            for line, tests in kept.lines.get(file, {}).items()
        }
        if kept.sources.get(file) == text:
            lines[file] = old
            continue
        same = difflib.SequenceMatcher(
            None, kept.sources.get(file, "").splitlines(), text.splitlines(), autojunk=False
        )
        moved = {
            to + i + 1: old.get(at + i + 1, [])
            for at, to, many in same.get_matching_blocks()
            for i in range(many)
        }
        last: list[str] = []
        lines[file] = {line: list(last := moved.get(line) or last) for line in range(1, text.count("\n") + 1)}
    return Reach(dict(sources), {}, seconds, lines)


def add(kept: Reach, folder: Path, files: Iterable[str]) -> None:
    """Runs these files (none: all) under coverage."""
    settings, seconds = folder / "coverage.toml", folder / "seconds.json"
    source = json.dumps([f"privsql/{room}" for room in ROOMS])
    text = f"[tool.coverage.run]\nsource = {source}\ndata_file = {json.dumps(str(folder / 'data'))}\n"
    settings.write_text(text, encoding="utf-8")
    plain = [
        "-p",
        "no:cacheprovider",
        "-q",
        "-n",
        "0",
        "-m",
        "not slow or thinned",
        "--continue-on-collection-errors",
    ]
    pytest = ["pytest", "-p", "tests.mutation.recording", *plain, *files]
    environment = {**os.environ, "PRIVSQL_SECONDS": str(seconds)}
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", *pytest]
    subprocess.run(command, cwd=ROOT, env=environment, check=False, stdout=subprocess.DEVNULL)
    read(kept, folder / "data", seconds, ROOT)


def read(kept: Reach, data: Path, seconds: Path, root: Path) -> None:
    from coverage import CoverageData

    kept.seconds |= json.loads(seconds.read_text(encoding="utf-8"))
    seen = CoverageData(str(data))
    seen.read()
    for file in kept.sources:
        for line, tests in seen.contexts_by_lineno(str(root / "privsql" / file)).items():
            reached = kept.lines.setdefault(file, {}).setdefault(line, [])
            of_files: dict[str, int] = defaultdict(int)
            for test in sorted(
                {each for each in tests if each in kept.seconds}, key=lambda each: kept.seconds[each]
            ):
                of_files[test.split("::")[0]] += 1
                if of_files[test.split("::")[0]] <= KEPT:
                    reached.append(test)
