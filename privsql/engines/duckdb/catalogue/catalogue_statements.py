"""The statements that read DuckDB's catalogue.

Every function in them is called by its full name: the owner may have a macro of the same name, even a table
macro, which DuckDB would find first.
"""

from __future__ import annotations

from privsql.render.duckdb import text

SYSTEM = "system.main"  # nobody can create anything there

# Everything from which a schema is read, as text: while the text is the same, so is the schema. It is
# compared in every transaction. DuckDB's count of statements is not enough for that: a statement is counted
# when it begins, but its changes become visible when it has ended. The texts of views are read separately,
# and only where there are views: DuckDB writes those of its own 47 each time, which takes longer than all the
# rest.
TABLES = (
    f"SELECT database_name, schema_name, table_name, sql, TRUE FROM {SYSTEM}.duckdb_tables() UNION ALL "
    "SELECT database_name, schema_name, view_name, NULL, FALSE "
    f"FROM {SYSTEM}.duckdb_views() WHERE NOT internal"
)
# Settings are not transactional: they take effect as soon as the statement that sets them has run.
SETTINGS = (
    f"SELECT {SYSTEM}.current_database(), {SYSTEM}.current_schema(), '', "
    f"{SYSTEM}.current_setting('default_collation'), NULL "
    f"UNION ALL SELECT '', '', '', {SYSTEM}.current_setting('search_path'), NULL"
)
VIEWS = (
    "SELECT database_name, schema_name, view_name, sql, FALSE "
    f"FROM {SYSTEM}.duckdb_views() WHERE NOT internal"
)
COLUMNS = (
    "SELECT database_name, schema_name, table_name, column_name, data_type, is_nullable "
    f"FROM {SYSTEM}.duckdb_columns() WHERE NOT internal ORDER BY table_name ASC, column_index ASC"
)
CONSTRAINTS = (
    "SELECT database_name, schema_name, table_name, constraint_type, constraint_column_names, "
    f"expression, referenced_table, referenced_column_names FROM {SYSTEM}.duckdb_constraints() "
    "ORDER BY constraint_index ASC"
)
# the databases whose tables DuckDB stores itself
DATABASES = f"SELECT database_name FROM {SYSTEM}.duckdb_databases() WHERE type = 'duckdb'"
# User functions with the name of a built-in one, operators included: DuckDB finds the user's first. Listing
# all functions takes DuckDB longer than most queries, so it is done only after a change.
MACROS = (
    f"WITH named AS MATERIALIZED (SELECT {SYSTEM}.lower(function_name) AS name, internal "
    f"FROM {SYSTEM}.duckdb_functions() WHERE function_type NOT IN ('table', 'table_macro', 'pragma') "
    f"AND (internal OR database_name IN ('temp', {SYSTEM}.current_database()))) "
    f"SELECT name FROM named GROUP BY name HAVING {SYSTEM}.bool_or(internal) "
    f"AND NOT {SYSTEM}.bool_and(internal) ORDER BY name ASC"
)

# The tables that an unqualified name means, as DuckDB resolves it: temporary ones hide others.
_IN_SIGHT = (
    f"(database_name = 'temp' OR (database_name = {SYSTEM}.current_database() "
    f"AND schema_name = {SYSTEM}.current_schema() AND {SYSTEM}.lower(table_name) NOT IN "
    f"(SELECT {SYSTEM}.lower(table_name) FROM {SYSTEM}.duckdb_columns() "
    "WHERE database_name = 'temp' AND NOT internal)))"
)


def location_statement(table: str, location: tuple[str, ...]) -> str:
    """Where a table is stored: its database, the database's file, its schema, and whether it is a table. One
    without a location is in sight.
    """
    if location:
        names = zip(("database_name", "schema_name", "table_name"), location, strict=True)
        place = " AND ".join(f"{name} = {text(each)}" for name, each in names)
    else:
        place = f"{_IN_SIGHT} AND table_name = {text(table)}"
    return (
        "SELECT DISTINCT database_name, "
        f"(SELECT path FROM {SYSTEM}.duckdb_databases() d WHERE d.database_name = t.database_name), "
        "schema_name, (database_oid, table_oid) IN "
        f"(SELECT (database_oid, table_oid) FROM {SYSTEM}.duckdb_tables()) "
        f"FROM {SYSTEM}.duckdb_columns() AS t WHERE NOT internal AND {place}"
    )
