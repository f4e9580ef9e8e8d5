"""`session.synthesize`: rows like the real ones, their types, and what they cost."""

from __future__ import annotations

import json
from itertools import combinations

import duckdb
import numpy as np
import pandas as pd
import pytest

import privsql
from privsql.release.rows.dense_fit import fitted_table, grouped, marginal_of
from privsql.release.rows.row_edits import corrected
from privsql.release.rows.synthetic_rows import rows_of, systematic_counts, uniform
from tests.noise.statistics import SOURCE
from tests.release.people import BINS, connect, people

PRICE = {"epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def source():
    frame = people(20_000)
    connection = duckdb.connect()
    connection.register("frame", frame)
    connection.execute(
        "CREATE TABLE people AS SELECT CAST(age AS SMALLINT) AS age, state, smoker, "
        "CAST(least(greatest(income, -9), 200) AS DECIMAL(8, 2)) AS income, "
        "DATE '2024-01-01' + CAST(abs(age) * 3 AS INTEGER) AS day, "
        "TIMESTAMP '2024-01-01' + to_hours(CAST(abs(age) * 50 AS INTEGER)) AS moment, "
        "CAST(CASE WHEN smoker THEN 'often' ELSE 'never' END AS ENUM('never', 'often')) AS drinks FROM frame"
    )
    return connection


COLUMNS = {
    "age": {"range": [0, 99]},
    "state": {"values": ["CA", "NY", "TX"]},
    "income": {"range": [0, 100]},
    "day": {"range": ["2024-01-01", "2024-12-31"]},
    "moment": {"range": ["2024-01-01", "2024-12-31"]},
}
PARTS = {**BINS, "day": 4, "moment": 3}


@pytest.fixture(scope="module")
def synthetic(source):
    with privsql.connect(source, {"tables": {"people": {"columns": COLUMNS}}}) as session:
        yield session.synthesize("people", **PRICE, bins=PARTS)


def test_rows_have_the_columns_and_types_of_the_real_table(source, synthetic):
    with synthetic.connect() as made:
        found = made.execute("DESCRIBE people").fetchall()
    real = source.execute("DESCRIBE people").fetchall()
    assert [row[:2] for row in found] == [row[:2] for row in real]
    assert len(synthetic) == len(synthetic.df()) == 20_000  # public under replace-one


def test_plain_sql_over_the_rows_is_near_the_truth(source, synthetic):
    questions = [
        "SELECT COUNT(*) FROM people WHERE smoker AND state = 'NY'",
        "SELECT COUNT(*) FROM people WHERE age BETWEEN 18 AND 39",
        "SELECT COUNT(*) FROM people WHERE drinks = 'often' AND income >= 50",
        "SELECT COUNT(*) FROM people WHERE state IS NULL AND day < DATE '2024-07-01'",
    ]
    with synthetic.connect() as made:
        for sql in questions:
            (found,), (truth,) = made.execute(sql).fetchone(), source.execute(sql).fetchone()
            assert found == pytest.approx(truth, abs=400)


def test_values_stay_within_their_parts_and_lists(synthetic):
    frame = synthetic.df()
    assert frame["age"].between(0, 99).all() and frame["age"].nunique() > 50
    assert set(frame["state"].dropna()) == {"CA", "NY", "TX", "(other)"}
    assert frame["income"].dropna().between(0, 100).all()
    assert set(frame["drinks"].dropna()) == {"never", "often"}
    assert frame["moment"].dropna().between("2024-01-01", "2024-12-31").all()


def test_rows_can_be_written_and_handed_on(synthetic, tmp_path):
    synthetic.to_parquet(tmp_path / "x.parquet")
    assert duckdb.sql(f"SELECT COUNT(*) FROM '{tmp_path / 'x.parquet'}'").fetchall() == [(20_000,)]
    assert synthetic.arrow().num_rows == 20_000
    frame = synthetic.df()
    frame.loc[:, "smoker"] = True
    assert not synthetic.df()["smoker"].all()


def test_the_report_has_a_line_for_each_marginal(synthetic):
    report = synthetic.report()
    assert len(report) == sum(len(list(combinations(range(7), ways))) for ways in (1, 2, 3))
    assert report["rows_off"].max() < 0.05 and report["rows_off"].mean() < 0.02
    assert (report["predicted"] > 0).all()
    assert synthetic.receipt["method"] == "maxent" and json.dumps(synthetic.receipt)
    assert "synthetic rows" in str(synthetic)


def test_a_synthetic_table_is_charged_once(source):
    policy = {"tables": {"people": {"columns": COLUMNS}}, "budget": {"epsilon": 1.0, "delta": 1e-6}}
    with privsql.connect(source, policy) as session:
        first = session.synthesize("people", ["age", "smoker"], **PRICE, bins={"age": 4}, rows=500)
        again = session.synthesize("people", ["age", "smoker"], **PRICE, bins={"age": 4})
        assert len(first) == 500 and len(again) == 20_000
        assert again.release.stored and session.budget.spent.epsilon == 1
        with pytest.raises(privsql.BudgetError):
            session.synthesize("people", ["age", "smoker"], **PRICE, bins={"age": 5})


def test_a_failed_fit_loses_the_rows_but_neither_release_nor_charge(source, monkeypatch):
    with privsql.connect(source, {"tables": {"people": {"columns": COLUMNS}}}) as session:
        columns = ["age", "state", "smoker", "income"]
        monkeypatch.setattr("privsql.release.rows.synthesis.fitted_table", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.synthesize("people", columns, **PRICE, bins=BINS)
        monkeypatch.undo()
        assert session.budget.spent.epsilon == 1
        assert session.synthesize("people", columns, **PRICE, bins=BINS).release.stored


def _interrupted(*_):
    raise KeyboardInterrupt


def test_the_unit_is_left_out_and_bounded():
    frame = people(3_000).assign(person=np.arange(3_000) // 3)
    table = {"unit": "person", "max_groups": 3, "max_rows": 1}
    with connect(frame, table=table, neighbours="add-remove") as session:
        made = session.synthesize("people", epsilon=3.0, delta=1e-6, bins=BINS)
    assert list(made.df().columns) == ["age", "state", "smoker", "income"]
    assert 2_000 < len(made) < 4_000 and made.warnings


@pytest.mark.parametrize("columns", [["smoker"], ["smoker", "state"], ["smoker", "state", "age"]])
def test_few_columns_come_from_the_release_as_it_is(columns):
    with connect(people(5_000)) as session:
        made = session.synthesize("people", columns, **PRICE, bins={"age": 4} if "age" in columns else None)
    assert made.report()["rows_off"].max() < 0.01


def test_arguments_are_checked_before_anything_is_charged():
    with connect(people(100), budget={"epsilon": 1.0, "delta": 1e-6}) as session:
        cases = [
            ({"method": "magic"}, "argument-method"),
            ({"rows": 0}, "argument-rows"),
            ({"columns": ["nobody"]}, "name-column"),
            ({"columns": []}, "argument-columns"),
            ({"table": "nobody"}, "name-table"),
        ]
        for arguments, code in cases:
            with pytest.raises(privsql.PrivsqlError) as caught:
                session.synthesize(**{"table": "people", **PRICE, **arguments})
            assert caught.value.code == code
        assert session.budget.spent.epsilon == 0


def test_a_domain_that_does_not_fit_into_memory_is_refused():
    wide = pd.DataFrame({f"c{i}": [0, 1] for i in range(12)})
    ranges = {"columns": {f"c{i}": {"range": [0, 9]} for i in range(12)}}
    with privsql.connect({"wide": wide}, {"tables": {"wide": ranges}}) as session:
        with pytest.raises(privsql.Refused, match="combinations of cells") as caught:
            session.synthesize("wide", **PRICE)
        assert caught.value.code == "refused-large-domain"
        assert session.budget.spent.epsilon == 0


# -- fitting and rounding --------------------------------------------------------------------------------------
def test_a_fitted_table_has_its_marginals_and_no_further_structure():
    random = np.random.default_rng(1)
    sizes = (3, 2, 4, 2, 3)
    truth = random.dirichlet(np.ones(144)).reshape(sizes)

    def marginal(columns):
        return truth.sum(axis=tuple(each for each in range(5) if each not in columns))

    pairs = {each: marginal(each) for each in combinations(range(5), 2)}
    groups = grouped(sizes, 3)
    table = fitted_table(groups, pairs, [marginal((each,)) for each in range(5)])
    assert sorted(groups.order) == list(range(5)) and table.sum() == pytest.approx(1)
    for columns, wanted in pairs.items():
        assert marginal_of(groups, table, columns) == pytest.approx(wanted, abs=2e-3)
    whole = table.reshape([sizes[each] for each in groups.order]).astype(float)
    logs = np.log(np.transpose(whole, np.argsort(groups.order)))
    for axes in combinations(range(5), 3):  # no term of three columns: mixed third differences are 0
        part = logs
        for axis in axes:
            part = np.diff(part, axis=axis)
        assert np.abs(part).max() < 1e-2


def test_marginals_that_disagree_are_fitted_nearly():
    groups = grouped((2, 2, 2), 3)
    one, other = np.array([[0.5, 0.0], [0.0, 0.5]]), np.array([[0.0, 0.5], [0.5, 0.0]])
    table = fitted_table(groups, {(0, 1): one, (1, 2): one, (0, 2): other}, [np.full(2, 0.5)] * 3)
    assert np.isfinite(table).all() and table.sum() == pytest.approx(1)


def test_every_cell_gets_its_share_rounded_up_or_down():
    table = np.random.default_rng(2).dirichlet(np.full(200, 0.1)).astype(np.float32)
    for start in (0.0, 0.3, 0.999):
        counts = systematic_counts(table, 1_000, start)
        assert counts.sum() == 1_000 and counts.min() >= 0
        assert np.abs(counts - 1_000 * table / table.sum(dtype=float)).max() < 1.001


def test_expected_counts_are_the_shares():
    table = np.array([0.25, 0.1, 0.65], dtype=np.float32)
    found = np.mean([systematic_counts(table, 3, float(u)) for u in uniform(20_000, SOURCE)], axis=0)
    assert found == pytest.approx([0.75, 0.3, 1.95], abs=0.03)


def test_rows_come_in_random_order():
    counts = np.array([500, 0, 300, 200])
    first, second = rows_of(counts, (2, 2), SOURCE)
    assert np.bincount(2 * first + second, minlength=4).tolist() == counts.tolist()
    assert 100 < first[:500].sum() < 400


def test_exchanged_rows_have_their_marginals_more_nearly():
    random = np.random.default_rng(5)
    sizes = (4, 3, 5)
    truth = random.dirichlet(np.ones(60)).reshape(sizes)
    pairs = list(combinations(range(3), 2))
    goals = [(each, truth.sum(axis=tuple({0, 1, 2} - set(each))) * 500) for each in pairs]

    def drawn(count):
        return list(np.unravel_index(random.choice(60, count, p=truth.reshape(-1)), sizes))

    def off(rows):
        counted = [np.zeros([sizes[each] for each in columns]) for columns, _ in goals]
        for table, (columns, _) in zip(counted, goals, strict=True):
            np.add.at(table, tuple(rows[each] for each in columns), 1.0)
        return sum(np.abs(table - goal).sum() for table, (_, goal) in zip(counted, goals, strict=True))

    rows = drawn(500)
    found = corrected(rows, drawn(500), goals)
    assert [len(each) for each in found] == [500] * 3
    assert off(found) < 0.5 * off(rows)


def test_many_rows_are_left_as_they_were_drawn(monkeypatch):
    monkeypatch.setattr("privsql.release.rows.row_edits.MOST_PLACES", 10)
    rows = [np.array([0, 1, 0, 1, 1, 1])]
    assert corrected(rows, [np.zeros(6, dtype=np.int64)], [((0,), np.array([6.0, 0.0]))]) == rows
