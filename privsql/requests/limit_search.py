"""A call that leaves limits to be found goes in; the call with limits comes out, and what finding them cost.

First units are counted by their rows and keys, each histogram charged like any query; the limits are chosen
from the noisy numbers and public ones alone, and the query runs with them for the rest of epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from privsql.algebra.relations import Scan
from privsql.algebra.reserved import quoted
from privsql.errors import ArgumentError
from privsql.planning.apply_limits import most_allowed
from privsql.planning.limits.bounding import unit_name
from privsql.planning.limits.limit_histograms import (
    OF_LIMIT,
    SHARE,
    Histogram,
    NoisyHistogram,
    best_limits,
    limits_wanted,
    noise_of_a_row,
)
from privsql.planning.plan import Plan
from privsql.policy.checks import epsilon_of
from privsql.requests.pipeline import Pipeline
from privsql.requests.range_search import expect, likely_plan
from privsql.requests.stage import Stage
from privsql.results.advising.suggested_limits import FoundLimit, LimitTable, SuggestedLimits
from privsql.results.answer import Answer
from privsql.suggestions import Argument, DeclareUnit
from privsql.types import Kind

_MOST_KEYS = 1_000  # a longer range of whole numbers is not meant as keys


@dataclass(frozen=True)
class Searches:
    """What must be found before a stage can be planned.

    `meant`: the plan of the query under the limits of the policy, from which it is read which limits matter.
    `rest`: the query itself, to be asked afterwards for what is left of epsilon. `histograms`: the searches,
    by the name of the limit that each finds. `share`: the epsilon of each search.
    """

    meant: Plan
    rest: Stage
    histograms: Mapping[str, Stage]
    share: Fraction

    def unpaid(self, pipeline: Pipeline) -> list[Stage]:
        """The searches that are not stored."""
        return [each for each in self.histograms.values() if not pipeline.is_stored(each)]


def find_limits(stage: Stage, pipeline: Pipeline) -> tuple[Stage, tuple[FoundLimit, ...]]:
    """Find the limits that are "auto", for a share of epsilon; the stage keeps the rest of it."""
    if not stage.automatic:
        return stage, ()
    searches = searches_for(stage, pipeline)
    if not searches.histograms:
        return searches.rest, ()
    answers = _answers(searches.histograms, [searches.rest], pipeline)
    spreads = {name: _spread(each, searches.histograms[name], pipeline) for name, each in answers.items()}
    # those in which units stand out of the noise; for the others the limits of the policy stay
    told = {name: each for name, each in spreads.items() if each.last is not None}
    chosen = _chosen(searches, told, pipeline)
    known = {**{name: _limits_there_are(searches.meant)[name] for name in spreads}, **chosen}
    found = tuple(
        _found(name, known[name], each, _paid(answers[name]), name in chosen)
        for name, each in spreads.items()
    )
    return replace(stage, epsilon=searches.rest.epsilon).with_limits(**known), found


def searches_for(stage: Stage, pipeline: Pipeline) -> Searches:
    """The searches that a stage needs: none for a limit that could drop no row."""
    plain = stage.with_limits()
    # refuses what no limit could help, before anything is paid
    meant = likely_plan(replace(plain, prepared=False), pipeline)
    wanted = limits_wanted(meant, stage.automatic)
    if not wanted:
        return Searches(meant, plain, {}, Fraction(0))
    if stage.epsilon is None:
        raise ArgumentError(
            "argument-within",
            "how far this answer is off depends on limits that are not known yet",
            [("give ", Argument("epsilon"), " instead"), ("give the limits as numbers",)],
        )
    whole = stage.price()
    share = epsilon_of(whole * SHARE / len(wanted))
    found = {name: _histogram_of(stage, share, OF_LIMIT[name]) for name in wanted}
    return Searches(meant, replace(plain, epsilon=whole * (1 - SHARE)), found, share)


def first_limit_search(searches: Searches, pipeline: Pipeline) -> Plan:
    """The first search, which comes before the query; what follows depends on what it finds."""
    plan = pipeline.plan(next(iter(searches.histograms.values()))).plan
    names, rest = " and ".join(searches.histograms), float(searches.rest.price())
    note = (
        f"first {names} are found from such histograms, each at epsilon {float(searches.share):g}; then the "
        f"query runs with them, at epsilon {rest:g}: give limits as numbers to save this"
    )
    return replace(plan, notes=(*plan.notes, note))


def _histogram_of(stage: Stage, share: Fraction, kind: Histogram) -> Stage:
    return Stage(
        stage.sql, share, dialect=stage.dialect, histogram=kind, fresh=stage.fresh, analyst=stage.analyst
    )


def _answers(searches: Mapping[str, Stage], rest: Sequence[Stage], pipeline: Pipeline) -> dict[str, Answer]:
    """The answers of all searches, if they and the rest can be afforded; what is stored costs nothing."""
    unpaid = [each for each in searches.values() if not pipeline.is_stored(each)]
    if unpaid:
        expect([*rest, *unpaid], pipeline, open_limits=True)
    return {name: pipeline.answer(pipeline.plan(each)) for name, each in searches.items()}


def _found(name: str, limit: int, spread: NoisyHistogram, epsilon: float, found: bool) -> FoundLimit:
    return FoundLimit(
        name, limit, epsilon, spread.cut(limit), spread.give_or_take(limit), round(spread.units), found
    )


def _spread(answer: Answer, stage: Stage, pipeline: Pipeline) -> NoisyHistogram:
    """The histogram; its noise is at most that of its own plan, also where it follows from others."""
    frame = answer.df()
    return NoisyHistogram.of(likely_plan(stage, pipeline), frame["bucket"].tolist(), frame["n"].tolist())


def _paid(answer: Answer) -> float:
    return 0.0 if answer.stored else answer.plan.epsilon


def _chosen(searches: Searches, spreads: Mapping[str, NoisyHistogram], pipeline: Pipeline) -> dict[str, int]:
    """The best limits, by what the query's own plans say of the noise at each; none if no unit stands out."""
    if not spreads:
        return {}
    meant, rest = searches.meant, replace(searches.rest, prepared=False)
    release = meant.release
    assert release is not None
    # then the limit bounds what keys are computed from, and no noise grows with it
    left_out = any(each.within == "left out" for each in meant.bounding)

    def noise(groups: int) -> float:
        tried = replace(rest, max_groups=groups) if "max_groups" in spreads else rest
        planned = likely_plan(tried, pipeline)
        return 0.0 if left_out else noise_of_a_row(planned)

    most = {name: most_allowed(release.input, name) for name in spreads}
    if "max_groups" in most and not meant.space.open:
        most["max_groups"] = min(most["max_groups"] or meant.cells, meant.cells)
    fixed = {"max_rows": 1, "max_groups": _groups(meant), **_limits_there_are(meant)}
    return dict(best_limits(spreads, most, fixed, _cells(meant, spreads), noise).limits)


def _limits_there_are(plan: Plan) -> dict[str, int]:
    return {name: limit for each in plan.bounding for name, limit in each.binding.items()}


def _groups(plan: Plan) -> int:
    """The keys that one unit may touch."""
    return (
        1
        if plan.limits is None or plan.stability.rows is None
        else plan.stability.rows // plan.limits.max_rows
    )


def _cells(plan: Plan, spreads: Mapping[str, NoisyHistogram]) -> float:
    """Over how many cells a loss is spread.

    Of undeclared keys, between as many as one unit has and as many as could be shown: their geometric mean.
    """
    if not plan.space.open:
        return plan.cells
    assert plan.keys_shown_by is not None
    needed = plan.keys_shown_by.release.shows_at(0.5)
    keys = spreads.get("max_groups")
    fewest = keys.last if keys is not None and keys.last is not None else _groups(plan)
    pairs = keys.total if keys is not None else fewest * next(iter(spreads.values())).units
    return math.sqrt(fewest * max(fewest, pairs / max(1, needed)))


# -- suggestions ---------------------------------------------------------------------------------------------
def suggest_limits(
    table: str,
    by: str | Sequence[str] | None,
    epsilon: Fraction,
    query_epsilon: Fraction,
    fresh: bool,
    pipeline: Pipeline,
) -> SuggestedLimits:
    """Units of a table by their rows and keys: of `by` together, or of the declared column with the most."""
    with pipeline.snapshot():
        scan = pipeline.scan(table)
        _refuse_unbounded(scan)
        columns = declared_keys(scan) if by is None else _columns(scan, [by] if isinstance(by, str) else by)
        share = epsilon_of(epsilon / (2 if columns else 1))
        asked = _histograms(scan, columns, by is not None, share, fresh)
        answers = _answers(asked, [], pipeline)
        spreads = {name: _spread(each, asked[name], pipeline) for name, each in answers.items()}
    receipt = {
        "epsilon": float(share) * len(answers),
        "charged": sum(map(_paid, answers.values())),
        "neighbours": next(iter(answers.values())).plan.neighbours,
        "histograms": {name: each.receipt for name, each in answers.items()},
    }
    moves = pipeline.policy.neighbours.moves
    tables = _tables(spreads, scan, columns, by is not None, moves, float(query_epsilon))
    return SuggestedLimits(scan.table, unit_name(scan), tables, float(query_epsilon), receipt)


def _histograms(
    scan: Scan, columns: Sequence[str], by_columns: bool, share: Fraction, fresh: bool
) -> dict[str, Stage]:
    """The searches, by the limit that each is about."""
    table, listed = quoted(scan.table), ", ".join(quoted(each) for each in columns)
    keyed = f"SELECT {listed}, COUNT(*) AS n FROM {table} GROUP BY {listed}"
    rows_of = keyed if by_columns else f"SELECT COUNT(*) AS n FROM {table}"
    asked = {"max_rows": Stage(rows_of, share, histogram=Histogram.ROWS, fresh=fresh)}
    if columns:
        kind = Histogram.KEYS if by_columns else Histogram.WIDEST
        asked["max_groups"] = Stage(keyed, share, histogram=kind, fresh=fresh)
    return asked


def _refuse_unbounded(scan: Scan) -> None:
    if scan.private and scan.unit is not None and not scan.unit.unique:
        return
    if not scan.private:
        why = "it is public"
    elif scan.unit is None:
        why = "no unit is declared, so that each of its rows is one person's"
    else:
        why = f"{scan.unit.text} is unique, so that one unit has one row"
    raise ArgumentError(
        "argument-unit",
        f"{scan.table} has no limits to suggest: {why}",
        [("where one person may have many rows, name the privacy unit: ", DeclareUnit(scan.table))],
    )


def _columns(scan: Scan, by: Sequence[str]) -> list[str]:
    assert scan.unit is not None
    whose = {name.lower() for name in scan.unit.columns}
    if not by or not all(isinstance(name, str) for name in by) or any(name.lower() in whose for name in by):
        raise ArgumentError(
            "argument-by",
            "by must name one or more columns whose values are keys, and not the unit",
            "leave it out for the keys that are declared",
        )
    return list(by)


def declared_keys(scan: Scan) -> list[str]:
    """The columns whose values were declared, one by one or as a short range, but for those of the unit."""
    assert scan.unit is not None
    return [
        each.name for each in scan.fields if _size(scan, each.name) and each.name not in scan.unit.columns
    ]


def _size(scan: Scan, column: str) -> int | None:
    """How many keys a column has by what was declared; None: not known, or too many to be meant as keys."""
    claim, type_ = scan.claims[column], next(each.type for each in scan.fields if each.name == column)
    if claim.values is not None:
        return len(claim.values)
    if type_.kind is not Kind.INTEGER or claim.low is None or claim.high - claim.low >= _MOST_KEYS:
        return None
    return int(claim.high - claim.low) + 1


def _tables(
    spreads: Mapping[str, NoisyHistogram],
    scan: Scan,
    columns: Sequence[str],
    by_columns: bool,
    moves: int,
    epsilon: float,
) -> tuple[LimitTable, ...]:
    """What each limit would drop, and the noise of a count with Laplace noise under it.

    `by_columns`: the caller named the columns of the keys, and rows are counted in each key. Else all rows of
    a unit are counted, and its keys in the column where it has the most.
    """
    rows, keys = spreads["max_rows"], spreads.get("max_groups")
    if keys is None:
        return (LimitTable("max_rows", "rows", rows, 1 / epsilon, 1),)
    names, cells = ", ".join(columns), _declared_cells(scan, columns, by_columns) or float(keys.last or 1)
    if not by_columns:
        by_key = LimitTable(
            "max_groups", f"keys ({names}: the column with the most)", keys, moves / epsilon, cells
        )
        return LimitTable("max_rows", "rows", rows, 1 / epsilon, 1), by_key
    told = {name: each for name, each in spreads.items() if each.last is not None}
    best = {"max_rows": 1, "max_groups": 1}
    if told:
        best |= best_limits(told, {}, best, cells, lambda groups: moves * groups / epsilon).limits
    return (
        LimitTable(
            "max_rows",
            f"rows in one key ({names})",
            rows,
            moves * best["max_groups"] / epsilon,
            cells / keys.kept(best["max_groups"]),
        ),
        LimitTable(
            "max_groups",
            f"keys ({names})",
            keys,
            moves * best["max_rows"] / epsilon,
            cells * rows.units / rows.total,
        ),
    )


def _declared_cells(scan: Scan, columns: Sequence[str], together: bool) -> float | None:
    """How many keys were declared: of all columns together, or of the one with the most; None: not all."""
    own = {each.name.lower(): each.name for each in scan.fields}
    sizes = [size for name in columns if (size := _size(scan, own[name.lower()])) is not None]
    if len(sizes) < len(columns):
        return None
    return float(math.prod(sizes) if together else max(sizes))
