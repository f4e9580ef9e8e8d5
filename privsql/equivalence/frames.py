"""Blocks go in; a text comes out that depends neither on names nor on any order: of sources, of conditions,
or of what is computed from the rows.

Sources are placed in the order of their texts. Where several have the same text (a self-join), every
placement is tried, and the one with the least text is taken. The blocks of a union are sorted by their texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from math import factorial, prod

from privsql.algebra.expressions import (
    Aggregate,
    Call,
    Expression,
    Literal,
    columns_of,
    conjuncts,
    substitute,
)
from privsql.algebra.relations import Group
from privsql.equivalence.blocks import OWN, Block, Occurrence
from privsql.equivalence.normal_form import all_of, both, normal, normal_condition, not_null
from privsql.equivalence.written import digest, structure, written
from privsql.types import NUMBERS, Kind

# placements of sources with equal texts; with more than these, only the written order is tried
MOST_WAYS = 24


@dataclass(frozen=True)
class PlacedBlock:
    """A block whose sources are named by their places instead of their numbers."""

    block: Block
    places: Mapping[int, int]
    required: frozenset[str]
    conditions: tuple[Expression, ...]  # in normal form
    rows: str  # without the conditions

    @property
    def text(self) -> str:
        return f"{self.rows} where {self.where(None)}"

    @property
    def empty(self) -> bool:
        return any(isinstance(each, Literal) and each.value is False for each in self.conditions)

    def value(self, expression: Expression) -> Expression:
        """An expression over the block's columns, in normal form over places."""
        return normal(self.meant(expression), self.required)

    def meant(self, expression: Expression) -> Expression:
        """An expression over the block's columns, rewritten over places but not normalized."""
        return _renamed(self.block.meaning(expression), self.places)

    @property
    def meant_conditions(self) -> list[Expression]:
        """The conditions of the block, not normalized."""
        return [_renamed(each, self.places) for each in self.block.conditions]

    def where(self, condition: Expression | None, *also: Expression) -> str:
        """The conditions of the block and further ones; `also` are over places already."""
        further = () if condition is None else (self.meant(condition),)
        others = normal_condition(all_of([*further, *also]), self.required)
        return str([written(part) for part in conjuncts(both(self.conditions, [others]))])

    def aggregate(self, aggregate: Aggregate, exact: bool) -> str:
        """The text of an aggregate, with all conditions on its rows. `exact`: a sum over no rows is NULL, not
        0.
        """
        argument = None if aggregate.argument is None else self.value(aggregate.argument)
        function, argument, also = _counted(aggregate.function, argument, exact)
        by = "" if aggregate.by is None else f" by {written(self.value(aggregate.by))}"
        of = "*" if argument is None else written(argument)
        others = structure(getattr(aggregate, "parameters", ()))
        return f"{function}:{aggregate.type}({of}){by}{others} where {self.where(aggregate.condition, *also)}"

    @property
    def unit(self) -> str:
        """The unit of a row as the engine sees it: its type, and its source where the type may differ between
        sources.
        """
        types = {each.unit for each in self.block.sources if each.private and each.padded is None}
        if self.block.whose is None or (len(types) == 1 and None not in types):
            return str(types)
        return f"of {self.places[self.block.whose]}"


_SKIPPING_NULL = frozenset(
    {
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "quantile_cont",
        "quantile_disc",
        "bool_or",
        "bool_and",
        "var_pop",
        "var_samp",
        "stddev_pop",
        "stddev_samp",
    }
)


def _counted(
    function: str, argument: Expression | None, exact: bool
) -> tuple[str, Expression | None, list[Expression]]:
    """An aggregate reduced to its simplest form, with the conditions under which a row counts."""
    also: list[Expression] = []
    added = function == "sum" and not exact
    while argument is not None and function in _SKIPPING_NULL:
        match argument:
            case Call(function="case", args=(test, value, Literal(value=None))):
                argument, also = value, [*also, test]
            case Call(function="case", args=(test, value, Literal(value=0))) if (
                added and argument.type.kind in NUMBERS
            ):
                argument, also = value, [*also, test]
            case Literal(value=1) if added and argument.type.kind is Kind.INTEGER:
                return "count", None, also
            case Call(function="cast", args=(test,), type=to) if (
                added and test.type.kind is Kind.BOOLEAN and to.kind is Kind.INTEGER
            ):
                return "count", None, [*also, test]
            case _:
                also = [*also, not_null(argument)]
                return function, None if function == "count" else argument, also
    return function, argument, also


# -- values computed from a block, as text -------------------------------------------------------------------
Computed = Callable[[PlacedBlock], str]


def value_of(expression: Expression) -> Computed:
    return lambda block: written(block.value(expression))


def aggregate_of(aggregate: Aggregate, exact: bool) -> Computed:
    return lambda block: block.aggregate(aggregate, exact)


class Frame:
    """The placed and sorted blocks of one relation; `computed` breaks ties between placements."""

    def __init__(self, blocks: Sequence[Block], computed: Sequence[Computed] = ()) -> None:
        def order(each: PlacedBlock) -> list[str]:
            return [each.text, *(one(each) for one in computed)]

        placed = [_least(block, order) for block in blocks]
        # a block without rows contributes nothing
        some = [each for each in placed if not each.empty] or placed
        self.blocks = sorted(some, key=order) if len(some) > 1 else some

    @property
    def text(self) -> str:
        return self.of(lambda block: block.text)

    @property
    def rows(self) -> str:
        """The text of the rows before any WHERE."""
        return self.of(lambda block: block.rows)

    @property
    def unit(self) -> str:
        return self.of(lambda block: block.unit)

    def of(self, computed: Computed) -> str:
        return " and ".join(map(computed, self.blocks))


def framed(blocks: Sequence[Block]) -> tuple[str, Callable[[Expression], str]]:
    """Turn blocks into a source: its text, and a function that names expressions over them as its columns."""
    frame = Frame(blocks)
    return f"({frame.text})", lambda expression: digest(frame.of(value_of(expression)))


def grouped(group: Group, blocks: Sequence[Block]) -> tuple[str, Mapping[str, str]]:
    """Turn groups of the blocks' rows into a source: its text, and the names of its columns."""
    frame = Frame(blocks, [value_of(key.expression) for key in group.keys])
    keys = {key.name: frame.of(value_of(key.expression)) for key in group.keys}
    aggregates = {name: frame.of(aggregate_of(each, exact=True)) for name, each in group.aggregates}
    within = " within a unit" if group.per_unit else ""
    text = f"groups{within} by {sorted(set(keys.values()))} of ({frame.text})"
    return text, {name: digest(each) for name, each in {**keys, **aggregates}.items()}


# -- places --------------------------------------------------------------------------------------------------
def _least(block: Block, order: Callable[[PlacedBlock], list[str]]) -> PlacedBlock:
    ways = [_placed(block, places) for places in _ways(block.sources)]
    return ways[0] if len(ways) == 1 else min(ways, key=order)


def _ways(sources: Sequence[Occurrence]) -> Iterator[dict[int, int]]:
    """Every numbering of the sources from 0 in the order of their texts."""
    alike: dict[str, list[int]] = {}
    for each in sorted(sources, key=lambda source: source.text):
        alike.setdefault(each.text, []).append(each.number)
    groups = list(alike.values())
    several = prod(factorial(len(group)) for group in groups) <= MOST_WAYS
    for way in product(*(permutations(group) if several else [group] for group in groups)):
        yield {number: place for place, number in enumerate(each for group in way for each in group)}


def _placed(block: Block, places: Mapping[int, int]) -> PlacedBlock:
    required = frozenset(_place(name, places) for name in block.required)
    every = normal_condition(all_of([_renamed(each, places) for each in block.conditions]), required)
    units = _together(block.same_unit, places)
    sources = {places[each.number]: each.text for each in block.sources}
    parts = [f"from {[sources[place] for place in sorted(sources)]}"]
    if block.same_unit:
        parts.append(f"of one unit {sorted(set(units.values()))}")
    parts += sorted(
        _padding(each, places, units, required) for each in block.sources if each.padded is not None
    )
    parts += sorted(_tests(block, places, units, required))
    return PlacedBlock(block, places, required, tuple(conjuncts(every)), " ".join(parts))


def _padding(
    source: Occurrence,
    places: Mapping[int, int],
    units: Mapping[int, tuple[int, ...]],
    required: frozenset[str],
) -> str:
    assert source.padded is not None
    on = written(normal_condition(_renamed(source.padded, places), required))
    whose = (
        "" if source.whose is None else f" of the unit of {units.get(source.whose, (places[source.whose],))}"
    )
    return f"{places[source.number]} beside{whose} on {on}"


def _tests(
    block: Block, places: Mapping[int, int], units: Mapping[int, tuple[int, ...]], required: frozenset[str]
) -> Iterator[str]:
    for test in block.tests:
        on = _renamed(test.on, places)
        if test.null_aware and isinstance(on, Call):
            # for NOT IN, NULLs among the other values matter
            shown = f"in {[written(normal(arg, required)) for arg in on.args]}"
        else:
            shown = written(normal_condition(on, required))
        whose = (
            "" if test.whose is None else f" of the unit of {units.get(test.whose, (places[test.whose],))}"
        )
        yield f"{'without' if test.anti else 'with'} one{whose} of {test.text} on {shown}"


def _together(pairs: Sequence[tuple[int, int]], places: Mapping[int, int]) -> dict[int, tuple[int, ...]]:
    """For each source in a pair, the places of all sources with the same unit."""
    groups: dict[int, set[int]] = {}
    for one, other in pairs:
        both = groups.get(one, {one}) | groups.get(other, {other})
        groups |= dict.fromkeys(both, both)
    return {number: tuple(sorted(places[each] for each in group)) for number, group in groups.items()}


def _renamed(expression: Expression, places: Mapping[int, int]) -> Expression:
    columns: dict[str, Expression] = {
        each.name: replace(each, name=_place(each.name, places)) for each in columns_of(expression)
    }
    return substitute(expression, columns)


def _place(name: str, places: Mapping[int, int]) -> str:
    number, _, rest = name.partition(".")
    return name if number == OWN else f"{places[int(number)]}.{rest}"
