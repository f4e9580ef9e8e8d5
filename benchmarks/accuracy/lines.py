"""What is compared: made-up data, the questions, and how far an answer is from the exact one.

Answers are lists, the same for every tool: numbers in the order of the keys, or labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

HIGH, SPENT, AMOUNT, ROWS_A_USER = (
    200.0,
    50.0,
    100,
    10,
)  # upper ends of the ranges, all of which begin at 0; rows of one user
KEYS = [f"k{index:02d}" for index in range(50)]
CANDIDATES = ["a", "b", "c", "d", "e"]
REGIONS, YEARS = ["east", "north", "south", "west"], [2020, 2021, 2022]
FLAGS = [f"q{index:02d}" for index in range(20)]
QUANTILES = [0.1, 0.5, 0.9]
POLICY: dict[str, Any] = {
    "tables": {
        "people": {
            "columns": {
                "age": {"range": [0, 120]},
                "income": {"range": [0, HIGH]},
                "spent": {"range": [0, SPENT]},
                "smoker": {"range": [0, 1]},
                "key": {"values": KEYS},
                "first": {"values": CANDIDATES},
                "third": {"values": CANDIDATES},
                "region": {"values": REGIONS},
                "year": {"values": YEARS},
            }
        },
        "visits": {"unit": "user_id", "max_rows": ROWS_A_USER, "columns": {"amount": {"range": [0, AMOUNT]}}},
    }
}


@dataclass(frozen=True)
class Line:
    """A query; its rows begin with this many key columns.

    `draws`: so many that the standard error of the mean error is about 2% of it, and 10% between two tools
    are three standard errors of their difference. The absolute value of Laplace noise needs 2,500 for that, a
    share of wrong answers of 15% needs 14,000, and cells with noise of their own count as draws each.
    """

    name: str
    sql: str
    measure: str = "off"  # mean distance of the numbers; "%": in relation; "wrong": share of labels; "missed": number of labels
    keys: int = 0
    epsilon: float = 1.0
    delta: float = 0.0
    draws: int = 3_000

    def answer(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        if self.measure in ("wrong", "missed"):
            return [row[0] for row in rows]
        ordered = sorted(rows, key=lambda row: [str(key) for key in row[: self.keys]])
        cells = [cell for row in ordered for cell in row[self.keys :]]
        return [float(number) for cell in cells for number in (cell if isinstance(cell, list) else [cell])]

    def error(self, answer: list[Any], exact: list[Any]) -> float:
        match self.measure:
            case "missed":
                return float(len(set(exact) - set(answer)))
            case "wrong":
                return len(set(exact) - set(answer)) / len(exact)
            case "%":
                return float(np.mean(np.abs(np.subtract(answer, exact) / exact))) * 100
        return float(np.mean(np.abs(np.subtract(answer, exact))))

    def errors(self, answer: Callable[[], list[Any]], exact: list[Any], share: float = 1.0) -> list[float]:
        """The error of each of its draws, or of a share of them."""
        return [self.error(answer(), exact) for _ in range(max(2, round(self.draws * share)))]


def _select(what: str, draws: int = 3_000) -> Line:
    return Line(what.split("(")[0], f"SELECT {what} FROM people", "%", draws=draws)


LINES = [
    Line("COUNT", "SELECT COUNT(*) FROM people"),
    Line("COUNT, filtered", "SELECT COUNT(*) FROM people WHERE age > 40"),
    Line(
        "COUNT by 50 keys",
        "SELECT key, COUNT(*) FROM people WHERE key IS NOT NULL GROUP BY key",
        keys=1,
        draws=200,
    ),
    _select("SUM(income)"),
    _select("AVG(income)"),
    Line(
        "AVG by 50 keys",
        "SELECT key, AVG(income) FROM people WHERE key IS NOT NULL GROUP BY key",
        "%",
        keys=1,
        draws=200,
    ),
    Line("COUNT, SUM, AVG", "SELECT COUNT(*), SUM(income), AVG(income) FROM people", "%"),
    Line("proportion", "SELECT AVG(CASE WHEN smoker = 1 THEN 1.0 ELSE 0 END) FROM people", "%"),
    _select("VAR_POP(income)"),
    _select("STDDEV_POP(income)"),
    _select("COVAR_POP(spent, income)"),
    _select("CORR(spent, income)"),
    _select("REGR_SLOPE(spent, income)"),
    _select("MEDIAN(income)"),
    Line("quantiles .1 .5 .9", f"SELECT QUANTILE_CONT(income, {QUANTILES}) FROM people", "%"),
    Line("quantile .999", "SELECT QUANTILE_CONT(income, 0.999) FROM people", "%"),
    _select("MIN(income)"),
    _select("MAX(income)"),
    Line(
        "argmax of 5, gap 5",
        "SELECT first FROM people GROUP BY first ORDER BY COUNT(*) DESC LIMIT 1",
        "wrong",
        epsilon=0.5,
        draws=15_000,
    ),
    Line("MODE", "SELECT MODE(first) FROM people", "wrong", epsilon=0.5, draws=15_000),
    Line(
        "top 3 of 5, gaps 5",
        "SELECT third FROM people GROUP BY third ORDER BY COUNT(*) DESC LIMIT 3",
        "wrong",
        epsilon=0.5,
        draws=30_000,
    ),
    Line(
        "20 overlapping counts",
        f"SELECT {', '.join(f'COUNT(*) FILTER (WHERE {q} = 1)' for q in FLAGS)} FROM people",
        delta=1e-6,
        draws=300,
    ),
    Line("unknown keys", "SELECT word, COUNT(*) FROM people GROUP BY word", "missed", delta=1e-6, draws=100),
    Line(
        "ROLLUP, 17 cells",
        "SELECT region, year, COUNT(*) FROM people WHERE region IS NOT NULL GROUP BY ROLLUP (region, year)",
        keys=2,
        draws=1_000,
    ),
    Line(
        "CUBE, 20 cells",
        "SELECT region, year, COUNT(*) FROM people WHERE region IS NOT NULL GROUP BY CUBE (region, year)",
        keys=2,
        draws=1_000,
    ),
    Line("users", "SELECT COUNT(DISTINCT user_id) FROM visits"),
    Line("SUM, 10 rows a user", "SELECT SUM(amount) FROM visits", "%"),
]


def tables(rows: int) -> dict[str, pd.DataFrame]:
    """The same for the same number of rows."""
    chance = np.random.default_rng(4)
    income = np.clip(chance.lognormal(3.2, 0.5, rows), 0, HIGH).round(2)
    people = {
        "age": np.clip(chance.normal(42, 16, rows), 0, 120).astype(int),
        "income": income,
        "spent": np.clip(income / 5 + chance.normal(4, 3, rows), 0, SPENT).round(2),
        "smoker": (chance.random(rows) < 0.23).astype(int),
        "key": chance.choice(KEYS, rows),
        "first": _ranked(rows, [0, 0, 0, 5, 0]),
        "third": _ranked(rows, [10, -10, 0, -5, 5]),
        "region": chance.choice(REGIONS, rows, p=[0.4, 0.3, 0.2, 0.1]),
        "year": chance.choice(YEARS, rows),
        "word": [f"w{number}" for number in chance.zipf(1.5, rows).clip(1, 5000)],
    } | {flag: (chance.random(rows) < 0.4).astype(int) for flag in FLAGS}
    visits = chance.geometric(0.25, rows // 4).clip(1, 2 * ROWS_A_USER)
    owners = np.repeat(np.arange(rows // 4), visits)
    amounts = chance.integers(0, AMOUNT + 1, len(owners))
    return {"people": pd.DataFrame(people), "visits": pd.DataFrame({"user_id": owners, "amount": amounts})}


def _ranked(rows: int, leads: list[int]) -> list[str]:
    """Candidates this far ahead of an equal share; what is left over has no candidate."""
    share = rows // len(leads) - max(leads)
    counted = [label for label, lead in zip(CANDIDATES, leads, strict=True) for _ in range(share + lead)]
    return counted + ["none"] * (rows - len(counted))


def bounded(visits: pd.DataFrame) -> pd.DataFrame:
    """At most so many rows a user, as every tool has to see to."""
    return visits[visits.groupby("user_id").cumcount() < ROWS_A_USER]
