"""The demo tells the story it should, from real answers."""

from __future__ import annotations

import re

import pytest

from privsql.demo import demo


@pytest.fixture(scope="module")
def story() -> str:
    return demo()


def test_the_queries_of_the_notes_are_answered(story: str) -> None:
    for grade, truth in {"A": 120, "B": 210, "C": 180, "D": 60, "F": 30}.items():
        row = re.search(rf"^ +{grade} +(-?\d+)  \[-?\d+, \d+\]   {truth}$", story, re.MULTILINE)
        assert row, f"the histogram has a row for {grade}, with an interval and the truth"
        assert abs(int(row[1]) - truth) < 60  # 60 is 30 scales: never by chance
    assert re.search(r"^ +orange   orange \(400; banana 300, apple 100\)$", story, re.MULTILINE)
    assert re.search(r"^ +1 +\d+(\.\d+)?  \[[\d.]+, [\d.]+\]   20\.82$", story, re.MULTILINE)


def test_error_bars(story: str) -> None:
    bars = re.findall(r"^ +(\d+)\+  #*-* +-?\d+ \+- 12   truth \d+$", story, re.MULTILINE)
    assert bars == ["0", "10", "20", "30", "40"]


def test_refusals_show_the_real_error_and_a_repair(story: str) -> None:
    assert "[refused-rows]" in story
    assert "GROUP BY town: which values occur is itself private [refused-unknown-keys]" in story
    assert story.index("[refused-unknown-keys]") < story.index("WHERE town IN") < story.index("Sai Kung  ")


def test_repeating_is_free_and_the_budget_runs_out(story: str) -> None:
    assert "repeated query: no cost" in story
    assert "epsilon 3.5 was spent before, 3.5 now" in " ".join(story.split())
    first, second = (
        re.search(r"^ +A +(-?\d+ +\[.*?\])", part, re.MULTILINE) for part in story.split("6. The same query")
    )
    assert first
    assert second
    assert first[1] == second[1]
    assert "remaining: epsilon 1.5" in story
    assert "[budget-exhausted]" in story


def test_the_demo_says_that_its_people_are_made_up(story: str) -> None:
    assert "The people are made up" in story
    assert "l1 = 2, linf = 1" in story
    assert max(map(len, story.splitlines())) <= 140
