"""Seeds go in; a Report comes out: how many plans were made, and every one whose bound a neighbouring pair passed.

Plans are made on an EMPTY copy of the schema, so they cannot depend on data. Each plan.sql is run by plain DuckDB on
the base table and on each neighbour; that is the whole promise of api.md, "A plan can be falsified by anyone". What is
compared with what is in privsql/audit/falsify.py, which audits use, too.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import duckdb

import privsql
from privsql.audit.falsify import both_ways, movements, price_errors, run_exactly
from tests.soundness import unit_worlds, worlds
from tests.soundness.composed import ComposedGenerator, plans_of
from tests.soundness.join_queries import JoinGenerator
from tests.soundness.queries import Generator
from tests.soundness.unit_queries import UnitGenerator, WindowedUnits

_NAMES = {"l1": "L1", "linf": "LINF", "l2 squared": "L2", "span of scores": "SCORE"}


@dataclass(frozen=True)
class Kind:
    """Who makes the worlds and who writes the queries."""

    make: Callable[..., Any]
    load: Callable[..., None]
    generator: type[Generator]
    neighbours: int  # of each base
    queries: int  # of each world
    again: bool = False  # the base once more, its rows in another order and on four threads: the answer must be the same


KINDS = {
    "rows": Kind(worlds.make_world, worlds.load, Generator, 4, 10),
    "composed": Kind(worlds.make_world, worlds.load, ComposedGenerator, 4, 10),
    "units": Kind(unit_worlds.make_world, unit_worlds.load, UnitGenerator, 6, 20, again=True),
    "windows": Kind(unit_worlds.make_world, unit_worlds.load, WindowedUnits, 6, 20, again=True),
    "joins": Kind(unit_worlds.make_world, unit_worlds.load, JoinGenerator, 6, 20, again=True),
}


@dataclass
class Report:
    """What a run did."""

    asked: int = 0
    accepted: int = 0
    cases: int = 0
    moved: int = 0  # cases in which some cell changed
    attained: int = 0  # measurements whose l1 some pair attained exactly
    coverage: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    @property
    def acceptance(self) -> float:
        return self.accepted / max(1, self.asked)

    def add(self, other: Report) -> None:
        for name in ("asked", "accepted", "cases", "moved", "attained"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.coverage += other.coverage
        self.refusals += other.refusals
        self.violations += other.violations

    def __str__(self) -> str:
        return (
            f"{self.cases} cases, {self.asked} queries, {self.accepted} accepted ({self.acceptance:.0%}); "
            f"{self.moved} cases moved, {self.attained} bounds attained; {len(self.violations)} violations"
        )


class Runner:
    """Connections that are reused from world to world."""

    def __init__(self, kind: str = "rows") -> None:
        self.kind = KINDS[kind]
        self.empty = _connect()
        self.variants = [_connect() for _ in range(self.kind.neighbours + 1)]
        self.again = _connect() if self.kind.again else None

    def close(self) -> None:
        for each in (self.empty, *self.variants, *([self.again] if self.again else [])):
            each.close()

    def world(self, seed: int) -> Any:
        rng = Random(f"world {seed}")
        world = self.kind.make(rng, self.empty, self.kind.neighbours)
        while not world.tables:
            world = self.kind.make(rng, self.empty, self.kind.neighbours)
        self._load(self.empty, world, None)
        for connection, tables in zip(self.variants, world.tables, strict=True):
            self._load(connection, world, tables)
        if self.again is not None:
            turned = {name: rng.sample(rows, len(rows)) for name, rows in world.tables[0].items()}
            self._load(self.again, world, turned, threads=4)
        return world

    def _load(self, connection: duckdb.DuckDBPyConnection, world: Any, tables: Any, threads: int = 0) -> None:
        connection.execute(f"SET threads = {threads or world.threads}")
        self.kind.load(connection, world, tables)

    def _refused_beforehand(self, plan: Any) -> bool:
        try:
            self.empty.execute(f"EXPLAIN {plan.sql}").fetchall()
        except duckdb.Error:
            return True
        return False

    def run(self, seed: int, report: Report, only: int | None = None) -> None:
        """One world and its queries."""
        world = self.world(seed)
        session = privsql.connect(self.empty, policy=world.policy)
        schema = session._pipeline.engine.schema()
        session._pipeline.engine.schema = lambda: schema  # type: ignore[method-assign] -- read once, for speed
        live: Any = None
        for number in range(self.kind.queries):
            rng = Random(f"query {seed} {number}")
            generator = self.kind.generator(rng, world)
            sql = generator.query()
            if only is not None and number != only:
                continue
            report.asked += 1
            where = f"seed {seed} query {number} ({world.relation}): {sql}"
            try:
                plan = session.explain(sql, epsilon=1.0, **generator.options)
                if number % 10 == 0:
                    str(plan)  # EXPLAIN has words for it
            except privsql.PrivsqlError as error:
                report.refusals[error.code] += 1
                continue
            except Exception as error:  # noqa: BLE001 -- any other error is a finding
                report.violations.append(f"CRASH {where}\n  {type(error).__name__}: {error}")
                continue
            plans = list(plans_of(session, sql, generator.options, plan, rng))
            found = [each for one in plans for each in check_plan(one, self.variants, report, self.again)]
            if found and found[0].startswith("ERROR") and any(map(self._refused_beforehand, plans)):
                report.refusals["sql-engine"] += 1  # said before any data is read: prepare() does the same
                continue
            report.accepted += 1
            report.coverage.update(generator.used)
            if found:
                listed = "\n".join(dict.fromkeys(found))
                texts = "\n  ".join(each.sql for each in plans)
                report.violations.append(f"{listed}\n  {where}\n  {texts}\n  {world.describe()}")
            if rng.random() < 0.04 and not found:
                live = live or privsql.connect(self.variants[0], policy=world.policy)
                try:
                    with warnings.catch_warnings(action="ignore", category=privsql.BoundingWarning):
                        live.query(sql, epsilon=1.0, **generator.options).fetchall()
                except Exception as error:  # noqa: BLE001
                    report.violations.append(
                        f"QUERY {type(error).__name__}: {error}\n  {where}\n  {plans[0].sql}"
                    )


def _connect() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": "1", "python_enable_replacements": "false"})


def check_plan(
    plan: Any,
    variants: list[duckdb.DuckDBPyConnection],
    report: Report,
    again: duckdb.DuckDBPyConnection | None = None,
) -> list[str]:
    """Every way in which the plan breaks its promise on the base (the first variant) and its neighbours."""
    found = price_errors(plan)
    if plan.public:  # the same for everybody, and free
        return found if plan.epsilon == 0 else [*found, "PRICE: public data has a price"]
    results = []
    for connection in variants:
        try:
            results.append(run_exactly(plan, connection))
        except duckdb.Error as error:
            found.append(f"ERROR DEPENDS ON DATA: {str(error).splitlines()[0]}")
        except ValueError as error:
            found.append(f"RESULT: {error}")
    if len(results) < len(variants):
        return found
    base_shape, base = results[0]
    if again is not None and (turned := run_exactly(plan, again)[1]) != base:
        differ = set(map(str, base.items())) ^ set(map(str, turned.items()))
        found.append(f"ORDER: the same rows in another order differ: {sorted(differ)[:4]}")
    attained: set[int] = set()
    for shape, other in results[1:]:
        report.cases += 1
        if shape != base_shape:
            found.append(f"SHAPE: {base_shape} {shape}")
        changed = False
        for moved in movements(plan, base, other):
            changed |= moved.found > 0
            if moved.passed:
                measured = plan.measurements[moved.measurement]
                found.append(
                    f"{_NAMES[moved.norm]}: {moved.found} > {moved.claimed} of {measured.columns} ({measured.why})"
                )
            if moved.norm == "l1" and moved.found == moved.claimed:
                attained.add(moved.measurement)
        found += [
            f"MONOTONE: scores moved both ways: {changes}" for _, changes in both_ways(plan, base, other)
        ]
        report.moved += changed
    report.attained += len(attained)
    return found


def run(first: int, cases: int, stop: int = 20, stride: int = 1, kind: str = "rows") -> Report:
    """Worlds from a first seed on, until that many (query, pair) cases were checked."""
    report, runner, seed = Report(), Runner(kind), first
    try:
        while report.cases < cases and len(report.violations) < stop:
            runner.run(seed, report)
            seed += stride
    finally:
        runner.close()
    return report
