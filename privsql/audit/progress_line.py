"""Descriptions of the current step go in; a line on a stream comes out, once the user has waited a while."""

from __future__ import annotations

import time
from typing import TextIO

_QUIET = 1.5  # seconds before the first line
_BETWEEN = 1.0


class ProgressLine:
    """Shows the current step: on a terminal as one line that changes, elsewhere as a line now and then."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._started = stream, time.monotonic()
        self._last, self._shown = self._started + _QUIET - _BETWEEN, 0

    def __call__(self, what: str) -> None:
        now = time.monotonic()
        if now - self._last < _BETWEEN:
            return
        self._last = now
        line = f"{now - self._started:.0f} s: {what} ..."
        if self._stream.isatty():
            self._stream.write(f"\r{line.ljust(self._shown)}")
            self._shown = len(line)
        else:
            self._stream.write(f"{line}\n")
        self._stream.flush()

    def close(self) -> None:
        if self._shown:
            self._stream.write(f"\r{' ' * self._shown}\r")
            self._stream.flush()
