"""randomised_columns: each of k bits at epsilon/k, flips as often as they should, intervals that cover all at once."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privsql
from privsql import mechanisms
from privsql.mechanisms.responses import _respond_columns
from tests.noise.statistics import FALSE_ALARM, Buffered

TABLE = {"a": np.arange(40_000) % 4 == 0, "b": np.arange(40_000) % 2 == 0, "c": np.zeros(40_000, dtype=bool)}


def test_each_column_is_flipped_at_its_share_of_epsilon():
    responses = _respond_columns(TABLE, 3.6, Buffered())
    assert responses.epsilon == pytest.approx(3.6)
    for name, bits in TABLE.items():
        turned = int((responses[name].answers != bits).sum())
        assert responses[name].epsilon == pytest.approx(1.2)
        assert stats.binomtest(turned, bits.size, 1 / (1 + math.exp(1.2))).pvalue > FALSE_ALARM
        for wrong in (3.6, 0.9):
            assert stats.binomtest(turned, bits.size, 1 / (1 + math.exp(wrong))).pvalue < FALSE_ALARM


def test_the_flips_of_columns_are_independent():
    """Of one person's answers together the loss is the sum: both are kept with the product of the chances."""
    responses = _respond_columns(TABLE, 3.6, Buffered())
    kept = (responses["a"].answers == TABLE["a"]) & (responses["b"].answers == TABLE["b"])
    chance = (1 / (1 + math.exp(-1.2))) ** 2
    assert stats.binomtest(int(kept.sum()), kept.size, chance).pvalue > FALSE_ALARM


def test_intervals_hold_for_all_columns_at_once():
    responses = mechanisms.randomised_columns(TABLE, 3.0)
    intervals = responses.intervals(1 - 1e-9)
    for name, bits in TABLE.items():
        low, high = intervals[name]
        assert low <= bits.mean() <= high and low <= max(0, responses.estimates[name]) <= max(high, 1)
        assert intervals[name] == responses[name].interval(1 - 1e-9 / 3)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"x": [0, 1, 1], "y": [True, False, True]}),
        {"x": [0, 1, 1], "y": [1, 0, 1]},
        np.array([[0, 1], [1, 0], [1, 1]]),
        [[0, 1], [1, 0], [1, 1]],
    ],
    ids=["frame", "dict", "array", "lists"],
)
def test_forms_of_a_table(table):
    responses = mechanisms.randomised_columns(table, 1)
    assert [each.answers.size for each in responses.columns.values()] == [3, 3]
    assert list(responses.columns) in (["x", "y"], [0, 1])
    with pytest.raises(TypeError):
        responses.columns["x"] = None
    with pytest.raises(ValueError):
        next(iter(responses.columns.values())).answers[0] = True


@pytest.mark.parametrize(
    "table",
    [
        None,
        {},
        [],
        [1, 0],
        "01",
        [[0, 1], [1]],
        {"a": [0, 1], "b": [1]},
        {"a": [2]},
        {"a": []},
        np.zeros((0, 2)),
    ],
    ids=str,
)
def test_refused(table):
    with pytest.raises(privsql.ArgumentError) as refused:
        mechanisms.randomised_columns(table, 1)
    assert refused.value.code == "argument-numbers"
