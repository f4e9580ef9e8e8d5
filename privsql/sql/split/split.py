"""A parsed query and the tables go in; its releases come out, and the SQL above them.

Every query block is one of three kinds. It reads public tables only; or it shows private rows, one by one or
one person at a time; or all that it shows is noisy or public. A block that aggregates private rows is
released: as a whole, if one release can answer it, else divided at its aggregates (divide.py). What remains
reads the releases' answers as tables, and may be any SQL. A noisy query among private rows is released before
them: its result is a constant of their release (given.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from privsql.algebra.relations import Choose, Relation, Release, is_public, is_released, release_of
from privsql.errors import PrivsqlError, Refused, SqlError, UnknownName
from privsql.sql.bind.catalogue import Catalogue
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import rows_shown
from privsql.sql.split.composition import Composition, QueryPart, chooses_rows, needed
from privsql.sql.split.divide import divide
from privsql.sql.split.one_row import has_one_row
from privsql.sql.split.query_blocks import (
    RELEASED,
    Named,
    QueryBlock,
    RowKind,
    Scope,
    all_of,
    is_join,
    label_without_scores,
    mixed_rows,
    several_rows,
    sources_of,
    unused_prefix,
    with_alias,
    with_names,
    with_queries,
    without_joins,
)
from privsql.sql.split.same_parts import are_one
from privsql.sql.split.scoped_tables import ScopedTables
from privsql.sql.split.stage_values import Columns, Shape, StageValue, givens_in, placeholder
from privsql.sql.subqueries.noisy_lookups import with_noisy_lookups
from privsql.sql.subqueries.subquery_nodes import to_join

Bind = Callable[[exp.Expr], Relation]  # a statement of one release or none; refuses what is not permitted
ColumnsOf = Callable[[exp.Expr, Sequence[QueryPart]], Columns]  # of SQL over the answers of some parts
MOST_PARTS = 30


def split(
    statement: exp.Expr, catalogue: Catalogue, bind: Bind, columns_of: ColumnsOf, by_counts: bool = False
) -> Composition | None:
    """The releases of a query and the SQL above them; None if it has no release, or is one by itself.

    `by_counts`: labels are found by releasing their scores, as their keys are not declared.
    """
    splitter = _Splitter(catalogue, bind, columns_of, unused_prefix(statement), by_counts)
    block = splitter.query(statement, {})
    plain = [all_of(each.name) for each in splitter.parts if not each.needs]
    alone = len(splitter.parts) == 1 and _is_one_release(statement, bind)
    if block.kind is not RowKind.NOISY or block.statement in plain or alone:
        return None
    return Composition(needed(splitter.parts, block.statement), block.statement)


def _is_one_release(statement: exp.Expr, bind: Bind) -> bool:
    try:
        return isinstance(release_of(bind(statement.copy())), Release)
    except PrivsqlError:
        return False


@dataclass
class _Splitter:
    catalogue: Catalogue
    bind: Bind
    columns_of: ColumnsOf
    prefix: str
    by_counts: bool
    parts: list[QueryPart] = field(default_factory=list)
    givens: dict[str, StageValue] = field(default_factory=dict)
    known: dict[int, tuple[exp.Expr, QueryBlock]] = field(default_factory=dict)

    # -- blocks ----------------------------------------------------------------------------------------------
    def query(self, node: exp.Expr, scope: Scope) -> QueryBlock:
        """A query with its own WITH. It is split once: its kind is asked for before it is written."""
        if id(node) not in self.known:
            self.known[id(node)] = node, self._query(node, scope)
        return self.known[id(node)][1]

    def _query(self, node: exp.Expr, scope: Scope) -> QueryBlock:
        within, kept = self._with(node, scope)
        block = self._block(node, within)
        if block.kind is RowKind.PRIVATE:
            return block
        statement = block.statement
        statement.set("with_", exp.With(expressions=kept) if kept else None)
        return QueryBlock(statement, block.kind)

    def _with(self, node: exp.Expr, scope: Scope) -> tuple[Scope, list[exp.Expr]]:
        """The names that a query may use, and the queries of its WITH that the SQL above may name."""
        within = dict(scope)
        kept: list[exp.Expr] = []
        clause = node.args.get("with_")
        for each in clause.expressions if clause is not None else []:
            block = self.query(each.this, within)
            written = each.copy()
            written.set("this", block.statement)
            below = written if block.kind is RowKind.PRIVATE else each
            within.pop(each.alias.lower(), None)  # a name that is given again comes last
            within[each.alias.lower()] = Named(below, written, block.kind)
            if block.kind is not RowKind.PRIVATE:
                kept.append(written)
        return within, kept

    def _block(self, node: exp.Expr, scope: Scope) -> QueryBlock:
        match node:
            case exp.Subquery():
                return self._parenthesis(node, scope)
            case exp.SetOperation():
                return self._set_operation(node, scope)
            case exp.Select():
                return self._select(node, scope)
            case _:
                return QueryBlock(self._above(node, scope), RowKind.PUBLIC)

    def _parenthesis(self, node: exp.Subquery, scope: Scope) -> QueryBlock:
        inner = self.query(node.this, scope)
        written = node.copy()
        written.set("this", inner.statement)
        return (
            self._private(written, scope)
            if inner.kind is RowKind.PRIVATE
            else QueryBlock(written, inner.kind)
        )

    def _set_operation(self, node: exp.SetOperation, scope: Scope) -> QueryBlock:
        sides = [self.query(node.this, scope), self.query(node.expression, scope)]
        kinds = {each.kind for each in sides}
        written = node.copy()
        for name, side, original in zip(
            ("this", "expression"), sides, (node.this, node.expression), strict=True
        ):
            public = RowKind.PRIVATE in kinds and side.kind is RowKind.PUBLIC
            written.set(name, original.copy() if public else side.statement)
        if RowKind.PRIVATE in kinds:
            if RowKind.NOISY in kinds:
                raise mixed_rows(place_of(node))
            return self._private(written, scope)
        return QueryBlock(written, RowKind.NOISY if RowKind.NOISY in kinds else RowKind.PUBLIC)

    def _select(self, node: exp.Select, scope: Scope) -> QueryBlock:
        node = with_noisy_lookups(node, self._tables(scope))
        kinds = self._kinds(node, scope)
        if RowKind.PRIVATE in kinds:
            return self._private(self._below(node, scope), scope)
        written = self._above(node, scope)
        noisy = {each.name for each in self.parts if each.noisy} | {
            name for name, each in scope.items() if each.kind is RowKind.NOISY
        }
        reads = {each.name.lower() for each in written.find_all(exp.Table)}
        return QueryBlock(written, RowKind.NOISY if noisy & reads else RowKind.PUBLIC)

    # -- below the releases ----------------------------------------------------------------------------------
    def _below(self, node: exp.Select, scope: Scope) -> exp.Select:
        """A copy of a block over private rows, in which noisy queries are constants, and noisy tables are
        tables of constants. Those above its aggregates stay: they are no part of its release.
        """
        written = node.copy()
        for name in ("from_", "joins", "where"):
            clause = node.args.get(name)
            if isinstance(clause, list):
                written.set(name, [self._constants(each, scope) for each in clause])
            elif clause is not None:
                written.set(name, self._constants(clause, scope))
        for each in list(to_join(written)):
            each.replace(self._constants(each, scope))
        return written

    def _constants(self, node: exp.Expr, scope: Scope) -> exp.Expr:
        """A copy of a clause in which what is noisy is constant."""
        match node:
            case exp.In(args={"query": exp.Expr() as query}):
                found = self._noisy(query, scope)
                if found is not None:
                    return self._given(node, found, Shape.LIST, scope)
            case exp.Exists(this=exp.Query() as query):
                found = self._noisy(query, scope)
                if found is not None:
                    raise mixed_rows(place_of(node))
            case exp.Table(this=exp.Identifier()):
                named = scope.get(node.name.lower())
                if named is not None and named.kind is RowKind.NOISY:
                    return self._given(with_alias(node), all_of(node.name), Shape.TABLE, scope)
                return node.copy()
            case exp.Subquery(args={"joins": [_, *_] as joins}) if not is_join(node):
                first = self._constant_query(without_joins(node), scope, in_from=True)
                first.set("joins", [self._constants(each, scope) for each in joins])
                return first
            case exp.Query() if not (is_join(node) and node.find(exp.Join)):
                return self._constant_query(node, scope, isinstance(node.parent, (exp.From, exp.Join)))
        written = node.copy()
        for name, value in node.args.items():
            if isinstance(value, exp.Expr):
                written.set(name, self._constants(value, scope))
            elif isinstance(value, list):
                listed = [
                    self._constants(each, scope) if isinstance(each, exp.Expr) else each for each in value
                ]
                written.set(name, listed)
        return written

    def _constant_query(self, node: exp.Expr, scope: Scope, in_from: bool) -> exp.Expr:
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            return self._constants(node.this, scope) if in_from else node.copy()
        try:
            block = self.query(node, scope)
        except UnknownName:  # it names columns of the block around it
            if in_from:
                raise
            return node.copy()
        match block.kind:
            case RowKind.PUBLIC:
                return node.copy()
            case RowKind.PRIVATE:
                return block.statement.copy()
            case RowKind.NOISY if in_from:
                return self._given(node, block.statement, Shape.TABLE, scope)
            case RowKind.NOISY:
                named = {name: each.above.this for name, each in scope.items() if each is not RELEASED}
                if not has_one_row(block.statement, self.parts, named):
                    raise several_rows(place_of(node))
                return self._given(node, block.statement, Shape.SCALAR, scope)

    def _noisy(self, query: exp.Expr, scope: Scope) -> exp.Expr | None:
        """The SQL above the releases of a query inside a condition; None if it is not noisy."""
        try:
            block = self.query(query, scope)
        except UnknownName:
            return None
        return block.statement if block.kind is RowKind.NOISY else None

    def _given(self, node: exp.Expr, query: exp.Expr, shape: Shape, scope: Scope) -> exp.Expr:
        """A constant, or a table of constants, in place of a noisy query."""
        written = query.copy()
        while isinstance(written, exp.Subquery):
            written = written.this
        above = {name: each.above for name, each in scope.items() if each is not RELEASED}
        written = with_queries(written, above)
        name = f"v{len(self.givens)}"
        given = StageValue(name, written, shape, self.columns_of(written, self.parts))
        given = next((each for each in self.givens.values() if replace(each, name=name) == given), given)
        if shape is not Shape.TABLE and len(given.columns) != 1:
            raise SqlError(
                "sql-subquery",
                "a subquery in a condition returns one column, and this one has more",
                "select one column",
                place_of(node),
            )
        self.givens[given.name] = given
        return placeholder(given, node)

    def _private(self, node: exp.Expr, scope: Scope) -> QueryBlock:
        """A block over private rows: one release as it stands, private rows, or divided at its aggregates."""
        whole = with_names(node, scope)
        try:
            relation = self.bind(whole.copy())
        except PrivsqlError as refusal:
            return self._divided(node, scope, refusal)
        release = release_of(relation)
        if isinstance(release, Release) and chooses_rows(relation):
            with contextlib.suppress(PrivsqlError):  # HAVING and LIMIT stand above: noise decides there
                return self._divided(node, scope, rows_shown(place_of(node)))
        if isinstance(release, Choose) and self.by_counts:
            return self._divided(node, scope, label_without_scores(place_of(node)))
        if release is not None and not is_public(relation):
            return QueryBlock(all_of(self._part(whole, noisy=True)), RowKind.NOISY)
        return QueryBlock(node, RowKind.PRIVATE)

    def _divided(self, node: exp.Expr, scope: Scope, refusal: PrivsqlError) -> QueryBlock:
        halves = divide(node, self._tables(scope).columns_of) if isinstance(node, exp.Select) else None
        if halves is None:
            raise refusal
        released = with_names(halves.released, scope)
        relation = self.bind(released.copy())
        if not is_released(relation):
            raise refusal
        name = self._part(released, noisy=True)
        within = {**scope, name: RELEASED}
        above = with_noisy_lookups(halves.over(name), self._tables(within))
        return QueryBlock(self._above(above, within), RowKind.NOISY)

    def _tables(self, scope: Scope) -> ScopedTables:
        return ScopedTables(
            self.bind,
            scope,
            lambda query: self.query(query, scope).kind,
            lambda select: self._kinds(select, scope),
        )

    def _part(self, statement: exp.Expr, noisy: bool) -> str:
        """The name of a part; what stands in a query twice is released once."""
        needs = tuple(self.givens[name] for name in givens_in(statement))
        for each in self.parts:
            if each.statement == statement or (
                needs and each.needs == needs and are_one(each.statement, statement, needs, self.bind)
            ):
                return each.name
        if len(self.parts) >= MOST_PARTS:
            raise Refused(
                "refused-parts",
                f"The query has more than {MOST_PARTS} parts, each of which would get a share of epsilon.",
                "Ask several queries.",
                place_of(statement),
            )
        self.parts.append(QueryPart(f"{self.prefix}{len(self.parts)}", statement, noisy, needs))
        return self.parts[-1].name

    # -- above the releases ----------------------------------------------------------------------------------
    def _above(self, node: exp.Expr, scope: Scope) -> exp.Expr:
        """A copy in which every query that it contains is split, and every public table is a part."""
        if isinstance(node, exp.With):
            return node.copy()
        if isinstance(node, exp.Table):
            return self._table(node, scope)
        written = node.copy()
        for name, value in node.args.items():
            if isinstance(value, exp.Expr):
                written.set(name, self._inner(value, scope))
            elif isinstance(value, list):
                listed = [self._inner(each, scope) if isinstance(each, exp.Expr) else each for each in value]
                written.set(name, listed)
        return written

    def _inner(self, node: exp.Expr, scope: Scope) -> exp.Expr:
        if not isinstance(node, exp.Query):
            return self._above(node, scope)
        block = self.query(node, scope)
        if block.kind is RowKind.PRIVATE:
            raise rows_shown(place_of(node))
        return block.statement

    def _table(self, node: exp.Table, scope: Scope) -> exp.Expr:
        """A table that the SQL above names: what WITH names, a release, or a public table, which becomes a
        part.
        """
        name = node.name.lower()
        if not isinstance(node.this, exp.Identifier) or name in scope:
            return self._with_pivots(node, node.copy(), scope)
        statement = exp.Select(
            expressions=[exp.Star()], from_=exp.From(this=exp.Table(this=node.this.copy()))
        )
        self.bind(statement.copy())  # a table that is not there says so
        written = node.copy()
        written.set("this", exp.to_identifier(self._part(statement, noisy=False)))
        if node.args.get("alias") is None:
            written.set("alias", exp.TableAlias(this=exp.to_identifier(node.name, quoted=True)))
        return self._with_pivots(node, written, scope)

    def _with_pivots(self, node: exp.Table, written: exp.Expr, scope: Scope) -> exp.Expr:
        pivots = node.args.get("pivots")
        if pivots:
            written.set("pivots", [self._above(each, scope) for each in pivots])
        return written

    # -- kinds -----------------------------------------------------------------------------------------------
    def _kinds(self, node: exp.Select, scope: Scope) -> set[RowKind]:
        """Of all that a SELECT reads."""
        return {self._kind(each, scope) for each in sources_of(node)}

    def _kind(self, source: exp.Expr, scope: Scope) -> RowKind:
        """What the rows of something in FROM are."""
        match source:
            case exp.Table(this=exp.Identifier()):
                named = scope.get(source.name.lower())
                if named is not None:
                    return named.kind
                return self._kind_of_table(source)
            case exp.Subquery(this=exp.Table() as inner):
                return self._kind(inner, scope)
            case exp.Subquery():
                return self.query(without_joins(source), scope).kind
            case exp.Pivot() if isinstance(source.this, exp.Expr):
                return self._kind(source.this, scope)
            case _:
                return RowKind.PUBLIC

    def _kind_of_table(self, node: exp.Table) -> RowKind:
        try:
            found = self.catalogue.source(node.name)
        except PrivsqlError as error:
            raise error.at(place_of(node)) from None
        return RowKind.PUBLIC if found is None or is_public(found.relation) else RowKind.PRIVATE
