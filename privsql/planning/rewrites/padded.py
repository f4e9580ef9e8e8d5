"""A Task about a LEFT JOIN of public rows with private ones goes in; one that can be bounded comes out.

Such a join keeps each public row that no private row meets, padded with NULL: a row that is nobody's, and
that anybody's row takes away. All that is private about padded rows is which of them are there. So the
candidates, which are all public rows, padded, are read while planning:

no candidate passes WHERE         the join is an inner join
all aggregates skip candidates    the numbers are those of the inner join, the keys those of the padded one
COUNT(*) of one public row a key  max(1, the count of the inner join): post-processing
anything else                     a row may take away as many padded rows as it meets (analysis/stability.py):
                                  that has a bound only where the rows of one person do
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from privsql.algebra import build, literals
from privsql.algebra.expressions import (
    OF_TWO,
    Aggregate,
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    substitute,
)
from privsql.algebra.outer_joins import pads_public_rows, without_padded
from privsql.algebra.relations import (
    BoundQuery,
    Choose,
    Field,
    Filter,
    Group,
    Join,
    Project,
    Relation,
    Release,
    Semi,
    below,
    is_public,
    rebuilt,
    walk,
)
from privsql.algebra.unit_rows.bounded import is_bounded
from privsql.analysis.public_rows import Look
from privsql.errors import Place, Refused
from privsql.planning.draft import Task
from privsql.types import BOOLEAN, NUMBERS

_SKIPPED = "public rows without a match add nothing to these numbers, which are those of the inner join"
_AT_LEAST_ONE = "a public row without a match is one row: COUNT(*) is at least 1"


def settled(task: Task) -> Task:
    """The task, with padded rows only where they count; refuses those that have no bound."""
    release = task.query.release
    joins = [] if release is None else [each for each in walk(release.input) if pads_public_rows(each)]
    if release is None or not joins:
        return task
    place = next((each.place for each in joins if isinstance(each, Join)), None)
    found = _followed(release.input, place)
    if found.candidates is None or _is_empty(found.candidates, task.look):
        return replace(task, query=_with_release(task.query, replace(release, input=found.matched)))
    counts = [each for each in _aggregates(release) if not _skips(each, found.candidates, task.look)]
    if not counts:
        query = _with_release(task.query, replace(release, input=found.matched))
        return replace(task, query=query, keyed=release.input, notes=(_SKIPPED,))
    if (
        isinstance(release, Release)
        and not release.sets
        and all(_counts_rows(each) for each in counts)
        and _is_alone(release, found.candidates, task.look)
    ):
        query = _at_least_one(task.query, release, found.matched)
        return replace(task, query=query, keyed=release.input, notes=(_AT_LEAST_ONE,))
    if isinstance(release, Choose) or not is_bounded(release.input) or _is_full(release.input):
        raise _unbounded(place)
    return task


def _aggregates(release: Release | Choose) -> list[Aggregate]:
    return [release.score] if isinstance(release, Choose) else [each for _, each in release.aggregates]


def _with_release(query: BoundQuery, new: Release | Choose, above: Relation | None = None) -> BoundQuery:
    """The query with another release, or with something above it."""
    old = query.release
    shown = above or new
    relation = rebuilt(query.relation, lambda each: shown if each == old else each)
    return BoundQuery(relation, query.names, new)


def _counts_rows(aggregate: Aggregate) -> bool:
    return aggregate.function == "count" and aggregate.argument is None and aggregate.condition is None


def _at_least_one(query: BoundQuery, release: Release, matched: Relation) -> BoundQuery:
    """COUNT(*) as max(1, matches)."""
    new = replace(release, input=matched)
    kept: list[tuple[str, Expression]] = [(key.name, new.fields[i].column) for i, key in enumerate(new.keys)]
    for name, each in release.aggregates:
        column = Column(name, each.type)
        one = build.convert(literals.whole(1), each.type)
        kept.append((name, Call("greatest", (column, one), each.type) if _counts_rows(each) else column))
    return _with_release(query, new, Project(new, tuple(kept)))


# -- the candidates ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Followed:
    """A relation without padded rows, and all rows that could be padded there; None: padded rows never get so
    far.
    """

    matched: Relation
    candidates: Relation | None


def _followed(relation: Relation, place: Place | None) -> _Followed:
    """Follow the padded rows of the joins below, step by step, as long as each step is row by row."""
    if not any(pads_public_rows(each) for each in walk(relation)):
        return _Followed(relation, None)
    match relation:
        case Join() if pads_public_rows(relation):
            if any(pads_public_rows(each) for side in below(relation) for each in walk(side)):
                raise _unbounded(place)
            shown = tuple((each.name, each.column) for each in relation.left.fields)
            candidates = Project(relation.left, (*shown, *_absent(relation.right.fields)))
            return _Followed(without_padded(relation), candidates)
        case Project() | Filter():
            inner = _followed(relation.input, place)
            return _Followed(
                replace(relation, input=inner.matched),
                None if inner.candidates is None else replace(relation, input=inner.candidates),
            )
        case Semi():
            return _of_semi(relation, place)
        case Join():
            return _of_join(relation, place)
        case Group(per_unit=True):  # rows without a unit leave first
            return _Followed(rebuilt(relation, without_padded), None)
        case _:
            raise _unbounded(place)


def _of_semi(semi: Semi, place: Place | None) -> _Followed:
    inner = _followed(semi.input, place)
    kept = replace(semi, input=inner.matched, other=rebuilt(semi.other, without_padded))
    if inner.candidates is None:
        return _Followed(kept, None)
    if semi.same_unit:  # a padded row has no unit, and so no partner
        return _Followed(kept, inner.candidates if semi.anti else None)
    return _Followed(kept, replace(semi, input=inner.candidates))


def _of_join(join: Join, place: Place | None) -> _Followed:
    """A join above: rows without a unit meet public rows alone."""
    left, right = _followed(join.left, place), _followed(join.right, place)
    kept = replace(join, left=left.matched, right=right.matched)
    if join.same_unit:
        if left.candidates is None or join.kind == "inner":
            return _Followed(kept, None)
        shown = tuple((each.name, each.column) for each in join.left.fields)
        return _Followed(kept, Project(left.candidates, (*shown, *_absent(join.right.fields))))
    if left.candidates is not None and is_public(join.right):
        return _Followed(kept, replace(join, left=left.candidates))
    if right.candidates is not None and is_public(join.left) and join.kind == "inner":
        return _Followed(kept, replace(join, right=right.candidates))
    raise _unbounded(place)


def _absent(fields: Sequence[Field]) -> tuple[tuple[str, Expression], ...]:
    return tuple((each.name, Literal(None, each.type)) for each in fields)


# -- what they add -------------------------------------------------------------------------------------------
def _is_empty(rows: Relation, look: Look) -> bool:
    return look.most_alike(rows, ()) == 0


def _skips(aggregate: Aggregate, candidates: Relation, look: Look) -> bool:
    """Whether no candidate adds anything to an aggregate."""
    rows = candidates if aggregate.condition is None else Filter(candidates, aggregate.condition)
    added: Expression
    match aggregate.function, aggregate.argument, aggregate.by:
        case _, None, _:
            return _is_empty(rows, look)
        case "sum", argument, None if argument.type.kind in NUMBERS:
            added = build.compare("<>", argument, literals.whole(0))
        case function, argument, by if function in OF_TWO and by is not None:
            added = Call("and", (_is_there(argument), _is_there(by)), BOOLEAN)
        case _, argument, _:
            if isinstance(argument, Call) and argument.function == "row":
                return False  # of NULLs, it is a value all the same
            added = _is_there(argument)
    return _is_empty(Filter(rows, added), look)


def _is_there(expression: Expression) -> Expression:
    return Call("not", (Call("is_null", (expression,), BOOLEAN),), BOOLEAN)


def _is_alone(release: Release, candidates: Relation, look: Look) -> bool:
    """Whether each key is of one public row, and all rows of the join with that row are of its key."""
    keys: Sequence[Expression] = [key.expression for key in release.keys]
    relation = release.input
    while not pads_public_rows(relation):
        match relation:
            case Project():
                keys = [substitute(each, dict(relation.columns)) for each in keys]
                relation = relation.input
            case Join(kind="left", same_unit=True):
                relation = relation.left
            case _:
                return False
    assert isinstance(relation, Join)
    public = {each.name for each in relation.left.fields}
    if relation.kind != "left" or not all(c.name in public for each in keys for c in columns_of(each)):
        return False
    named = tuple((f"key{place}", key.expression) for place, key in enumerate(release.keys))
    named_rows = Project(candidates, named) if named else candidates
    return look.most_alike(named_rows, [name for name, _ in named]) <= 1


def _is_full(relation: Relation) -> bool:
    return any(isinstance(each, Join) and each.kind == "full" for each in walk(relation))


def _unbounded(place: Place | None) -> Refused:
    return Refused(
        "refused-join",
        "Public rows that meet no private row count here, and nothing bounds how many of them one person can "
        "take away.",
        "Count a column of the private table, as in COUNT(o.id), to which they add nothing. Or count for "
        "each row of the public table: GROUP BY a column in which its rows differ. Or write JOIN.",
        place,
    )
