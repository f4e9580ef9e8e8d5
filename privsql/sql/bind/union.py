"""The two sides of a UNION go in; their combined rows come out, with columns paired by position or BY NAME
and brought to one type.
"""

from __future__ import annotations

from sqlglot import exp

from privsql.algebra import build
from privsql.algebra.expressions import Expression, Literal
from privsql.algebra.functions import common
from privsql.algebra.relations import Project, Relation, UnionAll, is_released
from privsql.algebra.reserved import unique_names
from privsql.errors import SqlError, UnknownName
from privsql.sql.bind.scope import Source
from privsql.sql.bind.within_unit.different import distinct_rows
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import over_noisy_answer
from privsql.types import NULL, Type

# each column of the left, with the column of the right that is appended to it
Pairs = list[tuple[Expression, Expression]]


def united(left: Source, right: Source, node: exp.Union) -> Source:
    """UNION ALL, UNION, and either BY NAME."""
    if is_released(left.relation) or is_released(right.relation):
        raise over_noisy_answer("refused-union", "UNION of", "Run each query separately.", place_of(node))
    alike = (
        left.gaps == right.gaps and left.gaps.keys() == left.unsupported.keys() == right.unsupported.keys()
    )
    if not alike or node.args.get("distinct") or node.args.get("by_name"):
        left, right = (each.all_read("UNION", place_of(node)) for each in (left, right))
    shown, inputs = paired(left, right, node)
    rows = Source(UnionAll(inputs), None, shown, left.unsupported, gaps=left.gaps)
    return distinct_rows(rows) if node.args.get("distinct") else rows


def paired(
    left: Source, right: Source, node: exp.SetOperation
) -> tuple[tuple[str, ...], tuple[Relation, Relation]]:
    """The names of the result, and both sides with columns of these names and of one type."""
    shown, pairs = _by_name(left, right, node) if node.args.get("by_name") else _by_place(left, right, node)
    types = [_shared(one, other, node) for one, other in pairs]
    names = unique_names(list(shown))
    inputs: list[Relation] = []
    for place, side in enumerate((left, right)):
        columns = [pair[place] for pair in pairs]
        brought = [
            each if each.type == shared else build.convert(each, shared, explicit=True)
            for each, shared in zip(columns, types, strict=True)
        ]
        inputs.append(Project(side.relation, tuple(zip(names, brought, strict=True))))
    return shown, (inputs[0], inputs[1])


def _by_place(left: Source, right: Source, node: exp.SetOperation) -> tuple[tuple[str, ...], Pairs]:
    if len(left.names) != len(right.names):
        raise SqlError(
            "sql-union",
            f"the two sides of {_clause(node)} have different numbers of columns",
            "select as many columns on both sides, or write UNION ALL BY NAME",
            place_of(node),
        )
    pairs = zip(left.relation.fields, right.relation.fields, strict=True)
    return left.names, [(one.column, other.column) for one, other in pairs]


def _by_name(left: Source, right: Source, node: exp.SetOperation) -> tuple[tuple[str, ...], Pairs]:
    """The columns of the left, then those that only the right has; a side without a column has NULLs
    there.
    """
    one, other = ({name.lower(): each.column for name, each in side.fields()} for side in (left, right))
    if len(one) < len(left.names) or len(other) < len(right.names):
        raise UnknownName(
            "name-ambiguous",
            "UNION ALL BY NAME needs different names on each side",
            "give the columns aliases",
            place_of(node),
        )
    shown = (*left.names, *(name for name in right.names if name.lower() not in one))
    absent = Literal(None, NULL)
    return shown, [(one.get(name.lower(), absent), other.get(name.lower(), absent)) for name in shown]


def _clause(node: exp.SetOperation) -> str:
    return "UNION ALL" if isinstance(node, exp.Union) else type(node).__name__.upper()


def _shared(one: Expression, other: Expression, node: exp.SetOperation) -> Type:
    shared = common([one.type, other.type])
    if shared is None:
        raise SqlError(
            "sql-type",
            f"{_clause(node)} of {one.type} and {other.type} cannot be combined",
            "cast one of them",
            place_of(node),
        )
    return shared
