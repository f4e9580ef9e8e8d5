"""Shows how many seconds a slow query has run, on a terminal or in a notebook; nothing elsewhere.

Only elapsed time is shown: how much of the work is done depends on the data. With `time_quantum` it covers
the padding too, so that it ends when the answer appears and no sooner. `privsql.progress.enabled = False`
switches it off.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TextIO

enabled = True
PATIENCE = 2.0  # seconds before anything is shown
_STEP = 1.0  # seconds


@contextlib.contextmanager
def elapsed_time() -> Iterator[None]:
    """Show the elapsed time while the block runs, if somebody is there to see it."""
    stream = sys.stderr
    if not _is_watched(stream):
        yield
        return
    done = threading.Event()
    thread = threading.Thread(
        target=_show, args=(stream, done, time.monotonic()), name="privsql-progress", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _is_watched(stream: TextIO | None) -> bool:
    if stream is None or not enabled:
        return False
    try:
        return stream.isatty() or _in_notebook()
    except (AttributeError, ValueError):  # closed, or not a file
        return False


def _in_notebook() -> bool:
    """Whether this is a Jupyter kernel; then IPython is already imported."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return getattr(shell, "kernel", None) is not None


def _show(stream: TextIO, done: threading.Event, start: float) -> None:
    if done.wait(PATIENCE):
        return
    text = ""
    with contextlib.suppress(OSError, ValueError):  # nobody is watching any more
        while True:
            text = f"query running: {time.monotonic() - start:.0f} s"
            stream.write(f"\r{text}")
            stream.flush()
            if done.wait(_STEP):
                break
        stream.write(f"\r{' ' * len(text)}\r")
        stream.flush()
