"""Queries that are taken for the same have the same exact cells on every table; expressions keep their values.

Longer runs: `python -m tests.equivalence.falsify rows 0 100` (or units), from the seed 0 on, 100 worlds.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import duckdb
import pytest
import sqlglot

import privsql
from privsql.equivalence.normal_form import normal, normal_condition
from privsql.equivalence.written import written
from privsql.policy import load_policy
from privsql.render.duckdb import DUCKDB
from privsql.sql.bind.catalogue import Catalogue
from privsql.sql.bind.scalar.binder import ExpressionBinder
from privsql.types import Kind
from tests.equivalence.falsify import Tally, falsify
from tests.soundness.check import Runner
from tests.soundness.queries import Generator

WORLDS = int(os.environ.get("PRIVSQL_MEANING_WORLDS", "25"))


def _assert_sound(tally: Tally) -> None:
    print(tally)
    assert not tally.wrong, "\n\n".join(tally.wrong)
    assert tally.compared > 0.15 * tally.planned, f"too few are found to be the same: {tally}"
    assert tally.told > 0.3 * tally.differ, f"too much alike is not found to be the same: {tally}"


@pytest.mark.parametrize("seed", range(2))
def test_equivalent_queries_have_the_same_cells(seed: int) -> None:
    _assert_sound(falsify(seed, 1, "rows", queries=4))


@pytest.mark.slow
def test_equivalent_queries_over_units_have_the_same_cells() -> None:
    _assert_sound(falsify(0, 2, "units", queries=4))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "worlds"), [("rows", WORLDS), ("units", WORLDS // 4)]
)  # those take four times as long
def test_equivalent_queries_have_the_same_cells_at_length(kind: str, worlds: int) -> None:
    _assert_sound(falsify(1_000, worlds, kind, variants=12))


def test_normal_forms_keep_values() -> None:
    _assert_kept(range(2))


@pytest.mark.slow
def test_normal_forms_keep_values_at_length() -> None:
    _assert_kept(range(1_000, 1_000 + 2 * WORLDS))


def _assert_kept(seeds: range) -> None:
    """On adversarial rows: as values in the same type, as conditions true in the same rows; and done twice as done once."""
    runner, tried, changed = Runner(), 0, 0
    try:
        for seed in seeds:
            world = runner.world(seed)
            catalogue = Catalogue(
                privsql.connect(runner.empty, policy=world.policy)._pipeline.engine.schema(),
                load_policy(world.policy),
            )
            source = catalogue.source("t")
            assert source is not None
            scan: Any = source.relation
            required = frozenset(
                name for name, each in scan.claims.items() if not each.nullable and name not in scan.casts
            )
            generator = Generator(Random(f"normal {seed}"), world)
            binder = ExpressionBinder(lambda node, source=source: source.find(node.name, None, None))
            scope = [each for each in generator.table() if each.kind != "other"]
            for _ in range(40):
                text = generator.expression(
                    generator.rng.choice(["bool", "bool", "int", "num", "text", "date"]), scope, 3
                )
                try:
                    bound = binder.bind(sqlglot.parse_one(text, read="duckdb"))
                except (privsql.PrivsqlError, sqlglot.errors.SqlglotError):
                    continue
                value, condition = normal(bound, required), normal_condition(bound, required)
                tried, changed = tried + 1, changed + (written(value) != written(bound))
                assert written(normal(value, required)) == written(value), text
                one, other = DUCKDB.expression(bound), DUCKDB.expression(value)
                assert value.type.kind is bound.type.kind, text
                tests = [f"({one}) IS NOT DISTINCT FROM ({other})"]
                if bound.type.kind is not Kind.INTEGER:  # a column may be of a narrower type than is believed
                    tests.append(f"typeof({one}) = typeof({other})")
                tests.append(f"CAST({one} AS VARCHAR) IS NOT DISTINCT FROM CAST({other} AS VARCHAR)")
                if bound.type.kind.value == "BOOLEAN":
                    assert written(normal_condition(condition, required)) == written(condition), text
                    tests.append(f"(({one}) IS TRUE) = (({DUCKDB.expression(condition)}) IS TRUE)")
                for connection in runner.variants[:2]:
                    wrong = _untrue(connection, one, tests, DUCKDB.rows(scan))
                    assert not wrong, f"seed {seed}: {text}\n  {one}\n  {other}\n  {wrong}"
    finally:
        runner.close()
    print(f"{tried} expressions, {changed} of them changed")
    assert tried > 20 * len(seeds)
    assert changed > 0.15 * tried


def _untrue(connection: duckdb.DuckDBPyConnection, one: str, tests: list[str], table: str) -> list[Any]:
    try:
        connection.execute(f"SELECT {one} FROM {table}").fetchall()
    except duckdb.Error:
        return []  # refused before any data is read, whatever its form
    return connection.execute(
        f"SELECT {', '.join(tests)} FROM {table} WHERE NOT ({' AND '.join(tests)})"
    ).fetchall()
