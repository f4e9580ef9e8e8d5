"""Windows over the rows of one unit go in; SQL to stand in FROM comes out.

The unit is in every PARTITION BY. Rows that an order leaves equal come in the order of all their columns,
where it matters which of them is first: rows that are equal in all columns cannot be told apart afterwards.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from privsql.algebra.exact import WIDE, one_zero
from privsql.algebra.expressions import Aggregate
from privsql.algebra.relations import WindowsWithinUnit
from privsql.algebra.reserved import UNIT_COLUMN
from privsql.algebra.windows import (
    AGGREGATES,
    VALUES,
    Frame,
    FrameEnd,
    FrameKind,
    Window,
)
from privsql.render.write_statements import StatementWriter
from privsql.types import Kind, Type

_MICROSECONDS = 86_400_000_000  # of a day
_FARTHEST = 2**64  # microseconds from 1970: no TIMESTAMP that has any is so far away


class DuckDBWindows(StatementWriter):
    """Writes windows within units, as DuckDB reads them."""

    @abstractmethod
    def aggregate_over(self, node: Aggregate, over: str) -> str:
        """An exact aggregate, taken over a window."""

    def windows(self, relation: WindowsWithinUnit, unit: bool) -> str:
        """The rows with 0.0 in place of -0.0, as which of two equal rows comes first must not show."""
        names = [self.identifier(each.name) for each in relation.input.fields]
        plain = [
            f"{self.scalar(one_zero(each.column))} AS {name}"
            for each, name in zip(relation.input.fields, names, strict=True)
        ]
        below = self.named(self.rows(relation.input, unit=True))
        source = f"(SELECT {', '.join([*plain, UNIT_COLUMN])} FROM {below})"
        computed = [
            f"{self.window(each, names)} AS {self.identifier(name)}" for name, each in relation.windows
        ]
        shown = ", ".join([*names, *([UNIT_COLUMN] if unit else []), *computed])
        return f"(SELECT {shown} FROM {self.named(source)})"

    def window(self, window: Window, names: Sequence[str]) -> str:
        """A window over rows with these columns, and the unit."""
        order = self.terms(window.order)
        ties = [f"{name} ASC NULLS LAST" for name in names] if window.tells_rows_apart else []
        frame = "" if window.frame is None else f" {self._frame(window.frame)}"
        within = [UNIT_COLUMN, *map(self.expression, window.by)]
        sorted_by = [*self._steps(window), *ties] if _is_by_steps(window.frame) else [*order, *ties]
        by_order = f" ORDER BY {', '.join(sorted_by)}" if sorted_by else ""
        over = f" OVER (PARTITION BY {', '.join(within)}{by_order}{frame})"
        if window.function in AGGREGATES:
            return self.aggregate_over(window.aggregate, over)
        args = self._arguments(window)
        if window.function in VALUES and not window.tells_rows_apart:  # peers in an order of their own
            args += f" ORDER BY {', '.join([*order, *(f'{name} ASC NULLS LAST' for name in names)])}"
        return f"{window.function}({args}{' IGNORE NULLS' if window.skips_null else ''}){over}"

    def _arguments(self, window: Window) -> str:
        args = []
        if window.argument is not None:
            rendered = self.expression(window.argument)
            args.append(
                self.cast(rendered, window.argument.type, window.type) if window.default else rendered
            )
        if window.number is not None:
            args.append(str(window.number))
        if window.default is not None:
            default = self.expression(window.default)
            args.append(self.cast(default, window.default.type, window.type))
        return ", ".join(args)

    def _frame(self, frame: Frame) -> str:
        start, end = self._frame_end(frame, frame.start), self._frame_end(frame, frame.end)
        return f"{frame.kind.value} BETWEEN {start} AND {end}"

    def _frame_end(self, frame: Frame, end: FrameEnd) -> str:
        side = "PRECEDING" if end.before else "FOLLOWING"
        if end.distance is None:
            return f"UNBOUNDED {side}"
        if end.distance == 0:
            return "CURRENT ROW"
        if frame.kind is FrameKind.RANGE:
            return f"CAST({end.distance} AS {self.type_name(WIDE)}) {side}"
        return f"{end.distance} {side}"

    def _steps(self, window: Window) -> list[str]:
        """The one term of an order, in whole numbers of a type in which no end of a frame overflows."""
        (term,) = window.order
        steps = self.steps(self.expression(term.expression), term.expression.type)
        nulls = "FIRST" if term.nulls_first else "LAST"
        return [f"{steps} {'DESC' if term.descending else 'ASC'} NULLS {nulls}"]

    def steps(self, rendered: str, of: Type) -> str:
        """A whole number, or the microseconds of a moment. One before or after all others has none: it is as
        far away as can be.
        """
        wide = self.type_name(WIDE)
        match of.kind:
            case Kind.DATE:
                return f"(CAST(({rendered} - DATE '1970-01-01') AS {wide}) * CAST({_MICROSECONDS} AS {wide}))"
            case Kind.TIMESTAMP:
                far = f"CAST({_FARTHEST} AS {wide})"
                end = f"CASE WHEN ({rendered} < TIMESTAMP '1970-01-01') THEN (-{far}) ELSE {far} END"
                known = f"coalesce(CAST(TRY(epoch_us({rendered})) AS {wide}), {end})"
                return f"(CASE WHEN ({rendered} IS NULL) THEN CAST(NULL AS {wide}) ELSE {known} END)"
            case _:
                return f"CAST({rendered} AS {wide})"


def _is_by_steps(frame: Frame | None) -> bool:
    return frame is not None and frame.kind is FrameKind.RANGE and frame.is_computed
