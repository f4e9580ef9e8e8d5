"""Post-processing of noisy tables: projection, shrinkage and proportional fitting."""

from __future__ import annotations

import numpy as np
import pytest

from privsql.release.shrinkage import centred, fitted_to_margins, independent, onto_total, shrunk


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("total", [0.0, 1.0, 50.0])
def test_no_table_of_counts_with_this_total_is_nearer(seed, total):
    random = np.random.default_rng(seed)
    table = random.normal(3, 10, (3, 4))
    found = onto_total(table, total)
    assert found.min() >= 0 and found.sum() == pytest.approx(total, abs=1e-9)
    for _ in range(100):
        other = random.dirichlet(np.ones(12)).reshape(3, 4) * total
        between = found + 0.1 * (other - found)
        assert ((found - table) ** 2).sum() <= ((between - table) ** 2).sum() + 1e-9


def test_what_noise_alone_explains_is_shrunk_away():
    guess = np.full((4, 5), 50.0)
    small = centred(np.random.default_rng(1).normal(0, 1, (4, 5)))
    assert shrunk(guess, small, variance=100.0) == pytest.approx(guess, abs=0.1)
    large = centred(np.random.default_rng(1).normal(0, 1e6, (4, 5)))
    assert shrunk(guess, large, variance=1.0) == pytest.approx(guess + large, rel=1e-3)
    assert shrunk(guess, 0 * large, variance=1.0) == pytest.approx(guess)


def test_margins_of_the_guess_are_kept():
    random = np.random.default_rng(3)
    guess = random.gamma(1, 50, (3, 4, 2))
    found = shrunk(guess, centred(random.normal(0, 30, (3, 4, 2))), variance=400.0)
    for axis in range(3):
        assert found.sum(axis=axis) == pytest.approx(guess.sum(axis=axis))


def test_less_is_kept_of_what_is_measured_in_rare_cells():
    random = np.random.default_rng(4)
    guess = np.outer([1_000.0, 1_000.0, 1.0, 1.0], np.full(4, 0.25))
    measured = np.array([centred(random.normal(0, 10, (4, 4))) for _ in range(200)])
    moved = np.array([shrunk(guess, each, variance=50.0) - guess for each in measured])
    kept = np.abs(moved).mean(axis=(0, 2)) / np.abs(measured).mean(axis=(0, 2))
    assert kept[2:].max() < kept[:2].min()


def test_shrinking_lowers_the_error_on_average():
    random = np.random.default_rng(1)
    guess = np.full((5, 5), 20.0)
    truth = guess + centred(random.normal(0, 1, (5, 5)))
    before = after = 0.0
    for _ in range(300):
        noise = centred(random.normal(0, 2, (5, 5)))
        before += (noise**2).sum()
        after += ((shrunk(guess, centred(truth) + noise, 4.0) - truth) ** 2).sum()
    assert after < 0.5 * before


def test_proportional_fitting_meets_its_margins_and_adds_no_interaction():
    random = np.random.default_rng(2)
    table = random.dirichlet(np.ones(24)).reshape(2, 3, 4) * 1_000
    found = fitted_to_margins([table.sum(axis=axis) for axis in range(3)])
    for axis in range(3):
        assert found.sum(axis=axis) == pytest.approx(table.sum(axis=axis), abs=0.1)
    assert centred(np.log(found)) == pytest.approx(np.zeros((2, 3, 4)), abs=1e-6)


def test_margins_with_empty_cells_are_fitted():
    table = np.zeros((2, 2, 2))
    table[0, 0, 0] = table[1, 1, 1] = 5.0
    assert fitted_to_margins([table.sum(axis=axis) for axis in range(3)]) == pytest.approx(table)


def test_independent_columns_have_their_margins():
    found = independent([np.array([1.0, 3.0]), np.array([2.0, 2.0])], 4.0)
    assert found.sum(axis=1) == pytest.approx([1, 3]) and found.sum(axis=0) == pytest.approx([2, 2])
