"""The places of tables in DuckDB's catalogue go in; what each is called comes out.

A table that an unqualified name means keeps its own name. Any other gets the shortest qualified name that
nothing else has: `schema.table`, or `database.schema.table`. No two tables have the same name, in any case:
policies, ledgers, stored answers and prepared copies tell tables apart by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from privsql.algebra.reserved import is_ours
from privsql.errors import SourceError
from privsql.names import joined, repeated_name

Path = tuple[str, str, str]  # database, schema and name of a table

TEMPORARY = "temp"  # the database of temporary tables, which hide others


@dataclass(frozen=True)
class Sight:
    """Where unqualified names are looked up: in temporary tables, then here. `searched`: schemas of the same
    database that follow. `databases`: those that DuckDB itself stores.
    """

    database: str
    schema: str
    searched: tuple[str, ...] = ()
    databases: frozenset[str] = frozenset()

    def sees(self, path: Path, temporary: Collection[str]) -> bool:
        """Whether an unqualified name means this table; `temporary` are the plain names that hide others."""
        database, schema, name = path
        if database == TEMPORARY:
            return True
        return (database, schema) == (self.database, self.schema) and plain(name) not in temporary


@dataclass(frozen=True)
class TableNames:
    """What tables are called, by path, and which of them are in sight."""

    names: dict[Path, str]
    in_sight: frozenset[Path]


def table_names(paths: Iterable[Path], sight: Sight) -> TableNames:
    """Names of all tables that can be named without doubt. Raises SourceError where an unqualified name could
    mean either of two tables.
    """
    listed = [each for each in dict.fromkeys(paths) if not is_ours(each[0])]
    temporary = {plain(name) for database, _, name in listed if database == TEMPORARY}
    seen = [each for each in listed if sight.sees(each, temporary)]
    _refuse_repeated({name for *_, name in seen})
    names = {path: path[2] for path in seen}
    taken = {name.lower() for name in names.values()}
    for path in _distinct(each for each in listed if each not in names):
        if path[0] not in sight.databases:  # another system's, which need not compute as DuckDB does
            continue
        for name in _spellings(path, sight, temporary):
            if name.lower() not in taken:
                taken.add(name.lower())
                names[path] = name
                break
    return TableNames(names, frozenset(seen))


def _spellings(path: Path, sight: Sight, temporary: Collection[str]) -> list[str]:
    """The qualified names of a table, the shortest first. `main.t` means a temporary table t, if there is
    one.
    """
    database, schema, name = path
    hidden = schema.lower() == "main" and plain(name) in temporary
    short = [joined(path[1:])] if database == sight.database and not hidden else []
    return [*short, joined(path)]


def _distinct(paths: Iterable[Path]) -> list[Path]:
    """The paths that differ in more than case: É and é are two tables for DuckDB, but one name for us."""
    listed = list(paths)
    counts = Counter(joined(each).lower() for each in listed)
    return [each for each in listed if counts[joined(each).lower()] == 1]


def plain(name: str) -> str:
    """The name with ASCII letters in lower case, as DuckDB compares names; other letters keep their case."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def _refuse_repeated(tables: Collection[str]) -> None:
    """Raise SourceError for names that differ only in case: É and é are two tables for DuckDB, but one name
    in a policy or a query.
    """
    repeated = repeated_name(sorted(tables))
    if repeated is not None:
        raise SourceError(
            "source-tables",
            f"more than one table is called {repeated}: names are not case-sensitive, "
            "so a policy or a query could mean either",
            "rename one of them",
        )
