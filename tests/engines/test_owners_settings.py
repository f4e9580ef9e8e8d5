"""What an owner has defined or set in a database of their own changes no bound: it is refused, or makes no difference."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

import privsql
from privsql.engines.duckdb.connection import SourceConnection
from privsql.engines.duckdb.engine import exact_table
from privsql.noise.add_noise import laid_out
from tests.prepare.visits import make

UNITS = {
    "tables": {
        "t": {"unit": "u", "max_rows": 1, "max_groups": 1, "columns": {"k": {"values": ["a", "b", "c"]}}}
    }
}
MACROS = [
    "CREATE MACRO least(a, b) AS a",
    "CREATE TEMP TABLE mine (x INTEGER); CREATE TEMP MACRO Greatest(a, b) AS a",
    'CREATE MACRO "+"(a, b) AS a',
    "CREATE MACRO hash(a) AS 1",
    "CREATE MACRO year(d) AS CAST(left(CAST(d AS VARCHAR), 4) AS INTEGER)",
    "CREATE MACRO sum(a) AS max(a)",
]


def opened(*statements: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (u INTEGER NOT NULL, k VARCHAR NOT NULL)")
    for each in statements:
        connection.execute(each)
    return connection


@pytest.mark.parametrize("macro", MACROS)
def test_a_macro_named_like_a_function_of_duckdb_is_refused(macro: str) -> None:
    """The attack: a macro `least` took the place of the function that holds a person to ten rows; 499 counted."""
    with pytest.raises(privsql.SourceError, match="replaces DuckDB's own") as refused:
        privsql.connect(opened(macro), UNITS)
    assert refused.value.code == "source-macro"


@pytest.mark.parametrize("macro", [each for each in MACROS if "TEMP" not in each])
def test_an_early_refusal_does_not_skip_the_macro_check(macro: str) -> None:
    connection = opened()
    session = privsql.connect(connection, UNITS)
    for _ in range(2):  # from the second query on nothing has changed since the one before
        session.explain("SELECT COUNT(*) AS n FROM t", epsilon=1)
    connection.execute(macro)
    with pytest.raises(privsql.ArgumentError):
        session.query("SELECT COUNT(*) AS n FROM t", epsilon=-1)  # before any schema is read
    with pytest.raises(privsql.SourceError) as refused:
        session.query("SELECT COUNT(*) AS n FROM t", epsilon=1)
    assert refused.value.code == "source-macro" and session.budget.spent.epsilon == 0


def test_other_macros_are_allowed() -> None:
    session = privsql.connect(
        opened("CREATE MACRO my_least(a, b) AS a", "CREATE MACRO least(a) AS TABLE SELECT a"), UNITS
    )
    assert session.query("SELECT COUNT(*) AS n FROM t", epsilon=1).fetchall()


def test_a_macro_in_another_database_is_not_found_by_duckdb() -> None:
    session = privsql.connect(
        opened("ATTACH ':memory:' AS other", "CREATE MACRO other.least(a, b) AS a"), UNITS
    )
    assert session.query("SELECT COUNT(*) AS n FROM t", epsilon=1).fetchall()


def test_a_macro_in_a_file_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "x.duckdb", rows=10)
    with duckdb.connect(str(path)) as owner:
        owner.execute("CREATE MACRO abs(x) AS x")
    with pytest.raises(privsql.SourceError, match="abs replaces DuckDB's own"):
        privsql.connect(path)


@pytest.mark.parametrize("own", [True, False])
def test_a_macro_that_is_made_later_is_refused_before_the_charge(own: bool) -> None:
    connection = opened(
        *([] if own else ["CREATE TEMP TABLE mine (x INTEGER)"])
    )  # then it is the owner's connection itself
    session = privsql.connect(connection, {**UNITS, "budget": {"epsilon": 3}})
    for epsilon in (0.5, 0.25):
        session.query("SELECT COUNT(*) AS n FROM t", epsilon=epsilon, fresh=True)
    connection.execute("CREATE MACRO least(a, b) AS a")
    for _ in range(2):
        with pytest.raises(privsql.SourceError, match="replaces DuckDB's own"):
            session.query("SELECT COUNT(*) AS n FROM t", epsilon=1, fresh=True)
    connection.execute("DROP MACRO least")
    session.query("SELECT COUNT(*) AS n FROM t", epsilon=1, fresh=True)
    assert session.budget.spent.epsilon == 1.75


def test_functions_are_listed_again_only_when_something_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes DuckDB longer than most queries."""
    connection = opened()
    session = privsql.connect(connection, UNITS)
    listed = []
    rows = session._pipeline.engine._source.rows
    monkeypatch.setattr(
        session._pipeline.engine._source,
        "rows",
        lambda sql: (listed.append("duckdb_functions" in sql), rows(sql))[1],
    )
    for _ in range(3):
        session.query("SELECT COUNT(*) AS n FROM t", epsilon=1, fresh=True)
    assert sum(listed) == 0, "they were listed when it was connected"
    connection.execute("INSERT INTO t VALUES (1, 'a')")
    session.query("SELECT COUNT(*) AS n FROM t", epsilon=1, fresh=True)
    assert sum(listed) == 1


SETTINGS = [
    "default_order = 'DESC'",
    "default_null_order = 'NULLS FIRST'",
    "default_null_order = 'NULLS_FIRST_ON_ASC_LAST_ON_DESC'",
    "integer_division = true",
    "ieee_floating_point_ops = false",
    "preserve_insertion_order = false",
    "threads = 1",
    "old_implicit_casting = true",
]
ASKED = [
    "SELECT COUNT(*) AS n FROM t",
    "SELECT k, COUNT(*) AS n FROM t GROUP BY k",
    "SELECT k, COUNT(DISTINCT u) AS n FROM t GROUP BY k",
    "SELECT COUNT(DISTINCT x) AS n FROM t",
    "SELECT SUM(x) AS s, AVG(x) AS a FROM t",
    "SELECT k, MEDIAN(x) AS m FROM t GROUP BY k",
    "SELECT COUNT(*) AS n FROM (SELECT u, first(x ORDER BY x) AS f FROM t GROUP BY u) WHERE f > 3",
    "SELECT COUNT(*) AS n FROM t WHERE x / 2 > 1.2",
]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("prepared", [False, True])
def test_the_numbers_are_the_same_under_every_setting(tmp_path: Path, setting: str, prepared: bool) -> None:
    """The attack: under default_order = 'DESC' a running total beside a prepared copy ran backwards, and all 500 rows of one
    person counted where one may."""
    found = []
    columns = {"k": {"values": ["a", "b", "c"]}, "x": {"range": [0, 9]}}
    policy = {"tables": {"t": {"unit": "u", "max_rows": 2, "max_groups": 2, "columns": columns}}}
    for number, chosen in enumerate((None, setting)):
        connection = duckdb.connect(str(tmp_path / f"{number}.duckdb"))
        if chosen is not None:
            connection.execute(f"SET {chosen}")
        connection.execute(
            "CREATE TABLE t AS SELECT 1 + i // 7 AS u, ['a', 'b', 'c', NULL][1 + i % 4] AS k, (i * 7) % 11 AS x "
            "FROM range(200) r(i)"
        )
        session = privsql.connect(connection, policy)
        if prepared:
            session.prepare("t")
        plans = [session.explain(asked, epsilon=1) for asked in ASKED]
        cells = [
            sorted(session._pipeline.engine._source.rows(sql), key=repr)
            for plan in plans
            for sql in plan.statements
        ]
        found.append(cells)
        session.close()
        connection.close()
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT d, COUNT(*) AS n FROM t GROUP BY d",
        "SELECT d FROM t GROUP BY d ORDER BY COUNT(*) DESC LIMIT 1",
    ],
)
def test_decimal_keys_next_to_a_declared_one_are_not_added_to_it(asked: str) -> None:
    """The attack: 100 undeclared keys of one person became one double, and were added up in one cell at linf 1."""
    declared = {"values": [Decimal(i) for i in range(10_001)]}
    policy = {"tables": {"t": {"unit": "u", "max_groups": 100, "max_rows": 1, "columns": {"d": declared}}}}
    cells = []
    for person in ([], [(2, Decimal(1) + Decimal(i).scaleb(-20)) for i in range(100)]):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE t (u INTEGER NOT NULL, d DECIMAL(38,20) NOT NULL)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, Decimal(5)), *person])
        plan = privsql.connect(connection, policy).explain(asked, epsilon=1)
        assert plan.release is not None
        exact = exact_table(
            connection.execute(plan.sql).fetchnumpy(), [key.name for key in plan.release.keys]
        )
        cells.append(laid_out(plan.space, exact)[plan.measurements[0].columns[0]])
    assert abs(cells[0] - cells[1]).max() <= plan.measurements[0].linf


@pytest.mark.parametrize("made", ["VIEW t AS SELECT folded(s0) AS s FROM t0",
                                  "TABLE t (s0 VARCHAR, s VARCHAR GENERATED ALWAYS AS (folded(s0)))"])  # fmt: skip
def test_a_collation_hidden_in_a_macro_is_found(made: str) -> None:
    """'ab' and 'AB' were taken to exclude each other, and one row counted as both."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE MACRO folded(x) AS ((x::VARCHAR) COLLATE NOCASE); CREATE TABLE t0 (s0 VARCHAR)"
    )
    connection.execute(f"CREATE {made}")
    connection.execute(f"INSERT INTO {'t0' if 'VIEW' in made else 't'} (s0) VALUES ('ab')")
    session = privsql.connect(connection, {"tables": {"t": {}}})
    counts = ", ".join(
        f"COUNT(*) FILTER (WHERE s = '{each}') AS n{place}" for place, each in enumerate(["ab", "AB", "Ab"])
    )
    plan = session.explain(f"SELECT {counts} FROM t", epsilon=1)
    assert connection.execute(plan.sql).fetchall() == [(1, 0, 0)]
    for asked, found in (
        ("s = 'AB'", 0),
        ("s > 'B'", 1),
        ("s LIKE 'AB'", 0),
    ):  # one by one, with nothing to exclude
        plan = session.explain(f"SELECT COUNT(*) AS n FROM t WHERE {asked}", epsilon=1)
        assert connection.execute(plan.sql).fetchall() == [(found,)], asked


@pytest.mark.parametrize("meddle", [None, "CREATE MACRO abs(x) AS x"])
def test_what_connecting_has_found_holds_for_the_first_query_unless_something_changed(
    monkeypatch: pytest.MonkeyPatch, meddle: str | None
) -> None:
    listed, rows = [], SourceConnection.rows
    monkeypatch.setattr(
        SourceConnection,
        "rows",
        lambda self, sql: (listed.append("duckdb_functions" in sql), rows(self, sql))[1],
    )
    connection = opened()
    session = privsql.connect(connection, UNITS)
    assert sum(listed) == 1
    if meddle is None:
        session.query("SELECT COUNT(*) AS n FROM t", epsilon=1)
        assert sum(listed) == 1
    else:
        connection.execute(meddle)
        with pytest.raises(privsql.SourceError, match="replaces DuckDB's own"):
            session.query("SELECT COUNT(*) AS n FROM t", epsilon=1)
        assert session.budget.spent.epsilon == 0


CATALOGUE_FUNCTIONS = ("tables", "columns", "views", "constraints", "databases", "functions", "settings")
READING = (
    "lower",
    "bool_or",
    "bool_and",
    "current_database",
    "current_schema",
    "current_setting",
    "txid_current",
    "current_connection_id",
    "json_serialize_plan",
    "json_serialize_sql",
    "json_deserialize_sql",
)


@pytest.mark.parametrize("temporary", ["", "TEMP "])
@pytest.mark.parametrize("name", CATALOGUE_FUNCTIONS)
def test_a_table_macro_named_like_a_catalogue_function_is_not_called(name: str, temporary: str) -> None:
    """The attack: an empty duckdb_constraints() hides a UNIQUE, one of duckdb_functions() a macro `least`."""
    tables = (
        "CREATE TABLE u (id INTEGER PRIMARY KEY, age INTEGER CHECK (age < 9))",
        "CREATE VIEW v AS SELECT CAST(k AS INTEGER) AS n FROM t",
        "CREATE SCHEMA sales; CREATE TABLE sales.t (x INTEGER)",
    )
    macro = f"CREATE {temporary}MACRO duckdb_{name}() AS TABLE SELECT * FROM system.main.duckdb_{name}() WHERE FALSE"
    honest = privsql.connect(opened(*tables), UNITS)._pipeline.schema
    source = opened(*tables, macro)
    assert source.execute(f"SELECT count(*) FROM duckdb_{name}()").fetchall() == [(0,)]
    assert privsql.connect(source, UNITS)._pipeline.schema == honest
    with pytest.raises(privsql.SourceError, match="replaces DuckDB's own"):
        privsql.connect(opened(*tables, macro, "CREATE MACRO least(a, b) AS a"), UNITS)


@pytest.mark.parametrize("name", READING)
def test_a_macro_named_like_a_function_that_reads_the_catalogue_is_refused(name: str) -> None:
    """They decide what is found; so the search for macros itself must not call one."""
    for arguments in ("", "a", "a, b"):
        with pytest.raises(privsql.SourceError, match=f"{name} replaces DuckDB's own"):
            privsql.connect(opened(f"CREATE MACRO {name}({arguments}) AS NULL"), UNITS)


def test_every_catalogue_function_is_called_by_its_full_name() -> None:
    folder = Path(privsql.__file__).parent / "engines" / "duckdb"
    called = re.compile(r"(?<![\w.{}])duckdb_\w+\(\)")
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))}
    assert sum("duckdb_" in text for text in texts.values()) > 3
    assert not {name: found for name, text in texts.items() if (found := called.findall(text))}
