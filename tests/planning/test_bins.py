"""Histograms by bins: what the SQL reads, against the histogram value by value and against which bins are near by definition."""

from __future__ import annotations

import math
from collections import defaultdict

import duckdb
import pytest

import privsql
from privsql.planning.rewrites.value_bins import _SURE, SHIFT


@pytest.fixture(scope="module")
def rows():
    connection = duckdb.connect()
    connection.execute("""CREATE TABLE t AS SELECT 'abz'[1 + i % 3] AS k, (hash(i) % 1000003) / 7.0 AS x,
                          DATE '1810-01-01' + ((hash(i + 7) % 90000)::INTEGER) AS d FROM range(6000) r(i)""")
    columns = {
        "k": {"values": ["a", "b"]},
        "x": {"range": [0, 200_000]},
        "d": {"range": ["1800-01-01", "2100-01-01"]},
    }
    yield privsql.connect(connection, {"tables": {"t": {"columns": columns}}}), connection
    connection.close()


@pytest.mark.parametrize("epsilon", [0.5, 20])
@pytest.mark.parametrize(
    ("keys", "asked"),
    [("k", "MEDIAN(x)"), ("k", "quantile_disc(x, 0.05)"), ("k", "MIN(d)"), ("k", "MAX(d)"),
     ("k", "quantile_disc(x, [0.25, 0.5, 0.9])"),
     ("", "MEDIAN(x)"), ("", "quantile_disc(d, [0.1, 1])")],
)  # fmt: skip
def test_values_are_single_near_the_ranks_and_binned_elsewhere(rows, keys, asked, epsilon):
    session, connection = rows
    text = f"SELECT k, {asked} AS q FROM t GROUP BY k" if keys else f"SELECT {asked} AS q FROM t"
    plan = session.explain(text, epsilon=epsilon)
    values: dict[tuple[str, ...], dict[int, int]] = defaultdict(dict)
    for *key, value, many in connection.execute(plan.sql).fetchall():
        values[tuple(key)][value] = many
    found: dict[tuple[str, ...], dict[tuple[int, int], int]] = defaultdict(dict)
    for *key, value, width, many in connection.execute(plan.runs[0]).fetchall():
        found[tuple(key)][value, width] = many
    assert set(found) == ({("a",), ("b",)} if keys else {()}), "what nobody declared is not read"
    for key, binned in found.items():
        assert binned == expected(values[key], plan.measurements[0].search)


def expected(values: dict[int, int], search) -> dict[tuple[int, int], int]:
    bins: dict[int, dict[int, int]] = defaultdict(dict)
    for value, many in values.items():
        bins[value >> SHIFT][value] = many
    whole, before, listed = sum(values.values()), 0, {}
    for number in sorted(bins):
        after = before + sum(bins[number].values())
        if any(within(search, place, whole, before, after) for place in range(len(search.steps))):
            listed |= {(value, 1): many for value, many in bins[number].items()}
        else:
            listed[number << SHIFT, 1 << SHIFT] = after - before
        before = after
    return listed


def within(search, place: int, whole: int, before: int, after: int) -> bool:
    """Whether the rank is as near to the rows from `before` to `after` as it may be off."""
    margin, rank = search.steps[place].margin, search.whole(place) * whole
    if margin:
        rank = max(rank, margin) if search.whole(place) == 0 else min(rank, whole - margin)
    slack = math.ceil(search.rank_error(place, 1.0 - _SURE))
    return before <= rank + slack and after >= rank - slack
