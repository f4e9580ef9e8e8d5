"""Which of a test's cases run by default: some now, the others in the slow run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_now(cases: Iterable[Any]) -> list[Any]:
    """Cases of one argument each, for parametrize: the first one now."""
    return some_now(cases, 10**9)


def some_now(cases: Iterable[Any], each: int) -> list[Any]:
    """The first of every so many now."""
    return [case if place % each == 0 else pytest.param(case, marks=pytest.mark.slow) for place, case in enumerate(cases)]
