"""The text of a module goes in; its mutants come out, each one small change of its syntax tree.

Never changed: texts (docstrings, error messages, names), annotations, decorators, assertions (`assert`, `strict=`), and
what a `raise` says. A `raise` may go as a whole.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}
ERROR = re.compile(r"(Error|Refused|refused|UnknownName|warn|log)$")

Change = Callable[[], None]


@dataclass(frozen=True)
class Site:
    """One place and what to do there; `at_import`: run when the module is imported, so no test is seen to reach it."""

    line: int
    kind: str
    change: Change
    function: str  # the innermost one around it, or the name that the line defines
    at_import: bool


@dataclass(frozen=True)
class Mutant:
    """The `number`th change of a file."""

    file: str  # in privsql/
    number: int
    line: int
    kind: str
    function: str
    at_import: bool

    @property
    def room(self) -> str:
        return self.file.split("/")[0]


def mutants(file: str, text: str) -> list[Mutant]:
    found = _sites(ast.parse(text))
    return [Mutant(file, i, s.line, s.kind, s.function, s.at_import) for i, s in enumerate(found)]


def mutated(mutant: Mutant, text: str) -> str:
    tree = ast.parse(text)
    _sites(tree)[mutant.number].change()
    return ast.unparse(ast.fix_missing_locations(tree))


def difference(mutant: Mutant, text: str, around: int = 60) -> tuple[str, str]:
    """What goes and what comes, as `ast.unparse` writes it, with some of the line around."""
    lines = list(
        difflib.unified_diff(
            ast.unparse(ast.parse(text)).splitlines(), mutated(mutant, text).splitlines(), n=0
        )
    )[3:]
    old, new = ("".join(each[1:].strip() + " " for each in lines if each.startswith(sign)) for sign in "-+")
    start = _alike(old, new)
    end = _alike(old[start:][::-1], new[start:][::-1])
    return tuple(
        each[max(0, start - around) : len(each) - max(0, end - around)].strip() for each in (old, new)
    )  # type: ignore[return-value]


def _alike(one: str, other: str) -> int:
    """How many letters they begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other)))


def _sites(tree: ast.Module) -> list[Site]:
    return list(_of_statements(tree.body, "", True))


def _of_statements(body: list[ast.stmt], function: str, at_import: bool) -> Iterator[Site]:
    for place, statement in enumerate(body):
        match statement:
            case ast.FunctionDef():
                for default in [
                    *statement.args.defaults,
                    *(each for each in statement.args.kw_defaults if each),
                ]:
                    yield from _of_expression(default, statement.name, True)
                typed = statement.returns is not None and ast.unparse(statement.returns) not in (
                    "None",
                    "bool",
                )  # None is false
                yield from _of_statements(statement.body, statement.name, False)
                for each in _own(statement, ast.Return):
                    if typed and not _none(each.value):
                        nothing = partial(setattr, each, "value", ast.Constant(None))
                        yield Site(each.lineno, "return None", nothing, statement.name, False)
            case ast.ClassDef():
                yield from _of_statements(statement.body, statement.name, True)
            case _:
                yield from _of_statement(
                    body, place, _defines(statement) if at_import else function, at_import
                )


def _own(function: ast.FunctionDef, kind: type[ast.Return]) -> Iterator[ast.Return]:
    """Nodes of a function but not of those inside it."""
    left: list[ast.AST] = list(function.body)
    while left:
        node = left.pop(0)
        if isinstance(node, kind):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            left += ast.iter_child_nodes(node)


def _defines(statement: ast.stmt) -> str:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return targets[0].id if isinstance(targets[0], ast.Name) else ""


def _none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _of_statement(body: list[ast.stmt], place: int, function: str, at_import: bool) -> Iterator[Site]:
    statement = body[place]
    gone = partial(body.__setitem__, place, ast.Pass())
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Pass() | ast.Expr(value=ast.Constant()):
            return
        case ast.Assign(targets=[ast.Name(id="__slots__" | "__all__")]):
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Compare(left=ast.Name(id="__name__"))):
            return
        case ast.Raise():
            yield Site(statement.lineno, "raise removed", gone, function, at_import)
            return
        case ast.Expr(value=ast.Call() as call):
            if not ERROR.search(ast.unparse(call.func)):
                yield Site(statement.lineno, "call removed", gone, function, at_import)
        case ast.AugAssign(op=op):
            yield Site(statement.lineno, "update removed", gone, function, at_import)
            if type(op) in OPERATED:
                other = partial(setattr, statement, "op", OPERATED[type(op)]())
                yield Site(statement.lineno, "operator", other, function, at_import)
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield Site(statement.lineno, "assignment removed", gone, function, at_import)
        case ast.If() | ast.While():
            values = (
                (True, False) if isinstance(statement, ast.If) else (False,)
            )  # a loop without end tells nothing
            yield from _forced(statement, "test", values, function, at_import)
        case _:
            pass
    for name, field in ast.iter_fields(statement):
        if name in ("annotation", "type_params"):
            continue
        if name in ("body", "orelse", "finalbody") and isinstance(field, list):
            yield from _of_statements(field, function, at_import)
        elif name == "handlers":
            for handler in field:
                yield from _of_statements(handler.body, function, at_import)
        elif name == "cases":
            for case in field:
                if case.guard is not None:
                    yield from _forced(case, "guard", (True, False), function, at_import)
                    yield from _of_expression(case.guard, function, at_import)
                yield from _of_statements(case.body, function, at_import)
        else:
            for each in field if isinstance(field, list) else [field]:
                if isinstance(each, ast.AST):
                    yield from _of_expression(each, function, at_import)


def _forced(
    owner: ast.AST, name: str, values: tuple[bool, ...], function: str, at_import: bool
) -> Iterator[Site]:
    line = getattr(owner, name).lineno
    for value in values:
        yield Site(
            line,
            f"condition {value}",
            partial(setattr, owner, name, ast.Constant(value)),
            function,
            at_import,
        )


def _of_expression(node: ast.AST, function: str, at_import: bool) -> Iterator[Site]:
    line = getattr(node, "lineno", 0)
    site = partial(Site, function=function, at_import=at_import)
    match node:
        case ast.Constant(value=bool() as value):
            yield site(line, "constant", partial(setattr, node, "value", not value))
        case ast.Constant(value=int() | float() as value):
            yield site(line, "constant", partial(setattr, node, "value", value + 1))
        case ast.Compare(ops=ops):
            for place, op in enumerate(ops):
                yield site(line, "comparison", partial(ops.__setitem__, place, COMPARED[type(op)]()))
        case ast.BinOp(op=op) if type(op) in OPERATED and not _text(node) and not _types(node):
            yield site(line, "operator", partial(setattr, node, "op", OPERATED[type(op)]()))
        case ast.BoolOp(op=op):
            yield site(
                line,
                "and/or",
                partial(setattr, node, "op", ast.Or() if isinstance(op, ast.And) else ast.And()),
            )
        case ast.UnaryOp(op=ast.Not()):
            yield site(
                line, "not removed", partial(setattr, node, "operand", ast.UnaryOp(ast.Not(), node.operand))
            )
        case ast.UnaryOp(op=ast.USub()):
            yield site(line, "minus removed", partial(setattr, node, "op", ast.UAdd()))
        case ast.IfExp():
            yield from _forced(node, "test", (True, False), function, at_import)
        case ast.comprehension(ifs=ifs):
            for place, each in enumerate(ifs):
                yield site(each.lineno, "condition True", partial(ifs.__setitem__, place, ast.Constant(True)))
        case ast.Call(func=ast.Name(id=name) as called) if name in SWAPPED:
            yield site(line, "swapped", partial(setattr, called, "id", SWAPPED[name]))
        case ast.Call(func=ast.Attribute(attr=name) as called) if name in SWAPPED:
            yield site(line, "swapped", partial(setattr, called, "attr", SWAPPED[name]))
        case ast.Call(func=called) if ERROR.search(ast.unparse(called)):
            return  # what an error says
        case ast.keyword(arg="strict"):
            return
        case ast.Lambda(body=body):
            yield from _of_expression(body, function, False)
            return
        case _:
            pass
    for child in ast.iter_child_nodes(node):
        yield from _of_expression(child, function, at_import)


def _text(node: ast.BinOp) -> bool:
    return any(isinstance(each, ast.JoinedStr) or (isinstance(each, ast.Constant) and isinstance(each.value, str))
               for each in (node.left, node.right))  # fmt: skip


def _types(node: ast.BinOp) -> bool:
    """A union of types, as `int | str`: a mutant of it cannot be imported, which tells nothing."""
    return isinstance(node.op, ast.BitOr) and all(
        (isinstance(each, ast.Subscript) and isinstance(each.value, ast.Name) and each.value.id[:1].isupper())
        or (isinstance(each, ast.Name) and (each.id[:1].isupper() or each.id in ("int", "str", "float", "bool", "bytes")))
        or (isinstance(each, ast.BinOp) and _types(each)) or _none(each)
        for each in (node.left, node.right)
    )  # fmt: skip
