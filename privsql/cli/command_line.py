"""The parts of a suggestion go in; options of the command line and lines of a policy file come out."""

from __future__ import annotations

from dataclasses import dataclass

from privsql.suggestions import Argument, PolicyDoor


@dataclass(frozen=True)
class CommandLine(PolicyDoor):
    """Writes suggestions as a person types them: --delta 1e-6, and lines of the file given as --policy."""

    @staticmethod
    def of(policy: str | None) -> CommandLine:
        """The door for a call with this policy file, if any."""
        return CommandLine("a policy file (--policy FILE)" if policy is None else str(policy))

    def argument(self, argument: Argument) -> str:
        value = argument.value.strip('"')
        return f"--{argument.name.replace('_', '-')} {value}".rstrip()
