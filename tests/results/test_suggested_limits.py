"""session.suggest_limits: what every limit would cut and keep, privately, as a table and a picture."""

from __future__ import annotations

import json

import duckdb
import pytest

import privsql
from tests.planning.test_auto_limits import DATA, SURE, opened, visits


@pytest.fixture(scope="module")
def found():
    return opened().suggest_limits("v", epsilon=SURE)


def test_rows_and_keys_of_the_declared_columns(found):
    assert (found.max_rows, found.max_groups) == (384, 12)
    table = found.df().set_index(["limit_of", "limit"])
    assert (
        table.loc[("max_rows", 24), "units_cut"] == 200
    )  # of 3,200 units: 2,000 with 1 row, 1,000 with 20, 200 with 300
    assert table.loc[("max_rows", 16), "units_cut"] == 1200
    assert table.loc[("max_rows", 384), "units_cut"] == 0
    assert table.loc[("max_rows", 384), "kept"] == 1
    assert table.loc[("max_rows", 24), "kept"] == pytest.approx((2000 + 20000 + 200 * 24) / 82000, rel=0.15)
    assert table.loc[("max_rows", 24), "noise"] == 24
    assert table["suggested"].sum() == 2
    assert (table["error"] > 0).all()
    best = table[table["suggested"]].loc["max_rows"]
    assert best["error"].iloc[0] == table.loc["max_rows"]["error"].min()


def test_suggestions_print_as_a_table(found):
    lines = str(found).splitlines()
    assert lines[0] == "Rows per u, about 3,200 units"
    assert lines[1].split() == ["max_rows", "units", "cut", "rows", "kept", "noise", "error"]
    assert next(line for line in lines if line.endswith("<- suggested")).split()[0] == "384"
    assert "suggested for v: max_rows = 384, max_groups = 12" in lines
    assert "cost epsilon 500, replace-one" in lines[-1]
    assert "<pre>" in found._repr_html_()
    json.dumps(found.receipt)


def test_by_a_column_rows_are_those_of_the_largest_key():
    found = opened().suggest_limits("v", epsilon=SURE, by="k")
    assert (found.max_rows, found.max_groups) == (32, 12)
    assert "Rows in one key (k) per u" in str(found)
    both = opened(columns={}).suggest_limits(
        "v", epsilon=SURE, by=["k", "x"]
    )  # of columns that nobody declared, too
    assert both.max_groups == 64  # 300 rows go round 60 pairs


def test_listed_values_are_keys_too():
    listed = {
        "k": {"values": list(range(12))},
        "x": {"range": [0, 10**6]},
    }  # a range so long is not meant as keys
    found = opened(columns=listed).suggest_limits("v", epsilon=SURE)
    assert found.max_groups == 12
    assert "Keys (k: the column with the most) per u" in str(found)


def test_a_noisier_query_takes_smaller_limits():
    session = opened()
    limits = [session.suggest_limits("v", epsilon=SURE, query_epsilon=each).max_rows for each in (1, 0.002)]
    assert limits[1] < limits[0]
    assert session.budget.spent.epsilon == SURE  # the histograms are the same: they are stored


def test_suggestions_are_charged_once():
    session = opened()
    first = session.suggest_limits("v", epsilon=0.2)
    assert first.receipt["charged"] == pytest.approx(0.2)
    assert session.budget.spent.epsilon == pytest.approx(0.2)
    again = session.suggest_limits("v", epsilon=0.2)
    assert again.receipt["charged"] == 0
    assert str(again).splitlines()[:5] == str(first).splitlines()[:5]
    session.suggest_limits("v", epsilon=0.2, fresh=True)
    assert session.budget.spent.epsilon == pytest.approx(0.4)


def test_the_suggestion_is_charged_as_a_whole_or_not_at_all():
    policy = {
        "budget": {"epsilon": 0.15},
        "tables": {"v": {"unit": "u", "columns": {"k": {"range": [0, 11]}}}},
    }
    session = privsql.connect({"v": DATA[:50]}, policy)
    with pytest.raises(privsql.BudgetError):
        session.suggest_limits("v", epsilon=0.2)
    assert session.budget.spent.epsilon == 0


def test_nothing_declared_and_too_few_units():
    found = privsql.connect({"v": visits({3: 4})}, {"tables": {"v": {"unit": "u"}}}).suggest_limits("v")
    assert (found.max_rows, found.max_groups) == (None, None)
    assert "too few units stand out of the noise to suggest a limit" in str(found)
    assert 'by="..."' in str(found)
    with pytest.raises(privsql.ArgumentError, match="too few units"):
        found.plot()
    by = privsql.connect({"v": visits({3: 4})}, {"tables": {"v": {"unit": "u"}}}).suggest_limits("v", by="k")
    assert (by.max_rows, by.max_groups) == (None, None)


def test_tables_without_such_a_unit_are_refused():
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE a (u INTEGER); CREATE TABLE b (u INTEGER PRIMARY KEY); CREATE TABLE c (u INTEGER)"
    )
    session = privsql.connect(connection, {"tables": {"b": {"unit": "u"}, "c": {"public": True}}})
    for table, why in (("a", "no unit is declared"), ("b", "u is unique"), ("c", "it is public")):
        with pytest.raises(privsql.ArgumentError, match=why) as caught:
            session.suggest_limits(table)
        assert caught.value.code == "argument-unit"
        assert f'unit = "COLUMN" (in the policy, under [tables.{table}])' in caught.value.suggestion
    with pytest.raises(privsql.UnknownName):
        session.suggest_limits("d")
    with pytest.raises(privsql.UnknownName):
        opened(DATA[:5]).suggest_limits("v", by="nobody")
    with pytest.raises(privsql.ArgumentError):
        opened(DATA[:5]).suggest_limits("v", epsilon=0)
    with pytest.raises(privsql.ArgumentError):
        opened(DATA[:5]).suggest_limits("v", columns="k")
    for by in ("U", [], [3]):
        with pytest.raises(privsql.ArgumentError) as caught:
            opened(DATA[:5]).suggest_limits("v", by=by)
        assert caught.value.code == "argument-by"


@pytest.mark.slow
def test_suggestions_plot_bias_and_noise(found):
    from matplotlib import pyplot

    axes = found.plot()
    assert [ax.get_xlabel() for ax in axes] == [
        "max_rows, rows",
        "max_groups, keys (k, x: the column with the most)",
    ]
    assert {line.get_label() for line in axes[0].get_lines()} == {
        "dropped (bias)",
        "noise",
        "both",
        "max_rows = 384",
    }
    pyplot.close("all")
    _, ax = pyplot.subplots()
    assert opened().suggest_limits("v", epsilon=SURE).plot(ax=ax) is ax
    pyplot.close("all")
