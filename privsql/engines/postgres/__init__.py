"""PostgreSQL as an engine: psycopg 3, PostgreSQL 15 and later."""
