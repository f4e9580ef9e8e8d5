"""DuckDB's own lists of what is in a database: how they are read, and what tables are called."""
