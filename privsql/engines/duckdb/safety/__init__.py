"""A view or rendered SQL goes in; whether anything in DuckDB's plan of it can fail comes out."""
