"""The seeded mistakes of tests/mutants.py still have their place in the code; `make mutants` tries whether tests catch them."""

from pathlib import Path

from tests.audit.planted import PLANTED
from tests.mutants import MUTANTS, ROOT


def test_every_mistake_has_its_place() -> None:
    texts: dict[str, str] = {}
    stale = []
    for each in [*MUTANTS, *(planted.mistake for planted in PLANTED)]:
        path: Path = ROOT / "privsql" / each.file
        text = texts.setdefault(each.file, path.read_text(encoding="utf-8") if path.exists() else "")
        if text.count(each.old) != 1 or each.old == each.new:
            stale.append(each.name)
    assert not stale


def test_names_differ() -> None:
    assert len({each.name for each in MUTANTS}) == len(MUTANTS)
