"""The time and memory arguments of connect() go in; checked limits come out, and a source opened
under them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from privsql.engines.addresses import is_address
from privsql.engines.base import Engine
from privsql.engines.duckdb.open_source import open_engine
from privsql.engines.padding import PaddedEngine
from privsql.engines.postgres.server_errors import no_driver
from privsql.engines.worker import WorkerEngine
from privsql.errors import ArgumentError

_LONGEST = 1e6  # seconds
_LEAST_MEMORY = 64 << 20
_MEMORY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B\s*", re.IGNORECASE)


@dataclass(frozen=True)
class ResourceLimits:
    """The deadline of a query in seconds, the engine's memory in bytes, and the quantum of time padding in
    seconds.
    """

    deadline: float | None = None
    memory: int | None = None
    quantum: float | None = None

    @staticmethod
    def of(deadline: object, memory_limit: object, time_quantum: object) -> ResourceLimits:
        return ResourceLimits(
            _seconds(deadline, "deadline", "argument-deadline"),
            _bytes(memory_limit),
            _seconds(time_quantum, "time_quantum", "argument-quantum"),
        )


def open_limited(source: Any, limits: ResourceLimits) -> Engine:
    """Open the source: with a deadline in a worker process, with a quantum behind padding."""
    engine: Engine
    if is_address(source):
        engine = _open_postgres(source, limits)
    elif limits.deadline is None:
        engine = open_engine(source, limits.memory)
    else:
        engine = WorkerEngine(source, limits.deadline, limits.memory)
    return engine if limits.quantum is None else PaddedEngine(engine, limits.quantum)


def _open_postgres(address: str, limits: ResourceLimits) -> Engine:
    try:
        from privsql.engines.postgres.postgres_engine import open_postgres
    except ImportError:
        raise no_driver() from None
    return open_postgres(address, limits.deadline, limits.memory)


def _seconds(value: object, name: str, code: str) -> float | None:
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not math.isfinite(value)
        or not 0 < value <= _LONGEST
    ):
        raise ArgumentError(code, f"{name} must be a number of seconds above 0", f"{name}=30.0")
    return float(value)


def _bytes(value: object) -> int | None:
    """A number of bytes, from a number or a text such as 500MB or 2GiB."""
    if value is None:
        return None
    if isinstance(value, str) and (match := _MEMORY.fullmatch(value)):
        value = int(float(match[1]) * (1024 if match[3] else 1000) ** " KMGT".index(match[2].upper() or " "))
    if isinstance(value, bool) or not isinstance(value, int) or not _LEAST_MEMORY <= value < 1 << 60:
        raise ArgumentError("argument-memory", "memory_limit must be at least 64 MiB", 'memory_limit="2GB"')
    return value
