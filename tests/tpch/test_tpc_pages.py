"""docs/tpcds.md and docs/tpch.md say of each query, as the standard writes it, what happens to it.

The texts are not in the repository. `PRIVSQL_TPC=DIRECTORY`, which `tools/tpc.py export` wrote, compares the pages with
what privsql says now.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tools import tpc

SQL_PAGE = (tpc.ROOT / "docs" / "sql.md").read_text(encoding="utf-8")


def _rows(page: Path) -> list[str]:
    _, _, listed = page.read_text(encoding="utf-8").partition(tpc.MARK)
    return [line for line in listed.partition("\n\n")[0].splitlines() if line]


@pytest.mark.parametrize("benchmark", tpc.BENCHMARKS, ids=lambda each: each.name)
def test_every_query_has_one_line_with_an_outcome_or_a_reason(benchmark: tpc.Benchmark) -> None:
    rows = _rows(benchmark.page)
    assert [int(row.split("|")[1]) for row in rows] == list(range(1, benchmark.queries + 1))
    for row in rows:
        _, _, outcome, why, _ = (each.strip() for each in row.split("|"))
        if outcome.startswith("`"):
            assert outcome in SQL_PAGE, row  # a code that the documentation explains
            assert why, row
        else:
            assert re.fullmatch(r"exact and free|answered(, \d+ releases)?", outcome), row


def test_most_are_answered_as_they_are_written() -> None:
    for benchmark, least in zip(tpc.BENCHMARKS, (55, 14), strict=True):
        assert sum("`" not in row.split("|")[2] for row in _rows(benchmark.page)) >= least


def test_the_policy_protects_all_that_customers_did() -> None:
    for benchmark in tpc.BENCHMARKS:
        columns = {table: [("x_quantity", "INTEGER")] for table in [*benchmark.units, "item"]}
        tables = tpc.policy(benchmark, columns)["tables"]
        assert {name for name, each in tables.items() if each.get("public")} == {"item"}
        assert all("unit" in tables[name] for name in benchmark.units)


@pytest.mark.skipif(
    "PRIVSQL_TPC" not in os.environ, reason="needs the directory that tools/tpc.py export writes"
)
@pytest.mark.parametrize("benchmark", tpc.BENCHMARKS, ids=lambda each: each.name)
def test_the_pages_are_current(benchmark: tpc.Benchmark) -> None:
    assert _rows(benchmark.page) == tpc.outcomes(Path(os.environ["PRIVSQL_TPC"]), benchmark)
