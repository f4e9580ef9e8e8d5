"""A release and its measurements go in; the exact SQL comes out: what the engine runs, and anyone can run by
hand.
"""

from __future__ import annotations

from collections.abc import Sequence

from privsql.algebra.relations import SET_COLUMN, Choose, Limits, Release
from privsql.algebra.reserved import set_number
from privsql.analysis.keys import KeySpace
from privsql.planning import render
from privsql.planning.by_key import from_counts
from privsql.planning.by_rank import from_totals
from privsql.planning.key_tests import keys_and_tests, limits_on_keys
from privsql.planning.outliers import added_up
from privsql.planning.parts import Part, clean
from privsql.planning.prepared import computed
from privsql.planning.render_choice import ascending, key_rank
from privsql.planning.render_rows import rows


def exact_sql(
    release: Release | Choose, parts: Sequence[Part], space: KeySpace, limits: Limits | None
) -> str:
    """Keys and integer columns, one row per key that occurs among the declared ones."""
    stored = from_totals(release, parts) or from_counts(release, parts, space, limits)
    if stored is not None:
        return stored
    cells = _cells(release, parts, space, limits)
    return _added_up(release, parts, cells) if isinstance(release, Release) and release.sets else cells


def _added_up(release: Release, parts: Sequence[Part], cells: str) -> str:
    """The cells added up over several sets of keys, and which set a row is of: a NULL key is not a total."""
    names = [render.identifier(key.name) for key in release.keys]
    which = f"GROUPING({', '.join(names)})"
    columns = []
    for part in parts:
        times = part.sensitivity.total_times
        factor = (
            ""
            if times == 1
            else f" * (CASE WHEN {which} = {set_number((), len(names))} THEN {times} ELSE 1 END)"
        )
        columns += [
            f"{clean(f'coalesce(sum({name}), 0){factor}')} AS {render.identifier(name)}"
            for name in part.columns
        ]
    sets = ", ".join(f"({', '.join(names[place] for place in kept)})" for kept in release.sets)
    shown = ", ".join([*names, f"CAST({which} AS BIGINT) AS {render.identifier(SET_COLUMN)}", *columns])
    return f"SELECT {shown} FROM ({cells}) AS privsql_all GROUP BY GROUPING SETS ({sets})"


def _put_right(parts: Sequence[Part], source: str) -> str:
    """One row, from sums over all rows and over what lies outside the ranges."""
    others = [part for part in parts if not part.outliers]
    counted = [
        (render.identifier(name), sql)
        for part in others
        for name, sql in zip(part.columns, part.sql, strict=True)
    ]
    inner = added_up([each for part in parts for each in part.outliers], counted, source)
    sums = [
        [f"TRY_CAST(coalesce(sum({render.identifier(name)}), 0) AS BIGINT)" for name in part.columns]
        for part in parts
    ]
    columns = _named(
        parts, [part.sql if part.outliers else own for part, own in zip(parts, sums, strict=True)]
    )
    return f"SELECT {', '.join(columns)} FROM ({inner}) AS privsql_added"


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
    if any(part.outliers for part in parts):
        return _put_right(parts, source)
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
    # keys nobody declared are left out after grouping: OFFSET keeps DuckDB from moving the filter below,
    # which is slower
    return f"SELECT * FROM ({cells} OFFSET 0) AS privsql_cells WHERE {' AND '.join(tests)}{_in_order(release, space)}"


def _in_order(release: Release | Choose, space: KeySpace) -> str:
    """Keys that nobody declared come in the order of their values: the order of rows could tell about
    them.
    """
    return (
        f" ORDER BY {ascending([render.identifier(key.name) for key in release.keys])}" if space.open else ""
    )


def _bounded(
    release: Release | Choose,
    parts: Sequence[Part],
    keys: Sequence[str],
    tests: Sequence[str],
    source: str,
    limits: Limits,
    ranked: bool,
) -> str:
    """First what each unit has in each key, then at most so many keys of each unit, then the sum over units.

    Not materialised, which took a quarter longer. Ranking rows before they are grouped is a fifth faster
    where a unit has one row a key, and 2.6 times slower where it has many.
    """
    names = [render.identifier(key.name) for key in release.keys]
    of_unit = _named(parts, [part.of_unit for part in parts])
    grouped = ", ".join(str(index + 1) for index in range(len(names) + 1))
    own = f"SELECT {', '.join([render.UNIT, *keys, *of_unit])} FROM {source} GROUP BY {grouped}"
    steps = [f"privsql_units AS NOT MATERIALIZED ({own})"]
    last = "privsql_units"
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    if ranked:
        rank = key_rank(names)
        steps.append(
            f"privsql_kept AS NOT MATERIALIZED (SELECT * FROM {last}{where} QUALIFY {rank} <= {limits.max_groups})"
        )
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
