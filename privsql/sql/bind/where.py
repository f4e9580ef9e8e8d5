"""WHERE goes in; filters come out, and a semi-join for each EXISTS (...) and IN (SELECT ...) among its
conditions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from sqlglot import exp

from privsql.algebra import build
from privsql.algebra.expressions import Call, Expression, columns_of
from privsql.algebra.relations import Relation, is_public, is_released
from privsql.errors import Place, Refused, SqlError, UnknownName
from privsql.sql.bind.join import apart, semi, with_conditions
from privsql.sql.bind.release import bare, has_any_aggregate
from privsql.sql.bind.scalar.binder import ExpressionBinder
from privsql.sql.bind.scope import Source
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import over_noisy_answer, refusal
from privsql.sql.subqueries.correlation import conjuncts
from privsql.sql.subqueries.decorrelate import Tables, decorrelated
from privsql.sql.subqueries.subquery_nodes import is_plain, select_of
from privsql.types import BOOLEAN


class Queries(Tables, Protocol):
    """Binds the inside of a subquery."""

    def query(self, node: exp.Expr) -> Source: ...

    def joined(self, node: exp.Select) -> Source: ...


def where_rows(
    relation: Relation, where: exp.Expr, rows: ExpressionBinder, source: Source, queries: Queries
) -> Relation:
    """The rows that meet a condition; conditions with subqueries become semi-joins, in the order in which
    they are written.
    """
    parts = conjuncts(where)
    plain = [rows.condition(part) for part in parts if part.find(exp.Query) is None]
    relation = with_conditions(relation, plain)
    for part in parts:
        if part.find(exp.Query) is not None:
            relation = _with_subquery(relation, part, rows, source, queries)
    return relation


def _with_subquery(
    relation: Relation, part: exp.Expr, rows: ExpressionBinder, source: Source, queries: Queries
) -> Relation:
    anti, inner = False, part
    while isinstance(inner, (exp.Not, exp.Paren)):
        anti ^= isinstance(inner, exp.Not)
        inner = inner.this
    if is_released(relation):
        raise over_noisy_answer("refused-exists", "A subquery beside", "Use it below.", place_of(part))
    match inner:
        case exp.Exists():
            return _exists(relation, inner.this, anti, source, queries)
        case exp.In() if inner.args.get("query") is not None:
            return _member(relation, inner, anti, rows, source, queries)
    raise refusal("Exists", place_of(part))


def _member(
    relation: Relation,
    node: exp.In,
    anti: bool,
    rows: ExpressionBinder,
    source: Source,
    queries: Queries,
) -> Relation:
    place, select = place_of(node), select_of(node)
    try:
        found = queries.query(node.args["query"])
    except UnknownName:  # it names columns of the query around it
        if anti or select is None or not is_plain(select) or len(select.expressions) != 1:
            raise
        return _exists(relation, select, anti, source, queries, equal=rows.bind(node.this))
    if is_released(found.relation):
        raise over_noisy_answer(
            "refused-exists", "IN over", "Ask for it first, and write its keys out.", place
        )
    if len(found.all_read("IN (SELECT ...)", place).names) != 1:
        raise SqlError("sql-subquery", "IN (SELECT ...) needs one column", "select one column", place)
    found = apart(found, relation)
    value = rows.bind(node.this)
    if not {column.name for column in columns_of(value)} <= {each.name for each in relation.fields}:
        raise Refused(
            "refused-exists",
            "IN (SELECT ...) must test a value of the rows that it filters.",
            "Move it to the query around.",
            place,
        )
    on = build.compare("=", value, found.relation.fields[0].column)
    return semi(relation, found.relation, on, anti, place, null_aware=anti)


def _plain_select(node: exp.Expr, place: Place | None) -> exp.Select:
    """The query in EXISTS, which has rows of its own and nothing else."""
    clauses = ("group", "having", "qualify", "order", "limit", "offset", "with_")
    if (
        not isinstance(node, exp.Select)
        or node.args.get("from_") is None
        or any(node.args.get(each) for each in clauses)
        # an aggregate always returns one row: EXISTS would always be true
        or any(has_any_aggregate(each) for each in node.expressions)
    ):
        raise Refused(
            "refused-exists",
            "EXISTS takes SELECT ... FROM ... WHERE ... only.",
            "Leave the other clauses out.",
            place,
        )
    return node


def _exists(
    relation: Relation,
    query: exp.Expr,
    anti: bool,
    source: Source,
    queries: Queries,
    equal: Expression | None = None,
) -> Relation:
    """EXISTS, or x IN (SELECT ...), in which `equal` is x."""
    node = query.this if isinstance(query, exp.Subquery) else query
    place = place_of(query)
    if isinstance(node, exp.Select) and node.args.get("from_") is not None:
        node = decorrelated(node, queries)
    node = _plain_select(node, place)
    if is_released(relation):
        raise over_noisy_answer("refused-exists", "EXISTS beside", "Use it on the rows below.", place)
    found = apart(queries.joined(node), relation)
    if is_released(found.relation):
        raise over_noisy_answer("refused-exists", "EXISTS over", "Use the rows below.", place)

    def column(name: exp.Column) -> Expression:
        """A column of the subquery itself, or else of the query around it."""
        try:
            return found.find(name.name, name.table or None, place_of(name))
        except UnknownName as error:
            if error.code == "name-ambiguous":
                raise
            return source.find(name.name, name.table or None, place_of(name))

    binder = ExpressionBinder(column)
    outer = {each.name for each in relation.fields}
    where = node.args.get("where")
    parts = conjuncts(where.this) if where is not None else []
    plain = [binder.condition(part) for part in parts if part.find(exp.Query) is None]
    if equal is not None:
        plain.append(build.compare("=", equal, binder.bind(bare(node.expressions[0]))))
    on = [each for each in plain if any(column.name in outer for column in columns_of(each))]
    other = with_conditions(found.relation, [each for each in plain if each not in on])
    for part in parts:
        if part.find(exp.Query) is not None:
            other = _with_subquery(other, part, binder, replace(found, relation=other), queries)
    condition: Expression = (
        build.true() if not on else on[0] if len(on) == 1 else Call("and", tuple(on), BOOLEAN)
    )
    if not on and not is_public(other):
        raise Refused(
            "refused-exists",
            "Whether anybody's row exists is itself private.",
            "Tie the subquery to the row: WHERE inner.user_id = outer.user_id.",
            place,
        )
    return semi(relation, other, condition, anti, place)
