"""`nullable = false` and key sets without NULL: which cells there are, what becomes of NULL, and that no bound moves."""

from __future__ import annotations

import itertools
from typing import Any

import duckdb
import pytest

import privsql
from privsql.audit.falsify import movements, run_exactly

SQL = "SELECT grade, COUNT(*) AS n FROM t GROUP BY grade"


def columns(**grade: Any) -> dict[str, Any]:
    return {"grade": {"values": ["a", "b"], **grade}, "x": {"range": [0, 10], "nullable": False}}


def opened(rows: str = "('a', 1), (NULL, 2)", **table: Any) -> privsql.Session:
    owner = duckdb.connect()
    owner.execute(
        f"CREATE TABLE t (grade VARCHAR, x INTEGER, who INTEGER DEFAULT 1); INSERT INTO t (grade, x) VALUES {rows}"
    )
    return privsql.connect(owner, {"tables": {"t": {"columns": columns(nullable=False), **table}}})


def keys(session: privsql.Session, sql: str = SQL) -> list[Any]:
    return [row[0] for row in session.query(sql, epsilon=10_000).fetchall()]


@pytest.mark.parametrize("grade", [{}, {"nullable": True}, {"nullable": False}])
def test_null_is_a_key_unless_declared_not_nullable(grade: dict[str, Any]) -> None:
    assert keys(opened(columns=columns(**grade))) == [
        "a",
        "b",
        *([None] if grade.get("nullable", True) else []),
    ]


@pytest.mark.parametrize(
    ("type_", "column", "shown"),
    [
        ("SMALLINT", {"range": [1, 3]}, [1, 2, 3]),
        ("DATE", {"range": ["2024-01-01", "2024-01-02"]}, 2),
        ("BOOLEAN", {}, [False, True]),
        ("ENUM ('x', 'y')", {}, ["x", "y"]),
        ("VARCHAR CHECK (k IN ('p', 'q'))", {}, ["p", "q"]),
        (
            "VARCHAR NOT NULL CHECK (k IN ('p', 'q'))",
            {"nullable": True},
            ["p", "q"],
        ),  # the schema's word comes first
    ],
)
def test_every_kind_of_key_set_includes_null(type_: str, column: dict[str, Any], shown: Any) -> None:
    with duckdb.connect() as owner:
        owner.execute(f"CREATE TABLE t (k {type_})")
        policy = {"tables": {"t": {"columns": {"k": {"nullable": False, **column}}}}}
        found = keys(privsql.connect(owner, policy), "SELECT k, COUNT(*) FROM t GROUP BY k")
    assert found == shown if isinstance(shown, list) else len(found) == shown


def test_nullable_works_in_toml_and_with_explicit_null(tmp_path: Any) -> None:
    policy = tmp_path / "p.toml"
    policy.write_text(
        '[tables.df.columns]\ngrade = { values = ["a", "b"], nullable = false }\n', encoding="utf-8"
    )
    frame = duckdb.sql("SELECT * FROM (VALUES ('a'), (NULL)) v(grade)").df()
    assert keys(privsql.connect(frame, policy), SQL.replace("FROM t", "FROM df")) == ["a", "b"]
    asked = "SELECT grade, COUNT(*) AS n FROM df GROUP BY grade"
    assert frame.dp.query(asked, epsilon=1, keys={"grade": ["a", "b"]})["grade"].tolist() == ["a", "b"]
    assert len(frame.dp.query(asked, epsilon=1, keys={"grade": ["a", None]})) == 2


def test_rows_with_an_undeclared_null_key_are_dropped() -> None:
    rows = opened("('a', 1), (NULL, 2), (NULL, 3), ('z', 4)").query(SQL, epsilon=10_000).fetchall()
    assert rows == [("a", 1), ("b", 0)]


@pytest.mark.parametrize("sql", ["SELECT coalesce(grade, 'none') AS g, COUNT(*) AS n FROM t GROUP BY g",
                                 "SELECT grade IS NULL AS g, COUNT(*) AS n FROM t GROUP BY g"])  # fmt: skip
def test_expressions_still_see_null(sql: str) -> None:
    """The owner's claim affects the key set alone: expressions computed from a NULL still exist and are
    counted.
    """
    assert (
        dict(opened("('a', 1), (NULL, 2)").query(sql, epsilon=10_000).fetchall())[
            True if "IS NULL" in sql else "none"
        ]
        == 1
    )


def test_unit_totals_are_nullable_only_if_their_values_are() -> None:
    sql = (
        "SELECT best, COUNT(*) AS n FROM (SELECT who, max(grade) AS best FROM t GROUP BY who) p GROUP BY best"
    )
    assert keys(opened(unit="who"), sql) == ["a", "b"]
    some = sql.replace("max(grade)", "max(grade) FILTER (WHERE x > 5)")
    assert keys(opened(unit="who"), some) == ["a", "b", None]


def test_nullable_false_does_not_affect_bounds() -> None:
    """AVG and COUNT(x) beside COUNT(*): a NULL that is not said to be there would move them as if it were counted."""
    for sql in ("SELECT AVG(x) AS a FROM t", "SELECT COUNT(x) AS c, COUNT(*) AS n FROM t", "SELECT VAR_POP(x) AS v FROM t",
                "SELECT SUM(x) AS s, COUNT(*) AS n FROM t"):  # fmt: skip
        believed = opened().explain(sql, epsilon=1.0)
        plain = opened(columns={"x": {"range": [0, 10]}}).explain(sql, epsilon=1.0)
        assert believed.sql == plain.sql
        assert [each.to_dict() for each in believed.measurements] == [
            each.to_dict() for each in plain.measurements
        ]


QUESTIONS = [
    SQL,
    "SELECT grade, AVG(x) AS a, COUNT(*) AS n FROM t GROUP BY grade",
    "SELECT grade, COUNT(x) AS c, SUM(x) AS s FROM t GROUP BY grade",
    "SELECT grade, x > 5 AS old, COUNT(*) AS n FROM t GROUP BY grade, old",
    "SELECT grade, COUNT(*) AS n FROM t GROUP BY ROLLUP (grade)",
]


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("unit", [None, "who"])
@pytest.mark.parametrize("sql", QUESTIONS)
def test_bounds_hold_if_null_occurs_despite_nullable_false(sql: str, unit: str | None, relation: str) -> None:
    """Every table of up to two people, and every other row or rows of the last of them."""
    declared = {
        "columns": columns(nullable=False),
        **({"unit": unit, "max_groups": 1, "max_rows": 1} if unit else {}),
    }
    with duckdb.connect() as owner:
        owner.execute("CREATE TABLE t (grade VARCHAR, x INTEGER, who INTEGER)")
        plan = privsql.connect(owner, {"neighbours": relation, "tables": {"t": declared}}).explain(
            sql, epsilon=1.0
        )
        some = [
            f"({grade}, {x}, 2)" for grade in ("NULL", "'a'", "'b'", "'z'") for x in ("NULL", "0", "10", "99")
        ]
        people = [
            *([each] for each in some),
            *([list(pair) for pair in itertools.combinations(some[::3], 2)] if unit else []),
        ]

        def cells(rows: list[str]) -> Any:
            owner.execute("DELETE FROM t")
            owner.execute(f"INSERT INTO t VALUES {', '.join(['(NULL, 5, 1)', *rows])}")
            return run_exactly(plan, owner)[1]

        tables = [cells(each) for each in people]
        others = tables if relation == "replace-one" else [cells([])]
        moved = [
            each for one, other in itertools.product(tables, others) for each in movements(plan, one, other)
        ]
        assert not [each for each in moved if each.passed]
        attained = any(each.found == each.claimed for each in moved if each.norm == "l1")
        assert attained or "ROLLUP" in sql, "nothing was moved as far as it can be"


@pytest.mark.parametrize("value", ["no", 0, None, [False]])
def test_nullable_must_be_true_or_false(value: Any) -> None:
    with pytest.raises(privsql.PolicyError, match="nullable must be true or false") as caught:
        opened(columns={"grade": {"nullable": value}})
    assert caught.value.suggestion == "nullable = false"


def test_arg_min_is_null_if_every_order_value_is_null() -> None:
    """NULL was left out of the keys, and COUNT(first) counted everyone: the place may be NULL where the value never is."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE v (user_id INTEGER, state VARCHAR NOT NULL, age INTEGER NOT NULL, day DATE)"
    )
    connection.execute("""INSERT INTO v SELECT i // 2, 'CA', 5, CASE WHEN i // 2 < 4 THEN DATE '2024-01-01' END
                          FROM range(20) r(i)""")
    columns = {"state": {"values": ["CA", "NY"]}, "age": {"range": [0, 9]}}
    session = privsql.connect(connection, {"tables": {"v": {"unit": "user_id", "columns": columns}}})
    first = "(SELECT user_id, arg_min(state, day) AS k, max_by(age, day) AS age FROM v GROUP BY user_id)"
    keyed = session.query(f"SELECT k, COUNT(*) AS n FROM {first} GROUP BY k", epsilon=5000).fetchall()
    assert keyed == [("CA", 4), ("NY", 0), (None, 6)]
    assert session.query(f"SELECT COUNT(age) AS n FROM {first}", epsilon=5000).fetchall() == [(4,)]
