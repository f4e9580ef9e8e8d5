"""Tables of all schemas are named as in DuckDB, and no name means one table to us and another to the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import privsql
from privsql.drafting.check_policy import check_policy
from privsql.drafting.write import draft
from privsql.names import joined, parts_of
from privsql.schema import Schema

# Each table has another number of rows, which says what was counted.
ROWS = {
    "main.visits": 100,
    "sales.visits": 200,
    "sales.orders": 300,
    '"odd.schema"."Tab le"': 400,
    "sales.customers": 50,
}
UNITS = {
    "sales.customers": {"unit": "id"},
    "sales.orders": {"unit": "id -> sales.customers.id", "max_rows": 10, "max_groups": 5},
}


def database(path: str = ":memory:", *more: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(path)
    connection.execute('CREATE SCHEMA sales; CREATE SCHEMA "odd.schema"')
    for name, rows in ROWS.items():
        key = "INTEGER PRIMARY KEY" if name.endswith("customers") else "INTEGER"
        connection.execute(f"CREATE TABLE {name} (id {key}, k INTEGER)")
        # of each customer six orders
        connection.execute(
            f"INSERT INTO {name} SELECT i % {50 if 'orders' in name else 10**6}, i % 4 FROM range({rows}) r(i)"
        )
    for each in more:
        connection.execute(each)
    return connection


def counted(session: privsql.Session, sql: str, **options: Any) -> int:
    (row,) = session.query(sql, epsilon=1e4, **options).fetchall()
    return int(row[0])


def code(session: privsql.Session, sql: str, **options: Any) -> str:
    with pytest.raises(privsql.PrivsqlError) as caught:
        session.explain(sql, epsilon=1, **options)
    return caught.value.code


@pytest.fixture(scope="module")
def clinic() -> privsql.Session:
    return privsql.connect(database(), policy={"tables": UNITS})


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("visits", 100),
        ("main.visits", 100),
        ("MEMORY.Main.VISITS", 100),
        ("memory.visits", 100),
        ("sales.visits", 200),
        ('"SALES"."visits"', 200),
        ("memory.sales.visits", 200),
        ("sales.orders", 300),
        ('"odd.schema"."tab LE"', 400),
    ],
)
def test_a_table_is_found_as_duckdb_finds_it(clinic: privsql.Session, name: str, rows: int) -> None:
    assert database().execute(f"SELECT count(*) FROM {name}").fetchall() == [(rows,)]
    assert counted(clinic, f"SELECT COUNT(*) FROM {name}") == rows


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT COUNT(*) FROM sales.visits WHERE sales.visits.k = 1", 50),
        ("SELECT COUNT(*) FROM sales.visits WHERE memory.sales.visits.k = 1", 50),
        ("SELECT COUNT(*) FROM sales.visits WHERE visits.k = 1", 50),
        ("SELECT COUNT(*) FROM visits WHERE main.visits.k = 1", 25),
        ("SELECT COUNT(*) FROM sales.orders o WHERE o.k = 1", 75),
        ("WITH visits AS (SELECT * FROM main.visits WHERE k = 1) SELECT COUNT(*) FROM visits", 25),
        ("WITH visits AS (SELECT * FROM main.visits WHERE k = 1) SELECT COUNT(*) FROM main.visits", 100),
        (
            "SELECT COUNT(*) FROM sales.orders JOIN sales.customers ON sales.orders.id = sales.customers.id "
            "WHERE sales.customers.k = 1",
            78,
        ),
        (
            "SELECT COUNT(*) FROM sales.orders WHERE id IN "
            "(SELECT id FROM sales.customers WHERE sales.customers.k = 1)",
            78,
        ),
        (
            "SELECT n FROM (SELECT COUNT(*) AS n FROM sales.visits) t, (SELECT COUNT(*) AS m FROM visits) u",
            200,
        ),
    ],
)
def test_queries_with_schemas_answer_as_duckdb(clinic: privsql.Session, sql: str, rows: int) -> None:
    assert database().execute(sql).fetchall() == [(rows,)]
    assert abs(counted(clinic, sql) - rows) <= 1


def test_two_tables_of_one_name_are_told_apart(clinic: privsql.Session) -> None:
    joined_tables = "FROM main.visits JOIN sales.visits ON main.visits.id = sales.visits.id"
    public = privsql.connect(
        database(), policy={"tables": {"main.visits": {"public": True, "unique": ["id"]}}}
    )
    sql = f"SELECT COUNT(*) {joined_tables} WHERE main.visits.k = sales.visits.k AND sales.visits.k = 1"
    assert database().execute(sql).fetchall() == [(25,)]
    assert counted(public, sql) == 25
    assert code(clinic, "SELECT COUNT(*) FROM main.visits, sales.visits WHERE visits.k = 1") == "name-table"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT COUNT(*) FROM sales.nothing", "name-table"),
        ("SELECT COUNT(*) FROM orders", "name-table"),
        ("SELECT COUNT(*) FROM nowhere.visits", "name-table"),
        ("SELECT COUNT(*) FROM information_schema.tables", "name-table"),
        ("SELECT COUNT(*) FROM pg_catalog.pg_class", "name-table"),
        ("SELECT COUNT(*) FROM system.main.duckdb_tables", "name-table"),
        ("SELECT COUNT(*) FROM sales.orders o WHERE sales.orders.k = 1", "name-table"),
        ("SELECT COUNT(*) FROM sales.orders AS orders WHERE sales.orders.k = 1", "name-table"),
        ("SELECT COUNT(*) FROM main.range(5)", "refused-schema"),
        ("SELECT COUNT(*) FROM system.main.duckdb_tables()", "refused-schema"),
        ("SELECT main.count(*) FROM visits", "refused-syntax"),
        ('WITH """memory"".""main"".""visits""" AS (SELECT 1) SELECT COUNT(*) FROM main.visits', "sql-alias"),
    ],
)
def test_other_names_are_refused(clinic: privsql.Session, sql: str, expected: str) -> None:
    assert code(clinic, sql) == expected


def test_a_misspelled_name_is_suggested_with_its_schema(clinic: privsql.Session) -> None:
    with pytest.raises(privsql.PrivsqlError) as caught:
        clinic.explain("SELECT COUNT(*) FROM sales.ordrs", epsilon=1)
    assert caught.value.suggestion == "did you mean sales.orders?"


def test_bigquery_writes_the_whole_name_in_backticks(clinic: privsql.Session) -> None:
    for name in ("`memory.sales.visits`", "`sales.visits`", "memory.sales.visits", "`memory`.sales.`visits`"):
        assert counted(clinic, f"SELECT COUNT(*) FROM {name} v WHERE v.k = 1", dialect="bigquery") == 50


def test_plan_ledger_and_copies_have_the_qualified_name(tmp_path: Path) -> None:
    file = tmp_path / "clinic.duckdb"
    database(str(file)).close()
    ledger = tmp_path / "clinic.ledger"
    session = privsql.connect(file, policy={"tables": UNITS, "budget": {"epsilon": 1e4}}, ledger=ledger)
    sql = "SELECT COUNT(*) AS n FROM sales.orders"
    plan = session.explain(sql, epsilon=1)
    assert '"clinic"."sales"."orders"' in plan.sql
    assert "Scan sales.orders" in str(plan)
    assert database().execute(plan.sql.replace('"clinic"', "memory")).fetchall() == [(300,)]
    assert session.query(sql, epsilon=1e3).fetchall() == [(300,)]
    for same in (
        sql,
        "SELECT COUNT(*) AS n FROM clinic.sales.orders",
        'SELECT COUNT(*) AS n FROM "Sales"."Orders"',
    ):
        assert session.query(same, epsilon=1e3).receipt["stored"]
    # the same answer of another table is not this one's
    assert not session.query("SELECT COUNT(*) AS n FROM sales.visits", epsilon=1e3).receipt["stored"]
    session.prepare("sales.orders")
    assert "privsql_prepared" in session.explain("SELECT COUNT(k) AS n FROM sales.orders", epsilon=1).sql
    tables = ledger.read_bytes()
    assert b"sales.orders" in tables
    assert b"sales.customers.id" in tables


# -- policies ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "tables",
    [
        {"sales.visits": {"public": True}},
        {"Memory.Sales.VISITS": {"public": True}},
        {'"sales"."visits"': {"public": True}},
        {"sales": {"visits": {"public": True}}},
        {"memory": {"sales": {"visits": {"public": True}}}},
    ],
)
def test_a_policy_names_a_table_with_its_schema(tables: dict[str, Any]) -> None:
    session = privsql.connect(database(), policy={"tables": tables})
    assert session.explain("SELECT COUNT(*) FROM sales.visits", epsilon=1).public
    assert not session.explain("SELECT COUNT(*) FROM main.visits", epsilon=1).public
    assert not session.explain("SELECT COUNT(*) FROM sales.orders", epsilon=1).public


def test_a_policy_file_names_schemas_as_sections(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(
        '[tables.sales.visits]\npublic = true\n[tables."odd.schema"."Tab le".columns]\nk = {range = [0, 9]}\n'
    )
    session = privsql.connect(database(), policy=file)
    assert session.explain("SELECT COUNT(*) FROM sales.visits", epsilon=1).public
    assert counted(session, 'SELECT SUM(k) FROM "odd.schema"."Tab le"') == 600


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({"visits": {}, "main.visits": {}}, "policy-duplicate"),
        ({"sales.orders": {}, "sales": {"orders": {}}}, "policy-duplicate"),
        ({"sales.nothing": {}}, "policy-table"),
        ({"orders": {}}, "policy-table"),
        ({"visits": {"colums": {"k": {"range": [0, 1]}}}}, "policy-unknown"),
    ],
)
def test_a_policy_with_wrong_names_is_refused(tables: dict[str, Any], expected: str) -> None:
    with pytest.raises(privsql.PolicyError) as caught:
        privsql.connect(database(), policy={"tables": tables}).explain(
            "SELECT COUNT(*) FROM visits", epsilon=1
        )
    assert caught.value.code == expected


def test_a_table_whose_name_has_a_dot_is_not_mistaken_for_one_of_a_schema() -> None:
    source = database(":memory:", 'CREATE TABLE "sales.visits" (x INTEGER)')
    with pytest.raises(privsql.PolicyError, match="may be"):
        privsql.connect(source, policy={"tables": {"sales.visits": {"public": True}}})
    for name, public in (('"sales.visits"', '"sales.visits"'), ("memory.sales.visits", "sales.visits")):
        session = privsql.connect(source, policy={"tables": {name: {"public": True}}})
        for each in ('"sales.visits"', "sales.visits"):
            assert session.explain(f"SELECT COUNT(*) FROM {each}", epsilon=1).public == (each == public)


@pytest.mark.parametrize("name", ["a", "a.b", '"a.b".c', 'x."y""z"', "a b.c", "", "a.", '"', 'a".b'])
def test_names_in_parts_are_read_as_they_are_written(name: str) -> None:
    assert parts_of(joined(parts_of(name))) == parts_of(name)


# -- what an owner's connection sees -------------------------------------------------------------------------
def test_an_unqualified_name_follows_use_and_the_policy_does_too() -> None:
    source = database()
    session = privsql.connect(source, policy={"tables": {"main.visits": {"public": True}}})
    assert session.explain("SELECT COUNT(*) FROM visits", epsilon=1).public
    source.execute("USE sales")
    moved = privsql.connect(source, policy={"tables": {"main.visits": {"public": True}}})
    assert not moved.explain("SELECT COUNT(*) FROM visits", epsilon=1).public
    assert counted(moved, "SELECT COUNT(*) FROM visits") == 200
    assert moved.explain("SELECT COUNT(*) FROM main.visits", epsilon=1).public
    assert counted(moved, "SELECT COUNT(*) FROM orders") == 300


def test_main_is_searched_last_as_in_duckdb() -> None:
    source = database(
        ":memory:", "CREATE TABLE main.lonely (x INTEGER)", "INSERT INTO lonely VALUES (1), (2)", "USE sales"
    )
    assert counted(privsql.connect(source), "SELECT COUNT(*) FROM lonely") == 2
    # an owner's list of schemas is not followed: the name has to be written in full
    source.execute("CREATE SCHEMA odd; SET search_path = 'sales,odd'")
    session = privsql.connect(source)
    assert code(session, "SELECT COUNT(*) FROM lonely") == "name-table"
    assert counted(session, "SELECT COUNT(*) FROM main.lonely") == 2


def test_a_temporary_table_hides_one_of_main() -> None:
    source = database(":memory:", "CREATE TEMP TABLE visits AS SELECT 1 AS x FROM range(7)")
    session = privsql.connect(source)
    for name, rows in (("visits", 7), ("main.visits", 7), ("temp.visits", 7), ("memory.main.visits", 100)):
        assert source.execute(f"SELECT count(*) FROM {name}").fetchall() == [(rows,)]
        assert counted(session, f"SELECT COUNT(*) FROM {name}") == rows
    assert counted(session, "SELECT COUNT(*) FROM sales.visits") == 200
    # main.visits means the temporary one in a policy, too
    public = privsql.connect(source, policy={"tables": {"main.visits": {"public": True}}})
    assert public.explain("SELECT COUNT(*) FROM visits", epsilon=1).public
    plan = public.explain("SELECT COUNT(*) FROM memory.main.visits", epsilon=1)
    assert not plan.public
    assert "Scan memory.main.visits" in str(plan)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("CREATE TEMP TABLE visits AS SELECT 1 AS id, 1 AS k", "memory.main.visits"),
        ("USE sales", "main.visits"),
    ],
)
def test_a_table_that_is_hidden_keeps_no_less_than_its_unit(change: str, name: str) -> None:
    """What the policy calls visits is then another table. The hidden one, whose unit it was, must not become
    a table in which each row is one person's.
    """
    source = database(":memory:", "CREATE TEMP TABLE mine (x INTEGER)")  # the owner's own connection
    session = privsql.connect(source, policy={"tables": {"visits": {"unit": "id", "max_rows": 7}}})
    assert session.explain(f"SELECT COUNT(*) FROM {name}", epsilon=1).measurements[0].l1 == 7
    source.execute(change)
    assert code(session, f"SELECT COUNT(*) FROM {name}") == "refused-hidden"
    both = {"visits": {"unit": "id"}, name: {"unit": "id", "max_rows": 7}}
    declared = privsql.connect(source, policy={"tables": both})
    assert declared.explain(f"SELECT COUNT(*) FROM {name}", epsilon=1).measurements[0].l1 == 7


def test_a_name_that_may_be_a_schema_or_a_database_is_refused() -> None:
    source = database(":memory:", "ATTACH ':memory:' AS sales; CREATE TABLE sales.main.visits (x INTEGER)")
    with pytest.raises(duckdb.BinderException, match="Ambiguous"):
        source.execute("SELECT count(*) FROM sales.visits")
    policy = {"tables": {"sales.main.visits": {}}}
    assert (
        code(privsql.connect(source, policy=policy), "SELECT COUNT(*) FROM sales.visits") == "name-ambiguous"
    )
    assert counted(privsql.connect(source), "SELECT COUNT(*) FROM memory.sales.visits") == 200


def test_a_table_of_an_attached_database_is_the_owners_to_declare() -> None:
    source = database(
        ":memory:", "ATTACH ':memory:' AS far; CREATE TABLE far.main.t AS SELECT 1 AS x FROM range(9)"
    )
    assert code(privsql.connect(source), "SELECT COUNT(*) FROM far.t") == "refused-attached"
    declared = privsql.connect(source, policy={"tables": {"far.t": {}}})
    assert counted(declared, "SELECT COUNT(*) FROM far.t") == 9
    assert counted(declared, "SELECT COUNT(*) FROM far.main.t WHERE far.main.t.x = 1") == 9


def test_prepared_copies_cannot_be_named(tmp_path: Path) -> None:
    file = tmp_path / "clinic.duckdb"
    database(str(file)).close()
    session = privsql.connect(file, policy={"tables": UNITS})
    session.prepare("sales.orders")
    session.close()
    with duckdb.connect(f"{file}.prepared", read_only=True) as copies:
        names = [name for (name,) in copies.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
    session = privsql.connect(file, policy={"tables": UNITS})
    assert "privsql_prepared" in session.explain("SELECT COUNT(k) FROM sales.orders", epsilon=1).sql
    assert any(name.startswith("sales.orders_") for name in names)
    for each in names:
        assert code(session, f'SELECT COUNT(*) FROM privsql_prepared.main."{each}"') == "name-table"
    assert code(session, "SELECT COUNT(*) FROM privsql_prepared.main.privsql_notes") == "name-table"


def test_a_database_with_a_name_of_ours_has_no_names() -> None:
    """It may hold copies of private rows, or what somebody wants to be taken for them."""
    source = database(
        ":memory:", "ATTACH ':memory:' AS privsql_prepared; CREATE TABLE privsql_prepared.t (x INTEGER)"
    )
    assert code(privsql.connect(source), "SELECT COUNT(*) FROM privsql_prepared.t") == "name-table"
    declared = privsql.connect(source, policy={"tables": {"privsql_prepared.main.t": {}}})
    assert code(declared, "SELECT COUNT(*) FROM visits") == "policy-table"


def test_a_unit_is_looked_up_in_a_table_of_another_schema() -> None:
    """Customers are of households: without the schema, the join would read another table of that name."""
    source = database(":memory:", "CREATE TABLE main.customers (id INTEGER PRIMARY KEY, k INTEGER)")
    units = {
        "sales.customers": {"unit": "k"},
        "sales.orders": {"unit": "id -> sales.customers.id", "max_rows": 1000, "max_groups": 1},
    }
    session = privsql.connect(source, policy={"tables": units})
    plan = session.explain("SELECT COUNT(*) AS n FROM sales.orders WHERE k = 1", epsilon=1)
    assert plan.measurements[0].l1 == 1000
    assert source.execute(plan.sql).fetchall() == [(75,)]
    assert counted(session, "SELECT COUNT(*) FROM sales.orders WHERE k = 1") == 75


def test_tables_that_differ_in_the_case_of_other_letters_cannot_be_named() -> None:
    source = database(":memory:", 'CREATE TABLE sales."É" (x INTEGER)', 'CREATE TABLE sales."é" (x INTEGER)')
    session = privsql.connect(source)
    assert code(session, 'SELECT COUNT(*) FROM sales."É"') == "name-table"
    assert counted(session, "SELECT COUNT(*) FROM sales.visits") == 200


def test_a_view_of_another_schema_is_the_owners_to_declare_and_is_checked() -> None:
    views = (
        "CREATE VIEW sales.grown AS SELECT * FROM sales.visits WHERE k > 1",
        "CREATE VIEW sales.failing AS SELECT CAST(k || 'x' AS INTEGER) AS x FROM sales.visits",
    )
    source = database(":memory:", *views)
    assert code(privsql.connect(source), "SELECT COUNT(*) FROM sales.grown") == "refused-view"
    declared = privsql.connect(source, policy={"tables": {"sales.grown": {}, "sales.failing": {}}})
    assert counted(declared, "SELECT COUNT(*) FROM sales.grown") == 100
    assert code(declared, "SELECT COUNT(*) FROM sales.failing") == "refused-view"


def test_a_view_of_files_in_another_schema_is_refused(tmp_path: Path) -> None:
    """DuckDB does not show its plan, and names in the view's text could be read as those of this schema."""
    file = tmp_path / "rows.parquet"
    pd.DataFrame({"x": [1, 2]}).to_parquet(file)
    source = database(
        ":memory:", f"CREATE VIEW sales.v AS SELECT * FROM read_parquet('{file}', can_have_nan = true)"
    )
    declared = privsql.connect(source, policy={"tables": {"sales.v": {}}})
    assert code(declared, "SELECT COUNT(*) FROM sales.v") == "refused-view"


# -- frames and files ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["main.t", "memory.main.t", "t", '"main"."T"'])
def test_frames_and_files_are_in_the_schema_main(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1, 2, 3]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for source in ({"t": frame}, tmp_path / "t.csv", tmp_path / "t.parquet"):
        assert counted(privsql.connect(source), f"SELECT COUNT(*) FROM {name}") == 3
    assert (
        int(frame.dp.query("SELECT COUNT(*) AS n FROM main.df WHERE main.df.x > 1", epsilon=1e4)["n"][0]) == 2
    )


def test_the_name_of_a_frame_may_have_dots() -> None:
    frames = {"project.sales.orders": pd.DataFrame({"x": [1, 2]}), "orders": pd.DataFrame({"x": [1]})}
    session = privsql.connect(frames)
    assert counted(session, "SELECT COUNT(*) FROM project.sales.orders") == 2
    assert counted(session, "SELECT COUNT(*) FROM `project.sales.orders`", dialect="bigquery") == 2
    assert counted(session, "SELECT COUNT(*) FROM main.orders") == 1


def test_a_schema_without_paths_has_no_qualified_names() -> None:
    assert Schema(()).find(("main", "t")) == ()


def test_an_audit_of_another_schema_is_refused(clinic: privsql.Session) -> None:
    """Its made-up tables are of the schema main. Before, it called the plan broken."""
    with pytest.raises(privsql.ArgumentError, match="schema main"):
        clinic.audit("SELECT COUNT(*) FROM sales.visits", epsilon=1)
    assert clinic.audit("SELECT COUNT(*) FROM main.visits", epsilon=1, tries=10, releases=300).held


def test_a_policy_that_no_longer_fits_is_refused_again_and_again() -> None:
    """A table with a dot in its name appears: whose policy it is would be a guess, in every later query."""
    source = database()
    session = privsql.connect(source, policy={"tables": {"sales.visits": {"public": True}}})
    assert session.explain("SELECT COUNT(*) FROM sales.visits", epsilon=1).public
    source.execute('CREATE TABLE "sales.visits" (x INTEGER)')
    for _ in range(3):
        assert code(session, 'SELECT COUNT(*) FROM "sales.visits"') == "policy-table"
    source.execute('DROP TABLE "sales.visits"')
    assert session.explain("SELECT COUNT(*) FROM sales.visits", epsilon=1).public


def test_the_policy_follows_use_within_one_session() -> None:
    source = database(
        ":memory:", "CREATE TEMP TABLE mine (x INTEGER)"
    )  # so that it is the owner's connection
    session = privsql.connect(source, policy={"tables": {"main.visits": {"public": True}}})
    assert session.explain("SELECT COUNT(*) FROM visits", epsilon=1).public
    source.execute("USE sales")
    assert not session.explain("SELECT COUNT(*) FROM visits", epsilon=1).public
    assert session.explain("SELECT COUNT(*) FROM main.visits", epsilon=1).public
    assert counted(session, "SELECT COUNT(*) FROM visits") == 200


def test_drafts_and_checks_leave_attached_databases_alone() -> None:
    source = database(":memory:", "ATTACH ':memory:' AS far; CREATE TABLE far.main.t AS SELECT 1 AS x")
    text = draft(source)
    assert '[tables."sales.orders"]' in text
    assert "far.main" not in text
    policy = privsql.Policy(time_zone="Europe/Berlin")
    checked = check_policy(policy, source)
    assert "far.main.t\n  in another database, and not in the policy; queries of it are refused" in checked
    assert "sales.orders\n  privacy unit  EACH ROW" in checked
    assert "time_zone   Europe/Berlin" in checked
