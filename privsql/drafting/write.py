"""A source goes in; a draft of its policy comes out, as TOML with a reason for every line.

The draft is made from the schema alone. Given an epsilon, max_rows is chosen and, on request, ranges are
found from noisy counts: queries like any other, charged and shown.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from privsql.drafting.choose_rows import ChosenRows
from privsql.drafting.columns import column_line, comment, shown
from privsql.drafting.findings import BUDGET, Findings, declared, domains_of, learn, roles_of, scan_of
from privsql.drafting.guess import Guess, guess_units, links_of, others_in
from privsql.engines.duckdb.open_source import open_engine
from privsql.errors import ArgumentError
from privsql.planning.limits.range_histograms import Unknown
from privsql.policy import Policy, load_policy
from privsql.policy.checks import DEFAULT_GROUPS, DEFAULT_ROWS, analyst_of, epsilon_of
from privsql.schema import Schema, SchemaTable
from privsql.sql.bind.catalogue import Catalogue
from privsql.suggestions import toml_key, toml_text

_DETECTED = (".csv", ".tsv", ".gz")

_HEAD = """\
# A draft of a policy for {source}, by `privsql policy init`.
# {how}
# A policy is a promise to the people in the data, and names only hint at who they are. Read every line.
# Lines behind # are switched off. Then run: privsql policy check FILE {source}
"""
_NEIGHBOURS = """
# What an answer must not reveal. "replace-one": whether one person's data are these or any others; the
# number of people is public. "add-remove": whether one person is in the data at all; counts by key then need
# half the noise.
neighbours = "replace-one"

# Which keys occur in a GROUP BY is private. Only declared keys are shown or, with a delta, undeclared ones
# that enough people have. min_units = 10 would show none of these with fewer than 10 people.
# min_units = 10
"""
_BUDGET = """
[budget]
# The sum of the epsilons of all answers. Somebody who knows everything else, and is 50% sure of something
# about one person, is at most 73% sure after epsilon 1, 95% after 3, 99.995% after 10. Choose 1 or less for
# anything that can hurt.
{spent}epsilon = {epsilon}
# The probability that undeclared keys give somebody away; choose it far below 1 / the number of people.
# Without delta, no undeclared keys are shown.
# delta = 1e-6
# Whether a query fails after its charge can reveal something about a person, and epsilon does not bound that.
# So no query costs less than this, and after this many failures an analyst has to ask you
# (privsql ledger renew LEDGER --failures).
per_query_least = 0.01
max_failures = 3
"""
_TABLES = """
# For each table: its privacy unit, how much of one unit's data is used, and what its columns may hold.
# unit        all rows with the same unit are protected together; rows where it is NULL are left out.
# max_groups  how many keys of one GROUP BY a unit counts in; max_rows: how many of its rows count in each.
#             Rows beyond the limits are dropped, and the noise grows with both limits: set them to what most
#             units have, not to the maximum.
# range       values are clamped to it before they are summed. values: the keys that a GROUP BY shows, all of
#             them. Both are enforced: a wrong one costs accuracy, never privacy. Do not copy them from
#             private data: take them from what the column means and how it is recorded. No range is guessed
#             from a name. If you do not know one, range = "auto" finds it privately for part of the epsilon
#             of each query, and `privsql policy init --find-ranges --epsilon 0.5` once for all queries.
# nullable    false if a column is never NULL, whatever its type says. Then NULL is not a key of a GROUP BY,
#             and rows with NULL are left out of it. Nothing else relies on it.
# unique      columns in which no two rows agree, if the schema does not say so. This is believed: if it is
#             wrong, the promise is broken.
"""
_NO_UNIT = """\
# !! NO UNIT: EACH ROW COUNTS AS ONE PERSON, because no column looks like a person's. Somebody with 2 rows
# !! here has twice the privacy loss, and somebody with 100 rows has nearly no protection. If people can have
# !! several rows, declare whose they are:
# unit = "..."
"""
_PUBLIC = """\
# If the table says nothing about people and everybody may see it (a list of countries), make answers about it
# exact:
# public = true
"""
_VIEW = """
# {name} is a view. Only you know whose rows it is made of; until you declare it, queries of it are refused:
# [tables.{key}]
# unit = "..."    # without this line each of its rows counts as one person
"""


def draft(
    source: Any,
    epsilon: float | None = None,
    unit: str | None = None,
    *,
    ranges: bool = False,
    ledger: str | Path | None = None,
    analyst: str = "policy init",
) -> str:
    """Draft a policy for a source.

    Arguments:
        source: a path, or anything else that connect() takes.
        epsilon: what may be spent on choosing max_rows; by default nothing is spent and no row is read.
        unit: the privacy unit, as column or table.column; by default it is guessed from names.
        ranges: whether to spend part of the epsilon on finding the ranges of numbers.
        ledger, analyst: the ledger file that is charged, and in whose name.

    Returns:
        The text of a policy file.

    Raises:
        ArgumentError: there is nothing to spend on a search, or epsilon is out of range.
        PolicyError: the unit is not a column that can be one.
        SourceError: the source cannot be opened.
        BudgetError: the ledger cannot pay.
    """
    price = _price(epsilon, ranges, ledger)
    engine = open_engine(source)
    try:
        schema = _of_one_database(engine.schema())
        units = guess_units(schema, unit)
        policy = load_policy(declared(units))
        found = Findings()
        if price is not None:
            found = learn(engine, schema, units, price, ranges, ledger, analyst_of(analyst))
        tables = [
            _VIEW.format(name=shown(table.name), key=toml_key(table.name))
            if table.view
            else _table(schema, table, policy, units, found)
            for table in schema.tables
        ]
    finally:
        engine.close()
    text = _head(source, price, found) + "".join(tables)
    catalogue = Catalogue(schema, load_policy(tomllib.loads(text)))  # the draft must itself be a valid policy
    for table in schema.tables:
        if not table.view:
            catalogue.source(table.name)
    return text


def _of_one_database(schema: Schema) -> Schema:
    """The schema without tables of attached databases: only the owner can say that they belong to it."""
    return replace(schema, tables=tuple(each for each in schema.tables if not schema.is_elsewhere(each)))


def _price(epsilon: float | None, ranges: bool, ledger: str | Path | None) -> Fraction | None:
    if epsilon is None:
        if ranges or ledger is not None:
            raise ArgumentError(
                "argument-epsilon", "finding ranges needs an epsilon to spend", "add --epsilon 0.5"
            )
        return None
    price = epsilon_of(epsilon)
    if price >= BUDGET:
        problem = f"the draft must cost less than its budget of {BUDGET}"
        raise ArgumentError("argument-epsilon", problem, "try --epsilon 0.1")
    return price


def _head(source: Any, price: Fraction | None, found: Findings) -> str:
    path = Path(source) if isinstance(source, (str, Path)) else None
    how = "From names, types and constraints alone: no row was read, nothing was spent."
    if path is not None and path.suffix.lower() in _DETECTED:
        how = (
            "From names and types alone; DuckDB detects the types from the first rows of the file. "
            "Nothing was spent."
        )
    if found.rows or found.ranges:
        cost = f"{float(found.spent):g}"
        how = f"From names, types and constraints, and from noisy counts that cost epsilon {cost}."
    elif price is not None:
        how += "\n# (There was nothing to choose: no unit has several rows, and no range is missing.)"
    head = _HEAD.format(source=shown(path.name if path else "this source"), how=how)
    return head + _NEIGHBOURS + _budget(found) + _TABLES


def _budget(found: Findings) -> str:
    """What is left of the budget; all of it if a ledger has recorded what the draft cost."""
    cost = f"{float(found.spent):g}"
    if found.ledger is not None:
        whole = float(BUDGET) if found.cap in (None, math.inf) else found.cap
        paid = comment(f"Of this, the draft has spent {cost}, recorded in the ledger {found.ledger}.")
        return _BUDGET.format(spent=paid, epsilon=whole)
    paid = comment(
        f"{BUDGET}, less the {cost} that this draft has cost, which counts even if you discard it."
    )
    return _BUDGET.format(spent=paid if found.spent else "", epsilon=float(BUDGET - found.spent))


def _table(
    schema: Schema, table: SchemaTable, policy: Policy, units: Mapping[str, Guess], found: Findings
) -> str:
    unit, scan = units.get(table.name), scan_of(schema, policy, table)
    alone = scan.unit is not None and scan.unit.unique
    lines = [_no_unit(schema, table)] if unit is None else [_unit(table, unit, alone)]
    if unit is not None and not alone:
        lines.append(_limits(found.rows.get(table.name)))
    if not table.keys:
        lines.append('# unique = ["..."]\n')
    domains = domains_of(scan)
    name = toml_key(table.name)
    lines.append(f"[tables.{name}.columns]\n")
    for each in table.columns:
        search = found.ranges.get(Unknown(table.name, each.name, each.type)) if each.type else None
        roles = roles_of(table, each.name, unit)
        lines.append(column_line(each, domains.get(each.name), *roles, search) + "\n")
    return f"\n[tables.{name}]\n{''.join(lines)}"


def _unit(table: SchemaTable, unit: Guess, alone: bool) -> str:
    text = comment(f"The privacy unit: {unit.why}. Is that the person you mean to protect?")
    if not unit.sure:
        text += comment(
            f"!! Can one person have more than one {unit.noun}? Then each is protected, but not all of them "
            "together."
        )
    others = others_in(table, unit)
    if others:
        text += comment(
            f"!! Not protected as a whole: people named by {', '.join(others)}. A row has only one unit."
        )
    nullable = [
        column for name in unit.columns if (column := table.column(name)) is not None and not column.required
    ]
    if nullable:
        text += "# Rows where it is NULL are left out of every answer.\n"
    text += f"unit = {_toml(unit.declaration)}\n"
    return text + ("# It is UNIQUE: each unit has one row, so no limits are needed.\n" if alone else "")


def _limits(chosen: ChosenRows | None) -> str:
    text = f"# The default: a unit counts in at most {DEFAULT_GROUPS} keys of a GROUP BY.\n"
    text += f"max_groups = {DEFAULT_GROUPS}\n"
    if chosen is None:
        reason = [
            f"The default: at most {DEFAULT_ROWS} rows of a unit count in each key. "
            "Do most units have fewer, or more?"
        ]
    else:
        reason = chosen.lines
    rows = DEFAULT_ROWS if chosen is None or chosen.rows is None else chosen.rows
    return text + "".join(comment(line) for line in reason) + f"max_rows = {rows}\n"


def _no_unit(schema: Schema, table: SchemaTable) -> str:
    text = _NO_UNIT
    tables = [each for each in schema.tables if not each.view]
    for link in links_of(table, tables):
        own, named = ", ".join(link.key.columns), ", ".join(link.key.keys)
        way = Guess(link.key.columns, "", "", (0, 0), link.key.table, link.key.keys)
        whose = Guess(link.key.keys, "", "", (0, 0))
        text += comment(
            f"{own} references {link.key.table}. Is each {named} there one person? Then declare it there"
        )
        text += f"# (unit = {_toml(whose.declaration)}), and here:\n# unit = {_toml(way.declaration)}\n"
    for other in tables:
        for link in links_of(other, [table]):
            if other is not table:
                text += comment(f"{other.name}.{', '.join(link.key.columns)} references it.")
    return text + _PUBLIC


def _toml(declaration: str | list[str]) -> str:
    if isinstance(declaration, str):
        return toml_text(declaration)
    return f"[{', '.join(toml_text(each) for each in declaration)}]"
