"""A release and what surrounds it go in; the measurements it needs come out, each with its SQL and its sensitivity."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from privsql.analysis.derive import Facts, domain_of, refine
from privsql.analysis.disjoint import are_disjoint, both
from privsql.analysis.keys import Evaluate, evaluated_domain
from privsql.analysis.sensitivity import sensitivity_of
from privsql.analysis.stability import Stability, bounded
from privsql.errors import Place, Refused
from privsql.planning import render
from privsql.planning.estimates import Estimate, Linear, Ratio
from privsql.planning.grid import LARGEST_SUM, LARGEST_VALUE, Grid, grid_of
from privsql.policy import Neighbours
from privsql.privacy.sensitivity import Sensitivity
from privsql.sql.describe import describe
from privsql.sql.expressions import Aggregate, Call, Column, Expression, Literal, columns_of
from privsql.sql.owners import Owner
from privsql.sql.relations import Choose, Limits, Release
from privsql.types import BOOLEAN, Kind

UNCOUNTED = "which keys are shown"  # of a count that is not let out itself


@dataclass(frozen=True)
class Part:
    """A measurement before it has a price: columns with the SQL that computes each, and their sensitivity.

    Where units are bounded, `of_unit` computes a column of the same name from one unit's rows in one key, and `sql`
    adds those up, each held within its bound.
    """

    columns: tuple[str, ...]
    sql: tuple[str, ...]
    sensitivity: Sensitivity
    what: str
    values: tuple[tuple[str, str], ...] = ()  # helper columns computed once a row: name and SQL
    of_unit: tuple[str, ...] = ()
    counts_all: bool = False  # one plain count of the rows, or units, of a key: what keys can be shown by


@dataclass(frozen=True)
class Surroundings:
    """What every aggregate of a release shares."""

    stability: Stability  # after bounding, where units are bounded
    neighbours: Neighbours
    key_columns: list[str] | None  # None: no GROUP BY
    facts: Facts
    evaluate: Evaluate
    taken: frozenset[str]  # names of the columns below, which helper columns must not repeat
    owner: Owner
    limits: Limits | None = None  # None: the rows of one unit are few already
    cells: int | None = None

    def helper(self, number: int) -> str:
        name = f"privsql_value_{number}"
        while name in self.taken:
            name += "_"
        return name

    @property
    def always_counts(self) -> bool:
        return self.stability.steady and self.key_columns is None

    def counting_units(self) -> Surroundings:
        """The same with each unit counted once a key."""
        if self.limits is None:
            return self
        once = replace(self.limits, max_rows=1)
        return replace(self, limits=once, stability=bounded(once, self.cells))

    def bound(self, size: int, width: int, cells: int, what: str, monotone: bool = False) -> Sensitivity:
        same_way = monotone and self.stability.adds
        return sensitivity_of(self.stability, self.neighbours, self.key_columns, size, width, cells, what, same_way)


def release_parts(release: Release, around: Surroundings) -> tuple[list[Part], dict[str, Estimate]]:
    """One two-sided measurement per averaged argument, one per lone sum, one per set of disjoint counts."""
    averaged_too = {(each.argument, each.condition) for _, each in release.aggregates if each.function == "avg"}
    aggregates = [
        (name, _normal(each if (each.argument, each.condition) in averaged_too else _as_count(each), around.facts))
        for name, each in release.aggregates
    ]
    parts: list[Part] = []
    estimates: dict[str, Estimate] = {}
    averaged = ((a.argument, a.condition) for _, a in aggregates if a.function in ("sum", "avg"))
    for argument, condition in dict.fromkeys(averaged):
        assert argument is not None
        same = [
            (name, each)
            for name, each in aggregates
            if name not in estimates and each.condition == condition and _counts_with(each, argument, around.facts)
        ]
        functions = {a.function for _, a in same}
        place = next(a.place for _, a in same if a.argument == argument)
        grid, what = _grid(argument, condition, around, place)
        number = sum(len(part.columns) for part in parts) + 1
        if functions == {"sum"}:
            part = _one_sided(f"sum_{number}", argument, condition, grid, around, what)
            estimates[same[0][0]] = Linear(((part.columns[0], grid.step),), grid.whole)
        else:
            part = _two_sided(number, argument, condition, grid, around, what)
            for name, aggregate in same:
                estimates[name] = _two_sided_estimate(aggregate, part.columns, grid)
        parts.append(part)
    for name, each in aggregates:
        if each.function == "count_distinct":
            part = _distinct(sum(len(part.columns) for part in parts) + 1, each, around)
            parts.append(part)
            estimates[name] = Linear(((part.columns[0], Fraction(1)),), whole=True)
    counts = [(name, a) for name, a in aggregates if name not in estimates]
    for group in _disjoint_groups(counts):
        part = _counts(sum(len(part.columns) for part in parts) + 1, [a for _, a in group], around)
        parts.append(part)
        for (name, _), column in zip(group, part.columns, strict=True):
            estimates[name] = Linear(((column, Fraction(1)),), whole=True)
    return parts, estimates


def _as_count(aggregate: Aggregate) -> Aggregate:
    """SUM(CASE WHEN p THEN 1 ELSE 0 END) counts the rows where p is true."""
    match aggregate:
        case Aggregate(function="sum", argument=Call(function="case", args=(test, Literal(value=1), Literal(value=rest)))):
            if rest in (0, None) and aggregate.argument is not None and aggregate.argument.type.kind is Kind.INTEGER:
                return replace(aggregate, function="count", argument=None, condition=both(aggregate.condition, test))
    return aggregate


def _normal(aggregate: Aggregate, facts: Facts) -> Aggregate:
    """COUNT(x) as a count of the rows where x is not NULL; COUNT of what is never NULL as COUNT(*)."""
    if aggregate.function != "count" or aggregate.argument is None:
        return aggregate
    if not domain_of(aggregate.argument, _filtered(facts, aggregate.condition)).nullable:
        return replace(aggregate, argument=None)
    return aggregate


def _filtered(facts: Facts, condition: Expression | None) -> Facts:
    return facts if condition is None else refine(facts, condition)


def _counts_with(aggregate: Aggregate, argument: Expression, facts: Facts) -> bool:
    """Whether this aggregate is about the same argument: SUM, AVG and COUNT of it, or COUNT(*) where it is never NULL."""
    if aggregate.function == "count_distinct":
        return False
    if aggregate.argument == argument:
        return True
    known = domain_of(argument, _filtered(facts, aggregate.condition))
    return aggregate.function == "count" and aggregate.argument is None and not known.nullable


def _grid(
    argument: Expression, condition: Expression | None, around: Surroundings, place: Place | None
) -> tuple[Grid, str]:
    facts = _filtered(around.facts, condition)
    domain = domain_of(argument, facts)
    if not domain.bounded:
        domain = evaluated_domain(argument, facts, around.evaluate) or domain
    if not domain.bounded:
        names = sorted({column.name for column in columns_of(argument) if not domain_of(column, facts).bounded})
        clamp = "write LEAST(GREATEST(..., 0), 100) around it, with the ends that you know"
        raise Refused(
            "refused-unbounded",
            "one person could move this sum by any amount: the range of its argument is not known",
            f"declare a range (policy: {names[0]} = {{range = [0, 100]}}), or {clamp}" if names else clamp,
            place,
        )
    if not domain.empty and max(abs(domain.low), abs(domain.high)) > LARGEST_VALUE:
        raise Refused("refused-too-large", f"one person could move this sum by more than {float(LARGEST_VALUE):.1e}",
                      "add up a smaller unit (SUM(x / 1000)), or declare a narrower range", place)  # fmt: skip
    grid = grid_of(argument.type, domain)
    low, high = float(grid.low * grid.step), float(grid.high * grid.step)
    return grid, f"values clamped into [{low:g}, {high:g}]" + (
        "" if grid.step == 1 else f" on a grid of {float(grid.step):.3g}"
    )


def _one_sided(
    name: str, argument: Expression, condition: Expression | None, grid: Grid, around: Surroundings, what: str
) -> Part:
    always = around.always_counts and condition is None
    bound = around.bound(
        max(grid.magnitude, 1), max(grid.width(always), 1), 1, what, monotone=grid.low >= 0 or grid.high <= 0
    )
    value = around.helper(int(name.rpartition("_")[2]))
    total = grid.total(f"sum({value}){_where(condition)}", f"count({value}){_where(condition)}")
    clamped = (value, grid.value(render.expression(argument)))
    title = _titled("SUM", argument, condition)
    if around.limits is None:
        return Part((name,), (_clean(total),), bound, title, (clamped,))
    most = around.limits.max_rows  # a unit's total in a key is held within what so many rows could add up to
    held = f"least(greatest({name}, {most * min(grid.low, 0)}), {most * max(grid.high, 0)})"
    return Part((name,), (_clean(f"coalesce(sum({held}), 0)"),), bound, title, (clamped,), (total,))


def _two_sided(
    number: int, argument: Expression, condition: Expression | None, grid: Grid, around: Surroundings, what: str
) -> Part:
    """A = sum of u and B = sum of (M - u), u the clamped value counted from the low end, M the width of the range."""
    value, where = around.helper(number), _where(condition)
    rows = f"CAST(count({value}){where} AS HUGEINT)"
    total = grid.total(f"sum({value}){where}", rows)
    unit = "" if grid.step == 1 else f", in steps of {float(grid.step):.3g}"
    reason = f"{what}; a row adds u, its height above {float(grid.low * grid.step):g}{unit}, and {grid.steps:,} - u"
    bound = around.bound(grid.steps, grid.steps, 2, reason)
    title = _titled("AVG, SUM and COUNT", argument, condition)
    clamped = (value, grid.value(render.expression(argument)))
    columns = (f"above_{number}", f"below_{number + 1}")
    above = f"{total} - {rows} * ({grid.low})"
    if around.limits is None:
        sql = (_clean(above), _clean(f"{rows} * ({grid.low + grid.steps}) - {total}"))
        return Part(columns, sql, bound, title, (clamped,))
    # of a unit's c rows at most R count, at their mean height: A' = A min(c, R) / c, B' = M min(c, R) - A'
    height, count = columns
    most = around.limits.max_rows
    part = f"(CASE WHEN {count} > {most} THEN {height} * {most} // {count} ELSE {height} END)"
    rest = f"{grid.steps} * least({count}, {most}) - {part}"
    sql = (_clean(f"coalesce(sum({part}), 0)"), _clean(f"coalesce(sum({rest}), 0)"))
    return Part(columns, sql, bound, title, (clamped,), (above, rows))


def _two_sided_estimate(aggregate: Aggregate, columns: tuple[str, ...], grid: Grid) -> Estimate:
    above, below = columns
    one = Fraction(1, grid.steps)
    match aggregate.function:
        case "count":
            return Linear(((above, one), (below, one)), whole=True)
        case "sum":
            high = grid.low + grid.steps
            return Linear(((above, high * one * grid.step), (below, grid.low * one * grid.step)), grid.whole)
        case _:
            return Ratio(above, below, grid.low * grid.step, (grid.low + grid.steps) * grid.step, grid.steps)


def _counts(index: int, counts: Sequence[Aggregate], around: Surroundings) -> Part:
    names = tuple(f"count_{index + offset}" for offset in range(len(counts)))
    once = (
        "a row counts once" if len(counts) == 1 else "a row counts in one of them: their conditions exclude each other"
    )
    title = ", ".join(_titled("COUNT", each.argument, each.condition) for each in counts)
    bound = around.bound(1, 1, len(counts), once, monotone=True)
    sql = tuple(_count(each) for each in counts)
    every = len(counts) == 1 and counts[0].argument is None and counts[0].condition is None
    if around.limits is None:
        return Part(names, sql, bound, title, counts_all=every)
    # all the counts of a unit in a key together stay within its rows: each takes what those before it have left
    most = around.limits.max_rows
    sums = ["0", *(f"least({' + '.join(names[: place + 1])}, {most})" for place in range(len(names)))]
    held = (f"coalesce(sum({after} - {before}), 0)" for before, after in itertools.pairwise(sums))
    return Part(names, tuple(_clean(each) for each in held), bound, title, of_unit=sql, counts_all=every)


def _count(count: Aggregate) -> str:
    inner = "*" if count.argument is None else render.expression(count.argument)
    return f"count({inner}){_where(count.condition)}"


def _distinct(index: int, count: Aggregate, around: Surroundings) -> Part:
    """COUNT(DISTINCT x): of units each counts once; of other values, so many of each unit's count."""
    assert count.argument is not None
    name, argument = f"count_{index}", render.expression(count.argument)
    title = _titled("COUNT DISTINCT", count.argument, count.condition)
    where = _where(count.condition)
    told = count.argument.args if isinstance(count.argument, Call) and count.argument.function == "row" else (count.argument,)
    columns = [each.name for each in told if isinstance(each, Column)] if all(isinstance(e, Column) for e in told) else []
    if around.limits is not None and around.owner.is_unit(columns):
        units = around.counting_units()
        bound = units.bound(1, 1, 1, "a unit counts once", monotone=True)
        held = _clean(f"coalesce(sum(least({name}, 1)), 0)")
        every = count.condition is None
        return Part((name,), (held,), bound, title, of_unit=(f"count({argument}){where}",), counts_all=every)
    if {column.name for column in columns_of(count.argument)} <= around.owner.fixed:
        around = around.counting_units()  # all rows of a unit have the same value
    bound = around.bound(1, 1, 1, "a value counts once, however many have it", monotone=True)
    if around.limits is None:
        return Part((name,), (f"count(DISTINCT {argument}){where}",), bound, title)
    # which of its values a unit brings depends on the unit and the values alone
    ranked = f"list_sort(list_distinct(list(row(hash({render.UNIT}, {argument}), {argument})){_present(argument, count)}))"
    some = f"list_transform(list_slice({ranked}, 1, {around.limits.max_rows}), lambda value: value[2])"
    total = _clean(f"coalesce(list_unique(flatten(list({name}))), 0)")
    return Part((name,), (total,), bound, title, of_unit=(some,))


def units_part(index: int, around: Surroundings) -> Part:
    """How many units a key has: by what keys are shown where no count is asked for."""
    units = around.counting_units()
    name, why = f"count_{index}", "a unit counts once"
    bound = units.bound(1, 1, 1, why if around.limits is not None else "a row counts once", monotone=True)
    if around.limits is None:
        return Part((name,), ("count(*)",), bound, UNCOUNTED, counts_all=True)
    held = _clean(f"coalesce(sum(least({name}, 1)), 0)")
    return Part((name,), (held,), bound, UNCOUNTED, of_unit=("count(*)",), counts_all=True)


def _present(argument: str, count: Aggregate) -> str:
    condition = "" if count.condition is None else f" AND {render.expression(count.condition)}"
    return f" FILTER (WHERE ({argument}) IS NOT NULL{condition})"


def _titled(function: str, argument: Expression | None, condition: Expression | None) -> str:
    where = "" if condition is None else f" where {describe(condition)}"
    return f"{function}({'*' if argument is None else describe(argument)}){where}"


def _disjoint_groups(counts: Sequence[tuple[str, Aggregate]]) -> list[list[tuple[str, Aggregate]]]:
    """Counts put together greedily while every two of a group exclude each other."""
    groups: list[list[tuple[str, Aggregate]]] = []
    for name, each in counts:
        condition = _counted(each)
        fitting = next((g for g in groups if all(are_disjoint(condition, _counted(o)) for _, o in g)), None)
        if fitting is None:
            groups.append([(name, each)])
        else:
            fitting.append((name, each))
    return groups


def _counted(count: Aggregate) -> Expression | None:
    if count.argument is None:
        return count.condition
    missing = Call("is_null", (count.argument,), BOOLEAN)
    return both(count.condition, Call("not", (missing,), BOOLEAN))


def choice_parts(release: Choose, around: Surroundings) -> tuple[list[Part], dict[str, Estimate], tuple[str, ...]]:
    score = _normal(release.score, around.facts)
    if score.function == "count":
        part = _counts(1, [score], around)
    else:
        assert score.argument is not None
        grid, what = _grid(score.argument, score.condition, around, score.place)
        part = _one_sided("score_1", score.argument, score.condition, grid, around, what)
    which = "largest" if release.largest else "smallest"
    return (
        [replace(part, what=f"the key with the {which} {part.what}")],
        {},
        ("only the label is released, not the score",),
    )


def _where(condition: Expression | None) -> str:
    return "" if condition is None else f" FILTER (WHERE {render.expression(condition)})"


def _clean(aggregate: str) -> str:
    """A cell is clamped to what 64 bits and its noise can hold."""
    bounded = f"least(greatest({aggregate}, {-LARGEST_SUM}), {LARGEST_SUM})"
    return f"CAST({bounded} AS BIGINT)"
