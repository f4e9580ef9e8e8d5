"""Random typed expressions over the hostile table: every function, operator, format, pattern and unit that has a rule."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator
from decimal import Decimal

from privsql.algebra import build
from privsql.algebra.expressions import Call, Column, Expression, Literal
from privsql.algebra.functions import FUNCTIONS, OPERATORS, UNITS
from privsql.algebra.patterns import DIRECTIVES, OPTIONS
from privsql.errors import PrivsqlError
from privsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER_BOUNDS,
    INTERVAL,
    MOMENTS,
    NUMBERS,
    TEXT,
    TIME,
    TIMESTAMP,
    Kind,
    Type,
    decimal,
    integer,
)
from tests.conformance.engines.hostile import COLUMNS

CASTS = [BOOLEAN, DOUBLE, TEXT, DATE, TIME, TIMESTAMP, decimal(4, 2), decimal(18, 3), decimal(38, 10),
         *(integer(*bounds) for bounds in INTEGER_BOUNDS.values())]  # fmt: skip
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "is_same", "is_distinct")
PATTERNS = [
    "a",
    "[a-c]+",
    "^\\d{4}",
    "(a|b)*c?",
    "\\pL+",
    "(?i)zq",
    "",
    ".*",
    "x{0,3}$",
    "\\bé",
    "[[:alpha:]]",
]
LIKES = ["a%", "%_", "", "\\%", "__", "%é%"]
TEXTS = ["", "a", "é\U0001f600", "2024-02-29", "%", "ab" * 20]
NUMBERS_OF = [0, 1, -1, 2, 7, 127, -128, 2**31, -(2**63), 2**63 - 1, 2**64, 3]
_WANTED: dict[str, Callable[[Type], bool]] = {
    "num": lambda each: each.kind in NUMBERS,
    "double": lambda each: each.kind in NUMBERS,
    "int": lambda each: each.kind is Kind.INTEGER,
    "text": lambda each: each.kind is Kind.TEXT,
    "bool": lambda each: each.kind is Kind.BOOLEAN,
    "moment": lambda each: each.kind in MOMENTS,
    "alike": lambda each: each.kind in MOMENTS,
    "clock": lambda each: each.kind in (*MOMENTS, Kind.TIME),
    "any": lambda each: True,
}
NAMES = (*FUNCTIONS, *OPERATORS)


class Generator:
    """Expressions by chance, each built as the binder builds it."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def many(self, count: int, depth: int = 3) -> Iterator[Call]:
        """So many, whose outermost functions come in turn."""
        made = 0
        while made < count:
            found = self.called(NAMES[made % len(NAMES)], depth)
            if found is not None:
                made += 1
                yield found

    def called(self, name: str, depth: int) -> Call | None:
        """A call of that function, or None where chance gave it arguments that do not suit it."""
        for _ in range(50):
            try:
                found = build.small(self._made(name, depth - 1))
            except PrivsqlError:
                continue
            if isinstance(found, Call):
                return found
        return None

    def of(self, wanted: Callable[[Type], bool], depth: int) -> Expression:
        """An expression of a wanted type."""
        if depth > 0 and self.draw.random() < 0.75:
            for _ in range(20):
                found = self.called(self.draw.choice(NAMES), depth)
                if found is not None and wanted(found.type):
                    return found
        if self.draw.random() < 0.1:
            constants = [each for each in self._constants() if wanted(each.type)]
            if constants:
                return self.draw.choice(constants)
        return self.draw.choice(
            [each for each in COLUMNS.values() if wanted(each.type)] or list(COLUMNS.values())
        )

    def _constants(self) -> list[Literal]:
        number = self.draw.choice(NUMBERS_OF)
        return [
            Literal(number, integer(number, number)), Literal(self.draw.choice(TEXTS), TEXT), Literal(None, TEXT),
            Literal(self.draw.choice([0.5, 1e300, -1e-300, float("inf"), float("nan")]), DOUBLE), Literal(None, BIGINT),
            Literal(dt.date(2024, 2, 29), DATE), Literal(dt.datetime(1, 1, 1), TIMESTAMP), Literal(dt.time(12), TIME),
            Literal(self.draw.random() < 0.5, BOOLEAN), Literal(Decimal("12.25"), decimal(4, 2)),
        ]  # fmt: skip

    def constants_of(self, wanted: Type) -> list[Literal]:
        """Constants of a kind, among them its ends."""
        match wanted.kind:
            case Kind.DATE:
                days = (dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31))
                return [Literal(each, DATE) for each in days]
            case Kind.TIMESTAMP:
                moments = (
                    dt.datetime(1, 1, 1),
                    dt.datetime(2024, 2, 29),
                    dt.datetime(9999, 12, 31, 23, 59, 59),
                )
                return [Literal(each, TIMESTAMP) for each in moments]
            case Kind.INTEGER:
                return [Literal(each, integer(each, each)) for each in (0, -1, 7, wanted.low, wanted.high)]
            case Kind.TEXT:
                return [Literal(each, TEXT) for each in ("", "a", "2024-02-29", "nan")]
            case Kind.DECIMAL | Kind.DOUBLE:
                return [Literal(each, DOUBLE) for each in (0.0, 0.5, 1e300, float("inf"), float("nan"))]
        return [each for each in self._constants() if each.type.kind is wanted.kind]

    # -- one function, with arguments ----------------------------------------------------------------------------
    def _made(self, name: str, depth: int) -> Expression:
        if name in FUNCTIONS:
            return build.call(name, self._arguments(name, depth))
        anything, truth = _WANTED["any"], _WANTED["bool"]
        match name:
            case "and" | "or":
                return Call(name, (self.of(truth, depth), self.of(truth, depth)), BOOLEAN)
            case "not" | "is_true" | "is_false":
                return Call(name, (self.of(truth, depth),), BOOLEAN)
            case "is_null":
                return Call(name, (self.of(anything, depth),), BOOLEAN)
            case "cast":
                return build.convert(self.of(anything, depth), self.draw.choice(CASTS), explicit=True)
            case "neg":
                return build.negate(self.of(_WANTED["num"], depth))
            case "date_add":
                unit = self.draw.choice(("second", "day", "week", "month", "year"))
                amount = self.draw.choice((1, -1, 999_999, -999_999))
                return build.arithmetic(
                    "+", self.of(_WANTED["moment"], depth), Literal(f"{amount} {unit}", INTERVAL)
                )
            case "date_shift":
                return build.arithmetic(
                    "+", self.of(lambda each: each.kind is Kind.DATE, depth), self.of(_WANTED["int"], depth)
                )
            case "date_minus":
                return build.arithmetic(
                    "-", *(self.of(lambda each: each.kind is Kind.DATE, depth) for _ in range(2))
                )
        first = self.of(_WANTED["num"] if name in ("+", "-", "*", "/", "//", "%") else anything, depth)
        second, third = (self.of(lambda each: each.kind is first.type.kind, depth) for _ in range(2))
        if self.draw.random() < 0.3 and first.type.kind in NUMBERS:
            second = self.of(_WANTED["num"], depth)
        match name:
            case "in":
                return Call("in", tuple(build.same_type(build.with_truths([first, second, third]))), BOOLEAN)
            case "case":
                values = build.same_type([first, second])
                return Call("case", (self.of(truth, depth), *values), build.shared_type(values))
            case "coalesce" | "least" | "greatest":
                return build.unify(name, [first, second, third])
            case "nullif":
                left, right = build.same_type([first, second])
                return Call("nullif", (left, right), left.type)
            case operator if operator in COMPARISONS:
                return build.compare(operator, first, second)
        return build.arithmetic(name, first, second)

    def _arguments(self, name: str, depth: int) -> list[Expression]:
        found: list[Expression] = []
        for take in FUNCTIONS[name].takes:
            want = take.rstrip("?*")
            for _ in range(
                self.draw.randrange(3)
                if take.endswith("*")
                else self.draw.randrange(2)
                if take.endswith("?")
                else 1
            ):
                found.append(self._constant(name, want) if want.isupper() else self.of(_WANTED[want], depth))
        return found

    def _constant(self, name: str, want: str) -> Literal:
        if want == "INT":
            number = self.draw.choice((0, 1, 2) if name == "regexp_extract" else (0, 1, 2, -1, 5, -3, 40))
            return Literal(number, integer(number, number))
        return Literal(
            self._text(want, replaces=name == "regexp_replace", escapes=name.endswith("_escape")), TEXT
        )

    def _text(self, kind: str, replaces: bool, escapes: bool) -> str:
        """A constant of one of the languages of algebra/patterns.py."""
        match kind:
            case "FORMAT":
                return "".join(self.draw.choices([*DIRECTIVES, "-", " ", ":"], k=self.draw.randrange(1, 6)))
            case "UNIT":
                return self.draw.choice(UNITS)
            case "LIKE":
                return self.draw.choice(["a!%", "%_!!", "", "!_"] if escapes else LIKES)
            case "ESCAPE":
                return "!"
            case "REGEX":
                return self.draw.choice(PATTERNS)
            case "REWRITE":
                return self.draw.choice(["", "x", "\\0", "\\\\"])
            case "OPTIONS":
                return self.draw.choice(["", *sorted(set(OPTIONS) - (set() if replaces else {"g"}))])
            case "STEP":
                return self.draw.choice(
                    ["1 second", "15 minute", "6 hour", "1 week", "2 month", "999999 year"]
                )
            case "FILL":
                return self.draw.choice(["0", "é", "ab"])
            case "TEXT" | "SHORT":
                return self.draw.choice(TEXTS)
        raise AssertionError(f"no constants of kind {kind}: add some here")


def nested(names: tuple[str, ...] = NAMES, seed: int = 0) -> Iterator[Call]:
    """Every function over every column type, and over every other function in each of its places."""
    generator = Generator(seed)
    inner = {
        name: [found for _ in range(3) if (found := generator.called(name, 1)) is not None] for name in NAMES
    }
    for name in names:
        for argument in (*COLUMNS.values(), *(each for listed in inner.values() for each in listed)):
            found = with_argument(generator, name, argument)
            if found is not None:
                yield found


def with_argument(generator: Generator, name: str, argument: Column | Call) -> Call | None:
    """A call of that function in which the argument stands in some place, if there is such a place."""

    class Fixed(Generator):
        def of(self, wanted: Callable[[Type], bool], depth: int) -> Expression:
            return argument if wanted(argument.type) else super().of(wanted, 0)

    fixed = Fixed(0)
    fixed.draw = generator.draw
    found = fixed.called(name, 1)
    return found if found is not None and argument in found.args else None
