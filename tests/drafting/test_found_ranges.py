"""A draft guesses no range; on request it finds ranges privately, says what that cost, and charges it."""

from __future__ import annotations

import tomllib
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray

import privsql
from privsql.cli import main
from privsql.drafting import findings
from privsql.drafting.ranges import RangeSearch, _ends
from privsql.drafting.write import draft
from privsql.policy import load_policy
from privsql.session import Session
from privsql.types import DOUBLE

NAMES = (
    "age year month day weekday hour minutes seconds percent pct rate ratio share probability discount "
    "rating stars score height weight latitude lat longitude lon salary income wage balance amount price "
    "total cost fee quantity qty count temperature rate_marriage dep_delay x"
).split()


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flights") / "flights.duckdb"
    with duckdb.connect(str(path)) as owner:
        owner.execute("""
            CREATE TABLE flights (
                dep_delay INTEGER, rate_marriage DOUBLE, price DECIMAL(5, 2) CHECK (price >= 0),
                zeros INTEGER, huge DOUBLE, missing DOUBLE, day DATE, flight_id INTEGER);
            INSERT INTO flights
            SELECT i % 90 - 20, 1 + i % 5, i % 1000 / 10, 0, 1e30, NULL, DATE '2024-01-01', i
            FROM range(20000) r(i)
        """)
    return path


class SeededWords:
    """The same words in every run, so that no test here fails by bad luck."""

    def __init__(self) -> None:
        self._generator = np.random.default_rng(7)

    def integers(self, count: int) -> NDArray[np.uint32]:
        return self._generator.integers(0, 2**32, count, dtype=np.uint32)


@pytest.fixture(autouse=True)
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "Session", partial(Session, randomness=SeededWords()))


def test_no_range_is_guessed_from_a_name() -> None:
    types = ("INTEGER", "DOUBLE", "DECIMAL(12, 2)", "DATE", "TIMESTAMP")
    columns = ", ".join(f"{name}_{place} {type_}" for name in NAMES for place, type_ in enumerate(types))
    with duckdb.connect() as owner:
        owner.execute(f"CREATE TABLE t ({columns})")
        text = draft(owner)
    lines = [
        line
        for line in text.splitlines()
        if line.startswith("# ") and " = { range = " in line and "_" in line
    ]
    assert len(lines) == len(NAMES) * len(types)
    assert all("[LOWEST, HIGHEST]" in line or "[EARLIEST, LATEST]" in line for line in lines)


def test_ranges_are_found_privately_and_the_draft_says_what_they_cost(flights: Path) -> None:
    text = draft(str(flights), 2.4, ranges=True)
    loaded = tomllib.loads(text)
    assert loaded["budget"]["epsilon"] == pytest.approx(0.6)
    assert loaded["tables"]["flights"]["columns"] == {
        "dep_delay": {"range": [-32, 128]},
        "rate_marriage": {"range": [0, 8]},
        "price": {"range": [0, 128]},
    }
    assert "From names, types and constraints, and from noisy counts that cost epsilon 2.4." in text
    assert (
        "# dep_delay: searched with epsilon 0.4, in buckets of doubling width. A bucket with fewer than about "
        in text
    )
    for column in ("zeros", "huge", "missing"):  # where nothing was found there is a line to fill in
        assert f"# {column}: searched with epsilon 0.4, and no range was found" in text
        assert f"# {column} = {{ range = [LOWEST, HIGHEST] }}" in text
    assert "# day = { range = [EARLIEST, LATEST] }" in text  # dates are not searched
    honest = privsql.connect(str(flights), policy=loaded)
    assert honest.query("SELECT AVG(dep_delay) AS a FROM flights", epsilon=0.5).fetchall()[0][
        0
    ] == pytest.approx(24.5, abs=1)


def test_a_search_is_charged_to_the_ledger(
    flights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger, policy = tmp_path / "flights.ledger", tmp_path / "flights.toml"
    command = ["policy", "init", str(flights), "--find-ranges", "--epsilon", "1.2", "--ledger", str(ledger)]
    assert main([*command, "-o", str(policy)]) == 0
    text = policy.read_text(encoding="utf-8")
    assert (
        "# Of this, the draft has spent 1.2, recorded in the ledger flights.ledger.\nepsilon = 3.0\n" in text
    )
    with privsql.connect(str(flights), policy=policy, ledger=ledger) as session:
        assert session.budget.spent.epsilon == pytest.approx(1.2)
        assert session.budget.limit.epsilon == 3
        assert set(session.history()["analyst"]) == {"policy init"}
    capsys.readouterr()
    assert (
        main(command) == 0
    )  # the same search again is charged again: nobody said that the data are the same
    assert "# Of this, the draft has spent 1.2," in capsys.readouterr().out
    assert main([*command[:5], "1", *command[6:]]) == 2  # 0.6 is left: nothing is searched, nothing is spent
    assert "[budget-exhausted]" in capsys.readouterr().err
    with privsql.connect(str(flights), policy=policy, ledger=ledger) as session:
        assert session.budget.spent.epsilon == pytest.approx(2.4)


def test_one_row_of_a_unit_is_counted_in_a_bucket(tmp_path: Path) -> None:
    """However many rows one unit has, it moves a bucket by 1: the noise does not grow with max_rows."""
    with duckdb.connect() as owner:
        owner.execute(
            "CREATE TABLE visits AS SELECT i % 4000 AS user_id, 1 + i % 7 AS x FROM range(80000) r(i)"
        )
        text = draft(owner, 2.0, ranges=True)
    assert load_policy(tomllib.loads(text)).table("visits").column("x").high == 8
    (line,) = [line for line in text.splitlines() if line.startswith("# x: searched with epsilon 1,")]
    assert "fewer than about 7" in line  # 6 * ln(160,000), not 60


@pytest.mark.parametrize(
    "arguments", [["--find-ranges"], ["--ledger", "x.ledger"], ["--find-ranges", "--epsilon", "0"]]
)
def test_a_search_needs_an_epsilon(
    flights: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["policy", "init", str(flights), *arguments]) == 2
    assert "[argument-epsilon]" in capsys.readouterr().err


def test_noise_alone_gives_no_range() -> None:
    assert _ends([0, 101, 107], [5.0, 90.0, 30.0], 10, DOUBLE) == (0, 128)
    assert (
        _ends([0, 101, 107], [5.0, 9.0, 3.0], 10, DOUBLE) is None
    )  # all noise: range_of would take the most frequent
    assert _ends([0, 101], [50.0, 9.0], 10, DOUBLE) is None  # only zeros
    assert _ends([101, 160], [50.0, 90.0], 10, DOUBLE) is None  # the last bucket has no end
    assert _ends([], [], 10, DOUBLE) is None


def test_a_failed_search_says_that_its_epsilon_is_spent() -> None:
    assert (
        RangeSearch(0.1, 0, None).reason
        == "searched with epsilon 0.1, but the query failed. The epsilon is spent."
    )
