"""A guided tour comes out as text: the queries of the lecture notes, on made-up students."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

import duckdb

from privsql.connecting import connect
from privsql.errors import PrivsqlError
from privsql.results.composed_answer import AnyAnswer
from privsql.session import Session

GRADES = ("A", "B", "C", "D", "F")
POLICY: dict[str, Any] = {
    "budget": {"epsilon": 5.0},
    "tables": {
        "students": {
            "columns": {
                "grade": {"values": list(GRADES)},
                "hours": {"range": [0, 40]},
                "year": {"range": [1, 3]},
            }
        },
    },
}

HISTOGRAM = "SELECT grade, COUNT(*) AS students FROM students GROUP BY grade"
FRUIT = """SELECT fruit
FROM (UNPIVOT likes ON apple, orange, banana INTO NAME fruit VALUE liked)
WHERE liked
GROUP BY fruit ORDER BY COUNT(*) DESC LIMIT 1"""
HOURS = "SELECT hours // 10 * 10 AS from_hours, COUNT(*) AS students FROM students GROUP BY 1"
AVERAGE = "SELECT year, AVG(hours) AS mean_hours FROM students GROUP BY year"
REFUSED = "SELECT town, COUNT(*) AS students FROM students GROUP BY town"
REPAIRED = """SELECT town, COUNT(*) AS students FROM students
WHERE town IN ('Shatin', 'Tai Po', 'Sai Kung') GROUP BY town"""
ROWS = "SELECT name, grade FROM students"

_WIDTH = 92


SCHOOL = """
CREATE TABLE students (
    name VARCHAR, grade VARCHAR NOT NULL, hours INTEGER NOT NULL, year INTEGER NOT NULL, town VARCHAR
);
INSERT INTO students SELECT
    'Student ' || i,
    ['A', 'B', 'B', 'C', 'B', 'A', 'C', 'C', 'D', 'B',
     'A', 'C', 'B', 'C', 'D', 'B', 'F', 'C', 'A', 'B'][1 + i * 7 % 20],
    (i * 37 + i * i) % 41,
    1 + i % 3,
    ['Shatin', 'Tai Po', 'Shatin', 'Central', 'Shatin', 'Tai Po', 'Mong Kok'][1 + i * 5 % 7]
FROM range(600) AS numbers(i)
"""
# The five children of the lecture notes: 1 likes apples, 4 oranges, 3 bananas.
CHILDREN = """
CREATE TABLE likes AS SELECT child, apple, orange, banana FROM range({copies}), (VALUES
    ('Alice', true, true, false), ('Bob', false, true, true), ('Charlie', false, true, false),
    ('Dave', false, true, true), ('Erica', false, false, true)) AS v(child, apple, orange, banana)
"""


def demo() -> str:
    """The whole tour, as text. Each run draws new noise.

    Example:
        >>> from privsql.demo import demo
        >>> demo().splitlines()[0]
        'privsql: ask about people in SQL, learn next to nothing about any one of them'
    """
    school = duckdb.connect()
    school.execute(SCHOOL)
    school.execute(CHILDREN.format(copies=100))
    session = connect(school, policy=POLICY)
    parts = [
        _heading("privsql: ask about people in SQL, learn next to nothing about any one of them"),
        _text(
            "Every answer below has random noise, just enough that the answers would look much the same "
            "whatever any one person's row contains. How much the same is a number called epsilon: smaller "
            "is more private and noisier. All queries here may spend an epsilon of 5 together."
        ),
        _text(
            "The people are made up, so the truth is printed beside the answers. With real people only the "
            "owner of the data would ever see that column."
        ),
        *_histogram(session, school),
        *_fruit(session),
        *_bars(session, school),
        *_average(session, school),
        *_refusals(session, school),
        *_again(session),
        *_budget(session),
        _heading("8. Why should I believe it?"),
        _text(
            "EXPLAIN shows the whole derivation without reading a row or spending anything. For query 1: "
            "changing one student's grade takes 1 from one count and adds 1 to another, 2 in all. That is "
            "l1, and the noise is scaled to it."
        ),
        _indented(str(session.explain(HISTOGRAM, epsilon=1.0))),
        _text('Your turn:  privsql query your.csv "SELECT COUNT(*) AS n FROM your" --epsilon 1'),
    ]
    return "\n\n".join(parts)


def _histogram(session: Session, school: duckdb.DuckDBPyConnection) -> Iterable[str]:
    truth = _exact(school, HISTOGRAM)
    yield _heading("1. How many students got each grade?")
    yield _asked(HISTOGRAM, "epsilon 1")
    yield _beside(session.query(HISTOGRAM, epsilon=1.0), [truth[grade] for grade in GRADES])
    yield _text(
        "The truth lies within the brackets 95 times in 100. "
        "The cost is the same for five grades or five thousand: a student has only one."
    )


def _fruit(session: Session) -> Iterable[str]:
    yield _heading("2. Which fruit do most of 500 children like?")
    yield _asked(FRUIT, "epsilon 0.5")
    yield _beside(session.query(FRUIT, epsilon=0.5), ["orange (400; banana 300, apple 100)"])
    yield _text(
        "Only the winner's name is published, which is much cheaper than publishing all the counts. With "
        "the five children of the lecture notes (1, 4 and 3 likes) one child is a fifth of the data, so the "
        "answer has to be uncertain:"
    )
    five = duckdb.connect()
    five.execute(CHILDREN.format(copies=1))
    told = [connect(five).query(FRUIT, epsilon=0.5).fetchall()[0][0] for _ in range(10)]
    yield _indented("asked ten times, paying each time:\n" + ", ".join(told))


def _bars(session: Session, school: duckdb.DuckDBPyConnection) -> Iterable[str]:
    answer = session.query(HOURS, epsilon=0.5)
    table = answer.intervals(0.95)
    truth = _exact(school, HOURS)
    widest = max(1.0, float(table["students_high"].max()))
    lines = []
    for hours, middle, low, high in table.itertuples(index=False):
        unit = 50 / widest
        left, right = max(0, round(low * unit)), max(0, round(high * unit))
        bar = "#" * left + "-" * (right - left)
        lines.append(
            f"{hours:>3}+  {bar:<52}{middle:>4} +- {(high - low) / 2:.0f}   truth {truth.get(hours, 0)}"
        )
    expected = session.explain(HOURS, epsilon=0.5).accuracy(0.95)["students"]
    yield _heading("3. How many hours do students work? Counts with error bars")
    yield _asked(HOURS, "epsilon 0.5")
    yield _indented("\n".join(lines))
    yield _text(
        f"The true bar ends within the dashes 95 times in 100. The +- {expected:.0f} was known before "
        "anything was spent: the noise depends on the query and its epsilon, never on the data."
    )


def _average(session: Session, school: duckdb.DuckDBPyConnection) -> Iterable[str]:
    yield _heading("4. How many hours on average, by year?")
    yield _asked(AVERAGE, "epsilon 1")
    truth = _exact(school, AVERAGE)
    yield _beside(session.query(AVERAGE, epsilon=1.0), [f"{truth[year]:.2f}" for year in (1, 2, 3)])
    yield _text(
        "A single extreme value can move an average, so the owner of the data has declared that hours lie "
        "between 0 and 40; anything outside is clamped to 0 or 40."
    )


def _refusals(session: Session, school: duckdb.DuckDBPyConnection) -> Iterable[str]:
    yield _heading("5. Queries that are refused, and how to fix them")
    for query in (ROWS, REFUSED):
        yield _asked(query, "epsilon 0.5")
        yield _indented(_refusal(session, query, 0.5))
    yield _text(
        "A list of towns would reveal a town where only one student lives. Name the towns yourself, and each "
        "gets a row, whether anybody lives there or not:"
    )
    yield _asked(REPAIRED, "epsilon 0.5")
    towns = _exact(school, REPAIRED)
    yield _beside(
        session.query(REPAIRED, epsilon=0.5),
        [towns.get(town, 0) for town in ("Shatin", "Tai Po", "Sai Kung")],
    )
    yield _text("A count may be below 0: the noise goes both ways, so that totals are right on average.")


def _again(session: Session) -> Iterable[str]:
    yield _heading("6. The same query again")
    before = session.budget.spent.epsilon
    yield _asked(HISTOGRAM, "epsilon 1")
    answer = session.query(HISTOGRAM, epsilon=1.0)
    yield _indented(str(answer))
    yield _text(
        "The same noise, so asking again and averaging gains nothing. And it was free: epsilon "
        f"{before:g} was spent before, {session.budget.spent.epsilon:g} now."
    )


def _budget(session: Session) -> Iterable[str]:
    yield _heading("7. The budget")
    yield _indented(str(session.budget))
    yield _asked("SELECT COUNT(*) AS students FROM students WHERE year = 3", "epsilon 3")
    yield _indented(_refusal(session, "SELECT COUNT(*) AS students FROM students WHERE year = 3", 3.0))
    yield _text("Nothing was read and nothing was charged. Once the budget is spent, it is gone.")


def _exact(school: duckdb.DuckDBPyConnection, sql: str) -> dict[Any, Any]:
    """The truth, by key. It may be shown, since nobody in it exists."""
    return dict(school.execute(sql).fetchall())


# -- formatting ----------------------------------------------------------------------------------------------
def _refusal(session: Session, sql: str, epsilon: float) -> str:
    try:
        return str(session.query(sql, epsilon=epsilon))
    except PrivsqlError as error:
        return f"refused: {error}"


def _heading(title: str) -> str:
    return f"{title}\n{'=' * len(title)}"


def _text(words: str) -> str:
    return textwrap.fill(words, _WIDTH)


def _asked(sql: str, price: str) -> str:
    lines = sql.splitlines()
    return (
        "\n".join([*(f"  sql> {line}" for line in lines[:1]), *(f"       {line}" for line in lines[1:])])
        + f"   [{price}]"
    )


def _indented(text: str) -> str:
    return textwrap.indent(text, "    ")


def _beside(answer: AnyAnswer, truth: Iterable[object]) -> str:
    """The answer as it prints, with the truth to the right of each row."""
    header, rule, *rest = str(answer).splitlines()
    width = max(len(rule), len(header))
    column = ["truth (made up)", "", *map(str, truth)]
    column += [""] * (2 + len(rest) - len(column))
    lines = [
        f"{line:<{width}}   {value}".rstrip()
        for line, value in zip([header, rule, *rest], column, strict=True)
    ]
    return _indented("\n".join(lines))
