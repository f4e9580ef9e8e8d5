"""The budget at its ends: ledgers that vanish, are held or emptied, amounts without a limit, tables packed for the shelf."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privsql
from privsql.answers import derivation as derive
from privsql.answers import ways
from privsql.answers.additive import additive
from privsql.answers.answer_file import _fits, packed, unpacked
from privsql.answers.ways import _solved
from privsql.budget.accountants import ADDITION, Zcdp
from privsql.budget.amount import Amount, Cap, Loss
from privsql.budget.caps import Caps, caps_of, policy_caps
from privsql.budget.dataset import dataset_of
from privsql.budget.ledger import MemoryLedger
from privsql.budget.ledger_file import mounts
from privsql.budget.ledger_file import store as stores
from privsql.budget.ledger_file.file_ledger import open_ledger, renew
from privsql.budget.ledger_file.format import OBJECTS
from privsql.budget.ledger_file.show import _grouped
from privsql.budget.ledger_file.store import Store
from privsql.budget.ledger_file.verify import _same_cap, _within, anchor_of, read_anchor, replay, verify
from privsql.budget.pld import _pieces, batch_loss, by_addition, by_distributions, by_zcdp
from privsql.budget.released import Released
from privsql.errors import ArgumentError, BudgetError
from privsql.neighbours import Neighbours
from privsql.policy import Share, load_policy
from privsql.privacy.events import Choice, Gaussian, GaussianKeys, Keys, Laplace, Pure
from privsql.privacy.gaussian import tail_above
from privsql.privacy.zcdp import least_epsilon
from privsql.schema import Schema, SchemaTable
from privsql.tables import NoisyTable
from tests.budget.ledgers import VISITS, charge, policy

SAME = {**os.environ, "PYTHONPATH": str(Path(privsql.__file__).parents[1])}  # the package under test


# -- the file ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.EPERM, "no hard links here"), "budget-write"),
        (FileNotFoundError(errno.ENOENT, "the folder went away"), "budget-ledger"),
    ],
)
def test_a_ledger_that_cannot_get_its_name_leaves_no_file(path, monkeypatch, error, code):
    def link(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(BudgetError) as caught:
        open_ledger(path, policy(1), VISITS)
    assert caught.value.code == code
    assert list(path.parent.iterdir()) == []  # nothing half made stays behind


def test_the_name_of_a_new_ledger_is_on_the_disk(path, monkeypatch):
    """Else after a crash there might be no ledger, and the next one would begin with all of its budget."""
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    open_ledger(path, policy(1), VISITS).close()
    assert synced == [path.parent.stat().st_ino]


def test_a_ledger_locked_by_another_thread_is_reported_busy(path, ledger):
    store = Store(path, patience=0.05)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with store.reading():
            held.set()
            done.wait(10)

    other = threading.Thread(target=hold)
    other.start()
    held.wait(10)
    with pytest.raises(BudgetError) as caught, store.reading():
        pass
    done.set()
    other.join()
    assert caught.value.code == "budget-busy"
    store.close()


def test_a_transaction_that_cannot_be_rolled_back_is_dropped(path, ledger):
    store = Store(path)

    def broken() -> None:
        with store.reading():
            store._connection.close()
            raise KeyError

    with pytest.raises(KeyError):
        broken()
    with store.reading():  # and opened anew
        assert store.execute("SELECT count(*) FROM entries") == [(1,)]
    store.close()


def test_a_file_replaced_while_opening_is_refused(path, ledger, tmp_path):
    other = tmp_path / "other.ledger"
    open_ledger(other, policy(10), VISITS).close()

    class Swapped(Store):
        def _open(self, mode: str) -> None:
            super()._open(mode)
            os.replace(other, self.path)

    store = Swapped(path)
    with pytest.raises(BudgetError) as caught, store.reading():
        pass
    assert caught.value.code == "budget-ledger"
    assert store._connection is None


def test_no_connection_is_open_while_a_process_forks(ledger):
    charge(ledger, 1)
    store = ledger._store
    assert store._connection is not None
    stores._before_fork()
    assert store._connection is None
    assert not store._lock.acquire(blocking=False)
    stores._after_fork()
    assert not store._lock.locked()
    charge(ledger, 1)
    store.patience = 0.01
    with store._alone():
        stores._before_fork()  # in the midst of a charge: that one is left as it is
        assert store._connection is not None
        assert store not in stores._HELD
        stores._after_fork()
        assert store._lock.locked()
    assert ledger.budget.spent.epsilon == 2


def test_a_fork_during_a_charge_cannot_use_the_parents_connection(path, ledger):
    """The child has a connection that is its parent's: it says so, rather than to use it."""
    code = """if True:
        import os, sys
        from privsql.budget.ledger_file.store import Store
        from privsql.errors import BudgetError
        from pathlib import Path
        store = Store(Path(sys.argv[1]), patience=0.05)
        with store.reading():
            pass
        with store._alone():
            child = os.fork()
        if not child:
            try:
                with store.reading():
                    pass
            except BudgetError as error:
                os._exit(7 if "was forked" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        with store.reading():
            pass
        """
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], env=SAME, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_ledger_without_entries_is_refused(path, ledger):
    """Emptied by who can write the file, its triggers put back as they were."""
    ledger.close()
    triggers = {name: sql for name, sql in OBJECTS.items() if "TRIGGER" in sql}
    with closing(sqlite3.connect(path)) as connection:
        for name in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("DELETE FROM entries")
        for sql in triggers.values():
            connection.execute(sql)
        connection.commit()
    with pytest.raises(BudgetError) as caught:
        charge(ledger, 1)
    assert caught.value.code == "budget-corrupt"


def test_an_unspent_ledger_has_an_anchor(path, ledger):
    anchor = anchor_of(ledger.rows())
    assert str(anchor).split(":")[1:4] == ["1", "0", "0"]
    assert read_anchor(f" {anchor}\n").total == Loss()
    verify(path, read_anchor(str(anchor)))
    charge(ledger, 1, delta=Fraction(1, 10**6))
    later = anchor_of(ledger.rows())
    assert str(later).split(":")[1:4] == ["2", str(10**9), str(10**12)]
    verify(path, read_anchor(str(later)))
    verify(path, read_anchor(str(anchor)))
    with pytest.raises(ArgumentError):
        read_anchor(str(anchor).replace(":1:", ":0:", 1))


def test_a_view_is_part_of_a_dataset_only_where_the_policy_names_it():
    schema = Schema((SchemaTable("visits", ()), SchemaTable("Seen", (), view=True), SchemaTable("codes", ())))
    declared = {"tables": {"codes": {"public": True}}}
    assert dataset_of(load_policy(declared), schema).tables == {"visits": "each row"}
    declared["tables"]["seen"] = {"unit": "Who"}
    assert dataset_of(load_policy(declared), schema).tables == {"seen": "who", "visits": "each row"}
    declared["tables"]["seen"] = {"unit": "visit -> visits.ID"}
    assert dataset_of(load_policy(declared), schema).tables == {
        "seen": "visit -> visits.id",
        "visits": "each row",
    }


def test_the_first_entry_has_spent_nothing(ledger):
    (opening,) = ledger.rows()
    assert (opening.loss, opening.total, opening.share) == (Loss(), Loss(), Loss())


@pytest.mark.parametrize(
    "details", ["no JSON", '[{"event": "Pure"}]', '[{"event": "None", "mechanism": "", "what": ""}]', "[3]"]
)
def test_an_entry_that_cannot_be_read_breaks_the_ledger(ledger, details):
    charge(ledger, 1)
    opening, row = ledger.rows()
    wrong = replace(row, details=details)
    with pytest.raises(BudgetError, match="the ledger is not valid") as caught:
        replay([opening, replace(wrong, hash=wrong.digest())])
    assert caught.value.code == "budget-corrupt"


def test_unknown_mounts_are_not_refused(path, monkeypatch):
    monkeypatch.setattr(mounts, "_MOUNTS", Path("/nowhere/at/all"))
    assert mounts._mounts() == ""
    open_ledger(path, policy(1), VISITS).close()


def test_totals_above_a_cap_are_detected(path, ledger):
    charge(ledger, 1)
    opening, row = ledger.rows()
    caps = caps_of(
        Fraction(10), Fraction(1, 1000), Fraction(2), {"ana": Share(Fraction(3), Fraction(1, 10**6))}
    )
    _within(caps, row, Loss(10 * 10**9, 10**15))
    _within(caps, opening, Loss(10 * 10**9, 10**15))
    for total, wrong in [
        (Loss(10 * 10**9 + 1), row),
        (Loss(10**9, 10**15 + 1), row),
        (Loss(10**9), replace(row, epsilon=2 * 10**9 + 1)),
        (Loss(10**9), replace(row, share_epsilon=3 * 10**9 + 1)),
        (Loss(10**9), replace(row, share_delta=10**12 + 1)),
        (Loss(10 * 10**9 + 1), opening),
    ]:
        with pytest.raises(BudgetError, match="spends more than its cap"):
            _within(caps, wrong, total)


def test_a_cap_in_rho_may_be_off_by_a_millionth(ledger):
    """Another way to round may find a hair more or less; a cap in epsilon is what was declared."""
    (row,) = ledger.rows()
    for accountant, part in ((Zcdp(), 10**6), (ADDITION, None)):
        caps = Caps(Cap(10**9, 10**12), accountant=accountant)
        limit = caps.limits("").dataset
        hair = 0 if part is None else 1 + limit.nano // part
        for off, holds in ((0, True), (hair, True), (hair + 1, False)):
            for sign in (1, -1):
                assert (
                    _same_cap(
                        caps, replace(row, cap_epsilon=limit.nano + sign * off, cap_delta=limit.atto_delta)
                    )
                    is holds
                )
        assert not _same_cap(caps, replace(row, cap_epsilon=limit.nano, cap_delta=limit.atto_delta + 1))
        assert not _same_cap(caps, replace(row, cap_epsilon=None, cap_delta=limit.atto_delta))
    assert _same_cap(Caps(), replace(row, cap_epsilon=None, cap_delta=None))
    assert not _same_cap(Caps(), replace(row, cap_epsilon=5, cap_delta=None))


def test_stored_numbers_must_fit_the_plan():
    """Whole ones, one for each cell and column; of a choice, cells that there are."""
    frame, policy_ = (
        pd.DataFrame({"k": ["a"], "c": ["x"]}),
        {"tables": {"t": {"columns": {"k": {"values": ["a", "b"]}}}}},
    )
    session = privsql.connect({"t": frame}, policy_)
    label = session.explain("SELECT k FROM t GROUP BY k ORDER BY COUNT(*) DESC LIMIT 1", epsilon=1)
    counts = session.explain("SELECT k, COUNT(*) AS n FROM t GROUP BY k", epsilon=1)
    unknown = session.explain("SELECT c, COUNT(*) AS n FROM t GROUP BY c", epsilon=1, delta=1e-6)
    (column,) = counts.measurements[0].columns
    assert len(label.space) == len(counts.space) == 3

    def fits(
        plan: privsql.Plan, cells: list[int], numbers: dict[str, list[float]], keys: dict[str, list[str]]
    ) -> bool:
        arrays = {name: np.array(each) for name, each in numbers.items()}
        return _fits(
            plan,
            NoisyTable(np.array(cells), arrays, {name: np.ma.array(each) for name, each in keys.items()}),
        )

    assert [fits(label, [cell], {}, {}) for cell in (-1, 0, 2, 3)] == [False, True, True, False]
    assert not fits(label, [[0]], {}, {})
    assert not fits(label, [0, 3], {}, {})
    assert fits(counts, [0, 1, 2], {column: [5, -6, 7], "other": [0, 0, 0]}, {})
    for cells, numbers in [
        ([0, 1, 2], {}), ([0, 1, 2], {"other": [5, 6, 7]}), ([0, 1, 2], {column: [5.0, 6.0, 7.0]}), ([0, 1], {column: [5, 6]}),
        ([0, 2, 1], {column: [5, 6, 7]}), ([0, 1, 2], {column: [5, 6]}), ([0, 1, 2], {column: [[5], [6], [7]]}),
    ]:  # fmt: skip
        assert not fits(counts, cells, numbers, {})
    assert fits(unknown, [0, 1], {"count_1": [50, 60]}, {"c": ["x", "y"]})
    assert not fits(unknown, [0, 1], {"count_1": [50, 60]}, {"c": ["x"]})


# -- amounts and events --------------------------------------------------------------------------------------------
def test_no_limit_is_shown_as_none():
    assert str(Amount(float("inf"))) == "no limit"
    assert str(Amount(0.5, 1e-6, 0.25)) == "epsilon 0.5, delta 1e-06 (rho 0.25)"
    assert str(Amount(0.5, 1.0)) == "epsilon 0.5"
    assert str(Zcdp().left(Cap(None), Cap(None), Loss(5), Cap(None))) == "no limit"


def test_no_delta_is_reserved_for_keys_without_a_cap_on_delta():
    assert Zcdp().limit(Cap(None, None)) == Cap(None, 0)
    assert Zcdp().conversion_delta(Cap(None, None)) == 0
    assert Zcdp(Fraction(1, 4)).limit(Cap(None, 10**12)) == Cap(None, 25 * 10**10)
    assert Zcdp(Fraction(1, 4)).conversion_delta(Cap(None, 10**12)) == Fraction(3, 4 * 10**6)


def test_a_ledger_in_memory_records_its_charges():
    ledger = MemoryLedger(Fraction(1), Neighbours.REPLACE_ONE)
    assert [ledger.charged(number) for number in (0, 1)] == [None, None]
    charge(ledger, 0.25)
    assert [ledger.charged(number) for number in (-1, 0, 1, 2)] == [None, None, "", None]


def test_distributions_need_their_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    with pytest.raises(ArgumentError, match=r"privsql\[pld\]"):
        by_distributions([], Fraction(1, 10**6))


def test_distributions_are_not_narrower_than_the_noise(monkeypatch):
    """All floats that they are made of are on the safe side: less noise, more epsilon and delta than there truly are."""
    made: list[Any] = []

    class Distribution:
        def __init__(self, given: object) -> None:
            made.append(given)

        def self_compose(self, times: int) -> Distribution:
            return self

        def get_epsilon_for_delta(self, delta: float) -> float:
            return 1.0

    made_by = SimpleNamespace(from_gaussian_mechanism=Distribution, from_privacy_parameters=Distribution)
    common = SimpleNamespace(DifferentialPrivacyParameters=lambda epsilon, delta: (epsilon, delta))
    monkeypatch.setitem(sys.modules, "dp_accounting", SimpleNamespace())
    monkeypatch.setitem(
        sys.modules, "dp_accounting.pld", SimpleNamespace(common=common, privacy_loss_distribution=made_by)
    )
    for ratio in (Fraction(1, 30), Fraction(1, 70), Fraction(1, 49), Fraction(2, 101)):
        by_distributions([Gaussian(Fraction(1), Fraction(1, 10**6), ratio)], Fraction(1, 10**6))
        assert 1 - Fraction(1, 10**11) < Fraction(made.pop()) ** 2 * ratio < 1
    by_distributions([Keys(Fraction(1, 3), Fraction(1, 7 * 10**6), 1)], Fraction(1, 10**6))
    ((epsilon, delta),) = made
    assert 0 <= Fraction(epsilon) - Fraction(1, 3) < Fraction(1, 10**15)
    assert 0 <= Fraction(delta) - Fraction(1, 7 * 10**6) < Fraction(1, 10**21)


def test_a_share_of_a_gaussian_release_is_not_an_event():
    session = privsql.connect({"t": pd.DataFrame({"x": [1]})})
    plan = session.explain("SELECT COUNT(*) FROM t WHERE x > 0", epsilon=1, delta=1e-6, mechanism="gaussian")
    assert not hasattr(plan.measurements[0], "events")


@pytest.mark.parametrize(("neighbours", "changes"), [("add-remove", 9), ("replace-one", 18)])
def test_the_loss_of_keys_with_gaussian_noise(neighbours, changes):
    """One unit moves so many counts by 4 at most; and who comes shows one of its 9 keys by so small a chance."""
    table = {"unit": "who", "max_groups": 9, "max_rows": 4}
    session = privsql.connect(
        {"t": pd.DataFrame({"who": [1], "k": ["x"]})}, {"neighbours": neighbours, "tables": {"t": table}}
    )
    plan = session.explain(
        "SELECT k, COUNT(*) FROM t GROUP BY k", epsilon=1, delta=1e-6, mechanism="gaussian"
    )
    (keys,) = plan.measurements
    (event,) = keys.events
    variance, limit = keys.release.variance, keys.release.limit
    assert event.ratio == Fraction(changes * 4**2) / variance
    tail = NormalDist(0, float(variance) ** 0.5).cdf(4 - limit - 0.5)  # rounded, and above the limit
    assert float(event.exclusive) == pytest.approx(9 * tail, rel=0.05)
    assert event.exclusive <= event.delta == Fraction(1, 10**6)
    assert 0 <= event.exclusive * 10**18 - 9 * tail_above(variance, limit - 4) * 10**18 < 1  # rounded up


def test_the_first_ledger_format_is_read():
    old = {"mechanism": "some noise", "what": "COUNT(*)", "epsilon": "1/2", "delta": "0"}
    assert Released.of_json(old).event == Pure(Fraction(1, 2))
    assert Released.of_json({**old, "delta": "1/1000"}).event == Keys(Fraction(1, 2), Fraction(1, 1000), 1)
    for event in (
        Pure(Fraction(1, 2), 3),
        Keys(Fraction(1), Fraction(1, 10), 2),
        Laplace(Fraction(1), 4, 2, Fraction(4)),
    ):
        kept = Released("some noise", "COUNT(*)", event)
        assert Released.of_json(kept.to_json()) == kept


HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("event", "pieces"),
    [
        (Laplace(HALF, 4, 1, Fraction(8)), [(Fraction(1, 8), 0, 0)] * 4),
        (
            Laplace(HALF, 4, 2, Fraction(8)),
            [(HALF, 0, 0)],
        ),  # how far a cell moves is not known: the whole at once
        (Keys(HALF, Fraction(1, 1000), 2), [(Fraction(1, 4), Fraction(1, 2000), 0)] * 2),
        (Pure(HALF, 2), [(Fraction(1, 4), 0, 0)] * 2),
        (Choice(HALF, 5), [(Fraction(1, 10), 0, 0)] * 5),
        (Gaussian(HALF, Fraction(1, 1000), Fraction(1, 900)), [(0, 0, Fraction(1, 900))]),
        (
            GaussianKeys(HALF, Fraction(1, 1000), Fraction(1, 900), Fraction(1, 2000)),
            [(HALF, Fraction(1, 1000), 0)],
        ),
    ],
)
def test_composite_events_are_split_for_distributions(event, pieces):
    assert list(_pieces(event)) == pieces


def test_an_empty_answer_file_has_no_answers():
    assert _grouped([], "day", "epsilon") == ["no answers yet"]


# -- caps that a policy and a ledger have ------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("opened", "shares", "ana", "bob"),
    [
        (None, None, None, None),
        (None, {"ana": {"epsilon": 1}}, 1, 0),  # who is not listed where others are has nothing
        ({"ana": {"epsilon": 2}}, None, 2, 0),
        ({"ana": {"epsilon": 2}}, {"ana": {"epsilon": 1}}, 1, 0),
    ],
)
def test_shares_of_the_ledger_or_of_the_policy_hold(path, opened, shares, ana, bob):
    """Those of either, and the smaller of both."""
    open_ledger(path, policy(10, **({"analysts": opened} if opened else {})), VISITS).close()
    ledger = open_ledger(path, policy(10, **({"analysts": shares} if shares else {})), VISITS)
    for analyst, most in (("ana", ana), ("bob", bob)):
        share = ledger.share(analyst)
        assert (None if share is None else share.limit.epsilon) == most
        if most is not None:
            with pytest.raises(BudgetError) as caught:
                charge(ledger, most + 1, analyst=analyst)
            assert caught.value.code == "budget-analyst"
        if most != 0:
            charge(ledger, most or 1.5, analyst=analyst)
    ledger.close()


def test_earlier_spending_counts_for_its_analyst():
    first = MemoryLedger(None, Neighbours.REPLACE_ONE)
    charge(first, 1)
    charge(first, 2, analyst="bob")
    caps = policy_caps(policy(10, analysts={"ana": {"epsilon": 1.5}, "bob": {"epsilon": 5}}))
    ledger = MemoryLedger(None, Neighbours.REPLACE_ONE, first.entries(), caps=caps)
    assert [ledger.share(who).spent.epsilon for who in ("ana", "bob")] == [1, 2]
    with pytest.raises(BudgetError) as caught:
        charge(ledger, 1)
    assert caught.value.code == "budget-analyst"
    charge(ledger, 0.5)
    assert ledger.budget.spent.epsilon == 3.5


@pytest.mark.parametrize("who", ["", "  ", "a\nb"])
def test_a_renewal_for_somebody_without_a_name(path, who):
    ledger = open_ledger(path, policy(10, analysts={"ana": {"epsilon": 1}, "*": {"epsilon": 1}}), VISITS)
    with pytest.raises(ArgumentError) as caught:
        renew(path, Loss(10**9), "why", "analyst", who)
    assert caught.value.code == "argument-analyst"
    renew(path, Loss(10**9), "why", "analyst", "*")
    assert [(row.kind, row.analyst) for row in ledger.rows()] == [("open", ""), ("renew", "*")]
    ledger.close()


def test_a_renewal_that_is_refused_leaves_nothing_open(path, ledger):
    with pytest.raises(BudgetError) as caught:  # and its frames with it
        renew(path, Loss(1), "why", "query")
    assert caught.value.code == "budget-caps"
    ledger.close()
    assert all(each._connection is None for each in stores._STORES if each.path == path.resolve())


# -- stored answers ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "values",
    [
        np.ma.array([3, -4, 0], mask=[False, True, False]),
        np.ma.array([1.5, float("inf"), 0.0], mask=[True, False, False]),
        np.ma.array(
            np.array(["2024-01-01", "NaT", "1999-12-31"], dtype="datetime64[us]"), mask=[False, True, False]
        ),
        np.ma.array([True, False, True], mask=False),
        np.ma.array(np.array(["x", "", "\ud800"], dtype=object), mask=[False, True, False]),
        np.array(["a", "b", "c"], dtype=object),
    ],
)
def test_stored_keys_keep_their_values(values):
    noisy = NoisyTable(
        np.arange(3), {"n": np.array([5, -6, 7])}, {"second": values, "a first": np.array([1, 2, 3])}
    )
    found = unpacked(packed(noisy))
    assert found.cells.tolist() == [0, 1, 2]
    assert found.noisy_columns["n"].tolist() == [5, -6, 7]
    assert list(found.keys) == ["second", "a first"]
    assert np.ma.getmaskarray(found.keys["second"]).tolist() == np.ma.getmaskarray(values).tolist()
    assert np.ma.compressed(found.keys["second"]).tolist() == np.ma.compressed(values).tolist()
    assert found.keys["a first"].tolist() == [1, 2, 3]


def test_two_columns_solve_a_third_only_if_they_differ():
    one, other = {"a": 1, "b": 1}, {"a": 1, "b": -1}
    assert _solved({"a": 2}, one, other) == (1, 1)
    assert _solved({"a": 1, "b": 3}, one, other) == (2, -1)
    assert _solved({"a": 1}, one, {"a": 2, "b": 2}) is None  # the same once more
    assert _solved(one, one, other) is None  # one of them alone
    assert _solved({"c": 1}, one, other) is None
    assert _solved({"a": 1}, {"a": 1}, {"a": 2}) is None


def test_group_winners_are_derived_from_a_histogram():
    frame = pd.DataFrame({"k": ["a"] * 4 + ["b"] * 5, "x": [3, 3, 1, 0, 2, 2, 2, 9, 9]})
    session = privsql.connect(
        {"t": frame}, {"tables": {"t": {"columns": {"k": {"values": ["a", "b"]}, "x": {"range": [0, 9]}}}}}
    )
    session.query("SELECT k, x, COUNT(*) FROM t GROUP BY k, x", epsilon=4000)
    found = session.query("SELECT k, mode(x) AS most FROM t WHERE k IS NOT NULL GROUP BY k", epsilon=0.01)
    assert found.stored
    assert found.fetchall() == [("a", 3), ("b", 2)]


FRAME = pd.DataFrame({"k": ["a"] * 40 + ["b"] * 50, "x": [3] * 45 + [1] * 45})
COLUMNS = {"tables": {"t": {"columns": {"k": {"values": ["a", "b"]}, "x": {"range": [0, 9]}}}}}


@pytest.mark.parametrize(
    ("first", "columns"),
    [("AVG(five)", [{}, {("1",): 1}]), ("SUM(five)", [{("1",): 5}]), ("SUM(none)", [{}]), ("COUNT(five)", [{("1",): 1}]),
     ("COUNT(*) FILTER (WHERE five > 1) / COUNT(*)", [{("1",): 1}, {("1",): 2**24}])],
)  # fmt: skip
def test_a_constant_argument_is_equivalent_to_a_count(first, columns):
    """How far an average is above the low end, or below the high one, which is a step further where both are one."""
    frame = pd.DataFrame({"five": pd.array([5] * 900 + [None], dtype="Int64"), "none": 0})
    ranges = {"five": {"range": [5, 5]}, "none": {"range": [0, 0]}}
    session = privsql.connect({"t": frame}, {"tables": {"t": {"columns": ranges}}})
    plan = session.explain(f"SELECT {first} FROM t", epsilon=1)
    assert [each.parts for each in additive(plan).columns.values()] == columns
    if first == "AVG(five)":
        session.query(f"SELECT {first} FROM t", epsilon=100)
        found = session.query("SELECT COUNT(*) AS n FROM t WHERE five IS NOT NULL", epsilon=1)
        assert found.stored
        assert found.fetchall() == [(pytest.approx(900, abs=3),)]


def test_an_equally_accurate_answer_is_reused():
    """At the same epsilon a part of a histogram is no less sure than it would be anew; at a hair more it is."""
    session = privsql.connect({"t": FRAME}, COLUMNS)
    session.query("SELECT k, COUNT(*) FROM t GROUP BY k", epsilon=1)
    part = "SELECT k, COUNT(*) AS n FROM t WHERE k IS NOT NULL GROUP BY k"
    assert session.explain(part, epsilon=1).free
    assert not session.explain(part, epsilon=1.001).free


def test_fresh_answers_are_shown_as_drawn():
    """Nothing is combined with it, though it is combined with what is asked later."""
    session = privsql.connect({"t": FRAME}, COLUMNS)
    text = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
    combined = [
        len(session.query(text, epsilon=1 + i, fresh=i == 1).receipt["from_answers"]) for i in range(3)
    ]
    assert combined == [0, 0, 3]
    label = "SELECT mode(x) AS most FROM t"
    assert [session.query(label, epsilon=1 + i).receipt["from_answers"] for i in range(2)] == [[], []]


def test_an_equivalent_query_gets_the_combined_answer():
    """It was computed from two answers, one of them its own: so it is shown again, with what was measured for it."""
    session = privsql.connect({"t": FRAME}, COLUMNS)
    text = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
    session.query(text, epsilon=0.5)
    one = session.query(text, epsilon=1)
    two = session.query("SELECT t.k, COUNT(1) AS many FROM t GROUP BY 1 ORDER BY 1", epsilon=1)
    assert two.fetchall() == one.fetchall()
    assert (two.stored, two.receipt["charged"], two.plan.epsilon) == (True, 0, 1)
    assert two.plan.measurements == one.plan.measurements
    assert [each["epsilon"] for each in two.receipt["from_answers"]] == [1, 0.5]


def test_zcdp_reserves_delta_for_keys():
    events = [
        Gaussian(HALF, Fraction(1, 1000), Fraction(1, 900)),
        Keys(Fraction(1, 10), Fraction(1, 10**7), 2),
    ]
    spent = Zcdp().price(events)
    expected = float(least_epsilon(Fraction(spent.nano, 10**9), Fraction(1, 10**6) - Fraction(spent.delta)))
    assert by_zcdp(events, Fraction(1, 10**6)) == expected
    assert by_zcdp(events, Fraction(spent.delta)) == float("inf")
    assert by_addition(events, Fraction(1, 10**6)) == float("inf")
    assert by_addition(events, Fraction(1, 1000) + Fraction(1, 10**7)) == 0.6
    for delta in (0, 1, 2):
        with pytest.raises(ArgumentError, match="above 0 and below 1"):
            batch_loss(events, Fraction(delta))


@pytest.mark.parametrize(
    ("mechanism", "squares"),
    [(None, 1.0), ("laplace", 2.0), ("gumbel", np.pi**2 / 6), ("exponential", np.pi**2 / 6)],
)
def test_how_noisy_a_choice_is(mechanism, squares):
    plan = privsql.connect({"t": FRAME}, COLUMNS).explain(
        "SELECT mode(x) FROM t", epsilon=0.5, mechanism=mechanism
    )
    (measured,) = plan.measurements
    assert derive.variances(plan) == {measured.columns[0]: pytest.approx(squares * measured.scale**2)}


def test_how_noisy_counts_are():
    plan = privsql.connect({"t": FRAME}, COLUMNS).explain("SELECT k, COUNT(*) FROM t GROUP BY k", epsilon=0.5)
    rate = 0.25
    assert derive.variances(plan) == {"count_1": pytest.approx(2 * np.exp(-rate) / (1 - np.exp(-rate)) ** 2)}
    many = "SELECT x FROM t GROUP BY x ORDER BY COUNT(*) DESC LIMIT 8"
    (measured,) = (plan := privsql.connect({"t": FRAME}, COLUMNS).explain(many, epsilon=0.5)).measurements
    assert measured.mechanism.name == "CHOICE_HISTOGRAM"
    assert derive.variances(plan) == {measured.columns[0]: pytest.approx(2 * measured.scale**2)}


def test_explain_mentions_earlier_answers():
    session = privsql.connect({"t": FRAME}, COLUMNS)
    long = "SELECT x, COUNT(*) AS a_name_that_is_so_long_that_the_question_does_not_fit_into_a_line_any_more FROM t GROUP BY x"
    session.query(long, epsilon=1)
    short = "SELECT k, COUNT(*) FROM t WHERE x > 3 GROUP BY k -- " + 28 * "-"
    assert len(short) == 80
    session.query(short, epsilon=2)
    plan = session.explain("SELECT COUNT(*) AS n FROM t", epsilon=0.01)
    today = plan.derived.sources[0].when[:10]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", today)
    assert f"{long[:77]}... (epsilon 1, {today}): each cell is the sum of up to 10 of its cells" in str(plan)
    assert "rows where x is not a declared key are missing from it (fresh=True runs the query anew)" in str(
        plan
    )
    alike = str(
        session.explain("SELECT k, COUNT(*) FROM t WHERE x > 3 AND k IS NOT NULL GROUP BY k", epsilon=0.01)
    )
    assert f"{short} (epsilon 2, {today}): cell by cell" in alike
    assert "fresh=True" not in alike
    assert "inverse variance" not in alike
    assert alike.count("from earlier answers") == 1  # the count, and not the key


def test_answers_with_too_many_cells_are_not_added_up(monkeypatch):
    session = privsql.connect(
        {"t": pd.DataFrame({"x": [1, 2]})}, {"tables": {"t": {"columns": {"x": {"range": [0, 9]}}}}}
    )
    session.query("SELECT x, COUNT(*) FROM t GROUP BY x", epsilon=100)
    for most, free in ((10, True), (9, False)):
        monkeypatch.setattr(ways, "MOST_CELLS", most)
        assert session.explain("SELECT COUNT(*) FROM t", epsilon=1).free is free
