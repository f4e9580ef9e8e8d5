"""A column and what its schema implies go in; the line of a draft that declares it comes out."""

from __future__ import annotations

import datetime as dt
import textwrap
from fractions import Fraction
from typing import Any

from privsql.analysis.domain import Domain
from privsql.drafting.people import is_id, words
from privsql.drafting.ranges import RangeSearch
from privsql.schema import SchemaColumn
from privsql.suggestions import toml_key, toml_text
from privsql.types import MOMENTS, NUMBERS, Kind

_FILL_IN = "fill in what can really occur; values outside are clamped"
_FREE_TEXT = frozenset(
    "name comment comments note notes description address street email phone title text message url".split()
)


def shown(text: str) -> str:
    """A name or a constraint made safe for a comment, which ends at the end of its line."""
    return "".join(each if each.isprintable() else " " for each in text)


def comment(text: str) -> str:
    """Text wrapped into lines behind #."""
    return "".join(
        f"# {line}\n"
        for line in textwrap.wrap(shown(text), 106, break_on_hyphens=False, break_long_words=False)
    )


def wants_range(column: SchemaColumn, domain: Domain | None, is_unit: bool, is_key: bool) -> bool:
    """Whether it is a number that may be summed, of which the schema implies no range."""
    if column.type is None or domain is None or is_unit or is_key or is_id(column.name):
        return False
    known = domain.values is not None or (domain.low is not None and domain.high is not None)
    return column.type.kind in NUMBERS and not known


def column_line(
    column: SchemaColumn,
    domain: Domain | None,
    is_unit: bool,
    is_key: bool,
    search: RangeSearch | None = None,
) -> str:
    """The line of a draft for one column: a range that was found, or a comment to complete."""
    name = shown(column.name)
    if column.elements is not None:
        return _list_line(column, column.elements)
    if column.type is None or domain is None:
        return f"# {name}: the type {shown(column.type_name)} is not supported; queries cannot use it"
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
        ends = f"{_value(domain.low)} to {_value(domain.high)}"
        return f"# {name}: its range follows from {source} ({ends}); no line needed"
    if column.type.kind not in (*NUMBERS, *MOMENTS, Kind.TEXT):
        return f"# {name}: {column.type_name}, for which nothing can be declared"
    if search is not None:
        return _searched_line(column, domain, search)
    return f"# {toml_key(column.name)} = {_to_fill_in(column, domain, is_key or is_id(column.name))}"


def _searched_line(column: SchemaColumn, domain: Domain, search: RangeSearch) -> str:
    """A range that was found, with its cost; otherwise a line to fill in."""
    reason = comment(f"{column.name}: {search.reason}")
    if search.ends is None:
        return reason + f"# {toml_key(column.name)} = {_to_fill_in(column, domain, identifies=False)}"
    low = search.ends[0] if domain.low is None else max(search.ends[0], float(domain.low))
    high = search.ends[1] if domain.high is None else min(search.ends[1], float(domain.high))
    return (
        reason
        + f"{toml_key(column.name)} = {{ range = [{_value(Fraction(low))}, {_value(Fraction(high))}] }}"
    )


def _list_line(column: SchemaColumn, held: SchemaColumn) -> str:
    """Queries open lists with UNNEST, and see declared values only."""
    assert held.type is not None
    name, opened = (
        shown(column.name),
        f"a list; queries open it with UNNEST(list_distinct({shown(column.name)}))",
    )
    if held.labels is not None or held.type.kind is Kind.BOOLEAN:
        return f"# {name}: {opened}; no line needed"
    if held.type.kind in (Kind.DOUBLE, Kind.INTERVAL, Kind.TIME):
        return f"# {name}: lists of {held.type} are not supported; queries cannot use it"
    return f"# {toml_key(column.name)} = {{ values = [{_keys(held.type.kind)}] }}    # {opened}"


def _by_type(column: SchemaColumn, domain: Domain) -> bool:
    assert column.type is not None
    return column.type.kind is Kind.INTEGER and (domain.low, domain.high) == (
        column.type.low,
        column.type.high,
    )


def _to_fill_in(column: SchemaColumn, domain: Domain, identifies: bool) -> str:
    """A declaration with placeholders that are not valid TOML: switched on as it is, it fails instead of
    clamping.
    """
    assert column.type is not None
    kind = column.type.kind
    if kind in NUMBERS and identifies:
        why = "an identifier? then list the keys that a GROUP BY may show, or delete this line"
        return f"{{ values = [{_keys(kind)}] }}    # {why}"
    if kind in NUMBERS:
        return _range(domain, "LOWEST", "HIGHEST", _FILL_IN)
    if kind in MOMENTS:
        return _range(domain, "EARLIEST", "LATEST", f'{_FILL_IN}; such as "2020-01-31"')
    if kind is Kind.TEXT:
        free = identifies or _FREE_TEXT & set(words(column.name))
        hint = "    # a name or free text? then delete this line" if free else ""
        return f"{{ values = [{_keys(kind)}] }}{hint}"
    raise AssertionError("every other kind has nothing to declare")


def _keys(kind: Kind) -> str:
    return "KEY, KEY, ..." if kind in NUMBERS else '"KEY", "KEY", ...'


def _range(domain: Domain, lowest: str, highest: str, how: str) -> str:
    """A range to fill in, with the end that a CHECK implies, if any."""
    low, high = (None if each is None else _end(each) for each in (domain.low, domain.high))
    if low or high:
        known = "low" if low else "high"
        how = f"the {known} end follows from a CHECK; fill in what can really occur at the other"
    return f"{{ range = [{low or lowest}, {high or highest}] }}    # {how}"


def _end(value: Any) -> str:
    return toml_text(value.isoformat()) if isinstance(value, dt.date) else _value(value)


def _value(value: Any) -> str:
    if isinstance(value, Fraction):
        return str(value.numerator) if value.denominator == 1 else str(float(value))
    return shown(str(value))


def _listed(values: tuple[Any, ...]) -> str:
    return ", ".join(_value(each) for each in values[:8]) + (" ..." if len(values) > 8 else "")
