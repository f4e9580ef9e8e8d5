"""The number of units of each key goes in; the same from counts stored beside a copy comes out, which reads
one row per key.

Beside a copy lies a small table for each column with listed values. For each key it holds how many units have
it as the first, second ... of their keys, as running totals. The keys of a unit are in the order in which
they are kept at query time, a hash of unit and key. So the rows for N count the units that have a key among
their first N: the same numbers as without the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from privsql.algebra.choices import UNIT, key_rank
from privsql.algebra.exact import (
    Fold,
    Name,
    Operation,
    Ordered,
    Over,
    Select,
    Source,
    StoredTable,
    coalesced,
    op,
    whole,
)
from privsql.algebra.expressions import Column
from privsql.algebra.relations import Choose, Key, Limits, Project, Relation, Release, Scan, rebuilt
from privsql.analysis.derive import derive
from privsql.analysis.facts import domain_of
from privsql.analysis.keys import KeySpace, of_domain
from privsql.analysis.public_rows import Look
from privsql.equivalence.written import short_digest
from privsql.planning.aggregates.parts import Part
from privsql.planning.keys.key_tests import key_test, limits_on_keys
from privsql.planning.rewrites.prepared import Copies, StoredKey, asks_for_units
from privsql.types import Kind

MOST_KEYS = 1_000  # of a column: each further place of a key takes a row
_LISTED = frozenset({Kind.TEXT, Kind.BOOLEAN, Kind.INTEGER})
_PLACE = "privsql_place"  # the place of a key among the keys of a unit
_LAST = "privsql_last"  # the last place that a row stands for
_UNITS = "privsql_units"  # the number of units that have the key up to that place


@dataclass(frozen=True)
class CountedScan(Scan):
    """A table of which the query needs only the number of units per key, and the stored table that holds
    these numbers.
    """

    counts: str = ""


def counts_table(copy: str, key: StoredKey) -> str:
    """The name of the table of counts beside a copy. A different statement makes a table with a different
    name.
    """
    return f"{copy}_by_{short_digest(counts_statement(key, StoredTable(copy)))}"


def stored_keys(scan: Scan, look: Look) -> tuple[StoredKey, ...]:
    """The columns of a table with listed values, and the tests for these values."""
    facts = derive(scan, frozenset(each.name for each in scan.fields), look)
    listed = [
        (each.column, domain_of(each.column, facts)) for each in scan.fields if each.type.kind in _LISTED
    ]
    spaces = [
        (column, KeySpace((column.name,), (of_domain(_alone(column), domain),)))
        for column, domain in listed
        if domain.values is not None and 1 < len(domain.values) <= MOST_KEYS
    ]
    return tuple(_stored(column, space) for column, space in spaces)


def counts_statement(key: StoredKey, source: Source) -> Select:
    """The statement of the table of counts, over rows with a unit column."""
    column, place = Name(key.column), Name(_PLACE)
    own = Select(((UNIT.name, UNIT), (key.column, column)), source, keys=2)
    tests = () if key.test is None else (key.test,)
    ranked = Select(((key.column, column), (_PLACE, key_rank([key.column]))), own, tests)
    following = coalesced(Over("lead", place, (column,), (place,)) - 1, MOST_KEYS + 1)
    units = Over("sum", Fold("count"), (column,), (place,), running=True)
    shown = ((key.column, column), (_PLACE, place), (_LAST, whole(following)), (_UNITS, whole(units)))
    return Select(shown, ranked, keys=2, order=(Ordered(column), Ordered(place)))


def units_by_key(release: Release | Choose, space: KeySpace, copies: Copies) -> Release | None:
    """The release over stored counts of units; None if it needs anything else, or the counts are
    not stored.
    """
    if isinstance(release, Choose) or release.sets or len(release.keys) != 1 or not asks_for_units(release):
        return None
    scan, column = _traced(release.input, release.keys[0])
    if scan is None or column is None or scan.unit is None:
        return None
    copy = copies(scan)
    (group,) = space.groups
    wanted = _stored(column, KeySpace((column.name,), (replace(group, names=(column.name,)),)))
    if copy is None or not copy.fresh or wanted not in copy.keys:
        return None
    same = {one.name: getattr(scan, one.name) for one in fields(scan)}
    counted = CountedScan(**same, counts=counts_table(copy.name, wanted))
    return replace(release, input=rebuilt(release.input, lambda one: counted if one == scan else one))


def from_counts(
    release: Release | Choose, parts: Sequence[Part], space: KeySpace, limits: Limits | None
) -> Select | None:
    """The statement over the stored counts; None if the release is not over them."""
    scan, column = _traced(release.input, release.keys[0]) if release.keys else (None, None)
    if not isinstance(scan, CountedScan) or limits is None or column is None:
        return None
    kept, _ = limits_on_keys(release, space, limits)
    columns = tuple((name, Name(_UNITS)) for part in parts for name in part.columns)
    of_place = op(Operation.BETWEEN, kept.max_groups, Name(_PLACE), Name(_LAST))
    key = (release.keys[0].name, Name(column.name))
    return Select((key, *columns), StoredTable(scan.counts), (of_place,))


def _stored(column: Column, space: KeySpace) -> StoredKey:
    return StoredKey(column.name, key_test(_alone(column), space))


def _alone(column: Column) -> Key:
    return Key(column.name, column, column.name)


def _traced(relation: Relation, key: Key) -> tuple[Scan | None, Column | None]:
    """The table and its column that is the key, if the relation is all rows of that table, each once."""
    column = key.expression
    while isinstance(relation, Project):
        column = dict(relation.columns).get(column.name, column) if isinstance(column, Column) else column
        relation = relation.input
    return (relation if isinstance(relation, Scan) else None), (
        column if isinstance(column, Column) else None
    )
