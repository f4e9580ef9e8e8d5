"""Relations over rows go in; SQL to stand in FROM comes out, on request with a column for the privacy unit of
each row.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import assert_never

from privsql.algebra.choices import UNIT, FairChoice
from privsql.algebra.exact import Name, Over, Scalar, fair_hash, one_zero
from privsql.algebra.expressions import Call, Expression
from privsql.algebra.relations import (
    AtMost,
    Choose,
    Distinct,
    Filter,
    Group,
    Join,
    Limit,
    Project,
    Relation,
    Release,
    Scan,
    Semi,
    Sort,
    UnionAll,
    Unnest,
    Unpivot,
    Values,
    WindowsWithinUnit,
    is_public,
    walk,
)
from privsql.algebra.reserved import DATABASE, ROW_NUMBER, UNIT_COLUMN
from privsql.algebra.units import Unit
from privsql.algebra.windows import Order
from privsql.planning.rewrites.prepared import RANK, PreparedScan
from privsql.planning.rewrites.prepared_joins import LookUp
from privsql.render.write_expressions import ExpressionWriter
from privsql.types import BINARY, Kind

_TABLE, _LEFT, _RIGHT = "privsql_t", "privsql_l", "privsql_r"
_OTHER = "privsql_other_unit"  # the unit of the row on the other side of a join


class RelationWriter(ExpressionWriter):
    """Writes relations over rows."""

    @abstractmethod
    def ascending(self, terms: Sequence[Scalar]) -> str: ...

    @abstractmethod
    def windows(self, relation: WindowsWithinUnit, unit: bool) -> str:
        """The rows of a relation with what windows within each unit compute."""

    def rows(self, relation: Relation, unit: bool = False) -> str:
        """A relation over rows, to stand in FROM; with `unit`, a further column holds the unit of each
        row.
        """
        match relation:
            case Scan():
                return self._scan(relation, unit)
            case Values():
                return self._values(relation)
            case Filter():
                where = self.expression(relation.predicate)
                return f"(SELECT * FROM {self.named(self.rows(relation.input, unit))} WHERE {where})"
            case Project():
                return self._of_rows(self.columns(relation.columns), relation.input, unit)
            case UnionAll():
                sides = (f"SELECT * FROM {self.named(self.rows(each, unit))}" for each in relation.inputs)
                return f"({' UNION ALL '.join(sides)})"
            case Unpivot():
                taken = {name for name, _ in relation.on}
                kept = [self.identifier(f.name) for f in relation.input.fields if f.name not in taken]
                return self._of_rows(", ".join([*kept, *self.unpivoted(relation)]), relation.input, unit)
            case Unnest():
                return self._unnest(relation, unit, ())
            case Join():
                return (
                    self._look_up(relation, unit)
                    if isinstance(relation, LookUp)
                    else self._join(relation, unit)
                )
            case Semi():
                return self._semi(relation, unit)
            case AtMost():
                return self._at_most(relation)
            case WindowsWithinUnit():
                return self.windows(relation, unit)
            case Group():
                return self._group(relation, unit)
            case Sort() | Limit() | Distinct():
                return self._public(relation)
            case Release() | Choose():
                raise AssertionError("not a relation over rows")
            case _ as unknown:
                assert_never(unknown)

    def columns(self, columns: Sequence[tuple[str, Expression]]) -> str:
        return ", ".join(f"{self.expression(each)} AS {self.identifier(name)}" for name, each in columns)

    def terms(self, by: Sequence[Order]) -> list[str]:
        return [
            self.expression(each.expression) + _direction(each.descending, each.nulls_first) for each in by
        ]

    def _of_rows(self, columns: str, relation: Relation, unit: bool) -> str:
        whose = f", {UNIT_COLUMN}" if unit else ""
        return f"(SELECT {columns}{whose} FROM {self.named(self.rows(relation, unit))})"

    def _public(self, relation: Sort | Limit | Distinct) -> str:
        inner = self.named(self.rows(relation.input))
        match relation:
            case Sort():
                return f"(SELECT * FROM {inner} ORDER BY {', '.join(self.terms(relation.by))})"
            case Limit():
                count = "" if relation.count is None else f" LIMIT {relation.count}"
                return f"(SELECT * FROM {inner}{count} OFFSET {relation.offset})"
            case Distinct():
                return f"(SELECT DISTINCT * FROM {inner})"

    def _values(self, relation: Values) -> str:
        types = [self.type_name(each.type) for each in relation.fields]
        rows = (
            ", ".join(f"CAST({self.expression(v)} AS {name})" for v, name in zip(row, types, strict=True))
            for row in relation.rows
        )
        names = ", ".join(self.identifier(each.name) for each in relation.fields)
        return f"(SELECT * FROM (VALUES {', '.join(f'({row})' for row in rows)}) AS v({names}))"

    def _unnest(self, relation: Unnest, unit: bool, beside: tuple[str, ...]) -> str:
        """The rows of a table, once for each element of one of its lists; `beside` names other lists that are
        still to be unnested.
        """
        kept, table = (*beside, relation.of.name), relation.input
        assert isinstance(table, (Scan, Unnest))
        below = self._scan(table, unit, kept) if isinstance(table, Scan) else self._unnest(table, unit, kept)
        fields = [*(field.name for field in relation.input.fields), *dict.fromkeys(beside)]
        columns = [self.identifier(each) for each in fields]
        element = self.unnested(self.identifier(relation.of.name), relation)
        columns += [
            f"{element} AS {self.identifier(relation.element.name)}",
            *([UNIT_COLUMN] if unit else []),
        ]
        opened = f"(SELECT {', '.join(columns)} FROM {self.named(below)})"
        if relation.kept is None:
            return opened
        return f"(SELECT * FROM {self.named(opened)} WHERE {self.expression(relation.kept)})"

    # -- tables ----------------------------------------------------------------------------------------------
    def _scan(self, scan: Scan, unit: bool, lists: tuple[str, ...] = ()) -> str:
        if isinstance(scan, PreparedScan):
            return self._prepared(scan, unit)
        if not scan.casts and scan.unit is None and scan.whole:
            # only of a whole table: columns that the query may not name would be visible and could capture
            # names
            return self.table(scan.table, scan.location)
        columns = [
            f"{self._brought(_TABLE, each.name, scan.casts)} AS {self.identifier(each.name)}"
            if each.name in scan.casts
            else self._of(_TABLE, each.name)
            for each in scan.fields
        ]
        columns += [
            f"{self.list_cast(self._of(_TABLE, each.name), each.cast)} AS {self.identifier(each.name)}"
            if each.cast
            else self._of(_TABLE, each.name)
            for each in scan.lists
            if each.name in lists
        ]
        source = f"{self.table(scan.table, scan.location)} AS {_TABLE}"
        if scan.unit is None:
            return f"(SELECT {', '.join(columns or ['NULL AS privsql_nothing'])} FROM {source})"
        whose, joins, tests = self._unit(scan.unit, _TABLE, scan.casts, 1)
        required = [not scan.claims[name].nullable for name in scan.unit.columns]
        where = "" if not joins and all(required) else f" WHERE {' AND '.join(tests)}"
        shown = f", {whose} AS {UNIT_COLUMN}" if unit else ""
        return f"(SELECT {', '.join(columns)}{shown} FROM {source}{joins}{where})"

    def _prepared(self, scan: PreparedScan, unit: bool) -> str:
        """The columns of a copy have our types already, and all its rows have a unit."""
        columns = [self.identifier(each.name) for each in scan.fields]
        if unit:
            columns.append(f"{self.unit_of_copy(scan) or UNIT_COLUMN} AS {UNIT_COLUMN}")
        source = f"{self.stored_table(DATABASE, scan.copy)} AS {_TABLE}"
        return f"(SELECT {', '.join(columns)} FROM {source} WHERE {RANK} <= {scan.most})"

    def unit_of_copy(self, scan: Scan) -> str | None:
        """The unit of each row of a copy, from its own columns; None where that needs rows of other
        tables.
        """
        assert scan.unit is not None
        whose, joins, _ = self._unit(scan.unit, _TABLE, {}, 1)
        return None if joins else whose

    def _unit(
        self, unit: Unit, table: str, casts: Mapping[str, str], depth: int
    ) -> tuple[str, str, list[str]]:
        """The unit of a row: an expression, the joins that lead to it, and the conditions under which it is
        known.
        """
        brought = [self._brought(table, name, casts) for name in unit.columns]
        if unit.refers_to is None:
            known = [f"({self.of_unit(table, name, casts)} IS NOT NULL)" for name in unit.columns]
            return (brought[0] if len(brought) == 1 else self.row_of(brought)), "", known
        target, name = unit.refers_to, f"privsql_{depth}"
        if target.unit.refers_to is None and set(target.unit.columns) == set(target.columns):
            # the referring columns are the unit itself
            by_key = dict(zip(target.columns, unit.columns, strict=True))
            own = Unit(tuple(by_key[each] for each in target.unit.columns), unit.unique, unit.kinds)
            return self._unit(own, table, casts, depth)
        inner = dict(target.casts)
        keys = [self._brought(name, each, inner) for each in target.columns]
        on = " AND ".join(f"({a} = {b})" for a, b in zip(brought, keys, strict=True))
        whose, joins, tests = self._unit(target.unit, name, inner, depth + 1)
        joined = self.table(target.table, target.location)
        return whose, f" JOIN {joined} AS {name} ON {on}{joins}", tests

    def of_unit(self, table: str, column: str, casts: Mapping[str, str]) -> str:
        """A column of a unit, to see whether it is NULL."""
        return self._of(table, column)

    def _of(self, table: str, column: str) -> str:
        return f"{table}.{self.identifier(column)}"

    def _brought(self, table: str, column: str, casts: Mapping[str, str]) -> str:
        """A column, cast to one of our types."""
        name, cast = self._of(table, column), casts.get(column)
        if cast is None:
            return name
        return f"({name} {cast})" if cast == BINARY else self.try_cast(name, None, cast)

    # -- joins -----------------------------------------------------------------------------------------------
    def _join(self, join: Join, unit: bool) -> str:
        left_whose, right_whose = (unit or join.same_unit) and not is_public(join.left), join.same_unit
        if unit and is_public(join.left):
            right_whose = True
        left, right = self.rows(join.left, left_whose), self.rows(join.right, right_whose)
        on = self.expression(join.on)
        if join.same_unit:
            on = f"({on} AND ({_LEFT}.{UNIT_COLUMN} = {_RIGHT}.{UNIT_COLUMN}))"
        columns = self._of_both(join)
        if unit:
            columns.append(f"{_LEFT if left_whose else _RIGHT}.{UNIT_COLUMN}")
        kind = "LEFT JOIN" if join.kind == "left" else "JOIN"
        return f"(SELECT {', '.join(columns)} FROM {left} AS {_LEFT} {kind} {right} AS {_RIGHT} ON {on})"

    def _of_both(self, join: Join) -> list[str]:
        left = [f"{_LEFT}.{self.identifier(each.name)}" for each in join.left.fields]
        return left + [f"{_RIGHT}.{self.identifier(each.name)}" for each in join.right.fields]

    def _look_up(self, join: LookUp, unit: bool) -> str:
        """The join on its condition first, then only the pairs of rows with the same unit.

        The fence keeps the comparison of units out of the join, where it makes DuckDB three times as slow.
        """
        units = [f"{_LEFT}.{UNIT_COLUMN} AS {UNIT_COLUMN}", f"{_RIGHT}.{UNIT_COLUMN} AS {_OTHER}"]
        left, right = self.rows(join.left, unit=True), self.rows(join.right, unit=True)
        sides = f"{left} AS {_LEFT} JOIN {right} AS {_RIGHT}"
        shown = ", ".join([*self._of_both(join), *units])
        pairs = f"SELECT {shown} FROM {sides} ON {self.expression(join.on)} {self.fence()}"
        kept = [*(self.identifier(each.name) for each in join.fields), *([UNIT_COLUMN] if unit else [])]
        return f"(SELECT {', '.join(kept)} FROM {self.named(f'({pairs})')} WHERE ({UNIT_COLUMN} = {_OTHER}))"

    def _semi(self, semi: Semi, unit: bool) -> str:
        whose = unit or semi.same_unit
        kept, other = self.rows(semi.input, whose), self.rows(semi.other, semi.same_unit)
        listed = [f"{_LEFT}.{self.identifier(each.name)}" for each in semi.fields]
        columns = ", ".join([*listed, *([f"{_LEFT}.{UNIT_COLUMN}"] if unit else [])])
        if semi.null_aware:
            assert isinstance(semi.on, Call)
            # both in the type in which they are compared
            value, only = (self.expression(each) for each in semi.on.args)
            return (
                f"(SELECT {columns} FROM {kept} AS {_LEFT} "
                f"WHERE {value} NOT IN (SELECT {only} FROM {self.named(other)}))"
            )
        on = self.expression(semi.on)
        if semi.same_unit:
            on = f"({on} AND ({_LEFT}.{UNIT_COLUMN} = {_RIGHT}.{UNIT_COLUMN}))"
        exists = "NOT EXISTS" if semi.anti else "EXISTS"
        found = f"SELECT 1 FROM {other} AS {_RIGHT} WHERE {on}"
        return f"(SELECT {columns} FROM {kept} AS {_LEFT} WHERE {exists} ({found}))"

    # -- rows that are sampled or grouped
    # ------------------------------------------------------------------------
    def _at_most(self, relation: AtMost) -> str:
        plain = ", ".join(
            f"{self.scalar(one_zero(each.column))} AS {self.identifier(each.name)}"
            for each in relation.fields
        )
        column, values = self.identifier(relation.column), [Name(each.name) for each in relation.fields]
        # a sample of a sample needs a hash of its own
        below = sum(isinstance(each, AtMost) for each in walk(relation.input))
        place = fair_hash(FairChoice.MATCHES, below, *values, Name(ROW_NUMBER))
        rank = self.over(Over("row_number", by=(Name(relation.column),), order=(place, *values)))
        source = f"(SELECT {plain} FROM {self.named(self.rows(relation.input))} WHERE {column} IS NOT NULL)"
        names = [self.scalar(each) for each in values]
        rest = f"FROM {self.named(self.numbered(source, values))}"
        chosen = self.ranked(", ".join(names), rest, rank, relation.most, names)
        return f"({chosen})"

    def numbered(self, source: str, columns: Sequence[Scalar]) -> str:
        """Rows with a number for each among those that agree in these columns, so that each of them is
        sampled on its own.

        Such rows are interchangeable: which of them has which number shows nowhere.
        """
        number = self.over(Over("row_number", by=tuple(columns)))
        return f"(SELECT *, {number} AS {ROW_NUMBER} FROM {self.named(source)})"

    def _group(self, group: Group, unit: bool) -> str:
        """Exact aggregates. Within units, the unit is a further key, so that no group mixes two units."""
        keys = [
            f"{self.scalar(one_zero(key.expression))} AS {self.identifier(key.name)}" for key in group.keys
        ]
        columns = [f"{self.aggregate(each)} AS {self.identifier(name)}" for name, each in group.aggregates]
        by = [str(index + 1) for index in range(len(keys))]
        if group.per_unit:
            by.append(UNIT.name)
        shown = ", ".join([*keys, *columns, *([UNIT.name] if unit else [])])
        grouped = f" GROUP BY {', '.join(by)}" if by else ""
        return f"(SELECT {shown} FROM {self.named(self.rows(group.input, group.per_unit))}{grouped})"


def _direction(descending: bool, nulls_first: bool) -> str:
    return f" {'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"


def is_double(expression: Expression) -> bool:
    return expression.type.kind is Kind.DOUBLE
