"""Whether a query over released tables has one row at most, whatever their values are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from privsql.sql.bind.release import has_any_aggregate
from privsql.sql.split.composition import QueryPart

Named = Mapping[str, exp.Expr]  # queries of WITH


def has_one_row(query: exp.Expr, parts: Sequence[QueryPart], named: Named | None = None) -> bool:
    """A total, the first row, or all of a part or of a named query that is a total."""
    match query:
        case exp.Subquery(this=inner):
            return has_one_row(inner, parts, named)
        case exp.Select():
            return _is_total(query) or _is_first(query) or _reads_a_total(query, parts, named or {})
        case _:
            return False


def _is_total(query: exp.Select) -> bool:
    aggregates = any(has_any_aggregate(each) for each in query.expressions if not each.find(exp.Window))
    return query.args.get("group") is None and aggregates


def _is_first(query: exp.Select) -> bool:
    limit = query.args.get("limit")
    count = limit.expression if isinstance(limit, exp.Limit) else None
    return isinstance(count, exp.Literal) and count.name == "1"


def _reads_a_total(query: exp.Select, parts: Sequence[QueryPart], named: Named) -> bool:
    source = query.args.get("from_")
    if source is None or query.args.get("joins") or query.args.get("laterals"):
        return False
    if isinstance(source.this, exp.Subquery):
        return has_one_row(source.this, parts, named)
    name = source.this.name.lower()
    if name in named:
        return has_one_row(named[name], parts, {each: query for each, query in named.items() if each != name})
    part = next((each for each in parts if each.name == source.this.name), None)
    return part is not None and part.noisy and has_one_row(part.statement, parts)
