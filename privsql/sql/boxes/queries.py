"""A query above the releases goes in; a table of the values that its columns can have comes out."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from privsql.sql.bind.group_by import output_name
from privsql.sql.boxes import clauses_of
from privsql.sql.boxes.aggregates import aggregate, carried
from privsql.sql.boxes.box_scope import Scope, Tables
from privsql.sql.boxes.cells import TRUE, Endless, Fixed, NoRule, Sql, Value, parts_of
from privsql.sql.boxes.evaluate import Evaluator
from privsql.sql.boxes.from_clause import from_clause, renamed
from privsql.sql.boxes.program import BoxRows, Columns, Program, ValueTable, column, reading
from privsql.sql.boxes.ranks import cut, dense, places

_RANKS = (exp.Rank, exp.DenseRank, exp.RowNumber)


class QueryWriter:
    """Writes queries as tables of one program."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def query(self, node: exp.Expr, tables: Tables) -> ValueTable:
        """Raises NoRule where its rows are not known."""
        known = dict(tables)
        clause = node.args.get("with_")
        for each in clause.expressions if clause is not None else []:
            known[each.alias.lower()] = renamed(self.query(each.this, known), each.args["alias"])
        match node:
            case exp.Subquery():
                found = self.query(node.this, known)
            case exp.Select():
                return self._select(node, known)
            case exp.Union() if not node.args.get("by_name"):
                found = self._union(node, known)
            case _:
                raise NoRule
        if not any(node.args.get(each) for each in ("order", "limit", "offset")):
            return found
        scope = Scope(self.program, found.rows, {"": found.columns}, known)
        self._cut(node, Evaluator(scope, self._table_of), found.columns)
        return ValueTable(scope.rows, found.columns)

    def _table_of(self, node: exp.Expr, scope: Scope) -> ValueTable:
        return self.query(node, scope.tables)

    # -- SELECT ----------------------------------------------------------------------------------------------
    def _select(self, node: exp.Select, tables: Tables) -> ValueTable:
        scope = from_clause(node, tables, self.program, self.query, self._table_of)
        scope.aliases = {
            each.alias.lower(): each.this for each in node.expressions if isinstance(each, exp.Alias)
        }
        evaluator = Evaluator(scope, self._table_of)
        where = node.args.get("where")
        if where is not None:
            evaluator.filter(where.this)
        if node.args.get("group") is not None or self._aggregates(node):
            evaluator = self._grouped(node, evaluator)
            having = node.args.get("having")
            if having is not None:
                evaluator.filter(having.this)
        self._windows(node, evaluator)
        scope = evaluator.scope
        qualify = node.args.get("qualify")
        if qualify is not None:
            evaluator.filter(qualify.this)
        columns = tuple(self._items(node, evaluator))
        distinct = node.args.get("distinct")
        if distinct is not None:
            return self._distinct(node, distinct, scope.rows, columns)
        self._cut(node, evaluator, columns)
        return self.program.project(columns, scope.rows.must, reading(scope.rows.name), scope.rows.open)

    def _items(self, node: exp.Select, evaluator: Evaluator) -> Iterator[tuple[str, Value]]:
        for item in node.expressions:
            value = item.this if isinstance(item, exp.Alias) else item
            if isinstance(value if not isinstance(value, exp.Column) else value.this, exp.Star):
                star = value.this if isinstance(value, exp.Column) else value
                if any(star.args.get(each) for each in ("except_", "replace", "rename")):
                    raise NoRule
                yield from evaluator.scope.star(value.table if isinstance(value, exp.Column) else "")
                continue
            try:
                yield output_name(item), evaluator.value(value)
            except NoRule:
                yield output_name(item), Endless()

    def _distinct(self, node: exp.Select, clause: exp.Expr, rows: BoxRows, columns: Columns) -> ValueTable:
        """BoxRows that are the same, once; what noise reaches could make them the same, or not."""
        cut_too = any(node.args.get(each) for each in ("limit", "offset"))
        if clause.args.get("on") or cut_too or any(not isinstance(each, Fixed) for _, each in columns):
            raise NoRule
        written = reading(rows.name)
        written.set("group", clauses_of.grouped_by([parts_of(value)[0] for _, value in columns]))
        must = rows.must if rows.must == TRUE else exp.LogicalOr(this=rows.must)
        return self.program.project(columns, must, written, rows.open)

    # -- GROUP BY --------------------------------------------------------------------------------------------
    def _grouped(self, node: exp.Select, evaluator: Evaluator) -> Evaluator:
        """The scope of what stands above the groups: their keys and aggregates."""
        scope = evaluator.scope
        if scope.rows.open:
            raise NoRule
        written_keys = clauses_of.group_keys(node, scope)
        keys = [Fixed(evaluator.fixed(each)) for each in written_keys]
        found: list[tuple[exp.Expr, Value]] = []
        for each in self._aggregates(node):
            try:
                found.append((each, aggregate(each, evaluator, lambda plain: plain)))
            except NoRule:
                found.append((each, Endless()))
        written = reading(scope.rows.name)
        must: Sql = TRUE
        if keys:
            written.set("group", clauses_of.grouped_by([each.sql for each in keys]))
            must = scope.rows.must if scope.rows.must == TRUE else exp.LogicalOr(this=scope.rows.must)
        else:  # one row, even if nothing else of it is needed
            written.set("expressions", [exp.alias_(exp.Count(this=exp.Star()), self.program.column())])
        named = [("", each) for each in (*keys, *(value for _, value in found))]
        table = self.program.project(named, must, written, is_open=False)
        values = [value for _, value in table.columns]
        computed = dict(zip([*written_keys, *(each for each, _ in found)], values, strict=True))
        by_sql = {key.sql: value for key, value in zip(keys, values, strict=False)}
        sources = {alias: clauses_of.of_keys(columns, by_sql) for alias, columns in scope.sources.items()}
        merged = dict(clauses_of.of_keys(tuple(scope.merged.items()), by_sql))
        above = Scope(
            self.program, table.rows, sources, scope.tables, merged, scope.aliases, computed, scope.resolving
        )
        return Evaluator(above, self._table_of)

    @staticmethod
    def _aggregates(node: exp.Select) -> list[exp.Expr]:
        found = (each for clause in clauses_of.clauses(node) for each in clauses_of.aggregates(clause))
        return list(dict.fromkeys(found))

    # -- windows ---------------------------------------------------------------------------------------------
    def _windows(self, node: exp.Select, evaluator: Evaluator) -> None:
        """Compute all windows as columns of the rows."""
        named = {each.name.lower(): each for each in node.args.get("windows") or []}
        for each in self._windows_of(node):
            try:
                evaluator.scope.computed[each] = evaluator.scope.keep(self._window(each, named, evaluator))
            except NoRule:
                evaluator.scope.computed[each] = Endless()

    @staticmethod
    def _windows_of(node: exp.Select) -> list[exp.Window]:
        found = (each for clause in clauses_of.clauses(node) for each in clauses_of.windows(clause))
        return list(dict.fromkeys(found))

    def _window(self, node: exp.Window, named: dict[str, exp.Expr], evaluator: Evaluator) -> Value:
        scope, alias = evaluator.scope, node.args.get("alias")
        window = node if alias is None else named.get(alias.name.lower())
        if scope.rows.open or window is None or (window is not node and window.args.get("alias")):
            raise NoRule
        partition = [evaluator.fixed(each) for each in window.args.get("partition_by") or []]
        order, spec = window.args.get("order"), window.args.get("spec")
        keys = clauses_of.order_keys(order, evaluator, ())
        listed = [each.this for each in order.expressions] if order is not None else []
        by_noise = any(not isinstance(evaluator.value(each), Fixed) for each in listed)
        certain = scope.rows.must == TRUE
        if isinstance(node.this, _RANKS) and (by_noise or not certain):
            partition = [parts_of(scope.keep(Fixed(each)))[0] for each in partition]
            shared = not isinstance(node.this, exp.RowNumber)
            scope.rows, place = places(self.program, scope.rows, keys, partition, shared)
            return dense(place) if isinstance(node.this, exp.DenseRank) else place
        if by_noise or (spec is not None and not certain):
            raise NoRule
        over = clauses_of.over(partition, order, evaluator, spec)
        if isinstance(node.this, _RANKS):
            return Fixed(over(node.this.copy()))
        if clauses_of.is_aggregate(node.this):
            return aggregate(node.this, evaluator, over)
        return carried(node.this, evaluator, over)

    # -- ORDER BY, LIMIT -------------------------------------------------------------------------------------
    def _cut(self, node: exp.Expr, evaluator: Evaluator, columns: Columns) -> None:
        """The rows that LIMIT and OFFSET may show. ORDER BY alone shows all."""
        clauses = [node.args.get(each) for each in ("limit", "offset")]
        if not any(clauses):
            return
        many, first = (clauses_of.whole_number(each) for each in clauses)
        scope = evaluator.scope
        if scope.rows.open:
            raise NoRule
        order = node.args.get("order")
        keys = clauses_of.order_keys(order, evaluator, columns)
        scope.rows, place = places(self.program, scope.rows, keys, (), ties_share=False)
        scope.rows = cut(self.program, scope.rows, place, first or 0, many)

    # -- UNION -----------------------------------------------------------------------------------------------
    def _union(self, node: exp.Union, tables: Tables) -> ValueTable:
        one, other = self.query(node.this, tables), self.query(node.expression, tables)
        if len(one.columns) != len(other.columns):
            raise NoRule
        pairs = zip(one.columns, other.columns, strict=True)
        alike = [clauses_of.alike(a, b) for (_, a), (_, b) in pairs]
        certain = one.rows.must == TRUE == other.rows.must
        sides = []
        for place, table in enumerate((one, other)):
            items = [part for pair in alike for part in parts_of(pair[place])]
            select = reading(table.rows.name)
            select.set("expressions", [*items, *([] if certain else [table.rows.must])] or [TRUE])
            sides.append(select)
        both = exp.Union(this=sides[0], expression=sides[1], distinct=False)
        names = [self.program.column() for _ in sides[0].expressions]
        renaming = exp.Select(expressions=[exp.Star()]).from_(
            exp.Subquery(
                this=both,
                alias=exp.TableAlias(
                    this=exp.to_identifier("both"),
                    columns=[exp.to_identifier(each, quoted=True) for each in names],
                ),
            )
        )
        name = self.program.add(renaming)
        refs = iter([column(each) for each in names])
        names_of = [name for name, _ in one.columns]
        values = [clauses_of.with_next(each, refs) for each, _ in alike]
        columns: Columns = tuple(zip(names_of, values, strict=True))
        rows = BoxRows(name, TRUE if certain else next(refs), one.rows.open or other.rows.open)
        if not node.args.get("distinct"):
            return ValueTable(rows, columns)
        return self._distinct(exp.Select(), exp.Distinct(), rows, columns)
