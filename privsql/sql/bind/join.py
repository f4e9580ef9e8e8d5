"""Two sources and their join go in; one source comes out, if the privacy unit of its rows is known.

Allowed are joins with public tables, joins of private rows within one unit, and joins of one row with one row
(or a declared number). In any other join one person could affect any number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from privsql.algebra import build
from privsql.algebra.expressions import Call, Column, Expression, columns_of, conjuncts, substitute
from privsql.algebra.owners import allowed_matches, equated, is_bounded, is_unique, owner, pairs_one_unit
from privsql.algebra.relations import (
    AtMost,
    Field,
    Filter,
    Join,
    Limit,
    Project,
    Relation,
    Semi,
    is_public,
    is_released,
    walk,
)
from privsql.algebra.reserved import unique_names
from privsql.errors import Place, Refused
from privsql.sql.bind.scalar.binder import ExpressionBinder
from privsql.sql.bind.scope import Source
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import WAYS_OUT, over_noisy_answer
from privsql.suggestions import DeclareUnit, InPolicy
from privsql.types import BOOLEAN, Kind


def bind_join(left: Source, right: Source, node: exp.Join) -> Source:
    """A JOIN as written: INNER, LEFT, RIGHT, CROSS, SEMI, ANTI; ON or USING."""
    place = place_of(node.this) or place_of(node)
    side, kind = str(node.args.get("side") or "").upper(), str(node.args.get("kind") or "").upper()
    form = kind if kind in ("SEMI", "ANTI", "CROSS") else side
    if (
        node.args.get("method")
        or side == "FULL"
        or kind not in ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI")
    ):
        shown = " ".join(filter(None, (str(node.args.get("method") or "").upper(), side, kind)))
        raise Refused(
            "refused-join",
            f"{shown} JOIN is not supported.",
            WAYS_OUT["Join"][1],
            place,
        )
    if is_released(left.relation) or is_released(right.relation):
        raise over_noisy_answer(
            "refused-join", "A join with", "Join the rows, or join answers in pandas.", place
        )
    right = apart(right, left.relation)
    both = _beside(left, right)
    using = [each.name for each in node.args.get("using") or []]
    on = _condition(node, both, left, right, using, place)
    if form in ("SEMI", "ANTI"):
        kept, other = decided(left.relation), decided(right.relation)
        return replace(left, relation=semi(kept, other, on, form == "ANTI", place))
    first, second = (right.relation, left.relation) if form == "RIGHT" else (left.relation, right.relation)
    # the join is decided once WHERE is known: FROM a, b WHERE a.id = b.id is a join on the unit, too
    relation = Join(first, second, "left" if form in ("LEFT", "RIGHT") else "inner", on, place=place)
    return _shown(both, relation, left, right, using, from_right=form == "RIGHT")


def with_conditions(relation: Relation, conditions: Sequence[Expression]) -> Relation:
    """The joins of a FROM with the conditions of its WHERE pushed down, and each join decided."""
    for each in conditions:
        relation = _placed(relation, each)
    return decided(relation)


def _placed(relation: Relation, condition: Expression) -> Relation:
    """Push a condition down as far as its meaning stays the same: to one side of a join, or into an inner
    join's condition.
    """
    names = {column.name for column in columns_of(condition)}
    match relation:
        case Join() if names and names <= {each.name for each in relation.left.fields}:
            return replace(relation, left=_placed(relation.left, condition))
        case Join(kind="inner") if names and names <= {each.name for each in relation.right.fields}:
            return replace(relation, right=_placed(relation.right, condition))
        case Join(kind="inner") if names:
            return replace(relation, on=_both(relation.on, condition))
        case Project() if isinstance(_below_projections(relation), Join):
            return replace(
                relation, input=_placed(relation.input, substitute(condition, dict(relation.columns)))
            )
        case Filter():
            return replace(relation, predicate=_both(relation.predicate, condition))
        case _:
            return Filter(relation, condition)


def _below_projections(relation: Relation) -> Relation:
    while isinstance(relation, Project):
        relation = relation.input
    return relation


def _both(one: Expression, other: Expression) -> Expression:
    if one == build.true():
        return other
    return Call("and", (*conjuncts(one), *conjuncts(other)), BOOLEAN)


def decided(relation: Relation) -> Relation:
    """The same relation with every join between private rows allowed (and marked if it is within one unit),
    or refused.
    """
    match relation:
        case Project() | Filter():
            return replace(relation, input=decided(relation.input))
        case Join():
            turned = _public_first(relation)
            return joined(decided(turned.left), decided(turned.right), turned.kind, turned.on, turned.place)
        case _:
            return relation


def _public_first(join: Join) -> Join:
    """Rewrite (people JOIN p) JOIN q as people JOIN (p JOIN q) if q is looked up from p: the join of p and q
    is public.
    """
    left = join.left
    if join.kind == "inner" and isinstance(left, Join) and left.kind == "inner" and is_public(join.right):
        inside = {each.name for each in (*left.right.fields, *join.right.fields)}
        if is_public(left.right) and {column.name for column in columns_of(join.on)} <= inside:
            public = Join(left.right, join.right, "inner", join.on, place=join.place)
            return _public_first(Join(left.left, public, "inner", left.on, place=left.place))
    return join


def joined(left: Relation, right: Relation, kind: str, on: Expression, place: Place | None) -> Join:
    """A join in which the unit of each row, and a bound on each unit's rows, is known; otherwise a
    refusal.
    """
    if is_public(left) or is_public(right):
        for public, other in ((left, right), (right, left)):
            if is_public(public) and not is_public(other):
                _refuse_limits(public, place)
        if kind == "left" and is_public(left) and not is_public(right):
            raise Refused(
                "refused-join",
                "LEFT JOIN from a public table is not supported: rows without a match would show who is "
                "missing.",
                "Use JOIN: keys that nobody has are in the answer anyway, with a count near 0.",
                place,
            )
        return Join(left, right, kind, on, place=place)
    if pairs_one_unit(left, right, on):
        return Join(left, right, kind, on, same_unit=True, place=place)
    pairs = equated(on, left, right)
    if pairs and is_bounded(left) and is_bounded(right):
        first, second = _limited(left, [a for a, _ in pairs]), _limited(right, [b for _, b in pairs])
        if first is not None and second is not None:
            return Join(first, second, kind, on, place=place)
    raise not_one_unit(place)


def _refuse_limits(public: Relation, place: Place | None) -> None:
    """Refuse LIMIT: which rows it keeps may differ between two runs, and so what private rows match."""
    if any(isinstance(each, Limit) for each in walk(public)):
        raise Refused(
            "refused-limit",
            "A join with public rows under LIMIT is not supported: which of them are kept may change.",
            "Choose them with WHERE.",
            place,
        )


def _limited(side: Relation, columns: Sequence[str]) -> Relation | None:
    """A side of a join with other people's rows, in which a value occurs a bounded number of times: by
    UNIQUE, or by dropping rows beyond the declared number of matches.
    """
    if is_unique(side, columns) or (isinstance(side, AtMost) and side.column in columns):
        return side
    if any(each.type.kind is Kind.INTERVAL for each in side.fields):
        return None  # 30 days and 1 month are equal but differ: the order of rows would decide which is kept
    known = [(name, most) for name in columns if (most := allowed_matches(side, name)) is not None]
    return AtMost(side, *min(known, key=lambda each: each[1])) if known else None


def semi(
    kept: Relation, other: Relation, on: Expression, anti: bool, place: Place | None, null_aware: bool = False
) -> Semi:
    """A semi-join or anti-join with another relation: a public one, or rows of the same unit."""
    if is_public(other):
        if not is_public(kept):
            _refuse_limits(other, place)
        return Semi(kept, other, on, anti, null_aware=null_aware)
    if null_aware and not _are_units(on, kept, other):
        raise Refused(
            "refused-in",
            "NOT IN over private rows is not supported: one person's NULL would empty it for everybody.",
            "Write NOT EXISTS (...).",
            place,
        )
    if is_public(kept) or not pairs_one_unit(kept, other, on):
        raise not_one_unit(place)
    return Semi(kept, other, on, anti, same_unit=True)


def _are_units(on: Expression, kept: Relation, other: Relation) -> bool:
    """Whether a condition compares units, which are never NULL: rows without a unit are dropped first."""
    one, two = owner(kept), owner(other)
    return any(one.is_unit([a]) and two.is_unit([b]) for a, b in equated(on, kept, other))


def not_one_unit(place: Place | None) -> Refused:
    return Refused(
        "refused-join",
        "In this join one person's row could meet any number of other people's rows, so nothing bounds how "
        "far "
        "one person can move the result.",
        [
            ("join on the unit (", DeclareUnit(), ")"),
            (InPolicy('join along a declared reference (unit = "customer_id -> customers.id")'),),
            (
                InPolicy(
                    "join on columns that are UNIQUE in both or have a bound (matches = {doctor_id = 50})"
                ),
            ),
            (InPolicy("declare one table public"),),
        ],
        place,
    )


def apart(source: Source, other: Relation) -> Source:
    """The source with its columns renamed so that none collides with the other relation's."""
    taken = [each.name for each in other.fields]
    names = unique_names([*taken, *(each.name for each in source.relation.fields)])[len(taken) :]
    fields = source.relation.fields
    if names == [each.name for each in fields]:
        return source
    columns = tuple((name, each.column) for name, each in zip(names, fields, strict=True))
    return replace(source, relation=Project(source.relation, columns))


def _beside(left: Source, right: Source) -> Source:
    """The columns of both sources, to bind conditions over."""
    pair = Join(left.relation, right.relation, "inner", build.true())
    return Source(
        pair,
        None,
        (*left.names, *right.names),
        {**left.unsupported, **right.unsupported},
        (*left.qualifiers(), *right.qualifiers()),
        left.hidden | {len(left.names) + place for place in right.hidden},
    )


def _condition(
    node: exp.Join, both: Source, left: Source, right: Source, using: list[str], place: Place | None
) -> Expression:
    if using:
        parts = [
            build.compare("=", left.find(name, None, place), right.find(name, None, place)) for name in using
        ]
        return parts[0] if len(parts) == 1 else Call("and", tuple(parts), BOOLEAN)
    on = node.args.get("on")
    if on is None:
        return build.true()
    binder = ExpressionBinder(lambda column: both.find(column.name, column.table or None, place_of(column)))
    return binder.condition(on)


def _shown(
    both: Source, relation: Relation, left: Source, right: Source, using: list[str], from_right: bool
) -> Source:
    """The columns in the order of SELECT *: those of the left, then those of the right. USING merges two
    columns and shows the side that cannot be NULL; a qualified name still means the table's own column.
    """
    merged = {name.lower() for name in using}
    columns: list[tuple[str, frozenset[str], Field, bool]] = []
    for source, gives_way in ((left, from_right), (right, not from_right)):
        for place, (name, each) in enumerate(source.fields()):
            hidden = place in source.hidden or (gives_way and name.lower() in merged)
            columns.append((name, source.qualifiers()[place], each, hidden))
    names = unique_names([each.name for _, _, each, _ in columns])
    inner: Relation = relation
    if names != [each.name for each in relation.fields]:
        renamed = (
            (name, Column(each.name, each.type)) for name, (_, _, each, _) in zip(names, columns, strict=True)
        )
        inner = Project(relation, tuple(renamed))
    return Source(
        inner,
        None,
        tuple(name for name, _, _, _ in columns),
        both.unsupported,
        tuple(tables for _, tables, _, _ in columns),
        frozenset(place for place, (_, _, _, hidden) in enumerate(columns) if hidden),
    )
