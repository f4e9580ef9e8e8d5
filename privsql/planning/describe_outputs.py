"""The query above a release goes in; its outputs come out: names, formulas, and the measurements that each
uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from privsql.algebra.describe import describe
from privsql.algebra.expressions import Expression, columns_of, substitute
from privsql.algebra.relations import (
    BoundQuery,
    Choose,
    Distinct,
    Filter,
    Limit,
    Project,
    Relation,
    Release,
    Sort,
)
from privsql.planning.aggregates.estimate import Estimate
from privsql.planning.aggregates.parts import Part
from privsql.planning.draft import Draft
from privsql.planning.measurements.measurement import Measurement
from privsql.planning.post_processing import Output


def expressions_shown(query: BoundQuery) -> dict[str, Expression]:
    """Every output by name, as an expression over the columns of the release."""
    return dict(zip(query.names, _inlined(query.relation), strict=True))


def describe_outputs(draft: Draft, measurements: Sequence[Measurement]) -> tuple[Output, ...]:
    outputs = []
    formulas = {name: how.formula for name, how in draft.estimates.items()}
    for name, each in draft.shown.items():
        if isinstance(draft.release, Choose):
            outputs.append(Output(name, (0,), f"{describe(each)} of the winning key", each))
            continue
        columns = _columns(each, draft.estimates)
        used = [i for i, measurement in enumerate(measurements) if columns & set(measurement.columns)]
        outputs.append(Output(name, tuple(used), describe(each, formulas), each))
    return tuple(outputs)


def parts_of_outputs(
    shown: Mapping[str, Expression], parts: Sequence[Part], estimates: Mapping[str, Estimate]
) -> dict[str, list[int]]:
    """Which parts each output is computed from."""
    return {
        name: [i for i, part in enumerate(parts) if set(part.columns) & _columns(expression, estimates)]
        for name, expression in shown.items()
    }


def _columns(expression: Expression, estimates: Mapping[str, Estimate]) -> set[str]:
    """The noisy columns that an output uses."""
    leaves = {column.name for column in columns_of(expression)} & estimates.keys()
    return {column for leaf in leaves for column in estimates[leaf].columns}


def _inlined(relation: Relation) -> list[Expression]:
    """The columns of a relation above a release, as expressions over the columns of the release."""
    match relation:
        case Release() | Choose():
            return [each.column for each in relation.fields]
        case Project():
            inner: dict[str, Expression] = dict(
                zip((f.name for f in relation.input.fields), _inlined(relation.input), strict=True)
            )
            return [substitute(each, inner) for _, each in relation.columns]
        case Filter() | Sort() | Limit() | Distinct():
            return _inlined(relation.input)
        case _:
            raise AssertionError("not above a release")
