"""The node classes that may stand above the noise, their arguments, and the words that may stand in them.

What is permitted over private rows, what sqlglot makes of DuckDB's functions, and what the table below adds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from privsql.sql.parse.engine_functions import NODES
from privsql.sql.parse.permitted import PERMITTED, read_table

# As in permitted.py, in which the binder's rules stand: what is added here has no rule, and the engine's own
# meaning.
_TABLE = """
Select windows qualify hint
Except this expression distinct by_name? with_ order limit offset
Intersect this expression distinct by_name? with_ order limit offset
Union this expression distinct by_name? with_ order limit offset
Join this side kind method on using
Table this alias pivots joins
Subquery this alias with_ order limit offset pivots joins
Values expressions alias with_ order limit offset
Lateral this alias view? ordinality?
Unnest expressions alias offset
Qualify this
Window this partition_by order spec alias over first?
WindowSpec kind start start_side end end_side exclude
IgnoreNulls this
RespectNulls this
Distinct expressions on
Pivot this expressions unpivot? into fields include_nulls? alias group using columns pivot_column_naming
Explode this expressions
Any this
All this
In this expressions query field
Lambda this expressions colon?
Comprehension this expression iterator condition
Bracket this expressions
Slice this expression step
Struct expressions
PropertyEQ this expression
ToMap this
Dot this expression
Columns this unpack?
Collate this expression
Glob this expression
Try this
Xor this expression
BitwiseAnd this expression
BitwiseOr this expression
BitwiseXor this expression
BitwiseLeftShift this expression
BitwiseRightShift this expression
BitwiseNot this
NullSafeEQ this expression
NullSafeNEQ this expression
JSONExtract this expression only_json_types?
JSONExtractScalar this expression only_json_types?
JSONPath expressions
JSONKeyValue this expression
JSONPathRoot
JSONPathKey this
JSONPathSubscript this
ColumnDef this kind
Column this table db
Alias this alias
Array expressions value_constructor?
"""


# Arguments that sqlglot takes for something else than DuckDB does, or writes otherwise.
_MISREAD = frozenset({(exp.JarowinklerSimilarity, "case_insensitive")})


def _merged() -> dict[type[exp.Expr], dict[str, bool]]:
    found = {node: dict(arguments) for node, arguments in PERMITTED.items()}
    for table in (NODES.replace("\n", " ").replace("; ", "\n"), _TABLE):
        for node, arguments, _ in read_table(table):
            known = found.setdefault(node, {})
            for each in arguments:
                name = each.removesuffix("?")
                if (node, name) in _MISREAD:
                    continue
                known[name] = each.endswith("?") and known.get(name, True)
    return found


# Node class: its arguments, and whether each is sqlglot's own yes or no.
ABOVE: Mapping[type[exp.Expr], Mapping[str, bool]] = _merged()
TABLE_FUNCTIONS = frozenset({"generate_series", "range", "unnest"})
COLLATIONS = frozenset({"binary", "nocase", "noaccent"})
_TYPES = """
ARRAY BIGINT BOOLEAN CHAR DATE DATETIME DECIMAL DOUBLE FLOAT INT INT128 INTERVAL JSON LIST MAP NCHAR NVARCHAR
SMALLINT STRUCT TEXT TIME TIMESTAMP TIMESTAMPNTZ TIMESTAMP_MS TIMESTAMP_NS TIMESTAMP_S TINYINT UBIGINT UINT
UINT128 USMALLINT UTINYINT UUID VARBINARY VARCHAR
"""
TYPES = frozenset(each for each in exp.DType if each.name in _TYPES.split())
# What is written as it stands in the tree, without quotes: exactly these words, or a number.
WORDS: Mapping[tuple[type[exp.Expr], str], frozenset[str]] = {
    (exp.Join, "side"): frozenset({"LEFT", "RIGHT", "FULL"}),
    (exp.Join, "kind"): frozenset({"INNER", "OUTER", "CROSS", "SEMI", "ANTI"}),
    (exp.Join, "method"): frozenset({"NATURAL", "ASOF", "POSITIONAL"}),
    (exp.Window, "over"): frozenset({"OVER"}),
    (exp.WindowSpec, "kind"): frozenset({"ROWS", "RANGE", "GROUPS"}),
    (exp.WindowSpec, "start"): frozenset({"UNBOUNDED", "CURRENT ROW"}),
    (exp.WindowSpec, "end"): frozenset({"UNBOUNDED", "CURRENT ROW"}),
    (exp.WindowSpec, "start_side"): frozenset({"PRECEDING", "FOLLOWING"}),
    (exp.WindowSpec, "end_side"): frozenset({"PRECEDING", "FOLLOWING"}),
    (exp.Trim, "position"): frozenset({"LEADING", "TRAILING", "BOTH"}),
    (exp.Fetch, "direction"): frozenset({"FIRST", "NEXT"}),
}
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
