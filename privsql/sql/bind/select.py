"""One SELECT over one source goes in; a relation comes out: over rows, with a release, or over a noisy
answer.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from privsql.algebra.expressions import Column, Expression
from privsql.algebra.owners import Whose, owner
from privsql.algebra.relations import (
    Distinct,
    Filter,
    Group,
    Key,
    Project,
    Relation,
    Release,
    Sort,
    is_public,
    is_released,
)
from privsql.algebra.reserved import unique_names
from privsql.errors import Refused, SqlError, UnknownName, did_you_mean
from privsql.sql.bind.clauses import bind_order, limited, order_terms, ordered_rows
from privsql.sql.bind.group_by import Items, bind_keys, output_name
from privsql.sql.bind.join import decided
from privsql.sql.bind.release import (
    CHOICES,
    ReleaseBinder,
    bare,
    has_aggregate,
    has_any_aggregate,
    has_choice,
)
from privsql.sql.bind.scalar.binder import ExpressionBinder
from privsql.sql.bind.scope import Source
from privsql.sql.bind.unnest import RowBinder
from privsql.sql.bind.where import Queries, where_rows
from privsql.sql.bind.winners import best_keys, best_of_answer, choice_function
from privsql.sql.bind.within_unit.different import (
    counted_distinct,
    distinct_rows,
    refuse_intervals,
    refuse_spread,
)
from privsql.sql.bind.within_unit.window_binder import WindowBinder, first_of_each
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import refusal, rows_shown


class SelectBinder:
    """Binds one SELECT: over rows, over rows with aggregates, or over a noisy answer.

    `bind` also sets `input`, the rows that WHERE keeps, and `sets`, the grouping sets.
    """

    def __init__(self, node: exp.Select, source: Source, queries: Queries) -> None:
        self.node, self.source, self.queries = node, source, queries
        named: dict[str, list[exp.Expr]] = {}
        for each in node.expressions:
            if isinstance(each, exp.Alias):
                named.setdefault(each.alias.lower(), []).append(each.this)
            star = each.this if isinstance(each, exp.Column) else each
            for renamed in star.args.get("rename") or [] if isinstance(star, exp.Star) else []:
                named.setdefault(renamed.alias.lower(), []).append(renamed.this)
        self.aliases = {
            name: first for name, (first, *others) in named.items() if all(each == first for each in others)
        }
        self.ambiguous = named.keys() - self.aliases.keys()
        self.resolving: list[str] = []  # aliases being bound now: an alias must not refer to itself
        self.rows = RowBinder(self._row_column, source)
        # Columns that * expands to and whose type is not supported: their types, and their places among the
        # others. They are left out, and refused only where they are needed.
        self.unread: dict[str, str] = {}
        self.gaps: dict[str, int] = {}

    def _row_column(self, node: exp.Column) -> Expression:
        """A column of FROM, or else an alias of the SELECT list."""
        name, table = node.name, node.table or None
        try:
            return self.source.find(name, table, place_of(node))
        except UnknownName as error:
            known = table is None and name.lower() in self.aliases and name.lower() not in self.resolving
            if known and error.code != "name-ambiguous":
                self.resolving.append(name.lower())
                try:
                    return self.rows.bind(self.aliases[name.lower()])
                finally:
                    self.resolving.pop()
            if table is None and name.lower() in self.ambiguous:
                raise UnknownName(
                    "name-ambiguous",
                    f"{name} names more than one column",
                    "give them other aliases",
                    place_of(node),
                ) from None
            raise

    def bind(self) -> Source:
        """Bind FROM and WHERE, then the keys, then the rest: a selection of a key, rows without aggregates,
        exact aggregates, or a release.
        """
        node = self.node
        relation = self.source.relation
        where = node.args.get("where")
        if where is not None:
            if has_aggregate(where.this):
                raise SqlError(
                    "sql-aggregate", "WHERE is about rows, an aggregate is not", "use HAVING", place_of(where)
                )
            relation = where_rows(relation, where.this, self.rows, self.source, self.queries)
        else:
            relation = decided(relation)
        self.input = relation
        items = self._expanded()
        keys, self.sets = bind_keys(node.args.get("group"), items, self.rows.bind)
        exact = self._exact(keys)
        if not self._of_people():
            self._refuse_windows("Qualify", "Distinct")
        if not exact:
            if any(isinstance(bare(each), CHOICES) for _, each in items if isinstance(each, exp.Expr)):
                binder = ReleaseBinder(self.rows, self.source, self.aliases, self.resolving, keys)
                return choice_function(node, self.input, keys, self.rows, items, binder)
            if any(isinstance(each, exp.Expr) and has_choice(each) for _, each in items):
                raise Refused(
                    "refused-choice",
                    "Nothing can be computed from arg_max, arg_min and mode here: they return a key.",
                    "Select it alone.",
                    place_of(node),
                )
        grouped = node.args.get("group") is not None or node.args.get("having") is not None
        # GROUP BY and ORDER BY may use ordinals, and DISTINCT compares whole rows: no column may be left out
        if grouped or node.args.get("order") is not None or node.args.get("distinct") is not None:
            replace(self.source, unsupported=self.unread).all_read("* here", place_of(node))
        if not grouped and not any(
            isinstance(each, exp.Expr) and has_any_aggregate(each) for _, each in items
        ):
            return self._rows(items)
        return self._grouped(items, keys) if exact else self._released(items, keys)

    def _exact(self, keys: tuple[Key, ...]) -> bool:
        """Whether aggregates are exact here: over public rows, or over the rows of one unit at a time."""
        if is_public(self.input):
            return True
        if is_released(self.input):
            return False
        columns = [key.expression.name for key in keys if isinstance(key.expression, Column)]
        whose = owner(self.input)
        return whose.whose is Whose.UNITS and whose.tells(columns)

    # -- a SELECT without aggregates -----------------------------------------------------------------------
    def _rows(self, items: Items) -> Source:
        node, names = self.node, [name for name, _ in items]
        first = first_of_each(node)
        order, limit, offset = (node.args.get(name) for name in ("order", "limit", "offset"))
        ordered = (order is not None and first is None) or limit is not None or offset is not None
        if self._of_people() and ordered:
            raise ordered_rows(node)
        windows = WindowBinder(node, self.rows, self.source, self.input)
        self.rows.windows = windows.column
        shown = [each if isinstance(each, Column) else self.rows.bind(each) for _, each in items]
        choice = best_of_answer(node, self.input, self.rows, shown, names)
        if choice is not None:
            return Source(choice, None, tuple(names))
        relation = windows.above(self.input, first, shown, names)
        if first is not None:
            relation = Project(relation, tuple(zip(unique_names(names), shown, strict=True)))
            return Source(relation, None, tuple(names))
        return self._finish(relation, items, shown, self.rows)

    def _of_people(self) -> bool:
        """Whether these are people's rows, which no noise protects yet."""
        return not is_public(self.input) and not is_released(self.input)

    def _refuse_windows(self, *clauses: str) -> None:
        """Refuse QUALIFY and DISTINCT ON where they are not of people's rows."""
        found = {"Qualify": self.node.args.get("qualify"), "Distinct": first_of_each(self.node)}
        for name in clauses:
            clause = found[name]
            if clause is not None:
                raise refusal(name, place_of(clause) or place_of(self.node))

    def _finish(
        self, relation: Relation, items: Items, shown: list[Expression], binder: ExpressionBinder
    ) -> Source:
        """Project, then DISTINCT, ORDER BY and LIMIT. ORDER BY may use columns that are not selected, so it
        comes first.
        """
        node = self.node
        names = unique_names([name for name, _ in items])
        order, given = node.args.get("order"), [name for name, _ in items]
        if order is not None:
            relation = Sort(
                relation, tuple(bind_order(each, binder, shown, given) for each in order_terms(order, shown))
            )
        relation = Project(relation, tuple(zip(names, shown, strict=True)))
        source = Source(relation, None, tuple(name for name, _ in items), self.unread, gaps=self.gaps)
        if node.args.get("distinct") is not None:
            source = distinct_rows(source, place_of(node))
        return replace(
            source, relation=limited(source.relation, node.args.get("limit"), node.args.get("offset"))
        )

    # -- a SELECT with aggregates --------------------------------------------------------------------------
    def _grouped(self, items: Items, keys: tuple[Key, ...]) -> Source:
        """Exact aggregates, over public rows or within each unit."""
        node, private = self.node, not is_public(self.input)
        self._refuse_windows("Distinct")
        if private and any(node.args.get(name) is not None for name in ("order", "limit", "offset")):
            raise Refused(
                "refused-rows",
                "Each row of this result would be one person's: it is grouped by the unit.",
                "Aggregate over people: SELECT COUNT(*), AVG(total) FROM (...).",
                place_of(node),
            )
        if self.sets:
            raise Refused(
                "refused-grouping-sets",
                "GROUPING SETS are supported for noisy totals only, and these are exact.",
                "Query each set separately, and combine the answers with UNION ALL.",
                place_of(node),
            )
        binder = ReleaseBinder(self.rows, self.source, self.aliases, self.resolving, keys, exact=True)
        windows = WindowBinder(node, binder, self.source, Group(self.input, keys, (), per_unit=private))
        binder.windows = windows.column
        shown = [
            binder.bind(each) if isinstance(each, exp.Expr) else binder.key_column(each) for _, each in items
        ]
        having = node.args.get("having")
        condition = binder.condition(having.this) if having is not None else None
        self._bind_order(binder, shown, items)
        group = Group(
            self.input,
            keys,
            tuple((name, each) for each, name in binder.aggregates.items()),
            per_unit=private,
        )
        if private:
            refuse_intervals(group, place_of(node))
            refuse_spread(group)
        relation: Relation = group
        if condition is not None:
            relation = Filter(relation, condition)
        return self._finish(windows.above(relation), items, shown, binder)

    def _bind_order(self, binder: ReleaseBinder, shown: list[Expression], items: Items) -> None:
        """Bind aggregates that only ORDER BY uses, before the release or group is built."""
        order = self.node.args.get("order")
        for each in order_terms(order, shown) if order is not None else []:
            bind_order(each, binder, shown, [name for name, _ in items])

    def _released(self, items: Items, keys: tuple[Key, ...]) -> Source:
        node = self.node
        self._refuse_windows("Qualify", "Distinct")
        if is_released(self.input):
            raise Refused(
                "refused-nested-aggregate",
                "Aggregates of noisy aggregates are not supported yet.",
                "Select the inner answer, and add up in Python.",
                place_of(node),
            )
        binder = ReleaseBinder(self.rows, self.source, self.aliases, self.resolving, keys, self.sets)
        shown = [
            binder.bind(each) if isinstance(each, exp.Expr) else binder.key_column(each) for _, each in items
        ]
        choice = None if self.sets else best_keys(node, self.input, keys, binder, shown, items)
        if choice is not None:
            return choice
        having = node.args.get("having")
        condition = binder.condition(having.this) if having is not None else None
        self._bind_order(binder, shown, items)
        if not binder.aggregates and not keys:
            raise rows_shown(place_of(node))
        aggregates = tuple((name, each) for each, name in binder.aggregates.items())
        relation: Relation = Release(self.input, keys, aggregates, self.sets)
        if isinstance(self.input, Distinct):  # COUNT(*) FROM (SELECT DISTINCT x ...) is COUNT(DISTINCT x)
            relation = counted_distinct(self.input, keys, aggregates, place_of(node))
        if condition is not None:
            relation = Filter(relation, condition)
        return self._finish(relation, items, shown, binder)

    # -- the SELECT list -----------------------------------------------------------------------------------
    def _expanded(self) -> Items:
        """Output names and expressions, with * expanded."""
        items: Items = []
        for each in self.node.expressions:
            star = each if isinstance(each, exp.Star) else each.this if isinstance(each, exp.Column) else None
            if isinstance(star, exp.Star):
                items += self._star(star, each.table if isinstance(each, exp.Column) else None)
            else:
                items.append((output_name(each), each.this if isinstance(each, exp.Alias) else each))
        return items

    def _star(self, star: exp.Star, table: str | None) -> Items:
        called = self.source.called(table or None, place_of(star))
        left_out = {each.name.lower() for each in star.args.get("except_") or []}
        replaced = {each.alias.lower(): each.this for each in star.args.get("replace") or []}
        if len(replaced) < len(star.args.get("replace") or []):
            raise SqlError(
                "sql-alias",
                "a column is replaced twice: names are not case-sensitive",
                "name it once",
                place_of(star),
            )
        renamed = {each.this.name.lower(): each.alias for each in star.args.get("rename") or []}
        known = {shown.lower() for shown in self.source.names}
        unread = self.source.unsupported
        self.unread |= {name: type_name for name, type_name in unread.items() if name not in left_out}
        if len(self.node.expressions) == 1:
            for name, place in (
                (name, self.source.gaps[name]) for name in self.source.gaps if name in self.unread
            ):
                self.gaps[name] = sum(shown.lower() not in left_out for shown in self.source.names[:place])
        for name in [*(left_out - unread.keys()), *replaced, *renamed]:
            if name in unread and name not in known:
                replace(self.source, unsupported={name: unread[name]}).all_read("this *", place_of(star))
            if name not in known:
                raise UnknownName(
                    "name-column",
                    f"there is no column {name}",
                    did_you_mean(name, self.source.names),
                    place_of(star),
                )
        if len(renamed) < len(star.args.get("rename") or []) or renamed.keys() & (left_out | replaced.keys()):
            raise SqlError(
                "sql-alias",
                "a column may be renamed once, and not also excluded or replaced",
                "name it once",
                place_of(star),
            )
        return [
            (renamed.get(shown.lower(), shown), replaced.get(shown.lower(), each.column))
            for (shown, each), here in zip(self.source.fields(), called, strict=True)
            if here and shown.lower() not in left_out
        ]
