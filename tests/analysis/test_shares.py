"""How many of one person's rows may agree in some columns, relation by relation, of rows of which that is known."""

from __future__ import annotations

import pytest

from privsql.analysis.stability import Stability, _unpivot
from privsql.sql.relations import Field, Scan, Unpivot
from privsql.types import BIGINT

ROWS = Scan("t", (Field("k", BIGINT), Field("a", BIGINT), Field("b", BIGINT)), True, {})


def below(columns: list[str]) -> int:
    assert {"k", "a", "b"} >= set(columns), "it has no others"
    return 1 if "k" in columns else 3


BELOW = Stability(4, True, "", below, {"k": "one", "a": 5, "name": 6})


@pytest.mark.parametrize(
    ("columns", "most"),
    [([], 6), (["k"], 2), (["name"], 3), (["k", "name"], 1), (["value"], 6), (["k", "value"], 2), (["k", "value", "name"], 1)],
)
def test_rows_made_of_columns(columns, most):
    """Of two columns a row each: those with one label are as many as there were rows, those with any label twice as many."""
    found = _unpivot(Unpivot(ROWS, (("a", "A"), ("b", "B")), "name", Field("value", BIGINT)), BELOW)
    assert found.shares(columns) == most
    assert (found.rows, found.steady) == (8, True)
    assert found.labels == {"k": "one"}, "what a column was before says nothing of what is called like it now"
