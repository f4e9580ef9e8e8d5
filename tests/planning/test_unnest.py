"""Lists made into rows by UNNEST: what one person can move, however long and odd the list; and who may hold lists."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import privsql
from privsql.audit.falsify import differences, run_exactly
from privsql.noise.add_noise import add_noise
from privsql.planning.identity import identity
from tests.noise.statistics import Buffered
from tests.planning.test_lecture_notes import winning
from tests.soundness.check import Report, check_plan

DECLARED = ["asthma", "flu", "gout"]
TAGS = "SELECT id, UNNEST(list_distinct(tags)) AS tag FROM people"


def people(*lists: str, type_: str = "VARCHAR", source: str | None = None) -> duckdb.DuckDBPyConnection:
    """A table of one list a person, written as SQL."""
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE people (id INTEGER, tags {type_}[])" if source is None else source)
    for number, each in enumerate(lists):
        connection.execute(f"INSERT INTO people VALUES ({number}, {each})")
    return connection


def session(
    connection: duckdb.DuckDBPyConnection, declared: Any = None, neighbours: str = "replace-one", **table: Any
) -> Any:
    columns = {"tags": declared or {"values": DECLARED}}
    return privsql.connect(
        connection, {"neighbours": neighbours, "tables": {"people": {"columns": columns, **table}}}
    )


def exactly(connection: duckdb.DuckDBPyConnection, sql: str, **declared: Any) -> dict[Any, int]:
    """What is measured before the noise, by key."""
    plan = session(connection, declared or None).explain(sql, epsilon=1)
    return {
        key[0] if key else None: sum(cells.values())
        for key, cells in run_exactly(plan, connection)[1].items()
    }


# -- one person ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sql", "replace_one", "add_remove"),
    [
        (f"SELECT tag, COUNT(*) FROM ({TAGS}) GROUP BY tag", (3, 1), (3, 1)),  # three cells in all
        (f"SELECT tag FROM ({TAGS}) GROUP BY tag ORDER BY COUNT(*) DESC LIMIT 1", (3, 1), (3, 1)),
        (f"SELECT COUNT(*) FROM ({TAGS})", (3, 3), (3, 3)),
        (f"SELECT COUNT(*) FROM ({TAGS}) WHERE tag = 'flu'", (1, 1), (1, 1)),
        (f"SELECT tag, COUNT(*) FROM ({TAGS}) WHERE tag IN ('flu', 'gout') GROUP BY tag", (2, 1), (2, 1)),
        (f"SELECT id % 2 = 0 AS even, COUNT(*) FROM ({TAGS}) GROUP BY 1", (6, 3), (3, 3)),
    ],
)
def test_the_constants(sql, replace_one, add_remove):
    for neighbours, wanted in (("replace-one", replace_one), ("add-remove", add_remove)):
        plan = session(people(), neighbours=neighbours).explain(sql, epsilon=1)
        assert [(each.l1, each.linf) for each in plan.measurements] == [wanted]


FULL = "['gout', 'flu', 'asthma', 'flu', NULL, 'other']"
ODD = [
    "NULL", "[]", "[NULL]", "['other']", "['flu']", "['flu', 'flu', 'flu']", FULL, "['Flu', 'FLU', 'flu ', ' flu', 'flu']",
    "list_transform(range(100000), lambda i: 'flu')",
    "list_transform(range(100000), lambda i: ['flu', 'gout', 'x' || i][1 + i % 3])",
]  # fmt: skip
ASKED = [
    f"SELECT tag, COUNT(*) FROM ({TAGS}) GROUP BY tag", f"SELECT COUNT(*) FROM ({TAGS})",
    f"SELECT COUNT(*) FROM ({TAGS}) WHERE tag = 'flu'",
    f"SELECT COUNT(*) FROM ({TAGS}) WHERE tag IN ('flu', 'gout')", f"SELECT COUNT(DISTINCT tag) FROM ({TAGS})",
    f"SELECT tag FROM ({TAGS}) GROUP BY tag ORDER BY COUNT(*) DESC LIMIT 1",
    "SELECT a, b, COUNT(*) FROM people, UNNEST(list_distinct(tags)) AS u(a), UNNEST(list_distinct(tags)) AS v(b) GROUP BY a, b",
]  # fmt: skip


OTHERS = ("['flu', 'gout']", "NULL")


@lru_cache
def with_lists() -> list[duckdb.DuckDBPyConnection]:
    """Tables that differ in one person's list."""
    return [people(*OTHERS, each) for each in ODD]


@lru_cache
def without() -> duckdb.DuckDBPyConnection:
    return people(*OTHERS)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("sql", ASKED)
def test_no_list_of_one_person_passes_the_bound(sql, neighbours):
    plan = session(people(), neighbours=neighbours).explain(sql, epsilon=1)
    pairs = [*with_lists(), *([without()] if neighbours == "add-remove" else [])]
    for first in (0, len(pairs) - 1):
        assert check_plan(plan, [pairs[first], *pairs], Report()) == []


def test_a_pair_attains_the_add_remove_bound():
    plan = session(people(), neighbours="add-remove").explain(ASKED[0], epsilon=1)
    pair = [run_exactly(plan, each)[1] for each in (people(FULL), people())]
    changes = [abs(each) for each in differences(*pair, plan.measurements[0].columns)]
    assert (sum(changes), max(changes)) == (plan.measurements[0].l1, plan.measurements[0].linf) == (3, 1)


def test_null_and_empty_lists_and_other_values_give_no_row():
    assert exactly(people(*ODD[:4]), ASKED[1]) == {None: 0}
    assert exactly(people(FULL, FULL, "['flu']"), ASKED[0]) == {"asthma": 2, "flu": 3, "gout": 2}


def test_a_list_may_have_a_collation_that_its_type_does_not_show():
    """Under it 'flu' and 'FLU' would be one key, and one person be counted twice there."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE texts (t VARCHAR COLLATE NOCASE); INSERT INTO texts VALUES ('flu'), ('FLU'), ('Flu')"
    )
    connection.execute("CREATE TABLE people AS SELECT 1 AS id, list(t) AS tags FROM texts; DROP TABLE texts")
    assert connection.execute(f"SELECT count(*) FROM ({TAGS}) GROUP BY tag").fetchall() == [(3,)], (
        "the collation is gone"
    )
    assert exactly(connection, ASKED[0], values=["flu", "FLU", "gout"]) == {"flu": 1, "FLU": 1}
    assert exactly(connection, ASKED[1], values=["flu"]) == {None: 1}
    assert exactly(connection, f"SELECT COUNT(*) FROM ({TAGS}) WHERE tag = 'FLU'", values=["flu", "FLU"]) == {
        None: 1
    }


def test_elements_equal_after_casting_count_once():
    nano = people("[make_timestamp_ns(1000000001), make_timestamp_ns(1000000002)]", type_="TIMESTAMP_NS")
    assert exactly(nano, ASKED[1], values=["1970-01-01 00:00:01"]) == {None: 1}
    enum = people("['p', 'q', 'p']", type_="ENUM('p', 'q')")
    assert exactly(enum, ASKED[0], values=["p"]) == {"p": 1}


@pytest.mark.parametrize(
    ("type_", "declared", "code"),
    [
        ("DOUBLE", {"values": [0.0, 1.5]}, "refused-unnest"),  # 0.0 and -0.0; NaN
        ("FLOAT", {"range": [0, 1]}, "refused-unnest"),
        ("INTERVAL", {}, "refused-unnest"),
        ("VARCHAR", {}, "refused-unnest"),
        ("INTEGER", {"range": "auto"}, "refused-unnest"),
        ("TIMESTAMP", {"range": ["2024-01-01", "2024-01-02"]}, "refused-unnest"),
        ("VARCHAR[]", {}, "refused-type"),
        ("STRUCT(a INTEGER)", {}, "refused-type"),
        ("BLOB", {}, "refused-type"),
        ("INTEGER", {"values": ["a"]}, "policy-values"),
    ],
)
def test_unbounded_lists_are_refused(type_, declared, code):
    with pytest.raises(privsql.PrivsqlError) as caught:
        session(people(type_=type_), declared or {"range": "auto"}).explain(ASKED[1], epsilon=1)
    assert caught.value.code == code


@pytest.mark.parametrize("sql", [
    "SELECT COUNT(*) FROM (SELECT UNNEST(tags) AS tag FROM people)", "SELECT COUNT(*) FROM people, UNNEST(tags) AS u(tag)",
])  # fmt: skip
def test_lists_with_repeated_values_are_refused(sql):
    with pytest.raises(privsql.PrivsqlError) as caught:
        session(people()).explain(sql, epsilon=1)
    assert (caught.value.code, caught.value.suggestion) == (
        "refused-unnest",
        "Write UNNEST(list_distinct(tags)).",
    )


def test_a_range_of_whole_numbers_is_a_set_of_values():
    numbers = people("[0, 1, 2, 3, 4, -1, 2]", "[3]", type_="INTEGER")
    assert exactly(numbers, ASKED[0], range=[0.5, 3.5]) == {1: 1, 2: 1, 3: 2}
    plan = session(numbers, {"range": [0.5, 3.5]}).explain(ASKED[1], epsilon=1)
    assert plan.measurements[0].l1 == 3
    nothing = session(numbers, {"range": [0.2, 0.8]}).explain(ASKED[1], epsilon=1)
    assert nothing.measurements[0].l1 == 1
    assert run_exactly(nothing, numbers)[1] == {(): {"count_1": 0}}


# -- units -----------------------------------------------------------------------------------------------------
def test_people_with_many_rows_are_bounded_as_always():
    connection = people(*[FULL] * 9)
    connection.execute("UPDATE people SET id = id // 3")
    asked = session(connection, unit="id", max_groups=2, max_rows=1)
    plan = asked.explain(ASKED[0], epsilon=1)
    assert [(each.l1, each.linf) for each in plan.measurements] == [(3, 1)]  # in three cells
    cells = run_exactly(plan, connection)[1]
    assert sum(each["count_1"] for each in cells.values()) == 6, "three people, two conditions each"
    assert asked.query(f"SELECT COUNT(DISTINCT id) AS n FROM ({TAGS})", epsilon=10_000).fetchall() == [(3,)]


def test_a_prepared_copy_has_no_lists(tmp_path):
    file = tmp_path / "people.duckdb"
    with duckdb.connect(str(file)) as owner:
        owner.execute("CREATE TABLE people AS SELECT 1 AS id, ['flu'] AS tags")
    people = {"unit": "id", "max_groups": 3, "max_rows": 10, "columns": {"tags": {"values": DECLARED}}}
    with privsql.connect(file, {"tables": {"people": people}}) as asked:
        asked.prepare("people")
        plan = asked.explain(ASKED[0], epsilon=1)
        assert "privsql_prepared" not in plan.sql
        assert any("unnests private rows" in note for note in plan.notes)
        assert dict(asked.query(ASKED[0], epsilon=10_000).fetchall())["flu"] == 1


# -- note 002: the most common condition, of several a person --------------------------------------------------
def test_the_most_common_condition():
    """Each of n people has a set of conditions; one person moves every count by at most 1, whatever the set."""
    scores = (12, 10, 9, 9)
    conditions = ["migraine", "asthma", "gout", "flu"]
    held = [
        [name for name, score in zip(conditions, scores, strict=True) if person < score]
        for person in range(14)
    ]
    asked = session(people(*(str(each + each[:1]) for each in held)), {"values": conditions})
    question = f"SELECT tag FROM ({TAGS}) GROUP BY tag ORDER BY COUNT(*) DESC LIMIT 1"
    plan = asked.explain(question, epsilon=1)
    assert (plan.measurements[0].linf, plan.measurements[0].scale) == (
        1,
        2.0,
    )  # Exp(2 Delta / epsilon), Delta = 1
    assert asked.query(question, epsilon=1000).fetchall() == [("migraine",)]
    exact, source, times = asked._pipeline.engine.run(plan.sql, plan.keys), Buffered(), 1200
    wins = (
        np.bincount([int(add_noise(plan, [exact], source).cells[0]) for _ in range(times)], minlength=4)
        / times
    )
    reach = 3.3 / math.sqrt(times)  # Hoeffding: passed once in 1e9
    assert np.abs(wins - winning("permute-and-flip", scores, 1 / 2)).max() < reach
    for wrong in (0.25, 4.0):
        assert np.abs(wins - winning("permute-and-flip", scores, 1 / (2 * wrong))).max() > reach, "no power"


def test_a_list_a_child_table_and_columns_give_the_same_choice():
    tables = """CREATE TABLE people (id INTEGER PRIMARY KEY, tags VARCHAR[]); CREATE TABLE has (id INTEGER, tag VARCHAR);
                INSERT INTO people VALUES (1, ['flu', 'gout']), (2, ['flu']), (3, []);
                INSERT INTO has VALUES (1, 'flu'), (1, 'gout'), (2, 'flu')"""
    connection = duckdb.connect()
    connection.execute(tables)
    policy = {"people": {"unit": "id", "columns": {"tags": {"values": DECLARED}}},
              "has": {"unit": "id", "max_rows": 1, "columns": {"tag": {"values": DECLARED}}}}  # fmt: skip
    asked = privsql.connect(connection, {"tables": policy})
    for source in (TAGS, "SELECT tag FROM has WHERE tag IS NOT NULL"):
        question = f"SELECT tag FROM ({source}) GROUP BY tag ORDER BY COUNT(*) DESC LIMIT 1"
        assert asked.explain(question, epsilon=1).measurements[0].scale == 2.0
        assert asked.query(question, epsilon=1000).fetchall() == [("flu",)]


# -- the same question -----------------------------------------------------------------------------------------
def test_equivalent_spellings_share_one_answer():
    asked = session(people(*ODD[:8]))
    forms = [
        f"SELECT tag, COUNT(*) AS n FROM ({TAGS}) GROUP BY tag",
        "SELECT u.x AS tag, COUNT(*) AS n FROM people AS p, UNNEST(list_distinct(p.tags)) AS u(x) GROUP BY 1",
        "WITH q AS (SELECT UNNEST(array_distinct(tags)) AS t FROM people) SELECT t AS tag, COUNT(*) AS n FROM q GROUP BY t",
    ]
    digests = {identity(asked.explain(each, epsilon=1)).digest for each in forms}
    assert len(digests) == 1
    twice = "FROM people, UNNEST(list_distinct(tags)) u(a), UNNEST(list_distinct(tags)) v(b)"
    others = [f"SELECT a AS tag, COUNT(*) AS n {twice} GROUP BY 1", f"SELECT b AS tag, COUNT(*) AS n {twice} GROUP BY 1",
              f"SELECT a AS tag, COUNT(*) AS n {twice} WHERE a = b GROUP BY 1"]  # fmt: skip
    fewer = session(people(), {"values": DECLARED[:2]})
    plans = [
        *(asked.explain(each, epsilon=1) for each in others),
        fewer.explain(forms[0] + " HAVING tag <> 'gout'", epsilon=1),
    ]
    assert len({identity(each).digest for each in plans} | digests) == 5


# -- frames ----------------------------------------------------------------------------------------------------
def test_frames_with_lists():
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    lists = [["flu", "gout", "flu"], ["flu"], [], None] * 25
    table = pa.table({"tags": pa.array(lists, type=pa.list_(pa.string()))})
    frame = pd.DataFrame({"tags": lists}).astype({"tags": pd.ArrowDtype(pa.list_(pa.string()))})
    question = (
        "SELECT tag, COUNT(*) AS n FROM (SELECT UNNEST(list_distinct(tags)) AS tag FROM df) GROUP BY tag"
    )
    policy = {"tables": {"df": {"columns": {"tags": {"values": DECLARED}}}}}
    for source in (table, pl.from_arrow(table), frame):
        answer = privsql.connect(source, policy).query(question, epsilon=10_000)
        assert dict(answer.fetchall()) == {"asthma": 0, "flu": 50, "gout": 25}
    out = frame.dp.query(question, epsilon=10_000, keys={"tags": DECLARED})
    assert dict(out.to_numpy()) == {"asthma": 0, "flu": 50, "gout": 25}
    with pytest.raises(
        privsql.PrivsqlError
    ) as caught:  # what DuckDB makes of objects could depend on one row
        pd.DataFrame({"tags": lists}).dp.query(question, epsilon=1.0, keys={"tags": DECLARED})
    assert caught.value.code == "sql-type"
    assert "ArrowDtype" in caught.value.suggestion


# -- public lists ----------------------------------------------------------------------------------------------
def test_public_lists_are_exact_and_free():
    connection = people("['flu', 'flu', NULL]", "[]", "NULL", "['gout']")
    asked = session(connection, public=True)
    counted = f"SELECT tag, COUNT(*) AS n FROM ({TAGS}) GROUP BY tag ORDER BY tag"
    for sql in ("SELECT UNNEST(tags) AS tag FROM people ORDER BY tag", counted):
        assert asked.query(sql, epsilon=1).fetchall() == connection.execute(sql).fetchall()
    assert asked.budget.spent.epsilon == 0
