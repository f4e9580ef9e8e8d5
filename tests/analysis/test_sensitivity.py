"""How far one person can move a vector of sums, by the rows that are theirs and what one row adds: worked out by hand."""

from __future__ import annotations

import pytest

from privsql.algebra.relations import Limits
from privsql.analysis.bound_sums import at_most, over_sets, sensitivity_of
from privsql.analysis.stability import Stability, bounded
from privsql.neighbours import Neighbours
from privsql.privacy.sensitivity import Sensitivity

COME, REPLACED = Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE
KEYS = ["k"]


@pytest.mark.parametrize(
    ("neighbours", "rows", "alike", "keys", "size", "width", "cells", "l1", "linf"),
    [
        (COME, 1, 1, None, 5, 7, 1, 5, 5),
        (COME, 3, 2, None, 5, 7, 1, 15, 15),  # all rows are in the one cell
        (COME, 3, 2, KEYS, 5, 7, 1, 15, 10),  # at most two in the same
        (COME, 3, 2, KEYS, 5, 7, 2, 15, 10),
        (COME, 3, 9, KEYS, 5, 7, 1, 15, 15),  # no more than there are
        (COME, 0, 0, KEYS, 5, 7, 1, 5, 5),  # as if there was one
        (COME, 0, 0, None, 0, 0, 1, 1, 1),  # what cannot move has the least noise
        (REPLACED, 1, 1, None, 5, 7, 1, 7, 7),  # from one end of the span to the other
        (REPLACED, 3, 3, None, 5, 7, 1, 21, 21),
        (REPLACED, 1, 1, None, 5, 0, 1, 1, 1),
        (REPLACED, 1, 1, None, 5, 4, 2, 10, 4),  # out of one column and into another
        (REPLACED, 3, 2, KEYS, 5, 7, 1, 30, 14),
        (REPLACED, 1, 1, KEYS, 1, 5, 1, 2, 2),  # no cell moves further than all together
    ],
)
def test_l1_and_linf_follow_from_stability_and_row_size(
    neighbours, rows, alike, keys, size, width, cells, l1, linf
):
    stable = Stability(rows, False, "", lambda columns: alike)
    found = sensitivity_of(stable, neighbours, keys, size, width, cells, "what", monotone=True)
    assert (found.l1, found.linf) == (l1, linf)
    assert found.monotone is (neighbours is COME), "who is replaced takes from one cell and gives to another"
    assert not sensitivity_of(stable, neighbours, keys, size, width, cells, "what").monotone
    assert found.why.startswith(f"what; {rows} rows a person, one person" if rows > 1 else "what; one person")


@pytest.mark.parametrize(("cells", "l1"), [(5, 20), (4, 20), (3, 15), (1, 5), (0, 5)])
def test_few_cells_limit_l1(cells, l1):
    found = at_most(Sensitivity(20, 5, "why"), cells)
    assert (found.l1, found.linf) == (l1, 5)
    assert found.why == ("why" if l1 == 20 else f"why; no more than linf in each of {cells} cells")


@pytest.mark.parametrize(
    ("of_sets", "total", "l1", "linf", "squares", "times"),
    [
        ([(4, 2), (4, 1)], None, 8, 2, 12, 1),
        ([(4, 2), (4, 1), (2, 2)], 2, 12, 4, 28, 2),  # the total moves half as far: it is measured twice
        ([(2, 2), (4, 1), (4, 2)], 0, 12, 4, 28, 2),
        ([(4, 2), (4, 1), (2, 2)], None, 10, 2, 16, 1),
        ([(4, 2), (8, 2), (3, 3)], 2, 18, 6, 60, 2),  # by the set that moves most, and whole times
        ([(4, 2), (5, 3)], 1, 9, 3, 23, 1),
        ([(4, 2), (4, 4)], 1, 8, 4, 24, 1),
    ],
)
def test_l1_adds_up_over_grouping_sets(of_sets, total, l1, linf, squares, times):
    found = over_sets([Sensitivity(*each, f"of {place}") for place, each in enumerate(of_sets)], total)
    assert (found.l1, found.linf, found.l2_squared, found.total_times) == (l1, linf, squares, times)
    first = "of 1" if total == 0 else "of 0"
    assert found.why.startswith(f"{first}; once in each of {len(of_sets)} sets of keys")
    assert ("the total 2 times" in found.why) is (times == 2)


@pytest.mark.parametrize(
    ("groups", "rows", "cells", "most", "why"),
    [
        (1, 1, None, 1, "at most 1 row per unit"),
        (3, 2, None, 2, "at most 2 rows per unit"),
        (3, 2, 5, 6, "at most 3 keys per unit, at most 2 rows in each"),
        (3, 2, 2, 4, "at most 2 keys per unit, at most 2 rows in each"),
        (3, 1, 1, 1, "at most 1 key per unit, at most 1 row in each"),
        (3, 1, 0, 1, "at most 1 key per unit, at most 1 row in each"),
    ],
)
def test_limits_bound_one_unit(groups, rows, cells, most, why):
    found = bounded(Limits(groups, rows), cells)
    assert (found.rows, found.why, found.shares(["k"]), found.steady) == (most, why, rows, False)
