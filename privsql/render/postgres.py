"""PostgreSQL: its types, casts, operations, functions and statements.

PostgreSQL raises an error where DuckDB gives NULL or an infinity, and has nothing like TRY: so every form
here has a value, or NULL, for every row (postgres_numbers.py, postgres_functions.py), and what has no such
form is refused. Aggregates are in postgres_aggregates.py.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar

from privsql.algebra.exact import Operation
from privsql.algebra.expressions import Call, Expression, Literal
from privsql.algebra.functions import FUNCTIONS
from privsql.algebra.relations import Relation, Unnest, Unpivot
from privsql.errors import Refused, SqlError
from privsql.render.base import INFIX, OPERATIONS, plain_decimal, plain_letters
from privsql.render.duckdb import DUCKDB
from privsql.render.postgres_aggregates import PostgresAggregates
from privsql.render.postgres_functions import CONDITIONS, DIFFERENCES, FIRST_DAY, FORMS, LAST_DAY, REASONS
from privsql.render.postgres_numbers import (
    OF_DOUBLES,
    WIDE_TO_DOUBLE,
    bounds_of,
    decimal_from_number,
    double,
    filled,
    fits,
    integer_name,
    number,
    of_doubles,
    whole_from_decimal,
    whole_from_double,
    whole_from_whole,
)
from privsql.types import DOUBLE, Kind, Type, integer

_LONGEST_NAME = 63  # bytes; PostgreSQL cuts what is longer, so that two names could become one
_MOST_DAYS = 1_700_000  # that a date may be moved by: some 4,654 years
_BINARY = 'COLLATE "C"'
_SIMPLE = {
    Kind.BOOLEAN: "boolean",
    Kind.DOUBLE: "double precision",
    Kind.TEXT: "text",
    Kind.NULL: "text",
    Kind.DATE: "date",
    Kind.TIME: "time",
    Kind.TIMESTAMP: "timestamp",
    Kind.INTERVAL: "interval",
}
# How a column of the source is brought to one of our types, by the word that its schema gives.
BROUGHT: Mapping[str, str] = {
    "text": f"(CAST({{0}} AS text) {_BINARY})",
    "double": "CAST({0} AS double precision)",
    "wide to double": WIDE_TO_DOUBLE,
    "no NaN": "nullif({0}, CAST('NaN' AS numeric))",
    "in UTC": "({0} AT TIME ZONE 'UTC')",
}
_OPERATIONS: dict[Operation, str] = {
    **OPERATIONS,
    Operation.SAME: "({0} IS NOT DISTINCT FROM {1})",
    Operation.FLOOR_DIVIDE: "div(CAST({0} AS numeric), CAST({1} AS numeric))",
    Operation.DIVIDE: "(CAST({0} AS numeric) / CAST({1} AS numeric))",
    Operation.MICROSECONDS: "CAST(extract(epoch FROM {0}) * 1000000 AS bigint)",
    # of all values as one text, since rows within rows cannot be hashed; it is not negative
    Operation.HASH: (f"(hashtextextended(CAST(ROW({{args}}) AS text) {_BINARY}, 0) & 9223372036854775807)"),
    Operation.ONE_ZERO: f"({{0}} + {double(0.0)})",
    Operation.AS_TEXT: f"(CAST({{0}} AS text) {_BINARY})",
}


class PostgreSQL(PostgresAggregates):
    """SQL as PostgreSQL 15 and later read it, with the settings of engines/postgres."""

    forms: ClassVar[Mapping[str, str]] = FORMS
    operations: ClassVar[Mapping[Operation, str]] = _OPERATIONS
    infix: ClassVar[Mapping[str, str]] = INFIX

    def __init__(self, schema: str = "public") -> None:
        self.schema = schema

    # -- names, constants and types --------------------------------------------------------------------------
    def identifier(self, name: str) -> str:
        if len(plain_letters(name).encode()) > _LONGEST_NAME:
            raise SqlError(
                "sql-alias",
                f"the name {name} is too long: PostgreSQL cuts names after {_LONGEST_NAME} bytes",
                "give it a shorter name with AS",
            )
        return '"' + name.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        return "'" + plain_letters(value).replace("'", "''") + "'"

    def table(self, name: str, location: Sequence[str] = ()) -> str:
        return f"{self.identifier(self.schema)}.{self.identifier(name)}"

    def named(self, source: str, name: str = "privsql_q") -> str:
        return f"{source} AS {name}"

    def type_name(self, type_: Type) -> str:
        match type_.kind:
            case Kind.INTEGER:
                return integer_name(type_)
            case Kind.DECIMAL:
                return f"numeric({type_.precision},{type_.scale})"
            case Kind.LIST:
                assert type_.of is not None
                return f"{self.type_name(type_.of)}[]"
            case kind:
                return _SIMPLE[kind]

    def exact_type_name(self, type_: Type) -> str:
        return self.type_name(type_)

    def constant(self, value: Any, type_: Type) -> str:
        name = self.type_name(type_)
        if value is None:
            return f"CAST(NULL AS {name})"
        match value:
            case bool():
                return str(value).upper()
            case int() if type_.kind is Kind.INTEGER:
                return f"CAST({value} AS {name})"
            case int() | float() if type_.kind is Kind.DOUBLE:
                return double(float(value))
            case Decimal() | int():
                return f"CAST({plain_decimal(value)} AS {name})"
            case str() if type_.kind is Kind.INTERVAL:
                return f"INTERVAL {self.text(value)}"
            case str():
                return f"(text {self.text(value)} {_BINARY})"
            case dt.date() | dt.time():
                return self.moment(value)
        raise AssertionError("a literal of a type without rules")

    # -- casts -----------------------------------------------------------------------------------------------
    def cast(self, rendered: str, of: Type, to: Type) -> str:
        low, high = bounds_of(to)
        return self._brought_to(rendered, of, to, low, high)

    def explicit_cast(self, rendered: str, of: Type, to: Type) -> str:
        return self._brought_to(rendered, of, to, to.low, to.high)

    def _brought_to(self, rendered: str, of: Type, to: Type, low: int, high: int) -> str:
        """A value in another type: NULL where that does not hold it; whole numbers within these bounds."""
        name = self.type_name(to)
        plain = f"CAST({rendered} AS {name})"
        match of.kind, to.kind:
            case Kind.NULL, _:
                return plain
            case Kind.INTEGER, Kind.INTEGER:
                return plain if fits(of, low, high) else filled(whole_from_whole(low, high, name), [rendered])
            case Kind.DECIMAL, Kind.INTEGER:
                return filled(whole_from_decimal(low, high, name), [rendered])
            case Kind.DOUBLE, Kind.INTEGER:
                return filled(whole_from_double(low, high, to.is_wide), [rendered])
            case Kind.INTEGER | Kind.DECIMAL, Kind.DOUBLE:
                return plain
            case Kind.INTEGER | Kind.DECIMAL, Kind.DECIMAL:
                same = of == to
                return plain if same else filled(decimal_from_number(to), [f"CAST({rendered} AS numeric)"])
            case Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE, Kind.BOOLEAN:
                return f"({rendered} <> 0)"
            case Kind.BOOLEAN, Kind.INTEGER | Kind.DOUBLE:
                return f"CAST(CAST({rendered} AS integer) AS {name})"
            case Kind.DATE, Kind.TIMESTAMP:
                within = "{0} < DATE '294000-01-01' OR {0} = DATE 'infinity'"
                return filled(f"(CASE WHEN {within} THEN CAST({{0}} AS timestamp) END)", [rendered])
            case Kind.TIMESTAMP, Kind.DATE:
                return plain
            case a, b if a is b:
                return rendered
        raise self._no_cast(of, to)

    def as_text(self, rendered: str, type_: Type) -> str:
        if type_.kind in (Kind.DOUBLE, Kind.TIME, Kind.INTERVAL):
            raise self._no_cast(type_, Type(Kind.TEXT))
        return f"(CAST({rendered} AS text) {_BINARY})"

    def _no_cast(self, of: Type, to: Type) -> Refused:
        return Refused(
            "refused-cast",
            f"PostgreSQL has no cast from {of} to {to} that never fails and means the same as DuckDB's.",
            "Leave the cast out, or store the column in the type you need.",
        )

    def try_cast(self, rendered: str, of: Type | None, type_name: str) -> str:
        raise AssertionError("casts are by pairs of types here")

    def list_cast(self, rendered: str, of: str) -> str:
        element = filled(BROUGHT[of], ["privsql_e"])
        return f"ARRAY(SELECT {element} FROM unnest({rendered}) AS privsql_list(privsql_e))"

    def guarded(self, rendered: str) -> str:
        raise AssertionError("PostgreSQL has nothing like TRY")

    def _brought(self, table: str, column: str, casts: Mapping[str, str]) -> str:
        name, cast = self._of(table, column), casts.get(column)
        return name if cast is None else filled(BROUGHT[cast], [name])

    def of_unit(self, table: str, column: str, casts: Mapping[str, str]) -> str:
        return self._brought(table, column, casts)  # a NUMERIC NaN is nobody

    # -- functions -------------------------------------------------------------------------------------------
    def _to(self, type_: Type, rendered: str, made: Type | None = None) -> str:
        return rendered if made is None else self.cast(rendered, made, type_)

    def operate(self, call: Call, of: Type, left: str, right: str) -> str:
        sign = call.function
        if of.kind is Kind.DOUBLE:
            if sign not in OF_DOUBLES:
                raise self._no_form(sign)
            known = [number(each.value) if isinstance(each, Literal) else None for each in call.args]
            return of_doubles(sign, (left, right), known)
        if sign == "//":
            return f"div({left}, {right})" if of.is_wide else f"({left} / {right})"
        return self.infix[sign].format(left, right)

    def date_sum(self, call: Call, args: Sequence[str]) -> str:
        moment, other = args
        days = f"{{1}} BETWEEN {-_MOST_DAYS} AND {_MOST_DAYS}"
        within = f"{{0}} BETWEEN {FIRST_DAY} AND {LAST_DAY}"
        match call.function:
            case "date_minus":
                test = "isfinite({0}) AND isfinite({1})"
                return filled(f"(CASE WHEN {test} THEN CAST({{0}} - {{1}} AS bigint) END)", [moment, other])
            case "date_shift":
                moved = "{0} + CAST({1} AS integer)"
                return filled(f"(CASE WHEN {days} AND {within} THEN {moved} END)", [moment, other])
        if not _is_short(call.args[1]):
            raise self._no_form("a sum with an interval so long")
        name = self.type_name(call.type)
        return filled(f"(CASE WHEN {within} THEN CAST({{0}} + {{1}} AS {name}) END)", [moment, other])

    def _function(self, call: Call, args: Sequence[str]) -> str:
        form = self._form_of(call)
        if form is None or not _suits(call):
            raise self._no_form(call.function)
        own = call.args[0].type if call.args else call.type
        listed = list(args)
        if call.type.kind is Kind.INTEGER and call.function in ("floor", "ceil", "trunc", "abs"):
            listed = [self.cast(args[0], own, call.type)]
            return listed[0] if call.function != "abs" else filled(form, listed)
        if call.function == "round" and own.kind is not Kind.DOUBLE:
            return self._rounded(call, listed)
        takes = FUNCTIONS[call.function].takes
        for place, take in enumerate(takes[: len(listed)]):
            if take == "double":
                listed[place] = self.cast(listed[place], call.args[place].type, DOUBLE)
            elif take.rstrip("?").lower() == "int":
                listed[place] = f"CAST({listed[place]} AS integer)"
        return filled(form.replace("{args}", ", ".join(f"{{{n}}}" for n in range(len(listed)))), listed)

    def _form_of(self, call: Call) -> str | None:
        if call.function == "date_diff" and isinstance(call.args[0], Literal):
            return DIFFERENCES.get(call.args[0].value)
        return self.forms.get(call.function)

    def _rounded(self, call: Call, args: Sequence[str]) -> str:
        """Whole numbers and DECIMALs, half away from zero."""
        places = call.args[1].value if len(call.args) > 1 and isinstance(call.args[1], Literal) else 0
        rounded = f"round(CAST({args[0]} AS numeric), {int(places or 0)})"
        wide = integer(-(2**127), 2**127 - 1)
        return self.cast(rounded, wide, call.type)

    def _no_form(self, name: str) -> Refused:
        why = REASONS.get(name) or CONDITIONS.get(name)
        return Refused(
            "refused-function",
            f"The engine of this session has no form of {name} that cannot fail on some row"
            + (f": {why}." if why else "."),
            "Leave it out, or compute it in a column that the data owner stores.",
        )

    def meets(self, left: str, right: str) -> str:
        """Arrays are equal where both hold NULL, and unlike IS NOT DISTINCT FROM can be hashed."""
        return f"(ARRAY[{left}] = ARRAY[{right}])"

    # -- rows, lists and statements --------------------------------------------------------------------------
    def row_of(self, values: Sequence[str]) -> str:
        return f"ROW({', '.join(values)})"

    def list_of(self, values: Sequence[str]) -> str:
        return f"ARRAY[{', '.join(values)}]"

    def unnested(self, listed: str, relation: Unnest) -> str:
        """The different elements are those that are not NULL, as DuckDB counts them."""
        if not relation.distinct:
            return f"unnest({listed})"
        different = f"SELECT DISTINCT privsql_e FROM unnest({listed}) AS privsql_list(privsql_e)"
        return f"unnest(ARRAY({different} WHERE privsql_e IS NOT NULL))"

    def unpivoted(self, relation: Unpivot) -> list[str]:
        """Both lists are opened side by side, row by row."""
        labels = ", ".join(f"(text {self.text(label)} {_BINARY})" for _, label in relation.on)
        values = ", ".join(self.identifier(name) for name, _ in relation.on)
        pairs = ((labels, relation.name), (values, relation.value.name))
        return [f"unnest(ARRAY[{listed}]) AS {self.identifier(name)}" for listed, name in pairs]

    def materialized(self, stored: bool | None) -> str:
        return {None: "", True: "MATERIALIZED ", False: "NOT MATERIALIZED "}[stored]

    def fence(self) -> str:
        return "OFFSET 0"

    def stored_table(self, database: str, name: str) -> str:
        raise AssertionError("there are no prepared copies")

    def ranked(self, shown: str, rest: str, rank: str, most: int, names: Sequence[str]) -> str:
        kept = ", ".join(names) or "*"
        return (
            f"SELECT {kept} FROM (SELECT {shown}, {rank} AS privsql_rank {rest}) AS privsql_ranked "
            f"WHERE privsql_rank <= {most}"
        )

    def semi_join(self, left: str, right: str, condition: str) -> str:
        exists = f"EXISTS (SELECT 1 FROM {right} WHERE {condition})"
        return f"(SELECT privsql_l.* FROM {left} WHERE {exists})"

    def with_column_replaced(self, name: str, value: str, others: Sequence[str], source: str) -> str:
        return f"SELECT {', '.join(others)}, {value} AS {name} FROM {self.named(source)}"

    def finishing(self, relation: Relation, guards: Collection[str]) -> str:
        """What stands above a release is computed in DuckDB, here as everywhere."""
        return DUCKDB.finishing(relation, guards)


def _suits(call: Call) -> bool:
    """Whether the form of a function holds for these arguments: some do for some constants only."""
    constants = [each.value if isinstance(each, Literal) else None for each in call.args]
    whole = [each for each in constants[1:] if isinstance(each, int) and abs(each) < 2**31]
    match call.function:
        case "substring":
            return len(whole) == len(call.args) - 1 and whole[0] >= 1 and min(whole[1:], default=0) >= 0
        case "left" | "right":
            return len(whole) == 1
        case "split_part":
            return len(whole) == 1 and whole[0] >= 1 and constants[1] != ""
        case "round":
            return call.args[0].type.kind is not Kind.DOUBLE or len(call.args) == 1
        case "date_trunc":
            return constants[0] not in ("century",)
        case "hour" | "minute" | "second":
            return call.args[0].type.kind is not Kind.TIME
    return True


_DAYS = {
    "microsecond": 0,
    "millisecond": 0,
    "second": 1 / 86_400,
    "minute": 1 / 1_440,
    "hour": 1 / 24,
    "day": 1,
    "week": 7,
    "month": 31,
    "year": 366,
}


def _is_short(interval: Expression) -> bool:
    """Whether adding it moves no date of the middle of the calendar to where the calendar ends."""
    if not isinstance(interval, Literal) or not isinstance(interval.value, str):
        return False
    words = interval.value.lower().split()
    if len(words) != 2 or not words[0].lstrip("+-").isdigit():
        return False
    unit = words[1].removesuffix("s")
    return unit in _DAYS and abs(int(words[0])) < 2**31 and abs(int(words[0])) * _DAYS[unit] <= _MOST_DAYS


POSTGRES = PostgreSQL()
