"""A world of units goes in; SQL over it comes out: joins, per-unit subqueries, semi-joins, unions, and aggregates on top.

Expressions, conditions, keys and the SELECT on top are those of queries.Generator. Columns keep what they hold (`of`):
the unit, an order's number, a code that is UNIQUE, or a column of the vocabulary that several tables share.
"""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from tests.soundness.queries import Generator, Seen
from tests.soundness.unit_worlds import Table
from tests.soundness.windows import WINDOW_CONSTRUCTS, WindowWriter

UNIT_CONSTRUCTS = frozenset({
    "table", "join-unit", "join-left", "join-right", "join-using", "join-comma", "join-raw", "join-back", "join-public", "join-public-left", "join-cross", "join-values",
    "join-public-group", "join-reference", "join-one-to-one", "join-one-to-one-left", "semi-in", "semi-exists", "anti-exists", "semi-join", "anti-join",
    "in-public", "not-in-public", "per-unit", "per-unit-key", "per-unit-having", "per-row", "distinct", "union-all", "union", "unpivot",
    "where-below", "computed", "cte", "odd-alias", "count-distinct", "count-units", "units-filter", "public-only", "threads", "union-tags", "union-several",
    "zero-sign", "lowered", "where-semi", "join-matches", "per-unit-median", "median", "quantile", "quantiles", "min", "max", "unnest", "unnest-public",
    "join-padded",
}) | WINDOW_CONSTRUCTS  # fmt: skip
_PER_UNIT = ["COUNT(*)", "COUNT({any})", "SUM({num})", "SUM({num})", "MIN({any})", "MAX({any})", "AVG({num})", "AVG({num})", "arg_max({any}, {any2})", "arg_min({any}, {any2})",
             "COUNT(DISTINCT {any})", "bool_or({bool})", "bool_and({bool})", "COUNT(*) FILTER (WHERE {bool})", "SUM({num}) FILTER (WHERE {bool})", "COUNT_IF({bool})",
             "first({any} ORDER BY {any2})", "last({any} ORDER BY {any2} DESC NULLS FIRST)", "any_value({any})", "first({any} ORDER BY {any2} DESC) FILTER (WHERE {bool})"]  # fmt: skip
_ODD = ["privsql_unit", "privsql_value_1", "count_1", "privsql_units", "sum_1", "above_1", "PRIVSQL_UNIT"]
_KINDS = {
    "INTEGER": "int",
    "BIGINT": "int",
    "VARCHAR": "text",
    "UUID": "text",
    "TIMESTAMP_NS": "ts",
    "DATE": "date",
}


@dataclass(frozen=True)
class Known(Seen):
    """A column, and what it holds: unit, clinic, oid, code, a word of the vocabulary, or nothing in particular."""

    of: str = ""


@dataclass(frozen=True)
class From:
    """Something to stand in FROM. `form`: unit, once (one row a unit), rooms, rows, public."""

    text: str
    scope: list[Known]
    form: str
    raw: bool = False  # a join as it stands: columns have qualifiers, no alias can be given

    def holding(self, what: str) -> list[Known]:
        return [c for c in self.scope if c.of == what]


@dataclass
class UnitGenerator(Generator):
    """Writes one query over a world of units."""

    odd: set[str] = field(default_factory=set)  # odd names that are taken
    windows: float = 0.1  # how often rows get windows

    # -- tables --------------------------------------------------------------------------------------------
    def table(self, name: str = "t") -> list[Seen]:
        """There is no table t: what is asked of that one alone is asked where everybody has one row."""
        return []

    def read(self, table: Table) -> From:
        lead = [
            Known(name, _KINDS.get(type_, "num"), False, False, ("0", "1", "2", "3") if "INT" in type_ else (), "unit" if what == "patient" else what)
            for name, type_, _, what in table.lead
        ]  # fmt: skip
        public = table.form == "public"
        columns = [
            Known(c.name, c.kind, c.bounded or public, c.keyable or public, c.pool, c.name)
            for c in table.columns
            if c.kind != "other"
        ]
        forms = {"many": "unit", "refers": "unit", "deep": "unit"}
        self.used.add("table")
        return self.unnested(table, From(table.name, [*lead, *columns], forms.get(table.form, table.form)))

    def unnested(self, table: Table, whole: From) -> From:
        """The table, or some of the time with its list made into rows; by itself, so that other queries stay the same."""
        state, tags = self.rng.getstate()[1], table.tags
        own = Random(f"unnest {table.name} {state[0]} {state[-1]}")
        if tags is None or own.random() < 0.6:
            return whole
        self.used.add("unnest-public" if table.form == "public" else "unnest")
        name, public = self.name("yl"), table.form == "public"
        shown = ", ".join(c.name for c in whole.scope)
        element = Known(name, tags.kind, tags.kind == "int" or public, True, tags.known)
        listed = "q.tags" if public and own.random() < 0.5 else "list_distinct(q.tags)"
        text = own.choice([f"SELECT {shown}, UNNEST({listed}) AS {name} FROM {table.name} AS q",
                           f"SELECT {shown}, {name} FROM {table.name} AS q, UNNEST({listed}) AS u({name})"])  # fmt: skip
        return From(f"({text})", [*whole.scope, element], "unit" if whole.form == "once" else whole.form)

    def pick(self, *forms: str) -> From:
        """A table of one of these forms; every world has orders, customers and a public table."""
        return self.read(self.rng.choice([t for t in self.world.by_name.values() if t.form in forms]))

    # -- sources -------------------------------------------------------------------------------------------
    def people(self, depth: int) -> From:
        """Rows of units."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.1:
            return self.pick(
                *rng.choice(
                    [
                        ("many", "refers", "deep"),
                        ("many", "refers"),
                        ("many", "refers", "deep", "rooms", "once"),
                    ]
                )
            )
        below = self.people(depth - 1)
        form = rng.choice(
            [
                "join",
                "join",
                "join",
                "join",
                "public",
                "public",
                "public",
                "semi",
                "semi",
                "per-unit",
                "per-unit",
                "where",
                "computed",
                "union",
                "unpivot",
                "distinct",
                "back",
            ]
        )
        makers = {
            "join": self.join_unit, "public": self.join_public, "semi": self.semi, "per-unit": self.per_unit, "where": self.where, "computed": self.computed,
            "union": self.union, "unpivot": self.unpivot, "distinct": self.distinct, "back": self.join_back,
        }  # fmt: skip
        return self.windowed(makers[form](below, depth) or below)

    def windowed(self, below: From) -> From:
        """The rows with windows within their unit, some of the time; by itself, so that other queries stay the same."""
        state = self.rng.getstate()[1]
        own = Random(f"windows {state[0]} {state[-1]}")
        if own.random() >= self.windows or below.form not in ("unit", "rooms", "once"):
            return below
        below = self.inside(below)
        units, clinics, oids = ([c.name for c in below.holding(of)] for of in ("unit", "clinic", "oid"))
        whose = [[each] for each in oids] + ([[*units, *clinics]] if units else [])
        writer = WindowWriter(own, below.text, list(below.scope), whose)
        made = writer.written(self.name("yw"))
        self.used |= writer.used
        added = [Known(c.name, c.kind, c.bounded, c.keyable, c.pool) for c in made.added]
        return From(made.text, [*below.scope, *added], below.form)

    def inside(self, source: From) -> From:
        """The same as one relation: a raw join becomes a subquery with names of its own."""
        return (
            self._selected(self._some(source.scope), f"FROM {source.text}", source.form)
            if source.raw
            else source
        )

    def _some(self, scope: list[Known]) -> list[Known]:
        """The columns that tell whose, and some of the others."""
        needed = [c for c in scope if c.of in ("unit", "clinic", "oid", "code")]
        rest = [c for c in scope if c not in needed]
        return needed + self.rng.sample(rest, self.rng.randint(min(1, len(rest)), min(4, len(rest))))

    def _selected(
        self, chosen: list[Known], body: str, form: str, also: str = "", extra: list[Known] | None = None
    ) -> From:
        names = [self._alias(c) for c in chosen]
        shown = ", ".join(f"{c.name} AS {n}" for c, n in zip(chosen, names, strict=True))
        scope = [replace(c, name=n) for c, n in zip(chosen, names, strict=True)]
        return From(f"(SELECT {shown}{also} {body})", [*scope, *(extra or [])], form)

    def _alias(self, column: Known) -> str:
        odd = self.rng.choice(_ODD)
        if self.rng.random() < 0.05 and odd not in self.odd:
            self.used.add("odd-alias")
            self.odd.add(odd)
            return odd
        return self.name("z")

    def where(self, below: From, depth: int) -> From:
        self.used.add("where-below")
        below = self.inside(below)
        return replace(below, text=f"(SELECT * FROM {below.text} WHERE {self.condition(below.scope)})")

    def computed(self, below: From, depth: int) -> From:
        self.used.add("computed")
        below = self.inside(below)
        kind, mode, name = (
            self.rng.choice(["int", "num", "text", "bool"]),
            self.rng.choice(["any", "sum", "key"]),
            self.name("y"),
        )
        new = Known(name, kind, mode == "sum", mode == "key" or kind == "bool")
        text = f"(SELECT *, {self.expression(kind, below.scope, 2, mode)} AS {name} FROM {below.text})"
        if self.rng.random() < 0.3:
            self.used.add("cte")
            self.ctes.append(f"{(called := self.name('w'))} AS {text}")
            text = called
        return From(text, [*below.scope, new], below.form)

    # -- joins ---------------------------------------------------------------------------------------------
    def _named(self, source: From, raw_ok: bool = False) -> tuple[str, list[Known]]:
        """The source with an alias, and its columns called by it."""
        if source.raw and raw_ok:
            return source.text, source.scope
        source = self.inside(source)
        alias = self.name("s")
        return f"{source.text} AS {alias}", [replace(c, name=f"{alias}.{c.name}") for c in source.scope]

    def _pairs(self, left: list[Known], right: list[Known]) -> list[str] | None:
        """Equalities that tie rows of one unit: by the unit itself, or by the order both refer to."""

        def first(scope: list[Known], of: str) -> str | None:
            return next((c.name for c in scope if c.of == of), None)

        padded = self._padded_pairs(left, right)
        if padded is not None:
            self.used.add("join-padded")
            return padded
        oids, units, clinics = ((first(left, of), first(right, of)) for of in ("oid", "unit", "clinic"))
        if all(oids) and (not all(units) or self.rng.random() < 0.5):
            self.used.add("join-reference")
            return [f"{oids[0]} = {oids[1]}"]
        if not all(units) or bool(clinics[0]) != bool(clinics[1]):
            return None
        return [f"{units[0]} = {units[1]}"] + ([f"{clinics[0]} = {clinics[1]}"] if all(clinics) else [])

    def _padded_pairs(self, left: list[Known], right: list[Known]) -> list[str] | None:
        """Equalities through what an outer join has padded; by itself, so that others stay the same."""
        state = self.rng.getstate()[1]
        if Random(f"padded {state[0]} {state[-1]}").random() < 0.4:
            return None
        for parts in (["oid"], ["unit", "clinic"], ["unit"]):
            both = [(a, b) for part in parts for a in left for b in right if b.of == part]
            pairs = [f"{a.name} = {b.name}" for a, b in both if a.of == f"padded {b.of}"]
            whole = len(parts) == 2 or not any(c.of.endswith("clinic") for c in (*left, *right))
            if len(pairs) == len(parts) and whole:
                return pairs
        return None

    def join_unit(self, below: From, depth: int, other: From | None = None) -> From | None:
        rng = self.rng
        if other is None:
            other = self.people(depth - 2 if rng.random() < 0.4 else 0)
        kind = rng.choice(
            ["JOIN", "JOIN", "INNER JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "SEMI JOIN", "ANTI JOIN"]
        )
        left, scope = self._named(below, raw_ok=True)
        right, more = self._named(other)
        pairs = self._pairs(scope, more)
        if pairs is None:
            return None
        rng.shuffle(pairs)
        if rng.random() < 0.25:
            pairs.append(self.condition([*scope, *more], 1))
        self.used.add(
            {
                "LEFT JOIN": "join-left",
                "RIGHT JOIN": "join-right",
                "SEMI JOIN": "semi-join",
                "ANTI JOIN": "anti-join",
            }.get(kind, "join-unit")
        )
        text = f"{left} {kind} {right} ON {' AND '.join(pairs)}"
        if kind == "JOIN" and "," not in left and rng.random() < 0.2:
            self.used.add("join-comma")
            return self._selected(
                self._some([*scope, *more]),
                f"FROM {left}, {right} WHERE {' AND '.join(pairs)}",
                "unit" if below.form != "rooms" else "rooms",
            )
        unit_names = (
            [c.name.partition(".")[2] for c in scope if c.of == "unit"],
            [c.name.partition(".")[2] for c in more if c.of == "unit"],
        )
        if (
            unit_names[0] == unit_names[1] == ["uid"]
            and not any(c.of == "clinic" for c in more)
            and kind[:4] not in ("SEMI", "ANTI")
            and rng.random() < 0.5
        ):
            self.used.add("join-using")
            text = f"{left} {kind} {right} USING (uid)"
        if kind in ("SEMI JOIN", "ANTI JOIN"):
            return From(text, scope, below.form, raw=True)
        kept, padded = (scope, more) if kind != "RIGHT JOIN" else (more, scope)
        if kind in ("LEFT JOIN", "RIGHT JOIN"):
            told = ("unit", "oid", "clinic", "code")
            padded = [replace(c, of=f"padded {c.of}") if c.of in told else c for c in padded]
        self.used.add("join-raw")
        form = (
            "once"
            if below.form == other.form == "once"
            else "rooms"
            if "rooms" in (below.form, other.form)
            else "unit"
        )
        return From(text, [*kept, *padded], form, raw=True)

    def join_back(self, below: From, depth: int) -> From | None:
        """A per-unit subquery as a CTE, joined back to the rows it was made of, or to others."""
        summary = self.per_unit(below if self.rng.random() < 0.5 else self.people(depth - 2), depth)
        if summary is None:
            return None
        name = self.name("w")
        self.ctes.append(f"{name} AS {summary.text}")
        self.used |= {"join-back", "cte"}
        return self.join_unit(below, depth, replace(summary, text=name))

    def join_public(self, below: From, depth: int) -> From:
        """Beside a public table: on a shared column, on anything, or without a condition."""
        rng, other = self.rng, self.pick("public")
        roll = rng.random()
        if roll < 0.15:
            self.used.add("join-values")
            other = From(
                "(VALUES (0, 'a'), (1, 'b'), (1, 'c'))",
                [
                    Known("col0", "int", True, True, ("0", "1"), "n"),
                    Known("col1", "text", False, True, ("'a'", "'c'"), "k"),
                ],
                "public",
            )
        elif roll < 0.35 and (keys := [c for c in other.scope if c.kind in ("int", "text", "bool")]):
            self.used.add("join-public-group")
            key = rng.choice(keys)
            text = f"(SELECT {key.name} AS g, COUNT(*) AS m, {rng.choice(['MAX', 'MIN', 'COUNT'])}({rng.choice(other.scope).name}) AS h FROM {other.text} GROUP BY 1)"
            other = From(text, [replace(key, name="g"), Known("m", "int", True, True)], "public")
        elif roll < 0.37:
            other = replace(other, text=f"(SELECT * FROM {other.text} ORDER BY ALL LIMIT 2)")
        elif roll < 0.45:
            other = replace(other, text=f"(SELECT DISTINCT * FROM {other.text})")
        left, scope = self._named(below, raw_ok=True)
        right, more = self._named(other)
        alike = [
            (a, b)
            for a in scope
            for b in more
            if a.of and a.of == b.of and a.kind == b.kind and a.of != "code"
        ]
        near = [(a, b) for a in scope for b in more if a.kind == b.kind and a.kind in ("int", "num", "text")]
        if rng.random() < 0.1 or not (alike or near):
            self.used.add("join-cross")
            text, left_join = f"{left} CROSS JOIN {right}", False
        else:
            pairs = [
                f"{a.name} = {b.name}" for a, b in rng.sample(alike, min(len(alike), rng.choice([1, 1, 2])))
            ]
            if not pairs or rng.random() < 0.2:
                a, b = rng.choice(alike or near)
                cast = (
                    {"num": "CAST({} AS DECIMAL(6,1))", "int": "CAST({} AS BIGINT)", "text": "lower({})"}[
                        a.kind
                    ]
                    if a.kind in ("num", "int", "text")
                    else "{}"
                )
                pairs = rng.choice([[f"{a.name} <= {b.name}"], [f"{cast.format(a.name)} = {cast.format(b.name)}"], [f"{a.name} IS NOT DISTINCT FROM {b.name}"],
                                    [f"({a.name} = {b.name} OR {self.condition(scope, 1)})"]])  # fmt: skip
            if rng.random() < 0.2:
                pairs.append(self.condition([*scope, *more], 1))
            if rng.random() < 0.1:  # an equality within one side, which says nothing of how many rows meet
                pairs[0] = f"{(side := rng.choice([scope, more]))[0].name} = {side[-1].name}"
            left_join = rng.random() < 0.4
            self.used.add("join-public-left" if left_join else "join-public")
            text = f"{left} {'LEFT JOIN' if left_join else 'JOIN'} {right} ON {' AND '.join(pairs)}"
        if not left_join and below.raw is False and rng.random() < 0.2:
            text = text.replace(f"{left} ", f"{right} ", 1).replace(f"JOIN {right}", f"JOIN {left}", 1)
        return From(
            text,
            [*scope, *(replace(c, of="" if c.of == "code" else c.of) for c in more)],
            "unit" if below.form == "once" else below.form,
            raw=True,
        )

    def one_to_one(self) -> From:
        """Row-level tables beside each other on columns that are UNIQUE in both, or of which few rows agree."""
        rng = self.rng
        one, two = self.pick("rows", "once"), self.pick("rows", "once")
        if rng.random() < 0.3:
            two = self.where(two, 0)
        elif (
            rng.random() < 0.2
            and (grouped := self.per_unit(self.people(0), 0)) is not None
            and grouped.form == "once"
        ):
            two = replace(
                grouped, scope=[replace(c, of="code") if c.of == "unit" else c for c in grouped.scope]
            )
        left, scope = self._named(one)
        right, more = self._named(two)
        code, other = (next(c.name for c in each if c.of == "code") for each in (scope, more))
        kind = rng.choice(["JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN"])
        alike = [
            (a.name, b.name) for a in scope for b in more if a.of == b.of and a.of not in ("", "code", "unit")
        ]
        if alike and rng.random() < 0.5:  # with a declared bound on matches
            self.used.add("join-matches")
            code, other = rng.choice(alike)
        elif rng.random() < 0.15:
            code, other = (f"CAST({each} AS DECIMAL(7,1))" for each in (code, other))
        also = f" AND {self.condition([*scope, *more], 1)}" if rng.random() < 0.3 else ""
        self.used.add("join-one-to-one" if kind == "JOIN" else "join-one-to-one-left")
        return From(f"{left} {kind} {right} ON {code} = {other}{also}", [*scope, *more], "several", raw=True)

    def several(self) -> From:
        """One-to-one joins and unions of tables with one row a person, and what can be made of them."""
        rng = self.rng
        found = self.one_to_one() if rng.random() < 0.7 else self.pick("rows", "once")
        for _ in range(rng.choice([0, 0, 1, 2])):
            maker = rng.choice(
                [self.where, self.computed, self.join_public, self.join_public, self.unpivot, self.stacked]
            )
            found = maker(found, 0) or found
        return found

    def stacked(self, below: From, depth: int) -> From | None:
        """UNION ALL with another table of one row a person, or with a public one."""
        below, other = self.inside(below), self.pick("rows", "once", "public")
        shared = [
            (a, b)
            for a in below.scope
            for b in other.scope
            if a.of == b.of and a.kind == b.kind and a.of not in ("", "code", "unit")
        ]
        if not shared:
            return None
        self.used.add("union-several")
        names = [self.name("z") for _ in shared]
        text = f"(SELECT {', '.join(f'{a.name} AS {n}' for (a, _), n in zip(shared, names, strict=True))} FROM {below.text} UNION ALL SELECT {', '.join(b.name for _, b in shared)} FROM {other.text})"
        return From(text, [replace(a, name=n) for (a, _), n in zip(shared, names, strict=True)], "several")

    # -- semi-joins ----------------------------------------------------------------------------------------
    def semi(self, below: From, depth: int) -> From | None:
        rng = self.rng
        left, scope = self._named(below)
        form = rng.choice(["in", "exists", "exists", "not-exists", "not-exists", "public", "public"])
        if form == "public":
            other = self.pick("public")
            alike = [(a, b) for a in scope for b in other.scope if a.of == b.of and a.kind == b.kind]
            if not alike:
                return None
            a, b = rng.choice(alike)
            anti = rng.random() < 0.5
            self.used.add("not-in-public" if anti else "in-public")
            test = f"{a.name} {'NOT IN' if anti else 'IN'} (SELECT {b.name} FROM {other.text}{'' if rng.random() < 0.5 else f' WHERE {self.condition(other.scope, 1)}'})"
        else:
            right, more = self._named(self.people(depth - 2 if rng.random() < 0.4 else 0))
            pairs = self._pairs(scope, more)
            if pairs is None:
                return None
            extra = f"{self.condition(more, 1)}" if rng.random() < 0.6 else ""
            if form == "in" and len(pairs) == 1:
                self.used.add("semi-in")
                mine, theirs = pairs[0].split(" = ")
                test = f"{mine} IN (SELECT {theirs} FROM {right}{f' WHERE {extra}' if extra else ''})"
            else:
                anti = form == "not-exists"
                self.used.add("anti-exists" if anti else "semi-exists")
                if rng.random() < 0.2:
                    pairs.append(self.condition([*scope, *more], 1))
                test = f"{'NOT ' if anti else ''}EXISTS (SELECT 1 FROM {right} WHERE {' AND '.join([*pairs, *([extra] if extra else [])])})"
        return self._selected(self._some(scope), f"FROM {left} WHERE {test}", below.form)

    # -- unit by unit --------------------------------------------------------------------------------------
    def per_unit(self, below: From, depth: int) -> From | None:
        rng = self.rng
        source, scope = self._named(below, raw_ok=True)
        units, oids = [c for c in scope if c.of == "unit"][:1], [c for c in scope if c.of == "oid"][:1]
        units += [c for c in scope if c.of == "clinic"][:1]
        if below.form == "rooms" and len(units) < 2:
            return None
        by = oids if oids and (not units or rng.random() < 0.25) else units
        if not by:
            return None
        self.used.add("per-row" if by == oids else "per-unit")
        keys = [c for c in scope if c.keyable]
        form = below.form if below.form == "rooms" else "once" if by == units else "unit"
        if keys and rng.random() < 0.3:
            self.used.add("per-unit-key")
            by = [*by, rng.choice(keys)]
            form = "rooms" if form == "rooms" else "unit"
        made, extra = [], []
        for _ in range(rng.randint(1, 3)):
            text, kind, bounded = self._unit_aggregate(scope)
            name = (
                self.name("y") if rng.random() < 0.93 else rng.choice(["count_1", "privsql_value_1", "sum_1"])
            )
            if any(c.name == name for c in extra):
                continue
            if rng.random() < 0.3 and kind in ("int", "num"):
                text, bounded = f"LEAST(GREATEST({text}, 0), 6)", True
            made.append(f"{text} AS {name}")
            extra.append(
                Known(name, kind, bounded, kind == "bool", ("0", "1", "2") if kind in ("int", "num") else ())
            )
        where = f" WHERE {self.condition(scope)}" if rng.random() < 0.25 else ""
        having = ""
        if rng.random() < 0.25:
            self.used.add("per-unit-having")
            having = f" HAVING {rng.choice(['COUNT(*) > 1', 'COUNT(*) <= 3', f'{self._unit_aggregate(scope)[0]} IS NOT NULL', f'MAX({rng.choice(scope).name}) IS NULL'])}"
        body = f"FROM {source}{where} GROUP BY {', '.join(c.name for c in by)}{having}"
        return self._selected(by, body, form, ", " + ", ".join(made), extra)

    def _unit_aggregate(self, scope: list[Known]) -> tuple[str, str, bool]:
        template = self.rng.choice(_PER_UNIT)
        one, two = self.rng.choice(scope), self.rng.choice(scope)
        numbers = [c for c in scope if c.bounded and c.kind in ("int", "num")] or [
            Known("1", "int", True, False)
        ]
        number = self.rng.choice(numbers)
        text = template.format(any=one.name, any2=two.name, bool=self.condition(scope, 1) if "{bool}" in template else "",
                               num=number.name if self.rng.random() < 0.6 else self.summand(scope))  # fmt: skip
        kind = (
            "int"
            if template.startswith("COUNT")
            else "num"
            if template[:3] in ("SUM", "AVG")
            else "bool"
            if template.startswith("bool")
            else one.kind
        )
        bounded = template.startswith(("COUNT", "AVG")) or (one.bounded and kind == one.kind)
        if (
            template.startswith("AVG") and Random(text).random() < 0.3
        ):  # by the text, so that other queries stay the same
            self.used.add("per-unit-median")
            text = text.replace("AVG(", "MEDIAN(", 1)
        return text, kind, bounded

    def distinct(self, below: From, depth: int) -> From | None:
        source, scope = self._named(below)
        self.used.add("distinct")
        units = [c for c in scope if c.of in ("unit", "clinic")]
        rest = [c for c in scope if c not in units and c.of != "oid"]
        found = self._selected(
            [*units, *self.rng.sample(rest, min(2, len(rest)))],
            f"FROM {source}",
            "rooms" if below.form == "rooms" else "unit",
        )
        return replace(found, text=found.text.replace("(SELECT ", "(SELECT DISTINCT ", 1))

    # -- more rows -----------------------------------------------------------------------------------------
    def union(self, below: From, depth: int) -> From | None:
        """Rows of two sources with the same columns, each with its unit or without."""
        rng = self.rng
        roll = rng.random()
        other = (
            self.pick("rooms", "refers") if roll < 0.2 else self.people(depth - 2) if roll < 0.75 else None
        )
        one, two = self.inside(below), self.inside(other or below)
        shared = [
            (a, b)
            for a in one.scope
            for b in two.scope
            if a.of == b.of and a.kind == b.kind and a.of not in ("", "code")
        ]
        whose = [(a, b) for a, b in shared if a.of in ("unit", "clinic")]
        rest = [pair for pair in shared if pair not in whose]
        if not rest:
            return None
        chosen = [*whose, *rng.sample(rest, rng.randint(1, min(3, len(rest))))]
        word = (
            "UNION ALL" if rng.random() < 0.8 or len(whose) != (2 if one.form == "rooms" else 1) else "UNION"
        )
        self.used.add(word.lower().replace(" ", "-"))
        names = [self.name("z") for _ in chosen]
        tags, extra = ("", ""), []
        if rng.random() < 0.3:
            self.used.add("union-tags")
            tags, extra = (
                (", 'l' AS tag", rng.choice([", 'm'", ", 'l'"])),
                [Known("tag", "text", False, True, ("'l'", "'m'"))],
            )
        first = ", ".join(f"{a.name} AS {n}" for (a, _), n in zip(chosen, names, strict=True))
        text = f"(SELECT {first}{tags[0]} FROM {one.text} {word} SELECT {', '.join(b.name for _, b in chosen)}{tags[1]} FROM {two.text})"
        scope = [
            replace(a, name=n, bounded=a.bounded and b.bounded, keyable=a.keyable and b.keyable)
            for (a, b), n in zip(chosen, names, strict=True)
        ]
        return From(text, [*scope, *extra], "rooms" if "rooms" in (one.form, two.form) else "unit")

    def unpivot(self, below: From, depth: int) -> From | None:
        below = self.inside(below)
        on = [
            c
            for c in below.scope
            if c.kind in ("int", "num") and c.of not in ("unit", "clinic", "oid", "code")
        ]
        if len(on) < 2:
            return None
        self.used.add("unpivot")
        on, label, value = self.rng.sample(on, 2), self.name("yk"), self.name("yv")
        text = f"(UNPIVOT {below.text} ON {', '.join(c.name for c in on)} INTO NAME {label} VALUE {value})"
        rest = [c for c in below.scope if c not in on]
        return From(
            text,
            [
                *rest,
                Known(label, "text", False, True),
                Known(value, "num", all(c.bounded for c in on), False),
            ],
            "unit" if below.form == "once" else below.form,
        )

    def condition(self, scope: list[Seen], depth: int = 2) -> str:
        numbers = [c for c in scope if c.kind == "num"]
        if numbers and self.rng.random() < 0.06:
            self.used.add("zero-sign")
            return f"(CAST({self.rng.choice(numbers).name} AS VARCHAR) = '-0.0')"
        return super().condition(scope, depth)

    def expression(self, kind: str, scope: list[Seen], depth: int, mode: str = "any") -> str:
        """Mostly columns and constants: the functions have a generator of their own, and DuckDB's time goes into reading them."""
        return super().expression(
            kind,
            scope,
            depth if self.rng.random() < 0.15 else min(depth, 1) if self.rng.random() < 0.5 else 0,
            mode,
        )

    # -- the question --------------------------------------------------------------------------------------
    def aggregate(self, scope: list[Seen]) -> str:
        rng = self.rng
        units = [c for c in scope if getattr(c, "of", "") == "unit"]
        if rng.random() < 0.2:
            if units and rng.random() < 0.5:
                self.used.add("count-units")
                text = f"COUNT(DISTINCT {rng.choice(units).name})"
            else:
                self.used.add("count-distinct")
                text = f"COUNT(DISTINCT {rng.choice(scope).name if rng.random() < 0.8 else self.expression('any', scope, 1)})"
            if rng.random() < 0.3:
                self.used.add("units-filter")
                text += f" FILTER (WHERE {self.condition(scope, 1)})"
            return text
        return super().aggregate(scope)

    def query(self) -> str:
        rng = self.rng
        self.used.add(self.world.relation)
        if self.world.threads > 1:
            self.used.add("threads")
        roll = rng.random()
        source = (
            self.pick("public")
            if roll < 0.02
            else self.several()
            if roll < 0.15
            else self.people(rng.choice([0, 1, 1, 1, 2, 2, 3]))
        )
        if source.form == "public":
            self.used.add("public-only")
        if source.raw and rng.random() < 0.4:
            source = self.inside(source)
        scope: list[Seen] = list(source.scope)
        keyable = [c for c in scope if c.keyable]
        self.key_columns = rng.sample(keyable, min(2, len(keyable)))
        body = f"FROM {source.text}" + (f" WHERE {self.condition(scope)}" if rng.random() < 0.25 else "")
        other = self.pick("many", "refers", "once")
        if " WHERE " not in body and rng.random() < 0.1 and (units := source.holding("unit")):
            self.used.add("where-semi")
            theirs = other.holding("unit")[0].name
            body += f" WHERE {self.condition(scope, 1)} AND {units[0].name} IN (SELECT {theirs} FROM {other.text} WHERE {self.condition(other.scope, 1)})"
        roll = rng.random()
        if source.form == "several":
            roll = roll * 0.7 + 0.3
        if rng.random() < 0.1:
            self.used.add("lowered")
            self.options = {rng.choice(["max_rows", "max_groups"]): 1}
        text = (
            self.total(body, scope)
            if roll < 0.42
            else self.grouped(body, scope)
            if roll < 0.85
            else self.choice(body, scope)
        )
        return (f"WITH {', '.join(self.ctes)} " if self.ctes else "") + text


@dataclass
class WindowedUnits(UnitGenerator):
    """Queries of which most have windows within a unit."""

    windows: float = 0.6
