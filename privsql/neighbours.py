"""The neighbour relations and the accountants that a policy chooses from."""

from __future__ import annotations

from enum import Enum


class Neighbours(Enum):
    """Which two tables must be hard to tell apart."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"

    @property
    def moves(self) -> int:
        """How many rows differ: replacing one takes a row out and puts another in."""
        return 2 if self is Neighbours.REPLACE_ONE else 1


class Accounting(Enum):
    """How privacy losses add up. By default: pure if delta is 0, approximate otherwise."""

    PURE = "pure"
    APPROXIMATE = "approximate"
    ZCDP = "zcdp"
