"""public_api.py, which `make types` type-checks, runs as well."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("public_api.py")
PARTS = ("plans", "batches_and_audits", "frames", "errors", "releases", "outside_sql", "theory_and_attacks")


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.filterwarnings("ignore::privsql.BoundingWarning")
def test_typed_user_code_runs(part: str) -> None:
    runpy.run_path(str(SCRIPT))[part]()


@pytest.mark.filterwarnings("ignore::privsql.BoundingWarning")
def test_typed_queries_run(tmp_path: Path) -> None:
    runpy.run_path(str(SCRIPT))["queries"](tmp_path)
