"""What sqlglot finds in a text is read or refused: every permitted argument is tried with a column that is not there."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

import privsql
from privsql.sql import read
from privsql.sql.parse import gate
from tests.cases.test_cases import ALL_CASES, session_of

# No text puts a column there: where to trim (a word), a unit beside INTERVAL 1 YEAR, and ELSE inside of WHEN.
NEVER = {(exp.Trim, "position"), (exp.DateAdd, "unit"), (exp.If, "false")}
WITH_ARGUMENTS = (
    exp.Func,
    exp.Binary,
    exp.Predicate,
    exp.Star,
    exp.DataType,
)  # clauses have none that can be too many
LONGEST = 200  # of the texts that are tried


def places() -> dict[tuple[type[exp.Expr], str], tuple[str, int]]:
    """For each class and argument which some accepted text leaves open: the text, and the node's place in it."""
    found: dict[tuple[type[exp.Expr], str], tuple[str, int]] = {}
    for case in ALL_CASES:
        plain = case.settings["schema"] == "patients" and case.settings.get("dialect", "duckdb") == "duckdb"
        if case.outcome.startswith(("error ", "part ")) or not plain or len(case.sql) > LONGEST:
            continue
        for place, node in enumerate(sqlglot.parse_one(case.sql, read="duckdb").walk(bfs=False)):
            for name in gate.PERMITTED.get(type(node), ()) if isinstance(node, WITH_ARGUMENTS) else ():
                if (type(node), name) not in NEVER and not isinstance(node.args.get(name), (exp.Expr, str)):
                    found.setdefault((type(node), name), (case.sql, place))
    return found


def test_no_permitted_argument_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, passed_over, session = 0, [], session_of("patients")
    for (kind, name), (sql, place) in places().items():
        tree = sqlglot.parse_one(sql, read="duckdb")
        node = list(tree.walk(bfs=False))[place]
        unknown = exp.column("privsql_unknown")
        if isinstance(node.args.get(name), list):
            node.append(name, exp.DataTypeParam(this=unknown) if kind is exp.DataType else unknown)
        else:
            node.set(name, unknown)
        monkeypatch.setattr(
            read, "parse", lambda text, dialect, tree=tree: gate.permitted(tree, dialect, None)
        )
        try:
            session.explain(sql, epsilon=1.0)
        except Exception:  # noqa: BLE001 -- no text leads to some of these trees: any error will do
            tried += 1
        else:
            passed_over.append(f"{kind.__name__}.{name} in {sql}")
    assert not passed_over, "\n".join(passed_over)
    assert tried > 45, tried


@pytest.mark.parametrize(
    "call", ["COUNT_IF(smoker, name)", "COUNT_IF(name LIKE 'a#', '#')", "CORR(age, income, visits)"]
)
def test_extra_arguments_that_sqlglot_accepts_are_refused(call: str) -> None:
    with pytest.raises(privsql.SqlError, match="does not take so many arguments"):
        session_of("patients").explain(f"SELECT {call} FROM patients", epsilon=1.0)


@pytest.mark.parametrize("star", ["* EXCLUDE (age)", "* REPLACE (age + 1 AS age)", "* RENAME (age AS years)"])
def test_rows_are_counted_by_a_bare_star(star: str) -> None:
    with pytest.raises(privsql.SqlError, match="counts rows"):
        session_of("patients").explain(f"SELECT COUNT({star}) FROM patients", epsilon=1.0)


@pytest.mark.parametrize(
    "size", ["TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(zz)", "TIME(3)", "DATE(5)", "INT(3)", "FLOAT(53)"]
)
def test_the_size_of_a_type_is_read_or_refused(size: str) -> None:
    """DuckDB cuts what is below a millisecond in a cast to TIMESTAMP(3)."""
    with pytest.raises(privsql.Refused, match="with a size"):
        session_of("patients").explain(
            f"SELECT COUNT(*) FROM patients WHERE CAST(seen AS {size}) IS NULL", epsilon=1.0
        )


def test_a_timestamp_of_six_digits_is_a_timestamp() -> None:
    plain = "SELECT COUNT(*) FROM patients WHERE CAST(seen AS TIMESTAMP) IS NULL"
    plans = [
        session_of("patients").explain(each, epsilon=1.0)
        for each in (plain, plain.replace("STAMP)", "STAMP(6))"))
    ]
    assert plans[0].statements == plans[1].statements


@pytest.mark.parametrize("size", ["DECIMAL(5, 2, 1)", "DECIMAL(5, zz)"])
def test_a_decimal_has_two_sizes(size: str) -> None:
    with pytest.raises(privsql.SqlError, match="precision"):
        session_of("patients").explain(
            f"SELECT COUNT(*) FROM patients WHERE CAST(age AS {size}) = 1", epsilon=1.0
        )


@pytest.mark.parametrize("name", ["CHARACTER VARYING(1)", "NVARCHAR(1)"])
def test_the_size_of_a_text_cuts_where_the_dialect_does(name: str) -> None:
    """VARCHAR(1) is VARCHAR to DuckDB; of these spellings sqlglot keeps the size, and LEFT(x, 1) would be something else."""
    sql = f"SELECT COUNT(*) FROM patients WHERE CAST(state AS {name}) = 'C'"
    with pytest.raises(privsql.Refused, match="cuts nothing"):
        session_of("patients").explain(sql, epsilon=1.0)
    assert "left(" in session_of("patients").explain(sql, epsilon=1.0, dialect="postgres").statements[0]


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("1 < age < 5", "in a row"), ("age = visits = 3", "in a row"),
        ("smoker = age < 5", "in a row"), ("(age < 5", "not closed"), ("age < 5)", "was not opened"),
        ("(age < 5]", "was not opened"), ("age BETWEEN 1 5", "BETWEEN needs AND"),
        ("age BETWEEN 1 5 AND smoker", "BETWEEN needs AND"),
        ("1 BETWEEN b'1' AND NULL", "a name before a text"), ("age BETWEEN age '1' AND smoker", "a name before a text"),
    ],
)  # fmt: skip
def test_nonsense_that_sqlglot_parses_is_refused(condition: str, reason: str) -> None:
    with pytest.raises(privsql.SqlError, match=reason):
        session_of("patients").explain(f"SELECT COUNT(*) FROM patients WHERE {condition}", epsilon=1.0)


@pytest.mark.parametrize(
    "condition",
    ["(1 < age) = smoker", "age BETWEEN 1 AND 5 AND smoker", "age IN (1, 2) = smoker", "age > 5 IS TRUE"],
)
def test_comparisons_in_parentheses_are_read(condition: str) -> None:
    session_of("patients").explain(f"SELECT COUNT(*) FROM patients WHERE {condition}", epsilon=1.0)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT MIN( (age) AS least, MAX(age) AS most FROM patients", "not closed"),
        ("SELECT COUNT(*) FROM (SELECT age AS , state FROM patients)", "no name behind AS"),
        ("SELECT COUNT(*) AS FROM patients", "no name behind AS"),
        ("SELECT state, COUNT(*) FROM patients GROUP BY DISTINCT state", "GROUP BY DISTINCT"),
    ],
)
@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "mysql"])
def test_unfinished_sql_is_refused(sql: str, reason: str, dialect: str) -> None:
    with pytest.raises(privsql.SqlError, match=reason):
        session_of("patients").explain(sql, epsilon=1.0, dialect=dialect)
