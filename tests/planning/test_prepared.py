"""How many rows of a unit a copy may keep, against a search by the definition; and why a copy is not used."""

from __future__ import annotations

import itertools
from fractions import Fraction

import duckdb
import pytest

import privsql
from privsql.analysis.stability import Stability
from privsql.planning.public_look import PublicLook
from privsql.planning.rewrites.prepared import LARGEST_RANK, AdHoc, Copy, PreparedRows, prepared_rows
from privsql.sql.bind.catalogue import Catalogue
from privsql.sql.read import read

HALF = Fraction(1, 2)


def greatest(ad_hoc: AdHoc, becomes: int, shared: int) -> int:
    """The most rows for which no noise is more: l1 is counted with one unit replaced, and both by keys alone."""
    cells, whole = ad_hoc.cells or 10**9, ad_hoc.keys * ad_hoc.rows

    def fits(most: int, less: Fraction) -> bool:
        one, own = (
            min(ad_hoc.moves * most * becomes, cells * most * shared),
            min(ad_hoc.moves * whole, cells * ad_hoc.rows),
        )
        if ad_hoc.gaussian:
            narrow = most * shared <= ad_hoc.rows
            root = (
                most * shared * one <= ad_hoc.rows * own
                and most * shared * most * becomes <= ad_hoc.rows * whole
            )
            return most * becomes <= whole and one <= own and (narrow or root)
        return most * becomes <= less * whole and one <= less * own

    most = max(each for each in range(whole + 1) if fits(each, Fraction(1)))
    return (
        most
        if most * shared <= ad_hoc.rows
        else max(each for each in range(whole + 1) if fits(each, ad_hoc.less()))
    )


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("moves", [1, 2])
def test_the_most_rows_without_more_noise(moves, gaussian):
    for keys, rows, cells, (becomes, shared), less in itertools.product(
        (1, 2, 5),
        (1, 3, 4),
        (None, 1, 3),
        ((1, 1), (2, 1), (2, 2), (3, 2), (0, 0)),
        (Fraction(1), HALF, Fraction(2, 7)),
    ):
        ad_hoc = AdHoc(keys, rows, cells, moves, lambda less=less: less, gaussian)
        one = Stability(becomes, False, "", lambda columns, shared=shared: shared)
        assert ad_hoc.most(one, ["k"]) == greatest(ad_hoc, max(1, becomes), max(1, shared)), (
            ad_hoc,
            one,
            less,
        )
        assert ad_hoc.most(one, None) == keys * rows // max(1, becomes)  # without keys all rows are in one


@pytest.fixture(scope="module")
def rows_of():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits (who INTEGER, a INTEGER, b INTEGER, c INTEGER)")
    table = {"unit": "who", "columns": {"a": {"range": [0, 9]}}}
    session = privsql.connect(connection, {"tables": {"visits": table}})
    catalogue, look = (
        Catalogue(session._pipeline.schema, session._pipeline.policy),
        PublicLook(session._pipeline.engine.read_public, session._pipeline.engine.dialect),
    )

    def rows(
        sql: str,
        keys: int,
        rows: int,
        copy: Copy | None = Copy("copy", True),  # noqa: B008
    ) -> PreparedRows | str | None:
        ad_hoc = AdHoc(keys, rows, None, 2, lambda: HALF, False)
        return prepared_rows(read(sql, catalogue).release, ad_hoc, look, lambda scan: copy)

    yield rows
    connection.close()


THRICE = "SELECT COUNT(*) FROM (SELECT * FROM visits UNPIVOT (v FOR name IN (a, b, c)))"
COUNT = "SELECT COUNT(*) FROM visits"
BY_KEY = "SELECT a, COUNT(*) FROM visits GROUP BY a"
BEST = "SELECT a FROM visits GROUP BY a ORDER BY COUNT(*) DESC LIMIT 1"


@pytest.mark.parametrize(
    ("sql", "keys", "rows", "says"),
    [
        (THRICE, 2, 1, "one row may become 3, more than the limit per unit"),
        (COUNT, 5, LARGEST_RANK // 5, "it ranks only 65,534 rows per unit, but 65,535 may be used"),
        ("SELECT a, COUNT(DISTINCT who) FROM visits GROUP BY a", 1, 5, "each unit counts once"),
        (
            "SELECT COUNT(*) FROM visits v JOIN visits w ON v.who = w.who",
            1,
            5,
            "the query joins, unions, groups or unnests",
        ),
    ],
)
def test_why_a_copy_is_not_used(rows_of, sql, keys, rows, says):
    assert rows_of(sql, keys, rows).startswith("the copy of visits is not used: " + says)
    assert "has changed since" in rows_of(sql, keys, rows, Copy("copy", False))
    assert rows_of(sql, keys, rows, None) is None


@pytest.mark.parametrize(
    ("sql", "keys", "allowed", "most", "rows"),
    [
        (THRICE, 1, 3, 1, 3), (THRICE, 2, 4, 2, 6), (COUNT, 1, 1, 1, 1), (COUNT, 2, 32_767, 65_534, 65_534),
        ("SELECT COUNT(*) FROM visits WHERE a > 3", 2, 3, 6, 6), (BEST, 3, 4, 4, 4),
        (BEST.replace("visits", "visits WHERE b > 0"), 3, 4, 4, 4),
        ("SELECT COUNT(DISTINCT who) FROM visits", 1, 5, 1, 1), (BY_KEY, 2, 4, 4, 4), (BY_KEY, 1, 4, 4, 4),
    ],
)  # fmt: skip
def test_rows_of_a_copy(rows_of, sql, keys, allowed, most, rows):
    found = rows_of(sql, keys, allowed)
    assert found.stability.rows == rows
    assert not found.stability.steady
    (scan,) = (step for step in found.steps if hasattr(step, "most"))
    assert (scan.most, scan.copy, scan.totals) == (most, "copy", False)
    assert found.steps[scan].rows == found.steps[scan].shares(["a"]) == most
    fewer = (
        "; not 8, so that there is no more noise than without the copy" if (sql, keys) == (BY_KEY, 2) else ""
    )
    assert found.steps[scan].why == f"unit: who; rows without a unit are left out{fewer}"
    assert rows_of(sql, keys, allowed, None) is None
    assert "has changed since" in rows_of(sql, keys, allowed, Copy("copy", False))
