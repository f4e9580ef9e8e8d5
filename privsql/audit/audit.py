"""A plan and its schema go in; an `Audit` comes out: did the promise hold, and by what margin?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from privsql.audit.bound import EpsilonBound
from privsql.audit.epsilon import MeasuredEpsilon, measure
from privsql.audit.falsify import price_errors
from privsql.audit.given import MOST_PEOPLE, Given, people_of, read_given, with_values
from privsql.audit.pair import NeighbouringTables, shown_pair
from privsql.audit.scratch import Scratch
from privsql.audit.search import Found, Pair, PairSearch
from privsql.audit.world import State, world_of
from privsql.errors import ArgumentError
from privsql.planning.plan import Plan
from privsql.schema import Schema

TRIES = 200
CONFIDENCE = 0.999


@dataclass(frozen=True)
class Bound:
    """One bound of one measurement: the distance claimed as the most between neighbours, and the largest one
    found.
    """

    measurement: int  # its place in the plan
    what: str
    norm: str
    found: float
    claimed: float

    @property
    def passed(self) -> bool:
        return self.found > self.claimed

    @property
    def attained(self) -> bool:
        return self.found == self.claimed

    def __str__(self) -> str:
        return f"{self.what} moves by {_number(self.found)} in {self.norm}, {_number(self.claimed)} claimed"


@dataclass(frozen=True)
class Audit:
    """The result of trying to break one query's privacy promise.

    `held` means that nothing worse was found. It is evidence, not a proof.
    """

    sql: str
    plan: Plan
    bounds: tuple[Bound, ...]
    broken: tuple[str, ...]  # every way in which the promise was broken
    epsilon: EpsilonBound | None  # None: one person moves nothing, so there is nothing to measure
    pair: NeighbouringTables | None  # the worst pair found
    picture: tuple[tuple[str, int, int], ...] = ()  # a histogram: how many releases of each table lie where
    tables: int = 0  # how many were made up
    pairs: int = 0  # how many pairs of neighbours were compared
    exhaustive: bool = False  # whether every row that the values tried can form was tried
    notes: tuple[str, ...] = ()

    @property
    def held(self) -> bool:
        return not self.broken

    @property
    def verdict(self) -> str:
        """The result in one line."""
        if self.broken:
            return f"BROKEN: {'; '.join(self.broken)}"
        if self.plan.public:
            return "held: the answer depends on nobody's data"
        worst = max(
            self.bounds, key=lambda each: (each.found / each.claimed, -each.measurement, each.norm == "l1")
        )
        attained = ", attained" if worst.attained else ""
        found, claimed = _number(worst.found), _number(worst.claimed)
        held = f"held: largest movement found {found} of {claimed} claimed{attained}"
        return held if self.epsilon is None else f"{held}; {self.epsilon}"

    def to_dict(self) -> dict[str, Any]:
        """The result as a dict that can be written as JSON."""
        from privsql.audit.report import as_dict

        return as_dict(self)

    def plot(self, path: str | None = None) -> Any:
        """Draw bounds and releases (extra: privsql[plot]), and write the picture to `path` if given."""
        from privsql.audit.picture import plot

        return plot(self, path)

    def __str__(self) -> str:
        from privsql.audit.report import shown

        return shown(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from privsql.audit.report import html

        return html(self)


def audit(
    plan: Plan,
    sql: str,
    schema: Schema,
    read_public: Callable[[str], list[tuple[Any, ...]]],
    epsilon: Fraction,
    releases: int | None = None,
    tries: int = TRIES,
    progress: Callable[[str], None] | None = None,
    data: Any = None,
) -> Audit:
    """Search for neighbouring tables that exceed a bound of the plan, and for an event that exceeds its
    epsilon.

    All tables are made up, from the schema, the policy and the rows of `data`, which the caller agrees to
    show. Public tables are read; no others are.
    """
    _whole(releases, "releases", 300)
    _whole(tries, "tries", 10)
    say = progress or (lambda _: None)
    if plan.public:
        return Audit(sql, plan, (), (), None, None, notes=("the query uses public tables only",))
    broken = price_errors(plan, epsilon)
    world = world_of(plan, schema, read_public)
    given = None if data is None else read_given(world, data)
    scratch = Scratch(world if given is None else with_values(world, given))
    try:
        people = [] if given is None else people_of(scratch.world, given)
        found = PairSearch(plan, scratch, tries, say, people).run()
        charged = (float(plan.loss), plan.delta)
        measured = measure(plan, scratch, found.pairs, releases, CONFIDENCE, charged, say)
        result = _result(plan, sql, scratch, found, measured, broken)
        return result if given is None else replace(result, notes=(*result.notes, _of_given(people, given)))
    finally:
        scratch.close()


def _result(
    plan: Plan, sql: str, scratch: Scratch, found: Found, measured: MeasuredEpsilon | None, broken: list[str]
) -> Audit:
    bounds, worst = [], None
    for moved, pair in found.bounds.values():
        what = f"M{moved.measurement + 1} ({plan.measurements[moved.measurement].what})"
        bound = Bound(moved.measurement, what, moved.norm, float(moved.found), float(moved.claimed))
        bounds.append(bound)
        if moved.passed:
            broken.append(str(bound))
            worst = worst or pair
    for what, accused in found.broken:
        broken.append(what)
        worst = worst or accused
    if measured is not None and measured.bound.passed:
        broken.append(str(measured.bound))
        worst = worst or measured.pair
    last: Pair | None = worst or (measured.pair if measured is not None else next(iter(found.pairs), None))
    return Audit(
        sql,
        plan,
        tuple(bounds),
        tuple(broken),
        None if measured is None else measured.bound,
        None if last is None else shown_pair(scratch, last),
        () if measured is None else measured.picture,
        found.tables,
        found.tried,
        found.exhaustive,
        _notes(plan, scratch),
    )


def _notes(plan: Plan, scratch: Scratch) -> tuple[str, ...]:
    found = [note for note in plan.notes if note.startswith("first the range of")]
    found += [
        f"only some rows of the public table {each.name} were used"
        for each in scratch.world.public
        if not each.whole
    ]
    return tuple(found)


def _of_given(people: Sequence[State], given: Given) -> str:
    some = "" if given.whole and len(people) < MOST_PEOPLE else "; the data have more"
    return f"{len(people)} people from the data given were tried, also as the other people{some}"


def _whole(value: object, name: str, least: int) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 10**8:
        raise ArgumentError(
            "argument-shape", f"{name} must be a whole number, at least {least}", f"leave {name} out"
        )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:.4g}"
