"""A permitted SELECT goes in; a tree of relations comes out, with the names of its columns.

Below the first aggregate everything is row by row; above it everything works on noisy numbers. A query that
would let rows themselves out is refused in read.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from privsql.errors import PrivsqlError, Refused, SqlError, UnknownName, did_you_mean
from privsql.sql.bind_expression import ExpressionBinder
from privsql.sql.catalogue import Catalogue
from privsql.sql.expressions import Aggregate, Call, Column, Expression, Literal, columns_of
from privsql.sql.functions import ALIASES, common
from privsql.sql.gate import place_of
from privsql.sql.names import Source, unique_names
from privsql.sql.relations import (
    Choose,
    Distinct,
    Field,
    Filter,
    Key,
    Limit,
    Order,
    Project,
    Relation,
    Release,
    Sort,
    UnionAll,
    Unpivot,
    Values,
    is_released,
)
from privsql.types import BIGINT, DOUBLE, NUMBERS, TEXT, Kind, Type, integer

_AGGREGATES = (exp.Count, exp.CountIf, exp.Sum, exp.Avg)
_CHOICES = (exp.ArgMax, exp.ArgMin, exp.Mode)
_MAX_RELATIONS = 400


@dataclass
class QueryBinder:
    """Binds queries against a catalogue of tables; CTEs are names for relations, bound once each."""

    catalogue: Catalogue
    relations: int = 0
    ctes: dict[str, Source] = field(default_factory=dict)

    # -- queries -------------------------------------------------------------------------------------------
    def query(self, node: exp.Expr) -> Source:
        """A SELECT, a UNION ALL or either in parentheses."""
        outer = self.ctes
        try:
            self.ctes = dict(outer)  # the names of a WITH end with its query
            for each in node.args["with_"].expressions if node.args.get("with_") else []:
                self._cte(each)
            return self._query(node)
        finally:
            self.ctes = outer

    def _query(self, node: exp.Expr) -> Source:
        self.relations += 1
        if self.relations > _MAX_RELATIONS:
            raise SqlError("sql-too-long", "the query has too many parts", "ask a simpler question")
        match node:
            case exp.Select():
                return SelectBinder(self, node).bind()
            case exp.Union():
                return self._tail(node, self._union(node))
            case exp.Subquery():
                inner = self.query(node.this) if not isinstance(node.this, (exp.Table, exp.Pivot)) else self.source(node.this)
                return self._tail(node, inner)
        raise Refused("refused-statement", "only SELECT can be asked", "write SELECT ... FROM ...", place_of(node))

    def _cte(self, node: exp.CTE) -> None:
        name = node.args["alias"].name.lower()
        source = self.query(node.this)
        self.ctes[name] = self._renamed(source, node.args["alias"])

    def _tail(self, node: exp.Expr, source: Source) -> Source:
        """ORDER BY, LIMIT and OFFSET behind a union or a parenthesis."""
        order, limit, offset = (node.args.get(name) for name in ("order", "limit", "offset"))
        if order is None and limit is None and offset is None:
            return source
        if not is_released(source.relation):
            raise _raw_order(node)
        relation = source.relation
        if order is not None:
            binder = ExpressionBinder(lambda column: source.find(column.name, column.table or None, place_of(column)))
            shown = [each.column for each in relation.fields]
            relation = Sort(relation, tuple(_order(each, binder, shown, shown) for each in order.expressions))
        return replace(source, relation=_limited(relation, limit, offset))

    def _union(self, node: exp.Union) -> Source:
        if node.args.get("distinct"):
            raise Refused("refused-union", "UNION without ALL compares rows of many people", "write UNION ALL", place_of(node))
        sides = [self.query(node.this), self.query(node.expression)]
        if any(is_released(side.relation) for side in sides):
            raise Refused("refused-union", "noisy answers cannot be put together in one question",
                          "ask them one by one", place_of(node))  # fmt: skip
        widths = {len(side.names) for side in sides}
        if len(widths) > 1:
            raise SqlError("sql-union", "the two sides of UNION ALL have different numbers of columns", "", place_of(node))
        names = unique_names(list(sides[0].names))
        types: list[Type] = []
        for left, right in zip(sides[0].relation.fields, sides[1].relation.fields, strict=True):
            shared = common([left.type, right.type])
            if shared is None:
                raise SqlError("sql-type", f"UNION ALL of {left.type} and {right.type} does not go together",
                               "cast one of them", place_of(node))  # fmt: skip
            types.append(shared)
        inputs: list[Relation] = []
        for side in sides:
            columns = tuple(
                (name, each.column if each.type == shared else Call("cast", (each.column,), shared))
                for name, each, shared in zip(names, side.relation.fields, types, strict=True)
            )
            inputs.append(Project(side.relation, columns))
        return Source(UnionAll(tuple(inputs)), None, sides[0].names)

    # -- FROM ----------------------------------------------------------------------------------------------
    def source(self, node: exp.Expr) -> Source:
        """What stands in FROM."""
        match node:
            case exp.Table():
                found = self._table(node)
            case exp.Subquery() if isinstance(node.this, (exp.Pivot, exp.Table)):
                found = self.source(node.this)
            case exp.Subquery():
                found = self.query(node)
            case exp.Values():
                found = self._values(node)
            case exp.Pivot():
                found = self._unpivot(node, self.source(node.this))
            case _:
                raise Refused("refused-from", f"{type(node).__name__.upper()} in FROM has no rule", "name a table", place_of(node))
        for pivot in node.args.get("pivots") or []:
            found = self._renamed(self._unpivot(pivot, found), pivot.args.get("alias"))
        return self._renamed(found, node.args.get("alias"))

    def _table(self, node: exp.Table) -> Source:
        if not isinstance(node.this, exp.Identifier):
            raise Refused("refused-table-function", "functions in FROM are not read", "name a table", place_of(node))
        name = node.this.name
        if name.lower() in self.ctes:
            return replace(self.ctes[name.lower()], alias=name)
        found = self.catalogue.source(name)
        if found is None:
            known = [*self.catalogue.names, *self.ctes]
            raise UnknownName("name-table", f"there is no table {name}", did_you_mean(name, known), place_of(node))
        return found

    def _renamed(self, source: Source, alias: exp.Expr | None) -> Source:
        if alias is None:
            return source
        name = alias.this.name if alias.this is not None else source.alias
        columns = [each.name for each in alias.args.get("columns") or []]
        if len(columns) > len(source.names):
            raise SqlError("sql-alias", "more column aliases than columns", "", place_of(alias))
        names = (*columns, *source.names[len(columns) :])
        return replace(source, alias=name, names=names)

    def _values(self, node: exp.Values) -> Source:
        binder = ExpressionBinder(_no_columns)
        rows = [[binder.bind(each) for each in row.expressions] for row in node.expressions]
        if len({len(row) for row in rows}) != 1:
            raise SqlError("sql-values", "the rows of VALUES have different lengths", "", place_of(node))
        columns = [binder.same_type([row[index] for row in rows]) for index in range(len(rows[0]))]
        names = [f"col{index}" for index in range(len(columns))]
        types = [common([each.type for each in column]) or TEXT for column in columns]
        fields = tuple(Field(name, TEXT if type_.kind is Kind.NULL else type_) for name, type_ in zip(names, types, strict=True))
        relation = Values(tuple(tuple(column[index] for column in columns) for index in range(len(rows))), fields)
        return Source(relation, None, tuple(names))

    def _unpivot(self, node: exp.Pivot, source: Source) -> Source:
        if not node.args.get("unpivot"):
            raise Refused("refused-pivot", "PIVOT makes column names out of data", "use GROUP BY", place_of(node))
        if is_released(source.relation):
            raise Refused("refused-unpivot", "UNPIVOT of a noisy answer is not read", "unpivot the rows", place_of(node))
        into, fields = node.args.get("into"), node.args.get("fields")
        if into is not None:
            name, value, listed = into.this.name, [each.name for each in into.expressions], node.expressions
        elif fields and len(fields) == 1:
            name, listed = fields[0].this.name, fields[0].expressions
            value = [each.name for each in node.expressions]
        else:
            name, value, listed = "name", ["value"], node.expressions
        if len(value) != 1 or not listed:
            raise Refused("refused-unpivot", "UNPIVOT is read with one name and one value column",
                          "UNPIVOT t ON a, b INTO NAME k VALUE v", place_of(node))  # fmt: skip
        columns: list[tuple[Column, str]] = []
        for each in listed:
            inner = each.this if isinstance(each, exp.PivotAlias) else each
            if not isinstance(inner, exp.Column):
                raise Refused("refused-unpivot", "UNPIVOT is read with plain columns", "list the columns", place_of(node))
            found = source.find(inner.name, None, place_of(inner))
            assert isinstance(found, Column)
            label = each.args["alias"].name if isinstance(each, exp.PivotAlias) else _shown_name(source, found)
            columns.append((found, label))
        if len({column.name for column, _ in columns}) < len(columns) or len({label for _, label in columns}) < len(columns):
            raise SqlError("sql-unpivot", "UNPIVOT names a column twice", "list each column once", place_of(node))
        shared = common([column.type for column, _ in columns])
        if shared is None:
            raise SqlError("sql-type", "the columns of UNPIVOT have different types", "cast them alike", place_of(node))
        taken = {column.name for column, _ in columns}
        kept = [(shown, each) for shown, each in source.fields() if each.name not in taken]
        *inner_names, name_inside, value_inside = unique_names([*(each.name for _, each in kept), name, value[0]])
        casts = tuple((each.name, each.column) for _, each in kept) + tuple(
            (column.name, column if column.type == shared else Call("cast", (column,), shared)) for column, _ in columns
        )
        relation: Relation = Unpivot(
            Project(source.relation, casts),
            tuple((column.name, label) for column, label in columns),
            name_inside,
            Field(value_inside, shared),
        )
        if not node.args.get("include_nulls"):
            test = Call("is_null", (Column(value_inside, shared),), _BOOLEAN)
            relation = Filter(relation, Call("not", (test,), _BOOLEAN))
        return Source(relation, source.alias, (*(shown for shown, _ in kept), name, value[0]))


def _no_columns(node: exp.Column) -> Expression:
    raise UnknownName("name-column", f"there is no column {node.name} here", "", place_of(node))


def _shown_name(source: Source, column: Column) -> str:
    return next(shown for shown, each in source.fields() if each.name == column.name)


_BOOLEAN = Type(Kind.BOOLEAN)


class SelectBinder:
    """Binds one SELECT: over rows, over rows with aggregates, or over a noisy answer."""

    def __init__(self, queries: QueryBinder, node: exp.Select) -> None:
        self.queries, self.node = queries, node
        if node.args.get("from_") is None:
            raise Refused("refused-from", "there is no table in this question", "SELECT ... FROM a table", place_of(node))
        self.source = queries.source(node.args["from_"].this)
        self.aliases: dict[str, exp.Expr] = {}
        for each in node.expressions:
            if isinstance(each, exp.Alias):
                self.aliases.setdefault(each.alias.lower(), each.this)
        self.resolving: list[str] = []
        self.rows = ExpressionBinder(self._row_column)

    def _row_column(self, node: exp.Column) -> Expression:
        """A column of FROM; failing that, an alias of the SELECT list."""
        name, table = node.name, node.table or None
        try:
            return self.source.find(name, table, place_of(node))
        except UnknownName:
            if table is None and name.lower() in self.aliases and name.lower() not in self.resolving:
                self.resolving.append(name.lower())
                try:
                    return self.rows.bind(self.aliases[name.lower()])
                finally:
                    self.resolving.pop()
            raise

    def bind(self) -> Source:
        node = self.node
        relation = self.source.relation
        where = node.args.get("where")
        if where is not None:
            if _has_aggregate(where.this):
                raise SqlError("sql-aggregate", "WHERE is about rows, an aggregate is not", "use HAVING", place_of(where))
            relation = Filter(relation, self.rows.condition(where.this))
        self.input = relation
        items = self._expanded()
        grouped = node.args.get("group") is not None
        if any(isinstance(_bare(each), _CHOICES) for _, each in items if isinstance(each, exp.Expr)):
            return self._choice_function(items)
        if any(isinstance(each, exp.Expr) and _has_choice(each) for _, each in items):
            raise Refused("refused-choice", "a choice is a label: nothing can be computed from it here",
                          "select it by itself", place_of(node))  # fmt: skip
        aggregates = any(isinstance(each, exp.Expr) and _has_aggregate(each) for _, each in items)
        if not grouped and not aggregates and node.args.get("having") is None:
            return self._rows(items)
        return self._released(items)

    # -- a SELECT without aggregates -----------------------------------------------------------------------
    def _rows(self, items: list[tuple[str, exp.Expr | Column]]) -> Source:
        node = self.node
        released = is_released(self.input)
        distinct, order = node.args.get("distinct"), node.args.get("order")
        limit, offset = node.args.get("limit"), node.args.get("offset")
        if not released and (distinct is not None or order is not None or limit is not None or offset is not None):
            if distinct is not None:
                raise Refused("refused-distinct", "which values occur is itself private", "GROUP BY declared keys", place_of(node))
            raise _raw_order(node)
        shown = [each if isinstance(each, Column) else self.rows.bind(each) for _, each in items]
        choice = self._inner_argmax(shown, order, limit, offset)
        if choice is not None:
            return Source(choice, None, tuple(name for name, _ in items))
        return self._finish(self.input, items, shown, self.rows)

    def _finish(
        self, relation: Relation, items: list[tuple[str, exp.Expr | Column]], shown: list[Expression], binder: ExpressionBinder
    ) -> Source:
        """Project, then DISTINCT, ORDER BY, LIMIT. ORDER BY may use what is not selected, so it comes first."""
        node = self.node
        names = unique_names([name for name, _ in items])
        order = node.args.get("order")
        if order is not None:
            relation = Sort(relation, tuple(_order(each, binder, shown, shown) for each in _order_terms(order, shown)))
        relation = Project(relation, tuple(zip(names, shown, strict=True)))
        if node.args.get("distinct") is not None:
            relation = Distinct(relation)
        relation = _limited(relation, node.args.get("limit"), node.args.get("offset"))
        return Source(relation, None, tuple(name for name, _ in items))

    # -- a SELECT with aggregates --------------------------------------------------------------------------
    def _released(self, items: list[tuple[str, exp.Expr | Column]]) -> Source:
        node = self.node
        if is_released(self.input):
            raise Refused("refused-nested-aggregate", "an aggregate of noisy aggregates has no rule yet",
                          "select the inner answer and add up in Python", place_of(node))  # fmt: skip
        keys = self._keys(items)
        binder = ReleaseBinder(self, keys)
        shown = [binder.bind(each) if isinstance(each, exp.Expr) else binder.key_column(each) for _, each in items]
        choice = self._argmax(binder, keys, shown, items)
        if choice is not None:
            return choice
        having = node.args.get("having")
        condition = binder.condition(having.this) if having is not None else None
        order = node.args.get("order")
        if order is not None:  # binds aggregates that only ORDER BY uses before the release is built
            for each in _order_terms(order, shown):
                _order(each, binder, shown, shown)
        if not binder.aggregates:
            raise Refused("refused-no-aggregate", "which keys occur is itself private",
                          "add COUNT(*), or ask for the most frequent key: ORDER BY COUNT(*) DESC LIMIT 1", place_of(node))  # fmt: skip
        relation: Relation = Release(self.input, keys, tuple((name, each) for each, name in binder.aggregates.items()))
        if condition is not None:
            relation = Filter(relation, condition)
        return self._finish(relation, items, shown, binder)

    def _keys(self, items: list[tuple[str, exp.Expr | Column]]) -> tuple[Key, ...]:
        group = self.node.args.get("group")
        if group is None:
            return ()
        terms: list[tuple[str, exp.Expr | Column]] = []
        if group.args.get("all"):
            terms = [(name, each) for name, each in items if isinstance(each, Column) or not _has_aggregate(each)]
        for each in group.expressions:
            if isinstance(each, exp.Literal) and not each.is_string:
                index = int(each.name) if each.name.isdigit() else 0
                if not 1 <= index <= len(items):
                    raise SqlError("sql-ordinal", "GROUP BY counts the selected columns from 1", "", place_of(each))
                if isinstance(items[index - 1][1], exp.Expr) and _has_aggregate(items[index - 1][1]):
                    raise SqlError("sql-aggregate", "an aggregate cannot be a key", "group by another column", place_of(each))
                terms.append(items[index - 1])
            else:
                terms.append((_output_name(each), each))
        bound: dict[Expression, tuple[str, exp.Expr | Column]] = {}
        for name, term in terms:
            expression = term if isinstance(term, Column) else self.rows.bind(term)
            if not isinstance(expression, Literal):
                bound.setdefault(expression, (name, term))
        names = unique_names([name for name, _ in bound.values()])
        return tuple(
            Key(
                name,
                expression,
                term.sql(dialect="duckdb") if isinstance(term, exp.Expr) else term.name,
                place_of(term) if isinstance(term, exp.Expr) else None,
            )
            for name, (expression, (_, term)) in zip(names, bound.items(), strict=True)
        )

    # -- argmax --------------------------------------------------------------------------------------------
    def _argmax(
        self, binder: ReleaseBinder, keys: tuple[Key, ...], shown: list[Expression], items: list[tuple[str, exp.Expr | Column]]
    ) -> Source | None:
        """SELECT keys ... GROUP BY keys ORDER BY aggregate LIMIT 1: only the label is wanted."""
        node = self.node
        order, limit = node.args.get("order"), node.args.get("limit")
        if order is None or limit is None or node.args.get("having") is not None or node.args.get("offset") is not None:
            return None
        if not keys or binder.aggregates or _whole(limit) != 1 or node.args.get("distinct") is not None:
            return None
        if len(order.expressions) != 1:
            return None
        term = _order(order.expressions[0], binder, shown, shown)
        score = next((each for each, name in binder.aggregates.items() if term.expression == Column(name, each.type)), None)
        if score is None or score.function not in ("count", "sum"):
            return None
        chosen = Choose(self.input, keys, score, largest=term.descending)
        names = unique_names([name for name, _ in items])
        return Source(Project(chosen, tuple(zip(names, shown, strict=True))), None, tuple(name for name, _ in items))

    def _inner_argmax(
        self, shown: list[Expression], order: exp.Expr | None, limit: exp.Expr | None, offset: exp.Expr | None
    ) -> Relation | None:
        """SELECT k FROM (SELECT k, COUNT(*) AS n ... GROUP BY k) ORDER BY n DESC LIMIT 1."""
        grouped = _plain_release(self.input)
        if grouped is None or order is None or limit is None or offset is not None or len(order.expressions) != 1:
            return None
        if _whole(limit) != 1 or self.node.args.get("distinct") is not None:
            return None
        release, columns = grouped
        term = _order(order.expressions[0], self.rows, shown, shown)
        return self._choose(release, columns, shown, term.expression, largest=term.descending)

    def _choose(
        self, release: Release, columns: Mapping[str, Expression], shown: list[Expression], score: Expression, largest: bool
    ) -> Relation | None:
        by_name = dict(release.aggregates)
        inner = columns.get(score.name) if isinstance(score, Column) else None
        aggregate = by_name.get(inner.name) if isinstance(inner, Column) else None
        if aggregate is None or aggregate.function not in ("count", "sum"):
            return None
        keys = {key.name for key in release.keys}
        labels: list[tuple[str, Expression]] = []
        for index, each in enumerate(shown):
            label = columns.get(each.name) if isinstance(each, Column) else None
            if not isinstance(label, Column) or label.name not in keys:
                return None
            labels.append((f"label_{index}", label))
        if not release.keys:
            return None
        return Project(Choose(release.input, release.keys, aggregate, largest), tuple(labels))

    def _choice_function(self, items: list[tuple[str, exp.Expr | Column]]) -> Source:
        """arg_max(k, n) over a grouped subquery, or MODE(k) over rows."""
        node = self.node
        if len(items) != 1 or any(node.args.get(name) for name in ("group", "having", "order", "limit", "offset", "distinct")):
            raise Refused("refused-choice", "arg_max, arg_min and mode are read as the only output of a SELECT",
                          "SELECT mode(state) FROM t, or GROUP BY ... ORDER BY COUNT(*) DESC LIMIT 1", place_of(node))  # fmt: skip
        name, item = items[0]
        function = _bare(item) if isinstance(item, exp.Expr) else None
        if isinstance(function, exp.Mode) and function.this is not None:
            if is_released(self.input):
                raise Refused("refused-choice", "mode of a noisy answer has no rule", "ask for mode over rows", place_of(node))
            argument = self.rows.bind(function.this)
            key = Key(name, argument, function.this.sql(dialect="duckdb"), place_of(function))
            score = Aggregate("count", None, None, BIGINT, place_of(function))
            return Source(Choose(self.input, (key,), score, largest=True, not_null=True), None, (name,))
        grouped = _plain_release(self.input)
        if grouped is not None and isinstance(function, (exp.ArgMax, exp.ArgMin)):
            shown = [self.rows.bind(function.this)]
            largest = isinstance(function, exp.ArgMax)
            found = self._choose(*grouped, shown, self.rows.bind(function.expression), largest)
            if found is not None:
                return Source(found, None, (name,))
        raise Refused(
            "refused-choice",
            "arg_max and arg_min over rows would name one person's value",
            "SELECT arg_max(k, n) FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k)",
            place_of(node),
        )

    # -- the SELECT list -----------------------------------------------------------------------------------
    def _expanded(self) -> list[tuple[str, exp.Expr | Column]]:
        """Output names and expressions, with * written out."""
        items: list[tuple[str, exp.Expr | Column]] = []
        for each in self.node.expressions:
            star = each if isinstance(each, exp.Star) else each.this if isinstance(each, exp.Column) else None
            if isinstance(star, exp.Star):
                items += self._star(star, each.table if isinstance(each, exp.Column) else None)
            else:
                items.append((_output_name(each), each.this if isinstance(each, exp.Alias) else each))
        return items

    def _star(self, star: exp.Star, table: str | None) -> list[tuple[str, exp.Expr | Column]]:
        if table and table.lower() != (self.source.alias or "").lower():
            raise UnknownName("name-table", f"there is no table {table} here", "", place_of(star))
        left_out = {each.name.lower() for each in star.args.get("except_") or []}
        replaced = {each.alias.lower(): each.this for each in star.args.get("replace") or []}
        known = {shown.lower() for shown in self.source.names}
        for name in [*left_out, *replaced]:
            if name not in known:
                raise UnknownName("name-column", f"there is no column {name}", did_you_mean(name, self.source.names), place_of(star))
        return [
            (shown, replaced.get(shown.lower(), each.column))
            for shown, each in self.source.fields()
            if shown.lower() not in left_out
        ]


class ReleaseBinder(ExpressionBinder):
    """Binds expressions over keys and aggregates; collects each different aggregate once."""

    def __init__(self, select: SelectBinder, keys: tuple[Key, ...]) -> None:
        super().__init__(self._column)
        self.select = select
        self.keys = {key.expression: Column(key.name, key.expression.type) for key in keys}
        self.taken = [key.name for key in keys]
        self.aggregates: dict[Aggregate, str] = {}

    def key_column(self, column: Column) -> Expression:
        if column in self.keys:
            return self.keys[column]
        raise _not_grouped(column.name, None)

    def special(self, node: exp.Expr) -> Expression | None:
        if isinstance(node, (*_AGGREGATES, exp.Filter)) or (isinstance(node, exp.Anonymous) and _is_mean(node)):
            aggregate = self._aggregate(node)
            same = next((each for each in self.aggregates if replace(each, place=None) == replace(aggregate, place=None)), None)
            if same is None:
                name = unique_names([*self.taken, aggregate.function])[-1]
                self.taken.append(name)
                self.aggregates[aggregate] = name
                same = aggregate
            return Column(self.aggregates[same], same.type)
        if self.keys and not isinstance(node, (exp.Literal, exp.Paren)) and not _has_aggregate(node):
            try:
                row = self.select.rows.bind(node)
            except PrivsqlError:
                return None
            return self.keys.get(row)
        return None

    def _column(self, node: exp.Column) -> Expression:
        name = node.name.lower()
        if not node.table and name in self.select.aliases and name not in self.select.resolving:
            self.select.resolving.append(name)
            try:
                return self.bind(self.select.aliases[name])
            finally:
                self.select.resolving.pop()
        self.select.source.find(node.name, node.table or None, place_of(node))  # an unknown name says so
        raise _not_grouped(node.name, node)

    def _aggregate(self, node: exp.Expr) -> Aggregate:
        rows = self.select.rows
        condition: Expression | None = None
        place = place_of(node)
        if isinstance(node, exp.Filter):
            condition, node = rows.condition(node.expression.this), node.this
            if not isinstance(node, _AGGREGATES) and not (isinstance(node, exp.Anonymous) and _is_mean(node)):
                raise Refused("refused-aggregate", "FILTER is read behind COUNT, SUM and AVG", "", place)
        inner = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
        if inner is not None and _has_aggregate(inner):
            raise SqlError("sql-aggregate", "an aggregate inside an aggregate", "use a subquery", place)
        match node:
            case exp.Count() if isinstance(inner, exp.Star) or inner is None:
                return Aggregate("count", None, condition, BIGINT, place)
            case exp.Count():
                return _count(rows.bind(inner), condition, place)
            case exp.CountIf():
                test = rows.condition(inner)
                both = test if condition is None else Call("and", (condition, test), _BOOLEAN)
                return Aggregate("count", None, both, BIGINT, place)
        argument = rows.bind(inner)
        if argument.type.kind is Kind.BOOLEAN:
            argument = Call("cast", (argument,), integer(0, 1))
        name = "sum" if isinstance(node, exp.Sum) else "avg"
        if argument.type.kind not in NUMBERS:
            raise SqlError("sql-type", f"{name.upper()} needs numbers, this is {argument.type}", "cast it", place)
        whole = name == "sum" and argument.type.kind is Kind.INTEGER
        return Aggregate(name, argument, condition, BIGINT if whole else DOUBLE, place)


def _count(argument: Expression, condition: Expression | None, place: object) -> Aggregate:
    from privsql.errors import Place

    where = place if isinstance(place, Place) else None
    if isinstance(argument, Literal) and argument.value is not None:
        return Aggregate("count", None, condition, BIGINT, where)
    return Aggregate("count", argument, condition, BIGINT, where)


def _is_mean(node: exp.Anonymous) -> bool:
    return ALIASES.get(str(node.this).lower()) == "avg" and len(node.expressions) == 1


def _has_aggregate(node: exp.Expr) -> bool:
    return any(isinstance(each, _AGGREGATES) or (isinstance(each, exp.Anonymous) and _is_mean(each)) for each in node.walk())


def _has_choice(node: exp.Expr) -> bool:
    return node.find(*_CHOICES) is not None


def _bare(node: exp.Expr | Column) -> exp.Expr | None:
    if isinstance(node, Column):
        return None
    while isinstance(node, (exp.Paren, exp.Alias)):
        node = node.this
    return node


def _output_name(node: exp.Expr) -> str:
    """The name DuckDB would give a column: its alias, its own name, or its text."""
    match node:
        case exp.Alias():
            return node.alias
        case exp.Column():
            return node.name
        case exp.Count() if isinstance(node.this, exp.Star):
            return "count_star()"
        case _:
            return node.sql(dialect="duckdb").lower()


def _plain_release(relation: Relation) -> tuple[Release, dict[str, Expression]] | None:
    """A grouped subquery that only names keys and aggregates: its release, and what each column stands for."""
    if not isinstance(relation, Project) or not isinstance(relation.input, Release):
        return None
    if not all(isinstance(expression, Column) for _, expression in relation.columns):
        return None
    return relation.input, dict(relation.columns)


def _order_terms(order: exp.Expr, shown: list[Expression]) -> list[exp.Expr]:
    terms: list[exp.Expr] = []
    for each in order.expressions:
        if isinstance(each.this, exp.Var) and each.this.name.upper() == "ALL":
            for index in range(len(shown)):
                copy = each.copy()
                copy.set("this", exp.Literal.number(index + 1))
                terms.append(copy)
        else:
            terms.append(each)
    return terms


def _order(node: exp.Expr, binder: ExpressionBinder, shown: list[Expression], outputs: list[Expression]) -> Order:
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string:
        index = int(inner.name) if inner.name.isdigit() else 0
        if not 1 <= index <= len(shown):
            raise SqlError("sql-ordinal", "ORDER BY counts the selected columns from 1", "", place_of(node))
        expression = outputs[index - 1]
    else:
        expression = binder.bind(inner)
    return Order(expression, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def _whole(limit: exp.Expr) -> int | None:
    inner = limit.expression
    return int(inner.name) if isinstance(inner, exp.Literal) and inner.name.isdigit() else None


def _limited(relation: Relation, limit: exp.Expr | None, offset: exp.Expr | None) -> Relation:
    if limit is None and offset is None:
        return relation
    numbers = []
    for each in (limit, offset):
        number = _whole(each) if each is not None else None
        if each is not None and number is None:
            raise SqlError("sql-limit", "LIMIT and OFFSET take a whole number", "LIMIT 10", place_of(each))
        numbers.append(number)
    return Limit(relation, numbers[0], numbers[1] or 0)


def _raw_order(node: exp.Expr) -> Refused:
    return Refused(
        "refused-limit",
        "ORDER BY and LIMIT over rows would let other people's rows decide which are kept",
        "order and limit the noisy answer, outside",
        place_of(node),
    )


def _not_grouped(name: str, node: exp.Expr | None) -> Refused:
    return Refused(
        "refused-not-grouped",
        f"{name} is neither a key nor inside an aggregate, so it would show people's rows",
        f"add GROUP BY {name} with declared keys, or put it into COUNT, SUM or AVG",
        place_of(node) if node is not None else None,
    )


def reads_columns(expression: Expression) -> bool:
    return any(True for _ in columns_of(expression))
