"""A source goes in; whether it is the address of a server comes out."""

from __future__ import annotations

from typing import Any


def is_address(source: Any) -> bool:
    """Whether a source is the address of a PostgreSQL database."""
    return isinstance(source, str) and source.startswith(("postgresql://", "postgres://"))
