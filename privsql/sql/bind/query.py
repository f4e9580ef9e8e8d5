"""A permitted query goes in; a tree of relations comes out, with the names of its columns.

Below the first aggregate everything works row by row; above it everything works on noisy numbers. read.py
refuses a query that would return private rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from privsql.algebra import build
from privsql.algebra.expressions import Expression, Literal, size_of
from privsql.algebra.functions import common
from privsql.algebra.relations import (
    Choose,
    Field,
    Group,
    Project,
    Relation,
    Release,
    Scan,
    Sort,
    Values,
    below,
    is_public,
    is_released,
    walk,
)
from privsql.errors import Refused, SqlError, UnknownName, did_you_mean
from privsql.sql.bind.catalogue import Catalogue
from privsql.sql.bind.clauses import bind_order, limited, ordered_rows
from privsql.sql.bind.from_clause.constant_rows import generated
from privsql.sql.bind.scalar.binder import ExpressionBinder
from privsql.sql.bind.scope import Source
from privsql.sql.bind.select import SelectBinder
from privsql.sql.bind.union import united
from privsql.sql.bind.unnest import bind_from, selected_constants
from privsql.sql.bind.unpivot import unpivoted
from privsql.sql.bind.within_unit.differences import compared
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import only_select
from privsql.sql.privacy_clause.private_select import PrivateSelectBinder
from privsql.sql.subqueries.correlation import IsColumn
from privsql.sql.subqueries.decorrelate import decorrelated
from privsql.types import BOOLEAN, TEXT, Kind

_MAX_RELATIONS = 400
_MAX_OPERATORS = 600


@dataclass
class QueryBinder:
    """Binds queries against a catalogue of tables; a CTE is a name for a relation and is bound once."""

    catalogue: Catalogue
    relations: int = 0
    ctes: dict[str, Source] = field(default_factory=dict)

    # -- queries -------------------------------------------------------------------------------------------
    def query(self, node: exp.Expr) -> Source:
        """A SELECT, a UNION ALL or either in parentheses."""
        outer = self.ctes
        try:
            self.ctes = dict(outer)  # the names of a WITH are visible within its query only
            named = node.args["with_"].expressions if node.args.get("with_") else []
            _refuse_repeated(named)
            for each in named:
                self._cte(each)
            return _small(self._query(node))
        finally:
            self.ctes = outer

    def _query(self, node: exp.Expr) -> Source:
        self.relations += 1
        if self.relations > _MAX_RELATIONS:
            raise SqlError("sql-too-long", "the query has too many parts", "write a simpler query")
        match node:
            case exp.Select():
                if node.args.get("from_") is None:
                    _refuse_star(node)
                    return SelectBinder(node, selected_constants(node) or _one_row(), self).bind()
                node = decorrelated(node, self)
                binder = PrivateSelectBinder if node.args.get("privacy") else SelectBinder
                return binder(node, self.joined(node), self).bind()
            case exp.Pivot():
                return self.source(node)
            case exp.Union():
                return self._tail(node, united(self.query(node.this), self.query(node.expression), node))
            case exp.Except() | exp.Intersect():
                return self._tail(node, compared(self.query(node.this), self.query(node.expression), node))
            case exp.Subquery(args={"joins": [_, *_]}):
                raise only_select(place_of(node))
            case exp.Subquery():
                if node.args.get("pivots"):
                    raise Refused(
                        "refused-unpivot",
                        "UNPIVOT of a query in parentheses is supported in FROM only.",
                        "Write SELECT ... FROM (...) UNPIVOT (...).",
                        place_of(node),
                    )
                inner = (
                    self.query(node.this)
                    if not isinstance(node.this, (exp.Table, exp.Pivot))
                    else self.source(node.this)
                )
                return self._tail(node, inner)
        raise only_select(place_of(node))

    def joined(self, node: exp.Select) -> Source:
        """FROM with all its joins, from left to right."""
        return bind_from(node, self.source)

    # -- subqueries inside expressions: what they read -------------------------------------------------------
    def columns_of(self, node: exp.Select) -> IsColumn:
        """Whether a name is a column of the FROM of a SELECT."""
        source = _one_row() if node.args.get("from_") is None else self.joined(node)

        def is_column(column: exp.Column) -> bool:
            try:
                source.find(column.name, column.table or None, None)
            except UnknownName as error:
                return error.code == "name-ambiguous"
            except Refused:  # it is of a type without rules
                return True
            return True

        return is_column

    def relation(self, query: exp.Expr) -> Relation:
        return self.query(query).relation

    def _cte(self, node: exp.CTE) -> None:
        name = node.args["alias"].name.lower()
        source = self.query(node.this)
        self.ctes[name] = self._renamed(source, node.args["alias"])

    def _tail(self, node: exp.Expr, source: Source) -> Source:
        """ORDER BY, LIMIT and OFFSET after a union or a parenthesis."""
        order, limit, offset = (node.args.get(name) for name in ("order", "limit", "offset"))
        if order is None and limit is None and offset is None:
            return source
        if not is_released(source.relation) and not is_public(source.relation):
            raise ordered_rows(node)
        relation = source.relation
        if order is not None:
            source = source.all_read("ORDER BY behind *", place_of(order))
            binder = ExpressionBinder(
                lambda column: source.find(column.name, column.table or None, place_of(column))
            )
            shown: list[Expression] = [each.column for each in relation.fields]
            relation = Sort(relation, tuple(bind_order(each, binder, shown) for each in order.expressions))
        return replace(source, relation=limited(relation, limit, offset))

    # -- FROM ----------------------------------------------------------------------------------------------
    def source(self, node: exp.Expr) -> Source:
        """An element of FROM: a table, a query, or a join in parentheses."""
        joins = node.args.get("joins")
        if joins:
            bare = node.copy()
            bare.set("joins", None)
            inside = exp.Select(from_=exp.From(this=bare), joins=[each.copy() for each in joins])
            return self.joined(inside)
        match node:
            case exp.Table(this=exp.GenerateSeries() as series) if not node.args.get("pivots"):
                called = "range" if series.args.get("is_end_exclusive") else "generate_series"
                return generated(node, series, called)
            case exp.Unnest(expressions=[listed]):
                return generated(node, listed, "unnest")
            case exp.Table():
                found = self._table(node)
            case exp.Subquery() if _is_source(node.this):
                found = self.source(node.this)
                if node.args.get("alias") is not None:
                    found = found.as_seen()
            case exp.Subquery():
                bare = node.copy() if node.args.get("pivots") else node
                bare.set("pivots", None)
                found = self.query(bare)
            case exp.Values():
                found = self._values(node)
            case exp.Pivot():
                found = unpivoted(node, self.source(node.this))
            case _:
                raise Refused(
                    "refused-from",
                    f"{type(node).__name__.upper()} in FROM is not supported.",
                    "Name a table.",
                    place_of(node),
                )
        for pivot in node.args.get("pivots") or []:
            found = self._renamed(unpivoted(pivot, found), pivot.args.get("alias"))
        return self._renamed(found, node.args.get("alias"))

    def _table(self, node: exp.Table) -> Source:
        if not isinstance(node.this, exp.Identifier):
            raise Refused(
                "refused-table-function",
                "Functions in FROM are not supported.",
                "Name a table.",
                place_of(node),
            )
        name = node.this.name
        if name.lower() in self.ctes:
            return replace(self.ctes[name.lower()], alias=name)
        try:
            found = self.catalogue.source(name)
        except Refused as error:
            raise error.at(place_of(node)) from None
        if found is None:
            known = [*self.catalogue.names, *self.ctes]
            raise UnknownName(
                "name-table", f"there is no table {name}", did_you_mean(name, known), place_of(node)
            )
        return found

    def _renamed(self, source: Source, alias: exp.Expr | None) -> Source:
        if alias is None:
            return source
        name = alias.this.name if alias.this is not None else source.alias
        columns = [each.name for each in alias.args.get("columns") or []]
        if len(columns) > min(
            (source.gaps.get(each, 0) for each in source.unsupported), default=len(columns)
        ):
            source = source.all_read("a list of aliases", place_of(alias))
        if len(columns) > len(source.names):
            raise SqlError("sql-alias", "more column aliases than columns", "leave some out", place_of(alias))
        names = (*columns, *source.names[len(columns) :])
        lists = () if columns else source.lists  # aliases count a table's columns, and a list is one of them
        return replace(source, alias=name, names=names, tables=(), hidden=frozenset(), lists=lists)

    def _values(self, node: exp.Values) -> Source:
        binder = ExpressionBinder(_no_columns)
        rows = [[binder.bind(each) for each in row.expressions] for row in node.expressions]
        if len({len(row) for row in rows}) != 1:
            raise SqlError(
                "sql-values",
                "the rows of VALUES have different lengths",
                "VALUES (1, 2), (3, 4)",
                place_of(node),
            )
        columns = [build.same_type([row[index] for row in rows]) for index in range(len(rows[0]))]
        names = [f"col{index}" for index in range(len(columns))]
        types = [common([each.type for each in column]) or TEXT for column in columns]
        fields = tuple(
            Field(name, TEXT if type_.kind is Kind.NULL else type_)
            for name, type_ in zip(names, types, strict=True)
        )
        relation = Values(
            tuple(tuple(column[index] for column in columns) for index in range(len(rows))), fields
        )
        return Source(relation, None, tuple(names))


def _is_source(node: exp.Expr) -> bool:
    """Whether this, in parentheses in FROM, is a table or a join, and no query."""
    return isinstance(node, (exp.Pivot, exp.Table)) or (
        isinstance(node, exp.Subquery) and bool(node.args.get("joins"))
    )


def _refuse_repeated(named: Sequence[exp.CTE]) -> None:
    """Refuse two CTEs with the same name: the first would be lost."""
    seen: set[str] = set()
    for each in named:
        name = each.args["alias"].name.lower()
        if name in seen:
            raise SqlError(
                "sql-alias",
                f"WITH defines {name} twice: names are not case-sensitive",
                "rename one of them",
                place_of(each),
            )
        seen.add(name)


def _small(source: Source) -> Source:
    """Refuse a relation that is too large. The check runs while a query is bound: afterwards, CTEs that
    double each other would already have grown beyond counting.
    """
    many = any(count > _MAX_OPERATORS for count, _ in enumerate(walk(source.relation)))
    if many or max(_sizes(source.relation).values(), default=0) > build.MAX_SIZE:
        raise SqlError(
            "sql-too-long",
            "the query becomes too large once its CTEs are expanded",
            "refer to them less often",
        )
    return source


def _sizes(relation: Relation) -> dict[str, int]:
    """The size of each column, expanded down to the columns of tables and releases."""
    match relation:
        case Project():
            sizes = _sizes(relation.input)
            return {name: size_of(each, sizes) for name, each in relation.columns}
        case Group() | Release() | Choose() | Scan() | Values():
            return dict.fromkeys((each.name for each in relation.fields), 1)
    found: dict[str, int] = {}
    for each in below(relation):
        for name, size in _sizes(each).items():
            found[name] = max(size, found.get(name, 0))
    return {each.name: found.get(each.name, max(found.values(), default=1)) for each in relation.fields}


def _one_row() -> Source:
    """What a SELECT without FROM reads: one public row, which says nothing."""
    field_ = Field("as_nothing", BOOLEAN)
    return Source(Values(((Literal(True, BOOLEAN),),), (field_,)), None, ("",), hidden=frozenset({0}))


def _refuse_star(node: exp.Select) -> None:
    if any(each.is_star for each in node.expressions):
        raise Refused(
            "refused-from",
            "The query has no FROM clause.",
            "Write SELECT ... FROM a table.",
            place_of(node),
        )


def _no_columns(node: exp.Column) -> Expression:
    raise UnknownName(
        "name-column", f"there is no column {node.name} here", "VALUES takes constants only", place_of(node)
    )
