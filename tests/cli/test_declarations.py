"""--unit, --keys and --ranges, the formats and files of answers, advise and history: the same function, called directly."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from privsql.cli import main

EXACT = "10000"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("declarations")
    frame = pd.DataFrame({"who": [1, 1, 2, 3], "state": ["CA", "CA", "NY", "a,b"], "age": [30, 32, 40, 50]})
    frame.to_csv(made / "visits.csv", index=False)
    with duckdb.connect(str(made / "clinic.duckdb")) as owner:
        owner.execute("CREATE TABLE visits AS FROM frame")
    return made


def printed(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    assert main(list(map(str, arguments))) == code
    shown = capsys.readouterr()
    return shown.err if code else shown.out


def rows(
    capsys: pytest.CaptureFixture[str], source: Path, sql: str, *options: str
) -> list[dict[str, object]]:
    out = printed(capsys, "query", source, sql, "--epsilon", EXACT, "--format", "json", *options)
    return list(json.loads(out)["rows"])


BY_STATE = "SELECT state, COUNT(*) AS n FROM visits GROUP BY state"


def test_keys_are_declared_with_an_option(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, folder / "visits.csv", BY_STATE, "--keys", "state=NY, CA,'a,b'")
    assert {row["state"]: row["n"] for row in found} == {"NY": 1, "CA": 2, "a,b": 1}


def test_a_number_is_a_number_unless_it_is_quoted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    by_age = "SELECT age, COUNT(*) AS n FROM visits GROUP BY age"
    found = rows(capsys, folder / "visits.csv", by_age, "--keys", "age=30,40")
    assert {row["age"]: row["n"] for row in found} == {30: 1, 40: 1}
    quoted = rows(capsys, folder / "clinic.duckdb", BY_STATE, "--keys", "visits.state='30',\"CA\"")
    assert {row["state"]: row["n"] for row in quoted} == {"30": 0, "CA": 2}


def test_a_range_clamps(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    total = "SELECT SUM(age) AS s FROM visits"
    found = rows(capsys, folder / "visits.csv", total, "--ranges", "age=0..35")
    assert abs(float(str(found[0]["s"])) - (30 + 32 + 35 + 35)) < 0.1


def test_a_unit_bounds_what_one_person_does(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = "SELECT COUNT(*) AS n FROM visits"
    options = ("--unit", "who", "--max-rows", "1", "--max-groups", "1")
    assert rows(capsys, folder / "visits.csv", count, *options)[0]["n"] == 3


def test_a_database_needs_the_table_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, folder / "clinic.duckdb", BY_STATE, "--keys", "visits.state=CA")
    assert found == [{"state": "CA", "n": 2}]
    command = ("query", folder / "clinic.duckdb", BY_STATE, "--epsilon", 1, "--keys", "state=CA")
    assert "--keys TABLE.state=CA,NY" in printed(capsys, *command, code=2)


@pytest.mark.parametrize(
    "option",
    [("--keys", "state"), ("--keys", "=CA"), ("--ranges", "age=0"), ("--ranges", "age"), ("--unit", "")],
)
def test_half_an_option_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, str]
) -> None:
    command = ("query", folder / "visits.csv", BY_STATE, "--epsilon", 1, *option)
    assert "[argument-shape]" in printed(capsys, *command, code=2)


def test_options_add_to_the_policy_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "p.toml").write_text("[tables.visits.columns]\nage = { range = [0, 35] }\n")
    sql = "SELECT state, SUM(age) AS s FROM visits GROUP BY state"
    found = rows(capsys, folder / "visits.csv", sql, "--policy", str(folder / "p.toml"), "--keys", "state=NY")
    assert abs(float(str(found[0]["s"])) - 35) < 0.1


def test_an_answer_is_written_to_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("query", folder / "visits.csv", BY_STATE, "--epsilon", EXACT, "--keys", "state=CA|x,CA")
    for name in ("parquet", "csv", "markdown"):
        written = folder / f"answer.{name}"
        assert printed(capsys, *command, "--format", name, "-o", written) == f"wrote {written}\n"
    assert pd.read_parquet(folder / "answer.parquet")["n"].tolist() == [0, 2]
    assert pd.read_csv(folder / "answer.csv")["n"].tolist() == [0, 2]
    lines = (folder / "answer.markdown").read_text().splitlines()
    assert lines[0] == "| state | n | n_low | n_high |"
    assert lines[2].startswith("| CA\\|x | 0 |")


def test_a_file_that_cannot_be_written_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("query", folder / "visits.csv", "SELECT COUNT(*) AS n FROM visits", "--epsilon", 1)
    for options in (("-o", folder / "no" / "x.csv"), ("--format", "parquet", "-o", folder / "no" / "x")):
        assert "[argument-output]" in printed(capsys, *command, *options, code=2)
    assert "-o answer.parquet" in printed(capsys, *command, "--format", "parquet", code=2)


@pytest.mark.parametrize(
    "options",
    [["-o", "{}"], ["-o", "{}/no/x.csv"], ["--format", "parquet"], ["--format", "parquet", "-o", "{}"]],
)
def test_what_cannot_be_written_is_not_paid_for(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    ledger = tmp_path / "a.ledger"
    command = ("query", folder / "visits.csv", "SELECT COUNT(*) AS n FROM visits", "--epsilon", 1)
    printed(capsys, *command, "--ledger", ledger, *(each.format(tmp_path) for each in options), code=2)
    assert not ledger.exists()


def test_advice_is_a_table_json_or_a_picture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("advise", folder / "visits.csv", "SELECT COUNT(*) AS n FROM visits", "--epsilons", "0.1", "1")
    shown = printed(capsys, *command, "--plot", folder / "advice.png")
    assert "±30        52.5% sure" in shown
    assert (folder / "advice.png").stat().st_size > 5_000
    found = json.loads(printed(capsys, *command, "--format", "json"))
    assert [row["n"] for row in found] == [30, 3]


def test_history_lists_every_charge(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger, count = folder / "h.ledger", "SELECT COUNT(*) AS n\nFROM visits"
    printed(capsys, "query", folder / "visits.csv", count, "--epsilon", 0.5, "--ledger", ledger)
    lines = printed(capsys, "history", ledger).splitlines()
    assert lines[0].split() == ["when", "(UTC)", "analyst", "epsilon", "total", "query"]
    assert lines[-1].endswith("analyst      0.5    0.5  SELECT COUNT(*) AS n FROM visits")
    entries = json.loads(printed(capsys, "history", ledger, "--format", "json"))
    assert [each["kind"] for each in entries] == ["open", "charge"]
    assert entries[-1]["query"] == count
    assert printed(capsys, "history", ledger, "--format", "csv").count("charge") == 1
