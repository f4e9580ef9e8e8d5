"""Rows of units go in; rows with windows within a unit come out: new columns, QUALIFY, DISTINCT ON, EXCEPT and INTERSECT.

Most windows name the unit, or something that determines it; some do not, and must be refused. The choices are drawn
apart from those of the other generators, so that their queries stay the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.soundness.queries import Seen

WINDOW_CONSTRUCTS = frozenset(
    {
        "window",
        "window-frame",
        "window-where",
        "qualify",
        "distinct-on",
        "except",
        "intersect",
        "named-window",
    }
)

_RANKS = [
    "ROW_NUMBER()",
    "ROW_NUMBER()",
    "RANK()",
    "DENSE_RANK()",
    "NTILE(2)",
    "PERCENT_RANK()",
    "CUME_DIST()",
]
_OF_ROWS = ["LAG({x})", "LEAD({x}, 2)", "LAG({x} IGNORE NULLS)"]
_OF_FRAMES = [
    "FIRST_VALUE({x})",
    "LAST_VALUE({x})",
    "NTH_VALUE({x}, 2)",
    "LAST_VALUE({x} IGNORE NULLS)",
    "MIN({x})",
    "MAX({x})",
]
_COUNTS = ["COUNT(*)", "COUNT({x})", "COUNT(DISTINCT {x})", "COUNT(*) FILTER (WHERE {x} IS NOT NULL)"]
_SUMS = ["SUM({x})", "AVG({x})"]
_FRAMES = [
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
]  # fmt: skip
_STEPS = {"int": "2", "date": "INTERVAL 3 DAYS", "ts": "INTERVAL 36 HOURS"}


@dataclass(frozen=True)
class Windowed:
    """SQL to stand in FROM, and the columns that it adds."""

    text: str
    added: tuple[Seen, ...] = ()


class WindowWriter:
    """Writes windows over one source, in parentheses, whose columns have these names."""

    def __init__(self, own: Random, text: str, scope: list[Seen], whose: list[list[str]]) -> None:
        self.own, self.text, self.scope, self.whose = own, text, scope, whose
        self.used: set[str] = set()

    def written(self, name: str) -> Windowed:
        form = self.own.choice(
            ["column", "column", "where", "where", "qualify", "qualify", "distinct", "sets"]
        )
        makers = {
            "column": self._column, "where": self._where, "qualify": self._qualify, "distinct": self._distinct,
            "sets": self._sets,
        }  # fmt: skip
        return makers[form](name)

    def _column(self, name: str) -> Windowed:
        self.used.add("window")
        call, kind, bounded = self._call()
        over = self._over(call)
        if self.own.random() < 0.2:
            self.used.add("named-window")
            text = f"(SELECT *, {call} OVER w AS {name} FROM {self.text} WINDOW w AS {over})"
        else:
            text = f"(SELECT *, {call} OVER {over} AS {name} FROM {self.text})"
        return Windowed(text, (Seen(name, kind, bounded, False),))

    def _where(self, name: str) -> Windowed:
        """The first rows of each unit, by a number or a rank."""
        self.used.add("window-where")
        call = self.own.choice(["ROW_NUMBER()", "ROW_NUMBER()", "ROW_NUMBER()", "RANK()", "COUNT(*)"])
        test = self.own.choice(
            [f"{name} = 1", f"{name} <= 2", f"3 > {name}", f"{name} IN (1, 3)", f"{name} BETWEEN 2 AND 3"]
        )
        inner = f"(SELECT *, {call} OVER {self._over(call)} AS {name} FROM {self.text})"
        return Windowed(
            f"(SELECT * FROM {inner} WHERE {test})", (Seen(name, "int", True, True, ("1", "2", "3")),)
        )

    def _qualify(self, name: str) -> Windowed:
        self.used.add("qualify")
        call = self.own.choice(["ROW_NUMBER()", "ROW_NUMBER()", "DENSE_RANK()", "COUNT(*)"])
        test = self.own.choice(["= 1", "<= 2", "< 4", ">= 2"])
        return Windowed(f"(SELECT * FROM {self.text} QUALIFY {call} OVER {self._over(call)} {test})")

    def _distinct(self, name: str) -> Windowed:
        self.used.add("distinct-on")
        on = ", ".join(self._partition())
        return Windowed(f"(SELECT DISTINCT ON ({on}) * FROM {self.text}{self._order(2)})")

    def _sets(self, name: str) -> Windowed:
        """The rows of which there are, or are not, others that meet a condition."""
        word = self.own.choice(["EXCEPT", "INTERSECT"])
        self.used.add(word.lower())
        every = self.own.choice(["", " ALL"])
        column = self.own.choice(self.scope).name
        kept = self.own.choice([f"{column} IS NULL", f"{column} IS NOT NULL", f"{column} = {column}"])
        return Windowed(f"(SELECT * FROM {self.text} {word}{every} SELECT * FROM {self.text} WHERE {kept})")

    # -- one window ------------------------------------------------------------------------------------------
    def _call(self) -> tuple[str, str, bool]:
        """A function, what kind of value it has, and whether that has a range."""
        column = self.own.choice(self.scope)
        listed = [
            (_RANKS, "int", False),
            (_OF_ROWS, column.kind, column.bounded),
            (_OF_FRAMES, column.kind, column.bounded),
        ]
        listed.append((_COUNTS, "int", True))
        numbers = [c for c in self.scope if c.kind in ("int", "num") and c.bounded]
        if numbers:
            column = self.own.choice(numbers) if self.own.random() < 0.4 else column
            if column in numbers:
                listed.append((_SUMS, "num", True))
        calls, kind, bounded = self.own.choice(listed)
        call = self.own.choice(calls)
        if call in ("PERCENT_RANK()", "CUME_DIST()"):
            kind, bounded = "num", True
        return call.format(x=column.name), kind, bounded

    def _partition(self) -> list[str]:
        """The unit, or what determines it; with other columns, or (wrongly) only those."""
        named = list(self.own.choice(self.whose)) if self.whose and self.own.random() < 0.93 else []
        rest = [c.name for c in self.scope if c.name not in named]
        more = self.own.sample(rest, min(len(rest), self.own.choice([0, 0, 0, 1, 1, 2])))
        found = [*named, *more] or [self.own.choice(self.scope).name]
        return self.own.sample(found, len(found))

    def _order(self, most: int) -> str:
        terms = self.own.sample(self.scope, min(len(self.scope), self.own.randint(0, most)))
        ways = ["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"]
        listed = ", ".join(f"{c.name}{self.own.choice(ways)}" for c in terms)
        return f" ORDER BY {listed}" if listed else ""

    def _over(self, call: str) -> str:
        order, frame = self._order(2), ""
        framed = call.startswith(("SUM", "AVG", "COUNT", "MIN", "MAX", "FIRST", "LAST", "NTH"))
        stepped = [c for c in self.scope if c.kind in _STEPS]
        if framed and stepped and self.own.random() < 0.2:
            column = self.own.choice(stepped)
            order = f" ORDER BY {column.name}{self.own.choice(['', ' DESC'])}"
            step = _STEPS[column.kind]
            frame = (
                f" RANGE BETWEEN {step} PRECEDING AND {self.own.choice(['CURRENT ROW', f'{step} FOLLOWING'])}"
            )
        elif framed and order and self.own.random() < 0.4:
            frame = f" {self.own.choice(_FRAMES)}"
        if frame:
            self.used.add("window-frame")
        return f"(PARTITION BY {', '.join(self._partition())}{order}{frame})"
