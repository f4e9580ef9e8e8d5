"""Exact statements go in; SQL comes out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from privsql.algebra.exact import (
    AmongRows,
    Cases,
    Cast,
    Constant,
    CountDistinctIn,
    Earlier,
    Fold,
    Matching,
    Name,
    OneOf,
    Op,
    Operation,
    Ordered,
    Over,
    Pairs,
    Rows,
    Scalar,
    Select,
    Single,
    SomeDistinct,
    Source,
    Stacked,
    Statement,
    StoredTable,
    SumDistinctIn,
    Value,
    WithSteps,
)
from privsql.algebra.relations import (
    Choose,
    Distinct,
    Filter,
    Limit,
    Project,
    Relation,
    Release,
    Sort,
)
from privsql.algebra.reserved import CELL, DATABASE, NOISY, PLACE
from privsql.render.write_relations import RelationWriter
from privsql.types import BIGINT, Kind, Type

_CHAINED = {Operation.AND: " AND ", Operation.OR: " OR "}


class StatementWriter(RelationWriter):
    """Writes exact statements, and the post-processing above a release."""

    # -- scalars ---------------------------------------------------------------------------------------------
    def scalar(self, value: Scalar) -> str:
        match value:
            case Value():
                return self.expression(value.expression)
            case Name():
                return self.identifier(value.name)
            case Constant():
                return self._constant(value)
            case Op():
                return self._op(value)
            case Cases():
                whens = " ".join(f"WHEN {self.scalar(a)} THEN {self.scalar(b)}" for a, b in value.branches)
                otherwise = "" if value.otherwise is None else f" ELSE {self.scalar(value.otherwise)}"
                return f"(CASE {whens}{otherwise} END)"
            case Cast():
                return self._cast_to(value)
            case Fold():
                return self._fold(value)
            case Over():
                return self.over(value)
        return self._rarer(value)

    def _rarer(self, value: Scalar) -> str:
        """The scalars that occur in few statements."""
        match value:
            case OneOf():
                listed = ", ".join(self.scalar(each) for each in value.options)
                return f"({self.scalar(value.value)} IN ({listed}))"
            case AmongRows():
                return self._among_rows(value)
            case Single():
                return f"({self.statement(value.statement)})"
            case SomeDistinct():
                return self.some_distinct(value)
            case CountDistinctIn():
                return self.count_distinct_in(value)
            case SumDistinctIn():
                return self.sum_distinct_in(value)
        raise AssertionError(f"no form of {type(value).__name__}")

    def _constant(self, constant: Constant) -> str:
        if constant.type is not None:
            return self.constant(constant.value, constant.type)
        if constant.value is None:
            return "NULL"
        return str(constant.value) if constant.value >= 0 else f"({constant.value})"

    def _op(self, op: Op) -> str:
        return self.operation(op, [self.scalar(each) for each in op.operands])

    def operation(self, op: Op, listed: Sequence[str]) -> str:
        """An operation on operands that are written already."""
        if op.operation in _CHAINED:
            return f"({_CHAINED[op.operation].join(listed)})" if len(listed) > 1 else listed[0]
        form = self.operations[op.operation]
        return form.format(*listed, args=", ".join(listed))

    def _cast_to(self, cast: Cast) -> str:
        name = self.exact_type_name(cast.type)
        value = self.scalar(cast.value)
        return self.try_cast(value, None, name) if cast.total else f"CAST({value} AS {name})"

    def _fold(self, fold: Fold) -> str:
        value = "*" if fold.value is None else self.scalar(fold.value)
        where = "" if fold.condition is None else f" FILTER (WHERE {self.scalar(fold.condition)})"
        return f"{fold.function}({'DISTINCT ' if fold.distinct else ''}{value}){where}"

    def _among_rows(self, among: AmongRows) -> str:
        rows = ", ".join(f"({', '.join(self._typed(each) for each in row)})" for row in among.rows)
        names = [f"privsql_{place}" for place in range(len(among.values))]
        pairs = zip(among.values, names, strict=True)
        same = " AND ".join(self.same(self.scalar(value), name) for value, name in pairs)
        return f"EXISTS (SELECT 1 FROM (VALUES {rows}) AS privsql_pairs({', '.join(names)}) WHERE {same})"

    def _typed(self, constant: Constant) -> str:
        assert constant.type is not None
        return f"CAST({self.scalar(constant)} AS {self.type_name(constant.type)})"

    # -- statements ------------------------------------------------------------------------------------------
    def statement(self, statement: Statement) -> str:
        """A statement, runnable by itself."""
        match statement:
            case Select():
                return self._select(statement)
            case Stacked():
                return " UNION ALL ".join(self._select(each) for each in statement.parts)
            case WithSteps():
                steps = ", ".join(
                    f"{name} AS {self.materialized(stored)}({self._select(each)})"
                    for name, each, stored in statement.steps
                )
                return f"WITH {steps} {self.statement(statement.last)}"

    def _select(self, select: Select) -> str:
        shown = [f"{self.scalar(value)} AS {self.identifier(name)}" for name, value in select.columns]
        columns = ", ".join(["*", *shown] if select.everything else shown)
        chosen = f"{'DISTINCT ' if select.different else ''}{columns}"
        parts = []
        if select.source is not None:
            parts.append(f"FROM {self._from(select.source)}")
        if select.where:
            parts.append(f"WHERE {' AND '.join(self.scalar(each) for each in select.where)}")
        if select.sets:
            sets = ", ".join(f"({', '.join(map(self.identifier, kept))})" for kept in select.sets)
            parts.append(f"GROUP BY GROUPING SETS ({sets})")
        elif select.keys:  # the number of leading columns that are keys
            parts.append(f"GROUP BY {', '.join(str(place + 1) for place in range(select.keys))}")
        if select.ranked is not None:
            rank, most = select.ranked
            called = [] if select.everything else [self.identifier(name) for name, _ in select.columns]
            parts = [self.ranked(chosen, " ".join(parts), self.scalar(rank), most, called)]
        else:
            parts.insert(0, f"SELECT {chosen}")
        if select.order:
            parts.append(f"ORDER BY {', '.join(map(self._ordered, select.order))}")
        if select.limit is not None:
            parts.append(f"LIMIT {select.limit}")
        return " ".join(parts) + (f" {self.fence()}" if select.fenced else "")

    def _ordered(self, term: Ordered) -> str:
        return f"{self.scalar(term.value)} {'DESC' if term.descending else 'ASC'} NULLS LAST"

    def over(self, window: Over) -> str:
        value = "" if window.value is None else self.scalar(window.value)
        by = [f"PARTITION BY {', '.join(map(self.scalar, window.by))}"] if window.by else []
        order = [f"ORDER BY {self.ascending(window.order)}"] if window.order else []
        frame = ["ROWS UNBOUNDED PRECEDING"] if window.running else []
        return f"{window.function}({value}) OVER ({' '.join([*by, *order, *frame])})"

    def ascending(self, terms: Sequence[Scalar]) -> str:
        """An ascending order of these terms, independent of the default orders that the owner has set."""
        return ", ".join(self._ordered(Ordered(each)) for each in terms)

    def source(self, source: Source) -> str:
        """A source, to stand in FROM."""
        match source:
            case Rows():
                return self.rows(source.relation, source.unit)
            case Earlier():  # a step of WITH: its name is our own and needs no quotes
                return source.name
            case StoredTable():
                return self.stored_table(source.database or DATABASE, source.name)
            case Pairs():
                left, right = self.source(source.left), self.source(source.right)
                return f"{self.named(left, 'privsql_l')}, {self.named(right, 'privsql_r')}"
            case Matching():
                return self._matching(source)
            case Select() | Stacked() | WithSteps():
                return f"({self.statement(source)})"

    def _from(self, source: Source) -> str:
        written = self.source(source)
        return written if isinstance(source, Pairs) else self.named(written)

    def _matching(self, source: Matching) -> str:
        named = [self.identifier(each) for each in source.same]
        same = " AND ".join(self.meets(f"privsql_l.{name}", f"privsql_r.{name}") for name in named)
        left, right = self.source(source.left), self.source(source.right)
        return self.semi_join(f"{left} AS privsql_l", f"{right} AS privsql_r", same)

    # -- above a release -------------------------------------------------------------------------------------
    def finishing(self, relation: Relation, guards: Collection[str]) -> str:
        """All post-processing above the release. Wide integers are returned in 64 bits, which numpy has.

        `guards`: columns of the noisy table that say where a quotient is undefined (rewrites/guarded.py).
        Every row keeps them, as it keeps the number of its cell.
        """
        shown = (self._narrow(each.name, each.type) for each in relation.fields)
        inner = self._finishing(relation, list(guards))
        return f"SELECT {CELL}, {PLACE}, {', '.join(shown)} FROM ({inner})"

    def _narrow(self, name: str, type_: Type) -> str:
        name = self.identifier(name)
        if type_.kind is Kind.INTEGER and type_.is_wide:
            return f"{self.try_cast(name, type_, self.type_name(BIGINT))} AS {name}"
        return name

    def _finishing(self, relation: Relation, guards: Sequence[str]) -> str:
        """The relations above the release, as SQL over the noisy table; every row keeps the number of its
        cell.
        """
        names = ", ".join(self.identifier(each.name) for each in relation.fields)
        if isinstance(relation, Release | Choose):
            kept = ", ".join([*guards, names])
            return f"SELECT {CELL}, {CELL} AS {PLACE}, {kept} FROM {self.identifier(NOISY)}"
        assert isinstance(relation, Filter | Project | Sort | Distinct | Limit), "not above a release"
        inner = self._finishing(relation.input, guards)
        match relation:
            case Filter():
                return f"SELECT * FROM ({inner}) WHERE {self.expression(relation.predicate)}"
            case Project():
                kept = ", ".join([CELL, PLACE, *guards])
                return f"SELECT {kept}, {self.columns(relation.columns)} FROM ({inner})"
            case Sort():
                # ties keep the public order of the cells; the place survives later steps
                place = f"row_number() OVER (ORDER BY {', '.join([*self.terms(relation.by), PLACE])})"
                others = [CELL, *guards, *(self.identifier(each.name) for each in relation.fields)]
                return self.with_column_replaced(PLACE, place, others, f"({inner})")
            case Distinct():
                kept = ", ".join(f"min({each}) AS {each}" for each in (CELL, PLACE, *guards))
                return f"SELECT {kept}, {names} FROM ({inner}) GROUP BY {names}"
            case Limit():
                count = "" if relation.count is None else f" LIMIT {relation.count}"
                return f"SELECT * FROM ({inner}) ORDER BY {PLACE}{count} OFFSET {relation.offset}"
