"""A relation over rows goes in; DuckDB text to stand in FROM comes out, with a column that says whose each
row is on request.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from privsql.algebra.expressions import SPREAD, Aggregate, Call, Expression, Literal
from privsql.algebra.relations import (
    AtMost,
    Distinct,
    Filter,
    Group,
    Join,
    Limit,
    Project,
    Relation,
    Scan,
    Semi,
    Sort,
    UnionAll,
    Unit,
    Unnest,
    Unpivot,
    Values,
    is_public,
    walk,
)
from privsql.planning.prepared import PreparedScan, prepared_scan
from privsql.planning.prepared_joins import LookUp
from privsql.planning.render import (
    FIXED_POINT,
    UNIT,
    columns_sql,
    constant,
    expression,
    identifier,
    terms,
    text,
)
from privsql.planning.render_choice import ROW_NUMBER, Choice, ascending, choice_hash, numbered
from privsql.types import BINARY, DOUBLE, Kind, Type

_TABLE = "privsql_t"
_OTHER = "privsql_other_unit"  # whose the row is that a row meets


def rows(relation: Relation, unit: bool = False) -> str:
    """A relation over rows, to stand in FROM; with `unit` a further column says whose each row is."""
    whose = f", {UNIT}" if unit else ""
    match relation:
        case Scan():
            return _scan(relation, unit)
        case Values():
            listed = ", ".join(
                "("
                + ", ".join(
                    f"CAST({expression(v)} AS {f.type.sql})"
                    for v, f in zip(row, relation.fields, strict=True)
                )
                + ")"
                for row in relation.rows
            )
            names = ", ".join(identifier(each.name) for each in relation.fields)
            return f"(SELECT * FROM (VALUES {listed}) AS v({names}))"
        case Filter():
            return f"(SELECT * FROM {rows(relation.input, unit)} WHERE {expression(relation.predicate)})"
        case Project():
            return f"(SELECT {columns_sql(relation.columns)}{whose} FROM {rows(relation.input, unit)})"
        case UnionAll():
            return (
                "("
                + " UNION ALL ".join(f"SELECT * FROM {rows(each, unit)}" for each in relation.inputs)
                + ")"
            )
        case Unpivot():
            taken = {name for name, _ in relation.on}
            kept = [identifier(each.name) for each in relation.input.fields if each.name not in taken]
            labels = ", ".join(text(label) for _, label in relation.on)
            values = ", ".join(identifier(name) for name, _ in relation.on)
            pairs = [(labels, relation.name), (values, relation.value.name)]
            columns = ", ".join([*kept, *(f"unnest([{each}]) AS {identifier(name)}" for each, name in pairs)])
            return f"(SELECT {columns}{whose} FROM {rows(relation.input, unit)})"
        case Unnest():
            return _unnest(relation, unit, ())
        case LookUp():
            return _look_up(relation, unit)
        case Join():
            return _join(relation, unit)
        case Semi():
            return _semi(relation, unit)
        case AtMost():
            return _at_most(relation)
        case Group():
            return _group(relation, unit)
        case Sort():
            return f"(SELECT * FROM {rows(relation.input)} ORDER BY {', '.join(terms(relation.by))})"
        case Limit():
            count = "" if relation.count is None else f" LIMIT {relation.count}"
            return f"(SELECT * FROM {rows(relation.input)}{count} OFFSET {relation.offset})"
        case Distinct():
            return f"(SELECT DISTINCT * FROM {rows(relation.input)})"
        case _:
            raise AssertionError("not a relation over rows")


def _unnest(relation: Unnest, unit: bool, beside: tuple[str, ...]) -> str:
    """The rows of a table with the elements of a list of its; `beside`: other lists of it that are still to
    be opened.
    """
    kept, table = (*beside, relation.of.name), relation.input
    assert isinstance(table, (Scan, Unnest))
    below = _scan(table, unit, kept) if isinstance(table, Scan) else _unnest(table, unit, kept)
    name = identifier(relation.of.name)
    listed = f"list_distinct({name})" if relation.distinct else name
    # a list may carry a collation that its type does not show, under which texts that differ are equal
    collated = f" {BINARY}" if relation.element.type.kind is Kind.TEXT else ""
    columns = [
        identifier(each)
        for each in (*(field.name for field in relation.input.fields), *dict.fromkeys(beside))
    ]
    columns += [
        f"unnest({listed}){collated} AS {identifier(relation.element.name)}",
        *([UNIT] if unit else []),
    ]
    opened = f"(SELECT {', '.join(columns)} FROM {below})"
    return opened if relation.kept is None else f"(SELECT * FROM {opened} WHERE {expression(relation.kept)})"


def _scan(scan: Scan, unit: bool, lists: tuple[str, ...] = ()) -> str:
    if isinstance(scan, PreparedScan):
        return prepared_scan(scan, _TABLE, (unit_of_copy(scan) or UNIT) if unit else None)
    if not scan.casts and scan.unit is None and scan.whole:
        # else columns that nobody may name would be in sight, and stand for others
        return identifier(scan.table)
    columns = [
        f"{_brought(_of(_TABLE, each.name), scan.casts[each.name])} AS {identifier(each.name)}"
        if each.name in scan.casts
        else _of(_TABLE, each.name)
        for each in scan.fields
    ]
    columns += [
        f"TRY_CAST({_of(_TABLE, each.name)} AS {each.cast}[]) AS {identifier(each.name)}"
        if each.cast
        else _of(_TABLE, each.name)
        for each in scan.lists
        if each.name in lists
    ]
    source = f"{identifier(scan.table)} AS {_TABLE}"
    if scan.unit is None:
        return f"(SELECT {', '.join(columns or ['NULL AS privsql_nothing'])} FROM {source})"
    whose, joins, tests = _unit(scan.unit, _TABLE, scan.casts, 1)
    required = [not scan.claims[name].nullable for name in scan.unit.columns]
    where = "" if not joins and all(required) else f" WHERE {' AND '.join(tests)}"
    shown = f", {whose} AS {UNIT}" if unit else ""
    return f"(SELECT {', '.join(columns)}{shown} FROM {source}{joins}{where})"


def _unit(unit: Unit, table: str, casts: Mapping[str, str], depth: int) -> tuple[str, str, list[str]]:
    """Whose a row is: an expression, the joins that lead to it, and the conditions under which it is
    known.
    """
    columns = [_of(table, name) for name in unit.columns]
    brought = [
        _brought(sql, casts[name]) if name in casts else sql
        for sql, name in zip(columns, unit.columns, strict=True)
    ]
    if unit.refers_to is None:
        return (
            (brought[0] if len(brought) == 1 else f"row({', '.join(brought)})"),
            "",
            [f"({c} IS NOT NULL)" for c in columns],
        )
    target, name = unit.refers_to, f"privsql_{depth}"
    if target.unit.refers_to is None and set(target.unit.columns) == set(target.columns):
        # what is referred to by is the unit itself
        by_key = dict(zip(target.columns, unit.columns, strict=True))
        own = Unit(tuple(by_key[each] for each in target.unit.columns), unit.unique, unit.kinds)
        return _unit(own, table, casts, depth)
    inner = dict(target.casts)
    keys = [
        _brought(_of(name, each), inner[each]) if each in inner else _of(name, each)
        for each in target.columns
    ]
    on = " AND ".join(f"({a} = {b})" for a, b in zip(brought, keys, strict=True))
    whose, joins, tests = _unit(target.unit, name, inner, depth + 1)
    return whose, f" JOIN {identifier(target.table)} AS {name} ON {on}{joins}", tests


def unit_of_copy(scan: Scan) -> str | None:
    """Whose each row of a copy is, by its columns; None where that takes the rows of other tables."""
    assert scan.unit is not None
    whose, joins, _ = _unit(scan.unit, _TABLE, {}, 1)
    return None if joins else whose


def _of(table: str, column: str) -> str:
    return f"{table}.{identifier(column)}"


def _join(join: Join, unit: bool) -> str:
    left_whose, right_whose = (unit or join.same_unit) and not is_public(join.left), join.same_unit
    if unit and is_public(join.left):
        right_whose = True
    left, right = rows(join.left, left_whose), rows(join.right, right_whose)
    on = expression(join.on)
    if join.same_unit:
        on = f"({on} AND (privsql_l.{UNIT} = privsql_r.{UNIT}))"
    columns = [f"privsql_l.{identifier(each.name)}" for each in join.left.fields]
    columns += [f"privsql_r.{identifier(each.name)}" for each in join.right.fields]
    if unit:
        columns.append(f"privsql_{'l' if left_whose else 'r'}.{UNIT}")
    kind = "LEFT JOIN" if join.kind == "left" else "JOIN"
    return f"(SELECT {', '.join(columns)} FROM {left} AS privsql_l {kind} {right} AS privsql_r ON {on})"


def _look_up(join: LookUp, unit: bool) -> str:
    """The join on what it is on, then those of its rows whose units are the same.

    OFFSET keeps DuckDB from making the comparison of units a part of the join, which takes three times as
    long.
    """
    columns = [f"privsql_l.{identifier(each.name)}" for each in join.left.fields]
    columns += [f"privsql_r.{identifier(each.name)}" for each in join.right.fields]
    columns += [f"privsql_l.{UNIT} AS {UNIT}", f"privsql_r.{UNIT} AS {_OTHER}"]
    sides = f"{rows(join.left, unit=True)} AS privsql_l JOIN {rows(join.right, unit=True)} AS privsql_r"
    pairs = f"SELECT {', '.join(columns)} FROM {sides} ON {expression(join.on)} OFFSET 0"
    kept = [*(identifier(each.name) for each in join.fields), *([UNIT] if unit else [])]
    return f"(SELECT {', '.join(kept)} FROM ({pairs}) WHERE ({UNIT} = {_OTHER}))"


def _semi(semi: Semi, unit: bool) -> str:
    whose = unit or semi.same_unit
    kept, other = rows(semi.input, whose), rows(semi.other, semi.same_unit)
    columns = ", ".join(f"privsql_l.{identifier(each.name)}" for each in semi.fields) + (
        f", privsql_l.{UNIT}" if unit else ""
    )
    if semi.null_aware:
        assert isinstance(semi.on, Call)
        value, only = (expression(each) for each in semi.on.args)  # both in the type they are compared in
        return (
            f"(SELECT {columns} FROM {kept} AS privsql_l WHERE {value} NOT IN (SELECT {only} FROM {other}))"
        )
    on = expression(semi.on)
    if semi.same_unit:
        on = f"({on} AND (privsql_l.{UNIT} = privsql_r.{UNIT}))"
    exists = "NOT EXISTS" if semi.anti else "EXISTS"
    return f"(SELECT {columns} FROM {kept} AS privsql_l WHERE {exists} (SELECT 1 FROM {other} AS privsql_r WHERE {on}))"


def _at_most(relation: AtMost) -> str:
    plain = ", ".join(f"{plain_zero(each.column)} AS {identifier(each.name)}" for each in relation.fields)
    column, names = identifier(relation.column), [identifier(each.name) for each in relation.fields]
    # a choice among chosen rows is another one
    below = str(sum(isinstance(each, AtMost) for each in walk(relation.input)))
    order = ascending([choice_hash(Choice.MATCHES, below, *names, ROW_NUMBER), *names])
    rank = f"row_number() OVER (PARTITION BY {column} ORDER BY {order})"
    source = numbered(f"(SELECT {plain} FROM {rows(relation.input)} WHERE {column} IS NOT NULL)", names)
    return f"(SELECT {', '.join(names)} FROM {source} QUALIFY {rank} <= {relation.most})"


def _group(group: Group, unit: bool) -> str:
    """Exact aggregates. Of one unit's rows the unit itself is a key, too, so that no group can be of two."""
    keys = [f"{plain_zero(key.expression)} AS {identifier(key.name)}" for key in group.keys]
    columns = [f"{aggregate(each)} AS {identifier(name)}" for name, each in group.aggregates]
    by = [str(index + 1) for index in range(len(keys))]
    if group.per_unit:
        by.append(UNIT)
    shown = ", ".join([*keys, *columns, *([UNIT] if unit else [])])
    grouped = f" GROUP BY {', '.join(by)}" if by else ""
    return f"(SELECT {shown} FROM {rows(group.input, group.per_unit)}{grouped})"


def aggregate(node: Aggregate) -> str:
    """An exact aggregate in the type it is believed to have, NULL where that does not hold it."""
    return f"TRY_CAST({_aggregate(node)} AS {node.type.sql})"


def _aggregate(node: Aggregate) -> str:
    """In an order of its own where ties or floats could make a difference."""
    where = "" if node.condition is None else f" FILTER (WHERE {expression(node.condition)})"
    argument = "*" if node.argument is None else plain_zero(node.argument)
    match node.function:
        case "count":
            return f"count({argument}){where}"
        case "count_distinct":
            return f"count(DISTINCT {argument}){where}"
        case "sum" | "avg" if isinstance(node.argument, Call) and node.argument.function == FIXED_POINT:
            total = (
                f"CAST(sum({argument}){where} AS DOUBLE) * {constant(float(_step(node.argument)), DOUBLE)}"
            )
            return (
                f"({total})" if node.function == "sum" else f"({total} / nullif(count({argument}){where}, 0))"
            )
        case "sum" | "avg" if node.argument is not None and node.argument.type.kind is Kind.DOUBLE:
            # of public rows, in an order: two readings give the same digits
            return f"{node.function}({argument} ORDER BY {argument} ASC NULLS LAST){where}"
        case "sum" | "avg" if node.argument is not None and may_overflow(node.argument.type):
            # of public rows, too: a sum of these would fail, after the charge, and be computed or not as the
            # plan has it
            double = f"CAST({argument} AS DOUBLE)"
            return f"{node.function}({double} ORDER BY {double} ASC NULLS LAST){where}"
        case function if function in SPREAD:  # of public rows only
            other = "" if node.by is None else f", CAST({expression(node.by)} AS DOUBLE)"
            return f"{function}(CAST({argument} AS DOUBLE){other}){where}"
        case "quantile_cont" | "quantile_disc":
            (fraction,) = node.parameters
            return f"{node.function}({argument}, {constant(float(fraction), DOUBLE)}){where}"
        case "arg_min" | "arg_max":
            assert node.by is not None
            place = plain_zero(node.by)
            both = f"CASE WHEN ({argument}) IS NULL OR ({place}) IS NULL THEN NULL ELSE row({place}, {argument}) END"
            # of several at the same place the least, not the first seen
            return f"({node.function[4:]}({both}){where})[2]"
        case "first" | "last":
            assert node.by is not None
            descending, nulls_first = node.parameters
            order = f"{plain_zero(node.by)} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
            # among equals by what is shown, so that the order in which rows come decides nothing
            return f"{node.function}({argument} ORDER BY {order}, {argument} ASC NULLS LAST){where}"
        case _:
            return f"{node.function}({argument}){where}"


def may_overflow(type_: Type) -> bool:
    """Whether a billion such numbers may add up to more than 127 bits hold."""
    if type_.kind is Kind.DECIMAL:
        return type_.precision > 28
    return max(abs(type_.low), abs(type_.high)) >= 2**96


def plain_zero(node: Expression) -> str:
    """An expression in which 0.0 stands for -0.0 too: they are equal, and which one is seen first is nobody's
    business.
    """
    return f"({expression(node)} + CAST(0 AS DOUBLE))" if node.type.kind is Kind.DOUBLE else expression(node)


def _step(call: Call) -> Fraction:
    step = call.args[1]
    assert isinstance(step, Literal)
    return Fraction(step.value)


def _brought(column: str, cast: str) -> str:
    return f"({column} {cast})" if cast == BINARY else f"TRY_CAST({column} AS {cast})"
