"""Counts beside sums of an argument that may be NULL go in; columns that cost nothing more than the sums come
out.

A row adds heights and depths that make M together, or nothing where the argument is NULL. So a further
column, to which a row adds M where it is NULL, leaves what a row adds at M: the columns together make up
COUNT(*). Where rows are replaced within one cell, a column to which every row adds M is free as well: it
moves only as far as the sums move less.

    measured jointly                          COUNT(*) from         its noise, in columns
    GROUP BY, or people come and go           all columns           the root of their number
    one cell, people are replaced             a column of its own   1
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from privsql.algebra.choices import UNIT, kept_up_to
from privsql.algebra.exact import Name, Scalar, least
from privsql.algebra.expressions import Aggregate, Call, Expression, conjuncts
from privsql.planning.aggregates.context import AggregationContext
from privsql.planning.aggregates.count_conditions import counted, shares_of
from privsql.planning.aggregates.estimates import Estimate, Linear, Terms
from privsql.planning.aggregates.parts import Adds, Beside, Feature, Part, titled
from privsql.types import BOOLEAN


@dataclass(frozen=True)
class Columns:
    """The columns that go with sums, to each of which a row adds `one` or nothing."""

    names: tuple[str, ...]
    kinds: tuple[Beside, ...]
    one: int

    def cells(self, every: Scalar, rows: Scalar) -> list[Scalar]:
        """From the number of all rows, and of those where the argument is not NULL."""
        return [(every if kind is Beside.ROWS else every - rows) * self.one for kind in self.kinds]

    def held(self, rows: Scalar, most: int) -> tuple[Scalar, list[Scalar]]:
        """Of a unit's rows at most so many count, NULLs among them, each with the same chance: how many are
        not NULL, and these.

        In the unit's own columns each has the number of all its rows so far.
        """
        every = Name(self.names[0])
        kept = kept_up_to(rows, every, most, [UNIT])
        return kept, self.cells(least(every, most), kept)

    def title(self, condition: Expression | None) -> str:
        return f"; {titled('COUNT', None, condition)}" if self.names else ""

    def reason(self, one: str) -> str:
        """What a row adds to them, as EXPLAIN says it after what it adds to the sums."""
        nulls = f", or where that is NULL {one} to another sum" if Beside.NULLS in self.kinds else ""
        rows = f"; each adds {one} to one more, which moves only as far as the others move less"
        return nulls + (rows if Beside.ROWS in self.kinds else "")

    def features(self, argument: Expression, condition: Expression | None) -> list[Feature]:
        """What each adds up, row by row, where there is one argument."""
        found = {
            Beside.NULLS: Feature(Adds.ABSENT, argument, condition, times=self.one),
            Beside.ROWS: Feature(Adds.ONE, None, condition, times=self.one),
        }
        return [found[kind] for kind in self.kinds]

    def all_rows(self, sums: Sequence[str], one: Fraction) -> Terms:
        """What COUNT(*) is computed from, if it is counted here."""
        own = self.of(Beside.ROWS)
        names = [own] if own else [*sums, *self.names] if self.names else []
        return tuple((name, 1 / one) for name in names)

    def nulls(self, one: Fraction) -> Terms:
        own = self.of(Beside.NULLS)
        return ((own, 1 / one),) if own else ()

    def of(self, kind: Beside) -> str | None:
        return next((name for name, each in zip(self.names, self.kinds, strict=True) if each is kind), None)


def columns_beside(number: int, kinds: Sequence[Beside], one: int) -> Columns:
    return Columns(
        tuple(f"{kind.value}_{number + place}" for place, kind in enumerate(kinds)), tuple(kinds), one
    )


# -- which counts --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Wanted:
    """Counts that may be measured beside sums, by their names; `public`: those of all rows, where their
    number is public.
    """

    counts: Mapping[str, Aggregate]
    public: tuple[str, ...] = ()

    def rows(self, condition: Expression | None) -> list[str]:
        """Those of all rows of a condition."""
        return [
            name
            for name, each in self.counts.items()
            if each.argument is None and each.condition == condition
        ]

    def nulls(self, argument: Expression, condition: Expression | None) -> list[str]:
        """Those of the rows of a condition where an argument is NULL."""
        is_null = Call("is_null", (argument,), BOOLEAN)
        missing = {is_null} if condition is None else {*conjuncts(condition), is_null}
        return [
            name
            for name, each in self.counts.items()
            if (what := counted(each)) and set(conjuncts(what)) == missing
        ]

    def kinds(
        self, arguments: Collection[Expression], condition: Expression | None, context: AggregationContext
    ) -> tuple[Beside, ...]:
        """What columns they need beside the sums of these arguments."""
        rows = bool(self.rows(condition))
        nulls = len(arguments) == 1 and any(self.nulls(each, condition) for each in arguments)
        if not context.one_replaced_cell:
            return (Beside.NULLS,) if rows or nulls else ()
        return ((Beside.NULLS,) if nulls else ()) + ((Beside.ROWS,) if rows else ())


def wanted_beside(
    counts: Mapping[str, Aggregate], divided: Collection[tuple[str, str]], context: AggregationContext
) -> Wanted:
    """Without a whole and its shares, of which the quotient is known better if they are measured together."""
    apart = {name for whole, shares in shares_of(counts, divided) for name in (whole, *shares)}
    rest = {name: each for name, each in counts.items() if name not in apart}
    public = tuple(name for name, each in rest.items() if context.rows_are_public and counted(each) is None)
    return Wanted({name: each for name, each in rest.items() if name not in public}, public)


def shared_counts(
    wanted: Wanted,
    parts: list[Part],
    carrying: Sequence[tuple[int, Collection[Expression], Expression | None]],
) -> Iterator[tuple[str, Estimate]]:
    """The counts that parts carry, each from all that do, the surer the more; `carrying`: by place, with what
    they are about.
    """
    for condition in dict.fromkeys(condition for _, _, condition in carrying):
        places = [place for place, _, each in carrying if each == condition and parts[place].all_rows]
        names = wanted.rows(condition)
        if not names or not places:
            continue
        precisions = [Fraction(1, len(parts[place].all_rows)) for place in places]
        terms: list[tuple[str, Fraction]] = []
        for place, precision in zip(places, precisions, strict=True):
            share, part = precision / sum(precisions), parts[place]
            terms += [(column, share * weight) for column, weight in part.all_rows]
            parts[place] = replace(part, loudest=max(1.0, float(share) * math.sqrt(len(part.all_rows))))
        yield from ((name, Linear(tuple(terms), whole=True)) for name in names)
    for place, arguments, condition in carrying:
        for argument in arguments if parts[place].nulls and len(arguments) == 1 else ():
            yield from (
                (name, Linear(parts[place].nulls, whole=True)) for name in wanted.nulls(argument, condition)
            )
