"""Names that differ only in case are one name: nowhere is one of two lost without a word."""

from __future__ import annotations

from typing import Any

import duckdb
import pandas as pd
import pytest

import privsql
from privsql.policy import ColumnPolicy, Policy, TablePolicy, UnitPolicy, load_policy
from tests.budget.refusals import refusal

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

FRAME = pd.DataFrame({"u": [1, 1, 2], "a": [1, 2, 3]})


# -- what the owner declares -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "tables",
    [
        {"df": {"unit": "u"}, "Df": {"public": True}},
        {"Df": {"public": True}, "df": {"unit": "u"}},
        {"df": {"columns": {"a": {"range": [0, 1]}, "A": {"range": [0, 10**6]}}}},
        {"df": {"matches": {"a": 1, "A": 2}}},
        {"df": {"unique": [["a", "A"]]}},
    ],
)
def test_policies_with_a_repeated_name_are_refused(tables: dict[str, Any]) -> None:
    caught = refusal(privsql.connect, FRAME, {"tables": tables})
    assert caught.code == "policy-duplicate"
    assert "case-insensitive" in str(caught)


def test_policy_files_with_a_repeated_name_are_refused(tmp_path: Any) -> None:
    path = tmp_path / "p.toml"
    path.write_text('[tables.visits]\nunit = "u"\n[tables.Visits]\npublic = true\n')
    assert refusal(load_policy, path).code == "policy-duplicate"


@pytest.mark.parametrize(
    "given", [{"ranges": {"a": (0, 1), "A": (0, 9)}}, {"keys": {"a": [1], "A": [2]}}], ids=["ranges", "keys"]
)
def test_arguments_with_a_repeated_column_are_refused(given: dict[str, Any]) -> None:
    for call in (FRAME.dp.query, FRAME.dp.explain):
        assert (
            refusal(call, "SELECT a, SUM(a) FROM df GROUP BY a", epsilon=1, **given).code
            == "argument-duplicate"
        )
    assert refusal(FRAME.dp.protect, **given).code == "argument-duplicate"


def test_a_policy_made_by_hand_is_looked_up_without_case() -> None:
    """Else the unit that it declares would not be found, and every row counted as one person's."""
    table = TablePolicy(unit=UnitPolicy(("u",)), max_rows=7, columns={"A": ColumnPolicy(0, 9)})
    policy = Policy(tables={"DF": table})
    assert policy.table("df") == policy.table("Df") == table
    assert table.column("a") == ColumnPolicy(0, 9)
    plan = privsql.connect(FRAME, policy).explain("SELECT COUNT(*) FROM df", epsilon=1)
    assert plan.measurements[0].l1 == 7
    assert refusal(Policy, tables={"DF": table, "df": TablePolicy(public=True)}).code == "policy-duplicate"
    assert refusal(TablePolicy, columns={"a": ColumnPolicy(), "A": ColumnPolicy()}).code == "policy-duplicate"


# -- sources ---------------------------------------------------------------------------------------------------
FRAMES = {
    "pandas": lambda names: pd.DataFrame([[1, 2]], columns=list(names)),
    "Arrow": lambda names: pa.table([[1], [2]], names=list(names)),
    "Polars": lambda names: pl.DataFrame({name: [1] for name in names}),
}


@pytest.mark.parametrize("names", [("id", "ID"), ("é", "É")])
@pytest.mark.parametrize("kind", list(FRAMES))
def test_repeated_columns_of_a_frame_are_refused(kind: str, names: tuple[str, str]) -> None:
    assert refusal(privsql.connect, FRAMES[kind](names)).code == "source-columns"
    assert refusal(privsql.connect, {"t": FRAMES[kind](names)}).code == "source-columns"


def test_repeated_frames_of_a_dict_are_refused() -> None:
    assert refusal(privsql.connect, {"df": FRAME, "DF": FRAME}).code == "source-kind"


@pytest.mark.parametrize(
    "text",
    [
        "id,ID,x\n1,2,3\n",
        "id,id,x\n1,2,3\n",
        "id,id_1,ID\n1,2,3\n",
        '"i;d";x;"I;d"\n"a";2;"b"\n',
        "\ufeffid\tID\n1\t2\n",
    ],
)
def test_repeated_columns_of_a_csv_file_are_refused(tmp_path: Any, text: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    assert refusal(privsql.connect, path).code == "source-columns"


def test_repeated_columns_of_a_parquet_file_are_refused(tmp_path: Any) -> None:
    from pyarrow import parquet

    parquet.write_table(pa.table([[{"x": 1}], [1], [2]], names=["s", "id", "ID"]), tmp_path / "t.parquet")
    assert refusal(privsql.connect, tmp_path / "t.parquet").code == "source-columns"


def test_columns_named_like_duckdbs_renamed_ones_are_accepted(tmp_path: Any) -> None:
    from pyarrow import parquet

    inner = pa.table({"s": [{"id": 1, "ID": 2}], "id": [1], "id_1": [2], "l": [[1]]})
    parquet.write_table(inner, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("id,id_1,x\n1,2,3\n")
    (tmp_path / "n.csv").write_text("1,2\n3,4\n")
    for name in ("t.parquet", "t.csv", "n.csv"):
        privsql.connect(tmp_path / name).close()


def test_tables_that_differ_in_case_only_are_refused() -> None:
    """É and é are two tables there; a policy that makes one of them public must not make the other so."""
    with duckdb.connect() as owner:
        owner.execute('CREATE TABLE "É" AS SELECT 1 AS u; CREATE TABLE "é" AS SELECT 2 AS u')
        assert refusal(privsql.connect, owner, {"tables": {"é": {"public": True}}}).code == "source-tables"
    with duckdb.connect() as owner:
        owner.execute('CREATE TEMP TABLE "É" AS SELECT 1 AS u; CREATE TABLE "é" AS SELECT 2 AS u')
        assert refusal(privsql.connect, owner).code == "source-tables"


def test_a_temporary_table_still_hides_another() -> None:
    with duckdb.connect() as owner:
        owner.execute("CREATE TABLE t AS SELECT 1 AS u; CREATE TEMP TABLE T AS SELECT 2 AS v")
        assert privsql.connect(owner).explain("SELECT COUNT(v) FROM t", epsilon=1).epsilon == 1


def test_a_unit_cannot_be_one_of_two_repeated_columns() -> None:
    with duckdb.connect() as owner:
        owner.execute(
            'CREATE TABLE people ("é" INTEGER UNIQUE, "É" INTEGER); CREATE TABLE visits (who INTEGER)'
        )
        tables = {"people": {"unit": "É"}, "visits": {"unit": "who -> people.É"}}
        with privsql.connect(owner, {"tables": tables}) as session:
            for table in tables:
                assert (
                    refusal(session.explain, f"SELECT COUNT(*) FROM {table}", epsilon=1).code
                    == "source-columns"
                )


# -- queries ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (
            "WITH x AS (SELECT * FROM df), X AS (SELECT * FROM df WHERE a = 2) SELECT COUNT(*) FROM x",
            "sql-alias",
        ),
        ("SELECT COUNT(*) FROM (SELECT * REPLACE (1 AS a, 2 AS A) FROM df) WHERE a = 2", "sql-alias"),
        ("SELECT COUNT(*) FROM (SELECT a AS n, u AS N FROM df WHERE n = 2)", "name-ambiguous"),
    ],
)
def test_repeated_names_in_a_query_are_refused(sql: str, code: str) -> None:
    session = privsql.connect(FRAME)
    assert refusal(session.explain, sql, epsilon=1).code == code
    inner = "SELECT COUNT(*) FROM (WITH X AS (SELECT * FROM df WHERE a = 2) SELECT * FROM x)"
    assert (
        session.explain(f"WITH x AS (SELECT * FROM df) {inner}", epsilon=1).epsilon == 1
    )  # the inner one hides the other
    same = "SELECT COUNT(*) FROM (SELECT a AS n, a AS N FROM df WHERE n = 2)"
    assert session.explain(same, epsilon=1).epsilon == 1
