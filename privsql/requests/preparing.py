"""The name of a table goes in; a copy of it that makes queries of many rows per unit fast is stored."""

from __future__ import annotations

from privsql.errors import ArgumentError
from privsql.requests.pipeline import Pipeline


def prepare_copy(table: str, pipeline: Pipeline) -> None:
    """Store a copy, unless no unit of the table has many rows."""
    with pipeline.snapshot():
        scan = pipeline.scan(table)
    if not scan.private or scan.unit is None or scan.unit.unique:
        raise ArgumentError(
            "argument-prepare",
            f"{table} has no unit with many rows: there is nothing to prepare",
            "queries of it are fast as it is",
        )
    pipeline.engine.prepare(scan)
