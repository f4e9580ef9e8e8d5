"""Counts and sums over a whole copy go in; the same from its totals by rank come out, which reads one row.

Beside a copy lies a small table. For each rank it holds totals over all rows of the copy up to that rank:
their number, how often each column is not NULL, and the sums of the stored values. The row for rank N holds
exactly the totals of the rows with rank <= N: they are integers, so the order of addition makes no
difference. The table starts with rank 0, before any row, and each row stands for the ranks up to the next one
that occurs, so every N has one row.
"""

from __future__ import annotations

from collections.abc import Sequence

from privsql.algebra.exact import (
    NOTHING,
    RANKS,
    WIDE,
    Cast,
    Constant,
    Fold,
    Name,
    Operation,
    Ordered,
    Over,
    Scalar,
    Select,
    Stacked,
    StoredTable,
    coalesced,
    op,
    whole,
)
from privsql.algebra.expressions import Column
from privsql.algebra.relations import Choose, Project, Relation, Release
from privsql.planning.aggregates.parts import Adds, Feature, Part, clean
from privsql.planning.rewrites.prepared import LARGEST_RANK, RANK, PreparedScan, StoredValue

_ROWS = "privsql_rows"  # the number of rows of the copy up to this rank
_LAST = "privsql_last"  # the last rank that a row stands for


def totals_table(copy: str) -> str:
    """The name of the table of totals beside a copy."""
    return f"{copy}_by_rank"


def totals_statement(copy: StoredTable, columns: Sequence[str], values: Sequence[StoredValue]) -> Select:
    """The statement that computes the table of totals from the copy."""
    counted: list[tuple[str, Scalar | None]] = [(_ROWS, None)]
    counted += [(_present(each), Name(each)) for each in columns]
    counted += [(_rows(each), Name(each.name)) for each in values]
    rank, sums = Name(RANK), [(each.name, Fold("sum", Name(each.name))) for each in values]
    of_ranks = Select(
        ((RANK, rank), *((name, Fold("count", of)) for name, of in counted), *sums), copy, keys=1
    )
    before = ((RANK, Constant(0)), *((name, Constant(0)) for name, _ in counted))
    none = Select((*before, *((name, NOTHING) for name, _ in sums)), None)
    following = coalesced(Over("lead", rank, order=(rank,)) - 1, LARGEST_RANK)
    running = ((name, whole(_upto(name))) for name, _ in counted)
    summed = ((name, Cast(coalesced(_upto(name)), WIDE, total=False)) for name, _ in sums)
    columns_of_totals = ((RANK, Cast(rank, RANKS)), (_LAST, Cast(following, RANKS)), *running, *summed)
    return Select(columns_of_totals, Stacked((of_ranks, none)), order=(Ordered(rank),))


def _upto(name: str) -> Scalar:
    return Over("sum", Name(name), order=(Name(RANK),), running=True)


def from_totals(release: Release | Choose, parts: Sequence[Part]) -> Select | None:
    """The statement over the totals of a copy; None if some output does not follow from them."""
    scan = _whole(release.input)
    if scan is None or not scan.totals or release.keys or isinstance(release, Choose):
        return None
    columns: list[tuple[str, Scalar]] = []
    for part in parts:
        found = [_added(each, part, scan, release.input is scan) for each in part.features]
        if scan.units:  # each unit has one first row
            found = [Name(_ROWS)]
        cells = [each for each in found if each is not None]
        if len(cells) != len(found) or len(cells) != len(part.columns):
            return None
        columns += zip(part.columns, cells, strict=True)
    of_rank = op(Operation.BETWEEN, scan.most, Name(RANK), Name(_LAST))
    return Select(tuple(columns), StoredTable(totals_table(scan.copy)), (of_rank,))


def _whole(relation: Relation) -> PreparedScan | None:
    """The copy, if the relation is all of its rows, each once."""
    while isinstance(relation, Project):
        relation = relation.input
    return relation if isinstance(relation, PreparedScan) else None


def _added(feature: Feature, part: Part, scan: PreparedScan, named: bool) -> Scalar | None:
    """What a column adds up over all rows. `named`: the columns still have their names from the copy."""
    argument = feature.argument
    if feature.condition is not None:
        return None
    if feature.adds is Adds.ONE and argument is None:
        return _times(Name(_ROWS), feature.times)
    if not named or not isinstance(argument, Column):
        return None
    present = Name(_present(argument.name))
    if feature.adds is Adds.ONE:
        return _times(present, feature.times)
    if feature.adds is Adds.ABSENT:
        return _times(Name(_ROWS) - present, feature.times)
    values = {value for _, value in part.values}
    value = next(
        (each for each in scan.values if each.column == argument.name and each.value in values), None
    )
    if value is None or feature.grid is None:
        return None
    added, rows = Name(value.name), _wide(Name(_rows(value)))
    above, below = feature.grid.sides(added, rows)
    return clean(
        {Adds.VALUE: feature.grid.total(added, rows), Adds.HEIGHT: above, Adds.DEPTH: below}[feature.adds]
    )


def _times(rows: Scalar, factor: int) -> Scalar:
    return rows if factor == 1 else clean(_wide(rows) * factor)


def _wide(value: Scalar) -> Scalar:
    return Cast(value, WIDE, total=False)


def _present(column: str) -> str:
    return f"privsql_has_{column}"


def _rows(value: StoredValue) -> str:
    return f"{value.name}_rows"
