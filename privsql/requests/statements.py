"""DESCRIBE, SHOW and SUMMARIZE go in; the SELECT that answers them comes out, or the request as it was.

DESCRIBE and SHOW ask about schema and policy, which are public: they become a query over their rows as a
table of constants, and cost nothing. SUMMARIZE becomes the query that an analyst would write for it, with a
SELECT for each column; it is priced, charged and refused as any other.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pandas as pd

from privsql.errors import Refused
from privsql.request import Request
from privsql.requests.describing import describe_tables
from privsql.requests.pipeline import Pipeline
from privsql.types import MOMENTS, NUMBERS, Kind

_NAME = r"(?:\"(?:[^\"]|\"\")+\"|[^\W\d]\w*)"
_TABLE = rf"({_NAME}(?:\s*\.\s*{_NAME})*)"
_BEFORE = r"(?:--[^\n]*\n\s*)*"
_WORDS = {
    "names": r"show\s+tables",
    "tables": r"show\s+all\s+tables|describe|desc",
    "table": rf"(?:describe|desc|show)\s+(?:table\s+)?{_TABLE}",
    "info": r"pragma\s+table_info\s*\(\s*'([^']+)'\s*\)",
    "summary": rf"summarize\s+(?:table\s+)?{_TABLE}",
}
_FORMS = {name: re.compile(f"{_BEFORE}(?:{words})", re.IGNORECASE) for name, words in _WORDS.items()}
_COLUMNS = {"column_name": "column", "column_type": "type", "null": "nullable", "role": "role"}
_STATISTICS = {
    "count": "COUNT({0})",
    "null_percentage": "100.0 * COUNT(*) FILTER (WHERE {0} IS NULL) / COUNT(*)",
    "approx_unique": "COUNT(DISTINCT {0})",
    "avg": "AVG({0})",
    "std": "STDDEV({0})",
    "q25": "quantile_cont({0}, 0.25)",
    "q50": "quantile_cont({0}, 0.5)",
    "q75": "quantile_cont({0}, 0.75)",
}
_OF_NUMBERS = ("avg", "std", "q25", "q50", "q75")


def as_select(request: Request, pipeline: Pipeline) -> Request:
    """The request, with a SELECT in place of DESCRIBE t, SHOW TABLES, PRAGMA table_info('t') or SUMMARIZE t.

    Raises:
        UnknownName: there is no such table.
        Refused: SUMMARIZE of a table without a column that can be summarized.
    """
    if not isinstance(request.sql, str) or request.params is not None:
        return request
    bare = request.sql.strip().removesuffix(";").rstrip()  # two patterns of white space together are slow
    for name, form in _FORMS.items():
        found = form.fullmatch(bare)
        if found is not None:
            return _written(request, name, found.groups(), pipeline)
    return request


def _written(request: Request, form: str, groups: tuple[str, ...], pipeline: Pipeline) -> Request:
    match form:
        case "names":
            return _free(request, _listed(pipeline)[["name"]])
        case "tables":
            return _free(request, _listed(pipeline))
        case "summary":
            return replace(request, sql=_summary(pipeline, groups[0]), dialect="duckdb")
        case _:
            return _free(request, _described(pipeline, _plain(groups[0])))


def _plain(name: str) -> str:
    """A table's name as policies write it: in quotes only behind its schema."""
    if re.fullmatch(_TABLE, name) is None:  # as PRAGMA has it in quotes of its own
        return name
    first, *others = re.findall(_NAME, name)
    if others:
        return ".".join((first, *others))
    return first[1:-1].replace('""', '"') if first.startswith('"') else str(first)


def _free(request: Request, rows: pd.DataFrame) -> Request:
    """Public rows as a query over constants, which are parameters of its text and so never read as SQL."""
    marks = f"({', '.join('?' * rows.shape[1])})"
    text = f"SELECT * FROM (VALUES {', '.join([marks] * len(rows))}) AS described({', '.join(rows.columns)})"
    values = [str(value) for row in rows.itertuples(index=False) for value in row]
    # it is not charged, whatever its epsilon
    price = 1.0 if request.epsilon is None else request.epsilon
    return Request(text, price, params=values, analyst=request.analyst, show_all=request.show_all)


def _listed(pipeline: Pipeline) -> pd.DataFrame:
    rows = describe_tables(pipeline, None)
    joined = rows.groupby("table", sort=False).agg(
        column_names=("column", ", ".join), column_types=("type", ", ".join)
    )
    if joined.empty:
        raise Refused("name-table", "There is no table that a query may name.", "Declare one in the policy.")
    return joined.rename_axis("name").reset_index()


def _described(pipeline: Pipeline, name: str) -> pd.DataFrame:
    rows = describe_tables(pipeline, name)
    found = pd.DataFrame({shown: rows[own] for shown, own in _COLUMNS.items()})
    found["null"] = ["YES" if each else "NO" for each in rows["nullable"]]
    return found.assign(declared=rows["declared"])


def _summary(pipeline: Pipeline, name: str) -> str:
    """A SELECT for each column that the policy says something of, or whose type says enough."""
    with pipeline.snapshot():
        scan = pipeline.scan(_plain(name))
    parts = []
    for column in scan.fields:
        claim = scan.claims.get(column.name)
        bounded = claim is not None and claim.low is not None
        if column.type.kind not in (*NUMBERS, *MOMENTS, Kind.TEXT, Kind.BOOLEAN):
            continue
        quoted = '"' + column.name.replace('"', '""') + '"'
        shown = [f"'{column.name.replace(chr(39), chr(39) * 2)}' AS column_name"]
        for statistic, form in _STATISTICS.items():
            known = statistic not in _OF_NUMBERS or (column.type.kind in NUMBERS and bounded)
            value = form.format(quoted) if known else "CAST(NULL AS DOUBLE)"
            shown.append(f"{value} AS {statistic}")
        parts.append(f"SELECT {', '.join(shown)} FROM {name}")
    if not parts:
        raise Refused(
            "refused-summarize",
            "This table has no column that can be summarized.",
            "Ask for COUNT(*).",
        )
    return " UNION ALL ".join(parts)
