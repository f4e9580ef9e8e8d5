"""A relation over rows goes in; how many of its rows one person can affect comes out, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from privsql.algebra.expressions import Call, Column, Expression, Literal, conjuncts
from privsql.algebra.outer_joins import pads_public_rows
from privsql.algebra.owners import by_unit_alone, equated, owner
from privsql.algebra.relations import (
    AtMost,
    Filter,
    Group,
    Join,
    Limits,
    Project,
    Relation,
    Scan,
    Semi,
    UnionAll,
    Unnest,
    Unpivot,
    WindowsWithinUnit,
    below,
    is_public,
    walk,
)
from privsql.algebra.unit_rows.bounded import meets_one_group
from privsql.algebra.unit_rows.numbering import most_numbered, numbered_shares
from privsql.analysis.public_rows import Look
from privsql.types import Kind

Shares = Callable[[Sequence[str]], int]


@dataclass(frozen=True)
class Stability:
    """One person's data becomes at most `rows` rows here; None: any number, until contributions are bounded.

    `steady`: one row always becomes exactly that many (nothing is filtered). `shares(columns)`: at most this
    many of them agree in these columns; meaningless while `rows` is None. `labels[column]`: the column is
    this constant in every row.
    """

    rows: int | None
    steady: bool
    why: str
    shares: Shares = field(compare=False, repr=False)
    labels: Mapping[str, object] = field(default_factory=dict)
    adds: bool = True  # adding a person only adds rows here, and removes none

    def sharing(self, columns: Sequence[str]) -> int:
        """The most rows of one person that can have the same values in these columns."""
        assert self.rows is not None
        return min(self.rows, self.shares(columns))


def limits_of(relation: Relation) -> Limits:
    """The owner's limits on one unit's contribution: the largest of those of the tables with many rows per
    unit.
    """
    found = table_limits(relation)
    groups, rows = max(each.max_groups for each in found), max(each.max_rows for each in found)
    most = {"max_groups": groups, "max_rows": rows}
    assumed = {name for name in most if not any(_declares(each, name, most[name]) for each in found)}
    return Limits(groups, rows, frozenset(assumed))


def _declares(limits: Limits, name: str, value: int) -> bool:
    return name not in limits.assumed and getattr(limits, name) == value


def table_limits(relation: Relation) -> list[Limits]:
    """The limits of the tables through which one unit can have many rows here; of all private ones if there
    are none.
    """
    scans = [each for each in walk(relation) if isinstance(each, Scan) and each.private]
    return [each.limits for each in _with_many_rows(relation) or scans if each.limits is not None]


def _with_many_rows(relation: Relation) -> list[Scan]:
    """The tables through which one unit can have many rows here. Tables that only filter rows, or that have
    one row per unit, do not count.
    """
    match relation:
        case Scan():
            return [relation] if relation.unit is not None and not relation.unit.unique else []
        case Group() if _one_row_a_unit(relation):
            return []
        case Semi():
            return _with_many_rows(relation.input)
        case _:
            return [scan for each in below(relation) for scan in _with_many_rows(each)]


def _one_row_a_unit(group: Group) -> bool:
    return group.per_unit and by_unit_alone(group, owner(group.input))


def bounded(limits: Limits, cells: int | None) -> Stability:
    """Stability after contribution bounding: this many keys per unit (`cells` None: no GROUP BY) and rows in
    each.
    """
    groups = 1 if cells is None else max(1, min(limits.max_groups, cells))
    keys = "" if cells is None else f"at most {groups} key{'s' if groups > 1 else ''} per unit, "
    most = f"{limits.max_rows} row{'s' if limits.max_rows > 1 else ''}"
    why = f"{keys}at most {most} {'in each' if keys else 'per unit'}"
    return Stability(groups * limits.max_rows, False, why, lambda columns: limits.max_rows)


def stability(relation: Relation, look: Look) -> Stability:
    """How many rows of a relation one person can affect, bottom-up; `look` may read public tables."""
    match relation:
        case _ if is_public(relation):
            return Stability(0, True, "public", lambda columns: 0)
        case Scan():
            return _scan(relation)
        case Filter():
            inner = stability(relation.input, look)
            inner = replace(inner, steady=False, why="a filter keeps or drops each row by itself")
            return _numbered(relation, _filtered(relation, inner))
        case Semi():
            inner = stability(relation.input, look)
            by = "rows of the same unit" if relation.same_unit else "public rows"
            return replace(inner, steady=False, why=f"each row is kept or dropped by {by}")
        case AtMost():
            inner = stability(relation.input, look)
            assert inner.rows is not None
            rows = 2 * inner.rows  # the added row, and the one that it displaces
            most, column = relation.most, relation.column
            text = f"at most {most} rows per {column}: an added row may displace another"
            return Stability(rows, False, text, lambda columns: rows, adds=False)
        case Project():
            return _project(relation, stability(relation.input, look))
        case UnionAll():
            return _union(relation, [stability(each, look) for each in relation.inputs])
        case Unpivot():
            return _unpivot(relation, stability(relation.input, look))
        case Unnest():
            return _unnest(relation, stability(relation.input, look))
        case Join():
            return _join(relation, look)
        case WindowsWithinUnit():
            return replace(stability(relation.input, look), steady=False, why="it sees rows of its own unit")
        case Group():
            return _group(relation, stability(relation.input, look))
        case _:
            raise AssertionError("only relations over rows have a stability")


def _scan(scan: Scan) -> Stability:
    if scan.unit is None:
        # a view may filter rows out
        return Stability(1, not scan.view, "each row is one person's", lambda columns: 1)
    left_out = (
        "; rows without one are left out"
        if any(_may_be_null(scan, name) for name in scan.unit.columns)
        else ""
    )
    if scan.unit.unique:
        return Stability(
            1, False, f"{scan.unit.text} is unique, so one unit has one row{left_out}", lambda columns: 1
        )
    return Stability(
        None,
        False,
        f"privacy unit: {scan.unit.text}; one unit may have any number of rows{left_out}",
        lambda columns: 0,
    )


def _may_be_null(scan: Scan, column: str) -> bool:
    return scan.unit is not None and (scan.unit.refers_to is not None or scan.claims[column].nullable)


def _filtered(relation: Filter, inner: Stability) -> Stability:
    """If a column is one of n constants, a person's rows are at most n times those that agree in it."""
    listed = {name: count for part in conjuncts(relation.predicate) for name, count in _constants(part)}

    def shares(columns: Sequence[str]) -> int:
        # x IN (1, 2): rows that agree in `columns` have at most two values of x, so there are at most twice
        # as many of them as agree in `columns` and x. Each such column is tried alone, and together with
        # those before it.
        least, names = inner.shares(columns), list(columns)
        times = 1
        for name, count in listed.items():
            if name not in names:
                names, times = [*names, name], times * count
                least = min(least, times * inner.shares(names), count * inner.shares([*columns, name]))
        return least

    if inner.rows is None or not listed or shares(()) >= inner.rows:
        return replace(inner, shares=shares) if listed else inner
    text = f"{inner.why}; by {', '.join(listed)} alone, no more of one person's can be kept"
    return replace(inner, rows=shares(()), why=text, shares=shares)


def _numbered(relation: Filter, inner: Stability) -> Stability:
    """If ROW_NUMBER() <= k, no unit has more than k rows; in each of its partitions, if it has several."""
    most = most_numbered(relation, ())
    if most is None or (inner.rows is not None and inner.rows <= most):
        return inner
    text = f"ROW_NUMBER keeps at most {most:,} row{'' if most == 1 else 's'} of each unit"
    shares = numbered_shares(relation, most, None if inner.rows is None else inner.shares)
    return replace(inner, rows=most, why=text, shares=shares)


def _constants(part: Expression) -> Iterator[tuple[str, int]]:
    """The columns that a condition restricts to constants, and the number of constants."""
    match part:
        case Call(function="=", args=(Column(name=name), Literal()) | (Literal(), Column(name=name))):
            yield name, 1
        case Call(function="in", args=(Column(name=name), *options)) if all(
            isinstance(each, Literal) for each in options
        ):
            yield name, len(options)


def _project(relation: Project, inner: Stability) -> Stability:
    stands_for = {name: each.name for name, each in relation.columns if isinstance(each, Column)}
    labels: dict[str, object] = {}
    for name, each in relation.columns:
        if (
            isinstance(each, Literal)
            and each.value is not None
            and each.value == each.value
            and _told_apart(each)
        ):
            labels[name] = each.value  # not NaN, which equals itself in DuckDB but not in Python
        elif isinstance(each, Column) and each.name in inner.labels:
            labels[name] = inner.labels[each.name]

    def shares(columns: Sequence[str]) -> int:
        return inner.shares([stands_for[name] for name in columns if name in stands_for])

    return Stability(inner.rows, inner.steady, "one row is made from each row", shares, labels, inner.adds)


def _told_apart(literal: Literal) -> bool:
    """Whether constants that look different are different values: 30 days and 1 month are equal."""
    return literal.type.kind is not Kind.INTERVAL


def _unpivot(relation: Unpivot, inner: Stability) -> Stability:
    count = len(relation.on)
    text = f"each row becomes {count} rows, one for each of {', '.join(label for _, label in relation.on)}"
    made = {relation.name, relation.value.name}
    labels = {
        name: label
        for name, label in inner.labels.items()
        if name not in {*made, *(c for c, _ in relation.on)}
    }

    def shares(columns: Sequence[str]) -> int:
        kept = inner.shares([name for name in columns if name not in made])
        # one row becomes one row per label, so each label occurs once
        return kept if relation.name in columns else kept * count

    rows = None if inner.rows is None else inner.rows * count
    return Stability(rows, inner.steady, text, shares, labels, inner.adds)


def _unnest(relation: Unnest, inner: Stability) -> Stability:
    """Each declared value occurs in at most one of the rows that a row becomes."""
    most, name = relation.most, relation.element.name
    text = (
        f"a row becomes one for each different value of {relation.of.name}, of {most:,} declared ones; "
        "others are left out"
    )

    def shares(columns: Sequence[str]) -> int:
        kept = inner.shares([each for each in columns if each != name])
        return kept if name in columns else kept * most

    rows = None if inner.rows is None else inner.rows * most
    return Stability(rows, False, text, shares, inner.labels, inner.adds)


def _union(relation: UnionAll, sides: list[Stability]) -> Stability:
    known = [side.rows for side in sides if side.rows is not None]
    rows = sum(known) if len(known) == len(sides) else None
    names = " + ".join("any number" if side.rows is None else str(side.rows) for side in sides)
    place = {each.name: index for index, each in enumerate(relation.fields)}

    def label(side: int, name: str) -> tuple[bool, object]:
        inner = relation.inputs[side].fields[place[name]].name
        return inner in sides[side].labels, sides[side].labels.get(inner)

    def shares(columns: Sequence[str]) -> int:
        each_side = [
            side.shares([relation.inputs[index].fields[place[name]].name for name in columns])
            for index, side in enumerate(sides)
        ]
        best = sum(each_side)
        for name in columns:  # sides labelled with different constants never share a value of the label
            by_label: dict[object, int] = {}
            unlabelled = 0
            for index, share in enumerate(each_side):
                known_label, value = label(index, name)
                if known_label:
                    by_label[value] = by_label.get(value, 0) + share
                else:
                    unlabelled += share
            best = min(best, max(by_label.values(), default=0) + unlabelled)
        return best

    shared = {
        each.name: label(0, each.name)[1]
        for each in relation.fields
        if all(
            label(index, each.name) == label(0, each.name) and label(0, each.name)[0]
            for index in range(len(sides))
        )
    }
    steady = all(side.steady for side in sides)
    adds = all(side.adds for side in sides)
    return Stability(rows, steady, f"a row may enter by each side: {names}", shares, shared, adds)


def _join(join: Join, look: Look) -> Stability:
    if is_public(join.left) or is_public(join.right):
        return _join_public(join, look)
    left, right = stability(join.left, look), stability(join.right, look)
    if join.same_unit and join.kind == "left" and meets_one_group(join):
        text = "only rows of the same unit are paired, and each of the left meets one group at most"
        names = {each.name for each in join.left.fields}

        def shares(columns: Sequence[str]) -> int:
            return left.shares([name for name in columns if name in names])

        return Stability(left.rows, False, text, shares, left.labels, left.adds)
    if join.same_unit:
        rows = None if left.rows is None or right.rows is None else left.rows * max(1, right.rows)
        text = "only rows of the same unit are paired" + (
            "" if rows is None else f": {left.rows} * {right.rows}"
        )
        return Stability(rows, False, text, lambda columns: rows or 0, adds=left.adds and right.adds)
    assert left.rows is not None
    assert right.rows is not None
    met, meets = _most(join.left), _most(join.right)
    # removing a row of the right removes its pairs, and a LEFT JOIN then adds padded rows in their place
    total = left.rows * meets + right.rows * met * (2 if join.kind == "left" else 1)
    text = f"a row of the left matches at most {meets} of the right, one of the right at most {met}: "
    text += f"{left.rows} * {meets} + {right.rows} * {met}" + (
        ", twice for a row of the right" if join.kind == "left" else ""
    )
    adds = left.adds and right.adds and join.kind == "inner"
    return Stability(total, False, text, lambda columns: total, adds=adds)


def _most(side: Relation) -> int:
    """How many rows of a side may share a value of the join columns: one if they are unique."""
    return side.most if isinstance(side, AtMost) else 1


def _join_public(join: Join, look: Look) -> Stability:
    public, private = (join.left, join.right) if is_public(join.left) else (join.right, join.left)
    inner = stability(private, look)
    public_names = {each.name for each in public.fields}
    matched = [a for a, _ in equated(join.on, public, private)]

    def matches(columns: Sequence[str]) -> int:
        most = look.most_alike(public, sorted({*matched, *columns}))
        return max(1, most) if join.kind == "left" else most

    def shares(columns: Sequence[str]) -> int:
        inside = inner.shares([name for name in columns if name not in public_names])
        return inside * matches([name for name in columns if name in public_names])

    if inner.rows is None:
        assert not pads_public_rows(join), "planning settles these: rewrites/padded.py"
        return Stability(None, False, "beside public rows, each row stays its unit's", shares, inner.labels)
    most = matches([])
    text = f"each row matches at most {most:,} public row{'s' if most != 1 else ''}"
    if pads_public_rows(join):
        return _with_padded(inner.rows, text, matches, shares, public_names)
    return Stability(inner.rows * most, False, text, shares, inner.labels, inner.adds)


def _with_padded(inner: int, text: str, matches: Shares, shares: Shares, public: Set[str]) -> Stability:
    """A new row takes padded rows of public rows that it meets away; they agree in private columns."""

    def both(columns: Sequence[str]) -> int:
        return shares(columns) + inner * matches([name for name in columns if name in public])

    why = f"{text}, and takes away as many padded ones"
    return Stability(2 * inner * matches([]), False, why, both, adds=False)


def _group(group: Group, inner: Stability) -> Stability:
    alone = _one_row_a_unit(group)
    rows = 1 if alone else inner.rows
    keys = {key.name for key in group.keys}
    text = "one row per unit" if alone else "each group is within one unit"

    def shares(names: Sequence[str]) -> int:
        return 1 if rows == 1 or keys <= set(names) else rows or 0

    return Stability(rows, False, text, shares)
