"""What the default run leaves out for the slow one is there."""

from __future__ import annotations

from pathlib import Path

from tests.tempo import THINNED

TESTS = Path(__file__).parents[1]


def test_every_test_that_is_thinned_out_exists() -> None:
    for name, each in THINNED.items():
        file, *_, test = name.split("::")
        assert f"def {test}(" in (TESTS / file).read_text(encoding="utf-8"), name
        assert each > 1, name
