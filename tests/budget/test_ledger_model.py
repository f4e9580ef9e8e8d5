"""The ledger against a simple model of it: any sequence of charges, renewals and reopenings comes to the same sums."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from privsql import BudgetError
from privsql.budget.caps import Loss
from privsql.budget.ledger_file.file_ledger import open_ledger, renew
from privsql.budget.ledger_file.verify import verify
from privsql.policy.checks import EVERYONE
from tests.budget.ledgers import VISITS, charge, policy

NAMES = ("ana", "ben", "cleo")
EPSILONS = st.fractions(Fraction(1, 10**10), Fraction(3, 2), max_denominator=10**10)
DELTAS = st.sampled_from(
    [Fraction(0), Fraction(0), Fraction(1, 10**8), Fraction(1, 3 * 10**7), Fraction(1, 10**6)]
)


class LedgerModel(RuleBasedStateMachine):
    """The file against a few dictionaries, with everything rounded as the promise says."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        self.path = Path(self.folder.name) / "a.ledger"
        self.declared = policy(
            3, delta=2e-6, per_query=1.25, analysts={"ana": 1.5, "*": {"epsilon": 1.0, "delta": 1e-6}}
        )
        self.cap, self.delta_cap, self.query = 3 * 10**9, 2 * 10**12, 1_250_000_000
        self.shares: dict[str, list[Any]] = {"ana": [1_500_000_000, None], EVERYONE: [10**9, 10**12]}
        self.spent = dict.fromkeys(NAMES, (0, 0))
        self.count = 0
        self.ledger = open_ledger(self.path, self.declared, VISITS)

    @rule(epsilon=EPSILONS, delta=DELTAS, name=st.sampled_from(NAMES))
    def charge(self, epsilon: Fraction, delta: Fraction, name: str) -> None:
        price, part = -(-epsilon * 10**9 // 1), -(-delta * 10**18 // 1)
        share = self.shares.get(name, self.shares[EVERYONE])
        total = [sum(each[place] for each in self.spent.values()) for place in (0, 1)]
        own = self.spent[name]
        allowed = (
            price <= self.query
            and total[0] + price <= self.cap
            and (not part or total[1] + part <= self.delta_cap)
            and own[0] + price <= share[0]
            and (not part or share[1] is None or own[1] + part <= share[1])
        )
        try:
            charge(self.ledger, epsilon, delta, name, f"question {self.count}")
        except BudgetError:
            assert not allowed
        else:
            assert allowed
            self.spent[name] = (own[0] + price, own[1] + part)
            self.count += 1

    @rule(epsilon=st.integers(1, 10**9))
    def renew_the_dataset(self, epsilon: int) -> None:
        renew(self.path, Loss(epsilon, 10**11), "more")
        self.cap, self.delta_cap = self.cap + epsilon, self.delta_cap + 10**11

    @rule(epsilon=st.integers(1, 10**9), name=st.sampled_from(NAMES))
    def renew_a_share(self, epsilon: int, name: str) -> None:
        renew(self.path, Loss(epsilon), "more", "analyst", name)
        old = self.shares.get(name, self.shares[EVERYONE])
        self.shares[name] = [old[0] + epsilon, old[1]]

    @rule()
    def renew_one_question(self) -> None:
        renew(self.path, Loss(10**8), "more", "query")
        self.query += 10**8

    @rule()
    @precondition(lambda self: self.count)
    def open_again(self) -> None:
        self.ledger.close()
        self.ledger = open_ledger(self.path, self.declared, VISITS)

    @invariant()
    def sums_are_right(self) -> None:
        state = self.ledger.state("ana")
        total = [sum(each[place] for each in self.spent.values()) for place in (0, 1)]
        assert [state.last.total_epsilon, state.last.total_delta] == total
        assert (state.own.nano, state.own.atto_delta) == self.spent["ana"]
        assert state.rules.caps.dataset.nano == self.cap >= total[0]

    def teardown(self) -> None:
        entries = self.ledger.entries()
        assert [each.query for each in entries] == [f"question {number}" for number in range(self.count)]
        self.ledger.close()
        verify(self.path)
        self.folder.cleanup()


_QUIET = [HealthCheck.too_slow]
TestModel = LedgerModel.TestCase
TestModel.settings = settings(
    max_examples=15,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=_QUIET,
    database=None,
)


class LongModel(LedgerModel):
    pass


TestLongModel = pytest.mark.slow(LongModel.TestCase)
TestLongModel.settings = settings(
    max_examples=100, stateful_step_count=50, deadline=None, suppress_health_check=_QUIET, database=None
)
