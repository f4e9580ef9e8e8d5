"""A request without a price goes in; what it would cost at several prices comes out. Spends nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, fields

from privsql.budget.ledger import Budget
from privsql.errors import ArgumentError
from privsql.planning.composed_plan import AnyPlan
from privsql.planning.precision.half_widths import check_level
from privsql.policy.checks import epsilon_of
from privsql.request import Request, argument
from privsql.results.advising.advice import Advice, PricedAccuracy

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True)
class AdviceRequest(Request):
    """A query, and the prices at which it is looked at."""

    _: KW_ONLY
    epsilons: Sequence[float] = argument(EPSILONS, "the epsilons to compare")
    rows: int | None = argument(None, "about how many rows an average is over: its error depends on that")


def advise(request: AdviceRequest, plan: Callable[[Request], AnyPlan], budget: Budget) -> Advice:
    """The error of each number at each epsilon, and what an attacker could learn."""
    if request.epsilon is not None or request.within is not None:
        raise ArgumentError(
            "argument-epsilon",
            "advice compares several epsilons: it does not take one",
            "leave out epsilon= and within=, or give epsilons=[0.1, 1.0]",
        )
    level = check_level(request.confidence)
    prices = sorted({float(epsilon_of(each)) for each in _listed(request.epsilons)})
    plans = {price: plan(_at(request, price)) for price in prices}
    found = tuple(PricedAccuracy(price, made.accuracy(level, request.rows)) for price, made in plans.items())
    return Advice(found, float(request.delta), next(iter(plans.values())).neighbours, budget)


def _listed(epsilons: Sequence[float]) -> Sequence[float]:
    if isinstance(epsilons, str) or not isinstance(epsilons, Sequence) or not epsilons:
        raise ArgumentError("argument-shape", "epsilons must be a list of numbers", "epsilons=[0.1, 1.0]")
    return epsilons


def _at(request: AdviceRequest, epsilon: float) -> Request:
    given = {each.name: getattr(request, each.name) for each in fields(Request)}
    return Request(**{**given, "epsilon": epsilon, "fresh": True})
