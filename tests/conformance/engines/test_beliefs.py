"""Every row of the function table holds on the engine: NULL results, equal results for equal numbers,
repetition.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import privsql
from privsql.algebra.expressions import Call, Column, Expression
from privsql.algebra.functions import BELIEFS, FUNCTIONS, OPERATORS, Nulls, Undefined
from privsql.analysis.rules import always_fits
from privsql.render.duckdb_functions import FORMS
from privsql.types import DOUBLE, MOMENTS, Kind
from tests.conformance.engines import DIALECT, expressions
from tests.conformance.engines.hostile import fill, source

Connection = duckdb.DuckDBPyConnection


@pytest.fixture(scope="module")
def database() -> Iterator[Connection]:
    with duckdb.connect() as connection:
        fill(connection, 300, 8)
        yield connection


def written(expression: Expression) -> str:
    return f"({DIALECT.expression(expression)})"


def ordinary(argument: Expression) -> str:
    """Whether a value can lie in a bounded range: no NaN, no infinity, and no date beyond Python's calendar."""
    if argument.type.kind is Kind.DOUBLE:
        return f"isfinite({written(argument)})"
    if argument.type.kind in MOMENTS:
        return (
            f"{written(argument)} >= TIMESTAMP '0001-01-01' AND {written(argument)} < TIMESTAMP '10000-01-01'"
        )
    return "TRUE"


def surely_defined(call: Call) -> str:
    """Where a row promises a value, for arguments that are not NULL."""
    match BELIEFS[call.function].undefined:
        case Undefined.NOWHERE:
            return "TRUE"
        case Undefined.SOMEWHERE:
            return "FALSE"
        case Undefined.AT_INFINITY:
            return " AND ".join(map(ordinary, call.args))
        case Undefined.BY_ZERO:
            return f"{written(call.args[1])} <> 0"
        case Undefined.BELOW_ZERO:
            return f"{written(call.args[0])} >= 0 AND {ordinary(call.args[0])}"
        case Undefined.UP_TO_ZERO:
            return f"{written(call.args[0])} > 0 AND {ordinary(call.args[0])}"
        case Undefined.BY_TYPE:
            return "TRUE" if always_fits(call.args[0].type, call.type) else "FALSE"


def never(call: Call) -> str:
    """What no row may show, as a condition."""
    result, missing = written(call), [f"{written(each)} IS NULL" for each in call.args] or ["FALSE"]
    any_missing, all_missing = f"({' OR '.join(missing)})", f"({' AND '.join(missing)})"
    match BELIEFS[call.function].nulls:
        case Nulls.NEVER:
            return f"{result} IS NULL"
        case Nulls.SKIPPED:
            return f"({result} IS NULL) <> {all_missing}"
        case Nulls.STRICT:
            unwanted = f"({any_missing} AND {result} IS NOT NULL)"
        case Nulls.PASSED:
            unwanted = "FALSE"
    return f"{unwanted} OR (NOT {any_missing} AND ({surely_defined(call)}) AND {result} IS NULL)"


def broken(connection: Connection, calls: list[Call]) -> list[str]:
    """The calls whose row in the table is wrong about NULL."""
    found = []
    for start in range(0, len(calls), 100):
        batch = calls[start : start + 100]
        columns = ", ".join(f"count(*) FILTER (WHERE {never(each)})" for each in batch)
        (counts,) = connection.execute(f"SELECT {columns} FROM {source()}").fetchall()
        found += [
            f"{each.function}: {written(each)}" for each, count in zip(batch, counts, strict=True) if count
        ]
    return found


def test_results_are_null_where_the_function_table_says(database: Connection) -> None:
    calls = list(expressions.Generator(31).many(2_500, depth=1))
    assert {each.function for each in calls} >= {*FUNCTIONS, *OPERATORS}
    assert not broken(database, calls)


def test_a_wrong_belief_about_null_is_detected(database: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {"concat", "%"}
    calls = [each for each in expressions.Generator(31).many(2_500, depth=1) if each.function in wrong]
    for name in wrong:
        monkeypatch.setitem(BELIEFS, name, BELIEFS["not"])  # NULL exactly where an argument is
    assert {each.split(":")[0] for each in broken(database, calls)} == wrong


@pytest.mark.parametrize("name", [name for name, row in BELIEFS.items() if row.equal_alike])
def test_equal_numbers_give_equal_results(database: Connection, name: str) -> None:
    """0.0 and -0.0 are equal, and one key."""
    generator, zero = expressions.Generator(4), Column("zero", DOUBLE)
    drawn = (expressions.with_argument(generator, name, zero) for _ in range(20))
    calls = [each for each in drawn if each is not None]
    rows = f"{source()} CROSS JOIN (VALUES (CAST(0 AS DOUBLE)), (CAST('-0' AS DOUBLE))) AS zeros(zero)"
    for call in calls:
        results = f"SELECT id, {written(call)} AS result FROM {rows}"
        seen = (
            f"SELECT id FROM ({results}) GROUP BY id HAVING count(DISTINCT result) > 1 OR count(result) = 1"
        )
        assert not database.execute(seen).fetchall(), DIALECT.expression(call)


@pytest.mark.parametrize("name", [name for name, row in BELIEFS.items() if row.keeps_whole])
def test_integers_round_trip_exactly(database: Connection, name: str) -> None:
    generator = expressions.Generator(6)
    calls = [each for each in (generator.called(name, 1) for _ in range(40)) if each is not None]
    whole = [each for each in calls if each.args[0].type.kind is Kind.INTEGER]
    assert whole
    for call in whole:
        differ = f"{written(call)} IS DISTINCT FROM {written(call.args[0])}"
        assert database.execute(f"SELECT count(*) FROM {source()} WHERE {differ}").fetchall() == [(0,)]


@pytest.mark.parametrize("name", FORMS)
def test_the_size_limit_counts_repeated_arguments(name: str) -> None:
    assert FORMS[name].count("{0}") + FORMS[name].count("{args}") <= BELIEFS[name].repeats


def test_every_function_has_a_form_and_every_form_a_function() -> None:
    assert {*FORMS} == {*FUNCTIONS}


# -- a dialect without a form --------------------------------------------------------------------------------
class WithoutReverse(type(DIALECT)):  # type: ignore[misc]
    """A dialect that is DuckDB's, without one function."""

    forms = {name: form for name, form in FORMS.items() if name != "reverse"}


@pytest.fixture
def poor() -> Iterator[privsql.Session]:
    """A session on an engine that has no reverse()."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people (name VARCHAR, state VARCHAR)")
    policy = {"tables": {"people": {"columns": {"state": {"values": ["CA", "NY"]}}}}}
    with privsql.connect(connection, policy) as session:
        session._pipeline.engine.dialect = WithoutReverse()
        yield session


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM people WHERE reverse(name) = 'nnA'",
        "SELECT SUM(CASE WHEN reverse(name) = 'nnA' THEN 1 ELSE 0 END) FROM people",
        "SELECT COUNT(*) FROM people GROUP BY reverse(state)",
    ],
)
def test_a_function_without_a_form_is_refused_while_planning(poor: privsql.Session, sql: str) -> None:
    with pytest.raises(privsql.SqlError, match="reverse") as caught:
        poor.explain(sql, 1.0)
    assert caught.value.code == "refused-function"


def test_a_function_without_a_form_above_a_release_is_refused_before_the_charge(
    poor: privsql.Session,
) -> None:
    with pytest.raises(privsql.SqlError, match="reverse") as caught:
        poor.query("SELECT reverse(state) AS s, COUNT(*) FROM people GROUP BY state", 1.0)
    assert caught.value.code == "refused-function"
    assert poor.budget.spent.epsilon == 0
