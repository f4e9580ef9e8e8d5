"""Keys of a GROUP BY and the facts below it go in; the finite set of cells comes out, in a public order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

from privsql.algebra import build
from privsql.algebra.expressions import Column, Expression, columns_of
from privsql.algebra.relations import Key
from privsql.analysis.domain import MAX_KEYS, Domain, of_values
from privsql.analysis.facts import Facts, domain_of
from privsql.errors import Place, Refused
from privsql.tables import NullLast
from privsql.types import MOMENTS, Kind


class Evaluate(Protocol):
    """Computes expressions over public constants: one list per column in, one list per expression out."""

    def __call__(
        self, expressions: Sequence[Expression], columns: Mapping[Column, Sequence[Any]]
    ) -> list[list[Any]]: ...


@dataclass(frozen=True)
class KeyGroup:
    """Keys that depend on the same columns: their possible combinations, as one list of values per key."""

    names: tuple[str, ...]
    columns: tuple[Sequence[Any], ...]  # None stands for NULL

    def __len__(self) -> int:
        return len(self.columns[0])


@dataclass(frozen=True)
class KeySpace:
    """The product of independent groups; without groups, the single cell of a query without GROUP BY.

    `open`: the keys are not known beforehand; `groups` then holds those that were declared nevertheless.
    """

    names: tuple[str, ...]
    groups: tuple[KeyGroup, ...]
    open: bool = False

    def __len__(self) -> int:
        if self.open:
            return 0
        size = 1
        for group in self.groups:
            size *= len(group)
        return size

    @property
    def most(self) -> int:
        """The largest possible number of keys."""
        return MAX_KEYS if self.open else len(self)


def key_space(
    keys: Sequence[Key],
    facts: Facts,
    evaluate: Evaluate,
    not_null: frozenset[str] = frozenset(),
    known: Sequence[KeyGroup] = (),
) -> KeySpace:
    """Every combination of key values that the declarations allow; refuses keys that nobody declared.

    `known`: groups of keys whose combinations are already known.
    """
    for key in keys:
        if key.expression.type.kind is Kind.INTERVAL:
            raise build.no_intervals(key.place)
    domains = {key.name: domain_of(key.expression, facts) for key in keys}
    groups = [_without_null(group, not_null & set(group.names)) for group in known]
    listed = {name for group in known for name in group.names}
    for together in _connected([key for key in keys if key.name not in listed]):
        group = _listed(together, facts, domains, evaluate)
        groups.append(_without_null(group, not_null & set(group.names)))
    space = KeySpace(tuple(key.name for key in keys), tuple(groups))
    if len(space) > MAX_KEYS:
        raise _too_many(keys[0])
    for key in keys:
        _refuse_too_fine(key, next(group for group in groups if key.name in group.names))
    if len(space) == 0:
        raise Refused(
            "refused-empty-keys",
            "None of the declared keys can meet the conditions.",
            "Check WHERE against the declared values.",
            keys[0].place,
        )
    return space


def open_space(keys: Sequence[Key], facts: Facts, evaluate: Evaluate) -> KeySpace:
    """The key space if some keys are undeclared; the declared ones still exclude other values."""
    groups = []
    for key in keys:
        _refuse_unreadable(key)
        try:
            groups.append(_listed([key], facts, {key.name: domain_of(key.expression, facts)}, evaluate))
        except Refused:
            continue
    return KeySpace(tuple(key.name for key in keys), tuple(groups), open=True)


def _refuse_unreadable(key: Key) -> None:
    """Refuse keys that numpy cannot return exactly: it returns DECIMAL and HUGEINT with the digits of a
    double.
    """
    type_ = key.expression.type
    if (type_.kind is Kind.DECIMAL and type_.precision > 15) or (type_.is_wide):
        raise _fine(key)
    if type_.kind in (Kind.INTERVAL, Kind.TIME):
        raise Refused(
            "refused-type",
            f"{type_.kind.value} is not supported as an undeclared key.",
            f"GROUP BY CAST({key.text} AS VARCHAR).",
            key.place,
        )


def _listed(
    together: Sequence[Key], facts: Facts, domains: Mapping[str, Domain], evaluate: Evaluate
) -> KeyGroup:
    leaves = list(dict.fromkeys(leaf for key in together for leaf in columns_of(key.expression)))
    if len(together) == 1 and (isinstance(together[0].expression, Column) or not leaves):
        return of_domain(together[0], domains[together[0].name])
    sets = [options_of(domain_of(leaf, facts)) for leaf in leaves]
    size = 1
    for options in sets:
        size = size * len(options) if options is not None and size <= MAX_KEYS else MAX_KEYS + 1
    if size <= MAX_KEYS:
        return _evaluated(
            together, leaves, [each for each in sets if each is not None], facts, domains, evaluate
        )
    alone = [of_domain(key, domains[key.name]) for key in together]
    return alone[0] if len(alone) == 1 else _product(alone)


def options_of(domain: Domain) -> Sequence[Any] | None:
    values = domain.finite()
    if values is None or len(values) > MAX_KEYS:
        return None
    return NullLast(values) if domain.nullable else values


def of_domain(key: Key, domain: Domain) -> KeyGroup:
    values = domain.finite()
    if values is None:
        raise _unknown(key)
    if len(values) > MAX_KEYS:
        raise _too_many(key)
    with_null = domain.nullable and domain.null_is_key
    return KeyGroup((key.name,), (NullLast(values) if with_null else values,))


def _evaluated(
    together: Sequence[Key],
    leaves: list[Column],
    sets: list[Sequence[Any]],
    facts: Facts,
    domains: Mapping[str, Domain],
    evaluate: Evaluate,
) -> KeyGroup:
    """All combinations of the columns' values, mapped through the key expressions; each result once."""
    columns = _combinations(leaves, sets)
    results = evaluate([key.expression for key in together], columns)
    hidden = [
        leaf for leaf in leaves if domain_of(leaf, facts).nullable and not domain_of(leaf, facts).null_is_key
    ]
    keep: list[Callable[[Any], bool]] = [
        _member(domains[key.name], key.expression in facts) for key in together
    ]
    seen: dict[tuple[Any, ...], None] = {}
    for index, found in enumerate(zip(*results, strict=True)):
        # one and the same NaN object, which a dict treats as equal to itself
        row = tuple(math.nan if isinstance(value, float) and math.isnan(value) else value for value in found)
        if not all(value is None or test(value) for value, test in zip(row, keep, strict=True)):
            continue
        if any(
            isinstance(value, str) and key.expression.type.kind in MOMENTS | {Kind.TIME}
            for value, key in zip(row, together, strict=True)
        ):
            # years before 1 or after 9999, or 24:00: Python cannot hold them, and DuckDB returns their text
            continue
        if None in row and any(columns[leaf][index] is None for leaf in hidden):
            continue  # the NULL came from a NULL that the declared key set does not list
        if any(
            value is None and not domains[key.name].nullable for value, key in zip(row, together, strict=True)
        ):
            continue
        seen.setdefault(row)
    listed = list(seen)
    # NULL keys last, otherwise in the declared order
    listed.sort(key=lambda row: tuple(value is None for value in row))
    return KeyGroup(
        tuple(key.name for key in together), tuple([row[i] for row in listed] for i in range(len(together)))
    )


def _combinations(leaves: list[Column], sets: list[Sequence[Any]]) -> dict[Column, list[Any]]:
    """Every combination of the leaves' values, column by column."""
    total = repeat = math.prod(len(options) for options in sets)
    columns: dict[Column, list[Any]] = {}
    for leaf, options in zip(leaves, sets, strict=True):
        repeat //= max(1, len(options))
        once = [value for value in options for _ in range(repeat)]
        columns[leaf] = once * (total // len(once)) if once else []
    return columns


def _member(domain: Domain, filtered: bool) -> Callable[[Any], bool]:
    """A test whether a WHERE on the key expression itself keeps a value; `filtered`: there is such a
    WHERE.
    """
    if domain.values is not None and domain.type.kind is not Kind.BOOLEAN:
        allowed = set(domain.values)
        return lambda value: value in allowed
    if domain.empty:
        return lambda value: False
    if filtered and domain.type.kind is Kind.INTEGER:
        low, high = domain.low, domain.high
        return lambda value: (low is None or value >= low) and (high is None or value <= high)
    return lambda value: True


def _product(groups: list[KeyGroup]) -> KeyGroup:
    total = 1
    for group in groups:
        total *= len(group)
        if total > MAX_KEYS:
            raise too_many_keys("", "group by fewer keys")
    if total == 0:
        return KeyGroup(tuple(group.names[0] for group in groups), tuple([] for _ in groups))
    columns: list[list[Any]] = []
    repeat = total
    for group in groups:
        repeat //= len(group)
        once = [value for value in group.columns[0] for _ in range(repeat)]
        columns.append(once * (total // len(once)))
    return KeyGroup(tuple(group.names[0] for group in groups), tuple(columns))


def _without_null(group: KeyGroup, names: Set[str]) -> KeyGroup:
    """The combinations in which none of these keys is NULL."""
    if not names:
        return group
    checked = [index for index, name in enumerate(group.names) if name in names]
    rows = [
        row for row in zip(*group.columns, strict=True) if all(row[index] is not None for index in checked)
    ]
    return KeyGroup(group.names, tuple([row[i] for row in rows] for i in range(len(group.names))))


def evaluated_domain(expression: Expression, facts: Facts, evaluate: Evaluate) -> Domain | None:
    """The domain of an expression over columns with few values, found by computing it for all of them."""
    leaves = list(dict.fromkeys(columns_of(expression)))
    sets = [options_of(domain_of(leaf, facts)) for leaf in leaves]
    size = math.prod(len(each) if each is not None else MAX_KEYS + 1 for each in sets)
    # an empty set makes the product 0, whatever the unknown one is
    if not leaves or size > MAX_KEYS or any(each is None for each in sets):
        return None
    (values,) = evaluate([expression], _combinations(leaves, [each for each in sets if each is not None]))
    return of_values(
        expression.type, (value for value in values if value is not None), nullable=None in values
    )


def _connected(keys: Sequence[Key]) -> list[list[Key]]:
    """Group keys that read a common column, because their values depend on each other."""
    groups: list[tuple[set[Column], list[Key]]] = []
    for key in keys:
        leaves = set(columns_of(key.expression))
        joined = [group for group in groups if group[0] & leaves]
        rest = [group for group in groups if not group[0] & leaves]
        merged = (
            leaves.union(*(group[0] for group in joined)),
            [*(k for group in joined for k in group[1]), key],
        )
        groups = [*rest, merged]
    return [group for _, group in groups]


def _unknown(key: Key) -> Refused:
    """The refusal; callers that know the tables behind the key add a suggestion."""
    return Refused(
        "refused-unknown-keys", f"GROUP BY {key.text}: which values occur is itself private", place=key.place
    )


def _refuse_too_fine(key: Key, group: KeyGroup) -> None:
    """Refuse keys that differ but become equal as doubles: the engine returns DECIMAL and HUGEINT keys as
    doubles.
    """
    if key.expression.type.kind is not Kind.DECIMAL and not key.expression.type.is_wide:
        return
    values = {value for value in group.columns[group.names.index(key.name)] if value is not None}
    if len({float(value) for value in values}) < len(values) or any(abs(value) > 2**53 for value in values):
        raise _fine(key)


def _fine(key: Key) -> Refused:
    return Refused(
        "refused-fine-keys",
        f"GROUP BY {key.text}: some of these keys differ only in digits that a DOUBLE does not hold.",
        f"GROUP BY CAST({key.text} AS VARCHAR), or by a coarser number.",
        key.place,
    )


def _too_many(key: Key) -> Refused:
    return too_many_keys(f": GROUP BY {key.text}", "group by something coarser", key.place)


def too_many_keys(where: str, way_out: str, place: Place | None = None) -> Refused:
    return Refused(
        "refused-many-keys",
        f"More than {MAX_KEYS:,} declared combinations of keys{where}.",
        f"Narrow it with WHERE, or {way_out}.",
        place,
    )
