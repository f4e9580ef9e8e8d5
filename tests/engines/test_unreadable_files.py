"""Parquet files with values that DuckDB refuses as it reads them: the file is refused, and no query fails after its charge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privsql

GOOD = 5_000  # rows before and after the bad one, in row groups of their own


def text_that_is_not_utf8() -> pa.Array:
    raw = pa.array([b"good"] * GOOD + [b"\xff\xfe"] + [b"good"] * GOOD)
    return pa.StringArray.from_buffers(len(raw), raw.buffers()[1], raw.buffers()[2])


BAD = {
    "text": text_that_is_not_utf8,
    "moment in milliseconds": lambda: pa.array(
        [10**12] * GOOD + [2**62] + [10**12] * GOOD, type=pa.timestamp("ms")
    ),
    "time past midnight": lambda: pa.array([5] * GOOD + [2**31 - 1] + [5] * GOOD, type=pa.time32("ms")),
    "text in a list": lambda: pa.ListArray.from_arrays(
        pa.array(np.arange(2 * GOOD + 2), type=pa.int32()), text_that_is_not_utf8()
    ),
}


def written(path: Path, column: pa.Array) -> Path:
    pq.write_table(pa.table({"id": np.arange(len(column)), "v": column}), path, row_group_size=1_000)
    return path


@pytest.mark.parametrize("what", BAD)
def test_a_file_with_a_value_that_cannot_be_read_is_refused(tmp_path: Path, what: str) -> None:
    with pytest.raises(privsql.SourceError) as caught:
        privsql.connect(written(tmp_path / "t.parquet", BAD[what]()))
    assert caught.value.code == "source-file"
    assert not any(value in str(caught.value) for value in ("xff", "4611686018427387904", "2147483647"))


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", None, "é"] * 100),
        pa.array([10**12, None, -(10**15)] * 100, type=pa.timestamp("ms")),
        pa.array([0, None, 86_399_999] * 100, type=pa.time32("ms")),
        pa.array([[["a"]], None, []] * 100),
        pa.array([{"a": "b"}] * 300),
    ],
)
def test_other_files_are_read(tmp_path: Path, values: pa.Array) -> None:
    with privsql.connect(written(tmp_path / "t.parquet", values)) as session:
        assert session.query("SELECT COUNT(*) AS n FROM t", epsilon=10_000).fetchall() == [(300,)]
