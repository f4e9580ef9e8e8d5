"""Writes the tables of docs/engines.md from the dialects; `--check` says whether they are up to date."""

from __future__ import annotations

import sys
from pathlib import Path

from privsql.algebra.functions import FUNCTIONS
from privsql.errors import Refused
from privsql.render.postgres import PostgreSQL
from privsql.render.postgres_functions import CONDITIONS, DIFFERENCES, FORMS, REASONS
from privsql.types import BIGINT, BOOLEAN, DATE, DOUBLE, TEXT, TIME, TIMESTAMP, Type, decimal

PAGE = Path(__file__).parents[1] / "docs" / "engines.md"
BEGIN, END = "<!-- tables: written by tools/engine_table.py; do not edit -->", "<!-- end of tables -->"
_TYPES = {
    "BIGINT": BIGINT,
    "DECIMAL": decimal(18, 3),
    "DOUBLE": DOUBLE,
    "BOOLEAN": BOOLEAN,
    "VARCHAR": TEXT,
    "DATE": DATE,
    "TIME": TIME,
    "TIMESTAMP": TIMESTAMP,
}


def _function(name: str) -> str:
    if name == "date_diff" and DIFFERENCES:
        return f"yes, {CONDITIONS[name]}"
    if name not in FORMS:
        return f"no: {REASONS[name]}"
    return f"yes, {CONDITIONS[name]}" if name in CONDITIONS else "yes"


def functions() -> str:
    """Functions with the same answer in one row."""
    rows: dict[str, list[str]] = {}
    for name in FUNCTIONS:
        rows.setdefault(_function(name), []).append(f"`{name}`")
    lines = [f"| {', '.join(names)} | {what} |" for what, names in rows.items()]
    return "\n".join(["| function | PostgreSQL |", "|---|---|", *lines])


def _cast(of: Type, to: Type) -> str:
    dialect = PostgreSQL()
    try:
        _ = dialect.as_text("x", of) if to is TEXT else dialect.explicit_cast("x", of, to)
    except Refused:
        return "-"
    return "yes"


def casts() -> str:
    lines = [f"| from / to | {' | '.join(_TYPES)} |", f"|---|{'---|' * len(_TYPES)}"]
    for name, of in _TYPES.items():
        cells = [_cast(of, to) for to in _TYPES.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def tables() -> str:
    return f"{BEGIN}\n### Functions\n\n{functions()}\n\n### Casts that a query may write\n\n{casts()}\n{END}"


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    written = before + tables() + after
    if "--check" in sys.argv:
        return int(written != page)
    PAGE.write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
