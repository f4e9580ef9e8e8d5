"""A parsed query with names like `sales.orders` and `sales.orders.price` goes in; it comes out with tables
that the catalogue knows by one name, under aliases, and columns that are called by these.

Everything after this reads names without a schema. A table that is named with one gets a name that is
reserved for it, so that no query of a WITH can stand in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from privsql.errors import SqlError, UnknownName, did_you_mean
from privsql.schema import Schema, SchemaTable
from privsql.sql.parse.places import place_of

Path = tuple[str, ...]


def with_plain_names(statement: exp.Expr, schema: Schema, known: Sequence[str]) -> None:
    """Rewrites in place. `known`: the names of tables that a misspelled one is compared with.

    Raises UnknownName for a table that is not there, and SqlError for a name that may mean either of two.
    """
    named = [
        each
        for each in statement.walk()
        if isinstance(each, (exp.Table, exp.Column)) and each.args.get("db") is not None
    ]
    if not named:
        return
    _refuse_reserved(statement)
    found = {id(each): _Named(each, schema) for each in statement.find_all(exp.Table) if _is_plain(each)}
    for each in named:
        if isinstance(each, exp.Column):
            _rename_column(each, found)
    for each in named:
        if isinstance(each, exp.Table):
            _rename_table(each, schema, known, found.get(id(each)))


def _is_plain(table: exp.Table) -> bool:
    return isinstance(table.this, exp.Identifier) and _path_of(table) is not None


class _Named:
    """A table of the text, as columns may call it: by its alias, or by any of its qualified names."""

    def __init__(self, table: exp.Table, schema: Schema) -> None:
        path, own = _path_of(table) or (), table.name.lower()
        self.aliased = table.args.get("alias") is not None
        beside = [each for each in _beside(table) if each is not table and each.alias_or_name.lower() == own]
        self.alias = table.this.copy()
        if beside and len(path) > 1:  # of the same name in another schema
            self.alias = exp.to_identifier(".".join(path).lower(), quoted=True)
        self.paths = () if self.aliased else _spellings(table, path, schema)


def _path_of(node: exp.Table | exp.Column) -> Path | None:
    """The parts of a table's name, or of the table before a column; None where one is not a name."""
    names = ("catalog", "db", "this") if isinstance(node, exp.Table) else ("catalog", "db", "table")
    parts = [node.args[name] for name in names if node.args.get(name) is not None]
    return tuple(each.name for each in parts) if all(isinstance(e, exp.Identifier) for e in parts) else None


def _spellings(table: exp.Table, path: Path, schema: Schema) -> tuple[Path, ...]:
    """All qualified names of a table, in lower case."""
    found = schema.find(path)
    if len(found) != 1 or (len(path) == 1 and _is_cte(table)):
        return ()
    whole = tuple(map(str.lower, found[0].path))
    return tuple(each for each in (tuple(map(str.lower, path)), whole[1:], whole) if len(each) > 1)


def _is_cte(table: exp.Table) -> bool:
    """Whether a query of a WITH has the name of this table; wherever it stands, to be sure."""
    name = table.name.lower()
    return any(each.alias.lower() == name for each in table.root().find_all(exp.CTE))


def _rename_table(table: exp.Table, schema: Schema, known: Sequence[str], named: _Named | None) -> None:
    """Give a table the one name that the catalogue knows it by."""
    path = _path_of(table)
    if path is None or named is None:  # a function with a schema: the gate refuses it
        return
    found = schema.find(path)
    shown, place = ".".join(path), place_of(table)
    if not found:
        raise UnknownName("name-table", f"there is no table {shown}", did_you_mean(shown, known), place)
    if len(found) > 1:
        raise SqlError(
            "name-ambiguous",
            f"{shown} may be a table of a schema or of a database of that name",
            f"write {' or '.join('.'.join(each.path) for each in found)}",
            place,
        )
    if not named.aliased:
        table.set("alias", exp.TableAlias(this=named.alias))
    for name in ("db", "catalog"):
        table.set(name, None)
    plain = exp.to_identifier(reserved_name(found[0]), quoted=True)
    plain.meta.update(table.this.meta)
    table.set("this", plain)


def _rename_column(column: exp.Column, named: Mapping[int, _Named]) -> None:
    """Call a column by the alias of its table."""
    path = _path_of(column)
    if path is None:
        return
    lowered = tuple(map(str.lower, path))
    for tables in _around(column):
        here = [named[id(each)] for each in tables if id(each) in named]
        meant = [each for each in here if lowered in each.paths]
        if len(meant) > 1:
            raise SqlError(
                "name-ambiguous",
                f"{'.'.join(path)} names more than one table here",
                "give them aliases",
                place_of(column),
            )
        if meant:
            for name in ("db", "catalog"):
                column.set(name, None)
            column.set("table", meant[0].alias.copy())
            return
    raise UnknownName(
        "name-table",
        f"there is no table {'.'.join(path)} here",
        "name it in FROM, and call it as it stands there: by its alias, if it has one",
        place_of(column),
    )


def _around(node: exp.Expr) -> Iterator[list[exp.Table]]:
    """The tables that a column may belong to: of its own SELECT, then of those around it."""
    above = node.parent
    while above is not None:
        if isinstance(above, exp.Select):
            yield _from(above)
        above = above.parent


def _beside(table: exp.Table) -> list[exp.Table]:
    above = table.find_ancestor(exp.Select)
    return [] if above is None else _from(above)


def _from(select: exp.Select) -> list[exp.Table]:
    """The tables in FROM and in the joins of a SELECT, also those in parentheses."""
    first = select.args.get("from_")
    joined = [first, *(select.args.get("joins") or []), *(select.args.get("laterals") or [])]
    found: list[exp.Table] = []
    pending = [each.this for each in joined if each is not None]
    while pending:
        each = pending.pop()
        if isinstance(each, exp.Table):
            found.append(each)
        elif isinstance(each, (exp.Paren, exp.Subquery)) and isinstance(each.this, (exp.Table, exp.Subquery)):
            pending.append(each.this)
        if isinstance(each, (exp.Table, exp.Subquery)):
            pending += [join.this for join in each.args.get("joins") or []]
    return found


def reserved_name(table: SchemaTable) -> str:
    """The name of a table that no query of a WITH may have."""
    return ".".join(f'"{part}"' for part in table.path or (table.name,))


def _refuse_reserved(statement: exp.Expr) -> None:
    for each in statement.find_all(exp.CTE):
        if each.alias.startswith('"'):
            raise SqlError(
                "sql-alias",
                "a query of WITH has a name that begins with a quote",
                "rename it",
                place_of(each),
            )
