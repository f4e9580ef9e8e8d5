"""The laws of the house, held by walking the source: who imports whom, and what appears nowhere."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import privsql
from privsql.planning.aggregates.estimate import Estimate
from privsql.planning.aggregates.measure_aggregates import FAMILIES

ROOT = Path(privsql.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
GROUND = [
    "suggestions",
    "errors",
    "names",
    "neighbours",
    "types",
    "schema",
    "policy",
    "tables",
    "progress",
    "privacy",
    "request",
    "theory",
]
ROOMS = [
    "algebra",
    "sql",
    "equivalence",
    "analysis",
    "planning",
    "budget",
    "answers",
    "render",
    "engines",
    "noise",
    "results",
    "audit",
    "requests",
    "release",
    "session",
]
TOP = [
    "connecting",
    "mechanisms",
    "teaching",
    "attacks",
    "frame",
    "pandas",
    "dbapi",
    "sqlalchemy",
    "drafting",
    "cli",
    "demo",
    "__main__",
    "__init__",
]
MOST_LINES = 520
LONG: dict[str, int] = {}  # files that may be longer, with their caps; better none


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def dotted(node: ast.expr) -> str:
    """A name and the names after its dots; what is no name is left out, as to write all of it takes far longer."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


@cache
def imports(tree: ast.AST) -> list[str]:
    """Every module that is imported, anywhere in a file, functions included."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute, so that they can be checked"
            found += [f"{node.module}.{each.name}" for each in node.names]
        elif isinstance(node, ast.Call) and dotted(node.func).endswith(
            ("import_module", "__import__", "optional")
        ):
            found += [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)]
    return found


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def of_every_file(check: Callable[[Path], None]) -> Callable[[], None]:
    """One test for all files: a test each takes longer than to look at it."""

    def test() -> None:
        for path in FILES:
            check(path)

    test.__doc__ = check.__doc__
    return test


def test_every_file_is_in_a_known_room():
    assert {room(path) for path in FILES} <= {*GROUND, *ROOMS, *TOP}
    assert len(FILES) > 40


def allowed(own: str) -> set[str]:
    if own in GROUND:
        return set(GROUND)
    if own in ROOMS:
        return {*GROUND, *ROOMS[: ROOMS.index(own) + 1]}
    return {*GROUND, *ROOMS, *TOP}


def kinds_of(base: type) -> set[str]:
    return {each.__name__ for each in base.__subclasses__()}.union(*map(kinds_of, base.__subclasses__()))


@of_every_file
def test_nobody_outside_asks_which_kind_an_estimate_is_of(path):
    """What is asked of an estimate is a method. Only weighted sums are known elsewhere: projections move them."""
    kinds = kinds_of(Estimate)
    assert FAMILIES and {"Linear", "Ratio"} <= kinds, "the families are imported"
    if not name(path).startswith("planning/aggregates/"):
        named = {each.rsplit(".", 1)[-1] for each in imports(tree_of(path))}
        assert not named & (kinds - {"Linear"}), f"{name(path)} names a kind of estimate"


@of_every_file
def test_a_room_imports_only_the_ground_floor_and_earlier_rooms(path):
    used = {each.split(".")[1] for each in imports(tree_of(path)) if each.startswith("privsql.")}
    assert used - {"__version__"} <= allowed(room(path)), f"{name(path)} reaches up"


def test_the_ground_floor_has_an_order_too():
    """suggestions and types stand on nothing; nobody below goes up."""
    order = {
        "suggestions": 0,
        "types": 0,
        "privacy": 0,
        "neighbours": 0,
        "errors": 1,
        "names": 2,
        "tables": 2,
        "schema": 3,
    }
    order["policy"] = 4
    for path, tree in ((path, tree_of(path)) for path in FILES):
        if room(path) in order:
            for each in imports(tree):
                parts = each.split(".")
                if parts[0] == "privsql" and parts[1] != room(path):
                    assert order[parts[1]] < order[room(path)], f"{name(path)} imports {each}"


@pytest.mark.parametrize(
    ("module", "rooms"),
    [
        ("sqlglot", {"sql", "planning", "render"}),  # render: write_above.py alone, as the test below says
        ("duckdb", {"engines"}),
        ("sqlite3", {"budget", "answers"}),
        ("random", set()),
        ("numpy.random", set()),
        ("pyarrow", {"results", "engines"}),
        ("polars", {"results"}),
        ("matplotlib", {"results", "audit"}),
        ("dp_accounting", {"budget"}),
        ("scipy", {"attacks"}),
        ("socket", set()),
        ("urllib", set()),
        ("pickle", set()),
    ],
)
def test_external_packages_are_imported_in_few_rooms(module, rooms):
    users = {
        room(path)
        for path, tree in ((path, tree_of(path)) for path in FILES)
        for each in imports(tree)
        if each == module or each.startswith(f"{module}.")
    }
    if module == "duckdb":
        users -= {
            "cli",
            "demo",
            "audit",
        }  # they stand outside and make a database of their own, as any user would
    assert users <= rooms


def test_sqlglot_writes_only_what_stands_above_the_noise():
    """Every statement that reads private rows is written from our own tree."""
    users = {
        name(path)
        for path in FILES
        if room(path) == "render" and any(each.startswith("sqlglot") for each in imports(tree_of(path)))
    }
    assert users == {"render/write_above.py"}


@cache
def attributes(tree: ast.AST) -> set[str]:
    return {dotted(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def test_the_systems_randomness_is_read_in_one_file():
    for path, tree in ((path, tree_of(path)) for path in FILES):
        used = {each.split(".")[0] for each in imports(tree)} & {"secrets"} or {
            each for each in attributes(tree) if each.endswith((".urandom", ".getrandom", ".SystemRandom"))
        }
        assert not used or name(path) == "noise/randomness.py", name(path)
        drawing = {each for each in attributes(tree) if each.startswith(("np.random", "numpy.random"))}
        assert not drawing, name(path)


@of_every_file
def test_no_environment_variable_is_read(path):
    """No setting, SQL or environment variable can seed or switch off the noise."""
    read = {
        each for each in attributes(tree_of(path)) if each.startswith(("os.environ", "os.getenv", "environ."))
    }
    assert not read, name(path)
    assert "os.getenv" not in imports(tree_of(path))
    assert "os.environ" not in imports(tree_of(path))


def test_exact_tables_stay_between_engine_and_noise():
    """results/ and everything above it cannot name an ExactTable."""
    for path, tree in ((path, tree_of(path)) for path in FILES):
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {
            each.split(".")[-1] for each in imports(tree)
        }
        if "ExactTable" in names:
            assert room(path) in {"tables", "engines", "noise"}, name(path)


def test_only_noise_reads_exact_tables():
    for path, tree in ((path, tree_of(path)) for path in FILES):
        read = {each.split(".")[-1] for each in attributes(tree)} & {"exact_keys", "exact_columns"}
        if read:
            assert room(path) in {"tables", "engines", "noise"}, name(path)


def test_noise_that_a_caller_gives_is_for_teaching_only():
    """No session, no door and no other mechanism can reach privsql.teaching."""
    for path in FILES:
        used = {each for each in imports(tree_of(path)) if each.startswith("privsql.teaching")}
        assert not used or room(path) in {"teaching", "__init__"}, name(path)


@of_every_file
def test_the_first_line_says_what_goes_in_and_out(path):
    assert ast.get_docstring(tree_of(path)), f"{name(path)} has no first line"


@of_every_file
def test_files_stay_readable(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LONG.get(name(path), MOST_LINES), f"{name(path)} has {lines} lines: look for a seam"


@of_every_file
def test_nothing_is_evaluated_or_asserted_away(path):
    called = {dotted(node.func) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)}
    assert not called & {"eval", "exec", "compile", "os.system", "print"} or room(path) in {"cli", "demo"}


def test_public_names_are_there():
    for each in privsql.__all__:
        assert hasattr(privsql, each)
