"""Query blocks: what their rows are, the names they can use, and small trees that stand for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from privsql.errors import Place, Refused


class RowKind(Enum):
    """What the rows of a block are."""

    PUBLIC = "public"
    PRIVATE = "private"
    NOISY = "noisy"


@dataclass(frozen=True)
class QueryBlock:
    """A query block as the SQL above reads it, and what its rows are. A private one is left as it was."""

    statement: exp.Expr
    kind: RowKind


@dataclass(frozen=True)
class Named:
    """A query that WITH names: as private blocks read it, as the SQL above does, and what its rows are."""

    below: exp.CTE
    above: exp.CTE
    kind: RowKind


Scope = Mapping[str, Named]


RELEASED = Named(exp.CTE(), exp.CTE(), RowKind.NOISY)


def sources_of(node: exp.Select) -> list[exp.Expr]:
    """What stands in FROM and in the joins of a SELECT, in parentheses too."""
    first = node.args.get("from_")
    joined = [*(node.args.get("joins") or []), *(node.args.get("laterals") or [])]
    sources = [first.this] if first is not None else []
    return [leaf for each in (*sources, *(each.this for each in joined)) for leaf in _leaves(each)]


def _leaves(source: exp.Expr) -> list[exp.Expr]:
    inside = _leaves(source.this) if is_join(source) else [source]
    return [*inside, *(leaf for each in source.args.get("joins") or [] for leaf in _leaves(each.this))]


def is_join(node: exp.Expr) -> bool:
    """Whether this is a join, or a table, in parentheses in FROM, and no query."""
    if not isinstance(node, exp.Subquery):
        return False
    return isinstance(node.this, exp.Table) or (
        isinstance(node.this, exp.Subquery) and bool(node.this.args.get("joins") or is_join(node.this))
    )


def without_joins(source: exp.Expr) -> exp.Expr:
    """A copy of the first table or query of a join, by itself."""
    written = source.copy()
    written.set("joins", None)
    return written


def with_names(node: exp.Expr, scope: Scope) -> exp.Expr:
    """A private block by itself, with the queries that it names before it."""
    written = node.copy()
    return with_queries(written, {name: each.below for name, each in scope.items() if each is not RELEASED})


def with_queries(written: exp.Expr, known: Mapping[str, exp.CTE]) -> exp.Expr:
    """A query by itself: the named queries that it needs stand before it."""
    own = written.args.get("with_")
    after = list(own.expressions) if own is not None else []
    named: dict[str, exp.Expr] = {}
    _collect(written, known, named)
    taken = {each.alias.lower() for each in after}
    before = [each.copy() for name, each in named.items() if name not in taken]
    written.set("with_", exp.With(expressions=[*before, *after]) if before or after else None)
    return written


def _collect(node: exp.Expr, known: Mapping[str, exp.CTE], named: dict[str, exp.Expr]) -> None:
    """The queries of WITH that a block names, each after those that it needs: it can name only those."""
    for table in node.find_all(exp.Table):
        name = table.name.lower()
        if name in known and name not in named:
            places = list(known)
            before = {each: known[each] for each in places[: places.index(name)]}
            _collect(known[name].this, before, named)
            named[name] = known[name]


def unused_prefix(statement: exp.Expr) -> str:
    """What the names of parts begin with, so that nothing in the query is called so."""
    used = {each.name.lower() for each in statement.find_all(exp.Identifier)}
    prefix = "r"
    while any(name.startswith(prefix) and name[len(prefix) :].isdigit() for name in used):
        prefix += "r"
    return prefix


def all_of(name: str) -> exp.Expr:
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.to_table(name)))


def with_alias(table: exp.Table) -> exp.Table:
    """A table with an alias, by which its columns can be called."""
    written = table.copy()
    if written.args.get("alias") is None:
        written.set("alias", exp.TableAlias(this=table.this.copy()))
    return written


def mixed_rows(place: Place | None) -> Refused:
    return Refused(
        "refused-stages",
        "This combines the rows of a noisy result with people's rows, which is supported as a join, as a "
        "condition x IN (SELECT ...), and as a comparison with one value.",
        "Write x IN (SELECT ...), or x > (SELECT AVG(x) ...).",
        place,
    )


def several_rows(place: Place | None) -> Refused:
    return Refused(
        "refused-stages",
        "A condition compares with one value, and this subquery may return several rows.",
        "Aggregate it (SELECT MAX(n) FROM ...), or write x IN (SELECT ...).",
        place,
    )


def label_without_scores(place: Place | None) -> Refused:
    return Refused(
        "refused-choice",
        "This label cannot be found by counting: its scores would have to be released.",
        "Write SELECT k, COUNT(*) AS n FROM t GROUP BY k ORDER BY n DESC LIMIT 10.",
        place,
    )
