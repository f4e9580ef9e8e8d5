"""The parts of a query and the SQL above them go in; which interval each column of the result will have comes
out, before anything is spent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from sqlglot import exp

from privsql.algebra.chosen_rows import chooses_rows
from privsql.algebra.relations import Choose
from privsql.planning.plan import Plan
from privsql.planning.precision.noise_of_rows import alike_rows
from privsql.sql.boxes.box import BoxColumn, Boxed, BoxTable, End, boxed
from privsql.sql.split.influence import Influence, Simulated
from privsql.types import BOOLEAN, Kind, Type

MOST_CELLS = 10_000  # of all releases together: ranks compare every row with every other
_NUMBERS = (Kind.INTEGER, Kind.DOUBLE)
_SHOWN = ("BOOLEAN", "DOUBLE", "FLOAT", "DECIMAL", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")


class IntervalKind(Enum):
    """How the interval of a column comes about."""

    EXACT = "exact: noise does not reach it"
    RELEASE = "that of its release"
    SIMULATED = "simulated, and approximate"
    BOXED = "from the intervals of all released numbers at once, by rules"
    NONE = "none: no rule has ends for it"


def kinds_of(
    columns: Sequence[tuple[str, str]], plans: Sequence[Plan], known: Simulated | None, box: Boxed | None
) -> tuple[IntervalKind, ...]:
    """The kind of each column of the result, given by their names and types in the engine."""
    simulable = all(map(can_be_simulated, plans))
    influences = [None] * len(columns) if known is None else known.columns
    widths = [0] * len(columns) if box is None else box.columns
    return tuple(
        _kind(type_name, influence, width, simulable)
        for (_, type_name), influence, width in zip(columns, influences, widths, strict=True)
    )


def _kind(type_name: str, influence: Influence | None, width: int, simulable: bool) -> IntervalKind:
    number = type_name.split("(")[0] in _SHOWN
    match influence:
        case Influence.NONE:
            return IntervalKind.EXACT
        case Influence.CELL if number:
            return IntervalKind.RELEASE
        case Influence.SMOOTH if number and simulable:
            return IntervalKind.SIMULATED
    if width == 1:
        return IntervalKind.EXACT
    return IntervalKind.BOXED if width and number else IntervalKind.NONE


def can_be_simulated(plan: Plan) -> bool:
    """Whether the noise of an answer can be drawn: not that of quantiles, or of keys that it chose."""
    if plan.public:
        return True
    noisy = {name for kind in alike_rows(plan) for name in kind.noise}
    known = all(set(how.columns) <= noisy for how in plan.estimates.values())
    return known and plan.levels is None and not plan.chooses and not plan.space.open


def box_of(above: exp.Expr, parts: Mapping[str, Plan]) -> Boxed | None:
    """The SQL that computes the ends of the columns of a query above these parts; None where it has none."""
    found = boxed(above, {name: box_table(plan) for name, plan in parts.items()})
    if found is None:
        return None
    cells = sum(
        plan.cells * len(found.reads[name])
        for name, plan in parts.items()
        if not plan.public and not plan.space.open
    )
    return found if cells <= MOST_CELLS else None


def box_table(plan: Plan) -> BoxTable:
    """The answer of a part, as the SQL above reads it."""
    if plan.public:
        return BoxTable(tuple(BoxColumn(each.name, noisy=False) for each in plan.outputs))
    chosen = isinstance(plan.release, Choose)
    columns = []
    for each in plan.outputs:
        kind = each.expression.type.kind
        noisy = chosen or bool(plan.leaves(each.expression))
        number = not chosen and kind in _NUMBERS
        columns.append(BoxColumn(each.name, noisy, number, kind is Kind.INTEGER))
    is_open = plan.space.open or chooses_rows(plan.query.relation)
    return BoxTable(tuple(columns), is_open)


def end_types(plan: Plan) -> dict[str, Type]:
    """The columns of a part where its numbers have ends."""
    found: dict[str, Type] = {}
    for place, (each, output) in enumerate(zip(box_table(plan).columns, plan.outputs, strict=True)):
        type_ = output.expression.type
        if each.noisy and each.number:
            found |= {End.LOW.name_of(place): type_, End.HIGH.name_of(place): type_}
            found[End.NULL.name_of(place)] = BOOLEAN
        else:
            found[each.name] = type_
    return found
