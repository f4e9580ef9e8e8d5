"""A policy and a schema go in; the identity of the dataset comes out, whose losses a ledger adds up.

It consists of the neighbour relation, the private tables, and the privacy unit of each. A loss bounds how
well neighbours can be told apart, and these define the neighbours. Ranges, keys and limits are not part of
it: every answer's price holds under its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from privsql.budget.ledger import same_neighbours
from privsql.errors import BudgetError
from privsql.neighbours import Neighbours
from privsql.policy import Policy, UnitPolicy
from privsql.policy.resolve import with_names_of
from privsql.schema import Schema

EACH_ROW = "each row"  # is one person's


@dataclass(frozen=True)
class Dataset:
    """What a ledger is for. `tables`: the privacy unit of each private table, by name."""

    name: str | None
    neighbours: Neighbours
    tables: Mapping[str, str]

    def new_tables(self, recorded: Dataset) -> dict[str, str]:
        """Tables that the ledger does not know yet: no earlier answer depends on them, so they may join."""
        return {name: whose for name, whose in self.tables.items() if name not in recorded.tables}

    def same_as(self, recorded: Dataset) -> None:
        """Raise BudgetError if losses of this dataset cannot be added to the recorded ones."""
        same_neighbours(recorded.neighbours, self.neighbours)
        if self.name != recorded.name:
            raise _other(
                f"its dataset is called {recorded.name or 'nothing'}, the policy's {self.name or 'nothing'}"
            )
        for name, whose in recorded.tables.items():
            if name not in self.tables:
                raise _other(f"it has losses of a private table {name}, which this source does not have")
            if self.tables[name] != whose:
                raise _other(f"in {name} it protects {whose}, but the policy protects {self.tables[name]}")


def _other(why: str) -> BudgetError:
    return BudgetError(
        "budget-dataset",
        f"this ledger belongs to a different dataset: {why}",
        "give the ledger of this dataset, or a new file; a ledger with nothing spent can be deleted",
    )


def dataset_of(policy: Policy, schema: Schema) -> Dataset:
    """The private tables that queries may read."""
    policy = with_names_of(schema, policy)
    tables = {
        table.name.lower(): whose_rows(policy.table(table.name).unit)
        for table in schema.tables
        if not policy.table(table.name).public
        and (table.name.lower() in policy.tables or not (table.view or schema.is_elsewhere(table)))
    }
    return Dataset(policy.dataset, policy.neighbours, dict(sorted(tables.items())))


def whose_rows(unit: UnitPolicy | None) -> str:
    if unit is None:
        return EACH_ROW
    columns = ", ".join(unit.columns).lower()
    if unit.table is None:
        return columns
    return f"{columns} -> " + ", ".join(f"{unit.table}.{key}" for key in unit.keys).lower()
