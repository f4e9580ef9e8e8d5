"""Runs a command beside a private PostgreSQL server, and stops the server again.

    python tools/with_postgres.py make test

The server lies in a temporary folder and listens on a socket there alone. PRIVSQL_POSTGRES tells the command
where it is. Where PostgreSQL is not installed, Debian's package is (as root); nothing else is touched.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_VERSIONS = Path("/usr/lib/postgresql")


def _programs() -> Path | None:
    """The folder of initdb and pg_ctl, of the newest version."""
    found = sorted(_VERSIONS.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    known = shutil.which("initdb")
    return None if known is None else Path(known).resolve().parent


def _install() -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        sys.exit("PostgreSQL is not installed. On Debian or Ubuntu: apt-get install postgresql")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # no cluster of Debian's own, which would listen on a port
    Path("/etc/postgresql-common").mkdir(exist_ok=True)
    settings = Path("/etc/postgresql-common/createcluster.conf")
    if not settings.exists():
        settings.write_text("create_main_cluster = false\n")
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "postgresql"]):
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Start a server, and give its address."""
    programs = _programs()
    if programs is None:
        _install()
        programs = _programs()
        assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="privsql-pg-"))
    # initdb refuses to run as root
    as_owner = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if as_owner:
        owner = pwd.getpwnam("postgres")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    data, run = folder / "data", {"check": True, "stdout": subprocess.DEVNULL, "cwd": "/"}
    initdb = [
        str(programs / "initdb"),
        "-D",
        str(data),
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C.UTF-8",
    ]
    control = [*as_owner, str(programs / "pg_ctl"), "-D", str(data), "-w"]
    try:
        subprocess.run([*as_owner, *initdb], **run)  # type: ignore[call-overload]
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        subprocess.run([*control, "-o", options, "-l", str(folder / "log"), "start"], **run)  # type: ignore[call-overload]
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **{**run, "check": False})  # type: ignore[call-overload]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    with server() as address:
        environment = {**os.environ, "PRIVSQL_POSTGRES": address}
        return subprocess.run(sys.argv[1:], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
