"""SQL text, schema and policy go in; a Question comes out: the relation, its names, and the one release inside it."""

from __future__ import annotations

from privsql.errors import Refused, SqlError
from privsql.sql.bind_query import QueryBinder
from privsql.sql.catalogue import Catalogue
from privsql.sql.gate import parse, place_of
from privsql.sql.names import output_names
from privsql.sql.relations import Question, release_of, walk

MAX_OPERATORS = 600


def read(text: str, catalogue: Catalogue, dialect: str = "duckdb") -> Question:
    """Parse, permit, bind. Refuses whatever would let rows out."""
    statement = parse(text, dialect)
    try:
        source = QueryBinder(catalogue).query(statement)
    except RecursionError:
        raise SqlError("sql-too-deep", "the text is nested too deeply", "simplify the expression") from None
    release = release_of(source.relation)
    if release is None:
        raise Refused(
            "refused-rows",
            "this would show rows as they are",
            "ask for an aggregate: SELECT COUNT(*), AVG(x) ... GROUP BY ...",
            place_of(statement),
        )
    for count, _ in enumerate(walk(source.relation)):
        if count > MAX_OPERATORS:
            raise SqlError(
                "sql-too-long", "the query becomes too large once its CTEs are written out", "use fewer repeats"
            )
    return Question(source.relation, output_names(source.names), release)
