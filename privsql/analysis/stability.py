"""A relation over rows goes in; how many rows of it one person can touch comes out, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from privsql.sql.expressions import Column, Literal
from privsql.sql.relations import Filter, Project, Relation, Scan, UnionAll, Unpivot, Values


@dataclass(frozen=True)
class Stability:
    """One row of a person becomes at most `rows` rows here.

    `steady`: always exactly that many (nothing is filtered). `alike[column]`: at most so many of them agree in
    that column, where that is fewer than `rows`. `labels[column]`: the column is this constant in every row.
    """

    rows: int
    steady: bool
    why: str
    alike: Mapping[str, int]
    labels: Mapping[str, object]

    def sharing(self, columns: list[str]) -> int:
        """At most this many of one person's rows can have the same values in these columns."""
        return min([self.rows, *(self.alike.get(column, self.rows) for column in columns)])


def stability(relation: Relation) -> Stability:
    match relation:
        case Scan(private=True):
            text = (
                "each row is one person's"
                if relation.unit is None
                else f"{relation.unit} is unique, so one person has one row"
            )
            return Stability(1, relation.unit is None, text, {}, {})
        case Scan() | Values():
            return Stability(0, True, "public", {}, {})
        case Filter():
            below = stability(relation.input)
            text = "a filter keeps or drops each row by itself"
            return replace(below, steady=below.rows == 0, why=text)
        case Project():
            return _project(relation, stability(relation.input))
        case UnionAll():
            return _union([stability(each) for each in relation.inputs])
        case Unpivot():
            below = stability(relation.input)
            count = len(relation.on)
            rows = below.rows * count
            text = f"each row becomes {count} rows, one for each of {', '.join(label for _, label in relation.on)}"
            gone = {*(column for column, _ in relation.on), relation.name, relation.value.name}
            kept = {name: alike * count for name, alike in below.alike.items() if name not in gone}
            labels = {name: label for name, label in below.labels.items() if name not in gone}
            # a label stands in one of the rows that a row becomes
            return Stability(rows, below.steady, text, {**kept, relation.name: below.rows}, labels)
        case _:
            raise AssertionError("only relations over rows have a stability")


def _project(relation: Project, below: Stability) -> Stability:
    alike = {
        name: below.alike[each.name]
        for name, each in relation.columns
        if isinstance(each, Column) and each.name in below.alike
    }
    labels: dict[str, object] = {}
    for name, each in relation.columns:
        if (
            isinstance(each, Literal) and each.value is not None and each.value == each.value
        ):  # NaN equals itself in DuckDB only
            labels[name] = each.value
        elif isinstance(each, Column) and each.name in below.labels:
            labels[name] = below.labels[each.name]
    return Stability(below.rows, below.steady, "one row is made from each row", alike, labels)


def _union(sides: list[Stability]) -> Stability:
    rows = sum(side.rows for side in sides)
    names = " + ".join(str(side.rows) for side in sides)
    alike: dict[str, int] = {}
    candidates = {name for side in sides for name in [*side.alike, *side.labels]}
    for name in candidates:
        by_label: dict[object, int] = {}
        unlabelled = 0
        for side in sides:
            share = side.alike.get(name, side.rows)
            if name in side.labels:
                label = side.labels[name]
                by_label[label] = by_label.get(label, 0) + share
            else:
                unlabelled += share
        # sides tagged with different constants never meet in one value of the tag
        alike[name] = max(by_label.values(), default=0) + unlabelled
    shared: dict[str, object] = {
        name: value
        for name, value in sides[0].labels.items()
        if all(name in side.labels and side.labels[name] == value for side in sides)
    }
    why = f"a row can come in by each side: {names}"
    steady = all(side.steady for side in sides)
    return Stability(rows, steady, why, alike, shared)
