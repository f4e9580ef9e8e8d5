"""What planning may ask about public rows. It can reveal nothing private: a public relation contains no
person's row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from privsql.algebra.relations import Relation
from privsql.analysis.domain import Domain


class Look(Protocol):
    """Reads public relations, and nothing else."""

    def domain(self, relation: Relation, column: str) -> Domain:
        """The domain of a column of a public relation: its values if they are few, else its range."""
        ...

    def combinations(self, relation: Relation, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """The distinct combinations of values of some columns, in order; at most a million and one."""
        ...

    def most_alike(self, relation: Relation, columns: Sequence[str]) -> int:
        """The largest number of rows of a public relation that agree in these columns; without columns, of
        all rows.
        """
        ...
