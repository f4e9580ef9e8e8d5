"""A plan goes in; a Python warning comes out, once, where limits that nobody declared may drop rows."""

from __future__ import annotations

import contextlib
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from privsql.errors import BoundingWarning
from privsql.planning.limits.bounding import Bounding

_INNER = (str(Path(__file__).parent.parent), contextlib.__file__)  # the latter: a with as a decorator
SESSION = (
    "Declare max_rows and max_groups in the policy or in the call, let privsql find them for a share of "
    'epsilon (max_rows="auto", max_groups="auto"), or look first: session.suggest_limits(table, epsilon=0.1).'
)
FRAME = (
    "Declare max_rows and max_groups in df.dp.protect or in the call, let privsql find them for a share of "
    'epsilon (max_rows="auto", max_groups="auto"), or look first: '
    "df.dp.suggest_limits(epsilon=0.1, unit=...)."
)


class Bounded(Protocol):
    """Anything that is planned under limits on one unit."""

    @property
    def bounding(self) -> tuple[Bounding, ...]: ...


@dataclass
class BoundingNotice:
    """Warns about default limits on the first query that they apply to. `remedy`: what to do about it."""

    remedy: str = SESSION
    given: bool = False

    def give(self, plan: Bounded) -> None:
        """Call this before the charge: where warnings are errors, nothing is spent."""
        undeclared = sorted(name for each in plan.bounding for name in each.undeclared)
        if self.given or not undeclared:
            return
        dropped = " ".join(
            sentence for each in plan.bounding if each.undeclared for sentence in each.sentences
        )
        names = " and ".join(dict.fromkeys(undeclared))
        defaults = (
            "is a default that nobody declared"
            if len(set(undeclared)) == 1
            else "are defaults that nobody declared"
        )
        warnings.warn(f"{dropped} {names} {defaults}. {self.remedy}", BoundingWarning, stacklevel=_outside())
        self.given = True


def _outside() -> int:
    """The stack level of the first caller outside this package, for warnings.warn."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INNER):
        frame, level = frame.f_back, level + 1
    return level
