"""Typed expressions over the columns of one relation: what the binder makes and every later room reads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from privsql.algebra.functions import BELIEFS
from privsql.errors import Place
from privsql.types import Kind, Type


@dataclass(frozen=True)
class Column:
    """A column of the relation below, by its unique name there."""

    name: str
    type: Type


@dataclass(frozen=True)
class Literal:
    """A constant that the analyst wrote: None, bool, int, Decimal, float, str, date, time, datetime or
    interval text.
    """

    value: Any
    type: Type

    def __post_init__(self) -> None:
        # the one object that Python finds equal to itself
        if isinstance(self.value, float) and math.isnan(self.value):
            object.__setattr__(self, "value", math.nan)


@dataclass(frozen=True)
class Call:
    """A function or operator of the table in functions.py, applied."""

    function: str
    args: tuple[Expression, ...]
    type: Type

    @cached_property
    def _hash(self) -> int:
        return hash((self.function, self.args, self.type))

    def __hash__(self) -> int:  # cached: trees are dictionary keys all over the analysis
        return self._hash

    @cached_property
    def size(self) -> int:
        """How many parts it has once written out; BETWEEN and CASE x WHEN write what they compare more than
        once.
        """
        return 1 + _times(self) * sum(size_of(arg) for arg in self.args)


Expression = Column | Literal | Call

OF_TWO = frozenset({"covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2"})
OF_DIFFERENT = frozenset({"count_distinct", "sum_distinct", "avg_distinct"})  # whose values count once each
SPREAD = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp"}) | OF_TWO


@dataclass(frozen=True)
class Aggregate:
    """COUNT(*) (argument None) or an aggregate of an argument, over the rows where `condition` is true.

    Released: count, count_distinct, sum, avg, sum_distinct, avg_distinct; var_pop, ... (spread), quantile,
    min, max (order). Exact, in a Group, also: arg_min, arg_max, bool_or, bool_and, first, last.
    """

    function: str
    argument: Expression | None
    condition: Expression | None
    type: Type
    place: Place | None = None
    # what arg_min, arg_max, first and last compare; the second argument of CORR, COVAR and REGR
    by: Expression | None = None
    # constants of the function: the fractions of a quantile; DESC and NULLS FIRST
    parameters: tuple[Any, ...] = ()

    @property
    def reads(self) -> tuple[Expression, ...]:
        """Everything it computes row by row."""
        return tuple(each for each in (self.argument, self.by, self.condition) if each is not None)

    @property
    def name(self) -> str:
        return self.function.upper().replace("_DISTINCT", " DISTINCT")


def columns_of(expression: Expression) -> Iterator[Column]:
    """Every column an expression reads, with repetition."""
    match expression:
        case Column():
            yield expression
        case Call(args=args):
            for arg in args:
                yield from columns_of(arg)
        case Literal():
            return


def _times(call: Call) -> int:
    """How often its arguments are written where it is rendered: nested, they would be multiplied without
    end.
    """
    match call:
        case Call(function="cast", args=(inner,)) if inner.type.kind in (Kind.TIMESTAMP, Kind.TIME):
            return 3 if call.type.kind is Kind.TEXT else 1
        case _:
            return BELIEFS[call.function].repeats


def size_of(expression: Expression, columns: Mapping[str, int] | None = None) -> int:
    """How many parts an expression has once written out; `columns`: how many its columns have."""
    match expression:
        case Column(name=name):
            return 1 if columns is None else columns[name]
        case Call() if columns is None:
            return expression.size
        case Call(args=args):
            return 1 + _times(expression) * sum(size_of(arg, columns) for arg in args)
        case Literal():
            return 1


def calls_of(expression: Expression) -> Iterator[Call]:
    """Every function and operator in an expression, with repetition."""
    if isinstance(expression, Call):
        yield expression
        for arg in expression.args:
            yield from calls_of(arg)


def substitute(expression: Expression, columns: dict[str, Expression]) -> Expression:
    """The expression with columns replaced by what they stand for."""
    match expression:
        case Column(name=name):
            return columns.get(name, expression)
        case Call(function=function, args=args, type=type_):
            return Call(function, tuple(substitute(arg, columns) for arg in args), type_)
        case Literal():
            return expression


def conjuncts(expression: Expression) -> list[Expression]:
    """The parts of a conjunction: a AND (b AND c) -> [a, b, c]."""
    if isinstance(expression, Call) and expression.function == "and":
        return [part for arg in expression.args for part in conjuncts(arg)]
    return [expression]
