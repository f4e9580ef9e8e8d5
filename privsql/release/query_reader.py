"""The text of a query goes in; its plan comes out, by the schema and the policy of the time of a release: no
data and no session is needed to answer it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privsql.algebra.exact import Dialect
from privsql.engines.duckdb.calculator import calculator
from privsql.errors import Refused
from privsql.planning.draft import Task
from privsql.planning.plan import Plan
from privsql.planning.planner import plan as make_plan
from privsql.planning.pricing import Offer
from privsql.planning.public_look import PublicLook
from privsql.policy import Policy
from privsql.requests.stage import Stage
from privsql.schema import Schema
from privsql.sql.bind.catalogue import Catalogue
from privsql.sql.parse.tokens import too_deep
from privsql.sql.read import read


@dataclass(frozen=True)
class QueryReader:
    """What reading a query takes, apart from its text; it can be pickled."""

    schema: Schema
    policy: Policy
    dialect: Dialect

    def plan(self, sql: str, dialect: str) -> Plan:
        """The plan of a query that nothing is paid for, and that is never run."""
        stage = Stage.of(Stage(sql, Fraction(1), dialect=dialect))
        stage.price()
        question = read(stage.sql, Catalogue(self.schema, self.policy), dialect, stage.constants)
        look = PublicLook(_nothing_else, self.dialect)
        offer = Offer(Fraction(1))
        task = Task(question, self.policy.neighbours, offer, calculator().evaluate, look, self.dialect)
        try:
            found = make_plan(task).projected(False, False)
        except RecursionError:
            raise too_deep() from None
        _ = found.finishing  # a dialect without a safe form of a function refuses it here
        return found


def _nothing_else(_sql: str) -> list[tuple[Any, ...]]:
    problem = "This does not follow from the release: it reads a public table."
    raise Refused("refused-not-released", problem, "ask session.query")
