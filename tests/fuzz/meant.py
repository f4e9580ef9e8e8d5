"""privsql's own tree goes in; what was meant by it comes out in the neutral form, to be found again in what DuckDB read.

The renderer writes more than was meant: types, and guards by which no row can fail. `bare` takes them off DuckDB's reading:

- plain casts (a constant that is a date or a DOUBLE beyond numbers keeps its type) and TRY around anything
- NULLIF(divisor, 0), + INTERVAL 0 DAY, left(text, 10000), + 0.0 by which -0.0 becomes 0.0, and what gives NaN one text
- least(TRY_CAST(date AS TIMESTAMP), NULL), by which DuckDB does not compare the date instead
- asinh(least(x, NULL)), by which DuckDB does not compute asinh of the ends of a column
- floor, ceil and trunc of whole numbers are the number; NULL in an IN list stands beside it as OR NULL
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from privsql.algebra.choices import FairChoice
from privsql.algebra.expressions import SPREAD, Aggregate, Call, Column, Expression, Literal
from privsql.algebra.functions import FUNCTIONS
from privsql.algebra.relations import (
    AtMost,
    Distinct,
    Filter,
    Group,
    Join,
    Limit,
    Project,
    Relation,
    Scan,
    Semi,
    Sort,
    UnionAll,
    Unit,
    Unnest,
    Unpivot,
    Values,
    WindowsWithinUnit,
    is_public,
    walk,
)  # fmt: skip
from privsql.algebra.reserved import ROW_NUMBER
from privsql.algebra.reserved import UNIT_COLUMN as UNIT
from privsql.algebra.unit_rows.windows import (
    AGGREGATES,
    VALUES,
    FrameEnd,
    FrameKind,
    Order,
    Window,
    WindowFrame,
)
from privsql.render import write_expressions
from privsql.types import BINARY, BOOLEAN, DOUBLE, Kind, Type, may_overflow, zone_of
from tests.fuzz import neutral
from tests.fuzz.neutral import Node

_COMPARE = {"=", "<>", "<", "<=", ">", ">=", "is_same", "is_distinct"}
_LONG = {"replace", "concat", "concat_ws", "||", "regexp_replace"}
_GUARD = "privsql_guard_"  # a column of the noisy table: where a quotient cannot be told
_ZERO = ("number", "0")
_ANY = [DOUBLE, DOUBLE, DOUBLE]
_RESULTS = {*FUNCTIONS} - {"||"} | {"left", "round"}
_AGGREGATES = {
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "bool_or",
    "bool_and",
    "any_value",
    "first",
    "last",
    "quantile_cont",
    "quantile_disc",
    *SPREAD,
}
_FULL: Node = ("bare",)  # a relation that is more than its table
_GROUP_KEYS: Node = ()


class NotMeantError(Exception):
    """A form for which nothing is written here."""


# -- what DuckDB read, without guards ------------------------------------------------------------------------
def bare(node: Node) -> Node:
    if not isinstance(node, tuple):
        return node
    match node:
        case ("number", _, value):
            return _number(Decimal(value) if "inf" not in value and "nan" not in value else value)
        case ("cast", (kind, *_), ("text", value)) if kind in ("date", "timestamp", "time", "double"):
            return ("typed", kind, value)
        case ("cast", _, inner):
            return bare(inner)
        case ("try_cast", _, inner) if _is_guarded(inner):
            return bare(inner)
        case ("try", inner):
            return bare(inner)
        case (
            "call",
            "least",
            (("try_cast", ("timestamp",), _) as tried, ("cast", ("timestamp",), ("null",))),
        ):
            return bare(tried)
        case ("call", "asinh", (("call", "least", (inner, ("cast", ("double",), ("null",)))),)):
            return ("call", "asinh", (bare(inner),))
        case ("call", "+", (inner, ("interval", "0", "day"))):
            return bare(inner)
        case ("call", "+", (inner, ("cast", ("double",), ("number", _, "0")))):
            return bare(inner)
        case ("call", "/" | "//" | "%" as name, (above, ("call", "nullif", (below, zero)))) if (
            bare(zero) == _ZERO
        ):
            return ("call", name, (bare(above), bare(below)))
        case ("case", ((("column", name), null),), inner) if name.startswith(_GUARD) and bare(null) == (
            "null",
        ):
            return bare(inner)
        case (
            "case",
            ((("not", ("is_null", ("call", "regexp_matches", (("text", ""), read, *options)))), inner),),
            ("null",),
        ):
            found = bare(inner)
            alike = found[:1] == ("call",) and found[2][1] == bare(read)
            without = (
                [("call", "replace", (each, ("text", "g"), ("text", ""))) for each in found[2][3:]]
                if alike
                else None
            )
            return found if without == options else node
        case (
            "call",
            "left",
            (("call", name, _) | ("try", ("call", name, _)) as inner, ("number", _, "10000")),
        ) if name in _LONG:
            return bare(inner)
        case (
            "call",
            "replace",
            (("try_cast", ("varchar",) as kind, inner), ("text", "-nan"), ("text", "nan")),
        ):
            return ("try_cast", kind, bare(inner))
        case ("try_cast", ("varchar",) as kind, ("case", (((_, (one, two)), inner),), ("null",))) if bare(
            (one, two)
        ) in _calendars(inner):
            return ("try_cast", kind, bare(inner))
    return tuple(bare(each) for each in node)


def _is_guarded(inner: Node) -> bool:
    """Whether its result is cast to the type that it is believed to have; an analyst's own cast stands around that one."""
    match inner:
        case ("try", _) | ("element", *_):
            return True
        case ("call", "replace", (("try_cast", ("varchar",), _), ("text", "-nan"), ("text", "nan"))):
            return False  # a DOUBLE as text: what is cast is cast by the analyst
        case ("over", ("call", name, *_), *_):
            return name in _AGGREGATES
        case ("call", name, *_):
            return name in _AGGREGATES or (name in _RESULTS and FUNCTIONS[name].gives(_ANY) != BOOLEAN)
        case (
            "case",
            ((("not", ("is_null", ("call", "regexp_matches", (("text", ""), *_)))), _),),
            ("null",),
        ):
            return True
    return False


def _calendars(inner: Node) -> list[Node]:
    """The two tests that a moment has a text, which stand before it is made one."""
    shown = bare(inner)
    return [
        (
            (">=", shown, ("typed", "timestamp", "290309-12-22 (BC) 00:00:00")),
            ("=", shown, ("typed", "timestamp", "-infinity")),
        ),
        ((">=", shown, ("typed", "time", "00:00:00")), ("<=", shown, ("typed", "time", "24:00:00"))),
    ]


def _number(value: Decimal | str) -> Node:
    if isinstance(value, str):
        return ("number", value)
    return (
        "number",
        "0"
        if not value
        else f"{value.normalize():f}"
        if -60 < value.adjusted() < 60
        else f"{value.normalize():e}",
    )


# -- expressions ---------------------------------------------------------------------------------------------
def expression(node: Expression) -> Node:
    match node:
        case Column(name=name):
            return neutral.column([name])
        case Literal():
            return _constant(node)
        case Call(function="+", args=(inner, Literal(value=int() as value))) if (
            not value and node.type.kind is Kind.DOUBLE
        ):
            return expression(inner)  # looks like the guard that makes -0.0 0.0, which bare() leaves out
        case Call(function="date_add", args=(inner, Literal(value="0 day"))):
            return expression(inner)  # and so does this
        case Call():
            return _call(node)


def _constant(literal: Literal) -> Node:
    match literal.value:
        case None:
            return neutral.NULL
        case bool() as value:
            return neutral.truth(value)
        case float() as value if not math.isfinite(value):
            return ("typed", "double", str(value))
        case int() | float() | Decimal() as value:
            return _number(Decimal(repr(float(value)) if literal.type.kind is Kind.DOUBLE else value))
        case str() as value if literal.type.kind is Kind.INTERVAL:
            return neutral.interval(*value.split(" "))
        case str() as value:
            return neutral.text(value)
        case dt.datetime() as value:
            return ("typed", "timestamp", value.isoformat(sep=" "))
        case dt.date() | dt.time() as value:
            return ("typed", "date" if isinstance(value, dt.date) else "time", value.isoformat())
    raise NotMeantError(repr(literal))


def _call(node: Call) -> Node:
    args = [expression(each) for each in node.args]
    match node.function:
        case "and" | "or" as name:
            return neutral.junction(name, args)
        case "not":
            return neutral.denied(args[0])
        case "is_null":
            return ("is_null", args[0])
        case "is_true" | "is_false" as name:
            return ("is", name == "is_true", args[0])
        case "in":
            known = tuple(each for each in args[1:] if each != neutral.NULL)
            if len(known) == len(args) - 1:
                return ("in", args[0], known)
            return neutral.junction("or", [("in", args[0], known), neutral.NULL]) if known else neutral.NULL
        case "case":
            return neutral.case(zip(args[0:-1:2], args[1:-1:2], strict=True), args[-1])
        case "cast":
            return ("try_cast", _type(node), args[0])
        case "neg":
            return _in_its_type(
                node, neutral.call("-", args) if args[0][0] != "number" else ("call", "-", tuple(args))
            )
        case "date_add" | "date_shift":
            return neutral.call("+", args)
        case "date_minus":
            return neutral.call("-", args)
        case "floor" | "ceil" | "trunc" if node.type.kind is Kind.INTEGER:
            return args[0]
        case "cbrt":
            third = ("call", "/", (_number(Decimal("1.0")), _number(Decimal("3.0"))))
            root = neutral.call(
                "*", [neutral.call("sign", args), neutral.call("pow", [neutral.call("abs", args), third])]
            )
            return _tried(root, node.type)
        case "list":
            return neutral.call("list_value", args)
        case "from_epoch":  # in whole microseconds, the nearest
            microseconds = neutral.call("*", [args[0], _number(Decimal(1_000_000))])
            return neutral.call("make_timestamp", [neutral.call("round", [microseconds])])
        case "time_bucket":
            return neutral.call("time_bucket", [neutral.cast(("interval",), args[0]), args[1]])
        case "fixed_point":
            return _fixed_point(node, args[0])
        case "+" | "-" | "*" | "/" | "//" | "%" as name:
            return _in_its_type(node, neutral.call(name, args))
        case "nullif":
            return _in_its_type(node, neutral.call("nullif", args))
        case "row" | "coalesce" | "least" | "greatest" as name:
            return neutral.call(name, args)
        case name if name in _COMPARE:
            left = (
                neutral.cast(("boolean",), args[0]) if args[0] == neutral.NULL else args[0]
            )  # written as CAST(NULL AS BOOLEAN)
            found = neutral.compared(name, left, args[1])
            return found if found[0] != name else (name, args[0], args[1])
        case name if name in FUNCTIONS:
            if name in (
                "log2",
                "log10",
            ):  # log(2, x): only the base is as DuckDB reads it, the cast in x is meant
                called, log, (base, inner) = neutral.call(name, args)
                return called, log, (bare(base), inner)
            return neutral.call(name, args)
    raise NotMeantError(node.function)


def _in_its_type(node: Call, found: Node) -> Node:
    """Arithmetic is in a type with room for its operands, and what comes out in its own."""
    return found if str(write_expressions._roomy(node)) == str(node.type) else _tried(found, node.type)


def _type(node: Call) -> Node:
    from privsql.types import INTEGER_BOUNDS

    if node.type.kind is Kind.INTEGER:
        names = [name for name, bounds in INTEGER_BOUNDS.items() if bounds == (node.type.low, node.type.high)]
        return neutral.type_of(names[0] if names else str(node.type))
    name, _, rest = str(node.type).partition("(")
    return neutral.type_of(name, [int(each) for each in rest.rstrip(")").split(",") if each])


def _fixed_point(node: Call, inner: Node) -> Node:
    step, low, high = (Fraction(each.value) for each in node.args[1:] if isinstance(each, Literal))
    scaled = neutral.call("*", [inner, _number(Decimal(repr(float(1 / step))))])
    power = max(step.numerator, step.denominator).bit_count() == 1  # then the ends are doubles themselves
    test, factor = (inner, step) if power else (scaled, Fraction(1))
    first, last = (_number(Decimal(repr(float(each * factor)))) for each in (low, high))
    least, most = (_number(Decimal(int(each))) for each in (low, high))
    within = ("try_cast", ("bigint",), scaled)
    outside = neutral.denied(neutral.between(test, first, last))
    return neutral.case([(outside, neutral.case([((">", test, last), most)], least))], within)


# -- relations: what stands in FROM --------------------------------------------------------------------------
def rows(relation: Relation, unit: bool = False) -> Node:
    match relation:
        case Scan():
            return _scan(relation, unit)
        case Values():
            listed = tuple(tuple(expression(each) for each in row) for row in relation.rows)
            inner = ("values", listed, "v", tuple(each.name.lower() for each in relation.fields))
            return _selected(neutral.select([(neutral.STAR, "")], inner))
        case Filter():
            return _selected(
                neutral.select(
                    [(neutral.STAR, "")], rows(relation.input, unit), expression(relation.predicate)
                )
            )
        case Project():
            items = [(expression(each), name) for name, each in relation.columns]
            return _selected(neutral.select([*items, *_whose(unit)], rows(relation.input, unit)))
        case UnionAll():
            sides = [neutral.select([(neutral.STAR, "")], rows(each, unit)) for each in relation.inputs]
            read = sides[0]
            for each in sides[1:]:
                read = neutral.set_operation("union", True, read, each)
            return _selected(read)
        case Unpivot():
            taken = {name for name, _ in relation.on}
            items = [
                (neutral.column([each.name]), "") for each in relation.input.fields if each.name not in taken
            ]
            lists = [
                [neutral.text(label) for _, label in relation.on],
                [neutral.column([name]) for name, _ in relation.on],
            ]
            for listed, name in zip(lists, (relation.name, relation.value.name), strict=True):
                items.append((neutral.call("unnest", [neutral.call("list_value", listed)]), name))
            return _selected(neutral.select([*items, *_whose(unit)], rows(relation.input, unit)))
        case Unnest():
            return _unnest(relation, unit, ())
        case Join():
            return _join(relation, unit)
        case Semi():
            return _semi(relation, unit)
        case AtMost():
            return _at_most(relation)
        case WindowsWithinUnit():
            return _windows(relation, unit)
        case Group():
            return _group(relation, unit)
        case Sort():
            read = neutral.select([(neutral.STAR, "")], rows(relation.input))
            return _selected(neutral.tail(read, [_by(each) for each in relation.by], None, None))
        case Limit():
            read = neutral.select([(neutral.STAR, "")], rows(relation.input))
            return _selected(neutral.tail(read, [], _whole(relation.count), _whole(relation.offset or None)))
        case Distinct():
            return _selected(neutral.select([(neutral.STAR, "")], rows(relation.input), distinct=True))
    raise NotMeantError(type(relation).__name__)


def _selected(query: Node, alias: str = "") -> Node:
    return ("subquery", query, alias, ())


def _whole(value: int | None) -> Node | None:
    return None if value is None else _number(Decimal(value))


def _by(order: Order) -> Node:
    return neutral.ordered(expression(order.expression), order.descending, order.nulls_first)


def _whose(unit: bool) -> list[tuple[Node, str]]:
    return [(neutral.column([UNIT]), "")] if unit else []


def _aliased(source: Node, alias: str) -> Node:
    match source:
        case ("table", name, _, columns):
            return ("table", name, alias, columns)
        case ("subquery", query, _, columns):
            return ("subquery", query, alias, columns)
    raise NotMeantError(source[0])


def _brought(column: Node, cast: str) -> Node:
    if cast == BINARY:
        return ("collate", "binary", column)
    if (zone := zone_of(cast)) is not None:
        return neutral.call("timezone", [neutral.text(zone), column])
    return ("try_cast", neutral.type_of(cast), column)


def _scan(scan: Scan, unit: bool, lists: tuple[str, ...] = ()) -> Node:
    if type(scan) is not Scan:
        raise NotMeantError("a prepared copy")
    if not scan.casts and scan.unit is None and scan.whole and not lists:
        return neutral.table(scan.table, "", ())
    items: list[tuple[Node, str]] = []
    for each in scan.fields:
        column = neutral.column(["privsql_t", each.name])
        cast = scan.casts.get(each.name)
        items.append((_brought(column, cast), each.name) if cast else (column, ""))
    for each in scan.lists:
        if each.name in lists:
            column = neutral.column(["privsql_t", each.name])
            cast = ("try_cast", ("list", neutral.type_of(each.cast)), column) if each.cast else column
            items.append((cast, each.name if each.cast else ""))
    source = neutral.table(scan.table, "privsql_t", ())
    if scan.unit is None:
        return _selected(neutral.select(items, source))
    whose, source, tests = _unit(scan.unit, "privsql_t", scan.casts, 1, source)
    joined = source[0] == "join"
    required = all(not scan.claims[name].nullable for name in scan.unit.columns)
    where = (
        None if required and not joined else tests[0] if len(tests) == 1 else neutral.junction("and", tests)
    )
    return _selected(neutral.select([*items, *([(whose, UNIT)] if unit else [])], source, where))


def _unit(
    unit: Unit, table: str, casts: dict[str, str], depth: int, source: Node
) -> tuple[Node, Node, list[Node]]:
    columns = [neutral.column([table, name]) for name in unit.columns]
    brought = [
        _brought(each, casts[name]) if name in casts else each
        for each, name in zip(columns, unit.columns, strict=True)
    ]
    if unit.refers_to is None:
        whose = brought[0] if len(brought) == 1 else neutral.call("row", brought)
        return whose, source, [neutral.denied(("is_null", each)) for each in columns]
    target, name = unit.refers_to, f"privsql_{depth}"
    if target.unit.refers_to is None and set(target.unit.columns) == set(target.columns):
        by_key = dict(zip(target.columns, unit.columns, strict=True))
        return _unit(
            Unit(tuple(by_key[each] for each in target.unit.columns), unit.unique, unit.kinds),
            table,
            casts,
            depth,
            source,
        )
    inner = dict(target.casts)
    keys = [neutral.column([name, each]) for each in target.columns]
    keys = [
        _brought(key, inner[each]) if each in inner else key
        for key, each in zip(keys, target.columns, strict=True)
    ]
    parts: list[Node] = [("=", a, b) for a, b in zip(brought, keys, strict=True)]
    on = parts[0] if len(parts) == 1 else neutral.junction("and", parts)
    return _unit(
        target.unit,
        name,
        inner,
        depth + 1,
        neutral.join("inner", source, neutral.table(target.table, name, ()), on),
    )


def _unnest(relation: Unnest, unit: bool, beside: tuple[str, ...]) -> Node:
    kept, table = (*beside, relation.of.name), relation.input
    below = _scan(table, unit, kept) if isinstance(table, Scan) else _unnest(table, unit, kept)  # type: ignore[arg-type]
    listed = neutral.column([relation.of.name])
    opened = neutral.call(
        "unnest", [neutral.call("list_distinct", [listed]) if relation.distinct else listed]
    )
    if relation.element.type.kind is Kind.TEXT:
        opened = ("collate", "binary", opened)
    names = (*(each.name for each in relation.input.fields), *dict.fromkeys(beside))
    items = [(neutral.column([each]), "") for each in names] + [
        (opened, relation.element.name),
        *_whose(unit),
    ]
    found = _selected(neutral.select(items, below))
    if relation.kept is None:
        return found
    return _selected(neutral.select([(neutral.STAR, "")], found, expression(relation.kept)))


def _beside(*conditions: Node) -> Node:
    return neutral.junction("and", conditions)


_SAME = ("=", neutral.column(["privsql_l", UNIT]), neutral.column(["privsql_r", UNIT]))


def _join(join: Join, unit: bool) -> Node:
    left_whose, right_whose = (unit or join.same_unit) and not is_public(join.left), join.same_unit
    if unit and is_public(join.left):
        right_whose = True
    left, right = (
        _aliased(rows(join.left, left_whose), "privsql_l"),
        _aliased(rows(join.right, right_whose), "privsql_r"),
    )
    on = expression(join.on)
    on = _beside(on, _SAME) if join.same_unit else on
    items = [(neutral.column(["privsql_l", each.name]), "") for each in join.left.fields]
    items += [(neutral.column(["privsql_r", each.name]), "") for each in join.right.fields]
    if unit:
        items.append((neutral.column([f"privsql_{'l' if left_whose else 'r'}", UNIT]), ""))
    return _selected(
        neutral.select(items, neutral.join("left" if join.kind == "left" else "inner", left, right, on))
    )


def _semi(semi: Semi, unit: bool) -> Node:
    kept, other = (
        _aliased(rows(semi.input, unit or semi.same_unit), "privsql_l"),
        rows(semi.other, semi.same_unit),
    )
    items = [(neutral.column(["privsql_l", each.name]), "") for each in semi.fields]
    items += [(neutral.column(["privsql_l", UNIT]), "")] if unit else []
    if semi.null_aware:
        assert isinstance(semi.on, Call)
        value, only = (expression(each) for each in semi.on.args)
        where = neutral.denied(("in_query", value, neutral.select([(only, "")], other)))
        return _selected(neutral.select(items, kept, where))
    on = expression(semi.on)
    on = _beside(on, _SAME) if semi.same_unit else on
    exists: Node = ("exists", neutral.select([(_number(Decimal(1)), "")], _aliased(other, "privsql_r"), on))
    return _selected(neutral.select(items, kept, neutral.denied(exists) if semi.anti else exists))


def _at_most(relation: AtMost) -> Node:
    """Of rows that agree in all columns each has a number; the choice is by a hash of the columns and that number."""
    names = [each.name for each in relation.fields]
    columns = [neutral.column([each]) for each in names]
    key = neutral.column([relation.column])
    inner = neutral.select(
        list(zip(columns, names, strict=True)), rows(relation.input), neutral.denied(("is_null", key))
    )
    place = neutral.call("row_number", [])
    alike = neutral.over(place, columns, ())
    numbered = neutral.select([(neutral.STAR, ""), (alike, ROW_NUMBER)], _selected(inner))
    below = sum(isinstance(each, AtMost) for each in walk(relation.input))
    hashed = [
        neutral.text(FairChoice.MATCHES),
        _number(Decimal(below)),
        *columns,
        neutral.column([ROW_NUMBER]),
    ]
    choice = neutral.call("hash", [neutral.call("hash", hashed)])
    order = [neutral.ordered(each, False, False) for each in (choice, *columns)]
    qualify = ("<=", neutral.over(place, [key], order), _number(Decimal(relation.most)))
    return _selected(neutral.select([(each, "") for each in columns], _selected(numbered), qualify=qualify))


def _group(group: Group, unit: bool) -> Node:
    items = [(expression(key.expression), key.name) for key in group.keys]
    items += [(aggregate(each), name) for name, each in group.aggregates]
    by: list[Node] = [_number(Decimal(place + 1)) for place in range(len(group.keys))]
    by += [neutral.column([UNIT])] if group.per_unit else []
    found = rows(group.input, group.per_unit)
    return _selected(neutral.select([*items, *_whose(unit)], found, by=neutral.groups([by]) if by else ()))


def _windows(relation: WindowsWithinUnit, unit: bool) -> Node:
    """Each row with what its windows compute; all windows see the same rows, of the same unit."""
    names = [each.name for each in relation.fields[: len(relation.input.fields)]]
    below = neutral.select(
        [*((neutral.column([each]), each) for each in names), *_whose(True)], rows(relation.input, True)
    )
    computed = [(_window(window, names), name) for name, window in relation.windows]
    items = [*((neutral.column([each]), "") for each in names), *_whose(unit), *computed]
    return _selected(neutral.select(items, _selected(below)))


def _window(window: Window, names: list[str]) -> Node:
    """Where it matters which of equal rows comes first, they come in the order of all their columns."""
    by = [neutral.column([UNIT]), *map(expression, window.by)]
    written = [_by(each) for each in window.order]
    columns = [neutral.ordered(neutral.column([each]), False, False) for each in names]
    frame, far = (
        window.frame,
        window.frame is not None and window.frame.kind is FrameKind.RANGE and window.frame.is_computed,
    )
    order = [_in_steps(window.order[0])] if far else written
    order = [*order, *columns] if window.tells_rows_apart else order
    ends = (
        neutral.RUNNING if frame is None else (_frame_end(frame, frame.start), _frame_end(frame, frame.end))
    )
    if window.function in AGGREGATES:
        return aggregate(window.aggregate, lambda function: neutral.over(function, by, order, ends))
    args = [expression(each) for each in (window.argument,) if each is not None]
    args += [] if window.number is None else [_number(Decimal(window.number))]
    args += [] if window.default is None else [expression(window.default)]
    peers = [*written, *columns] if window.function in VALUES and not window.tells_rows_apart else []
    return neutral.over(neutral.call(window.function, args, order=peers), by, order, ends, window.skips_null)


def _frame_end(frame: WindowFrame, end: FrameEnd) -> Node:
    side = "PRECEDING" if end.before else "FOLLOWING"
    match end.distance:
        case None:
            return (f"UNBOUNDED_{side}", None)
        case 0:
            return (f"CURRENT_ROW_{frame.kind.value}", None)
        case distance:
            return (f"{side}_{frame.kind.value}", _number(Decimal(distance)))


def _in_steps(order: Order) -> Node:
    """The value of an order as a whole number: of moments the microseconds since 1970; where there are none, past all others."""
    value, wanted = expression(order.expression), order.expression.type.kind
    match wanted:
        case Kind.DATE:
            days = neutral.call("-", [value, ("typed", "date", "1970-01-01")])
            steps = neutral.call("*", [days, _number(Decimal(86_400_000_000))])
        case Kind.TIMESTAMP:
            far = _number(Decimal(2**64))
            end = neutral.case(
                [(("<", value, ("typed", "timestamp", "1970-01-01")), ("call", "-", (far,)))], far
            )
            known = neutral.call("coalesce", [neutral.call("epoch_us", [value]), end])
            steps = neutral.case([(("is_null", value), neutral.NULL)], known)
        case _:
            steps = value
    return neutral.ordered(steps, order.descending, order.nulls_first)


def aggregate(node: Aggregate, over: Callable[[Node], Node] | None = None) -> Node:
    """`over`: what makes a function of rows one of the rows of a window."""
    taken = over or (lambda function: function)
    where = None if node.condition is None else expression(node.condition)
    argument = neutral.STAR if node.argument is None else expression(node.argument)
    match node.function:
        case "count":
            return taken(neutral.call("count", [argument], where=where))
        case "count_distinct":
            return taken(neutral.call("count", [argument], True, where))
        case "sum_distinct" | "avg_distinct" as name:
            return taken(neutral.call(name.removesuffix("_distinct"), [argument], True, where))
        case "sum" | "avg" if isinstance(node.argument, Call) and node.argument.function == "fixed_point":
            assert isinstance(node.argument.args[1], Literal)
            step = _number(Decimal(repr(float(Fraction(node.argument.args[1].value)))))
            if over is not None and node.function == "avg":  # of whole numbers, in any order
                return _tried(
                    neutral.call("*", [taken(neutral.call("avg", [argument], where=where)), step]), node.type
                )
            total = neutral.call("*", [taken(neutral.call("sum", [argument], where=where)), step])
            mean = neutral.call("/", [total, taken(neutral.call("count", [argument], where=where))])
            return _tried(total if node.function == "sum" else mean, node.type)
        case "sum" | "avg" if node.argument is not None and node.argument.type.kind is Kind.DOUBLE:
            order = [neutral.ordered(argument, False, False)]
            return taken(neutral.call(node.function, [argument], where=where, order=order))
        case "sum" | "avg" if node.argument is not None and may_overflow(node.argument.type):
            order = [neutral.ordered(argument, False, False)]
            return taken(neutral.call(node.function, [argument], where=where, order=order))
        case name if name in SPREAD:
            other = [] if node.by is None else [expression(node.by)]
            return neutral.call(name, [argument, *other], where=where)
        case "quantile_cont" | "quantile_disc" as name:
            return neutral.call(
                name, [argument, _number(Decimal(repr(float(node.parameters[0]))))], where=where
            )
        case "arg_min" | "arg_max" as name:
            assert node.by is not None
            place = expression(node.by)
            missing = neutral.junction("or", [("is_null", argument), ("is_null", place)])
            both = neutral.case([(missing, neutral.NULL)], neutral.call("row", [place, argument]))
            return ("element", neutral.call(name[4:], [both], where=where), _number(Decimal(2)))
        case "first" | "last" as name:
            assert node.by is not None
            order = [
                neutral.ordered(expression(node.by), *node.parameters),
                neutral.ordered(argument, False, False),
            ]
            return neutral.call(name, [argument], where=where, order=order)
        case name:
            return taken(neutral.call(name, [argument], where=where))


def _tried(call: Node, type_: Type) -> Node:
    name, _, rest = str(type_).partition("(")
    return (
        "try_cast",
        neutral.type_of(name, [int(each) for each in rest.rstrip(")").split(",") if each]),
        call,
    )
