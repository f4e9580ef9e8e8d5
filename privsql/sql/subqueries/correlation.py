"""A subquery goes in; what it says about the rows around it comes out: the equalities with their columns, and
the rest of it, which is a query by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from privsql.errors import Place, Refused
from privsql.sql.bind.release import own_nodes
from privsql.sql.parse.places import place_of

IsColumn = Callable[[exp.Column], bool]  # whether a name is a column of what a SELECT reads
_READS = ("from_", "joins", "laterals", "with_")
_OTHER_CLAUSES = ("group", "order", "limit", "offset", "distinct", "qualify", "windows")


@dataclass(frozen=True)
class Correlation:
    """A subquery, and how its rows are tied to a row around it."""

    select: exp.Select
    own: IsColumn
    pairs: tuple[tuple[exp.Expr, exp.Expr], ...]  # equal: of the subquery, and of the row around it
    rest: tuple[exp.Expr, ...]  # the conditions that are about the subquery alone

    @property
    def item(self) -> exp.Expr:
        """What it selects first."""
        first: exp.Expr = self.select.expressions[0]
        return first.this if isinstance(first, exp.Alias) else first

    @property
    def is_outside(self) -> bool:
        """Whether it names columns of the row around it."""
        listed = [*self.select.expressions, self.select.args.get("having")]
        return bool(self.pairs) or any(
            not self.own(each) for item in listed if item is not None for each in columns_in(item)
        )

    def reading(self, expressions: Sequence[exp.Expr], conditions: Sequence[exp.Expr] = ()) -> exp.Select:
        """Another SELECT from the same rows, without what ties them to a row around."""
        written = exp.Select(expressions=list(expressions))
        for name in _READS:
            clause = self.select.args.get(name)
            if clause is not None:
                written.set(
                    name, [each.copy() for each in clause] if isinstance(clause, list) else clause.copy()
                )
        kept = [each.copy() for each in (*self.rest, *conditions)]
        if kept:
            written.set("where", exp.Where(this=exp.and_(*kept, copy=False)))
        return written


def correlation(select: exp.Select, own: IsColumn) -> Correlation:
    """Take a subquery apart.

    Raises:
        Refused: it compares with the row around it by something else than =.
    """
    where = select.args.get("where")
    pairs: list[tuple[exp.Expr, exp.Expr]] = []
    rest: list[exp.Expr] = []
    for part in conjuncts(where.this) if where is not None else ():
        columns = columns_in(part)
        if all(own(each) for each in columns):
            rest.append(part)
            continue
        pairs.append(_pair(part, own))
    for name in _READS[1:3]:
        for joined in select.args.get(name) or ():
            if any(not own(each) for each in columns_in(joined)):
                raise other_comparison(place_of(joined))
    return Correlation(select, own, tuple(pairs), tuple(rest))


def _pair(part: exp.Expr, own: IsColumn) -> tuple[exp.Expr, exp.Expr]:
    """inner = outer, in either order."""
    if isinstance(part, exp.EQ) and part.find(exp.Query) is None:
        for one, other in ((part.this, part.expression), (part.expression, part.this)):
            inner, outer = columns_in(one), columns_in(other)
            if inner and outer and all(map(own, inner)) and not any(map(own, outer)):
                return one, other
    raise other_comparison(place_of(part))


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND joins, in order."""
    parts, pending = [], [node]
    while pending:
        each = pending.pop()
        while isinstance(each, exp.Paren):
            each = each.this
        if isinstance(each, exp.And):
            pending.extend([each.expression, each.this])
        else:
            parts.append(each)
    return parts


def columns_in(node: exp.Expr) -> list[exp.Column]:
    """The columns that an expression names, without those of its subqueries."""
    return [each for each in own_nodes(node) if isinstance(each, exp.Column) and not each.is_star]


def has_other_clauses(select: exp.Select) -> bool:
    """Whether a SELECT groups, orders or limits its rows."""
    return select.args.get("from_") is None or any(select.args.get(each) for each in _OTHER_CLAUSES)


def other_comparison(place: Place | None) -> Refused:
    return Refused(
        "refused-correlated",
        "This subquery is tied to the row around it by something else than equalities, so it cannot be "
        "computed once for all rows.",
        "Tie it by =, as in (SELECT COUNT(*) FROM visits AS v WHERE v.user_id = u.user_id AND v.cost > 9).",
        place,
    )


def several_rows(place: Place | None) -> Refused:
    return Refused(
        "refused-correlated",
        "This subquery may return several rows for one row around it.",
        "Aggregate it, as in (SELECT MAX(v.cost) FROM ...), or tie it by columns that are UNIQUE.",
        place,
    )


def of_other_people(place: Place | None) -> Refused:
    return Refused(
        "refused-correlated",
        "This subquery reads other people's rows for each row, and whether one of them exists is itself "
        "private.",
        "Tie it by the privacy unit, or compare with an aggregate: "
        "x > (SELECT AVG(o.x) FROM t AS o WHERE o.k = t.k).",
        place,
    )


def outside_in_aggregate(place: Place | None) -> Refused:
    return Refused(
        "refused-correlated",
        "An aggregate of this subquery takes a column of the row around it.",
        "Aggregate the subquery's own columns, and compute with the result outside.",
        place,
    )


def unknown_aggregate(place: Place | None) -> Refused:
    return Refused(
        "refused-correlated",
        "What this aggregate is where no row matches is not known.",
        "Use COUNT, SUM, AVG, MIN, MAX or a quantile.",
        place,
    )
