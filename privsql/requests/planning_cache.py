"""A request and a schema go in; a cached plan comes out, if planning again would give the same one.

A plan depends on the request, the policy, the schema, public rows and prepared copies. The first three are
compared. For the others the cache records what planning looked up, and looks it up again before it reuses a
plan. Planning never reads private rows, so a cached plan tells nothing about them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Generic, TypeVar, cast

from privsql.algebra.relations import Scan
from privsql.errors import PrivsqlError
from privsql.planning.public_look import Read
from privsql.planning.rewrites.prepared import Copies, Copy
from privsql.schema import Schema

Planned = TypeVar("Planned")

MOST_PLANS = 128
_PLAIN = (str, bool, int, float)  # most arguments: whether they are mappings takes long to ask
_MOST_ROWS = 10_000  # public rows that a plan rests on; more take as long to compare as to plan with
_MOST_CELLS = 10_000  # of a plan; a million keys take 100 MB, and to explain a query is free


@dataclass
class Lookups:
    """What planning asked the engine, and the replies."""

    read: Read
    copies: Copies
    rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    found: dict[Scan, Copy | None] = field(default_factory=dict)

    def recorded_read(self, sql: str) -> list[tuple[Any, ...]]:
        rows = self.rows[sql] = self.read(sql)
        return rows

    def recorded_copies(self, scan: Scan) -> Copy | None:
        copy = self.found[scan] = self.copies(scan)
        return copy

    @property
    def small(self) -> bool:
        return sum(map(len, self.rows.values())) <= _MOST_ROWS

    def still_hold(self) -> bool:
        """Whether the engine would reply the same now."""
        try:
            return all(self.copies(scan) == copy for scan, copy in self.found.items()) and all(
                self.read(sql) == rows for sql, rows in self.rows.items()
            )
        except PrivsqlError:  # planning again will report the error
            return False


class PlanCache(Generic[Planned]):
    """The latest plans of one engine under one policy; safe for threads.

        cache: PlanCache[Plan] = PlanCache(engine.read_public, engine.prepared, lambda plan: plan.cells)
        plan = cache.plan(request, schema, lambda read, copies: make_plan(request, read, copies))

    A plan is kept under one schema: with another one all are made anew. What cannot be planned is not kept,
    nor is a plan of many cells, by `cells`.
    """

    def __init__(self, read: Read, copies: Copies, cells: Callable[[Planned], int]) -> None:
        self._read, self._copies, self._cells = read, copies, cells
        self._lock = threading.Lock()
        self._schema: Schema | None = None
        self._kept: OrderedDict[Hashable, tuple[Planned, Lookups]] = OrderedDict()

    def plan(self, request: Any, schema: Schema, make: Callable[[Read, Copies], Planned]) -> Planned:
        """What was made for this request, or what `make` makes by looking through the functions it is given.

        Args:
            request: all that was asked and how, a frozen dataclass.
            schema: of the tables as they are now.
            make: plans the request under this schema; raises what it refuses.
        """
        key = typed(request)
        if key is None:
            return make(self._read, self._copies)
        with self._lock:
            if self._schema is not schema and self._schema != schema:
                self._kept.clear()
            self._schema = schema
            kept = self._kept.get(key)
        if kept is not None and kept[1].still_hold():
            with self._lock:
                if key in self._kept:
                    self._kept.move_to_end(key)
            return kept[0]
        lookups = Lookups(self._read, self._copies)
        planned = make(lookups.recorded_read, lookups.recorded_copies)
        if lookups.small and self._cells(planned) <= _MOST_CELLS:
            with self._lock:
                if self._schema is schema:
                    self._kept[key] = planned, lookups
                    self._kept.move_to_end(key)
                    while len(self._kept) > MOST_PLANS:
                        self._kept.popitem(last=False)
        return planned


def typed(request: Any) -> Hashable | None:
    """The fields of a request with their types, by which it is found again; None if they cannot be compared.

    1, 1.0 and True are equal in Python, and not all of them are accepted where one is.
    """
    values = [getattr(request, name) for name in _names(cast(Hashable, type(request)))]
    key = type(request), tuple([(type(value), _frozen(value)) for value in values])
    try:
        hash(key)
    except TypeError:  # a list where a number belongs: planning says what is wrong
        return None
    return key


@cache  # of a class, whose fields never change
def _names(kind: Hashable) -> tuple[str, ...]:
    return tuple(each.name for each in fields(cast(Any, kind)))


def _frozen(value: Any) -> Any:
    """A mapping as a tuple of its items, which nobody can change later."""
    if value is not None and not isinstance(value, _PLAIN) and isinstance(value, Mapping):
        return tuple((name, type(each), each) for name, each in value.items())
    return value
