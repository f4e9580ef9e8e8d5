"""The command line's parser: one function for the arguments of each command."""

from __future__ import annotations

import argparse
from typing import Any

from privsql.cli import commands, help_text
from privsql.policy.checks import AUTO

_MECHANISMS = ("permute-and-flip", "exponential", "gumbel", "laplace", "gaussian")
_SOURCE = "a DuckDB, Parquet or CSV file"
_LIMIT_HELP = "the most {}; auto: found privately, for a share of epsilon; default: what the policy says"


def parser() -> argparse.ArgumentParser:
    """The parser of `privsql`. Parsed arguments have `run`, the function that carries the command out."""
    from privsql import __version__

    top = argparse.ArgumentParser(
        prog="privsql",
        description=help_text.TOP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"privsql {__version__}")
    verbs = top.add_subparsers(
        required=True, metavar="demo | query | explain | advise | audit | policy | budget | history | ledger"
    )
    demo = verbs.add_parser("demo", help="a guided tour on made-up data, in a few seconds")
    demo.set_defaults(run=commands.demo)
    _add_query(_command(verbs, "query", "answer one query with noise", help_text.QUERY))
    _add_explain(_command(verbs, "explain", "what a query would do and cost", help_text.EXPLAIN))
    _add_advise(_command(verbs, "advise", "the error of a query at several epsilons", help_text.ADVISE))
    _add_audit(_command(verbs, "audit", "try to break the privacy promise", help_text.AUDIT))
    _add_policy(_command(verbs, "policy", "draft or check a policy", help_text.POLICY))
    _add_budget(_command(verbs, "budget", "what a ledger records", help_text.BUDGET))
    _add_history(_command(verbs, "history", "every charge of a ledger, one a line"))
    _add_ledger(_command(verbs, "ledger", "renew or verify a ledger", help_text.LEDGER))
    return top


def _command(verbs: Any, name: str, summary: str, description: str | None = None) -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    added: argparse.ArgumentParser = verbs.add_parser(
        name, help=summary, description=description, formatter_class=raw
    )
    return added


# -- queries -------------------------------------------------------------------------------------------------
def _add_query(query: argparse.ArgumentParser) -> None:
    _add_request(query)
    _add_charging(query)
    query.add_argument(
        "--deadline", type=float, metavar="S", help="abort after this many seconds, without fail"
    )
    query.add_argument("--memory-limit", metavar="SIZE", help="memory the engine may use, such as 2GB")
    query.add_argument(
        "--time-quantum", type=float, metavar="S", help="pad the response time to a multiple of S seconds"
    )
    query.add_argument(
        "--format",
        choices=("table", "markdown", "csv", "json", "parquet"),
        default="table",
        help="table or markdown (with intervals), csv (the rows only), json (rows, intervals and receipt) or "
        "parquet (the rows; needs pyarrow and -o); default: table",
    )
    query.add_argument("-o", "--output", metavar="FILE", help="write the answer there")
    query.add_argument(
        "--show-all",
        action="store_true",
        help="also show numbers of cells with too few rows to be meaningful, which are NULL otherwise; "
        "free, even after the query",
    )
    query.set_defaults(run=commands.query)


def _add_explain(explain: argparse.ArgumentParser) -> None:
    _add_request(explain)
    _add_charging(explain)
    explain.add_argument(
        "--format",
        choices=("table", "json"),
        default="table",
        help="table (the derivation as a tree) or json (the same for programs, with the exact SQL); "
        "default: table",
    )
    explain.set_defaults(run=commands.explain)


def _add_advise(advise: argparse.ArgumentParser) -> None:
    _add_source(advise)
    advise.add_argument(
        "--epsilons",
        type=float,
        nargs="+",
        default=None,
        metavar="E",
        help="the epsilons to compare; default: 0.05 to 5",
    )
    advise.add_argument(
        "--rows",
        type=int,
        metavar="N",
        help="about how many rows an average is over: its error depends on it",
    )
    _add_ledger_of(advise)
    advise.add_argument("--plot", metavar="FILE", help="also write a picture (.png; needs matplotlib)")
    _add_options(advise)
    _add_format(advise)
    advise.set_defaults(run=commands.advise)


def _add_audit(audit: argparse.ArgumentParser) -> None:
    _add_request(audit)
    audit.add_argument(
        "--releases", type=int, metavar="N", help="releases of each table; default: a few seconds' worth"
    )
    audit.add_argument(
        "--tries",
        type=int,
        default=200,
        metavar="N",
        help="tables made for each choice of the other people; default: 200",
    )
    audit.add_argument(
        "--data", metavar="FILE", help="also start from these tables, not SOURCE; their rows may be shown"
    )
    audit.add_argument("--plot", metavar="FILE", help="also write a picture (.png; needs matplotlib)")
    _add_format(audit)
    audit.set_defaults(run=commands.audit)


def _add_charging(parser: argparse.ArgumentParser) -> None:
    """Who is charged in which ledger, and when a stored answer will do."""
    _add_ledger_of(parser)
    parser.add_argument(
        "--data-version",
        metavar="NAME",
        help="a name for the current state of the data, such as 2026-11; answers are stored under it",
    )
    parser.add_argument(
        "--fresh", action="store_true", help="pay for a new answer even if a stored one would do"
    )


def _add_ledger_of(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ledger", metavar="FILE", help="where spending is recorded; created if missing")
    parser.add_argument("--analyst", default="analyst", metavar="NAME", help="who asks; default: analyst")


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help=_SOURCE)
    parser.add_argument("sql", metavar="SQL", help="one SELECT, in quotes")


def _add_request(parser: argparse.ArgumentParser) -> None:
    """A query, what it may cost, and how it is answered."""
    _add_source(parser)
    cost = parser.add_mutually_exclusive_group(required=True)
    cost.add_argument(
        "--epsilon",
        type=float,
        help="what the answer may cost: smaller is more private and noisier; 1 is common",
    )
    cost.add_argument(
        "--within",
        type=float,
        metavar="X",
        help="instead of --epsilon: spend the least epsilon that keeps every number within +-X",
    )
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    """How a query is answered, whatever it costs."""
    parser.add_argument(
        "--confidence", type=float, default=0.95, help="the confidence of --within; default: 0.95"
    )
    parser.add_argument(
        "--delta",
        type=float,
        default=0.0,
        help="above 0: undeclared keys are shown if enough people have them; 1e-6 is common",
    )
    parser.add_argument("--policy", metavar="FILE", help="a TOML file with ranges, keys and the budget")
    parser.add_argument(
        "--unit", action="append", metavar="COLUMN", help="whose privacy: the column that says whose a row is"
    )
    parser.add_argument(
        "--keys", action="append", metavar="COLUMN=A,B", help="the values of a column that may be shown"
    )
    parser.add_argument(
        "--ranges",
        action="append",
        metavar="COLUMN=LOW..HIGH",
        help="the range that a column is clamped to; auto: found privately, for a share of epsilon",
    )
    parser.add_argument(
        "--dialect", default="duckdb", help="the SQL dialect: any that sqlglot parses; default: duckdb"
    )
    parser.add_argument(
        "--mechanism",
        choices=_MECHANISMS,
        help="laplace or gaussian for numbers, any but gaussian for labels; default: the most accurate",
    )
    limits = {
        "--max-rows": "rows of one person in one key",
        "--max-groups": "keys in which one person counts",
    }
    for name, what in limits.items():
        parser.add_argument(name, type=_limit, metavar="N", help=_LIMIT_HELP.format(what))
    parser.add_argument(
        "--nonnegative",
        action="store_true",
        help="replace counts below 0 by the nearest possible ones; totals are kept",
    )
    parser.add_argument(
        "--consistent", action="store_true", help="adjust counts so that parts fit into their totals"
    )


def _limit(text: str) -> int | str:
    """A whole number, or auto."""
    return text if text == AUTO else int(text)


def _add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: table")


# -- policies ------------------------------------------------------------------------------------------------
def _add_policy(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(required=True, metavar="init | check")
    _add_init(_command(verbs, "init", "a draft with a reason for every line", help_text.INIT))
    check = _command(verbs, "check", "what a policy means for a source", help_text.CHECK)
    check.add_argument("policy", metavar="FILE", help="a TOML file")
    check.add_argument("source", metavar="SOURCE", help=_SOURCE)
    check.set_defaults(run=commands.policy_check)


def _add_init(init: argparse.ArgumentParser) -> None:
    init.add_argument("source", metavar="SOURCE", help=_SOURCE)
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
    init.add_argument("--ledger", metavar="FILE", help="charge the cost to this ledger; created if missing")
    init.add_argument(
        "--analyst", default="policy init", metavar="NAME", help="who is charged; default: policy init"
    )
    init.add_argument(
        "--unit", metavar="COLUMN", help="the privacy unit: column or table.column; default: guess by name"
    )
    init.add_argument("-o", "--output", metavar="FILE", help="write to a new file; default: standard output")
    init.set_defaults(run=commands.policy_init)


# -- ledgers -------------------------------------------------------------------------------------------------
def _add_budget(budget: argparse.ArgumentParser) -> None:
    _add_ledger_file(budget)
    budget.add_argument("--by", choices=("analyst", "day"), help="also by analyst, or by day (UTC)")
    _add_format(budget)
    budget.set_defaults(run=commands.budget)


def _add_history(history: argparse.ArgumentParser) -> None:
    _add_ledger_file(history)
    history.add_argument("--format", choices=("table", "csv", "json"), default="table", help="default: table")
    history.set_defaults(run=commands.history)


def _add_ledger(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(required=True, metavar="renew | anchor | verify")
    _add_renew(_command(verbs, "renew", "raise a cap, or reset the count of failed queries, on record"))
    anchor = _command(verbs, "anchor", "one line, to be kept elsewhere, that pins the ledger's state")
    _add_ledger_file(anchor)
    anchor.set_defaults(run=commands.anchor)
    verify = _command(verbs, "verify", "check the file, the chain of entries, the sums and the caps")
    _add_ledger_file(verify)
    verify.add_argument(
        "--anchor", metavar="TEXT", help="a line from `ledger anchor`: check that nothing was undone since"
    )
    verify.set_defaults(run=commands.verify)


def _add_renew(renew: argparse.ArgumentParser) -> None:
    _add_ledger_file(renew)
    renew.add_argument("--epsilon", type=float, metavar="E", help="how much epsilon to add to the cap")
    renew.add_argument("--delta", type=float, metavar="D", help="how much delta to add to the cap")
    renew.add_argument(
        "--reason", default="", help="why; recorded in the ledger, and required to raise a cap"
    )
    renew.add_argument(
        "--failures", action="store_true", help="reset the count of failed queries; raises no cap"
    )
    whose = renew.add_mutually_exclusive_group()
    whose.add_argument(
        "--analyst",
        metavar="NAME",
        help="for one analyst; default: the cap of the dataset, everybody's failures",
    )
    whose.add_argument("--per-query", action="store_true", help="the cap on one query")
    renew.set_defaults(run=commands.renew)


def _add_ledger_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ledger", metavar="LEDGER", help="a ledger file")
