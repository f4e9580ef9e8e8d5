"""The tables -> the same lines by OpenDP, SmartNoise SQL and diffprivlib, whichever of them this interpreter can import.

    python benchmarks/accuracy/rivals.py FOLDER [--share 1] [--only AVG]

reads people.csv and visits.csv there and prints JSON: tool -> version, line -> errors. It needs no privsql.
Each tool is used in the way that suits it best: exact counts are made beforehand, rows of a user are bounded beforehand.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lines import AMOUNT, CANDIDATES, FLAGS, HIGH, KEYS, LINES, QUANTILES, ROWS_A_USER, SPENT, bounded

Answers = dict[str, Callable[[], list[Any]]]
CHOICE, DELTA = 0.5, 1e-6  # epsilon of the choices, delta where there is one
# lines on which a tool takes the number of rows as known: right under replace-one only
REPLACE_ONE = {
    "diffprivlib": {"AVG", "proportion", "VAR_POP", "STDDEV_POP", "COUNT, SUM, AVG", "REGR_SLOPE"},
    "OpenDP": {"VAR_POP", "STDDEV_POP"},
}


def opendp(tables: dict[str, pd.DataFrame]) -> Answers:
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious", "floating-point")
    people, visits = tables["people"], bounded(tables["visits"])
    distance, pure = dp.symmetric_distance(), dp.max_divergence()
    income, smoker = people["income"].tolist(), people["smoker"].astype(float).tolist()
    labels = (dp.vector_domain(dp.atom_domain(T=str)), distance)
    floats = (dp.vector_domain(dp.atom_domain(T=float, nan=False)), distance)
    fitted = dp.binary_search_chain

    def counting(epsilon: float) -> Any:
        count = dp.t.make_count(dp.vector_domain(dp.atom_domain(T=int)), distance)
        return fitted(lambda scale: count >> dp.m.then_laplace(scale), d_in=1, d_out=epsilon)

    def summing(high: float, epsilon: float, rows: int = 1) -> Any:
        total = dp.t.make_clamp(*floats, (0.0, high)) >> dp.t.then_sum()
        return fitted(lambda scale: total >> dp.m.then_laplace(scale), d_in=rows, d_out=epsilon)

    def quantile(share: float, epsilon: float) -> Callable[[], float]:
        grid = np.linspace(0, HIGH, 2001).tolist()
        private = fitted(
            lambda s: dp.m.make_private_quantile(*floats, pure, grid, share, s), d_in=1, d_out=epsilon
        )
        return lambda: float(private(income))

    def largest(column: str, k: int) -> Callable[[], list[Any]]:
        counts = [int((people[column] == each).sum()) for each in CANDIDATES]
        scores = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int, monotonic=True)
        private = fitted(lambda s: dp.m.make_noisy_top_k(*scores, pure, k=k, scale=s), d_in=1, d_out=CHOICE)
        return lambda: [CANDIDATES[index] for index in private(counts)]

    def variance() -> Callable[[], float]:
        sized = dp.vector_domain(dp.atom_domain(bounds=(0.0, HIGH), nan=False), len(income)), distance
        spread = dp.t.make_variance(*sized, ddof=0)
        private = fitted(lambda scale: spread >> dp.m.then_laplace(scale), d_in=2, d_out=1.0)
        return lambda: float(private(income))

    whole = (dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float))
    gaussian = fitted(
        lambda scale: dp.c.make_fix_delta(
            dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*whole, scale)), DELTA
        ),
        d_in=len(FLAGS) ** 0.5,
        d_out=(1.0, DELTA),
    )
    flags = [int(people[flag].sum()) for flag in FLAGS]
    by_key = fitted(
        lambda s: (
            dp.t.make_count_by_categories(*labels, categories=KEYS, null_category=False)
            >> dp.m.then_laplace(s)
        ),
        d_in=1,
        d_out=1.0,
    )
    thresholds = (
        dp.t.make_count_by(*labels) >> dp.m.then_laplace_threshold(1.0000001, each) for each in range(2, 1000)
    )
    # one step past the first that it says will do: 0.14.2 shows what reaches the threshold and counts only what passes it (at a
    # threshold of 2 it shows a key of one person 26% of the time, and says delta = 0.099)
    unknown = [next(each for each in thresholds if each.map(1)[1] <= DELTA), next(thresholds)][1]
    count, half, total, half_total, share = (
        counting(1.0),
        counting(0.5),
        summing(HIGH, 1.0),
        summing(HIGH, 0.5),
        summing(1.0, 0.5),
    )
    users = summing(float(AMOUNT), 1.0, ROWS_A_USER)
    known = list(range(len(people)))
    older, owners = people.index[people["age"] > 40].tolist(), visits["user_id"].unique().tolist()
    keys, words, amounts = (
        people["key"].tolist(),
        people["word"].tolist(),
        visits["amount"].astype(float).tolist(),
    )
    median, several = quantile(0.5, 1.0), [quantile(each, 1 / 3) for each in QUANTILES]
    low, high, one, three, spread = (
        quantile(0.001, 1.0),
        quantile(0.999, 1.0),
        largest("first", 1),
        largest("third", 3),
        variance(),
    )
    return {
        "COUNT": lambda: [count(known)],
        "COUNT, filtered": lambda: [count(older)],
        "COUNT by 50 keys": lambda: by_key(keys),
        "SUM": lambda: [total(income)],
        "AVG": lambda: [half_total(income) / half(known)],
        "proportion": lambda: [share(smoker) / half(known)],
        "VAR_POP": lambda: [spread()],
        "STDDEV_POP": lambda: [max(spread(), 0) ** 0.5],
        "MEDIAN": lambda: [median()],
        "quantiles .1 .5 .9": lambda: [each() for each in several],
        "quantile .999": lambda: [high()],
        "MIN": lambda: [low()],
        "MAX": lambda: [high()],
        "argmax of 5, gap 5": one,
        "MODE": one,
        "top 3 of 5, gaps 5": three,
        "20 overlapping counts": lambda: gaussian(flags),
        "unknown keys": lambda: list(unknown(words)),
        "users": lambda: [count(owners)],
        "SUM, 10 rows a user": lambda: [users(amounts)],
    }


def diffprivlib(tables: dict[str, pd.DataFrame]) -> Answers:
    from diffprivlib import mechanisms, models, tools

    people = tables["people"]
    x, y, smoker = people["income"].to_numpy(), people["spent"].to_numpy(), people["smoker"].to_numpy()
    key = people["key"].map(KEYS.index).to_numpy()
    bounds = {"bounds": (0, HIGH)}
    counts = [int((people["first"] == each).sum()) for each in CANDIDATES]
    totals = tables["visits"].groupby("user_id")["amount"].sum().to_numpy()  # clipped by the tool
    older, flags = people["age"].to_numpy() > 40, people[FLAGS].sum()

    def among(size: int) -> Any:
        """Those who are there, among as many who are not: it cuts a count at the size of its array, which here would be the
        exact answer."""
        return np.repeat([1, 0], size)

    def choice() -> list[Any]:
        flip = mechanisms.PermuteAndFlip(epsilon=CHOICE, sensitivity=1, utility=counts, monotonic=True)
        return [CANDIDATES[flip.randomise()]]

    def regression() -> list[float]:
        model = models.LinearRegression(epsilon=1.0, bounds_X=(0, HIGH), bounds_y=(0, SPENT))
        return [float(model.fit(x.reshape(-1, 1), y).coef_[0])]

    def three() -> list[float]:
        part = 1 / 2  # the number of rows is known, so the average is the sum's
        count, total = (
            tools.count_nonzero(np.ones(len(x)), epsilon=part),
            tools.sum(x, epsilon=part, **bounds),
        )
        return [count, total, total / len(x)]

    gaussian = mechanisms.GaussianAnalytic(epsilon=1.0, delta=DELTA, sensitivity=len(FLAGS) ** 0.5)
    return {
        "COUNT": lambda: [tools.count_nonzero(among(len(x)), epsilon=1.0)],
        "COUNT, filtered": lambda: [tools.count_nonzero(older, epsilon=1.0)],
        "COUNT by 50 keys": lambda: list(
            tools.histogram(key, epsilon=1.0, bins=len(KEYS), range=(0, len(KEYS)))[0]
        ),
        "SUM": lambda: [tools.sum(x, epsilon=1.0, **bounds)],
        "AVG": lambda: [tools.mean(x, epsilon=1.0, **bounds)],
        "COUNT, SUM, AVG": three,
        "proportion": lambda: [tools.mean(smoker, epsilon=1.0, bounds=(0, 1))],
        "VAR_POP": lambda: [tools.var(x, epsilon=1.0, **bounds)],
        "STDDEV_POP": lambda: [tools.std(x, epsilon=1.0, **bounds)],
        "REGR_SLOPE": regression,
        "MEDIAN": lambda: [tools.median(x, epsilon=1.0, **bounds)],
        "quantiles .1 .5 .9": lambda: list(tools.quantile(x, QUANTILES, epsilon=1.0, **bounds)),
        "quantile .999": lambda: [tools.quantile(x, 0.999, epsilon=1.0, **bounds)],
        "MIN": lambda: [tools.quantile(x, 0.001, epsilon=1.0, **bounds)],
        "MAX": lambda: [tools.quantile(x, 0.999, epsilon=1.0, **bounds)],
        "argmax of 5, gap 5": choice,
        "MODE": choice,
        "20 overlapping counts": lambda: [gaussian.randomise(float(each)) for each in flags],
        "users": lambda: [tools.count_nonzero(among(len(totals)), epsilon=1.0)],
        "SUM, 10 rows a user": lambda: [tools.sum(totals, epsilon=1.0, bounds=(0, AMOUNT * ROWS_A_USER))],
    }


def smartnoise(tables: dict[str, pd.DataFrame]) -> Answers:
    import snsql

    people = tables["people"]
    number = {"lower": 0, "nullable": False}
    columns: dict[str, Any] = {name: {"type": "string"} for name in ("key", "word")}
    columns |= {"age": {"type": "int"}, "income": number | {"type": "float", "upper": HIGH}}
    columns |= {name: number | {"type": "int", "upper": 1} for name in ("smoker", *FLAGS)}
    owned = {
        "user_id": {"type": "int", "private_id": True},
        "amount": number | {"type": "int", "upper": AMOUNT},
    }

    def asked(sql: str, keys: int, labels: bool) -> Callable[[], list[Any]]:
        name, frame, known = (
            ("visits", tables["visits"], owned)
            if " s.visits" in sql
            else ("people", people[list(columns)], columns)
        )
        settings: dict[str, Any] = {"rows": len(frame), "censor_dims": labels, "clamp_counts": False}
        settings |= {"max_ids": ROWS_A_USER} if known is owned else {"row_privacy": True}

        def reader(epsilon: float) -> Any:
            privacy = snsql.Privacy(epsilon=epsilon, delta=DELTA)
            return snsql.from_df(frame, privacy=privacy, metadata={"": {"s": {name: settings | known}}})

        each = 1.0  # its epsilon is per column: less, until the whole costs 1
        for _ in range(4):
            cost = reader(each).get_privacy_cost(sql)[0]
            if abs(cost - 1) < 1e-6:
                break
            each = min(1.0, each / cost)
        private = reader(each)
        parsed = private.parse_query_string(sql)
        rewritten = private._rewrite_ast(parsed)  # the SQL and its mechanisms: only the noise is drawn again
        exact = private._get_reader(rewritten[0])._execute_ast(rewritten[0])
        private._rewrite_ast = lambda _: rewritten

        def run() -> list[Any]:
            rows = private._execute_ast(parsed, pre_aggregated=exact)[1:]
            ordered = sorted(rows, key=lambda row: [str(key) for key in row[:keys]])
            return [row[0] for row in rows] if labels else [cell for row in ordered for cell in row[keys:]]

        return run

    questions = {
        "COUNT": "SELECT COUNT(*) AS n FROM s.people",
        "COUNT, filtered": "SELECT COUNT(*) AS n FROM s.people WHERE age > 40",
        "COUNT by 50 keys": "SELECT key, COUNT(*) AS n FROM s.people GROUP BY key",
        "SUM": "SELECT SUM(income) AS n FROM s.people",
        "AVG": "SELECT AVG(income) AS n FROM s.people",
        "AVG by 50 keys": "SELECT key, AVG(income) AS n FROM s.people GROUP BY key",
        "COUNT, SUM, AVG": "SELECT COUNT(*) AS n, SUM(income) AS s, AVG(income) AS a FROM s.people",
        "proportion": "SELECT AVG(smoker) AS n FROM s.people",
        "VAR_POP": "SELECT VAR(income) AS n FROM s.people",
        "STDDEV_POP": "SELECT STDDEV(income) AS n FROM s.people",
        "20 overlapping counts": f"SELECT {', '.join(f'SUM({flag}) AS {flag}' for flag in FLAGS)} FROM s.people",
        "unknown keys": "SELECT word, COUNT(*) AS n FROM s.people GROUP BY word",
        "users": "SELECT COUNT(DISTINCT user_id) AS n FROM s.visits",
        "SUM, 10 rows a user": "SELECT SUM(amount) AS n FROM s.visits",
    }

    def later(name: str) -> Callable[[], list[Any]]:
        """Set up when it is first asked: finding what it costs takes a second."""
        made = cache(
            lambda: asked(questions[name], keys=int("by 50 keys" in name), labels=name == "unknown keys")
        )
        return lambda: made()()

    return {name: later(name) for name in questions}


TOOLS = {
    "OpenDP": ("opendp", opendp),
    "SmartNoise": ("smartnoise-sql", smartnoise),
    "diffprivlib": ("diffprivlib", diffprivlib),
}


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else float(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--share", type=float, default=1.0, help="of the draws of each line")
    parser.add_argument("--only", default="", help="lines whose names have this in them")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = {name: pd.read_csv(args.folder / f"{name}.csv") for name in ("people", "visits")}
    truths = json.loads((args.folder / "truths.json").read_text())
    found: dict[str, Any] = {}
    for tool, (package, make) in TOOLS.items():
        try:
            lines = make(tables)
        except ImportError as error:
            found[tool] = {"absent": str(error)}
            continue
        errors: dict[str, Any] = {}
        for line in LINES:
            if line.name in lines and args.only in line.name:
                try:
                    errors[line.name] = line.errors(lines[line.name], truths[line.name], args.share)
                except Exception as error:  # noqa: BLE001 -- what a tool fails at is a finding, and the others go on
                    errors[line.name] = f"{type(error).__name__}: {error}"
        found[tool] = {"version": importlib.metadata.version(package), "errors": errors}
    print(json.dumps(found, default=plain))


if __name__ == "__main__":
    main()
