"""A view or a rendered text goes in; whether anything in DuckDB's plan of it can fail comes out."""
