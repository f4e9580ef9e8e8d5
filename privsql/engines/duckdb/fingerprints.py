"""A file goes in; a sign comes out that every write to it changes, and nothing else of it: no row is read for
it.

The sign is what the file system keeps of a file and of the logs beside it: number, size, times. It tells of
the owner's writes, not of anyone's rows: whatever is written gives another sign. The file is never opened,
since closing it would loosen DuckDB's lock on it; the times of two writes differ once the clock has moved on.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

# nanoseconds after which a write surely has a later time: twice the coarsest tick of a kernel
_TICK = 20_000_000
_COARSE = 2_100_000_000  # where times are whole seconds, or every other one
# what is in a log may not be seen by others yet, if somebody writes in this program: nobody does by now
_REST = 500_000_000
# as DuckDB calls them now, for folders that cannot be listed
_LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
_LONGEST = 2 * _COARSE  # a time that lies further ahead is no time of this clock


def sign_of(path: Path) -> str:
    """Whoever writes to the file, replaces it, or sets its times back changes this."""
    return str(
        [
            (name, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            for name, status in _files(path)
        ]
    )


Identity = tuple[int, int, int, int]  # of a file: its device, number, size and time of the last write


def identity_of(path: Path) -> Identity:
    """Which file lies there now, and in which state."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def settle(path: Path, shared: bool) -> bool:
    """Wait until a further write would have another time than the last one; False: the times do not go with
    our clock.

    `shared`: others in this program may be writing.
    """
    last = max(each for _, status in _files(path) for each in (status.st_mtime_ns, status.st_ctime_ns))
    ahead = last + max(_TICK if last % 1_000_000_000 else _COARSE, _REST if shared else 0) - time.time_ns()
    if ahead > _LONGEST:
        return False
    time.sleep(max(0, ahead) / 1e9)
    return True


def is_open(path: Path) -> bool:
    """Whether this very file is open in this program: another one may have been put in the place of the one
    that is.
    """
    try:
        numbers = os.listdir("/dev/fd")
    except OSError:
        return True  # a system without this list, Windows, does not let go of an open file's place
    wanted = path.stat()
    for number in numbers:
        with contextlib.suppress(OSError, ValueError):
            if os.path.samestat(os.fstat(int(number)), wanted):
                return True
    return False


def _files(path: Path) -> list[tuple[str, os.stat_result]]:
    """The file and the logs beside it, whose changes are not in it yet."""
    found = [("", path.stat())]
    try:
        names = os.listdir(path.parent)
    except PermissionError:
        names = [f"{path.name}{log}" for log in _LOGS]
    for suffix in sorted(each.removeprefix(path.name) for each in names if each.startswith(f"{path.name}.")):
        if "wal" in suffix:
            with contextlib.suppress(FileNotFoundError):
                found.append((suffix, path.with_name(path.name + suffix).stat()))
    return found
