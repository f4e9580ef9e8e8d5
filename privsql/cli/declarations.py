"""Options such as --unit, --keys and --ranges go in; the policy that they add up to comes out."""

from __future__ import annotations

import re
from argparse import Namespace
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from privsql.errors import ArgumentError
from privsql.policy import Policy, load_policy
from privsql.policy.checks import AUTO
from privsql.policy.policy import UnitPolicy

_FILES = re.compile(r"(?P<table>.+?)(\.(parquet|csv|tsv|csv\.gz|tsv\.gz))", re.IGNORECASE)
_BETWEEN_COMMAS = re.compile(r""",(\s*"[^"]*"\s*|\s*'[^']*'\s*|[^,]*)""")
_NUMBER = re.compile(r"[+-]?(\d+(?P<part>\.\d*)?|\.\d+)")
_EXAMPLES = {"--unit": "user_id", "--keys": "state=CA,NY", "--ranges": "age=0..120"}
_WORDS = {"true": True, "false": False, "null": None}


def declared_policy(arguments: Namespace) -> Policy | str | None:
    """The policy of a command: the file it names, with what its options declare."""
    given = [getattr(arguments, name, None) or [] for name in ("unit", "keys", "ranges")]
    if not any(given):
        return arguments.policy if arguments.policy is None else str(arguments.policy)
    policy, (units, keys, ranges) = load_policy(arguments.policy), given
    for text in units:
        table, column = _place(text, "--unit", arguments.source)
        declared = replace(policy.table(table), unit=UnitPolicy((column,)))
        policy = replace(policy, tables={**policy.tables, table.lower(): declared})
    for text in keys:
        place, _, values = text.partition("=")
        table, column = _place(place, "--keys", arguments.source)
        policy = policy.with_columns(table, None, {column: _values(values)})
    for text in ranges:
        place, _, ends = text.partition("=")
        if text == AUTO:
            policy = policy.with_columns(_only_table(arguments.source, "--ranges"), AUTO, None)
            continue
        table, column = _place(place, "--ranges", arguments.source)
        policy = policy.with_columns(table, {column: _ends(ends)}, None)
    return policy


def _place(text: str, option: str, source: str) -> tuple[str, str]:
    """The table and the column that `column` or `table.column` names."""
    table, _, column = text.strip().rpartition(".")
    if not column:
        raise ArgumentError("argument-shape", f"{option} names no column", f"{option} {_EXAMPLES[option]}")
    return table or _only_table(source, option), column


def _only_table(source: str, option: str) -> str:
    """The table that a Parquet or CSV file is."""
    found = _FILES.fullmatch(PurePath(source).name)
    if found is None:
        raise ArgumentError(
            "argument-shape",
            f"{option} must name the table, too: {PurePath(source).name} may have several",
            f"{option} TABLE.{_EXAMPLES[option]}",
        )
    return found["table"]


def _values(text: str) -> list[Any]:
    """Values between commas; numbers, true, false and NULL are what they look like, unless in quotes."""
    if not text:
        raise ArgumentError("argument-shape", "--keys has no values", "--keys state=CA,NY")
    return [_value(each.strip()) for each in _BETWEEN_COMMAS.findall(f",{text}")]


def _value(text: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    number = _NUMBER.fullmatch(text)
    if number is None:
        return text
    return int(text) if number["part"] is None and "." not in text else float(text)


def _ends(text: str) -> tuple[Any, Any]:
    low, dots, high = text.partition("..")
    if not (low and dots and high):
        raise ArgumentError("argument-shape", "--ranges has no two ends", "--ranges age=0..120")
    return _value(low), _value(high)
