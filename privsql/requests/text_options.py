"""A request and what its text says of price and limits go in; the arguments that hold come out.

The text and the call must agree, or one of them says nothing.
"""

from __future__ import annotations

from typing import Any

from privsql.errors import ArgumentError
from privsql.policy.checks import delta_of, epsilon_of, limit_of
from privsql.request import Request
from privsql.sql.privacy_clause.options import PrivacyOptions


def options_of(request: Request, options: PrivacyOptions | None) -> dict[str, Any]:
    """The arguments that the text gives, by name. Raises ArgumentError where the call says otherwise."""
    if options is None:
        return {}
    found: dict[str, Any] = {}
    if options.epsilon is not None:
        found["epsilon"] = epsilon_of(options.epsilon)
        _must_agree("epsilon", found["epsilon"], request.epsilon and epsilon_of(request.epsilon))
    if options.delta is not None:
        found["delta"] = float(delta_of(options.delta))
        _must_agree("delta", found["delta"], float(delta_of(request.delta)) or None)
    for name, given in (("max_groups", request.max_groups), ("max_rows", request.max_rows)):
        wanted = getattr(options, name)
        if wanted is not None:
            found[name] = limit_of(wanted, name, "argument-limits")
            _must_agree(name, wanted, given)
    return found


def refuse_options(options: PrivacyOptions | None) -> None:
    """Refuse a text of a batch, whose price and limits are those of the batch, if it says its own."""
    if options is not None:
        raise ArgumentError(
            "argument-batch",
            "a query of a batch says its own price, in WITH DIFFERENTIAL_PRIVACY or WITH ANONYMIZATION",
            "leave the clause out: epsilon= is that of the whole batch",
        )


def _must_agree(name: str, written: object, given: object) -> None:
    if given is not None and given != written:
        code = {"epsilon": "argument-epsilon", "delta": "argument-delta"}.get(name, "argument-limits")
        raise ArgumentError(
            code,
            f"{name} is one number in OPTIONS and another in the call",
            "give it in one of them",
        )
