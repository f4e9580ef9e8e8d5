"""A file goes in; a fingerprint comes out that changes with every write to the file and depends on nothing
else. No row is read for it.

The fingerprint is what the file system records about the file and the logs beside it: inode, size and times.
It reveals when the owner writes, but nothing about anyone's rows: every write changes it, whatever was
written. The file is never opened, since closing it would release DuckDB's lock on it. The times of two writes
differ once the clock has moved on.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

# nanoseconds after which a write surely has a later time: twice the coarsest tick of a kernel
_TICK = 20_000_000
_COARSE = 2_100_000_000  # for file systems that store times in steps of one or two seconds
# a write that another thread of this program has logged may not be visible yet; after this time it is
_REST = 500_000_000
# the names that DuckDB gives them now, for folders that cannot be listed
_LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
_LONGEST = 2 * _COARSE  # a time further in the future than this does not come from our clock


def sign_of(path: Path) -> str:
    """The fingerprint of a file: it changes if someone writes to the file, replaces it or resets its
    times.
    """
    return str(
        [
            (name, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            for name, status in _files(path)
        ]
    )


Identity = tuple[int, int, int, int]  # of a file: its device, inode, size and time of the last write


def identity_of(path: Path) -> Identity:
    """Which file is there now, and in which state."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def settle(path: Path, shared: bool) -> bool:
    """Wait until a further write would have a later time than the last one; False if the file's times do not
    agree with our clock.

    `shared`: other threads of this program may be writing.
    """
    last = max(each for _, status in _files(path) for each in (status.st_mtime_ns, status.st_ctime_ns))
    ahead = last + max(_TICK if last % 1_000_000_000 else _COARSE, _REST if shared else 0) - time.time_ns()
    if ahead > _LONGEST:
        return False
    time.sleep(max(0, ahead) / 1e9)
    return True


def is_open(path: Path) -> bool:
    """Whether this very file is open in this program; another one may have replaced it since."""
    try:
        numbers = os.listdir("/dev/fd")
    except OSError:
        return True  # Windows has no such list, but does not let an open file be replaced
    wanted = path.stat()
    for number in numbers:
        with contextlib.suppress(OSError, ValueError):
            if os.path.samestat(os.fstat(int(number)), wanted):
                return True
    return False


def _files(path: Path) -> list[tuple[str, os.stat_result]]:
    """The file and the logs beside it, which hold changes that are not in the file yet."""
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
