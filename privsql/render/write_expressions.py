"""Expressions of the algebra go in; SQL comes out. Every operand stands in parentheses and is cast to the
type it is computed in, so nothing depends on the engine's precedence or type rules.

base.py says how a dialect spells names of types, constants, casts that cannot fail and functions.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction

from privsql.algebra.exact import Scalar, Value
from privsql.algebra.expressions import Call, Column, Expression, Literal
from privsql.algebra.functions import BELIEFS, FIXED_POINT
from privsql.errors import Refused
from privsql.planning.grids.grid import Grid
from privsql.render.base import DialectBase
from privsql.types import INTEGER_BOUNDS, Kind, Type, integer

_HOLE = re.compile(r"\{(args|\d+)\}")  # where an argument goes in a function's form


class ExpressionWriter(DialectBase):
    """Writes expressions."""

    @abstractmethod
    def scalar(self, value: Scalar) -> str:
        """A scalar of an exact statement."""

    # -- expressions -----------------------------------------------------------------------------------------
    def expression(self, node: Expression) -> str:
        """An expression; it needs no parentheses of its own."""
        match node:
            case Column():
                return self.identifier(node.name)
            case Literal():
                return self.constant(node.value, node.type)
            case Call():  # pragma: no branch -- nothing else is an expression
                return self._call(node)

    def cast(self, rendered: str, of: Type, to: Type) -> str:
        """A value in another type: NULL where that type cannot hold it, never a failure."""
        name = self.type_name(to)
        return f"CAST({rendered} AS {name})" if holds(to, of) else self.try_cast(rendered, of, name)

    def _call(self, call: Call) -> str:
        """A call whose type in the engine is the type in the algebra: by its syntax, or by casts of its
        operands or result.
        """
        args = [self.expression(arg) for arg in call.args]
        write = _WRITERS.get(call.function)
        if write is not None:
            return write(self, call, args)
        if call.function in self.infix:
            return self.infix[call.function].format(*self._comparable(call, args))
        return self._function(call, args)

    def _function(self, call: Call, args: Sequence[str]) -> str:
        own, first = call.args[0].type if call.args else call.type, args[0] if args else ""
        form = self.forms.get(call.function)
        if form is None:
            raise Refused(
                "refused-function",
                f"The engine of this session has no form of {call.function} that cannot fail on some row.",
                "Leave it out, or compute it in a view that the data owner makes.",
            )
        if BELIEFS[call.function].keeps_whole and call.type.kind is Kind.INTEGER:
            return self.cast(first, own, call.type)  # the engine would return a DOUBLE
        match call.function:
            case "abs":
                return self._to(call.type, f"abs({self.cast(first, own, call.type)})")
            case "round" if own.kind is Kind.INTEGER or _places(call) < 0:
                # 127 rounds to 130, which a TINYINT cannot hold; nor can a DECIMAL(38) hold its next power of
                # ten
                listed = ", ".join([self.cast(first, own, call.type), *args[1:]])
                return self._to(call.type, f"round({listed})")
        # one pass, so that a placeholder inside an argument (a text such as '{1}') is never replaced
        filled = _HOLE.sub(
            lambda hole: ", ".join(args) if hole[1] == "args" else f"({args[int(hole[1])]})",
            form,
        )
        return filled if call.type.kind is Kind.BOOLEAN else self._to(call.type, filled)

    # -- calls with a syntax of their own
    # ------------------------------------------------------------------------
    def _logic(self, call: Call, args: Sequence[str]) -> str:
        return "(" + f" {call.function.upper()} ".join(f"({arg})" for arg in args) + ")"

    def _not(self, call: Call, args: Sequence[str]) -> str:
        return f"(NOT ({args[0]}))"

    def _is(self, call: Call, args: Sequence[str]) -> str:
        return f"(({args[0]}) IS {call.function.removeprefix('is_').upper()})"

    def _in(self, call: Call, args: Sequence[str]) -> str:
        """x IN a list, with NULL tested apart: below EXISTS, DuckDB evaluates x IN (1, NULL) as true for
        other x.
        """
        value, *listed = call.args
        known = [(arg, each) for arg, each in zip(args[1:], listed, strict=True) if not _is_null(each)]
        shown = args[0]
        if any(not _fits(each, value.type) for _, each in known):
            wide = _widest([value.type, *(each.type for _, each in known)])
            shown = self.cast(shown, value.type, wide)
            known = [(self.cast(arg, each.type, wide), each) for arg, each in known]
        test = f"(({shown}) IN ({', '.join(arg for arg, _ in known)}))"
        if len(known) == len(listed):
            return test
        return f"({test} OR CAST(NULL AS BOOLEAN))" if known else "CAST(NULL AS BOOLEAN)"

    def _case(self, call: Call, args: Sequence[str]) -> str:
        whens = " ".join(
            f"WHEN {test} THEN {self.cast(value, branch.type, call.type)}"
            for test, value, branch in zip(args[0:-1:2], args[1:-1:2], call.args[1:-1:2], strict=True)
        )
        return f"(CASE {whens} ELSE {self.cast(args[-1], call.args[-1].type, call.type)} END)"

    def _of_one_type(self, call: Call, args: Sequence[str]) -> str:
        return f"{call.function}({', '.join(self._operands(call, args, call.type))})"

    def _nullif(self, call: Call, args: Sequence[str]) -> str:
        roomy = _roomy(call)
        return self._to(call.type, f"nullif({', '.join(self._operands(call, args, roomy))})", roomy)

    def _same(self, call: Call, args: Sequence[str]) -> str:
        left, right = self._comparable(call, args)
        return self.same(left, right, negated=call.function == "is_distinct")

    def _row(self, call: Call, args: Sequence[str]) -> str:
        return self.row_of(args)

    def _list(self, call: Call, args: Sequence[str]) -> str:
        return self.list_of(
            [self.cast(arg, each.type, each.type) for arg, each in zip(args, call.args, strict=True)]
        )

    def _fixed_point(self, call: Call, args: Sequence[str]) -> str:
        value, step, low, high = call.args
        assert isinstance(step, Literal)
        assert isinstance(low, Literal)
        assert isinstance(high, Literal)
        grid = Grid(Fraction(step.value), low.value, high.value, whole=False, nullable=True)
        return self.scalar(grid.clamped(Value(value)))

    def _cast(self, call: Call, args: Sequence[str]) -> str:
        of = call.args[0].type
        if call.type.kind is Kind.TEXT:
            return self.as_text(args[0], of)
        return self.explicit_cast(args[0], of, call.type)

    def _date_sum(self, call: Call, args: Sequence[str]) -> str:
        return self.date_sum(call, args)

    def date_sum(self, call: Call, args: Sequence[str]) -> str:
        """A moment and an interval, a date and days, or the days between two dates."""
        sign = "-" if call.function == "date_minus" else "+"
        return self._to(call.type, self.guarded(f"({args[0]}) {sign} ({args[1]})"))

    def _negative(self, call: Call, args: Sequence[str]) -> str:
        (inner,) = self._operands(call, args, _roomy(call))
        return self._to(call.type, f"(-{inner})", _roomy(call))

    def _arithmetic(self, call: Call, args: Sequence[str]) -> str:
        left, right = self._operands(call, args, _roomy(call))
        return self._to(call.type, self.operate(call, _roomy(call), left, right), _roomy(call))

    def _division(self, call: Call, args: Sequence[str]) -> str:
        """Division, NULL where the divisor is zero, in every engine and under every setting."""
        above, below = self._operands(call, args, _roomy(call))
        zero = f"CAST(0 AS {self.type_name(_roomy(call))})"
        quotient = self.operate(call, _roomy(call), above, f"nullif({below}, {zero})")
        return self._to(call.type, quotient, _roomy(call))

    def operate(self, call: Call, of: Type, left: str, right: str) -> str:
        """Arithmetic on two values that were brought to one type, which holds the result."""
        return self.infix[call.function].format(left, right)

    # -- types -----------------------------------------------------------------------------------------------
    def _to(self, type_: Type, rendered: str, made: Type | None = None) -> str:
        """The result of a function, cast to the type the algebra gives it, since the engine's own choice is
        not trusted.

        The cast is dropped where the result has that type already. `made`: the type to which both operands of
        arithmetic were cast.
        """
        name = self.type_name(type_)
        return (
            rendered
            if made is not None and self.type_name(made) == name
            else self.try_cast(rendered, None, name)
        )

    def _operands(self, call: Call, args: Sequence[str], to: Type) -> list[str]:
        return [self.cast(arg, each.type, to) for arg, each in zip(args, call.args, strict=True)]

    def _comparable(self, call: Call, args: Sequence[str]) -> list[str]:
        """Both sides of a comparison, in one type."""
        left, right = call.args
        if _fits(left, right.type) or _fits(right, left.type):
            return list(args)
        return self._operands(call, args, _widest([left.type, right.type]))


_Write = Callable[[ExpressionWriter, Call, Sequence[str]], str]
_WRITERS: dict[str, _Write] = {
    **dict.fromkeys(("and", "or"), ExpressionWriter._logic),
    "not": ExpressionWriter._not,
    **dict.fromkeys(("is_null", "is_true", "is_false"), ExpressionWriter._is),
    "in": ExpressionWriter._in,
    "case": ExpressionWriter._case,
    **dict.fromkeys(("coalesce", "least", "greatest"), ExpressionWriter._of_one_type),
    "nullif": ExpressionWriter._nullif,
    **dict.fromkeys(("is_same", "is_distinct"), ExpressionWriter._same),
    "row": ExpressionWriter._row,
    "list": ExpressionWriter._list,
    FIXED_POINT: ExpressionWriter._fixed_point,
    "cast": ExpressionWriter._cast,
    **dict.fromkeys(("date_add", "date_shift", "date_minus"), ExpressionWriter._date_sum),
    "neg": ExpressionWriter._negative,
    **dict.fromkeys(("+", "-", "*"), ExpressionWriter._arithmetic),
    **dict.fromkeys(("/", "//", "%"), ExpressionWriter._division),
}


def holds(wide: Type, type_: Type) -> bool:
    """Whether the wide type can hold every value of the other in every engine, so that a cast cannot fail."""
    match type_.kind, wide.kind:
        case Kind.INTEGER, Kind.INTEGER:
            (least, most), (low, high) = INTEGER_BOUNDS[str(wide)], INTEGER_BOUNDS[str(type_)]
            return least <= low and high <= most
        case (Kind.INTEGER | Kind.DECIMAL, Kind.DOUBLE) | (Kind.NULL, _):
            return True
    return type_ == wide


def _roomy(call: Call) -> Type:
    """The type to compute in: it holds the result and every operand (x * 0 is small, x need not be)."""
    types = [call.type, *(arg.type for arg in call.args)]
    if any(each.kind is not Kind.INTEGER for each in types):
        return call.type
    return _widest(types)


def _places(call: Call) -> int:
    places = call.args[1] if len(call.args) > 1 else None
    return int(places.value or 0) if isinstance(places, Literal) else 0


def _is_null(node: Expression) -> bool:
    return isinstance(node, Literal) and node.value is None


def _fits(node: Expression, type_: Type) -> bool:
    """Whether a node can be compared with a value of that type as it is. A constant that fits is left without
    a cast, so that the engine can use its statistics.
    """
    if type_.kind is not Kind.INTEGER or node.type.kind is not Kind.INTEGER:
        return True  # the binder gave both sides one type
    return isinstance(node, Literal) and isinstance(node.value, int) and type_.low <= node.value <= type_.high


def _widest(types: Sequence[Type]) -> Type:
    """The narrowest type that holds the integers of all these types."""
    return integer(min(each.low for each in types), max(each.high for each in types))
