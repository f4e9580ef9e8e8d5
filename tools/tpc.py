"""The queries of TPC-DS and TPC-H go in; what happens to each goes into docs/tpcds.md and docs/tpch.md.

The texts are the TPC's, and not in this repository. DuckDB's extensions have them, and make the data. In an
environment with `duckdb`, `duckdb-extension-tpcds` and `duckdb-extension-tpch` of one version (privsql is
not needed there),

    python tools/tpc.py export DIRECTORY

writes the tables and the texts, and with privsql's own environment

    python tools/tpc.py page DIRECTORY

writes the tables of the pages.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

ROOT = Path(__file__).resolve().parents[1]
MARK = "| query as written | outcome | why |\n|---|---|---|\n"
SCALE = 0.01
DELTA = 1e-6
Columns = Mapping[str, list[tuple[str, str]]]


@dataclass(frozen=True)
class Benchmark:
    """A benchmark: its extension, how many queries it has, its page, and the units of its private tables."""

    name: str
    queries: int
    page: Path
    units: Mapping[str, str]
    call: str


# Whose rows the private tables have; all others are public.
_SHOP = {
    "customer": "c_customer_sk",
    "store_sales": "ss_customer_sk -> customer.c_customer_sk",
    "store_returns": "sr_customer_sk -> customer.c_customer_sk",
    "catalog_sales": "cs_bill_customer_sk -> customer.c_customer_sk",
    "catalog_returns": "cr_refunded_customer_sk -> customer.c_customer_sk",
    "web_sales": "ws_bill_customer_sk -> customer.c_customer_sk",
    "web_returns": "wr_refunded_customer_sk -> customer.c_customer_sk",
}
_TRADE = {
    "customer": "c_custkey",
    "orders": "o_custkey -> customer.c_custkey",
    "lineitem": "l_orderkey -> orders.o_orderkey",
}
BENCHMARKS = (
    Benchmark("tpcds", 99, ROOT / "docs" / "tpcds.md", _SHOP, "dsdgen"),
    Benchmark("tpch", 22, ROOT / "docs" / "tpch.md", _TRADE, "dbgen"),
)
# The ranges of numbers, by how the names of their columns end.
_RANGES: tuple[tuple[str, tuple[int, int]], ...] = (
    ("quantity", (0, 100)),
    ("net_profit", (-10_000, 20_000)),
    ("net_loss", (0, 20_000)),
    ("_price", (0, 300)),
    ("_cost", (0, 20_000)),
    ("_amt", (0, 20_000)),
    ("_tax", (0, 20_000)),
    ("_paid", (0, 20_000)),
    ("_cash", (0, 20_000)),
    ("_charge", (0, 20_000)),
    ("_credit", (0, 20_000)),
    ("extendedprice", (0, 110_000)),
    ("discount", (0, 1)),
    ("acctbal", (-1_000, 10_000)),
    ("totalprice", (0, 600_000)),
    ("birth_year", (1900, 2010)),
    ("birth_month", (1, 12)),
    ("birth_day", (1, 31)),
)


def policy(benchmark: Benchmark, columns: Columns) -> dict[str, Any]:
    """What the owner of the shop declares: customers are the units; what is no sale of theirs is public."""
    tables: dict[str, Any] = {}
    for table, listed in columns.items():
        if table not in benchmark.units:
            tables[table] = {"public": True}
            continue
        ranges = {name: {"range": list(ends)} for name, kind in listed if (ends := _range(name, kind))}
        tables[table] = {"unit": benchmark.units[table], "max_rows": 30, "max_groups": 10, "columns": ranges}
        if table == "orders":
            tables[table]["unique"] = ["o_orderkey"]
    tables["customer"] = {
        "unit": benchmark.units["customer"],
        "unique": [benchmark.units["customer"]],
        "columns": tables["customer"]["columns"],
    }
    return {"tables": tables}


def _range(name: str, kind: str) -> tuple[int, int] | None:
    if kind.startswith(("VARCHAR", "DATE")):
        return None
    if "ext_" in name:
        return (0, 30_000)
    return next((ends for ending, ends in _RANGES if name.endswith(ending)), None)


def export(directory: Path) -> None:
    """Write the tables of both, and the texts of the queries."""
    directory.mkdir(parents=True, exist_ok=True)
    for each in BENCHMARKS:
        package = importlib.import_module(f"duckdb_extension_{each.name}")
        extension = next(Path(str(package.__file__)).parent.rglob(f"{each.name}.duckdb_extension"))
        connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        connection.execute(f"LOAD '{extension}'")
        connection.execute(f"CALL {each.call}(sf={SCALE})")
        connection.execute(f"EXPORT DATABASE '{directory / each.name}' (FORMAT parquet)")
        texts = dict(connection.execute(f"SELECT query_nr, query FROM {each.name}_queries()").fetchall())
        (directory / f"{each.name}.json").write_text(json.dumps(texts), encoding="utf-8")


def outcomes(directory: Path, benchmark: Benchmark) -> list[str]:
    """One row of the page for each query."""
    import privsql

    texts = json.loads((directory / f"{benchmark.name}.json").read_text(encoding="utf-8"))
    connection = duckdb.connect()
    connection.execute(f"IMPORT DATABASE '{directory / benchmark.name}'")
    columns: dict[str, list[tuple[str, str]]] = {}
    for table, name, kind in connection.execute(
        "SELECT table_name, column_name, data_type FROM information_schema.columns ORDER BY ALL"
    ).fetchall():
        columns.setdefault(table, []).append((name, kind))
    session = privsql.connect(connection, policy=policy(benchmark, columns))
    rows = []
    for number in range(1, benchmark.queries + 1):
        try:
            plan = session.explain(texts[str(number)], epsilon=1.0, delta=DELTA)
            row = f"| {number} | {_answered(plan)} | {_shown(plan)} |"
        except privsql.PrivsqlError as refusal:
            why = re.sub(r"\s+", " ", refusal.message).replace("|", "/")
            row = f"| {number} | `{refusal.code}` | {why} |"
        rows.append(row)
        print(row, file=sys.stderr)
    return rows


def _answered(plan: Any) -> str:
    releases = _plans(plan)
    if not releases:
        return "exact and free"
    return "answered" if len(releases) == 1 else f"answered, {len(releases)} releases"


def _plans(plan: Any) -> list[Any]:
    """The plans of the private parts of a query."""
    parts = plan.releases if hasattr(plan, "parts") else [plan]
    return [each for each in parts if not each.public]


def _shown(plan: Any) -> str:
    """A word on the keys of the answer where nobody declared them."""
    if any(each.space.open for each in _plans(plan)):
        return "keys that nobody declared: shown where enough customers have them"
    return ""


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("export", "page"))
    parser.add_argument("directory", type=Path)
    given = parser.parse_args()
    if given.command == "export":
        export(given.directory)
        return
    for each in BENCHMARKS:
        before, _, after = each.page.read_text(encoding="utf-8").partition(MARK)
        _, _, rest = after.partition("\n\n")
        rows = outcomes(given.directory, each)
        written = before + MARK + "\n".join(rows) + "\n" + (f"\n{rest}" if rest else "")
        each.page.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
