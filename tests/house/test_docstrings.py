"""The docstrings of the public interface: each says what goes in, what comes out and what is raised, and its example runs."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

import privsql
from privsql import attacks, mechanisms, policy, teaching, theory

COMPLETE = [
    *(
        getattr(module, name)
        for module in (attacks, mechanisms, theory)
        for name in module.__all__
        if name[0].islower()
    ),
    teaching.noisy_max,
    policy.load_policy,
]
PUBLIC = [
    *COMPLETE,
    *(getattr(module, name) for module in (privsql, policy) for name in module.__all__),
    *(
        getattr(module, name)
        for module in (attacks, mechanisms, theory)
        for name in module.__all__
        if name[0].isupper()
    ),
]


def examples(target: Any) -> list[doctest.DocTest]:
    found = doctest.DocTestFinder(recurse=True).find(target, getattr(target, "__name__", "public"))
    return [each for each in found if each.examples]


@pytest.mark.parametrize("target", COMPLETE, ids=lambda each: each.__name__)
def test_public_functions_are_documented_whole(target: Any) -> None:
    text = target.__doc__ or ""
    for heading in ("Arguments:", "Returns:", "Raises:", "Example:"):
        assert heading in text, f"{target.__name__} has no {heading}"
    assert examples(target), f"{target.__name__} has no example that runs"


def test_examples_in_docstrings_run() -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    shown: list[str] = []
    seen = {each.name: each for target in PUBLIC if callable(target) for each in examples(target)}
    assert len(seen) >= len(COMPLETE)
    for each in seen.values():
        runner.run(each, out=shown.append)
    assert runner.failures == 0, "".join(shown)
