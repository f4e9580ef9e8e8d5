"""Parts of a suggestion go in; keywords of df.dp come out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from privsql.errors import PrivsqlError
from privsql.suggestions import Argument, Declare, DeclareUnit, Fact

_VALUES = {
    Fact.RANGE: "(LOWEST, HIGHEST)",
    Fact.MOMENTS: '("LOWEST", "HIGHEST")',
    Fact.AUTO: '"auto"',
    Fact.VALUES: "[VALUES]",
}


class FrameDoor:
    """Of df.dp: everything is a keyword of the call, and there is one table."""

    def declare(self, declared: Declare) -> str:
        keywords = {"ranges": set(Fact) - {Fact.VALUES}, "keys": {Fact.VALUES}}
        return ", ".join(
            f"{keyword}={{{', '.join(_item(name, fact) for name, fact in declared.facts if fact in kinds)}}}"
            for keyword, kinds in keywords.items()
            if any(fact in kinds for _, fact in declared.facts)
        )

    def unit(self, declared: DeclareUnit) -> str:
        return 'unit="COLUMN"'

    def argument(self, argument: Argument) -> str:
        return f"{argument.name}={argument.value}"

    def in_policy(self, text: str) -> None:
        return None


def _item(name: str, fact: Fact) -> str:
    return f"{json.dumps(name, ensure_ascii=False)}: {_VALUES[fact]}"


@contextmanager
def said_at_frame() -> Iterator[None]:
    """Around a call: whatever it is refused for, the way out is written as keywords of df.dp."""
    try:
        yield
    except PrivsqlError as error:
        error.said_at(FrameDoor())
        raise
