"""A seed goes in; a world of people with many rows comes out: tables, a policy, and neighbours in all tables at once.

A person is one value of the unit in every table (in `rooms` with one clinic), and one row of each row-level table.
Neighbours replace one person's whole data by anything, or add or remove a person. What is nobody's (a NULL unit, items
of orders that are not there) may change besides: it counts nowhere. All other rows stay, in another physical order.
"""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import duckdb

from tests.soundness import worlds
from tests.soundness.worlds import Column, ListColumn, Row, deny_null, list_column

_ODD = ["value_1", "count_1", "units", "sum_1", "above_1", "moment_1", '"g h"', "rank"]
_UNITS = {
    "INTEGER": ["1", "2", "3", "4", "5", "2147483647"],
    "BIGINT": ["1", "2", "-3", "4", "5", "9223372036854775807"],
    "VARCHAR": ["'u1'", "'u2'", "''", "'4'", "'x y'", "'it''s'"],
    "DECIMAL(6,1)": ["1", "2.5", "-3", "4", "0", "99999.9"],
    "DOUBLE": ["0.0", "1.5", "CAST('nan' AS DOUBLE)", "CAST('inf' AS DOUBLE)", "2.0", "-1.0"],
    "UUID": [f"'{n}0000000-0000-0000-0000-000000000000'" for n in "123abc"],
    "TIMESTAMP_NS": [
        f"make_timestamp_ns({n})" for n in (1, 2, 3, 1001, 1002, 9001)
    ],  # people who are one once nanoseconds are cut off
}
_CODES = {
    "INTEGER": "{}", "BIGINT": "{}", "VARCHAR": "'c{}'", "DOUBLE": "CAST({} AS DOUBLE) / 2", "DECIMAL(8,2)": "CAST({} AS DECIMAL(8,2)) / 100",
    "TIMESTAMP_NS": "make_timestamp_ns({})", "DATE": "DATE '2024-01-01' + {}",
}  # fmt: skip


@dataclass
class Table:
    """One table. `lead` are the columns that say whose and which: (name, type, constraint, what it holds)."""

    name: str
    form: str  # once, many, refers, deep, rooms, rows, public
    lead: list[tuple[str, str, str, str]]
    columns: list[Column]
    policy: dict[str, Any]
    pool: list[Row] = field(default_factory=list)
    also: str = ""  # a constraint on several columns
    tags: ListColumn | None = None

    @property
    def ddl(self) -> str:
        lines = [f"{name} {type_} {constraint}".strip() for name, type_, constraint, _ in self.lead]
        lines += [c.ddl for c in (*self.columns, *([self.tags] if self.tags else []))]
        return f"CREATE OR REPLACE TABLE {self.name} ({', '.join(lines)}{self.also})"


@dataclass
class World:
    """Everything one seed made. `tables` are the base and its neighbours: rows by table name."""

    by_name: dict[str, Table]
    policy: dict[str, Any]
    relation: str
    threads: int
    unit_type: str
    crowded: (
        str  # the one table in which somebody may have thousands of rows: in two, joins of them take too long
    )
    tables: list[dict[str, list[Row]]] = field(default_factory=list)

    def describe(self) -> str:
        return f"threads {self.threads}; {[t.ddl for t in self.by_name.values()]} {self.policy}"


def make_world(rng: Random, scratch: duckdb.DuckDBPyConnection, neighbours: int) -> World:
    relation = rng.choice(["replace-one", "add-remove"])
    unit_type = rng.choice((["INTEGER"] * 3 + ["VARCHAR"] * 2) * 5 + list(_UNITS))
    tables = _tables(rng, unit_type, _vocabulary(rng))
    policy = {"neighbours": relation, "tables": {t.name: t.policy for t in tables}}
    world = World(
        {t.name: t for t in tables},
        policy,
        relation,
        4 if rng.random() < 0.12 else 1,
        unit_type,
        rng.choice(tables).name,
    )
    _fill(rng, world, neighbours)
    own = Random(f"lists {world.describe()}")  # apart, so that all else stays the same
    for table in tables:
        if own.random() < 0.5:
            table.tags = list_column(own, "tags")
            if table.tags.policy and table.form != "public":
                table.policy["columns"]["tags"] = {table.tags.policy[0]: list(table.tags.policy[1])}
    for table in tables:
        if table.form != "public":
            deny_null(own, table.policy["columns"], table.columns)
    return world


# -- the schema ----------------------------------------------------------------------------------------------
def _vocabulary(rng: Random) -> list[Column]:
    """Columns that tables share by name and type, so that they can be joined and put together."""
    makers = [_small, worlds._integer, rng.choice([_cents, worlds._decimal]), _zeros, worlds._text, worlds._boolean,
              rng.choice([worlds._date, worlds._timestamp, worlds._enum, worlds._float])]  # fmt: skip
    names = ["n", "a", "x", "y_1", "k", "b", "D"]
    if rng.random() < 0.4:
        names[rng.randrange(7)] = (
            rng.choice(_ODD) if rng.random() < 0.97 else "privsql_unit"
        )  # a table with that one is refused
    return [replace(maker(rng, name), check=None) for maker, name in zip(makers, names, strict=True)]


def _small(rng: Random, name: str) -> Column:
    """An INTEGER of few values, good as a key."""
    low, high = rng.choice([(0, 2), (1, 6), (-1, 1), (0, 9)])
    pool = tuple(str(n) for n in sorted({low - 1, low, low + 1, high, high + 1}))
    return Column(
        name,
        "int",
        "INTEGER",
        pool,
        (str(low), str(high)),
        {"range": [low, high]},
        rng.random() < 0.3,
        None,
        True,
        True,
    )


def _cents(rng: Random, name: str) -> Column:
    """DECIMALs that are equal once rounded."""
    pool = tuple(f"CAST({n} AS DECIMAL(10,2))" for n in ("1.00", "1.01", "1.02", "1.03", "1.04", "2.5", "12"))
    return Column(
        name, "num", "DECIMAL(10,2)", pool, (pool[0], pool[-2]), {"range": [0, 10]}, False, None, True
    )


def _zeros(rng: Random, name: str) -> Column:
    """DOUBLEs with zeros of both signs, which are equal and not the same."""
    column, zeros = worlds._double(rng, name), ("CAST('-0.0' AS DOUBLE)", "CAST('0.0' AS DOUBLE)")
    return replace(
        column,
        pool=(*column.pool[: rng.choice([0, 20])], *zeros),
        ends=zeros if rng.random() < 0.15 else column.ends,
    )


def _tables(rng: Random, unit: str, vocabulary: list[Column]) -> list[Table]:
    same = rng.random() < 0.4  # the unit is called alike everywhere: USING
    id_, customer, user, patient = ("uid",) * 4 if same else ("id", "customer_id", "user_id", "patient")
    wider = "BIGINT" if unit == "INTEGER" and rng.random() < 0.3 else unit
    reference = rng.choice([f"{customer} -> customers.{id_}", f"{customer} -> customers.{id_}", customer])
    code, oid = (
        rng.choice(["INTEGER"] * 4 + list(_CODES)),
        rng.choice(["INTEGER"] * 20 + ["BIGINT"] * 5 + ["VARCHAR"]),
    )
    found = [
        Table(
            "customers",
            "once",
            [(id_, unit, "PRIMARY KEY", "unit"), ("code", code, "UNIQUE", "code")],
            [],
            {"unit": id_},
        ),
        Table(
            "orders",
            "refers",
            [("oid", "INTEGER", "PRIMARY KEY", "oid"), (customer, wider, "", "unit")],
            [],
            {"unit": reference},
        ),
    ]
    if rng.random() < 0.15:  # a promise instead of a constraint
        found[0] = Table(
            "customers",
            "once",
            [(id_, unit, "", "unit"), ("code", code, "UNIQUE", "code")],
            [],
            {"unit": id_, "unique": [id_]},
        )
    items = Table(
        "items",
        "deep",
        [("oid", oid, "", "oid"), ("line", "INTEGER", "", "line")],
        [],
        {"unit": "oid -> orders.oid"},
    )
    others = [
        [items],
        [Table("visits", "many", [(user, unit, rng.choice(["", "NOT NULL"]), "unit")], [], {"unit": user})],
        [Table("logins", "many", [(user, unit, "", "unit"), ("wid", "INTEGER", "UNIQUE", "wid")], [], {"unit": rng.choice([user, f"{user} -> customers.{id_}"])})],
        [Table("rooms", "rooms", [("clinic", "INTEGER", "", "clinic"), (patient, wider, "", "patient")], [], {"unit": ["clinic", patient]})],
        [Table("members", "once", [(id_, unit, "UNIQUE", "unit"), ("code", code, "UNIQUE", "code")], [], {"unit": id_})],
        [Table("people", "rows", [("code", code, rng.choice(["UNIQUE", "PRIMARY KEY"]), "code")], [], {}),
         Table("surveys", "rows", [("code", "BIGINT" if code == "INTEGER" and rng.random() < 0.3 else code, "UNIQUE", "code")], [], {})],
    ]  # fmt: skip
    if rng.random() < 0.5:
        items.also = ", PRIMARY KEY (oid, line)"
        notes = {"unit": ["oid -> items.oid", "line -> items.line"]}  # three steps away from its unit
        others[0].append(
            Table("notes", "deep", [("oid", oid, "", "oid"), ("line", "INTEGER", "", "line")], [], notes)
        )
    found += [each for group in rng.sample(others, 2) for each in group]
    public = [
        Table("skus", "public", [("pk", "INTEGER", "PRIMARY KEY", "code")], [], {"public": True}),
        Table("pub", "public", [], [], {"public": True}),
        Table("nothing", "public", [], [], {"public": True}),
    ]
    found += public[:2] if rng.random() < 0.8 else public
    for table in found:
        table.columns = sorted(rng.sample(vocabulary, rng.randint(2, 4)), key=vocabulary.index)
        declared = {c.name.strip('"').lower(): c.policy for c in table.columns if c.policy}
        if table.form != "public":
            table.policy["columns"] = declared
        if table.form in ("many", "refers", "deep", "rooms"):
            table.policy |= {"max_groups": rng.randint(1, 4), "max_rows": rng.randint(1, 5)}
        if table.form in ("once", "rows"):
            table.policy["matches"] = {
                c.name.strip('"'): rng.randint(1, 3) for c in table.columns if rng.random() < 0.6
            }
        table.pool = _pool(rng, table.columns)
    return found


def _pool(rng: Random, columns: list[Column]) -> list[Row]:
    wanted: list[Row] = [tuple(c.ends[0] for c in columns), tuple(c.ends[1] for c in columns)]
    wanted += [tuple(rng.choice(c.ends) for c in columns) for _ in range(3)]
    wanted.append(tuple(c.ends[0] if c.required else "NULL" for c in columns))
    for _ in range(10):
        nulls = rng.choice([0.0, 0.1, 0.4])
        wanted.append(
            tuple("NULL" if not c.required and rng.random() < nulls else rng.choice(c.pool) for c in columns)
        )
    return list(dict.fromkeys(wanted))


# -- data ----------------------------------------------------------------------------------------------------
_NOBODYS = ["901", "902", "903"]  # orders that are not there, unless somebody new has them


@dataclass
class Maker:
    """Makes rows, keeping UNIQUE columns unique: `taken` has the values in use by table and column."""

    rng: Random
    world: World
    taken: dict[str, set[str]]

    def person(self, unit: str, much: bool, claims: bool = False) -> dict[str, list[Row]]:
        """All rows of one person in the tables that have units; `claims`: also orders whose items are there already."""
        rng, found = self.rng, {}
        first = 100 * _UNITS[self.world.unit_type].index(unit)
        oids = [str(first + i) for i in range(60)]
        if claims:
            oids = [*rng.sample(_NOBODYS, 2), *oids]
        oids = oids[: len(self._rows("orders", much))]
        for name, table in self.world.by_name.items():
            if table.form in ("public", "rows") or (table.form == "deep" and not oids):
                continue
            rows = self._rows(name, much)
            if table.form == "once":
                rows = rows[:1]
            elif table.form == "refers":
                rows = rng.choices(table.pool[: rng.choice([1, 2, 20])], k=len(oids))
            elif "wid" in table.ddl:
                rows = rows[:60]
            found[name] = [(*self._lead(table, unit, oids, place), *row) for place, row in enumerate(rows)]
        return found

    def _lead(self, table: Table, unit: str, oids: list[str], place: int) -> Row:
        values = {
            "unit": unit,
            "patient": unit,
            "clinic": "1",
            "line": str(place),
            "oid": oids[place % len(oids)] if oids else "NULL",
        }
        return tuple(
            values.get(what) or self.code(table, name, constraint) for name, _, constraint, what in table.lead
        )

    def code(self, table: Table, name: str, constraint: str) -> str:
        """A value of a UNIQUE column that no other row has; sometimes NULL."""
        if constraint == "UNIQUE" and self.rng.random() < 0.12:
            return "NULL"
        used = self.taken.setdefault(f"{table.name}.{name}", set())
        free = [each for n in range(10) if (each := str(n)) not in used] or [str(100 + len(used))]
        chosen = self.rng.choice(free)
        used.add(chosen)
        return _CODES[next(type_ for other, type_, _, _ in table.lead if other == name)].format(chosen)

    def _rows(self, name: str, much: bool) -> list[Row]:
        """None, few or very many rows; all alike, at the ends of every range, or all sorts."""
        rng, pool = self.rng, self.world.by_name[name].pool
        match rng.choice(
            ["none", "one", "few", "few", "ends", "spread"]
            if not much
            else ["none", "one", "few", "spread", "crowd", "one end", "one end"]
        ):
            case "none":
                return []
            case "one":
                return [rng.choice(pool)]
            case "few":
                return rng.choices(pool, k=rng.randint(2, 5))
            case "ends":
                return rng.choices(pool[:2], k=rng.randint(2, 8))
            case "spread":
                return pool * rng.randint(1, 2)
            case "one end":
                return [rng.choice(pool[:2])] * rng.randint(6, 40)
            case _:
                return rng.choices(
                    rng.choice([pool, pool[:2]]),
                    k=rng.choice([100, 300, 2000] if name == self.world.crowded else [20, 40, 60]),
                )

    def single(self, table: Table) -> Row:
        """One row of a row-level table."""
        row = self.rng.choice(table.pool[:2]) if self.rng.random() < 0.5 else self.rng.choice(table.pool)
        return (*(self.code(table, name, constraint) for name, _, constraint, _ in table.lead), *row)

    def nobodys(self, table: Table) -> list[Row]:
        """Rows without a unit, and items of orders that are not there."""
        rng, found = self.rng, []
        can_be_null = [
            name
            for name, _, constraint, what in table.lead
            if what in ("unit", "patient", "clinic") and constraint in ("", "UNIQUE")
        ]
        for place in range(rng.choice([0, 0, 1, 6])):
            lead = list(
                self._lead(
                    table, _UNITS[self.world.unit_type][0], [rng.choice([*_NOBODYS, "910"])], 5000 + place
                )
            )
            if table.form == "refers":
                lead[0] = str(910 + place)
            elif table.form == "deep" and table.lead[0][1] == "VARCHAR" and rng.random() < 0.3:
                lead[0] = "'no number'"
            gone = rng.choice(can_be_null) if can_be_null else None
            lead = [
                "NULL" if each[0] == gone else value for each, value in zip(table.lead, lead, strict=True)
            ]
            if gone is not None or table.form == "deep":
                found.append((*lead, *rng.choice(table.pool)))
        return found


def _fill(rng: Random, world: World, neighbours: int) -> None:
    """The base has a person who is replaced, or does not have the person who comes: pairs are unordered."""
    units = rng.sample(_UNITS[world.unit_type], 6)
    stranger, who, *others = units
    maker = Maker(rng, world, {})
    fixed: dict[str, list[Row]] = {name: [] for name in world.by_name}
    for unit in others[: rng.choice([0, 1, 2, 3, 4])]:
        for name, rows in maker.person(unit, much=rng.random() < 0.1).items():
            fixed[name] += rows
    for name, table in world.by_name.items():
        if table.form == "public":
            count = 0 if name == "nothing" else rng.choice([1, 3, 6])
            few = table.pool[: rng.choice([2, 20])]
            fixed[name] = [(*(str(n) for _ in table.lead), *rng.choice(few)) for n in range(count)]
        elif table.form == "rows":
            fixed[name] = [maker.single(table) for _ in range(rng.choice([0, 1, 3, 8]))]
        elif table.form == "rooms":
            fixed[name] += [
                ("2", unit, *rng.choice(table.pool))
                for unit in units
                for _ in range(rng.choice([0, 0, 1, 9]))
            ]
    kept = {name: set(used) for name, used in maker.taken.items()}
    for index in range(neighbours + 1):
        maker.taken = {name: set(used) for name, used in kept.items()}
        absent = world.relation == "add-remove" and index == 0
        own = (
            {}
            if absent
            else maker.person(
                who if index == 0 or rng.random() < 0.7 else stranger,
                much=rng.random() < 0.6,
                claims=rng.random() < 0.2,
            )
        )
        tables = {}
        for name, table in world.by_name.items():
            rows = [*fixed[name], *own.get(name, [])]
            if (
                table.form == "rows"
                and not absent
                and (world.relation == "replace-one" or rng.random() < 0.8)
            ):
                rows.append(maker.single(table))
            if table.form not in ("public", "rows"):
                rows += maker.nobodys(table)
            if index and table.form != "public":
                rng.shuffle(rows)
            tables[name] = rows
        world.tables.append(tables)


def load(connection: duckdb.DuckDBPyConnection, world: World, tables: dict[str, list[Row]] | None) -> None:
    """Create the world's tables on a connection and fill them (None: private ones stay empty)."""
    there = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    script = ["BEGIN", *(f"DROP TABLE {name}" for (name,) in there)]
    for name, table in world.by_name.items():
        script.append(table.ddl)
        rows = world.tables[0][name] if tables is None else tables[name]
        if not rows or (tables is None and table.form != "public"):
            continue
        if table.tags is not None:
            rows = [(*row, table.tags.value(row)) for row in rows]
        different = {row: place for place, row in enumerate(dict.fromkeys(rows))}
        if len(different) > 0.5 * len(rows):
            script.append(f"INSERT INTO {name} VALUES " + ", ".join(f"({', '.join(row)})" for row in rows))
            continue
        order = [different[row] for row in rows]
        script += [
            f"CREATE TEMP TABLE different AS SELECT *, 0 AS privsql_place FROM {name} LIMIT 0",
            "INSERT INTO different VALUES "
            + ", ".join(f"({', '.join(row)}, {place})" for row, place in different.items()),
            f"INSERT INTO {name} SELECT d.* EXCLUDE (privsql_place) FROM (SELECT unnest({order}) AS p, unnest(range({len(order)})) AS o) "
            "JOIN different AS d ON d.privsql_place = p ORDER BY o",
            "DROP TABLE different",
        ]
    connection.execute(";\n".join([*script, "COMMIT"]))
