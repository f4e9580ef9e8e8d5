"""The name of a function without a rule goes in; why it has none, and what to write instead, comes out."""

from __future__ import annotations

from sqlglot import exp

from privsql.errors import Place, Refused

# Names, and classes of sqlglot's; why not; what to write instead.
_REASONS = (
    (
        "rand random randn uuid gen_random_uuid newid Rand Randn Uuid",
        "Random numbers are not supported: the same query would mean something else each time, and a random "
        "sample protects nobody by itself.",
        "Leave it out: noise is added to every answer. For a noisier one choose a lower epsilon.",
    ),
    (
        "histogram histogram_exact approx_histogram map_agg numeric_histogram",
        "HISTOGRAM is not supported: a map would name the values that occur in the data.",
        "Group by declared keys: SELECT k, COUNT(*) AS n FROM t GROUP BY k. Of numbers, by bins: "
        "SELECT width_bucket(x, 0, 100, 10) AS bin, COUNT(*) AS n FROM t GROUP BY bin",
    ),
    (
        "entropy",
        "ENTROPY of rows is not supported: it is computed from released counts.",
        "Write SELECT -SUM(p * LOG2(p)) AS entropy FROM (SELECT n / SUM(n) OVER () AS p FROM (SELECT k, "
        "COUNT(*) AS n FROM t GROUP BY k) AS counts) AS shares WHERE p > 0",
    ),
    (
        "product",
        "PRODUCT is not supported: one person multiplies the result by any number of the range.",
        "Ask for the geometric mean, of values in a range above 0: SELECT GEOMEAN(x) AS g FROM t",
    ),
    (
        "mad MedianAbsoluteDeviation",
        "MAD is not supported: it is a median of distances from another median.",
        "Ask for the distance between the quartiles: SELECT IQR(x) AS i FROM t",
    ),
    (
        "skew skewness skewness_pop skewpop kurt kurtosis kurtosis_pop kurtpop Skewness Kurtosis",
        "SKEWNESS and KURTOSIS are not supported: nothing measures third and fourth powers.",
        "Ask for the quartiles: SELECT quantile_cont(x, [0.25, 0.5, 0.75]) AS q FROM t",
    ),
    (
        "approx_top_k approx_top_count approx_top_sum topk topkweighted approx_most_frequent ApproxTopK "
        "ApproxTopSum ApproxTopKAccumulate",
        "The most frequent values are not listed in one cell: the list would name values that occur.",
        "Ask for the top groups: SELECT k, COUNT(*) AS n FROM t GROUP BY k ORDER BY n DESC LIMIT 3",
    ),
    (
        "collect_list collect_set listagg group_concat array_agg string_agg json_agg jsonb_agg json_arrayagg "
        "json_objectagg grouparray groupuniqarray array_unique_agg wm_concat xmlagg "
        "ArrayUniqueAgg JSONArrayAgg JSONObjectAgg",
        "This aggregate is not supported: it would show people's own values.",
        "Ask for SELECT k, COUNT(*) AS n FROM t GROUP BY k with declared keys.",
    ),
    (
        "age months_between MonthsBetween",
        "A difference in years, months and days, or in parts of months, is not supported.",
        "Count whole units: SELECT COUNT(*) AS n FROM t WHERE date_sub('year', d, DATE '2024-12-31') >= 18",
    ),
    (
        "soundex metaphone Soundex",
        "SOUNDEX is not supported: engines disagree about it, and DuckDB has none.",
        "Compare spellings: SELECT COUNT(*) AS n FROM t WHERE levenshtein(k, 'Smith') <= 1",
    ),
)
_BY_NAME = {name: (why, instead) for names, why, instead in _REASONS for name in names.split()}


def refusal_of_function(name: str, place: Place | None = None) -> Refused | None:
    """The refusal of a function with a reason of its own, by its name or sqlglot's class."""
    found = _BY_NAME.get(name)
    return None if found is None else Refused("refused-function", *found, place)


def refusal_of_call(node: exp.Expr, place: Place | None) -> Refused | None:
    """The same of a parsed call."""
    if isinstance(node, exp.ParameterizedAgg | exp.AnonymousAggFunc | exp.CombinedAggFunc):
        return refusal_of_function(str(node.this).lower(), place)
    return refusal_of_function(type(node).__name__, place)
