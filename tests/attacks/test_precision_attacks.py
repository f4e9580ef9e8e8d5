"""Attacks on the digits of numbers, end to end: against a naive mechanism in floats each works, against privsql it gains nothing.

Mironov 2012 (low bits of Laplace noise), Haney, Desfontaines, Hartman, Shrestha, Hay 2022 (rounding that depends on the sum),
Casacuberta, Shoemate, Vadhan, Wagaman 2022 (sums that overflow, round and depend on the order of rows).
"""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import privsql

RANGE = 200_000.0


def naive_laplace(rng: Random, exact: float, scale: float) -> float:
    """The textbook in floats, as it must not be done: the positive control of every attack below."""
    noise = -scale * math.log(1.0 - rng.random())
    return exact + (noise if rng.random() < 0.5 else -noise)


def session_of(values: Any, low: float, high: float, neighbours: str = "add-remove") -> privsql.Session:
    frame = pd.DataFrame({"x": values})
    policy = {"neighbours": neighbours, "tables": {"df": {"columns": {"x": {"range": [low, high]}}}}}
    return privsql.connect(frame, policy)


def releases(session: privsql.Session, count: int, epsilon: float = 1.0) -> list[float]:
    return [
        session.query("SELECT SUM(x) AS s FROM df", epsilon=epsilon, fresh=True).df()["s"][0]
        for _ in range(count)
    ]


def step_of(session: privsql.Session) -> Fraction:
    """The grid on which sums are released: a public number, the same for every table under this policy."""
    plan = session.explain("SELECT SUM(x) AS s FROM df", epsilon=1.0)
    (term,) = (
        plan.estimates["sum"].terms if "sum" in plan.estimates else next(iter(plan.estimates.values())).terms
    )
    return Fraction(term[1])


# -- Mironov 2012: which floats can come out depends on the exact value -------------------------------------------
def could_be_naive(seen: float, exact: float, scale: float) -> bool:
    """Whether the naive mechanism can give this float from that value: some uniform float near the right one must do it."""
    for sign in (1.0, -1.0):
        noise = sign * (seen - exact)
        if noise < 0:
            continue
        uniform = round((1.0 - math.exp(-noise / scale)) * 2**53)
        for near in range(uniform - 40, uniform + 41):
            if 0 <= near < 2**53 and exact + sign * (-scale * math.log(1.0 - near / 2**53)) == seen:
                return True
    return False


@pytest.mark.slow
def test_mironov_2012_low_bits_tell_the_naive_mechanism_apart_and_not_privsql() -> None:
    rng, scale = Random(1), 1.0
    told = [could_be_naive(naive_laplace(rng, 0.0, scale), 1.0, scale) for _ in range(400)]
    assert told.count(False) > 40, (
        "the attack must work on the naive mechanism: outputs that only one of the two values can give"
    )

    # two neighbouring tables: whatever comes out of one can come out of the other, since both give every point of one grid
    with_bob, without = session_of([87654.3219, 0.1], 0, RANGE), session_of([0.1], 0, RANGE)
    step = step_of(with_bob)
    assert step == step_of(without)
    for session in (with_bob, without):
        for seen in releases(session, 60):
            assert (Fraction(float(seen)) / step).denominator == 1, (
                "an output off the public grid would tell its exact value"
            )


# -- Haney et al. 2022: the rounding of the last addition depends on how large the sum is -------------------------
def naive_on_a_grid(rng: Random, exact: float, scale: float, grid: float) -> float:
    """Noise that was made on a grid, and added in floats: where the sum is large, the grid is lost."""
    return exact + round(naive_laplace(rng, 0.0, scale) / grid) * grid


@pytest.mark.slow
def test_haney_2022_rounding_that_depends_on_the_sum_tells_the_naive_mechanism_apart_and_not_privsql() -> (
    None
):
    rng, grid, large = Random(2), 2.0**-20, 2.0**34
    off_the_coarse_grid = [
        sum((naive_on_a_grid(rng, exact, 1.0, grid) / (2 * grid)) % 1 != 0 for _ in range(400))
        for exact in (0.0, large)
    ]
    assert off_the_coarse_grid[0] > 100, "small sums keep the last bit of the grid"
    assert off_the_coarse_grid[1] == 0, "large ones lose it: one look at the last bit tells them apart"

    # privsql: the last bit of the released whole number is as good as a coin, however large the sum is
    odd = []
    rows = 5_000
    for values in (np.zeros(1), np.full(rows, RANGE)):
        session = session_of(values, 0, RANGE)
        step = step_of(session)
        whole = [Fraction(float(seen)) / step for seen in releases(session, 150)]
        assert all(each.denominator == 1 for each in whole)
        odd.append(sum(each.numerator % 2 for each in whole))
    for count in odd:  # binomial of 150 coins: outside with probability below 1e-9
        assert 37 < count < 113, odd


def test_haney_2022_the_grid_is_chosen_by_the_policy_and_the_text_alone() -> None:
    small, large = session_of([1e-300, 5e-324], 0, RANGE), session_of([RANGE, 1e308, math.inf], 0, RANGE)
    for sql in (
        "SELECT SUM(x) FROM df",
        "SELECT AVG(x) FROM df",
        "SELECT SUM(LEAST(GREATEST(x * 1e-12, 0), 1e-9)) FROM df",
    ):
        one, two = (session.explain(sql, epsilon=1.0) for session in (small, large))
        assert str(one) == str(two)
        assert one.estimates == two.estimates


# -- Casacuberta et al. 2022: a sum in a computer is not as stable as a sum ---------------------------------------
def exact_sum(plan: Any, values: Any, threads: int = 4) -> dict[str, int]:
    connection = duckdb.connect(":memory:", config={"threads": str(threads)})
    connection.register("df", pd.DataFrame({"x": values}))
    found = connection.execute(plan.sql).fetchdf()
    connection.close()
    return {column: int(found[column][0]) for each in plan.measurements for column in each.columns}


def moved(plan: Any, one: Any, two: Any) -> None:
    """No measurement moves further between neighbours than was paid for."""
    before, after = exact_sum(plan, one), exact_sum(plan, two)
    for each in plan.measurements:
        assert sum(abs(before[column] - after[column]) for column in each.columns) <= each.l1


def test_casacuberta_2022_overflow_tells_the_naive_sum_apart_and_not_privsql() -> None:
    most = 2**62
    values = np.array([most, most - 1], dtype=np.int64)
    neighbour = np.append(values, 1)
    wrapped = abs(int(values.sum()) - int(neighbour.sum()))
    assert wrapped > 2 * most, "the naive sum wraps around: one row worth 1 moves it by 2^64"

    high = 2**61
    session = session_of(values, 0, high)
    plan = session.explain("SELECT SUM(x) FROM df", epsilon=1.0)
    many = np.full(1_000, 2**62, dtype=np.int64)
    for before, after in ((values, neighbour), (many, many[1:]), (many, np.append(many, -(2**63)))):
        moved(plan, before, after)
    answer = session_of(many, 0, high).query("SELECT SUM(x) AS s FROM df", epsilon=1.0)
    assert len(answer.df()) == 1  # no error that would tell that it overflowed


def test_casacuberta_2022_rounding_tells_the_naive_sum_apart_and_not_privsql() -> None:
    most, rows = np.float32(2**20), 2**20
    base, later = np.full(16, most), np.full(rows, 1 + 2**-10, dtype=np.float32)
    with_bob, without = np.concatenate([base, later]), np.concatenate([base[1:], later])
    naive = [float(np.cumsum(each, dtype=np.float32)[-1]) for each in (with_bob, without)]
    assert naive[0] - naive[1] > 1.9 * float(most), (
        "rounded up a million times more often: one row moves the naive sum by two"
    )

    plan = session_of([0.0], 0, float(most)).explain("SELECT SUM(x) FROM df", epsilon=1.0)
    moved(plan, with_bob.astype(np.float64), without.astype(np.float64))


def test_casacuberta_2022_the_order_of_rows_tells_the_naive_sum_apart_and_not_privsql() -> None:
    large, ones = 2.0**53, np.ones(4_000)
    first, last = np.concatenate([[large], ones, [-large]]), np.concatenate([[large, -large], ones])
    naive = [float(np.cumsum(each)[-1]) for each in (first, last)]
    assert naive == [0.0, 4_000.0], (
        "the same rows in another order: the naive sum differs by all the small ones"
    )

    plan = session_of([0.0], -large, large).explain("SELECT SUM(x) FROM df", epsilon=1.0)
    bounded = session_of([0.0], -1, 1).explain("SELECT SUM(x) FROM df", epsilon=1.0)
    rng = np.random.default_rng(3)
    many = np.concatenate([first, rng.uniform(-1, 1, 200_000)])
    for each in (plan, bounded):
        assert exact_sum(each, first, 1) == exact_sum(each, last, 4)
        assert (
            len({tuple(exact_sum(each, rng.permutation(many), threads).values()) for threads in (1, 2, 4)})
            == 1
        )


# -- numbers that are none ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("victim", [math.nan, 1e308, math.inf, -math.inf, -0.0, -1e308, 5e-324])
def test_nan_shows_in_the_naive_sum_and_not_in_privsql(victim: float) -> None:
    naive = [sum([1.0, 2.0, *row]) for row in ([], [victim])]
    if abs(victim) > 1 or math.isnan(victim):
        assert not abs(naive[1] - naive[0]) <= 10, (
            "one row moves the naive sum past its sensitivity, or out of the numbers"
        )
    for function in ("SUM", "AVG", "MEDIAN", "STDDEV"):
        sql = f"SELECT {function}(x) AS s FROM df"
        plan = session_of([1.0], 0, 10).explain(sql, epsilon=1.0)
        if plan.counts:
            moved(plan, [1.0, 2.0], [1.0, 2.0, victim])
        tables = [1.0, 2.0], [1.0, 2.0, victim]
        shown = [
            session_of(each, 0, 10).query(sql, epsilon=1.0, show_all=True).df()["s"][0] for each in tables
        ]
        assert all(math.isfinite(each) for each in shown), shown
        assert all(math.copysign(1, each) == 1 for each in shown if each == 0), "there is one zero"


_HARD = [
    (0.0, 5e-324),
    (0.0, 1e-300),
    (-1e-9, 3e-9),
    (0.1, 0.1 + 2**-50),
    (-1e15, 1e15),
    (5.0, 5.0),
    (0, 2**61),
]


@pytest.mark.slow
@pytest.mark.parametrize(("low", "high"), _HARD)
def test_extreme_ranges_still_bound_one_row(low: float, high: float) -> None:
    """Half steps, neighbours of the ends, and values past them: none moves a cell further than was paid for."""
    middle = (low + high) / 2
    values = [low, high, middle, math.nextafter(low, math.inf), math.nextafter(high, -math.inf), math.nextafter(high, math.inf),
              math.nextafter(low, -math.inf), low - 1, high + 1, 0.0, -0.0, math.nan, math.inf, -math.inf]  # fmt: skip
    for neighbours in ("add-remove", "replace-one"):
        for sql in ("SELECT SUM(x) FROM df", "SELECT AVG(x), COUNT(*) FROM df", "SELECT SUM(x * x) FROM df"):
            try:
                plan = session_of([0.0], low, high, neighbours).explain(sql, epsilon=1.0)
            except privsql.PrivsqlError as error:
                assert error.code in (  # noqa: PT017
                    "argument-epsilon",
                    "refused-unbounded",
                    "refused-range",
                    "refused-too-large",
                ), error
                continue
            for value in values:
                if neighbours == "add-remove":
                    moved(plan, [middle, low], [middle, low, value])
                else:
                    for other in (low, high, math.nan):
                        moved(plan, [middle, other], [middle, value])


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1, 100, 10_000])
def test_every_epsilon_gives_finite_integer_noise(epsilon: float) -> None:
    session = session_of(np.linspace(0, 10, 50), 0, 10)
    for sql in ("SELECT COUNT(*) AS s FROM df", "SELECT SUM(x) AS s FROM df"):
        plan = session.explain(sql, epsilon=epsilon)
        assert all(each.scale > 0 and each.noise_scale * each.loss >= each.l1 for each in plan.measurements)
        assert math.isfinite(session.query(sql, epsilon=epsilon).df()["s"][0])
    for wrong in (0, -1, math.nan, math.inf, 1e-300, 1e300):
        with pytest.raises(privsql.PrivsqlError) as caught:
            session.query("SELECT COUNT(*) FROM df", epsilon=wrong)
        assert caught.value.code == "argument-epsilon"
