"""Scalars and aggregates of exact statements go in; PostgreSQL's come out. See postgres.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

from privsql.algebra.exact import (
    Cases,
    Cast,
    Constant,
    CountDistinctIn,
    Fold,
    Op,
    Operation,
    Over,
    Scalar,
    Single,
    SomeDistinct,
    SumDistinctIn,
    Value,
    one_zero,
)
from privsql.algebra.expressions import SPREAD, Aggregate, Call, Expression, Literal
from privsql.algebra.functions import FIXED_POINT
from privsql.algebra.relations import WindowsWithinUnit
from privsql.errors import Refused
from privsql.render.postgres_numbers import (
    INFINITY,
    NAN,
    OF_DOUBLES,
    ROUND,
    double,
    filled,
    fits,
    integer_name,
    number,
    of_doubles,
    whole_from_double,
    whole_from_whole,
)
from privsql.render.write_relations import is_double
from privsql.render.write_statements import StatementWriter
from privsql.types import BIGINT, DOUBLE, TEXT, Kind, Type

_PASSED_ON = frozenset(
    {
        Operation.ADD,
        Operation.SUBTRACT,
        Operation.MULTIPLY,
        Operation.DIVIDE,
        Operation.LEAST,
        Operation.GREATEST,
        Operation.COALESCE,
        Operation.NULLIF,
        Operation.ABS,
        Operation.ROUND,
        Operation.ONE_ZERO,
    }
)
# what a sum may take of one number, so that a trillion of them do not overflow
_MOST_ADDED, _LEAST_ADDED = double(1e290), double(-1e290)


class PostgresAggregates(StatementWriter):
    """Aggregates, and the scalars whose form depends on what they hold."""

    # -- scalars ---------------------------------------------------------------------------------------------
    def operation(self, op: Op, listed: Sequence[str]) -> str:
        if any(_is_double(each) for each in op.operands):
            if op.operation in OF_DOUBLES:
                known = [number(each.value) if isinstance(each, Constant) else None for each in op.operands]
                left, right = (_as_double(each) for each in listed)
                return of_doubles(op.operation, (left, right), known, _is_folded(op))
            if op.operation is Operation.ROUND:
                return filled(ROUND, listed, _is_folded(op))
        return super().operation(op, listed)

    def _cast_to(self, cast: Cast) -> str:
        """Casts to whole numbers, but for those to DOUBLE."""
        value, of, to = self.scalar(cast.value), _type_of(cast.value), cast.type
        if to.kind is Kind.DOUBLE:
            return _as_double(value)
        assert to.kind is Kind.INTEGER, "exact statements cast to numbers only"
        if of is not None and of.kind is Kind.BOOLEAN:
            value, of = f"CAST({value} AS integer)", BIGINT
        name = integer_name(to)
        if of is DOUBLE:
            return filled(whole_from_double(to.low, to.high, to.is_wide), [value], _is_folded(cast))
        held = of is not None and of.kind is Kind.INTEGER and fits(of, to.low, to.high)
        if held or not cast.total:
            return f"CAST({value} AS {name})"
        return filled(whole_from_whole(to.low, to.high, name), [value], _is_folded(cast))

    def _fold(self, fold: Fold) -> str:
        """Sums are of 64 bits at least, so that they become NUMERIC and cannot overflow."""
        if fold.function != "sum":
            return super()._fold(fold)
        assert fold.value is not None
        where = "" if fold.condition is None else f" FILTER (WHERE {self.scalar(fold.condition)})"
        different = "DISTINCT " if fold.distinct else ""
        return f"sum({different}{self.scalar(fold.value)} + CAST(0 AS bigint)){where}"

    def some_distinct(self, values: SomeDistinct) -> str:
        """An array of exactly so many elements, NULL behind the last: only arrays of one length can be put
        together.
        """
        value, place = self.scalar(values.value), self.scalar(values.place)
        if _is_row(values.value):  # an array of rows cannot be opened; equal rows have equal texts
            value = f'(CAST({value} AS text) COLLATE "C")'
        condition = "" if values.condition is None else f" AND {self.scalar(values.condition)}"
        where = f"FILTER (WHERE ({value}) IS NOT NULL{condition})"
        both = f"unnest(array_agg({value}) {where}, array_agg({place}) {where})"
        listed = f"SELECT DISTINCT privsql_h, privsql_v FROM {both} AS privsql_all(privsql_v, privsql_h)"
        chosen = f"{listed} ORDER BY privsql_h, privsql_v LIMIT {values.most}"
        kept = f"SELECT privsql_v FROM ({chosen}) AS privsql_some"
        none = f"array_fill(CAST(NULL AS {self._element(values.value)}), ARRAY[{values.most}])"
        return f"(ARRAY({kept}) || {none})[1:{values.most}]"

    def _element(self, value: Scalar) -> str:
        of = TEXT if _is_row(value) else _type_of(value)
        assert of is not None, "what is counted has a type"
        return self.type_name(of)

    def count_distinct_in(self, count: CountDistinctIn) -> str:
        lists = self.scalar(count.lists)
        opened = f"unnest(array_agg({lists})) AS privsql_all(privsql_v)"
        return f"(SELECT count(DISTINCT privsql_v) FROM {opened})"

    def windows(self, relation: WindowsWithinUnit, unit: bool) -> str:
        listed = ", ".join(dict.fromkeys(each.function.upper() for _, each in relation.windows))
        raise Refused(
            "refused-window",
            f"{listed} within one person has no form on PostgreSQL that is known not to fail on some row.",
            "Aggregate the rows of each unit with GROUP BY, or copy the tables into DuckDB.",
        )

    def sum_distinct_in(self, total: SumDistinctIn) -> str:
        opened = f"unnest(array_agg({self.scalar(total.lists)})) AS privsql_all(privsql_v)"
        return f"(SELECT sum(DISTINCT privsql_v) FROM {opened})"

    # -- exact aggregates of public rows, and of one unit's rows ---------------------------------------------
    def aggregate(self, node: Aggregate) -> str:
        where = "" if node.condition is None else f" FILTER (WHERE {self.expression(node.condition)})"
        argument = "*" if node.argument is None else self._plain(node.argument)
        match node.function:
            case "count":
                return f"count({argument}){where}"
            case "count_distinct":
                return f"count(DISTINCT {argument}){where}"
            case "sum" | "avg" if node.argument is not None:
                return self._sum(node, node.argument, where)
            case "min" | "max" if node.argument is not None and node.argument.type.kind is Kind.BOOLEAN:
                return f"bool_{'and' if node.function == 'min' else 'or'}({argument}){where}"
            case "min" | "max" | "bool_and" | "bool_or":
                return f"{node.function}({argument}){where}"
            case function if function in SPREAD:  # of public rows only
                other = "" if node.by is None else f", CAST({self.expression(node.by)} AS double precision)"
                return f"{function}(CAST({argument} AS double precision){other}){where}"
            case "quantile_cont" if node.type.kind is Kind.DOUBLE:
                (fraction,) = node.parameters
                within = f"WITHIN GROUP (ORDER BY CAST({argument} AS double precision))"
                return f"percentile_cont({double(float(fraction))}) {within}{where}"
            case "arg_min" | "arg_max" | "first" | "last" if node.by is not None:
                return self._by(node, argument, self._plain(node.by))
        raise Refused(
            "refused-function",
            f"The engine of this session has no form of {node.name} that means the same as DuckDB's.",
            "Leave it out, or use another aggregate.",
        )

    def _sum(self, node: Aggregate, argument: Expression, where: str) -> str:
        """Of doubles in an order, so that two readings give the same digits."""
        value = self._plain(argument)
        count = f"nullif(count({value}){where}, 0)"
        if isinstance(argument, Call) and argument.function == FIXED_POINT:
            step = argument.args[1]
            assert isinstance(step, Literal)
            total = f"(CAST(sum({value}){where} AS double precision) * {double(float(Fraction(step.value)))})"
            return total if node.function == "sum" else f"({total} / {count})"
        if is_double(argument):
            total = self._sum_of_doubles(value, node.condition)
            return (
                total if node.function == "sum" else filled(OF_DOUBLES["/"], [total, _as_double(count)], True)
            )
        total = f"sum({value} + CAST(0 AS bigint)){where}"
        if node.function == "avg":
            return f"(CAST({total} AS double precision) / CAST({count} AS double precision))"
        match node.type.kind:
            case Kind.DOUBLE:
                return f"CAST({total} AS double precision)"
            case Kind.DECIMAL:
                most = 10 ** (node.type.precision - node.type.scale)
                name = self.type_name(node.type)
                return filled(
                    f"(CASE WHEN abs({{0}}) < {most} THEN CAST({{0}} AS {name}) END)", [total], True
                )
        name = integer_name(node.type)
        return filled(whole_from_whole(node.type.low, node.type.high, name), [total], True)

    def _sum_of_doubles(self, value: str, condition: Expression | None) -> str:
        held = f"least(greatest({value}, {_LEAST_ADDED}), {_MOST_ADDED})"
        tests = " AND ".join([f"({value}) IS NOT NULL", *([self.expression(condition)] if condition else [])])
        total = f"sum({held} ORDER BY {held}) FILTER (WHERE {tests})"

        def any_is(special: str) -> str:
            return f"coalesce(bool_or({value} = {special}) FILTER (WHERE {tests}), FALSE)"

        high, low = any_is(INFINITY), any_is(f"(- {INFINITY})")
        return (
            f"(CASE WHEN {any_is(NAN)} OR ({high} AND {low}) THEN {NAN} WHEN {high} THEN {INFINITY} "
            f"WHEN {low} THEN (- {INFINITY}) ELSE {total} END)"
        )

    def _by(self, node: Aggregate, argument: str, place: str) -> str:
        """Of several at the same place the least, and not the one that was seen first."""
        tests = [] if node.condition is None else [self.expression(node.condition)]
        if node.function in ("arg_min", "arg_max"):
            direction = "ASC" if node.function == "arg_min" else "DESC"
            order = f"{place} {direction}, {argument} {direction}"
            tests += [f"({argument}) IS NOT NULL", f"({place}) IS NOT NULL"]
        else:
            descending, nulls_first = node.parameters
            backwards = node.function == "last"
            direction = "DESC" if descending != backwards else "ASC"
            nulls = "FIRST" if nulls_first != backwards else "LAST"
            own = "DESC NULLS FIRST" if backwards else "ASC NULLS LAST"
            order = f"{place} {direction} NULLS {nulls}, {argument} {own}"
        where = f" FILTER (WHERE {' AND '.join(tests)})" if tests else ""
        return f"(array_agg({argument} ORDER BY {order}){where})[1]"

    def _plain(self, expression: Expression) -> str:
        return self.scalar(one_zero(expression))


def _is_row(value: Scalar) -> bool:
    return (
        isinstance(value, Value) and isinstance(value.expression, Call) and value.expression.function == "row"
    )


def _as_double(rendered: str) -> str:
    return f"CAST({rendered} AS double precision)"


def _is_double(value: Scalar) -> bool:
    return _type_of(value) is DOUBLE


def _type_of(value: Scalar) -> Type | None:
    """The type of a scalar, where that is known: DOUBLE is, unless it is the column of another statement."""
    match value:
        case Value(expression):
            return DOUBLE if expression.type.kind is Kind.DOUBLE else expression.type
        case Constant(type=type_) | Cast(type=type_):
            return DOUBLE if type_ is not None and type_.kind is Kind.DOUBLE else type_
        case Op(operation, operands) if operation in _PASSED_ON:
            return DOUBLE if any(_is_double(each) for each in operands) else None
        case Cases(branches, otherwise):
            ends: Sequence[Scalar | None] = [each for _, each in branches] + [otherwise]
            return DOUBLE if any(each is not None and _is_double(each) for each in ends) else None
    return None


def _is_folded(value: Any) -> bool:
    """Whether a scalar has an aggregate or a window in it: it must not be moved into a query of its own."""
    match value:
        case Fold() | Over() | SomeDistinct() | CountDistinctIn() | SumDistinctIn():
            return True
        case Single() | Value():
            return False
        case tuple():
            return any(_is_folded(each) for each in value)
    return is_dataclass(value) and any(_is_folded(getattr(value, each.name)) for each in fields(value))
