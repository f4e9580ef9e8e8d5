"""The docstrings of the public interface: arguments, results and errors are described, and the examples
run.
"""

from __future__ import annotations

import doctest
import functools
import inspect
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import privsql
from privsql import attacks, mechanisms, policy, teaching, theory


def alternatives(public: Any) -> list[Any]:
    """A public name, or the classes that it stands for."""
    return list(getattr(public, "__args__", None) or [public])


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
    *(
        each
        for module in (privsql, policy)
        for name in module.__all__
        for each in alternatives(getattr(module, name))
    ),
    *(
        getattr(module, name)
        for module in (attacks, mechanisms, theory)
        for name in module.__all__
        if name[0].isupper()
    ),
]


METHODS = [
    privsql.connect,
    *(
        method
        for owner in (privsql.Session, *alternatives(privsql.Answer), privsql.FrameAccessor)
        for name, method in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith("_") and name != "close"
    ),
    *(each.accuracy for each in alternatives(privsql.Plan)),
]
VISITS = pd.DataFrame({"user_id": [1, 1, 2, 3], "state": ["CA", "NY", "CA", "NY"], "age": [37, 37, 64, 50]})
COLUMNS = {"state": {"values": ["CA", "NY"], "nullable": False}, "age": {"range": [0, 120]}}


@functools.cache
def names_in_examples() -> dict[str, Any]:
    """What the examples of methods may use: a frame, a session on it and an answer."""
    declared = {"unit": "user_id", "max_rows": 2, "max_groups": 2, "columns": COLUMNS}
    session = privsql.connect({"visits": VISITS}, {"tables": {"visits": declared}})
    answer = session.query("SELECT state, COUNT(*) AS n FROM visits GROUP BY state", epsilon=0.5)
    return {"privsql": privsql, "pd": pd, "df": VISITS.copy(), "session": session, "answer": answer}


def examples(target: Any) -> list[doctest.DocTest]:
    name = getattr(target, "__qualname__", "public")
    found = doctest.DocTestFinder(recurse=True).find(target, name, extraglobs=names_in_examples())
    return [each for each in found if each.examples]


@pytest.mark.parametrize("method", METHODS, ids=lambda each: each.__qualname__)
def test_public_methods_are_documented(method: Any) -> None:
    """Arguments and results are described where there are any, and an example runs."""
    text, signature = method.__doc__ or "", inspect.signature(method)
    own = [name for name in signature.parameters if name not in ("self", "unknown")]
    described = [name for name in own if f"{name}:" in text or f"{name}," in text]
    assert described == own
    assert "Returns:" in text or signature.return_annotation == "None"
    assert examples(method)


@pytest.mark.parametrize("target", COMPLETE, ids=lambda each: each.__name__)
def test_public_functions_are_fully_documented(target: Any) -> None:
    text = target.__doc__ or ""
    for heading in ("Arguments:", "Returns:", "Raises:", "Example:"):
        assert heading in text, f"{target.__name__} has no {heading}"
    assert examples(target), f"{target.__name__} has no example that runs"


def test_examples_in_docstrings_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write a file
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    shown: list[str] = []
    targets = [target for target in PUBLIC if callable(target)] + METHODS
    seen = {each.name: each for target in targets for each in examples(target)}
    assert len(seen) >= len(COMPLETE) + len(METHODS)
    for each in seen.values():
        runner.run(each, out=shown.append)
    assert runner.failures == 0, "".join(shown)
