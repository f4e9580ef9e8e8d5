"""Drafts of policies: real files through the command line, and what a draft must and must not say."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import duckdb
import pytest

import privsql
from privsql.cli import main
from privsql.drafting.check_policy import check_policy
from privsql.drafting.choose_rows import covering, query
from privsql.drafting.guess import guess_units
from privsql.drafting.people import is_id, person_of_column, person_of_table
from privsql.drafting.write import draft
from privsql.engines.duckdb.open_source import open_engine
from privsql.policy import load_policy

SCHEMA = """
    CREATE TYPE mood AS ENUM ('good', 'bad');
    CREATE TABLE customers (id INTEGER PRIMARY KEY, age INTEGER CHECK (age BETWEEN 0 AND 120), vip BOOLEAN);
    CREATE TABLE orders (oid INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id), total DOUBLE CHECK (total >= 0),
                         mood mood, day DATE, state VARCHAR CHECK (state IN ('CA', 'NY')), level TINYINT,
                         clock TIME, tags VARCHAR[]);
    CREATE TABLE items (order_nr INTEGER NOT NULL REFERENCES orders(oid), price DECIMAL(8, 2));
    CREATE TABLE countries (code VARCHAR PRIMARY KEY, name VARCHAR);
    CREATE VIEW busy AS SELECT customer_id, count(*) AS n FROM orders GROUP BY 1;
"""
ROWS = """
    INSERT INTO customers SELECT i, i % 100, i % 2 = 0 FROM range(4000) r(i);
    INSERT INTO orders SELECT i, i % 4000, i % 50, 'good', DATE '2024-01-01', 'CA', 1, NULL, [] FROM range(12000) r(i);
    INSERT INTO items SELECT i % 12000, 5 FROM range(24000) r(i);
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shop with rows, and the same without."""
    folder = tmp_path_factory.mktemp("shop")
    for name, sql in (("shop.duckdb", SCHEMA + ROWS), ("empty/shop.duckdb", SCHEMA)):
        (folder / name).parent.mkdir(exist_ok=True)
        with duckdb.connect(str(folder / name)) as owner:
            owner.execute(sql)
    with duckdb.connect() as owner:
        visits = "SELECT i % 300 AS patient_id, 20 + i % 60 AS age, ['CA', 'NY'][1 + i % 2] AS state FROM range(3000) r(i)"
        for suffix in ("csv", "parquet"):
            owner.execute(f"COPY ({visits}) TO '{folder / 'visits'}.{suffix}'")
    return folder


Done = subprocess.CompletedProcess[str]


def run(*arguments: object, cwd: Path) -> Done:
    command = [sys.executable, "-m", "privsql", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, encoding="utf-8", cwd=cwd
    )


def call(*arguments: object, cwd: Path) -> Done:
    """The same without a process of its own, which takes a second."""
    given = list(map(str, arguments))
    with chdir(cwd), redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as problems:
        code = main(given)
    return subprocess.CompletedProcess(given, code, out.getvalue(), problems.getvalue())


def switched_on(text: str) -> str:
    """A draft whose lines to fill in are enabled without being filled in."""
    return re.sub(r"^# (.+ = \{ (range|values) = )", r"\1", text, flags=re.MULTILINE)


def filled_in(text: str) -> str:
    """A draft whose lines to fill in are filled in and enabled."""
    holes = {"[LOWEST": "[0", "HIGHEST]": "1000]", "[EARLIEST": '["2020-01-01"', "LATEST]": '"2029-12-31"]',
             "[KEY, KEY, ...]": "[1, 2]", '["KEY", "KEY", ...]': '["a", "b"]'}  # fmt: skip
    for hole, value in holes.items():
        text = text.replace(hole, value)
    return switched_on(text)


# -- from a file to answers ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("source", "count", "total", "how"),
    [
        ("shop.duckdb", "SELECT COUNT(*) AS n FROM orders", "SELECT SUM(total) AS n FROM orders", call),
        pytest.param(
            "shop.duckdb",
            "SELECT COUNT(*) AS n FROM orders",
            "SELECT SUM(total) AS n FROM orders",
            run,
            marks=pytest.mark.slow,
        ),
        ("visits.parquet", "SELECT COUNT(*) AS n FROM visits", "SELECT SUM(age) AS n FROM visits", call),
        ("visits.csv", "SELECT COUNT(*) AS n FROM visits", "SELECT SUM(age) AS n FROM visits", call),
    ],
)
def test_a_draft_loads_and_its_lines_make_sums_work_once_filled_in(
    shop: Path, tmp_path: Path, source: str, count: str, total: str, how: Callable[..., Done]
) -> None:
    path = tmp_path / "draft.toml"
    done = how("policy", "init", source, "-o", path, cwd=shop)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"privsql policy check {path} {source}" in done.stdout
    policy = load_policy(path)
    assert policy.epsilon == 3
    answer = how("query", source, count, "--epsilon", "1", "--policy", path, "--format", "csv", cwd=shop)
    assert answer.returncode == 0
    # the draft declares limits: of rows alone, as CSV has them, what those drop is said beside, and no hint is needed
    assert all(line.startswith("warning: At most ") for line in answer.stderr.splitlines())
    assert abs(int(answer.stdout.split()[1]) - (12000 if source == "shop.duckdb" else 3000)) < 300
    with pytest.raises(privsql.Refused):  # a range that nobody looked at is off
        privsql.connect(str(shop / source), policy=path).explain(total, epsilon=1)
    text = path.read_text(encoding="utf-8")
    path.write_text(switched_on(text), encoding="utf-8")
    with pytest.raises(privsql.PolicyError, match="not valid TOML"):  # a line that is not filled in
        privsql.connect(str(shop / source), policy=path)
    path.write_text(filled_in(text), encoding="utf-8")
    privsql.connect(str(shop / source), policy=path).query(total, epsilon=1)


def test_standard_output_is_the_draft_and_check_says_what_it_means(shop: Path, tmp_path: Path) -> None:
    done = call("policy", "init", "shop.duckdb", cwd=shop)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == draft(str(shop / "shop.duckdb"))
    path = tmp_path / "shop.toml"
    path.write_text(done.stdout, encoding="utf-8")
    shown = call("policy", "check", path, "shop.duckdb", cwd=shop)
    assert (shown.returncode, shown.stderr) == (0, "")
    for line in (
        "budget      epsilon 3",
        "privacy unit  order_nr -> orders.oid, whose unit is customer_id -> customers.id, whose unit is id; rows",
        "limits        one row per unit, because it is UNIQUE: nothing is dropped",
        "limits        at most 3 keys per unit, 10 rows in each",
        "COUNT(*)      one person changes it by at most 10",
        "privacy unit  EACH ROW COUNTS AS ONE PERSON: no unit is declared",
        "a view that the policy does not name; queries of it are refused",
        "age           range 0 to 120; as keys, each value of the range",
        "mood          keys 'good', 'bad', NULL",
        "tags          a list of VARCHAR, for UNNEST(list_distinct(tags)); its values are not declared",
    ):
        assert line in shown.stdout, line


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["init", "missing.csv"], "source-missing"),
        (["init", "visits.xls"], "source-kind"),
        (["init", "visits.csv", "--unit", "patientid"], "policy-unit"),
        (["init", "shop.duckdb", "--unit", "orders.tags"], "policy-unit"),
        (["init", "visits.csv", "--epsilon", "0"], "argument-epsilon"),
        (["init", "visits.csv", "--epsilon", "3"], "argument-epsilon"),
        (["init", "visits.csv", "-o", "visits.csv"], "policy-file"),
        (["init", "visits.csv", "-o", "nowhere/p.toml"], "policy-file"),
        (["check", "missing.toml", "visits.csv"], "policy-file"),
        (["check", "wrong.toml", "visits.csv"], "policy-table"),
        (["check", "unit.toml", "visits.csv"], "policy-unit"),
        (["check", "column.toml", "visits.csv"], "policy-column"),
        (["check", "types.toml", "types.duckdb"], "policy-unit"),
    ],
)
def test_errors_of_policy_commands(
    shop: Path,
    arguments: list[str],
    code: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(shop)
    Path("wrong.toml").write_text("[tables.visit]\n", encoding="utf-8")
    Path("unit.toml").write_text('[tables.visits]\nunit = "patient"\n', encoding="utf-8")
    Path("column.toml").write_text("[tables.visits.columns]\nages = { range = [0, 1] }\n", encoding="utf-8")
    Path("types.toml").write_text(
        '[tables.a]\nunit = "id"\n[tables.b]\nunit = "a -> a.id"\n', encoding="utf-8"
    )
    with duckdb.connect("types.duckdb") as owner:
        owner.execute("CREATE OR REPLACE TABLE a (id INTEGER UNIQUE); CREATE OR REPLACE TABLE b (a DATE)")
    assert main(["policy", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"[{code}]" in shown.err


def test_a_draft_that_fails_leaves_no_file(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "draft.toml"
    assert main(["policy", "init", str(shop / "visits.csv"), "--unit", "nobody", "-o", str(path)]) == 2
    assert "[policy-unit]" in capsys.readouterr().err
    assert not path.exists()


def test_usage_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, code, words in (
        (["policy"], 2, "init | check"),
        (["policy", "init", "--help"], 0, "--unit patients.id"),
    ):
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        assert exit_.value.code == code
        shown = capsys.readouterr()
        assert words in shown.out + shown.err


def test_check_lists_public_tables_searched_ranges_and_missing_limits(shop: Path) -> None:
    tables = {
        "countries": {"public": True},
        "orders": {"columns": {"total": {"range": "auto"}}},
        "busy": {"unit": "customer_id"},
    }
    shown = check_policy(
        load_policy({"neighbours": "add-remove", "min_units": 5, "tables": tables}), str(shop / "shop.duckdb")
    )
    for line in (
        "neighbours  add-remove: no answer reveals whether one unit is in the data at all",
        "budget      no limit: the answers together can reveal anything",
        "min_units   undeclared keys are shown only with at least 5 units",
        "countries\n  privacy unit  none: public, so answers about this table alone are exact",
        "total         range found privately when a query needs it, for part of its epsilon",
        "busy\n  privacy unit  customer_id; rows without a unit are left out",
        "EACH ROW COUNTS AS ONE PERSON: the policy does not name this table",
        "limits        at most 3 keys per unit (the default), 10 rows in each (the default)",
    ):
        assert line in shown, line


# -- what a draft says ---------------------------------------------------------------------------------------
def test_no_row_is_read(shop: Path) -> None:
    assert draft(str(shop / "shop.duckdb")) == draft(str(shop / "empty" / "shop.duckdb"))


def test_units_follow_foreign_keys_and_implied_facts_need_no_line(shop: Path) -> None:
    text = draft(str(shop / "shop.duckdb"))
    tables = tomllib.loads(text)["tables"]
    assert tables["customers"] == {"unit": "id", "columns": {}}
    assert tables["orders"] == {
        "unit": "customer_id -> customers.id",
        "max_groups": 3,
        "max_rows": 10,
        "columns": {},
    }
    assert tables["items"]["unit"] == "order_nr -> orders.oid"
    assert tables["countries"] == {"columns": {}}
    assert "busy" not in tables
    assert text.count("NO UNIT: EACH ROW COUNTS AS ONE PERSON") == 1
    for line in (
        "# age: its range follows from a CHECK (0 to 120); no line needed",
        "# vip: BOOLEAN, its keys are false and true; no line needed",
        "# mood: ENUM, its 2 labels are its keys; no line needed",
        "# state: its values follow from a CHECK (CA, NY); no line needed",
        "# level: its range follows from its type (-128 to 127); no line needed",
        "# total = { range = [0, HIGHEST] }    "
        "# the low end follows from a CHECK; fill in what can really occur at the other",
        "# day = { range = [EARLIEST, LATEST] }    "
        '# fill in what can really occur; values outside are clamped; such as "2020-01-31"',
        "# clock: TIME, for which nothing can be declared",
        '# tags = { values = ["KEY", "KEY", ...] }    '
        "# a list; queries open it with UNNEST(list_distinct(tags))",
        "# busy is a view. Only you know whose rows it is made of; until you declare it, queries of it are refused:",
    ):
        assert line in text.splitlines(), line


def units(ddl: str, wanted: str | None = None) -> dict[str, object]:
    with duckdb.connect() as owner:
        owner.execute(ddl)
        return {
            name: guess.declaration
            for name, guess in guess_units(open_engine(owner).schema(), wanted).items()
        }


@pytest.mark.parametrize(
    ("ddl", "expected"),
    [
        ("CREATE TABLE visits (id INTEGER PRIMARY KEY, patient_id INTEGER)", {"visits": "patient_id"}),
        # the patient before the doctor, whichever comes first
        ("CREATE TABLE visits (doctor_id INTEGER, patient_id INTEGER)", {"visits": "patient_id"}),
        # better a session than a row
        ("CREATE TABLE clicks (session_id VARCHAR, page VARCHAR)", {"clicks": "session_id"}),
        # an account has an owner
        (
            "CREATE TABLE users (id INTEGER PRIMARY KEY); "
            "CREATE TABLE accounts (id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES users(id))",
            {"users": "id", "accounts": "user_id -> users.id"},
        ),
        # one person may be several students
        (
            "CREATE TABLE people (id INTEGER PRIMARY KEY); "
            "CREATE TABLE students (nr INTEGER PRIMARY KEY, person_id INTEGER REFERENCES people(id))",
            {"people": "id", "students": "person_id -> people.id"},
        ),
        # all versions of a patient are one unit
        ("CREATE TABLE patients (patient_id INTEGER, day DATE, PRIMARY KEY (patient_id, day))", {"patients": "patient_id"}),
        ("CREATE TABLE patients (nr INTEGER, version INTEGER, PRIMARY KEY (nr, version))", {"patients": "nr"}),
        (
            "CREATE TABLE patients (clinic VARCHAR, nr INTEGER, PRIMARY KEY (clinic, nr)); "
            "CREATE TABLE stays (c VARCHAR, p INTEGER, FOREIGN KEY (c, p) REFERENCES patients(clinic, nr))",
            {"patients": ["clinic", "nr"], "stays": ["c -> patients.clinic", "p -> patients.nr"]},
        ),
        # a reference to itself, and a flag, name nobody
        ("CREATE TABLE parts (id INTEGER PRIMARY KEY, parent_id INTEGER REFERENCES parts(id), is_member BOOLEAN)", {}),
        # without FOREIGN KEY, by the same name
        (
            "CREATE TABLE orders (oid INTEGER UNIQUE, custkey INTEGER); CREATE TABLE lines (oid INTEGER)",
            {"orders": "custkey", "lines": "oid -> orders.oid"},
        ),
        # two tables that could refer to each other
        (
            "CREATE TABLE a (user_id INTEGER PRIMARY KEY); CREATE TABLE b (user_id INTEGER PRIMARY KEY)",
            {"a": "user_id", "b": "user_id"},
        ),
        # names that a policy cannot say
        ('CREATE TABLE "a.b" (user_id INTEGER PRIMARY KEY, "x -> user_id" INTEGER)', {"a.b": "user_id"}),
    ],
)  # fmt: skip
def test_units_are_guessed_from_names(ddl: str, expected: dict[str, object]) -> None:
    assert units(ddl) == expected


def test_the_owner_can_name_the_unit() -> None:
    ddl = """CREATE TABLE cases (nr INTEGER PRIMARY KEY, doctor_id INTEGER);
             CREATE TABLE notes ("case" INTEGER REFERENCES cases(nr), x INTEGER)"""
    assert units(ddl) == {"cases": "doctor_id", "notes": "case -> cases.nr"}
    assert units(ddl, "cases.nr") == units(ddl, "case") == {"cases": "nr", "notes": "case -> cases.nr"}
    assert units(ddl, "x") == {"cases": "doctor_id", "notes": "x"}


@pytest.mark.parametrize(
    ("name", "noun"),
    [
        ("user_id", "user"), ("userId", "user"), ("USERID", "user"), ("id_user", "user"), ("c_custkey", "customer"),
        ("patient", "patient"), ("kundennr", "kunde"), ("email_address", "email"), ("subject_id", "subject"),
        ("user_agent", None), ("customer_name", None), ("account_balance", None), ("num_users", None), ("subject", None),
        ("person_count", None), ("paid", None), ("turkey", None), ("parent_id", None), ("", None),
    ],
)  # fmt: skip
def test_names_of_people(name: str, noun: str | None) -> None:
    found = person_of_column(name)
    assert (found.noun if found else None) == noun


def test_names_of_tables_and_identifiers() -> None:
    assert [person_of_table(name) is not None for name in ("customers", "dim_user_2024", "people", "user_events", "")] == [
        True, True, True, False, False,
    ]  # fmt: skip
    assert [is_id(name) for name in ("order_id", "l_orderkey", "id", "void", "price")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_a_row_that_names_two_people_is_warned_about() -> None:
    with duckdb.connect() as owner:
        owner.execute("CREATE TABLE mails (sender_id INTEGER, receiver_id INTEGER)")
        text = draft(owner)
    assert 'unit = "sender_id"' in text
    assert "!! Not protected as a whole: people named by receiver_id." in text


def test_names_cannot_break_out_of_a_comment_or_a_key(tmp_path: Path) -> None:
    nasty = 'x\n[budget]\nepsilon = 99\n# "\\\x7f\u2028 user'
    with duckdb.connect() as owner:
        quoted = '"' + nasty.replace('"', '""') + '"'
        owner.execute(f'CREATE TABLE {quoted} ({quoted} INTEGER, {quoted[:-1]}_x" INTEGER, "ö.ä" VARCHAR)')
        for epsilon in (None, 0.1):
            text = draft(owner, epsilon)
            loaded = tomllib.loads(filled_in(text))
            assert loaded["budget"]["epsilon"] == (3.0 if epsilon is None else 2.9)
            assert list(loaded["tables"]) == [nasty]
            assert (loaded["tables"][nasty]["unit"], len(loaded["tables"][nasty]["columns"])) == (nasty, 2)
            check_policy(load_policy(loaded), owner)


# -- chosen privately ----------------------------------------------------------------------------------------
def test_max_rows_chosen_with_epsilon(shop: Path) -> None:
    text = draft(str(shop / "shop.duckdb"), epsilon=2.0)
    policy = load_policy(tomllib.loads(text))
    assert policy.epsilon == 1  # what it cost is taken off
    assert policy.table("orders").max_rows == 4  # every customer has 3 orders
    assert policy.table("items").max_rows == 8  # and 6 items
    assert "From names, types and constraints, and from noisy counts that cost epsilon 2." in text
    assert "# 3, less the 2 that this draft has cost, which counts even if you discard it." in text
    assert (
        "# Chosen with epsilon 1: noisy numbers of units by their number of rows (noise of scale 2): 1:"
        in text
    )


def test_nothing_is_spent_where_there_is_nothing_to_choose(tmp_path: Path) -> None:
    with duckdb.connect() as owner:
        owner.execute("CREATE TABLE users (id INTEGER PRIMARY KEY); CREATE TABLE surveys (score INTEGER)")
        text = draft(owner, epsilon=0.5)
    assert "There was nothing to choose" in text
    assert tomllib.loads(text)["budget"]["epsilon"] == 3.0


def test_one_unit_is_counted_in_one_class(shop: Path) -> None:
    """One measurement for all twelve: the parts exclude each other, so that the price is that of one count by key."""
    with duckdb.connect(str(shop / "empty" / "shop.duckdb"), read_only=True) as owner:
        found = guess_units(open_engine(owner).schema())
        session = privsql.connect(
            owner, {"tables": {name: {"unit": each.declaration} for name, each in found.items()}}
        )
        for table in ("orders", "items"):
            (measurement,) = session.explain(query(table, found), epsilon=1).measurements
            assert (measurement.l1, measurement.linf, len(measurement.columns)) == (2, 1, 12)


@pytest.mark.parametrize(
    ("counts", "rows"),
    [
        ([1000, *[0] * 11], 1),
        ([960, 0, 0, 40, *[0] * 8], 1),
        ([500, 400, 60, 40, *[0] * 8], 4),
        ([*[0] * 11, 1000], 1024),
        ([3, -2, 1, 0, 2, -1, 199, 6, 0, 1, -1, 1], 64),
        ([50, *[0] * 11], None),
        ([-50, *[0] * 11], None),
    ],
)
def test_the_least_power_of_two_that_covers_95_percent(counts: list[int], rows: int | None) -> None:
    assert covering(counts, scale=2.0) == rows
