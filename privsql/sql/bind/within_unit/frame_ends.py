"""The frame of a window goes in; a frame whose ends are constants comes out.

Ends that are computed from rows could fail on some of them.
"""

from __future__ import annotations

from sqlglot import exp

from privsql.algebra.literals import ordinal
from privsql.algebra.windows import Frame, FrameEnd, FrameKind, Order
from privsql.errors import Place, Refused, SqlError
from privsql.sql.bind.scalar.binder import ExpressionBinder
from privsql.sql.parse.places import place_of
from privsql.types import Kind, Type

MOST_ROWS = 1_000_000  # away from a row: frames, LAG, LEAD, NTILE and NTH_VALUE
_LONGEST = 2**62  # steps of a RANGE frame: added to a value of 64 bits, they cannot leave 128
_FROM_DAYS = 86_400_000_000
_MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": _FROM_DAYS,
    "week": 7 * _FROM_DAYS,
}


def bind_frame(
    spec: exp.WindowSpec | None, order: tuple[Order, ...], rows: ExpressionBinder, place: Place | None
) -> Frame | None:
    """A frame; None for the default one."""
    if spec is None:
        return None
    kind = FrameKind(str(spec.args.get("kind") or "").upper())
    first, last = spec.args.get("start"), spec.args.get("end") or "CURRENT ROW"
    ends = []
    for each, side in ((first, spec.args.get("start_side")), (last, spec.args.get("end_side"))):
        match each:
            case "CURRENT ROW":
                ends.append(FrameEnd(0, True))
            case "UNBOUNDED":
                ends.append(FrameEnd(None, str(side).upper() == "PRECEDING"))
            case exp.Expr():
                ends.append(FrameEnd(_distance(kind, each, order, rows), str(side).upper() == "PRECEDING"))
            case _:
                raise _malformed(place)
    start, end = ends
    if (
        (start.distance is None and not start.before)
        or (end.distance is None and end.before)
        or _place(start) > _place(end)
    ):
        raise _malformed(place)
    if kind is not FrameKind.ROWS and not order:
        if start.is_computed or end.is_computed:
            raise SqlError(
                "sql-window",
                f"a {kind.value} frame counts along an ORDER BY",
                "add one, or write ROWS",
                place,
            )
        return None  # without an order all rows are peers
    default = (FrameKind.RANGE, None, 0)
    return None if (kind, start.distance, end.distance) == default else Frame(kind, start, end)


def _place(end: FrameEnd) -> int:
    """Before, at, or after the current row."""
    return 0 if end.distance == 0 else -1 if end.before else 1


def _distance(kind: FrameKind, node: exp.Expr, order: tuple[Order, ...], rows: ExpressionBinder) -> int:
    if kind is not FrameKind.RANGE:
        return constant_number(node, f"An end of a {kind.value} frame", 0)
    if len(order) != 1:
        raise SqlError(
            "sql-window",
            "a RANGE frame with a distance counts along one ORDER BY term",
            "order by one number, date or timestamp",
            place_of(node),
        )
    of = order[0].expression.type
    steps = _steps(node, of, rows)
    if steps is None or steps > _LONGEST:
        raise Refused(
            "refused-window",
            f"The distance of a RANGE frame along {of} must be "
            + ("an interval of weeks, days or less" if of.kind in _DATED else "a whole number, not negative")
            + ": computed from a row, it could fail there.",
            "Write RANGE BETWEEN INTERVAL 7 DAYS PRECEDING AND CURRENT ROW."
            if of.kind in _DATED
            else "Write RANGE BETWEEN 10 PRECEDING AND CURRENT ROW.",
            place_of(node),
        )
    return steps


_DATED = (Kind.DATE, Kind.TIMESTAMP)


def _steps(node: exp.Expr, of: Type, rows: ExpressionBinder) -> int | None:
    """The distance in steps of the order; None if it is no constant of such a type."""
    if isinstance(node, exp.Interval) or of.kind is Kind.TIMESTAMP:
        value = getattr(rows.bind(node), "value", None) if isinstance(node, exp.Interval) else None
        if of.kind not in _DATED or not isinstance(value, str):
            return None
        amount, unit = value.split(" ")
        times = _MICROSECONDS.get(unit.removesuffix("s").lower())
        return None if times is None or int(amount) < 0 else int(amount) * times
    whole = ordinal(node.name) if isinstance(node, exp.Literal) and not node.is_string else None
    if of.kind is Kind.DATE:
        return None if whole is None else whole * _FROM_DAYS
    if of.kind is Kind.INTEGER and not of.is_wide:
        return whole
    raise Refused(
        "refused-window",
        f"RANGE frames with a distance along {of} are not supported: their ends could fail on some row.",
        "Order by a whole number, a date or a timestamp: CAST(x AS BIGINT).",
        place_of(node),
    )


def constant_number(node: exp.Expr, what: str, least: int) -> int:
    """A whole number that is written out, as engines fail on others."""
    number = ordinal(node.name) if isinstance(node, exp.Literal) and not node.is_string else None
    if number is None or not least <= number <= MOST_ROWS:
        raise Refused(
            "refused-window",
            f"{what} must be a whole number from {least} to {MOST_ROWS:,}, written out: computed from a row, "
            "it could fail there.",
            "Write a number, as in LAG(x, 1), NTILE(4) or ROWS BETWEEN 2 PRECEDING AND CURRENT ROW.",
            place_of(node),
        )
    return number


def _malformed(place: Place | None) -> SqlError:
    return SqlError(
        "sql-window",
        "this frame ends before it begins",
        "write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
        place,
    )
