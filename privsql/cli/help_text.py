"""What `privsql COMMAND --help` says above the options."""

from __future__ import annotations

TOP = """\
Ordinary SQL with differential privacy: every number has enough noise that it says next to
nothing about any one person.

examples:
  privsql demo
  privsql query   visits.csv "SELECT COUNT(*) AS n FROM visits WHERE age >= 65" --epsilon 0.5
  privsql explain visits.csv "SELECT COUNT(*) AS n FROM visits WHERE age >= 65" --epsilon 0.5
  privsql advise  visits.csv "SELECT COUNT(*) AS n FROM visits WHERE age >= 65"
  privsql audit   visits.csv "SELECT COUNT(*) AS n FROM visits WHERE age >= 65" --epsilon 0.5
  privsql policy  init visits.csv -o clinic.toml
  privsql budget  clinic.ledger
  privsql history clinic.ledger
"""

_SOURCES = """\
SOURCE is a DuckDB file (.duckdb, .db, .ddb), a Parquet file or a CSV file (.csv, .tsv, .csv.gz).
A Parquet or CSV file is one table, named after the file: data/visits.csv is the table visits.
"""
_SQL = "SQL is one SELECT; a dash (-) reads it from standard input.\n"

QUERY = f"""\
Answer one query with noise.

{_SOURCES}{_SQL}
With --ledger, spending is recorded in a file, for everyone who names it, so that the budget of the
policy holds across runs. Without it every run starts with the whole budget and remembers nothing.

examples:
  privsql query visits.parquet "SELECT COUNT(*) AS n FROM visits" --epsilon 1
  privsql query visits.parquet "SELECT COUNT(*) AS n FROM visits" --within 20 --confidence 0.99
  privsql query visits.parquet "SELECT COUNT(*) AS n FROM visits" --epsilon 1 \\
      --policy clinic.toml --ledger clinic.ledger --analyst ana
  privsql query clinic.duckdb "SELECT state, AVG(age) AS age FROM visits GROUP BY state" \\
      --epsilon 1 --policy clinic.toml --format json

a policy file (TOML) declares ranges, without which columns cannot be summed, and public keys:
  [budget]
  epsilon = 10.0
  [tables.visits.columns]
  age   = {{ range = [0, 120] }}
  state = {{ values = ["CA", "NY"] }}
"""

EXPLAIN = f"""\
Show what `privsql query` would do: how far one person can move each number and why, the noise,
the error to expect, the cost. Reads no rows, spends nothing.

{_SOURCES}{_SQL}
example:
  privsql explain visits.csv "SELECT COUNT(*) AS n FROM visits WHERE age >= 65" --epsilon 0.5
"""

ADVISE = f"""\
Choose an epsilon: the error of each number of a query at several epsilons, what an attacker could
learn, and how many such queries the budget allows. Reads no rows, spends nothing.

{_SOURCES}{_SQL}
examples:
  privsql advise visits.csv "SELECT COUNT(*) AS n FROM visits WHERE age >= 65"
  privsql advise clinic.duckdb "SELECT state, AVG(age) AS age FROM visits GROUP BY state" \\
      --policy clinic.toml --rows 1000 --plot advice.png
"""

AUDIT = f"""\
Try to break the privacy promise of a query: search for two neighbouring tables that move a number
further than claimed, and measure epsilon on very many releases of the worst pair. All tables are
made up from the schema and the policy; no private row is read, nothing is spent.

{_SOURCES}{_SQL}
The exit code is 0 if the promise held, 1 if it is broken, 2 if the query is rejected.

examples:
  privsql audit visits.parquet "SELECT COUNT(*) AS n FROM visits WHERE age >= 65" --epsilon 1
  privsql audit clinic.duckdb "SELECT state, AVG(age) FROM visits GROUP BY state" \\
      --epsilon 1 --policy clinic.toml --releases 1000000 --plot audit.png
"""

POLICY = """\
A policy declares the privacy unit of each table, how much of one unit's data is used, which values
may be summed and shown, and the privacy budget.

examples:
  privsql policy init  clinic.duckdb -o clinic.toml      # a draft, from the schema alone
  privsql policy check clinic.toml clinic.duckdb         # what it means, table by table
"""

INIT = f"""\
Draft a policy, with a reason for every line. The draft is made from names, types and constraints;
no row is read and nothing is spent unless --epsilon is given.

{_SOURCES}
examples:
  privsql policy init clinic.duckdb -o clinic.toml
  privsql policy init clinic.duckdb --unit patients.id
  privsql policy init visits.parquet --unit patient_id --epsilon 0.1
  privsql policy init visits.parquet --find-ranges --epsilon 0.5 --ledger visits.ledger
"""

CHECK = f"""\
Explain what a policy means, table by table: the privacy unit, the limits on its rows, which columns
have ranges and keys, which caps apply and which protect little; or what is wrong with it.
Reads no private row, spends nothing.

{_SOURCES}
example:
  privsql policy check clinic.toml clinic.duckdb
"""

BUDGET = """\
Show what a ledger records: what was spent, by whom and when, and what is left. Changes nothing.

examples:
  privsql budget clinic.ledger
  privsql budget clinic.ledger --by analyst
  privsql budget clinic.ledger --by day --format json
"""

LEDGER = """\
For the data owner: raise a cap, unblock an analyst whose queries failed, or verify that nobody has
altered a ledger.

examples:
  privsql ledger renew  clinic.ledger --epsilon 5 --reason "the ethics board, 12 March"
  privsql ledger renew  clinic.ledger --epsilon 1 --analyst ana --reason "half a year more"
  privsql ledger renew  clinic.ledger --failures --analyst ana    # ana may run queries again
  privsql ledger anchor clinic.ledger >> anchors.txt              # keep it somewhere else
  privsql ledger verify clinic.ledger --anchor "$(tail -1 anchors.txt)"
"""
