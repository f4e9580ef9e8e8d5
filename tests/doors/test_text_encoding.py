"""Text that is not valid UTF-8 is rejected when a frame is connected, in every kind of frame."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import privsql


def invalid_utf8() -> pa.Array:
    offsets, letters = pa.array([0, 3, 5], pa.int32()).buffers()[1], pa.py_buffer(b"abc\xff\xfe")
    return pa.Array.from_buffers(pa.string(), 2, [None, offsets, letters])


INVALID = {
    "arrow table": pa.table({"s": invalid_utf8()}),
    "arrow column": pd.DataFrame({"s": pd.Series(pd.arrays.ArrowExtensionArray(invalid_utf8()))}),
    "string column": pd.DataFrame({"s": pd.Series(["a", "\ud800"], dtype="string[python]")}),
    "object column": pd.DataFrame({"s": pd.Series(["a", "\ud800"], dtype=object)}),
    "bytes": pd.DataFrame({"s": pd.Series(["a", b"\xff"], dtype=object)}),
}


@pytest.mark.parametrize("frame", INVALID.values(), ids=INVALID)
@pytest.mark.parametrize("storage", ["python", "pyarrow"])
def test_invalid_text_is_rejected_at_connect(frame: Any, storage: str) -> None:
    """Else upper(s) fails after the charge, only on rows with such text, or pandas shows the bytes in an error of its own."""
    with pd.option_context("mode.string_storage", storage), pytest.raises(privsql.PrivsqlError) as caught:
        privsql.connect(frame)
    assert caught.value.code == "source-frame"
    assert "ud800" not in str(caught.value)


def test_text_with_missing_values_is_accepted() -> None:
    frame = pd.DataFrame({"s": pd.Series(["a", None], dtype="string[python]")})
    assert privsql.connect(frame).explain("SELECT COUNT(s) AS n FROM df", epsilon=1)
