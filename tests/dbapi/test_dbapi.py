"""privsql.dbapi beyond the standard's checks: settings, prices, errors, and the libraries that use it."""

from __future__ import annotations

import threading
import warnings
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privsql
from privsql import dbapi
from privsql.dbapi.settings import change_settings
from tests.conftest import clinic

EXACT = 10_000.0
N = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def connection() -> Any:
    with dbapi.connect({"visits": clinic(50)}, epsilon=EXACT) as opened:
        yield opened


def spent(connection: dbapi.Connection) -> float:
    return float(connection.session.budget.spent.epsilon)


def test_parameters_are_bound_by_place_and_by_name(connection: dbapi.Connection) -> None:
    cursor, ages = connection.cursor(), clinic(50)["age"]
    by_place = cursor.execute(f"{N} WHERE age >= ?", [40]).fetchall()
    by_name = cursor.execute(f"{N} WHERE age >= :least", {"least": 40}).fetchall()
    assert by_place == by_name == [(int((ages >= 40).sum()),)]


def test_parameters_are_values_and_never_sql(connection: dbapi.Connection) -> None:
    found = connection.cursor().execute(f"{N} WHERE state = ?", ["CA' OR '1' = '1"]).fetchone()
    assert found == (0,)


def test_set_changes_the_price_of_later_queries(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("SET epsilon = 0.5")
    assert cursor.description is None
    cursor.execute(N)
    cursor.execute("set epsilon to 0.25;")
    cursor.execute(f"{N} WHERE age > 30")
    assert spent(connection) == 0.75


def test_a_setting_of_one_call_holds_for_it_alone(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("SET epsilon = 0.5")
    cursor.execute(N, epsilon=0.125)
    cursor.execute(f"{N} WHERE age > 30")
    assert spent(connection) == 0.625


def test_within_replaces_epsilon_and_reset_takes_it_back(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("SET within = 10")
    assert connection.settings == {"within": 10}
    cursor.execute("RESET within")
    with pytest.raises(dbapi.ProgrammingError, match="epsilon"):
        cursor.execute(N)
    assert spent(connection) == 0


@pytest.mark.parametrize(
    "text", ["SET epslon = 1", "SET sql = 'x'", "SET analyst = 'eve'", "RESET params", "SET epsilon = (1, 2)"]
)
def test_other_settings_are_refused(connection: dbapi.Connection, text: str) -> None:
    with pytest.raises(dbapi.ProgrammingError):
        connection.cursor().execute(text)
    assert connection.settings == {"epsilon": EXACT}


@pytest.mark.parametrize(
    ("sql", "kind", "code"),
    [
        ("SELECT * FROM visits", dbapi.NotSupportedError, "refused-rows"),
        ("SELECT COUNT(* FROM visits", dbapi.ProgrammingError, "sql-syntax"),
        ("SELECT COUNT(*) FROM visit", dbapi.ProgrammingError, "name-table"),
        ("DROP TABLE visits", dbapi.NotSupportedError, "refused-statement"),
        ("SET epsilon = -1", None, ""),
    ],
)
def test_errors_are_those_of_the_standard_and_of_privsql(
    connection: dbapi.Connection, sql: str, kind: Any, code: str
) -> None:
    cursor = connection.cursor()
    if kind is None:  # a setting is checked where it is used
        cursor.execute(sql)
        sql, kind, code = N, dbapi.ProgrammingError, "argument-epsilon"
    with pytest.raises(kind) as caught:
        cursor.execute(sql)
    assert isinstance(caught.value, privsql.PrivsqlError)
    assert caught.value.code == code
    assert cursor.description is None
    assert cursor.rowcount == -1


def test_a_spent_budget_is_an_operational_error() -> None:
    with dbapi.connect({"visits": clinic(50)}, {"budget": {"epsilon": 1.0}}, epsilon=0.75) as connection:
        cursor = connection.cursor()
        cursor.execute(N)
        with pytest.raises(dbapi.OperationalError) as caught:
            cursor.execute(f"{N} WHERE age > 30")
    assert caught.value.code.startswith("budget-")


def test_types_of_columns_are_those_of_the_standard(connection: dbapi.Connection) -> None:
    sql = "SELECT DATE '2026-01-01' AS d, 'x' AS s, COUNT(*) AS n, TRUE AS b, COUNT(*) / 2 AS h FROM visits"
    described = connection.cursor().execute(sql).description
    assert described is not None
    kinds = (dbapi.DATETIME, dbapi.STRING, dbapi.NUMBER, dbapi.BINARY, dbapi.ROWID)
    found = [
        [name for name, kind in zip("DSNBR", kinds, strict=True) if kind == each[1]] for each in described
    ]
    assert found == [["D"], ["S"], ["N"], [], ["N"]]
    assert [each[0] for each in described] == ["d", "s", "n", "b", "h"]


def test_null_is_none_and_a_date_is_a_date(connection: dbapi.Connection) -> None:
    found = connection.cursor().execute("SELECT NULL AS x, DATE '2026-01-01' AS d, COUNT(*) AS n FROM visits")
    assert found.fetchall() == [(None, date(2026, 1, 1), 50)]


def test_rows_are_fetched_in_turn(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute(
        "SELECT i, COUNT(*) AS n FROM visits, (VALUES (1), (2), (3), (4)) v(i) GROUP BY i ORDER BY i"
    )
    assert cursor.fetchone() == (1, 50)
    assert cursor.rownumber == 1
    assert cursor.fetchmany(2) == [(2, 50), (3, 50)]
    assert list(cursor) == [(4, 50)]
    assert cursor.fetchone() is None
    assert cursor.fetchmany() == cursor.fetchall() == []


def test_nothing_to_fetch_is_an_interface_error(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    for fetch in (cursor.fetchone, cursor.fetchall, cursor.fetchmany, cursor.df, cursor.fetch_arrow_table):
        with pytest.raises(dbapi.InterfaceError):
            fetch()


def test_a_closed_cursor_and_a_closed_connection_raise(connection: dbapi.Connection) -> None:
    closed, open_ = connection.cursor(), connection.cursor()
    closed.execute(N)
    closed.close()
    with pytest.raises(dbapi.InterfaceError):
        closed.fetchall()
    connection.close()
    for use in (open_.execute, lambda _: connection.commit(), lambda _: connection.cursor()):
        with pytest.raises(dbapi.InterfaceError):
            use(N)


def test_a_session_that_was_open_stays_open() -> None:
    with privsql.connect({"visits": clinic(50)}) as session:
        with dbapi.connect(session, epsilon=0.5) as connection:
            connection.cursor().execute(N)
        assert session.query(N, epsilon=0.5).stored


def test_a_rollback_does_not_give_a_charge_back(connection: dbapi.Connection) -> None:
    connection.cursor().execute(N, epsilon=0.5)
    connection.rollback()
    assert spent(connection) == 0.5


def test_threads_share_a_connection(connection: dbapi.Connection) -> None:
    found: list[Any] = []

    def ask(age: int) -> None:
        found.append(connection.cursor().execute(f"{N} WHERE age > ?", [age]).fetchone())

    threads = [threading.Thread(target=ask, args=(age,)) for age in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 8


def test_pandas_and_polars_read_from_a_connection(connection: dbapi.Connection) -> None:
    by_state = (
        "SELECT smoker, COUNT(*) AS n FROM visits WHERE smoker IS NOT NULL GROUP BY smoker ORDER BY smoker"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas: only SQLAlchemy is tested
        frame = pd.read_sql(by_state, connection)
    assert pl.read_database(by_state, connection).rows() == list(frame.itertuples(index=False, name=None))
    arrow = connection.cursor().execute(by_state).fetch_arrow_table()
    assert arrow.column_names == ["smoker", "n"]


def test_answers_are_read_as_arrow_streams(connection: dbapi.Connection) -> None:
    cursor = connection.cursor().execute(N)
    assert cursor.answer is not None
    assert pl.DataFrame(cursor.answer).rows() == [(50,)]


@pytest.mark.parametrize("text", ["SET a = {}x;x", "SET a{}!", "SET a TO {}\n;;", "{}SET", "RESET a{};;"])
def test_a_long_text_that_is_no_setting_is_recognised_in_no_time(text: str) -> None:
    """With patterns that may share white space, 200 blanks took half a minute, and 4,000 would never end."""
    assert change_settings({}, text.format(" " * 100_000)) is None


@pytest.mark.parametrize("text", ["SET epsilon = 0.5", " set\nepsilon\tTO 0.5 ;\n", "SET epsilon=0.5;"])
def test_a_setting_may_have_white_space_around_every_word(text: str) -> None:
    assert change_settings({}, text) == {"epsilon": 0.5}


@pytest.mark.parametrize("size", [-1, "x", 1.5, True, []])
def test_fetchmany_of_no_number_of_rows_is_an_error_of_the_standard(
    connection: dbapi.Connection, size: Any
) -> None:
    cursor = connection.cursor().execute(N)
    with pytest.raises(dbapi.InterfaceError, match="whole number of rows"):
        cursor.fetchmany(size)
    assert len(cursor.fetchall()) == 1


@pytest.mark.parametrize("settings", [5, [1], {5: 1}, {"delta": "x"}])
def test_settings_that_are_none_are_an_error_of_the_standard(settings: Any) -> None:
    with dbapi.connect({"visits": clinic(50)}) as opened, pytest.raises(dbapi.ProgrammingError):
        dbapi.connect(opened.session, epsilon=EXACT, settings=settings).cursor().execute(N)


@pytest.mark.parametrize("price", [{"epsilon": np.array([1, 2])}, {"delta": np.array([1, 2])}])
def test_a_price_that_is_no_number_is_an_error_of_the_standard(price: Any) -> None:
    with pytest.raises(dbapi.ProgrammingError):
        dbapi.connect({"visits": clinic(50)}, **price).cursor().execute("SHOW TABLES")
