"""A relation over rows goes in; blocks come out, whose rows together are its rows, whatever it was written
like.

A block is what FROM a, b WHERE ... says: rows of some sources beside each other, for which conditions hold;
its columns are expressions over the sources' own. Projections, filters, inner joins, UNION ALL and UNPIVOT
all dissolve into blocks, and so subqueries, CTEs and names do. A source is what does not: a table, or rows
grouped, cut or padded. Left joins come last in a block: a source that gives NULLs where its condition finds
no row, before the conditions of the block are looked at.
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
from privsql.algebra.units import Unit
from privsql.equivalence.normal_form import all_of
from privsql.equivalence.written import structure
from privsql.types import TEXT

MOST_BLOCKS = 64
MOST_NODES = 20_000
OWN = "own"  # stands for the number of a source among its own columns, in a condition about it


class NotComparableError(Exception):
    """Written out, the question would be too large to compare with others."""


@dataclass(frozen=True)
class Occurrence:
    """One occurrence of rows in a block. Two sources with one text are the same rows.

    `unit`: the engine's type of the unit of these rows, None where it is not known.
    """

    number: int
    text: str
    private: bool
    unit: str | None = None
    # of a LEFT JOIN: the condition on which its rows stand beside the others
    padded: Expression | None = None
    whose: int | None = None  # of a LEFT JOIN within units: the source whose unit must be the same


@dataclass(frozen=True)
class Test:
    """Rows are kept for which some row of others meets a condition, or none does."""

    text: str  # the others
    on: Expression
    anti: bool
    null_aware: bool
    whose: int | None  # the source whose unit must be the same


@dataclass(frozen=True)
class Block:
    """Rows of sources beside each other. A column is called by the number of its source, a dot, and its name
    there.
    """

    sources: tuple[Occurrence, ...]
    columns: Mapping[str, Expression]
    conditions: tuple[Expression, ...] = ()
    tests: tuple[Test, ...] = ()
    # sources of whose rows only those of one unit stand beside each other
    same_unit: tuple[tuple[int, int], ...] = ()
    whose: int | None = None  # the source that says whose a row is; None: public
    required: frozenset[str] = field(default_factory=frozenset)  # columns of sources that are never NULL

    def meaning(self, expression: Expression) -> Expression:
        """An expression over the block's columns as one over those of its sources."""
        return _limited(substitute(expression, dict(self.columns)))

    def where(self, conditions: Iterable[Expression]) -> Block:
        return replace(self, conditions=(*self.conditions, *map(self.meaning, conditions)))


@dataclass
class BlockReader:
    """Reads relations into blocks.

    `frame` makes of blocks a source of their own: its text, and the names that expressions over the blocks
    have as its columns. `grouped` does so with groups of their rows: its text, and the names of its columns.
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
            case _:  # VALUES, LIMIT of public rows, and what is not known here: as it stands
                return (self._source(relation, structure(relation), _own_names(relation)),)

    def _called(self, relation: Relation, names: Sequence[str]) -> list[Block]:
        """The blocks of a relation with other names for its columns, in order."""
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
        # a cast could give NULL where there was a value
        return replace(made, required=frozenset(f"{made.sources[0].number}.{name}" for name in required))

    def _cut(self, relation: Distinct | AtMost) -> Block:
        """Rows that were chosen by all their columns."""
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
        if not semi.anti:  # what is about the kept rows alone can be asked of them alone
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
    """An expression that is not too large: what a column stands for is written out wherever it is used."""
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
    """The one source of the block, a table, with the elements of one list more."""
    (source,) = block.sources
    depth = sum(isinstance(each, Unnest) for each in walk(relation))
    name = f"{source.number}.\0{depth}"  # which is no column's own name
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
    """What a condition says of the other rows alone, asked of them alone; and the rest of it."""
    own = {each.name for each in relation.fields}
    parts = conjuncts(on)
    alone = [part for part in parts if (names := _names(part)) and names <= own]
    return tuple(each.where(alone) for each in others), [part for part in parts if part not in alone]


def _names(expression: Expression) -> set[str]:
    return {column.name for column in columns_of(expression)}


def _unit_type(scan: Scan) -> str | None:
    """The engine's type of whose rows these are, where the table itself has it."""
    unit = scan.unit
    if unit is None:
        return None
    if unit.refers_to is not None and not _refers_by_unit(unit):
        return None
    types = {each.name: each.type for each in scan.fields}
    return str([str(types[name]) for name in unit.columns if name in types])


def _refers_by_unit(unit: Unit) -> bool:
    """Whether what is referred to by is the unit itself."""
    target = unit.refers_to
    return (
        target is not None
        and target.unit.refers_to is None
        and set(target.unit.columns) == set(target.columns)
    )
