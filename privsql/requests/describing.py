"""A source, its policy and its ledger go in; what an analyst may know of them comes out, at no cost."""

from __future__ import annotations

from typing import Any

import pandas as pd

from privsql.errors import PrivsqlError
from privsql.policy import ColumnPolicy, TablePolicy
from privsql.requests.pipeline import Pipeline
from privsql.schema import SchemaColumn, SchemaTable

_COLUMNS = ["table", "column", "type", "nullable", "role", "declared"]
_SHOWN = 8  # values of a column that are listed


def describe_tables(pipeline: Pipeline, table: str | None) -> pd.DataFrame:
    """A row for each column of each table that a query may name, or of one of them."""
    with pipeline.snapshot():
        if table is not None:
            known = [pipeline.scan(table).table]
        else:
            names = [each.name for each in pipeline.current_schema().tables]
            known = [name for name in names if _may_be_named(pipeline, name)]
        rows = [row for name in known for row in _rows(pipeline, name)]
    return pd.DataFrame(rows, columns=_COLUMNS)


def history_of(pipeline: Pipeline) -> pd.DataFrame:
    """A row for each charge of the ledger."""
    entries, spent = pipeline.ledger.entries(), pipeline.ledger.budget.spent
    rho = ["rho"] if spent.rho is not None else []
    columns = ["when", "analyst", "question", "epsilon", "delta", *rho, "released", "failed"]
    stated = {"question": "query"}  # how the ledger's entries call it
    rows = [{name: getattr(each, stated.get(name, name)) for name in columns} for each in entries]
    return pd.DataFrame(rows, columns=columns).assign(
        released=["; ".join(map(str, each.released)) for each in entries]
    )


def _may_be_named(pipeline: Pipeline, table: str) -> bool:
    try:
        pipeline.scan(table)
    except PrivsqlError:
        return False
    return True


def _rows(pipeline: Pipeline, name: str) -> list[list[Any]]:
    table, policy = pipeline.schema.table(name), pipeline.policy.table(name)
    assert table is not None
    return [
        [
            table.name,
            each.name,
            each.type_name,
            not each.required,
            _role(each, table, policy),
            _declared(each, policy),
        ]
        for each in table.columns
    ]


def _role(column: SchemaColumn, table: SchemaTable, policy: TablePolicy) -> str:
    """Whether the column says whose a row is, or cannot be used at all."""
    if policy.public:
        return "public"
    if column.type is None and column.elements is None:
        return "not supported"
    unit = policy.unit
    is_unit = unit is not None and column.name.lower() in map(str.lower, unit.columns)
    return "unit" if is_unit else "private"


def _declared(column: SchemaColumn, policy: TablePolicy) -> str:
    """What the policy declares about a column, in words."""
    known = policy.column(column.name)
    parts = [_range(known, policy), _values(known.values, column)]
    return "; ".join(part for part in parts if part)


def _range(known: ColumnPolicy, policy: TablePolicy) -> str:
    if known.low is not None or known.high is not None:
        return f"range {known.low} to {known.high}"
    return "range found privately" if known.auto or policy.auto else ""


def _values(values: tuple[Any, ...] | None, column: SchemaColumn) -> str:
    listed = values if values is not None else column.labels
    if listed is None:
        return ""
    more = f", ... ({len(listed):,} values)" if len(listed) > _SHOWN else ""
    return f"values {', '.join(map(str, listed[:_SHOWN]))}{more}"
