"""A frame object goes in; what is remembered of it comes out, as long as it lives."""

from __future__ import annotations

import atexit
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd

from privsql.frame.budget import Protection

if TYPE_CHECKING:  # imported when first used: they need DuckDB and sqlglot
    from privsql.engines.duckdb.engine import DuckDBEngine
    from privsql.results.composed_answer import AnyAnswer
    from privsql.results.notices import BoundingNotice
    from privsql.session import Session


@dataclass
class FrameState:
    """What is remembered of one frame object: a snapshot, which shares its memory, and the sessions on it."""

    own: Protection = field(default_factory=Protection)
    snapshot: pd.DataFrame | None = None
    engine: DuckDBEngine | None = None
    sessions: dict[str, Session] = field(default_factory=dict)
    answer: AnyAnswer | None = None
    notice: BoundingNotice | None = None  # once a frame, however many sessions it takes

    def look_at(self, frame: pd.DataFrame) -> DuckDBEngine:
        """An engine on the frame as it is now; answers stored for another content are forgotten."""
        from privsql.engines.duckdb.dataframes import same_data
        from privsql.engines.duckdb.open_source import open_engine

        if self.engine is None or self.snapshot is None or not same_data(self.snapshot, frame):
            self.snapshot = frame.copy(deep=False)
            self.engine = open_engine(self.snapshot)
            self.sessions.clear()
        return self.engine


_STATES: dict[int, FrameState] = {}
atexit.register(_STATES.clear)  # closes the databases before the interpreter goes


def state_of(frame: pd.DataFrame) -> FrameState:
    """The state of a frame object, for as long as it lives."""
    if id(frame) not in _STATES:
        _STATES[id(frame)] = FrameState()
        weakref.finalize(frame, _STATES.pop, id(frame), None)
    return _STATES[id(frame)]
