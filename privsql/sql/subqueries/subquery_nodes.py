"""A SELECT goes in; the subqueries inside its expressions come out, and where each of them stands."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from privsql.algebra.literals import ordinal
from privsql.sql.bind.group_by import output_name
from privsql.sql.bind.release import is_aggregate, own_nodes
from privsql.sql.subqueries.correlation import has_other_clauses

_CLAUSES = ("expressions", "where", "group", "having", "order", "qualify")
_SUBQUERIES = (exp.Subquery, exp.Exists, exp.In)


def inside(node: exp.Select) -> Iterator[exp.Expr]:
    """The subqueries inside the expressions of a SELECT: (SELECT ...), EXISTS and IN."""
    for name in _CLAUSES:
        clause = node.args.get(name)
        for each in clause if isinstance(clause, list) else [clause] if clause is not None else []:
            for inner in own_nodes(each):
                if _is_subquery(inner):
                    yield inner


def _is_subquery(node: exp.Expr) -> bool:
    match node:
        case exp.Exists():
            return True
        case exp.In():
            return node.args.get("query") is not None
        case _:
            return isinstance(node, exp.Subquery) and not isinstance(node.parent, (exp.Exists, exp.In))


def to_join(node: exp.Select) -> Iterator[exp.Expr]:
    """The subqueries to join. Of a grouped SELECT those beside its aggregates stay: they are computed from
    its groups.
    """
    groups = _key_nodes(node) if _is_grouped(node) else None
    for each in inside(node):
        if groups is None or _is_in_where(each) or _in_aggregate(each) or each in groups:
            yield each


def _is_grouped(node: exp.Select) -> bool:
    listed = [*node.expressions, node.args.get("having"), node.args.get("order")]
    clauses = node.args.get("group") is not None or node.args.get("having") is not None
    return clauses or any(aggregates_of(each) for each in listed if each is not None)


def _key_nodes(node: exp.Select) -> list[exp.Expr]:
    """The subqueries of the keys of GROUP BY."""
    group = node.args.get("group")
    if group is None:
        return []
    shown = [each.this if isinstance(each, exp.Alias) else each for each in node.expressions]
    aliases = {each.alias.lower(): each.this for each in node.expressions if isinstance(each, exp.Alias)}
    keys = [each for each in shown if not aggregates_of(each)] if group.args.get("all") else []
    for term in own_nodes(group):
        if isinstance(term, exp.Literal) and 1 <= (ordinal(term.name) or 0) <= len(shown):
            keys.append(shown[(ordinal(term.name) or 0) - 1])
        elif isinstance(term, exp.Column) and not term.table and term.name.lower() in aliases:
            keys.append(aliases[term.name.lower()])
        elif isinstance(term, _SUBQUERIES):
            keys.append(term)
    return [each for key in keys for each in own_nodes(key) if isinstance(each, _SUBQUERIES)]


def aggregates_of(node: exp.Expr) -> list[exp.Expr]:
    """The aggregates of an expression, outermost first; with FILTER around them."""
    found: list[exp.Expr] = []
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, (exp.Filter, exp.WithinGroup)) or _is_aggregate(each):
            found.append(each)
        elif not isinstance(each, (exp.Query, exp.Window)):
            pending.extend(each.iter_expressions())
    return found


def _is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, exp.AggFunc) or is_aggregate(node)


def _is_in_where(node: exp.Expr) -> bool:
    return isinstance(node.find_ancestor(exp.Where, exp.Select, exp.Filter), exp.Where)


def _in_aggregate(node: exp.Expr) -> bool:
    above = node.parent
    while above is not None and not isinstance(above, exp.Select):
        if _is_aggregate(above) or isinstance(above, exp.Filter):
            return True
        above = above.parent
    return False


def replace_all(node: exp.Select, old: exp.Expr, new: exp.Expr) -> None:
    """Put an expression in place of a subquery, wherever it is written; a selected one keeps its name."""
    for each in [each for each in inside(node) if each is old or each == old]:
        item: exp.Expr | None = each
        while item is not None and item.parent is not node:
            item = item.parent
        if item is not None and item.arg_key == "expressions" and not isinstance(item, exp.Alias):
            around = named(exp.Null(), output_name(item))
            item.replace(around)
            around.set("this", item)
        each.replace(new.copy())


def named(node: exp.Expr, name: str) -> exp.Alias:
    """An expression as a column of a SELECT."""
    return exp.Alias(this=node, alias=exp.to_identifier(name, quoted=True))


def select_of(node: exp.Expr) -> exp.Select | None:
    """The SELECT of (SELECT ...), EXISTS or IN, if it is one without a WITH of its own."""
    query = node.args["query"] if isinstance(node, exp.In) else node.this
    while isinstance(query, exp.Subquery):
        query = query.this if len([each for each in query.args.values() if each]) == 1 else None
    return query if isinstance(query, exp.Select) and query.args.get("with_") is None else None


def is_plain(select: exp.Select) -> bool:
    """SELECT ... FROM ... WHERE, one row for each of the rows."""
    aggregates = any(aggregates_of(each) for each in select.expressions)
    return not aggregates and not has_other_clauses(select) and select.args.get("having") is None


def stands_alone(node: exp.Expr) -> bool:
    """Whether a condition, or its opposite, is one of those that AND joins in WHERE."""
    above = node.parent
    while isinstance(above, (exp.Not, exp.Paren)):
        above = above.parent
    while isinstance(above, (exp.And, exp.Paren)):
        above = above.parent
    return isinstance(above, exp.Where) and isinstance(above.parent, exp.Select)


def is_negated(node: exp.Expr) -> bool:
    above, negated = node.parent, False
    while isinstance(above, (exp.Not, exp.Paren)):
        negated ^= isinstance(above, exp.Not)
        above = above.parent
    return negated


def loose_columns(node: exp.Expr) -> list[exp.Column]:
    """The columns outside the aggregates of an expression."""
    found: list[exp.Column] = []
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, exp.Column):
            found.append(each)
        elif not (isinstance(each, (exp.Filter, exp.WithinGroup, exp.Query)) or _is_aggregate(each)):
            pending.extend(each.iter_expressions())
    return found
