"""session.audit and `privsql audit`: what they say, what they leave alone, and that what they found can be made again."""

# ruff: noqa: E501 -- tables read better in one line each
from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privsql
from privsql.audit.audit import Audit, audit
from privsql.audit.bound import choose, judge, lower_probability, upper_probability
from privsql.audit.falsify import differences, run_exactly
from privsql.audit.progress_line import ProgressLine
from privsql.audit.report import bar
from privsql.audit.world import world_of
from privsql.cli import main
from tests.audit.tables import session

COUNTED = "SELECT s, COUNT(*) AS n FROM t WHERE x > 3 GROUP BY s"


@pytest.fixture(scope="module")
def held() -> Audit:
    return session().audit(COUNTED, 1.0, releases=400_000)


@pytest.fixture(scope="module")
def broken() -> Audit:
    """The same plan, with bounds that are half of what they should be."""
    asked = session()
    plan = asked.explain(COUNTED, epsilon=1.0)
    small = [replace(each, sensitivity=replace(each.sensitivity, l1=1)) for each in plan.measurements]
    return audit(
        replace(plan, releases=(replace(plan.releases[0], measurements=tuple(small)),)),
        COUNTED,
        asked._pipeline.engine.schema(),
        asked._pipeline.engine.read_public,
        Fraction(1),
        5_000,
    )


# -- what it says
def test_a_sound_plan_is_reported_as_held(held: Audit) -> None:
    assert held.held and not held.broken
    assert held.verdict.startswith(
        "held: largest movement found 2 of 2 claimed, attained; epsilon at least 0."
    )
    assert {(each.norm, each.found, each.claimed) for each in held.bounds} == {
        ("l1", 2, 2),
        ("linf", 1, 1),
        ("l2 squared", 2, 2),
    }
    assert held.epsilon is not None
    assert 0.8 < held.epsilon.lower <= held.epsilon.charged == 1.0
    assert held.exhaustive and held.tables > 20 and held.pairs > 200
    text = str(held)
    assert text.splitlines()[0] == held.verdict
    assert "one person's rows, 1 in one table and 1 in the other" in text
    assert "This is not a proof" in text
    assert "█" in text


def test_a_broken_plan_is_reported_as_broken(broken: Audit) -> None:
    assert not broken.held
    assert broken.verdict.startswith("BROKEN: M1 (COUNT(*)) moves by 2 in l1, 1 claimed")
    assert "PASSED" in str(broken)
    assert "This is not a proof" not in str(broken)


def test_the_script_of_a_pair_recreates_it(broken: Audit) -> None:
    assert broken.pair is not None
    cells = []
    for other in (False, True):
        database = duckdb.connect()
        database.execute(broken.pair.script(other))
        cells.append(run_exactly(broken.plan, database)[1])
    assert sum(map(abs, differences(*cells, broken.plan.measurements[0].columns))) == 2
    one, other_tables = broken.pair.one["t"], broken.pair.other["t"]
    assert len(one) == len(other_tables)
    assert (one.fillna("NULL") != other_tables.fillna("NULL")).any(
        axis=1
    ).sum() == 1  # they differ in one person's row


def test_an_audit_is_a_frozen_value_for_programs_and_notebooks(held: Audit, broken: Audit) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        held.sql = ""  # type: ignore[misc]
    document = json.loads(json.dumps(held.to_dict()))
    assert document["held"] is True and document["epsilon"]["charged"] == 1.0
    assert "#cf222e" in broken._repr_html_() and "&lt;" in replace(broken, broken=("<b>",))._repr_html_()


@pytest.mark.slow
def test_an_audit_can_be_plotted(held: Audit, tmp_path: Path) -> None:
    held.plot(str(tmp_path / "audit.png"))
    assert (tmp_path / "audit.png").stat().st_size > 5_000
    with pytest.raises(privsql.PrivsqlError, match="cannot be written"):
        held.plot(str(tmp_path / "nowhere" / "audit.png"))


@pytest.mark.parametrize(
    ("part", "drawn"), [(0.0, ""), (0.5, "████"), (1.0, "████████"), (3.0, "███████▶"), (0.01, "▏")]
)
def test_bars_show_found_over_claimed(part: float, drawn: str) -> None:
    assert bar(part, 8) == drawn


def test_an_unaffected_measurement_is_reported() -> None:
    found = session().audit("SELECT COUNT(*) FROM t", 1.0, releases=300)
    assert found.verdict == "held: largest movement found 0 of 1 claimed"
    public = session().audit("SELECT COUNT(*) FROM pub", 1.0)
    assert public.verdict == "held: the answer depends on nobody's data"


# -- what it leaves alone
def test_no_private_row_is_read_and_nothing_spent() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (x INTEGER, word VARCHAR)")
    connection.execute("INSERT INTO t VALUES (987654321, 'CANARY')")
    connection.execute("CREATE TABLE pub (x INTEGER); INSERT INTO pub VALUES (1)")
    policy = {
        "budget": {"epsilon": 1},
        "tables": {"t": {"columns": {"x": {"range": [0, 9]}}}, "pub": {"public": True}},
    }
    asked = privsql.connect(connection, policy=policy)
    read: list[str] = []

    class Watched:
        """The engine, which records what it is asked for."""

        def __getattr__(self, name: str) -> Any:
            if name == "run":
                raise AssertionError("private rows are read")
            if name == "read_public":
                return lambda sql: (read.append(sql), engine.read_public(sql))[1]
            return getattr(engine, name)

    engine = asked._pipeline.engine
    asked._pipeline.engine = Watched()  # type: ignore[assignment]
    found = asked.audit(
        "SELECT word, SUM(t.x) FROM t JOIN pub ON t.x >= pub.x GROUP BY word",
        0.5,
        0.01,
        releases=300,
        tries=20,
    )
    assert "CANARY" not in str(found) and "987654321" not in str(found)
    assert all('"t"' not in sql for sql in read) and any('"pub"' in sql for sql in read)
    assert asked.budget.spent.epsilon == 0 and asked.history().empty
    assert connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall() == [
        ("pub",),
        ("t",),
    ]


@pytest.mark.slow
def test_the_audit_does_not_depend_on_the_data() -> None:
    """Tables are made up in the same way, whatever the private ones hold."""
    found = []
    for rows in ("", "INSERT INTO t SELECT range, 'w' || range FROM range(100)"):
        connection = duckdb.connect()
        connection.execute(f"CREATE TABLE t (x INTEGER, word VARCHAR); {rows}")
        found.append(
            privsql.connect(
                connection, policy={"tables": {"t": {"columns": {"x": {"range": [0, 9]}}}}}
            ).audit("SELECT SUM(x) FROM t WHERE word = 'w3'", 1.0, releases=300, tries=20)
        )
    assert found[0].bounds == found[1].bounds and str(found[0].pair) == str(found[1].pair)


# -- what is tried
def _tried(sql: str, table: str, column: str, **options: Any) -> tuple[str, ...]:
    asked = session()
    plan = asked.explain(sql, epsilon=1.0, **options)
    world = world_of(plan, asked._pipeline.engine.schema(), asked._pipeline.engine.read_public)
    made = next(each for each in world.tables if each.name == table)
    return next(each.texts for each in made.columns if each.name == column)


def test_ends_null_and_constants_are_tried() -> None:
    whole = _tried("SELECT SUM(x) FROM t WHERE x <> 4", "t", "x")
    assert {f"CAST('{each}' AS INTEGER)" for each in (5, 2, 4, 3, 6, 1, 2147483647)} | {"NULL"} <= set(whole)
    numbers = _tried("SELECT SUM(y) FROM t", "t", "y")
    assert {f"CAST('{each}' AS DOUBLE)" for each in ("3.0", "-1.0", "nan", "inf", "-inf")} | {"NULL"} <= set(
        numbers
    )
    assert "CAST('fox' AS VARCHAR)" in _tried("SELECT COUNT(*) FROM t WHERE word LIKE '%fox%'", "t", "word")
    assert len(_tried("SELECT SUM(x) FROM t", "t", "word")) == 1  # it plays no part


@pytest.mark.parametrize(("neighbours", "sql", "attained"), [
    ("add-remove", "SELECT c.k, COUNT(*) FROM orders o JOIN customers c ON o.cid = c.id GROUP BY c.k", 2),
    pytest.param("add-remove", "SELECT k, SUM(n) FROM visits GROUP BY k", 54, marks=pytest.mark.slow),
    pytest.param("replace-one", "SELECT SUM(n) FROM items", 27, marks=pytest.mark.slow),
])  # fmt: skip
def test_people_with_many_rows(neighbours: str, sql: str, attained: int) -> None:
    found = session(neighbours).audit(sql, 1.0, releases=300, tries=40 if "JOIN" in sql else 150)
    assert found.held
    assert max(each.found for each in found.bounds if each.norm == "l1") == attained


# -- the statistics
@pytest.mark.parametrize(
    ("hits", "trials"), [(0, 100), (3, 100), (3700, 10_000), (190_000, 500_000), (5, 1_000_000), (50, 50)]
)
def test_clopper_and_pearson(hits: int, trials: int) -> None:
    error = 5e-4
    low = stats.beta.ppf(error, hits, trials - hits + 1) if hits else 0.0
    high = stats.beta.isf(error, hits + 1, trials - hits) if hits < trials else 1.0
    assert lower_probability(hits, trials, error) == pytest.approx(low, rel=1e-9)
    assert upper_probability(hits, trials, error) == pytest.approx(high, rel=1e-9)


def test_delta_is_subtracted_from_the_bound() -> None:
    one, other = np.array([[1]] * 500 + [[0]] * 500), np.zeros((1000, 1), dtype=np.int64)
    _, event = choose(("x",), one, other, 0.0)
    assert event is not None
    pure, approximate = (judge(event, one, other, 1.0, delta, 0.999) for delta in (0.0, 0.6))
    assert pure.lower > 3 and approximate.lower == 0


# -- the command line
@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    pd.DataFrame({"age": [30, 70], "state": ["CA", "NY"]}).to_csv(path, index=False)
    return path


def test_the_command_line(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = [
        "audit",
        str(source),
        "SELECT COUNT(*) AS n FROM visits WHERE age >= 65",
        "--epsilon",
        "1",
        "--releases",
        "2000",
    ]
    assert main([*question, "--plot", str(tmp_path / "a.png")]) == 0
    assert capsys.readouterr().out.startswith("held: largest movement found 1 of 1 claimed, attained")
    assert (tmp_path / "a.png").exists()
    assert main([*question, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["held"] is True


@pytest.mark.parametrize(("arguments", "said"), [
    (["SELECT state, COUNT(*) FROM visits GROUP BY state", "--epsilon", "1"], "refused"), (["SELECT COUNT(*) FROM visits", "--epsilon", "-1"], "epsilon"),
    (["SELECT COUNT(*) FROM visits", "--epsilon", "1", "--releases", "1"], "releases must be a whole number"),
])  # fmt: skip
def test_a_refused_query_exits_with_2(
    source: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(["audit", str(source), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_long_audits_report_progress(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    times = iter([0.0, 0.5, 1.6, 1.7, 9.0])
    monkeypatch.setattr("privsql.audit.progress_line.time.monotonic", lambda: next(times))
    progress = ProgressLine(sys.stderr)
    for what in ("one", "two", "three", "four"):
        progress(what)
    progress.close()
    assert capsys.readouterr().err == "2 s: two ...\n9 s: four ...\n"
