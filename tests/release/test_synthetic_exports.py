"""`Synthetic.connect` and `to_parquet`: the types of the real table, whatever its name and its values."""

from __future__ import annotations

import datetime as dt

import duckdb
import pandas as pd
import pytest

import privsql
from tests.release.people import BINS as PARTS
from tests.release.people import connect, people

NAME = 'the "odd" table'
UNIQUE = "00000000-0000-0000-0000-000000000001"
DECLARED = {
    "kind": {"values": ["p"]},
    "code": {"values": [UNIQUE]},
    "name": {"values": ["x"]},
    "small": {"range": [0, 255]},
    "price": {"range": [0, 9]},
    "single": {"range": [0, 1e300]},
    "clock": {"values": ["07:00:00"]},
    "day": {"range": ["2020-01-01", "2020-12-31"]},
}
BINS = {"small": [0, 10, 10**9], "price": [0, 10**6], "single": 1}


@pytest.fixture(scope="module")
def source():
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE {quoted(NAME)} AS SELECT if(i % 2 = 0, 'p', 'q')::ENUM('p', 'q') AS kind, "
        f"if(i % 2 = 0, '{UNIQUE}', '{UNIQUE[:-1]}2')::UUID AS code, if(i % 2 = 0, 'x', 'y') AS name, "
        "i::UTINYINT AS small, (i % 9)::DECIMAL(3, 2) AS price, i::FLOAT AS single, TIME '07:00:00' AS clock, "
        "DATE '2020-01-01' AS day FROM range(99) AS r(i)"
    )
    return connection


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


@pytest.fixture(scope="module")
def synthetic(source):
    with privsql.connect(source, {"tables": {NAME: {"columns": DECLARED}}}) as session:
        return session.synthesize(NAME, list(DECLARED), epsilon=20, delta=1e-3, ways=1, rows=400, bins=BINS)


def test_a_database_has_the_types_and_name_of_the_real_table(source, synthetic):
    with synthetic.connect() as made:
        found = made.execute(f"DESCRIBE {quoted(NAME)}").fetchall()
        rows = made.execute(
            f"SELECT kind, code, name, small, price, clock, day FROM {quoted(NAME)}"
        ).fetchall()
    real = source.execute(f"DESCRIBE {quoted(NAME)}").fetchall()
    assert [each[:2] for each in found] == [each[:2] for each in real]
    assert {row[0] for row in rows} == {"p", None}  # (other) is no value of these types
    assert {str(row[1]) for row in rows} == {UNIQUE, "None"}
    assert {row[2] for row in rows} >= {"x", "(other)"}
    assert all(row[3] is None or 0 <= row[3] <= 255 for row in rows)
    assert all(row[4] is None or 0 <= row[4] < 10 for row in rows)
    assert dt.time(7) in {row[5] for row in rows}


def test_a_parquet_file_has_the_same_rows(synthetic, tmp_path):
    path = tmp_path / "it's.parquet"
    synthetic.to_parquet(path)
    with synthetic.connect() as made:
        expected = made.execute(f"SELECT * FROM {quoted(NAME)}").df()
    found = duckdb.read_parquet(str(path)).df()
    pd.testing.assert_frame_equal(found.astype(str), expected.astype(str))


def test_a_file_that_cannot_be_written_is_a_source_error(synthetic, tmp_path):
    with pytest.raises(privsql.SourceError) as caught:
        synthetic.to_parquet(tmp_path / "missing" / "x.parquet")
    assert caught.value.code == "source-file" and caught.value.suggestion


def test_the_report_is_drawn_with_two_bars_for_every_marginal():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    with connect(people(300)) as session:
        made = session.synthesize(
            "people", ["age", "state", "smoker"], bins={"age": PARTS["age"]}, epsilon=1.0, delta=1e-6
        )
        many = session.synthesize("people", bins=PARTS, epsilon=1.0, delta=1e-6, ways=4)
    ax = made.plot()
    report = made.report().sort_values("predicted", ascending=False, kind="stable")
    assert [each.get_width() for each in ax.patches] == [*report["predicted"], *report["rows_off"]]
    assert [each.get_text() for each in ax.get_yticklabels()] == report["columns"].tolist()
    assert f"{len(made):,} rows like those of people" in ax.get_title() and "epsilon 1" in ax.get_title()
    assert len(many.plot(pyplot.figure().subplots()).patches) == 2 * len(many.report())
    pyplot.close("all")


def test_of_many_marginals_the_worst_are_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from privsql.results.report_plot import plot_report

    rows = [{"columns": f"c{place}", "predicted": place / 100, "rows_off": 0.01} for place in range(60)]
    ax = plot_report(pd.DataFrame(rows), "many")
    labels = [each.get_text() for each in ax.get_yticklabels()]
    assert labels[0] == "c59" and labels[-1] == "mean of 37 others" and len(labels) == 24
    pyplot.close("all")
