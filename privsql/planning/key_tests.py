"""The keys of a release and their space go in; the SQL of each key comes out, and what tells the declared
keys from others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from privsql.algebra.expressions import Expression
from privsql.algebra.relations import Choose, Key, Limits, Release
from privsql.analysis.domain import DayRange
from privsql.analysis.keys import KeyGroup, KeySpace
from privsql.planning import render
from privsql.planning.render_rows import plain_zero
from privsql.tables import NullLast
from privsql.types import MOMENTS, Kind

# Constants in one IN: a longer list costs DuckDB more than the keys it keeps out. Not so DECIMALs: they come
# back as doubles, and what lies close to a declared one would be added to it.
LONGEST_LIST = 10_000


def keys_and_tests(release: Release | Choose, space: KeySpace) -> tuple[list[str], list[str]]:
    """The columns of the keys, and what tells the declared ones from others."""
    keys = [f"{_key(key.expression, space.open)} AS {render.identifier(key.name)}" for key in release.keys]
    tests = [test for key in release.keys if (test := key_test(key, space))]
    return keys, tests + [test for group in space.groups if (test := _pair_test(group, release.keys))]


def limits_on_keys(release: Release | Choose, space: KeySpace, limits: Limits) -> tuple[Limits, bool]:
    """How many keys of a unit are kept, and whether they have to be counted for that."""
    if not release.keys:
        return limits, False
    if not space.open:
        limits = replace(limits, max_groups=min(limits.max_groups, len(space)))
    # long lists of pairs are not tested for: what is between them must not count as further keys
    return limits, space.open or len(space) > limits.max_groups or any(
        len(g) > LONGEST_LIST for g in space.groups
    )


def is_tested(group: KeyGroup) -> bool:
    """Whether the SQL leaves out every key that is not declared; of long lists it leaves that to where cells
    are laid out.
    """
    values = group.columns[0]
    known = values.values if isinstance(values, NullLast) else values
    return len(group) <= LONGEST_LIST or (len(group.names) == 1 and isinstance(known, range | DayRange))


def _key(expression: Expression, undeclared: bool) -> str:
    """A key; of dates that nobody declared those that Python's calendar has: reading another one would
    fail.
    """
    sql = plain_zero(expression)
    if undeclared and expression.type.kind in MOMENTS:
        return f"(CASE WHEN {sql} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {sql} END)"
    return sql


def key_test(key: Key, space: KeySpace) -> str | None:
    group = next((group for group in space.groups if key.name in group.names), None)
    if group is None:
        return None  # a key that nobody declared
    values = group.columns[group.names.index(key.name)]
    name, type_ = render.identifier(key.name), key.expression.type
    with_null = isinstance(values, NullLast) or (not isinstance(values, range) and None in values)
    known = values.values if isinstance(values, NullLast) else values
    listed = (
        known if isinstance(known, range) else [value for value in dict.fromkeys(known) if value is not None]
    )
    if type_.kind is Kind.BOOLEAN and len(listed) == 2:
        test = None if with_null else f"({name} IS NOT NULL)"
        return test
    if not listed:
        return f"({name} IS NULL)"
    ends = (listed[0], listed[-1]) if isinstance(listed, range) else (min(listed), max(listed))
    whole = type_.kind is Kind.INTEGER and len(listed) == ends[1] - ends[0] + 1
    if whole or (len(listed) > LONGEST_LIST and type_.kind is not Kind.DECIMAL):
        low, high = (render.constant(value, type_) for value in ends)
        test = (
            # what is between and not listed is dropped where cells are laid out
            f"({name} BETWEEN {low} AND {high})"
        )
    else:
        test = f"({name} IN ({', '.join(render.constant(value, type_) for value in listed)}))"
    return f"({test} OR {name} IS NULL)" if with_null else test


def _pair_test(group: KeyGroup, keys: Sequence[Key]) -> str | None:
    """Keys that go together: only combinations that can occur."""
    if len(group.names) < 2 or len(group) > LONGEST_LIST:
        return None
    types = {key.name: key.expression.type for key in keys}
    rows = ", ".join(
        "("
        + ", ".join(f"CAST({render.constant(v, types[n])} AS {types[n].sql})" for n, v in row.items())
        + ")"
        for row in (
            dict(zip(group.names, values, strict=True)) for values in zip(*group.columns, strict=True)
        )
    )
    names = [f"privsql_{place}" for place in range(len(group.names))]
    same = " AND ".join(
        f"({render.identifier(key)} IS NOT DISTINCT FROM {name})"
        for key, name in zip(group.names, names, strict=True)
    )
    return f"EXISTS (SELECT 1 FROM (VALUES {rows}) AS privsql_pairs({', '.join(names)}) WHERE {same})"
