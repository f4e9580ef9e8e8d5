"""A pytest plugin: a run of the tests goes in, under coverage; which test reached which line, and how long each took, comes out.

The lines are in coverage's own file (a context for each test); the seconds, of tests that passed, in $PRIVSQL_SECONDS.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

_seconds: dict[str, float] = {}
_failed: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    current = coverage.Coverage.current()
    if current is None:
        return (yield)
    current.switch_context(item.nodeid)
    try:
        return (yield)
    finally:
        current.switch_context("")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    if report.outcome != "passed":
        _failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    passed = {test: seconds for test, seconds in _seconds.items() if test not in _failed}
    Path(os.environ["PRIVSQL_SECONDS"]).write_text(json.dumps(passed), encoding="utf-8")
