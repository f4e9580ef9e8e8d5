"""Contribution bounding drops keys, rows and values by a hash: what is kept of a flat truth is flat, for each kind of choice.

The SQL of real plans runs on tables where every unit has the same; the hash is fixed, so that each test always ends the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb
import pytest
from scipy import stats

import privsql
from privsql.algebra.choices import FairChoice
from privsql.algebra.exact import Name, Operation, fair_hash
from privsql.render.duckdb import DUCKDB, DuckDB

UNITS, KEYS = 20_000, 12
RARE = 1e-4  # the chance that a fair choice is called unfair; there are some hundred in the slow run

OF_UNITS = {
    "integers": "i",
    "negative integers": "-i",
    "large integers": "i * 4294967296 + 9007199254740993",
    "HUGEINTs": "CAST(i AS HUGEINT) * 1000000000000000000007",
    "text": "'user ' || i",
    "long text": "repeat('a long name ', 3) || i",
    "dates": "DATE '1900-01-01' + CAST(i AS INTEGER)",
    "timestamps": "TIMESTAMP '2020-01-01' + to_seconds(i)",
    "UUIDs": "CAST(md5(CAST(i AS VARCHAR)) AS UUID)",
    "doubles": "i / 2.0::DOUBLE",
    "random doubles": "hash(i) / 1e9::DOUBLE",
    "decimals": "CAST(i AS DECIMAL(18, 2)) / 4",
    "blocks": "(i // 100) * 65536 + i % 100",
}
OF_KEYS = {
    "integers": "j",
    "negative integers": "-j",
    "large integers": "j * 10000000019",
    "powers of two": "1 << j",
    "months": "'2024-' || lpad(CAST(j + 1 AS VARCHAR), 2, '0')",
    "long text": "repeat('a long name ', 3) || j",
    "dates": "DATE '2020-01-31' + CAST(31 * j AS INTEGER)",
    "timestamps": "TIMESTAMP '2020-01-01' + to_hours(j)",
    "UUIDs": "CAST(md5(CAST(j AS VARCHAR)) AS UUID)",
    "doubles": "[0.0, 0.1, 'nan', 'inf', '-inf', 1e-300, 1e300, -0.1, 0.5, 2, 3, 4][j + 1]::DOUBLE",
    "decimals": "CAST(j AS DECIMAL(9, 2)) / 4",
    "NULL among them": "nullif(j, 5)",
}
SOME = [
    ("integers", "integers"),
    ("integers", "months"),
    ("text", "text"),
    ("UUIDs", "dates"),
    ("doubles", "doubles"),
]


def unfairness(kept: Sequence[int], units: int, each: int) -> float:
    """Chi-square of how often each of several things was kept, where each unit keeps so many of them."""
    chance = each / len(kept)
    squares = sum((count - units * chance) ** 2 for count in kept)
    return squares / (units * chance * (1 - chance)) * (len(kept) - 1) / len(kept)


def is_fair(kept: Iterable[int], units: int = UNITS, each: int = 1, of: int = KEYS) -> bool:
    counts = [*kept]
    assert sum(counts) == units * each, "everything that may be kept is"
    counts += [0] * (of - len(counts))
    return unfairness(counts, units, each) < stats.chi2.isf(RARE, of - 1)


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    return connection


def crossed(
    connection: duckdb.DuckDBPyConnection, units: str, *keys: str, number: int = UNITS, where: str = "true"
) -> None:
    """Every unit with each of twelve keys, once."""
    named = ", ".join(f"{each} AS k{place}" for place, each in enumerate(keys))
    unit = units if "AS u" in units else f"{units} AS u"
    connection.execute(
        f"CREATE OR REPLACE TABLE t AS SELECT {unit}, {named}, j AS x FROM range({number}) r(i), range({KEYS}) s(j) WHERE {where}"
    )


def plan_of(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    groups: int = 1,
    rows: int = 1,
    unit: object = "u",
    columns: object = None,
) -> privsql.Plan:
    table = {"unit": unit, "max_groups": groups, "max_rows": rows, "columns": columns or {}}
    return privsql.connect(connection, {"tables": {"t": table}}).explain(sql, epsilon=1, delta=1e-6)


def counted(connection: duckdb.DuckDBPyConnection, plan: privsql.Plan) -> list[int]:
    return [row[-1] for row in connection.execute(plan.sql).fetchall()]


BY_KEY = "SELECT k0, COUNT(*) AS n FROM t GROUP BY k0"


# -- keys of a unit ---------------------------------------------------------------------------------------------
def keys_are_fair(connection: duckdb.DuckDBPyConnection, number: int = UNITS) -> bool:
    return is_fair(counted(connection, plan_of(connection, BY_KEY, groups=3)), number, 3)


@pytest.mark.parametrize(
    ("units", "keys"),
    [(OF_UNITS.get(unit, "'u' || i"), OF_KEYS.get(key, "'k' || j")) for unit, key in SOME],
)
def test_keys_of_a_unit(connection, units, keys):
    crossed(connection, units, keys)
    assert keys_are_fair(connection)


@pytest.mark.slow
@pytest.mark.parametrize("keys", OF_KEYS.values(), ids=OF_KEYS)
@pytest.mark.parametrize("units", OF_UNITS.values(), ids=OF_UNITS)
def test_keys_of_a_unit_of_all_types(connection, units, keys):
    number = 73_000 if "DATE" in units else 100_000
    crossed(connection, units, keys, number=number)
    assert keys_are_fair(connection, number)


@pytest.mark.parametrize(
    "parts", [("i % 141", "i // 141"), ("'a' || (i % 141)", "i // 141"), ("i % 2 = 0", "i // 2", "i % 3")]
)
def test_keys_of_a_composite_unit(connection, parts):
    named = ", ".join(f"{each} AS u{place}" for place, each in enumerate(parts))
    crossed(connection, f"{named}, i AS u", "j")
    plan = plan_of(connection, BY_KEY, groups=3, unit=[f"u{place}" for place in range(len(parts))])
    assert is_fair(counted(connection, plan), each=3)


@pytest.mark.parametrize(
    "keys", [("j % 3", "j // 3"), ("j % 2", "'a' || (j // 2 % 2)", "j // 4"), ("j", "j", "-j", "'a' || j")]
)
def test_keys_of_several_columns(connection, keys):
    crossed(connection, "i", *keys)
    names = ", ".join(f"k{place}" for place in range(len(keys)))
    plan = plan_of(connection, f"SELECT {names}, COUNT(*) AS n FROM t GROUP BY {names}", groups=5)
    assert is_fair(counted(connection, plan), each=5)


def test_declared_keys(connection):
    crossed(connection, "i", "j")
    plan = plan_of(connection, BY_KEY, groups=4, columns={"k0": {"values": [1, 2, 4, 5, 6, 7, 10]}})
    assert is_fair(counted(connection, plan), each=4, of=7)


# -- rows and values in a key ----------------------------------------------------------------------------------
RANGES = {"k0": {"values": [*range(KEYS)]}, "x": {"range": [0, KEYS - 1]}}


def test_rows_of_a_quantile_whose_keys_are_chosen_first(connection):
    connection.execute(f"""CREATE OR REPLACE TABLE t AS SELECT i AS u, k AS k0, j AS x
        FROM range(8000) r(i), range(6) q(k), range({KEYS}) s(j)""")
    columns = {**RANGES, "k0": {"values": [*range(6)]}}
    plan = plan_of(connection, "SELECT k0, MEDIAN(x) AS m FROM t GROUP BY k0", groups=2, columns=columns)
    cells = {row[:2]: row[2] for row in connection.execute(plan.sql).fetchall()}
    assert is_fair(
        (sum(n for (key, _), n in cells.items() if key == each) for each in range(6)), 8000, 2, of=6
    )
    assert is_fair(
        (sum(n for (_, value), n in cells.items() if value == each) for each in range(KEYS)), 16_000
    )
    assert is_fair(cells.values(), 8000, 2, of=6 * KEYS)


def test_each_row_of_a_quantile_is_as_likely_as_any_other(connection):
    """One unit in two has nine rows of 0 and one row of each other value up to 3, the others one of each."""
    connection.execute("""CREATE OR REPLACE TABLE t AS SELECT i AS u, unnest(CASE WHEN i % 2 = 0
        THEN [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3] ELSE [0, 1, 2, 3] END) AS x FROM range(40000) r(i)""")
    for most in (1, 3):
        plan = plan_of(
            connection, "SELECT MEDIAN(x) AS m FROM t", rows=most, columns={"x": {"range": [0, 3]}}
        )
        kept = [rows for _, rows in sorted(connection.execute(plan.sql).fetchall())]
        chances = [(9 / 12 + 1 / 4) / 2, *[(1 / 12 + 1 / 4) / 2] * 3]
        assert sum(kept) == 40_000 * most
        for count, chance in zip(kept, chances, strict=True):
            assert abs(count - 40_000 * most * chance) < 5 * (40_000 * most * chance) ** 0.5


@pytest.mark.parametrize("most", [2**14, 2**14 + 2])
def test_many_rows_of_one_unit(connection, most):
    connection.execute("CREATE OR REPLACE TABLE t AS SELECT 1 AS u, i % 4 AS x FROM range(60000) r(i)")
    plan = plan_of(connection, "SELECT MEDIAN(x) AS m FROM t", rows=most, columns={"x": {"range": [0, 3]}})
    kept = [rows for _, rows in connection.execute(plan.sql).fetchall()]
    assert sum(kept) == most
    assert max(kept) - min(kept) <= 1


def test_counts_that_exclude_each_other_have_their_shares(connection):
    """Each used to take what those before it had left: with one row a unit, the first took all."""
    crossed(connection, "i", "j % 3")
    counts = ", ".join(f"COUNT(*) FILTER (WHERE x % 3 = {each}) AS n{each}" for each in range(3))
    plan = plan_of(connection, f"SELECT {counts} FROM t")
    assert len(plan.measurements) == 1
    assert is_fair(connection.execute(plan.sql).fetchone(), of=3)


@pytest.mark.parametrize("value", ["x", "'v' || x", "x / 2.0", "DATE '2024-01-01' + CAST(x AS INTEGER)"])
def test_distinct_values_of_a_unit(connection, value):
    """In each key one unit with all values, and one with a single value: it adds one unless that was chosen anyway."""
    connection.execute(f"""CREATE OR REPLACE TABLE t AS SELECT i AS u, i // 2 AS k0, j AS x
        FROM range({2 * UNITS}) r(i), range({KEYS}) s(j) WHERE i % 2 = 0 OR j = i // 2 % {KEYS}""")
    plan = plan_of(connection, f"SELECT k0, COUNT(DISTINCT {value}) AS n FROM t GROUP BY k0", rows=3)
    chosen = connection.execute(
        f"SELECT count(*) FILTER (WHERE count_1 = 3) FROM ({plan.sql}) GROUP BY k0 % {KEYS}"
    ).fetchall()
    expected, sd = UNITS / KEYS / 4, (UNITS / KEYS * 3 / 16) ** 0.5
    assert sum(((count - expected) / sd) ** 2 for (count,) in chosen) < stats.chi2.isf(RARE, KEYS)


# -- rows that share a value ------------------------------------------------------------------------------------
def matched(connection: duckdb.DuckDBPyConnection, rows: str) -> list[int]:
    connection.execute(f"""CREATE OR REPLACE TABLE doctors (id INTEGER UNIQUE); INSERT INTO doctors FROM range({UNITS});
        CREATE OR REPLACE TABLE visits AS SELECT i AS doctor, unnest({rows}) AS x FROM range({UNITS}) r(i)""")
    tables = {"visits": {"matches": {"doctor": 1}, "columns": {"x": {"range": [0, KEYS - 1]}}}, "doctors": {}}
    sql = "SELECT x, COUNT(*) AS n FROM visits JOIN doctors ON doctor = id GROUP BY x"
    plan = privsql.connect(connection, {"tables": tables}).explain(sql, epsilon=1)
    return [count for _, count in sorted(connection.execute(plan.sql).fetchall())]


def test_rows_that_share_a_value(connection):
    assert is_fair(matched(connection, f"range({KEYS})"))


def test_equal_rows_that_share_a_value_are_chosen_one_by_one(connection):
    many, few = matched(connection, "[0, 0, 0, 0, 0, 0, 0, 0, 0, 1]")
    assert many + few == UNITS
    assert abs(few - UNITS / 10) < 5 * (UNITS * 0.09) ** 0.5


# -- prepared copies --------------------------------------------------------------------------------------------
def prepared(path, rows: str, sql: str, **table: object) -> list[tuple[object, ...]]:
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t AS {rows}")
    policy = {"tables": {"t": {"unit": "u", "max_groups": 1, "max_rows": 1, "columns": RANGES, **table}}}
    with privsql.connect(path, policy) as session:
        session.prepare("t")
        plan = session.explain(sql, epsilon=1)
        assert "privsql_prepared" in plan.sql
        return session._pipeline.engine._connection.execute(plan.sql).fetchall()


def test_rows_of_a_prepared_copy(tmp_path):
    rows = f"SELECT i AS u, j AS k0, j AS x FROM range({UNITS}) r(i), range({KEYS}) s(j)"
    assert is_fair(row[-1] for row in prepared(tmp_path / "a.duckdb", rows, BY_KEY))


def test_equal_rows_of_a_prepared_copy_are_chosen_one_by_one(tmp_path):
    rows = f"SELECT i AS u, unnest([0, 0, 0, 0, 0, 0, 0, 0, 0, 1]) AS k0, 0 AS x FROM range({UNITS}) r(i)"
    kept = {row[0]: row[-1] for row in prepared(tmp_path / "a.duckdb", rows, BY_KEY)}
    assert sum(kept.values()) == UNITS
    assert abs(kept[1] - UNITS / 10) < 5 * (UNITS * 0.09) ** 0.5


def test_units_by_key_of_a_prepared_copy(tmp_path):
    rows = f"SELECT i AS u, j AS k0, j AS x FROM range({UNITS}) r(i), range({KEYS}) s(j)"
    kept = prepared(
        tmp_path / "a.duckdb", rows, "SELECT k0, COUNT(DISTINCT u) AS n FROM t GROUP BY k0", max_groups=3
    )
    assert is_fair((row[-1] for row in kept), each=3)


def test_a_copy_made_by_another_hash_is_not_used(tmp_path, monkeypatch):
    path = tmp_path / "a.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            f"CREATE TABLE t AS SELECT i % 50 AS u, i % {KEYS} AS k0, i % 7 AS x FROM range(2000) r(i)"
        )
    policy = {"tables": {"t": {"unit": "u", "columns": RANGES}}}
    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "operations", PLAIN)
        with privsql.connect(path, policy) as session:
            session.prepare("t")
            assert "privsql_prepared" in session.explain(BY_KEY, epsilon=1).sql
    with privsql.connect(path, policy) as session:
        assert "privsql_prepared" not in session.explain(BY_KEY, epsilon=1).sql


PLAIN = {**DuckDB.operations, Operation.HASH: "hash({args})"}  # without the second hash that mixes the first


# -- that the tests would see it -------------------------------------------------------------------------------
def test_a_plain_hash_is_unfair(connection, monkeypatch):
    crossed(connection, "i", "j")
    monkeypatch.setattr(DuckDB, "operations", PLAIN)
    assert not keys_are_fair(connection)


def test_reusing_a_hash_is_unfair(connection):
    """Why each kind of choice has numbers of its own: of groups of 2 and of 12 one is kept in each, then one of all."""
    connection.execute(f"""CREATE OR REPLACE TABLE t AS SELECT i AS u, g, 12 * g + j AS j
        FROM range({UNITS}) r(i), (VALUES (0, 2), (1, 12)) v(g, n), range(12) s(j) WHERE j < n""")

    def is_second_choice_fair(second: FairChoice) -> bool:
        one, two = (
            DUCKDB.scalar(fair_hash(each, Name("u"), Name("j"))) for each in (FairChoice.KEYS, second)
        )
        kept = f"SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY u, g ORDER BY {one}) = 1"
        of_all = f"SELECT g FROM ({kept}) QUALIFY row_number() OVER (PARTITION BY u ORDER BY {two}) = 1"
        return is_fair(
            (
                row[-1]
                for row in connection.execute(f"SELECT g, count(*) FROM ({of_all}) GROUP BY g").fetchall()
            ),
            of=2,
        )

    assert not is_second_choice_fair(FairChoice.KEYS)
    for other in set(FairChoice) - {FairChoice.KEYS}:
        assert is_second_choice_fair(other), other


@pytest.mark.parametrize("key", [0, 7])
def test_a_bias_of_a_tenth_is_detected(connection, key):
    """One unit in ten lacks a key, and has another instead: that key is kept a tenth less often."""
    crossed(connection, "i", f"CASE WHEN i % 10 = 0 AND j = {key} THEN 3 ELSE j END")
    kept = counted(connection, plan_of(connection, BY_KEY, groups=3))
    assert 0.88 < sorted(kept)[0] / (UNITS / 4) < 0.93
    assert not is_fair(kept, each=3)
