"""SQL text, schema and policy go in; a BoundQuery comes out: the relation, its names, and the one release
inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from privsql.algebra.expressions import columns_of
from privsql.algebra.owners import Whose, owner
from privsql.algebra.relations import (
    BoundQuery,
    Distinct,
    Key,
    Project,
    Relation,
    Release,
    is_public,
    is_released,
    release_of,
    walk,
)
from privsql.algebra.reserved import output_names
from privsql.algebra.unit_rows.bounded import is_bounded
from privsql.errors import Refused
from privsql.sql.bind.catalogue import Catalogue
from privsql.sql.bind.query import QueryBinder
from privsql.sql.bind.scope import Source
from privsql.sql.bind.within_unit.different import refused_distinct
from privsql.sql.parse.above import loses_clauses, permit_above
from privsql.sql.parse.constants import NOTHING, Constants
from privsql.sql.parse.gate import Rewrite, one_statement, parse, permitted
from privsql.sql.parse.places import place_of
from privsql.sql.parse.qualified_names import with_plain_names
from privsql.sql.parse.refusals import rows_shown
from privsql.sql.parse.time_zones import with_one_zone
from privsql.sql.parse.tokens import too_deep
from privsql.sql.split.composition import Composition, QueryPart, chooses_rows
from privsql.sql.split.influence import Influence, Reached, simulated
from privsql.sql.split.split import split
from privsql.sql.split.stage_values import Columns, Rows, with_values
from privsql.types import Type


def read(
    text: str, catalogue: Catalogue, dialect: str = "duckdb", constants: Constants = NOTHING
) -> BoundQuery:
    """Parse, permit, bind. Refuses whatever would let rows out."""
    return _question(parse(text, dialect, constants, _rewrite(catalogue)), catalogue)


def _rewrite(catalogue: Catalogue) -> Rewrite:
    """The rewriting of names with a schema, and of moments with a time zone."""

    def rewritten(statement: exp.Expr) -> None:
        with_plain_names(statement, catalogue.schema, catalogue.names)
        with_one_zone(statement, catalogue.policy.time_zone)

    return rewritten


# The columns of SQL over some tables: their names and types in, names and the engine's types out.
Describe = Callable[[exp.Expr, Mapping[str, Mapping[str, Type]]], Columns]


def read_composition(
    text: str,
    catalogue: Catalogue,
    dialect: str,
    describe: Describe,
    constants: Constants = NOTHING,
    by_counts: bool = False,
) -> Composition | None:
    """The releases of a query, and the SQL above them; None if it has no release, or is one by itself."""
    statement, start = one_statement(text, dialect, constants, _rewrite(catalogue))
    if loses_clauses(statement):
        return None  # and the whole query is refused

    def bind(part: exp.Expr) -> Relation:
        return _bound(permitted(part, dialect, start), catalogue).relation

    def columns_of(above: exp.Expr, parts: Sequence[QueryPart]) -> Columns:
        permit_above(above, frozenset(each.name for each in parts))
        return describe(above, {each.name: _fields(each, catalogue, dialect) for each in parts})

    try:
        found = split(statement, catalogue, bind, columns_of, by_counts)
    except RecursionError:
        raise too_deep() from None
    if found is None:
        return None
    permit_above(found.above, found.names)
    reached = {each.name: _reached(read_part(each, {}, catalogue, dialect)) for each in found.parts}
    return replace(found, simulated=simulated(found.above, reached))


def read_part(part: QueryPart, values: Mapping[str, Rows], catalogue: Catalogue, dialect: str) -> BoundQuery:
    """One part of a query that is composed of several, as a query of its own; `values` are those of its
    givens that are known.
    """
    statement = with_values(part.statement, part.needs, values)
    return _question(permitted(statement, dialect, None), catalogue)


def _fields(part: QueryPart, catalogue: Catalogue, dialect: str) -> dict[str, Type]:
    query = read_part(part, {}, catalogue, dialect)
    types = [each.type for each in query.relation.fields]
    return dict(zip(query.names, types, strict=True))


def _reached(query: BoundQuery) -> Reached:
    """How noise reaches the columns of a part: not its keys."""
    release = query.release
    if release is None:
        return Reached(tuple((name, Influence.NONE) for name in query.names))
    keys = {each.name for each in release.keys}
    relation = query.relation
    columns = (
        relation.columns
        if isinstance(relation, Project)
        else tuple((e.name, e.column) for e in relation.fields)
    )
    influences = (
        Influence.NONE if {each.name for each in columns_of(expression)} <= keys else Influence.CELL
        for _, expression in columns
    )
    return Reached(tuple(zip(query.names, influences, strict=True)), chooses_rows(relation))


def _bound(statement: exp.Expr, catalogue: Catalogue) -> Source:
    try:
        source = QueryBinder(catalogue).query(statement)
    except RecursionError:
        raise too_deep() from None
    source = replace(source, relation=_asked_for_keys(source.relation, statement))
    release = release_of(source.relation)
    if release is not None:
        _check_owners(release.input, statement)
    return source


def _question(statement: exp.Expr, catalogue: Catalogue) -> BoundQuery:
    source = _bound(statement, catalogue)
    release = release_of(source.relation)
    if release is None:
        place = place_of(statement)
        if not is_public(source.relation):
            raise rows_shown(place)
        source = source.all_read("SELECT *", place)
    return BoundQuery(source.relation, output_names(source.names), release)


def _asked_for_keys(relation: Relation, statement: exp.Expr) -> Relation:
    """SELECT DISTINCT k FROM people asks for keys: GROUP BY k, with nothing counted."""
    if not isinstance(relation, Distinct) or is_public(relation) or is_released(relation):
        return relation
    place = place_of(statement)
    keys = tuple(Key(each.name, each.column, each.name, place) for each in relation.fields)
    return Release(relation.input, keys, ())


def _check_owners(relation: Relation, statement: exp.Expr) -> None:
    """Whether one person's part can be bounded: by the shape of the query, or unit by unit."""
    if any(isinstance(each, Distinct) and not is_public(each) for each in walk(relation)):
        raise refused_distinct(place_of(statement))
    if not is_bounded(relation) and owner(relation).whose is not Whose.UNITS:
        raise Refused(
            "refused-owners",
            "This mixes tables with different privacy units, or people's many rows with public rows.",
            "Query each table by itself.",
            place_of(statement),
        )
