"""A path goes in; a refusal comes out where a ledger would not be safe there, as far as the system tells."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from privsql.errors import BudgetError

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPES = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))
_NETWORK = frozenset(
    "nfs nfs3 nfs4 cifs smb smbfs smb2 smb3 9p afs ceph glusterfs lustre beegfs gpfs gfs gfs2 ocfs2 orangefs "
    "pvfs2 ncpfs coda davfs virtiofs vboxsf prl_fs vmhgfs fuse.sshfs fuse.s3fs fuse.gcsfuse fuse.goofys "
    "fuse.rclone fuse.glusterfs fuse.davfs fuse.vmhgfs-fuse fuse.grpcfuse fuse.osxfs fuse.ceph fuse.juicefs "
    "fuse.blobfuse fuse.blobfuse2".split()
)


def refuse_unsafe_place(path: Path) -> None:
    """Raise BudgetError where processes could not share the ledger's log.

    The log is shared memory, which two machines do not have; and it lies beside the ledger, where a file that
    is mounted by itself has a different folder.
    """
    mounts = _mounts()
    kind = file_system(path, mounts)
    if kind in _NETWORK:
        raise BudgetError(
            "budget-network",
            f"the ledger is on a network file system ({kind}), "
            "where locks and shared memory are not reliable",
            "keep it on a local disk of the machine that runs the queries",
        )
    if any(point == os.path.realpath(path) for point, _ in _places(mounts)):
        raise BudgetError(
            "budget-ledger",
            "the ledger is mounted without its folder, and so without its log: processes inside and outside "
            "the mount would not see each other's charges",
            "mount the folder that holds the ledger",
        )


def _mounts() -> str:
    try:
        return _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:  # not Linux: the mounts are unknown, as the documentation says
        return ""


def file_system(path: Path, mounts: str) -> str | None:
    """The file system of the innermost mount above a path; of two at the same point, the later."""
    real = os.path.realpath(path)
    best, kind = -1, None
    for point, found in _places(mounts):
        inside = point == "/" or real == point or real.startswith(point + "/")
        if inside and len(point) >= best:
            best, kind = len(point), found
    return kind


def _places(mounts: str) -> Iterator[tuple[str, str]]:
    """Every mount point with its file system."""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        if len(before.split()) < 5 or not after:
            continue
        point = before.split()[4]
        for escaped, plain in _ESCAPES:
            point = point.replace(escaped, plain)
        yield point, after.split()[0]
