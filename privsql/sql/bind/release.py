"""The nodes of a grouped SELECT go in; expressions over its keys and aggregates, and the columns of its
release, come out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from privsql.algebra import build
from privsql.algebra.expressions import OF_TWO, Aggregate, Call, Column, Expression, Literal
from privsql.algebra.functions import ALIASES
from privsql.algebra.relations import Key, Sets
from privsql.algebra.reserved import unique_names
from privsql.errors import Place, PrivsqlError, Refused, SqlError
from privsql.sql.bind.grouping import grouping
from privsql.sql.bind.quantiles import ORDERS, gives_list, order_aggregates
from privsql.sql.bind.scalar.binder import ExpressionBinder
from privsql.sql.bind.scope import Source
from privsql.sql.bind.within_unit.windowed import is_windowed
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import distinct_aggregate, distinct_within_unit, refusal, value_of_one_person
from privsql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER_BOUNDS, NUMBERS, TEXT, Kind, Type, integer, list_of

# aggregates of one or two arguments: the sqlglot class and the name in our tree
SPREADS: dict[type[exp.Expr], str] = {
    exp.VariancePop: "var_pop",
    exp.Variance: "var_samp",
    exp.StddevPop: "stddev_pop",
    exp.StddevSamp: "stddev_samp",
    exp.Stddev: "stddev_samp",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.Corr: "corr",
    exp.RegrSlope: "regr_slope",
    exp.RegrIntercept: "regr_intercept",
    exp.RegrR2: "regr_r2",
}
# COUNT and AVG of the rows where neither argument is NULL
PAIRED = (exp.RegrCount, exp.RegrAvgx, exp.RegrAvgy)
_SUMS = (exp.Count, exp.CountIf, exp.Sum, exp.Avg)
AGGREGATES: tuple[type[exp.Expr], ...] = (*_SUMS, *SPREADS, *PAIRED, *ORDERS)
CHOICES = (exp.ArgMax, exp.ArgMin, exp.Mode)
# aggregates supported only where they are exact: over public rows, or over one unit's own rows
EXACT: dict[type[exp.Expr], str] = {
    exp.ArgMin: "arg_min",
    exp.ArgMax: "arg_max",
    exp.LogicalOr: "bool_or",
    exp.LogicalAnd: "bool_and",
    exp.First: "first",
    exp.Last: "last",
    exp.AnyValue: "min",  # any value is correct, and the least one does not depend on the order of rows
}


class ReleaseBinder(ExpressionBinder):
    """Binds expressions over keys and aggregates; collects each distinct aggregate once."""

    def __init__(
        self,
        rows: ExpressionBinder,
        source: Source,
        aliases: Mapping[str, exp.Expr],
        resolving: list[str],
        keys: tuple[Key, ...],
        sets: Sets = (),
        exact: bool = False,
    ) -> None:
        super().__init__(self._column)
        self.exact = exact
        self.rows, self.source, self.aliases, self.resolving = rows, source, aliases, resolving
        self.keys = {key.expression: Column(key.name, key.expression.type) for key in keys}
        self.sets = sets
        self.taken = [key.name for key in keys]
        self.aggregates: dict[Aggregate, str] = {}

        self.windows: Callable[[exp.Window], Expression] | None = None  # over exact groups of one unit

    def over_window(self, node: exp.Expr) -> Aggregate | None:
        """The aggregate that is taken over a window; None where there is none, or several."""
        if not is_aggregate(node.this if isinstance(node, exp.Filter) else node):
            return None
        found = list(self._aggregates(node))
        return found[0] if len(found) == 1 else None

    def key_column(self, column: Column) -> Expression:
        if column in self.keys:
            return self.keys[column]
        raise not_grouped(column.name, None)

    def special(self, node: exp.Expr) -> Expression | None:
        if isinstance(node, exp.Window):
            if self.windows is None:
                raise refusal("Window", place_of(node))
            return self.windows(node)
        if isinstance(node, (exp.Grouping, exp.GroupingId)):
            return self._grouping(node)
        if isinstance(node, exp.Filter) or is_aggregate(node):
            found = tuple(self._collected(each) for each in self._aggregates(node))
            listed = gives_list(node.this if isinstance(node, exp.Filter) else node)
            return Call("list", found, list_of(found[0].type)) if listed else found[0]
        if self.keys and not isinstance(node, (exp.Literal, exp.Paren)) and not has_aggregate(node):
            try:
                row = self.rows.bind(node)
            except PrivsqlError:
                return None
            return self.keys.get(row)
        return None

    def _collected(self, aggregate: Aggregate) -> Expression:
        same = next(
            (each for each in self.aggregates if replace(each, place=None) == replace(aggregate, place=None)),
            None,
        )
        if same is None:
            name = unique_names([*self.taken, aggregate.function])[-1]
            self.taken.append(name)
            self.aggregates[aggregate] = name
            same = aggregate
        return Column(self.aggregates[same], same.type)

    def _grouping(self, node: exp.Expr) -> Expression:
        """Bind GROUPING(): which of some keys a row is a total over."""
        keys = list(self.keys)
        named = [self.rows.bind(each) for each in node.expressions]
        if not named or any(each not in keys for each in named):
            raise SqlError(
                "sql-grouping",
                "GROUPING takes keys of GROUP BY, one or more",
                "GROUPING(a), where a is a key",
                place_of(node),
            )
        return grouping([keys.index(each) for each in named], len(keys)) if self.sets else Literal(0, BIGINT)

    def _column(self, node: exp.Column) -> Expression:
        name = node.name.lower()
        if not node.table and name in self.aliases and name not in self.resolving:
            self.resolving.append(name)
            try:
                return self.bind(self.aliases[name])
            finally:
                self.resolving.pop()
        self.source.find(node.name, node.table or None, place_of(node))  # raises for an unknown name
        raise not_grouped(node.name, node)

    def _aggregates(self, node: exp.Expr) -> Iterator[Aggregate]:
        """The aggregate of a node; for several quantiles in one call, each of them."""
        condition: Expression | None = None
        place = place_of(node)
        if isinstance(node, exp.Filter):
            condition, node = self.rows.condition(node.expression.this), node.this
            if not is_aggregate(node):
                raise Refused(
                    "refused-aggregate",
                    "FILTER is supported behind aggregates only.",
                    "Write COUNT(*) FILTER (WHERE ...).",
                    place,
                )
        if isinstance(node, ORDERS):
            yield from order_aggregates(node, self._row, condition, place, self.exact)
        else:
            # of BigQuery's private aggregates; PrivateSelectBinder applies them
            bounds = node.args.get("bounds")
            ends = tuple(self.rows.bind(each) for each in bounds.expressions) if bounds else ()
            found = self._aggregate(node, condition, place)
            yield replace(found, parameters=ends) if ends else found  # FIRST and LAST have their own

    def _row(self, node: exp.Expr) -> Expression:
        """The argument of an aggregate."""
        if has_any_aggregate(node):
            raise SqlError(
                "sql-aggregate", "an aggregate inside an aggregate", "use a subquery", place_of(node)
            )
        return self.rows.bind(node)

    def _aggregate(self, node: exp.Expr, condition: Expression | None, place: Place | None) -> Aggregate:
        if not self.exact:
            _refuse_of_many_people(node, place)
        inner = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
        if inner is not None and has_any_aggregate(inner):
            raise SqlError("sql-aggregate", "an aggregate inside an aggregate", "use a subquery", place)
        match node:
            case exp.Count() if isinstance(inner, exp.Star) or inner is None:
                return Aggregate("count", None, condition, BIGINT, place)
            case exp.Count() if isinstance(inner, exp.Distinct):
                return self._distinct(inner, condition, place)
            case exp.Count():
                return _count(self.rows.bind(inner), condition, place)
            case exp.CountIf():
                test = self.rows.condition(inner)
                both = test if condition is None else Call("and", (condition, test), BOOLEAN)
                return Aggregate("count", None, both, BIGINT, place)
            case _ if type(node) in EXACT:
                return self._exact(node, condition, place)
            case _:
                return self._of_numbers(node, inner, condition, place)

    def _exact(self, node: exp.Expr, condition: Expression | None, place: Place | None) -> Aggregate:
        """An aggregate that is supported only where it is exact."""
        name, inner, rows = EXACT[type(node)], node.this, self.rows
        match node:
            case exp.LogicalOr() | exp.LogicalAnd():
                return Aggregate(name, rows.condition(inner), condition, BOOLEAN, place)
            case exp.First() | exp.Last():
                return self._at_the_end(node, condition, place)
            case exp.AnyValue() if isinstance(inner, exp.Order):
                raise Refused(
                    "refused-arrayagg",
                    "ANY_VALUE with ORDER BY is not supported.",
                    "Write first(x ORDER BY day).",
                    place,
                )
        argument = rows.bind(inner.expressions[0] if isinstance(inner, exp.Distinct) else inner)
        by = rows.bind(node.expression) if isinstance(node, (exp.ArgMin, exp.ArgMax)) else None
        return Aggregate(name, argument, condition, argument.type, place, by)

    def _of_numbers(
        self, node: exp.Expr, inner: exp.Expr, condition: Expression | None, place: Place | None
    ) -> Aggregate:
        """SUM, AVG, and everything computed from sums."""
        name = SPREADS.get(type(node), "sum" if isinstance(node, exp.Sum) else "avg")
        if isinstance(inner, exp.Distinct):
            return self._of_different(name, inner.expressions, condition, place)
        argument = self._number(inner, name, place)
        if isinstance(node, PAIRED) or name in OF_TWO:
            other = self._number(node.expression, name, place)
            if isinstance(node, PAIRED):
                return _paired(node, argument, other, condition, place)
            return Aggregate(name, argument, condition, DOUBLE, place, other)
        type_ = self._total_type(argument.type) if name == "sum" else DOUBLE
        return Aggregate(name, argument, condition, type_, place)

    def _of_different(
        self, name: str, of: list[exp.Expr], condition: Expression | None, place: Place | None
    ) -> Aggregate:
        if name not in ("sum", "avg") or len(of) != 1:
            raise distinct_aggregate(place)
        argument = self._number(of[0], name, place)
        if self.exact and argument.type.kind is not Kind.INTEGER:
            raise distinct_within_unit(name, place)
        of_sum = self._total_type(argument.type)
        return Aggregate(f"{name}_distinct", argument, condition, of_sum if name == "sum" else DOUBLE, place)

    def _total_type(self, summed: Type) -> Type:
        """An exact total of numbers may exceed 64 bits; a released total cannot, because it is clamped."""
        if summed.kind is not Kind.INTEGER:
            return DOUBLE
        return integer(*INTEGER_BOUNDS["HUGEINT"]) if self.exact and summed.is_wide else BIGINT

    def _at_the_end(self, node: exp.Expr, condition: Expression | None, place: Place | None) -> Aggregate:
        """FIRST(x ORDER BY day), LAST(x ORDER BY day): ordered by a value of the rows, never by their
        physical order.
        """
        inner = node.this
        terms = inner.expressions if isinstance(inner, exp.Order) else []
        if len(terms) != 1 or isinstance(inner.this, exp.Distinct):
            raise Refused(
                "refused-arrayagg",
                "FIRST and LAST need one ORDER BY term inside the parentheses.",
                "Write first(x ORDER BY day) or last(x ORDER BY day).",
                place,
            )
        term = terms[0]
        argument, by = self.rows.bind(inner.this), self.rows.bind(term.this)
        order = bool(term.args.get("desc")), bool(term.args.get("nulls_first"))
        return Aggregate(EXACT[type(node)], argument, condition, argument.type, place, by, order)

    def _number(self, node: exp.Expr, name: str, place: Place | None) -> Expression:
        argument = self.rows.bind(node)
        if argument.type.kind is Kind.BOOLEAN:
            argument = Call("cast", (argument,), integer(0, 1))
        if argument.type.kind not in NUMBERS:
            raise SqlError(
                "sql-type", f"{name.upper()} needs numbers, this is {argument.type}", "cast it", place
            )
        return argument

    def _distinct(self, node: exp.Distinct, condition: Expression | None, place: Place | None) -> Aggregate:
        if len(node.expressions) != 1:
            raise Refused(
                "refused-distinct",
                "COUNT(DISTINCT ...) takes one value, or several in parentheses.",
                "Write COUNT(DISTINCT (a, b)).",
                place,
            )
        (counted,) = node.expressions
        if isinstance(counted, exp.Tuple):  # a row of values; unlike a value, a row with NULLs counts
            argument: Expression = Call(
                "row", tuple(self.rows.bind(each) for each in counted.expressions), TEXT
            )
        else:
            argument = self.rows.bind(counted)
        if any(
            each.type.kind is Kind.INTERVAL
            for each in (argument, *(argument.args if isinstance(argument, Call) else ()))
        ):
            raise build.no_intervals(place)
        return Aggregate("count_distinct", argument, condition, BIGINT, place)


def _refuse_of_many_people(node: exp.Expr, place: Place | None) -> None:
    """Refuse aggregates that would return one person's value, or that one person can decide."""
    match node:
        case exp.ArgMin() | exp.ArgMax():
            raise value_of_one_person(place)
        case exp.First() | exp.Last() | exp.AnyValue():
            raise refusal("ArrayAgg", place)
        case exp.LogicalOr() | exp.LogicalAnd():
            raise Refused(
                "refused-logicalor",
                "BOOL_OR and BOOL_AND over private rows are not supported: one person can decide the result.",
                "Ask for COUNT(*) FILTER (WHERE ...).",
                place,
            )


def is_aggregate(node: exp.Expr) -> bool:
    return (
        isinstance(node, AGGREGATES)
        or type(node) in EXACT
        or (isinstance(node, exp.Anonymous) and is_mean(node))
    )


def _paired(
    node: exp.Expr, first: Expression, second: Expression, condition: Expression | None, place: Place | None
) -> Aggregate:
    """REGR_COUNT, REGR_AVGX, REGR_AVGY(y, x): over the rows where neither is NULL."""
    for each in (first, second):
        known = Call("not", (Call("is_null", (each,), BOOLEAN),), BOOLEAN)
        condition = known if condition is None else Call("and", (condition, known), BOOLEAN)
    if isinstance(node, exp.RegrCount):
        return Aggregate("count", None, condition, BIGINT, place)
    return Aggregate("avg", second if isinstance(node, exp.RegrAvgx) else first, condition, DOUBLE, place)


def _count(argument: Expression, condition: Expression | None, place: Place | None) -> Aggregate:
    """COUNT(x); COUNT of a constant is COUNT(*)."""
    constant = isinstance(argument, Literal) and argument.value is not None
    return Aggregate("count", None if constant else argument, condition, BIGINT, place)


def is_mean(node: exp.Anonymous) -> bool:
    """Whether it is MEAN(x), which sqlglot does not parse as AVG."""
    return ALIASES.get(str(node.this).lower()) == "avg" and len(node.expressions) == 1


def has_aggregate(node: exp.Expr) -> bool:
    """Whether it contains COUNT, SUM or AVG."""
    return any(
        isinstance(each, AGGREGATES) or (isinstance(each, exp.Anonymous) and is_mean(each))
        for each in own_nodes(node)
        if not is_windowed(each)
    )


def has_any_aggregate(node: exp.Expr) -> bool:
    """Whether it contains any aggregate, including those supported only where they are exact."""
    return any(is_aggregate(each) and not is_windowed(each) for each in own_nodes(node))


def own_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of an expression, without those of its subqueries."""
    return node.walk(prune=lambda each: isinstance(each, exp.Query))


def has_choice(node: exp.Expr) -> bool:
    """Whether it contains arg_max, arg_min or mode."""
    return node.find(*CHOICES) is not None


def bare(node: exp.Expr) -> exp.Expr:
    """A node without parentheses and alias."""
    while isinstance(node, (exp.Paren, exp.Alias)):
        node = node.this
    return node


def not_grouped(name: str, node: exp.Expr | None) -> Refused:
    return Refused(
        "refused-not-grouped",
        f"{name} is neither a key nor inside an aggregate: it would show people's rows.",
        f"Add GROUP BY {name} with declared keys, or put it into COUNT, SUM or AVG.",
        place_of(node) if node is not None else None,
    )
