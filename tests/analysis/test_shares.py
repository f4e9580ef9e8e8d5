"""How many of one person's rows may agree in some columns, relation by relation, of rows of which that is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from privsql.algebra.declared import Claim, ListColumn
from privsql.algebra.expressions import Call, Column, Expression, Literal
from privsql.algebra.relations import (
    AtMost,
    Field,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    UnionAll,
    Unnest,
    Unpivot,
)
from privsql.algebra.unit_rows.units import Unit
from privsql.analysis.stability import Stability, _filtered, _project, _union, _unnest, _unpivot, stability
from privsql.types import BIGINT, BOOLEAN, DOUBLE, INTERVAL, Kind

ROWS = Scan("t", (Field("k", BIGINT), Field("a", BIGINT), Field("b", BIGINT)), True, {})


def below(columns: list[str]) -> int:
    assert {"k", "a", "b"} >= set(columns), "it has no others"
    return 1 if "k" in columns else 3


BELOW = Stability(4, True, "", below, {"k": "one", "a": 5, "name": 6})


@pytest.mark.parametrize(
    ("columns", "most"),
    [
        ([], 6),
        (["k"], 2),
        (["name"], 3),
        (["k", "name"], 1),
        (["value"], 6),
        (["k", "value"], 2),
        (["k", "value", "name"], 1),
    ],
)
def test_unpivot_multiplies_rows(columns, most):
    """Of two columns a row each: those with one label are as many as there were rows, those with any label twice as many."""
    found = _unpivot(Unpivot(ROWS, (("a", "A"), ("b", "B")), "name", Field("value", BIGINT)), BELOW)
    assert found.shares(columns) == most
    assert (found.rows, found.steady) == (8, True)
    assert found.labels == {"k": "one"}, "what a column was before says nothing of what is called like it now"


@pytest.mark.parametrize(
    ("columns", "most"),
    [([], 15), (["k"], 5), (["tag"], 3), (["k", "tag"], 1), (["a", "tag"], 3), (["a"], 15)],
)
def test_unnest_multiplies_rows(columns, most):
    """A row becomes one for each of five declared values, and one of them has any one value."""
    tags = ListColumn("tags", BIGINT, None, Claim(values=(1, 2, 3, 4, 5)))
    found = _unnest(Unnest(ROWS, tags, Field("tag", BIGINT)), BELOW)
    assert found.shares(columns) == most
    assert (found.rows, found.steady, found.adds) == (20, False, True)
    assert found.labels == BELOW.labels
    assert _unnest(Unnest(ROWS, tags, Field("tag", BIGINT)), replace(BELOW, rows=None)).rows is None


# -- of eight rows -------------------------------------------------------------------------------------------------
K, A, B = (Column(name, BIGINT) for name in "kab")


def halved(columns: Sequence[str]) -> int:
    """Of eight rows of one person so many agree in some columns: each of them halves their number."""
    assert {"k", "a", "b"} >= {*columns}, "it has no others"
    return 8 // 2 ** len({*columns})


EIGHT = Stability(8, True, "eight", halved, {"k": 1}, adds=False)


def call(function: str, *args: Expression | int) -> Call:
    return Call(
        function, tuple(Literal(each, BIGINT) if isinstance(each, int) else each for each in args), BOOLEAN
    )


@pytest.mark.parametrize(
    ("predicate", "rows", "by_b"),
    [
        (call("=", K, 1), 4, 2),
        (call("=", 1, K), 4, 2),
        (call("in", K, 1), 4, 2),
        (call("in", K, 1, 2), 8, 4),
        (call("in", K, 1, 2, 3), 8, 4),
        (call("and", call("=", K, 1), call("=", A, 1)), 2, 1),
        (call("and", call("in", K, 1, 2, 3), call("=", A, 1)), 4, 2),
        (call("and", call("=", B, 1), call("=", A, 1)), 2, 2),
        (call("or", call("=", K, 1), call("=", A, 1)), 8, 4),
        (call("<", K, 1), 8, 4),
        (call("in", K, 1, A), 8, 4),
        (call("=", K, A), 8, 4),
    ],
)
def test_a_filter_by_constants_bounds_rows(predicate, rows, by_b):
    """Of a column that is one of n constants n times those that agree in it, and never more than there were."""
    found = _filtered(Filter(ROWS, predicate), EIGHT)
    assert (found.rows, found.shares([]), found.shares(["b"])) == (rows, rows, by_b)
    assert ("no more of one person's can be kept" in found.why) is (rows < 8)


def test_a_filter_does_not_bound_an_unbounded_number_of_rows():
    found = _filtered(Filter(ROWS, call("=", K, 1)), replace(EIGHT, rows=None))
    assert found.rows is None
    assert found.shares(["b"]) == 2


def test_shares_follow_renamed_columns():
    """A computed column distinguishes nothing and a constant is a label, but NaN, NULL and intervals are no
    labels.
    """
    columns = (
        ("b", K), ("c", A), ("sum", call("+", A, B)), ("one", Literal(1, BIGINT)), ("none", Literal(None, BIGINT)),
        ("nan", Literal(math.nan, DOUBLE)), ("month", Literal("1 month", INTERVAL)),
    )  # fmt: skip
    found = _project(Project(ROWS, columns), EIGHT)
    assert (found.rows, found.steady, found.adds) == (8, True, False)
    assert found.labels == {"b": 1, "one": 1}
    assert [found.shares(each) for each in ([], ["b"], ["b", "c"], ["sum"], ["c", "sum", "one"])] == [
        8,
        4,
        2,
        8,
        4,
    ]


# -- unions --------------------------------------------------------------------------------------------------------
def side(name: str, rows: int | None, label: int | None) -> tuple[Relation, Stability]:
    """Rows that agree in `tag`, if there is a label."""
    fields = (Field(f"{name}_tag", BIGINT), Field(f"{name}_k", BIGINT))

    def shares(columns: Sequence[str]) -> int:
        assert {each.name for each in fields} >= {*columns}, "the names of this side"
        return 1 if f"{name}_k" in columns else rows or 0

    labels = {} if label is None else {f"{name}_tag": label}
    return Scan(name, fields, True, {}), Stability(rows, True, "", shares, labels)


@pytest.mark.parametrize(
    ("sides", "rows", "by_tag", "by_k", "by_both"),
    [
        ([(2, 1), (3, 2)], 5, 3, 2, 1),  # with different tags they never meet
        ([(2, 1), (3, 1)], 5, 5, 2, 2),
        ([(2, 1), (3, None)], 5, 5, 2, 2),  # what has no tag may have any
        ([(2, 1), (3, 2), (4, 1)], 9, 6, 3, 2),
        ([(2, 1), (3, 2), (4, None)], 9, 7, 3, 2),
        ([(None, 1), (3, 2)], None, 3, 2, 1),
    ],
)
def test_shares_add_up_over_union_all(sides, rows, by_tag, by_k, by_both):
    made = [side("abc"[place], *each) for place, each in enumerate(sides)]
    relation = UnionAll(tuple(each for each, _ in made))
    found = _union(relation, [each for _, each in made])
    assert found.rows == rows
    assert [found.shares(each) for each in (["a_tag"], ["a_k"], ["a_tag", "a_k"])] == [by_tag, by_k, by_both]
    assert found.labels == ({"a_tag": 1} if {label for _, label in sides} == {1} else {})
    assert found.steady
    assert found.adds
    for change in ({"steady": False}, {"adds": False}):
        other = _union(relation, [*(each for _, each in made[:-1]), replace(made[-1][1], **change)])
        assert (other.steady, other.adds) == ("steady" not in change, "adds" not in change)


# -- beside public rows --------------------------------------------------------------------------------------------
PUBLIC = Scan("p", (Field("key", BIGINT), Field("c", BIGINT)), False, {})
KEY, C = (each.column for each in PUBLIC.fields)


class Looked:
    """A public table of six rows: three with a key, of which two have the same c; no row has other values of c."""

    def __init__(self, **most: int) -> None:
        self.most = {"": 6, "c": 5, "key": 3, "c key": 2} | most

    def most_alike(self, relation: Relation, columns: Sequence[str]) -> int:
        assert relation == PUBLIC
        return self.most[" ".join(columns)]


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize(
    ("on", "times", "by_c"), [(call("=", K, KEY), 3, 2), (call("<", K, KEY), 6, 5), (call("=", C, 3), 6, 5)]
)
def test_shares_of_joins_with_public_rows(on, times, by_c, flipped):
    """Each meets as many as agree in what it is joined on; of pairs that agree in a public column fewer."""
    one = Scan("t", ROWS.fields, True, {})  # each row is one person's
    join = Join(PUBLIC, one, "inner", on) if flipped else Join(one, PUBLIC, "inner", on)
    found = stability(join, Looked())
    assert (found.rows, found.shares([]), found.shares(["k"])) == (times, times, times)
    assert found.shares(["c"]) == found.shares(["c", "a"]) == by_c
    assert not found.steady
    assert found.adds


def test_a_left_join_keeps_unmatched_rows():
    one = Scan("t", ROWS.fields, True, {})
    for kind, rows in (("left", 1), ("inner", 0)):
        found = stability(Join(one, PUBLIC, kind, call("=", K, KEY)), Looked(key=0, **{"c key": 0}))
        assert (found.rows, found.shares(["c"])) == (rows, rows)


def test_a_public_join_does_not_bound_an_unbounded_number_of_rows():
    unit = Unit(("k",), False, ((Kind.INTEGER, 0),))
    many = Scan("t", ROWS.fields, True, {name: Claim() for name in "kab"}, unit=unit)
    assert stability(Join(many, PUBLIC, "inner", call("=", K, KEY)), Looked()).rows is None


# -- rows of other people ------------------------------------------------------------------------------------------
OTHER = Scan("o", (Field("x", BIGINT), Field("y", BIGINT)), True, {})


@pytest.mark.parametrize(
    ("kind", "left", "right", "rows"),
    [
        ("inner", None, None, 2),  # one of the left, and one of the right, each meets one
        ("left", None, None, 3),  # a row of the right takes pairs away, and leaves padded ones
        ("inner", 5, None, 2 * 1 + 1 * 5),  # one that comes takes the place of another: two rows
        ("inner", None, 7, 1 * 7 + 2 * 1),
        ("inner", 5, 7, 2 * 7 + 2 * 5),
        ("left", 5, 7, 2 * 7 + 2 * 5 * 2),
    ],
)
def test_joins_of_different_people_add_their_shares(kind, left, right, rows):
    one = ROWS if left is None else AtMost(ROWS, "k", left)
    other = OTHER if right is None else AtMost(OTHER, "x", right)
    found = stability(Join(one, other, kind, call("=", K, Column("x", BIGINT))), Looked())
    assert (found.rows, found.shares(["k"]), found.steady) == (rows, rows, False)
    assert found.adds is (kind == "inner" and left is None and right is None)
