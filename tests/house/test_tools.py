"""The tools of tools/ find what they import, wherever tests were moved to."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def test_comparing_plans_explains_itself_when_it_is_called_without_arguments():
    script = [sys.executable, str(TOOLS / "compare_plans.py")]
    done = subprocess.run(script, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (2, "") and "dump before.json" in done.stdout


@pytest.fixture(scope="module")
def house() -> ModuleType:
    found = importlib.util.spec_from_file_location("house_of_tools", TOOLS / "house.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "text",
    [
        "SELECT bucket, COUNT(*) AS n FROM (held) GROUP BY bucket",
        "CAST({} AS DOUBLE)",
        "CASE WHEN held = 0 THEN 0 ELSE held END AS bucket",
        " WHERE held IS NOT NULL",
        "FROM held",
        "WITH held AS (SELECT 1) SELECT * FROM held",
    ],
)
def test_the_house_finds_sql_in_a_text(house, text):
    assert house.is_sql(text)


@pytest.mark.parametrize(
    "text",
    [
        "GROUP BY held: which values occur is itself private",
        "Check WHERE against the declared values.",
        "group by CAST(floor({} / WIDTH) AS INTEGER)",
        "name those that may be shown: WHERE held IN (VALUES)",
        "least",
    ],
)
def test_the_house_lets_messages_speak_of_sql(house, text):
    assert not house.is_sql(text)
