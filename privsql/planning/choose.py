"""A Question, the neighbour relation and an epsilon go in; a Plan comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from privsql.analysis.derive import Facts, derive, domain_of, refine
from privsql.analysis.disjoint import are_disjoint, both
from privsql.analysis.keys import Evaluate, KeySpace, key_space
from privsql.analysis.sensitivity import sensitivity_of
from privsql.analysis.stability import Stability, stability
from privsql.errors import ArgumentError, Place, Refused, did_you_mean
from privsql.planning import render
from privsql.planning.estimates import Estimate, Linear, Ratio
from privsql.planning.grid import LARGEST_SUM, LARGEST_VALUE, Grid, grid_of
from privsql.planning.measurement import Measurement, Mechanism, choice_factor, measure
from privsql.planning.plan import Output, Plan
from privsql.policy import Neighbours
from privsql.privacy.accuracy import selection_epsilon_of_histogram
from privsql.privacy.sensitivity import Sensitivity
from privsql.sql.describe import describe
from privsql.sql.expressions import Aggregate, Call, Column, Expression, columns_of, substitute
from privsql.sql.relations import (
    Choose,
    Key,
    Limit,
    Project,
    Question,
    Relation,
    Release,
    Scan,
    UnionAll,
    Values,
    walk,
)
from privsql.tables import NullLast
from privsql.types import BOOLEAN, Kind

CHOICES = {
    "exponential": Mechanism.CHOICE_EXPONENTIAL,
    "laplace": Mechanism.CHOICE_LAPLACE,
    "gumbel": Mechanism.CHOICE_GUMBEL,
}


@dataclass(frozen=True)
class Part:
    """A measurement before it has a price: columns with the SQL that computes each, and their sensitivity."""

    columns: tuple[str, ...]
    sql: tuple[str, ...]
    sensitivity: Sensitivity
    what: str


@dataclass(frozen=True)
class Surroundings:
    """What every aggregate of a release shares."""

    stability: Stability
    neighbours: Neighbours
    key_columns: list[str] | None  # None: no GROUP BY
    facts: Facts

    @property
    def always_counts(self) -> bool:
        return self.stability.steady and self.key_columns is None

    def bound(self, size: int, width: int, cells: int, what: str, monotone: bool = False) -> Sensitivity:
        return sensitivity_of(self.stability, self.neighbours, self.key_columns, size, width, cells, what, monotone)


def plan(
    question: Question, neighbours: Neighbours, epsilon: Fraction, evaluate: Evaluate, mechanism: str | None = None
) -> Plan:
    """Choose the measurements, split epsilon over them, and write the exact SQL."""
    release = question.release
    facts = derive(release.input)
    below = stability(release.input)
    names = [key.expression.name for key in release.keys if isinstance(key.expression, Column)]
    around = Surroundings(below, neighbours, names if release.keys else None, facts)
    not_null = isinstance(release, Choose) and release.not_null
    space = key_space(release.keys, facts, evaluate, not_null) if release.keys else KeySpace((), ())
    notes: tuple[str, ...] = ()
    if isinstance(release, Choose):
        parts, estimates, notes = _choice_parts(release, around)
    else:
        if mechanism not in (None, "laplace"):
            raise ArgumentError("argument-mechanism", f"mechanism={mechanism!r} is for questions that ask for a label",
                                "leave mechanism out")  # fmt: skip
        parts, estimates = _release_parts(release, around)
    measurements = _priced(parts, release, below, epsilon, mechanism)
    if isinstance(release, Choose):
        notes = (*notes, _beside_a_histogram(measurements[0], len(space)))
    else:
        notes = (*_sorted_histogram_note(question), *_public_count_note(release, around))
    loss = sum((each.loss for each in measurements), Fraction(0))
    return Plan(
        sql=_exact_sql(release, parts, space, facts),
        measurements=measurements,
        outputs=_outputs(question, measurements, estimates),
        relation_of_neighbours=neighbours,
        loss=loss,
        question=question,
        space=space,
        stability=below,
        estimates=estimates,
        finishing=render.finishing(question.relation, "noisy"),
        notes=notes,
    )


# -- measurements --------------------------------------------------------------------------------------------
def _priced(
    parts: Sequence[Part], release: Release | Choose, below: Stability, epsilon: Fraction, mechanism: str | None
) -> tuple[Measurement, ...]:
    if below.rows == 0:
        nothing = Sensitivity(0, 0, "public data only: no person is in it")
        return tuple(
            Measurement(part.columns, Mechanism.PUBLIC, nothing, Fraction(0), Fraction(0), part.what) for part in parts
        )
    chosen = Mechanism.LAPLACE
    if isinstance(release, Choose):
        if mechanism is not None and mechanism not in CHOICES:
            raise ArgumentError(
                "argument-mechanism", f"there is no mechanism {mechanism!r}", did_you_mean(mechanism, CHOICES)
            )
        chosen = CHOICES[mechanism or "exponential"]
    share = epsilon / len(parts)
    return tuple(measure(part.columns, chosen, part.sensitivity, share, part.what) for part in parts)


def _release_parts(release: Release, around: Surroundings) -> tuple[list[Part], dict[str, Estimate]]:
    """One two-sided measurement per averaged argument, one per lone sum, one per set of disjoint counts."""
    aggregates = [(name, _normal(each, around.facts)) for name, each in release.aggregates]
    parts: list[Part] = []
    estimates: dict[str, Estimate] = {}
    for argument, condition in dict.fromkeys((a.argument, a.condition) for _, a in aggregates if a.function != "count"):
        if argument is None:
            continue
        same = [
            (name, each)
            for name, each in aggregates
            if name not in estimates and each.condition == condition and _counts_with(each, argument, around.facts)
        ]
        functions = {a.function for _, a in same}
        place = next(a.place for _, a in same if a.argument == argument)
        grid, what = _grid(argument, condition, around.facts, place)
        number = sum(len(part.columns) for part in parts) + 1
        if functions == {"sum"}:
            part = _one_sided(f"sum_{number}", argument, condition, grid, around, what)
            estimates[same[0][0]] = Linear(((part.columns[0], grid.step),), grid.whole)
        else:
            part = _two_sided(number, argument, condition, grid, around, what)
            for name, aggregate in same:
                estimates[name] = _two_sided_estimate(aggregate, part.columns, grid)
        parts.append(part)
    counts = [(name, a) for name, a in aggregates if name not in estimates]
    for group in _disjoint_groups(counts):
        part = _counts(sum(len(part.columns) for part in parts) + 1, [a for _, a in group], around)
        parts.append(part)
        for (name, _), column in zip(group, part.columns, strict=True):
            estimates[name] = Linear(((column, Fraction(1)),), whole=True)
    return parts, estimates


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
    if aggregate.argument == argument:
        return True
    known = domain_of(argument, _filtered(facts, aggregate.condition))
    return aggregate.function == "count" and aggregate.argument is None and not known.nullable


def _grid(argument: Expression, condition: Expression | None, facts: Facts, place: Place | None) -> tuple[Grid, str]:
    domain = domain_of(argument, _filtered(facts, condition))
    if not domain.bounded:
        names = sorted({column.name for column in columns_of(argument)})
        column = names[0] if names else "x"
        raise Refused(
            "refused-unbounded",
            "one person could move this sum by any amount: the range of its argument is not known",
            f"declare a range (policy: {column} = {{range = [0, 100]}}), or write LEAST(GREATEST(...)) around it",
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
    width = max(grid.width(always), 1)
    size = max(grid.magnitude, 1)
    sign_is_fixed = grid.low >= 0 or grid.high <= 0
    bound = around.bound(size, width if around.key_columns is None else grid.width(False) or 1, 1, what, sign_is_fixed)
    return Part(
        (name,),
        (_clean(f"sum({grid.clamped(render.expression(argument))}){_where(condition)}"),),
        bound,
        _titled("SUM", argument, condition),
    )


def _two_sided(
    index: int, argument: Expression, condition: Expression | None, grid: Grid, around: Surroundings, what: str
) -> Part:
    """A = sum of u and B = sum of (M - u), u the clamped value counted from the low end, M the width of the range."""
    clamped = grid.clamped(render.expression(argument))
    where = _where(condition)
    above = f"sum({clamped} - ({grid.low})){where}"
    below = f"count({clamped}){where} * CAST({grid.steps} AS HUGEINT) - coalesce({above}, 0)"
    unit = "" if grid.step == 1 else f", in steps of {float(grid.step):.3g}"
    reason = f"{what}; a row adds u, its height above {float(grid.low * grid.step):g}{unit}, and {grid.steps:,} - u"
    bound = around.bound(grid.steps, grid.steps, 2, reason)
    title = _titled("AVG, SUM and COUNT", argument, condition)
    return Part((f"above_{index}", f"below_{index + 1}"), (_clean(above), _clean(below)), bound, title)


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
    sql = []
    for each in counts:
        inner = "*" if each.argument is None else render.expression(each.argument)
        sql.append(f"count({inner}){_where(each.condition)}")
    once = (
        "a row counts once" if len(counts) == 1 else "a row counts in one of them: their conditions exclude each other"
    )
    titles = [_titled("COUNT", each.argument, each.condition) for each in counts]
    return Part(names, tuple(sql), around.bound(1, 1, len(counts), once, monotone=True), ", ".join(titles))


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


def _choice_parts(release: Choose, around: Surroundings) -> tuple[list[Part], dict[str, Estimate], tuple[str, ...]]:
    score = _normal(release.score, around.facts)
    if score.function == "count":
        part = _counts(1, [score], around)
    else:
        assert score.argument is not None
        grid, what = _grid(score.argument, score.condition, around.facts, score.place)
        part = _one_sided("score_1", score.argument, score.condition, grid, around, what)
    which = "largest" if release.largest else "smallest"
    return (
        [replace(part, what=f"the key with the {which} {part.what}")],
        {},
        ("only the label is released, not the score",),
    )


def _beside_a_histogram(choice: Measurement, candidates: int) -> str:
    if choice.mechanism is Mechanism.PUBLIC:
        return "public data only: the label is exact"
    factor = choice_factor(choice.mechanism, choice.sensitivity)
    times = selection_epsilon_of_histogram(candidates, choice.l1, choice.linf, factor)
    return (
        f"a noisy histogram of {candidates:,} cells and a sort would need about {times:.1f} times this epsilon "
        "to be as sure of the winner"
    )


def _sorted_histogram_note(question: Question) -> tuple[str, ...]:
    limited = any(isinstance(each, Limit) for each in walk(question.relation))
    if limited and question.release.keys:
        return ("the numbers are selected too, so all cells get noise and the sort is by noisy numbers: "
                "select only the key with ORDER BY ... LIMIT 1 to release just the label, more surely",)  # fmt: skip
    return ()


def _public_count_note(release: Release, around: Surroundings) -> tuple[str, ...]:
    counted = any(
        each.function == "count" and each.argument is None and not each.condition for _, each in release.aggregates
    )
    if counted and around.always_counts and around.stability.rows and around.neighbours is Neighbours.REPLACE_ONE:
        return (
            "under replace-one the number of rows is public, so COUNT(*) of all rows cannot move; it is noised as if it could",
        )
    return ()


# -- SQL -----------------------------------------------------------------------------------------------------
def _where(condition: Expression | None) -> str:
    return "" if condition is None else f" FILTER (WHERE {render.expression(condition)})"


def _clean(aggregate: str) -> str:
    """An empty sum is 0, and a cell is clamped to what 64 bits and its noise can hold."""
    bounded = f"least(greatest(coalesce({aggregate}, 0), {-LARGEST_SUM}), {LARGEST_SUM})"
    return f"CAST({bounded} AS BIGINT)"


def _exact_sql(release: Release | Choose, parts: Sequence[Part], space: KeySpace, facts: Facts) -> str:
    columns = [
        f"{sql} AS {render.identifier(name)}"
        for part in parts
        for name, sql in zip(part.columns, part.sql, strict=True)
    ]
    source = render.rows(_pruned(release.input))
    if not release.keys:
        return f"SELECT {', '.join(columns)} FROM {source}"
    keys = [f"{render.expression(key.expression)} AS {render.identifier(key.name)}" for key in release.keys]
    ordinals = ", ".join(str(index + 1) for index in range(len(keys)))
    cells = f"SELECT {', '.join([*keys, *columns])} FROM {source} GROUP BY {ordinals}"
    # keys nobody declared are left out after grouping: materialised, because a filter below is much slower
    tests = [test for key in release.keys if (test := _key_test(key, space))]
    if not tests:
        return cells
    return f"WITH privsql_cells AS MATERIALIZED ({cells}) SELECT * FROM privsql_cells WHERE {' AND '.join(tests)}"


def _key_test(key: Key, space: KeySpace) -> str | None:
    group = next(group for group in space.groups if key.name in group.names)
    values = group.columns[group.names.index(key.name)]
    name, type_ = render.identifier(key.name), key.expression.type
    with_null = isinstance(values, NullLast) or (not isinstance(values, range) and None in values)
    known = values.values if isinstance(values, NullLast) else values
    listed = known if isinstance(known, range) else [value for value in dict.fromkeys(known) if value is not None]
    if type_.kind is Kind.BOOLEAN and len(listed) == 2:
        test = None if with_null else f"({name} IS NOT NULL)"
        return test
    if not listed:
        return f"({name} IS NULL)"
    low, high = (listed[0], listed[-1]) if isinstance(listed, range) else (min(listed), max(listed))
    if type_.kind is Kind.INTEGER and len(listed) == high - low + 1:
        test = f"({name} BETWEEN {low} AND {high})"
    else:
        test = f"({name} IN ({', '.join(render.constant(value, type_) for value in listed)}))"
    return f"({test} OR {name} IS NULL)" if with_null else test


def _pruned(relation: Relation) -> Relation:
    """Projections that only pass columns on say nothing."""
    if isinstance(relation, Project) and not isinstance(relation.input, (Scan, Values, UnionAll)):
        if all(isinstance(each, Column) and each.name == name for name, each in relation.columns):
            return _pruned(relation.input)
    return relation


# -- outputs -------------------------------------------------------------------------------------------------
def _outputs(
    question: Question, measurements: Sequence[Measurement], estimates: dict[str, Estimate]
) -> tuple[Output, ...]:
    expressions = _inlined(question.relation)
    outputs = []
    for name, each in zip(question.names, expressions, strict=True):
        leaves = list(dict.fromkeys(column.name for column in columns_of(each) if column.name in estimates))
        used = sorted(
            {i for leaf in leaves for i, m in enumerate(measurements) if set(estimates[leaf].columns) & set(m.columns)}
        )
        if isinstance(question.release, Choose):
            used, formula = [0], f"{describe(each)} of the winning key"
        else:
            formula = describe(each, {leaf: estimates[leaf].formula for leaf in leaves})
        outputs.append(Output(name, tuple(used), formula, each))
    return tuple(outputs)


def _inlined(relation: Relation) -> list[Expression]:
    """The columns of a relation above a release, as expressions over the release's own columns."""
    match relation:
        case Release() | Choose():
            return [each.column for each in relation.fields]
        case Project():
            inner: dict[str, Expression] = dict(
                zip((f.name for f in relation.input.fields), _inlined(relation.input), strict=True)
            )
            return [substitute(each, inner) for _, each in relation.columns]
        case Scan() | Values() | UnionAll():
            raise AssertionError("not above a release")
        case _:
            return _inlined(relation.input)
