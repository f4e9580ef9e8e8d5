"""A seed goes in; a world comes out: a schema with constraints, a policy, a table and neighbours of it, all as SQL text.

Data is adversarial: NULL, NaN, infinities, -0.0, the ends of types and of declared ranges, values outside them,
duplicates, empty tables. One row is at the low end of every column and one at the high end, so that replacing the
one by the other moves sums as far as they can go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from random import Random
from typing import Any

import duckdb

INTEGERS = {
    "TINYINT": (-(2**7), 2**7 - 1), "UTINYINT": (0, 2**8 - 1), "SMALLINT": (-(2**15), 2**15 - 1),
    "INTEGER": (-(2**31), 2**31 - 1), "UINTEGER": (0, 2**32 - 1), "BIGINT": (-(2**63), 2**63 - 1),
    "UBIGINT": (0, 2**64 - 1), "HUGEINT": (-(2**127), 2**127 - 1),
}  # fmt: skip
TEXTS = [
    "a",
    "b",
    "Abc",
    "",
    "é",
    "x%y",
    "12",
    "2024-01-03",
    "it''s",
    "NULL",
    "-1.5",
    "a b-c",
    "true",
    "z" * 40,
]


@dataclass(frozen=True)
class Column:
    """One column. `pool` are its values as SQL text, `ends` those at the two ends of what was declared."""

    name: str
    kind: str  # int, num, text, bool, date, ts, time, other
    type: str
    pool: tuple[str, ...]
    ends: tuple[str, str]
    policy: dict[str, Any] | None = None
    required: bool = False
    check: str | None = None
    bounded: bool = False
    keyable: bool = False

    @property
    def ddl(self) -> str:
        return (
            f"{self.name} {self.type}"
            + (" NOT NULL" if self.required else "")
            + (f" CHECK ({self.check})" if self.check else "")
        )


Row = tuple[str, ...]


@dataclass(frozen=True)
class ListColumn:
    """A column of lists. `known` are the elements that were declared, as SQL text, `others` some that were not."""

    name: str
    kind: str
    type: str  # of the elements
    known: tuple[str, ...]
    others: tuple[str, ...]
    policy: tuple[str, tuple[Any, ...]] | None = None
    size: int = 0  # of an array

    @property
    def ddl(self) -> str:
        return f"{self.name} {self.type}[{self.size or ''}]"

    @lru_cache(maxsize=4096)  # noqa: B019 -- a few columns a world
    def value(self, row: Row) -> str:
        """The list of a row: the same wherever the row is the same, so that only one person's changes."""
        own = Random(f"{self} {row}")
        any_ = [*self.known, *self.others, "NULL"]
        if self.size:
            return "NULL" if own.random() < 0.2 else f"[{', '.join(own.choices(any_, k=self.size))}]"
        match own.choice(["null", "empty", "all", "all", "all", "one", "some", "some"]):
            case "null":
                return "NULL"
            case "empty":
                return own.choice(["[]", "[NULL]", f"[{self.others[0]}]" if self.others else "[]"])
            case "all":  # twice, and more
                found = [*self.known, *self.known, *self.others, "NULL"]
                return f"[{', '.join(own.sample(found, len(found)))}]"
            case "one":
                return f"[{', '.join([own.choice(any_)] * own.choice([1, 2, 60]))}]"
            case _:
                return f"[{', '.join(own.choices(any_, k=own.randint(1, 5)))}]"


def list_column(own: Random, name: str) -> ListColumn:
    texts = tuple(f"'{each}'" for each in TEXTS)
    values = own.randint(1, 4)
    match own.choice(
        [
            "VARCHAR",
            "VARCHAR",
            "INTEGER",
            "TINYINT",
            "HUGEINT",
            "array",
            "BOOLEAN",
            "ENUM",
            "DATE",
            "DECIMAL",
            "TIMESTAMP_NS",
            "UUID",
        ]
    ):
        case "VARCHAR":
            listed = own.sample(texts, 6)
            declared = tuple(each[1:-1].replace("''", "'") for each in listed[:values])
            return ListColumn(
                name,
                "text",
                "VARCHAR",
                tuple(listed[:values]),
                (*listed[values:], "'A'", "'a '"),
                ("values", declared),
            )
        case "BOOLEAN":
            return ListColumn(name, "bool", "BOOLEAN", ("TRUE", "FALSE"), ())
        case "ENUM":
            return ListColumn(name, "text", "ENUM('p', 'q', 'r s')", ("'p'", "'q'", "'r s'"), ())
        case "DATE":
            known = tuple(f"DATE '2024-01-0{day}'" for day in range(1, values + 1))
            return ListColumn(
                name,
                "date",
                "DATE",
                known,
                ("DATE 'infinity'", "DATE '2023-12-31'"),
                ("range", ("2024-01-01", f"2024-01-0{values}")),
            )
        case "DECIMAL":
            numbers = own.sample(["0", "1.5", "-2.5", "99.9"], values)
            known = tuple(f"CAST({each} AS DECIMAL(4,1))" for each in numbers)
            return ListColumn(
                name,
                "num",
                "DECIMAL(4,1)",
                known,
                ("CAST(7 AS DECIMAL(4,1))",),
                ("values", tuple(map(Decimal, numbers))),
            )
        case "TIMESTAMP_NS":  # which are one once nanoseconds are cut off
            known = tuple(f"make_timestamp_ns(1000000000 + {each})" for each in (0, 1, 999))
            return ListColumn(
                name,
                "ts",
                "TIMESTAMP_NS",
                known,
                ("make_timestamp_ns(5)",),
                ("values", ("1970-01-01 00:00:01",)),
            )
        case "UUID":
            known = tuple(f"UUID '{each}0000000-0000-0000-0000-000000000000'" for each in "ab")
            return ListColumn(
                name,
                "text",
                "UUID",
                known,
                (f"UUID '{'f' * 8}-0000-0000-0000-000000000000'",),
                ("values", tuple(each[6:-1] for each in known)),
            )
        case type_:
            low = own.choice([0, 1, -2])
            known = tuple(str(low + each) for each in range(values))
            size = 3 if type_ == "array" else 0
            return ListColumn(
                name,
                "int",
                "INTEGER" if size else type_,
                known,
                (str(low - 1), str(low + values)),
                ("range", (low, low + values - 1)),
                size,
            )


@dataclass
class World:
    """Everything one seed made. `tables` are the base and its neighbours: rows by table name."""

    columns: list[Column]
    policy: dict[str, Any]
    relation: str
    unit: bool
    pool: list[Row] = field(default_factory=list)
    tables: list[dict[str, list[Row]]] = field(default_factory=list)
    threads: int = 1
    lists: list[ListColumn] = field(default_factory=list)

    def describe(self) -> str:
        return f"{[c.ddl for c in (*self.columns, *self.lists)]} {self.policy['tables']['t']}"

    @property
    def names(self) -> tuple[str, ...]:
        return ("t", "t2", "pub")

    def ddl(self, table: str) -> str:
        lines = [column.ddl for column in self.columns]
        if self.unit:
            lines.append("id INTEGER UNIQUE")
        lines += [column.ddl for column in self.lists]
        return f"CREATE OR REPLACE TABLE {table} ({', '.join(lines)})"


def make_world(rng: Random, scratch: duckdb.DuckDBPyConnection, neighbours: int) -> World:
    relation = rng.choice(["replace-one", "add-remove"])
    columns = _columns(rng)
    unit = rng.random() < 0.15
    declared = {column.name.strip('"').lower(): column.policy for column in columns if column.policy}
    private: dict[str, Any] = {"columns": declared}
    if unit:
        private["unit"] = "id"
    policy = {
        "neighbours": relation,
        "tables": {"t": private, "t2": private, "pub": {"public": True, "columns": declared}},
    }
    world = World(columns, policy, relation, unit)
    world.pool = _valid_rows(rng, world, scratch)
    _fill(rng, world, neighbours)
    own = Random(f"lists {world.describe()}")  # apart, so that all else stays the same
    world.lists = [list_column(own, name) for name in ("l_1", "l_2")[: own.choice([0, 1, 2])]]
    declared |= {
        column.name: {column.policy[0]: list(column.policy[1])} for column in world.lists if column.policy
    }
    deny_null(own, declared, columns)
    return world


def deny_null(own: Random, declared: dict[str, Any], columns: Sequence[Column]) -> None:
    """Of some columns the owner says that they are never NULL; the rows do not care."""
    for column in columns:
        if own.random() < 0.25:
            declared[column.name.strip('"').lower()] = {**(column.policy or {}), "nullable": False}


# -- columns -------------------------------------------------------------------------------------------------
def _columns(rng: Random) -> list[Column]:
    makers = [_integer, _integer, _double, _decimal, _text, _boolean, _date, _timestamp, _enum]
    chosen = [
        _integer,
        rng.choice([_double, _decimal]),
        rng.choice([_text, _enum]),
        *rng.sample(makers, rng.randint(2, 4)),
    ]
    if rng.random() < 0.3:
        chosen.append(rng.choice([_time, _uuid, _float, _list]))
    names = ["a", "b", "c", "D", "e_1", "f", '"g h"', "count_1", "sum_1"]
    rng.shuffle(names)
    return [maker(rng, name) for maker, name in zip(chosen, names, strict=False)]


def _required(rng: Random) -> bool:
    return rng.random() < 0.3


def _integer(rng: Random, name: str) -> Column:
    type_ = rng.choice(list(INTEGERS))
    low, high = rng.choice(
        [(0, 10), (5, 9), (-9, -4), (-3, 4), (0, 0), (100, 1000), (-1000, 5), (1, 2**31), (-(2**62), 7)]
    )
    least, most = INTEGERS[type_]
    numbers = {
        low,
        high,
        low - 1,
        high + 1,
        least,
        most,
        0,
        1,
        2,
        -1,
        3,
        7,
        (low + high) // 2,
        rng.randint(low, high),
    }
    pool = tuple(str(n) for n in sorted(numbers) if least <= n <= most)
    ends = str(min(max(low, least), most)), str(min(max(high, least), most))
    declared = rng.random() < 0.75
    policy: dict[str, Any] | None = {"range": [low, high]} if declared else None
    check = None
    if rng.random() < 0.15:
        check = rng.choice(
            [f"{name} <= {max(least, min(high, most))}", f"{name} >= {max(least, min(low, most))}"]
        )
    if declared and rng.random() < 0.2 and high - low < 40:
        policy = {"values": sorted({n for n in (max(low, 0), high, low, 1, 7) if least <= n <= most})}
    small = type_ in ("TINYINT", "UTINYINT", "SMALLINT")
    return Column(
        name,
        "int",
        type_,
        pool,
        ends,
        policy,
        _required(rng),
        check,
        declared or small,
        declared and high - low < 40,
    )


def _double(rng: Random, name: str, type_: str = "DOUBLE") -> Column:
    low, high = rng.choice(
        [
            (0.0, 1.0),
            (2.5, 7.25),
            (-3.5, -1.25),
            (-1e6, 1e6),
            (0.0, 0.1),
            (-1e15, 1e15),
            (1e-9, 3e-9),
            (5.0, 5.0),
        ]
    )
    numbers = [
        repr(low),
        repr(high),
        repr(low - 0.25),
        repr(high + 0.25),
        repr((low + high) / 2),
        "0.0",
        "-0.0",
        "1.0",
        "-1.5",
        "2.0",
    ]
    if type_ == "DOUBLE":
        numbers += ["1e308", "-1e308", "5e-324", "1e16", "-9223372036854775809.0"]
    special = [f"CAST('{each}' AS {type_})" for each in ("nan", "inf", "-inf")]
    policy = {"range": [low, high]} if rng.random() < 0.8 else None
    keyable = False
    if policy and rng.random() < 0.15:
        policy, keyable = {"values": [low, 1.0, 0.0]}, True
    return Column(
        name,
        "num",
        type_,
        (*numbers, *special),
        (repr(low), repr(high)),
        policy,
        _required(rng),
        None,
        policy is not None,
        keyable,
    )


def _float(rng: Random, name: str) -> Column:
    return _double(rng, name, "FLOAT")


def _decimal(rng: Random, name: str) -> Column:
    precision, scale = rng.choice([(4, 1), (10, 2), (18, 3), (38, 0), (9, 9), (38, 30)])
    top = "9" * (precision - scale) + ("." + "9" * scale if scale else "")
    top = top if precision > scale else "0." + "9" * scale
    low, high = rng.choice([("0", "0.5"), ("-0.5", "-0.1"), ("0.1", "0.3"), ("-0.25", "0.75")] if precision == scale else
                           [("0", "10"), ("1.5", "7"), ("-9", "-2.5"), ("-100", "100.5")])  # fmt: skip
    cast = f"CAST({{}} AS DECIMAL({precision},{scale}))"
    numbers = [low, high, "0", top, "-" + top, *(["1", "3"] if precision > scale else ["0.2"])]
    pool = tuple(cast.format(n) for n in numbers)
    declared = rng.random() < 0.8 and all(len(n.partition(".")[2]) <= scale for n in (low, high))
    policy = {"range": [Decimal(low), Decimal(high)]} if declared else None
    return Column(
        name,
        "num",
        f"DECIMAL({precision},{scale})",
        pool,
        (cast.format(low), cast.format(high)),
        policy,
        _required(rng),
        None,
        declared,
    )


def _text(rng: Random, name: str) -> Column:
    values = rng.sample(TEXTS, 6)
    declared = rng.random() < 0.7
    policy = {"values": [v.replace("''", "'") for v in values[: rng.randint(1, 4)]]} if declared else None
    pool = tuple(f"'{v}'" for v in values)
    return Column(
        name, "text", "VARCHAR", pool, (pool[0], pool[-1]), policy, _required(rng), None, False, declared
    )


def _boolean(rng: Random, name: str) -> Column:
    return Column(
        name, "bool", "BOOLEAN", ("TRUE", "FALSE"), ("FALSE", "TRUE"), None, _required(rng), None, True, True
    )


def _enum(rng: Random, name: str) -> Column:
    pool = ("'p'", "'q'", "'r s'")
    policy = {"values": ["p", "q"]} if rng.random() < 0.3 else None
    return Column(
        name,
        "text",
        "ENUM('p', 'q', 'r s')",
        pool,
        ("'p'", "'r s'"),
        policy,
        _required(rng),
        None,
        False,
        True,
    )


DATES = [
    "infinity",
    "-infinity",
    "5877642-06-25 (BC)",
    "5881580-07-10",
    "0001-01-01",
    "9999-12-31",
    "2024-02-29",
    "1969-12-31",
    "290000-01-01",
]
MOMENTS = ["infinity", "-infinity", "290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54.775806", "0001-01-01 00:00:00",
           "9999-12-31 23:59:59.999999", "2024-02-29 12:30:45.5", "1969-12-31 23:59:59.999999"]  # fmt: skip


def _date(rng: Random, name: str) -> Column:
    low, high = rng.choice(
        [("2024-01-01", "2024-01-12"), ("2023-12-25", "2024-01-07"), ("2020-02-28", "2020-03-02")]
    )
    pool = tuple(f"DATE '{v}'" for v in [low, high, "2024-01-03", *rng.sample(DATES, 4)])
    policy = {"range": [low, high]} if rng.random() < 0.75 else None
    return Column(
        name,
        "date",
        "DATE",
        pool,
        (pool[0], pool[1]),
        policy,
        _required(rng),
        None,
        False,
        policy is not None,
    )


def _timestamp(rng: Random, name: str) -> Column:
    low, high = rng.choice([("2024-01-01", "2024-01-02"), ("2023-12-31 12:00:00", "2024-01-01 13:30:00")])
    finer = ["TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"]
    type_ = rng.choice(["TIMESTAMP", "TIMESTAMP", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", *finer])
    far = (
        rng.sample(MOMENTS, 4)
        if type_ not in finer
        else ["infinity", "-infinity", "2024-01-01 01:00:00", "1969-12-31 23:59:59"]
    )
    pool = tuple(f"CAST('{v}' AS {type_})" for v in [low, high, "2024-01-01 08:15:30", *far])
    policy = {"range": [low, high]} if rng.random() < 0.75 else None
    return Column(name, "ts", type_, pool, (pool[0], pool[1]), policy, _required(rng))


def _time(rng: Random, name: str) -> Column:
    pool = ("TIME '00:00:00'", "TIME '23:59:59.999999'", "TIME '24:00:00'", "TIME '12:30:00'")
    return Column(name, "time", "TIME", pool, pool[:2], None, _required(rng))


def _uuid(rng: Random, name: str) -> Column:
    pool = ("UUID '00000000-0000-0000-0000-000000000000'", "UUID 'ffffffff-ffff-ffff-ffff-ffffffffffff'")
    return Column(name, "other", "UUID", pool, pool, None, _required(rng))


def _list(rng: Random, name: str) -> Column:
    return Column(name, "other", "INTEGER[]", ("[1, 2]", "[]"), ("[]", "[NULL]"))


# -- rows ----------------------------------------------------------------------------------------------------
def _valid_rows(rng: Random, world: World, scratch: duckdb.DuckDBPyConnection) -> list[Row]:
    """Rows that the constraints let in: DuckDB itself is asked."""
    columns = world.columns
    wanted: list[Row] = [tuple(c.ends[0] for c in columns), tuple(c.ends[1] for c in columns)]
    wanted.append(tuple(rng.choice(c.pool) if c.required else "NULL" for c in columns))
    wanted += [tuple(rng.choice(c.ends) for c in columns) for _ in range(3)]
    for _ in range(9):
        nulls = rng.choice([0.0, 0.1, 0.4])
        wanted.append(
            tuple("NULL" if not c.required and rng.random() < nulls else rng.choice(c.pool) for c in columns)
        )
    scratch.execute(world.ddl("scratch"))
    valid = []
    for row in dict.fromkeys(wanted):
        listed = ", ".join([*row, *(["NULL"] if world.unit else [])])
        try:
            scratch.execute(f"INSERT INTO scratch VALUES ({listed})")
            valid.append(row)
        except duckdb.Error:
            continue
    scratch.execute("DROP TABLE scratch")
    return valid


def _fill(rng: Random, world: World, neighbours: int) -> None:
    pool = world.pool
    if not pool:
        world.tables = []
        return

    def some(count: int) -> list[Row]:
        rows = [rng.choice(pool[:6]) if rng.random() < 0.6 else rng.choice(pool) for _ in range(count)]
        return [_with_unit(rng, world, row, index) for index, row in enumerate(rows)]

    least = 1 if world.relation == "replace-one" else 0
    base = {
        "t": some(max(least, rng.choice([0, 1, 1, 2, 3, 6, 12]))),
        "t2": some(rng.choice([1, 2, 4])),
        "pub": some(rng.choice([0, 1, 3])),
    }
    world.tables = [base]
    for _ in range(neighbours):
        changed = {name: list(rows) for name, rows in base.items()}
        table = "t2" if rng.random() < 0.15 else "t"
        rows = changed[table]
        row = rng.choice(pool[:2]) if rng.random() < 0.5 else rng.choice(pool)
        fresh = _with_unit(rng, world, row, 1000)
        if world.relation == "replace-one":
            index = rng.randrange(len(rows))
            if world.unit and rng.random() < 0.5:
                fresh = (*row, rows[index][-1])
            rows[index] = fresh
        elif rows and rng.random() < 0.5:
            rows.pop(rng.randrange(len(rows)))
        else:
            rows.append(fresh)
        world.tables.append(changed)


def _with_unit(rng: Random, world: World, row: Row, number: int) -> Row:
    if not world.unit:
        return row
    return (*row, "NULL" if rng.random() < 0.1 else str(number))


def load(connection: duckdb.DuckDBPyConnection, world: World, tables: dict[str, list[Row]] | None) -> None:
    """Create the world's tables on a connection and fill them (None: private ones stay empty)."""
    tables = tables if tables is not None else {"pub": world.tables[0]["pub"]}
    for name in world.names:
        connection.execute(world.ddl(name))
        if tables.get(name):
            rows = [(*row, *(column.value(row) for column in world.lists)) for row in tables[name]]
            connection.execute(
                f"INSERT INTO {name} VALUES " + ", ".join(f"({', '.join(row)})" for row in rows)
            )
