"""A request and a schema go in; a cached plan comes out, if planning again would give the same one.

A plan depends on the request, the policy, the schema, public rows and prepared copies. The first three are
compared. For the others the cache records what planning looked up, and looks it up again before it reuses a
plan. Planning never reads private rows, so a cached plan tells nothing about them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Generic, TypeVar

from privsql.algebra.relations import Scan
from privsql.errors import PrivsqlError
from privsql.planning.public_look import Read
from privsql.planning.rewrites.prepared import Copies, Copy
from privsql.schema import Schema

Planned = TypeVar("Planned")

MOST_PLANS = 128
_MOST_ROWS = 10_000  # public rows that a plan depends on; comparing more takes as long as planning


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

        cache: PlanCache[Plan] = PlanCache(engine.read_public, engine.prepared)
        plan = cache.plan(request, schema, lambda read, copies: make_plan(request, read, copies))

    All plans belong to one schema: a different schema empties the cache. Refusals are not cached.
    """

    def __init__(self, read: Read, copies: Copies) -> None:
        self._read, self._copies = read, copies
        self._lock = threading.Lock()
        self._schema: Schema | None = None
        self._kept: OrderedDict[Hashable, tuple[Planned, Lookups]] = OrderedDict()

    def plan(self, request: Hashable, schema: Schema, make: Callable[[Read, Copies], Planned]) -> Planned:
        """The cached plan for this request, or the one that `make` returns.

        Args:
            request: the query and all its arguments, a frozen dataclass with hashable fields.
            schema: the schema of the tables now.
            make: plans the request through the functions it is given; raises its refusals.
        """
        key = typed(request)
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
        if lookups.small:
            with self._lock:
                if self._schema is schema:
                    self._kept[key] = planned, lookups
                    self._kept.move_to_end(key)
                    while len(self._kept) > MOST_PLANS:
                        self._kept.popitem(last=False)
        return planned


def typed(request: Hashable) -> Hashable:
    """The request with the types of its values: 1, 1.0 and True are equal in Python, but not always all
    accepted.
    """
    if not is_dataclass(request):
        return type(request), request
    values = [getattr(request, each.name) for each in fields(request)]
    return type(request), tuple((type(value), value) for value in values)
