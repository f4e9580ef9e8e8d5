"""Queries over a world of units with subqueries inside their expressions: tied by the unit, or by what tells it, to public
rows, or to rows of other people, which makes them releases of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.soundness.queries import Seen
from tests.soundness.unit_queries import From, Known, UnitGenerator

CORRELATED = {
    "tied-count", "tied-sum", "tied-value", "tied-exists", "tied-in", "tied-not-in", "tied-lookup", "tied-public", "tied-others",
}  # fmt: skip
_AGGREGATES = {
    "tied-count": ["COUNT(*)", "COUNT({})", "COUNT(DISTINCT {})", "COUNT(*) + 1"],
    "tied-sum": ["SUM({})", "COALESCE(SUM({}), 0)"],
    "tied-value": ["MAX({})", "MIN({})", "AVG({})", "MAX({}) - MIN({})"],
}


class CorrelatedGenerator(UnitGenerator):
    """Writes conditions and numbers with subqueries that are tied to the rows around them."""

    inside_subquery = False

    def condition(self, scope: list[Seen], depth: int = 2) -> str:
        known = [each for each in scope if isinstance(each, Known)]
        if self.inside_subquery or self.rng.random() > 0.4:
            return super().condition(scope, depth)
        form = self.rng.choice(["number", "exists", "in", "others"])
        if form == "others":
            return self._compared_with_others(known) or super().condition(scope, depth)
        if form == "number":
            number = self._number(known)
            compared = self.rng.choice(["> 1", "= 0", "<= 2", "IS NULL", "<> 3"])
            return f"({number} {compared})" if number else super().condition(scope, depth)
        tied = self._tied(known, self._other())
        if tied is None:
            return super().condition(scope, depth)
        text, inner, where = tied
        if form == "exists":
            self.used.add("tied-exists")
            exists = f"{self.rng.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {text} WHERE {where})"
            return f"({exists} OR {super().condition(scope, 1)})"
        mine, theirs = self._alike(known, inner)
        if mine is None or theirs is None:
            return super().condition(scope, depth)
        word = self.rng.choice(["IN", "NOT IN"])
        self.used.add("tied-in" if word == "IN" else "tied-not-in")
        return f"({mine.name} {word} (SELECT {theirs.name} FROM {text} WHERE {where}))"

    def expression(self, kind: str, scope: list[Seen], depth: int, mode: str = "any") -> str:
        if kind in ("int", "num") and not self.inside_subquery and self.rng.random() < 0.05:
            number = self._number([each for each in scope if isinstance(each, Known)])
            if number is not None:
                return number
        return super().expression(kind, scope, depth, mode)

    def _other(self) -> From:
        return self.pick(
            *self.rng.choice([("many", "refers", "deep", "once"), ("refers", "once", "rooms"), ("public",)])
        )

    def _number(self, scope: Sequence[Known]) -> str | None:
        """A subquery that is one number."""
        other = self._other()
        tied = self._tied(scope, other)
        if tied is None:
            return None
        text, inner, where = tied
        numbers = [each.name for each in inner if each.kind in ("int", "num")]
        if not numbers:
            return None
        if other.form == "once" and self.rng.random() < 0.3:
            self.used.add("tied-lookup")
            return f"(SELECT {self.rng.choice(numbers)} FROM {text} WHERE {where})"
        form = self.rng.choice(list(_AGGREGATES))
        self.used |= {form, "tied-public"} if other.form == "public" else {form}
        return f"(SELECT {self.rng.choice(_AGGREGATES[form]).format(*[self.rng.choice(numbers)] * 2)} FROM {text} WHERE {where})"

    def _compared_with_others(self, scope: Sequence[Known]) -> str | None:
        """A number compared with a noisy aggregate of other people's rows."""
        other = self.pick("once", "many", "refers", "rows")
        text, inner = self._renamed(other)
        keys = [
            (a, b) for a in scope for b in inner if a.of == b.of and a.of and a.kind == b.kind and b.keyable
        ]
        numbers = [each.name for each in inner if each.kind in ("int", "num") and each.bounded]
        mine = [each.name for each in scope if each.kind in ("int", "num")]
        if not keys or not numbers or not mine:
            return None
        self.used.add("tied-others")
        a, b = self.rng.choice(keys)
        of = self.rng.choice(
            [f"AVG({self.rng.choice(numbers)})", "COUNT(*)", f"SUM({self.rng.choice(numbers)})"]
        )
        return f"({self.rng.choice(mine)} > (SELECT {of} FROM {text} WHERE {b.name} = {a.name}))"

    def _tied(self, scope: Sequence[Known], other: From) -> tuple[str, list[Known], str] | None:
        """What a subquery reads, its columns, and the equalities that tie it to the row around."""
        text, inner = self._renamed(other)
        wanted = self.rng.choice([("unit", "clinic"), ("unit", "clinic"), ("oid",), ("code",)])
        if other.form == "public":
            wanted = tuple({each.of for each in inner} - {""})
            wanted = (self.rng.choice(sorted(wanted)),) if wanted else ()
        theirs = [b for what in wanted for b in [c for c in inner if c.of == what][:1]]
        pairs = [(a, b) for b in theirs for a in scope if a.of == b.of and a.kind == b.kind]
        if not pairs:
            return None
        ties = list({b.name: f"{b.name} = {a.name}" for a, b in pairs}.values())
        if self.rng.random() < 0.3:
            self.inside_subquery = True
            try:
                ties.append(super().condition(list(inner), 1))
            finally:
                self.inside_subquery = False
        return text, inner, " AND ".join(ties)

    def _renamed(self, other: From) -> tuple[str, list[Known]]:
        """A table whose columns have names of their own, so that those of the row around mean that row."""
        inner = [replace(each, name=self.name("z")) for each in other.scope]
        shown = ", ".join(f"{old.name} AS {new.name}" for old, new in zip(other.scope, inner, strict=True))
        return f"(SELECT {shown} FROM {other.text}) AS {self.name('w')}", inner

    def _alike(self, scope: Sequence[Known], inner: Sequence[Known]) -> tuple[Known | None, Known | None]:
        pairs = [
            (a, b) for a in scope for b in inner if a.kind == b.kind and a.kind in ("int", "num", "text")
        ]
        return self.rng.choice(pairs) if pairs else (None, None)
