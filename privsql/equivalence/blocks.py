"""A relation over rows goes in; blocks come out. Their rows together are the rows of the relation, however it
was written.

A block is what FROM a, b WHERE ... describes: rows of some sources side by side that meet conditions; its
columns are expressions over the columns of the sources. Projections, filters, inner joins, UNION ALL and
UNPIVOT dissolve into blocks, and with them subqueries, CTEs and names. Whatever does not dissolve is a
source: a table, or rows that are grouped, made distinct, sampled or padded. Left joins come last in a block:
such a source has NULLs where its condition finds no row, before the conditions of the block are tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, product

from privsql.algebra.expressions import Call, Column, Expression, Literal, columns_of, conjuncts, substitute
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
    Sort,
    UnionAll,
    Unnest,
    Unpivot,
    is_public,
    walk,
)
from privsql.algebra.unit_rows.units import Unit
from privsql.equivalence.normal_form import all_of
from privsql.equivalence.written import structure
from privsql.types import TEXT

MOST_BLOCKS = 64
MOST_NODES = 20_000
OWN = "own"  # the source number of a test's own columns, in its condition


class NotComparableError(Exception):
    """The normal form of the query would be too large to compare."""


@dataclass(frozen=True)
class Occurrence:
    """One occurrence of rows in a block. Two sources with the same text have the same rows.

    `unit`: the engine's type of the unit of these rows, None where it is unknown.
    """

    number: int
    text: str
    private: bool
    unit: str | None = None
    # LEFT JOIN only: the condition under which its rows stand beside the others
    padded: Expression | None = None
    whose: int | None = None  # LEFT JOIN within units: the source with the same unit


@dataclass(frozen=True)
class Test:
    """A semi-join or anti-join: keeps the rows for which some row of others, or none, meets a condition."""

    text: str  # the others
    on: Expression
    anti: bool
    null_aware: bool
    whose: int | None  # the source whose unit must be the same


@dataclass(frozen=True)
class Block:
    """Rows of sources side by side. A column is named by the number of its source, a dot, and its name
    there.
    """

    sources: tuple[Occurrence, ...]
    columns: Mapping[str, Expression]
    conditions: tuple[Expression, ...] = ()
    tests: tuple[Test, ...] = ()
    # pairs of sources whose rows stand side by side only if they have the same unit
    same_unit: tuple[tuple[int, int], ...] = ()
    whose: int | None = None  # the source whose unit is the row's unit; None: public
    required: frozenset[str] = field(default_factory=frozenset)  # columns of sources that are never NULL

    def meaning(self, expression: Expression) -> Expression:
        """An expression over the block's columns, rewritten over the columns of its sources."""
        return _limited(substitute(expression, dict(self.columns)))

    def where(self, conditions: Iterable[Expression]) -> Block:
        return replace(self, conditions=(*self.conditions, *map(self.meaning, conditions)))


@dataclass
class BlockReader:
    """Reads relations into blocks.

    `frame` turns blocks into a source: it returns the text of the source and a function from expressions over
    the blocks to names of its columns. `grouped` does the same for groups of their rows, and returns the text
    and the names of the columns.
    """

    frame: Callable[[Sequence[Block]], tuple[str, Callable[[Expression], str]]]
    grouped: Callable[[Group, Sequence[Block]], tuple[str, Mapping[str, str]]]
    numbers: count[int] = field(default_factory=count)

    def read(self, relation: Relation) -> tuple[Block, ...]:
        match relation:
            case Scan():
                return (self._scan(relation),)
            case Filter():
                return tuple(each.where(conjuncts(relation.predicate)) for each in self.read(relation.input))
            case Project():
                return tuple(_projected(each, dict(relation.columns)) for each in self.read(relation.input))
            case UnionAll():
                called = [each.name for each in relation.fields]
                return _few(block for each in relation.inputs for block in self._called(each, called))
            case Unpivot():
                return _few(
                    each for block in self.read(relation.input) for each in _unpivoted(block, relation)
                )
            case Unnest():
                return tuple(_unnested(each, relation) for each in self.read(relation.input))
            case Join(kind="inner"):
                pairs = product(self.read(relation.left), self.read(relation.right))
                return _few(_beside(left, right, relation) for left, right in pairs)
            case Join():
                return tuple(self._padded(each, relation) for each in self.read(relation.left))
            case Semi():
                return tuple(self._tested(each, relation) for each in self.read(relation.input))
            case Sort():
                return self.read(relation.input)  # rows have no order, until a LIMIT counts them
            case Group():
                text, names = self.grouped(relation, self.read(relation.input))
                return (self._source(relation, text, names),)
            case Distinct() | AtMost():
                return (self._cut(relation),)
            case _:  # VALUES, LIMIT of public rows and anything unknown: kept as it stands
                return (self._source(relation, structure(relation), _own_names(relation)),)

    def _called(self, relation: Relation, names: Sequence[str]) -> list[Block]:
        """The blocks of a relation, with its columns renamed in order."""
        own = [each.name for each in relation.fields]
        return [
            replace(each, columns={name: each.columns[old] for name, old in zip(names, own, strict=True)})
            for each in self.read(relation)
        ]

    def _source(
        self, relation: Relation, text: str, names: Mapping[str, str], unit: str | None = None
    ) -> Block:
        number, private = next(self.numbers), not is_public(relation)
        columns = {each.name: Column(f"{number}.{names[each.name]}", each.type) for each in relation.fields}
        return Block((Occurrence(number, text, private, unit),), columns, whose=number if private else None)

    def _scan(self, scan: Scan) -> Block:
        bounds = scan.limits if scan.unit is not None and not scan.unit.unique else None
        plain = replace(scan, fields=(), keys=(), matches=(), limits=bounds, lists=())
        made = self._source(scan, structure(plain), _own_names(scan), _unit_type(scan))
        required = [
            name for name, claim in scan.claims.items() if not claim.nullable and name not in scan.casts
        ]
        # a cast can turn a value into NULL
        return replace(made, required=frozenset(f"{made.sources[0].number}.{name}" for name in required))

    def _cut(self, relation: Distinct | AtMost) -> Block:
        """Rows selected by the values of all their columns."""
        text, name = self.frame(self.read(relation.input))
        names = {each.name: name(each.column) for each in relation.fields}
        listed = list(names.values())
        if isinstance(relation, AtMost):  # by a hash of the columns in their order
            text = f"at most {relation.most} by {names[relation.column]} of {listed} from {text}"
        else:
            text = f"different {sorted(set(listed))} from {text}"
        return self._source(relation, text, names)

    def _padded(self, left: Block, join: Join) -> Block:
        others, rest = _pushed(self.read(join.right), join.on, join.right)
        text, name = self.frame(others)
        number = next(self.numbers)
        beside = {each.name: Column(f"{number}.{name(each.column)}", each.type) for each in join.right.fields}
        columns = {**left.columns, **beside}
        on = _limited(substitute(all_of(rest), columns))
        whose = left.whose if join.same_unit else None
        source = Occurrence(number, f"padded {text}", not is_public(join.right), None, on, whose)
        return replace(left, sources=(*left.sources, source), columns=columns)

    def _tested(self, kept: Block, semi: Semi) -> Block:
        others, rest = self.read(semi.other), [semi.on]
        if not semi.null_aware:
            others, rest = _pushed(others, semi.on, semi.other)
        if not semi.anti:  # parts about the kept rows alone become conditions of the block
            mine = {each.name for each in semi.input.fields}
            kept = kept.where(part for part in rest if _names(part) <= mine)
            rest = [part for part in rest if not _names(part) <= mine]
        text, name = self.frame(others)
        own = {each.name: Column(f"{OWN}.{name(each.column)}", each.type) for each in semi.other.fields}
        on = _limited(substitute(all_of(rest), {**kept.columns, **own}))
        test = Test(text, on, semi.anti, semi.null_aware, kept.whose if semi.same_unit else None)
        return replace(kept, tests=(*kept.tests, test))


def _own_names(relation: Relation) -> dict[str, str]:
    return {each.name: each.name for each in relation.fields}


def _few(blocks: Iterable[Block]) -> tuple[Block, ...]:
    found = []
    for each in blocks:
        found.append(each)
        if len(found) > MOST_BLOCKS:
            raise NotComparableError
    return tuple(found)


def _limited(expression: Expression) -> Expression:
    """Return an expression unless it is too large: substitution copies a column's expression to every use."""
    pending, nodes = [expression], 0
    while pending:
        nodes += 1
        if nodes > MOST_NODES:
            raise NotComparableError
        each = pending.pop()
        if isinstance(each, Call):
            pending.extend(each.args)
    return expression


def _projected(block: Block, columns: Mapping[str, Expression]) -> Block:
    return replace(block, columns={name: block.meaning(each) for name, each in columns.items()})


def _unpivoted(block: Block, relation: Unpivot) -> Iterable[Block]:
    taken = {column for column, _ in relation.on}
    kept = {name: each for name, each in block.columns.items() if name not in taken}
    for column, label in relation.on:
        columns = {**kept, relation.name: Literal(label, TEXT), relation.value.name: block.columns[column]}
        yield replace(block, columns=columns)


def _unnested(block: Block, relation: Unnest) -> Block:
    """The block's single source, a table, with the elements of one more list."""
    (source,) = block.sources
    depth = sum(isinstance(each, Unnest) for each in walk(relation))
    name = f"{source.number}.\0{depth}"  # not the name of any column
    which = "all" if relation.kept is None else "declared"
    different = " different" if relation.distinct else ""
    text = f"{which}{different} elements of {structure(relation.of)} with {source.text}"
    return replace(
        block,
        sources=(replace(source, text=text),),
        columns={**block.columns, relation.element.name: Column(name, relation.element.type)},
        required=block.required if relation.kept is None else block.required | {name},
    )


def _beside(left: Block, right: Block, join: Join) -> Block:
    same = (*left.same_unit, *right.same_unit)
    if join.same_unit:
        if left.whose is None or right.whose is None:
            raise NotComparableError
        same = (*same, (left.whose, right.whose))
    both = Block(
        (*left.sources, *right.sources),
        {**left.columns, **right.columns},
        (*left.conditions, *right.conditions),
        (*left.tests, *right.tests),
        same,
        right.whose if left.whose is None else left.whose,
        left.required | right.required,
    )
    return both.where(conjuncts(join.on))


def _pushed(
    others: Sequence[Block], on: Expression, relation: Relation
) -> tuple[tuple[Block, ...], list[Expression]]:
    """Move the parts of a condition that concern the other rows alone into their blocks; return the rest,
    too.
    """
    own = {each.name for each in relation.fields}
    parts = conjuncts(on)
    alone = [part for part in parts if (names := _names(part)) and names <= own]
    return tuple(each.where(alone) for each in others), [part for part in parts if part not in alone]


def _names(expression: Expression) -> set[str]:
    return {column.name for column in columns_of(expression)}


def _unit_type(scan: Scan) -> str | None:
    """The engine's type of the unit of these rows, if the table itself has the unit's column."""
    unit = scan.unit
    if unit is None:
        return None
    if unit.refers_to is not None and not _refers_by_unit(unit):
        return None
    types = {each.name: each.type for each in scan.fields}
    return str([str(types[name]) for name in unit.columns if name in types])


def _refers_by_unit(unit: Unit) -> bool:
    """Whether the referenced key is the unit itself."""
    target = unit.refers_to
    return (
        target is not None
        and target.unit.refers_to is None
        and set(target.unit.columns) == set(target.columns)
    )
