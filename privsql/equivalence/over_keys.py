"""A release goes in; its rows come out, with expressions and conditions over them, to be compared with those
of another release or computed from its keys alone.

Two releases with equal `rows` use the same rows, before any condition of WHERE or FILTER.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from privsql.algebra.expressions import Call, Column, Expression, Literal, conjuncts
from privsql.algebra.functions import BELIEFS
from privsql.algebra.relations import Choose, Release
from privsql.algebra.unit_rows.bounded import is_bounded
from privsql.equivalence.blocks import BlockReader, NotComparableError
from privsql.equivalence.frames import Frame, PlacedBlock, framed, grouped, value_of
from privsql.equivalence.normal_form import all_of, normal, normal_condition, not_null
from privsql.equivalence.written import written
from privsql.types import TEXT, TIMESTAMP, Kind

_PARTS = {
    "minute": ("second",),
    "hour": ("minute", "second"),
    "day": ("hour", "minute", "second"),
    "week": ("day", "hour"),
    "month": ("day", "hour"),
    "quarter": ("month", "day", "hour"),
    "year": ("quarter", "month", "day", "hour"),
}


@dataclass(frozen=True)
class RowsByKey:
    """The rows of a release that form a single block. Expressions here are over the places of its sources."""

    block: PlacedBlock

    @property
    def text(self) -> str:
        """Equal for equal rows, conditions aside."""
        return self.block.rows

    def meant(self, expression: Expression) -> Expression:
        """An expression over the release's input, rewritten over places."""
        return self.block.meant(expression)

    def conditions(self, condition: Expression | None, argument: Expression | None) -> list[Expression]:
        """The conditions under which a row counts: WHERE, FILTER, and that the argument is not NULL."""
        own = [] if condition is None else conjuncts(self.meant(condition))
        known = [] if argument is None else [not_null(self.meant(argument))]
        return [part for each in (*self.block.meant_conditions, *own, *known) for part in conjuncts(each)]

    def value_text(self, expression: Expression) -> str:
        """A text that two expressions share only if they have the same value in every row."""
        return written(normal(expression, self.block.required))

    def condition_texts(self, conditions: Sequence[Expression]) -> frozenset[str]:
        """The parts of a conjunction as texts; empty without conditions."""
        every = conjuncts(normal_condition(all_of(conditions), self.block.required))
        return frozenset(
            written(part) for part in every if not (isinstance(part, Literal) and part.value is True)
        )

    def over_keys(self, expression: Expression, keys: Mapping[str, Column]) -> Expression | None:
        """The expression computed from keys alone, where `keys` are given by their value texts; None if it
        needs more.
        """
        if self.value_text(expression) in keys:
            return keys[self.value_text(expression)]
        match expression:
            case Literal():
                return expression
            case Call(function="date_trunc", args=(Literal(value=str() as unit), moment)) if (
                finer := self._finer(unit, moment, keys)
            ):
                return replace(expression, args=(expression.args[0], finer))
            case Call() if not _tells_apart(expression):
                args = [self.over_keys(each, keys) for each in expression.args]
                known = tuple(each for each in args if each is not None)
                return replace(expression, args=known) if len(known) == len(args) else None
        return None

    def _finer(self, unit: str, moment: Expression, keys: Mapping[str, Column]) -> Column | None:
        """A key that is the same moment truncated to a finer unit, of which this unit is a whole multiple."""
        for each in _PARTS.get(unit, ()):
            cut = Call("date_trunc", (Literal(each, TEXT), moment), TIMESTAMP)
            if self.value_text(cut) in keys:
                return keys[self.value_text(cut)]
        return None


def _tells_apart(call: Call) -> bool:
    """Whether a call may distinguish values that are equal as keys: 0.0 and -0.0 differ as text or in a
    quotient.
    """
    if BELIEFS[call.function].equal_alike or (call.function == "cast" and call.type.kind is not Kind.TEXT):
        return False
    return any(each.type.kind is Kind.DOUBLE and not isinstance(each, Literal) for each in call.args)


def rows_of(release: Release | Choose) -> RowsByKey | None:
    """None if the rows are not one block, or if which rows of a unit are kept depends on the query."""
    if not is_bounded(release.input):
        return None
    try:
        blocks = BlockReader(framed, grouped).read(release.input)
        frame = Frame(blocks, [value_of(key.expression) for key in release.keys])
    except (NotComparableError, RecursionError):
        return None
    return RowsByKey(frame.blocks[0]) if len(frame.blocks) == 1 else None
