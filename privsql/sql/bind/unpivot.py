"""UNPIVOT and its input rows go in; the rows it produces come out: one for each column it lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from privsql.algebra.expressions import Call, Column
from privsql.algebra.functions import common
from privsql.algebra.relations import Field, Filter, Project, Relation, Unpivot, is_released
from privsql.algebra.reserved import unique_names
from privsql.errors import Refused, SqlError
from privsql.sql.bind.scope import Source
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import over_noisy_answer, refusal
from privsql.types import BOOLEAN, Type


@dataclass(frozen=True)
class _Shape:
    """The two columns that UNPIVOT produces, names and values, and the columns it reads."""

    name: str
    value: str
    columns: tuple[exp.Expr, ...]


def unpivoted(node: exp.Pivot, source: Source) -> Source:
    """The rows of UNPIVOT.

    Raises:
        Refused: PIVOT, UNPIVOT of a noisy answer, or of anything but plain columns.
        SqlError: a column is listed twice, or the columns have no common type.
    """
    if not node.args.get("unpivot"):
        raise refusal("Pivot", place_of(node))
    if is_released(source.relation):
        raise over_noisy_answer("refused-unpivot", "UNPIVOT of", "Unpivot the rows.", place_of(node))
    shape = _shape(node)
    columns = [_listed(each, node, source) for each in shape.columns]
    if any(
        len(set(each)) < len(columns) for each in zip(*((c.name, label) for c, label in columns), strict=True)
    ):
        raise SqlError("sql-unpivot", "UNPIVOT names a column twice", "list each column once", place_of(node))
    shared = common([column.type for column, _ in columns])
    if shared is None:
        raise SqlError(
            "sql-type", "the columns of UNPIVOT have different types", "cast them alike", place_of(node)
        )
    return _rows(node, source, shape, columns, shared)


def _shape(node: exp.Pivot) -> _Shape:
    """UNPIVOT t ON a, b INTO NAME k VALUE v; UNPIVOT (v FOR k IN (a, b)); UNPIVOT t ON a, b."""
    into, fields = node.args.get("into"), node.args.get("fields")
    name, values, listed = "name", ["value"], node.expressions
    if into is not None:
        name, values = into.this.name, [each.name for each in into.expressions]
    elif fields and len(fields) == 1:
        name, listed = fields[0].this.name, fields[0].expressions
        values = [each.name for each in node.expressions]
    if len(values) != 1 or not listed:
        raise _refused(
            node,
            "UNPIVOT makes one column of names and one of values.",
            "Write UNPIVOT t ON a, b INTO NAME k VALUE v.",
        )
    return _Shape(name, values[0], tuple(listed))


def _listed(listed: exp.Expr, node: exp.Pivot, source: Source) -> tuple[Column, str]:
    """A listed column, and the label of its rows."""
    inner = listed.this if isinstance(listed, exp.PivotAlias) else listed
    if not isinstance(inner, exp.Column):
        raise _refused(node, "UNPIVOT takes plain columns only.", "List the columns.")
    found = source.find(inner.name, inner.table or None, place_of(inner))
    assert isinstance(found, Column)
    if isinstance(listed, exp.PivotAlias):
        return found, _label(listed)
    return found, next(shown for shown, each in source.fields() if each.name == found.name)


def _label(column: exp.PivotAlias) -> str:
    """The label of a column in UNPIVOT. It must be a name or a text: for anything else, such as FALSE,
    sqlglot loses what was written.
    """
    match column.args["alias"]:
        case exp.Identifier() | exp.Literal(is_string=True) as alias:
            return str(alias.name)
        case _:
            raise _refused(column, "UNPIVOT takes a name or a text after AS.", "Write k IN (a AS 'first').")


def _rows(
    node: exp.Pivot, source: Source, shape: _Shape, columns: Sequence[tuple[Column, str]], shared: Type
) -> Source:
    taken = {column.name for column, _ in columns}
    kept = [(shown, each) for shown, each in source.fields() if each.name not in taken]
    inside = unique_names([*(each.name for _, each in kept), shape.name, shape.value])[-2:]
    name, value = inside[0], Field(inside[1], shared)
    of_one_type = tuple(
        (column.name, column if column.type == shared else Call("cast", (column,), shared))
        for column, _ in columns
    )
    relation: Relation = Unpivot(
        Project(source.relation, (*((each.name, each.column) for _, each in kept), *of_one_type)),
        tuple((column.name, label) for column, label in columns),
        name,
        value,
    )
    if not node.args.get("include_nulls"):
        test = Call("is_null", (value.column,), BOOLEAN)
        relation = Filter(relation, Call("not", (test,), BOOLEAN))
    names = (*(shown for shown, _ in kept), shape.name, shape.value)
    return Source(relation, source.alias, names, source.unsupported)


def _refused(node: exp.Expr, message: str, suggestion: str) -> Refused:
    return Refused("refused-unpivot", message, suggestion, place_of(node))
