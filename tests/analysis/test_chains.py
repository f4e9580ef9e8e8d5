"""Joins of people with public candidates, by hand: which are chains, and to which side each column
belongs.
"""

from __future__ import annotations

import itertools

import pytest

from privsql.algebra.expressions import Call, Column, Expression, Literal, columns_of
from privsql.algebra.relations import Field, Filter, Join, Project, Relation, Scan, UnionAll
from privsql.analysis.chains import _chain
from privsql.analysis.public_rows import Look
from privsql.types import BIGINT, BOOLEAN

PRICE, BID, ONE = Column("price", BIGINT), Column("bid", BIGINT), Literal(1, BIGINT)
BOTH = Call("+", (PRICE, BID), BIGINT)
TERMS = (PRICE, BID, BOTH, Call("+", (PRICE, ONE), BIGINT), Call("+", (ONE, BID), BIGINT))
PRICES = Scan("prices", (Field("price", BIGINT),), False, {})
BIDS = Scan("bids", (Field("bid", BIGINT),), True, {})
OWN, THEIRS = frozenset({"price"}), frozenset({"bid"})


class NoLook(Look):
    """Nothing public need be read for this."""


def compared(how: str, left: Expression, right: Expression) -> Call:
    return Call(how, (left, right), BOOLEAN)


def chain(relation: Relation):
    return _chain(relation, NoLook())


MEETS = Join(PRICES, BIDS, "inner", compared("<=", PRICE, BID))


@pytest.mark.parametrize(("left", "right"), [(PRICES, BIDS), (BIDS, PRICES)])
def test_a_join_by_one_comparison_is_a_chain(left, right):
    """Where one side of the comparison is the candidates' and the other the person's, whichever way round."""
    for how, one, other in itertools.product(("<", "<=", ">", ">="), TERMS, TERMS):
        names = {frozenset(column.name for column in columns_of(each)) for each in (one, other)}
        expected = (OWN, THEIRS) if names == {OWN, THEIRS} else None
        assert chain(Join(left, right, "inner", compared(how, one, other))) == expected, (how, one, other)
    assert chain(Join(left, right, "inner", compared("<>", PRICE, BID))) is None
    assert chain(Join(left, right, "left", compared("<", PRICE, BID))) is None
    assert chain(Join(left, right, "inner", Call("and", (MEETS.on, MEETS.on), BOOLEAN))) is None


def test_one_private_row_is_joined_with_public_rows():
    meets = compared("<=", PRICE, BID)
    assert chain(Join(PRICES, UnionAll((BIDS, BIDS)), "inner", meets)) is None, "a person has two rows"
    assert chain(Join(PRICES, Scan("bids", BIDS.fields, False, {}), "inner", meets)) is None, "nobody's rows"
    assert chain(Join(Scan("prices", PRICES.fields, True, {}), BIDS, "inner", meets)) is None, (
        "candidates are people's, too"
    )


def test_a_condition_reads_one_side_only():
    """That WHERE is moved into the join where it is about both is decided elsewhere; here it would be no chain."""
    for left, right in itertools.product(TERMS, (ONE, *TERMS)):
        condition = compared("<", left, right)
        names = frozenset(column.name for column in columns_of(condition))
        expected = (OWN, THEIRS) if len(names) == 1 else None
        assert chain(Filter(MEETS, condition)) == expected, condition
        assert chain(Filter(PRICES, condition)) is None
    assert chain(Filter(MEETS, compared("<", ONE, ONE))) == (OWN, THEIRS)


def test_output_columns_belong_to_one_side():
    columns = (("p", PRICE), ("b", BID), ("mixed", BOTH), ("one", ONE))
    assert chain(Project(MEETS, columns)) == ({"p", "one"}, {"b", "one"})
    assert chain(Project(PRICES, (("p", PRICE),))) is None
