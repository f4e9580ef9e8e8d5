"""A query function and queries go in; answers come out, up to the first that the budget refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from privsql.errors import ArgumentError, BudgetError
from privsql.theory.checked import exact


def answers_to(ask: Callable[..., Any], queries: Iterable[tuple[Any, ...]]) -> tuple[list[float], bool]:
    """The answers, and whether a BudgetError ended them. Every other error is the caller's."""
    if not callable(ask):
        raise ArgumentError(
            "argument-shape", "ask must be a function that answers one query", "try lambda subset: ..."
        )
    answers: list[float] = []
    for query in queries:
        try:
            answers.append(float(exact(ask(*query), "answer")))
        except BudgetError:
            return answers, True
    return answers, False
