"""A SELECT with subqueries that aggregate other people's rows for each of its rows goes in; it comes out with
joins of grouped subqueries, which are releases.

    SELECT COUNT(*) FROM people AS p WHERE p.age > (SELECT AVG(age) FROM people AS o WHERE o.state = p.state)

compares each age with a noisy average: that of the person's state, which is released before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from privsql.algebra.expressions import Column
from privsql.algebra.relations import Filter, Project, Release, Sort
from privsql.errors import PrivsqlError
from privsql.sql.subqueries.correlation import Correlation
from privsql.sql.subqueries.decorrelate import Named, SubqueryJoins, Tables, listed, operand


class PublicTables(Tables, Protocol):
    """What the subqueries of a SELECT read, where some of its tables are public, and some noisy."""

    def is_noisy(self, query: exp.Select) -> bool:
        """Whether all that a query shows is noisy or public."""
        ...

    def reads_people(self, node: exp.Select) -> bool:
        """Whether private rows are in the FROM of a SELECT."""
        ...

    def domain(self, node: exp.Select, wanted: Sequence[Named]) -> exp.Select | None:
        """A public query for the values that some expressions of the SELECT can have; None if they depend on
        other tables.
        """
        ...


def with_noisy_lookups(node: exp.Select, tables: PublicTables) -> exp.Select:
    """The SELECT with a join in place of each subquery that aggregates other people's rows."""
    return _NoisyJoins.of(node, tables).joined()


@dataclass
class _NoisyJoins(SubqueryJoins):
    """Joins of releases. Whatever else is wrong with a subquery is for others to say."""

    tables: PublicTables

    def replacement(self, node: exp.Expr) -> exp.Expr | None:
        if not isinstance(node, exp.Subquery):
            return None  # whether somebody's row exists is itself private
        try:
            return super().replacement(node)
        except PrivsqlError:
            return None

    def is_joined(self, query: exp.Select, tied: Correlation) -> bool:
        """Over noisy tables, what stands beside no private rows needs no join."""
        private = self.tables.reads_people(tied.select) or self.tables.reads_people(self.node)
        return tied.is_outside and private and self.tables.is_noisy(query)

    def is_one_row(self, query: exp.Select, keys: Sequence[str], tied: Correlation) -> bool:
        relation = self.tables.relation(query)
        while isinstance(relation, (Project, Filter, Sort)):
            if isinstance(relation, Project):
                columns = dict(relation.columns)
                keys = [each.name for name in keys if isinstance(each := columns[name], Column)]
            relation = relation.input
        if not isinstance(relation, Release) or relation.sets:
            return False
        return {key.name for key in relation.keys} <= set(keys) and self.is_joined(query, tied)

    def query(self, tied: Correlation, keys: Sequence[Named], values: Sequence[Named]) -> exp.Select:
        """The subquery, grouped by the values that rows around it can have, where these are public: no others
        are released.
        """
        outer = [(name, around) for (name, _), (_, around) in zip(keys, tied.pairs, strict=True)]
        domain = self.tables.domain(self.node, outer) if keys else None
        if domain is None:
            return super().query(tied, keys, values)
        named = [(name, exp.column(name, quoted=True)) for name, _ in keys]
        written = tied.reading(listed((*named, *values)))
        equal = [
            exp.EQ(this=operand(inner.copy()), expression=column.copy())
            for (_, inner), (_, column) in zip(keys, named, strict=True)
        ]
        alias = exp.TableAlias(this=exp.to_identifier(f"{self.prefix}_domain", quoted=True))
        written.append(
            "joins",
            exp.Join(this=exp.Subquery(this=domain, alias=alias), on=exp.and_(*equal, copy=False)),
        )
        written.set("group", exp.Group(expressions=[column.copy() for _, column in named]))
        return written
