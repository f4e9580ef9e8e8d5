"""A dialect for SQLAlchemy (extra: privsql[sqlalchemy]): SELECT goes in, private answers come out.

```python
engine = sqlalchemy.create_engine("privsql:///clinic.duckdb?policy=clinic.toml&epsilon=0.1")
pd.read_sql("SELECT state, COUNT(*) AS n FROM visits GROUP BY state", engine)
```

The address takes the arguments of `privsql.connect` and `Session.query`. All connections of an engine share
one session, and so one budget.
"""

from privsql.sqlalchemy.private_dialect import PrivsqlDialect

__all__ = ["PrivsqlDialect"]
