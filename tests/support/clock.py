"""A clock that stands still, for what compares two sessions: queries of the time must be the same queries of both."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager

from privsql.requests import stage as request_stage


class Noon(dt.datetime):
    """The first of January 2026, at noon."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:
        return dt.datetime(2026, 1, 1, 12, tzinfo=tz)


@contextmanager
def clock_that_stands_still() -> Iterator[None]:
    request_stage.datetime = Noon  # type: ignore[misc]
    try:
        yield
    finally:
        request_stage.datetime = dt.datetime  # type: ignore[misc]
