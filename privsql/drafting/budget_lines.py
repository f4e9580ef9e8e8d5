"""A policy goes in; lines about its budget and caps come out, with warnings about what protects little."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from privsql.policy import Policy, Share
from privsql.policy.checks import EVERYONE

LITTLE_PROTECTION = 10  # an epsilon from which warnings start

Line = tuple[str, str]


def budget_lines(policy: Policy) -> list[Line]:
    """The budget, the caps on one query and on analysts, then the warnings."""
    return [*_caps(policy), *(("WARNING", text) for text in warnings(policy))]


def _caps(policy: Policy) -> Iterator[Line]:
    yield (
        "budget",
        "no limit: the answers together can reveal anything" if policy.epsilon is None else _total(policy),
    )
    if policy.per_query is not None:
        yield "per query", f"at most epsilon {_number(policy.per_query)}"
    for name, share in policy.analysts.items():
        yield "analyst", f"{'everyone else' if name == EVERYONE else name}: at most {_share(share)}"
    if policy.analysts and EVERYONE not in policy.analysts:
        yield "analyst", "anyone else: nothing"


def _total(policy: Policy) -> str:
    delta = f", delta {_number(policy.delta)}" if policy.delta else ""
    return f"epsilon {_number(policy.epsilon)}{delta}"


def _share(share: Share) -> str:
    delta = "" if share.delta is None else f", delta {_number(share.delta)}"
    return f"epsilon {_number(share.epsilon)}{delta}"


def warnings(policy: Policy) -> list[str]:
    """What a policy allows, but its owner hardly meant."""
    return [*_little_protection(policy), *_above_the_budget(policy), *_shared_twice(policy)]


def _little_protection(policy: Policy) -> Iterator[str]:
    """The budget is the guarantee; other caps matter only without one."""
    if policy.epsilon is None:
        yield (
            "There is no budget, so nothing is promised about all answers together. "
            "Write epsilon = 3 under [budget]."
        )
    shares = {f"The cap of {_called(name)}": share.epsilon for name, share in policy.analysts.items()}
    caps: dict[str, Fraction | None] = {"The cap of one query": policy.per_query, **shares}
    if policy.epsilon is not None:
        caps = {"The budget": policy.epsilon}
    for name, epsilon in caps.items():
        if epsilon is not None and epsilon >= LITTLE_PROTECTION:
            yield (
                f"{name} is epsilon {_number(epsilon)}. An epsilon of 10 or more protects little: "
                "somebody who is 50% sure of something about one person can be more than 99.99% sure "
                "afterwards. "
                "Choose it between about 0.1 and 3."
            )


def _above_the_budget(policy: Policy) -> Iterator[str]:
    """A cap above the budget never applies."""
    if policy.epsilon is None:
        return
    caps = {
        "of one query": policy.per_query,
        **{f"of {_called(n)}": each.epsilon for n, each in policy.analysts.items()},
    }
    for whose, epsilon in caps.items():
        if epsilon is not None and epsilon > policy.epsilon:
            yield (
                f"The cap {whose}, epsilon {_number(epsilon)}, is above the budget of "
                f"{_number(policy.epsilon)}, so it never applies. Lower it, or leave it out."
            )
    for name, share in policy.analysts.items():
        if share.delta is not None and share.delta > policy.delta:
            yield (
                f"The cap of {_called(name)}, delta {_number(share.delta)}, is above the budget's delta of "
                f"{_number(policy.delta)}, so it never applies. Lower it, or leave it out."
            )


def _shared_twice(policy: Policy) -> Iterator[str]:
    shares = [share.epsilon for name, share in policy.analysts.items() if name != EVERYONE]
    if policy.epsilon is not None and len(shares) > 1 and max(shares) <= policy.epsilon < sum(shares):
        yield (
            f"The caps of the analysts add up to epsilon {_number(sum(shares))}, "
            f"and the budget is {_number(policy.epsilon)}: whoever asks last may find nothing left."
        )


def _called(name: str) -> str:
    return "everyone else" if name == EVERYONE else name


def _number(value: Fraction | int | None) -> str:
    assert value is not None
    return f"{float(value):g}"
