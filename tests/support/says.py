"""A dialect that writes one fixed text for everything: for deliberately wrong plans."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from privsql.algebra.exact import Statement
from privsql.algebra.relations import Relation


@dataclass(frozen=True)
class Says:
    sql: str

    def statement(self, statement: Statement) -> str:
        return self.sql

    def finishing(self, relation: Relation, guards: Collection[str]) -> str:
        return self.sql
