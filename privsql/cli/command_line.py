"""Parts of a suggestion go in; options of the command line and lines of a policy file come out."""

from __future__ import annotations

from dataclasses import dataclass

from privsql.suggestions import Argument, PolicyDoor


@dataclass(frozen=True)
class CommandLine(PolicyDoor):
    """What a person types: --delta 1e-6, and lines of the file that --policy names."""

    @staticmethod
    def of(policy: str | None) -> CommandLine:
        """`policy`: the file that was named, if any."""
        return CommandLine("a policy file (--policy FILE)" if policy is None else str(policy))

    def argument(self, argument: Argument) -> str:
        value = argument.value.strip('"')
        return f"--{argument.name.replace('_', '-')} {value}".rstrip()
