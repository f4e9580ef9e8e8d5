"""What the accuracy page calls least: only what the data can tell apart."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "accuracy"))

from compare import Mean, judge
from lines import LINES


def test_means_and_ratios_have_standard_errors() -> None:
    one, other = Mean.of([1.0, 3.0, 1.0, 3.0]), Mean(4.0, 0.4, 100)
    assert (one.value, one.draws) == (2.0, 4)
    assert one.error == pytest.approx(np.std([1, 3, 1, 3], ddof=1) / 2)
    ratio, error = other.ratio(Mean(2.0, 0.0, 100))
    assert (ratio, error) == (2.0, pytest.approx(0.2))
    assert other.above(Mean(2.0, 0.3, 100)) == pytest.approx(4)
    assert Mean(2.0, 0.0, 9).above(Mean(2.0, 0.0, 9)) == 0
    assert Mean(2.0, 0.0, 9).above(Mean(1.0, 0.0, 9)) == np.inf
    assert Mean(1.0, 0.0, 9).above(Mean(2.0, 0.0, 9)) == -np.inf


def test_no_tool_is_called_best_without_significance() -> None:
    """32% and 17% wrong of 40 answers each are not told apart; of 15,000 they are."""
    few, many = (
        {
            tool: Mean(share, (share * (1 - share) / draws) ** 0.5, draws)
            for tool, share in (("a", 0.32), ("b", 0.17))
        }
        for draws in (40, 15_000)
    )
    assert str(judge(few)) == "not told apart: b, a"
    assert str(judge(many)) == "b"
    assert judge({"a": few["a"]}) is None


def test_every_line_has_enough_draws_to_detect_ten_percent() -> None:
    cells = {"COUNT by 50 keys": 50, "AVG by 50 keys": 50, "20 overlapping counts": 20, "ROLLUP, 17 cells": 5}
    cells |= {"CUBE, 20 cells": 5, "unknown keys": 100}
    for line in LINES:
        spread = {"wrong": 2.4, "missed": 0.1}.get(
            line.measure, 1.0
        )  # deviation of one answer's error, over its mean
        relative = spread / (line.draws * cells.get(line.name, 1)) ** 0.5
        assert 3 * relative * 2**0.5 < 0.1, line.name
