"""All 22 queries of TPC-H: answers match plain DuckDB's; docs/tpch.md says what happens to each."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privsql
import privsql.noise.add_noise as noise
from privsql.planning.aggregates.sums import Linear
from privsql.planning.plan import Plan
from tests.cases.test_cases import _alike, _plain
from tests.tpch import dataset
from tests.tpch.tpch_queries import QUESTIONS, Tpch

PAGE = Path(__file__).parents[2] / "docs" / "tpch.md"


@lru_cache
def data() -> Any:
    return dataset.connection()


@lru_cache
def session(lossless: bool) -> privsql.Session:
    return privsql.connect(data(), policy=dataset.NOTHING_LOST if lossless else dataset.POLICY)


def filled(question: Tpch, first: list[tuple[Any, ...]]) -> str:
    """The SQL, with what its first step answered."""
    listed = ", ".join(f"({', '.join(map(str, row))})" for row in first)
    return question.asked.replace("{first}", listed)


def text_of(question: Tpch) -> str:
    """The SQL to plan with: constants of a first step as they would be without noise, so that the page does not change."""
    return filled(question, data().execute(question.first).fetchall() if question.first else [])


ANSWERED = [each for each in QUESTIONS if not each.code]
REFUSED = [each for each in QUESTIONS if each.code]


def _named(each: Tpch) -> str:
    return f"Q{each.number}"


def test_there_are_22_queries() -> None:
    assert [each.number for each in QUESTIONS] == list(range(1, 23))


def test_the_data_has_its_stated_size() -> None:
    counts = [
        data().execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("customer", "orders", "lineitem")
    ]
    assert counts == [500, 5000, 19971]


@pytest.mark.parametrize("question", ANSWERED, ids=_named)
def test_answers_are_those_of_plain_duckdb(question: Tpch, monkeypatch: pytest.MonkeyPatch) -> None:
    """With noise of 0 and limits that nobody reaches; what else differs is the grid that fractions are laid on."""
    monkeypatch.setattr(noise, "discrete_laplace", lambda rate, size, source: np.zeros(size, dtype=np.int64))
    monkeypatch.setattr(noise, "select", lambda scores, *_: int(np.argmax(scores)))
    asked = session(lossless=True)
    first = asked.query(question.first, epsilon=1, show_all=True).fetchall() if question.first else []
    answer = asked.query(filled(question, first), epsilon=1, show_all=True)
    ours = [tuple(map(_plain, row)) for row in answer.fetchall()]
    theirs = [
        tuple(map(_plain, row)) for row in data().execute(question.original or question.asked).fetchall()
    ]
    assert theirs, "a question that nothing answers shows nothing"
    for row in theirs:
        assert any(_alike(row, mine, 0.1, 1e-5) for mine in ours), (row, ours)
    if "LIMIT" in question.asked or not answer.plan.keys:
        assert len(ours) == len(theirs)


AS_WRITTEN = [each for each in ANSWERED if each.original and each.number not in (11, 15)]


@pytest.mark.parametrize("question", AS_WRITTEN, ids=_named)
def test_queries_are_answered_as_tpch_writes_them(question: Tpch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Q11 has a subquery in HAVING over public rows; Q15 compares all suppliers with the best one."""
    monkeypatch.setattr(noise, "discrete_laplace", lambda rate, size, source: np.zeros(size, dtype=np.int64))
    ours = session(lossless=True).query(question.original, epsilon=1, show_all=True, fresh=True).fetchall()
    found = [tuple(map(_plain, row)) for row in ours]
    theirs = [tuple(map(_plain, row)) for row in data().execute(question.original).fetchall()]
    assert theirs
    for row in theirs:
        assert any(_alike(row, mine, 0.1, 1e-5) for mine in found), (row, found)


@pytest.mark.parametrize("question", ANSWERED, ids=_named)
def test_answers_have_noise(question: Tpch) -> None:
    """The same through all of it, under the owner's limits."""
    answer = session(lossless=False).query(text_of(question), epsilon=1)
    assert len(answer.df()) >= (0 if "HAVING" in question.asked else 1)
    assert answer.plan.public or answer.receipt["epsilon"] == 1


@pytest.mark.parametrize("question", REFUSED, ids=_named)
def test_queries_that_return_people_are_refused(question: Tpch) -> None:
    """Also without ORDER BY and LIMIT: it is the rows themselves that are people's."""
    for text in (question.asked, question.asked.partition("ORDER BY")[0]):
        with pytest.raises(privsql.Refused) as caught:
            session(lossless=False).explain(text, epsilon=1)
        assert caught.value.code == question.code


def _step(plan: Plan, measurement: Any) -> Fraction:
    """What one step of a measured column is worth, in the numbers that are asked about."""
    steps = [Fraction(0)]
    for how in plan.estimates.values():
        if set(how.columns) & set(measurement.columns):
            weights = (
                [weight for _, weight in how.terms]
                if isinstance(how, Linear)
                else [(how.high - how.low) / how.one]
            )
            steps += map(abs, weights)
    return max(steps) or Fraction(1)


# -- the page ------------------------------------------------------------------------------------------------
def _bounds(plan: Plan) -> str:
    """l1 / linf of each measurement, in the units of its column; those that are alike once."""
    if plan.public:
        return "public"
    found: dict[str, int] = {}
    for each in plan.measurements:
        step = float(_step(plan, each)) if plan.estimates else _score_step(each.why)
        text = f"{each.l1 * step:.3g} / {each.linf * step:.3g}"
        found[text] = found.get(text, 0) + 1
    return "; ".join(text if count == 1 else f"{text} ({count} times)" for text, count in found.items())


def _score_step(why: str) -> float:
    grid = re.search(r"on a grid of ([0-9.e+-]+)", why)
    return float(grid[1]) if grid else 1.0


def _kept(question: Tpch) -> str:
    """The share of the exact totals that is left after bounding, all cells of the first measurement together."""
    totals = []
    for lossless in (False, True):
        plan = session(lossless).explain(text_of(question), epsilon=1)
        if plan.public:
            return "all"
        column = plan.measurements[0].columns[0]
        totals.append(data().execute(f"SELECT sum({column}) FROM ({plan.sql})").fetchone()[0])
    return f"{100 * float(totals[0] / totals[1]):.0f}%"


def rows() -> list[str]:
    """The rows of the table, as things are."""
    lines = []
    for each in QUESTIONS:
        if each.code:
            outcome, bounds, kept = f"refused: {each.why}", "", ""
        else:
            plan = session(lossless=False).explain(text_of(each), epsilon=1)
            first = session(lossless=False).explain(each.first, epsilon=1) if each.first else None
            outcome = (
                "exact and free" if plan.public else "answered, in two questions" if first else "answered"
            )
            bounds = f"{_bounds(first)}, then {_bounds(plan)}" if first else _bounds(plan)
            kept = _kept(each)
        lines.append(f"| {each.number} | {each.question} | {outcome} | {bounds} | {kept} | {each.loses} |")
    return lines


@pytest.mark.slow
def test_the_documented_results_are_current() -> None:
    """To write it anew: python -m tests.tpch.test_tpch"""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    shown = [
        line for line in lines if re.match(r"\| \d+ \|", line) and line.count("|") > 4
    ]  # not the queries as written
    assert shown == rows()


if __name__ == "__main__":
    print("\n".join(rows()))
