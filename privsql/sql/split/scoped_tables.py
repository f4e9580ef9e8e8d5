"""The blocks of a query go in; what they read comes out, with the names that WITH gives: their columns, whose
rows they have, and which values public columns can have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from privsql.algebra.relations import Relation, is_public
from privsql.errors import PrivsqlError, UnknownName
from privsql.sql.split.query_blocks import RowKind, Scope, sources_of, with_names
from privsql.sql.subqueries.correlation import IsColumn, conjuncts
from privsql.sql.subqueries.decorrelate import Named, listed

_READS = ("from_", "joins", "laterals", "with_")


@dataclass(frozen=True)
class ScopedTables:
    """The tables that a block can name."""

    bind: Callable[[exp.Expr], Relation]
    scope: Scope
    kind: Callable[[exp.Expr], RowKind]  # of the rows of a query
    kinds: Callable[[exp.Select], set[RowKind]]  # of the rows that a SELECT reads

    def is_noisy(self, query: exp.Select) -> bool:
        """Whether all that a query shows is noisy or public."""
        return self.kind(query) is RowKind.NOISY

    def reads_people(self, node: exp.Select) -> bool:
        """Whether private rows are in the FROM of a SELECT."""
        return RowKind.PRIVATE in self.kinds(node)

    def relation(self, query: exp.Expr) -> Relation:
        return self.bind(with_names(query, self.scope))

    def columns_of(self, node: exp.Select) -> IsColumn:
        """Whether a name is a column of what a SELECT reads."""

        def is_column(column: exp.Column) -> bool:
            probe = exp.Select(expressions=[column.copy()])
            for name in _READS:
                clause = node.args.get(name)
                if clause is not None:
                    probe.set(name, [e.copy() for e in clause] if isinstance(clause, list) else clause.copy())
            try:
                self.relation(probe)
            except UnknownName as error:
                return error.code == "name-ambiguous"
            return True

        return is_column

    def domain(self, node: exp.Select, wanted: Sequence[Named]) -> exp.Select | None:
        """The values that some expressions of a SELECT can have, if all are of one public table."""
        for source in sources_of(node):
            query = exp.Select(expressions=listed(wanted), from_=exp.From(this=source.copy()))
            query.set("distinct", exp.Distinct())
            if self._is_public(query):
                return self._narrowed(query, node)
        return None

    def _narrowed(self, query: exp.Select, node: exp.Select) -> exp.Select:
        """With those of the conditions on the rows of a SELECT that are about this table alone."""
        where = node.args.get("where")
        for part in conjuncts(where.this) if where is not None else []:
            narrower = query.copy().where(part.copy(), copy=False)
            if self._is_public(narrower):
                query = narrower
        return query

    def _is_public(self, query: exp.Select) -> bool:
        try:
            return is_public(self.relation(query))
        except PrivsqlError:
            return False
