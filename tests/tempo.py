"""Which of a test's cases run by default: the first one now, the others in the slow run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_now(cases: Iterable[Any]) -> list[Any]:
    """Cases of one argument each, for parametrize."""
    first, *others = cases
    return [first, *(pytest.param(each, marks=pytest.mark.slow) for each in others)]
