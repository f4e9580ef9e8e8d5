"""Requests go in, replies come out: a process of our own that can be killed at any moment.

It runs worker_process.py and nothing else of privsql, gets nothing of this process but its standard input and
output, and hands back JSON and plain buffers, never anything that can run.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from privsql.engines import worker_process
from privsql.engines.worker_process import LENGTHS, from_json, to_json

START = 60.0  # seconds that a process may take to start
_CHUNK = 1 << 16
# The folders of the packages that the process imports; it gets no environment to find them.
PACKAGES = sorted({str(Path(str(module.__file__)).resolve().parent.parent) for module in (duckdb, np)})

Reply = tuple[dict[str, Any], bytearray]  # a message and the buffers after it


class Lost(Exception):
    """The process has ended, its time is up, or what it sent is no reply."""


class ChildProcess:
    """One process that answers requests one by one."""

    def __init__(self, request: Mapping[str, Any], most: int | None = None) -> None:
        """Start the process and send it its opening request, without waiting for it.

        Args:
            request: how it opens its database.
            most: the bytes that a reply may have.
        """
        self._most = most
        script = str(Path(worker_process.__file__).resolve())
        self._process = subprocess.Popen(
            [sys.executable or "python3", "-I", "-X", "utf8", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env={"OPENBLAS_NUM_THREADS": "1"},  # nothing of our environment, which may hold secrets
            start_new_session=True,  # Ctrl-C is for this process
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        try:
            self._write(request, (), time.monotonic() + START)
        except BaseException:
            self.kill()
            raise

    def ask(self, request: Mapping[str, Any], until: float, buffers: Sequence[bytes] = ()) -> Reply:
        """Send a request and return its reply, up to a point of time.monotonic()."""
        try:
            self._write(request, buffers, until)
            return self.reply(until)
        except OSError:
            raise Lost from None

    def reply(self, until: float) -> Reply:
        """The reply to the oldest request that has none yet."""
        length, size = LENGTHS.unpack(self._read(LENGTHS.size, until))
        if self._most is not None and length + size > self._most:
            raise Lost
        return from_json(self._read(length, until)), self._read(size, until)

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def _write(self, request: Mapping[str, Any], buffers: Sequence[bytes], until: float) -> None:
        message = to_json(request)
        head = LENGTHS.pack(len(message), sum(map(len, buffers)))
        for part in (head + message, *buffers):
            rest = memoryview(part)
            while rest:
                _wait(self._to, selectors.EVENT_WRITE, until)
                with contextlib.suppress(BlockingIOError):
                    rest = rest[os.write(self._to, rest[:_CHUNK]) :]

    def _read(self, size: int, until: float) -> bytearray:
        buffer = bytearray(size)
        rest = memoryview(buffer)
        while rest:
            _wait(self._from, selectors.EVENT_READ, until)
            count = os.readv(self._from, [rest])
            if count == 0:
                raise Lost
            rest = rest[count:]
        return buffer

    def kill(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process.wait()


def _wait(file: int, event: int, until: float) -> None:
    left = until - time.monotonic()
    if left <= 0:  # also where it is ready by now: what is late fails for certain
        raise Lost
    with selectors.DefaultSelector() as selector:
        selector.register(file, event)
        if not selector.select(left):
            raise Lost
