"""Rows with any number a unit go in; the same from a stored copy come out: at most so many a unit, by a stored rank.

The copy of a table has a column more, the rank of each row among the rows of its unit in an order that depends on
their content alone. Rows with rank <= N are at most N of each unit, the same N whatever other units have: a bound
by a plain comparison, where choosing rows while the query runs costs a grouping by unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

from privsql.analysis.look import Look
from privsql.analysis.stability import Stability, stability
from privsql.planning.render import identifier
from privsql.sql.expressions import Aggregate, Column
from privsql.sql.owners import owner
from privsql.sql.relations import (
    Choose,
    Filter,
    Join,
    Limits,
    Project,
    Relation,
    Release,
    Scan,
    Semi,
    Unpivot,
    is_public,
    walk,
)

DATABASE = "privsql_prepared"  # the reserved name of the attached database that holds the copies
RANK = "privsql_rank"  # the reserved name of the column that counts the rows of a unit
LARGEST_RANK = 65_535  # of rows further down: they all have this rank, so that only smaller bounds can use it


@dataclass(frozen=True)
class Copy:
    """A stored copy of a table, by its name in the attached database; not `fresh`: the table has changed since."""

    name: str
    fresh: bool


Copies = Callable[[Scan], Copy | None]  # what is stored of a table, for exactly this unit and these columns


def no_copies(scan: Scan) -> Copy | None:
    return None


@dataclass(frozen=True)
class PreparedScan(Scan):
    """The rows of a table's copy that are among the first `most` of their unit."""

    copy: str = ""
    most: int = 1


@dataclass(frozen=True)
class PreparedRows:
    """Rows with a known bound: the relation over the copy, its stability, and that of each step."""

    relation: Relation
    stability: Stability
    steps: Mapping[Relation, Stability]


def prepared_scan(scan: PreparedScan) -> str:
    """The text to stand in FROM; its columns are of our types already, and all its rows have a unit."""
    columns = ", ".join(identifier(each.name) for each in scan.fields)
    return f"(SELECT {columns} FROM {DATABASE}.main.{identifier(scan.copy)} WHERE {RANK} <= {scan.most})"


def prepared_rows(
    release: Release | Choose, limits: Limits, rows: int, look: Look, copies: Copies
) -> PreparedRows | str | None:
    """The rows of a release from a stored copy, `rows` a unit at most; a text says why a copy is not used."""
    scan = _only_scan(release.input)
    if scan is None or _counts_units(release):
        return None
    copy = copies(scan)
    if copy is None:
        return None
    if not copy.fresh:
        return (
            f"{scan.table} has changed since it was prepared, so the copy is not used; "
            f"session.prepare({scan.table!r}) stores it anew"
        )
    # a choice pays for what one unit has in one key, and all its rows may be in one
    wanted = limits.max_rows if isinstance(release, Choose) else rows
    unit = scan.unit
    assert unit is not None
    alone = replace(scan, unit=replace(unit, unique=True))
    each = stability(_exchanged(release.input, scan, alone), look)
    most = wanted // max(1, each.rows or 0)  # one row may become several: their number stays within what was allowed
    if not 1 <= most < LARGEST_RANK:
        return None
    kept = PreparedScan(**{one.name: getattr(scan, one.name) for one in fields(scan)}, copy=copy.name, most=most)
    relation = _exchanged(release.input, scan, kept)

    def steps(old: Relation) -> Stability:
        if is_public(old):
            return stability(old, look)
        if old == scan:
            return Stability(most, False, f"whose: {unit.text}; rows without one are left out", lambda columns: most)
        return _times(most, stability(_exchanged(old, scan, alone), look))

    known = {_exchanged(old, scan, kept): steps(old) for old in walk(release.input)}
    return PreparedRows(relation, known[relation], known)


def _times(most: int, one: Stability) -> Stability:
    """What so many rows become, where one becomes `one`."""
    assert one.rows is not None
    return replace(one, rows=most * one.rows, steady=False, shares=lambda columns: most * one.shares(columns))


def _only_scan(relation: Relation) -> Scan | None:
    """The one table of many rows a unit below, if on the way to it each row stays by itself or meets public rows."""
    match relation:
        case Scan(private=True, unit=unit) if unit is not None and not unit.unique:
            return relation
        case Filter() | Project() | Unpivot():
            return _only_scan(relation.input)
        case Semi() if is_public(relation.other) and not relation.same_unit:
            return _only_scan(relation.input)
        case Join() if is_public(relation.right):
            return _only_scan(relation.left)
        case Join() if is_public(relation.left) and relation.kind == "inner":
            return _only_scan(relation.right)
        case _:
            return None


def _counts_units(release: Release | Choose) -> bool:
    """Whether units are counted: each counts once, for which no rows need to be chosen."""
    aggregates: list[Aggregate] = [release.score] if isinstance(release, Choose) else [a for _, a in release.aggregates]
    whose = owner(release.input)
    return any(
        each.function == "count_distinct" and isinstance(each.argument, Column) and whose.is_unit([each.argument.name])
        for each in aggregates
    )


def _exchanged(relation: Relation, old: Scan, new: Scan) -> Relation:
    """The relation with one scan in place of another."""
    match relation:
        case Scan():
            return new if relation == old else relation
        case Filter() | Project() | Unpivot() | Semi():
            return replace(relation, input=_exchanged(relation.input, old, new))
        case Join() if is_public(relation.right):
            return replace(relation, left=_exchanged(relation.left, old, new))
        case Join():
            return replace(relation, right=_exchanged(relation.right, old, new))
        case _:
            return relation
