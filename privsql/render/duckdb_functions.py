"""How DuckDB computes each function of the algebra: forms that have a value, or NULL, for every row.

`{0}` is the first argument and `{args}` are all; every argument arrives in parentheses. `{name}` is the
function's own name. TRY stands directly around a call that can fail, and its arguments are calls that cannot:
DuckDB computes a subexpression shared by two TRYs once, outside of both. Forms that lengthen a text cut it at
10,000 characters, so that no row can fill the memory.
"""

from __future__ import annotations

# DuckDB compiles the pattern of regexp_matches while it plans, but those of the other functions only when
# rows arrive, outside TRY: whether a malformed pattern fails would reveal whether there are such rows. So
# regexp_matches, a constant here, compiles the pattern first, with the same options. (A pattern may be too
# large only with the option 'i', where every letter has both cases.)
_READ = "(CASE WHEN regexp_matches('', {{1}}{}) IS NOT NULL THEN {} END)"

_FORMS: dict[str, str] = {
    # -- text
    "lower upper reverse strip_accents length bit_length strlen ascii unicode": "{name}({0})",
    "trim ltrim rtrim translate starts_with ends_with contains strpos": "{name}({args})",
    "levenshtein damerau_levenshtein jaro_winkler_similarity jaro_similarity": "{name}({args})",
    "substring left right": "TRY({name}({args}))",
    "split_part": "TRY(split_part({args}))",  # without TRY, DuckDB 2.0 fails on a column of NULLs
    "lpad rpad": "{name}({args})",  # the width is at most 100, and there is something to fill with
    "md5 sha256": "{name}({0})",
    "replace concat concat_ws": "left({name}({args}), 10000)",
    "||": "left({0} || {1}, 10000)",
    "like ilike": "({0} {name} {1})",
    "similar_to": "({0} SIMILAR TO {1})",
    "like_escape ilike_escape regexp_matches regexp_full_match": "{name}({args})",
    "regexp_replace": _READ.format(", replace({3}, 'g', '')", "left(TRY(regexp_replace({args})), 10000)"),
    # \C matches one byte, and a part of a letter is not valid text: DuckDB fails on rows where the match is
    # only that
    "regexp_extract": _READ.format("", "TRY(regexp_extract({args}))"),
    # -- numbers
    "abs floor ceil trunc sign even isnan isinf isfinite bit_count": "{name}({0})",
    "round atan2": "{name}({args})",
    "truncate": "trunc({args})",
    "sqrt ln log10 log2 asin acos exp sin cos tan atan sinh cosh tanh degrees radians": "TRY({name}({0}))",
    # DuckDB 2.0 believes that its own cbrt is monotone, and fails where two neighbouring values of the data
    # show that it is not quite so
    "cbrt": "(sign({0}) * TRY(pow(abs({0}), 1.0 / 3.0)))",
    # DuckDB believes that asinh is monotone, too, and its digits depend on the machine's library. The
    # optimizer does not know the bounds of what least() returns, so it compares none. (TRY would hide them as
    # well, but inside TRY there could be no function that has a TRY of its own.)
    "asinh": "asinh(least({0}, CAST(NULL AS DOUBLE)))",
    "pow gcd": "TRY({name}({args}))",
    "bitand": "(CAST({0} AS BIGINT) & CAST({1} AS BIGINT))",
    "bitor": "(CAST({0} AS BIGINT) | CAST({1} AS BIGINT))",
    "bitxor": "xor(CAST({0} AS BIGINT), CAST({1} AS BIGINT))",
    "pi": "pi()",
    # -- dates
    "year month day quarter dayofweek isodow dayofyear decade century hour minute second": "{name}({0})",
    "millisecond microsecond millennium era julian": "{name}({0})",
    "dayname monthname epoch": "{name}({0})",
    # DuckDB's optimizer calls these functions on the least and greatest value of a column, outside TRY, and
    # fails at the end of the calendar. It knows no bounds of a sum, so + INTERVAL 0 DAY prevents the call.
    # The sum has a TRY of its own: two functions of one sum share it, and DuckDB would compute it first,
    # outside their TRY.
    "week yearweek isoyear": "TRY({name}(TRY({0} + INTERVAL 0 DAY)))",
    "date_trunc": "TRY(date_trunc({0}, TRY({1} + INTERVAL 0 DAY)))",
    "time_bucket": "TRY(time_bucket(CAST({0} AS INTERVAL), TRY({1} + INTERVAL 0 DAY)))",
    "from_epoch": "TRY(make_timestamp(TRY_CAST(round({0} * 1000000.0) AS BIGINT)))",
    "last_day": "TRY(last_day({0}))",
    "date_diff date_sub make_date make_timestamp strftime try_strptime": "TRY({name}({args}))",
}

FORMS = {name: form.replace("{name}", name) for names, form in _FORMS.items() for name in names.split()}
