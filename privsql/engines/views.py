"""A view goes in; what in it can fail on some row comes out, in words, or nothing. No row of any table is read.

A question about a view computes what the view computes, by DuckDB's own rules. If that fails on one person's row, the question
fails, and whoever picks rows by WHERE learns whose row it is. So DuckDB is asked what it would compute (its plan before it is
optimised, with every cast that it adds), and whatever is not listed here can fail.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from privsql.engines.plan_rules import Node, Read, Rules
from privsql.engines.plans import may_fail, plan_of
from privsql.errors import SourceError
from privsql.planning import render

UNKNOWN = "something that DuckDB does not describe"
_SOURCES = ("BASE_TABLE", "TABLE_FUNCTION")
_READERS = re.compile(r"read_(parquet|(csv|json|ndjson)(_auto)?)|(parquet|pandas|arrow|python_arrow)_scan", re.IGNORECASE)
# CREATE VIEW name (columns) AS body: the first AS that is not in quotes
_BODY = re.compile(r'(?:[^"]|"(?:[^"]|"")*")*?\bAS\b(.*)', re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class Views:
    """`definitions` are the texts of all views, by their name in lower case. Generated columns are looked into, too."""

    definitions: Mapping[str, list[str]]
    read: Read
    _known: dict[str, str] = field(default_factory=dict)

    def may_fail(self, view: str) -> str:
        """What in a view can fail on some row, or ""."""
        try:
            return self._of_source(f"SELECT * FROM {render.identifier(view)}", view)
        except (SourceError, RecursionError, LookupError, TypeError, ValueError, AttributeError):  # a plan of an unknown form
            return UNKNOWN

    def _of_source(self, query: str, view: str) -> str:
        if query not in self._known:
            self._known[query] = self._looked_into(query, view)
        return self._known[query]

    def _looked_into(self, query: str, view: str) -> str:
        plan = plan_of(self.read, query)
        if plan is None:  # DuckDB does not write down how it reads files, frames and other databases
            definitions = self.definitions.get(view.lower(), [])
            body = _BODY.match(definitions[0]) if len(definitions) == 1 else None
            tree = self._tree(body[1].strip()) if body else None
            if tree is None:
                return UNKNOWN
            failing = self._without_sources(tree)
            if failing:
                return failing
            plan = plan_of(self.read, self._text(tree))
        return UNKNOWN if plan is None else may_fail(plan, Rules(self.read))

    def _tree(self, query: str) -> Any:
        found = json.loads(self.read(f"SELECT json_serialize_sql({render.text(query)})")[0][0])
        return None if found["error"] else found

    def _text(self, tree: Node) -> str:
        return str(self.read(f"SELECT json_deserialize_sql({render.text(json.dumps(tree))}::JSON)")[0][0])

    # -- what DuckDB cannot write down: sources become queries of no rows with the same columns ---------------
    def _without_sources(self, tree: Node) -> str:
        """Changes the tree; what in a view beneath it can fail, or ""."""
        local = {entry["key"].lower() for _, place, found in _nodes(tree) if place == "cte_map" for entry in found["map"]}
        sources = [each for each in _nodes(tree) if isinstance(each[2], dict) and each[2].get("type") in _SOURCES]
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
                continue  # it refers to something local; what remains is DuckDB's to describe, or not
            parent[place] = self._empty(columns, node["alias"] or PurePath(name).stem)
        return ""

    def _is_reader(self, name: str, node: Node) -> bool:
        """Whether a table function only reads: others, and macros, compute."""
        computes = any(isinstance(each, dict) and each.get("class") == "SUBQUERY" for _, _, each in _nodes(node))
        macros = f"duckdb_functions() WHERE function_type = 'table_macro' AND lower(function_name) = {render.text(name.lower())}"
        return _READERS.fullmatch(name) is not None and not computes and not self.read(f"SELECT 1 FROM {macros}")

    def _empty(self, columns: list[tuple[Any, ...]], alias: str) -> Any:
        """What stands in FROM for a source with these columns: name, type, and what else DESCRIBE says."""
        nulls = ", ".join(f"CAST(NULL AS {type_}) AS {render.identifier(name)}" for name, type_, *_ in columns)
        tree = self._tree(f"SELECT * FROM (SELECT {nulls}) AS {render.identifier(alias)}")
        return tree["statements"][0]["node"]["from_table"]


def _nodes(node: Any) -> Iterator[tuple[Any, Any, Any]]:
    """(parent, place, child) of everything in a tree."""
    for place, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield node, place, child
        yield from _nodes(child)
