"""MEDIAN, quantiles, MIN and MAX: their nodes go in; one aggregate for each fraction comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from sqlglot import exp

from privsql.algebra import build, literals
from privsql.algebra.expressions import Aggregate, Expression
from privsql.errors import Place, Refused, SqlError
from privsql.privacy.quantile_steps import fraction_of
from privsql.sql.parse.refusals import distinct_aggregate
from privsql.types import DOUBLE, MOMENTS, NUMBERS, TIMESTAMP, Kind, Type

EXTREMES: dict[type[exp.Expr], str] = {exp.Min: "min", exp.Max: "max"}
_QUANTILES: dict[type[exp.Expr], str] = {
    exp.Median: "quantile_cont",
    exp.PercentileCont: "quantile_cont",
    exp.PercentileDisc: "quantile_disc",
    exp.Quantile: "quantile_disc",
    exp.ApproxQuantile: "quantile_disc",
}
ORDERS: tuple[type[exp.Expr], ...] = (*EXTREMES, *_QUANTILES, exp.WithinGroup)
MOST_FRACTIONS = 1_000


def gives_list(node: exp.Expr) -> bool:
    """Whether one call asks for several quantiles."""
    return isinstance(node, ORDERS) and isinstance(_fractions(node), exp.Array)


def order_aggregates(
    node: exp.Expr,
    bind: Callable[[exp.Expr], Expression],
    condition: Expression | None,
    place: Place | None,
    exact: bool,
) -> Iterator[Aggregate]:
    """One aggregate for each fraction; `exact`: over public rows, or over one unit's own rows."""
    ordered = _ordered(node)
    if isinstance(ordered, exp.Distinct):
        raise distinct_aggregate(place)
    argument, extreme = build.not_a_list(bind(ordered)), EXTREMES.get(type(node))
    kind = argument.type.kind
    if extreme is not None:
        if not exact and kind not in NUMBERS | MOMENTS:
            raise Refused(*one_persons_value(extreme), place)
        yield Aggregate(extreme, argument, condition, argument.type, place)
        return
    if kind not in NUMBERS | MOMENTS:
        raise SqlError(
            "sql-type",
            f"a quantile needs numbers, dates or timestamps, this is {argument.type}",
            "cast it",
            place,
        )
    function = _QUANTILES[type(node.this if isinstance(node, exp.WithinGroup) else node)]
    if exact and function == "quantile_cont":
        if kind in MOMENTS:  # DuckDB fails on dates beyond the range of TIMESTAMP
            raise Refused(
                "refused-quantile",
                "quantile_cont of dates within a unit is not supported.",
                "Write quantile_disc.",
                place,
            )
        argument = build.convert(argument, DOUBLE)
    for fraction in _listed(node, place):
        yield Aggregate(
            function, argument, condition, _result(function, argument.type), place, parameters=(fraction,)
        )


def _ordered(node: exp.Expr) -> exp.Expr:
    """The ordered expression: the argument, or the term of WITHIN GROUP (ORDER BY ...)."""
    if not isinstance(node, exp.WithinGroup):
        inner: exp.Expr = node.this
        return inner
    terms = node.expression.expressions if isinstance(node.expression, exp.Order) else []
    if (
        len(terms) != 1
        or type(node.this) not in (exp.PercentileCont, exp.PercentileDisc)
        or node.this.expression is not None
    ):
        raise _unread(node)
    ordered: exp.Expr = terms[0].this
    return ordered


def _fractions(node: exp.Expr) -> exp.Expr | None:
    match node:
        case exp.WithinGroup():
            return node.this.this if isinstance(node.this, exp.Expr) else None
        case exp.Quantile() | exp.ApproxQuantile():
            written: exp.Expr | None = node.args.get("quantile")
            return written
        case exp.PercentileCont() | exp.PercentileDisc():
            behind: exp.Expr | None = node.expression
            return behind
        case _:
            return None


def _listed(node: exp.Expr, place: Place | None) -> list[Fraction]:
    if isinstance(node, exp.Median):
        return [Fraction(1, 2)]
    written = _fractions(node)
    if written is None:
        raise _unread(node)
    listed = written.expressions if isinstance(written, exp.Array) else [written]
    if not 1 <= len(listed) <= MOST_FRACTIONS:
        raise SqlError(
            "sql-arguments",
            f"one call takes 1 to {MOST_FRACTIONS:,} fractions",
            "[0.25, 0.5, 0.75]",
            place,
        )
    turned = isinstance(node, exp.WithinGroup) and bool(node.expression.expressions[0].args.get("desc"))
    fractions = [_fraction(each, place) for each in listed]
    return [1 - each if turned else each for each in fractions]


def _fraction(node: exp.Expr, place: Place | None) -> Fraction:
    while isinstance(node, exp.Paren):
        node = node.this
    number = literals.number(str(node.this)) if isinstance(node, exp.Literal) and not node.is_string else None
    if number is None or not 0 <= number.value <= 1:
        raise SqlError(
            "sql-arguments", "the fraction of a quantile must be a constant from 0 to 1", "0.5", place
        )
    return fraction_of(Fraction(number.value))


def _result(function: str, of: Type) -> Type:
    """DuckDB's type: a discrete quantile is one of the values, a continuous one may lie between two."""
    if function == "quantile_disc" or of.kind is Kind.DECIMAL:
        return of
    return TIMESTAMP if of.kind in MOMENTS else DOUBLE


def one_persons_value(extreme: str) -> tuple[str, str, str]:
    """Why the least or greatest value of another type is not released, and what to write instead."""
    which, code = ("smallest", "refused-min") if extreme == "min" else ("largest", "refused-max")
    return (
        code,
        f"{extreme.upper()} is supported for numbers, dates and timestamps only: of other types the "
        f"{which} value "
        "is one person's, and no other is near it.",
        f"Ask for the {extreme} of a number, or for COUNT(*) ... GROUP BY declared keys.",
    )


def _unread(node: exp.Expr) -> SqlError:
    return SqlError(
        "sql-arguments",
        "a quantile takes one argument and a fraction",
        "quantile_cont(x, 0.5), or percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
    )
