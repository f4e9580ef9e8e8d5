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
    from privsql import attacks, dbapi, mechanisms, sqlalchemy, teaching, theory
    from privsql.connecting import connect
    from privsql.mechanisms import rows_needed
    from privsql.planning.composed_plan import AnyPlan as Plan
    from privsql.planning.marginals.range_workload import prefixes, ranges
    from privsql.planning.marginals.workload import marginals
    from privsql.release.query_release import QueryRelease
    from privsql.release.rows.synthetic import Synthetic
    from privsql.results.composed_answer import AnyAnswer as Answer
    from privsql.session import Session

__version__ = "0.2.0"

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
    "attacks",
    "connect",
    "dbapi",
    "marginals",
    "mechanisms",
    "prefixes",
    "ranges",
    "rows_needed",
    "sqlalchemy",
    "teaching",
    "theory",
]

# What needs DuckDB and sqlglot is imported when it is first used, so that `import privsql` stays cheap.
_LATER = {
    "Plan": ("privsql.planning.composed_plan", "AnyPlan"),
    "Answer": ("privsql.results.composed_answer", "AnyAnswer"),
    "Session": ("privsql.session", "Session"),
    "connect": ("privsql.connecting", "connect"),
    "rows_needed": ("privsql.mechanisms", "rows_needed"),
    "marginals": ("privsql.planning.marginals.workload", "marginals"),
    "prefixes": ("privsql.planning.marginals.range_workload", "prefixes"),
    "ranges": ("privsql.planning.marginals.range_workload", "ranges"),
    "QueryRelease": ("privsql.release.query_release", "QueryRelease"),
    "Synthetic": ("privsql.release.rows.synthetic", "Synthetic"),
}


_ROOMS = ("attacks", "dbapi", "mechanisms", "sqlalchemy", "teaching", "theory")


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"privsql.{name}")
    if name in _LATER:
        module, known = _LATER[name]
        return getattr(import_module(module), known)
    raise AttributeError(f"module 'privsql' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_ROOMS})
