"""Python's database interface (PEP 249): SQL goes in through a cursor, private answers come out as rows.

```python
connection = privsql.dbapi.connect("clinic.duckdb", policy="clinic.toml", epsilon=0.1)
cursor = connection.cursor()
cursor.execute("SELECT COUNT(*) AS n FROM visits WHERE age >= ?", [65])
cursor.fetchone()
```

Each query costs the epsilon of the connection, which `SET epsilon = 0.5` changes. A repeated query is free.
"""

from privsql.dbapi.column_types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)
from privsql.dbapi.database_connection import DatabaseConnection as Connection
from privsql.dbapi.database_connection import connect
from privsql.dbapi.database_cursor import DatabaseCursor as Cursor
from privsql.dbapi.database_errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)

apilevel = "2.0"
threadsafety = 2  # threads may share the module and connections
paramstyle = "qmark"  # $1 and :name work, too

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
