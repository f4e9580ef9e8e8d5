"""The command line: arguments go in; an answer goes to standard output, an error to standard error, with exit
code 2.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from privsql.cli.command_line import CommandLine
from privsql.cli.parser import parser
from privsql.errors import PrivsqlError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command of `privsql`.

    Arguments:
        argv: the arguments, without the name of the program; by default those of the process.

    Returns:
        The exit code: 0, 1 if an audit found a broken promise, 2 after an error, 130 after an interrupt.

    Raises:
        SystemExit: the arguments cannot be parsed, or only help or the version was asked for.
    """
    arguments = parser().parse_args(argv)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a character shows "?"
    try:
        print(arguments.run(arguments))
        sys.stdout.flush()
        return int(getattr(arguments, "code", 0))
    except PrivsqlError as error:
        print(error.said_at(CommandLine.of(getattr(arguments, "policy", None))), file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader closed the pipe (| head); keep the interpreter from flushing again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt as interrupt:
        print(interrupt if interrupt.args else "interrupted", file=sys.stderr)
        return 130
    return 0
