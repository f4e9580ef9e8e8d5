"""Where tests are: in a folder named for what they test, under a name that says which file is meant."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_the_top_level_holds_infrastructure_only() -> None:
    assert {each.name for each in TESTS.glob("*.py")} == {"conftest.py", "mutants.py", "tempo.py"}


def test_no_file_name_occurs_twice() -> None:
    names = Counter(each.name for each in TESTS.rglob("*.py") if not each.name.startswith("__"))
    assert [name for name, count in names.items() if count > 1] == []
