"""Text cases: SQL, a line ---, then the plan that is made of it or the refusal. How to write one: tests/cases/README.md.

PRIVSQL_UPDATE_CASES=1 pytest tests/cases/test_cases.py writes the outcomes anew; read every changed line before believing it.
"""

from __future__ import annotations

import ast
import atexit
import datetime as dt
import math
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import pytest

import privsql
from privsql.algebra.exact import Name, StoredTable
from privsql.algebra.expressions import Column
from privsql.algebra.functions import FUNCTIONS, OPERATORS
from privsql.algebra.relations import BoundQuery, walk
from privsql.planning.composed_plan import AnyPlan, ComposedPlan
from privsql.planning.plan import Plan
from privsql.planning.rewrites.prepared import PreparedScan
from privsql.planning.rewrites.stored_totals import totals_table
from privsql.policy import Policy
from privsql.results.finish import key_values
from privsql.schema import Schema, SchemaColumn, SchemaTable
from privsql.sql.bind.catalogue import Catalogue
from privsql.sql.parse.constants import Constants
from privsql.sql.parse.refusals import WAYS_OUT
from privsql.sql.read import read
from privsql.types import BIGINT
from tests.support import shop

CASES = Path(__file__).parent
PACKAGE = Path(privsql.__file__).parent
UPDATE = os.environ.get("PRIVSQL_UPDATE_CASES") == "1"
DIRECTIVES = (
    "schema", "dialect", "mechanism", "within", "max_groups", "max_rows",
    "delta", "weights", "prepared", "written", "copies", "differs",
)  # fmt: skip


# -- the tables that cases run on ----------------------------------------------------------------------------
@dataclass(frozen=True)
class Fixture:
    """Tables and a policy, by the name that a case's `schema:` gives."""

    tables: str
    policy: dict[str, Any] = field(default_factory=dict)
    rows: str = ""


_PATIENTS = """
    CREATE TABLE patients (
        id BIGINT PRIMARY KEY, name VARCHAR, age INTEGER, income DOUBLE, state VARCHAR, diagnosis VARCHAR, smoker BOOLEAN,
        admitted DATE, seen TIMESTAMP, weight DECIMAL(5, 1), visits INTEGER NOT NULL, change INTEGER,
        note VARCHAR, tags VARCHAR[]);
    CREATE VIEW grown AS SELECT * FROM patients WHERE age >= 18;
    CREATE TABLE states (code VARCHAR, region VARCHAR, people BIGINT);
    INSERT INTO states VALUES ('CA', 'west', 39), ('NY', 'east', 20), ('TX', 'south', 30);
"""
_PATIENT_ROWS = """
    INSERT INTO patients SELECT
        i, ['Ann', 'Bob', 'Cy', 'Dee', NULL][1 + i % 5], CASE WHEN i % 19 = 0 THEN NULL ELSE i * 7 % 121 END,
        CASE WHEN i % 23 = 0 THEN NULL ELSE (i * 7919 % 200001) * 1.0 END,
        ['CA', 'NY', 'TX', 'CA', NULL, 'NY', 'CA'][1 + i * 5 % 7], ['flu', 'hiv', 'none', NULL][1 + i // 3 % 4],
        [true, false, false, NULL, true, false][1 + i % 6], DATE '2024-01-01' + (i * 5 % 366)::INTEGER,
        TIMESTAMP '2024-01-01' + to_seconds(i * 25999 % 7776000), (i * 37 % 3001) / 10.0, 1 + i % 10,
        (i * 3 % 21)::INTEGER - 10, ['a 10% note', 'b-x', '', 'zebra', NULL][1 + i * 3 % 5], NULL
    FROM range(300) r(i)
"""
_PATIENT_COLUMNS = {
    "age": {"range": [0, 120]},
    "income": {"range": [0, 200_000]},
    "state": {"values": ["CA", "NY", "TX"]},
    "diagnosis": {"values": ["flu", "hiv", "none"]},
    "admitted": {"range": [dt.date(2024, 1, 1), dt.date(2024, 12, 31)]},
    "seen": {"range": [dt.datetime(2024, 1, 1), dt.datetime(2024, 3, 31)]},
    "weight": {"range": [0, 300]},
    "visits": {"range": [1, 10]},
    "change": {"range": [-10, 10]},
}


def _patients(**table: Any) -> dict[str, Any]:
    return {"tables": {"patients": {"columns": _PATIENT_COLUMNS, **table}, "states": {"public": True}}}


_PROMISES = """
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
    CREATE TABLE members (
        member VARCHAR UNIQUE, active BOOLEAN, agreed BOOLEAN NOT NULL, mood mood, stars INTEGER CHECK (stars BETWEEN 1 AND 5),
        size VARCHAR CHECK (size IN ('S', 'M', 'L')) NOT NULL, level TINYINT,
        points INTEGER CHECK (points >= 0 AND points <= 50) NOT NULL,
        free INTEGER, joined DATE CHECK (joined >= '2020-01-01' AND joined < '2021-01-01'))
"""
_PROMISE_ROWS = """
    INSERT INTO members SELECT
        CASE WHEN i > 0 THEN 'm' || i END,
        [true, false, NULL][1 + i % 3], i % 2 = 0, ['sad', 'ok', 'happy', NULL, 'ok'][1 + i % 5]::mood,
        1 + i % 5, ['S', 'M', 'L'][1 + i % 3], (i % 100)::TINYINT, i % 51, i, DATE '2020-01-01' + (i % 366)::INTEGER
    FROM range(1, 200) r(i)
"""
_CONDITIONS = """
    CREATE TYPE severity AS ENUM ('mild', 'severe');
    CREATE TABLE people (
        id INTEGER PRIMARY KEY, age INTEGER, conditions VARCHAR[], codes INTEGER[], flags BOOLEAN[], grades severity[],
        days DATE[3], free VARCHAR[], small UTINYINT[], weights DOUBLE[], moments TIMESTAMP[], nested VARCHAR[][],
        pairs STRUCT(a INTEGER)[]);
    CREATE TABLE stays (person INTEGER, ward VARCHAR, symptoms VARCHAR[]);
    CREATE TABLE drugs (drug VARCHAR, treats VARCHAR[], doses DOUBLE[]);
    INSERT INTO drugs VALUES ('A', ['flu', 'hiv', 'flu'], [0.5, 1.5]), ('B', ['asthma', NULL], []), ('C', NULL, NULL);
"""
_CONDITION_ROWS = """
    INSERT INTO people SELECT
        i, i * 7 % 121, CASE i % 6 WHEN 0 THEN NULL WHEN 1 THEN [] WHEN 2 THEN ['flu'] WHEN 3 THEN ['flu', 'hiv', 'flu', NULL]
        WHEN 4 THEN ['asthma', 'flu'] ELSE [NULL, 'hiv'] END, [i % 4, i % 3, i % 4], [i % 2 = 0], ['mild', 'mild'],
        [DATE '2024-01-01', DATE '2024-01-02', DATE '2024-01-01'], NULL, NULL, NULL, NULL, NULL, NULL
    FROM range(300) r(i);
    INSERT INTO stays SELECT i % 100, ['x', 'y'][1 + i % 2], ['cough', 'fever'][1 : 1 + i % 2] FROM range(300) r(i)
"""
_CONDITION_COLUMNS = {
    "age": {"range": [0, 120]},
    "conditions": {"values": ["asthma", "flu", "hiv"]},
    "codes": {"range": [0, 3.5]},
    "days": {"range": [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]},
    "weights": {"range": [0, 1]},
    "moments": {"range": [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)]},
}


def _conditions(**people: Any) -> dict[str, Any]:
    stays = {
        "columns": {"ward": {"values": ["x", "y"]}, "symptoms": {"values": ["cough", "fever"]}},
        "unit": "person",
    }
    return {
        "tables": {
            "people": {"columns": _CONDITION_COLUMNS, **people},
            "stays": stays,
            "drugs": {"public": True},
        }
    }


FIXTURES = {
    "conditions": Fixture(_CONDITIONS, _conditions(), _CONDITION_ROWS),
    "conditions_unit": Fixture(_CONDITIONS, _conditions(unit="id"), _CONDITION_ROWS),
    "patients": Fixture(_PATIENTS, _patients(), _PATIENT_ROWS),
    "patients_unit": Fixture(_PATIENTS, _patients(unit="id"), _PATIENT_ROWS),
    "bare": Fixture(_PATIENTS, {}, _PATIENT_ROWS),
    "likes": Fixture(
        "CREATE TABLE likes (person INTEGER, apple BOOLEAN NOT NULL, orange BOOLEAN NOT NULL, banana BOOLEAN NOT NULL)",
        {},
        "INSERT INTO likes VALUES (1, true, true, false), (2, false, true, true), (3, false, true, true), (4, false, true, true)",
    ),
    "grades": Fixture(
        "CREATE TABLE grades (student VARCHAR, grade VARCHAR NOT NULL, points INTEGER NOT NULL)",
        {
            "tables": {
                "grades": {
                    "columns": {"grade": {"values": ["A", "B", "C", "D", "F"]}, "points": {"range": [0, 100]}}
                }
            }
        },
        "INSERT INTO grades SELECT 's' || i, ['A', 'B', 'C', 'D', 'F'][1 + i * i % 5], i % 101 FROM range(200) r(i)",
    ),
    "members": Fixture(_PROMISES, {"tables": {"members": {"unit": "member"}}}, _PROMISE_ROWS),
    "odd_names": Fixture(
        'CREATE TABLE "Order Lines" ("Total Price" INTEGER, "select" VARCHAR, "a""b" INTEGER, "größe" INTEGER, "x.y" BOOLEAN)',
        {
            "tables": {
                "Order Lines": {
                    "columns": {"Total Price": {"range": [0, 50]}, "select": {"values": ["p", "q"]}}
                }
            }
        },
        """INSERT INTO "Order Lines" SELECT i % 51, ['p', 'q'][1 + i % 2], i, i, i % 2 = 0 FROM range(100) r(i)""",
    ),
    "shop": Fixture(shop.TABLES, shop.POLICY, shop.ROWS),
    # policies that do not fit their tables
    "wrong_table": Fixture(_PATIENTS, {"tables": {"patient": {}}}),
    "wrong_column": Fixture(_PATIENTS, {"tables": {"patients": {"columns": {"agee": {"range": [0, 1]}}}}}),
    "wrong_unit": Fixture(_PATIENTS, {"tables": {"patients": {"unit": "idd"}}}),
    "many_rows_unit": Fixture(_PATIENTS, {"tables": {"patients": {"unit": "name"}}}),
    "wrong_values": Fixture(
        _PATIENTS, {"tables": {"patients": {"columns": {"age": {"values": ["old", "young"]}}}}}
    ),
}


@lru_cache
def connection_of(fixture: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    connection.execute(FIXTURES[fixture].tables)
    if FIXTURES[fixture].rows:
        connection.execute(FIXTURES[fixture].rows)
    return connection


@lru_cache
def session_of(fixture: str, neighbours: str = "replace-one", asked: bool = False) -> privsql.Session:
    """`asked`: one that answers queries, after which some are free; the other one only explains."""
    session = privsql.connect(
        connection_of(fixture), policy={**FIXTURES[fixture].policy, "neighbours": neighbours}
    )
    session._pipeline.engine.fixed_schema = (
        True  # nobody alters these tables: the schema is read once, not for every case
    )
    return session


FOLDER = tempfile.TemporaryDirectory(prefix="privsql-cases-")
atexit.register(FOLDER.cleanup)


@lru_cache
def prepared_session(
    fixture: str, neighbours: str, tables: str, written: str, asked: bool
) -> privsql.Session:
    """A session on a file with the fixture's tables, some of them prepared before the file was last written to."""
    file = Path(tempfile.mkdtemp(dir=FOLDER.name)) / "cases.duckdb"
    connection_of(fixture).execute(
        f"ATTACH '{file}' AS cases; COPY FROM DATABASE memory TO cases; DETACH cases"
    )
    policy = {**FIXTURES[fixture].policy, "neighbours": neighbours}
    with privsql.connect(file, policy) as session:
        for table in tables.split(", "):
            session.prepare(table)
    if written:
        with duckdb.connect(str(file)) as connection:
            connection.execute(written)
    return privsql.connect(file, policy)


# -- reading and writing cases -------------------------------------------------------------------------------
@dataclass
class Case:
    file: str
    line: int
    sql: str
    outcome: str
    settings: dict[str, str]  # the file's header with the case's own directives over it
    own: dict[str, str]

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}"

    def session(self, neighbours: str = "replace-one", asked: bool = False) -> privsql.Session:
        fixture, tables = self.settings["schema"], self.settings.get("prepared")
        if tables is None:
            return session_of(fixture, neighbours, asked)
        return prepared_session(fixture, neighbours, tables, self.settings.get("written", ""), asked)

    def arguments(self) -> dict[str, Any]:
        named: dict[str, Any] = {"dialect": self.settings.get("dialect", "duckdb")}
        if "mechanism" in self.settings:
            named["mechanism"] = self.settings["mechanism"]
        if "delta" in self.settings:
            named["delta"] = float(self.settings["delta"])
        if "weights" in self.settings:
            named["weights"] = ast.literal_eval(self.settings["weights"])
        if "within" in self.settings:
            named["within"] = float(self.settings["within"])
        named |= {
            name: int(self.settings[name]) for name in ("max_groups", "max_rows") if name in self.settings
        }
        named |= {"prepared": False} if self.settings.get("copies") == "no" else {}
        return named


def _directives(lines: list[str]) -> tuple[dict[str, str], int]:
    """Leading `word: value` lines, and how many there are."""
    found: dict[str, str] = {}
    for count, line in enumerate(lines):
        match = re.fullmatch(rf"({'|'.join(DIRECTIVES)}): *(.*)", line)
        if match is None:
            return found, count
        found[match[1]] = match[2]
    return found, len(lines)


def read_cases(path: Path) -> tuple[str, list[Case]]:
    """The header of a file as it stands, and its cases."""
    blocks = re.split(r"(?m)^==\n", path.read_text(encoding="utf-8"))
    header, cases, line = blocks[0], [], blocks[0].count("\n") + 2
    shared, _ = _directives([each for each in header.splitlines() if each and not each.startswith("#")])
    for block in blocks[1:]:
        asked, _, outcome = block.partition("\n---\n") if "\n---\n" in block else (block.rstrip("\n"), "", "")
        lines = asked.split("\n")
        own, count = _directives(lines)
        cases.append(
            Case(path.stem, line, "\n".join(lines[count:]), outcome.rstrip("\n"), {**shared, **own}, own)
        )
        line += block.count("\n") + 1
    return header, cases


def write_cases(path: Path, header: str, cases: list[Case]) -> None:
    blocks = [header]
    for case in cases:
        own = "".join(f"{name}: {value}\n" for name, value in case.own.items())
        blocks.append(f"{own}{case.sql}\n---\n{outcome_of(case)}\n")
    path.write_text("==\n".join(blocks), encoding="utf-8")


# -- the outcome of a case -----------------------------------------------------------------------------------
def outcome_of(case: Case) -> str:
    try:
        one, other = (_plan(case, neighbours) for neighbours in ("replace-one", "add-remove"))
    except privsql.PrivsqlError as error:
        place = f" at {error.line}:{error.column}" if error.line else ""
        hint = f"\nhint: {error.suggestion}" if error.suggestion else ""
        return f"error {error.code}{place}\n{error.message}{hint}"
    if isinstance(one, ComposedPlan):
        assert isinstance(other, ComposedPlan), "a query has the same parts under both relations"
        pairs = zip(one.parts, other.parts, strict=True)
        parts = [f"part {part.name}\n{_outcome(case, part.plan, twin.plan)}" for part, twin in pairs]
        return "\n".join([*parts, f"above {one.above}"])
    assert isinstance(other, Plan), "a query is one release under both relations"
    return _outcome(case, one, other)


def _outcome(case: Case, one: Plan, other: Plan) -> str:
    lines = [*_measurements(one)] if not one.public else ["public, exact and free"]
    lines += [
        f"add-remove {each}"
        for each in _measurements(other, brief=True)
        if each not in _measurements(one, brief=True)
    ]
    lines += [*_keys(one), *(f"{output.name} = {output.formula}" for output in one.outputs)]
    if "prepared" in case.settings:
        lines += _copies(one)
    if any(case.settings.get(name) for name in ("mechanism", "weights")) or one.chooses:
        lines += [f"note: {note}" for note in one.notes]
    if "within" in case.settings:
        lines.append(f"epsilon {one.epsilon:g}")
    return "\n".join(lines)


def _plan(case: Case, neighbours: str) -> AnyPlan:
    named = case.arguments()
    if "within" not in named:
        named["epsilon"] = 1.0
    return case.session(neighbours).explain(case.sql, **named)


def _names_in(node: object) -> Iterator[str]:
    """The columns and tables that a statement computes with: not those it only passes on, or that a copy has."""
    match node:
        case (str() as alias, Name() as column) if alias == column.name:
            return
        case PreparedScan():
            return
        case Column() | Name() | StoredTable():
            yield node.name
        case tuple():
            for each in node:
                yield from _names_in(each)
        case _ if is_dataclass(node):
            for each in fields(node):
                yield from _names_in(getattr(node, each.name))


def _copies(plan: Plan) -> list[str]:
    """Which copies a plan reads, how many rows of each unit, and which sums are computed there already."""
    lines = []
    for scan in walk(plan.release.input) if plan.release is not None else ():
        if isinstance(scan, PreparedScan):
            named = set(_names_in(plan.releases[0].counted))
            totals = totals_table(scan.copy) in named
            summed = [each.column for each in scan.values if each.name in named]
            sums = f", and what is added up of {', '.join(summed)}" if summed else ""
            kept = "the first row of each unit" if scan.units else f"the first {scan.most} rows of a unit"
            lines.append(f"from the {'totals' if totals else 'copy'} of {scan.table}: {kept}{sums}")
    return lines or ["not from a copy", *(f"note: {note}" for note in plan.notes if "copy" in note)]


def _measurements(plan: Plan, brief: bool = False) -> list[str]:
    lines = []
    for number, each in enumerate(plan.measurements, start=1):
        rows = f", {plan.stability.rows} rows a person" if plan.stability.rows != 1 else ""
        bounds = f"l1 {each.l1}, linf {each.linf}, scale {each.scale:.10g}"
        clamp = re.search(r"(?:values )?clamped into [^;]*", each.why)
        clamped = f", {clamp[0]}" if clamp else ""
        what = "" if brief else f"   {each.mechanism.value}; {each.what}{clamped}{rows}"
        lines.append(f"M{number} {', '.join(each.columns)}: {bounds}{what}")
    return lines


def _keys(plan: Plan) -> list[str]:
    if not plan.keys:
        return []
    import numpy as np

    some = key_values(plan.space, np.arange(min(plan.cells, 6), dtype=np.int64))
    rows = list(zip(*(list(some[name])[:6] for name in plan.keys), strict=True))
    shown = [" ".join(_shown(value) for value in row) for row in rows] + (["..."] if plan.cells > 6 else [])
    if plan.cells > 6:
        last = key_values(plan.space, np.array([plan.cells - 1], dtype=np.int64))
        shown.append(" ".join(_shown(list(last[name])[-1]) for name in plan.keys))
    return [f"keys {', '.join(plan.keys)}: {plan.cells:,} cells: {' | '.join(shown)}"]


def _shown(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case dt.datetime():
            return value.isoformat(sep=" ")
        case _:
            return str(value) if str(value) and " " not in str(value) else repr(value)


ALL_CASES = [case for path in sorted(CASES.glob("*.test")) for case in read_cases(path)[1]]


@pytest.fixture(scope="session", autouse=True)
def _update() -> None:
    if UPDATE:
        for path in sorted(CASES.glob("*.test")):
            write_cases(path, *read_cases(path))


@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    if UPDATE:
        pytest.skip("outcomes were written anew")
    assert outcome_of(case) == case.outcome, case.sql


def test_there_are_enough_cases() -> None:
    assert len(ALL_CASES) >= 300


# -- what is accepted also means what DuckDB means -----------------------------------------------------------
COMPARED = [
    case
    for case in ALL_CASES
    if not case.outcome.startswith("error ")
    and "differs" not in case.settings
    and case.settings.get("dialect", "duckdb") == "duckdb"
    and "within" not in case.settings
]


@pytest.mark.filterwarnings("ignore::privsql.BoundingWarning")  # the default limits bind nobody here
@pytest.mark.parametrize("case", COMPARED, ids=lambda case: case.name)
def test_answers_agree_with_duckdb(case: Case) -> None:
    """At an epsilon so large that no noise is left to speak of, every row of DuckDB's own answer is in ours.

    The data is within its declared ranges and has declared keys only. Cases that mean something else on purpose say
    so in a directive `differs: why`.
    """
    if case.outcome.startswith("part "):
        pytest.skip("tests/composed compares the answers of queries with several parts")
    # the noise of a count is then zero, that of a sum a ten-thousandth of its range
    answer = case.session(asked=True).query(case.sql, epsilon=10_000, **case.arguments())
    ours = [tuple(map(_plain, _flat(row))) for row in answer.fetchall()]
    theirs = [
        tuple(map(_plain, _flat(row)))
        for row in connection_of(case.settings["schema"]).execute(case.sql).fetchall()
    ]
    slack = max((each.scale * 40 for each in answer.plan.measurements), default=0.0)
    terms = [term for how in answer.plan.estimates.values() for term in getattr(how, "terms", ())]
    slack *= max((float(weight) for _, weight in terms), default=1.0)
    exact = all(column.startswith("count") for each in answer.plan.measurements for column in each.columns)
    relative = 1e-9 if exact else 0.02  # an AVG over a few rows
    if answer.plan.chooses and sorted(map(str, ours)) != sorted(map(str, theirs)):
        assert _scores(case, ours) == _scores(case, theirs), (
            "of candidates with equal scores any may come first"
        )
        return
    for row in theirs:
        assert any(_alike(row, mine, slack, relative) for mine in ours), (case.sql, row, ours[:20])
    if not answer.plan.keys or "LIMIT" in case.sql.upper():
        assert len(ours) == len(theirs)


def _scores(case: Case, rows: list[tuple[Any, ...]]) -> list[float]:
    """What labels score in the exact SQL over the tables themselves, without copies; an absent one scores 0."""
    arguments = {**case.arguments(), "prepared": False}
    plan = case.session(asked=True).explain(case.sql, epsilon=10_000, **arguments)
    exact = connection_of(case.settings["schema"]).execute(plan.sql).fetchall()
    width = len(plan.keys)
    scores = {tuple(map(_plain, row[:width])): float(row[width]) for row in exact}
    return sorted(scores.get(row[:width], 0.0) for row in rows)


def _flat(row: tuple[Any, ...]) -> list[Any]:
    """A row with the elements of lists in their place."""
    return [each for value in row for each in (value if isinstance(value, list) else [value])]


def _plain(value: Any) -> Any:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time())
    if isinstance(value, (Decimal, int)) and not isinstance(value, bool):
        return float(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def _alike(theirs: tuple[Any, ...], ours: tuple[Any, ...], slack: float, relative: float) -> bool:
    return len(theirs) == len(ours) and all(
        abs(a - b) <= slack + relative * abs(a) if isinstance(a, float) and isinstance(b, float) else a == b
        for a, b in zip(theirs, ours, strict=True)
    )


# -- nothing is left out -------------------------------------------------------------------------------------
# Codes that a text case cannot reach, and the test file that does.
ELSEWHERE: dict[str, str] = {
    "refused-fine-keys": "analysis/test_key_edges.py",
    "refused-parts": "composed/test_composed.py",
    "refused-nested-aggregate": "sql/test_split.py",
    "refused-union": "sql/test_split.py",
    "refused-several": "composed/test_composed.py",
    "refused-table": "composed/test_composed.py",
    "refused-generated": "engines/test_views.py",
    "refused-attached": "engines/test_schema_names.py",
    "refused-hidden": "engines/test_schema_names.py",
    "policy-zone": "engines/test_time_zones.py",
    "argument-limits": "planning/test_units.py",
    "argument-batch": "answers/test_batch.py",
    "argument-method": "release/test_refused_releases.py",
    "argument-rounds": "release/test_refused_releases.py",
    "refused-large-domain": "release/test_refused_releases.py",
    "argument-bins": "release/test_refused_releases.py",
    "argument-columns": "release/test_refused_releases.py",
    "argument-marginals": "release/test_refused_releases.py",
    "argument-ways": "release/test_refused_releases.py",
    "argument-workload": "release/test_refused_releases.py",
    "refused-many-cells": "release/test_refused_releases.py",
    "refused-not-released": "release/test_refused_releases.py",
    "refused-public-release": "release/test_refused_releases.py",
    "refused-unknown-cells": "release/test_refused_releases.py",
    "argument-data": "audit/test_given.py",
    "refused-consistent": "results/test_projections.py",
    "argument-unit": "doors/test_pandas.py",
    "argument-by": "results/test_suggested_limits.py",
    "argument-delta": "planning/test_undeclared_keys.py",
    "sql-too-long": "cases/test_cases.py",
    "argument-level": "cases/test_cases.py",
    "argument-rows": "cases/test_cases.py",
    "argument-epsilon": "cases/test_cases.py",
    "source-columns": "cases/test_cases.py",
    **dict.fromkeys(
        ("budget-dataset", "budget-version", "budget-caps", "argument-analyst"), "budget/test_ledger.py"
    ),
    **dict.fromkeys(
        (
            "budget-ledger",
            "budget-network",
            "budget-busy",
            "budget-corrupt",
            "budget-anchor",
            "argument-anchor",
        ),
        "budget/test_ledger_faults.py",
    ),
    **dict.fromkeys(
        ("budget-query", "budget-analyst", "budget-amount", "budget-least"),
        "conformance/accountants/ledger_suite.py",
    ),
    **dict.fromkeys(
        ("source-tables", "policy-duplicate", "argument-duplicate"), "engines/test_repeated_names.py"
    ),
    "budget-failures": "conformance/accountants/ledger_suite.py",
    "budget-fork": "budget/test_places.py",
    "budget-write": "budget/test_ledger_faults.py",
    **dict.fromkeys(
        ("argument-deadline", "argument-memory", "argument-quantum", "source-deadline", "source-worker"),
        "engines/test_worker.py",
    ),
}


def test_noise_that_64_bits_cannot_hold_is_refused() -> None:
    sums = ", ".join(f"SUM(income + {number})" for number in range(60))
    with pytest.raises(privsql.PrivsqlError) as caught:
        session_of("patients").explain(f"SELECT {sums} FROM patients", epsilon=1e-6)
    assert caught.value.code == "argument-epsilon"


def test_duplicate_column_names_are_refused() -> None:
    column = SchemaColumn("x", BIGINT, "BIGINT")
    twice = Schema((SchemaTable("t", (column, replace(column, name="X"))),))
    with pytest.raises(privsql.PrivsqlError) as caught:
        Catalogue(twice, Policy()).source("t")
    assert caught.value.code == "source-columns"


def test_row_limits_must_be_whole_numbers() -> None:
    plan = session_of("patients").explain("SELECT AVG(age) FROM patients", epsilon=1)
    for rows in (0, -1, 1.5, "many"):
        with pytest.raises(privsql.PrivsqlError) as caught:
            plan.accuracy(0.95, rows=rows)  # type: ignore[arg-type]
        assert caught.value.code == "argument-rows"


def test_too_long_sql_is_refused() -> None:
    long = "SELECT COUNT(*) FROM patients WHERE " + " OR ".join(f"age = {number}" for number in range(5_000))
    many = "SELECT COUNT(*) FROM patients WHERE " + " OR ".join(["age=1"] * 1_900)
    for text in (long, many):
        with pytest.raises(privsql.PrivsqlError) as caught:
            session_of("patients").explain(text, epsilon=1)
        assert caught.value.code == "sql-too-long"


def test_confidence_must_be_between_0_and_1() -> None:
    plan = session_of("patients").explain("SELECT COUNT(*) FROM patients", epsilon=1)
    for level in (0, 1, -0.5, 95):
        with pytest.raises(privsql.PrivsqlError) as caught:
            plan.accuracy(level)
        assert caught.value.code == "argument-level"


def codes_in_source() -> set[str]:
    """Every code that sql/, analysis/ and planning/ can raise."""
    codes = {f"refused-{name.lower()}" for name in WAYS_OUT}
    for room in ("sql", "analysis", "planning"):
        for path in sorted((PACKAGE / room).rglob("*.py")):
            codes |= set(
                re.findall(
                    r"\"((?:sql|name|refused|policy|argument|source)-[a-z-]*[a-z])\"", path.read_text()
                )
            )
    return codes


def test_every_code_has_a_case() -> None:
    met = {case.outcome.split()[1] for case in ALL_CASES if case.outcome.startswith("error ")}
    missing = codes_in_source() - met - set(ELSEWHERE)
    assert not missing, sorted(missing)
    for code, file in ELSEWHERE.items():
        assert f'== "{code}"' in (CASES.parent / file).read_text(encoding="utf-8"), (
            f"{file} does not test {code}"
        )


def test_every_refusal_has_a_position_and_a_suggestion() -> None:
    for case in ALL_CASES:
        first, *rest = case.outcome.splitlines() or [""]
        if first.startswith(("error refused-", "error name-", "error sql-")):
            assert any(line.startswith("hint: ") for line in rest), f"{case.name} has no way out"
            if "prepared" in case.settings:  # of prepare(), which is no SQL
                continue
            if not first.startswith(WITHOUT_PLACE) and "hint: check quotes and comments" not in rest:
                assert re.search(r" at \d+:\d+$", first), f"{case.name} has no place"


WITHOUT_PLACE = tuple(f"error {code}" for code in ("sql-empty", "sql-statements", "sql-too-", "sql-dialect"))


def test_every_function_has_a_case() -> None:
    missing = {*FUNCTIONS, *OPERATORS}
    for case in ALL_CASES:
        if missing and not case.outcome.startswith(("error ", "part ")):
            session = session_of(case.settings["schema"])
            missing -= _functions(
                read(
                    case.sql,
                    session._pipeline._catalogue(session._pipeline.policy),
                    case.arguments()["dialect"],
                    Constants(now="2024-05-06 07:08:09"),
                )
            )
    assert sorted(missing) == []


def _functions(question: BoundQuery) -> set[str]:
    """Every function that a query calls, found in the tree of relations whatever its shape."""
    found: set[str] = set()
    pending: list[Any] = [question.relation]
    while pending:
        each = pending.pop()
        if isinstance(each, (tuple, list)):
            pending.extend(each)
        elif hasattr(each, "__dataclass_fields__"):
            if type(each).__name__ == "Call":
                found.add(each.function)
            pending.extend(
                getattr(each, name)
                for name in each.__dataclass_fields__
                if name not in ("type", "place", "claims")
            )
    return found
