"""A SELECT with subqueries inside its expressions goes in; the same SELECT with a LEFT JOIN for each of them
comes out.

    SELECT COUNT(*) FROM people AS p WHERE (SELECT COUNT(*) FROM visits AS v WHERE v.person = p.id) > 2

is read as

    SELECT COUNT(*) FROM people AS p LEFT JOIN (SELECT v.person AS k, COUNT(*) AS n FROM visits AS v
    GROUP BY v.person) AS q ON q.k = p.id WHERE COALESCE(q.n, 0) > 2

so its bound is that of a join and of a grouped subquery. A row meets at most one row of the join: it is
joined on what the subquery is grouped by, or on columns that are unique.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from privsql.algebra.owners import is_unique, owner
from privsql.algebra.relations import Relation, is_public, is_released
from privsql.errors import Refused, SqlError
from privsql.sql.bind.release import EXACT, PAIRED, SPREADS
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import refusal
from privsql.sql.subqueries.correlation import (
    Correlation,
    IsColumn,
    columns_in,
    correlation,
    has_other_clauses,
    of_other_people,
    outside_in_aggregate,
    several_rows,
    unknown_aggregate,
)
from privsql.sql.subqueries.subquery_nodes import (
    aggregates_of,
    inside,
    is_negated,
    is_plain,
    loose_columns,
    named,
    replace_all,
    select_of,
    stands_alone,
    to_join,
)

# What an aggregate of no rows is: 0, or NULL.
_COUNTS: tuple[type[exp.Expr], ...] = (exp.Count, exp.CountIf, exp.RegrCount, exp.ApproxDistinct, exp.Hll)
_EXTREMES = (exp.Min, exp.Max, exp.Median, exp.Quantile, exp.ApproxQuantile, exp.WithinGroup)
_OTHERS: tuple[type[exp.Expr], ...] = (exp.Sum, exp.Avg, *_EXTREMES, *SPREADS, *PAIRED, *EXACT)

Named = tuple[str, exp.Expr]  # the name of a column, and what it is


class Tables(Protocol):
    """What the subqueries of a SELECT read."""

    def columns_of(self, node: exp.Select) -> IsColumn:
        """Whether a name is a column of the FROM of a SELECT."""
        ...

    def relation(self, query: exp.Expr) -> Relation:
        """A query, bound."""
        ...


def decorrelated(node: exp.Select, tables: Tables) -> exp.Select:
    """The SELECT with joins in place of the subqueries inside its expressions; itself, if it has none.

    Raises:
        Refused: a subquery may have several rows, reads other people's rows, or is tied to the row around it
            by something else than equalities.
    """
    return SubqueryJoins.of(node, tables).joined()


@dataclass
class SubqueryJoins:
    """Writes the joins of one SELECT, in a copy of it."""

    node: exp.Select
    tables: Tables
    prefix: str  # of the names of all joined tables and columns
    known: dict[exp.Expr, exp.Expr | None] = field(default_factory=dict)
    count: int = 0

    @classmethod
    def of(cls, node: exp.Select, tables: Tables) -> SubqueryJoins:
        return cls(node, tables, _unused(node) if any(True for _ in inside(node)) else "")

    def joined(self) -> exp.Select:
        """The SELECT with its joins."""
        if not self.prefix:
            return self.node
        self.node = self.node.copy()
        for each in list(to_join(self.node)):
            if each not in self.known:
                self.known[each.copy()] = self.replacement(each)
            found = self.known[each]
            if found is not None:
                replace_all(self.node, each, found)
        return self.node

    def replacement(self, node: exp.Expr) -> exp.Expr | None:
        """What stands for a subquery; None if it is to stay, as one does that is a condition of WHERE by
        itself: it is a semi-join, and where.py reads it.
        """
        select = select_of(node)
        match node:
            case exp.Subquery() if select is not None:
                return self.value(select)
            case exp.In() if select is not None and is_plain(select):
                return self._member(node, select)
            case exp.Exists() if select is not None and is_plain(select) and not stands_alone(node):
                return self._exists(select)
        return None

    # -- the three forms -----------------------------------------------------------------------------------
    def value(self, select: exp.Select) -> exp.Expr | None:
        """A subquery that is one value."""
        tied = self.tied(select)
        if len(select.expressions) != 1 or select.expressions[0].is_star:
            raise SqlError(
                "sql-subquery",
                "a subquery inside an expression returns one column",
                "select one column",
                place_of(select),
            )
        value, having = tied.item, select.args.get("having")
        if not aggregates_of(value) and having is None:
            return self._looked_up(tied, value)
        if has_other_clauses(select):
            raise several_rows(place_of(select))
        conditions = [having.this] if having is not None else []
        columns = self._grouped(tied, [each for one in (value, *conditions) for each in aggregates_of(one)])
        if columns is None:
            return None
        written = _with_columns(value, columns, tied)
        for each in conditions:
            written = exp.Case(ifs=[exp.If(this=_with_columns(each, columns, tied), true=written)])
        return exp.Paren(this=written)

    def _exists(self, select: exp.Select) -> exp.Expr | None:
        """EXISTS as a condition among others: its number of rows is above 0."""
        found = self._grouped(self.tied(select), [_count(exp.Star())])
        return None if found is None else exp.Paren(this=exp.GT(this=found[0], expression=_number(0)))

    def _member(self, node: exp.Expr, select: exp.Select) -> exp.Expr | None:
        """IN as a condition among others. Of no rows it is false, and beside a NULL it is never false."""
        alone = stands_alone(node)
        if (alone and not is_negated(node)) or len(select.expressions) != 1 or select.expressions[0].is_star:
            return None
        tied = self.tied(select)
        if alone and not tied.is_outside:
            return None
        equal = Correlation(tied.select, tied.own, (*tied.pairs, (tied.item, node.this)), tied.rest)
        if not tied.is_outside and self._are_units(tied):
            return self._is_unit_among(node, equal)
        matching = self._grouped(equal, [_count(exp.Star())])
        rows = self._grouped(tied, [_count(exp.Star()), _count(tied.item.copy())])
        if matching is None or rows is None:
            return None
        unknown = exp.Or(
            this=exp.Paren(this=exp.Is(this=operand(node.this.copy()), expression=exp.Null())),
            expression=exp.Paren(this=exp.GT(this=rows[0].copy(), expression=rows[1])),
        )
        return exp.Case(
            ifs=[
                exp.If(this=exp.GT(this=matching[0], expression=_number(0)), true=exp.Boolean(this=True)),
                exp.If(this=exp.EQ(this=rows[0], expression=_number(0)), true=exp.Boolean(this=False)),
                exp.If(this=unknown, true=exp.Null()),
            ],
            default=exp.Boolean(this=False),
        )

    def _are_units(self, tied: Correlation) -> bool:
        """Whether a subquery lists units of private rows, which are never NULL."""
        relation = self.tables.relation(tied.reading(listed([("unit", tied.item)])))
        return not is_public(relation) and owner(relation).is_unit(["unit"])

    def _is_unit_among(self, node: exp.Expr, equal: Correlation) -> exp.Expr | None:
        """x IN (SELECT unit ...) as a condition among others. That somebody is in the list is taken for
        granted.
        """
        matching = self._grouped(equal, [_count(exp.Star())])
        if matching is None:
            return None
        unknown = exp.Is(this=operand(node.this.copy()), expression=exp.Null())
        found = exp.GT(this=matching[0], expression=_number(0))
        return exp.Case(ifs=[exp.If(this=unknown, true=exp.Null())], default=found)

    # -- joins ---------------------------------------------------------------------------------------------
    def tied(self, select: exp.Select) -> Correlation:
        """A subquery, without subqueries of its own, and what ties it to the row around it."""
        inner = type(self).of(select, self.tables).joined()
        return correlation(inner, self.tables.columns_of(inner))

    def _grouped(self, tied: Correlation, aggregates: Sequence[exp.Expr]) -> list[exp.Expr] | None:
        """The aggregates of a subquery for each value that it is tied by, joined. Returns what stands for
        each, also where no row matches; None if it is not to be joined.
        """
        for each in aggregates:
            if any(not tied.own(column) for column in columns_in(each)):
                raise outside_in_aggregate(place_of(each))
            if not isinstance(_function(each), _COUNTS + _OTHERS):
                raise unknown_aggregate(place_of(each))
        names = [self._name("value", place) for place in range(len(aggregates))]
        query = self.query(tied, self._keys(tied), list(zip(names, aggregates, strict=True)))
        if not self.is_joined(query, tied):
            return None
        table = self._join(query, tied)
        columns = [exp.column(name, table=table, quoted=True) for name in names]
        return [
            exp.Coalesce(this=column, expressions=[_number(0)])
            if isinstance(_function(each), _COUNTS)
            else column
            for column, each in zip(columns, aggregates, strict=True)
        ]

    def query(self, tied: Correlation, keys: Sequence[Named], values: Sequence[Named]) -> exp.Select:
        """The subquery, grouped by what it is tied by."""
        written = tied.reading(listed((*keys, *values)))
        if keys:
            written.set("group", exp.Group(expressions=[each.copy() for _, each in keys]))
        return written

    def is_joined(self, query: exp.Select, tied: Correlation) -> bool:
        """Whether a grouped subquery is to be joined; its rows are public, or of one unit."""
        if is_released(self.tables.relation(query)):
            raise _of_many(tied)
        return True

    def _looked_up(self, tied: Correlation, value: exp.Expr) -> exp.Expr | None:
        """A value of the one row that a key names."""
        if has_other_clauses(tied.select) or any(not tied.own(each) for each in columns_in(value)):
            raise several_rows(place_of(tied.select))
        keys, name = self._keys(tied), self._name("value", 0)
        query = tied.reading(listed((*keys, (name, value))))
        if not self.is_one_row(query, [key for key, _ in keys], tied):
            raise several_rows(place_of(tied.select))
        return exp.column(name, table=self._join(query, tied), quoted=True)

    def is_one_row(self, query: exp.Select, keys: Sequence[str], tied: Correlation) -> bool:
        """Whether a subquery has one row at most for each value that it is tied by."""
        relation = self.tables.relation(query)
        if is_released(relation):
            raise _of_many(tied)
        return is_unique(relation, keys)

    def _keys(self, tied: Correlation) -> list[Named]:
        return [(self._name("key", place), inner) for place, (inner, _) in enumerate(tied.pairs)]

    def _name(self, kind: str, place: int) -> str:
        return f"{self.prefix}_{self.count + 1}_{kind}_{place + 1}"

    def _join(self, query: exp.Select, tied: Correlation) -> str:
        """The name of the joined table."""
        keys = self._keys(tied)
        self.count += 1
        table = f"{self.prefix}_{self.count}"
        on = [
            exp.EQ(this=exp.column(name, table=table, quoted=True), expression=operand(outer.copy()))
            for (name, _), (_, outer) in zip(keys, tied.pairs, strict=True)
        ]
        alias = exp.TableAlias(this=exp.to_identifier(table, quoted=True))
        join = exp.Join(
            this=exp.Subquery(this=query, alias=alias),
            side="LEFT",
            on=exp.and_(*on, copy=False) if on else exp.Boolean(this=True),
        )
        self.node.append("joins", join)
        for star in [each for each in self.node.expressions if isinstance(each, exp.Star)]:
            hidden = [exp.column(each.alias, quoted=True) for each in query.expressions]
            star.set("except_", [*(star.args.get("except_") or []), *hidden])
        return table


def _of_many(tied: Correlation) -> Refused:
    place = place_of(tied.select)
    return of_other_people(place) if tied.is_outside else refusal("Exists", place)


def listed(columns: Sequence[Named]) -> list[exp.Expr]:
    """Expressions as columns of a SELECT."""
    return [named(each.copy(), name) for name, each in columns]


def operand(node: exp.Expr) -> exp.Expr:
    return node if isinstance(node, (exp.Column, exp.Paren, exp.Func)) else exp.Paren(this=node)


def _unused(node: exp.Expr) -> str:
    """What the names of joined tables begin with."""
    used = {each.name.lower() for each in node.root().find_all(exp.Identifier)}
    prefix = "subquery"
    while any(name.startswith(prefix) for name in used):
        prefix = f"x{prefix}"
    return prefix


def _function(aggregate: exp.Expr) -> exp.Expr:
    return aggregate.this if isinstance(aggregate, exp.Filter) else aggregate


def _with_columns(value: exp.Expr, columns: Sequence[exp.Expr], tied: Correlation) -> exp.Expr:
    """An expression over aggregates as one over joined columns and the row around it."""
    loose = [each for each in loose_columns(value) if tied.own(each)]
    if loose:
        raise several_rows(place_of(loose[0]))
    around = exp.Paren(this=value.copy())
    every = [
        each
        for item in (tied.item, tied.select.args.get("having"))
        if item is not None
        for each in aggregates_of(item)
    ]
    for each in aggregates_of(around):
        each.replace(columns[every.index(each)].copy())
    return around


def _count(of: exp.Expr) -> exp.Expr:
    return exp.Count(this=of, big_int=True)


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)
