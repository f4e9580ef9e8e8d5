"""What `privsql ledger show` prints of three ledgers, word by word, and what it says as JSON."""

from __future__ import annotations

import re
from fractions import Fraction

import pandas as pd
import pytest

import privsql
from privsql.budget.amount import Loss
from privsql.budget.ledger_file.file_ledger import open_ledger, renew
from privsql.budget.ledger_file.ledger_reader import open_reader
from privsql.budget.ledger_file.show import report, show
from privsql.privacy.events import Gaussian, Keys
from tests.budget.ledgers import VISITS, charge, policy, release
from tests.budget.refusals import refusal


def shared(path):
    """Shares, a cap on one query, delta, a renewal."""
    shares = {"ana": {"epsilon": 4}, "bob": {"epsilon": 6, "delta": 1e-4}, "cy": {"epsilon": 1}}
    ledger = open_ledger(path, policy(10, delta=1e-3, per_query=3, analysts=shares), VISITS)
    charge(ledger, 1)
    charge(ledger, 0.5, delta=Fraction(1, 10**6))
    charge(ledger, 2, analyst="bob")
    renew(path, Loss(2 * 10**9), "a new year")
    return ledger.rows()


def in_rho(path):
    ledger = open_ledger(path, policy(2, delta=1e-6, accountant="zcdp"), VISITS)
    release(ledger, Gaussian(Fraction(1, 2), Fraction(1, 10**7), Fraction(1, 100)))
    release(ledger, Keys(Fraction(1, 10), Fraction(1, 10**9), 2))
    return ledger.rows()


def unlimited(path):
    ledger = open_ledger(path, policy(), VISITS)
    charge(ledger, 1)
    return ledger.rows()


def of_two(path):
    ledger = open_ledger(path, policy(), VISITS)
    charge(ledger, 1)
    charge(ledger, 0.5, analyst="bob")
    return ledger.rows()


def spent_up(path):
    ledger = open_ledger(path, policy(1), VISITS)
    charge(ledger, 1)
    return ledger.rows()


SHARED = """\
x: the ledger, replace-one neighbours, since DAY
private tables: visits (each row)
answers: 3, each for at most epsilon 3

epsilon  [#########.....................]  3.5 of 12 spent, 8.5 left
delta    [#.............................]  1e-06 of 0.001 spent, 0.000999 left
enough for 29 more counts within +-10 (95%)
{}
renewals by the owner
  DAY  epsilon +2: a new year"""
BY_ANALYST = """
analyst  answers  epsilon  delta  cap
ana            2      1.5  1e-06    4  [###########...................]
bob            1        2      0    6  [##########....................]
cy             0        0      0    1  [..............................]
"""
RHO = """\
x: the ledger, replace-one neighbours, since DAY
private tables: visits (each row)
answers: 2

rho      [###...........................]  0.0075 of 0.0874039 spent, 0.0799039 left
delta    [#.............................]  1e-09 of 1e-07 spent, 9.9e-08 left (for keys that nobody declared)
that is epsilon 0.536258, delta 9.01e-07 spent, of epsilon 2, delta 1e-06
enough for 4 more counts within +-10 (95%, Gaussian noise)

analyst  answers     rho  delta   cap
ana            2  0.0075  1e-09  none  [##############################]"""
UNLIMITED = """\
x: the ledger, replace-one neighbours, since DAY
private tables: visits (each row)
answers: 1

epsilon  1 spent, no limit

day (UTC)  answers  epsilon
DAY              1        1  [##############################]"""
OF_TWO = """\
x: the ledger, replace-one neighbours, since DAY
private tables: visits (each row)
answers: 2

epsilon  1.5 spent, no limit

analyst  answers  epsilon   cap
ana            1        1  none  [##############################]
bob            1      0.5  none  [###############...............]"""
SPENT_UP = """\
x: the ledger, replace-one neighbours, since DAY
private tables: visits (each row)
answers: 1

epsilon  [##############################]  1 of 1 spent, 0 left
enough for 0 more counts within +-10 (95%)"""


@pytest.mark.parametrize(
    ("made", "by", "text"),
    [
        (shared, None, SHARED.format("")),
        (shared, "analyst", SHARED.format(BY_ANALYST)),
        (in_rho, "analyst", RHO),
        (unlimited, "day", UNLIMITED),
        (of_two, "analyst", OF_TWO),
        (spent_up, None, SPENT_UP),
    ],
)
def test_the_printed_budget(path, made, by, text):
    found = re.sub(r"\d{4}-\d\d-\d\d", "DAY", show("x", made(path), by))
    assert (
        re.sub(r"(day \(UTC\)) +answers", r"\1  answers", re.sub(r"DAY +(\d)", r"DAY              \1", found))
        == text
    )


def test_the_budget_as_json(path):
    rows = shared(path)
    found = report(rows, "analyst")
    assert found["opened"] == rows[0].time
    expected = {
        "dataset": None, "neighbours": "replace-one", "tables": {"visits": "each row"}, "entries": 5, "answers": 3,
        "accountant": "approximate", "per_query": 3.0,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected
    assert found["limit"] == {"epsilon": 12.0, "delta": 0.001}
    assert found["spent"] == {"epsilon": 3.5, "delta": 1e-6}
    assert found["remaining"] == {"epsilon": 8.5, "delta": 0.000999}
    assert found["more_counts"] == {"within": 10, "level": 0.95, "counts": 29}
    renewal = {
        "when": rows[4].time,
        "scope": "dataset",
        "analyst": None,
        "epsilon": 2.0,
        "delta": 0.0,
        "reason": "a new year",
    }
    assert found["renewals"] == [renewal]
    assert found["by_analyst"] == [
        {"analyst": "ana", "answers": 2, "epsilon": 1.5, "delta": 1e-6, "cap": 4.0},
        {"analyst": "bob", "answers": 1, "epsilon": 2.0, "delta": 0.0, "cap": 6.0},
        {"analyst": "cy", "answers": 0, "epsilon": 0.0, "delta": 0.0, "cap": 1.0},
    ]
    assert report(rows, "day")["by_day"] == [
        {"day": rows[0].time[:10], "answers": 3, "epsilon": 3.5, "delta": 1e-6}
    ]
    assert "by_day" not in report(rows, None)


def test_rho_as_json(path):
    found = report(in_rho(path), "day")
    assert found["spent"] == {
        "epsilon": pytest.approx(0.53625822),
        "delta": pytest.approx(9.01e-7),
        "rho": 0.0075,
    }
    assert found["limit"] == {"epsilon": 2.0, "delta": 1e-6, "rho": pytest.approx(0.0874039, rel=1e-4)}
    assert found["remaining"]["epsilon"] == pytest.approx(1.904995)
    assert found["by_day"][0]["rho"] == 0.0075


def test_no_limit_is_null(path):
    found = report(unlimited(path), "analyst")
    assert (found["limit"]["epsilon"], found["remaining"]["epsilon"], found["more_counts"]["counts"]) == (
        None,
        None,
        None,
    )
    assert found["per_query"] is None
    assert found["by_analyst"] == [
        {"analyst": "ana", "answers": 1, "epsilon": 1.0, "delta": 0.0, "cap": None}
    ]


# -- how many more counts --------------------------------------------------------------------------------------
BY_UNIT = {"tables": {"visits": {"unit": "u", "max_rows": 100}}, "budget": {"epsilon": 10.0}}
VISITED = pd.DataFrame({"u": [1, 1, 2], "age": [1, 2, 3]})


def test_no_remaining_counts_are_promised_with_several_rows_per_person(path):
    """One costs epsilon 28 under this policy, and a ledger does not know its limits."""
    with privsql.connect({"visits": VISITED}, BY_UNIT, ledger=path) as session:
        assert session.explain("SELECT COUNT(*) FROM visits", within=10).epsilon == pytest.approx(
            28.43, abs=0.01
        )
        assert "count" not in str(session.budget)
        session.query("SELECT COUNT(*) FROM visits", epsilon=1)
    rows = open_reader(path).rows()
    assert "more count" not in show("x", rows, None)
    assert report(rows, None)["more_counts"]["counts"] is None
    frame = VISITED.copy()
    frame.dp.protect(unit="u", budget=10)
    assert frame.dp.budget.counts is None


@pytest.mark.parametrize(
    ("budget", "asked"),
    [
        ({"epsilon": 1.0}, {}),
        ({"epsilon": 1.0, "per_query_least": 0.4}, {"within": None, "epsilon": 0.4}),
        ({"epsilon": 1.5, "delta": 1e-6, "accountant": "zcdp"}, {"mechanism": "gaussian", "delta": 1e-6}),
    ],
)
def test_the_promised_number_of_counts_can_be_run(budget, asked):
    with privsql.connect({"visits": VISITED}, {"budget": budget}) as session:
        counts = session.budget.counts
        assert counts in (2, 3)
        for _ in range(counts):
            session.query("SELECT COUNT(*) FROM visits", **{"within": 10, "fresh": True, **asked})
        assert session.budget.counts == 0
        assert refusal(
            session.query, "SELECT COUNT(*) FROM visits", **{"within": 10, "fresh": True, **asked}
        ).code
