"""What a ledger or a call refuses, by its code; and that a refused charge changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from privsql import BudgetError, PrivsqlError
from privsql.budget.ledger import Ledger
from tests.budget.ledgers import charge


def code_of(ledger: Ledger, *arguments: Any, **keywords: Any) -> str:
    """The refusal of a charge, after which everything is as it was."""
    before = (ledger.budget, ledger.entries())
    with pytest.raises(BudgetError) as caught:
        charge(ledger, *arguments, **keywords)
    assert (ledger.budget, ledger.entries()) == before
    return caught.value.code


def refusal(call: Any, *arguments: Any, **keywords: Any) -> PrivsqlError:
    with pytest.raises(PrivsqlError) as caught:
        call(*arguments, **keywords)
    assert caught.value.suggestion
    return caught.value
