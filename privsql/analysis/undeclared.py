"""A relation and an expression over it go in; declarations of its tables that would help come out.

Each suggestion is tried on the relation as it would be with the declaration, so a suggested line works.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from privsql.algebra.declared import Claim
from privsql.algebra.describe import describe
from privsql.algebra.expressions import Column, Expression
from privsql.algebra.relations import (
    Group,
    Join,
    Key,
    Project,
    Relation,
    Scan,
    Semi,
    UnionAll,
    Unnest,
    Unpivot,
    WindowsWithinUnit,
    below,
    rebuilt,
)
from privsql.analysis.derive import derive, names_in
from privsql.analysis.facts import Facts, domain_of, refine
from privsql.analysis.keys import Evaluate, evaluated_domain, key_space
from privsql.analysis.public_rows import Look
from privsql.errors import Refused
from privsql.suggestions import Declare, Fact, Way
from privsql.types import MOMENTS, RANGED, Kind, Type

Origin = tuple[str, str]  # a table and a column of it
_COARSER = {  # columns with too many values to list: a coarser key to group by, once the range is known
    Kind.TIMESTAMP: "group by date_trunc('month', {})",
    Kind.DOUBLE: "group by CAST(floor({} / WIDTH) AS INTEGER)",
    Kind.DECIMAL: "group by CAST(floor({} / WIDTH) AS INTEGER)",
}
_DAY = dt.date(2024, 1, 1)


def origins(relation: Relation, wanted: frozenset[str]) -> set[Origin]:
    """The columns of tables from which some columns of a relation are computed."""
    match relation:
        case Scan():
            return {(relation.table, name) for name in wanted if name in relation.claims}
        case Project():
            return origins(
                relation.input, names_in(each for name, each in relation.columns if name in wanted)
            )
        case Group():
            keys = [key.expression for key in relation.keys if key.name in wanted]
            inside = [
                each.argument
                for name, each in relation.aggregates
                if name in wanted and each.argument is not None
            ]
            return origins(relation.input, names_in([*keys, *inside]))
        case WindowsWithinUnit():
            read = [
                each.argument
                for name, each in relation.windows
                if name in wanted and each.argument is not None
            ]
            return origins(relation.input, wanted | names_in(read))
        case Unpivot():
            return origins(relation.input, wanted | {name for name, _ in relation.on})
        case UnionAll():
            places = [index for index, each in enumerate(relation.fields) if each.name in wanted]
            return set().union(
                *(
                    origins(side, frozenset(side.fields[place].name for place in places))
                    for side in relation.inputs
                )
            )
        case Join():
            return origins(relation.left, wanted) | origins(relation.right, wanted)
        case Semi() | Unnest():
            return origins(relation.input, wanted)
        case _:
            return set().union(*(origins(each, wanted) for each in below(relation)))


@dataclass(frozen=True)
class Undeclared:
    """What could be declared below a release."""

    relation: Relation
    look: Look

    def ranges(
        self, expression: Expression, condition: Expression | None, evaluate: Evaluate | None = None
    ) -> list[Way]:
        """Declarations that give an expression a range: one the person knows, or one found for a share of
        epsilon.
        """

        def settles(facts: Facts) -> bool:
            facts = facts if condition is None else refine(facts, condition)
            domain = domain_of(expression, facts)
            evaluated = (
                None if domain.bounded or evaluate is None else evaluated_domain(expression, facts, evaluate)
            )
            return (evaluated or domain).bounded

        found = self._columns([expression], lambda type_: type_.kind in RANGED)
        known = {each: fact for each, type_ in found.items() if (fact := _range(type_)) is not None}
        read = [expression] if condition is None else [expression, condition]
        if not found or not self._helps(read, known, settles):
            return []
        declared: Way = ("declare a range that you know without looking at the data: ", *_declare(known))
        auto = dict.fromkeys(found, Fact.AUTO)
        if Fact.MOMENTS in known.values() or not self._helps(read, auto, settles):
            return [declared]
        return [declared, ("have it found for a share of epsilon: ", *_declare(auto))]

    def keys(self, keys: Sequence[Key], facts: Facts, evaluate: Evaluate) -> Way:
        """Declarations, and conditions in the query, that would make the values of these keys known."""
        declared: dict[Origin, Fact] = {}
        written: list[str] = []
        for key in keys:
            if not _are_known(key, facts, evaluate):
                lines, instead = self._key(key, facts, evaluate)
                declared |= lines
                written += [instead] if instead else []
        named: Way = ("declare the keys: ", *_declare(declared)) if declared else ()
        return (*named, " and " if declared and written else "", " and ".join(written))

    def _key(self, key: Key, known: Facts, evaluate: Evaluate) -> tuple[dict[Origin, Fact], str]:
        """What to declare for a key, and what to write in the query instead."""
        expression = key.expression
        found = self._columns([expression], lambda _: True)
        facts = {each: _range(type_) or Fact.VALUES for each, type_ in found.items()}
        ranged = bool(found) or domain_of(expression, known).bounded
        if isinstance(expression, Column) and expression.type.kind in _COARSER and ranged:
            return facts, _COARSER[expression.type.kind].format(key.text)
        for some in (facts, dict.fromkeys(found, Fact.VALUES)):
            if found and self._helps([expression], some, lambda facts: _are_known(key, facts, evaluate)):
                return some, ""
        return {}, f"name those that may be shown: WHERE {key.text} IN (VALUES)"

    def _columns(self, read: Sequence[Expression], suits: Callable[[Type], bool]) -> dict[Origin, Type]:
        """The columns behind expressions for which nothing is declared, in order."""
        wanted = origins(self.relation, names_in(read))
        return {
            (scan.table, field.name): field.type
            for scan in scans(self.relation)
            for field in scan.fields
            if scan.private
            and (scan.table, field.name) in wanted
            and _is_open(scan.claims[field.name])
            and suits(field.type)
        }

    def _helps(
        self, read: Sequence[Expression], declared: Mapping[Origin, Fact], settles: Callable[[Facts], bool]
    ) -> bool:
        """Whether these declarations would settle it."""

        def supposed(each: Relation) -> Relation:
            if not isinstance(each, Scan):
                return each
            types = {field.name: field.type for field in each.fields}
            claims = {
                name: claim
                if (fact := declared.get((each.table, name))) is None
                else _supposed(claim, types[name], fact)
                for name, claim in each.claims.items()
            }
            return replace(each, claims=claims)

        return settles(derive(rebuilt(self.relation, supposed), names_in(read), self.look))


def within(argument: Expression) -> Way:
    """A suggestion to bound an argument in WHERE."""
    ends = "'LOWEST' AND 'HIGHEST'" if argument.type.kind in MOMENTS else "LOWEST AND HIGHEST"
    return (f"select values between bounds that you know: WHERE {describe(argument)} BETWEEN {ends}",)


def _are_known(key: Key, facts: Facts, evaluate: Evaluate) -> bool:
    try:
        key_space([key], facts, evaluate)
    except Refused as error:
        return error.code != "refused-unknown-keys"
    return True


def _range(type_: Type) -> Fact | None:
    """How a range of such values is declared; None if the type has no ranges."""
    if type_.kind not in RANGED:
        return None
    return Fact.MOMENTS if type_.kind in MOMENTS else Fact.RANGE


def scans(relation: Relation) -> Iterable[Scan]:
    """The tables that are read."""
    if isinstance(relation, Scan):
        yield relation
    for each in below(relation):
        yield from scans(each)


def _is_open(claim: Claim) -> bool:
    return claim.values is None and (claim.low is None or claim.high is None)


def _supposed(claim: Claim, type_: Type, fact: Fact) -> Claim:
    if fact is Fact.VALUES:
        return replace(claim, values=(_value(type_),))
    if type_.kind not in MOMENTS:
        # a range that is found always includes 0
        return replace(claim, low=0, high=1) if fact is Fact.AUTO else replace(claim, low=1, high=2)
    day = _value(type_)
    return replace(claim, low=day, high=day)


def _value(type_: Type) -> object:
    """An arbitrary value of a type."""
    match type_.kind:
        case Kind.DATE:
            return _DAY
        case Kind.TIMESTAMP:
            return dt.datetime.combine(_DAY, dt.time())
        case Kind.TIME:
            return dt.time()
        case Kind.BOOLEAN:
            return True
        case Kind.TEXT:
            return "a"
        case Kind.DECIMAL:
            return Decimal(1)
        case Kind.DOUBLE:
            return 1.0
        case _:
            return 1


def _declare(facts: Mapping[Origin, Fact]) -> Way:
    """The facts, table by table."""
    tables = dict.fromkeys(table for table, _ in facts)
    pieces = [
        Declare(table, tuple((name, fact) for (own, name), fact in facts.items() if own == table))
        for table in tables
    ]
    return tuple(part for piece in pieces for part in (" and ", piece))[1:]
