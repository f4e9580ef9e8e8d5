"""Every ledger: it keeps what is charged, whatever it is kept in. A new ledger is one more class here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from privsql.budget.ledger import Ledger, MemoryLedger
from privsql.budget.ledger_file.file_ledger import open_ledger
from privsql.policy import Policy
from tests.budget.ledgers import VISITS
from tests.conformance.accountants.ledger_suite import LedgerConformance


class TestMemoryLedger(LedgerConformance):
    def make(self, declared: Policy) -> Ledger:
        return MemoryLedger.under(declared)


class TestFileLedger(LedgerConformance):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> Iterator[None]:
        self.path, self.made = tmp_path, []
        yield
        for each in self.made:
            each.close()

    def make(self, declared: Policy) -> Ledger:
        self.made.append(open_ledger(self.path / f"{len(self.made)}.ledger", declared, VISITS))
        return self.made[-1]


# -- it keeps what is charged ----------------------------------------------------------------------------------
