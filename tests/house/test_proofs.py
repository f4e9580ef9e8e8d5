"""docs/proofs.md has a rule for everything that the code knows, each with its proof and the test that tries to break it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from privsql.algebra.relations import Relation
from privsql.planning.measurements.noised import Mechanism
from privsql.privacy.events import EVENTS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "proofs.md").read_text(encoding="utf-8")
INDEX = PAGE[PAGE.index("## Index") : PAGE.index("## 1.")]
RULES = {
    found[1]: found[0]
    for found in re.finditer(r"^\*\*(\d\w?\.\w+) .*?(?=^\*\*\d|^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
}
# Rules that are tried all at once: by the generator of tables and questions (parts 1 to 3), by the tests named at the end of 4b.
TOGETHER = re.compile(r"(2|3)\.|4b\.")


def test_the_index_is_complete() -> None:
    named = set(re.findall(r"`(\w+)`", INDEX))
    assert len(RULES) > 50
    assert {each.__name__ for each in get_args(Relation)} <= named
    assert {each.name for each in Mechanism} <= named
    assert set(EVENTS) <= named


def test_the_index_names_existing_rules() -> None:
    for number in re.findall(r"\b\d\.\d+\w?\b", INDEX):
        assert number in RULES, number
    assert "4b.1" in RULES


@pytest.mark.parametrize("number", RULES)
def test_a_rule_names_its_test(number: str) -> None:
    rule = RULES[number]
    assert "*Test*:" in rule or "*Tests*:" in rule or TOGETHER.match(number), f"rule {number} names no test"
    assert "*Statement*:" in rule or "*Proof*" in rule or len(rule) > 150, f"rule {number} says nothing"
