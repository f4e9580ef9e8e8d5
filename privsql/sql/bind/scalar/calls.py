"""Functions and operators: their nodes go in; calls of the functions in algebra/functions.py come out.

Most nodes are one function with its arguments in some order, as parse/permitted.py says. The others have a
function of their own here.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from privsql.algebra import build, literals
from privsql.algebra.buckets import falls_together
from privsql.algebra.expressions import Call, Expression, Literal
from privsql.algebra.functions import ALIASES, BELIEFS, FUNCTIONS, OPPOSITE, PARTS, UNITS, Operator
from privsql.algebra.patterns import check_step
from privsql.errors import Refused, SqlError, did_you_mean
from privsql.sql.bind.scalar.casts import Bind, interval, word
from privsql.sql.parse.dialects import OF_DATES, WHOLE_UNITS
from privsql.sql.parse.permitted import FUNCTION_OF
from privsql.sql.parse.refusals import WAYS_OUT, refusal
from privsql.sql.parse.rewritten.function_refusals import refusal_of_function
from privsql.types import BIGINT, BOOLEAN, DATE, MOMENTS, TEXT, TIMESTAMP, Kind

_UNIT_NAMES = {"mm": "month", "mon": "month", "yyyy": "year", "yy": "year", "dd": "day", "q": "quarter"}


def function_call(bind: Bind, node: exp.Expr) -> Expression:
    """Bind a node that is one function or operator of the table."""
    name, places = FUNCTION_OF[type(node)]
    args = _present(bind, node, places)
    if name in OPPOSITE or name in ("is_same", "is_distinct"):
        return build.compare(name, *args)
    if isinstance(BELIEFS[name], Operator):
        return build.arithmetic(name, *args)
    return build.call(name, args)


def _present(bind: Bind, node: exp.Expr, names: Sequence[str]) -> list[Expression]:
    values: list[Any] = [node.args.get(name) for name in names]
    return [bind(each) for each in values if each is not None]


def _all(bind: Bind, node: exp.Expr) -> list[Expression]:
    return [bind(each) for each in [node.this, *node.expressions]]


# -- functions called by name --------------------------------------------------------------------------------
def _named(bind: Bind, node: exp.Anonymous) -> Expression:
    raw = str(node.this).lower()
    name = ALIASES.get(raw, raw)
    special = _special(bind, name, node.expressions)
    if special is not None:
        return special
    if name in ("all", "some"):
        raise refusal("Any")
    if name in ("now", "today", "current_date", "get_current_timestamp"):
        raise Refused("refused-function", *WAYS_OUT["CurrentDate"])
    own = refusal_of_function(raw)
    if own is not None:
        raise own
    if name not in FUNCTIONS or name == "||":
        raise Refused(
            "refused-function",
            f"The function {raw} is not supported.",
            did_you_mean(raw, sorted(FUNCTIONS)),
        )
    return build.call(name, [bind(each) for each in node.expressions])


def _special(bind: Bind, name: str, args: Sequence[exp.Expr]) -> Expression | None:
    """A call with arguments that are not values, or that is expressed by other functions."""
    match name, args:
        case (("extract" | "isoyear"), (exp.Literal() as part, value)):
            return _part(bind, word(part), value)
        case "date_trunc", (unit, moment):
            return build.call("date_trunc", [_unit(unit), bind(moment)])
        case "date_sub", (unit, start, end):
            return build.call("date_sub", [_unit(unit), bind(start), bind(end)])
        case (("isnull" | "notnull"), (value,)):
            test = Call("is_null", (bind(value),), BOOLEAN)
            return test if name == "isnull" else Call("not", (test,), BOOLEAN)
        case "zeroifnull", (value,):
            return build.unify("coalesce", [bind(value), literals.whole(0)])
        case _:
            return None


# -- operators -----------------------------------------------------------------------------------------------
def _joined(bind: Bind, node: exp.DPipe) -> Expression:
    return build.call("||", [build.as_text(bind(node.this)), build.as_text(bind(node.expression))])


def _divided(bind: Bind, node: exp.Div) -> Expression:
    left, right = bind(node.this), bind(node.expression)
    whole = left.type.kind is Kind.INTEGER and right.type.kind is Kind.INTEGER
    # `typed`: dialects in which 7 / 2 is 3
    return build.arithmetic("//" if node.args.get("typed") and whole else "/", left, right)


def _extreme(bind: Bind, node: exp.Least | exp.Greatest) -> Expression:
    values = _all(bind, node)
    chosen = build.unify(type(node).__name__.lower(), values)
    # DuckDB skips NULLs; in some dialects one NULL makes the result NULL
    return chosen if node.args.get("ignore_nulls") else build.null_if_any(values, chosen)


def _nullif(bind: Bind, node: exp.Nullif) -> Expression:
    pair = [bind(node.this), bind(node.expression)]
    left, right = build.comparable(build.with_truths(pair) if pair[0].type.kind is Kind.BOOLEAN else pair)
    return Call("nullif", (left, right), left.type)


# -- texts ---------------------------------------------------------------------------------------------------
def _trim(bind: Bind, node: exp.Trim) -> Expression:
    side = str(node.args.get("position") or "").upper()
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "trim")
    return build.call(name, _present(bind, node, ("this", "expression")))


def _concat(bind: Bind, node: exp.Concat | exp.ConcatWs) -> Expression:
    name = "concat_ws" if isinstance(node, exp.ConcatWs) else "concat"  # ConcatWs is a Concat, too
    values = [build.as_text(bind(each)) for each in node.expressions]
    joined = build.call(name, values)
    return joined if node.args.get("coalesce") else build.null_if_any(values, joined)


def _padded(bind: Bind, node: exp.Pad) -> Expression:
    fill = node.args.get("fill_pattern")
    filled = Literal(" ", TEXT) if fill is None else bind(fill)
    name = "lpad" if node.args.get("is_left") else "rpad"
    return build.call(name, [bind(node.this), bind(node.expression), filled])


def _sha2(bind: Bind, node: exp.SHA2) -> Expression:
    length = node.args.get("length")
    if length is not None and length.name != "256":
        raise Refused("refused-function", "SHA2 is supported with 256 bits only.", "Write sha256(x).")
    return build.call("sha256", [bind(node.this)])


def _replaced(bind: Bind, node: exp.RegexpReplace) -> Expression:
    name, places = FUNCTION_OF[exp.RegexpReplace]
    args = _present(bind, node, places)
    if len(args) == 3:  # some dialects replace all matches
        args.append(Literal("" if node.args.get("single_replace") else "g", TEXT))
    return build.call(name, args)


# -- numbers -------------------------------------------------------------------------------------------------
def _log(bind: Bind, node: exp.Log) -> Expression:
    if node.expression is None:
        return build.call("log10", [bind(node.this)])
    base, value = bind(node.this), bind(node.expression)
    if isinstance(base, Literal) and base.value in (2, 10):
        return build.call(f"log{int(base.value)}", [value])
    return build.arithmetic("/", build.call("ln", [value]), build.call("ln", [base]))


def _cut(bind: Bind, node: exp.Trunc) -> Expression:
    """TRUNC(x), TRUNC(x, 2)."""
    if node.args.get("decimals") is None:
        return build.call("trunc", [bind(node.this)])
    return build.call("truncate", _present(bind, node, ("this", "decimals")))


# -- dates ---------------------------------------------------------------------------------------------------
def _truncated(bind: Bind, node: exp.TimestampTrunc | exp.DateTrunc) -> Expression:
    moment = bind(node.this)
    cut = build.call("date_trunc", [_unit(node.args.get("unit")), moment])
    # only in some dialects
    stays = node.args.get("input_type_preserved") and moment.type.kind is Kind.DATE
    return build.convert(cut, DATE) if stays else cut


def _part(bind: Bind, part: str, value: exp.Expr) -> Expression:
    """EXTRACT(part FROM value)."""
    name = PARTS.get(part.lower().removesuffix("s"))
    if name is None:
        raise SqlError("sql-arguments", f"there is no date part {part}", did_you_mean(part, sorted(PARTS)))
    return build.call(name, [bind(value)])


def _unit(node: exp.Expr | None) -> Literal:
    name = "day" if node is None else word(node).lower().removesuffix("s")
    name = _UNIT_NAMES.get(name, name)
    if name not in UNITS:
        raise SqlError("sql-arguments", f"there is no unit {name}", did_you_mean(name, UNITS))
    return Literal(name, TEXT)


def _day(bind: Bind, node: exp.TsOrDsToDate) -> Expression:
    day = bind(node.this)
    if node.args.get("default_date") and day.type.kind not in (*MOMENTS, Kind.TEXT):
        raise Refused(
            "refused-dialect", "A number stands for different days in different dialects.", "Write a date."
        )
    return build.convert(day, DATE, explicit=True)


def _moment(bind: Bind, node: exp.TsOrDsToTimestamp | exp.TimeStrToTime) -> Expression:
    return build.convert(bind(node.this), TIMESTAMP, explicit=True)


def _read_day(bind: Bind, node: exp.StrToDate) -> Expression:
    moment = build.call("try_strptime", _present(bind, node, ("this", "format")))
    return build.convert(moment, DATE, explicit=True)


def _difference(bind: Bind, node: exp.DateDiff | exp.TsOrDsDiff) -> Expression:
    start, end = bind(node.expression), bind(node.this)
    if OF_DATES in node.meta and not start.type.kind is end.type.kind is Kind.DATE:
        raise Refused("refused-dialect", *WHOLE_UNITS)
    return build.call("date_diff", [_unit(node.args.get("unit")), start, end])


def _shifted(bind: Bind, node: exp.DateAdd | exp.DateSub) -> Expression:
    amount = node.expression
    if not isinstance(amount, exp.Interval):
        amount = exp.Interval(this=amount, unit=node.args.get("unit") or exp.Var(this="DAY"))
    operator = "+" if isinstance(node, exp.DateAdd) else "-"
    return build.arithmetic(operator, bind(node.this), interval(bind, amount))


def _whole_difference(bind: Bind, node: exp.TimestampDiff) -> Expression:
    return build.call("date_sub", [_unit(node.args.get("unit")), bind(node.expression), bind(node.this)])


def _from_epoch(bind: Bind, node: exp.UnixToTime) -> Expression:
    """The moment so many seconds after 1970 began, or milliseconds: scale 3."""
    scale, value = node.args.get("scale"), bind(node.this)
    units = 10 ** int(scale.name) if isinstance(scale, exp.Literal) and scale.name in ("3", "6", "9") else 1
    if value.type.kind in MOMENTS:  # DuckDB's epoch_ms goes both ways
        seconds = build.call("epoch", [value])
        return build.convert(
            build.call("floor", [build.arithmetic("*", seconds, literals.whole(units))]),
            BIGINT,
            explicit=True,
        )
    return build.call(
        "from_epoch", [value if units == 1 else build.arithmetic("/", value, literals.whole(units))]
    )


def _bucket(bind: Bind, node: exp.DateBin) -> Expression:
    width, origin = node.this, node.args.get("unit")
    if isinstance(width, exp.Literal):  # '15 minutes', as PostgreSQL writes it
        width = exp.Interval(this=width)
    step = str(interval(bind, width).value) if isinstance(width, exp.Interval) else ""
    check_step(step)
    if origin is not None and not falls_together(step, _constant_moment(bind, origin)):
        raise Refused(
            "refused-function",
            "Buckets of time begin where DuckDB's do: one of them at midnight of 3 January 2000, a Monday, "
            "or of 1 January 2000 for months and years.",
            "Leave the origin out, or give one that is a multiple of the width from there.",
        )
    return build.call("time_bucket", [Literal(step, TEXT), bind(node.expression)])


def _constant_moment(bind: Bind, node: exp.Expr) -> dt.datetime:
    found = bind(node)
    moment = literals.convert(found, TIMESTAMP) if isinstance(found, Literal) else None
    if moment is not None and isinstance(moment.value, dt.datetime):
        return moment.value
    raise build.type_error(
        "the origin of buckets is a constant", suggestion="write TIMESTAMP '2000-01-03', or leave it out"
    )


CALLS: Mapping[type[exp.Expr], Callable[[Bind, Any], Expression]] = {
    exp.Anonymous: _named,
    exp.Neg: lambda bind, node: build.negate(bind(node.this)),
    exp.DPipe: _joined,
    exp.Div: _divided,
    exp.SafeDivide: lambda bind, node: build.arithmetic("/", bind(node.this), bind(node.expression)),
    exp.Coalesce: lambda bind, node: build.unify("coalesce", _all(bind, node)),
    exp.Least: _extreme,
    exp.Greatest: _extreme,
    exp.Nullif: _nullif,
    exp.Trim: _trim,
    exp.Concat: _concat,
    exp.ConcatWs: _concat,
    exp.RegexpReplace: _replaced,
    exp.Log: _log,
    exp.Trunc: _cut,
    exp.Pad: _padded,
    exp.SHA2: _sha2,
    exp.TimestampDiff: _whole_difference,
    exp.UnixToTime: _from_epoch,
    exp.DateBin: _bucket,
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
    exp.Extract: lambda bind, node: _part(bind, word(node.this), node.expression),
    exp.TsOrDsToDate: _day,
    exp.TsOrDsToTimestamp: _moment,
    exp.TimeStrToTime: _moment,
    exp.StrToDate: _read_day,
    exp.DateDiff: _difference,
    exp.TsOrDsDiff: _difference,
    exp.DateAdd: _shifted,
    exp.DateSub: _shifted,
}
