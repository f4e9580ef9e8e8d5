"""SELECT DISTINCT goes in; the different rows of public tables or of noisy answers come out, or groups
within each unit.
"""

from __future__ import annotations

from dataclasses import replace

from privsql.algebra import build
from privsql.algebra.expressions import SPREAD, Aggregate, Call, Column, columns_of, substitute
from privsql.algebra.owners import Whose, owner
from privsql.algebra.relations import Distinct, Group, Key, Project, Release, Sort, is_public, is_released
from privsql.errors import Place, Refused, SqlError
from privsql.sql.bind.scope import Source
from privsql.types import TEXT, Kind


def distinct_rows(source: Source, place: Place | None = None) -> Source:
    """SELECT DISTINCT: over a noisy answer or public rows as it stands; within units, as a GROUP BY."""
    relation = source.relation
    columns = [each.name for each in relation.fields]
    if not is_public(relation) and not is_released(relation):
        whose = owner(relation)
        if whose.whose is Whose.UNITS and whose.tells(columns):
            keys = tuple(Key(each.name, each.column, each.name) for each in relation.fields)
            grouped = Group(relation, keys, (), per_unit=True)
            refuse_intervals(grouped, None)
            return replace(source, relation=grouped)
    if isinstance(relation, Project) and isinstance(relation.input, Sort) and is_public(relation):
        return replace(source, relation=_sorted_last(relation, relation.input, place))
    return replace(source, relation=Distinct(relation))


def _sorted_last(shown: Project, sort: Sort, place: Place | None) -> Sort:
    """ORDER BY over SELECT DISTINCT of public rows. DuckDB's DISTINCT keeps no order, so the sort comes after
    it and may use selected columns only.
    """
    selected = {each: Column(name, each.type) for name, each in shown.columns}
    names = {each.name: column for each, column in selected.items() if isinstance(each, Column)}
    by = []
    for each in sort.by:
        if (
            each.expression not in selected
            and not {column.name for column in columns_of(each.expression)} <= names.keys()
        ):
            raise SqlError(
                "sql-syntax",
                "the different rows can be ordered by what is selected, and nothing else",
                "select it, too",
                place,
            )
        by.append(
            replace(each, expression=selected.get(each.expression, substitute(each.expression, dict(names))))
        )
    return Sort(Distinct(Project(sort.input, shown.columns)), tuple(by))


def refuse_spread(group: Group) -> None:
    """Refuse these: float sums depend on the order of rows, and the rows kept of a unit must not."""
    spread = next((each for _, each in group.aggregates if each.function in SPREAD), None)
    if spread is not None:
        raise Refused(
            "refused-spread",
            "The variance of one unit's own rows is not supported.",
            "Select COUNT(*), SUM(x) and SUM(x * x) of each unit, and compute it outside.",
            spread.place,
        )


def refuse_intervals(group: Group, place: Place | None) -> None:
    """Refuse these: of two equal intervals that look different, the order of rows would decide which is
    returned.
    """
    if any(each.type.kind is Kind.INTERVAL for each in group.fields):
        raise build.no_intervals(place)


def counted_distinct(
    different: Distinct,
    keys: tuple[Key, ...],
    aggregates: tuple[tuple[str, Aggregate], ...],
    place: Place | None,
) -> Release:
    """COUNT(*) over distinct rows as COUNT(DISTINCT row); refuse anything else over them."""
    if len(aggregates) != 1:
        raise refused_distinct(place)
    ((name, count),) = aggregates
    if keys or count.function != "count" or count.argument is not None or count.condition is not None:
        raise refused_distinct(place)
    # a row of NULLs counts as a value, too
    whole_row = Call("row", tuple(each.column for each in different.fields), TEXT)
    by_value = replace(count, function="count_distinct", argument=whole_row)
    return Release(different.input, (), ((name, by_value),))


def refused_distinct(place: Place | None) -> Refused:
    return Refused(
        "refused-distinct",
        "Which values occur is itself private.",
        "Count them with COUNT(DISTINCT x), or GROUP BY declared keys. SELECT DISTINCT is supported where "
        "the unit "
        "is among its columns.",
        place,
    )
