"""A seed goes in; queries come out: generated ones that mostly pass, and texts of cases and attacks with tokens changed."""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

import json
import re
from functools import lru_cache
from random import Random

from tests.attacks import judge
from tests.cases.test_cases import ALL_CASES

LONGEST = 1_000  # characters: what is longer is about limits, and slow to look through

_TOKEN = re.compile(
    r"\s+|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\w+|[<>=!|:*/~^@&-]+|.", re.DOTALL
)
_CLASSES = (
    "= <> != == < > <= >= ! !! ~ ~~ !~~ !~ ^@ ** ^ // / % & | << >> || :: -> ->> @ # + - * IN LIKE ILIKE GLOB IS AND OR XOR DIV "
    "MOD NOT BETWEEN SIMILAR ESCAPE COLLATE ISNULL NOTNULL".split(),
    "COUNT SUM AVG MIN MAX MEDIAN MODE lower upper length abs floor round sqrt ln log exp year month day hour week dayofweek "
    "coalesce nullif least greatest substring left right replace concat trim strpos contains date_trunc date_diff date_add "
    "date_part extract if ifnull isnull isnan pow mod sign stddev variance corr quantile_cont mean first list unnest try "
    "reverse split_part starts_with position log2 log10 log strptime strftime last_day make_date count_if arg_max".split(),
    "0 1 2 3 10 -1 1.5 .5 5. 1e3 1E-2 0x10 1_000 007 1e400 99999999999999999999 NULL TRUE FALSE 'a' '' 'CA' '2024-01-31' "
    "E'a' $$a$$ N'a' x'61' b'1' 'it''s' INTERVAL".split(),
    "age income state diagnosis smoker id user_id name weight visits change admitted seen rowid n s x q t patients * "
    "\"age\" \"AGE\" AGE p.age".split(),
    "INTEGER INT BIGINT TINYINT DOUBLE FLOAT REAL VARCHAR TEXT DATE TIMESTAMP BOOLEAN DECIMAL(5,1) NUMERIC HUGEINT TIME "
    "VARCHAR(2) CHAR STRING DATETIME INT4 INT8 LONG SIGNED".split(),
    "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET DISTINCT ALL AS ON USING JOIN LEFT RIGHT FULL INNER OUTER CROSS "
    "NATURAL SEMI ANTI ASOF POSITIONAL LATERAL UNION EXCEPT INTERSECT WITH RECURSIVE VALUES FILTER OVER QUALIFY WINDOW CASE "
    "WHEN THEN ELSE END CAST TRY_CAST EXISTS ANY SOME ASC DESC NULLS FIRST LAST ROLLUP CUBE GROUPING SETS UNPIVOT PIVOT "
    "TABLESAMPLE SAMPLE REPLACE EXCLUDE RENAME COLUMNS WITHIN FETCH FOR IGNORE RESPECT AT INTO TABLE".split(),
)  # fmt: skip
_ODD = ["\u00a0", "\u3000", "\u200b", "\ufeff", "\x0b", "\x0c", "\x85", "\u2028", "/* */", "/**/", "-- x\n", "\t", "\n", "(", ")", ",", ";", ".",
        "[", "]", "{", "}", "?", "$1", ":x", "\\", "`", "'", '"', "\uff07", "\u2019", "\u00e9", "\u0430", "#", "@@", "%%", "..", "::", "\x1a"]  # fmt: skip


@lru_cache(maxsize=1)
def corpus() -> tuple[tuple[str, str], ...]:
    """Texts with the name of the tables they are about."""
    found = [
        (case.settings["schema"], case.sql)
        for case in ALL_CASES
        if case.settings.get("dialect", "duckdb") == "duckdb"
    ]
    for path in (judge.SHARED, judge.OWN):
        lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
        found += [("attacked", json.loads(line)["sql"]) for line in lines if line]
    wrong = ("wrong_", "many_rows")
    return tuple(
        (schema, sql) for schema, sql in found if len(sql) <= LONGEST and not schema.startswith(wrong)
    )


def mutated(rng: Random, sql: str) -> str:
    """One to three small changes of a text, token by token."""
    tokens = _TOKEN.findall(sql)
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3])):
        if not tokens:
            break
        _change(rng, tokens)
    return "".join(tokens)


def _change(rng: Random, tokens: list[str]) -> None:
    solid = [place for place, each in enumerate(tokens) if each.strip()]
    place = rng.choice(solid or [0])
    match rng.choice(
        [
            "same",
            "same",
            "same",
            "same",
            "any",
            "delete",
            "twice",
            "swap",
            "odd",
            "odd",
            "insert",
            "around",
            "case",
            "splice",
            "glue",
        ]
    ):
        case "same":  # another of its kind: most likely to be read
            kinds = [kind for kind in _CLASSES if tokens[place].upper() in (each.upper() for each in kind)]
            number = tokens[place][:1].isdigit() or tokens[place][:1] == "'"
            kind = rng.choice(kinds) if kinds else _CLASSES[2] if number else rng.choice(_CLASSES)
            tokens[place] = rng.choice(kind)
        case "any":
            tokens[place] = rng.choice(rng.choice(_CLASSES))
        case "delete":
            del tokens[place]
        case "twice":
            tokens.insert(place, f"{tokens[place]} ")
        case "swap":
            other = rng.choice(solid or [0])
            tokens[place], tokens[other] = tokens[other], tokens[place]
        case "odd":
            tokens.insert(rng.choice([place, place + 1]), rng.choice(_ODD))
        case "insert":
            tokens.insert(place, f" {rng.choice(rng.choice(_CLASSES))} ")
        case "around":
            tokens[place] = rng.choice(
                [
                    "({})",
                    "-{}",
                    "NOT {}",
                    "+{}",
                    "- -{}",
                    "CAST({} AS INTEGER)",
                    "{}::VARCHAR",
                    "TRY({})",
                    "({},)",
                    "{} IS NULL",
                ]
            ).format(tokens[place])
        case "case":
            tokens[place] = tokens[place].swapcase()
        case "splice":
            other = _TOKEN.findall(rng.choice(corpus())[1])
            start = rng.randrange(len(other)) if other else 0
            tokens[place:place] = [" ", *other[start : start + rng.randint(1, 8)], " "]
        case "glue":
            if place + 1 < len(tokens) and not tokens[place + 1].strip():
                del tokens[place + 1]
