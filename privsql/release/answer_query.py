"""A query and the tables of a release go in; an Answer comes out, at no cost: counts that follow from the
release, with intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from privsql.algebra.expressions import Call, Column, Expression
from privsql.algebra.relations import BoundQuery, Filter, Project, Relation, Release, Scan
from privsql.analysis.keys import Evaluate
from privsql.errors import Refused
from privsql.planning.aggregates.sums import Linear
from privsql.planning.marginals.cell_counts import PartPlan
from privsql.planning.marginals.column_cells import ColumnCells
from privsql.planning.plan import Derived, Plan, StoredSource
from privsql.privacy.accuracy import GaussianLaw
from privsql.privacy.marginals.residual_price import Columns
from privsql.privacy.weighted_sums import Noise
from privsql.release.cell_conditions import Mask, condition_mask, read_columns
from privsql.release.shrinkage import Floats
from privsql.results.finish import key_values
from privsql.tables import Integers, NoisyTable, ShrunkTable
from privsql.types import BOOLEAN

_LEAST = Fraction(1, 2**20)  # a variance that stands for none

KeyCells = Mapping[int, int]  # the cell of each key of a row of an answer, by the place of its column


@dataclass(frozen=True, eq=False)
class Estimates:
    """Counts as they are shown, as they are without improvement, and the variances of the latter."""

    shown: Floats
    unbiased: Floats
    variances: Floats


class PartTables(Protocol):
    """The noisy numbers of one part of a release, and what follows from them."""

    def estimates(self, columns: Columns, mask: Mask, cells: Sequence[KeyCells]) -> Estimates:
        """The rows in some cells of the keys that meet the mask, which is over the cells of `columns`.

        Raises Refused where that does not follow from what was measured.
        """
        ...


Part = tuple[PartPlan, PartTables]


@dataclass(frozen=True)
class Counted:
    """What a query counts: the rows in each cell of its keys that meet a condition."""

    keys: tuple[str, ...]
    conditions: Mapping[str, tuple[Expression, ...]]  # by the name of the count


def counted(question: BoundQuery, table: str) -> Counted:
    """What a query counts, in terms of columns of the table.

    Raises Refused where it is no counting query over this table alone.
    """
    release = question.release
    if not isinstance(release, Release) or release.sets:
        raise _refused("it is not a query that counts rows, by GROUP BY or not")
    common = _conditions(release.input, table)
    for key in release.keys:
        if not isinstance(key.expression, Column):
            raise _refused(f"GROUP BY {key.text} is not a column of the release")
    found: dict[str, tuple[Expression, ...]] = {}
    for name, each in release.aggregates:
        if each.function != "count":
            raise _refused(f"{each.name} is not a count of rows")
        own = [] if each.condition is None else [each.condition]
        if each.argument is not None:
            present = Call("not", (Call("is_null", (each.argument,), BOOLEAN),), BOOLEAN)
            own.append(present)
        found[name] = (*common, *own)
    keys = tuple(key.expression.name for key in release.keys if isinstance(key.expression, Column))
    return Counted(keys, found)


def _conditions(relation: Relation, table: str) -> list[Expression]:
    match relation:
        case Scan() if relation.table == table:
            return []
        case Filter():
            return [*_conditions(relation.input, table), relation.predicate]
        case Project() if all(each == Column(name, each.type) for name, each in relation.columns):
            return _conditions(relation.input, table)
        case _:
            raise _refused(f"it has more than rows of {table} and conditions on them")


def answer(
    parts: Sequence[Part], plan: Plan, what: Counted, evaluate: Evaluate, source: StoredSource
) -> tuple[Plan, ShrunkTable]:
    """The plan of a query as it is answered from a release, and its cells: shown, and unbiased.

    What follows from several parts is their mean, weighted by how sure each is of it.
    """
    if plan.space.open or plan.consistent or plan.levels is not None:
        raise _refused("its keys are not declared, or its totals are made to add up")
    if plan.quotients or any(
        not isinstance(each, Linear) or len(each.terms) > 1 for each in plan.estimates.values()
    ):
        raise _refused("it divides counts by each other", "ask for the counts, and divide them")
    cells = np.arange(len(plan.space), dtype=np.int64)
    found, used, refusal = list[Mapping[str, Estimates]](), list[PartPlan](), None
    for asked, tables in parts:
        try:
            found.append(_of_part(asked, tables, plan, what, evaluate, cells))
            used.append(asked)
        except Refused as error:
            refusal = refusal or error
    if not found:
        assert refusal is not None, "a release has parts"
        raise refusal
    together = {name: combined([each[name] for each in found]) for name in found[0]}
    derived = Derived(
        (source,), _kinds({name: each.variances for name, each in together.items()}, len(cells))
    )
    (release,) = plan.releases
    bounded = replace(plan, releases=(replace(release, bounding=used[0].bounding),), rho=None)
    unbiased = NoisyTable(cells, {name: _whole(each.unbiased) for name, each in together.items()})
    shown = {name: _whole(each.shown) for name, each in together.items()}
    answered = bounded.from_stored(derived, paid=False)
    return answered, ShrunkTable(cells=cells, noisy_columns=shown, unbiased=unbiased)


def _of_part(
    asked: PartPlan, tables: PartTables, plan: Plan, what: Counted, evaluate: Evaluate, cells: Integers
) -> dict[str, Estimates]:
    """What one part says of each count, in every cell of the query."""
    columns = _columns(asked, what)
    places = _places(asked, plan, what, cells)
    found: dict[str, Estimates] = {}
    for name, conditions in what.conditions.items():
        mask = cells_meeting(asked.columns, columns, conditions, evaluate)
        how = plan.estimates[name]
        assert isinstance(how, Linear)
        (column, _), *_ = how.terms
        keep = [columns.index(asked.names.index(key)) for key in what.keys]
        rows = zip(*places, strict=True) if places else [()]
        chosen = [dict(zip(keep, row, strict=True)) for row in rows]
        found[column] = tables.estimates(columns, mask, chosen)
    return found


def combined(found: Sequence[Estimates]) -> Estimates:
    """The mean of independent estimates, weighted by inverse variance: the least variance there is."""
    if len(found) == 1:
        return found[0]
    weights = [1.0 / np.maximum(each.variances, float(_LEAST)) for each in found]
    whole = np.sum(weights, axis=0)
    shown, unbiased = (
        np.sum([weight * getattr(each, name) for weight, each in zip(weights, found, strict=True)], axis=0)
        / whole
        for name in ("shown", "unbiased")
    )
    return Estimates(shown, unbiased, 1.0 / whole)


def _whole(counts: Floats) -> Integers:
    return np.rint(counts).astype(np.int64)


def _columns(asked: PartPlan, what: Counted) -> Columns:
    """The columns that a query names, as places in the release."""
    read = read_columns([each for conditions in what.conditions.values() for each in conditions])
    used = list(dict.fromkeys((*what.keys, *read)))
    for name in used:
        if name not in asked.names:
            raise _refused(f"{name} is not among the released columns", f"released: {', '.join(asked.names)}")
    found = tuple(sorted(asked.names.index(name) for name in used))
    if not asked.covers(found):
        problem = (
            f"it names {len(used)} columns, and the release answers queries of at most {asked.ways}"
            if len(used) > asked.ways
            else f"the release does not count {', '.join(used)} together"
        )
        raise _refused(problem, "name fewer columns, or release with more ways=")
    return found


def _places(asked: PartPlan, plan: Plan, what: Counted, cells: Integers) -> list[list[int]]:
    """The cell of each key of each row of the answer."""
    values = list(key_values(plan.space, cells).values()) if what.keys else []
    assert plan.release is not None
    by_name = dict(zip(key_values(plan.space, cells), values, strict=True)) if what.keys else {}
    found = []
    for key, name in zip(plan.release.keys, what.keys, strict=True):
        column = asked.columns[asked.names.index(name)]
        if column.edges and not column.single:
            problem = f"the release has {name} in parts, not value by value"
            raise _refused(problem, "use it in conditions at the edges of the parts, or release.df(columns)")
        number = {label: place for place, label in enumerate(column.labels[: column.listed + column.null])}
        wanted = by_name[key.name]
        if not all(each in number for each in wanted):
            raise _refused(f"other values of {name} are declared than those that were released")
        found.append([number[each] for each in wanted])
    return found


def cells_meeting(
    cells: Sequence[ColumnCells], columns: Sequence[int], conditions: Sequence[Expression], evaluate: Evaluate
) -> Mask:
    """Which combinations of cells of these columns meet all conditions, an axis a column."""
    names = [each.column.name for each in cells]
    mask = np.ones([cells[each].size for each in columns], dtype=np.bool_)
    for condition in conditions:
        named = set(read_columns([condition]))
        some = {names[each]: cells[each] for each in columns if names[each] in named}
        if not some:
            ((met,),) = evaluate([condition], {})
            mask &= met is True
            continue
        found = condition_mask(condition, some, evaluate)
        mask &= found.reshape([cells[each].size if names[each] in some else 1 for each in columns])
    return mask


def _kinds(
    variances: Mapping[str, Floats], rows: int
) -> tuple[tuple[Integers | None, Mapping[str, Noise]], ...]:
    """Rows with equal noise, and that noise by column."""
    together = np.array(list(variances.values())).T.reshape(rows, -1)
    different, number = np.unique(together, axis=0, return_inverse=True)
    return tuple(
        (
            np.flatnonzero(number.reshape(-1) == place).astype(np.int64),
            {
                name: GaussianLaw(max(_LEAST, Fraction(float(variance))))
                for name, variance in zip(variances, kind, strict=True)
            },
        )
        for place, kind in enumerate(different)
    )


def _refused(problem: str, way: str = "") -> Refused:
    cure = way or "ask session.query, or release what the query needs"
    return Refused("refused-not-released", f"This does not follow from the release: {problem}.", cure)
