"""A plan is used again exactly while the request, the schema and all that planning looked up are the same."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd
import pytest

import privsql
from privsql.algebra.relations import Scan
from privsql.errors import SourceError
from privsql.planning.rewrites.prepared import Copy
from privsql.requests.planning_cache import MOST_PLANS, PlanCache
from privsql.schema import Schema, SchemaColumn, SchemaTable
from privsql.types import BIGINT

SCHEMA = Schema((SchemaTable("t", (SchemaColumn("x", BIGINT, "BIGINT"),)),))
OTHER = Schema((SchemaTable("t", (SchemaColumn("y", BIGINT, "BIGINT"),)),))
SCAN = Scan("t", (), None, ())


@dataclass(frozen=True)
class Request:
    sql: str = "SELECT COUNT(*) FROM t"
    max_rows: int | float | bool | None = None


class World:
    """An engine whose public rows and copies a test changes, and a planner that counts how often it plans."""

    def __init__(self) -> None:
        self.rows, self.copy, self.plans, self.cells = [(1,)], None, 0, 1
        self.cache: PlanCache[tuple[str, int]] = PlanCache(self.read, self.copies, lambda plan: self.cells)

    def read(self, sql):
        if self.rows is None:
            raise SourceError("source-connection", "closed", "connect again")
        return list(self.rows)

    def copies(self, scan):
        return self.copy

    def ask(self, request=Request(), schema=SCHEMA, looks=True):
        def make(read, copies):
            if looks:
                read("SELECT x FROM public")
                copies(SCAN)
            self.plans += 1
            return request.sql, self.plans

        return self.cache.plan(request, schema, make)


def test_the_same_request_is_planned_once():
    world = World()
    assert world.ask() == world.ask() == ("SELECT COUNT(*) FROM t", 1)
    assert world.ask(replace(Request(), max_rows=3))[1] == 2
    assert world.ask()[1] == 1


def test_an_equal_schema_is_the_same_and_another_one_is_not():
    world = World()
    world.ask()
    assert world.ask(schema=Schema(SCHEMA.tables))[1] == 1
    assert world.ask(schema=OTHER)[1] == 2
    assert world.ask()[1] == 3, "only the plans of one schema are kept"


def test_public_rows_are_looked_up_again():
    world = World()
    world.ask()
    world.rows = [(2,)]
    assert world.ask()[1] == 2
    assert world.ask()[1] == 2
    world.rows = [(1,)]
    assert world.ask()[1] == 3


def test_copies_are_looked_up_again():
    world = World()
    world.ask()
    for step, copy in enumerate([Copy("c", True), Copy("c", False), None], 2):
        world.copy = copy
        assert world.ask()[1] == world.ask()[1] == step


def test_rows_that_cannot_be_looked_up_are_refused_by_planning():
    world = World()
    world.ask()
    world.rows = None
    with pytest.raises(SourceError):
        world.ask()
    assert world.ask(looks=False)[1] == 2


def test_equal_values_of_other_types_are_other_requests():
    world = World()
    assert [world.ask(Request(max_rows=each))[1] for each in (1, 1.0, True, 1)] == [1, 2, 3, 1]


def test_refusals_are_not_cached():
    world = World()

    def refuse(read, copies):
        raise SourceError("source-x", "no", "yes")

    with pytest.raises(SourceError):
        world.cache.plan(Request(), SCHEMA, refuse)
    assert world.ask()[1] == 1


def test_few_plans_are_kept_and_none_that_rests_on_many_rows():
    world = World()
    for number in range(MOST_PLANS + 1):
        world.ask(Request(str(number)))
    assert world.ask(Request("1"))[1] == 2
    assert world.ask(Request("0"))[1] == MOST_PLANS + 2, "the oldest is gone"
    world.rows = [(each,) for each in range(10_001)]
    assert world.ask(Request("many"))[1] < world.ask(Request("many"))[1]


def test_plans_of_many_keys_are_not_kept_since_explaining_is_free_and_memory_is_not():
    world = World()
    world.cells = 10_000
    assert world.ask(Request("some")) == world.ask(Request("some"))
    world.cells = 10_001
    assert world.ask(Request("many"))[1] < world.ask(Request("many"))[1]


def test_a_session_keeps_plans_but_none_of_many_keys():
    frame = pd.DataFrame({"g": [1, 2], "h": [1, 2]})
    columns = {"g": {"range": [0, 20_000]}, "h": {"range": [0, 9]}}
    session = privsql.connect({"t": frame}, {"tables": {"t": {"columns": columns}}})
    kept = session._pipeline._plans._kept
    session.explain("SELECT CAST(g AS VARCHAR) AS k, COUNT(*) AS n FROM t GROUP BY k", 1.0)
    assert not kept
    session.explain("SELECT h, COUNT(*) AS n FROM t GROUP BY h", 1.0)
    assert len(kept) == 1
