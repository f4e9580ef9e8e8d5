"""The number of an analyst's queries that failed after their charge goes in; permission or a refusal
comes out.

Whether a query fails after its charge may depend on the data, and epsilon does not bound that leak. The rules
for expressions produce only ones that cannot fail; the fuse is for a mistake in those rules that nobody knows
yet. A query counts from its charge until it is known to have ended, so killing it or running many at once
gains nothing. So at most `most` of one analyst's queries can ever fail before the data owner has looked at
them and renews the fuse.
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
    """The failed queries of one analyst since the fuse was last renewed."""

    failed: int = 0
    unfinished: int = 0  # charged, and still running or stopped from outside
    most: int = MAX_FAILURES

    @property
    def blown(self) -> bool:
        """Whether the limit is reached, so that only a renewal helps."""
        return self.failed >= self.most

    @property
    def full(self) -> bool:
        """Whether the limit is reached if all running queries fail."""
        return self.failed + self.unfinished >= self.most

    def __str__(self) -> str:
        unfinished = f", {self.unfinished} not finished" if self.unfinished else ""
        return f"{self.failed} of at most {self.most}{unfinished}"


def refuse_full(failures: Failures, analyst: str, ledger: Path | None) -> None:
    """Raise BudgetError if one more query could be one failure too many."""
    if failures.full:
        raise BudgetError(
            CODE,
            f"{_what(failures, analyst)}, and the policy allows at most {failures.most}. {_WHY}",
            f"{_wait(failures)}ask the data owner, who {_renewal(analyst, ledger)}",
        )


_WHY = "A failure can tell about the data, so no more queries run until the data owner has looked at these"


def _what(failures: Failures, analyst: str) -> str:
    count = failures.failed + failures.unfinished
    whose = f"{count} quer{'y' if count == 1 else 'ies'} of {analyst} failed after the charge"
    return whose if not failures.unfinished else f"{whose}, or did not finish ({failures.unfinished} of them)"


def _wait(failures: Failures) -> str:
    return "" if failures.blown else "wait for the queries that are still running; if there are none, "


def _renewal(analyst: str, ledger: Path | None) -> str:
    """How the owner renews the fuse. A ledger in memory ends with its session."""
    if ledger is None:
        return "can open the data in a new session"
    return (
        f"runs: privsql ledger renew {shlex.quote(str(ledger))} --failures --analyst {shlex.quote(analyst)}"
    )
