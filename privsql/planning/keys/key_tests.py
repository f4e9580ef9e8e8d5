"""The keys of a release and their space go in; the SQL of each key comes out, with tests for the declared
keys.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from privsql.algebra.exact import AmongRows, Cases, Constant, Name, OneOf, Operation, Scalar, one_zero, op
from privsql.algebra.expressions import Expression
from privsql.algebra.relations import Choose, Key, Limits, Release
from privsql.analysis.domain import DayRange
from privsql.analysis.keys import KeyGroup, KeySpace
from privsql.tables import NullLast
from privsql.types import DATE, MOMENTS, Kind, Type

# Constants in one IN: a longer list costs DuckDB more than the keys it keeps out. Not for DECIMALs: they come
# back as doubles, and a value close to a declared one would be added to it.
LONGEST_LIST = 10_000


def keys_and_tests(
    release: Release | Choose, space: KeySpace
) -> tuple[tuple[tuple[str, Scalar], ...], tuple[Scalar, ...]]:
    """The columns of the keys, and the tests for the declared ones."""
    keys = tuple((key.name, _key(key.expression, space.open)) for key in release.keys)
    tests = [key_test(key, space) for key in release.keys]
    tests += [_pair_test(group, release.keys) for group in space.groups]
    return keys, tuple(test for test in tests if test is not None)


def limits_on_keys(release: Release | Choose, space: KeySpace, limits: Limits) -> tuple[Limits, bool]:
    """How many keys of a unit are kept, and whether they must be counted for that."""
    if not release.keys:
        return limits, False
    if not space.open:
        limits = replace(limits, max_groups=min(limits.max_groups, len(space)))
    # long lists of pairs are not tested, and undeclared pairs must not count as further keys
    return limits, space.open or len(space) > limits.max_groups or any(
        len(g) > LONGEST_LIST for g in space.groups
    )


def is_tested(group: KeyGroup) -> bool:
    """Whether the SQL drops every undeclared key; with long lists, undeclared keys are dropped where cells
    are laid out.
    """
    values = group.columns[0]
    known = values.values if isinstance(values, NullLast) else values
    return len(group) <= LONGEST_LIST or (len(group.names) == 1 and isinstance(known, range | DayRange))


def _key(expression: Expression, undeclared: bool) -> Scalar:
    """A key. Undeclared dates outside Python's calendar become NULL, since reading them would fail."""
    value = one_zero(expression)
    if undeclared and expression.type.kind in MOMENTS:
        ends = (Constant(each, DATE) for each in (dt.date.min, dt.date.max))
        return Cases(((op(Operation.BETWEEN, value, *ends), value),))
    return value


def key_test(key: Key, space: KeySpace) -> Scalar | None:
    """The test for declared values of a key; None if it has no others, or none are declared."""
    group = next((group for group in space.groups if key.name in group.names), None)
    if group is None:
        return None
    values = group.columns[group.names.index(key.name)]
    with_null = isinstance(values, NullLast) or (not isinstance(values, range) and None in values)
    known = values.values if isinstance(values, NullLast) else values
    listed = (
        known if isinstance(known, range) else [value for value in dict.fromkeys(known) if value is not None]
    )
    name, type_ = Name(key.name), key.expression.type
    if type_.kind is Kind.BOOLEAN and len(listed) == 2:
        return None if with_null else op(Operation.IS_PRESENT, name)
    if not listed:
        return op(Operation.IS_NULL, name)
    test = _is_listed(name, listed, type_)
    return op(Operation.OR, test, op(Operation.IS_NULL, name)) if with_null else test


def _is_listed(name: Name, listed: Sequence[Any], type_: Type) -> Scalar:
    """Whether a key is one of these values, or between them: undeclared values in between are dropped where
    cells are laid out.
    """
    ends = (listed[0], listed[-1]) if isinstance(listed, range) else (min(listed), max(listed))
    whole = type_.kind is Kind.INTEGER and len(listed) == ends[1] - ends[0] + 1
    if whole or (len(listed) > LONGEST_LIST and type_.kind is not Kind.DECIMAL):
        return op(Operation.BETWEEN, name, *(Constant(value, type_) for value in ends))
    return OneOf(name, tuple(Constant(value, type_) for value in listed))


def _pair_test(group: KeyGroup, keys: Sequence[Key]) -> Scalar | None:
    """Tests combined keys: only combinations that can occur pass."""
    if len(group.names) < 2 or len(group) > LONGEST_LIST:
        return None
    types = {key.name: key.expression.type for key in keys}
    columns = [
        [Constant(v, types[name]) for v in c] for name, c in zip(group.names, group.columns, strict=True)
    ]
    return AmongRows(tuple(Name(each) for each in group.names), tuple(zip(*columns, strict=True)))
