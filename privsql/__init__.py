"""privsql: ordinary SQL, private answers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privsql.budget.amount import Amount
from privsql.budget.ledger import Budget
from privsql.errors import (
    ArgumentError,
    BoundingWarning,
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
from privsql.policy import Policy
from privsql.request import Request

if TYPE_CHECKING:
    from privsql import mechanisms
    from privsql.mechanisms import rows_needed
    from privsql.planning.marginals.workload import marginals
    from privsql.planning.plan import Plan
    from privsql.release.query_release import QueryRelease
    from privsql.release.synthetic import Synthetic
    from privsql.results.answer import Answer
    from privsql.session import Session, connect

__version__ = "0.1.0"

__all__ = [
    "Amount",
    "Answer",
    "ArgumentError",
    "BoundingWarning",
    "Budget",
    "BudgetError",
    "EngineError",
    "FrameAccessor",
    "Plan",
    "Policy",
    "PolicyError",
    "PrivsqlError",
    "QueryRelease",
    "Refused",
    "Request",
    "Session",
    "SourceError",
    "SqlError",
    "Synthetic",
    "UnknownName",
    "connect",
    "marginals",
    "mechanisms",
    "rows_needed",
]

# What needs DuckDB and sqlglot is imported when it is first used, so that `import privsql` stays cheap.
_LATER = {
    "Plan": "privsql.planning.plan",
    "Answer": "privsql.results.answer",
    "Session": "privsql.session",
    "connect": "privsql.session",
    "rows_needed": "privsql.mechanisms",
    "marginals": "privsql.planning.marginals.workload",
    "QueryRelease": "privsql.release.query_release",
    "Synthetic": "privsql.release.synthetic",
}


def __getattr__(name: str) -> Any:
    if name == "mechanisms":
        return import_module("privsql.mechanisms")
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'privsql' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, "mechanisms"})
