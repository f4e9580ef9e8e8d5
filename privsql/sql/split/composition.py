"""What a query with several private parts consists of: releases, public tables, and the SQL above them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from privsql.sql.split.influence import Simulated
from privsql.sql.split.stage_values import StageValue

Tree = exp.Expr  # SQL as it was parsed


@dataclass(frozen=True)
class QueryPart:
    """One release, or one public table, as a query of its own; the SQL above reads its answer as a table."""

    name: str  # of the table that its answer is, in the SQL above
    statement: exp.Expr
    noisy: bool  # False: a public table, as it is
    needs: tuple[StageValue, ...] = ()  # noisy values of earlier parts that its text has as constants

    @property
    def reads(self) -> frozenset[str]:
        """The parts whose answers it reads."""
        named = {table.name for value in self.needs for table in value.query.find_all(exp.Table)}
        own = {each.alias for value in self.needs for each in value.query.find_all(exp.CTE)}
        return frozenset(named - own)


@dataclass(frozen=True)
class Composition:
    """The parts of a query, and the query over their answers: all private rows are below the parts."""

    parts: tuple[QueryPart, ...]
    above: exp.Expr
    simulated: Simulated | None = None  # how noise reaches the columns of the result, where that is known

    @property
    def names(self) -> frozenset[str]:
        """The tables that the SQL above may name."""
        return frozenset(each.name for each in self.parts)


def needed(parts: Sequence[QueryPart], above: exp.Expr) -> tuple[QueryPart, ...]:
    """The parts that the SQL above reads, and those that their constants come from."""
    named = {each.name for each in above.find_all(exp.Table)}
    for part in reversed(parts):
        if part.name in named:
            named |= {table.name for given in part.needs for table in given.query.find_all(exp.Table)}
    return tuple(each for each in parts if each.name in named)
