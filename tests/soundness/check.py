"""Seeds go in; a Report comes out: how many plans were made, and every one whose bound a neighbouring pair passed.

Plans are made on an EMPTY copy of the schema, so they cannot depend on data. Each plan.sql is run by plain DuckDB on
the base table and on each neighbour; that is the whole promise of api.md, "A plan can be falsified by anyone".
"""


from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

import duckdb

import privsql
from soundness import unit_worlds, worlds
from soundness.queries import Generator
from soundness.unit_queries import UnitGenerator


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
    "units": Kind(unit_worlds.make_world, unit_worlds.load, UnitGenerator, 6, 20, again=True),
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
        schema = session._engine.schema()
        session._engine.schema = lambda: schema  # type: ignore[method-assign] -- read once, for speed
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
            except privsql.PrivsqlError as error:
                report.refusals[error.code] += 1
                continue
            except Exception as error:  # noqa: BLE001 -- any other error is a finding
                report.violations.append(f"CRASH {where}\n  {type(error).__name__}: {error}")
                continue
            found = check_plan(plan, self.variants, report, self.again)
            if found and found[0].startswith("ERROR") and self._refused_beforehand(plan):
                report.refusals["sql-engine"] += 1  # said before any data is read: prepare() does the same
                continue
            report.accepted += 1
            report.coverage.update(generator.used)
            if found:
                listed = "\n".join(dict.fromkeys(found))
                report.violations.append(f"{listed}\n  {where}\n  {plan.sql}\n  {world.describe()}")
            if rng.random() < 0.04 and not found:
                live = live or privsql.connect(self.variants[0], policy=world.policy)
                try:
                    live.query(sql, epsilon=1.0, **generator.options).fetchall()
                except Exception as error:  # noqa: BLE001
                    report.violations.append(f"QUERY {type(error).__name__}: {error}\n  {where}\n  {plan.sql}")


def _connect() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": "1", "python_enable_replacements": "false"})


def check_plan(
    plan: Any, variants: list[duckdb.DuckDBPyConnection], report: Report, again: duckdb.DuckDBPyConnection | None = None
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
        moved = False
        for index, measurement in enumerate(plan.measurements):
            changes = differences(base, other, measurement.columns[:1] if measurement.search else measurement.columns)
            total, most = sum(map(abs, changes)), max(map(abs, changes), default=0)
            moved |= total > 0
            if total > measurement.l1:
                found.append(f"L1: {total} > {measurement.l1} of {measurement.columns} ({measurement.why})")
            if sum(change * change for change in changes) > measurement.sensitivity.l2_squared:
                found.append(f"L2: {sum(change * change for change in changes)} > {measurement.sensitivity.l2_squared}")
            if most > measurement.linf:
                found.append(f"LINF: {most} > {measurement.linf} of {measurement.columns} ({measurement.why})")
            if measurement.search is not None:
                found += score_errors(measurement, base, other)
            if measurement.sensitivity.monotone and min(changes, default=0) < 0 < max(changes, default=0):
                found.append(f"MONOTONE: scores moved both ways: {changes}")
            if total == measurement.l1:
                attained.add(index)
        report.moved += moved
    report.attained += len(attained)
    return found


Cells = dict[tuple[Any, ...], dict[str, int]]


def run_exactly(plan: Any, connection: duckdb.DuckDBPyConnection) -> tuple[Any, Cells]:
    """plan.statements on plain DuckDB: (names and types), cells by key; of a histogram of values by key and value."""
    shape, cells = counted_exactly(plan, connection) if plan.counts else ([], {})
    for statement in plan.of_values:
        cursor = connection.execute(statement.sql)
        names = [each[0] for each in cursor.description]
        shape += [(each[0], str(each[1])) for each in cursor.description]
        points = next(each.search.points for each in plan.measurements if each.columns == statement.columns)
        if names != [*plan.keys, "privsql_value", "privsql_rows"]:
            raise ValueError(f"columns are {names}")
        for row in cursor.fetchall():
            *key, value, count = ("nan" if isinstance(v, float) and math.isnan(v) else v for v in row)
            if type(value) is not int or type(count) is not int or not 0 <= value < points or count < 1:
                raise ValueError(f"no count of a grid point: {value} {count}")
            if (found := (statement.columns, *key, value)) in cells:
                raise ValueError(f"{found} comes twice")
            cells[found] = {statement.columns[0]: count}
    for statement, sql in zip(plan.of_values, plan.runs[len(plan.runs) - len(plan.of_values) :], strict=True):
        if sql != statement.sql:
            check_bins(plan, statement, connection.execute(sql).fetchall(), cells)
    return shape, cells


def check_bins(plan: Any, statement: Any, rows: list[tuple[Any, ...]], cells: Cells) -> None:
    """Bins and values of the shorter form have the rows of the values that they stand for."""
    whole: dict[Any, Counter[int]] = {}
    for (columns, *key, value), cell in ((key, cell) for key, cell in cells.items() if key and key[0] == statement.columns):
        whole.setdefault((columns, *key), Counter())[value] = cell[statement.columns[0]]
    for row in rows:
        *key, value, width, count = ("nan" if isinstance(v, float) and math.isnan(v) else v for v in row)
        histogram = whole[(statement.columns, *key)]
        if sum(histogram.pop(point, 0) for point in range(value, value + width)) != count:
            raise ValueError(f"a bin has other rows than its values: {row}")
    if any(histogram.total() for histogram in whole.values()):
        raise ValueError("bins leave rows out")


def counted_exactly(plan: Any, connection: duckdb.DuckDBPyConnection) -> tuple[Any, Cells]:
    """plan.sql, which has integer columns."""
    cursor = connection.execute(plan.sql)
    names = [each[0] for each in cursor.description]
    shape = [(each[0], str(each[1])) for each in cursor.description]
    measured = [column for each in plan.measurements if each.search is None for column in each.columns]
    if names != [*plan.keys, *measured]:
        raise ValueError(f"columns are {names}, not {[*plan.keys, *measured]}")
    cells: Cells = {}
    for row in cursor.fetchall():
        key = tuple("nan" if isinstance(v, float) and math.isnan(v) else v for v in row[: len(plan.keys)])
        values = row[len(plan.keys) :]
        if not all(type(value) is int for value in values):
            raise ValueError(f"not integers: {values}")
        if key in cells:
            raise ValueError(f"the key {key} comes twice")
        cells[key] = dict(zip(measured, values, strict=True))
    if not plan.keys and len(cells) != 1:
        raise ValueError(f"{len(cells)} rows without GROUP BY")
    return shape, cells


def differences(one: Cells, two: Cells, columns: tuple[str, ...]) -> list[int]:
    absent: dict[str, int] = {}
    return [two.get(key, absent).get(c, 0) - one.get(key, absent).get(c, 0) for key in one.keys() | two.keys() for c in columns]


def price_errors(plan: Any) -> list[str]:
    """Whether the noise covers the bounds and the losses sum to what was asked for."""
    found = []
    if sum((each.loss for each in plan.measurements), Fraction(0)) > 1:
        found.append("PRICE: the measurements cost more than the epsilon asked for")
    for each in (each for each in plan.measurements if each.search is not None):
        if each.noise_scale * each.loss < 2 * score_moves(plan, each):
            found.append(f"PRICE: scale {each.scale} at epsilon {each.epsilon} for scores")
    for each in (each for each in plan.measurements if each.search is None):
        # of two scores that move, the lead of one over the other moves by both changes: together at most l1
        lead = each.linf if each.sensitivity.monotone else min(2 * each.linf, each.l1)
        factor = each.picks * lead if "noisy-max" in each.mechanism.value and not each.in_groups else each.l1
        if each.noise_scale * each.loss < factor:
            found.append(f"PRICE: scale {each.scale} at epsilon {each.epsilon} for {factor}")
    return found


def score_errors(measurement: Any, base: Cells, other: Cells) -> list[str]:
    """Whether the distances from a rank moved further, all cells together, than was paid for: steps over all rows of a cell."""
    found, column = [], measurement.columns[0]
    histograms: dict[Any, tuple[Counter[int], Counter[int]]] = {}
    for side, cells in enumerate((base, other)):
        for key, cell in cells.items():
            if column in cell and key[0] == measurement.columns:
                histograms.setdefault(key[1:-1], (Counter(), Counter()))[side][key[-1]] = cell[column]
    for level in measurement.search.levels:
        for step in (step for step in level if step.below is None and step.above is None and not step.parts):
            moved = sum(_moved(*each, step) for each in histograms.values())
            paid = measurement.search.change.moves([step.sensitivity])
            if moved > paid:
                found.append(f"SCORE: {moved} > {paid} of {step} ({measurement.why})")
    return found


def _moved(one: Counter[int], two: Counter[int], step: Any) -> Fraction:
    """How far the distance of a point from the target rank differs, at most, between two histograms of values."""
    points = {near for value in (*one, *two) for near in (value - 1, value, value + 1)}
    return max(abs(_away(one, step, point) - _away(two, step, point)) for point in points)


def _away(histogram: Counter[int], step: Any, point: int) -> Fraction:
    rows = histogram.total()
    target = step.fraction * rows
    if step.margin:
        target = max(target, Fraction(step.margin)) if 2 * step.fraction < 1 else min(target, Fraction(rows - step.margin))
    below = sum(count for value, count in histogram.items() if value < point)
    return max(Fraction(0), below - target, target - below - histogram[point])


def score_moves(plan: Any, measurement: Any) -> Fraction:
    """How far one person can move the scores of a search, by the l1 of its histogram: a row that comes or goes moves a score by
    at most max(f, 1 - f), or by 1 where ranks are counted from an end; in a single cell one row replaced moves it by 1."""
    total = Fraction(0)
    for level in measurement.search.levels:
        each = sorted(Fraction(1) if step.margin else max(step.fraction, 1 - step.fraction) for step in level)
        if plan.neighbours == "replace-one" and not plan.keys:
            total += Fraction(measurement.l1, 2) * max(Fraction(1), sum(each[-2:]))
        else:
            total += measurement.l1 * each[-1]
    return total


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
