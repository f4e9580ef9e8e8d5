"""The name of an optional package goes in; the package comes out, or an error that says how to install it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pandas as pd

from privsql.errors import ArgumentError


def optional(module: str, extra: str) -> Any:
    """Import a package that comes with an extra of privsql."""
    try:
        return import_module(module)
    except ImportError:
        problem = f"this needs the package {module.partition('.')[0]}"
        raise ArgumentError("argument-extra", problem, f"pip install 'privsql[{extra}]'") from None


def arrow_table(frame: pd.DataFrame) -> Any:
    """The rows of a frame as a pyarrow Table (extra: privsql[arrow])."""
    return _pyarrow().Table.from_pandas(frame, preserve_index=False)


def need_parquet() -> None:
    """Raise ArgumentError where no Parquet file can be written."""
    _pyarrow()


def _pyarrow() -> Any:
    return optional("pyarrow", "arrow")


def unwritable() -> ArgumentError:
    return ArgumentError(
        "argument-output", "the output file cannot be written; the answer is paid for", "check the path"
    )
