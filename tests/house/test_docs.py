"""The documentation is true: its code runs, its examples run, every error code and function is in it, no link is dead."""

from __future__ import annotations

import ast
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from privsql.algebra.functions import ALIASES, FUNCTIONS, OPERATORS
from privsql.algebra.patterns import DIRECTIVES, OPTIONS
from privsql.cli.parser import parser
from privsql.sql.parse.refusals import WAYS_OUT

ROOT = Path(__file__).resolve().parents[2]
_TOP = ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY")
PAGES = [*(ROOT / f"{name}.md" for name in _TOP), *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SQL_PAGE = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
_FAMILIES = "sql|name|refused|policy|argument|source|budget|engine"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


WITH_CODE = [page for page in PAGES if blocks(page, "python")]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {"__name__": "documentation"}
    for number, block in enumerate(blocks(page, "python"), start=1):
        exec(compile(block, f"{page.name}, python block {number}", "exec"), space)


def test_there_are_blocks_to_run() -> None:
    assert len(blocks(ROOT / "README.md", "python")) >= 4
    assert sum(len(blocks(page, "python")) for page in PAGES) >= 9
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_examples_run(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    shown = capsys.readouterr()
    assert shown.out.strip()
    assert not shown.err


@pytest.mark.slow
def test_an_example_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES[0])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not done.stderr


def test_commands_in_the_documentation_parse() -> None:
    commands = [
        shlex.split(line.removeprefix("$ "), comments=True)[1:]
        for page in PAGES
        for block in blocks(page, "console")
        for line in block.splitlines()
        if line.startswith("$ privsql ")
    ]
    assert len(commands) >= 3
    for command in commands:
        parser().parse_args(command)  # exits, and so fails, on a command that does not exist


def raised_codes() -> set[str]:
    """Every text in the package that is an error's code, and those that the gate makes from a node's name."""
    codes = {f"refused-{name.lower()}" for name in WAYS_OUT}
    for path in (ROOT / "privsql").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if re.fullmatch(rf"({_FAMILIES})-[a-z-]*[a-z]", node.value):
                    codes.add(node.value)
    return codes


def test_every_error_code_is_documented_and_no_other() -> None:
    raised = raised_codes()
    documented = set(re.findall(rf"`((?:{_FAMILIES})-[a-z-]+)`", SQL_PAGE))
    assert len(raised) > 60
    assert raised <= documented, f"add to the tables of errors in docs/sql.md: {sorted(raised - documented)}"
    assert documented <= raised, f"nothing raises these codes of docs/sql.md: {sorted(documented - raised)}"


def documented_names() -> set[str]:
    page = SQL_PAGE.replace("\\|", "|")
    return {name for quoted in re.findall(r"`([^`\n]+)`", page) for name in (quoted, quoted.split("(")[0])}


def test_every_function_and_operator_is_documented() -> None:
    names = documented_names()
    assert len(FUNCTIONS) >= 60
    for table in (FUNCTIONS, OPERATORS, ALIASES, DIRECTIVES, OPTIONS):
        assert set(table) <= names, f"add to docs/sql.md: {sorted(set(table) - names)}"


def test_links_and_files_named_in_the_documentation_exist() -> None:
    found = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        targets = [
            page.parent / target.split("#")[0]
            for target in re.findall(r"\]\(([^)\s]+)\)", text)
            if "://" not in target
        ]
        targets += [
            ROOT / name
            for name in re.findall(r"`((?:tests|privsql|docs|examples|benchmarks)/[\w./-]*\w)`", text)
        ]
        for target in targets:
            found += 1
            assert target.exists(), f"{page.name} names {target}, which is not there"
    assert found >= 20
