"""A frame goes in; what was declared of it comes out, and the one budget that it shares with frames made from
it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from privsql.budget.ledger import Ledger, MemoryLedger
from privsql.errors import BudgetError
from privsql.frame.lineage import Lineage
from privsql.neighbours import Neighbours
from privsql.policy import Policy, UnitPolicy
from privsql.schema import Schema

TOKEN = "privsql"  # in df.attrs, which pandas passes on to many of the frames made from this one


@dataclass(frozen=True)
class Relation:
    """What losses are bounds for. Those of one relation say nothing of another, or not as much: they are not
    added.
    """

    neighbours: Neighbours = Neighbours.REPLACE_ONE
    unit: UnitPolicy | None = None

    @staticmethod
    def of(policy: Policy) -> Relation:
        return Relation(policy.neighbours, policy.table("df").unit)

    @property
    def whose(self) -> str:
        return "of each row" if self.unit is None else f"of each {', '.join(self.unit.columns)}"


@dataclass
class Protection:
    """The declarations of protect() for a frame and all frames made from it, with the budget they share."""

    policy: Policy = field(default_factory=Policy)
    promised: bool = False  # there is a budget, for the relation of the policy alone
    ledgers: dict[Relation, Ledger] = field(default_factory=dict)
    latest: Relation | None = None  # the relation of the last query, if there is no budget

    @property
    def relation(self) -> Relation:
        return Relation.of(self.policy)

    def ledger(self, relation: Relation) -> Ledger:
        """The ledger of a relation. A budget has one relation, and other queries are refused: a row's loss is
        at most twice that of its unit, but no multiple of a row's loss that is known in advance bounds its
        unit's.
        """
        if self.promised and relation.neighbours is not self.policy.neighbours:
            raise BudgetError(
                "budget-neighbours",
                f"the budget of this frame counts losses under {self.policy.neighbours.value} neighbours",
                "losses under different relations cannot be added; leave neighbours out",
            )
        if self.promised and relation != self.relation:
            raise BudgetError(
                "budget-unit",
                f"the budget of this frame counts losses {self.relation.whose}, and this query would lose "
                f"privacy {relation.whose}: the two cannot be added",
                "leave unit out, or name the unit where the budget is set: "
                "df.dp.protect(unit=..., budget=...)",
            )
        self.latest = relation
        # one step: two threads must not create a ledger each
        return self.ledgers.setdefault(relation, MemoryLedger(None, relation.neighbours))

    def next_ledger(self, policy: Policy, path: str | Path | None, schema: Schema | None) -> Ledger:
        """The ledger of a new policy, in memory or in a file; earlier spending counts if it can be added."""
        relation = Relation.of(policy)
        spent = {each: entries for each, ledger in self.ledgers.items() if (entries := ledger.entries())}
        if path is not None and schema is not None:
            from privsql.budget.ledger_file.file_ledger import open_ledger

            if spent:
                raise asked_before()
            return open_ledger(path, policy, schema)
        for other in spent if policy.epsilon is not None or policy.delta else ():
            if other.neighbours is not relation.neighbours:
                raise BudgetError(
                    "budget-neighbours",
                    "this frame was queried under a neighbour relation other than "
                    f"{relation.neighbours.value}",
                    "losses under different relations cannot be added; protect a frame before you query it",
                )
            if other != relation:
                raise asked_before()
        return MemoryLedger(policy.epsilon, policy.neighbours, spent.get(relation, []), policy.delta)

    @property
    def shown(self) -> Ledger:
        """The ledger whose budget is shown."""
        return self.ledger(self.relation if self.promised else self.latest or self.relation)


PROTECTIONS: dict[str, Protection] = {}
LINEAGE = Lineage()  # of frames with a budget


def token_of(frame: pd.DataFrame) -> str | None:
    """Whose budget counts for a frame, as far as pandas tells: by attrs, or by memory that it shares; None:
    nobody's.
    """
    found = [str(frame.attrs.get(TOKEN)), *LINEAGE.tokens(frame)]
    budgets = {each for each in found if each in PROTECTIONS and PROTECTIONS[each].promised}
    if len(budgets) > 1:
        raise BudgetError(
            "budget-frames",
            "this frame was made from several frames that have budgets of their own, and a query of it would "
            "have to be charged to each of them",
            "query those frames one by one",
        )
    return next(iter(budgets), None)


def asked_before() -> BudgetError:
    """What was spent before the budget was set cannot be added to it."""
    return BudgetError(
        "budget-asked",
        "this frame was queried before, and that privacy loss cannot be added to this budget",
        "protect a frame before you query it; to start afresh, read the data again",
    )
