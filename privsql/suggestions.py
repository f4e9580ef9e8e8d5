"""What to write instead goes in, as parts; a sentence in the terms of the door that a person came through
comes out.

A refusal says what would help: declare the values of a column, allow a delta. How that is written is for the
door to say: a policy line, a keyword of df.dp, an option of the command line. A word in capitals is for the
person to fill in: nothing is known of the data, and a range that was made up would be wrong without a sign.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

_BARE = re.compile(r"[A-Za-z0-9_-]+")


class Fact(Enum):
    """What can be declared of a column, as a policy file has it."""

    RANGE = "range = [LOWEST, HIGHEST]"
    MOMENTS = 'range = ["LOWEST", "HIGHEST"]'  # of dates and times
    AUTO = 'range = "auto"'
    VALUES = "values = [VALUES]"


@dataclass(frozen=True)
class Declare:
    """Facts of columns of a table."""

    table: str
    facts: tuple[tuple[str, Fact], ...]


@dataclass(frozen=True)
class DeclareUnit:
    """Whose the rows of a table are; no table: of both in a join."""

    table: str | None = None


@dataclass(frozen=True)
class Argument:
    """An argument of the call, with a value as Python writes it, or by its name alone."""

    name: str
    value: str = ""


@dataclass(frozen=True)
class InPolicy:
    """What only a policy can say: a door without one leaves this way out."""

    text: str


Piece = str | Declare | DeclareUnit | Argument | InPolicy
Way = tuple[Piece, ...]


class Door(Protocol):
    """How a door writes what a person is to write."""

    def declare(self, declared: Declare) -> str: ...

    def unit(self, declared: DeclareUnit) -> str: ...

    def argument(self, argument: Argument) -> str: ...

    def in_policy(self, text: str) -> str | None:
        """None: there is no policy here."""
        ...


@dataclass(frozen=True)
class PolicyDoor:
    """Of a session: a policy, as a file or a dict, and keywords of Python calls."""

    policy: str = "the policy"

    def declare(self, declared: Declare) -> str:
        lines = ", ".join(f"{toml_key(name)} = {{ {fact.value} }}" for name, fact in declared.facts)
        return f"{lines} (in {self.policy}, under [tables.{toml_key(declared.table)}.columns])"

    def unit(self, declared: DeclareUnit) -> str:
        if declared.table is None:
            return 'policy: unit = "user_id" in both tables'
        return f'unit = "COLUMN" (in {self.policy}, under [tables.{toml_key(declared.table)}])'

    def argument(self, argument: Argument) -> str:
        return f"{argument.name}={argument.value}"

    def in_policy(self, text: str) -> str | None:
        return text


POLICY = PolicyDoor()


def toml_key(name: str) -> str:
    """A name as a TOML key."""
    return name if _BARE.fullmatch(name) else toml_text(name)


def toml_text(text: str) -> str:
    """A TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def said(ways: Iterable[Way], door: Door) -> str:
    """The ways that a door has, as one sentence."""
    return ", or ".join(text for way in ways if (text := _said(way, door)) is not None)


def _said(way: Way, door: Door) -> str | None:
    texts = [_written(piece, door) for piece in way]
    return None if None in texts else "".join(text for text in texts if text is not None)


def _written(piece: Piece, door: Door) -> str | None:
    match piece:
        case str():
            return piece
        case Declare():
            return door.declare(piece)
        case DeclareUnit():
            return door.unit(piece)
        case Argument():
            return door.argument(piece)
        case InPolicy(text=text):
            return door.in_policy(text)


def ways_of(suggestion: str | Sequence[Way]) -> tuple[Way, ...]:
    """Plain text is one way, which is said alike at every door."""
    if isinstance(suggestion, str):
        return ((suggestion,),) if suggestion else ()
    return tuple(suggestion)
