"""Constants that the analysis tells apart, DuckDB tells apart: on that rests that two conditions exclude each other."""

from __future__ import annotations

import itertools

import duckdb
import pytest

import privsql
from privsql.algebra.expressions import Expression
from privsql.algebra.relations import Filter, walk
from privsql.analysis.disjoint import are_disjoint
from privsql.sql.bind.catalogue import Catalogue
from privsql.sql.read import read

# engine type -> constants as an analyst may write them, some of them in several ways
WRITTEN: dict[str, list[str]] = {
    "VARCHAR": ["'a'", "'A'", "'a '", "''", "'é'", "'e\u0301'", "'0'", "'00'"],
    "VARCHAR COLLATE NOCASE": ["'a'", "'A'"],
    "INTEGER": ["0", "-0", "1", "1.0", "TRUE", "'1'", "1e0"],
    "HUGEINT": ["9007199254740992", "9007199254740993", "1e16", "10000000000000000"],
    "DECIMAL(18,3)": ["0.1", "0.10", "0.100", "1e-1", "0.1004", "0.1001", "'0.1'"],
    "FLOAT": ["0.1", "0.10000000149011612", "16777216", "16777217"],
    "DOUBLE": [
        "0.1",
        "0.1000000000000000055511151231257827",
        "0.0",
        "-0.0",
        "1e-400",
        "9007199254740992",
        "9007199254740993",
        "CAST('inf' AS DOUBLE)",
        "CAST('infinity' AS DOUBLE)",
    ],
    "BOOLEAN": ["TRUE", "FALSE", "1", "0", "'t'", "'true'"],
    "DATE": ["DATE '2024-01-31'", "'2024-01-31'", "TIMESTAMP '2024-01-31 00:00:00'", "DATE '0001-01-01'"],
    "TIMESTAMP": [
        "DATE '2024-01-31'",
        "TIMESTAMP '2024-01-31'",
        "TIMESTAMP '2024-01-31 00:00:00.000000'",
        "'2024-01-31 00:00'",
        "TIMESTAMP '2024-01-31 00:00:00.000001'",
    ],
    "TIMESTAMP_S": ["TIMESTAMP '2024-01-31'", "TIMESTAMP '2024-01-31 00:00:00.4'", "'2024-01-31'"],
    "TIMESTAMP_NS": ["TIMESTAMP '2024-01-31'", "TIMESTAMP '2024-01-31 00:00:00.0000001'"],
    "TIME": ["TIME '00:00:00'", "TIME '24:00:00'", "'00:00'", "TIME '12:00:00'"],
    "INTERVAL": ["INTERVAL 1 MONTH", "INTERVAL 30 DAY", "INTERVAL 0 DAY", "INTERVAL 0 HOUR"],
    "UUID": ["'ffffffff-ffff-ffff-ffff-ffffffffffff'", "'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF'"],
    "ENUM('a', 'A')": ["'a'", "'A'"],
}
NOTHING_APART = ("VARCHAR COLLATE NOCASE", "TIMESTAMP_NS", "INTERVAL")
FORMS = ("x = {}", "x IN ({})", "{} >= x AND x >= {}", "x BETWEEN {} AND {}", "x IS NOT DISTINCT FROM {}")


def condition(session: privsql.Session, text: str) -> Expression | None:
    """As it is bound; None where it is refused."""
    try:
        question = read(
            f"SELECT COUNT(*) FROM t WHERE {text}",
            Catalogue(session._pipeline.schema, session._pipeline.policy),
            "duckdb",
        )
    except privsql.SqlError:
        return None
    assert question.release is not None
    (found,) = [each.predicate for each in walk(question.release.input) if isinstance(each, Filter)]
    return found


@pytest.mark.parametrize("type_", WRITTEN)
def test_conditions_that_exclude_each_other_are_never_met_by_one_row(type_: str) -> None:
    connection, plain = duckdb.connect(), type_.partition(" COLLATE")[0]
    connection.execute(f"CREATE TABLE t (x {type_})")
    session = privsql.connect(connection)
    texts = [form.format(*[written] * 2) for written in WRITTEN[type_] for form in FORMS]
    bound = {text: found for text in texts if (found := condition(session, text)) is not None}
    plans = {text: session.explain(f"SELECT COUNT(*) FROM t WHERE {text}", epsilon=1).sql for text in bound}
    apart = [
        (one, other)
        for one, other in itertools.combinations(bound, 2)
        if are_disjoint(bound[one], bound[other])
    ]
    assert apart or type_ in NOTHING_APART
    for written in WRITTEN[type_]:
        connection.execute(f"DELETE FROM t; INSERT INTO t SELECT TRY_CAST({written} AS {plain})")
        meets = {text for text, sql in plans.items() if connection.execute(sql).fetchall() == [(1,)]}
        assert not [pair for pair in apart if meets.issuperset(pair)]


@pytest.mark.parametrize(
    "compared",
    [
        "x IN (INTERVAL 30 DAY)",
        "nullif(x, INTERVAL 30 DAY) IS NULL",
        "greatest(x, INTERVAL 30 DAY) IS NULL",
        "least(x, INTERVAL 30 DAY) IS NULL",
        "x = INTERVAL 30 DAY",
        "x = ANY([INTERVAL 30 DAY])",
        "CASE x WHEN INTERVAL 30 DAY THEN TRUE ELSE FALSE END",
    ],
)
def test_intervals_are_not_compared(compared: str) -> None:
    """30 days and 1 month are equal to DuckDB: counts of either, taken for disjoint, moved by 12 where 2 was claimed."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (x INTERVAL)")
    with pytest.raises(privsql.SqlError, match="intervals cannot be compared here"):
        privsql.connect(connection).explain(f"SELECT COUNT(*) FROM t WHERE {compared}", epsilon=1)


def test_times_with_different_offsets_may_be_equal(two_rows):
    """DuckDB drops the offset: one row can meet all three conditions, so each is priced by itself."""
    clocks = ["12:00:00+01:00", "12:00:00+02:00", "12:00:00"]
    counts = ", ".join(f"COUNT(*) FILTER (WHERE tm = TIME '{clock}')" for clock in clocks)
    plan = two_rows.explain(f"SELECT {counts} FROM t", epsilon=1)
    assert sum(each.l1 for each in plan.measurements) == 3
