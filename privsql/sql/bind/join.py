"""Two sources and their join go in; one source comes out, if the privacy unit of its rows is known.

Allowed are joins with public tables, joins of private rows within one unit, and joins of one row with one row
(or a declared number). In any other join one person could affect any number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from privsql.algebra import build
from privsql.algebra.expressions import Call, Expression, Literal, columns_of, conjuncts, substitute
from privsql.algebra.owners import equated, is_unique, owner, pairs_one_unit
from privsql.algebra.relations import (
    AtMost,
    Filter,
    Join,
    Limit,
    Project,
    Relation,
    Semi,
    UnionAll,
    is_public,
    is_released,
    walk,
)
from privsql.algebra.reserved import unique_names
from privsql.algebra.unit_rows.bounded import allowed_matches, is_bounded
from privsql.errors import Place, Refused
from privsql.sql.bind.from_clause.shared_columns import shared_names, shown
from privsql.sql.bind.scalar.binder import ExpressionBinder
from privsql.sql.bind.scope import Source
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import WAYS_OUT, over_noisy_answer
from privsql.suggestions import DeclareUnit, InPolicy
from privsql.types import BOOLEAN, Kind


def bind_join(left: Source, right: Source, node: exp.Join) -> Source:
    """A JOIN as written: INNER, LEFT, RIGHT, FULL, CROSS, SEMI, ANTI; ON, USING or NATURAL."""
    place = place_of(node.this) or place_of(node)
    method, side, kind = (str(node.args.get(each) or "").upper() for each in ("method", "side", "kind"))
    form = kind if kind in ("SEMI", "ANTI", "CROSS") else side
    if method not in ("", "NATURAL") or kind not in ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI"):
        written = " ".join(filter(None, (method, side, kind)))
        raise Refused(
            "refused-join",
            f"{written} JOIN is not supported.",
            WAYS_OUT["Join"][1],
            place,
        )
    if is_released(left.relation) or is_released(right.relation):
        raise over_noisy_answer(
            "refused-join", "A join with", "Join the rows, or join answers in pandas.", place
        )
    right = apart(right, left.relation)
    both = _beside(left, right)
    natural = method == "NATURAL"
    using = shared_names(left, right, place) if natural else [e.name for e in node.args.get("using") or []]
    on = _condition(node, both, left, right, using, place)
    if form in ("SEMI", "ANTI"):
        kept, other = decided(left.relation), decided(right.relation)
        return replace(left, relation=semi(kept, other, on, form == "ANTI", place))
    first, second = (right.relation, left.relation) if form == "RIGHT" else (left.relation, right.relation)
    # the join is decided once WHERE is known: FROM a, b WHERE a.id = b.id is a join on the unit, too
    found = {"LEFT": "left", "RIGHT": "left", "FULL": "full"}.get(form, "inner")
    return shown(both, Join(first, second, found, on, place=place), left, right, using, form)


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
        case Join(kind="inner" | "left") if names and names <= {each.name for each in relation.left.fields}:
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
        case Join(kind="full"):
            return full_join(replace(relation, left=decided(relation.left), right=decided(relation.right)))
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
    """A join in which the unit of each row, and a bound on each unit's rows, is known; otherwise a refusal.

    LEFT JOIN from a public table has rows that are nobody's: planning decides what becomes of them.
    """
    if is_public(left) or is_public(right):
        for public, other in ((left, right), (right, left)):
            if is_public(public) and not is_public(other):
                _refuse_limits(public, place)
        return Join(left, right, kind, on, place=place)
    if pairs_one_unit(left, right, on):
        return Join(left, right, kind, on, same_unit=True, place=place)
    pairs = equated(on, left, right)
    if pairs and is_bounded(left) and is_bounded(right):
        first, second = _limited(left, [a for a, _ in pairs]), _limited(right, [b for _, b in pairs])
        if first is not None and second is not None:
            return Join(first, second, kind, on, place=place)
    raise not_one_unit(place)


def full_join(join: Join) -> Relation:
    """FULL JOIN of public rows, or of one unit's rows: LEFT JOIN, and the rows of the right that it leaves
    out. With public rows on one side it stays one: planning treats those of them that match nothing.
    """
    left, right = join.left, join.right
    if is_public(left) != is_public(right):
        if is_public(left):
            return joined(left, right, "full", join.on, join.place)
        turned = joined(right, left, "full", join.on, join.place)
        return Project(turned, tuple((each.name, each.column) for each in join.fields))
    pairs = joined(left, right, "left", join.on, join.place)
    alone = semi(right, left, join.on, True, join.place)
    absent = tuple((each.name, Literal(None, each.type)) for each in left.fields)
    rest = Project(alone, (*absent, *((each.name, each.column) for each in right.fields)))
    same = Project(pairs, tuple((each.name, each.column) for each in join.fields))
    return UnionAll((same, rest))


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
