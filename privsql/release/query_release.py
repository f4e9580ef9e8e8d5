"""A QueryRelease: marginals that were paid for once, from which their queries are answered, free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from privsql.engines.duckdb.calculator import calculator
from privsql.errors import ArgumentError, Refused, UnknownName, did_you_mean
from privsql.planning.marginals.joint_plan import JointPlan, ReleasePart
from privsql.planning.marginals.residual_plan import ResidualPlan
from privsql.planning.plan import Plan, StoredSource
from privsql.planning.precision.half_widths import check_level
from privsql.privacy.marginals.residual_price import Columns
from privsql.release.answer_query import Estimates, answer, counted
from privsql.release.query_reader import QueryReader
from privsql.release.residual_tables import ResidualTables
from privsql.release.strategy_tables import StrategyTables
from privsql.requests.pipeline import finished
from privsql.results.answer import Answer
from privsql.tables import ShrunkTable

ReleasedPlan = ResidualPlan | JointPlan
NoisyPart = tuple[ReleasePart, ResidualTables | StrategyTables]


@dataclass(frozen=True, eq=False)
class QueryRelease:
    """Noisy counts of one table, and everything that follows from them at no further cost.

    It needs no session: it can be pickled, and read back elsewhere.

    Arguments:
        plan: what was measured, how noisy and at what price.
        parts: of the plan, each with its tables, from noisy and public numbers alone.
        when: when it was charged.
        texts: the SQL queries that were asked for, and their dialect.
        stored: it was released before, so that it cost nothing this time.
    """

    plan: ReleasedPlan
    parts: tuple[NoisyPart, ...] = field(repr=False)
    _reader: QueryReader = field(repr=False)
    when: str
    texts: tuple[str, ...] = ()
    _dialect: str = "duckdb"
    stored: bool = False

    def again(self) -> QueryRelease:
        """The same release, found again."""
        return replace(self, stored=True)

    @property
    def tables(self) -> ResidualTables:
        """The tables of the marginals. Raises ArgumentError where none were released."""
        for _, each in self.parts:
            if isinstance(each, ResidualTables):
                return each
        raise ArgumentError("argument-workload", "no marginals were released", "ask for query or answers")

    @property
    def columns(self) -> tuple[str, ...]:
        """The released columns."""
        return tuple(dict.fromkeys(name for part, _ in self.parts for name in part.names))

    @property
    def ways(self) -> int:
        """How many columns a query may name."""
        return max(part.ways for part, _ in self.parts)

    def answers(self) -> list[Answer]:
        """The answers of the SQL queries that were asked for, in order."""
        return [self.query(each, self._dialect) for each in self.texts]

    def query(self, sql: str, dialect: str = "duckdb") -> Answer:
        """Answer a counting query over the released columns, at no cost.

        Arguments:
            sql: COUNT(*), with or without WHERE, FILTER, GROUP BY, HAVING and ORDER BY, over at most `ways`
                of the columns. Conditions on a column that was released in parts must be at their edges.
            dialect: the dialect of the SQL.

        Raises:
            Refused: the query does not follow from the release.

        Example:
            release.query("SELECT state, COUNT(*) AS n FROM people WHERE smoker GROUP BY state")
        """
        return finished(self.answer(self._reader.plan(sql, dialect)))

    def answer(self, planned: Plan) -> tuple[Plan, ShrunkTable]:
        """How the release answers a planned query. Raises Refused where it does not follow."""
        what = counted(planned.query, self.plan.table)
        source = StoredSource(self.plan.what, self.plan.epsilon, self.plan.delta, self.when, 1)
        return answer(self.parts, planned, what, calculator().evaluate, source)

    def df(self, columns: Sequence[str] | None = None, level: float = 0.95) -> pd.DataFrame:
        """One marginal as a table: a row for each combination of cells, with n, n_low and n_high.

        Arguments:
            columns: at most `ways` of the released columns; by default the first ones.
            level: the confidence of the intervals.

        Example:
            release.df(["age", "state"])
        """
        width = NormalDist().inv_cdf(0.5 + check_level(level) / 2)
        part, asked, found = self._told(self._first() if columns is None else columns)
        cells = [part.columns[each] for each in asked]
        places = sorted(asked)
        order = [places.index(each) for each in asked]
        shape = [part.columns[each].size for each in places]
        shown, unbiased, variances = (
            each.reshape(shape).transpose(order).reshape(-1)
            for each in (found.shown, found.unbiased, found.variances)
        )
        frame = pd.MultiIndex.from_product([range(each.size) for each in cells]).to_frame(index=False)
        for position, each in enumerate(cells):
            labels = np.array([*each.labels, None], dtype=object)[:-1]
            frame.isetitem(position, labels[frame.iloc[:, position].to_numpy()])
        frame.columns = pd.Index([each.column.name for each in cells])
        n, off = np.rint(shown), width * np.sqrt(variances)
        return frame.assign(
            n=n.astype(np.int64),
            n_low=np.fmin(np.ceil(unbiased - off), n),
            n_high=np.fmax(np.floor(unbiased + off), n),
        )

    def _first(self) -> Sequence[str]:
        """The first columns that were counted together."""
        part, _ = self.parts[0]
        return part.names[: part.ways]

    def _told(self, columns: Sequence[str]) -> tuple[ReleasePart, Columns, Estimates]:
        """The first part that tells the counts of some columns together, and these."""
        names = self._named(columns)
        refusal = _not_together(names)
        for part, tables in self.parts:
            if not set(names) <= set(part.names):
                continue
            asked = tuple(part.names.index(each) for each in names)
            if not part.covers(tuple(sorted(asked))):
                continue
            try:
                return part, asked, tables.whole(tuple(sorted(asked)))
            except Refused as error:
                refusal = error
        raise refusal

    def _named(self, columns: Sequence[str]) -> list[str]:
        listed = isinstance(columns, Sequence) and not isinstance(columns, str)
        if not listed or not 1 <= len(columns) <= self.ways:
            problem = f"columns must be a list of 1 to {self.ways} released columns"
            raise ArgumentError("argument-columns", problem, f"columns={list(self.columns[: self.ways])}")
        known = {each.lower(): each for each in self.columns}
        for each in columns:
            if not isinstance(each, str) or each.lower() not in known:
                problem = f"{each} is not among the released columns"
                raise UnknownName("name-column", problem, did_you_mean(str(each), self.columns))
        found = [known[each.lower()] for each in columns]
        if len(set(found)) < len(found):
            raise ArgumentError("argument-columns", "a column is named twice", "name each column once")
        return found

    @property
    def rows(self) -> int:
        """The number of rows: public under replace-one, noisy otherwise."""
        _, tables = self.parts[0]
        return round(tables.total)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What contribution bounding may have dropped."""
        return self.plan.warnings

    @property
    def receipt(self) -> dict[str, Any]:
        """What was released, how and at what cost; can be written as JSON."""
        charged = 0.0 if self.stored else self.plan.epsilon
        return {**self.plan.to_dict(), "when": self.when, "stored": self.stored, "charged": charged}

    def __str__(self) -> str:
        return f"{self.plan}\n  released at {self.when}, {self.rows:,} rows"

    __repr__ = __str__


def _not_together(names: Sequence[str]) -> Refused:
    problem = f"the release does not count {', '.join(names)} together"
    return Refused("refused-not-released", problem, "name fewer columns, or release these together")
