"""DuckDB's own catalogue of functions goes in; the table of those that may stand above the noise comes out.

    python tools/engine_functions.py            say what the table lacks; exit 1 if it lacks anything
    python tools/engine_functions.py --write    write the table again

A judgement that stands in the table is kept. A new function is refused: in a category where the catalogue
itself says what it is (side effects, table functions ...), as "unjudged" otherwise, until somebody has read
what it does and moves its name to ALLOWED by hand.
"""

from __future__ import annotations

import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from privsql.sql.parse import engine_functions as table

PATH = Path(table.__file__)
_EXPRESSIONS = {"scalar", "aggregate", "window", "macro"}
_NODES = """# As sqlglot reads the functions above: node class, then its arguments, as in permitted.py.
"""
_MORE = 2  # arguments beyond those that a function with any number of them needs


@dataclass(frozen=True)
class Function:
    """All functions of one name."""

    name: str
    kinds: frozenset[str]
    volatile: bool
    arities: frozenset[int]


def catalogue() -> list[Function]:
    """Every function that the running DuckDB knows."""
    rows = duckdb.connect().execute(
        "SELECT function_name, function_type, coalesce(has_side_effects, false), "
        "coalesce(stability, 'CONSISTENT'), len(parameters), varargs FROM duckdb_functions() ORDER BY 1"
    )
    kinds, volatile = defaultdict(set), defaultdict(bool)
    arities: dict[str, set[int]] = defaultdict(set)
    for given_name, kind, effects, stability, count, more in rows.fetchall():
        name = given_name.lower()  # as DuckDB reads them
        kinds[name].add(kind)
        volatile[name] |= effects or stability != "CONSISTENT"
        arities[name] |= set(range(count, count + 1 + (_MORE if more else 0)))
    return [
        Function(each, frozenset(kinds[each]), volatile[each], frozenset(arities[each])) for each in kinds
    ]


def judgement(function: Function) -> str | None:
    """The category in which a function is refused; None where it is allowed."""
    for category, names in table.REFUSED.items():
        if function.name in names:
            return category
    if function.volatile:
        return "side-effects"
    if function.name in table.ALLOWED:
        return None
    named = table.unlisted(function.name)
    if named is not None:
        return named
    return "unjudged" if function.kinds & _EXPRESSIONS else "table-functions"


def nodes(functions: list[Function]) -> dict[str, dict[str, bool]]:
    """The classes that sqlglot has for these functions: which arguments it sets, and whether each is its own
    yes or no.
    """
    found: dict[str, dict[str, bool]] = defaultdict(dict)
    for function in functions:
        for arity in function.arities:
            for node in _parsed(function, arity):
                for name, value in node.args.items():
                    if value is not None and value != [] and value is not False:
                        found[type(node).__name__][name] = isinstance(value, bool)
                found[type(node).__name__]
    return dict(found)


def _parsed(function: Function, arity: int) -> Iterator[exp.Func]:
    call = f"{function.name}({', '.join(f'a{number}' for number in range(arity))})"
    over = " OVER ()" if "window" in function.kinds else ""
    try:
        tree = sqlglot.parse_one(f"SELECT {call}{over}", read="duckdb")
    except SqlglotError:
        return
    for node in tree.find_all(exp.Func):
        if not isinstance(node, (exp.Anonymous, exp.Cast)):
            yield node


def written(
    allowed: set[str], refused: Mapping[str, set[str]], classes: Mapping[str, dict[str, bool]]
) -> str:
    """The whole file."""
    head = PATH.read_text(encoding="utf-8").partition("ALLOWED = ")[0]
    parts = [head, f"ALLOWED = frozenset(\n    {_words(allowed)}.split()\n)\n"]
    parts.append("# By category, each of which has its message in above_refusals.py.\nREFUSED = {\n")
    for category, names in sorted(refused.items()):
        parts.append(f'    "{category}": frozenset(\n        {_words(names)}.split()\n    ),\n')
    lines = [
        " ".join([name, *(f"{each}?" if own else each for each, own in sorted(arguments.items()))])
        for name, arguments in sorted(classes.items())
    ]
    listed = textwrap.fill("; ".join(lines), 108, break_on_hyphens=False)
    return "".join([*parts, "}\n", _NODES, f'NODES = """\n{listed}\n"""\n'])


def _words(names: set[str]) -> str:
    return '"""\n' + textwrap.fill(" ".join(sorted(names)), 108, break_on_hyphens=False) + '\n"""'


def table_text() -> str:
    """The text that the file should have."""
    functions = catalogue()
    judged = {each.name: judgement(each) for each in functions}
    allowed = {name for name, category in judged.items() if category is None}
    refused: dict[str, set[str]] = defaultdict(set)
    for name, category in judged.items():
        if category is not None and table.unlisted(name) is None:
            refused[category].add(name)
    return written(allowed, refused, nodes([each for each in functions if each.name in allowed]))


def main(arguments: list[str]) -> int:
    text = table_text()
    if "--write" in arguments:
        PATH.write_text(text, encoding="utf-8")
    elif text != PATH.read_text(encoding="utf-8"):
        print(f"{PATH.name} is not of this DuckDB and this sqlglot: write it again with --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
