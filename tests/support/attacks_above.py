"""What a hostile analyst may write above the noise: settings, files, the catalogue, the clock, other statements."""

from __future__ import annotations

# Statements that DuckDB itself would read; every one is refused by permit_above.
ATTACKS = """
SELECT current_setting('memory_limit')
SELECT getvariable('x')
SELECT getenv('HOME')
SELECT "current_setting"('memory_limit')
SELECT main.current_setting('memory_limit')
SELECT system.main.current_setting('memory_limit')
SELECT 'memory_limit'.current_setting()
SELECT list_transform(['memory_limit'], lambda x: current_setting(x))
SELECT [current_setting(x) FOR x IN ['memory_limit']]
SELECT n FROM r0 ORDER BY current_setting('threads')
SELECT n FROM r0 WHERE EXISTS (SELECT current_setting('threads'))
SELECT sum(n) OVER (ORDER BY random()) FROM r0
SELECT count(*) FILTER (WHERE now() > TIMESTAMP '2024-01-01') FROM r0
SELECT n FROM r0 LIMIT (SELECT current_setting('threads')::INT)
SELECT CASE WHEN true THEN version() END
SELECT * REPLACE (version() AS n) FROM r0
SELECT {'a': version()}
PIVOT r0 ON version() IN ('a') USING sum(n)
SELECT * FROM r0 JOIN (SELECT version() AS v) AS x ON true
SELECT version()
SELECT now()
SELECT today()
SELECT current_date
SELECT current_timestamp
SELECT localtimestamp
SELECT age(TIMESTAMP '2024-01-01')
SELECT get_current_timestamp()
SELECT random()
SELECT uuid()
SELECT gen_random_uuid()
SELECT setseed(0.5)
SELECT nextval('s')
SELECT txid_current()
SELECT current_user
SELECT current_database()
SELECT current_schema()
SELECT pg_typeof(1)
SELECT error('x')
SELECT sleep_ms(1)
SELECT write_log('x')
SELECT stats(n) FROM r0
SELECT json_serialize_sql('SELECT 1')
SELECT to_timestamp(0)
SELECT TIMESTAMP '2024-01-01' AT TIME ZONE 'Europe/Rome'
SELECT CAST('2024-01-01' AS TIMESTAMPTZ)
SELECT CAST('x' AS some_type)
SELECT * FROM query('SELECT 1')
SELECT * FROM query_table('r0')
SELECT * FROM json_execute_serialized_sql('x')
SELECT * FROM read_csv('/etc/passwd')
SELECT * FROM read_text('/etc/passwd')
SELECT * FROM read_blob('/etc/passwd')
SELECT * FROM read_parquet('/etc/passwd')
SELECT * FROM read_json('/etc/passwd')
SELECT * FROM sniff_csv('/etc/passwd')
SELECT * FROM '/etc/passwd'
SELECT * FROM "/etc/passwd"
SELECT * FROM glob('/*')
SELECT * FROM parquet_metadata('/etc/passwd')
SELECT * FROM 'https://example.org/a.csv'
SELECT * FROM duckdb_settings()
SELECT * FROM duckdb_secrets()
SELECT * FROM duckdb_variables()
SELECT * FROM duckdb_tables()
SELECT * FROM duckdb_functions()
SELECT * FROM pragma_version()
SELECT * FROM pragma_database_size()
SELECT * FROM information_schema.tables
SELECT * FROM pg_catalog.pg_class
SELECT * FROM sqlite_master
SELECT * FROM duckdb_tables
SELECT * FROM main.r0
SELECT * FROM memory.main.r0
SELECT * FROM "privsql r0"
SELECT * FROM (WITH sqlite_master AS (SELECT 1) FROM sqlite_master), sqlite_master
SELECT * FROM LATERAL (SELECT * FROM duckdb_settings())
SELECT * FROM r0, LATERAL read_text('/etc/passwd')
SELECT * FROM test_all_types()
SELECT * FROM repeat_row(1, num_rows = 5)
WITH RECURSIVE a AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM a) SELECT * FROM a
SELECT * FROM r0 USING SAMPLE 10 PERCENT
SELECT * FROM r0 TABLESAMPLE 10%
SELECT * FROM r0 AT (VERSION => 1)
SELECT ?
SELECT $x
DESCRIBE r0
SHOW TABLES
SUMMARIZE r0
SET threads = 2
SET VARIABLE x = 1
RESET threads
PRAGMA database_list
COPY (SELECT 1) TO '/tmp/x.csv'
COPY r0 TO '/tmp/x.csv'
EXPORT DATABASE '/tmp/x'
IMPORT DATABASE '/tmp/x'
ATTACH '/tmp/x.db'
INSTALL httpfs
LOAD icu
CREATE TABLE x AS SELECT 1
INSERT INTO r0 VALUES (1)
DELETE FROM r0
UPDATE r0 SET n = 1
DROP TABLE r0
CALL pragma_version()
CREATE MACRO f(x) AS x
CHECKPOINT
""".strip().splitlines()
