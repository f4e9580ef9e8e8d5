"""A relation goes in; whose rows it has comes out, and which of its columns tell the unit apart.

A column that holds the unit, or a key of a table on the way to it, is tagged: two rows that agree in all
parts of a tag belong to one unit. Tags only decide what is read as "of the same unit"; the rendered SQL pairs
and groups rows by the unit itself besides, so that a tag that were wrong could change an answer but never a
bound.

The right side of a LEFT JOIN is NULL where nothing matched. There a column tells nobody apart, and GROUP BY
must not take it for the unit; but an equality never holds for NULL, so what it pairs is still of one unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from privsql.algebra.expressions import Call, Column, Expression, columns_of, conjuncts
from privsql.algebra.relations import (
    AtMost,
    Choose,
    Distinct,
    Filter,
    Group,
    Join,
    Limit,
    Project,
    Relation,
    Release,
    Scan,
    Semi,
    Sort,
    UnionAll,
    Unnest,
    Unpivot,
    Values,
    WindowsWithinUnit,
)
from privsql.algebra.unit_rows.units import Unit, UnitKind
from privsql.types import Kind


class Whose(Enum):
    """Whose rows a relation has."""

    NOBODY = "nobody's: public"
    ROWS = "each row is one person's"
    UNITS = "each row is one unit's"
    SEVERAL = "each row is made of several people's"


@dataclass(frozen=True)
class Tag:
    """One part of something that tells the unit; ('unit', 0, 1) is the unit itself."""

    name: str
    part: int
    parts: int


UNIT = "unit"
Tags = Mapping[str, frozenset[Tag]]  # by the name of the column


@dataclass(frozen=True)
class Owner:
    """Whose rows, and the tags of the columns. `fixed`: columns in which all rows of one unit agree.

    `padded`: tags of columns that hold where the column is not NULL, that is, in an equality.
    """

    whose: Whose
    tags: Tags
    fixed: frozenset[str] = frozenset()
    kinds: tuple[UnitKind, ...] = ()  # of the unit
    padded: Tags = field(default_factory=dict)

    def tells(self, columns: Iterable[str]) -> bool:
        """Whether rows that agree in these columns belong to one unit."""
        return any(_whole(tags) for tags in _by_name(self._tags(columns)))

    def is_unit(self, columns: Iterable[str]) -> bool:
        """Whether these columns hold the unit, the whole of it and nothing else."""
        listed = list(columns)
        found = {tag for tag in self._tags(listed) if tag.name == UNIT}
        return (
            bool(listed)
            and _whole(found)
            and all(any(t.name == UNIT for t in self.tags.get(c, ())) for c in listed)
        )

    def in_equality(self, column: str) -> frozenset[Tag]:
        """What a column tells where it equals something, and so is not NULL."""
        return self.tags.get(column, frozenset()) | self.padded.get(column, frozenset())

    def renamed(self, names: Mapping[str, str], fixed: Iterable[str]) -> Owner:
        """With the tags of the columns that are kept: new name -> old name."""
        tags, padded = (
            {new: held[old] for new, old in names.items() if old in held} for held in (self.tags, self.padded)
        )
        return replace(self, tags=tags, fixed=frozenset(fixed), padded=padded)

    def _tags(self, columns: Iterable[str]) -> set[Tag]:
        return {tag for column in columns for tag in self.tags.get(column, ())}


def _by_name(tags: Iterable[Tag]) -> list[set[Tag]]:
    groups: dict[str, set[Tag]] = {}
    for tag in tags:
        groups.setdefault(tag.name, set()).add(tag)
    return list(groups.values())


def _whole(tags: set[Tag]) -> bool:
    return bool(tags) and len({tag.part for tag in tags}) == next(iter(tags)).parts


def owner(relation: Relation) -> Owner:
    """Whose rows these are."""
    match relation:
        case Scan(private=False) | Values():
            return Owner(Whose.NOBODY, {})
        case Scan(unit=None):
            return Owner(Whose.ROWS, {})
        case Scan():
            assert relation.unit is not None
            fixed = (
                {each.name for each in relation.fields}
                if relation.unit.unique
                else _unit_columns(relation.unit)
            )
            return Owner(Whose.UNITS, _scanned(relation), frozenset(fixed), relation.unit.kinds)
        case Project():
            inner = owner(relation.input)
            kept = {name: each.name for name, each in relation.columns if isinstance(each, Column)}
            fixed = {
                name
                for name, each in relation.columns
                if all(c.name in inner.fixed for c in columns_of(each))
            }
            return inner.renamed(kept, fixed)
        case Unpivot():
            inner = owner(relation.input)
            names = {each.name for each in relation.fields} - {relation.name, relation.value.name}
            return inner.renamed({name: name for name in names}, inner.fixed & names)
        case UnionAll():
            return _union([(each, owner(each)) for each in relation.inputs])
        case Join():
            return _join(relation)
        case Group():
            inner = owner(relation.input)
            named = [(key.name, key.expression) for key in relation.keys]
            kept = {name: each.name for name, each in named if isinstance(each, Column)}
            fixed = {
                key.name
                for key in relation.keys
                if all(c.name in inner.fixed for c in columns_of(key.expression))
            }
            if by_unit_alone(relation, inner):
                fixed = {each.name for each in relation.fields}
            return inner.renamed(kept, fixed)
        case Unnest() | Filter() | Semi() | AtMost() | WindowsWithinUnit() | Sort() | Limit() | Distinct():
            return owner(relation.input)
        case Release() | Choose():
            return Owner(Whose.NOBODY, {})  # noisy: nobody's any more


def by_unit_alone(group: Group, inner: Owner) -> bool:
    """Whether rows are grouped by the unit and nothing else: one group a unit. `inner`: whose rows."""
    columns = [key.expression.name for key in group.keys if isinstance(key.expression, Column)]
    return (group.per_unit and not group.keys) or (len(columns) == len(group.keys) and inner.is_unit(columns))


def _scanned(scan: Scan) -> dict[str, frozenset[Tag]]:
    assert scan.unit is not None
    tags: dict[str, set[Tag]] = {}
    for columns, name in _told_by(scan.unit):
        for part, column in enumerate(columns):
            tags.setdefault(column, set()).add(Tag(name, part, len(columns)))
    for key in scan.keys:  # a key names a row, and so whose it is
        for part, column in enumerate(sorted(key)):
            tags.setdefault(column, set()).add(Tag(_key_name(scan.table, key), part, len(key)))
    known = {each.name for each in scan.fields}
    return {column: frozenset(found) for column, found in tags.items() if column in known}


def _unit_columns(unit: Unit) -> set[str]:
    """The columns of a table that hold the unit itself."""
    return {column for columns, name in _told_by(unit) if name == UNIT for column in columns}


def _told_by(unit: Unit) -> list[tuple[tuple[str, ...], str]]:
    """The columns of a table that tell the unit, by the name of what they hold."""
    if unit.refers_to is None:
        return [(unit.columns, UNIT)]
    target = unit.refers_to
    by_key = dict(zip(target.columns, unit.columns, strict=True))
    order = sorted(by_key)
    found = [(tuple(by_key[column] for column in order), _key_name(target.table, frozenset(order)))]
    for columns, name in _told_by(target.unit):  # what the other table knows of these columns alone
        if set(columns) <= set(by_key):
            found.append((tuple(by_key[column] for column in columns), name))
    return found


def _key_name(table: str, columns: frozenset[str]) -> str:
    return f"{table}({', '.join(sorted(columns))})".lower()


def _union(sides: list[tuple[Relation, Owner]]) -> Owner:
    private = [(relation, each) for relation, each in sides if each.whose is not Whose.NOBODY]
    if not private:
        return Owner(Whose.NOBODY, {})
    first = private[0][1]
    alike = all((each.whose, each.kinds) == (first.whose, first.kinds) for _, each in private)
    whose = first.whose if alike else Whose.SEVERAL
    if len(private) < len(sides) and whose is Whose.UNITS:
        whose = Whose.SEVERAL  # rows of nobody's among them have no unit to be bounded by
    tags: dict[str, frozenset[Tag]] = {}
    padded: dict[str, frozenset[Tag]] = {}
    for place, each in enumerate(sides[0][0].fields):
        columns = [(relation.fields[place].name, known) for relation, known in sides]
        told = [known.tags.get(name, frozenset()) for name, known in columns]
        tags[each.name] = frozenset.intersection(*told)
        padded[each.name] = frozenset.intersection(*(known.in_equality(name) for name, known in columns))
    return Owner(whose, tags, kinds=first.kinds if whose is Whose.UNITS else (), padded=padded)


def _join(join: Join) -> Owner:
    left, right = owner(join.left), owner(join.right)
    tags, padded = _joined_tags(join, left, right)
    if Whose.NOBODY in (left.whose, right.whose):
        public, private = (join.left, right) if left.whose is Whose.NOBODY else (join.right, left)
        names = {each.name for each in public.fields}
        other = join.right if public is join.left else join.left
        pairs = equated(join.on, public, other)
        looked_up = [a for a, b in pairs if b in private.fixed]  # one public row for all rows of a unit
        found = names if join.kind == "inner" and is_unique(public, looked_up) else set()
        return replace(private, tags=tags, fixed=private.fixed | found, padded=padded)
    fixed = left.fixed | (right.fixed if join.kind == "inner" else frozenset())
    if not join.same_unit:
        return Owner(Whose.SEVERAL, tags)
    return Owner(Whose.UNITS, tags, fixed, left.kinds, padded)


def _joined_tags(join: Join, left: Owner, right: Owner) -> tuple[Tags, Tags]:
    """The tags of both sides, and those that hold where a column is not NULL."""
    padded = {**left.padded, **right.padded}
    if join.kind != "inner":
        return left.tags, {**padded, **{name: right.in_equality(name) for name in right.tags}}
    tags = {**left.tags, **right.tags}
    for pair in equated(join.on, join.left, join.right):
        for name in pair:  # equal, so not NULL in any row that an inner join keeps
            tags[name] = tags.get(name, frozenset()) | padded.get(name, frozenset())
    return tags, padded


def pairs_one_unit(left: Relation, right: Relation, on: Expression) -> bool:
    """Whether a condition pairs only rows of one unit: it equates every part of something that tells the
    unit.
    """
    first, second = owner(left), owner(right)
    if first.whose is not Whose.UNITS or second.whose is not Whose.UNITS or first.kinds != second.kinds:
        return False
    equal: set[Tag] = set()
    for one, other in equated(on, left, right):
        equal |= first.in_equality(one) & second.in_equality(other)
    return any(_whole(tags) for tags in _by_name(equal))


def equated(on: Expression, left: Relation, right: Relation) -> list[tuple[str, str]]:
    """The pairs of columns, one of the left and one of the right, that a condition says are equal.

    Columns of one side among themselves (a = a) say nothing of what meets what.
    """
    first, second = ({each.name for each in side.fields} for side in (left, right))
    found = []
    for part in conjuncts(on):
        match part:
            case Call(function="=", args=(one, other)):
                for a, b in ((_uncast(one), _uncast(other)), (_uncast(other), _uncast(one))):
                    if (
                        isinstance(a, Column)
                        and isinstance(b, Column)
                        and a.name in first
                        and b.name in second
                    ):
                        found.append((a.name, b.name))
    return found


def _uncast(expression: Expression) -> Expression:
    """What stands under casts that keep different values apart: INTEGER to BIGINT, DECIMAL to more digits."""
    match expression:
        case Call(function="cast", args=(inner,), type=type_) if (
            inner.type.kind is type_.kind is Kind.INTEGER
        ):
            return _uncast(inner)
        case Call(function="cast", args=(inner,), type=type_) if (
            inner.type.kind is type_.kind is Kind.DECIMAL
        ):
            return _uncast(inner) if inner.type.scale <= type_.scale else expression
        case _:
            return expression


def is_unique(relation: Relation, columns: Iterable[str]) -> bool:
    """Whether no two rows agree in these columns (NULL agrees with nothing)."""
    wanted = set(columns)
    match relation:
        case Scan():
            return any(key <= wanted for key in relation.keys)
        case Project():
            stands_for = {
                each.name for name, each in relation.columns if name in wanted and isinstance(each, Column)
            }
            return is_unique(relation.input, stands_for)
        case Filter() | Semi() | AtMost() | Sort() | Limit():
            return is_unique(relation.input, wanted)
        case Group():
            return bool(relation.keys) and {key.name for key in relation.keys} <= wanted
        case Distinct():
            return {each.name for each in relation.fields} <= wanted
        case Join(kind="inner"):
            return _join_is_unique(relation, wanted) or _join_is_unique(
                replace(relation, left=relation.right, right=relation.left), wanted
            )
        case _:
            return False


def _join_is_unique(join: Join, wanted: set[str]) -> bool:
    """A key of the left stays one where each of its rows meets at most one of the right."""
    names = {each.name for each in join.right.fields}
    matched = [b for _, b in equated(join.on, join.left, join.right)]
    return is_unique(join.left, wanted - names) and is_unique(join.right, matched)


def one_row_a_key(relation: Relation, columns: Iterable[str]) -> bool:
    """Whether a unit has at most one row here for each combination of values of these columns."""
    wanted = set(columns)
    match relation:
        case Scan():
            whose = owner(relation)
            return any(all(name in wanted or name in whose.fixed for name in key) for key in relation.keys)
        case Group() if relation.per_unit:
            whose = owner(relation)
            return all(key.name in wanted or key.name in whose.fixed for key in relation.keys)
        case Project():
            stands_for = {
                each.name for name, each in relation.columns if name in wanted and isinstance(each, Column)
            }
            return one_row_a_key(relation.input, stands_for)
        case Unnest():
            return (
                relation.distinct
                and relation.element.name in wanted
                and one_row_a_key(relation.input, wanted)
            )
        case Filter() | Semi():
            return one_row_a_key(relation.input, wanted)
        case _:
            return False
