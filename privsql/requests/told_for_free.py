"""A query for which nothing is offered goes in; what earlier answers and releases say of it comes out."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from privsql.errors import PrivsqlError
from privsql.planning.plan import Plan
from privsql.requests.explaining import with_budget
from privsql.requests.pipeline import Pipeline
from privsql.requests.stage import Stage
from privsql.results.answer import Answer


def answer_told(stage: Stage, pipeline: Pipeline) -> Answer | None:
    """The best answer that costs nothing; None where something is offered, or where nothing follows."""
    asked = _unpaid(stage)
    if asked is None:
        return None
    try:
        return pipeline.told(asked)
    except PrivsqlError:  # said again, in its place, by whoever asks for a price
        return None


def explain_told(stage: Stage, pipeline: Pipeline) -> Plan | None:
    """The plan of that answer."""
    told = answer_told(stage, pipeline)
    asked = _unpaid(stage)
    return None if told is None or asked is None else with_budget(told.plan, [], asked, pipeline)


def _unpaid(stage: Stage) -> Stage | None:
    if stage.epsilon is not None or stage.within is not None or stage.fresh or stage.automatic:
        return None
    return replace(stage, epsilon=Fraction(1))  # for planning alone: this plan is never run
