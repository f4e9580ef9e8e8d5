"""A text is parsed once for all readers: parsing depends on the text alone, and takes a third of a query's
time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from sqlglot import exp

from privsql.sql import read
from privsql.sql.parse.constants import NOTHING, Constants
from privsql.sql.parse.gate import parse

REMEMBERED = 512  # texts


@contextmanager
def parsed_once() -> Iterator[None]:
    """Inside, whoever asks for the tree of a text gets the one that is there; refusals are worked out each time."""
    remembered = lru_cache(maxsize=REMEMBERED)(parse)

    def of_texts(text: str, dialect: str, constants: Constants = NOTHING) -> exp.Expr:
        plain = isinstance(text, str) and isinstance(dialect, str) and constants == NOTHING
        return remembered(text, dialect) if plain else parse(text, dialect, constants)

    read.parse = of_texts
    try:
        yield
    finally:
        read.parse = parse
