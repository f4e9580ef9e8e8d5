"""Rows with any number a unit go in; the same from a stored copy come out: at most so many a unit, by a stored rank.

The copy of a table has a column more, the rank of each row among the rows of its unit in an order that depends on
their content alone. Rows with rank <= N are at most N of each unit, the same N whatever other units have: a bound
by a plain comparison, where choosing rows while the query runs costs a grouping by unit. What a SUM of a column adds up,
clamped into the column's declared range and laid on its grid, is stored beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

from privsql.analysis.derive import derive, domain_of
from privsql.analysis.look import Look
from privsql.analysis.stability import Stability, stability
from privsql.planning.grid import LARGEST_VALUE, grid_of
from privsql.planning.render import identifier
from privsql.sql.declared import Claim
from privsql.sql.expressions import Aggregate, Column
from privsql.sql.owners import owner
from privsql.sql.relations import (
    Choose,
    Field,
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
from privsql.types import BIGINT, NUMBERS

DATABASE = "privsql_prepared"  # the reserved name of the attached database that holds the copies
RANK = "privsql_rank"  # the reserved name of the column that counts the rows of a unit
LARGEST_RANK = 65_535  # of rows further down: they all have this rank, so that only smaller bounds can use it


@dataclass(frozen=True)
class StoredValue:
    """What a sum of a column adds up for one row: the SQL that would compute it, and the name under which it is stored."""

    column: str
    sql: str

    @property
    def name(self) -> str:
        return f"privsql_value_{hashlib.sha256(self.sql.encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class Copy:
    """A stored copy of a table, by its name in the attached database; not `fresh`: its source was written to since."""

    name: str
    fresh: bool
    values: tuple[StoredValue, ...] = ()


Copies = Callable[[Scan], Copy | None]  # what is stored of a table, for exactly this unit and these columns


def no_copies(scan: Scan) -> Copy | None:
    return None


@dataclass(frozen=True)
class PreparedScan(Scan):
    """The rows of a table's copy that are among the first `most` of their unit, with some of the values stored there."""

    copy: str = ""
    most: int = 1
    values: tuple[StoredValue, ...] = ()


@dataclass(frozen=True)
class PreparedRows:
    """Rows with a known bound: the relation over the copy, its stability, and that of each step."""

    relation: Relation
    stability: Stability
    steps: Mapping[Relation, Stability]


def stored_values(scan: Scan, look: Look) -> tuple[StoredValue, ...]:
    """What sums of a table's columns add up, for those whose range is declared."""
    facts = derive(scan, frozenset(each.name for each in scan.fields), look)
    numbers = [(each, domain_of(each.column, facts)) for each in scan.fields if each.type.kind in NUMBERS]
    return tuple(
        StoredValue(each.name, grid_of(each.type, domain).value(identifier(each.name)))
        for each, domain in numbers
        if domain.bounded and not domain.empty and max(abs(domain.low), abs(domain.high)) <= LARGEST_VALUE
    )


def prepared_scan(scan: PreparedScan) -> str:
    """The text to stand in FROM; its columns are of our types already, and all its rows have a unit."""
    columns = ", ".join(identifier(each.name) for each in scan.fields)
    return f"(SELECT {columns} FROM {DATABASE}.main.{identifier(scan.copy)} WHERE {RANK} <= {scan.most})"


def computed(relation: Relation) -> Mapping[str, str]:
    """SQL over the rows of a relation that a copy below has computed already, and the column that has it."""
    scans = (each for each in walk(relation) if isinstance(each, PreparedScan))
    return {value.sql: identifier(value.name) for scan in scans for value in scan.values}


def prepared_rows(release: Release | Choose, limits: Limits, rows: int, look: Look, copies: Copies) -> PreparedRows | str | None:
    """The rows of a release from a stored copy, `rows` a unit at most; a text says why a copy is not used."""
    if _counts_units(release):
        return _unused(release, copies, "each unit counts once, whichever of its rows there are")
    scan = _only_scan(release.input)
    if scan is None:
        return _unused(release, copies, "rows of people meet in a join or a union, are grouped, or are made of lists")
    copy = copies(scan)
    if copy is None:
        return None
    if not copy.fresh:
        return (
            f"the source of {scan.table} was written to since it was prepared, so the copy is not used; "
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
        return _unused(release, copies, f"it counts to {LARGEST_RANK - 1:,} rows a unit, and one row may become {each.rows:,}")
    kept = _kept(scan, copy, most, _summed(release))
    relation = _exchanged(release.input, scan, kept)

    def steps(old: Relation) -> Stability:
        if is_public(old):
            return stability(old, look)
        if old == scan:
            return Stability(most, False, f"whose: {unit.text}; rows without one are left out", lambda columns: most)
        return _times(most, stability(_exchanged(old, scan, alone), look))

    known = {_exchanged(old, scan, kept): steps(old) for old in walk(release.input)}
    return PreparedRows(relation, known[relation], known)


def _unused(release: Release | Choose, copies: Copies, why: str) -> str | None:
    """Why no copy is used, if there is one that might be expected to be."""
    scans = (each for each in walk(release.input) if isinstance(each, Scan) and each.private and each.unit is not None)
    for scan in scans:
        copy = copies(scan)
        if copy is not None and copy.fresh:
            return f"the copy of {scan.table} is not used: {why}"
    return None


def _kept(scan: Scan, copy: Copy, most: int, summed: frozenset[str]) -> PreparedScan:
    values = tuple(each for each in copy.values if each.column in summed)
    same = {one.name: getattr(scan, one.name) for one in fields(scan)}
    same["fields"] = (*scan.fields, *(Field(each.name, BIGINT) for each in values))
    same["claims"] = {**scan.claims, **{each.name: Claim() for each in values}}
    return PreparedScan(**same, copy=copy.name, most=most, values=values)


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


def _summed(release: Release | Choose) -> frozenset[str]:
    """The columns that are added up as they are, where those of the table come through under their names."""
    if any(isinstance(each, (Project, Unpivot)) for each in walk(release.input)):
        return frozenset()
    return frozenset(each.argument.name for each in _aggregates(release) if isinstance(each.argument, Column))


def _aggregates(release: Release | Choose) -> list[Aggregate]:
    return [release.score] if isinstance(release, Choose) else [each for _, each in release.aggregates]


def _counts_units(release: Release | Choose) -> bool:
    """Whether units are counted: each counts once, for which no rows need to be chosen."""
    whose = owner(release.input)
    return any(
        each.function == "count_distinct" and isinstance(each.argument, Column) and whose.is_unit([each.argument.name])
        for each in _aggregates(release)
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
