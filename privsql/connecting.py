"""A source of data and a policy go in; a Session comes out."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Never

from privsql.budget.ledger import Ledger, MemoryLedger
from privsql.engines.resource_limits import ResourceLimits, open_limited
from privsql.errors import Refused, no_more_arguments
from privsql.policy import Policy, load_policy
from privsql.policy.checks import analyst_of, version_of
from privsql.schema import Schema
from privsql.session import Session
from privsql.sql.bind.catalogue import Catalogue


def connect(
    source: Any,
    policy: Policy | Mapping[str, Any] | str | Path | None = None,
    *,
    ledger: str | Path | None = None,
    analyst: str = "analyst",
    deadline: float | None = None,
    memory_limit: int | str | None = None,
    time_quantum: float | None = None,
    version: str | None = None,
    **unknown: Never,
) -> Session:
    """Open a data source under a policy.

    Arguments:
        source: a DuckDB file or connection, a data frame or a dict of them, a Parquet or CSV path, or the
            address of a PostgreSQL database (postgresql://...; see docs/engines.md).
        policy: a Policy, a dict or the path of a policy file; by default each row is one person's.
        ledger: a file that records what is spent, shared by all sessions that name it; by default the budget
            belongs to this session alone.
        analyst: who asks, in the ledger.
        deadline: seconds after which a query fails for certain: the process that runs it is killed then.
        memory_limit: how much memory the engine may use, such as "2GB".
        time_quantum: seconds; an answer takes a whole multiple of it, so that its timing reveals little.
        version: a name for the data as it is now, such as "2026-11". With a ledger, later sessions that give
            the same name get stored answers at no cost. Change it whenever the data changes.

    Returns:
        An open session; also a context manager that closes it.

    Raises:
        SourceError: the source cannot be opened.
        PolicyError: the policy does not make sense, or does not fit the source.
        BudgetError: the ledger cannot be used.
        ArgumentError: another argument is wrong.

    Example:
        >>> import pandas as pd, privsql
        >>> session = privsql.connect({"visits": pd.DataFrame({"age": [37, 64]})})
        >>> session.query("SELECT COUNT(*) AS n FROM visits", epsilon=1.0).columns
        ['n']
    """
    no_more_arguments(
        unknown, ("policy", "ledger", "analyst", "deadline", "memory_limit", "time_quantum", "version")
    )
    declared, who, named = load_policy(policy), analyst_of(analyst), version_of(version)
    engine = open_limited(source, ResourceLimits.of(deadline, memory_limit, time_quantum))
    try:
        # all look at one state, and so does the first query where nothing has changed since: to look for
        # macros takes longer than most queries
        with engine.snapshot():
            opened = _ledger(ledger, declared, engine.schema())
            return Session(engine, declared, opened, who, version=named or declared.version)
    except BaseException:
        engine.close()
        raise


def _ledger(path: str | Path | None, policy: Policy, schema: Schema) -> Ledger:
    if path is None:
        return MemoryLedger.under(policy)
    from privsql.budget.ledger_file.file_ledger import open_ledger

    # A ledger file lasts, and records the policy that it was opened under. So mistakes in the policy are
    # raised first. A refused table is none: it is a view that the policy does not name or that can fail, and
    # nobody is answered about it.
    catalogue = Catalogue(schema, policy)
    for table in schema.tables:
        with contextlib.suppress(Refused):
            catalogue.source(table.name)
    return open_ledger(path, policy, schema)
