"""The tools of tools/ find what they import, wherever tests were moved to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def test_comparing_plans_explains_itself_when_it_is_called_without_arguments():
    script = [sys.executable, str(TOOLS / "compare_plans.py")]
    done = subprocess.run(script, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (2, "") and "dump before.json" in done.stdout
