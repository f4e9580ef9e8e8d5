"""An expression of the SQL above the releases goes in; its value, up to the noise, comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from privsql.sql.boxes import cell_rules
from privsql.sql.boxes.box_scope import Scope
from privsql.sql.boxes.cells import (
    FALSE,
    TRUE,
    Cell,
    Endless,
    Fixed,
    NoRule,
    Sql,
    Truth,
    Value,
    cell_of,
    either,
    finite,
    holds,
    is_null,
    no,
    truth_of,
)
from privsql.sql.boxes.program import ValueTable, reading

TableOf = Callable[[exp.Expr, Scope], ValueTable]  # a subquery as a table of the program
_BASES = ("2", "10")  # of logarithms
_NOT_COPIED = (exp.Window, exp.AggFunc, exp.Star, exp.Lambda)


class Evaluator:
    """Values of expressions in a scope. `table_of`: what a subquery reads, as a table of the program."""

    def __init__(self, scope: Scope, table_of: TableOf) -> None:
        self.scope, self.table_of = scope, table_of

    # -- values ----------------------------------------------------------------------------------------------
    def value(self, node: exp.Expr) -> Value:
        """Raises NoRule where its ends are not known."""
        found = self.scope.computed.get(node)
        if found is None:
            fixed = self._fixed(node)
            found = self.scope.short(self._by_rule(node)) if fixed is None else Fixed(fixed)
        if isinstance(found, Endless):
            raise NoRule
        return found

    def cell(self, node: exp.Expr) -> Cell:
        found = self.scope.short(cell_of(self.value(node)))
        assert isinstance(found, Cell)
        return found

    def truth(self, node: exp.Expr) -> Truth:
        found = self.scope.short(truth_of(self.value(node)))
        assert isinstance(found, Truth)
        return found

    def fixed(self, node: exp.Expr) -> Sql:
        """What noise does not reach. Raises NoRule where it does."""
        found = self.value(node)
        if not isinstance(found, Fixed):
            raise NoRule
        return found.sql

    def filter(self, condition: exp.Expr) -> None:
        """Leave only the rows that may fulfil a condition."""
        value = self.value(condition)  # this may add columns to the rows
        self.scope.rows = self.scope.program.where(self.scope.rows, value)

    def _fixed(self, node: exp.Expr) -> Sql | None:
        """An expression with its columns as those of the program; None where noise reaches it."""
        found = self.scope.computed.get(node)
        if found is not None:
            return found.sql if isinstance(found, Fixed) else None
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            return self._fixed_column(node)
        if isinstance(node, (exp.Query, exp.Exists)) or node.args.get("query") is not None:
            self.scope.computed[node] = self._by_rule(node)
            return self._fixed(node)
        return None if isinstance(node, _NOT_COPIED) else self._rebuilt(node)

    def copied(self, node: exp.Expr) -> Sql | None:
        """An aggregate or a function of a window, of what noise does not reach; None where it does."""
        try:
            return self._rebuilt(node)
        except NoRule:
            return None

    def _rebuilt(self, node: exp.Expr) -> Sql | None:
        written = type(node)()
        for name, each in node.args.items():
            copied = self._copied(each)
            if copied is None and each is not None:
                return None
            written.set(name, copied)
        return written

    def _copied(self, value: Any) -> Any:
        """An argument of a node; None where noise reaches it."""
        if isinstance(value, exp.Expr):
            return self._fixed(value)
        if not isinstance(value, list):
            return value
        found = [self._copied(each) for each in value]
        return None if any(each is None for each in found) else found

    def _fixed_column(self, node: exp.Column) -> Sql | None:
        found = self._column(node)
        return found.sql if isinstance(found, Fixed) else None

    def _column(self, node: exp.Column) -> Value:
        found = self.scope.column(node)
        if not isinstance(found, exp.Expr):
            return found
        name = node.name.lower()
        if name in self.scope.resolving:
            raise NoRule
        self.scope.resolving.add(name)
        try:
            return self.value(found)
        finally:
            self.scope.resolving.discard(name)

    # -- rules -----------------------------------------------------------------------------------------------
    def _by_rule(self, node: exp.Expr) -> Value:
        match node:
            case exp.Column() if not isinstance(node.this, exp.Star):
                return self._column(node)
            case exp.Paren():
                return self.value(node.this)
            case exp.Subquery() | exp.Select() | exp.SetOperation():
                return self._subquery(node)
            case exp.In() | exp.Exists():
                return self._membership(node)
            case exp.Case() | exp.If():
                return self._case(node)
            case _ if type(node) in cell_rules.ARITHMETIC:
                return self._arithmetic(node)
            case _ if type(node) in cell_rules.COMPARISONS:
                return cell_rules.COMPARISONS[type(node)](self.cell(node.this), self.cell(node.expression))
            case exp.And() | exp.Or() | exp.Not() | exp.Between() | exp.Is():
                return self._condition(node)
            case _:
                return self._function(node)

    def _arithmetic(self, node: exp.Expr) -> Value:
        rule = cell_rules.ARITHMETIC[type(node)]
        ends, usable = rule(self.cell(node.this), self.cell(node.expression))
        kept = self.scope.keep(ends)
        assert isinstance(kept, Cell)
        return finite(kept, usable)

    def _condition(self, node: exp.Expr) -> Value:
        match node:
            case exp.And():
                return cell_rules.conjunction(self.truth(node.this), self.truth(node.expression))
            case exp.Or():
                return cell_rules.disjunction(self.truth(node.this), self.truth(node.expression))
            case exp.Not():
                return cell_rules.opposite(self.truth(node.this))
            case exp.Between() if not node.args.get("symmetric"):
                above = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
                below = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
                return cell_rules.conjunction(self.truth(above), self.truth(below))
            case exp.Is(expression=exp.Null()):
                return cell_rules.missing(self.cell(node.this))
            case exp.Is(expression=exp.Boolean(this=wanted)):
                found = self.truth(node.this)
                found = found if wanted else cell_rules.opposite(found)
                return Truth(found.true, either(found.false, found.null), FALSE)
            case _:
                raise NoRule

    def _function(self, node: exp.Expr) -> Value:
        match node:
            case exp.Neg():
                return cell_rules.negative(self.cell(node.this))
            case exp.Abs():
                return cell_rules.magnitude(self.cell(node.this))
            case exp.Greatest(args={"ignore_nulls": True}) | exp.Least(args={"ignore_nulls": True}):
                cells = [self.cell(each) for each in (node.this, *node.expressions)]
                rule = cell_rules.greatest_of if isinstance(node, exp.Greatest) else cell_rules.least_of
                return rule(cells)
            case exp.Coalesce():
                return cell_rules.first_of([self.cell(each) for each in (node.this, *node.expressions)])
            case exp.Nullif():
                cell, other = self.cell(node.this), self.cell(node.expression)
                null = either(cell.null, cell_rules.equal(cell, other).true)
                return Cell(cell.low, cell.high, null, cell.whole)
            case exp.Log(this=exp.Literal(this=base), expression=exp.Expr() as inner) if base in _BASES:
                return cell_rules.above_zero(node, self.cell(inner), "expression")
            case exp.Ln() | exp.Sqrt() | exp.Log(expression=None):
                return cell_rules.above_zero(node, self.cell(node.this))
            case exp.Cast() if type(node) is exp.Cast and node.to.is_type(*cell_rules.RISING_TYPES):
                return cell_rules.rising(node, self.cell(node.this))
            case _ if isinstance(node, cell_rules.RISING) and self._others_are_literals(node):
                return cell_rules.rising(node, self.cell(node.this))
            case _:
                raise NoRule

    @staticmethod
    def _others_are_literals(node: exp.Expr) -> bool:
        others = [each for each in node.iter_expressions() if each is not node.this]
        return all(isinstance(each, (exp.Literal, exp.Neg)) for each in others)

    def _case(self, node: exp.Expr) -> Value:
        branches = [node] if isinstance(node, exp.If) else node.args["ifs"]
        operand = None if isinstance(node, exp.If) else node.this
        default = node.args.get("false" if isinstance(node, exp.If) else "default")
        pairs = []
        for each in branches:
            asked = each.this if operand is None else exp.EQ(this=operand.copy(), expression=each.this.copy())
            pairs.append((self.truth(asked), self.cell(each.args["true"])))
        otherwise = cell_rules.NOTHING if default is None else self.cell(default)
        return cell_rules.case_of(pairs, otherwise)

    # -- subqueries ------------------------------------------------------------------------------------------
    def _subquery(self, node: exp.Expr) -> Value:
        """A subquery of one row at most: one of the rows that there may be."""
        table = self.table_of(node, self.scope)
        if len(table.columns) != 1 or table.rows.open:
            raise NoRule
        value = table.columns[0][1]
        if isinstance(value, Fixed) and table.rows.must == TRUE:
            return Fixed(_only(table, value.sql))
        cell = cell_of(value)
        low, high = _only(table, exp.Min(this=cell.low)), _only(table, exp.Max(this=cell.high))
        there = holds(exp.LogicalOr(this=table.rows.must))
        null = either(no(there), holds(exp.LogicalOr(this=cell.null)))
        return self.scope.keep(Cell(low, high, _only(table, null), cell.whole))

    def _membership(self, node: exp.Expr) -> Value:
        if isinstance(node, exp.Exists):
            table = self._closed(node.this)
            there = [exp.Exists(this=_rows(table, exp.alias_(TRUE, "one"), sure)) for sure in (False, True)]
            if table.rows.must == TRUE:
                return Fixed(there[0])
            return Truth(there[0], no(there[1]), FALSE)
        query = node.args.get("query")
        if query is None:
            cell, found = self.cell(node.this), Truth(FALSE, TRUE, FALSE)
            for each in node.expressions:
                found = cell_rules.disjunction(found, cell_rules.equal(cell, self.cell(each)))
            return found
        table, wanted = self._closed(query), self.fixed(node.this)
        if len(table.columns) != 1 or not isinstance(table.columns[0][1], Fixed):
            raise NoRule
        listed = table.columns[0][1].sql
        among = [exp.In(this=wanted, query=_rows(table, listed, sure).subquery()) for sure in (False, True)]
        if table.rows.must == TRUE:
            return Fixed(among[0])
        gap = exp.Exists(this=_rows(table, listed, False).where(exp.Is(this=listed, expression=exp.null())))
        return Truth(holds(among[0]), holds(no(among[1])), either(is_null(wanted), gap))

    def _closed(self, query: exp.Expr) -> ValueTable:
        table = self.table_of(query, self.scope)
        if table.rows.open:
            raise NoRule
        return table


def _rows(table: ValueTable, item: Sql, sure: bool) -> exp.Select:
    """A column of a table: of all rows that there may be, or of those that are there for certain."""
    found = reading(table.rows.name)
    found.set("expressions", [item.copy()])
    return found.where(table.rows.must.copy()) if sure and table.rows.must != TRUE else found


def _only(table: ValueTable, item: Sql) -> Sql:
    return _rows(table, item, False).subquery()
