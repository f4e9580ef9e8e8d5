"""A permitted sqlglot node goes in; a typed expression over the columns in scope comes out.

Logic and conditions are bound here, constants and casts in casts.py, functions in calls.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from privsql.algebra import build
from privsql.algebra.expressions import Call, Expression, Literal
from privsql.algebra.patterns import wrong_escape
from privsql.errors import PrivsqlError, Refused, SqlError
from privsql.sql.bind.scalar.calls import CALLS, function_call
from privsql.sql.bind.scalar.casts import CONSTANTS
from privsql.sql.parse.permitted import FUNCTION_OF
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import refusal
from privsql.types import BOOLEAN, NULL, Kind


class ExpressionBinder:
    """Binds expressions over rows. `column` resolves a column node; a subclass may handle a node first, in
    `special`.
    """

    def __init__(self, column: Callable[[exp.Column], Expression]) -> None:
        self.column = column

    def special(self, node: exp.Expr) -> Expression | None:
        return None

    def bind(self, node: exp.Expr | None) -> Expression:
        if node is None:
            raise SqlError("sql-syntax", "an argument is missing here", "check the commas and parentheses")
        try:
            found = self.special(node)
            if found is None:
                found = self._bind(node)
                for each in found.args if isinstance(found, Call) else ():
                    build.not_a_list(each)
            return build.small(found)
        except PrivsqlError as error:
            raise error.at(place_of(node)) from None

    def condition(self, node: exp.Expr) -> Expression:
        """Bind a condition: WHERE, FILTER, HAVING, WHEN."""
        bound = self.bind(node)
        if bound.type.kind is Kind.NULL:
            return Literal(None, BOOLEAN)
        if bound.type.kind is not Kind.BOOLEAN:
            raise build.type_error(
                f"a condition must be true or false, this is {bound.type}",
                place_of(node),
                "compare it: x > 0, x IS NOT NULL",
            )
        return bound

    def _bind(self, node: exp.Expr) -> Expression:
        kind = type(node)
        if kind in _BINDERS:
            return _BINDERS[kind](self, node)
        if kind in CONSTANTS:
            return CONSTANTS[kind](self.bind, node)
        if kind in CALLS:
            return CALLS[kind](self.bind, node)
        if kind in FUNCTION_OF:
            return function_call(self.bind, node)
        raise Refused(
            "refused-expression",
            f"{kind.__name__.upper()} is not supported in this place.",
            "Use COUNT, SUM or AVG, or move it out.",
        )

    # -- conditions ------------------------------------------------------------------------------------------
    def _junction(self, node: exp.And | exp.Or) -> Expression:
        kind, parts, pending = type(node), [], [node]
        while pending:  # iterative: a chain of a thousand ORs becomes one flat node
            each = pending.pop()
            if type(each) is kind:
                pending.extend([each.expression, each.this])
            else:
                parts.append(self.condition(each))
        return Call("and" if kind is exp.And else "or", tuple(parts), BOOLEAN)

    def _not(self, node: exp.Not) -> Expression:
        return Call("not", (self.condition(node.this),), BOOLEAN)

    def _is(self, node: exp.Is) -> Expression:
        value = self.bind(node.this)
        match node.expression:
            case exp.Null():
                return Call("is_null", (value,), BOOLEAN)
            case exp.Boolean() as truth:
                if value.type.kind is not Kind.BOOLEAN:
                    raise build.type_error(f"IS TRUE needs a condition, this is {value.type}")
                return Call("is_true" if truth.this else "is_false", (value,), BOOLEAN)
        raise Refused(
            "refused-expression",
            "IS takes NULL, TRUE, FALSE and DISTINCT FROM only.",
            "Write = or IS NOT DISTINCT FROM.",
        )

    def _between(self, node: exp.Between) -> Expression:
        value, low, high = (self.bind(node.args[name]) for name in ("this", "low", "high"))
        return Call("and", (build.compare(">=", value, low), build.compare("<=", value, high)), BOOLEAN)

    def _in(self, node: exp.In) -> Expression:
        if node.args.get("query"):
            return self._subquery(node)
        if not node.expressions:
            raise Refused("refused-in", "IN needs a list of values.", "Write IN ('CA', 'NY').")
        args = build.comparable(
            build.with_truths([self.bind(node.this), *(self.bind(each) for each in node.expressions)])
        )
        return Call("in", tuple(args), BOOLEAN)

    def _subquery(self, node: exp.In | exp.Exists | exp.Query) -> Expression:
        raise refusal("Exists")

    def _unnest(self, node: exp.Explode | exp.ArrayDistinct) -> Expression:
        raise refusal("Unnest")

    # -- patterns --------------------------------------------------------------------------------------------
    def _like(self, node: exp.Like | exp.ILike) -> Expression:
        return self._matched(node, None)

    def _escape(self, node: exp.Escape) -> Expression:
        if isinstance(node.this, (exp.Like, exp.ILike)):
            return self._matched(node.this, node.expression)
        # SIMILAR TO, ~ and GLOB: DuckDB supports ESCAPE with none of them
        raise Refused(
            "refused-pattern",
            "ESCAPE is supported with LIKE and ILIKE only.",
            "Write LIKE '10!%' ESCAPE '!'.",
        )

    def _matched(self, node: exp.Like | exp.ILike, escape: exp.Expr | None) -> Expression:
        name = "like" if isinstance(node, exp.Like) else "ilike"
        args = [self.bind(node.this), self.bind(node.expression)]
        if escape is not None:
            mark = self.bind(escape)
            if not isinstance(mark, Literal) or not isinstance(mark.value, str) or len(mark.value) != 1:
                raise wrong_escape()
            name, args = f"{name}_escape", [*args, mark]
        found = build.call(name, args)
        return Call("not", (found,), BOOLEAN) if node.args.get("negate") else found

    # -- branches --------------------------------------------------------------------------------------------
    def _if(self, node: exp.If) -> Expression:
        return self._choice([self.condition(node.this), self.bind(node.args["true"])], node.args.get("false"))

    def _case(self, node: exp.Case) -> Expression:
        subject = self.bind(node.this) if node.this is not None else None
        parts: list[Expression] = []
        for branch in node.args["ifs"]:
            test = (
                self.condition(branch.this)
                if subject is None
                else build.compare("=", subject, self.bind(branch.this))
            )
            parts += [test, self.bind(branch.args["true"])]
        return self._choice(parts, node.args.get("default"))

    def _choice(self, parts: list[Expression], default: exp.Expr | None) -> Expression:
        last = self.bind(default) if default is not None else Literal(None, NULL)
        values = build.same_type([*parts[1::2], last])
        args = [each for pair in zip(parts[0::2], values[:-1], strict=True) for each in pair]
        return Call("case", (*args, values[-1]), build.shared_type(values))


_BINDERS: Mapping[type[exp.Expr], Callable[[ExpressionBinder, Any], Expression]] = {
    exp.Column: lambda binder, node: binder.column(node),
    exp.Paren: lambda binder, node: binder.bind(node.this),
    exp.And: ExpressionBinder._junction,
    exp.Or: ExpressionBinder._junction,
    exp.Not: ExpressionBinder._not,
    exp.Is: ExpressionBinder._is,
    exp.Between: ExpressionBinder._between,
    exp.In: ExpressionBinder._in,
    exp.Exists: ExpressionBinder._subquery,
    exp.Subquery: ExpressionBinder._subquery,
    exp.Select: ExpressionBinder._subquery,
    exp.Union: ExpressionBinder._subquery,
    exp.Explode: ExpressionBinder._unnest,
    exp.ArrayDistinct: ExpressionBinder._unnest,
    exp.Like: ExpressionBinder._like,
    exp.ILike: ExpressionBinder._like,
    exp.Escape: ExpressionBinder._escape,
    exp.Case: ExpressionBinder._case,
    exp.If: ExpressionBinder._if,
}
