"""A grouped SELECT goes in; it comes out as two: its keys and aggregates, which are released, and everything
that is computed from them.

    SELECT state, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS total FROM people GROUP BY state HAVING COUNT(*) > 9

is `SELECT state AS key_1, COUNT(*) AS value_1 FROM people GROUP BY state` below, and above it `SELECT key_1
AS state, value_1 AS n, SUM(value_1) OVER () AS total FROM r0 WHERE value_1 > 9`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from privsql.algebra.literals import ordinal
from privsql.errors import PrivsqlError
from privsql.sql.bind.group_by import output_name
from privsql.sql.bind.release import is_aggregate
from privsql.sql.subqueries.correlation import IsColumn
from privsql.sql.subqueries.subquery_nodes import named

# The clauses that belong below: which rows are read, and how they are grouped.
_BELOW = ("from_", "joins", "laterals", "where", "group", "with_", "privacy")
# Around the function of a window: SUM(x) FILTER (...) OVER (...).
_AROUND_A_WINDOW = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)
_KEY, _VALUE = "key", "value"


_RELEASED = "privsql_released"  # the table that the half above reads, until it has its name

ColumnsOf = Callable[[exp.Select], IsColumn]


@dataclass(frozen=True)
class Divided:
    """The two halves of a SELECT. What `above` reads from is for the caller to name."""

    released: exp.Select
    above: exp.Select

    def over(self, name: str) -> exp.Select:
        """The half above, which reads a table of that name."""
        self.above.set("from_", exp.From(this=exp.to_table(name)))
        for each in self.above.find_all(exp.Column):
            if each.table == _RELEASED:
                each.set("table", exp.to_identifier(name))
        return self.above


def divide(node: exp.Select, columns_of: ColumnsOf) -> Divided | None:
    """Divide a SELECT at its aggregates; None if it has none and no keys, or shows a column of rows."""
    if any(isinstance(each, exp.Star) or each.is_star for each in node.expressions):
        return None
    merged = any(each.args.get("using") or each.args.get("method") for each in node.args.get("joins") or [])
    halves = _Halves(node, _unused(node), columns_of, merged)
    keys = halves.group()
    items = [named(halves.above(_value(each)), output_name(each)) for each in node.expressions]
    above = exp.Select(expressions=items)
    for name in ("distinct", "qualify", "windows", "order", "limit", "offset"):
        clause = node.args.get(name)
        if clause is not None:
            above.set(name, halves.clause(clause))
    having = node.args.get("having")
    if having is not None:
        above.set("where", exp.Where(this=halves.above(having.this)))
    if not halves.columns or halves.of_rows:
        return None
    listed = [named(each.copy(), name) for each, name in halves.columns.items()]
    released = exp.Select(expressions=listed)
    for name in _BELOW:
        clause = node.args.get(name)
        if clause is not None:
            released.set(
                name, [each.copy() for each in clause] if isinstance(clause, list) else clause.copy()
            )
    released.set("group", keys)
    return Divided(released, above)


@dataclass
class _Halves:
    """What is released of a SELECT, by name, while the other half is written."""

    node: exp.Select
    prefix: str
    columns_of: ColumnsOf
    merged: bool  # columns of USING stand for those of both sides
    of_rows: bool = False  # a column that is neither a key nor inside an aggregate is named above
    keys: list[exp.Expr] = field(default_factory=list)
    columns: dict[exp.Expr, str] = field(default_factory=dict)

    def group(self) -> exp.Group | None:
        """GROUP BY with its ordinals and aliases written out; registers the keys."""
        group = self.node.args.get("group")
        if group is None:
            return None
        if group.args.get("all"):
            named = [_value(each) for each in self.node.expressions]
            self.keys = [each for each in named if not _has_aggregate(each)]
            return exp.Group(expressions=[each.copy() for each in self.keys]) if self.keys else None
        written: exp.Group = group.copy()
        for term in list(_terms(written)):
            meant = self._meant(term)
            if meant is not term:
                term.replace(meant)
        self.keys = [_bare(each) for each in _terms(written)]
        return written

    def _meant(self, term: exp.Expr) -> exp.Expr:
        """A key as an expression over rows: an ordinal or an alias stands for what is selected."""
        if isinstance(term, exp.Literal) and not term.is_string:
            place = ordinal(term.name) or 0
            listed = self.node.expressions
            return _value(listed[place - 1]).copy() if 1 <= place <= len(listed) else term
        return self._alias(term) or term

    def _alias(self, term: exp.Expr) -> exp.Expr | None:
        """What an alias of the SELECT list stands for, where no column of that name is meant by the same
        list.
        """
        if not isinstance(term, exp.Column) or term.table or self.columns_of(self.node)(term):
            return None
        named = [each for each in self.node.expressions if isinstance(each, exp.Alias)]
        found = next((each.this for each in named if each.alias.lower() == term.name.lower()), None)
        if (
            found is None
            or _has_aggregate(found)
            or any(_same(column, term) for column in found.find_all(exp.Column))
        ):
            return None
        copied: exp.Expr = found.copy()
        return copied

    @property
    def _aliases(self) -> set[str]:
        return {each.alias.lower() for each in self.node.expressions if isinstance(each, exp.Alias)}

    def _is(self, key: exp.Expr, node: exp.Expr) -> bool:
        """Whether an expression is a key, also where only one of them says whose column it is."""
        one, other = _bare(key), _bare(node)
        if not self.merged and isinstance(one, exp.Column) and isinstance(other, exp.Column):
            half = not one.table or not other.table
            return one.name.lower() == other.name.lower() and (half or _same(one, other))
        return _same(one, other)

    def clause(self, clause: exp.Expr | list[exp.Expr]) -> exp.Expr | list[exp.Expr]:
        """A clause above the release. In ORDER BY the name of an output goes before that of a column."""
        if isinstance(clause, list):
            return [self.above(each) for each in clause]
        if not isinstance(clause, exp.Order):
            return self.above(clause)
        written = clause.copy()
        written.set("expressions", [self._ordered(each) for each in clause.expressions])
        return written

    def _ordered(self, term: exp.Expr) -> exp.Expr:
        named = term.this if isinstance(term, exp.Ordered) else term
        shown = isinstance(named, exp.Column) and not named.table and named.name.lower() in self._aliases
        return term.copy() if shown else self.above(term)

    def above(self, node: exp.Expr) -> exp.Expr:
        """A copy of a clause, in which keys and aggregates are columns of the released table."""
        if isinstance(node, exp.Alias):
            return named(self.above(node.this), node.alias)
        key = next((each for each in self.keys if self._is(each, node)), None)
        if key is not None:
            return self._column(key, _KEY)
        if isinstance(node, exp.Column):
            self.of_rows |= bool(node.table) or node.name.lower() not in self._aliases
            return node.copy()
        if isinstance(node, exp.Window):
            return self._window(node)
        if _is_aggregate(node):
            return self._column(node, _VALUE)
        if isinstance(node, exp.Query):  # what it reads is divided by itself
            return self._nested(node)
        return self._with_parts(node)

    def _nested(self, node: exp.Query) -> exp.Expr:
        """A copy of a query inside an expression; keys in it are columns of the released table."""
        written = node.copy()
        for each in list(written.find_all(exp.Column)):
            key = next((key for key in self.keys if self._is(key, each)), None)
            if key is not None and not self._is_own(each):
                each.replace(exp.column(self._column(key, _KEY).name, table=_RELEASED, quoted=True))
        return written

    def _is_own(self, column: exp.Column) -> bool:
        """Whether a column is one of a SELECT inside which it stands."""
        select = column.find_ancestor(exp.Select)
        while select is not None:
            try:
                if self.columns_of(select)(column):
                    return True
            except PrivsqlError:
                return True
            select = select.find_ancestor(exp.Select)
        return False

    def _window(self, node: exp.Window) -> exp.Expr:
        """The function of a window stays above; what it is taken of, and its order, may be released."""
        written = self._with_parts(node, besides="this")
        written.set("this", self._windowed(node.this))
        return written

    def _windowed(self, function: exp.Expr) -> exp.Expr:
        if isinstance(function, _AROUND_A_WINDOW):
            written = self._with_parts(function, besides="this")
            written.set("this", self._windowed(function.this))
            return written
        return self._with_parts(function)

    def _with_parts(self, node: exp.Expr, besides: str = "") -> exp.Expr:
        written = node.copy()
        for name, value in node.args.items():
            if name == besides:
                continue
            if isinstance(value, exp.Expr):
                written.set(name, self.above(value))
            elif isinstance(value, list):
                written.set(
                    name, [self.above(each) if isinstance(each, exp.Expr) else each for each in value]
                )
        return written

    def _column(self, node: exp.Expr, kind: str) -> exp.Column:
        """The column of the released table that holds a key or an aggregate."""
        known = next((name for each, name in self.columns.items() if _same(each, node)), None)
        if known is None:
            known = self._name(node, kind)
            self.columns[_bare(node)] = known
        return exp.column(known, quoted=True)

    def _name(self, node: exp.Expr, kind: str) -> str:
        """The name that the query gives a key or an aggregate, unless it also means something else by it."""
        listed = [(output_name(each).lower(), each) for each in self.node.expressions]
        named = [each for each in self.node.expressions if _same(_value(each), node)]
        wanted = output_name(named[0]) if named else node.name if isinstance(node, exp.Column) else ""
        meant = [each for name, each in listed if name == wanted.lower()]
        taken = {name.lower() for name in self.columns.values()}
        if wanted and wanted.lower() not in taken and all(_same(_value(each), node) for each in meant):
            return wanted
        number = sum(name.startswith(f"{self.prefix}{kind}_") for name in self.columns.values()) + 1
        return f"{self.prefix}{kind}_{number}"


def _value(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias) else item


def _bare(node: exp.Expr) -> exp.Expr:
    return _bare(node.this) if isinstance(node, exp.Paren) else node


def _same(one: exp.Expr, other: exp.Expr) -> bool:
    """Whether two expressions over the same rows are written alike; case and parentheses do not count."""
    one, other = _bare(one), _bare(other)
    if isinstance(one, exp.Column) and isinstance(other, exp.Column):
        return one.name.lower() == other.name.lower() and one.table.lower() == other.table.lower()
    return one == other


def _is_aggregate(node: exp.Expr) -> bool:
    """An aggregate over rows; one that is the function of a window is none."""
    if isinstance(node, (exp.Filter, exp.WithinGroup)):
        return _is_aggregate(node.this)
    return isinstance(node, (exp.AggFunc, exp.Grouping, exp.GroupingId)) or is_aggregate(node)


def _has_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate over rows is somewhere in an expression, or a window over them."""
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window) or _is_aggregate(node):
        return True
    return any(_has_aggregate(each) for each in node.iter_expressions())


def _terms(group: exp.Expr) -> list[exp.Expr]:
    """Every key of GROUP BY, also those inside ROLLUP, CUBE and GROUPING SETS."""
    found: list[exp.Expr] = []
    for name in ("expressions", "rollup", "cube", "grouping_sets"):
        for each in group.args.get(name) or []:
            found += _keys_of(each)
    return found


def _keys_of(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple)):
        return [key for each in node.expressions for key in _keys_of(each)]
    return [node]


def _unused(node: exp.Expr) -> str:
    """What the names of released columns begin with, so that no name of the query is one of them."""
    used = {each.name.lower() for each in node.find_all(exp.Identifier)}
    prefix = ""
    while any(name.startswith((f"{prefix}{_KEY}_", f"{prefix}{_VALUE}_")) for name in used):
        prefix += "r"
    return prefix
