"""SET epsilon = 0.5 goes in; the arguments that later queries of a connection get come out."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from privsql.errors import ArgumentError, did_you_mean
from privsql.request import Request

# Of a text without white space at its ends: with two patterns of white space side by side it takes as long as
# the cube of a text's length, or longer, to find that it does not match.
_SET = re.compile(r"SET\s+(?P<name>\w+)(?:\s*=|\s+TO\b)(?P<value>[^;]*)", re.IGNORECASE)
_RESET = re.compile(r"RESET\s+(?P<name>\w+)", re.IGNORECASE)
_WORDS = {"true": True, "on": True, "false": False, "off": False, "null": None, "default": None}
# an analyst of a connection stays who they are; the query and its parameters come with it
NAMES = tuple(each.name for each in fields(Request) if each.name not in ("sql", "params", "analyst"))


def change_settings(settings: Mapping[str, Any], text: str) -> dict[str, Any] | None:
    """The settings after a SET or RESET statement; None if the text is neither.

    >>> change_settings({"epsilon": 1.0}, "SET epsilon = 0.5")
    {'epsilon': 0.5}
    >>> change_settings({"epsilon": 1.0}, "SELECT 1") is None
    True
    """
    bare = text.strip().removesuffix(";").rstrip()
    if found := _RESET.fullmatch(bare):
        name = _known(found["name"])
        return {other: value for other, value in settings.items() if other != name}
    if found := _SET.fullmatch(bare):
        return checked_settings(settings, {_known(found["name"]): _value(found["value"].strip())})
    return None


def checked_settings(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings after changes: `within` replaces `epsilon`, and the other way round; None resets one."""
    if not isinstance(changes, Mapping):
        problem = "settings are a dict, from names of arguments to values"
        raise ArgumentError("argument-setting", problem, 'settings={"dialect": "postgres"}')
    named = {_known(name): value for name, value in changes.items()}
    other = {"epsilon": "within", "within": "epsilon"}
    replaced = {other[name] for name, value in named.items() if name in other and value is not None}
    merged = {**{name: value for name, value in settings.items() if name not in replaced}, **named}
    return {name: value for name, value in merged.items() if value is not None}


def _known(name: object) -> str:
    if isinstance(name, str) and name.lower() in NAMES:
        return name.lower()
    raise ArgumentError("argument-unknown", f"there is no setting {name!r}", did_you_mean(str(name), NAMES))


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = text if text.isidentifier() else None
    if isinstance(value, bool | int | float | str):
        return value
    raise ArgumentError(
        "argument-setting", "a setting is a number, a word or true or false", "SET epsilon = 0.5"
    )
