"""DuckDB: its types, casts, operations, functions and aggregates."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

from privsql.algebra.exact import CountDistinctIn, Operation, SomeDistinct, SumDistinctIn, one_zero
from privsql.algebra.expressions import SPREAD, Aggregate, Call, Expression, Literal
from privsql.algebra.functions import FIXED_POINT
from privsql.algebra.relations import Unnest, Unpivot
from privsql.render.base import INFIX, OPERATIONS, plain_decimal, plain_letters
from privsql.render.duckdb_functions import FORMS
from privsql.render.duckdb_windows import DuckDBWindows
from privsql.render.write_relations import is_double
from privsql.types import BINARY, DOUBLE, INTEGER_BOUNDS, TIMESTAMP, Kind, Type, may_overflow

_OPERATIONS: dict[Operation, str] = {
    **OPERATIONS,
    Operation.SAME: "({0} IS NOT DISTINCT FROM {1})",
    Operation.FLOOR_DIVIDE: "({0} // {1})",
    Operation.DIVIDE: "({0} / {1})",
    Operation.LOG2: "log2({0})",
    Operation.MICROSECONDS: "epoch_us({0})",
    # hash(a, b) alone is not fair: DuckDB combines the hashes of its arguments by XOR, so of two keys the
    # same one comes first for most units. Hashing the result again mixes it.
    Operation.HASH: "hash(hash({args}))",
    Operation.ONE_ZERO: "({0} + CAST(0 AS DOUBLE))",
    Operation.AS_TEXT: "CAST({0} AS VARCHAR)",
}


def identifier(name: str) -> str:
    return '"' + plain_letters(name).replace('"', '""') + '"'


def text(value: str) -> str:
    return "'" + plain_letters(value).replace("'", "''") + "'"


class DuckDB(DuckDBWindows):
    """SQL as DuckDB reads it, whatever its settings."""

    forms: ClassVar[Mapping[str, str]] = FORMS
    operations: ClassVar[Mapping[Operation, str]] = _OPERATIONS
    infix: ClassVar[Mapping[str, str]] = {**INFIX, "//": "({0} // {1})"}

    def identifier(self, name: str) -> str:
        return identifier(name)

    def text(self, value: str) -> str:
        return text(value)

    # -- types and constants ---------------------------------------------------------------------------------
    def type_name(self, type_: Type) -> str:
        return str(type_)

    def exact_type_name(self, type_: Type) -> str:
        """The named type, because a cast to TINYINT must reject what is outside a TINYINT's bounds."""
        exact = (name for name, bounds in INTEGER_BOUNDS.items() if bounds == (type_.low, type_.high))
        return next(exact, str(type_)) if type_.kind is Kind.INTEGER else str(type_)

    def constant(self, value: Any, type_: Type) -> str:
        name = self.type_name(type_)
        match value:
            case None:
                return f"CAST(NULL AS {name})"
            case bool():
                return "TRUE" if value else "FALSE"
            case int() if type_.kind is Kind.INTEGER:
                return str(value) if value >= 0 else f"({value})"
            case float() if not math.isfinite(value):
                return f"CAST('{value}' AS DOUBLE)"
            case int() | float() if type_.kind is Kind.DOUBLE:
                return f"CAST({float(value)!r} AS DOUBLE)"
            case Decimal() if not value.is_finite():
                raise AssertionError("a DECIMAL is finite")
            case Decimal() | int():
                return f"CAST({plain_decimal(value)} AS {name})"
            case str():
                return f"INTERVAL {text(value)}" if type_.kind is Kind.INTERVAL else text(value)
            case dt.date() | dt.time():
                return self.moment(value)
        raise AssertionError("a literal of a type without rules")

    # -- casts that cannot fail
    # ----------------------------------------------------------------------------------
    def try_cast(self, rendered: str, of: Type | None, type_name: str) -> str:
        """A value cast to a type, NULL where it does not fit.

        A DATE cast to TIMESTAMP stands in least(). Otherwise DuckDB would compare the DATE instead of the
        TIMESTAMP, and find that 5000000 BC, which has no TIMESTAMP, is before 2024.
        """
        tried = f"TRY_CAST({rendered} AS {type_name})"
        if of is not None and of.kind is Kind.DATE and type_name == self.type_name(TIMESTAMP):
            return f"least({tried}, CAST(NULL AS {type_name}))"
        return tried

    def as_text(self, rendered: str, type_: Type) -> str:
        """A value as text, NULL where DuckDB has none.

        NaN is written without a sign: which of two equal NaNs comes first would reveal the order of rows. A
        moment may be out of range, since files, data frames and make_timestamp can produce such values.
        DuckDB fails to write them as text in a way that TRY_CAST does not catch, and that breaks every later
        statement on the database.
        """
        shown = rendered
        match type_.kind:
            case Kind.DOUBLE:
                return f"replace(TRY_CAST({rendered} AS VARCHAR), '-nan', 'nan')"
            case Kind.TIMESTAMP:
                first = f"{rendered} >= TIMESTAMP '290309-12-22 (BC) 00:00:00'"
                begun = f"({first} OR {rendered} = TIMESTAMP '-infinity')"
                shown = f"(CASE WHEN {begun} THEN {rendered} END)"
            case Kind.TIME:
                within = f"{rendered} BETWEEN TIME '00:00:00' AND TIME '24:00:00'"
                shown = f"(CASE WHEN {within} THEN {rendered} END)"
        return f"TRY_CAST({shown} AS VARCHAR)"

    def guarded(self, rendered: str) -> str:
        return f"TRY({rendered})"

    # -- rows and lists --------------------------------------------------------------------------------------
    def row_of(self, values: Sequence[str]) -> str:
        return f"row({', '.join(values)})"

    def list_of(self, values: Sequence[str]) -> str:
        return f"list_value({', '.join(values)})"

    def unpivoted(self, relation: Unpivot) -> list[str]:
        labels = ", ".join(text(label) for _, label in relation.on)
        values = ", ".join(identifier(name) for name, _ in relation.on)
        pairs = ((labels, relation.name), (values, relation.value.name))
        return [f"unnest([{listed}]) AS {identifier(name)}" for listed, name in pairs]

    def unnested(self, listed: str, relation: Unnest) -> str:
        """The elements of a list. A list may carry a collation that its type does not show, and under which
        different texts are equal.
        """
        collated = f" {BINARY}" if relation.element.type.kind is Kind.TEXT else ""
        return f"unnest({f'list_distinct({listed})' if relation.distinct else listed}){collated}"

    def list_cast(self, rendered: str, of: str) -> str:
        return f"TRY_CAST({rendered} AS {of}[])"

    # -- statements ------------------------------------------------------------------------------------------
    def some_distinct(self, values: SomeDistinct) -> str:
        """The values are listed as rows, so that they sort by their hash, and those with equal hashes by
        value.
        """
        value, place = self.scalar(values.value), self.scalar(values.place)
        condition = "" if values.condition is None else f" AND {self.scalar(values.condition)}"
        listed = f"list(row({place}, {value})) FILTER (WHERE ({value}) IS NOT NULL{condition})"
        ranked = f"list_sort(list_distinct({listed}), 'ASC', 'NULLS LAST')"
        return f"list_transform(list_slice({ranked}, 1, {values.most}), lambda value: value[2])"

    def count_distinct_in(self, count: CountDistinctIn) -> str:
        return f"list_unique(flatten(list({self.scalar(count.lists)})))"

    def sum_distinct_in(self, total: SumDistinctIn) -> str:
        return f"list_sum(list_distinct(flatten(list({self.scalar(total.lists)}))))"

    def materialized(self, stored: bool | None) -> str:
        return {None: "", True: "MATERIALIZED ", False: "NOT MATERIALIZED "}[stored]

    def fence(self) -> str:
        return "OFFSET 0"

    def stored_table(self, database: str, name: str) -> str:
        return f"{database}.main.{identifier(name)}"

    def ranked(self, shown: str, rest: str, rank: str, most: int, names: Sequence[str]) -> str:
        return f"SELECT {shown} {rest} QUALIFY {rank} <= {most}"

    def semi_join(self, left: str, right: str, condition: str) -> str:
        return f"{left} SEMI JOIN {right} ON {condition}"

    def with_column_replaced(self, name: str, value: str, others: Sequence[str], source: str) -> str:
        return f"SELECT * REPLACE ({value} AS {name}) FROM {source}"

    # -- exact aggregates of public rows, and of one unit's rows ---------------------------------------------
    def aggregate(self, node: Aggregate) -> str:
        return self.aggregate_over(node, "")

    def aggregate_over(self, node: Aggregate, over: str) -> str:
        return f"TRY_CAST({self._aggregate(node, over)} AS {self.type_name(node.type)})"

    def _aggregate(self, node: Aggregate, over: str) -> str:
        """An aggregate in a fixed order where ties or floats could make a difference."""
        where = "" if node.condition is None else f" FILTER (WHERE {self.expression(node.condition)})"
        where += over
        argument = "*" if node.argument is None else self._plain(node.argument)
        match node.function:
            case "count_distinct":
                return f"count(DISTINCT {argument}){where}"
            case "sum_distinct" | "avg_distinct":  # of whole numbers and short decimals
                return f"{node.function.removesuffix('_distinct')}(DISTINCT {argument}){where}"
            case "sum" | "avg" if node.argument is not None:
                return self._sum(node.function, node.argument, where, windowed=bool(over))
            case function if function in SPREAD:  # of public rows only
                other = "" if node.by is None else f", CAST({self.expression(node.by)} AS DOUBLE)"
                return f"{function}(CAST({argument} AS DOUBLE){other}){where}"
            case "quantile_cont" | "quantile_disc":
                (fraction,) = node.parameters
                return f"{node.function}({argument}, {self.constant(float(fraction), DOUBLE)}){where}"
            case "arg_min" | "arg_max" | "first" | "last":
                assert node.by is not None
                return self._by(node, argument, self._plain(node.by), where)
            case function:
                return f"{function}({argument}){where}"

    def _sum(self, function: str, argument: Expression, where: str, windowed: bool) -> str:
        """Doubles are summed in a fixed order, so that two runs give the same digits. Types that may overflow
        are summed as doubles: an overflow would fail after the charge.
        """
        value = self._plain(argument)
        if isinstance(argument, Call) and argument.function == FIXED_POINT:
            step = argument.args[1]
            assert isinstance(step, Literal)
            size = self.constant(float(Fraction(step.value)), DOUBLE)
            if windowed and function == "avg":  # of whole numbers, whose sum has one value in every order
                return f"(avg({value}){where} * {size})"
            total = f"CAST(sum({value}){where} AS DOUBLE) * {size}"
            return f"({total})" if function == "sum" else f"({total} / nullif(count({value}){where}, 0))"
        if not is_double(argument):
            if not may_overflow(argument.type):
                return f"{function}({value}){where}"
            value = f"CAST({value} AS DOUBLE)"
        return f"{function}({value} ORDER BY {value} ASC NULLS LAST){where}"

    def _by(self, node: Aggregate, argument: str, place: str, where: str) -> str:
        """Of several rows at the same place, the least value wins, not the one that was seen first."""
        if node.function in ("arg_min", "arg_max"):
            missing = f"({argument}) IS NULL OR ({place}) IS NULL"
            both = f"CASE WHEN {missing} THEN NULL ELSE row({place}, {argument}) END"
            return f"({node.function[4:]}({both}){where})[2]"
        descending, nulls_first = node.parameters
        order = f"{place} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
        return f"{node.function}({argument} ORDER BY {order}, {argument} ASC NULLS LAST){where}"

    def _plain(self, expression: Expression) -> str:
        return self.scalar(one_zero(expression))


DUCKDB = DuckDB()
