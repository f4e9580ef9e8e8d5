"""privsql: ordinary SQL, private answers."""

from privsql.budget.ledger import Amount, Budget
from privsql.errors import (
    ArgumentError,
    BudgetError,
    EngineError,
    PolicyError,
    PrivsqlError,
    Refused,
    SourceError,
    SqlError,
    UnknownName,
)
from privsql.pandas import FrameAccessor
from privsql.planning.plan import Plan
from privsql.policy import Policy
from privsql.results.answer import Answer
from privsql.session import Session, connect

__version__ = "0.1.0"

__all__ = [
    "Amount",
    "Answer",
    "ArgumentError",
    "Budget",
    "BudgetError",
    "EngineError",
    "FrameAccessor",
    "Plan",
    "Policy",
    "PolicyError",
    "PrivsqlError",
    "Refused",
    "Session",
    "SourceError",
    "SqlError",
    "UnknownName",
    "connect",
]
