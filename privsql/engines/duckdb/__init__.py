"""DuckDB: databases, files and frames."""
