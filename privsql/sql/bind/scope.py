"""The analyst's names go in; columns of the relation below come out. Case is ignored; quoting allows any
name.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from privsql.algebra.declared import ListColumn
from privsql.algebra.expressions import Expression
from privsql.algebra.relations import Field, Project, Relation
from privsql.errors import Place, Refused, UnknownName, did_you_mean


@dataclass(frozen=True)
class Source:
    """An element of FROM: a relation, its alias, and its columns by the names that the analyst sees.

    `tables`: for a join, the table names that may qualify each column; otherwise all are qualified by the
    alias.
    """

    relation: Relation
    alias: str | None
    names: tuple[str, ...]
    # columns of unsupported types: not among the names
    unsupported: dict[str, str] = field(default_factory=dict)
    tables: tuple[frozenset[str], ...] = ()
    # indexes of columns that need a qualified name: the other ones of USING
    hidden: frozenset[int] = frozenset()
    lists: tuple[ListColumn, ...] = ()  # lists that UNNEST may open, if the source is a table itself
    # how many names precede each unsupported column, where that is known
    gaps: dict[str, int] = field(default_factory=dict)

    def fields(self) -> list[tuple[str, Field]]:
        return list(zip(self.names, self.relation.fields, strict=True))

    def qualifiers(self) -> tuple[frozenset[str], ...]:
        """The table names, in lower case, that may qualify each column."""
        return self.tables or (frozenset() if self.alias is None else frozenset({self.alias.lower()}),) * len(
            self.names
        )

    def called(self, table: str | None, place: Place | None) -> list[bool]:
        """For each column, whether `table.` before it means it; raises for an unknown table."""
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
        """The column of that name, or an error that lists similar ones."""
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

    def as_seen(self) -> Source:
        """The columns that SELECT * shows, without those that need a qualified name."""
        if not self.hidden:
            return self
        kept = [place for place in range(len(self.names)) if place not in self.hidden]
        fields, tables = self.relation.fields, self.qualifiers()
        columns = tuple((fields[place].name, fields[place].column) for place in kept)
        return replace(
            self,
            relation=Project(self.relation, columns),
            names=tuple(self.names[place] for place in kept),
            tables=tuple(tables[place] for place in kept),
            hidden=frozenset(),
        )

    def all_read(self, needed_by: str, place: Place | None) -> Source:
        """The source, if all its columns are supported: for clauses that use every column or count
        columns.
        """
        for name, type_name in self.unsupported.items():
            raise Refused(
                "refused-type",
                f"{needed_by} takes all columns, and {name} has type {type_name}, which is not supported.",
                f"Name the columns, or leave it out: SELECT * EXCLUDE ({', '.join(self.unsupported)}).",
                place,
            )
        return self
