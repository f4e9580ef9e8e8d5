"""The command line: real processes for the ways in and out, the same function called directly for the rest."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from privsql.cli import main

COUNT = "SELECT COUNT(*) AS n FROM visits WHERE age >= 40"
POLICY = """
[budget]
epsilon = 2.0
[tables.visits.columns]
age = { range = [0, 120] }
state = { values = ["CA", "NY"] }
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same table as CSV, Parquet and DuckDB, and a policy."""
    folder = tmp_path_factory.mktemp("cli")
    with duckdb.connect(str(folder / "clinic.duckdb")) as owner:
        owner.execute(
            "CREATE TABLE visits AS SELECT CAST(i % 80 AS INTEGER) AS age, ['CA', 'NY', 'TX'][1 + i % 3] AS state, "
            "DATE '2024-01-01' + CAST(i % 28 AS INTEGER) AS day FROM range(1600) t(i)"
        )
        owner.execute(f"COPY visits TO '{folder / 'visits.csv'}'")
        owner.execute(f"COPY visits TO '{folder / 'visits.parquet'}'")
    (folder / "clinic.toml").write_text(POLICY, encoding="utf-8")
    return folder


def run(*arguments: object, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "privsql", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, input=stdin, check=False, encoding="utf-8"
    )


# -- real processes ------------------------------------------------------------------------------------------
def test_a_query_from_standard_input(files: Path) -> None:
    done = run("query", files / "visits.csv", "-", "--epsilon", "1", "--format", "csv", stdin=COUNT + ";\n")
    assert (done.returncode, done.stderr) == (0, "")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 1
    assert abs(int(rows[0]["n"]) - 800) < 40


def test_an_error_goes_to_standard_error_with_code_2_and_no_traceback(files: Path) -> None:
    done = run("query", files / "visits.csv", "SELECT * FROM visits", "--epsilon", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("line 1, column ")
    assert "[refused-rows]\nhint: " in done.stderr
    assert "Traceback" not in done.stderr


LATE = """if True:
    import sys, threading, time
    run = threading.Timer.run
    def late(self):  # as on a busy machine: a thread that was told to end does so a moment later
        run(self)
        time.sleep(0.3)
    threading.Timer.run = late
    from privsql.cli import main
    sys.exit(main(sys.argv[1:]))
    """
MALFORMED = "SELECT COUNT(*) AS n FROM visits WHERE regexp_matches(state, '(')"


def test_after_an_error_nothing_of_duckdb_is_left_over(files: Path) -> None:
    """A thread that is still there when the interpreter ends makes DuckDB print forty lines of what it leaked."""
    command = [sys.executable, "-c", LATE, "query", str(files / "visits.csv"), MALFORMED, "--epsilon", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    first, hint = done.stderr.splitlines()
    assert first.endswith("[sql-engine]")
    assert hint.startswith("hint: ")


@pytest.mark.slow
def test_the_installed_command_is_the_same_and_survives_a_closed_pipe() -> None:
    command = Path(sys.executable).with_name("privsql")
    done = subprocess.run(
        f"'{command}' demo | head -1", shell=True, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.startswith("privsql: ask about people in SQL")
    assert done.stderr == ""


@pytest.mark.slow
def test_a_terminal_without_unicode_still_gets_the_tree(files: Path) -> None:
    code = "import sys; from privsql.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["explain", str(files / "visits.csv"), COUNT, "--epsilon", "1"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        timeout=120,
        check=False,
        env={"PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"l1 = 1, linf = 1" in done.stdout


# -- the same, called directly -------------------------------------------------------------------------------
@pytest.mark.parametrize("source", ["visits.csv", "visits.parquet", "clinic.duckdb"])
def test_the_table_is_named_after_the_file(
    files: Path, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", str(files / source), COUNT, "--epsilon", "1"]) == 0
    shown = capsys.readouterr().out
    assert "[95% intervals, noise only]  cost epsilon 1, replace-one" in shown


def test_json_has_rows_intervals_and_receipt(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT state, AVG(age) AS age, COUNT(*) AS n FROM visits GROUP BY state"
    assert main(["query", str(files / "visits.parquet"), sql, "--epsilon", "1", "--policy", str(files / "clinic.toml"),
                 "--format", "json"]) == 0  # fmt: skip
    document = json.loads(capsys.readouterr().out)
    assert document["columns"] == ["state", "age", "n"]
    assert [row["state"] for row in document["rows"]] == ["CA", "NY", None]
    assert document["intervals"]["level"] == 0.95
    first = document["intervals"]["rows"][0]
    assert first["n_low"] < first["n"] < first["n_high"]
    assert document["receipt"]["epsilon"] == 1.0
    assert document["receipt"]["measurements"][0]["mechanism"] == "discrete Laplace"


def test_integer_keys_beside_null_stay_integers(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["query", str(files / "visits.parquet"), "SELECT age // 40 AS half, COUNT(*) AS n FROM visits GROUP BY 1",
                 "--epsilon", "1", "--policy", str(files / "clinic.toml"), "--format"]  # fmt: skip
    assert main([*arguments, "csv"]) == 0
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == [
        "half",
        "0",
        "1",
        "2",
        "3",
        "",
    ]
    assert main([*arguments, "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [repr(row["half"]) for row in document["intervals"]["rows"]] == ["0", "1", "2", "3", "None"]


def test_json_of_dates_and_open_intervals(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = """SELECT date_trunc('week', day) AS week, COUNT(*) / (COUNT(*) - COUNT(*)) AS odd FROM visits
             WHERE day BETWEEN DATE '2024-01-01' AND DATE '2024-01-14' GROUP BY 1"""
    assert main(["query", str(files / "visits.parquet"), sql, "--epsilon", "1", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["week"][:10] for row in document["rows"]] == ["2024-01-01", "2024-01-08"]
    assert {row["odd"] for row in document["rows"]} == {None}


def test_within_confidence_dialect_and_mechanism(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, policy = str(files / "visits.csv"), str(files / "clinic.toml")
    assert main(["explain", source, COUNT, "--within", "20", "--confidence", "0.99", "--format", "json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert 0.2 < plan["epsilon"] < 0.3
    assert plan["sql"].startswith("SELECT ")
    assert (
        main(
            [
                "explain",
                source,
                "SELECT COUNT(*) AS `n` FROM `visits`",
                "--epsilon",
                "1",
                "--dialect",
                "bigquery",
            ]
        )
        == 0
    )
    assert "Answer: n" in capsys.readouterr().out
    most = "SELECT state FROM visits GROUP BY state ORDER BY COUNT(*) DESC LIMIT 1"
    assert main(["explain", source, most, "--epsilon", "1", "--policy", policy, "--mechanism", "gumbel"]) == 0
    assert "Gumbel" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["visits.csv", COUNT, "--epsilon", "0"], "argument-epsilon"),
        (["visits.csv", COUNT, "--epsilon", "nan"], "argument-epsilon"),
        (["visits.csv", COUNT, "--epsilon", "3", "--policy", "clinic.toml"], "budget-exhausted"),
        (["visits.csv", COUNT, "--epsilon", "1", "--policy", "missing.toml"], "policy-file"),
        (["missing.csv", COUNT, "--epsilon", "1"], "source-missing"),
        (["visits.xls", COUNT, "--epsilon", "1"], "source-kind"),
        (["clinic.toml", COUNT, "--epsilon", "1"], "source-kind"),
        (["visits.csv", "SELECT COUNT(*) FROM visit", "--epsilon", "1"], "name-table"),
        (["visits.csv", "SELECT COUNT(* FROM visits", "--epsilon", "1"], "sql-syntax"),
        (["visits.csv", COUNT, "--epsilon", "1", "--dialect", "klingon"], "sql-dialect"),
        (["visits.csv", COUNT, "--within", "-1"], "argument-within"),
    ],
)
def test_errors(
    files: Path,
    arguments: list[str],
    code: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(files)
    assert main(["query", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"[{code}]" in shown.err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["query"],
        ["query", "a.csv", COUNT],
        ["query", "a.csv", COUNT, "--epsilon", "1", "--within", "2"],
        ["serve"],
    ],
)
def test_usage_errors(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "usage: privsql" in capsys.readouterr().err


def test_help_has_examples_and_says_how_tables_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["--help"], "privsql demo"),
        (["query", "--help"], "data/visits.csv is the table visits"),
    ):
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        assert exit_.value.code == 0
        assert words in capsys.readouterr().out


def test_limits_of_the_engine(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are read as by connect()."""
    question = ["query", str(files / "visits.csv"), COUNT, "--epsilon", "1", "--format", "csv"]
    assert main([*question, "--memory-limit", "200MB", "--time-quantum", "0.2"]) == 0
    assert capsys.readouterr().out.startswith("n\n")
    assert main([*question, "--deadline", "30", "--memory-limit", "1GB"]) == 0
    for wrong in (["--deadline", "0"], ["--memory-limit", "many"], ["--time-quantum", "-1"]):
        assert main([*question, *wrong]) == 2
        assert "argument-" in capsys.readouterr().err
