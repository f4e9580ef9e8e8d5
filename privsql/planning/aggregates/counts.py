"""Counts go in; their measurements come out: of rows, of different values, of units, of shares of a whole."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction

from privsql.algebra.choices import UNIT, FairChoice, kept_up_to
from privsql.algebra.exact import (
    WIDE,
    Cases,
    Cast,
    Constant,
    CountDistinctIn,
    Fold,
    Name,
    Operation,
    Scalar,
    SomeDistinct,
    Value,
    added,
    coalesced,
    fair_hash,
    least,
    op,
    total,
)
from privsql.algebra.expressions import Aggregate, Call, Column, Expression, columns_of
from privsql.planning.aggregates.context import AggregationContext
from privsql.planning.aggregates.count_conditions import counted, disjoint_groups, shares_of, without
from privsql.planning.aggregates.estimate import ALL_ROWS, PARTS_OF_A_ROW
from privsql.planning.aggregates.means import Ratio
from privsql.planning.aggregates.parts import Adds, Feature, Part, clean, helper, titled, value_of
from privsql.planning.aggregates.release_parts import ReleaseParts
from privsql.planning.aggregates.sums import Linear

UNCOUNTED = "which keys are shown"  # the title of a count that is not itself released


def counts_part(index: int, counts: Sequence[Aggregate], context: AggregationContext) -> Part:
    names = tuple(f"count_{index + offset}" for offset in range(len(counts)))
    once = (
        "a row counts once"
        if len(counts) == 1
        else "a row counts in only one of them, because their conditions exclude each other"
    )
    title = ", ".join(titled("COUNT", each.argument, each.condition) for each in counts)
    bound = context.bound(1, 1, len(counts), once, monotone=True)
    every = len(counts) == 1 and counts[0].argument is None and counts[0].condition is None
    if context.limits is None:
        features = tuple(Feature(Adds.ONE, each.argument, each.condition) for each in counts)
        values, cells = (
            ((), (_count(counts[0]),)) if len(counts) == 1 else _counted_once(helper(index), counts)
        )
        return Part(names, cells, bound, title, values, features=features, counts_all=every)
    # all counts of a unit in a key together stay within its rows, and each takes its share of them
    most, own = context.limits.max_rows, [Name(each) for each in names]
    upto = [added(own[: place + 1]) for place in range(len(own) - 1)]
    kept = [kept_up_to(each, added(own), most, [UNIT]) for each in upto]
    sums = [Constant(0), *kept, least(added(own), most)]
    cells = tuple(clean(total(after - before)) for before, after in itertools.pairwise(sums))
    return Part(names, cells, bound, title, of_unit=tuple(map(_count, counts)), counts_all=every)


def _counted_once(
    name: str, counts: Sequence[Aggregate]
) -> tuple[tuple[tuple[str, Scalar], ...], tuple[Scalar, ...]]:
    """Count each row only for the first condition it meets, so nothing relies on the engine agreeing that the
    conditions exclude each other.
    """
    conditions = [condition for condition in map(counted, counts) if condition is not None]
    assert len(conditions) == len(counts), "what every row meets excludes nothing"
    which = Cases(tuple((Value(each), Constant(place)) for place, each in enumerate(conditions)))
    places = (op(Operation.EQUAL, Name(name), place) for place in range(len(counts)))
    return ((name, which),), tuple(Fold("count", condition=each) for each in places)


def all_rows_part(context: AggregationContext) -> Part:
    """The part for the number of rows, where all neighbours have equally many."""
    assert context.rows_are_public
    bound = context.bound(1, 0, 1, "under replace-one the number of rows is public, and nobody can change it")
    cell = clean(Cast(Fold("count"), WIDE, total=False) * PARTS_OF_A_ROW)
    what = f"the number of rows, in units of 1/{PARTS_OF_A_ROW:,} row"
    features = (Feature(Adds.ONE, None, None, times=PARTS_OF_A_ROW),)
    return Part((ALL_ROWS,), (cell,), bound, what, features=features, public=True)


def _count(count: Aggregate) -> Scalar:
    return Fold("count", value_of(count.argument), value_of(count.condition))


def distinct_part(index: int, count: Aggregate, context: AggregationContext) -> Part:
    """The part for COUNT(DISTINCT x): each unit counts once; other values count for at most so
    many per unit.
    """
    assert count.argument is not None
    name, argument, condition = f"count_{index}", Value(count.argument), value_of(count.condition)
    title = titled("COUNT DISTINCT", count.argument, count.condition)
    if context.limits is not None and context.owner.is_unit(_columns_of(count.argument)):
        units = context.counting_units()
        bound = units.bound(1, 1, 1, "a unit counts once", monotone=True)
        own = (Fold("count", argument, condition),)
        return Part((name,), _once_each(name), bound, title, of_unit=own, counts_all=condition is None)
    if {column.name for column in columns_of(count.argument)} <= context.owner.fixed:
        context = context.counting_units()  # all rows of a unit have the same value
    bound = context.bound(1, 1, 1, "a value counts once, however many rows have it", monotone=True)
    if context.limits is None:
        return Part((name,), (Fold("count", argument, condition, distinct=True),), bound, title)
    # which of its values a unit contributes depends on the unit and the values alone
    place = fair_hash(FairChoice.DISTINCT, UNIT, argument)
    some = SomeDistinct(argument, place, context.limits.max_rows, condition)
    cell = clean(coalesced(CountDistinctIn(Name(name))))
    return Part((name,), (cell,), bound, title, of_unit=(some,))


def _columns_of(argument: Expression) -> list[str]:
    """The columns that make up a value; empty if it is made of anything else."""
    told = argument.args if isinstance(argument, Call) and argument.function == "row" else (argument,)
    columns = [each.name for each in told if isinstance(each, Column)]
    return columns if len(columns) == len(told) else []


def _once_each(name: str) -> tuple[Scalar, ...]:
    """The number of units with any rows."""
    return (clean(total(least(Name(name), 1))),)


def units_part(index: int, context: AggregationContext) -> Part:
    """The part for the number of units of a key, which shows keys where the query has no count."""
    units = context.counting_units()
    name, why = f"count_{index}", "a unit counts once"
    bound = units.bound(1, 1, 1, why if context.limits is not None else "a row counts once", monotone=True)
    if context.limits is None:
        return Part((name,), (Fold("count"),), bound, UNCOUNTED, counts_all=True)
    return Part((name,), _once_each(name), bound, UNCOUNTED, of_unit=(Fold("count"),), counts_all=True)


# -- as a family ---------------------------------------------------------------------------------------------
def add_distinct_counts(found: ReleaseParts) -> None:
    for name, each in found.left:
        if each.function == "count_distinct":
            part = distinct_part(found.number, each, found.context)
            found.add(part, {name: _one_column(part.columns[0])})


def add_shares(found: ReleaseParts) -> None:
    """Measure a count jointly with the parts that are divided by it: this makes the quotient more
    accurate.
    """
    counts = dict(found.left)
    for whole, shares in shares_of(counts, found.divided):
        if found.context.rows_are_public and counted(counts[whole]) is None and len(shares) == 1:
            _add_share_of_public_rows(found, counts, whole, shares[0])
        else:
            _add_shares(found, counts, whole, shares)


def _add_shares(
    found: ReleaseParts, counts: Mapping[str, Aggregate], whole: str, shares: Sequence[str]
) -> None:
    rest = without(counts[whole], [counts[name] for name in shares])
    part = counts_part(found.number, [*(counts[name] for name in shares), rest], found.context)
    terms = tuple((column, Fraction(1)) for column in part.columns)
    found.add(part, {whole: Linear(terms, whole=True)})
    for name, term in zip(shares, terms, strict=False):
        found.estimates[name] = Linear((term,), whole=True)
        others = tuple(each for each in terms if each != term)
        found.quotients[name, whole] = Ratio((term,), others, Fraction(0), Fraction(1), 1)


def _add_share_of_public_rows(
    found: ReleaseParts, counts: Mapping[str, Aggregate], whole: str, share: str
) -> None:
    """Of a public total, measure only the share."""
    part = counts_part(found.number, [counts[share]], found.context)
    (column,), all_rows = part.columns, (ALL_ROWS, Fraction(1, PARTS_OF_A_ROW))
    found.add(part, {share: _one_column(column), whole: Linear((all_rows,), whole=True)})
    above, below = ((column, Fraction(1)),), (all_rows, (column, Fraction(-1)))
    found.quotients[share, whole] = Ratio(above, below, Fraction(0), Fraction(1), 1)


def add_counts(found: ReleaseParts) -> None:
    """Add one part for all counts whose conditions exclude each other."""
    counts = [(name, each) for name, each in found.left if each.function == "count"]
    for group in disjoint_groups(counts):
        part = counts_part(found.number, [each for _, each in group], found.context)
        columns = zip(group, part.columns, strict=True)
        found.add(part, {name: _one_column(column) for (name, _), column in columns})


def add_public_rows(found: ReleaseParts) -> None:
    """Add the public number of rows, if an estimate uses it."""
    if any(ALL_ROWS in each.columns for each in (*found.estimates.values(), *found.quotients.values())):
        found.add(all_rows_part(found.context), {})


def _one_column(column: str) -> Linear:
    return Linear(((column, Fraction(1)),), whole=True)
