"""The package goes in; the figures of its shape come out, each beside the most that it may be.

    python tools/house.py            print them; exit 1 where one is past its ceiling
    python tools/house.py --list     and name the places

A ceiling is where the code stands today: lower it whenever the code gets better, never raise it. The aim is
where the house is going.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import sqlglot

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "privsql"
LONGEST_LINE, LONGEST_FUNCTION, MOST_BRANCHES, LONGEST_FILE, MOST_FILES = 110, 60, 15, 400, 15
REPEATED = 6  # lines in a row that stand in two places
# files of ours in SQLite, which no engine reads
OWN_DATABASES = ("privsql/answers/answer_file.py", "privsql/answers/release_file.py")
_SQL = re.compile(r"\b(SELECT|FROM|WHERE|GROUP BY|ORDER BY|CAST\(|CASE WHEN|PARTITION BY|FILTER \(|OVER \()")
_ALIAS = re.compile(r" AS \w+$")
_CLAUSE = re.compile(r"(FROM|WHERE|GROUP BY|ORDER BY|PARTITION BY)\b")


@dataclass(frozen=True)
class Source:
    """One file of the package, read once."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def room(self) -> str:
        return str(self.path.parent.relative_to(ROOT))

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


@dataclass(frozen=True)
class Figure:
    """A number about the whole package, the places it counts, and what it may be at most."""

    what: str
    places: Sequence[str]
    ceiling: int
    aim: int = 0

    @property
    def value(self) -> int:
        return len(self.places)


def sources() -> list[Source]:
    """All files of the package."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return [Source(path, text, ast.parse(text)) for path in paths for text in [path.read_text()]]


def long_lines(files: Sequence[Source]) -> list[str]:
    return [
        f"{file.name}:{number}"
        for file in files
        for number, line in enumerate(file.lines, 1)
        if len(line) > LONGEST_LINE
    ]


def unformatted(files: Sequence[Source]) -> list[str]:
    return [
        f"{file.name}:{number}"
        for file in files
        for number, line in enumerate(file.lines, 1)
        if "# fmt: skip" in line
    ]


def _functions(file: Source) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(file.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def long_functions(files: Sequence[Source]) -> list[str]:
    found = [
        ((node.end_lineno or 0) - node.lineno + 1, f"{file.name}:{node.lineno} {node.name}")
        for file in files
        for node in _functions(file)
    ]
    return [
        f"{place}, {length} lines"
        for length, place in sorted(found, reverse=True)
        if length > LONGEST_FUNCTION
    ]


def branching() -> list[str]:
    """By McCabe's number, as ruff counts it."""
    command = ["ruff", "check", "--select", "C901", "--config", f"lint.mccabe.max-complexity={MOST_BRANCHES}"]
    options = ["--output-format", "concise", "--no-cache", str(PACKAGE)]
    printed = subprocess.run(
        [sys.executable, "-m", *command, *options], capture_output=True, text=True, cwd=ROOT
    )
    found = [line for line in printed.stdout.splitlines() if "C901" in line]
    assert found or printed.returncode == 0, printed.stderr
    return found


def long_files(files: Sequence[Source]) -> list[str]:
    return [f"{file.name}, {len(file.lines)} lines" for file in files if len(file.lines) > LONGEST_FILE]


def full_rooms(files: Sequence[Source]) -> list[str]:
    rooms = Counter(file.room for file in files if file.path.name != "__init__.py")
    return [f"{room}, {number} files" for room, number in sorted(rooms.items()) if number > MOST_FILES]


# the protocol of a room in which every engine has a file or a folder: one idea, in two rooms
SAME_IDEA = frozenset({"base.py"})


def repeated_file_names(files: Sequence[Source]) -> list[str]:
    names: dict[str, list[str]] = defaultdict(list)
    for file in files:
        if file.path.name not in {"__init__.py", "__main__.py", *SAME_IDEA}:
            names[file.path.name].append(file.room)
    return [f"{name}: {', '.join(rooms)}" for name, rooms in sorted(names.items()) if len(rooms) > 1]


def repeated_classes(files: Sequence[Source]) -> list[str]:
    names: dict[str, list[str]] = defaultdict(list)
    for file in files:
        for node in file.tree.body:
            if isinstance(node, ast.ClassDef):
                names[node.name].append(file.name)
    return [f"{name}: {', '.join(places)}" for name, places in sorted(names.items()) if len(places) > 1]


def _texts(file: Source) -> Iterator[tuple[int, str]]:
    """Texts but docstrings, each whole: an f-string with a name in place of whatever it holds."""
    inner = {
        id(part) for node in ast.walk(file.tree) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    documented = {
        id(node.body[0].value)
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(file.tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "held" for part in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in documented | inner:
                yield node.lineno, node.value


def is_sql(text: str) -> bool:
    """Whether a text with words of SQL parses, as a statement, its last clauses or an expression.

    Messages, which quote such words or suggest what to write, do not.
    """
    if not _SQL.search(text):
        return False
    written = text.strip().replace("{}", "held")
    if _CLAUSE.match(written):
        written = f"SELECT 1 {written}"
    elif not written.startswith(("SELECT", "WITH")):
        alone = _ALIAS.sub("", written)
        written = f"SELECT least({alone})"
    try:
        return sqlglot.parse_one(written, dialect="duckdb") is not None
    except sqlglot.errors.SqlglotError:
        return False


def sql_elsewhere(files: Sequence[Source]) -> list[str]:
    """Texts of SQL in the rooms that decide what is asked: planning, analysis, equivalence, answers."""
    rooms = ("planning", "analysis", "equivalence", "answers", "privacy", "noise", "results", "session")
    return [
        f"{file.name}:{line}"
        for file in files
        if file.path.relative_to(PACKAGE).parts[0].removesuffix(".py") in rooms
        and file.name not in OWN_DATABASES
        for line, text in _texts(file)
        if is_sql(text)
    ]


def repeated_lines(files: Sequence[Source]) -> list[str]:
    """Runs of lines that stand in two places; imports, blank lines and lone brackets do not count."""
    seen: dict[tuple[str, ...], str] = {}
    found: dict[tuple[str, str], str] = {}
    for file in files:
        imported = {
            number
            for node in ast.walk(file.tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        counted = [
            (number, line.strip())
            for number, line in enumerate(file.lines, 1)
            if len(line.strip()) > 3 and number not in imported and not line.strip().startswith("#")
        ]
        for start in range(len(counted) - REPEATED + 1):
            run = counted[start : start + REPEATED]
            key = tuple(text for _, text in run)
            place = f"{file.name}:{run[0][0]}"
            if key in seen and not _overlap(seen[key], place):
                found.setdefault((seen[key].partition(":")[0], file.name), f"{seen[key]} ~ {place}")
            seen.setdefault(key, place)
    return list(found.values())


def _overlap(one: str, other: str) -> bool:
    (file, _, line), (other_file, _, other_line) = one.partition(":"), other.partition(":")
    return file == other_file and abs(int(line) - int(other_line)) < REPEATED


def figures() -> list[Figure]:
    files = sources()
    return [
        Figure("lines of more than 110 characters", long_lines(files), 0),
        Figure("lines that the formatter skips", unformatted(files), 0),
        Figure("functions of more than 60 lines", long_functions(files), 0),
        Figure("functions with a complexity above 15", branching(), 0),
        Figure("files of more than 400 lines", long_files(files), 0),
        Figure("rooms of more than 15 files", full_rooms(files), 0),
        Figure("file names in several rooms", repeated_file_names(files), 0),
        Figure("class names in several files", repeated_classes(files), 0),
        Figure("texts with SQL in rooms that do not render", sql_elsewhere(files), 0),
        Figure("pairs of files that repeat six lines", repeated_lines(files), 0),
    ]


def main(arguments: Sequence[str]) -> int:
    found = figures()
    lines = sum(len(file.lines) for file in sources())
    print(f"{lines:,} lines of package code\n")
    print(f"{'':46} {'now':>5} {'ceiling':>8} {'aim':>5}")
    for each in found:
        past = "  past its ceiling" if each.value > each.ceiling else ""
        print(f"{each.what:46} {each.value:5} {each.ceiling:8} {each.aim:5}{past}")
        if "--list" in arguments:
            print("".join(f"    {place}\n" for place in each.places), end="")
    return int(any(each.value > each.ceiling for each in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
