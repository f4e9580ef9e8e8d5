"""How PostgreSQL computes each function of the algebra: forms that have a value, or NULL, for every row; and
why the others have none.

`{0}` is the first argument. A form never calls a function on a value that the function raises an error for:
the test stands before it in a CASE, and cannot fail itself. Texts are cut at 10,000 characters where a
function makes them longer.
"""

from __future__ import annotations

from privsql.render.postgres_numbers import INFINITY, NAN, ROUND, double

_LETTERS = 'COLLATE "und-x-icu"'  # letters beyond ASCII have cases only in a collation that knows them
_BINARY = 'COLLATE "C"'
# with room for a step in either direction before PostgreSQL's calendars end
FIRST_DAY, LAST_DAY = "DATE '0001-01-01'", "DATE '200000-01-01'"
_WITHIN = f"{{{{0}}}} BETWEEN {FIRST_DAY} AND {LAST_DAY}"


def _part(name: str, shown: str = "") -> str:
    """A part of a date, NULL where that is infinite."""
    return f"(CASE WHEN isfinite({{0}}) THEN CAST({shown or f'extract({name} FROM {{0}})'} AS bigint) END)"


# dates go further than timestamps, which some functions turn them into
_TIMED = "isfinite({0}) AND {0} < DATE '290000-01-01'"


def _where(test: str, value: str) -> str:
    return f"(CASE WHEN {test} THEN {value} END)"


_YEAR = "extract(year FROM {0})"
FORMS: dict[str, str] = {
    # -- text
    "length": "CAST(length({0}) AS bigint)",
    "bit_length": "CAST(bit_length({0}) AS bigint)",
    "strlen": "CAST(octet_length({0}) AS bigint)",
    "ascii": "CAST(ascii({0}) AS bigint)",
    "unicode": "CAST((CASE WHEN {0} = '' THEN -1 ELSE ascii({0}) END) AS bigint)",
    "lower": f"(lower({{0}} {_LETTERS}) {_BINARY})",
    "upper": f"(upper({{0}} {_LETTERS}) {_BINARY})",
    "trim": "btrim({args})",
    "ltrim": "ltrim({args})",
    "rtrim": "rtrim({args})",
    "substring": "substring({args})",
    "left": "left({args})",
    "right": "right({args})",
    "replace": "left(replace(left({0}, 1000000), {1}, {2}), 10000)",
    "translate": "translate({args})",
    "split_part": "split_part({args})",
    "starts_with": "starts_with({0}, {1})",
    "ends_with": "(right({0}, length({1})) = {1})",
    "contains": "(strpos({0}, {1}) > 0)",
    "strpos": "CAST(strpos({0}, {1}) AS bigint)",
    "concat": f"(left(concat({{args}}), 10000) {_BINARY})",
    "concat_ws": f"(left(concat_ws({{args}}), 10000) {_BINARY})",
    "||": "left({0} || {1}, 10000)",
    "like": "({0} LIKE {1} ESCAPE '')",
    "ilike": f"(({{0}} {_LETTERS}) ILIKE ({{1}} {_LETTERS}) ESCAPE '')",
    # -- numbers
    "abs": "abs({0})",
    "floor": "CAST(floor({0}) AS double precision)",
    "ceil": "CAST(ceil({0}) AS double precision)",
    "trunc": "CAST(trunc({0}) AS double precision)",
    "round": ROUND,
    "sign": "CAST(sign({0}) AS bigint)",
    "sqrt": _where("{0} >= 0", "sqrt({0})"),
    "ln": _where("{0} > 0", "ln({0})"),
    "log10": _where("{0} > 0", "log({0})"),
    "asin": _where("{0} BETWEEN -1 AND 1", "asin({0})"),
    "acos": _where("{0} BETWEEN -1 AND 1", "acos({0})"),
    "exp": f"(CASE WHEN {{0}} > {INFINITY} THEN {NAN} WHEN {{0}} > 709.78 THEN {INFINITY} "
    f"WHEN {{0}} < -744 THEN {double(0.0)} ELSE exp({{0}}) END)",
    "sin": _where(f"abs({{0}}) < {INFINITY}", "sin({0})"),
    "cos": _where(f"abs({{0}}) < {INFINITY}", "cos({0})"),
    "tan": _where(f"abs({{0}}) < {INFINITY}", "tan({0})"),
    "atan": "atan({0})",
    "atan2": "atan2({0}, {1})",
    "sinh": _where(f"abs({{0}}) < {INFINITY}", "sinh({0})"),
    "cosh": _where(f"abs({{0}}) < {INFINITY}", "cosh({0})"),
    "tanh": "tanh({0})",
    "asinh": "asinh({0})",
    "degrees": f"(CASE WHEN abs({{0}}) >= {INFINITY} OR abs({{0}}) < 1e300 THEN degrees({{0}}) "
    f"ELSE sign({{0}}) * {INFINITY} END)",
    "radians": f"(CASE WHEN abs({{0}}) < 1e-300 THEN {double(0.0)} ELSE radians({{0}}) END)",
    "cbrt": "cbrt({0})",
    "pow": f"(CASE WHEN abs({{1}}) > 1e300 OR (abs({{1}}) < 1e-300 AND {{1}} <> 0) THEN NULL "
    f"WHEN {{0}} = 0 THEN (CASE WHEN {{1}} > 0 THEN {double(0.0)} WHEN {{1}} = 0 THEN {double(1.0)} END) "
    f"WHEN abs({{0}}) >= {INFINITY} THEN NULL WHEN {{0}} < 0 AND {{1}} <> trunc({{1}}) THEN NULL "
    "WHEN {1} * ln(abs({0})) BETWEEN -700 AND 709 THEN power({0}, {1}) END)",
    "pi": "pi()",
    "isnan": f"({{0}} = {NAN})",
    "isinf": f"(abs({{0}}) = {INFINITY})",
    "isfinite": f"(abs({{0}}) < {INFINITY})",
    # -- dates
    "year": _part("year", f"(CASE WHEN {_YEAR} > 0 THEN {_YEAR} ELSE {_YEAR} + 1 END)"),
    **{name: _part(name) for name in ("month", "day", "quarter", "isodow", "week")},
    "dayofweek": _part("dow"),
    "dayofyear": _part("doy"),
    "hour": _where(_TIMED, "CAST(extract(hour FROM CAST({0} AS timestamp)) AS bigint)"),
    "minute": _where(_TIMED, "CAST(extract(minute FROM CAST({0} AS timestamp)) AS bigint)"),
    "second": _where(_TIMED, "CAST(floor(extract(second FROM CAST({0} AS timestamp))) AS bigint)"),
    "dayname": _where(_TIMED, "(to_char({0}, 'FMDay') COLLATE \"C\")"),
    "monthname": _where(_TIMED, "(to_char({0}, 'FMMonth') COLLATE \"C\")"),
    "last_day": _where(
        _WITHIN.format(),
        "CAST(date_trunc('month', CAST({0} AS timestamp)) + INTERVAL '1 month -1 day' AS date)",
    ),
    "epoch": _where("isfinite({0})", "CAST(extract(epoch FROM {0}) AS double precision)"),
    "date_trunc": _where(_WITHIN.format().replace("{0}", "{1}"), "date_trunc({0}, CAST({1} AS timestamp))"),
}
_FORMATS = "its formats are another engine's language there"
_PATTERNS = "regular expressions are another language there, and can fail while they run"
REASONS: dict[str, str] = {
    **dict.fromkeys(("regexp_matches", "regexp_full_match", "regexp_replace", "regexp_extract"), _PATTERNS),
    "similar_to": _PATTERNS,
    **dict.fromkeys(("like_escape", "ilike_escape"), "a pattern may fail while it runs"),
    **dict.fromkeys(("strftime", "try_strptime"), _FORMATS),
    **dict.fromkeys(
        ("levenshtein", "damerau_levenshtein", "jaro_similarity", "jaro_winkler_similarity", "strip_accents"),
        "it is in no function that every server has",
    ),
    "make_date": "it fails on a date that does not exist",
    "gcd": "it fails on the least whole number",
    "log2": "it has none with the same digits",
    "%": "it has no remainder of DOUBLE",
    "//": "it has no whole division of DOUBLE",
}
