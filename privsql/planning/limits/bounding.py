"""A release and its limits go in; sentences on what contribution bounding may drop come out.

They depend on the query, the schema and the policy, never on the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from privsql.algebra.expressions import OF_DIFFERENT, Aggregate, Call, Column, Expression
from privsql.algebra.owners import Owner, one_row_a_key, owner
from privsql.algebra.relations import (
    AtMost,
    Choose,
    Filter,
    Group,
    Join,
    Limits,
    Project,
    Relation,
    Release,
    Scan,
    Semi,
    UnionAll,
    Unpivot,
    WindowsWithinUnit,
    below,
    walk,
)
from privsql.analysis.derive import names_in
from privsql.analysis.keys import KeySpace
from privsql.analysis.stability import limits_of
from privsql.planning.rewrites.prepared import PreparedScan

_COUNTS = frozenset({"count", "count_distinct"})
_TOTALS = _COUNTS | {"sum", "sum_distinct"}


@dataclass(frozen=True)
class Bounding:
    """What may be dropped from one unit. A limit that cannot drop anything is None.

    `keyed`: the row limit holds in each key. `what`: rows, or different values. `totals`: the outputs are
    counts or sums, so dropping makes them low. `within`: the row limit holds for counts and sums within one
    unit, and what happens to larger ones. `assumed`: the limits that nobody declared.
    """

    unit: str
    max_rows: int | None = None
    max_groups: int | None = None
    keyed: bool = False
    what: str = "rows"
    totals: bool = True
    within: str = ""
    before_where: bool = False
    assumed: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self.max_rows is not None or self.max_groups is not None

    @property
    def binding(self) -> dict[str, int]:
        """The limits that may drop something, by name."""
        limits = {"max_rows": self.max_rows, "max_groups": self.max_groups}
        return {name: limit for name, limit in limits.items() if limit is not None}

    @property
    def undeclared(self) -> frozenset[str]:
        """The binding limits that nobody declared."""
        return self.assumed & self.binding.keys()

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences for an answer."""
        effect = "so totals may be low" if self.totals else "so the answer may be off"
        found = []
        if self.max_groups is not None:
            keys = _counted(self.max_groups, "key")
            found.append(
                f"At most {keys} per {self.unit} {_are(self.max_groups)} used; units with more keep "
                f"{self.max_groups:,} of them, {effect}."
            )
        if self.max_rows is not None and self.within:
            rows = _counted(self.max_rows, "row")
            found.append(
                f"Counts and sums within one {self.unit} are assumed to cover at most {rows}; "
                f"larger ones are {self.within}, so totals and averages may be low."
            )
        elif self.max_rows is not None:
            where = " in each key" if self.keyed else ""
            when = ", chosen before WHERE" if self.before_where else ""
            rows = _counted(self.max_rows, self.what.removesuffix("s"))
            found.append(
                f"At most {rows} per {self.unit}{where} {_are(self.max_rows)} used{when}; units with more "
                f"are cut to {self.max_rows:,}, {effect}."
            )
        return tuple(found)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def bounding_of(release: Release | Choose, limits: Limits, space: KeySpace) -> Bounding:
    """What bounding may drop from one unit, unless its rows are known to be few."""
    whose, aggregates = owner(release.input), aggregates_of(release)
    by_rows = [each for each in aggregates if not _counts_units(each, whose)]
    columns = [key.expression.name for key in release.keys if isinstance(key.expression, Column)]
    few_rows = not by_rows or one_row_a_key(release.input, columns)
    # the same key for all rows of a unit
    one_key = names_in([key.expression for key in release.keys]) <= whose.fixed
    few_keys = one_key or (not space.open and len(space) <= limits.max_groups)
    return Bounding(
        unit_name(release.input),
        max_rows=None if few_rows else limits.max_rows,
        max_groups=None if few_keys else limits.max_groups,
        keyed=not one_key,
        what="different values" if all(each.function in OF_DIFFERENT for each in by_rows) else "rows",
        totals=isinstance(release, Choose) or any(each.function in _TOTALS for each in aggregates),
        assumed=limits.assumed,
    )


def bounding_by_rank(release: Release | Choose, scan: PreparedScan, limits: Limits) -> Bounding:
    """What a stored copy drops: all rows of a unit except the first few."""
    filtered = any(isinstance(each, (Filter, Semi)) for each in walk(release.input))
    totals = isinstance(release, Choose) or any(each.function in _TOTALS for each in aggregates_of(release))
    most = None if scan.units else scan.most
    return Bounding(unit_name(scan), most, totals=totals, before_where=filtered, assumed=limits.assumed)


def bounding_within(release: Release | Choose) -> Bounding | None:
    """What happens to large counts and sums within one unit, if their range matters; None: there are none."""
    added = [
        part
        for each in aggregates_of(release)
        if each.function not in _COUNTS
        for part in (each.argument, each.by)
        if part
    ]
    keys = names_in([key.expression for key in release.keys])
    group = totals_within(release.input, names_in(added) | keys)
    if group is None:
        return None
    left_out = totals_within(release.input, keys) is not None
    limits = limits_of(group.input)
    within = "left out" if left_out else "clamped"
    return Bounding(unit_name(release.input), limits.max_rows, within=within, assumed=limits.assumed)


def totals_within(relation: Relation, wanted: frozenset[str]) -> Group | WindowsWithinUnit | None:
    """The per-unit group, or windows, whose counts or sums these columns are computed from."""
    match relation:
        case Group(per_unit=True):
            named = [(name, each) for name, each in relation.aggregates if name in wanted]
            if any(each.function in _TOTALS for _, each in named):
                return relation
            inside = [*_keys_among(relation, wanted), *(part for _, each in named for part in each.reads)]
            return totals_within(relation.input, names_in(inside))
        case Project():
            return totals_within(
                relation.input, names_in([each for name, each in relation.columns if name in wanted])
            )
        case WindowsWithinUnit():
            shown = [each for name, each in relation.windows if name in wanted]
            if any(each.function in _TOTALS for each in shown):
                return relation
            read = names_in([part for each in shown for part in each.reads])
            return totals_within(relation.input, wanted | read)
        case Unpivot():
            on = frozenset(name for name, _ in relation.on) if relation.value.name in wanted else frozenset()
            return totals_within(relation.input, wanted | on)
        case UnionAll():
            places = [index for index, each in enumerate(relation.fields) if each.name in wanted]
            sides = (totals_within(side, _at(side, places)) for side in relation.inputs)
            return next((side for side in sides if side is not None), None)
        case Join():
            return totals_within(relation.left, wanted) or totals_within(relation.right, wanted)
        case Semi():
            return totals_within(relation.input, wanted)
        case _:
            found = (totals_within(each, wanted) for each in below(relation))
            return next((each for each in found if each is not None), None)


def _keys_among(group: Group, wanted: frozenset[str]) -> list[Expression]:
    return [key.expression for key in group.keys if key.name in wanted]


def _at(relation: Relation, places: Sequence[int]) -> frozenset[str]:
    return frozenset(relation.fields[place].name for place in places)


def dropped_matches(relation: Relation) -> tuple[str, ...]:
    """What a join with other people's rows may drop: rows beyond the limit per value."""
    found = dict.fromkeys((each.column, each.most) for each in walk(relation) if isinstance(each, AtMost))
    return tuple(
        f"At most {_counted(most, 'row')} with the same {column} {_are(most)} joined; others are dropped, "
        "so totals may be low."
        for column, most in found
    )


def aggregates_of(release: Release | Choose) -> list[Aggregate]:
    return [release.score] if isinstance(release, Choose) else [each for _, each in release.aggregates]


def _counts_units(aggregate: Aggregate, whose: Owner) -> bool:
    """Whether each unit counts once in a key, however many rows it has there."""
    if aggregate.function != "count_distinct" or aggregate.argument is None:
        return False
    told = aggregate.argument.args if _is_row(aggregate.argument) else (aggregate.argument,)
    columns = [each.name for each in told if isinstance(each, Column)]
    return names_in(told) <= whose.fixed or (len(columns) == len(told) and whose.is_unit(columns))


def _is_row(expression: Expression) -> TypeGuard[Call]:
    return isinstance(expression, Call) and expression.function == "row"


def unit_name(relation: Relation) -> str:
    """The name of a unit for people: the columns that hold it, where it is declared."""
    scan = next(each for each in walk(relation) if isinstance(each, Scan) and each.unit is not None)
    unit, table = scan.unit, ""
    assert unit is not None
    while (target := unit.refers_to) is not None:
        unit, table = target.unit, f"{target.table}."
    names = ", ".join(f"{table}{column}" for column in unit.columns)
    return names if len(unit.columns) == 1 else f"({names})"
