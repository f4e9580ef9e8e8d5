"""Random pairs of queries: where the second is answered from the first, its numbers are those that it gets by itself.

Both are asked at an epsilon so large that there is no noise. All rows have declared keys or NULL, so that nothing is left out
where keys are summed over.
"""

# ruff: noqa: E501 -- templates read better in one line each
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

import privsql

SURE, LITTLE = 6_000, 0.01
DATA = """
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, s VARCHAR, q VARCHAR NOT NULL, b BOOLEAN, d DATE, m TIMESTAMP, n INTEGER, c SMALLINT NOT NULL, f BIGINT, w DOUBLE);
INSERT INTO t SELECT i, CASE WHEN h % 9 <> 0 THEN h // 9 % 6 END, CASE WHEN h % 7 <> 0 THEN ['x', 'y', 'Zed'][h // 7 % 3 + 1] END,
    ['p', 'r'][h // 5 % 2 + 1], CASE WHEN h % 11 <> 0 THEN h // 13 % 3 = 0 END, CASE WHEN h % 13 <> 0 THEN DATE '2024-01-20' + CAST(h // 17 % 45 AS INTEGER) END,
    TIMESTAMP '2024-01-30 00:00:00' + to_hours(CAST(h // 3 % 96 AS INTEGER)), CASE WHEN h % 8 <> 0 THEN h // 19 % 16 - 5 END, h // 23 % 5 + 2, h // 29 % 4, [-0.0, 0.0, 1.5][h // 31 % 3 + 1]
    FROM (SELECT i, CAST(hash(i) % 1000003 AS BIGINT) AS h FROM range(700) r(i));
CREATE TABLE pub (k INTEGER, name VARCHAR, big BOOLEAN);
INSERT INTO pub VALUES (0, 'zero', FALSE), (1, 'one', FALSE), (2, 'two', NULL), (4, 'four', TRUE), (5, NULL, TRUE);
CREATE TABLE few (k INTEGER, s VARCHAR NOT NULL);
INSERT INTO few VALUES (1, 'x'), (3, 'y'), (NULL, 'Zed');
"""  # fmt: skip
PRIVATE = {
    "a": {"range": [0, 5]}, "s": {"values": ["x", "y", "Zed"]}, "q": {"values": ["p", "r"]}, "d": {"range": ["2024-01-20", "2024-03-04"]},
    "m": {"range": ["2024-01-30 00:00:00", "2024-02-03 00:00:00"]}, "n": {"range": [-3, 8]}, "c": {"range": [2, 6]}, "f": {"range": [0, 3]}, "w": {"values": [0.0, 1.5]},
}  # fmt: skip
PUB = {"k": {"range": [0, 5]}, "name": {"values": ["zero", "one", "two", "four"]}}


@dataclass(frozen=True)
class From:
    """The same rows in several spellings. `more`: columns that they have besides those of t."""

    spellings: tuple[str, ...]
    more: tuple[str, ...] = ()


OWN = "a, s, q, b, d, m, n, c, f, w"
FROMS = [
    From(("t", "t AS u", "(SELECT * FROM t)", f"(SELECT {OWN} FROM t WHERE TRUE)")),
    From(("(SELECT * FROM t WHERE c > 2)", "(SELECT * FROM t WHERE NOT c <= 2)", "(SELECT * FROM t WHERE 3 <= c AND c IS NOT NULL)")),
    From(("(SELECT * FROM t WHERE b OR n > 2)", "(SELECT * FROM t WHERE NOT (NOT b AND n <= 2))", "(SELECT * FROM t WHERE (n >= 3 OR b) IS TRUE)")),
    From((f"(SELECT {OWN}, name, big FROM t JOIN pub ON a = k)", f"(SELECT {OWN}, name, big FROM pub, t WHERE k = a)",
          f"(SELECT {OWN}, name, big FROM t JOIN (SELECT k AS kk, name, big FROM pub) ON kk = a AND a IS NOT NULL)"), ("name", "big")),
    From((f"(SELECT {OWN}, name, big FROM t LEFT JOIN pub ON a = k)", f"(SELECT {OWN}, name, big FROM t LEFT JOIN (SELECT k AS kk, name, big FROM pub) ON kk = a)"), ("name", "big")),
    From((f"(SELECT {OWN}, name, big FROM t LEFT JOIN pub ON a = k AND NOT big)", f"(SELECT {OWN}, name, big FROM t LEFT JOIN (SELECT * FROM pub WHERE NOT big) ON a = k)"), ("name", "big")),
    From(("(SELECT * FROM t WHERE a IN (SELECT k FROM few))", "(SELECT * FROM t WHERE EXISTS (SELECT 1 FROM few WHERE k = a))", "(SELECT * FROM t SEMI JOIN few ON k = a)")),
    From(("(SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM few WHERE k = a))", "(SELECT * FROM t ANTI JOIN few ON a = k)")),
    From((f"(SELECT {OWN} FROM t UNION ALL SELECT {OWN} FROM t WHERE FALSE)", "t")),
    From((f"(SELECT {OWN} FROM t UNION ALL SELECT {OWN} FROM t WHERE b)",)),
    From((f"(SELECT {OWN.replace('n,', 'COALESCE(n, 0) AS n,')} FROM t)", f"(SELECT {OWN.replace('n,', 'CASE WHEN n IS NULL THEN 0 ELSE n END AS n,')} FROM t)")),
    From((f"(SELECT {OWN.replace(' s,', ' CASE WHEN b THEN s END AS s,')} FROM t)",)),
    From(("(SELECT a, s, q, b, d, m, c, f, w, v AS n FROM t UNPIVOT (v FOR which IN (n)))", f"(SELECT {OWN} FROM t WHERE n IS NOT NULL)",)),
]  # fmt: skip
KEYS = {
    "a": "a", "s": "s", "q": "q", "b": "b", "c": "c", "f": "f", "w": "w", "d": "d", "name": "name", "big": "big", "day": "date_trunc('day', m)",
    "half": "a // 2", "odd": "c % 2 = 0", "month": "date_trunc('month', d)", "low": "lower(s)", "some": "COALESCE(a, 0)", "up": "c + 1", "days": "CAST(m AS DATE)",
    "case": "CASE WHEN a < 2 THEN 'few' WHEN a < 4 THEN 'some' END",
}  # fmt: skip
FROM_KEYS = {  # what can be computed from a key, as a key
    "a": ["a", "a // 2", "a + 1", "a > 2", "a IS NULL", "COALESCE(a, 0)", "CASE WHEN a < 2 THEN 'few' WHEN a < 4 THEN 'some' END", "NULLIF(a, 3)", "LEAST(a, 3)", "a % 3", "-a"],
    "s": ["s", "lower(s)", "s = 'x'", "s IS NULL", "COALESCE(s, 'none')", "left(s, 1)", "s || '!'", "length(s)", "upper(lower(s))"],
    "q": ["q", "q = 'p'", "upper(q)"], "b": ["b", "NOT b", "b IS TRUE", "COALESCE(b, FALSE)"],
    "c": ["c", "c % 2", "c + 1", "c > 3", "GREATEST(c, 4)", "c % 2 = 0"], "f": ["f", "f // 2"], "w": ["w", "w > 0", "CAST(w AS INTEGER)", "CAST(w AS VARCHAR)", "atan2(w, -1) > 0", "-w"],
    "d": ["date_trunc('month', d)", "date_trunc('week', d)", "month(d)", "date_trunc('quarter', d)", "dayofweek(d)"],
    "day": ["date_trunc('day', m)", "date_trunc('month', m)", "date_trunc('week', m)", "month(date_trunc('day', m))", "CAST(date_trunc('day', m) AS DATE)"],
    "name": ["name", "upper(name)", "name IS NULL"], "big": ["big", "NOT big"], "half": ["a // 2", "(a // 2) * 2"], "odd": ["c % 2 = 0"],
    "month": ["date_trunc('month', d)", "date_trunc('quarter', d)", "date_trunc('year', d)"], "low": ["lower(s)", "upper(lower(s))"], "some": ["COALESCE(a, 0)", "COALESCE(a, 0) > 1"],
    "up": ["c + 1", "1 + c", "(c + 1) * 2"], "days": ["CAST(m AS DATE)", "month(CAST(m AS DATE))"], "case": ["CASE WHEN a < 2 THEN 'few' WHEN a < 4 THEN 'some' END"],
}  # fmt: skip
ABOUT_KEYS = {
    "a": ["a = 2", "a > 1", "a <> 3", "a IS NULL", "a IS NOT NULL", "a IN (1, 2, NULL)", "a NOT IN (1, 4)", "NOT a < 3", "a BETWEEN 1 AND 3", "COALESCE(a, 9) > 2", "a * 2 > 3.5", "a % 2 = 1", "a IS DISTINCT FROM 2"],
    "s": ["s = 'x'", "s <> 'x'", "s IS NULL", "s LIKE '%e%'", "s IN ('x', 'Zed')", "lower(s) = 'zed'", "COALESCE(s = 'x', TRUE)", "s >= 'x'", "length(s) = 1", "NOT (s = 'x')", "CASE s WHEN 'x' THEN TRUE ELSE FALSE END"],
    "q": ["q = 'p'", "q <> 'p'", "q IS NOT NULL"], "b": ["b", "NOT b", "b IS NOT TRUE", "b IS NULL", "b = FALSE", "COALESCE(b, TRUE)", "(b OR b IS NULL)"],
    "c": ["c > 3", "c = 4", "c < 2.5", "c IS NOT NULL", "c - 1 > 2"], "f": ["f < 2", "f IN (0, 3)"], "w": ["w = 0", "w < 1", "CAST(w AS VARCHAR) = '0.0'", "1 / w > 0", "atan2(w, -1) > 0"],
    "d": ["d < DATE '2024-02-10'", "month(d) = 2", "d IS NOT NULL", "d >= '2024-02-01'", "dayofweek(d) IN (0, 6)"], "day": ["date_trunc('day', m) = TIMESTAMP '2024-02-01 00:00:00'", "month(date_trunc('day', m)) = 2"],
    "name": ["name = 'one'", "name IS NULL", "name <> 'four'"], "big": ["big", "big IS NULL", "NOT big"], "half": ["a // 2 = 1"], "odd": ["c % 2 = 0", "NOT (c % 2 = 0)"],
    "month": ["date_trunc('month', d) = DATE '2024-02-01'"], "low": ["lower(s) = 'x'"], "some": ["COALESCE(a, 0) > 2"], "up": ["c + 1 > 4"], "days": ["CAST(m AS DATE) > DATE '2024-01-31'"],
    "case": ["CASE WHEN a < 2 THEN 'few' WHEN a < 4 THEN 'some' END = 'few'"],
}  # fmt: skip
CONDITIONS = [  # in several spellings each
    ("n > 0", "0 < n", "NOT n <= 0", "n >= 1", "n > 0 AND n IS NOT NULL"), ("b", "b IS TRUE", "b = TRUE", "COALESCE(b, FALSE)"), ("NOT b", "b IS FALSE", "b = FALSE"),
    ("s = 'x' OR a = 1", "a = 1 OR s = 'x'", "NOT (a <> 1 AND s <> 'x')"), ("n IS NOT NULL", "NOT n IS NULL"), ("c + n > 4", "n + c > 4", "4 < c + n"), ("f IN (1, 2)", "f = 2 OR f = 1"),
    ("a = 2", "2 = a"), ("s = 'x'", "'x' = s"), ("COALESCE(n, 0) = 0", "COALESCE(n, 0) + 0 = 0"), ("m < TIMESTAMP '2024-02-01 12:00:00'",),
]  # fmt: skip
AGGREGATES = [
    ("COUNT(*)", "COUNT(1)", "SUM(1)", "COUNT(q)"), ("COUNT(n)", "COUNT(*) FILTER (WHERE n IS NOT NULL)", "COUNT(n + 1)"), ("SUM(n)", "SUM(n) FILTER (WHERE TRUE)"),
    ("AVG(n)",), ("SUM(c)",), ("AVG(c)",), ("COUNT(b)",), ("SUM(CASE WHEN b THEN 1 ELSE 0 END)", "COUNT(*) FILTER (WHERE b)", "COUNT(CASE WHEN b THEN 1 END)", "COUNT_IF(b)"),
    ("SUM(CASE WHEN b THEN n END)", "SUM(n) FILTER (WHERE b)"), ("SUM(CASE WHEN b THEN n ELSE 0 END)",), ("COUNT(a)",), ("COUNT(s)",), ("SUM(n * 2)",), ("SUM(a)",), ("SUM(LEAST(GREATEST(n, 0), 3))",),
    ("COUNT(*) FILTER (WHERE a > 2)",), ("SUM(n) FILTER (WHERE s = 'x')",), ("SUM(COALESCE(n, 0))",), ("SUM(0)",), ("SUM(3)",), ("AVG(a)",), ("COUNT(DISTINCT c)",), ("SUM(c) FILTER (WHERE n > 0)",),
    ("SUM(-c)",), ("COUNT(*) / 2",), ("SUM(n) + COUNT(*)",), ("COUNT(*) FILTER (WHERE b) / COUNT(*)",), ("VAR_POP(c)",), ("AVG(n) FILTER (WHERE b)",), ("SUM(CAST(b AS INTEGER))",),
]  # fmt: skip


@dataclass
class Pairs:
    """Writes stored queries, and others that may follow from them."""

    rng: Random

    def select(
        self, rows: From, keys: list[str], aggregates: list[tuple[str, ...]], conditions: list[str]
    ) -> str:
        listed = [f"{key} AS k{place}" for place, key in enumerate(keys)]
        listed += [f"{self.rng.choice(each)} AS v{place}" for place, each in enumerate(aggregates)]
        self.rng.shuffle(conditions)
        where = f" WHERE {' AND '.join(f'({each})' for each in conditions)}" if conditions else ""
        source = self.rng.choice(rows.spellings)
        grouped = f" GROUP BY {', '.join(f'k{place}' for place in range(len(keys)))}" if keys else ""
        if source.startswith("(") and self.rng.random() < 0.2:
            return f"WITH w AS {source} SELECT {', '.join(listed)} FROM w{where}{grouped}"
        return (
            f"SELECT {', '.join(listed)} FROM {source}{' AS r' if source[0] == '(' else ''}{where}{grouped}"
        )

    def stored(self) -> tuple[str, From, list[str], list[tuple[str, ...]], list[tuple[str, ...]]]:
        rows = self.rng.choice(FROMS)
        usable = [each for each in KEYS if each not in ("name", "big") or each in rows.more]
        keys = self.rng.sample(usable, self.rng.choice([0, 1, 1, 1, 2, 2, 3]))
        aggregates = self.rng.sample(AGGREGATES, self.rng.choice([1, 1, 2, 3]))
        conditions = self.rng.sample(CONDITIONS, self.rng.choice([0, 0, 1, 2]))
        text = self.select(
            rows, [KEYS[key] for key in keys], aggregates, [self.rng.choice(each) for each in conditions]
        )
        return text, rows, keys, aggregates, conditions

    def wanted(
        self,
        rows: From,
        keys: list[str],
        aggregates: list[tuple[str, ...]],
        conditions: list[tuple[str, ...]],
    ) -> str:
        own = [
            self.rng.choice(FROM_KEYS[key]) for key in self.rng.sample(keys, self.rng.randint(0, len(keys)))
        ]
        met = [self.rng.choice(each) for each in conditions if self.rng.random() < 0.95]
        met += [self.rng.choice(ABOUT_KEYS[key]) for key in keys if self.rng.random() < 0.4]
        if self.rng.random() < 0.1:
            met.append(self.rng.choice(self.rng.choice(CONDITIONS)))
        listed = self.rng.sample(aggregates, self.rng.randint(1, len(aggregates)))
        if self.rng.random() < 0.4:
            listed[0] = self.rng.choice(AGGREGATES)
        if keys and self.rng.random() < 0.2:
            about = f" FILTER (WHERE {self.rng.choice(ABOUT_KEYS[self.rng.choice(keys)])})"
            listed[0] = (
                tuple(
                    f"{each}{about}"
                    for each in listed[0]
                    if "FILTER" not in each and each[-1] == ")" and "_" not in each
                )
                or listed[0]
            )
        text = self.select(
            rows if self.rng.random() < 0.95 or rows.more else self.rng.choice(FROMS), own, listed, met
        )
        return text + (
            self.rng.choice([" HAVING COUNT(*) > 20", " ORDER BY v0, ALL LIMIT 3"])
            if own and self.rng.random() < 0.1
            else ""
        )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("derived") / "d.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(DATA)
    return path


def opened(data: Path, relation: str) -> privsql.Session:
    tables = {"t": {"columns": PRIVATE}, "pub": {"public": True, "columns": PUB}, "few": {"public": True}}
    return privsql.connect(data, {"neighbours": relation, "tables": tables})


def shown(answer: privsql.Answer) -> list[tuple[Any, ...]]:
    return sorted(
        (
            tuple(round(v, 6) if isinstance(v, float) and math.isfinite(v) else v for v in row)
            for row in answer.fetchall()
        ),
        key=repr,
    )


def pairs(data: Path, seed: int, questions: int) -> Iterator[tuple[str, str]]:
    """Run one stored query and several others; return those that were free, each after a comparison."""
    relation = ("replace-one", "add-remove")[seed % 2]
    generator = Pairs(Random(f"{seed}"))
    with opened(data, relation) as session, opened(data, relation) as other:
        text, *told = generator.stored()
        try:
            session.query(text, epsilon=SURE)
        except privsql.Refused:
            return
        for _ in range(questions):
            wanted = generator.wanted(*told)
            try:
                plan = session.explain(wanted, epsilon=LITTLE)
            except privsql.Refused:
                continue
            if plan.free:
                derived = session.query(wanted, epsilon=LITTLE)
                alone = other.query(wanted, epsilon=SURE, fresh=True)
                assert shown(derived) == shown(alone), f"{text}\n{wanted}\n{seed}"
                yield text, wanted


def check(data: Path, seeds: range, questions: int) -> int:
    return len({pair for seed in seeds for pair in pairs(data, seed, questions)})


def test_derived_answers_are_correct(data):
    assert check(data, range(3), 6) > 1


@pytest.mark.slow
def test_derived_answers_are_correct_at_length(data):
    assert check(data, range(1_000, 1_100), 8) > 120
