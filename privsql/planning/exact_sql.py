"""A release and its measurements go in; the exact SQL comes out: what the engine runs, and anyone can run by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from privsql.analysis.domain import DayRange
from privsql.analysis.keys import KeyGroup, KeySpace
from privsql.planning import render
from privsql.planning.by_rank import from_totals
from privsql.planning.parts import Part, clean
from privsql.planning.prepared import computed
from privsql.planning.render_rows import plain_zero, rows
from privsql.sql.expressions import Expression
from privsql.sql.grouping import set_number
from privsql.sql.relations import SET_COLUMN, Choose, Key, Limits, Release
from privsql.tables import NullLast
from privsql.types import MOMENTS, Kind

LONGEST_LIST = 10_000  # constants in one IN: a longer list costs DuckDB more than the keys it keeps out


def exact_sql(release: Release | Choose, parts: Sequence[Part], space: KeySpace, limits: Limits | None) -> str:
    """Keys and integer columns, one row per key that occurs among the declared ones."""
    totals = from_totals(release, parts)
    if totals is not None:
        return totals
    cells = _cells(release, parts, space, limits)
    return _added_up(release, parts, cells) if isinstance(release, Release) and release.sets else cells


def _added_up(release: Release, parts: Sequence[Part], cells: str) -> str:
    """The cells added up over several sets of keys, and which set a row is of: a NULL key is not a total."""
    names = [render.identifier(key.name) for key in release.keys]
    which = f"GROUPING({', '.join(names)})"
    columns = []
    for part in parts:
        times = part.sensitivity.total_times
        factor = "" if times == 1 else f" * (CASE WHEN {which} = {set_number((), len(names))} THEN {times} ELSE 1 END)"
        columns += [f"{clean(f'coalesce(sum({name}), 0){factor}')} AS {render.identifier(name)}" for name in part.columns]
    sets = ", ".join(f"({', '.join(names[place] for place in kept)})" for kept in release.sets)
    shown = ", ".join([*names, f"CAST({which} AS BIGINT) AS {render.identifier(SET_COLUMN)}", *columns])
    return f"SELECT {shown} FROM ({cells}) AS privsql_all GROUP BY GROUPING SETS ({sets})"


def is_tested(group: KeyGroup) -> bool:
    """Whether the SQL leaves out every key that is not declared; of long lists it leaves that to where cells are laid out."""
    values = group.columns[0]
    known = values.values if isinstance(values, NullLast) else values
    return len(group) <= LONGEST_LIST or (len(group.names) == 1 and isinstance(known, range | DayRange))


def _cells(release: Release | Choose, parts: Sequence[Part], space: KeySpace, limits: Limits | None) -> str:
    source = rows(release.input, unit=limits is not None)
    known = computed(release.input)
    values = [f"{known.get(sql, sql)} AS {name}" for part in parts for name, sql in part.values]
    if values:
        # columns by name, never *: what else lies below could have the name of a helper column
        kept = [render.identifier(field.name) for field in release.input.fields]
        if limits is not None:
            kept.append(render.UNIT)
        source = f"(SELECT {', '.join([*kept, *values])} FROM {source})"
    keys, tests = keys_and_tests(release, space)
    if limits is not None:
        limits, ranked = limits_on_keys(release, space, limits)
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


def keys_and_tests(release: Release | Choose, space: KeySpace) -> tuple[list[str], list[str]]:
    """The columns of the keys, and what tells the declared ones from others."""
    keys = [f"{_key(key.expression, space.open)} AS {render.identifier(key.name)}" for key in release.keys]
    tests = [test for key in release.keys if (test := _key_test(key, space))]
    return keys, tests + [test for group in space.groups if (test := _pair_test(group, release.keys))]


def limits_on_keys(release: Release | Choose, space: KeySpace, limits: Limits) -> tuple[Limits, bool]:
    """How many keys of a unit are kept, and whether they have to be counted for that."""
    if not release.keys:
        return limits, False
    if not space.open:
        limits = replace(limits, max_groups=min(limits.max_groups, len(space)))
    # long lists of pairs are not tested for: what is between them must not count as further keys
    return limits, space.open or len(space) > limits.max_groups or any(len(g) > LONGEST_LIST for g in space.groups)


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
