"""Steps and differences of dates, under the names of many engines, as DATE_ADD, DATE_SUB and DATE_DIFF."""

from __future__ import annotations

import re

from sqlglot import exp

_ADDED = (exp.TimestampAdd, exp.DatetimeAdd)
_SUBTRACTED = (exp.TimestampSub, exp.DatetimeSub)
_STEP = re.compile(r"(add|subtract)(second|minute|hour|day|week|month|quarter|year)s")
_SET = {"this", "expression", "unit"}


def plain_date(node: exp.Expr) -> exp.Expr | None:
    """The same by DATE_ADD, DATE_SUB or DATE_DIFF; None for anything else."""
    match node:
        case exp.TsOrDsAdd() if _only(node, _SET | {"return_type"}):
            moved = exp.DateAdd(this=node.this, expression=node.expression, unit=node.args.get("unit"))
            return moved if node.args.get("return_type") else _as_day(moved)
        case exp.AddMonths() if _only(node, {"this", "expression"}):
            return _as_day(exp.DateAdd(this=node.this, expression=node.expression, unit=exp.var("MONTH")))
        case exp.DatetimeDiff() if _only(node, _SET | {"date_part_boundary"}):
            return exp.DateDiff(this=node.this, expression=node.expression, unit=node.args.get("unit"))
        case exp.Anonymous(this=str(name), expressions=arguments):
            return _named(name.lower(), arguments)
    if isinstance(node, (*_ADDED, *_SUBTRACTED)) and _only(node, _SET):
        kind = exp.DateAdd if isinstance(node, _ADDED) else exp.DateSub
        return kind(this=node.this, expression=node.expression, unit=node.args.get("unit"))
    return None


def _named(name: str, arguments: list[exp.Expr]) -> exp.Expr | None:
    match name, arguments:
        case (("dateadd" | "date_add" | "timestampadd" | "timestamp_add"), [unit, amount, moment]):
            word = _word(unit)
            return None if word is None else exp.DateAdd(this=moment, expression=amount, unit=word)
        case (("dateadd" | "datetime_add" | "timestamp_add"), [moment, exp.Interval() as step]):
            return exp.DateAdd(this=moment, expression=step)
        case (("date_sub" | "datesub" | "datetime_sub" | "timestamp_sub"), [moment, exp.Interval() as step]):
            return exp.DateSub(this=moment, expression=step)
        case _, [moment, amount] if named := _STEP.fullmatch(name):
            kind = exp.DateAdd if named[1] == "add" else exp.DateSub
            return kind(this=moment, expression=amount, unit=exp.var(named[2].upper()))
        case _:
            return None


def _as_day(moment: exp.Expr) -> exp.Expr:
    return exp.Cast(this=moment, to=exp.DataType(this=exp.DType.DATE))


def _word(node: exp.Expr) -> exp.Var | None:
    """A unit, written as a word or as a text."""
    plain = isinstance(node, exp.Var) or (isinstance(node, exp.Literal) and node.is_string)
    if plain or (isinstance(node, exp.Column) and not node.table):
        return exp.var(node.name)
    return None


def _only(node: exp.Expr, names: set[str]) -> bool:
    """Whether it has these arguments alone. Those that are not read are sqlglot's own, not of the text."""
    return not any(
        value
        for name, value in node.args.items()
        if name not in names or (name not in _SET and not isinstance(value, bool | exp.DataType | exp.DType))
    )
