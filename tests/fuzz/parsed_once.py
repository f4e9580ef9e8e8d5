"""A text is parsed once for all readers: parsing depends on the text alone, and takes a third of a query's
time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from sqlglot import exp

from privsql.errors import Place
from privsql.sql.parse import gate
from privsql.sql.parse.constants import Constants

REMEMBERED = 512  # texts
_PARSED = gate._parsed


@contextmanager
def parsed_once() -> Iterator[None]:
    """Inside, whoever asks for the tree of a text gets a copy of the one that is there; refusals are worked out
    each time.
    """
    remembered = lru_cache(maxsize=REMEMBERED)(_PARSED)

    def of_texts(text: str, dialect: str, constants: Constants) -> tuple[exp.Expr, str, Place | None]:
        if not isinstance(text, str) or not isinstance(dialect, str):
            return _PARSED(text, dialect, constants)
        statement, name, start = remembered(text, dialect, constants)
        return statement.copy(), name, start

    gate._parsed = of_texts
    try:
        yield
    finally:
        gate._parsed = _PARSED
