"""SQL text, schema and policy go in; a Question comes out: the relation, its names, and the one release
inside it.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from privsql.algebra.owners import Whose, is_bounded, owner
from privsql.algebra.relations import (
    Distinct,
    Key,
    Question,
    Relation,
    Release,
    is_public,
    is_released,
    release_of,
    walk,
)
from privsql.algebra.reserved import output_names
from privsql.errors import Refused
from privsql.sql.bind.catalogue import Catalogue
from privsql.sql.bind.query import QueryBinder
from privsql.sql.bind.select import refused_distinct
from privsql.sql.parse.gate import parse
from privsql.sql.parse.places import place_of
from privsql.sql.parse.refusals import rows_shown
from privsql.sql.parse.tokens import too_deep


def read(text: str, catalogue: Catalogue, dialect: str = "duckdb") -> Question:
    """Parse, permit, bind. Refuses whatever would let rows out."""
    statement = parse(text, dialect)
    try:
        source = QueryBinder(catalogue).query(statement)
    except RecursionError:
        raise too_deep() from None
    source = replace(source, relation=_asked_for_keys(source.relation, statement))
    release = release_of(source.relation)
    if release is not None:
        _check_owners(release.input, statement)
    elif not is_public(source.relation):
        raise rows_shown(place_of(statement))
    else:
        source = source.all_read("SELECT *", place_of(statement))
    return Question(source.relation, output_names(source.names), release)


def _asked_for_keys(relation: Relation, statement: exp.Expr) -> Relation:
    """SELECT DISTINCT k FROM people asks for keys: GROUP BY k, with nothing counted."""
    if not isinstance(relation, Distinct) or is_public(relation) or is_released(relation):
        return relation
    place = place_of(statement)
    keys = tuple(Key(each.name, each.column, each.name, place) for each in relation.fields)
    return Release(relation.input, keys, ())


def _check_owners(relation: Relation, statement: exp.Expr) -> None:
    """Whether one person's part can be bounded: by the shape of the question, or unit by unit."""
    if any(isinstance(each, Distinct) and not is_public(each) for each in walk(relation)):
        raise refused_distinct(place_of(statement))
    if not is_bounded(relation) and owner(relation).whose is not Whose.UNITS:
        raise Refused(
            "refused-owners",
            "This mixes tables with different privacy units, or people's many rows with public rows.",
            "Query each table by itself.",
            place_of(statement),
        )
