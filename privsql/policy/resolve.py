"""A policy and a schema go in; the policy comes out with its tables under the names that the schema gives
them.
"""

from __future__ import annotations

from dataclasses import replace

from privsql.errors import PolicyError
from privsql.policy.policy import Policy, TablePolicy
from privsql.schema import Schema


def with_names_of(schema: Schema, policy: Policy, again: bool = False) -> Policy:
    """The same policy, in which each table has the schema's own name for it: `visits` for `main.visits`. A
    name that the schema does not know stays. `again`: the names may be the schema's own already.

    Raises PolicyError for a name that may mean either of two tables, and for a table that is named twice.
    """
    tables: dict[str, TablePolicy] = {}
    written: dict[str, str] = {}
    for name, declared in policy.tables.items():
        own = _name_of(schema, name, again)
        if own in written:
            raise PolicyError(
                "policy-duplicate",
                f"the policy names one table twice, as {written[own]} and as {name}",
                "keep one of them",
            )
        tables[own], written[own] = _with_unit(schema, declared, again), name
    same = all(tables.get(name) is declared for name, declared in policy.tables.items())
    return policy if same else replace(policy, tables=tables)


def _name_of(schema: Schema, name: str, again: bool) -> str:
    if again and schema.table(name) is not None:
        return name
    meant = schema.declared(name)
    if len(meant) > 1:
        raise PolicyError(
            "policy-table",
            f"the policy names a table {name}, which may be {' or '.join('.'.join(e.path) for e in meant)}",
            "write database, schema and table",
        )
    return meant[0].name.lower() if meant else name


def _with_unit(schema: Schema, declared: TablePolicy, again: bool) -> TablePolicy:
    """The declaration, in which the unit refers to a table by the schema's own name for it."""
    unit = declared.unit
    if unit is None or unit.table is None:
        return declared
    own = _name_of(schema, unit.table, again)
    return declared if own == unit.table.lower() else replace(declared, unit=replace(unit, table=own))
