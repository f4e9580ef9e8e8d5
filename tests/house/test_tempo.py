"""What the default run leaves out is there for the slow one, and the slices of CI make up the whole of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.tempo import MOST_ALIKE, SLICES, THINNED, WHOLE, is_in_slice, outside_slice, slice_of_commit

TESTS = Path(__file__).parents[1]
NODES = [
    f"tests/{room}/test_it.py::test_{each}[{case}]"
    for room in ("sql", "noise")
    for each in "abcd"
    for case in range(99)
]


def test_every_thinned_test_exists() -> None:
    for name, each in THINNED.items():
        file, *_, test = name.split("::")
        assert f"def {test}(" in (TESTS / file).read_text(encoding="utf-8"), name
        assert each > 1, name


def test_no_family_takes_more_than_its_share_of_the_default_run(request: pytest.FixtureRequest) -> None:
    """Of the tests that were collected, all of them in a whole run: seconds would tell how busy the machine is."""
    chosen = [each for each in request.session.items if each.get_closest_marker("slow") is None]
    families = Counter(each.nodeid.split("[")[0] for each in chosen)
    assert not {name: cases for name, cases in families.items() if cases > MOST_ALIKE}, (
        "thin it in tests/tempo.py"
    )


def test_every_slow_test_is_in_one_slice() -> None:
    slices = [{each for each in NODES if is_in_slice(each, chosen)} for chosen in range(SLICES)]
    assert sum(map(len, slices)) == len(NODES) == len(set().union(*slices))
    assert min(map(len, slices)) > len(NODES) / SLICES / 2


def test_conformance_suites_are_in_every_slice() -> None:
    assert (TESTS.parent / WHOLE).is_dir()
    assert all(is_in_slice(f"{WHOLE}engines/test_types.py::test_it", chosen) for chosen in range(SLICES))


def test_different_commits_run_different_slices() -> None:
    """A commit always chooses the same slice, and some dozens of commits choose all of them."""
    commits = [f"{each * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**160:040x}" for each in range(1, 200)]
    assert {slice_of_commit(each) for each in commits} == set(range(SLICES))
    assert slice_of_commit(commits[0]) == slice_of_commit(commits[0])


class Stub(pytest.Item):
    def runtest(self) -> None: ...


def test_only_slow_tests_are_left_to_other_slices(request: pytest.FixtureRequest) -> None:
    items = [Stub.from_parent(request.session, name=each) for each in NODES]
    for item in items[::2]:
        item.add_marker(pytest.mark.slow)
    left = [outside_slice(items, chosen) for chosen in range(SLICES)]
    assert sum(map(len, left)) == len(items[::2]) * (SLICES - 1)
    assert not {each.name for part in left for each in part} & {each.name for each in items[1::2]}
