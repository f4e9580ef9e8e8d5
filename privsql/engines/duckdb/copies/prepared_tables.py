"""A table with many rows per unit goes in; a copy with a rank for each row is stored, and found again while
it is up to date.

copy_recipe.py says how a copy is made, copy_store.py where it is stored. This file decides whether it is up
to date: by the fingerprint of its source (fingerprints.py), which changes with every write, and never by
comparing rows, since what EXPLAIN says about the copy is not charged. A source without a fingerprint cannot
be prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from privsql.algebra.relations import Scan
from privsql.algebra.reserved import DATABASE
from privsql.engines.duckdb.connection import SourceConnection
from privsql.engines.duckdb.copies.copy_recipe import Recipe, TableLocation, recipe_of, referred
from privsql.engines.duckdb.copies.copy_store import Attached, PreparedStore
from privsql.engines.duckdb.fingerprints import is_open, settle, sign_of
from privsql.errors import ArgumentError, SourceError
from privsql.planning.public_look import PublicLook
from privsql.planning.rewrites.prepared import Copy, StoredKey, StoredValue, stored_values
from privsql.planning.rewrites.stored_unit_counts import stored_keys
from privsql.render.duckdb import DUCKDB, identifier

_UNCHANGING = "unchanging"


@dataclass(frozen=True)
class Keeping:
    """Where copies are kept, and how a write to the source is noticed.

    `beside`: the DuckDB file beside which they are stored; else `kept`: a file of their own; neither: in
    memory. `opened`: the fingerprint of the file beside them when we opened it; None: others opened it, and
    its state then is unknown. `watched`: a file that is the whole source. `frozen`: the source never changes
    after it was given. `own`: the connection sees only committed data. `alone`: nobody else can create or
    attach anything there, so names keep their meaning. `version`: the fingerprint of a file that is not a
    database and from which the rows were read; any write to it changes the fingerprint.
    """

    beside: Path | None = None
    opened: str | None = None
    watched: Path | None = None
    frozen: bool = False
    own: bool = True
    alone: bool = False
    kept: Path | None = None
    version: str | None = None

    @property
    def file(self) -> Path | None:
        return self.kept if self.beside is None else Path(f"{self.beside}.prepared")


class PreparedTables:
    """The copies of one engine's tables, and whether they are up to date."""

    def __init__(
        self,
        source: SourceConnection,
        keeping: Keeping,
        places: Callable[[Sequence[tuple[str, tuple[str, ...]]]], list[TableLocation]],
    ) -> None:
        self._keeping, self._places = keeping, places
        self._store = PreparedStore(source, keeping.file, keeping.beside, keeping.alone)
        self._recipes: dict[Scan, Recipe] = {}  # valid while names keep their meaning
        self._computed: dict[Scan, tuple[tuple[StoredValue, ...], tuple[StoredKey, ...]]] = {}

    def prepare(self, scan: Scan) -> None:
        """Store a copy, unless there is one that is up to date."""
        if self._store.taken():
            raise _failed(
                f"a database called {DATABASE} is already attached",
                "detach it, or attach it under another name",
            )
        recipe = self._recipe(scan)
        path = self._watched(recipe)
        if self._keeping.beside is not None and self._keeping.opened is None:
            raise _unsigned(
                "other code in this program opened the file, which may have been replaced since",
                "close the other connections to it, and give its path",
            )
        found = self.find(scan)
        if (
            found is not None
            and found.fresh
            and found.values == recipe.values
            and found.totals
            and found.keys == recipe.keys
        ):
            return
        try:
            sign = self._settled_sign(path)  # before any row is read: later writes change it
            self._store.store(recipe, sign)
        except (duckdb.Error, OSError):
            raise _failed(
                f"the copy of {scan.table} cannot be stored",
                "check that disk and memory have room, and that the folder of the source is writable",
            ) from None

    def find(self, scan: Scan) -> Copy | None:
        """The copy of this table made for this unit and these columns, if there is one."""
        try:
            if not self._store.attach():
                return None
            recipe, signs = self._recipe(scan), self._store.signs
            sign = signs.get(recipe.name)
            if sign is None:
                return None
            columns = self._store.definition(recipe.name)
            stored = tuple(each for each in recipe.values if identifier(each.name) in columns)
            totals = self._beside(recipe.totals, sign)
            keys = tuple(each for each in recipe.keys if self._beside(recipe.counts(each), sign))
            return Copy(recipe.name, self._is_of(sign, self._watched(recipe)), stored, totals, keys)
        except (duckdb.Error, ArgumentError, OSError):
            return None

    def _beside(self, name: str, sign: str) -> bool:
        """Whether a table with this name and fingerprint is stored beside a copy."""
        return self._store.signs.get(name) == sign and bool(self._store.definition(name))

    def attach(self) -> None:
        """Attach the current copies. Call it before a transaction begins: DuckDB cannot attach within one."""
        if self._keeping.beside is not None and not self._keeping.alone:
            self._store.attach()

    def close(self) -> None:
        self._store.close()

    @property
    def attached(self) -> Attached | None:
        """The file of copies in use."""
        return self._store.attached

    @property
    def definitions(self) -> dict[str, str]:
        """Columns and types of each of our tables that was found."""
        return self._store.definitions

    # -- whether the table has changed since it was copied
    # ------------------------------------------------------
    def _watched(self, recipe: Recipe) -> Path | None:
        """The file that every change of a table changes, or None for data that cannot change. Raises
        SourceError for a table without such a file.
        """
        keeping, paths = self._keeping, {each.path for each in recipe.places}
        if keeping.frozen or keeping.watched is not None:
            return keeping.watched
        if not all(each.stored for each in recipe.places):
            raise _unsigned(
                f"{recipe.table} is a view or refers to one, and the rows of a view may change unnoticed",
                "store its rows as a table",
            )
        if not keeping.own:
            raise _unsigned(
                "this connection has temporary tables, registered frames or a USE, which only it can see",
                "give the path of a DuckDB file, or a connection without them",
            )
        path = paths.pop()
        if path is None or paths:
            raise _unsigned(
                "changes to a database in memory leave no trace, and comparing rows would tell about them",
                "store it (ATTACH 'x.duckdb' AS x; COPY FROM DATABASE memory TO x) and give the path",
            )
        return Path(path)

    def _is_of(self, sign: str, path: Path | None) -> bool:
        """Whether a copy with this fingerprint was made from the source as it is now."""
        if path is None:
            return sign == _UNCHANGING
        if sign != sign_of(path) or self._keeping.opened not in (None, sign):
            return False
        # false if another file has replaced the one we read
        return self._keeping.watched is not None or is_open(path)

    def _settled_sign(self, path: Path | None) -> str:
        """The fingerprint of the source, once no later write can have the same."""
        if path is None:
            return _UNCHANGING
        if not settle(path, shared=not self._keeping.alone):
            raise _failed(
                "the file's modification time is in the future, so later changes might go unnoticed",
                "touch the file, or set the clock",
            )
        keeping, sign = self._keeping, sign_of(path)
        if keeping.watched is None and (keeping.opened not in (None, sign) or not is_open(path)):
            raise _failed("the file was written to or replaced since it was opened here", "connect again")
        return sign

    # -- how it is made --------------------------------------------------------------------------------------
    def _recipe(self, scan: Scan) -> Recipe:
        assert scan.unit is not None
        found = self._recipes.get(scan)
        if found is None:
            places = self._places(((scan.table, scan.location), *referred(scan.unit)))
            found = recipe_of(
                scan, places, self._keeping.beside, self._keeping.file is None, *self._stored(scan)
            )
            if self._keeping.alone:
                self._recipes[scan] = found
        return found

    def _stored(self, scan: Scan) -> tuple[tuple[StoredValue, ...], tuple[StoredKey, ...]]:
        if scan not in self._computed:
            look = PublicLook(self._store.run, DUCKDB)
            self._computed[scan] = stored_values(scan, look), stored_keys(scan, look)
        return self._computed[scan]


def _failed(what: str, suggestion: str) -> SourceError:
    return SourceError("source-prepare", what, suggestion)


def _unsigned(what: str, suggestion: str) -> ArgumentError:
    return ArgumentError("argument-prepare", what, suggestion)
