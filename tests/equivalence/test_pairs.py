"""Pairs of equivalent queries (same.pairs) and different ones (other.pairs); equivalent ones have equal
cells, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from privsql.equivalence.release_form import Meaning, meaning
from privsql.errors import SqlError
from privsql.planning.identity import cells_of, identity
from privsql.planning.plan import Plan
from privsql.results.finish import key_values
from tests.cases.test_cases import connection_of, session_of
from tests.equivalence.falsify import Asked, cells

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Pair:
    title: str
    questions: tuple[str, str]
    settings: dict[str, str] = field(default_factory=dict)

    def plans(self) -> tuple[Plan, Plan]:
        session = session_of(self.settings.get("schema", "patients"))
        dialect = self.settings.get("dialect", "duckdb")
        one, other = self.questions
        return session.explain(one, epsilon=1.0), session.explain(other, epsilon=1.0, dialect=dialect)


def pairs(name: str) -> list[Pair]:
    found = []
    for block in (HERE / name).read_text(encoding="utf-8").split("\n== ")[1:]:
        title, *lines = block.split("\n")
        settings = {}
        while (parts := lines[0].partition(": "))[0] in ("schema", "dialect", "measured"):
            settings[parts[0]] = parts[2]
            lines.pop(0)
        one, _, other = "\n".join(lines).partition("\n--\n")
        found.append(Pair(title, (one, other), settings))
    return found


def _meaning(plan: Plan) -> Meaning:
    assert plan.release is not None
    return meaning(plan.release)


SAME, OTHER = pairs("same.pairs"), pairs("other.pairs")


def test_there_are_enough_pairs() -> None:
    assert len(SAME) >= 60
    assert len(OTHER) >= 60


@pytest.mark.parametrize("pair", SAME, ids=lambda pair: pair.title)
def test_equivalent_queries_are_recognized(pair: Pair) -> None:
    one, other = pair.plans()
    assert _meaning(one).digest == _meaning(other).digest
    assert (identity(one).digest == identity(other).digest) is ("measured" not in pair.settings)


@pytest.mark.parametrize(
    "pair", [pair for pair in SAME if "measured" not in pair.settings], ids=lambda pair: pair.title
)
def test_the_same_cells_are_measured(pair: Pair) -> None:
    connection = connection_of(pair.settings.get("schema", "patients"))
    one, other = (
        cells(Asked(sql, plan, identity(plan)), connection)
        for sql, plan in zip(pair.questions, pair.plans(), strict=True)
    )
    assert one is not None
    assert one == other


@pytest.mark.parametrize("pair", OTHER, ids=lambda pair: pair.title)
def test_different_queries_are_told_apart(pair: Pair) -> None:
    one, other = pair.plans()
    assert _meaning(one).digest != _meaning(other).digest


_ASKED = "SELECT state, diagnosis, COUNT(*), SUM(visits) FROM patients WHERE age IN (1, 2, 3) AND smoker GROUP BY ALL"
_IN_ANOTHER_PROCESS = f"""
from privsql.planning.identity import identity
from tests.cases.test_cases import session_of
print(identity(session_of("patients").explain({_ASKED!r}, epsilon=1.0)).digest)
"""


@pytest.mark.slow
def test_digests_are_the_same_in_every_process() -> None:
    """A stored answer is found again another day: nothing depends on hashes that Python makes anew each time."""
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(HERE.parents[1])}
    run = subprocess.run(
        [sys.executable, "-c", _IN_ANOTHER_PROCESS],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == identity(session_of("patients").explain(_ASKED, epsilon=1.0)).digest


def _digest(sql: str) -> str:
    return _meaning(session_of("patients").explain(sql, epsilon=1.0)).digest


def test_too_large_a_query_is_refused() -> None:
    """x + x of x + x ...: written out it would not end."""

    def doubled(column: str, times: int) -> str:
        inner = f"SELECT {column} AS x FROM patients"
        for _ in range(times):
            inner = f"SELECT x + x AS x FROM ({inner}) AS q"
        return f"SELECT COUNT(*) FROM ({inner}) AS q WHERE x > 5"

    with pytest.raises(SqlError) as refused:
        _digest(doubled("age", 30))
    assert refused.value.code == "sql-too-long"
    assert _digest(doubled("age", 10)) == _digest(doubled("age", 10).lower())
    assert _digest(doubled("age", 10)) != _digest(doubled("visits", 10))
    assert _digest(doubled("age", 2)) == _digest(
        "SELECT COUNT(*) FROM patients WHERE 6 <= age + age + (age + age)"
    )


@pytest.mark.parametrize("operator", ["+", "||", "AND"])
def test_deeply_nested_queries_are_compared(operator: str) -> None:
    """As deeply nested as queries can be."""
    part = {"+": "age", "||": "name", "AND": "smoker"}[operator]
    deep = part
    for _ in range(35):
        deep = f"({deep} {operator} {part})"
    assert _digest(f"SELECT COUNT(*) FROM patients WHERE {deep} IS NOT NULL") == _digest(
        f"SELECT COUNT({deep}) FROM patients"
    )


def test_long_lists_are_compared() -> None:
    names = [f"'{number}'" for number in range(1_500)]
    one, other = (
        f"SELECT COUNT(*) FROM patients WHERE name IN ({', '.join(each)})" for each in (names, names[::-1])
    )
    assert _digest(one) == _digest(other)


def test_the_mapping_links_equivalent_queries() -> None:
    session = session_of("patients")
    one = session.explain(
        "SELECT state AS s, diagnosis AS d, COUNT(*) AS n, SUM(change) AS v FROM patients GROUP BY s, d",
        epsilon=1.0,
    )
    other = session.explain(
        "SELECT SUM(change), COUNT(1), diagnosis, state FROM patients GROUP BY diagnosis, state", epsilon=1.0
    )
    first, second = identity(one), identity(other)
    assert first.digest == second.digest
    assert dict(zip(first.keys, second.keys, strict=True)) == {"s": "state", "d": "diagnosis"}
    assert dict(zip(first.columns, second.columns, strict=True)) == {"sum_1": "sum_1", "count_2": "count_2"}
    assert (first.meaning.key_places, second.meaning.key_places) in (((0, 1), (1, 0)), ((1, 0), (0, 1)))
    assert first.meaning.aggregates == second.meaning.aggregates[::-1]


def test_cells_are_found_again_in_another_order_of_keys() -> None:
    session = session_of("patients")
    one = session.explain(
        "SELECT state, age // 40 AS g, age > 50 AS old, smoker, COUNT(*) FROM patients GROUP BY ALL",
        epsilon=1.0,
    )
    other = session.explain(
        "SELECT COUNT(*), smoker, 50 < age, state AS s, age // 40 FROM patients GROUP BY ALL", epsilon=1.0
    )
    assert identity(one).digest == identity(other).digest
    stored, wanted = (
        [[each[name] for name in identity(plan).keys] for each in _keys(plan)] for plan in (one, other)
    )
    assert stored != wanted
    assert [stored[place] for place in cells_of(one, other)] == wanted


def _keys(plan: Plan) -> list[dict[str, object]]:
    """The keys of every cell, in the order of the cells."""
    columns = key_values(plan.space, np.arange(plan.cells, dtype=np.int64))
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_an_aggregates_meaning_does_not_depend_on_others() -> None:
    """By this an answer can be found in a larger one."""
    session = session_of("patients")
    large = session.explain(
        "SELECT state, COUNT(*), SUM(visits) FROM patients WHERE smoker GROUP BY state", epsilon=1.0
    )
    small = session.explain(
        "SELECT SUM(visits) FILTER (WHERE smoker), state AS s FROM patients GROUP BY s", epsilon=1.0
    )
    one, other = _meaning(large), _meaning(small)
    assert (one.form, one.rows, one.keys) == (other.form, other.rows, other.keys)
    assert one.aggregates[1:] == other.aggregates
