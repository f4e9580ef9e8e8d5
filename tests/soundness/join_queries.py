"""A world of units goes in; SQL comes out about joins that keep public rows, series and lists, in parentheses and NATURAL.

Most aggregates are of private columns, to which padded rows add nothing; the others are there to be refused, or to
count what one person takes away. Tables, expressions and conditions are those of UnitGenerator.
"""

# ruff: noqa: E501 -- templates read better in one line each
from __future__ import annotations

from dataclasses import dataclass, replace

from tests.soundness.unit_queries import From, Known, UnitGenerator

JOINED = frozenset({
    "public-left", "public-right", "public-full", "public-using", "public-natural", "public-alone", "public-counted", "public-chain", "public-where", "public-label",
    "full-unit", "series", "series-of-days", "list", "parenthesised", "natural-unit", "equal-keys", "padded-rows",
})  # fmt: skip
_FREE = ["COUNT({any})", "COUNT({any})", "SUM({num})", "AVG({num})", "SUM(COALESCE({num}, 0))", "COUNT(DISTINCT {any})",
         "COUNT(*) FILTER (WHERE {any} IS NOT NULL)", "SUM(CASE WHEN {any} IS NOT NULL THEN 2 ELSE 0 END)", "MEDIAN({num})"]  # fmt: skip
_FELT = [
    "COUNT(*)",
    "COUNT(*)",
    "COUNT(*)",
    "COUNT(*) FILTER (WHERE {any} IS NULL)",
    "SUM(COALESCE({num}, 1))",
    "AVG({pub})",
    "SUM({pub})",
    "COUNT(DISTINCT {public})",
]
_SERIES = [("range(0, 4)", "range", "series"), ("generate_series(3, 0, -1)", "generate_series", "series"), ("UNNEST([0, 1, 1, NULL])", "unnest", "list"),
           ("(SELECT UNNEST(range(4)) AS e)", "e", "list")]  # fmt: skip


@dataclass
class JoinGenerator(UnitGenerator):
    """Writes one query about the joins of this file."""

    def query(self) -> str:
        self.used.add(self.world.relation)
        roll = self.rng.random()
        if roll < 0.6:
            text = self.keeping_public()
        elif roll < 0.75:
            text = self.with_equal_keys()
        else:
            text = self.within_one_unit()
        return (f"WITH {', '.join(self.ctes)} " if self.ctes else "") + text

    # -- public rows that meet nobody --------------------------------------------------------------------------
    def public(self) -> From:
        """A public table, a series or a list, sometimes one row a key or joined with another."""
        rng, roll = self.rng, self.rng.random()
        if roll < 0.2:
            text, name, what = rng.choice(_SERIES)
            self.used.add(what)
            return From(text, [Known(name, "int", True, True, ("0", "1", "2"), "n")], "public")
        if roll < 0.27:
            self.used.add("series-of-days")
            text = "generate_series(DATE '2023-12-31', DATE '2024-01-04', INTERVAL '1 day')"
            return From(
                text, [Known("generate_series", "date", False, True, ("DATE '2024-01-03'",), "D")], "public"
            )
        found = self.pick("public")
        if roll < 0.5:
            key = rng.choice(
                [c for c in found.scope if c.kind in ("int", "text", "bool", "date")] or found.scope
            )
            self.used.add("public-alone")
            return From(f"(SELECT DISTINCT {key.name} FROM {found.text})", [key], "public")
        return found

    def private(self) -> From:
        roll = self.rng.random()
        if roll < 0.35:
            return self.pick("rows", "once")
        return self.inside(self.people(self.rng.choice([0, 0, 0, 1, 2])))

    def matched(self, scope: list[Known], more: list[Known]) -> str:
        """A condition between both sides: mostly an equality."""
        rng = self.rng
        alike = [(a, b) for a in scope for b in more if a.of and a.of == b.of and a.kind == b.kind]
        near = [(a, b) for a in scope for b in more if a.kind == b.kind and a.kind != "other"]
        if not near or rng.random() < 0.05:
            return rng.choice(["TRUE", self.condition(more, 1)])
        a, b = rng.choice(alike if alike and rng.random() < 0.8 else near)
        parts = [
            f"{a.name} {'=' if rng.random() < 0.8 else rng.choice(['<=', '>=', 'IS NOT DISTINCT FROM'])} {b.name}"
        ]
        if rng.random() < 0.3:
            parts.append(self.condition(rng.choice([more, [*scope, *more]]), 1))
        return " AND ".join(parts)

    def keeping_public(self) -> str:
        rng = self.rng
        public, private = self.public(), self.private()
        left, scope = self._named(public)
        right, more = self._named(private)
        form = rng.choice(["left", "left", "left", "right", "full", "natural", "using"])
        both = [n for a in scope for b in more if (n := a.name.partition(".")[2]) == b.name.partition(".")[2]]
        if form in ("natural", "using") and not both:
            form = "left"
        self.used.add(f"public-{form}")
        match form:
            case "natural":
                text = f"{left} NATURAL LEFT JOIN {right}"
            case "using":
                text = f"{left} LEFT JOIN {right} USING ({rng.choice(both)})"
            case "right":
                text = f"{right} RIGHT JOIN {left} ON {self.matched(scope, more)}"
            case "full":
                sides = rng.sample([left, right], 2)
                text = f"{sides[0]} FULL JOIN {sides[1]} ON {self.matched(scope, more)}"
            case _:
                text = f"{left} LEFT JOIN {right} ON {self.matched(scope, more)}"
        if rng.random() < 0.2 and form != "natural":
            text, more = self.chained(text, more)
        if rng.random() < 0.15 and "UNNEST([" not in text:  # which sqlglot does not read
            self.used.add("parenthesised")
            text = f"({text})"
        where = ""
        if rng.random() < 0.25:
            self.used.add("public-where")
            where = f" WHERE {self.condition(rng.choice([scope, more, [*scope, *more]]), 1)}"
        keys = [c.name for c in scope if c.keyable]
        keys = rng.sample(keys, min(len(keys), rng.choice([0, 1, 1, 1, 2, len(keys)])))
        return self.asked(f"FROM {text}{where}", keys, scope, more, private)

    def chained(self, text: str, more: list[Known]) -> tuple[str, list[Known]]:
        """A further join with rows of the same unit, through columns that may be padded."""
        right, theirs = self._named(self.people(0))
        pairs = self._pairs(more, theirs)
        if pairs is None:
            return text, more
        self.used.add("public-chain")
        kind = self.rng.choice(["LEFT JOIN", "LEFT JOIN", "JOIN", "SEMI JOIN", "ANTI JOIN"])
        scope = [*more, *theirs] if kind in ("LEFT JOIN", "JOIN") else more
        return f"{text} {kind} {right} ON {' AND '.join(pairs)}", scope

    def asked(self, body: str, keys: list[str], scope: list[Known], more: list[Known], private: From) -> str:
        rng = self.rng
        if keys and rng.random() < 0.12:
            self.used.add("public-label")
            return f"SELECT {keys[0]} {body} GROUP BY {keys[0]} ORDER BY COUNT({rng.choice(more).name}) DESC LIMIT 1"
        felt = rng.random() < (0.6 if private.form in ("rows", "once") else 0.25)
        found = [self.filled(rng.choice(_FREE), scope, more) for _ in range(rng.choice([1, 1, 2]))]
        if felt:
            found = [self.filled(rng.choice(_FELT), scope, more), *found[1:]]
            self.used |= {"public-counted"} if found[0] == "COUNT(*)" else {"padded-rows"}
        grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join([*keys, *found])} {body}{grouped}"

    def filled(self, template: str, scope: list[Known], more: list[Known]) -> str:
        rng = self.rng

        def number(columns: list[Known]) -> str:
            return rng.choice([c.name for c in columns if c.bounded and c.kind == "int"] or ["3"])

        return template.format(
            any=rng.choice(more).name, num=number(more), pub=number(scope), public=rng.choice(scope).name
        )

    # -- other joins -------------------------------------------------------------------------------------------
    def with_equal_keys(self) -> str:
        """GROUP BY a private column and the public columns of the row that it equals."""
        rng = self.rng
        below, other = self.inside(self.people(rng.choice([0, 0, 1]))), self.pick("public")
        left, scope = self._named(below)
        right, more = self._named(other)
        alike = [(a, b) for a in scope for b in more if a.of and a.of == b.of and a.kind == b.kind]
        if not alike:
            return self.within_one_unit()
        self.used.add("equal-keys")
        a, b = rng.choice(alike)
        kind = rng.choice(["JOIN", "JOIN", "LEFT JOIN"])
        keys = [a.name, *(c.name for c in rng.sample(more, min(len(more), rng.choice([1, 2]))))]
        rng.shuffle(keys)
        text = f"FROM {left} {kind} {right} ON {a.name} = {b.name}"
        return f"SELECT {', '.join(keys)}, {self.aggregate(list(scope))} {text} GROUP BY {', '.join(keys)}"

    def within_one_unit(self) -> str:
        """FULL and NATURAL joins of one unit's rows, and joins in parentheses."""
        rng = self.rng
        one, two = self.pick("many", "refers", "once"), self.pick("many", "refers", "once", "deep")
        left, scope = self._named(one)
        right, more = self._named(two)
        pairs = self._pairs(scope, more)
        if pairs is None:
            return self.keeping_public()
        if rng.random() < 0.25:
            pairs.append(self.condition([*scope, *more], 1))
        kind = rng.choice(["FULL JOIN", "FULL JOIN", "NATURAL", "LEFT JOIN", "JOIN"])
        self.used.add(
            "natural-unit" if kind == "NATURAL" else "full-unit" if kind == "FULL JOIN" else "parenthesised"
        )
        on = f" ON {' AND '.join(pairs)}"
        text = (
            f"{left} NATURAL {rng.choice(['', 'LEFT', 'FULL'])} JOIN {right}"
            if kind == "NATURAL"
            else f"{left} {kind} {right}{on}"
        )
        if kind in ("LEFT JOIN", "JOIN"):
            third, others = self._named(self.pick("public"))
            text = f"{left} {kind} ({right} CROSS JOIN {third}){on}"
            more = [*more, *(replace(c, keyable=False) for c in others)]
        columns: list[Known] = [*scope, *more]
        self.key_columns = [c for c in columns if c.keyable][:2]
        return (
            self.total(f"FROM {text}", list(columns))
            if rng.random() < 0.5
            else self.grouped(f"FROM {text}", list(columns))
        )
