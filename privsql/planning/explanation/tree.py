"""A tree of lines, as EXPLAIN prints it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Branch:
    """A line of the tree, its detail lines, and its branches."""

    title: str
    details: tuple[str, ...] = ()
    below: tuple[Branch, ...] = ()

    def lines(self, lead: str = "", joint: str = "") -> list[str]:
        inner = lead + {"": "", "├─ ": "│  ", "└─ ": "   "}[joint]
        bar = "│  " if self.below else "   "
        lines = [lead + joint + self.title, *(f"{inner}{bar}{detail}" for detail in self.details)]
        for index, branch in enumerate(self.below):
            lines += branch.lines(inner, "└─ " if index == len(self.below) - 1 else "├─ ")
        return lines
