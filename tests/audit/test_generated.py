"""Audits of generated queries from the soundness generators: none fails, and none reports a false alarm."""

from __future__ import annotations

from random import Random

import pytest

import privsql
from tests.soundness.check import Runner


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "seeds"), [("rows", 4), ("units", 3)])
def test_audits_of_generated_queries_hold(kind: str, seeds: int) -> None:
    runner, audited = Runner(kind), 0
    for seed in range(seeds):
        world = runner.world(seed)
        session = privsql.connect(runner.empty, policy=world.policy)
        for number in range(2):
            generator = runner.kind.generator(Random(f"query {seed} {number}"), world)
            sql = generator.query()
            try:
                session.explain(sql, epsilon=1.0, **generator.options)
            except privsql.PrivsqlError:
                continue
            found = session.audit(sql, 1.0, releases=300, tries=25, **generator.options)
            assert found.held, f"seed {seed} query {number}: {sql}\n{found}"
            audited += 1
    runner.close()
    assert audited >= seeds
