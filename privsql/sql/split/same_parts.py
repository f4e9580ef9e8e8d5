"""Two parts that read noisy values go in; whether they are one release, whatever the values are, comes out.

Parts may be written differently, with other names for their tables. They are one if they are bound to equal
relations, once with one value for each given and once with another: then no constant of the text can have
been taken for a noisy value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from privsql.algebra.relations import Group, Relation, Release, rebuilt
from privsql.errors import PrivsqlError
from privsql.sql.split.stage_values import Rows, StageValue, example, with_values

_OTHER = {"DATE": "1999-12-{:02}", "TIMESTAMP": "1999-12-{:02} 11:59:59", "TIME": "11:59:{:02}"}


def are_one(
    one: exp.Expr, other: exp.Expr, needs: Sequence[StageValue], bind: Callable[[exp.Expr], Relation]
) -> bool:
    """Whether two statements with the same needs make the same release for every value of these."""
    if any("BOOLEAN" in name for given in needs for _, name in given.columns):
        return False  # with two values only, two givens can look alike
    try:
        for number in range(2):
            values = {given.name: _values(given, place, number) for place, given in enumerate(needs)}
            first, second = (bind(with_values(each, needs, values)) for each in (one, other))
            if rebuilt(first, _without_places) != rebuilt(second, _without_places):
                return False
    except PrivsqlError:
        return False
    return True


def _without_places(relation: Relation) -> Relation:
    """Without what tells only how and where something was written."""
    match relation:
        case Group() | Release():
            keys = tuple(replace(each, text="", place=None) for each in relation.keys)
            aggregates = tuple((name, replace(each, place=None)) for name, each in relation.aggregates)
            return replace(relation, keys=keys, aggregates=aggregates)
        case _:
            return relation


def _values(given: StageValue, place: int, number: int) -> Rows:
    """A value that no other given has, and another one for each number."""
    sole = 2 * place + number + 1
    return tuple(
        tuple(
            _value(known, type_name, sole) for known, (_, type_name) in zip(row, given.columns, strict=True)
        )
        for row in example(given)
    )


def _value(known: str | None, type_name: str, sole: int) -> str:
    if type_name in _OTHER:
        return _OTHER[type_name].format(sole % 28 + 1)
    return str(1_000_003 + sole) if known == "1" else f"{known}{sole}"
