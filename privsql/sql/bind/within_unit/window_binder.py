"""Window functions over people's rows go in; windows within one unit come out, or a refusal.

A window is allowed where rows that agree in what PARTITION BY names belong to one unit. The rendered SQL
adds the unit to the partition: what was written decides whether the window is allowed, and no bound rests on
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from sqlglot import exp

from privsql.algebra import build, literals
from privsql.algebra.expressions import Aggregate, Call, Column, Expression, Literal, columns_of
from privsql.algebra.owners import Owner, Whose, owner
from privsql.algebra.relations import Filter, Relation, WindowsWithinUnit, is_public, is_released
from privsql.algebra.reserved import unique_names
from privsql.algebra.windows import AGGREGATES, SHIFTS, VALUES, Order, Window
from privsql.errors import Place, Refused, SqlError, UnknownName, did_you_mean
from privsql.sql.bind.clauses import bind_order, order_terms
from privsql.sql.bind.release import ReleaseBinder
from privsql.sql.bind.scalar.binder import ExpressionBinder
from privsql.sql.bind.scope import Source
from privsql.sql.bind.within_unit.frame_ends import bind_frame, constant_number
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import refusal
from privsql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER_BOUNDS, TEXT, Kind, Type, integer

_RANKS: Mapping[type[exp.Expr], tuple[str, Type]] = {
    exp.RowNumber: ("row_number", BIGINT),
    exp.Rank: ("rank", BIGINT),
    exp.DenseRank: ("dense_rank", BIGINT),
    exp.PercentRank: ("percent_rank", DOUBLE),
    exp.CumeDist: ("cume_dist", DOUBLE),
}
_OF_ROWS: Mapping[type[exp.Expr], str] = {
    exp.Lag: "lag",
    exp.Lead: "lead",
    exp.FirstValue: "first_value",
    exp.First: "first_value",
    exp.LastValue: "last_value",
    exp.Last: "last_value",
    exp.NthValue: "nth_value",
}
_WIDE = integer(*INTEGER_BOUNDS["HUGEINT"])


class WindowBinder:
    """Collects the windows of one SELECT, each of them once. `rows` binds over the columns of `relation`."""

    def __init__(self, node: exp.Select, rows: ExpressionBinder, source: Source, relation: Relation) -> None:
        self.node, self.rows, self.source, self.relation = node, rows, source, relation
        names = [each.name for each in relation.fields]
        self.taken = rows.taken if isinstance(rows, ReleaseBinder) else names
        self.found: dict[Window, str] = {}
        self.inside = False  # of another window

    @cached_property
    def whose(self) -> Owner:
        return owner(self.relation)

    @cached_property
    def named(self) -> Mapping[str, exp.Window]:
        return named_windows(self.node)

    def column(self, node: exp.Window) -> Column:
        """The column that a window function is computed in."""
        place = place_of(node)
        if self.inside:
            raise SqlError("sql-window", "a window inside a window", "use a subquery", place)
        self.inside = True
        try:
            window = self._window(node, place)
        finally:
            self.inside = False
        return self.added(window)

    def added(self, window: Window) -> Column:
        if any(each.type.kind is Kind.INTERVAL for each in (*self.relation.fields, *window.reads)):
            raise build.no_intervals(place_of(self.node))
        if window not in self.found:
            name = unique_names([*self.taken, window.function])[-1]
            self.taken.append(name)
            self.found[window] = name
        return Column(self.found[window], window.type)

    def above(
        self,
        relation: Relation,
        first: exp.Distinct | None = None,
        shown: Sequence[Expression] = (),
        names: Sequence[str] = (),
    ) -> Relation:
        """The rows with all windows, those of them that QUALIFY keeps, and of these the first of each that
        DISTINCT ON names.
        """
        qualify = self.node.args.get("qualify")
        condition = None if qualify is None else self.rows.condition(qualify.this)
        if qualify is not None and not self.found:
            raise SqlError(
                "sql-window",
                "QUALIFY filters by windows, and there is none",
                "write WHERE instead",
                place_of(qualify) or place_of(self.node),
            )
        number = None if first is None else self._first(first, shown, names)
        if self.found:
            relation = WindowsWithinUnit(relation, tuple((name, each) for each, name in self.found.items()))
        if condition is not None:
            relation = Filter(relation, condition)
        if number is None:
            return relation
        name = unique_names([*self.taken, number.function])[-1]
        only = Call("=", (Column(name, BIGINT), Literal(1, integer(1, 1))), BOOLEAN)
        return Filter(WindowsWithinUnit(relation, ((name, number),)), only)

    def _first(self, first: exp.Distinct, shown: Sequence[Expression], names: Sequence[str]) -> Window:
        """The number of a row among those that agree in what DISTINCT ON names."""
        place = place_of(self.node)
        if any(each.type.kind is Kind.INTERVAL for each in self.relation.fields):
            raise build.no_intervals(place)
        listed = first.args["on"]
        by = self.partition(
            listed.expressions if isinstance(listed, exp.Tuple) else [listed], "DISTINCT ON", place
        )
        order = self.node.args.get("order")
        terms = order_terms(order, shown) if order is not None else []
        bound = tuple(bind_order(each, self.rows, shown, names) for each in terms)
        return Window("row_number", None, BIGINT, by, bound)

    def partition(
        self, nodes: Sequence[exp.Expr], clause: str, place: Place | None
    ) -> tuple[Expression, ...]:
        """What splits the rows of one unit; what is the same in all of them splits nothing."""
        if is_public(self.relation) or is_released(self.relation):
            raise refusal("Window", place)
        bound = tuple(self.rows.bind(each) for each in nodes)
        columns = [each.name for each in bound if isinstance(each, Column)]
        if self.whose.whose is not Whose.UNITS or not self.whose.tells(columns):
            raise of_several_people(self.whose, self._unit(), clause, place)
        parts = [
            each
            for each in dict.fromkeys(bound)
            if not {column.name for column in columns_of(each)} <= self.whose.fixed
        ]
        return tuple(sorted(parts, key=repr))

    def _unit(self) -> str:
        """The columns that hold the unit, as the query names them; empty if it has none of them here."""
        shown = [name for name, each in self.source.fields() if self.whose.is_unit([each.name])]
        return shown[0] if shown else ""

    def order(self, terms: Sequence[exp.Expr]) -> tuple[Order, ...]:
        found = [bind_order(each, self.rows, ()) for each in terms]
        return tuple(each for each in found if not isinstance(each.expression, Literal))

    # -- one window ------------------------------------------------------------------------------------------
    def _window(self, node: exp.Window, place: Place | None) -> Window:
        written = written_out(node, self.named)
        by = self.partition(written.args.get("partition_by") or [], "PARTITION BY", place)
        order = written.args.get("order")
        terms = self.order(order.expressions if order is not None else [])
        frame = bind_frame(written.args.get("spec"), terms, self.rows, place)
        window = replace(self._function(node.this, place), by=by, order=terms, frame=frame)
        framed = window.function in AGGREGATES | VALUES
        if frame is not None and not framed:
            raise SqlError(
                "sql-window",
                f"{window.function.upper()} sees all rows of its partition, and takes no frame",
                "leave the frame out",
                place,
            )
        return window

    def _function(self, node: exp.Expr, place: Place | None) -> Window:
        """The function of a window, with nothing of its partition yet."""
        skips = isinstance(node, exp.IgnoreNulls)
        if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)):
            node = node.this
        kind = type(node)
        if skips and kind not in _OF_ROWS:
            raise SqlError(
                "sql-window", "IGNORE NULLS belongs to values of rows", "LAG(x IGNORE NULLS)", place
            )
        if kind in _RANKS:
            name, type_ = _RANKS[kind]
            if node.args.get("expressions") or node.this is not None:
                raise SqlError("sql-arguments", f"{name.upper()} takes no arguments", "leave them out", place)
            return Window(name, None, type_, (), ())
        if kind is exp.Ntile:
            if node.this is None:
                raise SqlError("sql-arguments", "NTILE takes a number", "write NTILE(4)", place)
            return Window(
                "ntile", None, BIGINT, (), (), number=constant_number(node.this, "The n of NTILE(n)", 1)
            )
        if kind in _OF_ROWS:
            return self._of_rows(node, _OF_ROWS[kind], skips)
        return self._aggregate(node, place)

    def _of_rows(self, node: exp.Expr, name: str, skips: bool) -> Window:
        argument = build.not_a_list(self.rows.bind(node.this))
        if argument.type.kind is Kind.NULL:
            argument = Literal(None, TEXT)
        number = None
        if name in SHIFTS or name == "nth_value":
            least = 0 if name in SHIFTS else 1
            offset = node.args.get("offset") or exp.Literal.number(1)
            number = constant_number(offset, f"The n of {name.upper()}(x, n)", least)
        type_, default = argument.type, None
        if node.args.get("default") is not None:
            type_, default = _default(argument, self.rows.bind(node.args["default"]), place_of(node))
        return Window(name, argument, type_, (), (), number=number, default=default, skips_null=skips)

    def _aggregate(self, node: exp.Expr, place: Place | None) -> Window:
        if isinstance(node, exp.CountIf):  # to DuckDB it is a sum: of nothing, NULL
            counted = Call("cast", (self.rows.condition(node.this),), integer(0, 1))
            return Window("sum", counted, _WIDE, (), ())
        binder = ReleaseBinder(self.rows, self.source, {}, [], (), exact=True)
        found = binder.over_window(node)
        if found is None or found.function not in AGGREGATES:
            raise Refused(
                "refused-window",
                "This function is not supported as a window within one person: COUNT, SUM, AVG, MIN, MAX, "
                "BOOL_AND, BOOL_OR, rankings, and values of other rows are.",
                "Write SUM(x) OVER (...), LAG(x) OVER (...) or ROW_NUMBER() OVER (...).",
                place,
            )
        return Window(found.function, found.argument, _type_of(found), (), (), condition=found.condition)


def _type_of(aggregate: Aggregate) -> Type:
    """The type that DuckDB gives a sum within a window: one that holds the sum of all rows there can be."""
    if aggregate.function != "sum" or aggregate.argument is None:
        return aggregate.type
    of = aggregate.argument.type
    match of.kind:
        case Kind.INTEGER:
            return _WIDE
        case Kind.DECIMAL:
            return Type(Kind.DECIMAL, precision=38, scale=of.scale)
        case _:
            return DOUBLE


def _default(
    argument: Expression, default: Expression, place: Place | None
) -> tuple[Type, Expression | None]:
    """What LAG and LEAD return where there is no row: a constant in the type of the value."""
    type_ = argument.type
    if isinstance(default, Literal):
        if default.value is None:
            return type_, None
        if default.type.kind is type_.kind is Kind.INTEGER:
            wide = integer(min(type_.low, default.value), max(type_.high, default.value))
            if str(wide) == str(type_):
                return wide, default
        converted = literals.convert(default, type_) if type_.kind is not Kind.INTEGER else None
        if converted is not None:
            return type_, converted
    raise Refused(
        "refused-window",
        f"What LAG and LEAD return where there is no row must be a constant of the type {type_}.",
        "Leave it out, and write coalesce(LAG(x) OVER (...), y).",
        place,
    )


def first_of_each(node: exp.Select) -> exp.Distinct | None:
    """SELECT DISTINCT ON (...)."""
    found = node.args.get("distinct")
    return found if found is not None and found.args.get("on") is not None else None


def named_windows(node: exp.Select) -> dict[str, exp.Window]:
    """The windows of WINDOW w AS (...); one may name those before it."""
    found: dict[str, exp.Window] = {}
    for each in node.args.get("windows") or []:
        name = each.this.name.lower()
        if name in found:
            raise SqlError("sql-alias", f"WINDOW defines {name} twice", "rename one of them", place_of(each))
        found[name] = written_out(each, found)
    return found


def written_out(node: exp.Window, named: Mapping[str, exp.Window]) -> exp.Window:
    """A window with what the window that it names adds: its partition, and what it does not say itself."""
    name, place = node.args.get("alias"), place_of(node)
    if name is None:
        return node
    base = named.get(name.name.lower())
    if base is None:
        known = did_you_mean(name.name, list(named))
        raise UnknownName("name-window", f"there is no window {name.name}", known, place)
    own = [each for each in ("partition_by", "order", "spec") if node.args.get(each)]
    repeated = "partition_by" in own or any(base.args.get(each) for each in own)
    if repeated or (own and base.args.get("spec")):
        raise SqlError(
            "sql-window",
            f"the window {name.name} says that already, and cannot be changed",
            "write the window out",
            place,
        )
    merged = base.copy()
    for each in own:
        merged.set(each, node.args[each].copy())
    return merged


def of_several_people(whose: Owner, unit: str, clause: str, place: Place | None) -> Refused:
    """Why a window is refused over these rows, and what works instead."""
    if whose.whose is Whose.ROWS:
        return Refused(
            "refused-window",
            "Each row is one person's here, so a window within one person would see a single row, and any "
            "other mixes people.",
            "Aggregate first: windows over the noisy totals of GROUP BY are supported.",
            place,
        )
    if whose.whose is Whose.UNITS:
        named = f"name {unit}, the unit" if unit else "name the unit, which is not among the columns here"
        way = f"Write {clause} ({unit}, ...)." if clause == "DISTINCT ON" else f"Write {clause} {unit}."
        return Refused(
            "refused-window",
            f"{clause} does not {named}, so the result for one row would depend on many people.",
            f"{way if unit else 'Select its column in the subquery, too.'} Or aggregate first: windows over "
            "the noisy totals of GROUP BY are supported.",
            place,
        )
    return Refused(
        "refused-window",
        "Windows over private rows are supported within one person only, and these rows are of several.",
        "Aggregate first: windows over the noisy totals of GROUP BY are supported.",
        place,
    )
