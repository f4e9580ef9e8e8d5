"""FROM, with UNNEST of lists, goes in; sources come out, in which the elements of a list are a column of its
table.

UNNEST turns one row into one row per element, and each of them takes part in the joins. So a list is unnested
at its table, before any join. SELECT UNNEST(x) FROM t is read as SELECT u.e FROM t, UNNEST(x) AS u(e).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from privsql.algebra.declared import ListColumn
from privsql.algebra.expressions import Expression
from privsql.algebra.relations import Field, Project, Relation, Scan, Unnest, is_public, walk
from privsql.algebra.reserved import unique_names
from privsql.errors import Refused, SqlError, UnknownName, did_you_mean
from privsql.sql.bind.from_clause.constant_rows import constant_rows, is_constant_list
from privsql.sql.bind.join import bind_join
from privsql.sql.bind.scalar.binder import ExpressionBinder
from privsql.sql.bind.scope import Source
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import refusal
from privsql.suggestions import Declare, Fact, Way
from privsql.types import Kind

_SELECTED = "privsql_unnest"  # the reserved table name for an UNNEST in SELECT
# Kinds whose equal values look alike, so that a distinct list contains no value twice.
_PLAIN = frozenset({Kind.BOOLEAN, Kind.INTEGER, Kind.DECIMAL, Kind.TEXT, Kind.DATE, Kind.TIMESTAMP})

_TWO = "Write FROM t, UNNEST(list_distinct(t.a)) AS u(a), UNNEST(list_distinct(t.b)) AS v(b)"
_OF_THE_LAST = ("RIGHT", "FULL", "NATURAL")  # in DuckDB they join only what follows a comma
_RANGES = {Kind.INTEGER: Fact.RANGE, Kind.DATE: Fact.MOMENTS}


@dataclass(frozen=True)
class ListOpening:
    """One UNNEST: its list, and the names of its table and column; `name`: a more readable one for
    messages.
    """

    node: exp.Expr
    argument: exp.Expr
    table: str
    column: str
    name: str


@dataclass
class JoinedTable:
    """A table of FROM with its unnested lists; `places`: the position of each of its columns in FROM."""

    source: Source
    join: exp.Join | None
    places: list[int]

    def says(self, name: str) -> bool:
        """Whether it is joined by LEFT, RIGHT, FULL, SEMI, ANTI or NATURAL."""
        return self.join is not None and name in (
            str(self.join.args.get(each) or "").upper() for each in ("side", "kind", "method")
        )


class RowBinder(ExpressionBinder):
    """Binds expressions over the rows of a SELECT; a selected UNNEST is a column there."""

    def __init__(self, column: Callable[[exp.Column], Expression], source: Source) -> None:
        super().__init__(column)
        self.source = source
        self.windows: Callable[[exp.Window], Expression] | None = None  # where windows are allowed

    def special(self, node: exp.Expr) -> Expression | None:
        if isinstance(node, exp.Window):
            if self.windows is None:
                raise SqlError(
                    "sql-window",
                    "windows come after WHERE, GROUP BY and aggregates",
                    "filter with QUALIFY, or aggregate over SELECT ... FROM (...)",
                    place_of(node),
                )
            return self.windows(node)
        if not isinstance(node, exp.Explode):
            return None
        above = node.parent
        while isinstance(above, (exp.Alias, exp.Paren, exp.Group, exp.Cast)):
            above = above.parent
        if not isinstance(above, exp.Select) or node not in _explodes(above):
            raise _misplaced(node)
        return self.source.find(_SELECTED, _SELECTED, place_of(node))


def bind_from(node: exp.Select, bind: Callable[[exp.Expr], Source]) -> Source:
    """FROM with all its joins, from left to right, and its lists unnested."""
    if _in_from(node.args["from_"].this) is not None:
        raise _misplaced(node.args["from_"])  # no table precedes it
    first = bind(node.args["from_"].this)
    parts = [JoinedTable(first, None, [0] * len(first.names))]
    others = [*(node.args.get("joins") or []), *(node.args.get("laterals") or [])]
    listed = len(others) + 1  # so many tables come before the first list after a comma
    for place, each in enumerate(others, start=1):
        opening = _in_from(each)
        if opening is not None:
            listed = min(listed, len(parts)) if _is_comma(each) else listed
            _open(parts, opening, place)
        else:
            source = bind(each.this)
            parts.append(JoinedTable(source, each, [place] * len(source.names)))
    for opening in _selected(node):
        _open(parts, opening, len(others) + 1)
    found, places, comma = parts[0].source, parts[0].places, False
    for number, part in enumerate(parts[1:], start=1):
        assert part.join is not None
        comma = comma or number >= listed
        form = next((each for each in _OF_THE_LAST if part.says(each)), None)
        if comma and form is not None:
            raise Refused(
                "refused-join",
                f"{form} JOIN after a comma means different things to different engines.",
                "Write CROSS JOIN for the comma, or " + ("ON." if form == "NATURAL" else "LEFT JOIN."),
                place_of(part.join),
            )
        comma = comma or _is_comma(part.join)
        found = bind_join(found, part.source, part.join)
        places = places if part.says("SEMI") or part.says("ANTI") else [*places, *part.places]
    return _in_order(found, places)


def _is_comma(node: exp.Expr) -> bool:
    says = ("kind", "side", "method", "on", "using")
    return isinstance(node, exp.Join) and not any(node.args.get(each) for each in says)


def _in_from(node: exp.Expr) -> ListOpening | None:
    """UNNEST(...) AS u(x) after a comma or in a join, or LATERAL VIEW explode(...) u AS x."""
    join, inner = (node, node.this) if isinstance(node, exp.Join) else (None, node)
    alias = inner.args.get("alias")
    if isinstance(inner, exp.Lateral):
        inner = inner.this
        if not isinstance(inner, (exp.Unnest, exp.Explode)):
            raise refusal("Lateral", place_of(node))
    if not isinstance(inner, (exp.Unnest, exp.Explode)):
        return None
    if isinstance(inner, exp.Unnest) and all(map(is_constant_list, inner.expressions)):
        return None  # a table of constants, and no list of another table
    if join is not None:
        on, form = join.args.get("on"), [join.args.get(name) for name in ("side", "method", "using")]
        if any(form) or str(join.args.get("kind") or "").upper() not in ("", "INNER", "CROSS"):
            raise _refused(
                node,
                "UNNEST is supported after a comma, JOIN or CROSS JOIN.",
                "Write FROM t, UNNEST(...) AS u(tag).",
            )
        if on is not None and on != exp.true():
            raise _refused(
                node,
                "A join condition of UNNEST is not supported.",
                "Write ON TRUE, and the condition into WHERE.",
            )
    arguments = inner.expressions if isinstance(inner, exp.Unnest) else [inner.this]
    columns = [each.name for each in (alias.args.get("columns") or [])] if alias is not None else []
    if len(arguments) != 1 or len(columns) > 1:
        raise _refused(node, "UNNEST takes one list.", _TWO)
    named = alias.this.name if alias is not None and alias.this is not None else None
    column = columns[0] if columns else named or "unnest"
    return ListOpening(inner, arguments[0], named or column, column, column)


def _selected(node: exp.Select) -> Iterator[ListOpening]:
    """The one UNNEST in the SELECT list, however often it is repeated."""
    found = _explodes(node)
    if any(each != found[0] for each in found[1:]):
        raise _refused(
            found[1], "Several lists in one SELECT would be paired by the positions of their elements.", _TWO
        )
    for each in found[:1]:
        yield ListOpening(
            each,
            each.this,
            _SELECTED,
            _SELECTED,
            each.parent.alias if isinstance(each.parent, exp.Alias) else "element",
        )


def selected_constants(node: exp.Select) -> Source | None:
    """What SELECT UNNEST([1, 2, 3]) without FROM reads; None: it has no UNNEST of constants."""
    found = list(_selected(node))
    if not found or not is_constant_list(found[0].argument):
        return None
    rows = constant_rows(found[0].argument, _SELECTED, _SELECTED)
    return replace(rows, hidden=frozenset({0}))


def _explodes(node: exp.Select) -> list[exp.Explode]:
    return [each for item in node.expressions for each in item.find_all(exp.Explode)]


def _open(parts: list[JoinedTable], opening: ListOpening, place: int) -> None:
    """Add the elements of a list as a further column of the table that has the list."""
    inner = _bare(opening.argument)
    distinct = isinstance(inner, exp.ArrayDistinct)
    inner = _bare(inner.this) if distinct else inner
    if not isinstance(inner, exp.Column):
        raise _misplaced(opening.node)
    part, column = _holder(parts, inner)
    source = part.source
    if not is_public(source.relation):
        _refuse_unbounded(source.relation, column, distinct, opening.node)
    taken = [*(each.name for each in source.relation.fields), *(each.name for each in source.lists)]
    element = Field(unique_names([*taken, opening.name])[-1], column.type)
    part.places.append(place)
    part.source = replace(
        source,
        relation=Unnest(source.relation, column, element, distinct),
        names=(*source.names, opening.column),
        tables=(*source.qualifiers(), frozenset({opening.table.lower()})),
        hidden=source.hidden | ({len(source.names)} if opening.table == _SELECTED else set()),
    )


def _holder(parts: list[JoinedTable], node: exp.Column) -> tuple[JoinedTable, ListColumn]:
    """The table of FROM that has this list."""
    name, table = node.name, node.table.lower()
    seen = [part for part in parts if not (part.says("SEMI") or part.says("ANTI"))]
    named = [part for part in seen if not table or (part.source.alias or "").lower() == table]
    found = [
        (part, each) for part in named for each in part.source.lists if each.name.lower() == name.lower()
    ]
    if len(found) > 1:
        raise UnknownName(
            "name-ambiguous",
            f"{name} names more than one column",
            "write the table's name before it",
            place_of(node),
        )
    if not found:
        raise _no_list(named, node)
    ((part, column),) = found
    later = parts[parts.index(part) + 1 :]
    padded = part.says("LEFT") or part.says("FULL")
    if padded or any(each.says("RIGHT") or each.says("FULL") for each in later):
        raise _refused(
            node,
            f"The rows that this join pads with NULL have no {name}.",
            "UNNEST it in a subquery, and join that.",
        )
    return part, column


def _no_list(parts: list[JoinedTable], node: exp.Column) -> Exception:
    name, place = node.name, place_of(node)
    tables = [part.source for part in parts if isinstance(part.source.relation, Scan)]
    types = {each.lower(): type_ for table in tables for each, type_ in table.unsupported.items()}
    if name.lower() in types:
        return Refused(
            "refused-type",
            f"Column {name} has type {types[name.lower()]}, whose elements are not supported.",
            "Use lists of ordinary types.",
            place,
        )
    if any(shown.lower() == name.lower() for part in parts for shown in part.source.names):
        return SqlError(
            "sql-type",
            f"UNNEST needs a list, and {name} is not one",
            "a list has a type like VARCHAR[] (pandas: pd.ArrowDtype(pa.list_(pa.string())))",
            place,
        )
    known = [each.name for part in parts for each in part.source.lists]
    way_out = did_you_mean(name, known) if known else "UNNEST it where its table itself stands in FROM"
    return UnknownName("name-column", f"there is no list {name} in a table of this FROM", way_out, place)


def _refuse_unbounded(relation: Relation, column: ListColumn, distinct: bool, node: exp.Expr) -> None:
    """Refuse a list of unbounded length; only the distinct values of a declared set are bounded."""
    name = column.name
    if not distinct:
        raise _refused(
            node,
            "One person's list may hold the same value any number of times.",
            f"Write UNNEST(list_distinct({name})).",
        )
    if column.type.kind not in _PLAIN:
        raise _refused(
            node,
            f"UNNEST of {column.type} lists is not supported: values that look alike may differ.",
            "Use lists of whole numbers, decimals, texts or dates.",
        )
    if column.most is None:
        fact = _RANGES.get(column.type.kind, Fact.VALUES)
        table = next(each.table for each in walk(relation) if isinstance(each, Scan))
        raise _refused(
            node,
            f"One person's list {name} may hold any number of values: which can occur is not declared.",
            [("declare them, and a row becomes that many at most: ", Declare(table, ((name, fact),)))],
        )


def _in_order(source: Source, places: list[int]) -> Source:
    """The columns in the order of FROM: those of an unnested list follow those of the tables before it."""
    order = sorted(range(len(places)), key=places.__getitem__)
    if order == list(range(len(places))):
        return source
    fields, tables = source.relation.fields, source.qualifiers()
    return replace(
        source,
        relation=Project(source.relation, tuple((fields[each].name, fields[each].column) for each in order)),
        names=tuple(source.names[each] for each in order),
        tables=tuple(tables[each] for each in order),
        hidden=frozenset(new for new, old in enumerate(order) if old in source.hidden),
    )


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _misplaced(node: exp.Expr) -> Refused:
    return refusal("Unnest", place_of(node))


def _refused(node: exp.Expr, message: str, suggestion: str | Sequence[Way]) -> Refused:
    return Refused("refused-unnest", message, suggestion, place_of(node))
