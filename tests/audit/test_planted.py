"""An audit says BROKEN for every planted mistake, and held for the same queries without it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.audit.planted import PLANTED

ROOT = Path(__file__).resolve().parents[2]
SHARDS = 2  # for two processes


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.audit.planted", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_planted_mistake_is_found(shard: int) -> None:
    done = _run("--shard", f"{shard}/{SHARDS}")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    failed = [each for each in found if "error" in each]
    missed = [each for each in found if each["name"] != "no mistake" and each.get("held", False)]
    alarms = [each for each in found if each["name"] == "no mistake" and not each.get("held", True)]
    assert not failed + missed + alarms, json.dumps([failed, missed, alarms], indent=1)
    assert sum(each["name"] != "no mistake" for each in found) == len(PLANTED[shard::SHARDS])


def test_there_are_many_kinds_of_mistakes() -> None:
    assert len({each.mistake.name for each in PLANTED}) == len(PLANTED) >= 50


@pytest.mark.slow
def test_a_broken_plan_sets_the_exit_code(tmp_path: Path) -> None:
    """As a script would see it: exit code 1, the verdict first, the pair and the picture after it."""
    source = tmp_path / "t.csv"
    source.write_text("k,x\ntrue,1\nfalse,2\n", encoding="utf-8")
    question = (
        "audit",
        str(source),
        "SELECT COUNT(*) FROM t WHERE k",
        "--epsilon",
        "1",
        "--releases",
        "20000",
    )
    done = _run("--cli", "scale 0.7 times too small", *question)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("BROKEN: epsilon at least 1.")
    assert "one person's rows" in done.stdout
