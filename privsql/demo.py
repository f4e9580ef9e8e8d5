"""Nothing goes in; a guided tour comes out as text: the lecture notes' questions, asked of made-up children."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

import pandas as pd

from privsql.errors import PrivsqlError
from privsql.results.answer import Answer
from privsql.session import Session, connect

GRADES = ("A", "B", "C", "D", "F")
POLICY: dict[str, Any] = {
    "budget": {"epsilon": 5.0},
    "tables": {
        "students": {
            "columns": {"grade": {"values": list(GRADES)}, "hours": {"range": [0, 40]}, "year": {"range": [1, 3]}}
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


def students() -> pd.DataFrame:
    """Six hundred made-up students, always the same."""
    count = 600
    grade = ("A", "B", "B", "C", "B", "A", "C", "C", "D", "B", "A", "C", "B", "C", "D", "B", "F", "C", "A", None)
    town = ("Shatin", "Tai Po", "Shatin", "Central", "Shatin", "Tai Po", "Mong Kok")
    return pd.DataFrame(
        {
            "name": [f"Student {place + 1}" for place in range(count)],
            "grade": [grade[place * 7 % len(grade)] for place in range(count)],
            "hours": [(place * 37 + place * place) % 41 for place in range(count)],
            "year": [1 + place % 3 for place in range(count)],
            "town": [town[place * 5 % len(town)] for place in range(count)],
        }
    )


def likes(copies: int) -> pd.DataFrame:
    """The five children of the notes, each so many times: 1 in 5 likes apples, 4 oranges, 3 bananas."""
    yes = {"apple": "10000", "orange": "11110", "banana": "01011"}
    rows = pd.DataFrame({fruit: [mark == "1" for mark in marks] for fruit, marks in yes.items()})
    rows.insert(0, "child", ["Alice", "Bob", "Charlie", "Dave", "Erica"])
    return pd.concat([rows] * copies, ignore_index=True)


def demo() -> str:
    """The whole tour."""
    pupils, children = students(), likes(100)
    session = connect({"students": pupils, "likes": children}, policy=POLICY)
    parts = [
        _heading("privsql: ask about people in SQL, learn next to nothing about any one of them"),
        _text(
            "Every answer below has random noise in it, just enough that whatever any one person's row "
            "holds, the answers would look much the same. How much the same is a number called epsilon: "
            "small is more private and noisier. All questions together may spend an epsilon of 5 here."
        ),
        _text(
            "The people are made up, so the truth is printed beside the answers. With real people nobody but "
            "their keeper would ever see that column."
        ),
        *_histogram(session, pupils),
        *_fruit(session),
        *_bars(session, pupils),
        *_average(session, pupils),
        *_refusals(session, pupils),
        *_again(session),
        *_budget(session),
        _heading("8. Why should I believe it?"),
        _text(
            "EXPLAIN shows the whole derivation without reading a row or spending anything. For question 1: changing "
            "one student's grade takes 1 from one count and adds 1 to another, 2 in all. That is l1, and the noise "
            "is scaled to it."
        ),
        _indented(str(session.explain(HISTOGRAM, epsilon=1.0))),
        _text('Your turn:  privsql query your.csv "SELECT COUNT(*) AS n FROM your" --epsilon 1'),
    ]
    return "\n\n".join(parts)


def _histogram(session: Session, pupils: pd.DataFrame) -> Iterable[str]:
    counts = pupils["grade"].value_counts(dropna=False)
    truth = [int(counts.get(grade, 0)) for grade in GRADES] + [int(pupils["grade"].isna().sum())]
    yield _heading("1. How many students got each grade?")
    yield _asked(HISTOGRAM, "epsilon 1")
    yield _beside(session.query(HISTOGRAM, epsilon=1.0), truth)
    yield _text(
        "The brackets say where the truth lies, 95 times in 100. NULL is a student without a grade yet. "
        "The price is the same for five grades or five thousand: a student has only one."
    )


def _fruit(session: Session) -> Iterable[str]:
    yield _heading("2. Which fruit do most of 500 children like?")
    yield _asked(FRUIT, "epsilon 0.5")
    yield _beside(session.query(FRUIT, epsilon=0.5), ["orange (400; banana 300, apple 100)"])
    yield _text(
        "Only the winner's name comes out, no counts, and that is much cheaper than publishing all the counts. With "
        "the notes' own five children (1, 4 and 3 likes) one child is a fifth of the data, so that answer must be unsure:"
    )
    class_of_five = connect({"likes": likes(1)})
    told = [class_of_five.query(FRUIT, epsilon=0.5, fresh=True).fetchall()[0][0] for _ in range(10)]
    yield _indented("asked ten times, paying each time:\n" + ", ".join(told))


def _bars(session: Session, pupils: pd.DataFrame) -> Iterable[str]:
    answer = session.query(HOURS, epsilon=0.5)
    table = answer.intervals(0.95)
    truth = (pupils["hours"] // 10 * 10).value_counts()
    widest = max(1.0, float(table["students_high"].max()))
    lines = []
    for hours, middle, low, high in table.itertuples(index=False):
        unit = 50 / widest
        left, right = max(0, round(low * unit)), max(0, round(high * unit))
        bar = "#" * left + "-" * (right - left)
        lines.append(f"{hours:>3}+  {bar:<52}{middle:>4} +- {(high - low) / 2:.0f}   truth {int(truth.get(hours, 0))}")
    expected = session.explain(HOURS, epsilon=0.5).accuracy(0.95)["students"]
    yield _heading("3. How many hours do students work? Counts with error bars")
    yield _asked(HOURS, "epsilon 0.5")
    yield _indented("\n".join(lines))
    yield _text(
        f"The truth ends somewhere in the dashes, 95 times in 100. The +- {expected:.0f} was known before anything was "
        "spent: the noise depends on the question and its price, never on the data."
    )


def _average(session: Session, pupils: pd.DataFrame) -> Iterable[str]:
    yield _heading("4. How many hours on average, by year?")
    yield _asked(AVERAGE, "epsilon 1")
    truth = pupils.groupby("year")["hours"].mean()
    yield _beside(session.query(AVERAGE, epsilon=1.0), [f"{truth[year]:.2f}" for year in (1, 2, 3)])
    yield _text(
        "An average can be moved by one wild value, so the owner of the data has declared that hours lie "
        "between 0 and 40; anything beyond is counted as 0 or 40."
    )


def _refusals(session: Session, pupils: pd.DataFrame) -> Iterable[str]:
    yield _heading("5. Questions that get no answer, and how to repair them")
    for question in (ROWS, REFUSED):
        yield _asked(question, "epsilon 0.5")
        yield _indented(_refusal(session, question, 0.5))
    yield _text(
        "A list of towns would name a town where only one student lives. Ask about towns you name yourself, "
        "and each gets a row, whether anybody lives there or not:"
    )
    yield _asked(REPAIRED, "epsilon 0.5")
    towns = pupils["town"].value_counts()
    yield _beside(
        session.query(REPAIRED, epsilon=0.5), [int(towns.get(town, 0)) for town in ("Shatin", "Tai Po", "Sai Kung")]
    )


def _again(session: Session) -> Iterable[str]:
    yield _heading("6. The same question again")
    before = session.budget.spent.epsilon
    yield _asked(HISTOGRAM, "epsilon 1")
    answer = session.query(HISTOGRAM, epsilon=1.0)
    yield _indented(str(answer))
    yield _text(
        f"The same noise, so asking often and averaging wins nothing; and it was free: epsilon {before:g} was spent "
        f"before, {session.budget.spent.epsilon:g} now."
    )


def _budget(session: Session) -> Iterable[str]:
    yield _heading("7. The budget")
    yield _indented(str(session.budget))
    yield _asked("SELECT COUNT(*) AS students FROM students WHERE year = 3", "epsilon 3")
    yield _indented(_refusal(session, "SELECT COUNT(*) AS students FROM students WHERE year = 3", 3.0))
    yield _text("Nothing was read and nothing was charged. When the budget is gone, it is gone.")


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


def _beside(answer: Answer, truth: Iterable[object]) -> str:
    """The answer as it prints itself, with the truth to the right of each row."""
    header, rule, *rest = str(answer).splitlines()
    width = max(len(rule), len(header))
    column = ["truth (made up)", "", *map(str, truth)]
    column += [""] * (2 + len(rest) - len(column))
    lines = [f"{line:<{width}}   {value}".rstrip() for line, value in zip([header, rule, *rest], column, strict=True)]
    return _indented("\n".join(lines))
