"""Aggregates of other engines, each written with aggregates that have a rule.

A name is here only if it means the same in every engine that has it.
"""

from __future__ import annotations

import re

from sqlglot import exp

from privsql.sql.parse.rewritten.templates import read_templates

MOST_PARTS = 100  # of APPROX_QUANTILES

AGGREGATES = read_templates("""
var 1 => VAR_SAMP(a)
varsamp 1 => VAR_SAMP(a)
varp varpop 1 => VAR_POP(a)
std stdev stddevsamp 1 => STDDEV_SAMP(a)
stdevp stddevpop 1 => STDDEV_POP(a)
covar 2 => COVAR_SAMP(a, b)
favg try_avg 1 => AVG(a)
total fsum kahan_sum sumkahan sum_no_overflow try_sum 1 => SUM(a)
count_big 1 => COUNT(a)
ndv uniq uniqexact uniqcombined uniqcombined64 uniqhll12 1 => COUNT(DISTINCT a)
approx_distinct approx_count_distinct 1 => COUNT(DISTINCT a)
ApproxDistinct this => COUNT(DISTINCT a)
sum_if sumif 2 => SUM(a) FILTER (WHERE b)
avg_if avgif 2 => AVG(a) FILTER (WHERE b)
min_if minif 2 => MIN(a) FILTER (WHERE b)
max_if maxif 2 => MAX(a) FILTER (WHERE b)
medianif 2 => MEDIAN(a) FILTER (WHERE b)
uniqif uniqexactif 2 => COUNT(DISTINCT a) FILTER (WHERE b)
countif count_if 1 => COUNT(*) FILTER (WHERE a)
geomean geometric_mean 1 => EXP(AVG(LN(a)))
sem 1 => STDDEV_POP(a) / SQRT(COUNT(a))
avgweighted weighted_avg 2 => SUM(a * b) / SUM(CASE WHEN a IS NOT NULL THEN b END)
RegrSxx this expression => COUNT(*) FILTER (WHERE a IS NOT NULL AND b IS NOT NULL)
    * VAR_POP(b) FILTER (WHERE a IS NOT NULL)
RegrSyy this expression => COUNT(*) FILTER (WHERE a IS NOT NULL AND b IS NOT NULL)
    * VAR_POP(a) FILTER (WHERE b IS NOT NULL)
RegrSxy this expression => COUNT(*) FILTER (WHERE a IS NOT NULL AND b IS NOT NULL)
    * COVAR_POP(a, b)
every 1 => BOOL_AND(a)
logical_and booland_agg 1 => BOOL_AND(a)
logical_or boolor_agg 1 => BOOL_OR(a)
bit_and 1 => BIT_AND(a)
bit_or 1 => BIT_OR(a)
bit_xor 1 => BIT_XOR(a)
iqr 1 => QUANTILE_CONT(a, 0.75) - QUANTILE_CONT(a, 0.25)
percentile quantile_cont 2 => QUANTILE_CONT(a, b)
percentile_approx approx_percentile quantile_disc approx_quantile quantile 2 => QUANTILE_DISC(a, b)
""")


def plain_aggregate(node: exp.Expr) -> exp.Expr | None:
    """MIN(DISTINCT x), COUNT(DISTINCT x, y) and ClickHouse's quantile(0.5)(x), written plainly; None for
    anything else.
    """
    match node:
        case exp.Min(this=exp.Distinct(expressions=[of])) | exp.Max(this=exp.Distinct(expressions=[of])):
            return type(node)(this=of)
        case exp.Count(this=exp.Distinct(expressions=[_, _, *_] as values)):
            return _distinct_rows(values)
        case exp.ParameterizedAgg(this=str(name), expressions=fractions, args={"params": [of]}):
            return _of_fractions(name.lower(), fractions, of)
        case exp.ApproxQuantiles(this=of, expression=exp.Literal(is_string=False) as number):
            return _of_equal_parts(of, number)
        case _:
            return None


def _distinct_rows(values: list[exp.Expr]) -> exp.Expr:
    """Several values count where none is NULL, as in every engine that has this form; DuckDB has not."""
    row = exp.Count(this=exp.Distinct(expressions=[exp.Tuple(expressions=values)]), big_int=True)
    known = [exp.Not(this=exp.Is(this=each.copy(), expression=exp.Null())) for each in values]
    return exp.Filter(this=row, expression=exp.Where(this=exp.and_(*known, copy=False)))


def _of_fractions(name: str, fractions: list[exp.Expr], of: exp.Expr) -> exp.Expr | None:
    """quantileExact(0.5)(x), quantiles(0.25, 0.75)(x)."""
    if not re.fullmatch(r"quantiles?(exact|tdigest|timing|bfloat16|deterministic|gk|dd)?", name):
        return None
    if name.startswith("quantiles"):
        return exp.PercentileDisc(this=of, expression=exp.Array(expressions=fractions))
    return exp.PercentileDisc(this=of, expression=fractions[0]) if len(fractions) == 1 else None


def _of_equal_parts(of: exp.Expr, number: exp.Literal) -> exp.Expr | None:
    """APPROX_QUANTILES(x, 4): the smallest value, the quartiles and the largest value."""
    parts = int(number.name) if number.name.isdigit() else 0
    if not 1 <= parts <= MOST_PARTS:
        return None
    fractions = [exp.Literal.number(repr(place / parts)) for place in range(parts + 1)]
    return exp.PercentileDisc(this=of, expression=exp.Array(expressions=fractions))
