"""A parsed query of another dialect goes in; what only that dialect writes comes out as in DuckDB's SQL.

Each is rewritten where it has one meaning, whatever the values are; everything else stands as it is.
"""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp

from privsql.sql.parse.dialects import dialect_name

# LENGTH of texts counts letters; in MySQL and ClickHouse it counts bytes.
_LETTERS = frozenset({"bigquery", "snowflake"})
# T-SQL's styles of dates as texts.
_STYLES = {"23": "%Y-%m-%d", "112": "%Y%m%d", "120": "%Y-%m-%d %H:%M:%S"}
_WIDTHS = {"%Y": 4, "%m": 2, "%d": 2, "%H": 2, "%M": 2, "%S": 2}
# What SQLite's date functions write behind the date.
_SHIFT = re.compile(r"([+-]?)\s*(\d{1,6}) (day|month|year)s?")
_STARTS = {"start of month": "MONTH", "start of year": "YEAR", "start of day": "DAY"}
_HOURS = {"%H": "HOUR", "%M": "MINUTE"}


def write_as_duckdb(statement: exp.Expr, dialect: str) -> None:
    """Rewrite in place; from the innermost functions outwards, so that arguments are written already."""
    name = dialect_name(dialect)
    if name == "duckdb":
        return
    for node in reversed(list(statement.walk(bfs=False))):
        plain = _of_one(node, name) or _of_several(node, name)
        if plain is not None and node is not statement:
            node.replace(plain)


def _of_several(node: exp.Expr, dialect: str) -> exp.Expr | None:
    """What several dialects write; in the others it cannot stand."""
    match node:
        case exp.DateStrToDate() if _has_only(node, "this"):  # Oracle's DATE '2024-01-31'
            return exp.Cast(this=node.this, to=exp.DataType(this=exp.DType.DATE))
        case exp.Left(args={"negative_length_returns_empty": True}):  # a negative length is refused elsewhere
            return exp.Left(this=node.this, expression=node.expression)
        case exp.Length(args={"binary": True}) if dialect in _LETTERS and _has_only(node, "this", "binary"):
            return exp.Length(this=node.this)
        case exp.Round(args={"casts_non_integer_decimals": True}) if _is_number(node.args.get("decimals")):
            return exp.Round(this=node.this, decimals=node.args["decimals"])
        case exp.ToChar(args={"format": exp.Literal(is_string=True) as format_}) if _has_only(
            node, "this", "format"
        ) and re.search("[YMDH]", format_.name, re.IGNORECASE):
            written = sqlglot.Dialect.get_or_raise(dialect).format_time(format_)
            return None if written is None else exp.TimeToStr(this=node.this, format=written)
        case exp.Window(this=exp.Anonymous(this=str(name), expressions=[of])) if (
            name.upper() == "RATIO_TO_REPORT"
        ):
            total = node.copy()
            total.set("this", exp.Sum(this=of.copy()))
            share = exp.Div(this=exp.Mul(this=exp.Literal.number("1.0"), expression=exp.Paren(this=of)))
            share.set("expression", total)
            return exp.Paren(this=share)
        case _:
            return None


def _of_one(node: exp.Expr, dialect: str) -> exp.Expr | None:
    match dialect:
        case "tsql" | "fabric":
            return _of_tsql(node)
        case "sqlite":
            return _of_sqlite(node)
        case "bigquery":
            return _of_bigquery(node)
        case "teradata":
            return _of_teradata(node)
        case "singlestore":
            return _of_singlestore(node)
        case "clickhouse":
            return _of_clickhouse(node)
        case _:
            return None


def _of_tsql(node: exp.Expr) -> exp.Expr | None:
    """CONVERT(VARCHAR(7), d, 120): the first letters of a date, written in a style."""
    match node:
        case exp.Convert(
            this=exp.DataType(expressions=[exp.DataTypeParam(this=exp.Literal() as size)]) as to,
            args={"style": exp.Literal(is_string=False) as style},
        ) if to.is_type(*exp.DataType.TEXT_TYPES) and style.name in _STYLES:
            written = _cut(_STYLES[style.name], int(size.name)) if size.name.isdigit() else ""
            listed = [node.expression, exp.Literal.string(written)]
            return exp.Anonymous(this="strftime", expressions=listed) if written else None
        case _:
            return None


def _cut(format_: str, size: int) -> str:
    """The format of the first letters of what a format writes; "" where the cut is inside a part."""
    written, length = "", 0
    for part in re.findall(r"%.|[^%]", format_):
        if length == size:
            return written
        written, length = written + part, length + _WIDTHS.get(part, 1)
    return written if length <= size else ""


def _of_sqlite(node: exp.Expr) -> exp.Expr | None:
    """date(d, '+1 month'), date(d, 'start of month'), julianday(a) - julianday(b), strftime of an hour."""
    match node:
        case exp.Anonymous(this=str(name), expressions=[day, *changes]) if name.upper() == "DATE" and changes:
            return _shifted(exp.Cast(this=day, to=exp.DataType(this=exp.DType.DATE)), changes)
        case exp.Sub(
            this=exp.Anonymous(this=str(one), expressions=[end]),
            expression=exp.Anonymous(this=str(other), expressions=[start]),
        ) if one.upper() == other.upper() == "JULIANDAY":
            return exp.DateDiff(this=_moment(end), expression=_moment(start), unit=exp.Var(this="DAY"))
        case exp.Cast(
            this=exp.TimeToStr(this=moment, args={"format": exp.Literal(is_string=True) as format_})
        ) if node.to.is_type(exp.DType.INT) and format_.name in _HOURS:
            return exp.Extract(this=exp.Var(this=_HOURS[format_.name]), expression=moment)
        case _:
            return None


def _moment(node: exp.Expr) -> exp.Expr:
    """A date that is written as a text is one; what is a column says its type itself."""
    return exp.Cast(this=node, to=exp.DataType(this=exp.DType.DATE)) if node.is_string else node


def _shifted(day: exp.Expr, changes: list[exp.Expr]) -> exp.Expr | None:
    to_date = exp.DataType(this=exp.DType.DATE)
    for each in changes:
        change = each.name.lower() if isinstance(each, exp.Literal) and each.is_string else ""
        shift = _SHIFT.fullmatch(change)
        if change in _STARTS:
            unit = exp.Var(this=_STARTS[change])
            day = exp.Cast(this=exp.TimestampTrunc(this=day, unit=unit), to=to_date.copy())
        elif shift and shift[3] == "day":  # a month after 31 January is 3 March in SQLite
            amount = exp.Interval(this=exp.Literal.string(shift[2]), unit=exp.Var(this="DAY"))
            moved = (exp.Sub if shift[1] == "-" else exp.Add)(this=day, expression=amount)
            day = exp.Cast(this=moved, to=to_date.copy())
        else:
            return None
    return day


def _of_bigquery(node: exp.Expr) -> exp.Expr | None:
    """APPROX_QUANTILES(x, 100)[OFFSET(50)]: one of the quantiles."""
    match node:
        case exp.Bracket(
            this=exp.ApproxQuantiles(this=of, expression=exp.Literal(is_string=False) as parts) as listed,
            expressions=[exp.Literal(is_string=False) as place],
            args={"offset": 0 | 1 as first},
        ) if not isinstance(of, exp.Distinct) and _has_only(listed, "this", "expression"):
            if not parts.name.isdigit() or not place.name.isdigit():
                return None
            number, count = int(place.name) - int(first), int(parts.name)
            if not 0 <= number <= count or not 1 <= count <= 1_000_000:
                return None
            return exp.ApproxQuantile(this=of, quantile=exp.Literal.number(repr(number / count)))
        case _:
            return None


def _of_teradata(node: exp.Expr) -> exp.Expr | None:
    match node:
        case exp.Anonymous(this=str(name), expressions=[of, old, new]) if name.upper() == "OREPLACE":
            return exp.Replace(this=of, expression=old, replacement=new)
        case exp.EQ(
            this=exp.Anonymous(this=str(name), expressions=[of, pattern]), expression=exp.Literal() as one
        ) if name.upper() == "REGEXP_SIMILAR" and one.name == "1" and not one.is_string:
            return exp.RegexpFullMatch(this=of, expression=pattern)
        case _:
            return None


def _of_singlestore(node: exp.Expr) -> exp.Expr | None:
    """HOUR(d), which sqlglot writes as the text of a time, cast to a number."""
    match node:
        case exp.Cast(
            this=exp.TimeToStr(
                this=exp.Cast() as time, args={"format": exp.Literal(is_string=True) as format_}
            )
        ) if (
            time.to.is_type(exp.DType.TIME)
            and node.to.is_type(exp.DType.INT)
            and format_.name.replace("-", "") in _HOURS
        ):
            part = exp.Var(this=_HOURS[format_.name.replace("-", "")])
            return exp.Extract(this=part, expression=time.this)
        case _:
            return None


def _of_clickhouse(node: exp.Expr) -> exp.Expr | None:
    match node:
        case exp.Anonymous(this=str(name), expressions=[of]) if name.upper() == "LENGTHUTF8":
            return exp.Length(this=of)
        case exp.Anonymous(this=str(name), expressions=[one, other]) if name.upper() == "INTDIV":
            return exp.Paren(this=exp.IntDiv(this=exp.Paren(this=one), expression=exp.Paren(this=other)))
        case _:
            return None


def _is_number(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()


def _has_only(node: exp.Expr, *names: str) -> bool:
    """Whether nothing else is set, which would be lost."""
    return not any(value for name, value in node.args.items() if name not in names)
