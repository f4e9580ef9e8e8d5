"""The node classes of sqlglot that have a rule, with the arguments that are read, and ways out for some that
have none.
"""

from __future__ import annotations

from sqlglot import exp


def _rows(text: str) -> dict[type[exp.Expr], dict[str, bool]]:
    rows: dict[type[exp.Expr], dict[str, bool]] = {}
    for line in text.split("\n"):
        if line.strip():
            name, *args = line.split()
            node = getattr(exp, name, None)  # a class that this sqlglot does not have cannot occur
            if node is not None:
                rows[node] = {each.removesuffix("?"): each.endswith("?") for each in args}
    return rows


# Node class, then the arguments that may be set. One with a question mark is sqlglot's own yes or no, and
# never what somebody wrote: sqlglot puts an argument too many there, as that of COUNT_IF(p, x), and nobody
# would read it.
PERMITTED = _rows("""
Select expressions from_ joins laterals where group having order limit offset distinct with_
Subquery this alias with_ order limit offset pivots
Union this expression distinct by_name? with_ order limit offset
With expressions
CTE this alias materialized?
From this
Join this side kind on using
Table this alias pivots
TableAlias this columns
Values expressions alias
Unnest expressions alias
Explode this
Lateral this alias view?
ArrayDistinct this check_null?
Tuple expressions
Pivot this expressions unpivot? into fields include_nulls? alias using default_on_null? value_columns_first?
UnpivotColumns this expressions
PivotAlias this alias
Where this
Group expressions all rollup cube grouping_sets
Rollup expressions
Cube expressions
GroupingSets expressions
Grouping expressions
GroupingId expressions
Having this
Order this expressions
Ordered this desc? nulls_first?
Limit expression
Fetch direction count limit_options
LimitOptions rows
Offset expression
Distinct expressions
Alias this alias
Column this table
Identifier this quoted
Star except_ replace rename
Var this
Paren this
Literal this is_string
Boolean this
Null
RawString this
DataType this expressions nested?
DataTypeParam this
Cast this to safe?
TryCast this to safe?
And this expression
Or this expression
Not this
EQ this expression
NEQ this expression
GT this expression
GTE this expression
LT this expression
LTE this expression
NullSafeEQ this expression
NullSafeNEQ this expression
Is this expression
Between this low high
In this expressions query
Exists this
Like this expression negate?
ILike this expression negate?
SimilarTo this expression
Escape this expression
RegexpLike this expression flag
RegexpFullMatch this expression
RegexpReplace this expression replacement single_replace? modifiers
RegexpExtract this expression group null_if_pos_overflow?
Add this expression
Sub this expression
Mul this expression
Div this expression typed? safe?
IntDiv this expression
Mod this expression
Neg this
Pow this expression
DPipe this expression safe?
Case this ifs default
If this true false
Coalesce this expressions is_nvl? is_null?
Nullif this expression
Least this expressions ignore_nulls?
Greatest this expressions ignore_nulls?
Interval this unit
Count this big_int?
CountIf this zero_on_all_null?
Sum this
Avg this
Min this
Max this
Median this
Quantile this quantile
ApproxQuantile this quantile
PercentileCont this expression
PercentileDisc this expression
WithinGroup this expression
Array expressions
Variance this
VariancePop this
Stddev this
StddevPop this
StddevSamp this
CovarPop this expression
CovarSamp this expression
Corr this expression null_on_zero_variance?
RegrSlope this expression
RegrIntercept this expression
RegrR2 this expression
RegrCount this expression
RegrAvgx this expression
RegrAvgy this expression
LogicalOr this
LogicalAnd this
Filter this expression
ArgMax this expression
ArgMin this expression
Mode this
First this
Last this
AnyValue this
Anonymous this expressions
Lower this
Upper this
Length this
Trim this position expression
Substring this start length
Left this expression
Right this expression
Replace this expression replacement
Translate this from_ to
Concat expressions safe? coalesce?
ConcatWs expressions safe? coalesce?
StartsWith this expression
EndsWith this expression
Contains this expression
StrPosition this substr
Reverse this
SplitPart this delimiter part_index
Ascii this
Unicode this
Levenshtein this expression
BitLength this
JarowinklerSimilarity this expression
Abs this
Ceil this
Floor this
Round this decimals
Trunc this
Sign this
Sqrt this
Cbrt this
Exp this
Ln this
Log this expression
Sin this
Cos this
Tan this
Asin this
Acos this
Atan this
Atan2 this expression
Sinh this
Cosh this
Tanh this
Degrees this
Radians this
Pi
IsNan this
IsInf this
Year this
Month this
Day this
Hour this
Minute this
Second this
Quarter this
Week this
WeekOfYear this
DayOfWeek this
DayOfWeekIso this
DayOfMonth this
DayOfYear this
Dayname this
Monthname this
LastDay this
TimeToUnix this
TimestampTrunc this unit input_type_preserved?
DateTrunc this unit
Extract this expression
DateDiff this expression unit date_part_boundary? big_int?
DateAdd this expression unit
DateSub this expression unit
DateFromParts year month day
TimeToStr this format
TsOrDsToDate this default_date
TsOrDsToTimestamp this
TimeStrToTime this
StrToDate this format
SafeDivide this expression
TsOrDsDiff this expression unit
StrToTime this format
""")

# Why some things that people write have no rule, and what to write instead; code refused-<class in lower
# case>.
WAYS_OUT = {
    "Join": ("this kind of join has no rule", "use JOIN ... ON, LEFT JOIN, SEMI JOIN or ANTI JOIN"),
    "Window": ("window functions mix many people's rows", "aggregate with GROUP BY instead"),
    "TableSample": (
        "samples make one person's weight unclear",
        "ask about all rows; the noise already protects them",
    ),
    "CurrentDate": (
        "the time of asking would make the same question another one each time",
        "write the date out: DATE '2024-01-31'",
    ),
    "Placeholder": ("parameters are not read", "write the value into the text"),
    "Columns": ("COLUMNS() stands for columns nobody named", "name the columns"),
    "Exists": (
        "a subquery inside an expression can depend on many people's rows",
        "join it instead: JOIN (SELECT user_id, COUNT(*) AS n FROM t GROUP BY user_id) AS q ON ..., or CROSS JOIN one row of "
        "public values",
    ),
    "Any": (
        "ANY and ALL are read as x = ANY and x <> ALL of a list that is written out",
        "x IN (1, 2), or x = ANY([1, 2])",
    ),
    "Lateral": ("LATERAL has no rule", "write a join: JOIN (SELECT ... GROUP BY the unit) ON ..."),
    "Distinct": (
        "DISTINCT ON keeps one of many people's rows",
        "GROUP BY declared keys, or COUNT(DISTINCT x)",
    ),
    "ArrayAgg": (
        "this hands out people's own values",
        "ask for COUNT(*) ... GROUP BY declared keys; within one person, first(x ORDER BY day) is the first x by day",
    ),
    "ApproxDistinct": ("approximate counts of different values have no rule", "COUNT(DISTINCT x)"),
    "Qualify": (
        "QUALIFY needs window functions, which mix many people's rows",
        "use HAVING over noisy aggregates",
    ),
    "Except": ("EXCEPT compares rows of many people", "use WHERE"),
    "Intersect": ("INTERSECT compares rows of many people", "use WHERE"),
    "Pivot": ("PIVOT makes column names out of data", "use GROUP BY"),
    "Recursive": ("how often a recursion repeats a person's rows is not known", "write the steps out"),
    "Schema": (
        "tables are named by themselves, without schema or database",
        "write FROM patients, not FROM main.patients; of another schema, name it in a view, or USE it before you connect",
    ),
    "Unnest": (
        "a list can only be opened: UNNEST of a list column, by itself in SELECT or in FROM",
        "FROM t, UNNEST(list_distinct(t.tags)) AS u(tag), with the table that has the list before it",
    ),
}
SAME_AS = {
    "GroupConcat": "ArrayAgg",
    "Explode": "Unnest",
    "ArrayContains": "Unnest",
    "Parameter": "Placeholder",
    "All": "Exists",
    **dict.fromkeys(
        ("CurrentTimestamp", "CurrentTime", "CurrentDatetime", "Localtime", "Localtimestamp"), "CurrentDate"
    ),
}
