"""What privsql believes of an expression, asked of the real engine: type, range, totality, locality.

`DIALECT` writes every expression that is asked. For a new dialect of DuckDB this line is all there is to
change; for another engine `hostile.py` must also fill that engine's database, and the tests open it.
"""

from privsql.render.duckdb import DUCKDB

DIALECT = DUCKDB
