"""A view goes in; the first unsafe computation in it comes out, if any: one that can fail on some row, or one
in which a row's value depends on other rows. No row of any table is read.

A query over a view runs the view's own expressions, by DuckDB's rules. If one fails on one person's row, the
query fails, and an analyst who selects rows with WHERE learns whose row it is. So we read DuckDB's plan
before it is optimised, with every cast that DuckDB adds; whatever is not listed here can fail.

A view over a Parquet file must read what is in the file. Parquet statistics leave NaN out. DuckDB skips rows
by these statistics, and takes a column with equal minimum and maximum for a constant: so one row decides
whether the NaN beside it count. The option can_have_nan makes DuckDB ignore the statistics.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from privsql.engines.duckdb.catalogue.catalogue_statements import SYSTEM
from privsql.engines.duckdb.safety.plan_nodes import Node
from privsql.engines.duckdb.safety.plan_rules import PlanRules, Read
from privsql.engines.duckdb.safety.plans import may_fail, plan_of
from privsql.errors import SourceError
from privsql.render.duckdb import DUCKDB
from privsql.schema import Unsafe

UNKNOWN = "something that DuckDB does not describe"
SKIPPED = "FLOAT or DOUBLE columns of a Parquet file"
_WHY_FAILING = "which can fail on a row, and a failure would tell about that row"
_HOW_TRIED = "write TRY(...) directly around it (TRY_CAST for CAST), or to store its result in a table"
_WHY_SKIPPED = (
    "where DuckDB can skip NaN because file statistics ignore it, so whether one row counts depends on others"
)
_HOW_READ = "write read_parquet('...', can_have_nan = true)"
_FLOATS = re.compile(r"\b(FLOAT|DOUBLE)\b")  # also within lists and structs
_SOURCES = ("BASE_TABLE", "TABLE_FUNCTION")
_READERS = re.compile(
    r"read_(parquet|(csv|json|ndjson)(_auto)?)|(parquet|pandas|arrow|python_arrow)_scan", re.IGNORECASE
)
# CREATE VIEW name (columns) AS body: the first AS that is not in quotes
_BODY = re.compile(r'(?:[^"]|"(?:[^"]|"")*")*?\bAS\b(.*)', re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class Views:
    """Checks views and generated columns. `definitions`: the SQL of all views, by lower-case name."""

    definitions: Mapping[str, list[str]]
    read: Read
    _known: dict[str, str] = field(default_factory=dict)

    def unsafe(self, view: str, location: tuple[str, ...] = ()) -> Unsafe | None:
        """The first unsafe computation in a view; `location`: where it is, if its name does not tell."""
        what = self._what(view, location)
        if what == SKIPPED:
            return Unsafe(what, _WHY_SKIPPED, _HOW_READ)
        return Unsafe(what, _WHY_FAILING, _HOW_TRIED) if what else None

    def _what(self, view: str, location: tuple[str, ...]) -> str:
        # names in its text are looked up where it is: only DuckDB's own plan tells what they mean
        definitions = {} if location else self.definitions
        looked = Views(definitions, self.read, {} if location else self._known)
        try:
            return looked._of_source(f"SELECT * FROM {DUCKDB.table(view, location)}", view)
        # the plan has an unknown form
        except (SourceError, RecursionError, LookupError, TypeError, ValueError, AttributeError):
            return UNKNOWN

    def _of_source(self, query: str, view: str) -> str:
        if query not in self._known:
            self._known[query] = self._looked_into(query, view)
        return self._known[query]

    def _looked_into(self, query: str, view: str) -> str:
        plan = plan_of(self.read, query)
        if plan is None:  # DuckDB does not serialize how it reads files, frames and other databases
            definitions = self.definitions.get(view.lower(), [])
            body = _BODY.match(definitions[0]) if len(definitions) == 1 else None
            tree = self._tree(body[1].strip()) if body else None
            if tree is None:
                return UNKNOWN
            failing = self._without_sources(tree)
            if failing:
                return failing
            plan = plan_of(self.read, self._text(tree))
        return UNKNOWN if plan is None else may_fail(plan, PlanRules(self.read))

    def _tree(self, query: str) -> Any:
        found = json.loads(self.read(f"SELECT {SYSTEM}.json_serialize_sql({DUCKDB.text(query)})")[0][0])
        return None if found["error"] else found

    def _text(self, tree: Node) -> str:
        written = DUCKDB.text(json.dumps(tree))
        return str(self.read(f"SELECT {SYSTEM}.json_deserialize_sql({written}::JSON)")[0][0])

    # -- plans that DuckDB cannot serialize: sources become empty queries with the same columns
    # -----------------
    def _without_sources(self, tree: Node) -> str:
        """Replace the sources in the tree; return what can fail in a view beneath it, or ""."""
        local = {
            entry["key"].lower()
            for _, place, found in _nodes(tree)
            if place == "cte_map"
            for entry in found["map"]
        }
        sources = [
            each for each in _nodes(tree) if isinstance(each[2], dict) and each[2].get("type") in _SOURCES
        ]
        for parent, place, node in sources:
            is_table = node["type"] == "BASE_TABLE"
            name = (node if is_table else node["function"])["qualified_name"]["path"][-1]
            if name.lower() in local or not (is_table or self._is_reader(name, node)):
                continue
            query = self._tree("SELECT * FROM privsql_source")
            query["statements"][0]["node"]["from_table"] = node
            text = self._text(query)
            # views, and tables with generated columns
            has_more = is_table and (name.lower() in self.definitions or plan_of(self.read, text) is not None)
            failing = self._of_source(text, name) if has_more else ""
            if failing:
                return failing
            try:
                columns = self.read(f"DESCRIBE {text}")
            except SourceError:
                continue  # it refers to something local; DuckDB may or may not describe the rest
            if _skips(name, node) and any(_FLOATS.search(type_) for _, type_, *_ in columns):
                return SKIPPED
            parent[place] = self._empty(columns, node["alias"] or PurePath(name).stem)
        return ""

    def _is_reader(self, name: str, node: Node) -> bool:
        """Whether a table function only reads rows; others, and macros, compute."""
        computes = any(
            isinstance(each, dict) and each.get("class") == "SUBQUERY" for _, _, each in _nodes(node)
        )
        same = f"{SYSTEM}.lower(function_name) = {DUCKDB.text(name.lower())}"
        macros = f"{SYSTEM}.duckdb_functions() WHERE function_type = 'table_macro' AND {same}"
        return (
            _READERS.fullmatch(name) is not None and not computes and not self.read(f"SELECT 1 FROM {macros}")
        )

    def _empty(self, columns: list[tuple[Any, ...]], alias: str) -> Any:
        """An empty subquery with a source's columns, given by the rows of DESCRIBE."""
        nulls = ", ".join(
            f"CAST(NULL AS {type_}) AS {DUCKDB.identifier(name)}" for name, type_, *_ in columns
        )
        tree = self._tree(f"SELECT * FROM (SELECT {nulls}) AS {DUCKDB.identifier(alias)}")
        return tree["statements"][0]["node"]["from_table"]


def _skips(name: str, node: Node) -> bool:
    """Whether a source is a Parquet file that is read with its statistics."""
    if node["type"] == "BASE_TABLE":
        return ".parquet" in name.lower()  # a file by its path, where no option can be given
    return "parquet" in name.lower() and not any(map(_is_option, node["function"]["arguments"]))


def _is_option(argument: Node) -> bool:
    """Whether an argument is can_have_nan = true, also with := or =>."""
    match argument:
        case {"name": "can_have_nan", "expression": {"literal": {"kind": "BOOLEAN", "text": "true"}}}:
            return True
        case {
            "expression": {
                "type": "COMPARE_EQUAL",
                "left": {"column_names": ["can_have_nan"]},
                "right": right,
            }
        }:
            return bool(right.get("literal") == {"kind": "BOOLEAN", "text": "true"})
    return False


def _nodes(node: Any) -> Iterator[tuple[Any, Any, Any]]:
    """(parent, place, child) of every node in a tree."""
    for place, child in (
        node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    ):
        yield node, place, child
        yield from _nodes(child)
