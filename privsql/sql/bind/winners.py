"""Queries that select labels go in; a Choose comes out: ORDER BY a score LIMIT k, arg_max over a grouped
subquery, MODE.

A score is a sum of aggregates times constants or keys, such as `price * COUNT(*)`. A key is the same in all
rows of its group, so that is SUM(price): one aggregate, with a range and a grid like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from privsql.algebra.build import arithmetic, same_type, shared_type, unify
from privsql.algebra.expressions import Aggregate, Call, Column, Expression, Literal, columns_of, substitute
from privsql.algebra.relations import Choose, Key, Project, Relation, Release, Sort, is_released
from privsql.algebra.reserved import key_names, unique_names
from privsql.errors import Place, Refused
from privsql.sql.bind.clauses import bind_order, whole_number
from privsql.sql.bind.group_by import Items, as_written
from privsql.sql.bind.release import ReleaseBinder, bare
from privsql.sql.bind.scalar.binder import ExpressionBinder
from privsql.sql.bind.scope import Source
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import over_noisy_answer, value_of_one_person
from privsql.types import BIGINT, BOOLEAN, DOUBLE, Kind, integer

_PLAIN = ("having", "qualify", "offset", "distinct")  # clauses that make it something other than a selection
Columns = Mapping[str, Expression]


def best_keys(
    node: exp.Select,
    relation: Relation,
    keys: tuple[Key, ...],
    binder: ReleaseBinder,
    shown: list[Expression],
    items: Items,
) -> Source | None:
    """SELECT keys ... GROUP BY keys ORDER BY score LIMIT k: only the labels are released."""
    order, most = node.args.get("order"), _most(node)
    if order is None or most is None or not keys or binder.aggregates:
        return None
    names = [name for name, _ in items]
    term, *ties = [bind_order(each, binder, shown, names) for each in order.expressions]
    if any(each.expression not in binder.keys.values() for each in ties):
        # further keys after the score only break ties, so they are ignored; anything else is not a selection
        return None
    aggregates = {name: each for each, name in binder.aggregates.items()}
    score = linear_score(term.expression, aggregates, {key.name: key.expression for key in keys})
    if score is None:
        return None
    chosen = Choose(relation, keys, score, largest=term.descending, most=most)
    return Source(Project(chosen, tuple(zip(unique_names(names), shown, strict=True))), None, tuple(names))


def best_of_answer(
    node: exp.Select, relation: Relation, rows: ExpressionBinder, shown: list[Expression], names: list[str]
) -> Relation | None:
    """SELECT k FROM (SELECT k, COUNT(*) AS n ... GROUP BY k) ORDER BY n DESC LIMIT k."""
    grouped, order, most = _plain_release(relation), node.args.get("order"), _most(node)
    if grouped is None or order is None or most is None:
        return None
    release, columns = grouped
    term, *ties = [bind_order(each, rows, shown, names) for each in order.expressions]
    keys = {Column(key.name, key.expression.type) for key in release.keys}
    if any(
        not isinstance(each.expression, Column) or columns[each.expression.name] not in keys for each in ties
    ):
        return None
    labels = _labels(shown, columns, release)
    score = _inner_score(term.expression, columns, release)
    if labels is None or score is None:
        return None
    return Project(Choose(release.input, release.keys, score, term.descending, most=most), labels)


def choice_function(
    node: exp.Select,
    relation: Relation,
    keys: tuple[Key, ...],
    rows: ExpressionBinder,
    items: Items,
    binder: ReleaseBinder,
) -> Source:
    """MODE(k) over rows, arg_max(k, n) over a grouped subquery; with GROUP BY, one for every key."""
    places = [
        index for index, (_, each) in enumerate(items) if isinstance(each, exp.Expr) and _is_choice(each)
    ]
    if len(places) != 1 or any(node.args.get(name) for name in (*_PLAIN, "limit")):
        raise _alone(place_of(node))
    # placeholders until the selection is known
    shown: list[Expression] = [Literal(None, BIGINT)] * len(items)
    for index, (_, each) in enumerate(items):
        if index != places[0]:
            shown[index] = binder.bind(each) if isinstance(each, exp.Expr) else binder.key_column(each)
    names = tuple(name for name, _ in items)
    order = node.args.get("order")
    terms = (
        [bind_order(each, binder, shown, list(names)) for each in order.expressions]
        if order is not None
        else []
    )
    if binder.aggregates or any(isinstance(each.expression, Literal) for each in terms):
        raise _alone(place_of(node))
    choice = items[places[0]][1]
    assert isinstance(choice, exp.Expr)
    function = bare(choice)
    label: Expression
    if isinstance(function, exp.Mode) and function.this is not None:
        if is_released(relation):
            raise over_noisy_answer(
                "refused-choice", "MODE over", "Compute it over the rows.", place_of(node)
            )
        argument = rows.bind(function.this)
        name = key_names([*(key.name for key in keys), names[places[0]]])[-1]
        key = Key(name, argument, as_written(function.this), place_of(function))
        score = Aggregate("count", None, None, BIGINT, place_of(function))
        chosen = Choose(relation, (*keys, key), score, True, frozenset({name}), within=len(keys))
        label = Column(name, argument.type)
    else:
        chosen, label, columns = _arg_max(function, relation, keys, rows)
        shown = [_standing_for(each, keys, columns) for each in shown]
        terms = [replace(each, expression=_standing_for(each.expression, keys, columns)) for each in terms]
    shown[places[0]] = label
    ordered: Relation = Sort(chosen, tuple(terms)) if terms else chosen
    return Source(Project(ordered, tuple(zip(unique_names(list(names)), shown, strict=True))), None, names)


def _arg_max(
    function: exp.Expr, relation: Relation, keys: tuple[Key, ...], rows: ExpressionBinder
) -> tuple[Choose, Expression, Columns]:
    grouped = _plain_release(relation)
    if grouped is not None and isinstance(function, (exp.ArgMax, exp.ArgMin)):
        release, columns = grouped
        labels = _labels([rows.bind(function.this)], columns, release)
        score = _inner_score(rows.bind(function.expression), columns, release)
        outer = [
            columns.get(key.expression.name) if isinstance(key.expression, Column) else None for key in keys
        ]
        within = [each.name for each in outer if isinstance(each, Column)]
        if labels is not None and score is not None and len(within) == len(keys):
            ((_, label),) = labels
            assert isinstance(label, Column)
            by_name = {key.name: key for key in release.keys}
            rest = [key for key in release.keys if key.name not in within]
            if set(within) <= by_name.keys() and (not within or [key.name for key in rest] == [label.name]):
                ordered = (*(by_name[name] for name in within), *rest)
                largest = isinstance(function, exp.ArgMax)
                return (
                    Choose(
                        release.input, ordered, score, largest, frozenset({label.name}), within=len(within)
                    ),
                    label,
                    columns,
                )
    raise value_of_one_person(place_of(function))


def _standing_for(shown: Expression, keys: tuple[Key, ...], columns: Columns) -> Expression:
    """The key of the grouped subquery that a column of the outer SELECT refers to."""
    inner = {key.name: columns[key.expression.name] for key in keys if isinstance(key.expression, Column)}
    return substitute(shown, inner)


def _is_choice(node: exp.Expr) -> bool:
    return isinstance(bare(node), (exp.ArgMax, exp.ArgMin, exp.Mode))


def _alone(place: Place | None) -> Refused:
    return Refused(
        "refused-choice",
        "arg_max, arg_min and mode must be the only output of a SELECT beside its keys.",
        "Write SELECT mode(state) FROM t, SELECT state, mode(diagnosis) FROM t GROUP BY state, or "
        "GROUP BY ... ORDER BY COUNT(*) DESC LIMIT 1.",
        place,
    )


def _most(node: exp.Select) -> int | None:
    """How many labels are wanted; None if LIMIT is not a positive constant or the query has other clauses."""
    limit = node.args.get("limit")
    if limit is None or any(node.args.get(name) is not None for name in _PLAIN):
        return None
    count = whole_number(limit)
    return count if count is not None and count >= 1 else None


def _labels(
    shown: Sequence[Expression], columns: Columns, release: Release
) -> tuple[tuple[str, Expression], ...] | None:
    """Columns of a grouped subquery as its keys; None if one of them is not a key."""
    keys = {key.name for key in release.keys}
    found = [columns.get(each.name) if isinstance(each, Column) else None for each in shown]
    if not keys or any(not isinstance(each, Column) or each.name not in keys for each in found):
        return None
    return tuple((f"label_{index}", each) for index, each in enumerate(found) if each is not None)


def _inner_score(score: Expression, columns: Columns, release: Release) -> Aggregate | None:
    if release.sets or any(column.name not in columns for column in columns_of(score)):
        return None
    keys = {key.name: key.expression for key in release.keys}
    return linear_score(substitute(score, dict(columns)), dict(release.aggregates), keys)


def _plain_release(relation: Relation) -> tuple[Release, dict[str, Expression]] | None:
    """A grouped subquery that only selects keys and aggregates: its release, and the meaning of each
    column.
    """
    if not isinstance(relation, Project) or not isinstance(relation.input, Release):
        return None
    return relation.input, dict(relation.columns)


# -- scores --------------------------------------------------------------------------------------------------
# a factor that is the same in all rows of a group, and the aggregate that it multiplies
Term = tuple[Expression | None, Aggregate]


def linear_score(score: Expression, aggregates: Mapping[str, Aggregate], keys: Columns) -> Aggregate | None:
    """One aggregate whose value is the score; None unless the score is a sum of counts and sums times
    constants and keys.
    """
    terms = _terms(score, aggregates, keys)
    if terms is None:
        return None
    if len(terms) == 1:
        ((factor, aggregate),) = terms
        if factor is None:
            return aggregate
        if aggregate.function == "sum" or aggregate.argument is None:
            return _summed(_product(factor, aggregate.argument), aggregate.condition, aggregate.place)
    parts = [_where_it_counts(*term) for term in terms]
    total = parts[0]
    for each in parts[1:]:
        total = arithmetic("+", total, each)
    return _summed(total, None, terms[0][1].place)


def _terms(score: Expression, aggregates: Mapping[str, Aggregate], keys: Columns) -> list[Term] | None:
    match score:
        case Column(name=name):
            found = aggregates.get(name)
            return [(None, found)] if found is not None and found.function in ("count", "sum") else None
        case Call(function="cast", args=(inner,)) if score.type.kind in (Kind.DOUBLE, Kind.DECIMAL):
            return _terms(inner, aggregates, keys)
        case Call(function="neg", args=(inner,)):
            return _scaled(_terms(inner, aggregates, keys), Literal(-1, integer(-1, -1)))
        case Call(function="+" | "-" as operator, args=(left, right)):
            first, second = (_terms(each, aggregates, keys) for each in (left, right))
            if operator == "-":
                second = _scaled(second, Literal(-1, integer(-1, -1)))
            return None if first is None or second is None else [*first, *second]
        case Call(function="*", args=(left, right)):
            for inner, factor in ((left, right), (right, left)):
                if _same_in_group(factor, keys):
                    return _scaled(_terms(inner, aggregates, keys), substitute(factor, dict(keys)))
        case Call(function="/", args=(inner, divisor)) if _same_in_group(divisor, keys):
            one = Literal(1.0, DOUBLE)
            return _scaled(
                _terms(inner, aggregates, keys), arithmetic("/", one, substitute(divisor, dict(keys)))
            )
    return None


def _same_in_group(expression: Expression, keys: Columns) -> bool:
    return all(column.name in keys for column in columns_of(expression))


def _scaled(terms: list[Term] | None, factor: Expression) -> list[Term] | None:
    if terms is None:
        return None
    return [
        (factor if already is None else arithmetic("*", already, factor), each) for already, each in terms
    ]


def _product(factor: Expression, argument: Expression | None) -> Expression:
    return factor if argument is None else arithmetic("*", factor, argument)


def _where_it_counts(factor: Expression | None, aggregate: Aggregate) -> Expression:
    """What one row adds to a term: 0 if it does not count."""
    one = Literal(1, integer(1, 1))
    counts = aggregate.function == "count"
    value = one if counts else aggregate.argument
    assert value is not None
    value = value if factor is None else (factor if counts else arithmetic("*", factor, value))
    tests = [aggregate.condition] if aggregate.condition is not None else []
    if counts and aggregate.argument is not None:
        tests.append(Call("not", (Call("is_null", (aggregate.argument,), BOOLEAN),), BOOLEAN))
    nothing = Literal(0, integer(0, 0))
    for test in tests:
        yes, no = same_type([value, nothing])
        value = Call("case", (test, yes, no), shared_type([yes, no]))
    return unify("coalesce", [value, nothing])


def _summed(argument: Expression, condition: Expression | None, place: Place | None) -> Aggregate:
    return Aggregate(
        "sum", argument, condition, BIGINT if argument.type.kind is Kind.INTEGER else DOUBLE, place
    )
