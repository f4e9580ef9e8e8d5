"""What docs/engines.md says of functions and casts is what the dialects do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from privsql.algebra.functions import FUNCTIONS
from privsql.render.postgres_functions import CONDITIONS, FORMS, REASONS

ROOT = Path(__file__).parents[2]


def test_the_page_is_written_from_the_code() -> None:
    done = subprocess.run([sys.executable, "tools/engine_table.py", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run python tools/engine_table.py"


def test_every_function_has_a_form_or_a_reason() -> None:
    missing = set(FUNCTIONS) - set(FORMS) - set(REASONS) - {"date_diff"}  # by unit
    assert not missing
    assert not set(FORMS) & set(REASONS)
    assert set(FORMS) | set(REASONS) | set(CONDITIONS) <= {*FUNCTIONS, "%", "//"}
