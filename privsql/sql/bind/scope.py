"""Names the analyst uses -> columns of the relation below; case does not matter, quoting allows odd names."""

from __future__ import annotations

from dataclasses import dataclass, field

from privsql.algebra.declared import ListColumn
from privsql.algebra.expressions import Expression
from privsql.algebra.relations import Field, Relation
from privsql.errors import Place, Refused, UnknownName, did_you_mean


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
                f"Column {name} has type {type_name}, which is not supported.",
                f"Make rows of it: FROM t, UNNEST(list_distinct({name})) AS u(x)."
                if type_name.endswith("]")
                else "Use columns of ordinary types, or cast it in a view of your own.",
                place,
            )
        raise UnknownName("name-column", f"there is no column {name}", did_you_mean(name, self.names), place)

    def all_read(self, needed_by: str, place: Place | None) -> Source:
        """The source, if all its columns can be read: for what means every column, or counts their places."""
        for name, type_name in self.unsupported.items():
            raise Refused(
                "refused-type",
                f"{needed_by} takes all columns, and {name} has type {type_name}, which is not supported.",
                f"Name the columns, or leave it out: SELECT * EXCLUDE ({', '.join(self.unsupported)}).",
                place,
            )
        return self
