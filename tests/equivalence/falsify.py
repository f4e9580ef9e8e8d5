"""Seeds go in; a Tally comes out: how many queries were found to mean the same as another, and every one that does not.

Queries of the soundness generators and variants of them are planned; those of one identity must have the same exact
cells on every table of their world. plan.sql is run by plain DuckDB, as anyone could.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from random import Random
from typing import Any

import duckdb
import sqlglot

import privsql
from privsql.planning.composed_plan import ComposedPlan
from privsql.planning.identity import Identity, identity
from privsql.planning.plan import Plan
from tests.equivalence.variants import variant
from tests.soundness.check import Runner

Cells = dict[tuple[Any, ...], tuple[int, ...]]


@dataclass
class Tally:
    """What a run did."""

    planned: int = 0
    compared: int = 0  # pairs of different SQL with one identity
    differ: int = 0  # pairs of variants of one question with different identities
    told: int = 0  # of these, those whose cells differ on some table
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        same = (
            f"{self.planned} planned, {self.compared} compared as the same, {len(self.wrong)} of them wrongly"
        )
        return f"{same}; {self.told} of {self.differ} others differ on these tables"


@dataclass(frozen=True)
class Asked:
    sql: str
    plan: Plan
    identity: Identity


def falsify(
    first: int, worlds: int, kind: str, variants: int = 8, queries: int | None = None, stop: int = 5
) -> Tally:
    tally, runner = Tally(), Runner(kind)
    try:
        for seed in range(first, first + worlds):
            _world(runner, seed, variants, queries or runner.kind.queries, tally)
            if len(tally.wrong) >= stop:
                break
    finally:
        runner.close()
    return tally


def _world(runner: Runner, seed: int, variants: int, queries: int, tally: Tally) -> None:
    world = runner.world(seed)
    session = privsql.connect(runner.empty, policy=world.policy)
    schema = session._pipeline.engine.schema()
    session._pipeline.engine.schema = lambda: schema  # type: ignore[method-assign] -- read once, for speed
    for number in range(queries):
        rng = Random(f"meaning {seed} {number}")
        generator = runner.kind.generator(rng, world)
        base = generator.query()
        texts = [base]
        for _ in range(variants):
            try:
                texts.append(variant(rng.choice(texts[-2:]), rng))
            except (sqlglot.errors.SqlglotError, AttributeError, TypeError):
                continue
        options: dict[str, Any] = dict(generator.options)
        if rng.random() < 0.2:
            options["delta"] = 1e-6
        groups: dict[str, dict[str, Asked]] = {}
        for sql in dict.fromkeys(texts):
            asked = _asked(session, sql, options)
            if asked is not None:
                tally.planned += 1
                groups.setdefault(asked.identity.digest, {}).setdefault(asked.plan.sql, asked)
        for same in groups.values():
            lead, *others = same.values()
            for other in others:
                tally.compared += 1
                for connection in runner.variants:
                    one, two = cells(lead, connection), cells(other, connection)
                    if one is not None and two is not None and one != two:
                        tally.wrong.append(f"seed {seed} query {number}\n  {lead.sql}\n  {other.sql}\n  {lead.plan.sql}\n  "
                                           f"{other.plan.sql}\n  {_difference(one, two)}\n  {world.describe()}")  # fmt: skip
                        break
        firsts = [next(iter(same.values())) for same in groups.values()]
        for other in firsts[1:]:
            tally.differ += 1
            tally.told += any(cells(firsts[0], each) != cells(other, each) for each in runner.variants)


def _asked(session: privsql.Session, sql: str, options: dict[str, Any]) -> Asked | None:
    try:
        plan = session.explain(sql, epsilon=1.0, **options)
    except privsql.PrivsqlError:
        return None
    return None if plan.public or isinstance(plan, ComposedPlan) else Asked(sql, plan, identity(plan))


def cells(asked: Asked, connection: duckdb.DuckDBPyConnection) -> Cells | None:
    """The exact cells with keys and columns in the order of the identity; absent ones and those of zeros are one.

    Histograms of values, from which quantiles are chosen, are among them: a value is one more key.
    """
    order = list(asked.identity.columns)
    histograms = {each.sql: each.columns for each in asked.plan.of_values}
    found: Cells = {}
    for sql in dict.fromkeys([asked.plan.sql, *histograms]):
        try:
            cursor = connection.execute(sql)
        except duckdb.Error:
            return None  # refused before any data is read
        names = [each[0] for each in cursor.description]
        label = sorted(map(order.index, histograms.get(sql, ())))
        columns = [names.index(name) for name in order if name in names] or [len(names) - 1]
        keys = [names.index(name) for name in asked.identity.keys]
        keys += sorted(
            set(range(len(names))) - {*keys, *columns}
        )  # which set of keys a row is of, or a value
        for row in cursor.fetchall():
            values = tuple(row[index] for index in columns)
            if any(values):
                found[(*label, *(_plain(row[index]) for index in keys))] = values
    return found


def _plain(value: Any) -> Any:
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def _difference(one: Cells, two: Cells) -> str:
    return str(
        [(key, one.get(key), two.get(key)) for key in {**one, **two} if one.get(key) != two.get(key)][:3]
    )


if __name__ == "__main__":
    print(tally := falsify(int(sys.argv[2]), int(sys.argv[3]), sys.argv[1]))
    print("\n\n".join(tally.wrong))
