"""How many of an analyst's queries failed after their charge goes in; leave to ask again, or a refusal, comes
out.

Whether a query fails after its charge may depend on the data, and epsilon does not bound what that tells. The
rules make expressions that cannot fail; the fuse is for the one that nobody knows of yet. A query counts from
its charge until it is known to be over: whoever kills it, or asks many at once, gains nothing by that. So at
most `most` of one analyst's queries can ever fail until the data owner has looked at them and renews the
fuse.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from privsql.errors import BudgetError
from privsql.policy.checks import MAX_FAILURES

CODE = "budget-failures"


@dataclass(frozen=True)
class Failures:
    """Of one analyst, since the fuse was last renewed."""

    failed: int = 0
    unfinished: int = 0  # charged, and still running or stopped from outside
    most: int = MAX_FAILURES

    @property
    def blown(self) -> bool:
        """Whether as many failed as may fail: nothing but a renewal helps."""
        return self.failed >= self.most

    @property
    def full(self) -> bool:
        """Whether as many failed, or could yet fail."""
        return self.failed + self.unfinished >= self.most

    def __str__(self) -> str:
        unfinished = f", {self.unfinished} not finished" if self.unfinished else ""
        return f"{self.failed} of at most {self.most}{unfinished}"


def refuse_full(failures: Failures, analyst: str, ledger: Path | None) -> None:
    """Raises BudgetError where one more query could be one failure too many."""
    if failures.full:
        raise BudgetError(
            CODE,
            f"{_what(failures, analyst)}, and the policy allows {failures.most}. {_WHY}",
            f"{_wait(failures)}ask the data owner, who {_renewal(analyst, ledger)}",
        )


_WHY = (
    "Whether a query fails can tell about the data, so no more may fail until the data owner has looked at it"
)


def _what(failures: Failures, analyst: str) -> str:
    count = failures.failed + failures.unfinished
    whose = f"{count} quer{'y' if count == 1 else 'ies'} of {analyst} failed after the charge"
    return whose if not failures.unfinished else f"{whose}, or did not finish ({failures.unfinished} of them)"


def _wait(failures: Failures) -> str:
    return "" if failures.blown else "wait for those that are still running; if there are none, "


def _renewal(analyst: str, ledger: Path | None) -> str:
    """What the owner does: a ledger in memory ends with its session."""
    if ledger is None:
        return "can open the data in a new session"
    return (
        f"types: privsql ledger renew {shlex.quote(str(ledger))} --failures --analyst {shlex.quote(analyst)}"
    )
