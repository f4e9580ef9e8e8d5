"""A release and its measurements go in; the exact SQL comes out: what the engine runs, and anyone can run by hand."""

from __future__ import annotations

from collections.abc import Sequence

from privsql.analysis.keys import KeySpace
from privsql.planning import render
from privsql.planning.parts import Part
from privsql.sql.relations import Choose, Key, Release
from privsql.tables import NullLast
from privsql.types import Kind

LONGEST_LIST = 10_000  # constants in one IN: a longer list costs DuckDB more than the keys it keeps out


def exact_sql(release: Release | Choose, parts: Sequence[Part], space: KeySpace) -> str:
    """Keys and integer columns, one row per key that occurs among the declared ones."""
    columns = [
        f"{sql} AS {render.identifier(name)}"
        for part in parts
        for name, sql in zip(part.columns, part.sql, strict=True)
    ]
    source = render.rows(release.input)
    values = [f"{sql} AS {name}" for part in parts for name, sql in part.values]
    if values:
        # columns by name, never *: what else lies below could have the name of a helper column
        kept = [render.identifier(field.name) for field in release.input.fields]
        source = f"(SELECT {', '.join([*kept, *values])} FROM {source})"
    if not release.keys:
        return f"SELECT {', '.join(columns)} FROM {source}"
    keys = [f"{render.expression(key.expression)} AS {render.identifier(key.name)}" for key in release.keys]
    ordinals = ", ".join(str(index + 1) for index in range(len(keys)))
    cells = f"SELECT {', '.join([*keys, *columns])} FROM {source} GROUP BY {ordinals}"
    # keys nobody declared are left out after grouping: materialised, because a filter below is much slower
    tests = [test for key in release.keys if (test := _key_test(key, space))]
    if not tests:
        return cells
    return f"WITH privsql_cells AS MATERIALIZED ({cells}) SELECT * FROM privsql_cells WHERE {' AND '.join(tests)}"


def _key_test(key: Key, space: KeySpace) -> str | None:
    group = next(group for group in space.groups if key.name in group.names)
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
