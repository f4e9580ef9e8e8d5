"""Counts beside sums of a nullable argument go in; columns that cost nothing beyond the sums come out.

A row adds heights and depths that make M together, or nothing where the argument is NULL. So a further
column, to which a row adds M where the argument is NULL, keeps what a row adds at M: the columns together
make up COUNT(*). Where rows are replaced within one cell, a column to which every row adds M is free as well:
it moves only as far as the sums move less.

    measured jointly                          COUNT(*) from         its noise, in columns
    GROUP BY, or people come and go           all columns           the root of their number
    one cell, people are replaced             a column of its own   1
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from privsql.algebra.choices import UNIT, kept_up_to
from privsql.algebra.exact import Name, Scalar, least
from privsql.algebra.expressions import SPREAD, Expression
from privsql.planning.aggregates.context import AggregationContext
from privsql.planning.aggregates.count_conditions import counted, shares_of
from privsql.planning.aggregates.estimate import ALL_ROWS, PARTS_OF_A_ROW, Terms
from privsql.planning.aggregates.parts import Adds, Beside, Feature, titled
from privsql.planning.aggregates.release_parts import Named, ReleaseParts, Wanted, is_about
from privsql.planning.aggregates.sums import Linear


@dataclass(frozen=True)
class Columns:
    """Columns beside sums, to each of which a row adds `one` or nothing."""

    names: tuple[str, ...]
    kinds: tuple[Beside, ...]
    one: int

    def cells(self, every: Scalar, rows: Scalar) -> list[Scalar]:
        """The cells, from the number of all rows and of those where the argument is not NULL."""
        return [(every if kind is Beside.ROWS else every - rows) * self.one for kind in self.kinds]

    def held(self, rows: Scalar, most: int) -> tuple[Scalar, list[Scalar]]:
        """Keep at most so many of a unit's rows, NULLs included, each with the same probability: how many are
        not NULL, and the columns of the kept rows.

        In the unit's own columns each one holds the number of all its rows so far.
        """
        every = Name(self.names[0])
        kept = kept_up_to(rows, every, most, [UNIT])
        return kept, self.cells(least(every, most), kept)

    def title(self, condition: Expression | None) -> str:
        return f"; {titled('COUNT', None, condition)}" if self.names else ""

    def reason(self, one: str) -> str:
        """What a row adds to these columns, for EXPLAIN, after what it adds to the sums."""
        nulls = f", or where that is NULL {one} to another sum" if Beside.NULLS in self.kinds else ""
        rows = f"; each adds {one} to one more, which moves only as far as the others move less"
        return nulls + (rows if Beside.ROWS in self.kinds else "")

    def features(self, argument: Expression, condition: Expression | None) -> list[Feature]:
        """What each column adds up, row by row, if there is one argument."""
        found = {
            Beside.NULLS: Feature(Adds.ABSENT, argument, condition, times=self.one),
            Beside.ROWS: Feature(Adds.ONE, None, condition, times=self.one),
        }
        return [found[kind] for kind in self.kinds]

    def all_rows(self, sums: Sequence[str], one: Fraction) -> Terms:
        """The terms of COUNT(*), if it is counted here."""
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
def wanted_beside(
    aggregates: Sequence[Named], divided: Collection[tuple[str, str]], context: AggregationContext
) -> Wanted:
    """The counts that no sums of this release give, without a whole and its shares: measured together, their
    quotient is more accurate.
    """
    sums = {
        (each.argument, each.condition)
        for _, each in aggregates
        if each.function in ("sum", "avg") or (each.function in SPREAD and each.by is None)
    }
    told = {
        name
        for name, each in aggregates
        for argument, condition in sums
        if argument is not None and each.condition == condition and is_about(each, argument, context.facts)
    }
    counts = {name: each for name, each in aggregates if each.function == "count" and name not in told}
    apart = {name for whole, shares in shares_of(counts, divided) for name in (whole, *shares)}
    rest = {name: each for name, each in counts.items() if name not in apart}
    public = tuple(name for name, each in rest.items() if context.rows_are_public and counted(each) is None)
    return Wanted({name: each for name, each in rest.items() if name not in public}, public)


def add_carried_counts(found: ReleaseParts) -> None:
    """Add the counts that sums carry, and the public number of rows."""
    for condition in dict.fromkeys(each.condition for each in found.carriers):
        _add_all_rows(found, condition)
    for each in found.carriers:
        nulls = found.parts[each.place].nulls
        for argument in each.arguments if nulls and len(each.arguments) == 1 else ():
            for name in found.wanted.nulls(argument, each.condition):
                found.estimates[name] = Linear(nulls, whole=True)
    if found.parts:
        all_rows = Linear(((ALL_ROWS, Fraction(1, PARTS_OF_A_ROW)),), whole=True)
        found.estimates |= dict.fromkeys(found.wanted.public, all_rows)


def _add_all_rows(found: ReleaseParts, condition: Expression | None) -> None:
    """Add COUNT(*) of a condition from all sums that carry it: the more sums, the more accurate."""
    places = [
        each.place
        for each in found.carriers
        if each.condition == condition and found.parts[each.place].all_rows
    ]
    names = found.wanted.rows(condition)
    if not names or not places:
        return
    precisions = [Fraction(1, len(found.parts[place].all_rows)) for place in places]
    terms: list[tuple[str, Fraction]] = []
    for place, precision in zip(places, precisions, strict=True):
        share, part = precision / sum(precisions), found.parts[place]
        terms += [(column, share * weight) for column, weight in part.all_rows]
        loudest = max(1.0, float(share) * math.sqrt(len(part.all_rows)))
        found.parts[place] = replace(part, loudest=loudest)
    found.estimates |= dict.fromkeys(names, Linear(tuple(terms), whole=True))
