"""The ranges, values and NULLs of expressions, one by one: not only safe, but as narrow as they should be.

test_domains.py holds that no honest value is outside; in ranges.txt the ends themselves are written down. A line is an
expression (`; ` and a condition on the rows), `=>` and what is known: a range or a set, `?` for an end that nobody knows,
and `NULL` where it may be missing. To write the file anew: PRIVSQL_UPDATE_CASES=1; then read what changed.
"""

from __future__ import annotations

import os
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest

import privsql
from privsql.algebra.relations import Project, walk
from privsql.analysis.derive import derive
from privsql.analysis.facts import domain_of
from privsql.planning.public_look import PublicLook
from privsql.render.duckdb import DUCKDB
from privsql.sql.bind.catalogue import Catalogue
from privsql.sql.read import read

RANGES = Path(__file__).with_name("ranges.txt")
TYPES = {
    **dict.fromkeys("ipnzw", "INTEGER"), **dict.fromkeys("fhg", "DOUBLE"), "k": "DECIMAL(6, 2)", "b": "BOOLEAN",
    **dict.fromkeys("st", "VARCHAR"),
    "x": "INTEGER", **dict.fromkeys("deo", "DATE"), **dict.fromkeys("ma", "TIMESTAMP"),
}  # fmt: skip
DECLARED = {
    "i": {"range": [-3, 7]}, "p": {"range": [1, 10]}, "n": {"range": [-9, -2]}, "z": {"range": [0, 5]},
    "w": {"values": [2, 4, 8]}, "x": {"values": [1, 5, 9], "range": [0, 5]}, "o": {"range": ["9998-05-05", "9999-12-30"]},
    "f": {"range": [-2, 2.5]}, "h": {"range": [0.25, 4]}, "k": {"range": [-1.25, 9.5]}, "s": {"values": ["", "a", "B"]},
    "d": {"range": ["2023-11-26", "2025-03-07"]}, "e": {"range": ["2024-02-10", "2024-05-20"]},
    "m": {"range": ["2024-02-27 22:58:57.5", "2024-02-28 01:02:03"]}, "a": {"range": ["0001-01-02", "9999-12-30"]},
}  # fmt: skip


@cache
def catalogue() -> Catalogue:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t ({', '.join(f'{name} {kind}' for name, kind in TYPES.items())})")
    session = privsql.connect(connection, {"tables": {"t": {"columns": DECLARED}}})
    return Catalogue(session._pipeline.schema, session._pipeline.policy)


def shown(text: str) -> str:
    expression, _, condition = text.partition("; ")
    question = read(
        f"SELECT COUNT(x) FROM (SELECT {expression} AS x FROM t WHERE {condition or 'TRUE'})", catalogue()
    )
    project = next(each for each in walk(question.release.input) if isinstance(each, Project))
    facts = derive(
        project.input,
        frozenset(each.name for each in project.input.fields),
        PublicLook(lambda sql: [], DUCKDB),
    )
    domain = domain_of(dict(project.columns)["x"], facts)
    if domain.empty:
        known = "nothing"
    elif domain.values is not None and len(domain.values) <= 12:
        known = "{" + ", ".join(map(_written, domain.values)) + "}"
    else:
        known = f"{_written(domain.low)} to {_written(domain.high)}"
        known += "" if domain.values is None else f", {len(domain.values)} of them"
    return known + (" NULL" if domain.nullable else "") + (" as a key" if domain.null_is_key else "")


def _written(value: Any) -> str:
    match value:
        case None:
            return "?"
        case Fraction() if value.denominator > 10**6:
            return f"{float(value)!r}"
        case _:
            return str(value)


LINES = [line.split(" => ") for line in RANGES.read_text(encoding="utf-8").splitlines()]


def test_the_file_of_ranges_is_up_to_date():
    text = "".join(f"{each} => {shown(each)}\n" for each, _ in LINES)
    if os.environ.get("PRIVSQL_UPDATE_CASES"):
        RANGES.write_text(text, encoding="utf-8")
    assert RANGES.read_text(encoding="utf-8") == text


BEYOND = (
    "power(1e300, 3)", "round(power(x * 1e300, 3), 1)", "1e300 * 1e300", "ceil(x * 1e308)",
    "greatest(power(1e300, 3), x)",
)  # fmt: skip  # fmt: skip


@pytest.mark.parametrize("beyond", BEYOND)
def test_a_range_beyond_doubles_is_unknown(beyond: str) -> None:
    """Its ends were fractions that no float holds: planning raised an OverflowError."""
    connection = duckdb.connect(":memory:")
    connection.execute("CREATE TABLE t (x DOUBLE)")
    session = privsql.connect(connection, {"tables": {"t": {"columns": {"x": {"range": [0, 5]}}}}})
    assert session.explain(f"SELECT COUNT(*) FROM t WHERE {beyond} > x", epsilon=1.0).measurements
    for asked in (f"SUM({beyond})", f"MEDIAN({beyond})", f"MAX({beyond})", f"VARIANCE({beyond})"):
        with pytest.raises(privsql.PrivsqlError, match="range"):
            session.explain(f"SELECT {asked} FROM t", epsilon=1.0)
