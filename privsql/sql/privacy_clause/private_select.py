"""A SELECT WITH DIFFERENTIAL_PRIVACY over one source goes in; its release comes out, computed as BigQuery
defines it: first for each person and group, then clamped, then over people.
"""

from __future__ import annotations

from dataclasses import replace

from privsql.algebra import build
from privsql.algebra.expressions import Aggregate, Column, Expression, Literal
from privsql.algebra.owners import Whose, is_unique, one_row_a_key, owner
from privsql.algebra.relations import (
    Choose,
    Group,
    Key,
    Relation,
    Release,
    Scan,
    is_public,
    is_released,
    rebuilt,
    release_of,
    walk,
)
from privsql.errors import Place, Refused
from privsql.sql.bind.scope import Source
from privsql.sql.bind.select import SelectBinder
from privsql.sql.parse.places import place_of
from privsql.suggestions import DeclareUnit, Way
from privsql.types import DOUBLE, INTEGER_BOUNDS, Kind, Type, integer

_PER_UNIT = ("count", "sum", "avg")


class PrivateSelectBinder(SelectBinder):
    """Binds one SELECT that has the clause."""

    def bind(self) -> Source:
        place = place_of(self.node)
        source = super().bind()
        if is_public(self.input) or is_released(self.input) or release_of(source.relation) is None:
            raise Refused(
                "refused-privacy-clause",
                "SELECT WITH DIFFERENTIAL_PRIVACY must aggregate people's rows.",
                "Leave the clause out, and give epsilon= for the whole query.",
                place,
            )
        self._check_unit(place)
        return replace(source, relation=rebuilt(source.relation, lambda each: self._by_unit(each, place)))

    def _check_unit(self, place: Place | None) -> None:
        """Refuse privacy_unit_column where it is not the unit that the policy protects."""
        named = [each.name for each in self.node.args["privacy"].expressions]
        if not named:
            return
        column = self.source.find(named[-1], named[0] if len(named) == 2 else None, place)
        if isinstance(column, Column):
            whose = owner(self.input)
            by_row = whose.whose is Whose.ROWS and is_unique(self.input, [column.name])
            if by_row or (whose.whose is Whose.UNITS and whose.is_unit([column.name])):
                return
        tables = [each.table for each in walk(self.input) if isinstance(each, Scan) and each.unit is None]
        ways: list[Way] = [("leave privacy_unit_column out",)]
        ways += [(DeclareUnit(tables[0]),)] if tables else [("name the unit of the policy",)]
        raise Refused(
            "refused-privacy-clause",
            f"The policy does not protect {'.'.join(named)}: its privacy unit is another.",
            ways,
            place,
        )

    def _by_unit(self, relation: Relation, place: Place | None) -> Relation:
        """A release or a choice, with the bounds of its aggregates applied to what each person adds."""
        match relation:
            case Release():
                rows = one_row_a_key(relation.input, ()) or owner(relation.input).whose is not Whose.UNITS
                return _clamped_rows(relation) if rows else _clamped_units(relation, place)
            case Choose() if relation.score.function == "avg" or relation.score.parameters:
                raise Refused(
                    "refused-privacy-clause",
                    "ORDER BY and LIMIT of keys alone do not take contribution bounds or AVG here.",
                    "Select the aggregate, too: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(...) k, AVG(x) ...",
                    place,
                )
            case _:
                return relation


def _bounds(aggregate: Aggregate) -> tuple[Literal, Literal] | None:
    """The bounds that were written, of an aggregate that may have some."""
    if aggregate.function not in _PER_UNIT or not aggregate.parameters:
        return None
    low, high = aggregate.parameters
    return low, high


def _clamp(value: Expression, bounds: tuple[Literal, Literal] | None) -> Expression:
    """The value between the bounds; NULL where it is NULL."""
    if bounds is None:
        return value
    raised = build.unify("greatest", [value, bounds[0]])
    return build.null_if_any([value], build.unify("least", [raised, bounds[1]]))


def _clamped_rows(release: Release) -> Release:
    """Where a person has one row, the row is all that the person adds to a group."""
    aggregates = []
    for name, each in release.aggregates:
        bounds = _bounds(each)
        plain = replace(each, parameters=()) if bounds else each
        if bounds and each.function == "count":
            _check_of_count(bounds, each.place)
        elif bounds and each.argument is not None:
            argument = _clamp(each.argument, bounds)
            type_ = argument.type if each.function == "sum" else DOUBLE
            plain = replace(plain, argument=argument, type=_total(type_, released=True))
        aggregates.append((name, plain))
    return replace(release, aggregates=tuple(aggregates))


def _check_of_count(bounds: tuple[Literal, Literal], place: Place | None) -> None:
    low, high = bounds
    if low.value > 0 or high.value < 1:
        raise Refused(
            "refused-privacy-clause",
            "One person counts 0 or 1 here, and the bounds must leave room for both.",
            "Write contribution_bounds_per_group => (0, 1), or leave the bounds out.",
            place,
        )


def _clamped_units(release: Release, place: Place | None) -> Release:
    """Where a person may have many rows, aggregate each person's rows of a group first.

    AVG is the average over people of each one's average, as BigQuery has it. Without AVG and bounds the
    result is that of an ordinary query, and so is the release.
    """
    if all(each.function != "avg" and _bounds(each) is None for _, each in release.aggregates):
        return release
    if release.sets or any(each.function not in _PER_UNIT for _, each in release.aggregates):
        raise Refused(
            "refused-privacy-clause",
            "AVG and bounded COUNT and SUM are computed person by person here; other aggregates and several "
            "sets of keys are computed row by row.",
            "Ask for them in queries of their own, each with a share of epsilon.",
            place,
        )
    inner = tuple((name, _of_one_unit(each)) for name, each in release.aggregates)
    group = Group(release.input, release.keys, inner, per_unit=True)
    keys = tuple(Key(k.name, Column(k.name, k.expression.type), k.text, k.place) for k in release.keys)
    outer = tuple(
        (name, _over_units(each, Column(name, of_one.type)))
        for (name, each), (_, of_one) in zip(release.aggregates, inner, strict=True)
    )
    return Release(group, keys, outer)


def _of_one_unit(aggregate: Aggregate) -> Aggregate:
    """What one person adds, before it is clamped."""
    plain = replace(aggregate, parameters=())
    if aggregate.function != "sum" or aggregate.argument is None:
        return plain
    return replace(plain, type=_total(aggregate.argument.type, released=False))


def _over_units(aggregate: Aggregate, of_one: Column) -> Aggregate:
    value = _clamp(of_one, _bounds(aggregate))
    if aggregate.function == "avg":
        return Aggregate("avg", value, None, DOUBLE, aggregate.place)
    return Aggregate("sum", value, None, _total(value.type, released=True), aggregate.place)


def _total(summed: Type, released: bool) -> Type:
    """An exact total of numbers may exceed 64 bits; a released total is clamped, and cannot."""
    if summed.kind is not Kind.INTEGER:
        return DOUBLE
    exact = integer(*INTEGER_BOUNDS["HUGEINT" if summed.is_wide else "BIGINT"])
    return integer(*INTEGER_BOUNDS["BIGINT"]) if released else exact
