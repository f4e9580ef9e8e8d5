"""Functions above the noise: every one of DuckDB's is judged, and an allowed one means the same when written again."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator

import duckdb
import pytest
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from privsql.errors import PrivsqlError, Refused
from privsql.render.write_above import write_above
from privsql.sql.parse.above import permit_above
from privsql.sql.parse.above_nodes import ABOVE
from privsql.sql.parse.above_refusals import _CATEGORIES
from privsql.sql.parse.engine_functions import ALLOWED, REFUSED, unlisted
from tools.engine_functions import PATH, catalogue, judgement, table_text

_DOCUMENT = """'{"a": [1, 2]}'::JSON"""
# Arguments by the type of a parameter, as the catalogue names it.
_SAMPLES = {
    "VARCHAR": ["'ab'", "'b,a'", "'2024-01-05'", "'%Y'", "'month'", "'sum'"],
    "ANY": ["2", "'x'"],
    "BOOLEAN": ["true"],
    "DATE": ["DATE '2024-03-05'"],
    "TIMESTAMP": ["TIMESTAMP '2024-03-05 10:11:12'"],
    "TIME": ["TIME '10:11:12'"],
    "INTERVAL": ["INTERVAL 3 DAY"],
    "JSON": [_DOCUMENT],
    "BLOB": ["'ab'::BLOB"],
    "LAMBDA": ["lambda x: x + 1", "lambda x, y: x + y", "lambda x: x > 1"],
    "DECIMAL": ["1.5::DECIMAL(5,2)"],
    "DOUBLE": ["0.5", "2.0"],
    "FLOAT": ["0.5::FLOAT"],
}
# Of functions whose parameters the catalogue does not describe well enough to make up a call.
_CALLS = """
aggregate([1, 2], 'sum'); array_aggr([1, 2], 'sum'); array_aggregate([1, 2], 'max'); list_aggr([1, 2], 'min');
list_aggregate([1, 2], 'avg'); array_where([1, 2], [true, false]); list_where([1, 2], [true, false]);
array_zip([1, 2], [3]); list_zip([1, 2], ['a']); cardinality(MAP {'a': 1}); element_at(MAP {'a': 1}, 'a');
flatten([[1], [2]]); from_base64('YWI='); from_binary('0110'); unbin('0110'); array_to_string(['a', 'b'], '-');
from_json('{"a": 1}', '{"a": "INTEGER"}'); from_json_strict('{"a": 1}', '{"a": "INTEGER"}');
json_transform('{"a": 1}', '{"a": "INTEGER"}'); json_transform_strict('{"a": 1}', '{"a": "INTEGER"}');
json_object('a', 1); row_to_json({'a': 1}); array_to_json([1, 2]); generate_subscripts([5, 6], 1);
like_escape('a%', 'a#%', '#'); not_like_escape('a%', 'a#%', '#'); ilike_escape('A%', 'a#%', '#');
not_ilike_escape('A%', 'a#%', '#'); list_bool_and([true, false]); list_bool_or([true, false]);
map_concat(MAP {'a': 1}, MAP {'b': 2}); map_contains(MAP {'a': 1}, 'a'); map_contains_entry(MAP {'a': 1}, 'a', 1);
map_contains_value(MAP {'a': 1}, 1); map_extract(MAP {'a': 1}, 'a'); map_extract_value(MAP {'a': 1}, 'a');
map_from_entries([('a', 1)]); parse_formatted_bytes('1 KB'); position('b' IN 'ab'); split_part('a,b', ',', 2);
struct_concat({'a': 1}, {'b': 2}); struct_contains(row(1, 2), 2); struct_extract({'a': 1}, 'a');
struct_extract_at({'a': 1}, 1); struct_has(row(1, 2), 2); struct_indexof(row(1, 2), 2);
struct_insert({'a': 1}, b := 2); struct_keys({'a': 1}); struct_pack(a := 1); struct_position(row(1, 2), 2);
struct_update({'a': 1}, a := 2); switch(1, MAP {1: 'a'}); unnest([1, 2]); regexp_split_to_table('a,b', ',');
uuid_extract_version('550e8400-e29b-41d4-a716-446655440000'::UUID); date_add(DATE '2024-01-31', INTERVAL 1 MONTH)
"""
_PAIR = "(array_value(1.0::FLOAT, 2.0::FLOAT, 3.0::FLOAT), array_value(2.0::FLOAT, 2.0::FLOAT, 1.0::FLOAT))"
_OF_ARRAYS = """
cosine_distance cosine_similarity cross_product distance dot_product inner_product negative_dot_product
negative_inner_product
"""
_MORE_CALLS = [
    *(each.strip() for each in _CALLS.split(";")),
    *(f"array_{each}{_PAIR}" for each in _OF_ARRAYS.split()),
]
# Only values of a type that cannot be written here have these.
_NO_CALL = {"union_extract", "union_tag", "union_value"}
_KINDS = ("scalar", "aggregate", "window", "macro")
# Words before a parenthesis that are no functions.
_KEYWORDS = frozenset(
    "cast try_cast in over filter extract row interval end then else when and or not select from as any all "
    "decimal varchar struct case lambda try grouping grouping_id exists values using coalesce columns".split()
)


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": "1"}) as connection:
        yield connection


def samples(kind: str | None) -> list[str]:
    if kind is None:  # of a macro
        return ["2", "[3, 1, 2]", "'ab'", "DATE '2024-03-05'"]
    if kind in _SAMPLES:
        return _SAMPLES[kind]
    if kind.endswith("]"):
        return (
            ["['a', 'b']"]
            if "VARCHAR" in kind
            else [f"[0.5, 1.5]::{kind}"]
            if kind[0] in "DF"
            else ["[3, 1, 2]"]
        )
    if kind.startswith("MAP"):
        return ["MAP {'a': 1}"]
    if kind.startswith("STRUCT"):
        return ["{'a': 1, 'b': 2}"]
    return [f"3::{kind}"] if "INT" in kind else ["2"] if len(kind) <= 2 else []


def calls(engine: duckdb.DuckDBPyConnection, most: int) -> Iterator[tuple[str, str]]:
    """The name of an allowed function, and a statement that calls it."""
    rows = engine.execute(
        "SELECT lower(function_name), function_type, parameter_types, varargs FROM duckdb_functions() "
        "WHERE function_type IN (SELECT unnest(?::VARCHAR[])) ORDER BY ALL",
        [_KINDS],
    ).fetchall()
    for name, kind, types, more in rows:
        if name not in ALLOWED:
            continue
        for given in ([*types], [*types, more]) if more else ([*types],):
            for arguments in itertools.islice(itertools.product(*map(samples, given)), most):
                call = f"{name}({', '.join(arguments)})"
                if kind == "window":
                    call = f"{name}({', '.join(arguments).replace('2', 'i', 1)}) OVER (ORDER BY i)"
                yield name, f"SELECT {call}" + ("" if kind in ("scalar", "macro") else " FROM range(3) t(i)")
    for call in _MORE_CALLS:
        yield call.partition("(")[0], f"SELECT {call}"


def rows_of(engine: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[str, ...]] | None:
    try:
        return [tuple(map(str, row)) for row in engine.execute(sql).fetchall()]
    except duckdb.Error:
        return None


def words_before_parentheses(sql: str) -> set[str]:
    """Names that stand as they are; those in quotes are columns and tables, and texts may have anything."""
    plain = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", "''", sql)
    return {each.lower() for each in re.findall(r"([A-Za-z_]\w*)\s*\(", plain)}


def test_every_function_of_this_duckdb_is_judged() -> None:
    """A new one is refused until somebody has read what it does."""
    assert table_text() == PATH.read_text(encoding="utf-8"), "python tools/engine_functions.py --write"
    judged = {each.name: judgement(each) for each in catalogue()}
    assert len(judged) > 800
    for name, category in judged.items():
        assert (category is None) == (name in ALLOWED), name
        assert category is None or category in _CATEGORIES, name
    assert not ALLOWED & frozenset().union(*REFUSED.values())
    assert set(REFUSED) <= set(_CATEGORIES)


def test_a_function_that_nobody_has_judged_is_refused() -> None:
    with pytest.raises(Refused) as caught:
        permit_above(sqlglot.parse_one("SELECT function_of_duckdb_9(n) FROM r0", read="duckdb"), {"r0"})
    assert caught.value.code == "refused-function" and (caught.value.line, caught.value.column) == (1, 8)


def test_no_allowed_function_is_volatile() -> None:
    for function in catalogue():
        assert not (function.volatile and function.name in ALLOWED), function.name


def test_every_refused_function_is_refused_with_its_reason() -> None:
    names = [name for listed in REFUSED.values() for name in listed]
    assert len(names) > 200
    for name in names:
        if unlisted(name) is None:
            for arguments in ("", "'x'", "n, 'x'"):
                try:
                    tree = sqlglot.parse_one(f"SELECT {name}({arguments})", read="duckdb")
                except ParseError:
                    continue  # refused before
                with pytest.raises(PrivsqlError):
                    permit_above(tree)


def check_calls(engine: duckdb.DuckDBPyConnection, most: int) -> None:
    called, wrong = Counter(), []
    for name, sql in calls(engine, most):
        if called[name] >= most:
            continue
        expected = rows_of(engine, sql)
        if expected is None:
            continue
        try:
            tree = sqlglot.parse_one(sql, read="duckdb")
            permit_above(tree)
        except (PrivsqlError, ParseError):
            continue
        called[name] += 1
        written = write_above(tree)
        if rows_of(engine, written) != expected:
            wrong.append((sql, written))
        unknown = words_before_parentheses(written) - ALLOWED - _KEYWORDS
        assert not unknown, (written, unknown)
    assert not wrong
    assert ALLOWED - called.keys() == _NO_CALL


def test_an_allowed_function_means_the_same_when_it_is_written_again(
    engine: duckdb.DuckDBPyConnection,
) -> None:
    check_calls(engine, 6)


@pytest.mark.slow
def test_an_allowed_function_means_the_same_for_more_arguments(engine: duckdb.DuckDBPyConnection) -> None:
    check_calls(engine, 40)


def test_every_permitted_class_writes_only_allowed_functions() -> None:
    """Also those that no DuckDB text is read as: the outer query may have been written in another dialect."""
    arguments = {"expressions": [exp.column("a")], "unit": exp.var("DAY"), "to": exp.DataType.build("INT")}
    seen = 0
    for kind, allowed in ABOVE.items():
        if not issubclass(kind, exp.Func) or kind is exp.Anonymous:
            continue
        given = {
            name: (True if own else arguments.get(name, exp.column("a")))
            for name, own in allowed.items()
            if name in kind.arg_types
        }
        needed = {name: given[name] for name in given if kind.arg_types[name]}
        for some in (needed, given):
            node = kind(
                **{
                    name: value.copy() if isinstance(value, exp.Expr) else value
                    for name, value in some.items()
                }
            )
            try:
                permit_above(exp.select(node))
                written = write_above(exp.select(node))
            except (PrivsqlError, TypeError):  # a combination that no text is read as
                continue
            seen += 1
            assert words_before_parentheses(written) <= ALLOWED | _KEYWORDS, (kind, written)
    assert seen > 300
