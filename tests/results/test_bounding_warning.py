"""Default limits that may drop rows are said: in every answer, and as a Python warning once a session."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings

import duckdb
import pandas as pd
import pytest

import privsql
from privsql.cli import main

COUNT = "SELECT COUNT(*) AS n FROM df"
SAID = "At most 10 rows per u are used; units with more are cut to 10, so totals may be low."


def frame() -> pd.DataFrame:
    return pd.DataFrame({"u": [i % 40 for i in range(2000)], "k": [i % 6 for i in range(2000)]})


def opened(**limits):
    return privsql.connect(frame(), {"tables": {"df": {"unit": "u", **limits}}})


def test_the_warning_is_shown_once_a_session_and_kept_in_answers():
    session = opened()
    with pytest.warns(privsql.BoundingWarning, match="max_rows is a default that nobody declared") as caught:
        first = session.query(COUNT, epsilon=1)
    assert len(caught) == 1
    assert caught[0].filename == __file__  # where the query is asked
    assert 'max_rows="auto"' in str(caught[0].message)
    assert "suggest_limits" in str(caught[0].message)
    second = session.query("SELECT COUNT(*) AS n FROM df WHERE k = 1", epsilon=1)  # warnings are errors here
    for answer in (first, second):
        assert answer.warnings == (SAID,)
        assert answer.receipt["warnings"] == [SAID]
        assert str(answer).splitlines()[-1] == SAID
        assert SAID in answer._repr_html_()
    json.dumps(first.receipt)


def test_declared_limits_are_mentioned_and_do_not_warn():
    answer = opened(max_rows=4).query(COUNT, epsilon=1)
    assert answer.warnings == (SAID.replace("10", "4"),)
    assert opened().query(COUNT, epsilon=1, max_rows=7).warnings == (SAID.replace("10", "7"),)
    out = frame().dp.query(COUNT, epsilon=1, unit="u", max_rows=3)
    assert out.dp.warnings == (SAID.replace("10", "3"),)


def test_no_warning_if_nothing_can_be_dropped():
    assert opened().query("SELECT COUNT(DISTINCT u) AS n FROM df", epsilon=1).warnings == ()
    assert frame().dp.query(COUNT, epsilon=1).dp.warnings == ()


def test_only_the_query_with_default_limits_warns():
    session = opened(max_rows=5)
    session.query(COUNT, epsilon=1)
    with pytest.warns(privsql.BoundingWarning, match="max_groups is a default"):
        session.query("SELECT k, COUNT(*) AS n FROM df GROUP BY k", epsilon=1, delta=1e-6)


def test_nothing_is_spent_if_the_warning_is_an_error():
    session = opened()
    with pytest.raises(privsql.BoundingWarning):
        session.query(COUNT, epsilon=1)
    with pytest.raises(privsql.BoundingWarning):
        session.batch([COUNT], epsilon=1)
    assert session.budget.spent.epsilon == 0


def test_batches_and_searches_for_ranges_warn_of_the_query():
    with pytest.warns(privsql.BoundingWarning) as caught:
        opened().batch([COUNT, "SELECT COUNT(*) AS n FROM df WHERE k = 2"], epsilon=1)
    assert len(caught) == 1
    with pytest.warns(privsql.BoundingWarning, match="^At most 10 rows per u are used") as caught:
        frame().dp.query("SELECT SUM(k) AS n FROM df", epsilon=1, unit="u", ranges="auto")
    assert len(caught) == 1


def test_a_frame_warns_once_whatever_the_options():
    data = frame()
    with pytest.warns(privsql.BoundingWarning, match=r"df\.dp\.protect"):
        data.dp.query(COUNT, epsilon=1, unit="u")
    data.dp.query(
        COUNT, epsilon=1, unit="u", keys={"k": [1, 2]}
    )  # another session, and warnings are errors here
    with pytest.warns(privsql.BoundingWarning):
        frame().dp.query(COUNT, epsilon=1, unit="u")  # another frame


def test_the_suggestion_of_the_warning_runs():
    data = frame()
    assert data.dp.query(COUNT, epsilon=1, unit="u", max_rows="auto", max_groups="auto").dp.receipt[
        "limits_found"
    ]
    assert data.dp.suggest_limits(epsilon=0.1, unit="u").table == "df"
    assert opened().suggest_limits("df", epsilon=0.1).table == "df"
    data.dp.protect(unit="u", max_rows=60, max_groups=6)
    assert data.dp.query(COUNT, epsilon=1).dp.warnings == (SAID.replace("10", "60"),)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "visits.duckdb"
    with duckdb.connect(str(path)) as owner:
        owner.register("given", frame())
        owner.execute("CREATE TABLE df AS FROM given")
    (tmp_path / "p.toml").write_text('[tables.df]\nunit = "u"\n')
    return [str(path), COUNT, "--epsilon", "1", "--policy", str(tmp_path / "p.toml")]


def test_the_command_line_warns_in_its_own_terms(source, capsys):
    assert main(["query", *source]) == 0
    shown = capsys.readouterr()
    assert SAID in shown.out
    assert "--max-rows" in shown.err
    assert main(["query", *source, "--format", "csv"]) == 0
    shown = capsys.readouterr()
    assert SAID not in shown.out
    assert f"warning: {SAID}" in shown.err
    assert main(["query", *source, "--max-rows", "12", "--format", "json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["receipt"]["warnings"] == [SAID.replace("10", "12")]
    assert shown.err == ""


def test_the_command_line_finds_limits(source, capsys):
    assert main(["query", *source, "--max-rows", "auto", "--max-groups", "auto", "--format", "json"]) == 0
    receipt = json.loads(capsys.readouterr().out)["receipt"]
    assert [each["name"] for each in receipt["limits_found"]] == ["max_rows"]
    assert receipt["charged"] == pytest.approx(1)
    assert main(["explain", *source, "--max-rows", "auto"]) == 0
    assert "max_rows" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["query", *source, "--max-rows", "many"])


@pytest.mark.slow
def test_python_shows_it_at_the_line_of_the_query():
    script = (
        "import pandas as pd, privsql\n"
        "df = pd.DataFrame({'u': [1] * 50})\n"
        "df.dp.query('SELECT COUNT(*) AS n FROM df', epsilon=1, unit='u')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "<string>:3: BoundingWarning: At most 10 rows per u are used" in done.stderr


def test_the_category_is_a_user_warning():
    assert issubclass(privsql.BoundingWarning, UserWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", privsql.BoundingWarning)
        opened().query(COUNT, epsilon=1)
