"""A parsed query with marked calls goes in; it comes out with clamped arguments, and with `privacy` on the
SELECT that had the clause and `bounds` on aggregates whose sum over one person is clamped.

No rule of the gate permits these arguments anywhere else, so that none is lost without a word.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from privsql.errors import Refused
from privsql.sql.privacy_clause.options import clause_error, token_place
from privsql.sql.privacy_clause.split_tokens import Bounds, Split

_PER_UNIT = (exp.Count, exp.Sum, exp.Avg)
_PER_ROW = (
    exp.Sum,
    exp.Avg,
    exp.Variance,
    exp.VariancePop,
    exp.Stddev,
    exp.StddevPop,
    exp.StddevSamp,
    exp.PercentileCont,
    exp.ApproxQuantiles,
)
_MOST_QUANTILES = 1_000


def read_marks(statement: exp.Expr, split: Split) -> exp.Expr:
    """The statement with what the marked calls stand for."""
    if split.options is None:
        return statement
    for node in list(statement.find_all(exp.Anonymous, bfs=False)):
        name = str(node.this)
        if not name.startswith(split.mark):
            continue
        number = name.removeprefix(split.mark)
        if number:
            node.replace(_bounded(node, split.bounds[int(number)]))
        elif isinstance(node.parent, exp.Select):
            _mark_select(node.parent, node, split)
    return statement


def _mark_select(select: exp.Select, mark: exp.Expr, split: Split) -> None:
    """Leave the mark out of the SELECT list, and say which column the clause names as the unit."""
    assert split.options is not None
    select.set("expressions", [each for each in select.expressions if each is not mark])
    named = [exp.Identifier(this=name, quoted=True) for name in split.options.unit]
    select.set("privacy", exp.Tuple(expressions=named))


def _bounded(call: exp.Expr, bounds: Bounds) -> exp.Expr:
    """The aggregate in a marked call, with its bounds."""
    aggregate = call.expressions[0]
    select = call.find_ancestor(exp.Select)
    if select is None or not _has_clause(select):
        raise clause_error(
            "this belongs to the SELECT that says WITH DIFFERENTIAL_PRIVACY",
            "write it in that SELECT, or write COUNT, SUM or AVG",
            bounds.token,
        )
    name = _name(aggregate).lower()  # what is put around its argument would be in the column's name
    if bounds.ends is not None:
        _clamp(aggregate, bounds)
    if isinstance(aggregate, exp.ApproxQuantiles):
        aggregate = _quantiles(aggregate, bounds)
    return exp.alias_(aggregate, name, quoted=True) if call.parent is select else aggregate


def _has_clause(select: exp.Select) -> bool:
    first = select.expressions[0] if select.expressions else None
    marked = isinstance(first, exp.Anonymous) and not first.expressions
    return marked or "privacy" in select.args


def _clamp(aggregate: exp.Expr, bounds: Bounds) -> None:
    assert bounds.ends is not None
    low, high = bounds.ends
    if Fraction(low) > Fraction(high):
        raise clause_error("the lower bound is above the upper one", "write (0, 5)", bounds.token)
    per = bounds.per or ("group" if isinstance(aggregate, _PER_UNIT) else "row")
    distinct = isinstance(aggregate.this, exp.Distinct)
    if per == "group" and isinstance(aggregate, _PER_UNIT) and not distinct:
        aggregate.set("bounds", exp.Tuple(expressions=[_number(low), _number(high)]))
    elif per == "row" and isinstance(aggregate, _PER_ROW) and not distinct:
        raised = exp.Greatest(this=aggregate.this.copy(), expressions=[_number(low)], ignore_nulls=False)
        aggregate.set("this", exp.Least(this=raised, expressions=[_number(high)], ignore_nulls=False))
    else:
        raise Refused(
            "refused-privacy-clause",
            f"{_name(aggregate)} takes no bounds per {per}.",
            "Write contribution_bounds_per_group in COUNT, SUM and AVG, and contribution_bounds_per_row in "
            "SUM, AVG, VAR_POP, STDDEV_POP, PERCENTILE_CONT and APPROX_QUANTILES.",
            token_place(bounds.token),
        )


def _name(call: exp.Expr) -> str:
    return call.sql_name() if isinstance(call, exp.Func) else type(call).__name__.upper()


def _number(text: str) -> exp.Expr:
    number = exp.Literal(this=format(Decimal(text.lstrip("-")), "f"), is_string=False)
    return exp.Neg(this=number) if text.startswith("-") else number


def _quantiles(node: exp.ApproxQuantiles, bounds: Bounds) -> exp.Expr:
    """ANON_QUANTILES(x, 4): five quantiles, from the least value to the greatest."""
    number = node.expression
    whole = isinstance(number, exp.Literal) and not number.is_string and number.name.isdigit()
    if not whole or not 1 <= int(number.name) <= _MOST_QUANTILES:
        raise clause_error(
            f"the number of quantiles is a whole number up to {_MOST_QUANTILES:,}",
            "ANON_QUANTILES(x, 4 CLAMPED BETWEEN 0 AND 100)",
            bounds.token,
        )
    count = int(number.name)
    fractions = [exp.Literal(this=repr(part / count), is_string=False) for part in range(count + 1)]
    return exp.PercentileCont(this=node.this, expression=exp.Array(expressions=fractions))
