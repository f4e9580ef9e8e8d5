"""A QueryRelease: marginals that were paid for once, from which their queries are answered, free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from privsql.engines.duckdb.calculator import calculator
from privsql.errors import ArgumentError, UnknownName, did_you_mean
from privsql.planning.marginals.residual_plan import ResidualPlan
from privsql.planning.plan import Plan, StoredSource
from privsql.planning.precision.half_widths import check_level
from privsql.privacy.marginals.residual_price import Columns
from privsql.release.answer_query import answer, counted
from privsql.release.query_reader import QueryReader
from privsql.release.residual_tables import ResidualTables
from privsql.requests.pipeline import finished
from privsql.results.answer import Answer
from privsql.tables import ShrunkTable


@dataclass(frozen=True, eq=False)
class QueryRelease:
    """Noisy marginals of one table, and everything that follows from them at no further cost.

    It needs no session: it can be pickled, and read back elsewhere.

    Arguments:
        plan: what was measured, how noisy and at what price.
        tables: the marginals, from noisy and public numbers alone.
        when: when it was charged.
        stored: it was released before, so that it cost nothing this time.
    """

    plan: ResidualPlan
    tables: ResidualTables
    _reader: QueryReader = field(repr=False)
    when: str
    stored: bool = False

    def again(self) -> QueryRelease:
        """The same release, found again."""
        return replace(self, stored=True)

    @property
    def columns(self) -> tuple[str, ...]:
        """The released columns."""
        return self.plan.names

    @property
    def ways(self) -> int:
        """How many columns a query may name."""
        return min(self.plan.workload.ways, len(self.columns))

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
        return answer([(self.plan, self.tables)], planned, what, calculator().evaluate, source)

    def df(self, columns: Sequence[str] | None = None, level: float = 0.95) -> pd.DataFrame:
        """One marginal as a table: a row for each combination of cells, with n, n_low and n_high.

        Arguments:
            columns: at most `ways` of the released columns; by default the first ones.
            level: the confidence of the intervals.

        Example:
            release.df(["age", "state"])
        """
        level = check_level(level)
        asked = self._asked(columns)
        places = tuple(sorted(asked))
        order = [places.index(each) for each in asked]
        shown = self.tables.shown(places).transpose(order)
        unbiased = self.tables.unbiased(places).transpose(order)
        one = np.zeros([self.plan.columns[each].size for each in places])
        one[(0,) * one.ndim] = 1.0
        width = NormalDist().inv_cdf(0.5 + level / 2) * self.tables.variance_of(places, one) ** 0.5
        frame = pd.MultiIndex.from_product([range(self.plan.columns[each].size) for each in asked]).to_frame(
            index=False
        )
        for position, each in enumerate(asked):
            labels = np.array([*self.plan.columns[each].labels, None], dtype=object)[:-1]
            frame.isetitem(position, labels[frame.iloc[:, position].to_numpy()])
        frame.columns = pd.Index([self.columns[each] for each in asked])
        n = np.rint(shown).reshape(-1)
        return frame.assign(
            n=n.astype(np.int64),
            n_low=np.fmin(np.ceil(unbiased.reshape(-1) - width), n),
            n_high=np.fmax(np.floor(unbiased.reshape(-1) + width), n),
        )

    def _asked(self, columns: Sequence[str] | None) -> Columns:
        names = self.columns[: self.ways] if columns is None else columns
        listed = isinstance(names, Sequence) and not isinstance(names, str)
        if not listed or not 1 <= len(names) <= self.ways:
            problem = f"columns must be a list of 1 to {self.ways} released columns"
            raise ArgumentError("argument-columns", problem, f"columns={list(self.columns[: self.ways])}")
        known = {each.lower(): place for place, each in enumerate(self.columns)}
        for each in names:
            if not isinstance(each, str) or each.lower() not in known:
                problem = f"{each} is not among the released columns"
                raise UnknownName("name-column", problem, did_you_mean(str(each), self.columns))
        found = tuple(known[each.lower()] for each in names)
        if len(set(found)) < len(found):
            raise ArgumentError("argument-columns", "a column is named twice", "name each column once")
        return found

    @property
    def rows(self) -> int:
        """The number of rows: public under replace-one, noisy otherwise."""
        return round(self.tables.total)

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
