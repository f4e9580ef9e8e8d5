"""Nothing goes in; the parser of the command line comes out, with what its help says."""

from __future__ import annotations

import argparse

from privsql.cli import commands
from privsql.policy.checks import AUTO

_MECHANISMS = ("permute-and-flip", "exponential", "gumbel", "laplace", "gaussian")

_LIMIT_HELP = "the most {}; auto: found privately, for a share of epsilon; default: as the policy says"

_TOP = """\
Ordinary SQL, private answers: every number comes with enough noise that it says next to
nothing about any one person's row.

examples:
  privsql demo
  privsql query   visits.csv "SELECT COUNT(*) AS n FROM visits WHERE age >= 65" --epsilon 0.5
  privsql explain visits.csv "SELECT COUNT(*) AS n FROM visits WHERE age >= 65" --epsilon 0.5
  privsql audit   visits.csv "SELECT COUNT(*) AS n FROM visits WHERE age >= 65" --epsilon 0.5
  privsql policy  init visits.csv -o clinic.toml
  privsql budget  clinic.ledger
"""

_SOURCES = """\
SOURCE is a DuckDB file (.duckdb, .db, .ddb), a Parquet file or a CSV file (.csv, .tsv, .csv.gz).
A Parquet or CSV file is one table, named after the file: data/visits.csv is the table visits.
"""
_SQL = "SQL is one SELECT; a dash (-) reads it from standard input.\n"

_QUERY = f"""\
Answer one question with noise.

{_SOURCES}{_SQL}
With --ledger, what is spent is kept in a file, for all who name it: the budget of the policy then
holds over all runs. Without it every run starts with the whole budget, and nothing is remembered.

examples:
  privsql query visits.parquet "SELECT COUNT(*) AS n FROM visits" --epsilon 1
  privsql query visits.parquet "SELECT COUNT(*) AS n FROM visits" --within 20 --confidence 0.99
  privsql query visits.parquet "SELECT COUNT(*) AS n FROM visits" --epsilon 1 \\
      --policy clinic.toml --ledger clinic.ledger --analyst ana
  privsql query clinic.duckdb "SELECT state, AVG(age) AS age FROM visits GROUP BY state" \\
      --epsilon 1 --policy clinic.toml --format json

a policy file (TOML) says what may be summed and which keys are public:
  [budget]
  epsilon = 10.0
  [tables.visits.columns]
  age   = {{ range = [0, 120] }}
  state = {{ values = ["CA", "NY"] }}
"""

_EXPLAIN = f"""\
Show what `privsql query` would do: how far one person can move each number and why, the noise,
the error to expect, the cost. Reads no rows, spends nothing.

{_SOURCES}{_SQL}
example:
  privsql explain visits.csv "SELECT COUNT(*) AS n FROM visits WHERE age >= 65" --epsilon 0.5
"""

_AUDIT = f"""\
Try to break the promise of a question: search for two neighbouring tables that move a number further
than is claimed, and measure epsilon on very many releases of the worst pair. All tables are made up,
of the schema and the policy; no private row is read, nothing is spent.

{_SOURCES}{_SQL}
The exit code is 0 where the promise held, 1 where it is broken, 2 where the question is refused.

examples:
  privsql audit visits.parquet "SELECT COUNT(*) AS n FROM visits WHERE age >= 65" --epsilon 1
  privsql audit clinic.duckdb "SELECT state, AVG(age) FROM visits GROUP BY state" \\
      --epsilon 1 --policy clinic.toml --releases 1000000 --plot audit.png
"""

_POLICY = """\
A policy says whose rows these are, how much of one person is used, which values may be summed
and shown, and how much may be answered in all.

examples:
  privsql policy init  clinic.duckdb -o clinic.toml      # a draft, from the schema alone
  privsql policy check clinic.toml clinic.duckdb         # what it means, table by table
"""

_INIT = f"""\
Write a draft of a policy with the reason for every line. It is made from names, types and
constraints; no row is read and nothing is spent, unless --epsilon is given.

{_SOURCES}
examples:
  privsql policy init clinic.duckdb -o clinic.toml
  privsql policy init clinic.duckdb --unit patients.id
  privsql policy init visits.parquet --unit patient_id --epsilon 0.1
  privsql policy init visits.parquet --find-ranges --epsilon 0.5 --ledger visits.ledger
"""

_CHECK = f"""\
Say what a policy means, table by table: whose rows, bounded how, which columns have ranges and
keys, which caps hold and which protect little; or what is wrong with it. Reads no private
row, spends nothing.

{_SOURCES}
example:
  privsql policy check clinic.toml clinic.duckdb
"""


_BUDGET = """\
Show what a ledger says: what is spent, by whom and when, and what is left. Changes nothing.

examples:
  privsql budget clinic.ledger
  privsql budget clinic.ledger --by analyst
  privsql budget clinic.ledger --by day --format json
"""

_LEDGER = """\
For the owner of the data: raise a cap, let an analyst go on whose queries failed, or make sure that a ledger is
what it was.

examples:
  privsql ledger renew  clinic.ledger --epsilon 5 --reason "the ethics board, 12 March"
  privsql ledger renew  clinic.ledger --epsilon 1 --analyst ana --reason "half a year more"
  privsql ledger renew  clinic.ledger --failures --analyst ana     # her queries may be asked, and fail, again
  privsql ledger anchor clinic.ledger >> anchors.txt        # keep it elsewhere
  privsql ledger verify clinic.ledger --anchor "$(tail -1 anchors.txt)"
"""


def parser() -> argparse.ArgumentParser:
    from privsql import __version__

    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="privsql", description=_TOP, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"privsql {__version__}")
    verbs = parser.add_subparsers(
        required=True, metavar="demo | query | explain | audit | policy | budget | ledger"
    )
    demo = verbs.add_parser("demo", help="a guided tour on made-up data, in a few seconds")
    demo.set_defaults(run=commands.demo)
    query = verbs.add_parser(
        "query", help="answer one question with noise", description=_QUERY, formatter_class=raw
    )
    _question(query)
    query.add_argument("--deadline", type=float, metavar="S", help="fail after so many seconds, for certain")
    query.add_argument("--memory-limit", metavar="SIZE", help="what the engine may use, such as 2GB")
    query.add_argument(
        "--time-quantum", type=float, metavar="S", help="answer at whole multiples of so many seconds"
    )
    query.add_argument(
        "--format",
        choices=("table", "csv", "json"),
        default="table",
        help="table (with intervals), csv (the rows alone) or json (rows, intervals and receipt); default: table",
    )
    query.add_argument(
        "--show-all",
        action="store_true",
        help="also numbers of cells with too few rows to say anything, which are NULL otherwise; free, also afterwards",
    )
    query.set_defaults(run=commands.query)
    explain = verbs.add_parser(
        "explain", help="what a query would do and cost", description=_EXPLAIN, formatter_class=raw
    )
    _question(explain)
    for verb in (query, explain):
        verb.add_argument(
            "--data-version",
            metavar="NAME",
            help="what the data is called as it is now, such as 2026-11: answers are stored under it",
        )
        verb.add_argument(
            "--fresh", action="store_true", help="ask anew and pay, also where earlier answers say it"
        )
    explain.add_argument(
        "--format",
        choices=("table", "json"),
        default="table",
        help="table (the derivation as a tree) or json (the same for programs, with the exact SQL); default: table",
    )
    explain.set_defaults(run=commands.explain)
    _audit_arguments(
        verbs.add_parser("audit", help="try to break the promise", description=_AUDIT, formatter_class=raw)
    )
    _policy(
        verbs.add_parser("policy", help="draft or check a policy", description=_POLICY, formatter_class=raw)
    )
    budget = verbs.add_parser("budget", help="what a ledger says", description=_BUDGET, formatter_class=raw)
    _file(budget)
    budget.add_argument("--by", choices=("analyst", "day"), help="also by analyst, or by day (UTC)")
    budget.add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    budget.set_defaults(run=commands.budget)
    _ledger(
        verbs.add_parser("ledger", help="renew or verify a ledger", description=_LEDGER, formatter_class=raw)
    )
    return parser


def _file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ledger", metavar="LEDGER", help="the file of a ledger")


def _ledger(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(required=True, metavar="renew | anchor | verify")
    renew = verbs.add_parser(
        "renew", help="raise a cap, or count failed queries from 0 again, for the record"
    )
    _file(renew)
    renew.add_argument("--epsilon", type=float, metavar="E", help="how much epsilon is added to the cap")
    renew.add_argument("--delta", type=float, metavar="D", help="how much delta is added to the cap")
    renew.add_argument(
        "--reason", default="", help="why; it stays in the ledger (a cap is not raised without one)"
    )
    renew.add_argument(
        "--failures", action="store_true", help="count failed queries from 0 again; raises no cap"
    )
    whose = renew.add_mutually_exclusive_group()
    whose.add_argument(
        "--analyst", metavar="NAME", help="of one analyst; default: the cap of the dataset, all failures"
    )
    whose.add_argument("--per-query", action="store_true", help="the cap of one question")
    renew.set_defaults(run=commands.renew)
    anchor = verbs.add_parser(
        "anchor", help="one line that says how far the ledger has come, to be kept elsewhere"
    )
    _file(anchor)
    anchor.set_defaults(run=commands.anchor)
    verify = verbs.add_parser("verify", help="check the file, the chain of entries, the sums and the caps")
    _file(verify)
    verify.add_argument(
        "--anchor", metavar="TEXT", help="a line of `ledger anchor`: nothing was taken back since"
    )
    verify.set_defaults(run=commands.verify)


def _policy(parser: argparse.ArgumentParser) -> None:
    raw = argparse.RawDescriptionHelpFormatter
    verbs = parser.add_subparsers(required=True, metavar="init | check")
    init = verbs.add_parser(
        "init", help="a draft with every choice explained", description=_INIT, formatter_class=raw
    )
    init.add_argument("source", metavar="SOURCE", help="a DuckDB, Parquet or CSV file")
    init.add_argument(
        "--epsilon",
        type=float,
        metavar="E",
        help="spend this much on choosing max_rows from noisy counts; default: nothing",
    )
    init.add_argument(
        "--find-ranges",
        action="store_true",
        help="also find the ranges of numbers from noisy counts; needs --epsilon",
    )
    init.add_argument("--ledger", metavar="FILE", help="charge it to this ledger; made where it is missing")
    init.add_argument(
        "--analyst", default="policy init", metavar="NAME", help="who is charged; default: policy init"
    )
    init.add_argument(
        "--unit", metavar="COLUMN", help="whose privacy: a column, or table.column; default: guess by names"
    )
    init.add_argument("-o", "--output", metavar="FILE", help="write to a new file; default: standard output")
    init.set_defaults(run=commands.policy_init)
    check = verbs.add_parser(
        "check", help="what a policy means for a source", description=_CHECK, formatter_class=raw
    )
    check.add_argument("policy", metavar="FILE", help="a TOML file")
    check.add_argument("source", metavar="SOURCE", help="a DuckDB, Parquet or CSV file")
    check.set_defaults(run=commands.policy_check)


def _audit_arguments(parser: argparse.ArgumentParser) -> None:
    _asked(parser)
    parser.add_argument(
        "--releases", type=int, metavar="N", help="of each table; default: as many as a few seconds allow"
    )
    parser.add_argument(
        "--tries",
        type=int,
        default=200,
        metavar="N",
        help="tables made for each crowd of others; default: 200",
    )
    parser.add_argument(
        "--data", metavar="FILE", help="tables to start from besides, not SOURCE; rows of them are shown"
    )
    parser.add_argument("--plot", metavar="FILE", help="also write a picture (.png; needs matplotlib)")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    parser.set_defaults(run=commands.audit)


def _question(parser: argparse.ArgumentParser) -> None:
    _asked(parser)
    parser.add_argument("--ledger", metavar="FILE", help="where the budget is kept; made where it is missing")
    parser.add_argument("--analyst", default="analyst", metavar="NAME", help="who asks; default: analyst")


def _asked(parser: argparse.ArgumentParser) -> None:
    """A question, its price and what it is asked of."""
    parser.add_argument("source", metavar="SOURCE", help="a DuckDB, Parquet or CSV file")
    parser.add_argument("sql", metavar="SQL", help="one SELECT, in quotes")
    price = parser.add_mutually_exclusive_group(required=True)
    price.add_argument(
        "--epsilon",
        type=float,
        help="what the answer may cost: smaller is more private and noisier; 1 is common",
    )
    price.add_argument(
        "--within",
        type=float,
        metavar="X",
        help="instead of --epsilon: the least cost at which every number is within +-X",
    )
    parser.add_argument(
        "--confidence", type=float, default=0.95, help="how surely --within holds; default: 0.95"
    )
    parser.add_argument(
        "--delta",
        type=float,
        default=0.0,
        help="above 0, keys that nobody declared are shown if many have them; 1e-6 is common",
    )
    parser.add_argument("--policy", metavar="FILE", help="a TOML file with ranges, keys and the budget")
    parser.add_argument(
        "--dialect", default="duckdb", help="the dialect of the SQL: any that sqlglot reads; default: duckdb"
    )
    parser.add_argument(
        "--mechanism",
        choices=_MECHANISMS,
        help="the noise: laplace or gaussian for numbers, all but gaussian for labels; default: the best",
    )

    limits = {"--max-rows": "rows one person may have in one key", "--max-groups": "keys of one person"}
    for name, what in limits.items():
        parser.add_argument(name, type=_limit, metavar="N", help=_LIMIT_HELP.format(what))
    parser.add_argument(
        "--nonnegative",
        action="store_true",
        help="move counts below 0 to the nearest that could be true; totals are kept",
    )
    parser.add_argument(
        "--consistent", action="store_true", help="make counts that are parts of others fit into them"
    )


def _limit(text: str) -> int | str:
    """A whole number, or auto."""
    return text if text == AUTO else int(text)
