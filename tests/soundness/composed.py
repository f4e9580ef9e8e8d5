"""Queries with several releases and two stages, around those of the generators; and constants for second stages."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import privsql
from privsql.planning.composed_plan import ComposedPlan
from privsql.requests.stage import Stage
from privsql.sql.split.stage_values import Rows, Shape, StageValue
from tests.soundness.queries import Generator, Seen

_VALUES = {
    "BIGINT": ["0", "1", "-1", "3", "1000", "-9223372036854775808", None],
    "DOUBLE": ["0.0", "1.5", "-2.25", "1e300", "nan", "inf", "-inf", None],
    "VARCHAR": ["a", "l", "", "é", None],
    "DATE": ["2024-01-01", "2024-02-29", None],
    "BOOLEAN": ["true", "false", None],
}
COMPOSED = {"stage-scalar", "stage-list", "stage-join", "above-window", "above-two", "above-union"}


class ComposedGenerator(Generator):
    """Writes queries of the kind that several releases answer."""

    inside = False  # of a noisy query: no other one in it

    def condition(self, scope: list[Seen], depth: int = 2) -> str:
        numbers = [each for each in scope if each.kind in ("int", "num")]
        if self.inside or not numbers or self.rng.random() > 0.12:
            return super().condition(scope, depth)
        column, own = self.rng.choice(numbers).name, self.table()
        keys = [each.name for each in own if each.keyable and each.kind == "int"]
        if keys and self.rng.random() < 0.4:
            self.used.add("stage-list")
            key, word = self.rng.choice(keys), self.rng.choice(["IN", "NOT IN"])
            return f"({column} {word} (SELECT {key} FROM t GROUP BY {key} HAVING COUNT(*) > 1))"
        self.used.add("stage-scalar")
        compared = self.rng.choice(["<", ">=", "<>", "="])
        return f"({column} {compared} (SELECT {self._aggregate(own)} FROM t))"

    def _aggregate(self, scope: list[Seen]) -> str:
        self.inside = True
        try:
            return self.aggregate([each for each in scope if each.kind != "other"])
        finally:
            self.inside = False

    def source(self, depth: int) -> tuple[str, list[Seen]]:
        text, scope = super().source(depth)
        keys = [each for each in scope if each.keyable and each.kind == "int"]
        if self.inside or not keys or self.rng.random() > 0.08:
            return text, scope
        self.used.add("stage-join")
        known = [each.name for each in self.table() if each.keyable and each.kind == "int"]
        if not known:
            return text, scope
        key, other, name = self.rng.choice(keys).name, self.rng.choice(known), self.name("yj")
        shown = ", ".join(f"ja.{each.name}" for each in scope if each.kind != "other")
        noisy = f"(SELECT {other} AS jk, COUNT(*) AS jn FROM t GROUP BY {other})"
        joined = f"(SELECT {shown}, jb.jn AS {name} FROM {text} AS ja JOIN {noisy} AS jb ON ja.{key} = jb.jk)"
        return joined, [*(each for each in scope if each.kind != "other"), Seen(name, "int", False, False)]

    def query(self) -> str:
        text = super().query()
        match self.rng.choice(["plain", "plain", "window", "two", "union"]):
            case "window":
                self.used.add("above-window")
                return f"SELECT *, COUNT(*) OVER () AS zz FROM ({text}) AS above"
            case "two":
                self.used.add("above-two")
                self.ctes, self.key_columns = [], []
                other = super().query()
                return f"SELECT (SELECT COUNT(*) FROM ({text})) AS a, (SELECT COUNT(*) FROM ({other})) AS b"
            case "union":
                self.used.add("above-union")
                return f"SELECT COUNT(*) AS n FROM ({text}) UNION ALL SELECT COUNT(*) FROM t"
        return text


def plans_of(
    session: privsql.Session, sql: str, options: dict[str, int], plan: Any, rng: Random
) -> Iterator[Any]:
    """Every plan by which a query releases something; of a second stage also those for other constants."""
    if not isinstance(plan, ComposedPlan):
        yield plan
        return
    yield from plan.releases
    pipeline = session._pipeline
    composition = pipeline.composition(Stage(sql, 1.0, **options))
    assert composition is not None, "its plan is composed"
    for place, part in enumerate(composition.parts):
        for _ in range(2 if part.needs else 0):
            given = tuple((each.name, rows(each, rng)) for each in part.needs)
            try:
                yield pipeline.plan(Stage(sql, 1.0, part=place, given=given, **options)).plan
            except privsql.Refused:
                continue  # after the first stage it is refused: nothing more is released


def rows(given: StageValue, rng: Random) -> Rows:
    """Rows that the first stage might have released."""
    count = 1 if given.shape is Shape.SCALAR else rng.choice([0, 1, 2, 3])
    return tuple(
        tuple(rng.choice(_VALUES.get(name, ["1"])) for _, name in given.columns) for _ in range(count)
    )
