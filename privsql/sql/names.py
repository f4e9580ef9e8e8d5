"""Names the analyst uses -> columns of the relation below; case does not matter, quoting allows odd names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from privsql.errors import Place, Refused, UnknownName, did_you_mean
from privsql.sql.declared import ListColumn
from privsql.sql.expressions import Expression
from privsql.sql.relations import Field, Relation


@dataclass(frozen=True)
class Source:
    """What stands in FROM: a relation, the name it goes by, and its columns by the names the analyst sees.

    `tables`: of a join, the table names by which each column can be called; else all go by the alias.
    """

    relation: Relation
    alias: str | None
    names: tuple[str, ...]
    # columns whose type has no rule: not among the names
    unsupported: dict[str, str] = field(default_factory=dict)
    tables: tuple[frozenset[str], ...] = ()
    # places of columns that only a table name before them means: the others of USING
    hidden: frozenset[int] = frozenset()
    lists: tuple[ListColumn, ...] = ()  # what UNNEST may name, where a table itself stands here
    # how many names stand before each unsupported one, where that is known
    gaps: dict[str, int] = field(default_factory=dict)

    def fields(self) -> list[tuple[str, Field]]:
        return list(zip(self.names, self.relation.fields, strict=True))

    def qualifiers(self) -> tuple[frozenset[str], ...]:
        """The table names, in lower case, by which each column can be called."""
        return self.tables or (frozenset() if self.alias is None else frozenset({self.alias.lower()}),) * len(
            self.names
        )

    def called(self, table: str | None, place: Place | None) -> list[bool]:
        """For each column whether `table.` before it means it; an unknown table says so."""
        if table is None:
            return [place not in self.hidden for place in range(len(self.names))]
        found = [table.lower() in each for each in self.qualifiers()]
        if not any(found) and table.lower() != (self.alias or "").lower():
            known = sorted(
                {name for each in self.qualifiers() for name in each}
                | ({self.alias} if self.alias else set())
            )
            raise UnknownName(
                "name-table", f"there is no table {table} here", did_you_mean(table, known), place
            )
        return found

    def find(self, name: str, table: str | None, place: Place | None) -> Expression:
        """The column of that name, or an error that says which there are."""
        named = [each for each, here in zip(self.fields(), self.called(table, place), strict=True) if here]
        matches = [each for shown, each in named if shown.lower() == name.lower()]
        if len(matches) > 1:
            raise UnknownName(
                "name-ambiguous", f"{name} names more than one column", "give them aliases", place
            )
        if matches:
            return matches[0].column
        if name.lower() in self.unsupported:
            type_name = self.unsupported[name.lower()]
            raise Refused(
                "refused-type",
                f"column {name} has type {type_name}, for which there are no rules",
                f"make rows of it: FROM t, UNNEST(list_distinct({name})) AS u(x)"
                if type_name.endswith("]")
                else "use columns of ordinary types, or cast it in a view of your own",
                place,
            )
        raise UnknownName("name-column", f"there is no column {name}", did_you_mean(name, self.names), place)

    def all_read(self, needed_by: str, place: Place | None) -> Source:
        """The source, if all its columns can be read: for what means every column, or counts their places."""
        for name, type_name in self.unsupported.items():
            raise Refused(
                "refused-type",
                f"{needed_by} is about all columns, and {name} has type {type_name}, for which there are no rules",
                f"name the columns, or leave it out: SELECT * EXCLUDE ({', '.join(self.unsupported)})",
                place,
            )
        return self


OURS = "privsql_"  # columns that planning adds beside the analyst's own begin so, and no others
UNIT_COLUMN = "privsql_unit"
# grid point, points, rows
VALUE_COLUMN, WIDTH_COLUMN, ROWS_COLUMN = "privsql_value", "privsql_width", "privsql_rows"
_MEASURED = re.compile(r"(count|sum|above|below|score|order|moment)_\d+", re.IGNORECASE)


def is_ours(name: str) -> bool:
    """Whether a column of this name could stand for one of ours."""
    return name.lower().startswith(OURS)


def key_names(wanted: list[str]) -> list[str]:
    """Names for keys: different from each other and from every measured column beside them."""
    names = unique_names(wanted)
    while any(_MEASURED.fullmatch(name) for name in names):
        names = unique_names([f"{name}_key" if _MEASURED.fullmatch(name) else name for name in names])
    return names


def output_names(wanted: tuple[str, ...]) -> tuple[str, ...]:
    """What the analyst sees: names as written, a number behind the second of a kind, so that frames can hold
    them.
    """
    taken: set[str] = set(wanted)
    result: list[str] = []
    for name in wanted:
        candidate, number = name, 1
        while candidate in result or (candidate != name and candidate in taken):
            number += 1
            candidate = f"{name}_{number}"
        result.append(candidate)
    return tuple(result)


def unique_names(wanted: list[str]) -> list[str]:
    """Names made different from each other (case-insensitively) by a number behind, and from our own by a
    word before.
    """
    taken: set[str] = set()
    result = []
    for name in (f"as_{each}" if is_ours(each) else each for each in wanted):
        candidate, number = name, 1
        while candidate.lower() in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.lower())
        result.append(candidate)
    return result
