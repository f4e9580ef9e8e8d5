"""The SQL above some releases goes in; how their noise reaches each column of its result comes out.

It decides which intervals a column can have: those of a released number as they are, those of a smooth
function of released numbers, by simulation, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from sqlglot import exp

from privsql.algebra.literals import ordinal
from privsql.sql.bind.group_by import output_name


class Influence(IntEnum):
    """How noise reaches a number, from not at all to in jumps."""

    NONE = 0  # a key, a public value, a constant
    CELL = 1  # a released number, as it is
    SMOOTH = 2  # a small change of released numbers makes a small change
    JUMPS = 3  # a comparison, a rank, a maximum ...


@dataclass(frozen=True)
class Reached:
    """The columns of a query by name, in order, and whether noise decides which rows there are."""

    columns: tuple[tuple[str, Influence], ...]
    rows: bool = False

    def find(self, name: str) -> Influence | None:
        return next((each for known, each in self.columns if known.lower() == name.lower()), None)


@dataclass(frozen=True)
class Simulated:
    """How noise reaches the columns of the result, and the query without what only chooses and orders its
    rows: the same rows come out of it whatever the noise is.
    """

    columns: tuple[Influence, ...]
    query: exp.Expr


Tables = Mapping[str, Reached]

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren)
_SMOOTH = (*_ARITHMETIC, exp.Round, exp.Ln, exp.Log, exp.Exp, exp.Sqrt, exp.Pow, exp.SafeDivide)
_ADDED_UP = (exp.Sum, exp.Avg)
_CARRIED = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
_CHOOSES = ("qualify", "order", "limit", "offset")
_SMOOTH_TYPES = (*exp.DataType.REAL_TYPES, exp.DType.BIGINT, exp.DType.INT, exp.DType.INT128)


def simulated(statement: exp.Expr, tables: Tables) -> Simulated | None:
    """How noise reaches the columns of a statement; None where that is not known.

    `tables`: those that it reads, with the columns of each.
    """
    try:
        query = _without_choice(statement, tables)
        reached = _query(query, tables)
    except _Unknown:
        return None
    if reached.rows:
        return None
    return Simulated(tuple(each for _, each in reached.columns), query)


class _Unknown(Exception):
    """A construct whose columns or rows this file does not know."""


def _without_choice(statement: exp.Expr, tables: Tables) -> exp.Expr:
    """The outermost SELECT without the clauses that choose and order rows after everything else."""
    query = statement.copy()
    for name in _CHOOSES:
        query.set(name, None)
    if isinstance(query, exp.Select) and not _works_on_many_rows(query):
        where = query.args.get("where")
        if where is not None and _noisy_condition(where.this, query, tables):
            query.set("where", None)
    return query


def _works_on_many_rows(node: exp.Select) -> bool:
    """Whether WHERE decides more than which rows are shown."""
    inner = (each for item in node.expressions for each in item.walk())
    many = any(isinstance(each, (exp.AggFunc, exp.Window)) for each in inner)
    return many or any(node.args.get(name) is not None for name in ("group", "having", "distinct"))


def _noisy_condition(condition: exp.Expr, node: exp.Select, tables: Tables) -> bool:
    known = _with(node, tables)
    return _expression(condition, _from(node, known), known) is not Influence.NONE


# -- queries -------------------------------------------------------------------------------------------------
def _query(node: exp.Expr, tables: Tables) -> Reached:
    known = _with(node, tables)
    match node:
        case exp.Subquery():
            return _query(node.this, known)
        case exp.Union(args={"distinct": False | None}) if not node.args.get("by_name"):
            return _union(_query(node.this, known), _query(node.expression, known))
        case exp.Select():
            return _select(node, known)
        case _:
            raise _Unknown


def _with(node: exp.Expr, tables: Tables) -> Tables:
    known = dict(tables)
    clause = node.args.get("with_")
    for each in clause.expressions if clause is not None else []:
        found = _query(each.this, known)
        known[each.alias.lower()] = _renamed(found, each.args["alias"])
    return known


def _renamed(reached: Reached, alias: exp.Expr) -> Reached:
    names = [each.name for each in alias.args.get("columns") or []]
    pairs = [
        (names[place] if place < len(names) else name, each)
        for place, (name, each) in enumerate(reached.columns)
    ]
    return Reached(tuple(pairs), reached.rows)


def _union(one: Reached, other: Reached) -> Reached:
    if len(one.columns) != len(other.columns):
        raise _Unknown
    pairs = zip(one.columns, other.columns, strict=True)
    return Reached(tuple((name, max(a, b)) for (name, a), (_, b) in pairs), one.rows or other.rows)


def _select(node: exp.Select, tables: Tables) -> Reached:
    rows = _from(node, tables)
    noisy_rows = any(each.rows for each in rows.values())
    for name in ("where", "having", "qualify"):
        clause = node.args.get(name)
        if clause is not None:
            noisy_rows |= _expression(clause.this, rows, tables, noisy_rows) is not Influence.NONE
    merged = any(each.args.get("using") or each.args.get("method") for each in node.args.get("joins") or [])
    cut = node.args.get("limit") is not None or node.args.get("offset") is not None
    order = node.args.get("order")
    ordered = [each.this for each in order.expressions] if order is not None else []
    noisy_rows |= cut and (not ordered or _most(ordered, rows, tables) is not Influence.NONE)
    group = node.args.get("group")
    if group is not None:
        keys = [_behind(each, node) for each in group.expressions]
        if set(_set(group)) - {"expressions"} or _most(keys, rows, tables) is not Influence.NONE:
            raise _Unknown
    columns = tuple(
        pair for each in node.expressions for pair in _item(each, rows, tables, noisy_rows, merged)
    )
    if node.args.get("distinct") is not None and any(each is not Influence.NONE for _, each in columns):
        raise _Unknown
    return Reached(columns, noisy_rows)


def _behind(key: exp.Expr, node: exp.Select) -> exp.Expr:
    """What GROUP BY 1 groups by."""
    place = ordinal(key.sql()) if isinstance(key, exp.Literal) else None
    if place is None:
        return key
    if not 0 < place <= len(node.expressions):
        raise _Unknown
    found: exp.Expr = node.expressions[place - 1]
    return found.unalias()


def _set(node: exp.Expr) -> list[str]:
    return [name for name, value in node.args.items() if value]


def _from(node: exp.Select, tables: Tables) -> Tables:
    """The tables of FROM and of the joins, by the names that columns are called by."""
    first = node.args.get("from_")
    found: dict[str, Reached] = {}
    if node.args.get("laterals"):
        raise _Unknown
    for source in [first.this] if first is not None else []:
        _add(source, found, tables)
    for join in node.args.get("joins") or []:
        _add(join.this, found, tables)
    for join in node.args.get("joins") or []:
        condition = join.args.get("on")
        names = [exp.column(each.name) for each in join.args.get("using") or []]
        conditions = [*names, *([condition] if condition is not None else [])]
        if join.args.get("method") or _most(conditions, found, tables) is not Influence.NONE:
            raise _Unknown
    return found


def _add(source: exp.Expr, found: dict[str, Reached], tables: Tables) -> None:
    match source:
        case exp.Table(this=exp.Identifier()) if not source.args.get("pivots"):
            reached = tables.get(source.name.lower())
            if reached is None:
                raise _Unknown
        case exp.Subquery() if not source.args.get("pivots"):
            reached = _query(source.this, tables)
        case _:
            raise _Unknown
    alias = source.args.get("alias")
    name = source.alias_or_name or f"#{len(found)}"
    found[name.lower()] = reached if alias is None else _renamed(reached, alias)


# -- expressions ---------------------------------------------------------------------------------------------
def _item(
    item: exp.Expr, rows: Tables, tables: Tables, noisy_rows: bool, merged: bool
) -> Iterable[tuple[str, Influence]]:
    if isinstance(item.this if isinstance(item, exp.Column) else item, exp.Star):
        if _set(item.this if isinstance(item, exp.Column) else item):
            raise _Unknown
        if merged:  # a column of USING stands there once
            raise _Unknown
        wanted = item.table.lower() if isinstance(item, exp.Column) else ""
        for name, each in rows.items():
            if not wanted or name == wanted:
                yield from each.columns
        return
    value = item.this if isinstance(item, exp.Alias) else item
    yield output_name(item), _expression(value, rows, tables, noisy_rows)


def _most(nodes: Iterable[exp.Expr], rows: Tables, tables: Tables, noisy_rows: bool = False) -> Influence:
    return max((_expression(each, rows, tables, noisy_rows) for each in nodes), default=Influence.NONE)


def _expression(node: exp.Expr, rows: Tables, tables: Tables, noisy_rows: bool = False) -> Influence:
    """How noise reaches an expression. `noisy_rows`: noise decides which rows there are."""

    def of(*nodes: exp.Expr | None) -> Influence:
        return _most([each for each in nodes if each is not None], rows, tables, noisy_rows)

    match node:
        case exp.Column():
            return _column(node, rows)
        case exp.Paren():
            return of(node.this)
        case exp.Window():
            return _window(node, rows, tables, noisy_rows)
        case exp.AggFunc() | exp.Filter():
            return _aggregate(node, rows, tables, noisy_rows)
        case exp.Query():
            reached = _query(node, tables)
            several = len(reached.columns) != 1 or reached.rows
            return Influence.JUMPS if several else _mixed(reached.columns[0][1])
        case exp.Case():
            conditions = of(node.this, *(each.this for each in node.args["ifs"]))
            values = of(*(each.args["true"] for each in node.args["ifs"]), node.args.get("default"))
            return Influence.JUMPS if conditions is not Influence.NONE else _mixed(values)
        case exp.Coalesce():
            return _mixed(of(node.this, *node.expressions))
        case exp.Nullif():
            return _mixed(of(node.this, node.expression))
        case exp.Cast() if node.to.is_type(*_SMOOTH_TYPES):
            return _mixed(of(node.this))
        case _:
            inner = of(*node.iter_expressions())
            return _mixed(inner) if inner is Influence.NONE or isinstance(node, _SMOOTH) else Influence.JUMPS


def _mixed(influence: Influence) -> Influence:
    """What is computed smoothly from numbers that noise reaches so."""
    return max(influence, Influence.SMOOTH) if influence is not Influence.NONE else influence


def _column(node: exp.Column, rows: Tables) -> Influence:
    table = node.table.lower()
    if table:
        found = [rows[table].find(node.name)] if table in rows else []
    else:
        found = [each.find(node.name) for each in rows.values()]
    known = [each for each in found if each is not None]
    if not known:
        raise _Unknown  # an alias of the same SELECT, or a column of a query around this one
    return max(known)


def _aggregate(node: exp.Expr, rows: Tables, tables: Tables, noisy_rows: bool) -> Influence:
    inner = _most(node.iter_expressions(), rows, tables, noisy_rows)
    function = node.this if isinstance(node, exp.Filter) else node
    if noisy_rows:
        return Influence.JUMPS
    if inner is Influence.NONE:
        return inner
    return _mixed(inner) if isinstance(function, _ADDED_UP) and node is function else Influence.JUMPS


def _window(node: exp.Window, rows: Tables, tables: Tables, noisy_rows: bool) -> Influence:
    if node.args.get("alias") is not None:
        raise _Unknown
    order = node.args.get("order")
    terms = [each.this for each in order.expressions] if order is not None else []
    around = _most([*(node.args.get("partition_by") or []), *terms], rows, tables, noisy_rows)
    inner = _most(node.this.iter_expressions(), rows, tables, noisy_rows)
    if noisy_rows or around is not Influence.NONE:
        return Influence.JUMPS
    if inner is Influence.NONE:
        return inner
    return _mixed(inner) if isinstance(node.this, (*_ADDED_UP, *_CARRIED)) else Influence.JUMPS
