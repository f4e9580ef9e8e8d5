"""Pairs of conditions on one number, all of them: whether they exclude or imply each other, against the points that meet them."""

from __future__ import annotations

import itertools
import math
import operator

import duckdb
import pytest

import privsql
from privsql.algebra.expressions import Call, Column, Literal, conjuncts
from privsql.algebra.relations import Filter, walk
from privsql.analysis.disjoint import are_disjoint, both, constraint
from privsql.analysis.implied import exhaust, implies
from privsql.sql.bind.catalogue import Catalogue
from privsql.sql.read import read
from privsql.types import BOOLEAN, DOUBLE

X, B = Column("x", DOUBLE), Column("b", BOOLEAN)
HOW = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}
POINTS = [
    -math.inf,
    -1.0,
    0.0,
    0.5,
    1.0,
    1.5,
    2.0,
    3.0,
    5.0,
    math.inf,
    10**400,
]  # the last one is NaN, DuckDB's greatest number
NUMBERS = (0.0, 1.0, 2.0)
LISTS = [(0.0,), (0.0, 2.0), (1.0, 2.0), (5.0,)]


def compared(how: str, number: float, flipped: bool = False) -> Call:
    args = (X, Literal(number, DOUBLE))
    return Call(how, args[::-1] if flipped else args, BOOLEAN)


def listed(values: tuple[float, ...]) -> Call:
    return Call("in", (X, *(Literal(each, DOUBLE) for each in values)), BOOLEAN)


TESTS = [
    *(
        (compared(how, number), {p for p in POINTS if HOW[how](p, number)})
        for how in HOW
        for number in NUMBERS
    ),
    *((compared(how, 1.0, True), {p for p in POINTS if HOW[how](1.0, p)}) for how in HOW),
    *((listed(values), set(values)) for values in LISTS),
]
PAIRS = list(itertools.product(TESTS, TESTS))


def test_exclusive_conditions_are_recognized():
    for (one, meet), (other, too) in PAIRS:
        assert are_disjoint(one, other) == (not meet & too), (one, other)


def test_implied_conditions_are_recognized():
    """But for a list that a range is within, of which no number can be said."""
    for (one, meet), (other, too) in PAIRS:
        holds = meet <= too and (
            one == other or one.function in ("in", "=") or other.function not in ("in", "=")
        )
        assert implies(one, other) == holds, (one, other)


def test_further_conjuncts_do_not_matter():
    for (one, meet), (other, too) in PAIRS:
        assert are_disjoint(both(B, one), both(other, Call("is_null", (X,), BOOLEAN))), (
            "x has a value, and has none"
        )
        assert are_disjoint(both(one, B), both(B, other)) == (not meet & too)
        assert implies(both(one, B), other) == implies(one, other)
        assert not implies(one, both(other, B))
        assert implies(both(B, one), both(one, B))


def test_no_condition_is_true_of_every_row():
    one = compared("<", 1.0)
    assert both(None, None) is None
    assert both(one, None) is one
    assert both(None, one) is one
    assert conjuncts(both(both(one, B), one)) == [one, B, one]
    assert implies(None, None)
    assert implies(one, None)
    assert not implies(None, one)
    assert not are_disjoint(one, None)
    assert not are_disjoint(None, one)


@pytest.mark.parametrize("value", [None, math.nan])
def test_constraints_need_comparable_constants(value):
    """NaN is equal to NaN in DuckDB and not in Python, and NULL to nothing: no conclusion is drawn."""
    for how in HOW:
        assert constraint(compared(how, value)) is None
        assert constraint(compared(how, value, True)) is None
    assert constraint(Call("in", (X, X), BOOLEAN)) is None
    assert constraint(Call("<", (Literal(1.0, DOUBLE), Literal(2.0, DOUBLE)), BOOLEAN)) is None
    assert constraint(Call("<", (X, X), BOOLEAN)) is None


def test_a_list_with_nan_gives_no_constraint_and_null_in_a_list_is_ignored():
    assert constraint(listed((1.0, math.nan))) is None
    assert constraint(Call("in", (X, Literal(1.0, DOUBLE), Literal(None, DOUBLE)), BOOLEAN))[-1] == {1.0}


# -- as they are read ----------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def catalogue():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (i INTEGER, s VARCHAR, b BOOLEAN NOT NULL, c BOOLEAN)")
    session = privsql.connect(connection)
    return Catalogue(session._pipeline.schema, session._pipeline.policy)


def condition(catalogue: Catalogue, text: str):
    relation = read(f"SELECT COUNT(*) FROM t WHERE {text}", catalogue).relation
    return next(each for each in walk(relation) if isinstance(each, Filter)).predicate


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("b", "NOT b", True),
        ("c", "c IS NULL", True),
        ("NOT c", "c IS NULL", True),
        ("c IS FALSE", "c", True),
        ("c IS NOT TRUE", "c IS TRUE", True),
        ("c IS NOT TRUE", "NOT c", False),
        ("i IS NULL", "i = 3", True),
        ("i IS NULL", "s = 'a'", False),
        ("i IS NULL", "i IS NOT NULL", True),
        ("i > 3", "NOT (i > 3)", True),
        ("i > 3", "(i > 3) IS NULL", True),
        ("s < 'b'", "s >= 'b'", True),
        ("s < 'b'", "s > 'a'", False),
        ("i + 1 > 3", "i + 1 < 3", True),
        ("i + 1 > 3", "i < 2", False),
        ("b", "c", False),
    ],
)
def test_logical_operators_beside_comparisons(catalogue, one, other, apart):
    first, second = condition(catalogue, one), condition(catalogue, other)
    assert are_disjoint(first, second) is apart
    assert are_disjoint(second, first) is apart


@pytest.mark.parametrize(
    ("parts", "whole", "known", "all_of_it"),
    [
        (["i > 3", "i <= 3"], None, True, True),
        (["i > 3", "i <= 3"], None, False, False),  # where i is NULL, neither holds
        (["i > 3", "NOT (i > 3)"], None, True, True),
        (["i > 3", "NOT (i > 3)", "(i > 3) IS NULL"], None, False, True),
        (["i > 3", "NOT (i > 3)", "i IS NULL"], None, False, False),
        (["i > 3", "i < 3"], None, True, False),
        (["i = 3", "i <> 3"], None, True, True),
        (["i > 3"], None, True, False),
        (["i > 3", "i <= 3", "i > 5"], None, True, False),
        (["b AND i > 3", "b AND i <= 3"], "b", True, True),
        (["b AND i > 3", "i <= 3"], "b", True, True),  # of the rows that meet b
        (["b AND i > 3", "b AND i <= 3"], None, True, False),
        (["b AND i > 3", "c AND i <= 3"], "b", True, False),
        (["b", "b AND i <= 3"], "b", True, False),
    ],
)
def test_conditions_that_cover_every_row_are_recognized(catalogue, parts, whole, known, all_of_it):
    read_parts = [condition(catalogue, each) for each in parts]
    read_whole = None if whole is None else condition(catalogue, whole)
    assert exhaust(read_parts, read_whole, lambda _: known) is all_of_it
    assert exhaust(read_parts[::-1], read_whole, lambda _: known) is all_of_it
