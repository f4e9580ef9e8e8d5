"""A query and the tables of a release go in; an Answer comes out, at no cost: counts that follow from the
release, with intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pandas as pd

from privsql.algebra.expressions import Call, Column, Expression
from privsql.algebra.relations import BoundQuery, Filter, Project, Relation, Release, Scan
from privsql.analysis.keys import Evaluate
from privsql.errors import Refused
from privsql.planning.aggregates.sums import Linear
from privsql.planning.marginals.residual_plan import ResidualPlan
from privsql.planning.plan import Derived, Plan, StoredSource
from privsql.privacy.accuracy import GaussianLaw
from privsql.privacy.marginals.residual_price import Columns
from privsql.privacy.weighted_sums import Noise
from privsql.release.cell_conditions import Mask, condition_mask, read_columns
from privsql.release.residual_tables import ResidualTables
from privsql.release.shrinkage import Floats
from privsql.results.answer import Answer
from privsql.results.finish import key_values
from privsql.tables import Integers, NoisyTable
from privsql.types import BOOLEAN

_LEAST = Fraction(1, 2**20)  # a variance that stands for none


@dataclass(frozen=True, eq=False)
class ReleaseAnswer(Answer):
    """An answer from a release: it shows the shrunk counts, and its intervals are of the unbiased ones,
    extended to what is shown.
    """

    def intervals(self, level: float = 0.95) -> pd.DataFrame:
        found = super().intervals(level)
        for name in self.columns:
            low, high = f"{name}_low", f"{name}_high"
            if low in found.columns and high in found.columns:
                found[low] = np.fmin(found[low], found[name].astype(np.float64))
                found[high] = np.fmax(found[high], found[name].astype(np.float64))
        return found


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
    asked: ResidualPlan, tables: ResidualTables, plan: Plan, what: Counted, evaluate: Evaluate, when: str
) -> tuple[Plan, NoisyTable, NoisyTable]:
    """The plan of a query as it is answered from the release, its cells as shown, and its unbiased cells."""
    if plan.quotients or any(
        not isinstance(each, Linear) or len(each.terms) > 1 for each in plan.estimates.values()
    ):
        raise _refused("it divides counts by each other", "ask for the counts, and divide them")
    columns = _columns(asked, what)
    cells = np.arange(len(plan.space), dtype=np.int64)
    places = _places(asked, plan, what, cells)
    shown: dict[str, Integers] = {}
    unbiased: dict[str, Integers] = {}
    deviations: dict[str, Floats] = {}
    for name, conditions in what.conditions.items():
        mask = _mask(asked, columns, conditions, evaluate)
        how = plan.estimates[name]
        assert isinstance(how, Linear)
        (column, _), *_ = how.terms
        keep = [columns.index(asked.names.index(key)) for key in what.keys]
        shown[column] = _at(_summed(tables.shown(columns) * mask, keep), places)
        unbiased[column] = _at(_summed(tables.unbiased(columns) * mask, keep), places)
        deviations[column] = _variances(tables, columns, mask, keep, places)
    source = StoredSource(asked.what, asked.epsilon, asked.delta, when, 1)
    derived = Derived((source,), _kinds(deviations, len(cells)))
    (release,) = plan.releases
    bounded = replace(plan, releases=(replace(release, bounding=asked.bounding),), rho=None)
    return bounded.from_stored(derived, paid=False), NoisyTable(cells, shown), NoisyTable(cells, unbiased)


def _columns(asked: ResidualPlan, what: Counted) -> Columns:
    """The columns that a query names, as places in the release."""
    read = read_columns([each for conditions in what.conditions.values() for each in conditions])
    used = list(dict.fromkeys((*what.keys, *read)))
    for name in used:
        if name not in asked.names:
            raise _refused(f"{name} is not among the released columns", f"released: {', '.join(asked.names)}")
    if len(used) > asked.workload.ways:
        problem = (
            f"it names {len(used)} columns, and the release answers queries of at most {asked.workload.ways}"
        )
        raise _refused(problem, "name fewer columns, or release with more ways=")
    return tuple(sorted(asked.names.index(name) for name in used))


def _places(asked: ResidualPlan, plan: Plan, what: Counted, cells: Integers) -> tuple[Integers, ...]:
    """The cell of each key of each row of the answer; -1 where the release has none for it."""
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
        found.append(np.array([number.get(each, -1) for each in by_name[key.name]], dtype=np.int64))
    return tuple(found)


def _mask(
    asked: ResidualPlan, columns: Columns, conditions: Sequence[Expression], evaluate: Evaluate
) -> Mask:
    """Which combinations of cells of these columns meet all conditions."""
    shape = [asked.columns[each].size for each in columns]
    mask = np.ones(shape, dtype=np.bool_)
    for condition in conditions:
        named = set(read_columns([condition]))
        some = {asked.names[each]: asked.columns[each] for each in columns if asked.names[each] in named}
        if not some:
            ((met,),) = evaluate([condition], {})
            mask &= met is True
            continue
        found = condition_mask(condition, some, evaluate)
        mask &= found.reshape(
            [asked.columns[each].size if asked.names[each] in some else 1 for each in columns]
        )
    return mask


def _summed(table: Floats, keep: Sequence[int]) -> Floats:
    """A table over the columns to keep, in their order."""
    others = tuple(axis for axis in range(table.ndim) if axis not in keep)
    left = sorted(keep)
    found: Floats = table.sum(axis=others)
    return found.transpose([left.index(each) for each in keep])


def _at(table: Floats, places: tuple[Integers, ...]) -> Integers:
    """The cells of the rows, as whole numbers; 0 where the release has no cell."""
    if not places:
        return np.rint(table).astype(np.int64).reshape(1)
    known = np.all([each >= 0 for each in places], axis=0)
    return np.where(known, np.rint(table[places]), 0.0).astype(np.int64)


def _variances(
    tables: ResidualTables, columns: Columns, mask: Mask, keep: Sequence[int], places: tuple[Integers, ...]
) -> Floats:
    """The variance of each row of the answer: equal where equally many cells are added up alike."""
    rows = len(places[0]) if places else 1
    found, known = np.empty(rows), {}
    for row in range(rows):
        chosen = tuple(int(each[row]) for each in places)
        index = [slice(None)] * mask.ndim
        for axis, place in zip(keep, chosen, strict=True):
            index[axis] = slice(place, place + 1)
        part = mask[tuple(index)]
        sign = part.tobytes()
        if sign not in known:
            wanted = np.zeros(mask.shape)
            wanted[tuple(index)] = part
            known[sign] = tables.variance_of(columns, wanted)
        found[row] = known[sign]
    return found


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
