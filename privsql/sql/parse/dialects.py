"""A permitted query of another dialect goes in; what means something else there than in DuckDB is refused.

Lists of dialects in which it means the same: one that is not known to is refused.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

import sqlglot
from sqlglot import exp

from privsql.errors import Refused
from privsql.sql.parse.places import place_of

# Days of the week are numbered as in DuckDB: 0 is Sunday.
_SAME_WEEKDAYS = frozenset({"duckdb", "postgres", "redshift", "materialize", "snowflake"})
# Weeks begin on Monday, and are numbered as ISO has it.
_SAME_WEEKS = _SAME_WEEKDAYS | {"presto", "trino", "athena", "hive", "spark2", "spark", "databricks"}
# DATEDIFF counts the borders between two moments; in others it counts whole months and years.
_COUNT_BORDERS = frozenset(
    {"duckdb", "snowflake", "bigquery", "mysql", "doris", "tsql", "fabric", "redshift", "clickhouse"}
)
# TIMESTAMPDIFF counts whole units.
_COUNT_WHOLE = frozenset({"mysql", "doris", "starrocks", "bigquery", "spark", "databricks"})
_SETS_IN_LIKE = frozenset({"tsql", "fabric"})
# A backslash in LIKE stands for itself, unless ESCAPE says otherwise.
_PLAIN_BACKSLASH = frozenset(
    {"duckdb", "sqlite", "presto", "trino", "athena", "tsql", "fabric", "oracle", "snowflake"}
)
# In what REGEXP_REPLACE writes, $1 stands for itself.
_PLAIN_DOLLAR = frozenset(
    {"duckdb", "postgres", "materialize", "bigquery", "snowflake", "clickhouse", "oracle"}
)
# One NULL makes LEAST and GREATEST NULL; sqlglot knows it of the others.
_NULL_IF_ANY = frozenset({"oracle", "hive"})
# LEFT(s, -1) is all but the last letter.
_LEFT_OF_END = frozenset({"duckdb", "postgres", "materialize", "risingwave"})
# TRIM(LEADING 'ab' FROM s) takes a and b away, in any order; in others it takes away 'ab'.
_TRIMS_LETTERS = frozenset(
    {
        "duckdb",
        "postgres",
        "redshift",
        "materialize",
        "snowflake",
        "bigquery",
        "spark",
        "databricks",
        "presto",
        "trino",
        "athena",
        "tsql",
        "sqlite",
    }
)
_LEN_WITHOUT_END = frozenset({"tsql", "fabric"})  # LEN does not count the spaces at the end
_STDDEV_OF_ALL = frozenset({"hive"})  # sqlglot knows it of the others
# DECIMAL without digits: how many it has; None: as many as there are.
_DECIMALS: dict[str, tuple[int, int] | None] = {
    **dict.fromkeys(("postgres", "materialize", "risingwave", "oracle"), None),
    **dict.fromkeys(("mysql", "spark", "spark2", "databricks", "hive"), (10, 0)),
    **dict.fromkeys(("tsql", "fabric", "redshift"), (18, 0)),
    **dict.fromkeys(("snowflake", "presto", "trino", "athena"), (38, 0)),
    "bigquery": (38, 9),
}
# The parts of a date in a format that sqlglot writes with the letter that means the same to DuckDB; -: also
# without a 0 before.
_FORMATS = {
    **dict.fromkeys(("postgres", "materialize", "risingwave"), "YymdjHIMSfGVABab-"),
    "redshift": "YymdjHIMSfGV-",
    "oracle": "YymdjHIMSfGV",
    **dict.fromkeys(("spark", "spark2", "databricks", "hive"), "YymdjHIMSpfABab-"),
    **dict.fromkeys(("mysql", "doris", "starrocks"), "YymdjHIMSpfwABab-"),
    **dict.fromkeys(("presto", "trino", "athena"), "YymdjHIMSpfABab-"),
    "snowflake": "YymdHIMS",
    "bigquery": "YymdjHIMSpfGVuwUWABab",
    "sqlite": "YmdjHMSwW",
    "clickhouse": "YymdjHSGV",
}
# Formats in which a part begins with %: other letters stand for themselves.
_PERCENT = frozenset(
    {"mysql", "doris", "starrocks", "presto", "trino", "athena", "bigquery", "sqlite", "clickhouse"}
)
_TRUNCATED = (exp.TimestampTrunc, exp.DateTrunc)
_DIFFERENCES = (exp.DateDiff, exp.TsOrDsDiff)


@lru_cache(maxsize=256)  # sqlglot makes a dialect each time it is asked for one
def dialect_name(dialect: str) -> str:
    """Without settings, in small letters."""
    return type(sqlglot.Dialect.get_or_raise(dialect)).__name__.lower()


def refuse_other_meanings(statement: exp.Expr, dialect: str) -> None:
    name = dialect_name(dialect)
    if name == "duckdb":  # means what it means there
        return
    for node in statement.walk():
        _mark(node, name)
        reason = _other_meaning(node, name)
        if reason is not None:
            raise Refused("refused-dialect", *reason, place_of(node))


def _mark(node: exp.Expr, dialect: str) -> None:
    """Note in the node what it means in this dialect, where it can be written in DuckDB's SQL."""
    match node:
        case exp.Least() | exp.Greatest() if dialect in _NULL_IF_ANY:
            node.set("ignore_nulls", False)
        case exp.Concat() if dialect == "redshift":
            node.set("coalesce", False)
        case exp.Length() if type(node) is exp.Length and dialect in _LEN_WITHOUT_END:
            node.set("this", exp.Trim(this=node.this, position="TRAILING"))
        case exp.Cast() if (
            node.to.is_type(exp.DType.DECIMAL) and not node.to.expressions and dialect in _DECIMALS
        ):
            digits = _DECIMALS[dialect]
            written = "DOUBLE" if digits is None else f"DECIMAL({digits[0]}, {digits[1]})"
            node.set("to", exp.DataType.build(written))
        case exp.TimeToStr() | exp.StrToTime() | exp.StrToDate() if node.args.get("format"):
            # how strictly a number is read, in sqlglot's own words
            for text in node.args["format"].find_all(exp.Literal):
                text.set("this", re.sub(r"(%[a-zA-Z])strict", r"\1", text.name))


def _other_meaning(node: exp.Expr, dialect: str) -> tuple[str, str] | None:
    """Why, and what to write instead."""
    return (
        _other_date_part(node, _part(node), dialect)
        or _other_whole_units(node, dialect)
        or _other_pattern(node, dialect)
        or _other_text(node, dialect)
        or _other_type(node, dialect)
    )


def _other_whole_units(node: exp.Expr, dialect: str) -> tuple[str, str] | None:
    """TIMESTAMPDIFF counts whole units, but not everywhere, nor everywhere alike at the ends of months."""
    if not isinstance(node, exp.TimestampDiff):
        return None
    unit = _word(node.args.get("unit"))
    if dialect not in _COUNT_WHOLE or unit not in ("second", "minute", "hour", "day", "week"):
        return (
            "TIMESTAMPDIFF counts other units in this dialect than whole ones as DuckDB's date_sub does",
            "count days between dates (both cast to DATE), or write the query in DuckDB's SQL",
        )
    return None


def _other_date_part(node: exp.Expr, part: str, dialect: str) -> tuple[str, str] | None:
    """Days of the week, weeks, and what lies between two dates."""
    if part in ("dayofweek", "dow", "weekday", "day_of_week") and dialect not in _SAME_WEEKDAYS:
        return (
            "days of the week have other numbers in this dialect than in DuckDB",
            "use dayname(d), or write the query in DuckDB's SQL",
        )
    if isinstance(node, _DIFFERENCES):
        if part.startswith("week"):
            return (
                "weeks between two dates are counted otherwise in this dialect than in DuckDB",
                "count days, and divide them by 7",
            )
        days = part == "day" and _is_date(node.this) and _is_date(node.expression)
        if dialect not in _COUNT_BORDERS and not days:
            return (
                "in this dialect whole units are counted, in DuckDB the borders between them",
                "count days between dates (both cast to DATE), or write the query in DuckDB's SQL",
            )
        return None
    of_weeks = part.startswith(("week", "yearweek")) and part not in ("weekday", "weekofyear")
    if of_weeks and dialect not in _SAME_WEEKS:
        return (
            "weeks begin on another day in this dialect than in DuckDB",
            "write the query in DuckDB's SQL",
        )
    if part == "century" and not isinstance(node, exp.Extract):
        return (
            "centuries begin a year later in this dialect than in DuckDB",
            "group by extract(century FROM d)",
        )
    return None


def _other_pattern(node: exp.Expr, dialect: str) -> tuple[str, str] | None:
    """Patterns, formats, and what replaces their matches."""
    match node:
        case exp.Like() | exp.ILike() if dialect in _SETS_IN_LIKE and "[" in _constants(node.expression):
            return (
                "in this dialect [AB] in LIKE is one of several letters",
                "write name LIKE 'A%' OR name LIKE 'B%'",
            )
        case exp.Like() | exp.ILike() if dialect not in _PLAIN_BACKSLASH and not isinstance(
            node.parent, exp.Escape
        ):
            if "\\" in _constants(node.expression):
                return (
                    "in this dialect a backslash in LIKE takes the next letter as it stands",
                    "write LIKE '10#%' ESCAPE '#'",
                )
        case exp.SimilarTo():
            return (
                "SIMILAR TO takes a regular expression in DuckDB, and % and _ in this dialect",
                "write LIKE, or the query in DuckDB's SQL",
            )
        case exp.TimeToStr() | exp.StrToTime() | exp.StrToDate():
            if not _same_format(node.args.get("format"), dialect):
                return (
                    "a part of this format has no equal in DuckDB, or is written otherwise there",
                    "write dates by their numbers, or the query in DuckDB's SQL: strftime(d, '%Y-%m')",
                )
        case exp.RegexpReplace(args={"replacement": written}) if dialect not in _PLAIN_DOLLAR:
            if "$" in _constants(written):
                return (
                    "in this dialect $1 stands for a part of what was found",
                    "write it in DuckDB's SQL, where that is \\1",
                )
    return None


def _other_text(node: exp.Expr, dialect: str) -> tuple[str, str] | None:
    """Parts of texts."""
    match node:
        case exp.Substring(args={"start": start}) if start.find(exp.Neg) or _constants(start) == "0":
            return (
                "letters before the first are counted otherwise in this dialect",
                "write RIGHT(s, 4) or LEFT(s, 4)",
            )
        case exp.Substring(args={"start": start}) if _lowest(start) < 1:
            return (
                "letters before the first are counted otherwise in this dialect, and this may begin there",
                "write SUBSTRING(s, GREATEST(n, 1))",
            )
        case exp.Substring(args={"length": length}) if length is not None and _lowest(length) < 0:
            return (
                "in DuckDB a length below 0 counts to the left, in this dialect it does not",
                "write SUBSTRING(s, 1, GREATEST(n, 0))",
            )
        case exp.Left() | exp.Right() if dialect not in _LEFT_OF_END and _lowest(node.expression) < 0:
            return (
                "in DuckDB LEFT(s, -1) is all but the last letter, in this dialect it is not",
                "write LEFT(s, GREATEST(n, 0))",
            )
        case exp.Trim() if dialect not in _TRIMS_LETTERS and len(_constants(node.args.get("expression"))) > 1:
            return (
                "in DuckDB TRIM takes letters away, in this dialect a whole text",
                "write REGEXP_REPLACE(s, '^(ab)+', ''), or the query in DuckDB's SQL",
            )
    return None


def _other_type(node: exp.Expr, dialect: str) -> tuple[str, str] | None:
    """Aggregates and types of the same name."""
    match node:
        case exp.Variance() if dialect in _STDDEV_OF_ALL:
            return (
                "in this dialect VARIANCE is that of all, and VAR_SAMP that of a sample",
                "write VAR_POP(x)",
            )
        case exp.Stddev() if dialect in _STDDEV_OF_ALL:
            return "in this dialect STDDEV is that of all", "write STDDEV_POP(x), or STDDEV_SAMP(x)"
        case exp.Cast() if node.to.is_type(exp.DType.DECIMAL) and not node.to.expressions:
            return "how many digits a DECIMAL has in this dialect is not known", "write DECIMAL(18, 3)"
    return None


def _same_format(node: exp.Expr | None, dialect: str) -> bool:
    """Whether a format, as sqlglot writes it for all dialects, means the same in this one and in DuckDB."""
    known = _FORMATS.get(dialect, "")
    rest = _constants(node).replace("%%", "")
    for sign, letter in re.findall(r"%(-?)(.?)", rest):
        if letter not in known or letter == "" or (sign and not ("-" in known and letter in "dmHIMSj")):
            return False
    return dialect in _PERCENT or not re.search(r"[^\W\d_]|[\"'\\]", re.sub(r"%-?.", "", rest))


def _lowest(node: exp.Expr) -> float:
    """What a whole number is at least, by its form alone."""
    match node:
        case exp.Paren():
            return _lowest(node.this)
        case exp.Literal(is_string=False) if node.name.isdigit():
            return int(node.name)
        case exp.Neg(this=exp.Literal(is_string=False) as amount) if amount.name.isdigit():
            return -int(amount.name)
        case exp.Length() | exp.StrPosition():
            return 0
        case exp.Add():
            return _lowest(node.this) + _lowest(node.expression)
        case exp.Sub(expression=exp.Literal(is_string=False) as amount) if amount.name.isdigit():
            return _lowest(node.this) - int(amount.name)
        case exp.Greatest():
            return max(_lowest(each) for each in (node.this, *node.expressions))
        case _:
            return -math.inf


def _constants(node: exp.Expr | None) -> str:
    """All constants in it, however many parentheses are around them."""
    return "" if node is None else "".join(each.name for each in node.find_all(exp.Literal))


def _word(node: exp.Expr | None) -> str:
    """The part or unit in it, in lower case."""
    found = None if node is None else node.find(exp.Literal, exp.Var, exp.Identifier)
    return "" if found is None else str(found.name).lower().removesuffix("s")


def _part(node: exp.Expr) -> str:
    """The part or unit of a date that a function is about, in lower case."""
    match node:
        case exp.DayOfWeek() | exp.Week():
            return type(node).__name__.lower()
        case exp.Extract():
            return _word(node.this)
        case exp.Anonymous():
            name = str(node.this).lower()
            of_part = (
                name in ("date_part", "datepart", "date_trunc", "datetrunc", "date_diff", "datediff")
                and node.expressions
            )
            return _word(node.expressions[0]) if of_part else name
        case _ if isinstance(node, (*_TRUNCATED, *_DIFFERENCES)):
            unit = node.args.get("unit")
            return "day" if unit is None else _word(unit)
        case _:
            return ""


def _is_date(node: exp.Expr) -> bool:
    return isinstance(node, exp.TsOrDsToDate) or (
        isinstance(node, exp.Cast) and node.to.is_type(exp.DType.DATE)
    )
