"""A suggestion in parts goes in; a sentence comes out, in the terms of the door that the person came through.

A refusal suggests what would help: declare the values of a column, allow a delta. Each door words it in its
own way: a policy line, a keyword of df.dp, an option of the command line. The person fills in words in
capitals: privsql knows nothing about the data, and an invented range would be silently wrong.
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
    """What a policy can declare about a column, as a policy file writes it."""

    RANGE = "range = [LOWEST, HIGHEST]"
    MOMENTS = 'range = ["LOWEST", "HIGHEST"]'  # for dates and times
    AUTO = 'range = "auto"'
    VALUES = "values = [VALUES]"


@dataclass(frozen=True)
class Declare:
    """Declare facts about columns of a table."""

    table: str
    facts: tuple[tuple[str, Fact], ...]


@dataclass(frozen=True)
class DeclareUnit:
    """Declare the privacy unit of a table; no table: of both tables in a join."""

    table: str | None = None


@dataclass(frozen=True)
class Argument:
    """An argument of the call, with a value as Python writes it, or just its name."""

    name: str
    value: str = ""


@dataclass(frozen=True)
class InPolicy:
    """A suggestion that needs a policy: a door without one skips it."""

    text: str


Piece = str | Declare | DeclareUnit | Argument | InPolicy
Way = tuple[Piece, ...]


class Door(Protocol):
    """How a door words a suggestion."""

    def declare(self, declared: Declare) -> str: ...

    def unit(self, declared: DeclareUnit) -> str: ...

    def argument(self, argument: Argument) -> str: ...

    def in_policy(self, text: str) -> str | None:
        """The text for a policy; None if this door has no policy."""
        ...


@dataclass(frozen=True)
class PolicyDoor:
    """The door of a session: a policy, as a file or a dict, and keywords of Python calls."""

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
    """The name as a TOML key."""
    return name if _BARE.fullmatch(name) else toml_text(name)


def toml_text(text: str) -> str:
    """The text as a TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def said(ways: Iterable[Way], door: Door) -> str:
    """The suggestions that apply at this door, as one sentence."""
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
    """Turn plain text into one suggestion, which every door words alike."""
    if isinstance(suggestion, str):
        return ((suggestion,),) if suggestion else ()
    return tuple(suggestion)
