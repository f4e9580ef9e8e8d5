"""A seed goes in; a short query comes out, about one small table: many operators, few parentheses, spaces anywhere or nowhere.

What two parsers read differently is a matter of neighbouring tokens, so a short text finds it as well as a long one, in a
fifth of the time. Templates are those of the soundness generator, without the parentheses around them.
"""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

import re
from functools import lru_cache
from random import Random

import duckdb

import privsql
from tests.fuzz import texts
from tests.soundness.queries import CONSTANTS, EXPRESSIONS

SCHEMA = (
    "CREATE TABLE t (n INTEGER, x DOUBLE, w DECIMAL(5, 1), s VARCHAR, b BOOLEAN, d DATE, m TIMESTAMP, c TIME)"
)
POLICY = {"tables": {"t": {"columns": {
    "n": {"range": [0, 9]}, "x": {"range": [0, 5]}, "w": {"range": [0, 9]}, "s": {"values": ["p", "q"]},
    "d": {"range": ["2024-01-01", "2024-01-04"]},
}}}}  # fmt: skip
_COLUMNS = {
    "int": ["n", "t.n", "N", '"n"'],
    "num": ["x", "w", "t.x"],
    "text": ["s", '"s"'],
    "bool": ["b"],
    "date": ["d"],
    "ts": ["m", "t.m"],
    "time": ["c"],
}
_KINDS = {
    "num": ("num", "int"),
    "moment": ("date", "ts"),
    "any": ("int", "num", "text", "bool", "date", "ts"),
}
_FORMS = [
    "SELECT COUNT(*) FROM t WHERE {bool}", "SELECT COUNT(*) FROM t WHERE {bool} AND {bool}", "SELECT COUNT(*) FROM t WHERE NOT {bool} OR {bool}",
    "FROM t SELECT COUNT(*) WHERE {bool}", "SELECT COUNT({any}) FROM t", "SELECT COUNT(*) FILTER (WHERE {bool}) AS c FROM t",
    "SELECT COUNT_IF({bool}) FROM t", "SELECT COUNT(*) FROM (SELECT {any} AS y, {bool} AS z FROM t) WHERE z IS NOT TRUE",
    "SELECT SUM(CASE WHEN {bool} THEN 1 ELSE 0 END) FROM t", "SELECT AVG(CASE WHEN {bool} THEN 2 END) AS a FROM t",
    "SELECT SUM(LEAST(GREATEST({num}, 0), 5)) FROM t", "SELECT {bool} AS k, COUNT(*) FROM t GROUP BY k",
    "SELECT COUNT(*) {sign} {constant} {sign} COUNT(x) AS y FROM t", "SELECT b, COUNT(*) AS c FROM t GROUP BY b HAVING c {sign} 1 > {constant} ORDER BY -c",
    "WITH u AS (SELECT *, {any} AS y FROM t) SELECT COUNT(y) FROM u", "SELECT round(100.0 * COUNT_IF({bool}) / COUNT(*), 1) FROM t WHERE {bool}",
]  # fmt: skip
_HOLE = re.compile(r"\{(\w+)\}")
_BY_KIND: dict[str, list[str]] = {}
for _templates in EXPRESSIONS.values():
    for _kind, _template in _templates:
        whole = _template.startswith("(") and _template.endswith(")") and _template.count("(") == 1
        _BY_KIND.setdefault(_kind, []).append(_template[1:-1] if whole else _template)


def question(rng: Random) -> str:
    sql = _filled(rng, rng.choice(_FORMS), rng.choice([1, 1, 2, 3]))
    roll = rng.random()
    if roll < 0.1:
        sql = texts.mutated(rng, sql)
    elif roll < 0.2:  # spaces are needed between words only
        sql = re.sub(r"(?<=\W) | (?=\W)", lambda _: rng.choice(["", "", " ", "\n"]), sql)
    elif roll < 0.25:
        sql = sql.swapcase()
    return sql


def _filled(rng: Random, template: str, depth: int) -> str:
    return _HOLE.sub(lambda hole: _part(rng, hole[1], depth), template)


def _part(rng: Random, kind: str, depth: int) -> str:
    if kind == "sign":
        return rng.choice(["+", "-", "*", "/", "//", "%"])
    if kind == "constant":
        return rng.choice(["1", "2.5", "-1", "1e2", "007", ".5", "- 3", "NULL"])
    one = rng.choice(_KINDS.get(kind, (kind,)))
    if depth > 0 and rng.random() < (0.9 if kind == "bool" else 0.5):
        found = _filled(rng, rng.choice(_BY_KIND[one]), depth - 1)
        return f"({found})" if rng.random() < 0.15 else found
    return rng.choice(_COLUMNS[one] if rng.random() < 0.7 else CONSTANTS[one])


@lru_cache(maxsize=1)
def session() -> privsql.Session:
    connection = duckdb.connect(":memory:")
    connection.execute(SCHEMA)
    return privsql.connect(connection, policy=POLICY)
