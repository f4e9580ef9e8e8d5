"""A node of sqlglot goes in; where it begins in the text comes out."""

from __future__ import annotations

from sqlglot import exp

from privsql.errors import Place


def place_of(node: exp.Expr) -> Place | None:
    """Where a node begins, from the first token below it that sqlglot kept."""
    best: Place | None = None
    for each in node.walk():
        meta = each.meta
        if "line" in meta and "col" in meta:
            width = int(meta.get("end", 0)) - int(meta.get("start", 0))
            here = Place(int(meta["line"]), max(1, int(meta["col"]) - max(0, width)))
            if best is None or (here.line, here.column) < (best.line, best.column):
                best = here
    return best
