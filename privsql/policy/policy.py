"""The declared objects: a `Policy` holds its tables, a table its unit, limits and columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from privsql.errors import ArgumentError
from privsql.names import folded
from privsql.neighbours import Accounting, Neighbours
from privsql.policy.checks import AUTO, PART_FOR_KEYS, UTC, has_null, items, key_set_of, range_of


@dataclass(frozen=True)
class UnitPolicy:
    """The privacy unit of a table: its columns, or (`table`) the unit of the row in another table that these
    columns reference by its `keys`.
    """

    columns: tuple[str, ...]
    table: str | None = None
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class ColumnPolicy:
    """One column: the range its values are clamped to, or the values that may appear as keys."""

    low: Any = None
    high: Any = None
    values: tuple[Any, ...] | None = None
    # False: the key set was given in full without NULL, or the owner says that NULL does not occur
    null_is_key: bool = True
    auto: bool = False  # find the range privately, for part of a query's epsilon, when a query needs it


@dataclass(frozen=True)
class TablePolicy:
    """One table: its privacy unit, how much of one unit's data is used, and what its columns hold."""

    public: bool = False
    unit: UnitPolicy | None = None
    max_groups: int | None = None
    max_rows: int | None = None
    unique: tuple[tuple[str, ...], ...] = ()  # the owner's promise, where the schema declares no UNIQUE
    # by column: how many rows may share one of its values in a join
    matches: Mapping[str, int] = field(default_factory=dict)
    auto: bool = False  # find undeclared ranges privately
    columns: Mapping[str, ColumnPolicy] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "matches", folded(self.matches, "matches"))
        object.__setattr__(self, "columns", folded(self.columns, "columns"))

    def column(self, name: str) -> ColumnPolicy:
        return self.columns.get(name.lower(), ColumnPolicy())


@dataclass(frozen=True)
class Share:
    """One analyst's cap on the budget. Without a delta, the whole delta of the budget is available."""

    epsilon: Fraction
    delta: Fraction | None = None


@dataclass(frozen=True)
class Policy:
    """Everything a data owner declares about a source.

    With nothing declared, each row is one person's, no column has a range or keys, and there is no budget.

    Arguments:
        neighbours: which two tables must be hard to tell apart.
        epsilon, delta: the budget; `epsilon=None` means there is none.
        per_query, per_query_least: the most and the least epsilon that one query may cost.
        max_failures: how many of one analyst's queries may fail after their charge; None: the default.
        analysts: caps by analyst. They are about fairness; the guarantee is epsilon and delta.
        dataset: a name that tells the ledgers of similar tables apart.
        accountant: how privacy losses add up.
        part_for_keys: the part of delta that the zcdp accountant reserves for undeclared keys.
        version: the owner's name for the current state of the data; answers are stored under it.
        time_zone: in which TIMESTAMP WITH TIME ZONE is read as a local time.
        min_units: undeclared keys with fewer units than this are never shown.
        tables: what is declared for each table, by name.

    Raises:
        PolicyError: two tables have the same name; names are case-insensitive, as in SQL.

    Example:
        >>> from privsql.policy import ColumnPolicy, Policy, TablePolicy
        >>> visits = TablePolicy(columns={"age": ColumnPolicy(low=0, high=120)})
        >>> Policy(tables={"visits": visits}).table("VISITS").column("age").high
        120
    """

    neighbours: Neighbours = Neighbours.REPLACE_ONE
    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    per_query: Fraction | None = None
    per_query_least: Fraction | None = None  # a floor on what a failing query costs
    max_failures: int | None = None
    analysts: Mapping[str, Share] = field(default_factory=dict)
    dataset: str | None = None
    accountant: Accounting | None = None
    part_for_keys: Fraction = PART_FOR_KEYS
    version: str | None = None
    time_zone: str = UTC
    min_units: int = 1
    tables: Mapping[str, TablePolicy] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", folded(self.tables, "tables"))

    def table(self, name: str) -> TablePolicy:
        """What is declared for a table; an empty declaration if nothing is."""
        return self.tables.get(name.lower(), TablePolicy())

    @property
    def by_row(self) -> bool:
        """Whether every private table is protected by row."""
        return all(table.public or table.unit is None for table in self.tables.values())

    @property
    def finds_ranges(self) -> bool:
        """Whether a query may have to find a range before it is planned."""
        return any(
            table.auto or any(column.auto for column in table.columns.values())
            for table in self.tables.values()
        )

    def with_columns(
        self, table: str, ranges: Mapping[str, Any] | str | None, keys: Mapping[str, Any] | None
    ) -> Policy:
        """This policy plus the keywords of one call.

        Arguments:
            table: the table the keywords are about.
            ranges: `{column: (low, high)}`, or "auto" to find undeclared ranges privately.
            keys: `{column: [value, ...]}`.

        Raises:
            ArgumentError: the keywords are not of this form, or name a column twice.
            PolicyError: a range or a list of keys does not make sense.
        """
        if ranges is None and keys is None:
            return self
        old = self.table(table)
        if isinstance(ranges, str):
            if ranges != AUTO:
                problem = 'ranges must be a dict of column names to (low, high), or "auto"'
                raise ArgumentError("argument-shape", problem, 'ranges="auto"')
            old, ranges = replace(old, auto=True), None
        columns = dict(old.columns)
        for given, what in ((ranges, "ranges"), (keys, "keys")):
            folded(dict(items(given, what)), what, ArgumentError)
        for name, bounds in items(ranges, "ranges"):
            example = f"ranges={{{name!r}: (LOWEST, HIGHEST)}}"
            columns[name.lower()] = replace(
                old.column(name), **range_of(bounds, f"ranges[{name!r}]", example)
            )
        for name, values in items(keys, "keys"):
            listed = key_set_of(values, f"keys[{name!r}]", f"keys={{{name!r}: [VALUES]}}")
            before = columns.get(name.lower(), ColumnPolicy())
            columns[name.lower()] = replace(before, values=listed, null_is_key=has_null(values))
        tables = {**self.tables, table.lower(): replace(old, columns=columns)}
        return replace(self, tables=tables)
