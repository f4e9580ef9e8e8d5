"""A frame goes in; which others it shares memory with comes out: frames made from each other by pandas often
do.

pandas copies a column when it is written to, so that memory which two frames share holds the same rows.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class _Piece:
    """Memory from one address to another, for as long as its holder lives."""

    holder: weakref.ref[Any]
    low: int
    high: int
    token: str


@dataclass
class Lineage:
    """Tokens of frames by their memory; it keeps none of them alive."""

    _pieces: list[_Piece] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, frame: pd.DataFrame, token: str) -> None:
        """Remember that the memory of a frame is of this token."""
        with self._lock:
            seen = {(each.low, each.high, each.token) for each in self._alive()}
            for holder, low, high in _memory(frame):
                if (low, high, token) not in seen:
                    self._pieces.append(_Piece(weakref.ref(holder), low, high, token))

    def tokens(self, frame: pd.DataFrame) -> list[str]:
        """The tokens whose memory a frame shares, each once."""
        with self._lock:
            known = self._alive()
        own = list(_memory(frame)) if known else []
        shared = (
            each.token for each in known if any(low < each.high and each.low < high for _, low, high in own)
        )
        return list(dict.fromkeys(shared))

    def _alive(self) -> list[_Piece]:
        self._pieces = [each for each in self._pieces if each.holder() is not None]
        return self._pieces


def _memory(frame: pd.DataFrame) -> Iterator[tuple[Any, int, int]]:
    """Where the values of a frame lie, and what holds them there."""
    for place in range(len(frame.columns)):
        array: Any = frame.iloc[:, place].array
        if isinstance(array, pd.arrays.NumpyExtensionArray):
            array = array.to_numpy(copy=False)
        yield from _of_array(array)


def _of_array(array: Any) -> Iterator[tuple[Any, int, int]]:
    if isinstance(array, np.ndarray):
        if array.size:
            low, high = np.lib.array_utils.byte_bounds(array)
            yield _owner(array), low, high
        return
    inside = [array.codes] if isinstance(array, pd.Categorical) else []
    inside += [
        part
        for name in ("_data", "_mask", "_ndarray")
        if isinstance(part := getattr(array, name, None), np.ndarray)
    ]
    for part in inside:
        yield from _of_array(part)
    chunks = None if inside else getattr(array, "_pa_array", None)
    for chunk in getattr(chunks, "chunks", ()):
        for buffer in chunk.buffers():
            if buffer is not None and buffer.size:
                yield chunks, buffer.address, buffer.address + buffer.size


def _owner(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array that others are views of: it lives as long as any of them."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
