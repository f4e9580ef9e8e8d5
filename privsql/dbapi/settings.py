"""SET epsilon = 0.5 goes in; the arguments that later queries of a connection get come out."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from privsql.errors import ArgumentError, did_you_mean
from privsql.request import Request

_SET = re.compile(r"\s*SET\s+(?P<name>\w+)\s*(?:=|\s+TO\s+)\s*(?P<value>[^;]*?)\s*;?\s*", re.IGNORECASE)
_RESET = re.compile(r"\s*RESET\s+(?P<name>\w+)\s*;?\s*", re.IGNORECASE)
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
    if found := _RESET.fullmatch(text):
        name = _known(found["name"])
        return {other: value for other, value in settings.items() if other != name}
    if found := _SET.fullmatch(text):
        return checked_settings(settings, {_known(found["name"]): _value(found["value"])})
    return None


def checked_settings(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings after changes: `within` replaces `epsilon`, and the other way round; None resets one."""
    named = {_known(name): value for name, value in changes.items()}
    other = {"epsilon": "within", "within": "epsilon"}
    replaced = {other[name] for name, value in named.items() if name in other and value is not None}
    merged = {**{name: value for name, value in settings.items() if name not in replaced}, **named}
    return {name: value for name, value in merged.items() if value is not None}


def _known(name: str) -> str:
    if name.lower() in NAMES:
        return name.lower()
    raise ArgumentError("argument-unknown", f"there is no setting {name!r}", did_you_mean(name, NAMES))


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
