"""What a call of df.dp declares goes in; the policy of that call comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any

import pandas as pd

from privsql.neighbours import Neighbours
from privsql.policy import Policy, TablePolicy
from privsql.policy.checks import AUTO, limit_of
from privsql.policy.load import unit_of
from privsql.request import Query, Request, argument


@dataclass(frozen=True)
class FrameQuery(Query):
    """A query of a frame, which is the table `df`, and what is declared of it for this call."""

    _: KW_ONLY
    unit: str | Sequence[str] | None = argument(
        None, "the column, or columns, that identify a person; without it, each row is one person"
    )
    ranges: Mapping[str, Any] | str | None = argument(
        None, "the range of each column that is summed, as (low, high) or 'auto'; values are clamped into it"
    )
    keys: Mapping[str, Any] | None = argument(None, "the public values of each column that is grouped by")
    neighbours: str | Neighbours | None = argument(
        None, "what one person can do: 'replace-one' their rows, or 'add-remove' them"
    )

    def request(self, table: TablePolicy) -> tuple[Request, dict[str, Any]]:
        """The request, and the limits that protect() did not set: those are declared, not lowered."""
        given = {name: getattr(self, name) for name in ("max_groups", "max_rows")}
        first = {
            name: value
            for name, value in given.items()
            if getattr(table, name) is None and value not in (None, AUTO)
        }
        arguments = {each.name: getattr(self, each.name) for each in fields(Query)}
        return Request(**{**arguments, **dict.fromkeys(first)}), first


def of_columns(policy: Policy, frame: pd.DataFrame) -> Policy:
    """What was declared of the columns that a frame has: it may lack some of those it was made from."""
    table = policy.table("df")
    names = {str(name).lower() for name in frame.columns}
    columns = {name: column for name, column in table.columns.items() if name in names}
    if len(columns) == len(table.columns):
        return policy
    return replace(policy, tables={**policy.tables, "df": replace(table, columns=columns)})


def with_declared(
    policy: Policy,
    unit: str | Sequence[str] | None,
    ranges: Mapping[str, Any] | str | None,
    keys: Mapping[str, Any] | None,
    limits: Mapping[str, Any],
) -> Policy:
    given: dict[str, Any] = {
        name: limit_of(value, name, "argument-limits") for name, value in limits.items() if value is not None
    }
    if unit is not None:
        given["unit"] = unit_of(unit)
    if given:
        table = replace(policy.tables.get("df", TablePolicy()), **given)
        policy = replace(policy, tables={**policy.tables, "df": table})
    return policy.with_columns("df", ranges, keys)
