"""The imports of the package go in; docs/architecture.svg and docs/architecture.md come out: the rooms, and
who imports whom.

    python tools/draw_architecture.py            write both
    python tools/draw_architecture.py --check    exit 1 if they are not what the imports say

The order of the rooms is that of tests/house/test_architecture.py, which holds the imports to it. In the
picture an arrow that follows from others is left out (session imports planning, but so does results, which
session imports too); the table has every import.
"""

from __future__ import annotations

import ast
import itertools
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)]

from tests.house import test_architecture as laws  # noqa: E402 -- after the path

DOCS = ROOT / "docs"
ENTRIES = {"__init__", "__main__"}  # they only hand out what the rooms have
ROW, BOX, WIDTH, LETTER = 78, 32, 960, 7.4  # heights and widths in pixels

Graph = Mapping[str, frozenset[str]]  # room -> the rooms that it imports


# -- the graph -----------------------------------------------------------------------------------------------
def imported() -> Graph:
    """Who imports whom, the ground floor aside: everybody stands on that."""
    aside = {*laws.GROUND, *ENTRIES}
    found: dict[str, set[str]] = {room: set() for room in (*laws.ROOMS, *laws.TOP) if room not in aside}
    for path in laws.FILES:
        room = laws.room(path)
        for name in laws.imports(laws.tree_of(path)):
            other = name.split(".")[1] if name.startswith("privsql.") else room
            if room in found and other in found and other != room:
                found[room].add(other)
    return {room: frozenset(others) for room, others in found.items()}


def below(graph: Graph, room: str) -> frozenset[str]:
    """Every room that can be reached from this one."""
    return frozenset().union(*(below(graph, each) | {each} for each in graph[room]))


def necessary(graph: Graph) -> Graph:
    """The graph without imports that follow from others."""
    return {
        room: frozenset(
            each
            for each in others
            if not any(each in below(graph, other) for other in others if other != each)
        )
        for room, others in graph.items()
    }


# -- the layout: levels, and in each an order that keeps arrows short ----------------------------------------
Node = tuple[str, int]  # a room at its level, or the place where an arrow to it crosses a level between


@dataclass(frozen=True)
class Layout:
    places: Mapping[Node, float]  # the middle of each node
    arrows: Sequence[Sequence[Node]]  # from the importing room down to the imported one
    levels: Mapping[str, int]


def laid_out(graph: Graph) -> Layout:
    levels: dict[str, int] = {}
    for room in sorted(graph, key=lambda each: len(below(graph, each))):
        levels[room] = 1 + max((levels[each] for each in graph[room]), default=-1)
    arrows = [
        [(room, levels[room])]
        + [(f"{room}>{other}", level) for level in range(levels[room] - 1, levels[other], -1)]
        + [(other, levels[other])]
        for room, others in sorted(necessary(graph).items())
        for other in sorted(others)
    ]
    near: dict[Node, list[Node]] = defaultdict(list)
    for arrow in arrows:
        for one, two in itertools.pairwise(arrow):
            near[one].append(two)
            near[two].append(one)
    rows: dict[int, list[Node]] = defaultdict(list)
    for node in sorted({*near, *((room, level) for room, level in levels.items())}):
        rows[node[1]].append(node)
    places = {node: place for row in rows.values() for node, place in zip(row, _spaced(row))}
    for _ in range(24):
        for level in sorted(rows):
            wanted = {
                node: _mean([places[each] for each in near[node]], places[node]) for node in rows[level]
            }
            rows[level].sort(key=lambda node: (wanted[node], node))
            places |= zip(rows[level], _spaced(rows[level], [wanted[node] for node in rows[level]]))
    return Layout(places, arrows, levels)


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _width(node: Node) -> float:
    return 26.0 if ">" in node[0] else LETTER * len(node[0]) + 34


def _spaced(row: Sequence[Node], wanted: Sequence[float] | None = None) -> list[float]:
    """Places from left to right: near to where they should be, as far apart as their widths need."""
    places: list[float] = []
    for number, node in enumerate(row):
        own = wanted[number] if wanted else 0.0
        least = places[-1] + (_width(row[number - 1]) + _width(node)) / 2 + 10 if number else own
        places.append(max(least, own))
    middle = _mean(wanted, WIDTH / 2) if wanted else WIDTH / 2
    shift = middle - _mean(places, middle)
    left = places[0] - _width(row[0]) / 2 - 12
    right = WIDTH - 12 - places[-1] - _width(row[-1]) / 2
    return [place + max(-left, min(right, shift)) for place in places]


# -- the picture ---------------------------------------------------------------------------------------------
def picture(graph: Graph) -> str:
    layout = laid_out(graph)
    highest = max(layout.levels.values())
    height = (highest + 2) * ROW + 20

    def y(level: int) -> float:
        return 20 + BOX / 2 + (highest - level) * ROW

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="13">',
        "<title>The rooms of privsql: arrows lead from a room to those it imports</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#7a8699"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for arrow in layout.arrows:
        lines.append(_arrow([(layout.places[node], y(node[1])) for node in arrow]))
    for room, level in sorted(layout.levels.items()):
        fill = "#fdf0e0" if room in laws.TOP else "#e8eff8"
        lines += _box(room, layout.places[room, level], y(level), _width((room, level)), fill)
    lines += _box(f"the ground floor: {', '.join(laws.GROUND)}", WIDTH / 2, y(-1), WIDTH - 24, "#eef3ea")
    return "\n".join([*lines, "</svg>", ""])


def _arrow(points: Sequence[tuple[float, float]]) -> str:
    """A curve through the points, from below the first box to above the last one."""
    first, last = (points[0][0], points[0][1] + BOX / 2), (points[-1][0], points[-1][1] - BOX / 2)
    stops = [first, *points[1:-1], last]
    path = f"M{first[0]:.0f},{first[1]:.0f}"
    for (left, top), (right, bottom) in itertools.pairwise(stops):
        middle = (top + bottom) / 2
        path += f" C{left:.0f},{middle:.0f} {right:.0f},{middle:.0f} {right:.0f},{bottom:.0f}"
    return f'<path d="{path}" fill="none" stroke="#7a8699" stroke-width="1.2" marker-end="url(#tip)"/>'


def _box(text: str, x: float, y: float, width: float, fill: str) -> list[str]:
    return [
        f'<rect x="{x - width / 2:.0f}" y="{y - BOX / 2:.0f}" width="{width:.0f}" height="{BOX}" '
        f'rx="6" fill="{fill}" stroke="#52617a"/>',
        f'<text x="{x:.0f}" y="{y + 4.5:.0f}" text-anchor="middle" fill="#1c2430">{escape(text)}</text>',
    ]


# -- the page ------------------------------------------------------------------------------------------------
def page(graph: Graph) -> str:
    rows = [f"| `{room}` | {purpose(room)} | {_listed(graph[room])} |" for room in graph]
    ground = [f"| `{room}` | {purpose(room)} |" for room in laws.GROUND]
    return "\n".join(
        [
            "# Architecture",
            "",
            "<!-- Written by tools/draw_architecture.py from the imports and the first sentence of each "
            "room. Do not edit. -->",
            "",
            "Data flows one way: SQL text is parsed (`sql`), bounded (`analysis`) and planned (`planning`); "
            "the plan is charged (`budget`), rendered (`render`), run (`engines`) and noised (`noise`); what "
            "follows is post-processing (`results`). `session` is the map. A room imports the ground floor "
            "and rooms further down, never sideways or up; `tests/house/test_architecture.py` checks this.",
            "",
            "![The rooms of privsql and their imports](architecture.svg)",
            "",
            "Arrows lead from a room to those it imports; one that follows from others is left out. "
            "Doors are orange. The table has every import.",
            "",
            "| room | what goes in, what comes out | imports |",
            "|---|---|---|",
            *rows,
            "",
            "Everybody may import the ground floor:",
            "",
            "| | |",
            "|---|---|",
            *ground,
            "",
        ]
    )


def _listed(rooms: frozenset[str]) -> str:
    order = [*laws.ROOMS, *laws.TOP]
    return ", ".join(f"`{each}`" for each in sorted(rooms, key=order.index))


def purpose(room: str) -> str:
    """The first paragraph of the room's docstring."""
    path = laws.ROOT / room / "__init__.py"
    tree = ast.parse((path if path.exists() else laws.ROOT / f"{room}.py").read_text(encoding="utf-8"))
    text = (ast.get_docstring(tree) or "").split("\n\n")[0]
    return " ".join(text.split()).replace("|", "\\|")


def main(arguments: Sequence[str]) -> int:
    graph = imported()
    wanted = {DOCS / "architecture.svg": picture(graph), DOCS / "architecture.md": page(graph)}
    stale = [
        path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    if "--check" not in arguments:
        for path in stale:
            path.write_text(wanted[path], encoding="utf-8")
        return 0
    for path in stale:
        print(
            f"{path.relative_to(ROOT)} is stale; write it anew: python tools/draw_architecture.py",
            file=sys.stderr,
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
