"""A relation goes in; the domain of each column comes out, bottom-up, narrowed by WHERE and CHECK."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from privsql.algebra.declared import Claim
from privsql.algebra.expressions import Column, Expression, columns_of
from privsql.algebra.owners import equated
from privsql.algebra.relations import (
    AtMost,
    Distinct,
    Filter,
    Group,
    Join,
    Project,
    Relation,
    Scan,
    Semi,
    UnionAll,
    Unnest,
    Unpivot,
    Values,
    WindowsWithinUnit,
    is_public,
)
from privsql.algebra.windows import Window
from privsql.analysis.domain import MAX_KEYS, Domain, exact, of_values, tighten, union
from privsql.analysis.facts import Facts, domain_of, refine
from privsql.analysis.public_rows import Look
from privsql.analysis.stability import limits_of
from privsql.types import TEXT, Kind, Type


def derive(relation: Relation, wanted: frozenset[str], look: Look) -> Facts:
    """Facts about the `wanted` columns, and about filtered expressions, of a relation over rows."""
    match relation:
        case _ if is_public(relation) and not isinstance(relation, Values):
            return _public(relation, wanted, look)
        case Scan():
            return _scanned(relation)
        case Values():
            return {
                each.column: union(each.type, [domain_of(row[index], {}) for row in relation.rows])
                for index, each in enumerate(relation.fields)
            }
        case Filter():
            return refine(derive(relation.input, wanted, look), relation.predicate)
        case Semi() | AtMost() | Distinct():
            return derive(relation.input, wanted, look)
        case Project():
            shown = [(name, each) for name, each in relation.columns if name in wanted]
            below = derive(relation.input, names_in([each for _, each in shown]), look)
            return {Column(name, each.type): domain_of(each, below) for name, each in shown}
        case UnionAll():
            return _united(relation, wanted, look)
        case Unpivot():
            return _unpivoted(relation, wanted, look)
        case Unnest():
            assert relation.kept is not None
            below = derive(relation.input, wanted, look)
            return refine({**below, relation.element.column: Domain(relation.element.type)}, relation.kept)
        case Join():
            return _joined(relation, wanted, look)
        case WindowsWithinUnit():
            return _windowed(relation, wanted, look)
        case Group():
            return _grouped(relation, wanted, look)
        case _:
            raise AssertionError("only relations over rows have domains")


def names_in(expressions: Iterable[Expression]) -> frozenset[str]:
    """The columns that some expressions read."""
    return frozenset(column.name for each in expressions for column in columns_of(each))


def _public(relation: Relation, wanted: frozenset[str], look: Look) -> Facts:
    """The domains of public rows, which may be read."""
    return {each.column: look.domain(relation, each.name) for each in relation.fields if each.name in wanted}


def _scanned(scan: Scan) -> Facts:
    """What the policy claims of a table, and its CHECKs; the unit of a row is never NULL."""
    facts: Facts = {each.column: _claimed(each.type, scan.claims[each.name]) for each in scan.fields}
    for check in scan.checks:
        facts = refine(facts, check, true_or_null=True)
    whose = scan.unit.columns if scan.unit is not None else ()
    owners = [each for each in facts if isinstance(each, Column) and each.name in whose]
    return {**facts, **{each: facts[each].not_null() for each in owners}}


def _united(rows: UnionAll, wanted: frozenset[str], look: Look) -> Facts:
    places = [index for index, each in enumerate(rows.fields) if each.name in wanted]
    parts = [
        (side, derive(side, frozenset(side.fields[index].name for index in places), look))
        for side in rows.inputs
    ]
    return {
        rows.fields[index].column: union(
            rows.fields[index].type,
            [domain_of(side.fields[index].column, part) for side, part in parts],
        )
        for index in places
    }


def _unpivoted(rows: Unpivot, wanted: frozenset[str], look: Look) -> Facts:
    below = derive(rows.input, wanted | {name for name, _ in rows.on}, look)
    on = [domain_of(Column(name, rows.value.type), below) for name, _ in rows.on]
    columns = {each.column for each in rows.fields}
    return {
        **{column: domain for column, domain in below.items() if column in columns},
        Column(rows.name, TEXT): of_values(TEXT, [label for _, label in rows.on], nullable=False),
        rows.value.column: union(rows.value.type, on),
    }


def _joined(join: Join, wanted: frozenset[str], look: Look) -> Facts:
    pairs = equated(join.on, join.left, join.right) if join.kind == "inner" else []
    partners = frozenset(name for pair in pairs for name in pair if wanted & set(pair))
    facts = dict(derive(join.left, wanted | partners, look))
    right = derive(join.right, wanted | partners, look)
    if join.kind != "inner":  # NULL where nothing matches
        padded = {**(facts if join.kind == "full" else {}), **right}
        known = {each: replace(found, nullable=True, null_is_key=True) for each, found in padded.items()}
        return {**facts, **known}
    facts.update(right)
    types = {each.name: each.column for each in join.fields}
    for pair in pairs:
        for name, other in (pair, pair[::-1]):
            values = domain_of(types[other], facts).finite()
            if name in wanted and values is not None and types[name].type.kind is types[other].type.kind:
                facts[types[name]] = tighten(
                    domain_of(types[name], facts), values=list(values[: MAX_KEYS + 1])
                )
    return refine(facts, join.on)


def _grouped(group: Group, wanted: frozenset[str], look: Look) -> Facts:
    """One unit's own aggregates: counts up to the rows of a unit that are used, and sums of that many
    values.
    """
    most = limits_of(group.input).max_rows
    aggregates = [(name, each) for name, each in group.aggregates if name in wanted]
    arguments = [part for _, each in aggregates for part in each.reads]
    below = derive(group.input, names_in([key.expression for key in group.keys] + arguments), look)
    facts: dict[Expression, Domain] = {
        Column(key.name, key.expression.type): domain_of(key.expression, below)
        for key in group.keys
        if key.name in wanted
    }
    for name, each in aggregates:
        inside = below if each.condition is None else refine(below, each.condition)
        of = Domain(each.type) if each.argument is None else domain_of(each.argument, inside)
        absent = each.condition is not None or of.nullable
        shown = each.condition is not None or (of.nullable and of.null_is_key)
        match each.function:
            case "count" | "count_distinct":
                found = Domain(each.type, False, False, Fraction(0), Fraction(most))
            case "sum" | "sum_distinct" if of.bounded and not of.empty:
                found = Domain(
                    each.type, absent, shown, min(of.low, most * of.low), max(of.high, most * of.high)
                )
            case "avg" | "avg_distinct" | "quantile_cont" if of.bounded and not of.empty:
                found = Domain(each.type, absent, shown, of.low, of.high)
            # NULL, which these aggregates skip
            case "arg_min" | "arg_max" if each.by is not None and domain_of(each.by, inside).nullable:
                found = replace(of, nullable=True, null_is_key=True)
            case (
                "min"
                | "max"
                | "quantile_disc"
                | "arg_min"
                | "arg_max"
                | "first"
                | "last"
                | "bool_or"
                | "bool_and"
            ):
                found = replace(of, nullable=absent, null_is_key=shown)
            case _:
                found = Domain(each.type)
        facts[Column(name, each.type)] = found
    return facts


def _windowed(rows: WindowsWithinUnit, wanted: frozenset[str], look: Look) -> Facts:
    """What holds of the rows below still holds; beside them, the domains of what windows compute."""
    windows = [(name, each) for name, each in rows.windows if name in wanted]
    read = [each.argument for _, each in windows if each.argument is not None]
    below = derive(rows.input, wanted | names_in(read), look)
    most = limits_of(rows.input).max_rows
    own: Facts = {Column(name, each.type): _of_window(each, below, most) for name, each in windows}
    return {**below, **own}


def _of_window(window: Window, below: Facts, most: int) -> Domain:
    """What a window can be. It has no value where its frame has none, as it may at either end of a unit."""
    type_, argument = window.type, window.argument
    of = Domain(type_) if argument is None else domain_of(argument, below)
    absent = of.nullable or window.frame is not None or window.condition is not None
    known = of.bounded and not of.empty
    match window.function:
        case "row_number" | "rank" | "dense_rank":
            return Domain(type_, False, False, Fraction(1), None)
        case "ntile":
            return Domain(type_, False, False, Fraction(1), Fraction(window.number or 1))
        case "percent_rank" | "cume_dist":
            return Domain(type_, False, False, Fraction(0), Fraction(1))
        case "count" | "count_distinct":
            return Domain(type_, False, False, Fraction(0), Fraction(most))
        case "sum" if known:
            return Domain(type_, absent, absent, min(of.low, most * of.low), max(of.high, most * of.high))
        case "avg" if known:
            return Domain(type_, absent, absent, of.low, of.high)
        case "min" | "max" | "bool_or" | "bool_and" | "first_value" | "last_value":
            return replace(of, nullable=absent, null_is_key=absent and (of.null_is_key or not of.nullable))
        case "nth_value" | "lag" | "lead":
            return _shifted(window, of)
        case _:
            return Domain(type_)


def _shifted(window: Window, of: Domain) -> Domain:
    """The value of another row, or the default where there is none."""
    if window.default is None:
        return replace(of, nullable=True, null_is_key=True)
    found = union(window.type, [of, domain_of(window.default, {})])
    return replace(found, nullable=True) if window.skips_null else found


def _claimed(type_: Type, claim: Claim) -> Domain:
    if claim.values is not None:
        domain = of_values(type_, claim.values, claim.nullable, claim.null_is_key)
        if claim.low is None:
            return domain
        within = tighten(domain, exact(claim.low), exact(claim.high))
        return replace(within, nullable=claim.nullable, null_is_key=domain.null_is_key)
    low, high = exact(claim.low), exact(claim.high)
    if low is None and type_.kind is Kind.INTEGER and type_.high - type_.low < 2**17:
        # the types TINYINT and SMALLINT are ranges in themselves
        low, high = Fraction(type_.low), Fraction(type_.high)
    return Domain(type_, claim.nullable, claim.null_is_key, low, high)
