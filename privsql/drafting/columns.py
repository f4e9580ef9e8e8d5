"""A column and what its schema says of it go in; the lines of a draft that declare its range or keys come out."""

from __future__ import annotations

import datetime as dt
import json
import re
import textwrap
from fractions import Fraction
from typing import Any

from privsql.analysis.domain import Domain
from privsql.drafting.people import is_id, words
from privsql.schema import SchemaColumn
from privsql.types import MOMENTS, NUMBERS, Kind

# What a word in the name of a number usually measures. Only placeholders: the owner knows better.
_RANGES: dict[str, tuple[Any, Any]] = {
    "age": (0, 120), "year": (1900, 2100), "month": (1, 12), "day": (1, 31), "weekday": (0, 7), "hour": (0, 23),
    "minutes": (0, 1440), "seconds": (0, 86400), "percent": (0, 100), "pct": (0, 100), "rate": (0, 1), "ratio": (0, 1),
    "share": (0, 1), "probability": (0, 1), "discount": (0, 1), "rating": (1, 5), "stars": (1, 5), "score": (0, 100),
    "height": (0, 250), "weight": (0, 300), "latitude": (-90, 90), "lat": (-90, 90), "longitude": (-180, 180),
    "lon": (-180, 180), "salary": (0, 200000), "income": (0, 200000), "wage": (0, 200000), "balance": (-10000, 10000),
    "amount": (0, 1000), "price": (0, 1000), "total": (0, 1000), "cost": (0, 1000), "fee": (0, 1000), "quantity": (0, 100),
    "qty": (0, 100), "count": (0, 100), "temperature": (-50, 50),
}  # fmt: skip
_ANY_NUMBER = (0, 1000)
_FREE_TEXT = frozenset("name comment comments note notes description address street email phone title text message url".split())
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def quoted(text: str) -> str:
    """A TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def key(name: str) -> str:
    """A name as a TOML key."""
    return name if _BARE.fullmatch(name) else quoted(name)


def shown(text: str) -> str:
    """A name or a constraint inside a comment, which ends at the end of its line."""
    return "".join(each if each.isprintable() else " " for each in text)


def comment(text: str) -> str:
    """Text as lines behind #, none of them long."""
    return "".join(f"# {line}\n" for line in textwrap.wrap(shown(text), 116, break_on_hyphens=False, break_long_words=False))


def column_line(column: SchemaColumn, domain: Domain | None, is_unit: bool, is_key: bool) -> str:
    """What a draft says of one column: always a comment, because only the owner knows ranges and keys."""
    name = shown(column.name)
    if column.elements is not None:
        return _list_line(column, column.elements)
    if column.type is None or domain is None:
        return f"# {name}: no rules for the type {shown(column.type_name)}; queries cannot use it"
    if is_unit:
        return f"# {name}: names the unit; do not declare its values"
    if column.labels is not None:
        return f"# {name}: ENUM, its {len(column.labels)} labels are its keys; no line needed"
    if column.type.kind is Kind.BOOLEAN:
        return f"# {name}: BOOLEAN, its keys are false and true; no line needed"
    if domain.values is not None:
        return f"# {name}: its values follow from a CHECK ({_listed(domain.values)}); no line needed"
    if domain.low is not None and domain.high is not None:
        source = "its type" if _by_type(column, domain) else "a CHECK"
        return f"# {name}: its range follows from {source} ({_value(domain.low)} to {_value(domain.high)}); no line needed"
    if column.type.kind not in (*NUMBERS, *MOMENTS, Kind.TEXT):
        return f"# {name}: {column.type_name}, of which nothing can be declared"
    return f"# {key(column.name)} = {_placeholder(column, domain, is_key or is_id(column.name))}"


def _list_line(column: SchemaColumn, held: SchemaColumn) -> str:
    """Lists are opened by UNNEST, and give no other values than those that were declared."""
    assert held.type is not None
    name, opened = shown(column.name), f"a list, which queries open by UNNEST(list_distinct({shown(column.name)}))"
    if held.labels is not None or held.type.kind is Kind.BOOLEAN:
        return f"# {name}: {opened}; no line needed"
    if held.type.kind in (Kind.DOUBLE, Kind.INTERVAL, Kind.TIME):
        return f"# {name}: no rules for lists of {held.type}; queries cannot use it"
    values = "1, 2" if held.type.kind in NUMBERS else '"...", "..."'
    return f"# {key(column.name)} = {{ values = [{values}] }}    # {opened}"


def _by_type(column: SchemaColumn, domain: Domain) -> bool:
    assert column.type is not None
    return column.type.kind is Kind.INTEGER and (domain.low, domain.high) == (column.type.low, column.type.high)


def _placeholder(column: SchemaColumn, domain: Domain, identifies: bool) -> str:
    assert column.type is not None
    kind, called = column.type.kind, words(column.name)
    if kind in NUMBERS:
        if identifies:
            return "{ values = [1, 2] }    # an identifier? then list the keys that a GROUP BY may show, or leave it out"
        low, high, why = _range(column.name, domain)
        return f"{{ range = [{low}, {high}] }}{why}"
    if kind in MOMENTS:
        ends = ("1900-01-01", "2029-12-31") if {"birth", "born", "dob", "birthday"} & set(called) else None
        low, high = ends or ("2020-01-01", "2029-12-31")
        ends_known = _moment(domain.low) or low, _moment(domain.high) or high
        return f'{{ range = ["{ends_known[0]}", "{ends_known[1]}"] }}'
    if kind is Kind.TEXT:
        free = "    # a name or free text? then leave it out" if _FREE_TEXT & set(called) or identifies else ""
        return f'{{ values = ["...", "..."] }}{free}'
    raise AssertionError("every other kind has nothing to declare")


def _range(name: str, domain: Domain) -> tuple[str, str, str]:
    """A placeholder for a number, with the end that a CHECK gives where it gives one."""
    guess = next((_RANGES[word] for word in reversed(words(name)) if word in _RANGES), _ANY_NUMBER)
    if domain.low is not None:
        return _value(domain.low), _value(max(Fraction(guess[1]), domain.low)), "    # the low end follows from a CHECK"
    if domain.high is not None:
        return _value(min(Fraction(guess[0]), domain.high)), _value(domain.high), "    # the high end follows from a CHECK"
    return str(guess[0]), str(guess[1]), ""


def _moment(value: Any) -> str | None:
    return value.isoformat() if isinstance(value, dt.date) else None


def _value(value: Any) -> str:
    if isinstance(value, Fraction):
        return str(value.numerator) if value.denominator == 1 else str(float(value))
    return shown(str(value))


def _listed(values: tuple[Any, ...]) -> str:
    return ", ".join(_value(each) for each in values[:8]) + (" ..." if len(values) > 8 else "")
