"""Values that are known up to the noise, as SQL: numbers between two ends, and conditions that may go either
way. And how to write them.

Ends are compared as DuckDB orders numbers, with NaN above infinity: the ends -infinity and NaN hold every
number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

Sql = exp.Expr
TRUE, FALSE = exp.true(), exp.false()


class NoRule(Exception):
    """A construct for which no ends are known."""


@dataclass(frozen=True)
class Fixed:
    """What noise does not reach: a key, a public value, a constant."""

    sql: Sql


@dataclass(frozen=True)
class Cell:
    """A value from `low` to `high`, or NULL if `null`. An end is NULL only where the value is certainly NULL.

    `whole`: an integer, which is never infinite or NaN.
    """

    low: Sql
    high: Sql
    null: Sql
    whole: bool = False


@dataclass(frozen=True)
class Truth:
    """A condition: whether it may be true, may be false, may be NULL. At least one of them holds."""

    true: Sql
    false: Sql
    null: Sql

    @property
    def certain(self) -> Sql:
        """Whether it is true whatever the noise is."""
        return no(either(self.false, self.null))


@dataclass(frozen=True)
class Endless:
    """A value of which no ends are known."""


Value = Fixed | Cell | Truth | Endless


# -- writing -------------------------------------------------------------------------------------------------
def is_true(term: Sql) -> bool:
    return isinstance(term, exp.Boolean) and bool(term.this)


def is_false(term: Sql) -> bool:
    return isinstance(term, exp.Boolean) and not term.this


def both(*terms: Sql) -> Sql:
    if any(map(is_false, terms)):
        return FALSE
    needed = [each for each in terms if not is_true(each)]
    found = needed[0] if needed else TRUE
    for each in needed[1:]:
        found = exp.And(this=found, expression=each)
    return found


def either(*terms: Sql) -> Sql:
    if any(map(is_true, terms)):
        return TRUE
    needed = [each for each in terms if not is_false(each)]
    found = needed[0] if needed else FALSE
    for each in needed[1:]:
        found = exp.Or(this=found, expression=each)
    return found


def no(term: Sql) -> Sql:
    if isinstance(term, exp.Boolean):
        return FALSE if term.this else TRUE
    return term.this if isinstance(term, exp.Not) else exp.Not(this=term)


def holds(term: Sql, otherwise: Sql = FALSE) -> Sql:
    """A comparison that may be NULL, as true or false."""
    return term if isinstance(term, exp.Boolean) else exp.Coalesce(this=term, expressions=[otherwise])


def when(cases: Sequence[tuple[Sql, Sql]], default: Sql) -> Sql:
    """CASE, without the branches that are never taken. Its conditions are never NULL."""
    needed: list[tuple[Sql, Sql]] = []
    for condition, result in cases:
        if is_true(condition):
            default = result
            break
        if not is_false(condition):
            needed.append((condition, result))
    if not needed or all(result == default for _, result in needed):
        return default
    return exp.Case(ifs=[exp.If(this=a, true=b) for a, b in needed], default=default)


def least(*terms: Sql) -> Sql:
    """The least of those that are not NULL."""
    return _among(exp.Least, terms)


def greatest(*terms: Sql) -> Sql:
    return _among(exp.Greatest, terms)


def _among(function: type[exp.Expr], terms: Sequence[Sql]) -> Sql:
    if len(terms) == 1:
        return terms[0]
    return function(this=terms[0], expressions=list(terms[1:]), ignore_nulls=True)


def known(term: Sql) -> Sql:
    """Whether it is not NULL."""
    return no(is_null(term))


def is_null(term: Sql) -> Sql:
    return FALSE if isinstance(term, (exp.Literal, exp.Boolean)) else exp.Is(this=term, expression=exp.null())


def double(term: Sql) -> Sql:
    return exp.cast(term, "DOUBLE")


def everything() -> tuple[Sql, Sql]:
    """Ends between which all numbers are."""
    return double(exp.Literal.string("-infinity")), double(exp.Literal.string("NaN"))


def finite(cell: Cell, only_if: Sql = TRUE, missing: Sql | None = None) -> Cell:
    """A result of arithmetic: where an end is not finite, or `only_if` does not hold, it may be any number.

    `missing`: where it is certainly NULL; by default where both ends are.
    """
    if cell.whole and is_true(only_if):
        return cell
    ends = [exp.Anonymous(this="ISFINITE", expressions=[double(each)]) for each in (cell.low, cell.high)]
    usable = holds(both(only_if, *ends))
    low, high = everything()
    if missing is None:
        missing = both(is_null(cell.low), is_null(cell.high))
    return Cell(
        when([(missing, exp.null()), (usable, double(cell.low))], low),
        when([(missing, exp.null()), (usable, double(cell.high))], high),
        cell.null,
    )


# -- from one kind to another --------------------------------------------------------------------------------
def cell_of(value: Value) -> Cell:
    match value:
        case Cell():
            return value
        case Fixed(sql=sql):
            whole = isinstance(sql, exp.Literal) and sql.is_int
            return Cell(sql, sql, is_null(sql), whole)
        case Truth():
            low = when([(value.false, FALSE), (value.true, TRUE)], exp.null())
            high = when([(value.true, TRUE), (value.false, FALSE)], exp.null())
            return Cell(low, high, value.null)
        case Endless():
            raise NoRule


def truth_of(value: Value) -> Truth:
    match value:
        case Truth():
            return value
        case Fixed(sql=sql):
            if isinstance(sql, exp.Boolean):
                return Truth(sql, no(sql), FALSE)
            return Truth(holds(sql), holds(no(sql)), is_null(sql))
        case Cell():  # of numbers, all but 0 are true
            low, high, nothing = double(value.low), double(value.high), exp.Literal.number(0)
            some = either(
                exp.NEQ(this=low, expression=nothing),
                exp.NEQ(this=high, expression=nothing),
            )
            zero = both(exp.LTE(this=low, expression=nothing), exp.GTE(this=high, expression=nothing))
            return Truth(holds(some), holds(zero), value.null)
        case Endless():
            raise NoRule


def parts_of(value: Value) -> list[Sql]:
    match value:
        case Fixed(sql=sql):
            return [sql]
        case Cell():
            return [value.low, value.high, value.null]
        case Truth():
            return [value.true, value.false, value.null]
        case Endless():
            return []


def with_parts(value: Value, parts: Sequence[Sql]) -> Value:
    """The same kind of value, made of other SQL."""
    match value:
        case Fixed():
            return Fixed(parts[0])
        case Cell():
            return Cell(parts[0], parts[1], parts[2], value.whole)
        case Truth():
            return Truth(parts[0], parts[1], parts[2])
        case Endless():
            return value
