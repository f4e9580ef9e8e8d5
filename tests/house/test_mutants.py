"""The seeded mistakes of tests/mutants.py still have their place in the code; `make mutants` tries whether tests catch them."""

from __future__ import annotations

from pathlib import Path

from tests.audit.planted import PLANTED
from tests.mutants import COMMANDS, MUTANTS, ROOT, spots


def test_every_mutant_matches_the_code_once() -> None:
    all_of_them = [*MUTANTS, *(planted.mistake for planted in PLANTED)]
    stale = [
        each.name for each in all_of_them if len(spots(each, ROOT / "privsql")) != 1 or each.old == each.new
    ]
    assert not stale


def test_names_differ() -> None:
    assert len({each.name for each in MUTANTS}) == len(MUTANTS)


def test_commands_name_tests_that_exist() -> None:
    tests = {
        each for command in COMMANDS.values() for each in command if each.startswith(str(ROOT / "tests"))
    }
    assert len(tests) > 50
    assert [each for each in sorted(tests) if not Path(each).exists()] == []
    assert {each for mutant in MUTANTS for each in mutant.by} <= set(COMMANDS)
