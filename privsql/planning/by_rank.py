"""Counts and sums over a whole copy go in; the same from its totals by rank come out: one row is read,
however many there are.

Beside a copy lies a small table: for each rank what all rows of the copy up to it add up to, how many they
are, in how many of them each column is not NULL, and the sums of the stored values. Its row for rank N has
what the rows with rank <= N add up to, number for number: they are whole numbers, so that the order in which
they are added makes no difference. It starts with rank 0, before any row, and each of its rows stands for the
ranks up to the next one that occurs: one row for every N.
"""

from __future__ import annotations

from collections.abc import Sequence

from privsql.algebra.expressions import Column
from privsql.algebra.relations import Choose, Project, Relation, Release
from privsql.planning.parts import Adds, Feature, Part, clean
from privsql.planning.prepared import DATABASE, LARGEST_RANK, RANK, PreparedScan, StoredValue
from privsql.planning.render import identifier

_ROWS = "privsql_rows"  # how many rows of the copy there are up to this rank
_LAST = "privsql_last"  # the last rank that a row stands for


def totals_table(copy: str) -> str:
    """The name of the table of totals that lies beside a copy."""
    return f"{copy}_by_rank"


def totals_sql(copy: str, columns: Sequence[str], values: Sequence[StoredValue]) -> str:
    """The text that makes it."""
    counts = {
        _ROWS: "*",
        **{_present(each): identifier(each) for each in columns},
        **{_rows(each): each.name for each in values},
    }
    of_ranks = [f"{RANK}", *(f"count({of}) AS {name}" for name, of in counts.items())]
    of_ranks += [f"sum({each.name}) AS {each.name}" for each in values]
    before = ["0", *("0" for _ in counts), *("NULL" for _ in values)]
    running = [f"TRY_CAST(sum({name}) OVER privsql_order AS BIGINT) AS {name}" for name in counts]
    running += [
        f"CAST(coalesce(sum({each.name}) OVER privsql_order, 0) AS HUGEINT) AS {each.name}" for each in values
    ]
    last = f"TRY_CAST(coalesce(lead({RANK}) OVER privsql_order - 1, {LARGEST_RANK}) AS USMALLINT) AS {_LAST}"
    return (
        f"SELECT TRY_CAST({RANK} AS USMALLINT) AS {RANK}, {last}, {', '.join(running)} "
        f"FROM (SELECT {', '.join(of_ranks)} FROM {copy} GROUP BY {RANK} UNION ALL SELECT {', '.join(before)}) "
        f"WINDOW privsql_order AS (ORDER BY {RANK} ASC NULLS LAST) ORDER BY {RANK} ASC NULLS LAST"
    )


def from_totals(release: Release | Choose, parts: Sequence[Part]) -> str | None:
    """The statement over the totals of a copy, where all that is asked follows from them; None where it does
    not.
    """
    scan = _whole(release.input)
    if scan is None or not scan.totals or release.keys or isinstance(release, Choose):
        return None
    columns = []
    for part in parts:
        found = [_added(each, part, scan, release.input is scan) for each in part.features]
        if scan.units:  # each has one first row
            found = [_ROWS]
        if None in found or len(found) != len(part.columns):
            return None
        columns += [f"{sql} AS {identifier(name)}" for name, sql in zip(part.columns, found, strict=True)]
    source = f"{DATABASE}.main.{identifier(totals_table(scan.copy))}"
    return f"SELECT {', '.join(columns)} FROM {source} WHERE {scan.most} BETWEEN {RANK} AND {_LAST}"


def _whole(relation: Relation) -> PreparedScan | None:
    """The copy all of whose rows these are, each once."""
    while isinstance(relation, Project):
        relation = relation.input
    return relation if isinstance(relation, PreparedScan) else None


def _added(feature: Feature, part: Part, scan: PreparedScan, named: bool) -> str | None:
    """What one column adds up over all rows; `named`: columns still have the names that they have in the
    copy.
    """
    argument = feature.argument
    if feature.condition is not None:
        return None
    if feature.adds is Adds.ONE and argument is None:
        return _times(_ROWS, feature.times)
    if not named or not isinstance(argument, Column):
        return None
    if feature.adds is Adds.ONE:
        return _times(_present(argument.name), feature.times)
    if feature.adds is Adds.ABSENT:
        return _times(f"({_ROWS} - {_present(argument.name)})", feature.times)
    computed = {sql for _, sql in part.values}
    value = next(
        (each for each in scan.values if each.column == argument.name and each.sql in computed), None
    )
    if value is None or feature.grid is None:
        return None
    added, rows = value.name, f"CAST({_rows(value)} AS HUGEINT)"
    above, below = feature.grid.sides(added, rows)
    return clean(
        {Adds.VALUE: feature.grid.total(added, rows), Adds.HEIGHT: above, Adds.DEPTH: below}[feature.adds]
    )


def _times(rows: str, factor: int) -> str:
    return rows if factor == 1 else clean(f"CAST({rows} AS HUGEINT) * {factor}")


def _present(column: str) -> str:
    return identifier(f"privsql_has_{column}")


def _rows(value: StoredValue) -> str:
    return f"{value.name}_rows"
