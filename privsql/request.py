"""A query as the arguments of a call, defined once for every door."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from fractions import Fraction
from functools import update_wrapper
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

from privsql.errors import no_more_arguments

Limit = int | Literal["auto"] | None
Arguments = ParamSpec("Arguments")
Self = TypeVar("Self")
Made = TypeVar("Made")
Result = TypeVar("Result")


def argument(default: Any, help: str) -> Any:
    """An argument of a call: a field that says what it does."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Query:
    """A query and how it is to be answered: the arguments that every door has."""

    sql: str = field(metadata={"help": "one SELECT"})
    epsilon: float | Fraction | None = argument(None, "the privacy loss of the whole query")
    delta: float = argument(
        0.0, "the chance that the promise fails; needed for keys nobody declared, and for Gaussian noise"
    )
    _: KW_ONLY
    within: float | None = argument(
        None, "instead of epsilon: spend the least that keeps every cell within this of the truth"
    )
    confidence: float = argument(0.95, "how surely `within` holds")
    dialect: str = argument("duckdb", "the dialect of the SQL; any that sqlglot reads")
    params: Sequence[Any] | Mapping[str, Any] | None = argument(
        None, "the values of the parameters of the SQL: a list for ? and $1, a dict for :name and $name"
    )
    mechanism: str | None = argument(
        None,
        "the mechanism, by name; the least noisy one is chosen without it",
    )
    max_groups: Limit = argument(None, "keys that one unit may touch; 'auto' finds a limit privately")
    max_rows: Limit = argument(None, "rows that one unit may have in one key; 'auto' finds a limit privately")
    prepared: bool = argument(True, "whether a prepared copy of the table may be used")
    weights: Mapping[str, float] | None = argument(
        None, "how much each output matters when epsilon is split, by its name"
    )
    nonnegative: bool = argument(False, "whether counts below 0 are projected to 0")
    consistent: bool = argument(False, "whether totals and parts are made to add up")
    show_all: bool = argument(False, "whether cells with too few rows to tell are shown instead of NULL")
    fresh: bool = argument(False, "whether to spend again instead of returning the stored answer")


@dataclass(frozen=True)
class Request(Query):
    """A query, and who asks it.

    `Session.query` and `Session.explain` take these arguments; `Session.ask` takes a Request.

    Example:
        >>> import privsql
        >>> privsql.Request("SELECT COUNT(*) AS n FROM visits", epsilon=0.5, analyst="ana").epsilon
        0.5
    """

    _: KW_ONLY
    analyst: str | None = argument(None, "who asks, in the ledger; by default the analyst of the session")


# -- methods that take these arguments --------------------------------------------------------------------
def takes(
    request: Callable[Arguments, Made],
) -> Callable[[Callable[[Self, Made], Result]], Callable[Concatenate[Self, Arguments], Result]]:
    """Give a method the arguments of a dataclass, whose fields say in their metadata what each one does."""
    made: Any = request
    names = [each.name for each in fields(made)]
    listed = "\n".join(f"    {each.name}: {each.metadata['help']}." for each in fields(made))
    others = inspect.signature(made).parameters.values()

    def decorate(
        method: Callable[[Self, Made], Result],
    ) -> Callable[Concatenate[Self, Arguments], Result]:
        def call(self: Self, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            no_more_arguments({name: None for name in kwargs if name not in names}, names)
            return method(self, request(*args, **kwargs))

        own = inspect.signature(method)
        first = next(iter(own.parameters.values()))
        update_wrapper(call, method)
        call.__signature__ = own.replace(parameters=[first, *others])  # type: ignore[attr-defined]
        what, returns, rest = (inspect.getdoc(method) or "").partition("\n\nReturns:")
        call.__doc__ = f"{what}\n\nArguments:\n{listed}{returns}{rest}"
        return call

    return decorate
