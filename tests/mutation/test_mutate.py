"""The mutants of a few lines, one by one; and that tests are found for lines that moved."""

from __future__ import annotations

import ast

import pytest

from tests.mutation.mutate import Mutant, difference, mutants, mutated
from tests.mutation.reach import Reach, follow, rooms

TEXT = '''"""A docstring with 1 < 2."""
LIMIT: int = 3
Kind = int | None


def most(values: list[int], least: int = 0) -> int:
    """Never changed: 4 + 5."""
    assert values, "not 6"
    if not values or least < 1:
        raise ValueError(f"more than {7 + 8}")
    log("nine" * 9)
    total = 0
    for each in values:
        total += each * 2
    return max(total, -LIMIT)


def holds(a: bool) -> bool:
    return a == True
'''


def test_every_mutant_of_a_few_lines():
    found = mutants("room/file.py", TEXT)
    assert [(each.line, each.kind, *difference(each, TEXT)) for each in found] == [
        (2, "constant", "LIMIT: int = 3", "LIMIT: int = 4"),
        (
            6,
            "constant",
            "def most(values: list[int], least: int=0) -> int:",
            "def most(values: list[int], least: int=1) -> int:",
        ),
        (9, "condition True", "if not values or least < 1:", "if True:"),
        (9, "condition False", "if not values or least < 1:", "if False:"),
        (9, "and/or", "if not values or least < 1:", "if not values and least < 1:"),
        (9, "not removed", "if not values or least < 1:", "if not not values or least < 1:"),
        (9, "comparison", "if not values or least < 1:", "if not values or least <= 1:"),
        (9, "constant", "if not values or least < 1:", "if not values or least < 2:"),
        (10, "raise removed", "raise ValueError(f'more than {7 + 8}')", "pass"),
        (12, "constant", "total = 0", "total = 1"),
        (14, "update removed", "total += each * 2", "pass"),
        (14, "operator", "total += each * 2", "total -= each * 2"),
        (14, "operator", "total += each * 2", "total += each / 2"),
        (14, "constant", "total += each * 2", "total += each * 3"),
        (15, "swapped", "return max(total, -LIMIT)", "return min(total, -LIMIT)"),
        (15, "minus removed", "return max(total, -LIMIT)", "return max(total, +LIMIT)"),
        (15, "return None", "return max(total, -LIMIT)", "return None"),
        (19, "comparison", "return a == True", "return a != True"),
        (19, "constant", "return a == True", "return a == False"),
    ]
    assert [each.function for each in found if each.at_import] == ["LIMIT", "most"]


@pytest.mark.slow
def test_mutants_of_the_rooms_can_be_read():
    """Of every sixth file its first, its last and one between."""
    for file, text in list(rooms().items())[::6]:
        listed, plain = mutants(file, text), ast.unparse(ast.parse(text))
        for each in {*listed[:1], *listed[len(listed) // 2 :][:1], *listed[-1:]}:
            assert ast.unparse(ast.parse(mutated(each, text))) != plain, each


def test_tests_follow_their_lines():
    kept = Reach({"room/file.py": "a\nb\nc\n"}, {"t.py": "x"}, {"t.py::one": 2.0, "t.py::two": 1.0, "u.py::old": 1.0},
                 {"room/file.py": {1: ["t.py::one", "u.py::old"], 2: ["t.py::two"], 3: ["t.py::one", "t.py::two"]}})  # fmt: skip
    moved = follow(kept, {"room/file.py": "a\nnew\nb\nc\n"}, {"t.py"})
    assert moved.lines == {"room/file.py": {
        1: ["t.py::one"], 2: ["t.py::one"], 3: ["t.py::two"], 4: ["t.py::one", "t.py::two"]}}  # fmt: skip
    assert moved.of(Mutant("room/file.py", 0, 4, "constant", "", False), 10.0) == ["t.py::two", "t.py::one"]
    assert moved.of(Mutant("room/file.py", 0, 4, "constant", "", False), 1.0) == ["t.py::two"]
    assert moved.of(Mutant("room/file.py", 0, 1, "constant", "b", True), 10.0) == [
        "t.py::two"
    ]  # by the name that is changed


def test_lists_of_tests_are_not_shared_between_lines():
    new = follow(Reach(), {"room/file.py": "a\nb\n"}, set()).lines["room/file.py"]
    new[1].append("t.py::one")
    assert new == {1: ["t.py::one"], 2: []}
