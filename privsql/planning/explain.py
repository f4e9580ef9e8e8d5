"""A plan goes in; the derivation comes out as a tree that a person can check by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from privsql.algebra.describe import describe
from privsql.algebra.relations import (
    AtMost,
    Choose,
    Distinct,
    Filter,
    Group,
    Join,
    Limit,
    Limits,
    Project,
    Relation,
    Release,
    Scan,
    Semi,
    Sort,
    UnionAll,
    Unnest,
    Unpivot,
    Values,
)
from privsql.planning.by_key import CountedScan
from privsql.planning.by_rank import from_totals
from privsql.planning.fitting import gains, set_texts
from privsql.planning.measurement import GaussianShare, Measurement, Mechanism, unit_variance
from privsql.planning.parts import shown
from privsql.planning.plan import Derived, Plan
from privsql.planning.prepared import PreparedScan
from privsql.planning.undeclared_keys import key_release, people_needed
from privsql.privacy.key_selection import GaussianThreshold, KeyRelease, TruncatedGeometric
from privsql.privacy.quantile_search import Search


@dataclass(frozen=True)
class Branch:
    """A line of the tree, lines that belong to it, and what hangs below."""

    title: str
    details: tuple[str, ...] = ()
    below: tuple[Branch, ...] = ()

    def lines(self, lead: str = "", joint: str = "") -> list[str]:
        inner = lead + {"": "", "├─ ": "│  ", "└─ ": "   "}[joint]
        bar = "│  " if self.below else "   "
        lines = [lead + joint + self.title, *(f"{inner}{bar}{detail}" for detail in self.details)]
        for index, branch in enumerate(self.below):
            lines += branch.lines(inner, "└─ " if index == len(self.below) - 1 else "├─ ")
        return lines


def explain(plan: Plan) -> str:
    """The whole derivation: the answer, what is done after the noise, the measurements, the rows they are
    made of.
    """
    if plan.release is None:
        return f"Answer: {', '.join(output.name for output in plan.outputs)}\n" + "\n".join(
            f"Note: {n}" for n in plan.notes
        )
    details = []
    accuracy = plan.accuracy(0.95)
    for output in plan.outputs:
        if output.measurements or (plan.free and output.name in accuracy):
            used = ", ".join(f"M{index + 1}" for index in output.measurements) or "earlier answers"
            width = accuracy.get(output.name)
            note = f"±{width:,.4g} at 95%" if width is not None else accuracy.notes.get(output.name, "")
            details.append(f"{output.name} = {output.formula}   from {used}" + (f", {note}" if note else ""))
    steps = _after(plan.question.relation)
    if steps:
        details.append(f"after the noise, free of cost: {'; '.join(steps)}")
    details += [f"then, as asked, {text}" for text in _projections(plan)]
    stored = [] if plan.derived is None else [_stored(plan.derived)]
    below = [
        _levelled(_measurement(index + 1, each, plan), plan, each)
        for index, each in enumerate(plan.measurements)
    ]
    root = Branch(
        f"Answer: {', '.join(output.name for output in plan.outputs)}",
        tuple(details),
        (*stored, *below, _grouping(plan)),
    )
    lines = root.lines()
    charged = "" if plan.rho is None else f", charged as rho {plan.rho:g}"
    price = (
        f"Cost: epsilon {plan.epsilon:g}, delta {plan.delta:g}{charged}, under {plan.neighbours} neighbours"
    )
    lines.append(price + _budget_line(plan))
    return "\n".join([*lines, *(f"Note: {note}" for note in plan.notes)])


def _budget_line(plan: Plan) -> str:
    """What is left of the budget, or why it does not allow this query."""
    if plan.refusal:
        return f"\nRefused if asked now: {plan.refusal}"
    if plan.remaining is None:
        return ""
    after = plan.remaining if plan.stored else max(0.0, plan.remaining - plan.epsilon)
    return f"; {plan.remaining:g} of the budget is left before it, {after:g} after"


def _stored(derived: Derived) -> Branch:
    """From what earlier answers it is computed."""
    lines = []
    for each in derived.sources:
        text = " ".join(each.question.split())
        added = (
            "cell by cell" if each.cells == 1 else f"up to {each.cells:,} of its cells are added up to one"
        )
        lines.append(
            f"{text if len(text) <= 80 else text[:77] + '...'} (epsilon {each.epsilon:g}, {each.when[:10]}): {added}"
        )
    if len(derived.sources) > 1:
        lines.append("what several of them say is weighed by inverse variance")
    if derived.left_out:
        names = ", ".join(derived.left_out)
        lines.append(
            f"rows in which {names} is none of the declared keys are not in it (fresh=True asks anew)"
        )
    return Branch("From earlier answers, at no cost: no data is read", tuple(lines))


def _measurement(number: int, measurement: Measurement, plan: Plan) -> Branch:
    title = f"M{number}: {', '.join(measurement.columns)} -- {measurement.what}"
    if measurement.key_release is not None:
        return _keys_shown(title, measurement, measurement.key_release, plan)
    if measurement.gaussian is not None:
        return _gaussian(title, measurement, measurement.gaussian)
    if measurement.search is not None:
        return _search(title, measurement, measurement.search)
    chooses = measurement.mechanism.chooses
    bound, name = (measurement.linf, "linf") if chooses else (measurement.l1, "l1")
    factor = round(measurement.scale * measurement.epsilon / bound)
    times = f"{factor} * " if factor != 1 else ""
    step = measurement.step
    lines = [
        _bounds(measurement),
        f"{measurement.mechanism.value}, scale = {times}{name} / epsilon = {times}{shown(bound * step)} / {measurement.epsilon:g}"
        f" = {float(measurement.noise_scale * step):,.6g}",
    ]
    if not chooses:
        other = f"; {measurement.other}" if measurement.other else ""
        lines.append(f"each cell of these columns is within {_width(measurement)} at 95%{other}")
    return Branch(title, tuple(lines))


def _bounds(measurement: Measurement, more: str = "") -> str:
    """How far one person moves the columns, in the units of the values; and in their own, in which plan.sql
    can be checked.
    """
    l1, linf, step = measurement.l1, measurement.linf, measurement.step
    found = f"l1 = {shown(l1 * step)}, linf = {shown(linf * step)}"
    own = (
        ""
        if step == 1
        else f" (the columns count in steps of {float(step):.3g}: l1 = {l1:,}, linf = {linf:,})"
    )
    return f"{found}{own}{more}: {measurement.why}"


def _width(measurement: Measurement) -> str:
    return f"±{shown(measurement.half_width(0.95) * measurement.step)}"


def _gaussian(title: str, measurement: Measurement, joint: GaussianShare) -> Branch:
    part = "" if joint.share == 1 else f" / {float(joint.share):.4g} (its share of them all together)"
    unit = float(unit_variance(joint.epsilon, joint.delta)) ** 0.5
    how = (
        "l1 * linf = " if measurement.sensitivity.squares is None else "the sum of l1 * linf over the sets = "
    )
    step = measurement.step
    squared = f", l2^2 = {how}{shown(measurement.sensitivity.l2_squared * step**2)}"
    deviation = f"{float(measurement.noise_scale * step):,.6g}"
    lines = (
        _bounds(measurement, squared),
        f"{measurement.mechanism.value}, variance = l2^2 * {unit:,.5g}^2{part} = {deviation}^2; {unit:,.5g} is what "
        f"a change of 1 needs at epsilon {float(joint.epsilon):g}, delta {float(joint.delta):g}",
        f"each cell of these columns is within {_width(measurement)} at 95%; {measurement.other}",
    )
    return Branch(title, lines)


def _search(title: str, measurement: Measurement, search: Search) -> Branch:
    """How quantiles are chosen, and how far off in rows they may be."""
    span = float(search.span)
    lines = [
        f"l1 = {measurement.l1:,}, linf = {measurement.linf:,} of the histogram of values: {measurement.why}",
        f"{measurement.mechanism.value}: each of {search.points:,} points with a chance ~ exp(-rows off / s), "
        f"s = {span:g} / epsilon = {span:g} / {measurement.epsilon:g} = {measurement.scale:,.6g}; one person moves the rows off "
        f"of one point away from those of another by at most {span:g}, over all cells and quantiles",
    ]
    if any(step.lean for step in search.steps):
        lines.append("towards an end of the range points weigh less, in case that it is too wide")
    if any(step.parts for step in search.steps):
        lines.append("the middle one first, then the others among the rows on either side of it")
    for place, column in enumerate(measurement.columns):
        rows = math.ceil(search.rank_error(place, 0.95))
        lines.append(f"{column}: within ±{rows:,} rows of {search.rank_text(place)} at 95%, ties aside")
    few = max(search.rows_needed(place, 0.95) for place in range(len(measurement.columns)))
    lines.append(
        f"undetermined where there are too few rows: with a chance of at least 95% where there are none, "
        f"of at most 5% from {few:,} rows on"
    )
    return Branch(title, tuple(lines))


def _keys_shown(title: str, measurement: Measurement, release: KeyRelease, plan: Plan) -> Branch:
    """How keys that nobody declared are let out, and how large one must be."""
    what = "units" if release.contribution.rows == 1 else "rows"
    half, sure = release.shows_at(0.5), release.shows_at(0.95)
    match release:
        case TruncatedGeometric():
            how = f"scale = l1 / epsilon = {measurement.scale:,.6g}, cut at ±{release.bound:,}; shown above {release.threshold:,}"
            how += (
                f"; both 1 less with probability {float(release.share):.2%}, by a coin for each key"
                if release.lesser
                else ""
            )
        case GaussianThreshold():
            how = (
                f"standard deviation {float(release.variance) ** 0.5:,.4g}; shown above {release.threshold:,}"
            )
        case _:
            how = "no count is let out"
    lines = [
        f"l1 = {measurement.l1:,}, linf = {measurement.linf:,}: {measurement.why}",
        f"{measurement.mechanism.value}: {how}",
        f"a key is shown with probability 50% from {half:,} {what}, with 95% from {sure:,}; which keys are missing is not said",
    ]
    lines += _instead(release, plan)
    if release.min_units > 1:
        lines.append(f"no key with fewer than {release.min_units:,} units is ever shown (policy: min_units)")
    if measurement.mechanism is not Mechanism.KEYS_CHOSEN:
        lines.append(f"each count is within ±{measurement.half_width(0.95):,} at 95%")
    return Branch(title, tuple(lines))


def _instead(release: KeyRelease, plan: Plan) -> list[str]:
    """By what else keys could have been shown, and why they are not."""
    assert plan.pricing is not None
    keys = plan.pricing.keys
    if keys is None or keys.other is None:
        return []
    other = key_release(keys.other, plan.loss)
    if other is None:
        return ["by another count no key could be shown at this epsilon"]
    if release.contribution.rows > 1:
        needed = f"{other.shows_at(0.5):,} units, for a share of epsilon"
        return [f"keys are shown by their rows, so from {_people(release)}; by their units, from {needed}"]
    return [
        f"keys are shown by their units; by their rows, from {other.shows_at(0.5):,} of them, so from {_people(other)}"
    ]


def _people(release: KeyRelease) -> str:
    """How many people a key needs to be shown by its rows."""
    rows = release.contribution.rows
    return f"{people_needed(release):,} units if each has half of its {rows:,} rows there, and more if they have fewer"


def _projections(plan: Plan) -> list[str]:
    """What is made to hold after the noise, on request."""
    found = plan.projections
    texts = []
    if found["nonnegative"]:
        texts.append(
            f"the nearest numbers that are not below 0, totals kept: {', '.join(found['nonnegative'])}"
        )
    if plan.consistent:
        texts.append(
            f"the nearest counts with {', '.join(found['consistent']) or 'nothing that is known between them'}"
        )
    if texts:
        texts.append(
            "intervals are those from before, and reach to what is shown; ± above is from before, too"
        )
    return texts


def _levelled(branch: Branch, plan: Plan, measurement: Measurement) -> Branch:
    """What least squares gain at each level, where there are several."""
    if plan.levels is None:
        return branch
    found = gains(plan, measurement, 0.95)
    # of very many kinds of rows only a bound is worked out, which may be wider than what the error is
    all_better = all(after <= before for _, before, after in found)
    better = ", and each better" if all_better else "; to be sure of them takes wider bounds"
    shown = [f"{kept} ±{after:,.4g} instead of ±{before:,.4g}" for kept, before, after in found]
    text = f"least squares over all sets make them agree{better}: {', '.join(shown)} at 95%, before rounding"
    return replace(branch, details=(*branch.details, text))


def _grouping(plan: Plan) -> Branch:
    release = plan.release
    assert release is not None
    rows = _rows(release.input, plan)
    if plan.limits is not None:
        rows = _bounding(plan, plan.limits, rows)
    if not release.keys:
        return rows
    cells = f"{plan.cells:,} key{'s' if plan.cells != 1 else ''}, {'all are candidates' if plan.chooses else 'all in the answer'}"
    cells = (
        "keys that nobody declared, those that many have" if plan.space.open else f"{cells}, absent ones too"
    )
    texts = [(describe(key.expression), key.name) for key in release.keys]
    shown = ", ".join(text if text == name else f"{text} AS {name}" for text, name in texts)
    if plan.levels is not None:
        lost = "rows with a key that nobody declared are in no total, and what is kept of a unit is kept cell by cell"
        return Branch(
            f"Group by {shown}, in the sets {', '.join(set_texts(plan))}: {cells}", (lost,), (rows,)
        )
    return Branch(f"Group by {shown}: {cells}", (), (rows,))


def _bounding(plan: Plan, limits: Limits, rows: Branch) -> Branch:
    """What is kept of one unit, and what that may lose."""
    lost = [
        f"a unit with more than {limits.max_rows:,} row{'s' if limits.max_rows > 1 else ''} in a key counts for "
        f"{limits.max_rows:,}, and its sums are cut to what so many rows could add up to"
    ]
    if plan.keys and (plan.space.open or plan.cells > limits.max_groups):
        lost.append(
            f"of a unit with more than {limits.max_groups:,} keys, {limits.max_groups:,} are kept: those with the "
            "smallest hash of unit and key, which depends on that unit alone"
        )
    details = (*lost, "answers are low where people have more than that (policy: max_groups, max_rows)")
    return Branch(f"Bound contributions: {plan.stability.why}", details, (rows,))


def _by_rank(scan: PreparedScan, touched: str, plan: Plan) -> Branch:
    """What is kept of one unit where its rows were put in an order beforehand."""
    assert plan.release is not None
    assert plan.pricing is not None
    rows = f"{scan.most:,} row{'s' if scan.most > 1 else ''}"
    below = Branch(f"Scan {scan.table}, as prepared: any number of rows a unit")
    if from_totals(plan.release, plan.pricing.parts) is not None:
        below = Branch(
            f"Scan the totals of {scan.table} by rank, as prepared: what all rows of one rank add up to"
        )
    if scan.units:
        return Branch(
            f"Take the first row of each unit, by a stored rank: {touched}", ("every unit has one",), (below,)
        )
    details = [
        f"of a unit with more than {rows} in {scan.table}, {scan.most:,} are kept: the first by a hash of their content, which "
        "depends on that unit alone"
    ]
    if any(isinstance(each, (Filter, Semi)) for each in plan.steps):
        details.append(
            "chosen before WHERE, so that rows which do not meet it take the place of others: a selective WHERE "
            "loses more than with prepared=False"
        )
    details.append("answers are low where people have more than that (policy: max_groups, max_rows)")
    return Branch(f"Keep at most {rows} a unit, by a stored rank: {touched}", tuple(details), (below,))


def _rows(relation: Relation, plan: Plan) -> Branch:
    """One step over rows: how many rows one person can touch there, and why."""
    here = plan.steps[relation]
    below: tuple[Branch, ...] = ()
    touched = (
        "any number of rows a unit"
        if here.rows is None
        else f"{here.rows:,} row{'s' if here.rows != 1 else ''} a person"
    )
    if here.rows == 0:
        touched = "nobody's rows"
    match relation:
        case Project() if all(describe(each) == name for name, each in relation.columns):
            return _rows(relation.input, plan)
        case PreparedScan():
            return _by_rank(relation, f"{touched} -- {here.why}", plan)
        case CountedScan():
            title = f"Scan the number of units of each key in {relation.table}, as prepared"
        case Scan():
            title = f"Scan {relation.table}"
        case Values():
            title = f"{len(relation.rows)} constant rows"
        case UnionAll():
            title, below = "Union all", tuple(_rows(each, plan) for each in relation.inputs)
        case Filter():
            title, below = f"Filter {describe(relation.predicate)}", (_rows(relation.input, plan),)
        case Project():
            title = "Compute " + ", ".join(f"{describe(each)} AS {name}" for name, each in relation.columns)
            below = (_rows(relation.input, plan),)
        case Unpivot():
            title, below = (
                f"Unpivot into {relation.name}, {relation.value.name}",
                (_rows(relation.input, plan),),
            )
        case Unnest():
            title, below = (
                f"Unnest {relation.of.name} into {relation.element.name}",
                (_rows(relation.input, plan),),
            )
        case Join():
            kind = "Left join" if relation.kind == "left" else "Join"
            title, below = (
                f"{kind} on {describe(relation.on)}",
                (_rows(relation.left, plan), _rows(relation.right, plan)),
            )
        case Semi():
            kind = "without" if relation.anti else "with"
            title = f"Keep rows {kind} a match on {describe(relation.on)}"
            below = (_rows(relation.input, plan), _rows(relation.other, plan))
        case Group():
            listed = ", ".join(describe(key.expression) for key in relation.keys) or "the unit"
            title, below = f"Group by {listed}", (_rows(relation.input, plan),)
        case AtMost():
            title, below = (
                f"At most {relation.most} rows for each {relation.column}",
                (_rows(relation.input, plan),),
            )
        case Sort() | Limit() | Distinct():
            title, below = type(relation).__name__, (_rows(relation.input, plan),)
        case _:
            raise AssertionError("not a relation over rows")
    title = title if len(title) <= 100 else title[:97] + "..."
    return Branch(f"{title}: {touched} -- {here.why}", (), below)


def _after(relation: Relation) -> list[str]:
    match relation:
        case Release() | Choose():
            return []
        case Filter():
            return [*_after(relation.input), f"keep {describe(relation.predicate)}"]
        case Sort():
            terms = ", ".join(
                f"{describe(each.expression)}{' DESC' if each.descending else ''}" for each in relation.by
            )
            return [*_after(relation.input), f"order by {terms}"]
        case Limit():
            limit = "" if relation.count is None else f"limit {relation.count}"
            return [
                *_after(relation.input),
                f"{limit} offset {relation.offset}".strip() if relation.offset else limit,
            ]
        case Distinct():
            return [*_after(relation.input), "distinct"]
        case Project():
            return _after(relation.input)
        case _:
            raise AssertionError("not above a release")
