"""GROUP BY goes in; its grouping sets come out: ROLLUP, CUBE, GROUPING SETS; and GROUPING(), which tells them
apart.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from sqlglot import exp

from privsql.algebra import build, literals
from privsql.algebra.expressions import Column, Expression, Literal
from privsql.algebra.relations import SET_COLUMN
from privsql.errors import Refused
from privsql.sql.parse.places import place_of
from privsql.types import BIGINT, integer

Terms = tuple[exp.Expr, ...]

MOST_SETS = 64  # every set gets a share of epsilon; with more sets the noise would drown everything
_SEVERAL = (exp.Rollup, exp.Cube, exp.GroupingSets)


def grouping_sets(group: exp.Expr) -> list[Terms]:
    """All grouping sets: the product of the elements of GROUP BY."""
    behind = [each for name in ("rollup", "cube", "grouping_sets") for each in group.args.get(name) or []]
    several = any(isinstance(each, _SEVERAL) for each in group.expressions)
    if not behind and not several:
        return [tuple(group.expressions)]
    factors = [_factor(each) for each in group.expressions]
    if behind:  # GROUP BY a, b WITH ROLLUP
        if len(behind) > 1 or behind[0].expressions or several:
            way_out = "Write GROUP BY GROUPING SETS ((a, b), (a), ()), ROLLUP (a, b) or CUBE (a, b)."
            what = "Only one WITH ROLLUP or WITH CUBE may follow the keys."
            raise Refused("refused-grouping-sets", what, way_out, place_of(group))
        factors = [_of(type(behind[0]), group.expressions)]
    count = math.prod(len(each) for each in factors)
    if count > MOST_SETS:
        raise _too_many(f"{count:,} sets of keys", group)
    return [tuple(itertools.chain.from_iterable(each)) for each in itertools.product(*factors)]


def _factor(node: exp.Expr) -> list[Terms]:
    match node:
        case exp.Rollup() | exp.Cube():
            return _of(type(node), node.expressions)
        case exp.GroupingSets():
            return [each for inner in node.expressions for each in _factor(inner)]
        case _:
            return [_named(node)]


def _of(kind: type[exp.Expr], nodes: Sequence[exp.Expr]) -> list[Terms]:
    named = [_named(each) for each in nodes]
    if kind is exp.Rollup:
        return [tuple(itertools.chain.from_iterable(named[:length])) for length in range(len(named), -1, -1)]
    if 2 ** len(named) > MOST_SETS:
        raise _too_many(f"CUBE of {len(named)} keys", nodes[0])
    kept = itertools.product((True, False), repeat=len(named))
    return [tuple(itertools.chain.from_iterable(itertools.compress(named, each))) for each in kept]


def _named(node: exp.Expr) -> Terms:
    """One key, or several in parentheses."""
    match node:
        case exp.Tuple():
            return tuple(node.expressions)
        case exp.Paren():
            return (node.this,)
        case _:
            return (node,)


def _too_many(what: str, node: exp.Expr) -> Refused:
    return Refused(
        "refused-grouping-sets",
        f"Too many sets of keys: {what}. At most {MOST_SETS} are supported, each for a share of epsilon.",
        "Name those that you need: GROUPING SETS ((a, b), (a), ()).",
        place_of(node),
    )


# -- GROUPING() ----------------------------------------------------------------------------------------------
def grouping(places: Sequence[int], keys: int) -> Expression:
    """GROUPING(a, b): one bit per key, the last one being the least significant. It is public: it tells which
    set a row belongs to.
    """
    which = Column(SET_COLUMN, integer(0, 2**keys - 1))
    if list(places) == list(range(keys)):
        return which
    result: Expression = Literal(0, BIGINT)
    for rank, place in enumerate(reversed(places)):
        bit: Expression = (
            which
            if place == keys - 1
            else build.arithmetic("//", which, literals.whole(2 ** (keys - 1 - place)))
        )
        bit = build.arithmetic("%", bit, literals.whole(2))
        result = (
            build.arithmetic("+", build.arithmetic("*", bit, literals.whole(2**rank)), result)
            if rank
            else bit
        )
    return result
