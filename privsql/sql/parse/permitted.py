"""The node classes of sqlglot that are supported: which arguments are read, which function a node is."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

# Node class, then the arguments that may be set. One with a question mark is sqlglot's own yes or no, and
# never what somebody wrote: sqlglot puts an argument too many there, as that of COUNT_IF(p, x), and nobody
# would read it. Behind the arrow: the function or operator of algebra/functions.py that the node is, whose
# arguments are the others in this order.
_TABLE = """
Select expressions from_ joins laterals where group having qualify windows order limit \
    offset distinct with_ privacy
Subquery this alias with_ order limit offset pivots joins
Union this expression distinct by_name? with_ order limit offset
Except this expression distinct with_ order limit offset
Intersect this expression distinct with_ order limit offset
With expressions
CTE this alias materialized?
From this
Join this side kind method on using
Table this alias pivots joins
TableAlias this columns
Values expressions alias
Unnest expressions alias
GenerateSeries start end step is_end_exclusive?
ExplodingGenerateSeries start end step is_end_exclusive?
GenerateDateArray start end step
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
Qualify this
Window this partition_by order spec alias over
WindowSpec kind start start_side end end_side
IgnoreNulls this
RespectNulls this
RowNumber
Rank
DenseRank
PercentRank
CumeDist
Ntile this
Lag this offset default
Lead this offset default
FirstValue this
LastValue this
NthValue this offset
Order this expressions
Ordered this desc? nulls_first?
Limit expression
Fetch direction count limit_options
LimitOptions rows
Offset expression
Distinct expressions on
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
EQ this expression -> =
NEQ this expression -> <>
GT this expression -> >
GTE this expression -> >=
LT this expression -> <
LTE this expression -> <=
NullSafeEQ this expression -> is_same
NullSafeNEQ this expression -> is_distinct
Is this expression
Between this low high
In this expressions query
Exists this
Like this expression negate?
ILike this expression negate?
SimilarTo this expression -> similar_to
Escape this expression
RegexpLike this expression flag -> regexp_matches
RegexpFullMatch this expression -> regexp_full_match
RegexpReplace this expression replacement single_replace? modifiers -> regexp_replace
RegexpExtract this expression group null_if_pos_overflow? -> regexp_extract
Add this expression -> +
Sub this expression -> -
Mul this expression -> *
Div this expression typed? safe? -> /
IntDiv this expression -> //
Mod this expression -> %
Neg this
Pow this expression -> pow
DPipe this expression safe?
Case this ifs default
If this true false
Coalesce this expressions is_nvl? is_null?
Nullif this expression
Least this expressions ignore_nulls?
Greatest this expressions ignore_nulls?
Interval this unit
Count this big_int? bounds
CountIf this zero_on_all_null?
Sum this bounds
Avg this bounds
Min this
Max this
Median this
Quantile this quantile
ApproxQuantile this quantile
PercentileCont this expression
PercentileDisc this expression
WithinGroup this expression
Array expressions struct_name_inheritance?
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
Lower this -> lower
Upper this -> upper
Length this -> length
Trim this position expression
Substring this start length -> substring
Left this expression -> left
Right this expression -> right
Replace this expression replacement -> replace
Translate this from_ to -> translate
Concat expressions safe? coalesce?
ConcatWs expressions safe? coalesce?
StartsWith this expression -> starts_with
EndsWith this expression -> ends_with
Contains this expression -> contains
StrPosition this substr -> strpos
Reverse this -> reverse
SplitPart this delimiter part_index -> split_part
Ascii this -> ascii
Unicode this -> unicode
Levenshtein this expression -> levenshtein
BitLength this -> bit_length
JarowinklerSimilarity this expression -> jaro_winkler_similarity
Abs this -> abs
Ceil this -> ceil
Floor this -> floor
Round this decimals -> round
Trunc this decimals
BitwiseAnd this expression -> bitand
BitwiseOr this expression -> bitor
BitwiseXor this expression -> bitxor
Pad this expression fill_pattern is_left?
MD5 this -> md5
SHA2 this length
Sign this -> sign
Sqrt this -> sqrt
Cbrt this -> cbrt
Exp this -> exp
Ln this -> ln
Log this expression
Sin this -> sin
Cos this -> cos
Tan this -> tan
Asin this -> asin
Acos this -> acos
Atan this -> atan
Atan2 this expression -> atan2
Sinh this -> sinh
Cosh this -> cosh
Asinh this -> asinh
Tanh this -> tanh
Degrees this -> degrees
Radians this -> radians
Pi -> pi
IsNan this -> isnan
IsInf this -> isinf
Year this -> year
Month this -> month
Day this -> day
Hour this -> hour
Minute this -> minute
Second this -> second
Quarter this -> quarter
Week this -> week
WeekOfYear this -> week
DayOfWeek this -> dayofweek
DayOfWeekIso this -> isodow
DayOfMonth this -> day
DayOfYear this -> dayofyear
Dayname this -> dayname
Monthname this -> monthname
LastDay this -> last_day
TimeToUnix this -> epoch
TimestampTrunc this unit input_type_preserved?
DateTrunc this unit
Extract this expression
TimestampDiff this expression unit
UnixToTime this scale
TimestampFromParts year month day hour min sec -> make_timestamp
DateBin this expression unit
DateDiff this expression unit date_part_boundary? big_int?
DateAdd this expression unit
DateSub this expression unit
DateFromParts year month day -> make_date
TimeToStr this format -> strftime
TsOrDsToDate this default_date
TsOrDsToTimestamp this
TimeStrToTime this
StrToDate this format
SafeDivide this expression
TsOrDsDiff this expression unit
StrToTime this format -> try_strptime
"""


def read_table(table: str) -> Iterator[tuple[type[exp.Expr], list[str], str]]:
    """Node class, arguments and function of each line."""
    for line in table.strip().splitlines():
        left, _, function = line.partition(" -> ")
        name, *arguments = left.split()
        node = getattr(exp, name, None)  # a class that this sqlglot does not have cannot occur
        if node is not None:
            yield node, arguments, function


PERMITTED: dict[type[exp.Expr], dict[str, bool]] = {
    node: {each.removesuffix("?"): each.endswith("?") for each in arguments}
    for node, arguments, _ in read_table(_TABLE)
}
# Node class: the function or operator that it is, and where its arguments are.
FUNCTION_OF: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    node: (function, tuple(each for each in arguments if not each.endswith("?")))
    for node, arguments, function in read_table(_TABLE)
    if function
}
