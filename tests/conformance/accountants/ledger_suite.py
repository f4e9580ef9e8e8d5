"""What every ledger must do, whatever it is kept in: a suite to inherit from, with `make` to be filled in."""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress
from fractions import Fraction
from typing import Any

import pytest

from privsql import BudgetError, EngineError
from privsql.budget.amount import Loss
from privsql.budget.fuse import Failures
from privsql.budget.ledger import Ledger
from privsql.neighbours import Neighbours
from privsql.policy import Policy
from privsql.privacy.events import Keys, Pure
from tests.budget.ledgers import charge, fail, policy, release, releases, running
from tests.budget.refusals import code_of, refusal


class LedgerConformance:
    """Inherit, and say how a ledger is made."""

    def make(self, declared: Policy) -> Ledger:
        raise NotImplementedError

    def test_a_new_ledger_is_empty(self) -> None:
        ledger = self.make(policy(2, delta=1e-6))
        assert ledger.entries() == []
        budget = ledger.budget
        assert (budget.limit.epsilon, budget.spent.epsilon, budget.remaining.epsilon) == (2, 0, 2)
        assert (budget.limit.delta, budget.spent.delta, budget.remaining.delta) == (1e-6, 0, 1e-6)
        assert ledger.share("ana") is None

    def test_spent_exactly_to_the_end(self) -> None:
        ledger = self.make(policy(1))
        for _ in range(10):
            charge(ledger, 0.1)
        assert ledger.budget.spent.epsilon == 1
        assert ledger.budget.remaining.epsilon == 0
        assert code_of(ledger, Fraction(1, 10**9)) == "budget-exhausted"

    def test_prices_are_rounded_up_and_caps_down(self) -> None:
        ledger = self.make(policy(1, delta=1e-17))
        charge(ledger, Fraction(1, 3 * 10**9), Fraction(1, 3 * 10**18))
        (entry,) = ledger.entries()
        assert entry.loss == Loss(1, 1)
        assert code_of(ledger, 1 - Fraction(1, 3 * 10**9)) == "budget-exhausted"

    def test_delta_has_its_own_cap(self) -> None:
        ledger = self.make(policy(5, delta=1e-6))
        charge(ledger, 1, "6e-7")
        assert code_of(ledger, 1, "5e-7") == "budget-delta"
        charge(ledger, 1, "4e-7")
        assert ledger.budget.remaining.delta == 0
        charge(ledger, 1)
        assert code_of(self.make(policy(5)), 1, "1e-12") == "budget-delta"

    def test_one_query_has_a_cap(self) -> None:
        ledger = self.make(policy(5, per_query=1.5))
        assert code_of(ledger, 1.6) == "budget-query"
        charge(ledger, 1.5)
        with pytest.raises(BudgetError) as caught:
            ledger.expect([[Pure(Fraction(2))]], "ana")
        assert caught.value.code == "budget-query"
        assert (
            refusal(ledger.expect, [[Pure(Fraction(1))]] * 2, "ana").code == "budget-query"
        )  # it is one call

    def test_a_price_below_the_least_is_refused(self) -> None:
        ledger = self.make(policy(5, per_query_least=0.5))
        ledger.expect([[Pure(Fraction(1, 4)), Pure(Fraction(1, 4))]], "ana")
        assert refusal(ledger.expect, [[Pure(Fraction(1, 4))]] * 2, "ana").code == "budget-least"

    def test_analysts_have_shares(self) -> None:
        ledger = self.make(
            policy(5, delta=1e-5, analysts={"ana": 2.0, "ben": {"epsilon": 4.0, "delta": 1e-6}})
        )
        charge(ledger, 1.5, analyst="ana")
        assert code_of(ledger, 1, analyst="ana") == "budget-analyst"
        assert code_of(ledger, 1, analyst="cleo") == "budget-analyst"
        assert code_of(ledger, 1, "2e-6", analyst="ben") == "budget-analyst"
        charge(ledger, 3, "1e-6", analyst="ben")
        assert code_of(ledger, 1, analyst="ben") == "budget-exhausted"  # the guarantee comes first
        own = ledger.share("ana")
        assert own is not None
        assert (own.limit.epsilon, own.spent.epsilon, own.remaining.epsilon) == (2, 1.5, 0.5)
        nobody = ledger.share("cleo")
        assert nobody is not None
        assert nobody.remaining.epsilon == 0

    def test_everyone_else_has_a_share_each(self) -> None:
        ledger = self.make(policy(5, analysts={"ana": 2.0, "*": 0.5}))
        for name in ("ben", "cleo"):
            charge(ledger, 0.5, analyst=name)
            assert code_of(ledger, 0.1, analyst=name) == "budget-analyst"
        charge(ledger, 2, analyst="ana")

    def test_without_a_cap_everything_is_counted(self) -> None:
        ledger = self.make(policy())
        charge(ledger, 9000, "0.6")
        charge(ledger, 9000)
        assert ledger.budget.spent.epsilon == 18_000
        assert math.isinf(ledger.budget.remaining.epsilon)
        assert code_of(ledger, 1, "0.6") == "budget-delta"  # a delta above 1 has no meaning

    @pytest.mark.parametrize(
        "events",
        [
            [],
            [Pure(Fraction(10**30))],
            [Keys(Fraction(1), Fraction(1, 2), 1), Keys(Fraction(1), Fraction(1, 2), 1)],
        ],
        ids=["nothing", "too much", "a delta of 1"],
    )
    def test_invalid_prices_are_refused(self, events: Any) -> None:
        ledger = self.make(policy())
        for call in (lambda: release(ledger, *events), lambda: ledger.expect([events], "ana")):
            assert refusal(call).code == "budget-amount"
        assert ledger.entries() == []
        assert ledger.budget.spent.epsilon == 0

    def test_invalid_events_are_refused(self) -> None:
        ledger = self.make(policy(10))
        for unknown in (None, 0.5, "Pure", object()):
            assert refusal(release, ledger, Pure(Fraction(1)), unknown).code == "budget-event"
        assert ledger.entries() == []

    def test_losses_under_another_neighbour_relation_are_not_added(self) -> None:
        ledger = self.make(policy(10))
        with pytest.raises(BudgetError) as caught:
            charge(ledger, 1, analyst="ana", neighbours=Neighbours.ADD_REMOVE)
        assert caught.value.code == "budget-neighbours"
        assert ledger.entries() == []

    def test_expecting_charges_nothing(self) -> None:
        ledger = self.make(policy(1))
        half = [Pure(Fraction(1, 2))]
        ledger.expect([half, half], "ana")
        for queries in ([[Pure(Fraction(11, 10))]], [half, half, half], [[*half, *half, *half]]):
            assert refusal(ledger.expect, queries, "ana").code == "budget-exhausted"
        assert ledger.entries() == []

    def test_entries_record_analyst_query_and_release(self) -> None:
        ledger = self.make(policy(1))
        texts = ["SELECT 'é\n\0'", "", "x" * 50_000, "'; DROP TABLE entries; --", "\U0001f9ee"]
        for text in texts:
            charge(ledger, 0.125, analyst="Anaïs", question=text)
        found = ledger.entries()
        assert [each.query for each in found] == texts
        assert {each.analyst for each in found} == {"Anaïs"}
        assert [list(each.released) for each in found] == [releases(0.125)] * 5
        assert [each.when for each in found] == sorted(each.when for each in found)
        assert all(each.when.tzinfo is not None for each in found)

    def test_threads_never_overspend(self) -> None:
        ledger, done, gate = self.make(policy(1, analysts={"a0": 0.2, "*": 1.0})), [], threading.Barrier(8)

        def spend(index: int) -> None:
            gate.wait()
            for _ in range(12):
                try:
                    charge(ledger, 0.02, analyst=f"a{index}")
                    done.append(index)
                except BudgetError as error:
                    assert error.code in ("budget-exhausted", "budget-analyst")  # noqa: PT017

        threads = [threading.Thread(target=spend, args=(index,)) for index in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(done) == len(ledger.entries()) == 50
        assert done.count(0) <= 10
        assert ledger.budget.remaining.epsilon == 0

    # -- the fuse ------------------------------------------------------------------------------------------------
    def test_after_three_failures_an_analyst_is_refused(self) -> None:
        ledger = self.make(policy(5))
        for number in range(3):
            assert ledger.failures("ana") == Failures(number, 0, 3)
            fail(ledger)
        assert code_of(ledger, 1) == "budget-failures"
        assert ledger.failures("ana").blown
        assert ledger.budget.spent.epsilon == 0.03  # what failed was charged, what was refused was not
        charge(ledger, 1, analyst="ben")
        assert ledger.failures("ben") == Failures(0, 0, 3)

    def test_the_policy_sets_the_number_of_failures(self) -> None:
        ledger = self.make(policy(5, max_failures=1))
        charge(ledger, 1)
        fail(ledger)
        caught = refusal(charge, ledger, 1)
        assert caught.code == "budget-failures"
        assert "1 query of ana failed after the charge, and the policy allows at most 1" in str(caught)
        assert "ask the data owner" in caught.suggestion

    @pytest.mark.parametrize("error", [EngineError, KeyboardInterrupt, SystemExit, ValueError])
    def test_every_abnormal_end_is_a_failure(self, error: type[BaseException]) -> None:
        ledger = self.make(policy(5))
        fail(ledger, error=error)
        assert ledger.failures("ana") == Failures(1, 0, 3)
        assert [each.failed for each in ledger.entries()] == [True]

    def test_a_successful_query_is_not_a_failure(self) -> None:
        ledger = self.make(policy(5))
        for _ in range(10):
            charge(ledger, 0.1)
        assert ledger.failures("ana") == Failures(0, 0, 3)
        assert not any(each.failed for each in ledger.entries())

    def test_a_batch_fails_as_one(self) -> None:
        ledger = self.make(policy(5))
        bills = [(releases(0.1), f"q{number}") for number in range(5)]
        with suppress(EngineError), ledger.running(bills, Neighbours.REPLACE_ONE, "ana"):
            raise EngineError
        assert ledger.failures("ana") == Failures(1, 0, 3)
        assert [each.failed for each in ledger.entries()] == [True] * 5

    def test_running_queries_count_towards_the_fuse(self) -> None:
        """However many queries run at once, no more can fail than the fuse allows: the others wait."""
        ledger, failed, gate = self.make(policy(5, max_failures=2)), [], threading.Barrier(6)

        def ask() -> None:
            gate.wait()
            with suppress(BudgetError, EngineError), running(ledger, 0.1):
                failed.append(ledger.failures("ana"))
                time.sleep(0.02)
                raise EngineError

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(failed) == 2
        assert all(each.failed + each.unfinished <= 2 for each in failed)
        assert ledger.failures("ana") == Failures(2, 0, 2)
        assert len(ledger.entries()) == 2

    def test_parallel_queries_beyond_the_fuse_wait(self) -> None:
        ledger, gate = self.make(policy(5, max_failures=1)), threading.Barrier(4)

        def ask() -> None:
            gate.wait()
            with running(ledger, 0.1):
                assert ledger.failures("ana") == Failures(0, 1, 1)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(ledger.entries()) == 4
        assert ledger.failures("ana") == Failures(0, 0, 1)

    def test_one_query_has_a_least_price(self) -> None:
        ledger = self.make(policy(5, per_query_least=0.1))
        assert code_of(ledger, 0.09) == "budget-least"
        charge(ledger, 0.1)
        bills = [(releases(0.2), "dear"), (releases(0.05), "cheap")]
        with pytest.raises(BudgetError) as caught, ledger.running(bills, Neighbours.REPLACE_ONE, "ana"):
            pass
        assert (caught.value.code, len(ledger.entries())) == ("budget-least", 1)  # all of them, or none
        release(ledger, Pure(Fraction(1, 20)), Pure(Fraction(1, 20)))  # two numbers of one query

    def test_the_least_price_is_in_epsilon_under_zcdp_too(self) -> None:
        ledger = self.make(policy(5, delta=1e-6, accountant="zcdp", per_query_least=0.1))
        assert code_of(ledger, 0.099) == "budget-least"
        charge(ledger, 0.1)

    def test_closing_twice_is_harmless(self) -> None:
        ledger = self.make(policy(1))
        ledger.close()
        ledger.close()
