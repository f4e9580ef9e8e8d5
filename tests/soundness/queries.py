"""A world goes in; SQL text from everything privsql reads comes out, with the names of the constructs in it.

EXPRESSIONS has a template for every function and operator of privsql/algebra/functions.py; a test fails when one is
missing. `{num}` and its like are holes that are filled with expressions of that kind.
"""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from random import Random

from tests.soundness.worlds import Column, World

# function or operator -> (kind of the result, template) ...
EXPRESSIONS: dict[str, list[tuple[str, str]]] = {
    # operators
    "+": [("int", "({int} + {int})"), ("num", "({num} + {num})")],
    "-": [("int", "({int} - {int})"), ("num", "({num} - {num})")],
    "*": [("int", "({int} * {int})"), ("num", "({num} * {num})"), ("int", "({int} * 0)")],
    "/": [("num", "({num} / {num})"), ("num", "({int} / 3)"), ("num", "({num} / {int})")],
    "//": [("int", "({int} // {int})"), ("int", "({int} // 2)"), ("int", "({int} // 10)")],
    "%": [("int", "({int} % {int})"), ("int", "({int} % 3)"), ("num", "({num} % {num})")],
    "neg": [("int", "(-{int})"), ("num", "(-{num})")],
    "=": [("bool", "({num} = {num})"), ("bool", "({text} = {text})"), ("bool", "({date} = {date})"), ("bool", "({bool} = {bool})"),
          ("bool", "({bool} = 1)"), ("bool", "({bool} = 'no')"), ("bool", "({bool} = 2)")],
    "<>": [("bool", "({num} <> {num})"), ("bool", "({text} <> {text})"), ("bool", "({int} != {int})"), ("bool", "({bool} <> 0)")],
    "<": [("bool", "({num} < {num})"), ("bool", "({text} < {text})"), ("bool", "({moment} < {moment})")],
    "<=": [("bool", "({num} <= {num})"), ("bool", "({int} <= {int})"), ("bool", "({date} <= {date})")],
    ">": [("bool", "({num} > {num})"), ("bool", "({int} > {int})"), ("bool", "({moment} > {moment})")],
    ">=": [("bool", "({num} >= {num})"), ("bool", "({num} BETWEEN {num} AND {num})"), ("bool", "({int} >= {int})")],
    "is_distinct": [("bool", "({num} IS DISTINCT FROM {num})"), ("bool", "({text} IS DISTINCT FROM {text})")],
    "is_same": [("bool", "({num} IS NOT DISTINCT FROM {num})"), ("bool", "({bool} IS NOT DISTINCT FROM {bool})")],
    "and": [("bool", "({bool} AND {bool})")],
    "or": [("bool", "({bool} OR {bool} OR {bool})")],
    "not": [("bool", "(NOT {bool})"), ("bool", "({text} NOT LIKE 'a%')"), ("bool", "({num} NOT BETWEEN {num} AND {num})")],
    "is_null": [("bool", "({any} IS NULL)"), ("bool", "({any} IS NOT NULL)"), ("bool", "isnull({any})")],
    "is_true": [("bool", "({bool} IS TRUE)"), ("bool", "({bool} IS NOT TRUE)")],
    "is_false": [("bool", "({bool} IS FALSE)")],
    "in": [("bool", "({int} IN (1, 3, 300))"), ("bool", "({text} IN ('a', 'p', NULL))"), ("bool", "({num} NOT IN (1.5, 2))"),
           ("bool", "({num} IN ({num}, {num}))"), ("bool", "({date} IN (DATE '2024-01-03', '2024-01-01'))"),
           ("bool", "({text} = ANY(['a', 'p', NULL]))"), ("bool", "({int} <> ALL(ARRAY[1, 3]))"), ("bool", "list_contains(['a', 'b'], {text})"),
           ("bool", "({int} NOT IN [1, -1])"), ("bool", "({bool} IN (1, 0))")],
    "case": [("num", "(CASE WHEN {bool} THEN {num} WHEN {bool} THEN {num} ELSE {num} END)"), ("int", "(CASE WHEN {bool} THEN {int} END)"),
             ("text", "(CASE {text} WHEN 'a' THEN 'x' WHEN 'p' THEN {text} ELSE 'z' END)"), ("int", "if({bool}, {int}, {int})"),
             ("bool", "(CASE WHEN {bool} THEN {bool} ELSE {bool} END)"), ("date", "(CASE WHEN {bool} THEN {date} ELSE {date} END)")],
    "coalesce": [("num", "COALESCE({num}, {num}, 0)"), ("int", "COALESCE({int}, 5)"), ("text", "COALESCE({text}, 'a')"),
                 ("bool", "COALESCE({bool}, FALSE)"), ("date", "COALESCE({date}, DATE '2024-01-01')"), ("int", "ifnull({int}, 1)")],
    "nullif": [("num", "NULLIF({num}, {num})"), ("int", "NULLIF({int}, 0)"), ("text", "NULLIF({text}, 'a')")],
    "least": [("num", "LEAST({num}, {num})"), ("int", "LEAST({int}, 7)"), ("text", "LEAST({text}, {text})"), ("date", "LEAST({date}, {date})")],
    "greatest": [("num", "GREATEST({num}, {num})"), ("int", "GREATEST({int}, {int}, 0)"), ("text", "GREATEST({text}, 'b')")],
    "cast": [("int", "CAST({num} AS INTEGER)"), ("int", "CAST({num} AS TINYINT)"), ("int", "CAST({text} AS BIGINT)"), ("num", "CAST({text} AS DOUBLE)"),
             ("num", "CAST({num} AS DECIMAL(10,2))"), ("num", "CAST({int} AS DECIMAL(5,1))"), ("text", "CAST({any} AS VARCHAR)"), ("int", "CAST({bool} AS INTEGER)"),
             ("date", "CAST({text} AS DATE)"), ("date", "CAST({ts} AS DATE)"), ("ts", "CAST({date} AS TIMESTAMP)"), ("ts", "TRY_CAST({text} AS TIMESTAMP)"),
             ("bool", "CAST({text} AS BOOLEAN)"), ("bool", "CAST({int} AS BOOLEAN)"), ("int", "CAST({num} AS UBIGINT)"), ("int", "CAST({num} AS HUGEINT)"),
             ("num", "CAST({num} AS FLOAT)"), ("num", "CAST({int} AS DOUBLE)"), ("text", "CAST(CAST({text} AS TIME) AS VARCHAR)"),
             ("time", "CAST({text} AS TIME)"), ("time", "CAST({ts} AS TIME)")],
    "date_add": [("ts", "({date} + INTERVAL 1 DAY)"), ("ts", "({moment} - INTERVAL 3 MONTH)"), ("ts", "({ts} + INTERVAL '999999' YEAR)"),
                 ("ts", "date_add({date}, INTERVAL 5 HOUR)")],
    "date_shift": [("date", "({date} + {int})"), ("date", "({date} - 5)")],
    "date_minus": [("int", "({date} - {date})")],
    # text
    **{name: [("text", f"{name}({{text}})")] for name in ("lower", "upper", "reverse", "strip_accents")},
    **{name: [("text", f"{name}({{text}})"), ("text", f"{name}({{text}}, 'a ')")] for name in ("trim", "ltrim", "rtrim")},
    **{name: [("int", f"{name}({{text}})")] for name in ("length", "bit_length", "strlen", "ascii", "unicode")},
    "substring": [("text", "substring({text}, {int}, {int})"), ("text", "substring({text}, 2)"), ("text", "substr({text}, 1, 1)")],
    **{name: [("text", f"{name}({{text}}, 3, 'xy')")] for name in ("lpad", "rpad")},
    **{name: [("text", f"{name}({{text}})")] for name in ("md5", "sha256")},
    "truncate": [("num", "trunc({num}, 1)"), ("int", "trunc({int}, -1)")],
    "bitand": [("int", "({int} & 3)"), ("int", "({int} & {int})")],
    "bitor": [("int", "({int} | 4)")],
    "bitxor": [("int", "xor({int}, {int})")],
    **{name: [("int", f"{name}({{ts}})")] for name in ("millisecond", "microsecond", "millennium", "era")},
    "julian": [("num", "julian({moment})")],
    "time_bucket": [("ts", "time_bucket(INTERVAL '15 minutes', {ts})"), ("ts", "time_bucket(INTERVAL 2 MONTH, {date})")],
    "date_sub": [("int", "date_sub('day', {moment}, {moment})"), ("int", "date_sub('month', {date}, {date})")],
    "make_timestamp": [("ts", "make_timestamp({int}, {int}, 5, 1, {int}, {num})")],
    "from_epoch": [("ts", "to_timestamp({int})"), ("ts", "epoch_ms({int})")],
    "left": [("text", "left({text}, {int})"), ("text", "left({text}, 1)")],
    "right": [("text", "right({text}, {int})"), ("text", "right({text}, -1)")],
    "replace": [("text", "replace({text}, 'a', 'bb')")],
    "translate": [("text", "translate({text}, 'abc', 'xy')")],
    "split_part": [("text", "split_part({text}, 'b', 1)"), ("text", "split_part({text}, '-', 0)"), ("text", "split_part({text}, '', -9)")],
    **{name: [("bool", f"{name}({{text}}, {{text}})"), ("bool", f"{name}({{text}}, 'a')")] for name in ("starts_with", "ends_with", "contains")},
    "strpos": [("int", "strpos({text}, 'b')"), ("int", "instr({text}, {text})")],
    "concat": [("text", "concat({text}, {text}, 'x')"), ("text", "concat({any}, {text})")],
    "concat_ws": [("text", "concat_ws('-', {text}, {text})")],
    "||": [("text", "({text} || {text})"), ("text", "({text} || {num})")],
    **{name: [("int", f"{name}({{text}}, 'Abd')")] for name in ("levenshtein", "damerau_levenshtein")},
    **{name: [("num", f"{name}({{text}}, 'Abd')")] for name in ("jaro_winkler_similarity", "jaro_similarity")},
    "like": [("bool", "({text} LIKE 'a%')"), ("bool", "({text} LIKE '%_b%')"), ("bool", "({text} LIKE '')")],
    "ilike": [("bool", "({text} ILIKE 'A%')")],
    "like_escape": [("bool", "({text} LIKE 'x#%y' ESCAPE '#')"), ("bool", "({text} LIKE 'a#' ESCAPE '#')")],
    "ilike_escape": [("bool", "({text} ILIKE 'X#%%' ESCAPE '#')")],
    "similar_to": [("bool", "({text} SIMILAR TO '(a|b).*')")],
    "regexp_matches": [("bool", "regexp_matches({text}, '^[a-c]+$')"), ("bool", "regexp_matches({text}, 'A', 'i')"),
                       ("bool", "({text} ~* '^A')"), ("bool", "({text} !~ 'b')"), ("bool", "({text} !~* 'B$')")],
    "regexp_full_match": [("bool", "regexp_full_match({text}, '[a-z]*')")],
    "regexp_replace": [("text", "regexp_replace({text}, '([a-c])', '\\1\\1', 'g')"), ("text", "regexp_replace({text}, 'a', '\\5')"),
                       ("text", "regexp_replace({text}, '\\C$', '')")],
    "regexp_extract": [("text", "regexp_extract({text}, '([0-9]+)')"), ("text", "regexp_extract({text}, '(a)(b)?', 2)"),
                       ("text", "regexp_extract({text}, '\\C$')")],
    # numbers
    "abs": [("int", "abs({int})"), ("num", "abs({num})")],
    **{name: [("int", f"{name}({{int}})"), ("num", f"{name}({{num}})")] for name in ("floor", "ceil", "trunc")},
    "round": [("num", "(floor({num} / 2) * 2)"), ("num", "round({num})"), ("num", "round({num}, 1)"), ("int", "round({int}, -1)"), ("num", "round({num}, -2)"), ("num", "round({num}, 20)")],
    "sign": [("int", "sign({num})")],
    **{name: [("num", f"{name}({{num}})")] for name in (
        "even", "sqrt", "ln", "log10", "log2", "asin", "acos", "cbrt", "exp", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh",
        "degrees", "radians")},
    "atan2": [("num", "atan2({num}, {num})")],
    "pow": [("num", "pow({num}, 2)"), ("num", "pow({num}, {num})"), ("num", "power({num}, 3)")],
    "pi": [("num", "pi()"), ("num", "({num} * pi())")],
    **{name: [("bool", f"{name}({{num}})")] for name in ("isnan", "isinf", "isfinite")},
    "bit_count": [("int", "bit_count({int})")],
    "gcd": [("int", "gcd({int}, {int})"), ("int", "gcd({int}, 12)")],
    # dates
    **{name: [("int", f"{name}({{moment}})")] for name in (
        "year", "month", "day", "quarter", "dayofweek", "isodow", "dayofyear", "decade", "century", "week", "yearweek", "isoyear", "minute", "second")},
    "hour": [("int", "hour({moment})"), ("int", "EXTRACT(hour FROM {moment})"), ("int", "hour({time})"), ("int", "EXTRACT(hour FROM {time})")],
    **{name: [("text", f"{name}({{moment}})")] for name in ("dayname", "monthname")},
    "last_day": [("date", "last_day({moment})")],
    "epoch": [("num", "epoch({moment})"), ("num", "date_part('epoch', {moment})")],
    "date_trunc": [("ts", f"date_trunc('{unit}', {{moment}})") for unit in ("hour", "day", "week", "month", "quarter", "year", "decade", "century")],
    "date_diff": [("int", f"date_diff('{unit}', {{moment}}, {{moment}})") for unit in ("second", "day", "month", "year")],
    "make_date": [("date", "make_date({int}, {int}, {int})"), ("date", "make_date(2024, 1, {int})")],
    "strftime": [("text", "strftime({moment}, '%Y-%m-%d')"), ("text", "strftime({moment}, '%a %j %H')")],
    "try_strptime": [("ts", "try_strptime({text}, '%Y-%m-%d')"), ("ts", "strptime({text}, '%H')")],
}  # fmt: skip

CONSTANTS = {
    "int": ["0", "1", "2", "3", "7", "10", "-1", "-5", "127", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "NULL"],
    "num": ["0", "1", "-1", "2.5", "0.1", "1e3", "-7.25", "CAST('nan' AS DOUBLE)", "CAST('inf' AS DOUBLE)", "3", "1e300"],
    "text": ["'a'", "'b'", "'p'", "''", "'12'", "'2024-01-03'", "NULL"],
    "bool": ["TRUE", "FALSE", "NULL"],
    "date": ["DATE '2024-01-03'", "DATE '2023-12-31'", "DATE '0001-01-01'"],
    "ts": ["TIMESTAMP '2024-01-01 08:15:30'", "TIMESTAMP '2024-01-03 00:00:00'"],
    "time": ["TIME '12:30:00'", "TIME '00:00:00'"],
}  # fmt: skip
_BY_KIND: dict[str, list[tuple[str, str]]] = {}
for _name, _forms in EXPRESSIONS.items():
    for _kind, _template in _forms:
        _BY_KIND.setdefault(_kind, []).append((_name, _template))
_BY_KIND["moment"] = _BY_KIND["date"] + _BY_KIND["ts"]
_FITS = {"num": ("num", "int"), "moment": ("date", "ts"), "any": ("num", "int", "text", "bool", "date", "ts")}

# What a run must have accepted, besides every function and operator.
CONSTRUCTS = frozenset({
    "table", "alias", "subquery", "where-below", "exclude", "replace", "computed", "renamed", "cte", "cte-twice", "union-self", "union-tags",
    "union-values", "union-public", "union-two", "unpivot-from", "unpivot-statement", "unpivot-nulls", "public-only", "from-first",
    "where", "count-star", "count-x", "count-if", "sum", "avg", "sum-bool", "filter", "disjoint", "nearly-disjoint", "beyond",
    "group-columns", "group-expressions", "group-ordinals", "group-aliases", "group-all", "having", "order", "limit", "outer",
    "rollup", "cube", "grouping-sets", "grouping-mixed", "grouping", "stored-sums",
    "argmax-desc", "argmax-asc", "argmax-inner", "arg_max", "arg_min", "mode", "argmax-sum", "replace-one", "add-remove",
    "spread", "spread-of-two", "share", "beside", "argmax-score", "argmax-top", "mode-in-groups",
    "star-rename", "cte-materialized", "union-by-name", "mode-within-group",
    "median", "quantile", "quantiles", "within-group", "min", "max", "unnest-select", "unnest-from", "unnest-two", "unnest-one",
})  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """A column as a query sees it."""

    name: str
    kind: str
    bounded: bool
    keyable: bool
    pool: tuple[str, ...] = ()


@dataclass
class Generator:
    """Writes one query. `used` collects the constructs."""

    rng: Random
    world: World
    used: set[str] = field(default_factory=set)
    ctes: list[str] = field(default_factory=list)
    fresh: int = 0
    key_columns: list[Seen] = field(default_factory=list)
    options: dict[str, int] = field(default_factory=dict)  # keywords of the call

    # -- expressions ---------------------------------------------------------------------------------------
    def leaf(self, kind: str, scope: list[Seen], mode: str) -> str:
        kinds = _FITS.get(kind, (kind,))
        fitting = [
            c
            for c in scope
            if c.kind in kinds
            and (mode == "any" or (mode == "sum" and c.bounded) or (mode == "key" and c.keyable))
        ]
        if fitting and self.rng.random() < 0.8:
            return self.rng.choice(fitting).name
        mine = [
            v
            for c in scope
            if c.kind in kinds and not c.name.startswith("y")
            for v in c.pool
            if "(BC)" not in v and "infinity" not in v and len(v) < 30
        ]
        if mine and self.rng.random() < 0.5 and mode == "any":
            return f"({self.rng.choice(mine)})"
        constants = CONSTANTS[self.rng.choice(kinds)]
        # the last constant is far out: as a key it would make a million cells
        return self.rng.choice(constants[: min(6, len(constants) - 1)] if mode != "any" else constants)

    def expression(self, kind: str, scope: list[Seen], depth: int, mode: str = "any") -> str:
        if depth <= 0 or self.rng.random() < 0.25:
            return self.leaf(kind, scope, mode)
        kinds = _FITS.get(kind, (kind,))
        name, template = self.rng.choice(_BY_KIND[self.rng.choice(kinds)])
        self.used.add(name)
        return self.fill(template, scope, depth - 1, mode)

    def fill(self, template: str, scope: list[Seen], depth: int, mode: str = "any") -> str:
        return re.sub(r"\{(\w+)\}", lambda hole: self.expression(hole[1], scope, depth, mode), template)

    def condition(self, scope: list[Seen], depth: int = 2) -> str:
        plain = [c for c in scope if c.pool and c.kind != "other"]
        if plain and self.rng.random() < 0.45:
            column = self.rng.choice(plain)
            return f"({column.name} {self.rng.choice(['=', '<', '<=', '>', '>=', '<>', 'IS DISTINCT FROM'])} {self.value(column)})"
        return self.expression("bool", scope, depth)

    def value(self, column: Seen) -> str:
        usable = [
            v
            for v in column.pool
            if "BC" not in v
            and "infinity" not in v
            and "_S)" not in v
            and "_MS)" not in v
            and "_NS)" not in v
        ]
        return self.rng.choice(usable) if usable else "NULL"

    def different(self) -> str:
        if self.rng.random() < 0.9:
            return ""
        self.used.add("sum-distinct")
        return "DISTINCT "

    def summand(self, scope: list[Seen]) -> str:
        roll = self.rng.random()
        bounded = [c for c in scope if c.bounded and c.kind in ("int", "num")]
        if roll < 0.4 and bounded:
            return self.rng.choice(bounded).name
        if roll < 0.6:
            low, high = self.rng.choice([(0, 5), (-2, 3), (4, 9), (-8, -3), (0.5, 1.5)])
            clamped = self.expression("num", scope, 2)
            if (
                Random(f"clamp {clamped}").random() < 0.3
            ):  # chosen by the text, so that other queries stay the same
                return f"CASE WHEN {clamped} < {low} THEN {low} WHEN {high} <= {clamped} THEN {high} ELSE {clamped} END"
            return f"LEAST(GREATEST({clamped}, {low}), {high})"
        if roll < 0.7:
            self.used.add("sum-bool")
            return self.condition(scope)
        if roll < 0.8:
            parts = self.expression("num", scope, 1, "sum"), self.expression("num", scope, 1, "sum")
            return f"CASE WHEN {self.condition(scope)} THEN {parts[0]} ELSE {parts[1]} END"
        return self.expression("num", scope, 2, "sum")

    def key(self, scope: list[Seen]) -> str:
        columns = self.key_columns or [c for c in scope if c.keyable]
        if not columns or self.rng.random() < 0.15:
            return self.condition(scope)
        if self.rng.random() < 0.5:
            return self.rng.choice(columns).name
        kind = self.rng.choice(["int", "num", "text", "bool", "date", "ts"])
        return self.expression(kind, columns, 2, "key")

    # -- FROM ----------------------------------------------------------------------------------------------
    def name(self, prefix: str) -> str:
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    def table(self, name: str = "t") -> list[Seen]:
        found = [Seen(c.name, c.kind, c.bounded, c.keyable, c.pool) for c in self.world.columns]
        return found + ([Seen("id", "int", False, False, ("1", "1000"))] if self.world.unit else [])

    def source(self, depth: int) -> tuple[str, list[Seen]]:
        """Text to stand in FROM, and the columns it has."""
        if depth <= 0 or self.rng.random() < 0.2:
            self.used.add("table")
            return self.opened("t", self.table())
        form = self.rng.choice(_SOURCES)
        below, scope = self.source(depth - 1)
        rng, used = self.rng, self.used
        usable = [c for c in scope if c.kind != "other"]
        shown = ", ".join(c.name for c in usable)
        match form:
            case "alias":
                text = f"(SELECT q.* FROM {below} AS q)" if below == "t" else f"(SELECT * FROM {below})"
                scope = usable
            case "subquery":
                text = f"(SELECT {shown} FROM {below})"
                scope = usable
            case "where-below":
                text, scope = f"(SELECT * FROM {below} WHERE {self.condition(usable)})", usable
            case "exclude":
                gone = rng.choice(usable)
                if len(usable) < 2:
                    return below, scope
                text, scope = (
                    f"(SELECT * EXCLUDE ({gone.name}) FROM {below})",
                    [c for c in usable if c != gone],
                )
            case "replace":
                changed = rng.choice(usable)
                if changed.kind == "time":
                    return below, scope
                mode = rng.choice(["any", "sum", "key"])
                expression = self.expression(changed.kind, usable, 1, mode)
                text = f"(SELECT * REPLACE ({expression} AS {changed.name}) FROM {below})"
                scope = [
                    replace(c, bounded=mode == "sum", keyable=mode == "key") if c == changed else c
                    for c in usable
                ]
            case "computed":
                kind = rng.choice(["int", "num", "text", "bool", "date"])
                mode = rng.choice(["any", "sum", "key"])
                name = self.name("y")
                text = f"(SELECT *, {self.expression(kind, usable, 2, mode)} AS {name} FROM {below})"
                scope = [*usable, Seen(name, kind, mode == "sum", mode == "key" or kind == "bool")]
            case "renamed":
                kept = rng.sample(usable, rng.randint(1, len(usable)))
                names = [self.name("z") for _ in kept]
                listed = ", ".join(f"{c.name} AS {n}" for c, n in zip(kept, names, strict=True))
                text = f"(SELECT {listed} FROM {below})"
                scope = [replace(c, name=n) for c, n in zip(kept, names, strict=True)]
                if Random(text).random() < 0.3:  # by the text, so that other queries stay the same
                    used.add("star-rename")
                    text, scope = (
                        f"(SELECT * RENAME ({listed}) FROM {below})",
                        [*scope, *(c for c in usable if c not in kept)],
                    )
            case "cte" | "cte-twice":
                name = self.name("w")
                kept_once = "MATERIALIZED " if Random(shown + below).random() < 0.3 else ""
                used.add("cte-materialized" if kept_once else "cte")
                self.ctes.append(f"{name} AS {kept_once}(SELECT {shown} FROM {below})")
                text = (
                    name
                    if form == "cte"
                    else f"(SELECT * FROM {name} UNION ALL SELECT * FROM {name} WHERE {self.condition(usable, 1)})"
                )
                scope = usable
            case "union-self":
                text, scope = f"(SELECT {shown} FROM {below} UNION ALL SELECT {shown} FROM {below})", usable
                own = Random(text)
                if own.random() < 0.4:
                    used.add("union-by-name")
                    other = ", ".join(c.name for c in own.sample(usable, own.randint(1, len(usable))))
                    text = f"(SELECT {shown} FROM {below} UNION ALL BY NAME SELECT {other} FROM {below})"
            case "union-tags":
                tags = rng.choice(
                    [
                        ("'l'", "'m'"),
                        ("'l'", "'l'"),
                        ("1", "2"),
                        ("'l'", "NULL"),
                        ("TRUE", "FALSE"),
                        ("DATE '2024-01-01'", "DATE '2024-01-02'"),
                    ]
                )
                kind = (
                    "text"
                    if "'l'" in tags
                    else "int"
                    if "1" in tags
                    else "bool"
                    if "TRUE" in tags
                    else "date"
                )
                name = self.name("y")
                third = (
                    f" UNION ALL SELECT {shown}, {rng.choice(tags)} FROM {below}"
                    if rng.random() < 0.3
                    else ""
                )
                text = f"(SELECT {shown}, {tags[0]} AS {name} FROM {below} UNION ALL SELECT {shown}, {tags[1]} FROM {below}{third})"
                scope = [*usable, Seen(name, kind, kind == "int", True)]
            case "union-values":
                one = next((c for c in usable if c.kind in ("int", "num", "text", "bool")), None)
                if one is None:
                    return below, scope
                rows = ", ".join(f"({rng.choice(CONSTANTS[one.kind][:4])})" for _ in range(2))
                text = f"(SELECT {one.name} FROM {below} UNION ALL SELECT * FROM (VALUES {rows}) AS v(k))"
                scope = [one]
            case "union-public" | "union-two":
                other = "pub" if form == "union-public" else "t2"
                shown = ", ".join(c.name for c in self.table() if c.kind != "other")
                below = (
                    "t"
                    if rng.random() < 0.7
                    else f"(SELECT * FROM t WHERE {self.condition(self.table(), 1)})"
                )
                text = f"(SELECT {shown} FROM {below} UNION ALL SELECT {shown} FROM {other})"
                scope = [c for c in self.table() if c.kind != "other"]
            case "unpivot-from" | "unpivot-statement":
                kind = rng.choice(["int", "num", "text", "bool"])
                on = [c for c in usable if c.kind in _FITS.get(kind, (kind,))]
                if not on:
                    return below, scope
                on = rng.sample(on, rng.randint(1, min(3, len(on))))
                label, value = self.name("yk"), self.name("yv")
                if form == "unpivot-from":
                    nulls = rng.random() < 0.4
                    if nulls:
                        used.add("unpivot-nulls")
                    listed = ", ".join(
                        c.name + (f" AS 'L{i}'" if rng.random() < 0.3 else "") for i, c in enumerate(on)
                    )
                    text = f"{below} UNPIVOT {'INCLUDE NULLS ' if nulls else ''}({value} FOR {label} IN ({listed}))"
                    if rng.random() < 0.5:
                        text = f"(SELECT * FROM {text})"
                else:
                    text = f"(UNPIVOT {below} ON {', '.join(c.name for c in on)} INTO NAME {label} VALUE {value})"
                rest = [c for c in usable if c not in on]
                all_bounded, all_keys = all(c.bounded for c in on), all(c.keyable for c in on)
                scope = [
                    *rest,
                    Seen(label, "text", False, True),
                    Seen(value, on[0].kind, all_bounded, all_keys),
                ]
            case _:
                raise AssertionError(form)
        used.add(form)
        return text, scope

    def opened(self, table: str, scope: list[Seen]) -> tuple[str, list[Seen]]:
        """The table, or some of the time with a list of its made into rows; by itself, so that other queries stay the same."""
        state = self.rng.getstate()[1]
        own = Random(f"unnest {table} {state[0]} {state[-1]}")
        if not self.world.lists or own.random() < 0.65:
            return table, scope
        shown = ", ".join(c.name for c in scope if c.kind != "other")
        chosen = own.choices(self.world.lists, k=own.choice([1, 1, 2]))
        names = [self.name("yl") for _ in chosen]
        elements = [
            Seen(name, c.kind, c.kind == "int", True, c.known) for name, c in zip(names, chosen, strict=True)
        ]
        if len(chosen) == 1 and own.random() < 0.5:
            self.used.add("unnest-select")
            text = f"SELECT {shown}, UNNEST(list_distinct({chosen[0].name})) AS {names[0]} FROM {table}"
        else:
            self.used.add("unnest-from" if len(chosen) == 1 else "unnest-two")
            way = own.choice(
                [
                    ", UNNEST({}) AS {}({})",
                    " CROSS JOIN UNNEST({}) AS {}({})",
                    " JOIN UNNEST({}) AS {}({}) ON TRUE",
                ]
            )
            lists = [
                way.format(f"list_distinct(q.{c.name})", f"u{index}", name)
                for index, (c, name) in enumerate(zip(chosen, names, strict=True))
            ]
            text = f"SELECT {own.choice([', '.join([shown, *names]), '*'])} FROM {table} AS q{''.join(lists)}"
            if own.random() < 0.3:  # an element held to constants
                self.used.add("unnest-one")
                listed = own.sample(chosen[0].known, min(2, len(chosen[0].known)))
                plain = [each for each in listed if "_ns(" not in each and "UUID" not in each] or ["NULL"]
                text += own.choice(
                    [f" WHERE {names[0]} = {plain[0]}", f" WHERE {names[0]} IN ({', '.join(plain)})"]
                )
        return f"({text})", [*(c for c in scope if c.kind != "other"), *elements]

    # -- SELECT --------------------------------------------------------------------------------------------
    def aggregate(self, scope: list[Seen]) -> str:
        form = self.rng.choice(["count-star", "count-x", "count-if", "sum", "sum", "avg", "avg"])
        self.used.add(form)
        match form:
            case "count-star":
                text = self.rng.choice(["COUNT(*)", "COUNT(*)", "COUNT()", "COUNT(1)"])
            case "count-x":
                text = f"COUNT({self.expression('any', scope, 2)})"
            case "count-if":
                text = f"COUNT_IF({self.condition(scope)})"
            case "sum":
                text = f"SUM({self.different()}{self.summand(scope)})"
            case _:
                text = f"{self.rng.choice(['AVG', 'AVG', 'mean'])}({self.different()}{self.summand(scope)})"
        if self.rng.random() < 0.3:
            self.used.add("filter")
            text += f" FILTER (WHERE {self.condition(scope)})"
        if self.rng.random() < 0.1:
            self.used.add("beyond")
            text = self.rng.choice(
                [
                    f"{text} * 2 + 1",
                    f"round({text}, 1)",
                    f"{text} / COUNT(*)",
                    f"-{text}",
                    f"COALESCE({text}, 0)",
                ]
            )
        return self.spread(self.ordered(text, scope), scope)

    def spread(self, text: str, scope: list[Seen]) -> str:
        """Some of the time a variance, a covariance or their kin instead; chosen by the text, as in `ordered`."""
        own = Random(f"spread {text}")
        bounded = [c.name for c in scope if c.bounded and c.kind in ("int", "num")]
        if own.random() < 0.88 or not bounded:
            return text
        first, second = (
            own.choice(bounded),
            own.choice([*bounded, f"LEAST(GREATEST({own.choice(bounded)} * 3, -1), 2)"]),
        )
        one = ("VAR_POP", "VAR_SAMP", "VARIANCE", "STDDEV", "STDDEV_POP", "STDDEV_SAMP")
        two = (
            "COVAR_POP",
            "COVAR_SAMP",
            "CORR",
            "REGR_SLOPE",
            "REGR_INTERCEPT",
            "REGR_R2",
            "REGR_COUNT",
            "REGR_AVGX",
        )
        form = own.choice(["spread", "spread-of-two", "share"])
        self.used.add(form)
        where = f" FILTER (WHERE {own.choice(scope).name} IS NOT NULL)" if own.random() < 0.3 else ""
        if form == "share":
            return f"COUNT(*) FILTER (WHERE {own.choice(scope).name} IS NULL) / COUNT(*)"
        return (
            f"{own.choice(one)}({first}){where}"
            if form == "spread"
            else f"{own.choice(two)}({first}, {second}){where}"
        )

    def ordered(self, text: str, scope: list[Seen]) -> str:
        """Some of the time a quantile instead; chosen by the text, so that other queries stay the same."""
        own = Random(f"order {text}")
        bounded = [c for c in scope if c.bounded and c.kind in ("int", "num", "date", "ts")]
        if own.random() < 0.88 or not bounded:
            return text
        column = own.choice(bounded)
        argument = column.name
        if column.kind in ("int", "num") and own.random() < 0.4:
            other = own.choice([c for c in scope if c.kind in ("int", "num")]).name
            argument = own.choice(
                [
                    f"LEAST(GREATEST({other}, -1), 4)",
                    f"({argument} + 1)",
                    f"CASE WHEN {other} > 1 THEN {argument} END",
                ]
            )
        form, made = own.choice([
            ("median", "MEDIAN({})"), ("median", "quantile_cont({}, 0.5)"), ("quantile", "quantile_disc({}, 0.3)"), ("quantile", "quantile({}, 0.97)"),
            ("min", "MIN({})"), ("max", "MAX({})"), ("quantiles", "quantile_cont({}, [0.25, 0.5, 0.75])"), ("quantiles", "quantile_disc({}, [0, 0.2, 0.4, 0.9, 1])"),
            ("within-group", "percentile_disc(0.4) WITHIN GROUP (ORDER BY {} DESC)"), ("quantile", "approx_quantile({}, 0.6)"),
        ])  # fmt: skip
        self.used.add(form)
        where = f" FILTER (WHERE {own.choice(bounded).name} IS NOT NULL)" if own.random() < 0.3 else ""
        return made.format(argument) + where

    def aggregates(self, scope: list[Seen]) -> list[str]:
        if self.rng.random() < 0.2:
            return self.disjoint(scope)
        found = [self.aggregate(scope) for _ in range(self.rng.choice([1, 1, 2, 3]))]
        if self.rng.random() < 0.2:  # the same argument again: shared by AVG, SUM and COUNT
            argument = self.summand(scope)
            found += self.rng.sample(
                [f"SUM({argument})", f"AVG({argument})", f"COUNT({argument})", "COUNT(*)"], 2
            )
        return self.beside(found, scope)

    def beside(self, found: list[str], scope: list[Seen]) -> list[str]:
        """Some of the time COUNT(*) and NULLs beside sums of what may be NULL instead; chosen by the text, as in `ordered`."""
        own = Random(f"beside {found}")
        bounded = [c.name for c in scope if c.bounded and c.kind in ("int", "num")]
        if own.random() < 0.88 or not bounded:
            return found
        self.used.add("beside")
        one, other = own.choice(bounded), own.choice(bounded)
        one = own.choice(
            [one, one, f"CASE WHEN {own.choice(scope).name} IS NULL THEN {one} END", f"NULLIF({one}, 1)"]
        )
        where = "" if own.random() < 0.6 else f"{own.choice(scope).name} IS NOT NULL"
        filtered = f" FILTER (WHERE {where})" if where else ""
        missing = f"COUNT(*) FILTER (WHERE {where + ' AND ' if where else ''}{one} IS NULL)"
        some = [f"AVG({one}){filtered}", f"SUM({one}){filtered}", f"COUNT({one}){filtered}", f"VAR_POP({one}){filtered}",
                f"AVG({other}){filtered}", f"COVAR_POP({one}, {other}){filtered}", missing]  # fmt: skip
        return [*own.sample(some, own.choice([1, 1, 2, 3])), f"COUNT(*){filtered}"]

    def disjoint(self, scope: list[Seen]) -> list[str]:
        plain = [c for c in scope if c.pool and c.kind != "other"]
        p = self.condition(scope, 1)
        if not plain or self.rng.random() < 0.25:
            conditions = self.rng.choice(
                [
                    [p, f"NOT {p}"],
                    [p, f"{p} IS FALSE"],
                    [f"{p} IS NULL", f"{p} IS NOT NULL"],
                    [p, f"NOT {p}", f"{p} IS NULL"],
                ]
            )
        else:
            column = self.rng.choice(plain)
            c, (v, w) = column.name, (self.value(column), self.value(column))
            conditions = self.rng.choice([
                [f"{c} < {v}", f"{c} >= {v}"], [f"{c} <= {v}", f"{c} > {v}"], [f"{c} = {v}", f"{c} = {w}"], [f"{c} = {v}", f"{c} < {v}", f"{c} > {v}"],
                [f"{c} IN ({v}, {w})", f"{c} = {v}"], [f"{c} IS NULL", f"{c} = {v}"], [f"{c} < {v}", f"{c} BETWEEN {v} AND {w}", f"{c} > {w}"],
                [f"{c} <= {v}", f"{c} >= {v}"], [f"{c} < {v}", f"{c} > {w}"], [f"{c} <> {v}", f"{c} = {w}"], [f"{v} < {c}", f"{v} >= {c}"],
            ])  # fmt: skip
            if self.rng.random() < 0.3:
                conditions = [f"({each}) AND {p}" for each in conditions]
        self.used.add("disjoint")
        if self.rng.random() < 0.2:
            self.used.add("nearly-disjoint")
            conditions = [*conditions, self.condition(scope, 1)]
        if self.rng.random() < 0.2:
            return [f"COUNT_IF({each})" for each in conditions]
        return [f"COUNT(*) FILTER (WHERE {each})" for each in conditions]

    def query(self) -> str:
        rng, used = self.rng, self.used
        used.add(self.world.relation)
        source, scope = self.source(rng.choice([0, 0, 1, 1, 2, 3]))
        if rng.random() < 0.02:
            used.add("public-only")
            source, scope = "pub", self.table()
        scope = [c for c in scope if c.kind != "other"]
        keyable = [c for c in scope if c.keyable]
        self.key_columns = rng.sample(keyable, min(2, len(keyable)))
        where = ""
        if rng.random() < 0.35:
            used.add("where")
            where = f" WHERE {self.condition(scope)}"
        body = f"FROM {source}{where}"
        roll = rng.random()
        if roll < 0.45:
            text = self.total(body, scope)
        elif roll < 0.8:
            text = self.grouped(body, scope)
        else:
            text = self.choice(body, scope)
        return (f"WITH {', '.join(self.ctes)} " if self.ctes else "") + text

    def stored_sums(self) -> str:
        """Whole numbers of the table as it is stored: added up as they are, and put right for what is outside their range."""
        rng, scope = self.rng, [c for c in self.table() if c.kind != "other"]
        whole = [c.name for c in scope if c.bounded and c.kind == "int"]
        filtered = f" FILTER (WHERE {self.condition(scope, 1)})" if rng.random() < 0.25 else ""
        shown = [
            f"{rng.choice(['SUM', 'AVG'])}({rng.choice(whole)})" + filtered,
            *rng.sample(["COUNT(*)", f"SUM({rng.choice(whole)})"], rng.choice([0, 0, 1])),
        ]
        column, value = rng.choice(whole), rng.choice(["-1", "0", "2", "5"])
        where = rng.choice(
            [
                "",
                "",
                f" WHERE {column} > {value}",
                f" WHERE {column} <> {value}",
                f" WHERE {column} IS NOT NULL",
                f" WHERE {self.condition(scope, 1)}",
            ]
        )
        self.used.add("stored-sums")
        return f"SELECT {', '.join(shown)} FROM t{where}"

    def total(self, body: str, scope: list[Seen]) -> str:
        own = Random(f"stored {body}")  # chosen by the text, so that other queries stay the same
        if own.random() < 0.2 and any(c.bounded and c.kind == "int" for c in self.table()):
            self.ctes = []
            return self.stored_sums()
        shown = ", ".join(self.aggregates(scope))
        if self.rng.random() < 0.08 and " WHERE " not in body and not self.ctes:
            self.used.add("from-first")
            return f"{body} SELECT {shown}"
        return f"SELECT {shown} {body}" + (" HAVING COUNT(*) > 2" if self.rng.random() < 0.05 else "")

    def grouped(self, body: str, scope: list[Seen]) -> str:
        rng, used = self.rng, self.used
        keys = [self.key(scope) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        aggregates = self.aggregates(scope)
        form = rng.choice(["columns", "expressions", "ordinals", "aliases", "all"])
        names = [f"k{index}" for index in range(len(keys))]
        shown = [f"{k} AS {n}" for k, n in zip(keys, names, strict=True)]
        match form:
            case "columns" | "expressions":
                form = "columns" if all(re.fullmatch(r'\w+|".*"', k) for k in keys) else "expressions"
                listed, shown = keys, keys
            case "ordinals":
                listed = [str(index + 1) for index in range(len(keys))]
            case "aliases":
                listed = names
            case _:
                listed = []
        used.add(f"group-{form}")
        adds_up = not re.search(
            r"(?i)distinct|quantile|percentile|median|\b(min|max)\(", " ".join(aggregates)
        )
        group, shown = self.sets(listed, shown, adds_up) if listed else ("ALL", shown)
        aliased = [f"{each} AS n{index}" for index, each in enumerate(aggregates)]
        text = f"SELECT {', '.join([*shown, *aliased])} {body} GROUP BY {group}"
        if rng.random() < 0.12:
            used.add("having")
            text += f" HAVING {aggregates[0]} > 1"
        if rng.random() < 0.15:
            used.add("order")
            text += f" ORDER BY {rng.choice(['n0 DESC', '1', 'n0, 1 NULLS FIRST', 'ALL'])}"
            if rng.random() < 0.6:
                used.add("limit")
                text += rng.choice([" LIMIT 3", " LIMIT 1", " LIMIT 2 OFFSET 1"])
        elif rng.random() < 0.1:
            used.add("outer")
            text = f"SELECT n0 + 1 AS m FROM ({text}) AS o WHERE n0 > 0 ORDER BY 1 LIMIT 5"
        return text

    def sets(self, listed: list[str], shown: list[str], adds_up: bool) -> tuple[str, list[str]]:
        """The keys as one set, or some of the time as several; chosen by their text, so that other queries stay the same."""
        own, different = Random(f"sets {listed} {shown}"), list(dict.fromkeys(listed))
        if own.random() < 0.5 or not (adds_up or own.random() < 0.05):
            return ", ".join(listed), shown
        together, each = f"({', '.join(different)})", ", ".join(f"({one})" for one in different)
        forms = [
            ("rollup", f"ROLLUP {together}"),
            ("cube", f"CUBE {together}"),
            ("grouping-sets", f"GROUPING SETS ({together}, ())"),
        ]
        if len(different) > 1:
            half = len(different) // 2
            forms += [
                ("grouping-sets", f"GROUPING SETS ({each}, ())"),
                ("grouping-sets", f"GROUPING SETS ({each})"),
            ]
            forms += [
                ("grouping-mixed", f"{', '.join(different[:half])}, ROLLUP ({', '.join(different[half:])})")
            ] * 2
        name, group = own.choice(forms)
        self.used.add(name)
        if own.random() < 0.3:
            self.used.add("grouping")
            key = shown[0].rpartition(" AS ")[0] or shown[0]
            shown = [*shown, f"GROUPING({key}) AS g"]
        return group, shown

    def choice(self, body: str, scope: list[Seen]) -> str:
        rng, used = self.rng, self.used
        key = self.key(scope)
        form = rng.choice(["order", "order", "inner", "arg", "mode"])
        if rng.random() < 0.35:
            score = f"SUM({self.summand(scope)})"
            tag = "argmax-sum"
        else:
            score = rng.choice(
                [
                    "COUNT(*)",
                    f"COUNT({self.expression('any', scope, 1)})",
                    f"COUNT(*) FILTER (WHERE {self.condition(scope)})",
                ]
            )
            tag = "count-star" if score == "COUNT(*)" else "count-x"
        direction = rng.choice(["DESC", "ASC"])
        if form != "mode":
            used.add(tag)
        match form:
            case "order":
                used.add(f"argmax-{direction.lower()}")
                second = f", {self.key(scope)} AS k2" if rng.random() < 0.3 else ""
                own = Random(f"choice {key} {score}")
                if own.random() < 0.3:
                    used.add("argmax-score")
                    score = own.choice(
                        [
                            f"2 * {score} - COUNT(*)",
                            f"-3 * {score}",
                            f"{score} + COUNT(*) / 2",
                            f"1.5 * {score}",
                        ]
                    )
                most = own.choice([1, 1, 2, 3])
                used.add("argmax-top" if most > 1 else "argmax-desc")
                return f"SELECT {key} AS k1{second} {body} GROUP BY ALL ORDER BY {score} {direction} LIMIT {most}"
            case "inner":
                used.add("argmax-inner")
                return f"SELECT k FROM (SELECT {key} AS k, {score} AS n {body} GROUP BY 1) AS g ORDER BY n {direction} LIMIT 1"
            case "arg":
                function = rng.choice(["arg_max", "arg_min"])
                used.add(function)
                return (
                    f"SELECT {function}(k, n) FROM (SELECT {key} AS k, {score} AS n {body} GROUP BY 1) AS g"
                )
            case _:
                used.add("mode")
                own = Random(f"mode {key}")
                columns = [c.name for c in scope if c.keyable]
                if own.random() < 0.4 and columns:
                    used.add("mode-in-groups")
                    group = own.choice(columns)
                    return f"SELECT {group}, mode({key}) {body} GROUP BY {group}"
                if own.random() < 0.2:
                    used.add("mode-within-group")
                    return f"SELECT mode() WITHIN GROUP (ORDER BY {key}) {body}"
                return f"SELECT mode({key}) {body}"


_SOURCES = ["alias", "subquery", "where-below", "exclude", "replace", "computed", "computed", "renamed", "cte", "cte-twice", "union-self", "union-tags",
            "union-tags", "union-values", "union-public", "union-two", "unpivot-from", "unpivot-from", "unpivot-statement"]  # fmt: skip

__all__ = ["CONSTRUCTS", "EXPRESSIONS", "Column", "Generator"]
