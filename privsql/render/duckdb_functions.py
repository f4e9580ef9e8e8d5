"""How DuckDB computes each function of the algebra: forms that have a value, or NULL, for every row.

`{0}` is the first argument, `{args}` are all; every argument arrives in parentheses, `{name}` is the
function's own name. TRY stands directly around what can fail, and takes only what cannot: what two of them
share, DuckDB computes once, outside of both. What makes text longer is cut at 10,000 characters, so that no
row can be made to fill the memory.
"""

from __future__ import annotations

# DuckDB reads the pattern of regexp_matches when it plans, and those of the others only when rows come,
# outside TRY: whether a malformed one fails would tell whether there are such rows. So it is read by
# regexp_matches first, which is then a constant, with the same options: a pattern may be too large only where
# 'i' has every letter in both cases.
_READ = "(CASE WHEN regexp_matches('', {{1}}{}) IS NOT NULL THEN {} END)"

_FORMS: dict[str, str] = {
    # -- text
    "lower upper reverse strip_accents length bit_length strlen ascii unicode": "{name}({0})",
    "trim ltrim rtrim translate starts_with ends_with contains strpos": "{name}({args})",
    "levenshtein damerau_levenshtein jaro_winkler_similarity jaro_similarity": "{name}({args})",
    "substring left right": "TRY({name}({args}))",
    "split_part": "TRY(split_part({args}))",  # without TRY, DuckDB 2.0 fails on a column of NULLs
    "replace concat concat_ws": "left({name}({args}), 10000)",
    "||": "left({0} || {1}, 10000)",
    "like ilike": "({0} {name} {1})",
    "similar_to": "({0} SIMILAR TO {1})",
    "like_escape ilike_escape regexp_matches regexp_full_match": "{name}({args})",
    "regexp_replace": _READ.format(", replace({3}, 'g', '')", "left(TRY(regexp_replace({args})), 10000)"),
    # \C matches one byte, and a part of a letter is no text: DuckDB fails on the rows where it is all that
    # was found
    "regexp_extract": _READ.format("", "TRY(regexp_extract({args}))"),
    # -- numbers
    "abs floor ceil trunc sign even isnan isinf isfinite bit_count": "{name}({0})",
    "round atan2": "{name}({args})",
    "sqrt ln log10 log2 asin acos exp sin cos tan atan sinh cosh tanh degrees radians": "TRY({name}({0}))",
    # DuckDB 2.0 takes its own cbrt for monotone, and fails where two neighbouring values of the data show
    # that it is not quite
    "cbrt": "(sign({0}) * TRY(pow(abs({0}), 1.0 / 3.0)))",
    # DuckDB takes it for monotone, too, and its digits depend on the machine's library. The optimizer does
    # not know the ends of what least() returns, so it compares none. (Nor does it behind TRY, but there a
    # function could not stand that has a TRY of its own.)
    "asinh": "asinh(least({0}, CAST(NULL AS DOUBLE)))",
    "pow gcd": "TRY({name}({args}))",
    "pi": "pi()",
    # -- dates
    "year month day quarter dayofweek isodow dayofyear decade century hour minute second": "{name}({0})",
    "dayname monthname epoch": "{name}({0})",
    # DuckDB's optimizer calls these on the least and greatest value of a column, outside TRY, and fails where
    # dates end; it knows nothing of a sum, so it leaves them alone behind + INTERVAL 0 DAY. The sum has a TRY
    # of its own: two functions of one sum share it, and DuckDB would compute it before, outside their TRY.
    "week yearweek isoyear": "TRY({name}(TRY({0} + INTERVAL 0 DAY)))",
    "date_trunc": "TRY(date_trunc({0}, TRY({1} + INTERVAL 0 DAY)))",
    "last_day": "TRY(last_day({0}))",
    "date_diff make_date strftime try_strptime": "TRY({name}({args}))",
}

FORMS = {name: form.replace("{name}", name) for names, form in _FORMS.items() for name in names.split()}
