"""Sets of keys at their ends: too many, none at all, NULL that nobody lists, combinations that a public table holds."""

from __future__ import annotations

import duckdb
import pandas as pd
import pytest

import privsql
from privsql.analysis.keys import KeyGroup, KeySpace
from privsql.analysis.levels import levelled
from tests.support.databases import database

TABLES = """
    CREATE TABLE t (i INTEGER, j INTEGER, s VARCHAR, b BOOLEAN, n BIGINT, f DOUBLE);
    CREATE TABLE lookup (a VARCHAR, c VARCHAR, v DOUBLE, w INTEGER);
    INSERT INTO lookup VALUES ('x', '1', 1.5, 1), ('x', '2', 'inf', 2), ('y', NULL, NULL, 3), (NULL, NULL, 2, 4);
    CREATE TABLE wide AS SELECT i AS a, i % 7 AS c, 'k' || i AS s, i * 0.5 AS v,
        CASE WHEN i > 60 THEN 'inf'::DOUBLE ELSE i END AS u FROM range(100) r(i);
"""
COLUMNS = {
    "i": {"range": [0, 2000]},
    "j": {"range": [0, 2000]},
    "s": {"values": ["x", "y"]},
    "n": {"range": [0, 3_000_000]},
}


@pytest.fixture(scope="module")
def session():
    connection = duckdb.connect()
    connection.execute(TABLES)
    public = {"lookup": {"public": True}, "wide": {"public": True}}
    yield privsql.connect(connection, {"tables": {"t": {"columns": COLUMNS}, **public}})
    connection.close()


@pytest.mark.parametrize(
    "keys",
    ["i, j", "i * 1000 + j", "i + j, i - j", "i + j, i * j", "n % 3000, n % 5000", "n", "n // 2",
     "CUBE (i % 999, j % 1100)", "CUBE (i % 999, j % 999)",
     "ROLLUP (i // 2, j // 2)"],
)  # fmt: skip
def test_too_many_keys_are_refused(session, keys):
    with pytest.raises(privsql.Refused) as refused:
        session.explain(f"SELECT COUNT(*) FROM t GROUP BY {keys}", epsilon=1)
    assert refused.value.code == "refused-many-keys"


@pytest.mark.parametrize(
    ("keys", "where", "cells"),
    [("i", "TRUE", 2002), ("i // 1000", "TRUE", 4), ("n % 3, n % 5", "TRUE", 24), ("i % 3", "i % 3 IS NULL", 1),
     ("NOT b", "(NOT b) IS NULL", 1), ("i // 2", "i < 4", 2), ("i // 2", "i // 2 IN (1, 2, 9999)", 2), ("b", "b IS NULL", 1)],
)  # fmt: skip
def test_the_size_of_a_key_space_is_the_product_of_its_groups(session, keys, where, cells):
    assert session.explain(f"SELECT COUNT(*) FROM t WHERE {where} GROUP BY {keys}", epsilon=1).cells == cells


def test_a_fractional_range_contains_the_integers_between():
    frame = pd.DataFrame({"x": [1, 2, 3, 4]})
    session = privsql.connect({"t": frame}, {"tables": {"t": {"columns": {"x": {"range": [0.5, 3.5]}}}}})
    found = session.query("SELECT x, COUNT(*) AS n FROM t GROUP BY x", epsilon=100).fetchall()
    assert [key for key, _ in found] == [1, 2, 3]


def test_rows_of_a_level_are_ranges_of_ordered_cells():
    """A row of a level is made of stretches of cells, each of which has two ends."""
    group = KeyGroup(("a", "b"), ([0, 0, 1], ["x", "y", "x"]))
    _, levels = levelled(KeySpace(("a", "b"), (group,)), ((0, 1), (0,), (1,), ()))
    assert tuple(levels.sizes) == (3, 2, 2, 1)
    assert tuple(levels.starts) == (0, 3, 5, 7)
    assert tuple(levels.corners) == (2, 2, 4, 1)  # x is in two stretches, with y between them


@pytest.mark.parametrize(
    ("keys", "where"), [("n % 3, n % 5", "n % 3 > 7"), ("i % 3", "i % 3 > 7"), ("i", "i > 2000")]
)
def test_a_query_without_keys_has_one_cell(session, keys, where):
    with pytest.raises(privsql.Refused) as refused:
        session.explain(f"SELECT COUNT(*) FROM t WHERE {where} GROUP BY {keys}", epsilon=1)
    assert refused.value.code == "refused-empty-keys"


@pytest.mark.parametrize(
    ("keys", "where", "expected"),
    [
        ("a, c", "t.i > lookup.w", {("x", "1"), ("x", "2"), ("y", None), (None, None)}),
        ("a, c", "t.s = lookup.a", {("x", "1"), ("x", "2"), ("y", None)}),
        ("a, c", "t.i > lookup.w AND c IS NOT NULL", {("x", "1"), ("x", "2")}),
        ("a, c", "t.i > lookup.w AND c = '2'", {("x", "2")}),
        ("v", "t.i > lookup.w", {(1.5,), (float("inf"),), (2.0,), (None,)}),
    ],
)
def test_only_combinations_in_a_public_table_are_keys(session, keys, where, expected):
    """Those that it holds, and no others: x never meets NULL there, so no noise is spent on it."""
    found = session.query(
        f"SELECT {keys}, COUNT(*) AS n FROM t JOIN lookup ON {where} GROUP BY {keys}", epsilon=1
    ).fetchall()
    assert {row[:-1] for row in found} == expected
    assert len(found) == len(expected)


def test_combinations_are_found_for_renamed_columns(session):
    sql = "SELECT p, q, COUNT(*) AS n FROM (SELECT a AS p, c AS q, i + 1 AS r FROM t JOIN lookup ON t.i > lookup.w) GROUP BY p, q"
    found = session.query(sql, epsilon=1).fetchall()
    assert {row[:-1] for row in found} == {("x", "1"), ("x", "2"), ("y", None), (None, None)}
    computed = sql.replace("c AS q", "w + 1 AS q")  # not the table's own: every combination may occur
    assert session.explain(computed, epsilon=1).cells == 3 * 4


def test_a_public_column_with_too_many_values_is_a_range(session, monkeypatch):
    """Numbers and days have ends; of texts nothing is known then."""
    monkeypatch.setattr("privsql.planning.public_look.MAX_KEYS", 50)
    plan = session.explain("SELECT SUM(v) AS s FROM t JOIN wide ON t.i = wide.a", epsilon=1)
    assert "clamped into [0, 49.5]" in plan.measurements[0].why
    assert (
        session.explain(
            "SELECT wide.a, COUNT(*) FROM t JOIN wide ON t.i = wide.a GROUP BY 1", epsilon=1
        ).cells
        == 100
    )
    with pytest.raises(privsql.Refused) as refused:
        session.explain("SELECT wide.s, COUNT(*) FROM t JOIN wide ON t.i = wide.a GROUP BY 1", epsilon=1)
    assert refused.value.code == "refused-unknown-keys"
    with pytest.raises(privsql.Refused) as refused:
        session.explain("SELECT SUM(u) FROM t JOIN wide ON t.i = wide.a", epsilon=1)
    assert refused.value.code == "refused-unbounded"


def test_too_many_combinations_of_a_public_table_are_not_listed(session, monkeypatch):
    question = "SELECT wide.c, wide.s, COUNT(*) FROM t JOIN wide ON t.i = wide.a GROUP BY 1, 2"
    assert session.explain(question, epsilon=1).cells == 100
    monkeypatch.setattr("privsql.analysis.public_keys.combinations.MOST_COMBINATIONS", 99)
    assert (
        session.explain(f"{question} ", epsilon=1).cells == 700
    )  # another text: this one was planned before


def test_an_expression_over_few_values_has_a_range(session):
    """The length of 'x' and 'y' is 1, so that a row that is replaced moves the sum by 1 at most, where it may be NULL."""
    (lengths,) = session.explain("SELECT SUM(length(s)) AS n FROM t", epsilon=1).measurements
    assert (lengths.l1, lengths.linf) == (1, 1)


@pytest.mark.parametrize("kind", ["DECIMAL(18, 2)", "HUGEINT"])
def test_keys_with_more_digits_than_a_double_are_refused(kind):
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (k {kind}, few DECIMAL(15, 2))")
    session = privsql.connect(connection)
    with pytest.raises(privsql.Refused) as refused:
        session.explain("SELECT k, COUNT(*) FROM t GROUP BY k", epsilon=1, delta=1e-6)
    assert refused.value.code == "refused-fine-keys"
    assert session.explain("SELECT few, COUNT(*) FROM t GROUP BY few", epsilon=1, delta=1e-6).space.open


def test_a_public_column_with_infinity_has_no_range(session):
    with pytest.raises(privsql.Refused) as refused:
        session.explain("SELECT SUM(v) FROM t JOIN lookup ON t.i = lookup.w", epsilon=1)
    assert refused.value.code == "refused-unbounded"


@pytest.mark.parametrize(("keys", "shown"), [(["x", "y"], {"X", "Y"}), (["x", "y", None], {"X", "Y", None})])
@pytest.mark.parametrize("key", ["s", "upper(s)"])
def test_null_is_a_key_only_where_it_is_listed(keys, shown, key):
    frame = pd.DataFrame({"s": ["x", "y", None, "z"]})
    found = frame.dp.query(
        f"SELECT {key} AS k, COUNT(*) AS n FROM df GROUP BY 1", epsilon=100, keys={"s": keys}
    )
    assert {None if pd.isna(k) else k.upper() for k in found["k"]} == shown


# -- joins ---------------------------------------------------------------------------------------------------------
def test_join_keys_take_the_values_of_the_public_side(session):
    """In an inner join, of the same kind of values: what else could be there meets no row."""
    asked = "SELECT t.{} AS k, COUNT(*) AS n FROM t {}JOIN lookup ON {} GROUP BY 1"
    for key, on in [("n", "t.n = w"), ("n", "w = t.n"), ("i", "t.i = w AND a = 'x'")]:
        (group,) = session.explain(asked.format(key, "", on), epsilon=1).space.groups
        assert list(group.columns[0]) == [1, 2, 3, 4]
    for key, kind, on in [("f", "", "t.f = w"), ("n", "LEFT ", "t.n = w"), ("n", "", "t.n < w")]:
        with pytest.raises(privsql.Refused):
            session.explain(asked.format(key, kind, on), epsilon=1)


# -- conditions ----------------------------------------------------------------------------------------------------
def test_conditions_on_integers_without_a_range():
    with privsql.connect({"t": pd.DataFrame({"m": [1]})}, {}) as session:
        for where, keys in (
            ("m > 5 AND m < 9", [6, 7, 8]),
            ("m <= 8.5 AND m >= 5.5", [6, 7, 8]),
            ("m IN (7, 3)", [7, 3]),
        ):
            (group,) = session.explain(
                f"SELECT m, COUNT(*) AS n FROM t WHERE {where} GROUP BY m", epsilon=1
            ).space.groups
            assert sorted(group.columns[0]) == sorted(keys)
        for where in ("m > 5", "m < 9"):
            assert (
                session.explain(f"SELECT COUNT(*) AS n FROM t WHERE {where}", epsilon=1).measurements[0].l1
                == 1
            )
            with pytest.raises(privsql.Refused):
                session.explain(f"SELECT m, COUNT(*) AS n FROM t WHERE {where} GROUP BY m", epsilon=1)


def test_nan_is_not_a_key(two_rows):
    sql = (
        "SELECT x, COUNT(*) FROM t WHERE x IN (CAST('nan' AS DOUBLE), CAST('NaN' AS DOUBLE), 0.5) GROUP BY x"
    )
    assert two_rows.query(sql, epsilon=10_000).fetchall() == [(0.5, 1)]


def test_keys_that_are_equal_as_doubles_are_refused_before_the_charge():
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE t (h HUGEINT, m DECIMAL(30, 20))")
        session = privsql.connect(mine)
        for sql in ("SELECT h, COUNT(*) FROM t WHERE h IN (1152921504606846976, 1152921504606846979) GROUP BY h",
                    "SELECT m, COUNT(*) FROM t WHERE m IN (0.10000000000000000001, 0.1) GROUP BY m"):  # fmt: skip
            with pytest.raises(privsql.Refused) as caught:
                session.query(sql, epsilon=1)
            assert caught.value.code == "refused-fine-keys"
        assert session.budget.spent.epsilon == 0


def test_exact_sql_returns_only_key_pairs_that_can_occur():
    tables = ("CREATE TABLE t (u INTEGER, x INTEGER)",)
    policy = {
        "neighbours": "add-remove",
        "tables": {"t": {"unit": "u", "max_rows": 1, "columns": {"x": {"values": [1, 2]}}}},
    }
    connection = database(*tables)
    plan = privsql.connect(connection, policy).explain(
        "SELECT x % 2 AS a, x > 1 AS b, COUNT(*) FROM t GROUP BY 1, 2", epsilon=1
    )
    connection.execute("INSERT INTO t SELECT 7, i FROM range(5) r(i)")
    moved = sum(row[-1] for row in connection.execute(plan.sql).fetchall())
    assert moved <= plan.measurements[0].l1


def test_intervals_cannot_be_keys_or_labels():
    connection = database("CREATE TABLE t (x INTEGER, i INTERVAL)")
    session = privsql.connect(connection, {"tables": {"t": {"columns": {"x": {"range": [0, 1]}}}}})
    tagged = " UNION ALL ".join(
        f"SELECT x, INTERVAL {each} AS k FROM t" for each in ("30 DAY", "1 MONTH", "720 HOUR")
    )
    for sql in (f"SELECT k, COUNT(*) FROM ({tagged}) GROUP BY k", "SELECT i, COUNT(*) FROM t GROUP BY i"):
        with pytest.raises(privsql.Refused):
            session.explain(sql, epsilon=1)
