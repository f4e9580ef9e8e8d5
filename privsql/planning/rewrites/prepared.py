"""A relation with any number of rows per unit goes in; the same over a stored copy comes out, with a limit
per unit by stored rank.

The copy of a table has one more column: the rank of each row among the rows of its unit, in an order that
depends only on their content. The rows with rank <= N are at most N per unit, and which ones does not depend
on other units. So a plain comparison enforces the bound, where choosing rows at query time takes a grouping
by unit. For each column with a declared range, the copy also stores the clamped value on its grid, ready to
sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction

from privsql.algebra.declared import Claim
from privsql.algebra.exact import Name, Scalar, Value
from privsql.algebra.expressions import Aggregate, Call, Column, Expression, columns_of
from privsql.algebra.owners import owner
from privsql.algebra.relations import (
    Choose,
    Field,
    Join,
    Project,
    Relation,
    Release,
    Scan,
    Unpivot,
    rebuilt,
    walk,
)
from privsql.analysis.derive import derive
from privsql.analysis.facts import domain_of
from privsql.analysis.public_rows import Look
from privsql.analysis.stability import Stability, stability
from privsql.equivalence.written import short_digest
from privsql.planning.aggregates.context import key_columns
from privsql.planning.grids.grid import LARGEST_VALUE, grid_of
from privsql.planning.rewrites.prepared_joins import look_up, looks_up, only_scan
from privsql.types import BIGINT, NUMBERS

RANK = "privsql_rank"  # the reserved name of the column that ranks the rows of a unit
LARGEST_RANK = 65_535  # all further rows share this rank, so only smaller bounds can use it


@dataclass(frozen=True)
class StoredValue:
    """What a row adds to the sum of a column, and the name under which it is stored."""

    column: str
    value: Scalar

    @property
    def name(self) -> str:
        return f"privsql_value_{short_digest(self.value)}"


@dataclass(frozen=True)
class StoredKey:
    """A column whose values units are counted by, and the test for its declared values."""

    column: str
    test: Scalar | None


@dataclass(frozen=True)
class Copy:
    """A stored copy of a table, by its name in the attached database. Not `fresh`: its source has changed
    since.

    `totals`: its sums by rank are stored beside it. `keys`: so are the numbers of units by these keys.
    """

    name: str
    fresh: bool
    values: tuple[StoredValue, ...] = ()
    totals: bool = False
    keys: tuple[StoredKey, ...] = ()


Copies = Callable[[Scan], Copy | None]  # finds the copy of a table with exactly this unit and these columns


def no_copies(scan: Scan) -> Copy | None:
    return None


@dataclass(frozen=True)
class PreparedScan(Scan):
    """The rows of a table's copy that are among the first `most` of their unit, with some of the stored
    values.

    `totals`: sums by rank are stored, too. `units`: the query needs only the units, one first row each.
    """

    copy: str = ""
    most: int = 1
    values: tuple[StoredValue, ...] = ()
    totals: bool = False
    units: bool = False


@dataclass(frozen=True)
class AdHoc:
    """The limits on one unit if rows are chosen at query time: so many rows in each of so many keys.

    `cells`: how many keys there are; None: no GROUP BY, or several sets of keys. `moves`: 2 where a unit is
    replaced. `less`: the noise as a fraction of Laplace noise, below 1 where it would be Gaussian.
    `gaussian`: the call requires Gaussian noise.
    """

    keys: int
    rows: int
    cells: int | None
    moves: int
    less: Callable[[], Fraction]
    gaussian: bool

    def most(self, one: Stability, columns: list[str] | None) -> int:
        """The rows of a unit that a copy may keep, each of which becomes `one`, without more noise than ad
        hoc.

        They may all be in one key. So a count has l1 = most * each and linf = most * shared, where ad hoc it
        has `own` and `rows`; Laplace noise goes with l1, Gaussian noise with the root of l1 * linf. Other
        sums have the same factors.
        """
        becomes, whole = max(1, one.rows or 0), self.keys * self.rows
        if columns is None:
            return whole // becomes
        shared, each, own = max(1, one.sharing(columns)), self.moves * becomes, self.moves * whole
        if self.cells is not None:
            each, own = min(each, self.cells * shared), min(own, self.cells * self.rows)
        most = min(whole // becomes, own // each)
        if most * shared <= self.rows:
            return most
        if self.gaussian:
            return min(
                most, *(math.isqrt(a * self.rows // (b * shared)) for a, b in ((whole, becomes), (own, each)))
            )
        less = self.less()
        return min(int(less * whole) // becomes, int(less * own) // each)


@dataclass(frozen=True)
class PreparedRows:
    """Rows with a known bound: the relation over the copy, its scan, its stability, and the stability of each
    step.
    """

    relation: Relation
    scan: PreparedScan
    stability: Stability
    steps: Mapping[Relation, Stability]


def stored_values(scan: Scan, look: Look) -> tuple[StoredValue, ...]:
    """What each row adds to sums of the table's columns, for columns with a declared range."""
    facts = derive(scan, frozenset(each.name for each in scan.fields), look)
    numbers = [(each, domain_of(each.column, facts)) for each in scan.fields if each.type.kind in NUMBERS]
    return tuple(
        StoredValue(each.name, grid_of(each.type, domain).value(Value(each.column)))
        for each, domain in numbers
        if domain.bounded and not domain.empty and max(abs(domain.low), abs(domain.high)) <= LARGEST_VALUE
    )


def computed(relation: Relation) -> Mapping[Scalar, Scalar]:
    """Values that a copy has computed already, each with the column that holds it."""
    scans = (each for each in walk(relation) if isinstance(each, PreparedScan))
    return {stored.value: Name(stored.name) for scan in scans for stored in scan.values}


def prepared_rows(
    release: Release | Choose, ad_hoc: AdHoc, look: Look, copies: Copies
) -> PreparedRows | str | None:
    """The rows of a release from a stored copy, with no more noise than ad hoc; or a text on why the copy is
    not used.
    """
    units = _counts_units(release)
    if units and not (asks_for_units(release) and not release.keys):
        return _unused(release, copies, "each unit counts once, whatever rows it has")
    scan = only_scan(release.input)
    if scan is None:
        return _unused(
            release, copies, "the query joins, unions, groups or unnests private rows before it aggregates"
        )
    copy = copies(scan)
    if copy is None:
        return None
    if not copy.fresh:
        return _outdated(scan)
    most, whole = _most_rows(release, ad_hoc, look, units)
    if most < 1:
        rows = stability(rebuilt(release.input, _alone), look).rows
        return _unused(release, copies, f"one row may become {rows:,}, more than the limit per unit")
    if most >= LARGEST_RANK:
        return _unused(
            release, copies, f"it ranks only {LARGEST_RANK - 1:,} rows per unit, but {most:,} may be used"
        )
    kept = _kept(scan, copy, most, _summed(release, scan), units)
    less_than = None if units or most == whole else whole
    return _exchanged(release.input, scan, kept, look, less_than)


def _exchanged(
    relation: Relation, scan: Scan, kept: PreparedScan, look: Look, less_than: int | None
) -> PreparedRows:
    """The relation over the copy. `less_than`: the ad hoc limit on one unit, if it is larger."""
    unit, most = scan.unit, kept.most
    assert unit is not None
    apart = looks_up(relation)
    fewer = (
        ""
        if less_than is None
        else f"; not {less_than:,}, so that there is no more noise than without the copy"
    )

    def exchange(one: Relation) -> Relation:
        return kept if one == scan else look_up(one) if apart and isinstance(one, Join) else one

    def exchanged(old: Relation) -> Relation:
        return rebuilt(old, exchange)

    def steps(old: Relation) -> Stability:
        if old == scan:
            text = f"unit: {unit.text}; rows without a unit are left out{fewer}"
            return Stability(most, False, text, lambda columns: most)
        if scan not in walk(old):
            return stability(old, look)
        found = _times(most, stability(rebuilt(old, _alone), look))
        paired = isinstance(old, Join) and old.same_unit
        return replace(found, why="each row matches at most one row, of the same unit") if paired else found

    known = {exchanged(old): steps(old) for old in walk(relation)}
    stored = exchanged(relation)
    return PreparedRows(stored, kept, known[stored], known)


def _most_rows(release: Release | Choose, ad_hoc: AdHoc, look: Look, units: bool) -> tuple[int, int]:
    """The rows of a unit to keep, and the rows that become no more than the ad hoc limit.

    One row may become several, whose number stays within the limit. A selection pays for one unit's rows in
    one key, and all its rows may be in one.
    """
    each = stability(rebuilt(release.input, _alone), look)
    chooses = isinstance(release, Choose)
    whole = (ad_hoc.rows if chooses else ad_hoc.keys * ad_hoc.rows) // max(1, each.rows or 0)
    if chooses:
        return whole, whole
    return (1 if units else ad_hoc.most(each, key_columns(release.keys))), whole


def _unused(release: Release | Choose, copies: Copies, why: str) -> str | None:
    """Why no copy is used, if there is one that the caller might expect to be used."""
    scans = (
        each
        for each in walk(release.input)
        if isinstance(each, Scan) and each.private and each.unit is not None
    )
    for scan in scans:
        copy = copies(scan)
        if copy is not None:
            return f"the copy of {scan.table} is not used: {why}" if copy.fresh else _outdated(scan)
    return None


def _outdated(scan: Scan) -> str:
    return (
        f"the source of {scan.table} has changed since it was prepared, so the copy is not used; "
        f"session.prepare({scan.table!r}) prepares it again"
    )


def _kept(scan: Scan, copy: Copy, most: int, summed: frozenset[str], units: bool) -> PreparedScan:
    values = tuple(each for each in copy.values if each.column in summed)
    same = {one.name: getattr(scan, one.name) for one in fields(scan)}
    same["fields"] = (*scan.fields, *(Field(each.name, BIGINT) for each in values))
    same["claims"] = {**scan.claims, **{each.name: Claim() for each in values}}
    same["stored"] = False  # a copy stores the clamped summand, which is even faster
    return PreparedScan(**same, copy=copy.name, most=most, values=values, totals=copy.totals, units=units)


def _times(most: int, one: Stability) -> Stability:
    """The stability of so many rows, each of which becomes `one`."""
    assert one.rows is not None
    return replace(one, rows=most * one.rows, steady=False, shares=lambda columns: most * one.shares(columns))


def _alone(relation: Relation) -> Relation:
    """The relation as if each unit had one row in each table: a row of the copy on its own, and the row it
    meets elsewhere.
    """
    if not isinstance(relation, Scan) or relation.unit is None:
        return relation
    return replace(relation, unit=replace(relation.unit, unique=True))


def _summed(release: Release | Choose, scan: Scan) -> frozenset[str]:
    """The bare columns that are summed, if the table's columns keep their names on the way."""
    if any(isinstance(each, (Project, Unpivot)) and scan in walk(each) for each in walk(release.input)):
        return frozenset()
    return frozenset(each.argument.name for each in _aggregates(release) if isinstance(each.argument, Column))


def _aggregates(release: Release | Choose) -> list[Aggregate]:
    return [release.score] if isinstance(release, Choose) else [each for _, each in release.aggregates]


def _counts_units(release: Release | Choose) -> bool:
    """Whether units are counted, or values on which all rows of a unit agree: each unit counts once, so no
    rows need to be chosen.
    """
    fixed = owner(release.input).fixed
    return any(
        each.function == "count_distinct"
        and each.argument is not None
        and {c.name for c in columns_of(each.argument)} <= fixed
        for each in _aggregates(release)
    )


def asks_for_units(release: Release | Choose) -> bool:
    """Whether the query asks only how many units a table has, in all or in each key."""
    below, whose = release.input, owner(release.input)
    while isinstance(below, Project):
        below = below.input
    return (
        isinstance(below, Scan)
        and bool(_aggregates(release))
        and all(
            each.function == "count_distinct"
            and each.condition is None
            and whose.is_unit(_parts(each.argument))
            for each in _aggregates(release)
        )
    )


def _parts(argument: Expression | None) -> list[str]:
    """The columns that make up a value; empty if it is made of anything else."""
    listed = argument.args if isinstance(argument, Call) and argument.function == "row" else (argument,)
    return (
        [each.name for each in listed if isinstance(each, Column)]
        if all(isinstance(e, Column) for e in listed)
        else []
    )
