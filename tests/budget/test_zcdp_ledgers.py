"""Ledgers that count rho: caps and sums hold, in memory and in files, and everyone sees an epsilon."""

from __future__ import annotations

import json
import math
import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privsql
from privsql import BudgetError
from privsql.budget.accountants import LEVEL, WITHIN, Addition, Zcdp
from privsql.budget.amount import Cap, Loss
from privsql.budget.caps import policy_caps
from privsql.budget.ledger import Ledger, MemoryLedger
from privsql.budget.ledger_file.file_ledger import open_ledger, renew
from privsql.budget.ledger_file.format import FORMAT, INSERT, OBJECTS_BEFORE, START, Row
from privsql.budget.ledger_file.verify import replay, verify
from privsql.budget.released import Released
from privsql.cli import main
from privsql.policy import load_policy
from privsql.policy.checks import NANO
from privsql.privacy.accuracy import laplace_half_width
from privsql.privacy.events import Choice, Event, Gaussian, Keys, Pure
from privsql.privacy.gaussian import half_width, rounded_up
from privsql.privacy.zcdp import least_epsilon, zcdp_of
from tests.budget.ledgers import VISITS, policy, release
from tests.budget.refusals import refusal
from tests.conformance.accountants.accountant_suite import (
    DELTA,
    ONE,
    converted,
    gaussian,
    gaussian_truth,
    laplace,
)


# -- a hundred counts ------------------------------------------------------------------------------------------
def test_a_hundred_counts_cost_less_than_under_addition():
    """Under (1, 1e-6): a standard deviation of 141 by addition and Laplace noise, 45 by zCDP and Gaussian noise."""
    pure = MemoryLedger.under(policy(1))
    by_addition = laplace(Fraction(1, 100))
    zcdp = MemoryLedger.under(policy(1, delta=1e-6, accountant="zcdp", part_for_keys=0))
    limit = policy_caps(policy(1, delta=1e-6, accountant="zcdp", part_for_keys=0)).limits("ana").dataset
    variance = rounded_up(100 / (2 * Fraction(limit.nano, NANO)))
    by_rho = Gaussian(Fraction(1), DELTA, 1 / variance)
    for ledger, event in ((pure, by_addition), (zcdp, by_rho)):
        for _ in range(100):
            release(ledger, event)
        assert refusal(release, ledger, event).code == "budget-exhausted"
    assert round(math.sqrt(2) * float(by_addition.scale)) == 141
    assert round(math.sqrt(variance)) == 45
    truth = gaussian_truth(100 / float(variance), 1e-6)
    assert truth <= zcdp.budget.spent.epsilon <= 1.0001
    assert truth > 0.9


def test_how_many_more_counts():
    count = Addition().count
    assert (
        laplace_half_width(count.size, LEVEL) <= WITHIN < laplace_half_width((count.nano - 1) / NANO, LEVEL)
    )
    rho = Zcdp().count.size
    variance = 1 / (2 * Fraction(rho))
    assert half_width(variance, LEVEL) <= WITHIN < half_width(variance * Fraction(1001, 1000), LEVEL)
    ledger = MemoryLedger.under(policy(10))
    assert ledger.budget.counts == 10 * NANO // count.nano
    left = ledger.budget.counts
    for number in range(left):
        assert ledger.budget.counts == left - number
        release(ledger, laplace(Fraction(count.nano, NANO)))
    assert ledger.budget.counts == 0
    assert "0 more counts within +-10 (95%)" in str(ledger.budget)
    assert MemoryLedger.under(policy()).budget.counts is None
    assert MemoryLedger.under(policy(10, per_query=0.1)).budget.counts == 0
    shared = MemoryLedger.under(policy(10, analysts={"ana": 1.0}))
    own = shared.share("ana")
    assert own is not None
    assert own.counts == NANO // count.nano < shared.budget.counts
    assert f": {own.counts} more counts" in str(replace(shared.budget, share=own))
    assert shared.share("ben").counts == 0


# -- ledgers that count rho ------------------------------------------------------------------------------------
ZCDP: dict[str, Any] = {"delta": 1e-6, "accountant": "zcdp"}
COUNT = Gaussian(Fraction(1, 4), Fraction(1, 10**8), Fraction(1, 1000))  # rho 5e-4


@pytest.fixture(params=["memory", "file"])
def make(request, tmp_path):
    made: list[Ledger] = []

    def under(epsilon: float, **budget: Any) -> Ledger:
        declared = policy(epsilon, **{**ZCDP, **budget})
        path = tmp_path / f"{len(made)}.ledger"
        made.append(
            MemoryLedger.under(declared) if request.param == "memory" else open_ledger(path, declared, VISITS)
        )
        return made[-1]

    yield under
    for each in made:
        each.close()


def refused(ledger: Ledger, *events: Event, analyst: str = "ana") -> str:
    """The code, after which everything is as it was."""
    before = (ledger.budget, ledger.share(analyst), ledger.entries())
    codes = set()
    for call in (
        lambda: release(ledger, *events, analyst=analyst),
        lambda: ledger.expect([list(events)], analyst),
    ):
        codes.add(refusal(call).code)
    assert (ledger.budget, ledger.share(analyst), ledger.entries()) == before
    return codes.pop() if len(codes) == 1 else str(codes)


def test_rho_adds_up_to_its_cap_exactly(make):
    ledger = make(1)
    limit = Zcdp().limit(ONE)
    fits = limit.nano // 500_000
    for _ in range(fits):
        ledger.expect([[COUNT]], "ana")
        release(ledger, COUNT)
    assert refused(ledger, COUNT) == "budget-exhausted"
    assert ledger.budget.spent.rho == pytest.approx(fits * 5e-4)
    assert ledger.budget.limit.rho == limit.nano / NANO
    assert ledger.budget.remaining.rho == pytest.approx((limit.nano - fits * 500_000) / NANO)
    assert ledger.budget.spent.epsilon <= 1
    release(
        ledger, Gaussian(Fraction(1), DELTA, Fraction(2 * (limit.nano - fits * 500_000), NANO))
    )  # the very last
    assert ledger.budget.remaining.rho == 0
    assert ledger.budget.spent.epsilon == pytest.approx(1, rel=1e-6)
    assert refused(ledger, Pure(Fraction(1, 10**6))) == "budget-exhausted"


def test_deltas_of_keys_add_up_separately(make):
    ledger = make(1)
    keys = Keys(Fraction(1, 100), Fraction(3, 10**8), 1)
    for _ in range(3):
        release(ledger, keys)
    assert refused(ledger, keys) == "budget-delta"
    release(ledger, COUNT)  # whose delta is only what it would be by itself
    assert ledger.budget.spent.delta == pytest.approx(9e-7 + 9e-8)
    assert ledger.budget.remaining.delta == pytest.approx(1e-8)
    assert refused(make(1, part_for_keys=0), keys) == "budget-delta"


def test_caps_of_analysts_and_queries_under_zcdp(make):
    """That what it caps, taken by itself, is private at its epsilon and the delta of the conversion."""
    ledger = make(2, per_query=0.5, analysts={"ana": 1.0, "*": {"epsilon": 0.5, "delta": 1e-8}})
    dataset = Cap(2 * NANO, 10**12)
    most, share = (Zcdp().part(Cap(int(size * NANO)), dataset).nano for size in (0.5, 1.0))
    one = Gaussian(Fraction(1, 2), Fraction(1, 10**6), Fraction(2 * most, NANO))
    assert refused(ledger, replace(one, ratio=one.ratio + Fraction(1, NANO))) == "budget-query"
    for _ in range(share // most):
        release(ledger, one)
    assert refused(ledger, one) == "budget-analyst"
    assert ledger.share("ana").spent.epsilon == pytest.approx(
        float(least_epsilon(Fraction(share // most * most, NANO), Zcdp().conversion_delta(dataset)))
    )
    release(ledger, one, analyst="ben")
    assert refused(ledger, COUNT, analyst="ben") == "budget-analyst"
    assert refused(ledger, Keys(Fraction(1, 1000), Fraction(2, 10**8), 1), analyst="cleo") == "budget-analyst"
    release(ledger, Keys(Fraction(1, 1000), Fraction(1, 10**8), 1), analyst="cleo")


def test_a_spent_share_is_shown_as_its_epsilon(make):
    ledger = make(2, analysts={"ana": 1.0})
    assert ledger.share("ana").limit.epsilon == 1
    assert ledger.share("ana").remaining.epsilon == 1
    assert ledger.share("ben").remaining.epsilon == 0
    release(ledger, COUNT)
    assert 0.9 < ledger.share("ana").remaining.epsilon < 1


def test_entries_record_epsilon_and_rho(make):
    ledger = make(1)
    release(ledger, COUNT, laplace(Fraction(1, 50)))
    (entry,) = ledger.entries()
    assert entry.rho == pytest.approx(5e-4 + 2e-4)
    assert (entry.epsilon, entry.delta) == (pytest.approx(0.27), 0)


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_the_promise_holds_for_any_sequence_of_queries(data):
    """Events chosen one after the other, by what was refused so far: the sums stay within the caps, and so does the promise."""
    ledger = MemoryLedger.under(policy(1, **ZCDP, analysts={"ana": 0.75, "ben": 0.5}))
    rho, lost = Fraction(0), Fraction(0)
    for _ in range(30):
        size = data.draw(st.sampled_from([Fraction(n, 200) for n in (1, 2, 3, 5, 8, 13, 21, 34)]))
        kind = data.draw(
            st.sampled_from(
                [Pure, Choice, lambda e: laplace(e, 4, 2), gaussian, lambda e: Keys(e, e / 10**7, 3)]
            )
        )
        event = kind(size)
        try:
            release(ledger, event, analyst=data.draw(st.sampled_from(["ana", "ben"])))
        except BudgetError as error:
            assert error.code in ("budget-exhausted", "budget-analyst", "budget-delta")  # noqa: PT017
            continue
        one = zcdp_of(event)
        rho, lost = rho + one[0], lost + one[1]
    assert lost <= Fraction(1, 10**7)
    if rho:
        assert converted(float(rho), 1.0) + float(lost) <= 1e-6 * (1 + 1e-9)


# -- files -----------------------------------------------------------------------------------------------------
def opened(path: Path, epsilon: float = 1, **budget: Any) -> None:
    open_ledger(path, policy(epsilon, **budget), VISITS).close()


def test_a_ledger_keeps_its_accountant(path):
    opened(path, **ZCDP)
    opened(path, **ZCDP)
    for other in ({"delta": 1e-6}, {}, {"accountant": "pure"}, {"delta": 1e-6, "accountant": "approximate"},
                  {**ZCDP, "part_for_keys": 0.2}):  # fmt: skip
        caught = refusal(opened, path, **other)
        assert caught.code == "budget-accountant"
        assert "zcdp" in str(caught)
    assert [row.kind for row in verify(path)] == ["open"]
    assert verify(path)[0].cap_epsilon == Zcdp().limit(ONE).nano


def test_addition_is_pure_until_a_delta_is_renewed(path):
    opened(path)
    opened(path, accountant="pure")
    assert refusal(opened, path, **ZCDP).code == "budget-accountant"
    assert refusal(opened, path, accountant="approximate").code == "budget-accountant"
    renew(path, Loss(0, 10**12), "keys are asked for now")
    opened(path)
    opened(path, delta=1e-6)
    opened(path, delta=1e-6, accountant="approximate")
    assert refusal(opened, path, accountant="pure").code == "budget-accountant"


def test_renewals_are_in_epsilon_and_counted_in_rho(path):
    ledger = open_ledger(path, policy(1, **ZCDP, per_query=0.5, analysts={"ana": 0.5}), VISITS)
    release(ledger, COUNT)
    renew(path, Loss(NANO, 10**12), "the board")
    renew(path, Loss(NANO), "more for ana", "analyst", "ana")
    renew(path, Loss(NANO), "large ones", "query")
    dataset = Cap(2 * NANO, 2 * 10**12)
    assert ledger.budget.limit.epsilon == 2
    assert ledger.budget.limit.rho == Zcdp().limit(dataset).nano / NANO
    state = ledger.state("ana")
    assert state.rules.caps.limits("ana").query == Zcdp().part(Cap(1_500_000_000), dataset).nano
    assert state.last.cap_epsilon == Zcdp().limit(dataset).nano
    assert state.last.cap_delta == 2 * 10**11
    ledger.close()
    verify(path)


def test_a_charge_for_less_than_was_released_is_found(path):
    ledger = open_ledger(path, policy(1, **ZCDP), VISITS)
    release(ledger, COUNT)
    first, charge = ledger.rows()
    ledger.close()
    replay([first, charge])
    for off, holds in ((1, True), (30, False)):  # a hair, as another way to round might find
        other = [replace(first, cap_epsilon=first.cap_epsilon - off)]
        other = [replace(other[0], hash=other[0].digest())]
        if holds:
            replay(other)
        else:
            assert refusal(replay, other).code == "budget-corrupt"
    less = {"epsilon": 499_999, "total_epsilon": 499_999, "share_epsilon": 499_999}
    for changed in (
        replace(charge, **less),
        replace(charge, details=charge.details.replace("1/1000", "1/900")),
    ):
        caught = refusal(replay, [first, replace(changed, hash=changed.digest())])
        assert caught.code == "budget-corrupt"
        assert "less than its releases cost" in str(caught)


OLD_DETAILS = {"id": "0" * 32, "dataset": None, "neighbours": "replace-one", "tables": {"visits": "each row"},
               "caps": {"dataset": [3 * NANO, 10**12], "query": None, "analysts": {}}}  # fmt: skip
OLD_EVENT = {"mechanism": "discrete Laplace", "what": "COUNT(*)", "epsilon": "1/3", "delta": "1/10000000", "l1": 2, "linf": 1,
             "scale": "6"}  # fmt: skip


@pytest.fixture
def old(path: Path) -> Path:
    """A ledger as the first format had it, with one charge."""
    rows = [Row(1, "open", "2024-01-01T00:00:00+00:00", "", 0, 0, 0, 0, 0, 0, 3 * NANO, 10**12, "",
                json.dumps(OLD_DETAILS), START)]  # fmt: skip
    rows[0] = replace(rows[0], hash=rows[0].digest())
    price = (333_333_334, 10**11)
    charge = Row(2, "charge", "2024-01-02T00:00:00+00:00", "ana", *price, *price, *price, 3 * NANO, 10**12, "SELECT 1",
                 json.dumps([OLD_EVENT]), rows[0].hash)  # fmt: skip
    rows.append(replace(charge, hash=charge.digest()))
    connection = sqlite3.connect(path, isolation_level=None)
    for sql in OBJECTS_BEFORE.values():
        connection.execute(sql)
    for pragma in ("application_id = 0x70737161", "user_version = 1", "journal_mode = WAL"):
        connection.execute(f"PRAGMA {pragma}")
    for row in rows:
        connection.execute(INSERT, row.values())
    connection.close()
    return path


def version(path: Path) -> int:
    connection = sqlite3.connect(path)
    ((found,),) = connection.execute("PRAGMA user_version").fetchall()
    connection.close()
    return int(found)


def test_a_ledger_of_the_first_format_keeps_addition(old):
    assert len(verify(old)) == 2
    assert refusal(opened, old, 3, **ZCDP).code == "budget-accountant"
    ledger = open_ledger(old, policy(3, delta=1e-6), VISITS)
    assert ledger.budget.spent.epsilon == 0.333333334
    assert ledger.budget.accountant == "approximate"
    (entry,) = ledger.entries()
    assert entry.released[0] == Released(
        "discrete Laplace", "COUNT(*)", Keys(Fraction(1, 3), Fraction(1, 10**7), 1)
    )
    assert version(old) == 1  # who only looks changes nothing
    assert refusal(release, ledger, Pure(Fraction(5))).code == "budget-exhausted"
    assert version(old) == 1  # nor does who is refused
    release(ledger, Pure(Fraction(1)))
    ledger.close()
    assert version(old) == FORMAT == 3  # an older privsql could not read this any more, and says so
    assert len(verify(old)) == 3
    assert ledger.budget.spent.epsilon == 1.333333334
    ledger.close()


def test_unknown_formats_are_refused(old):
    connection = sqlite3.connect(old)
    connection.execute("PRAGMA user_version = 0")
    connection.close()
    assert refusal(verify, old).code == "budget-corrupt"


@pytest.mark.parametrize(
    ("budget", "code"),
    [
        ({"accountant": "zcpd"}, "policy-accountant"), ({"accountant": 5}, "policy-accountant"),
        ({"accountant": "zcdp"}, "policy-accountant"), ({"accountant": "zcdp", "epsilon": 1}, "policy-accountant"),
        ({"accountant": "zcdp", "delta": 1e-6}, "policy-accountant"),
        ({"accountant": "zcdp", "epsilon": 1, "delta": 0}, "policy-accountant"),
        ({"accountant": "pure", "epsilon": 1, "delta": 1e-6}, "policy-accountant"),
        ({"part_for_keys": 0.1, "epsilon": 1, "delta": 1e-6}, "policy-accountant"),
        ({"accountant": "zcdp", "epsilon": 1, "delta": 1e-6, "part_for_keys": 1}, "argument-delta"),
        ({"accountant": "zcdp", "epsilon": 1, "delta": 1e-6, "part_for_keys": "x"}, "argument-delta"),
    ],
)  # fmt: skip
def test_impossible_accountant_settings_are_refused(budget, code):
    caught = refusal(load_policy, {"budget": budget})
    assert caught.code == code


def test_pure_without_a_cap_allows_no_delta():
    ledger = MemoryLedger.under(load_policy({"budget": {"accountant": "pure"}}))
    release(ledger, Pure(Fraction(100)))
    assert refusal(release, ledger, Keys(Fraction(1), Fraction(1, 10**9), 1)).code == "budget-delta"
    assert ledger.budget.accountant == "pure"


# -- people see it ---------------------------------------------------------------------------------------------
def test_a_session_under_zcdp(path):
    declared = {"budget": {"epsilon": 1.0, "delta": 1e-6, "accountant": "zcdp"}}
    with privsql.connect(
        {"visits": pd.DataFrame({"age": range(50)})}, declared, ledger=path, analyst="ana"
    ) as session:
        assert session.budget.accountant == "zcdp"
        assert (session.budget.spent.epsilon, session.budget.spent.delta) == (
            0,
            0,
        )  # before anything is asked
        session.query("SELECT COUNT(*) AS n FROM visits", epsilon=0.05, mechanism="laplace")
        assert str(session.budget).splitlines() == [
            "limit: epsilon 1, delta 1e-06 (rho 0.0241296)",
            "spent: epsilon 0.207118, delta 9e-07 (rho 0.00125)",
            "remaining: epsilon 0.971941, delta 1e-07 (rho 0.0228796): 1 more count within +-10 (95%, Gaussian noise)",
        ]
        history = session.history()
        assert history["rho"].tolist() == [pytest.approx(0.00125)]
        assert history["epsilon"].tolist() == [0.05]
        assert session.explain("SELECT COUNT(*) AS n FROM visits", epsilon=0.01).remaining is None
        caught = refusal(session.query, "SELECT COUNT(*) AS m FROM visits", epsilon=0.5, mechanism="laplace")
        assert caught.code == "budget-exhausted"
        assert "this costs rho 0.125, but only 0.0228796 of 0.0241296 is left" in str(caught)
        assert "a smaller epsilon" in caught.suggestion


def shown(capsys, *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_showing_a_zcdp_ledger(path, capsys):
    ledger = open_ledger(path, policy(1, **ZCDP, analysts={"ana": 0.5}), VISITS)
    for _ in range(2):
        release(ledger, COUNT)
    ledger.close()
    text = shown(capsys, "budget", str(path), "--by", "analyst")
    assert "rho      [#.............................]  0.001 of 0.0241296 spent, 0.0231296 left" in text
    assert (
        "delta    [..............................]  0 of 1e-07 spent, 1e-07 left (for keys that nobody declared)"
        in text
    )
    assert "that is epsilon 0.183989, delta 9e-07 spent, of epsilon 1, delta 1e-06" in text
    assert "enough for 1 more count within +-10 (95%, Gaussian noise)" in text
    assert "ana            2  0.001" in text
    found = json.loads(shown(capsys, "budget", str(path), "--by", "analyst", "--format", "json"))
    assert found["accountant"] == "zcdp"
    assert found["limit"] == {"epsilon": 1.0, "delta": 1e-6, "rho": pytest.approx(0.0241296, rel=1e-4)}
    assert found["spent"] == {"epsilon": pytest.approx(0.183989, rel=1e-4), "delta": 9e-7, "rho": 0.001}
    assert found["more_counts"] == {"within": 10, "level": 0.95, "counts": 1}
    assert found["by_analyst"][0]["rho"] == 0.001
    assert found["by_analyst"][0]["cap"] == 0.5
    assert "rho 0.001, delta 0 spent" in shown(capsys, "ledger", "verify", str(path))


def test_showing_a_pure_ledger(path, capsys):
    opened(path, 10)
    assert "enough for 35 more counts within +-10 (95%)" in shown(capsys, "budget", str(path))
    found = json.loads(shown(capsys, "budget", str(path), "--format", "json"))
    assert (found["accountant"], found["more_counts"]["counts"]) == ("pure", 35)
    assert "rho" not in found["spent"]


def test_explain_and_receipt_say_what_is_charged():
    session = privsql.connect(
        pd.DataFrame({"age": [1, 2, 3]}), {"budget": {"epsilon": 1.0, "delta": 1e-6, "accountant": "zcdp"}}
    )
    assert "charged as rho 0.005, under" in str(session.explain("SELECT COUNT(*) FROM df", epsilon=0.1))
    assert session.query("SELECT COUNT(*) FROM df", epsilon=0.1).receipt["rho"] == 0.005
    assert (
        session.explain("SELECT COUNT(*) FROM df", epsilon=0.05).rho == 0.0
    )  # from the answer that is there
    assert session.query("SELECT COUNT(*) FROM df", epsilon=0.05).receipt["charged"] == 0
    assert (
        privsql.connect(pd.DataFrame({"age": [1]})).query("SELECT COUNT(*) FROM df", epsilon=1).receipt["rho"]
        is None
    )
