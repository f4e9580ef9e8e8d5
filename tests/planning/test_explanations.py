"""What explain prints, word by word, and how far off each output may be: queries that between them take every way through it.

explanations.txt holds, between lines `==`, a schema of tests/cases/test_cases.py and arguments, a query, a line `---` and what
is printed. PRIVSQL_UPDATE_CASES=1 writes it anew: then read every number that changed.
"""

from __future__ import annotations

import ast
import os
from functools import lru_cache
from pathlib import Path

import pytest

import privsql
from tests.cases.test_cases import FIXTURES, connection_of

FILE = Path(__file__).with_name("explanations.txt")
UPDATE = bool(os.environ.get("PRIVSQL_UPDATE_CASES"))


@lru_cache
def session_of(fixture: str, neighbours: str) -> privsql.Session:
    """A session without answers: earlier answers would be free, and EXPLAIN would say so."""
    return privsql.connect(
        connection_of(fixture), policy={**FIXTURES[fixture].policy, "neighbours": neighbours}
    )


def printed(head: str, sql: str) -> str:
    fixture, *arguments = head.split("; ")
    named = {name: ast.literal_eval(value) for name, _, value in (each.partition("=") for each in arguments)}
    plan = session_of(fixture, named.pop("neighbours", "replace-one")).explain(
        sql, **{"epsilon": 1.0, **named}
    )
    known = plan.accuracy(0.9, rows=1000)
    widths = [
        f"{name} ±{width:.6g}" if width is not None else f"{name}: {known.notes[name]}"
        for name, width in known.items()
    ]
    together = [f"{name} ±{width:.6g}" for name, width in known.together.items() if width is not None]
    lines = [str(plan), f"At 90%, of 1000 rows: {', '.join(widths)}", f"All together: {', '.join(together)}"]
    return "\n".join(line.rstrip() for line in lines)


BLOCKS = [
    block.strip("\n").partition("\n---")
    for block in FILE.read_text(encoding="utf-8").split("==\n")
    if block.strip()
]
CASES = [(*asked.split("\n", 1), text.strip("\n")) for asked, _, text in BLOCKS]


@pytest.mark.skipif(UPDATE, reason="they are being written")
@pytest.mark.parametrize(("head", "sql", "text"), CASES, ids=[sql for _, sql, _ in CASES])
def test_explanations(head, sql, text):
    assert printed(head, sql) == text


@pytest.mark.skipif(not UPDATE, reason="only on request")
def test_explanations_can_be_regenerated():
    FILE.write_text(
        "==\n".join(f"{head}\n{sql}\n---\n{printed(head, sql)}\n" for head, sql, _ in CASES), encoding="utf-8"
    )
