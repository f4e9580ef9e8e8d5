"""A release and its measurements go in; the exact SQL comes out: what the engine runs, and anyone can run by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from privsql.analysis.keys import KeyGroup, KeySpace
from privsql.planning import render
from privsql.planning.parts import Part
from privsql.planning.render_rows import plain_zero, rows
from privsql.sql.expressions import Expression
from privsql.sql.relations import Choose, Key, Limits, Release
from privsql.tables import NullLast
from privsql.types import MOMENTS, Kind

LONGEST_LIST = 10_000  # constants in one IN: a longer list costs DuckDB more than the keys it keeps out


def exact_sql(release: Release | Choose, parts: Sequence[Part], space: KeySpace, limits: Limits | None) -> str:
    """Keys and integer columns, one row per key that occurs among the declared ones."""
    source = rows(release.input, unit=limits is not None)
    values = [f"{sql} AS {name}" for part in parts for name, sql in part.values]
    if values:
        # columns by name, never *: what else lies below could have the name of a helper column
        kept = [render.identifier(field.name) for field in release.input.fields]
        if limits is not None:
            kept.append(render.UNIT)
        source = f"(SELECT {', '.join([*kept, *values])} FROM {source})"
    keys = [f"{_key(key.expression, space.open)} AS {render.identifier(key.name)}" for key in release.keys]
    tests = [test for key in release.keys if (test := _key_test(key, space))]
    tests += [test for group in space.groups if (test := _pair_test(group, release.keys))]
    if limits is not None:
        if keys and not space.open:
            limits = replace(limits, max_groups=min(limits.max_groups, len(space)))
        # long lists of pairs are not tested for: what is between them must not count as further keys
        ranked = bool(keys) and (space.open or len(space) > limits.max_groups or any(len(g) > LONGEST_LIST for g in space.groups))
        return _bounded(release, parts, keys, tests, source, limits, ranked) + _in_order(release, space)
    columns = _named(parts, [part.sql for part in parts])
    if not keys:
        return f"SELECT {', '.join(columns)} FROM {source}"
    ordinals = ", ".join(str(index + 1) for index in range(len(keys)))
    cells = f"SELECT {', '.join([*keys, *columns])} FROM {source} GROUP BY {ordinals}"
    if not tests:
        return cells + _in_order(release, space)
    # keys nobody declared are left out after grouping: OFFSET keeps DuckDB from moving the filter below, which is slower
    return f"SELECT * FROM ({cells} OFFSET 0) AS privsql_cells WHERE {' AND '.join(tests)}{_in_order(release, space)}"


def _key(expression: Expression, undeclared: bool) -> str:
    """A key; of dates that nobody declared those that Python's calendar has: reading another one would fail."""
    sql = plain_zero(expression)
    if undeclared and expression.type.kind in MOMENTS:
        return f"(CASE WHEN {sql} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {sql} END)"
    return sql


def _in_order(release: Release | Choose, space: KeySpace) -> str:
    """Keys that nobody declared come in the order of their values: the order of rows could tell about them."""
    return f" ORDER BY {', '.join(render.identifier(key.name) for key in release.keys)}" if space.open else ""


def _bounded(
    release: Release | Choose, parts: Sequence[Part], keys: Sequence[str], tests: Sequence[str], source: str,
    limits: Limits, ranked: bool,
) -> str:  # fmt: skip
    """First what each unit has in each key, then at most so many keys of each unit, then the sum over units.

    Which keys of a unit are kept is decided by a hash of the unit and the key: by that unit's own rows alone. Not
    materialised, which took a quarter longer; ordered by two terms, since DuckDB makes a slower arg_min of one. Ranking
    rows before they are grouped is a fifth faster where a unit has one row a key, and 2.6 times slower where it has many.
    """
    names = [render.identifier(key.name) for key in release.keys]
    of_unit = _named(parts, [part.of_unit for part in parts])
    grouped = ", ".join(str(index + 1) for index in range(len(names) + 1))
    own = f"SELECT {', '.join([render.UNIT, *keys, *of_unit])} FROM {source} GROUP BY {grouped}"
    steps = [f"privsql_units AS NOT MATERIALIZED ({own})"]
    last = "privsql_units"
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    if ranked:
        shown = ", ".join(names)
        rank = f"row_number() OVER (PARTITION BY {render.UNIT} ORDER BY hash({render.UNIT}, {shown}), {shown})"
        steps.append(f"privsql_kept AS NOT MATERIALIZED (SELECT * FROM {last}{where} QUALIFY {rank} <= {limits.max_groups})")
        last, where = "privsql_kept", ""
    columns = _named(parts, [part.sql for part in parts])
    by = f" GROUP BY {', '.join(str(index + 1) for index in range(len(names)))}" if names else ""
    return f"WITH {', '.join(steps)} SELECT {', '.join([*names, *columns])} FROM {last}{where}{by}"


def _named(parts: Sequence[Part], sql: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"{each} AS {render.identifier(name)}"
        for part, listed in zip(parts, sql, strict=True)
        for name, each in zip(part.columns, listed, strict=True)
    ]


def _pair_test(group: KeyGroup, keys: Sequence[Key]) -> str | None:
    """Keys that go together: only combinations that can occur."""
    if len(group.names) < 2 or len(group) > LONGEST_LIST:
        return None
    types = {key.name: key.expression.type for key in keys}
    rows = ", ".join(
        "(" + ", ".join(f"CAST({render.constant(v, types[n])} AS {types[n].sql})" for n, v in row.items()) + ")"
        for row in (dict(zip(group.names, values, strict=True)) for values in zip(*group.columns, strict=True))
    )
    names = [f"privsql_{place}" for place in range(len(group.names))]
    same = " AND ".join(
        f"({render.identifier(key)} IS NOT DISTINCT FROM {name})" for key, name in zip(group.names, names, strict=True)
    )
    return f"EXISTS (SELECT 1 FROM (VALUES {rows}) AS privsql_pairs({', '.join(names)}) WHERE {same})"


def _key_test(key: Key, space: KeySpace) -> str | None:
    group = next((group for group in space.groups if key.name in group.names), None)
    if group is None:
        return None  # a key that nobody declared
    values = group.columns[group.names.index(key.name)]
    name, type_ = render.identifier(key.name), key.expression.type
    with_null = isinstance(values, NullLast) or (not isinstance(values, range) and None in values)
    known = values.values if isinstance(values, NullLast) else values
    listed = known if isinstance(known, range) else [value for value in dict.fromkeys(known) if value is not None]
    if type_.kind is Kind.BOOLEAN and len(listed) == 2:
        test = None if with_null else f"({name} IS NOT NULL)"
        return test
    if not listed:
        return f"({name} IS NULL)"
    ends = (listed[0], listed[-1]) if isinstance(listed, range) else (min(listed), max(listed))
    whole = type_.kind is Kind.INTEGER and len(listed) == ends[1] - ends[0] + 1
    if whole or len(listed) > LONGEST_LIST:
        low, high = (render.constant(value, type_) for value in ends)
        test = (
            f"({name} BETWEEN {low} AND {high})"  # what is between and not listed is dropped where cells are laid out
        )
    else:
        test = f"({name} IN ({', '.join(render.constant(value, type_) for value in listed)}))"
    return f"({test} OR {name} IS NULL)" if with_null else test
