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


_LOGARITHM = (
    f"(CASE WHEN {{{{0}}}} > 0 THEN {{}}({{{{0}}}}) WHEN {{{{0}}}} = 0 THEN (- {INFINITY}) "
    f"WHEN {{{{0}}}} < 0 THEN {NAN} END)"
)
_CIRCLE = (
    f"(CASE WHEN abs({{{{0}}}}) < {INFINITY} THEN {{}}({{{{0}}}}) WHEN {{{{0}}}} IS NOT NULL THEN {NAN} END)"
)
_ARC = (
    f"(CASE WHEN {{{{0}}}} BETWEEN -1 AND 1 THEN {{}}({{{{0}}}}) WHEN {{{{0}}}} IS NOT NULL THEN {NAN} END)"
)
# PostgreSQL fails where the result is too large, and where it is so small that it has fewer digits
_ODD = "{1} / 2 <> trunc({1} / 2)"
_POWER = (
    f"(CASE WHEN {{0}} = 0 AND {{1}} < 0 THEN {INFINITY} "
    f"WHEN {{0}} < 0 AND {{1}} <> trunc({{1}}) THEN {NAN} "
    f"WHEN abs({{0}}) >= {INFINITY} OR abs({{1}}) >= {INFINITY} THEN power({{0}}, {{1}}) "
    "WHEN {0} = 0 OR {1} = 0 THEN power({0}, {1}) "
    f"WHEN abs({{1}}) < 1e-300 OR (abs({{1}}) > 1e300 AND abs({{0}}) = 1) THEN {double(1.0)} "
    "WHEN abs({1}) > 1e300 THEN "
    f"(CASE WHEN (abs({{0}}) > 1) = ({{1}} > 0) THEN {INFINITY} ELSE {double(0.0)} END) "
    "WHEN {1} * ln(abs({0})) > 709.78 THEN "
    f"(CASE WHEN {{0}} < 0 AND {_ODD} THEN (- {INFINITY}) ELSE {INFINITY} END) "
    f"WHEN {{1}} * ln(abs({{0}})) < -708 THEN {double(0.0)} ELSE power({{0}}, {{1}}) END)"
)
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
    "sqrt": f"(CASE WHEN {{0}} >= 0 THEN sqrt({{0}}) WHEN {{0}} < 0 THEN {NAN} END)",
    "ln": _LOGARITHM.format("ln"),
    "log10": _LOGARITHM.format("log"),
    "asin": _ARC.format("asin"),
    "acos": _ARC.format("acos"),
    "exp": f"(CASE WHEN {{0}} >= {INFINITY} THEN {{0}} WHEN {{0}} > 709.78 THEN {INFINITY} "
    f"WHEN {{0}} < -708 THEN {double(0.0)} ELSE exp({{0}}) END)",
    "sin": _CIRCLE.format("sin"),
    "cos": _CIRCLE.format("cos"),
    "tan": _CIRCLE.format("tan"),
    "atan": "atan({0})",
    "atan2": "atan2({0}, {1})",
    "sinh": "sinh({0})",
    "cosh": "cosh({0})",
    "tanh": "tanh({0})",
    "asinh": "asinh({0})",
    "degrees": f"(CASE WHEN abs({{0}}) >= {INFINITY} OR abs({{0}}) < 3e306 THEN degrees({{0}}) "
    f"ELSE sign({{0}}) * {INFINITY} END)",
    "radians": f"(CASE WHEN abs({{0}}) < 1e-300 THEN {double(0.0)} ELSE radians({{0}}) END)",
    "cbrt": "cbrt({0})",
    "pow": _POWER,
    "pi": "pi()",
    "isnan": f"({{0}} = {NAN})",
    "isinf": f"(abs({{0}}) = {INFINITY})",
    "isfinite": f"(abs({{0}}) < {INFINITY})",
    # -- dates
    "year": _part("year", f"(CASE WHEN {_YEAR} > 0 THEN {_YEAR} ELSE {_YEAR} + 1 END)"),
    **{name: _part(name) for name in ("month", "day", "quarter", "isodow", "week")},
    "isoyear": _where(_WITHIN.format(), "CAST(extract(isoyear FROM {0}) AS bigint)"),
    "yearweek": _where(
        _WITHIN.format(), "CAST(extract(isoyear FROM {0}) * 100 + extract(week FROM {0}) AS bigint)"
    ),
    "decade": _where(_WITHIN.format(), "CAST(div(extract(year FROM {0}), 10) AS bigint)"),
    "century": _where(_WITHIN.format(), "CAST(extract(century FROM {0}) AS bigint)"),
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


def _difference(value: str) -> str:
    """How much later a number of the second moment is than that of the first."""
    later = f"{value.replace('{}', '{2}')} - {value.replace('{}', '{1}')}"
    tests = " AND ".join(f"{{{place}}} BETWEEN {FIRST_DAY} AND {LAST_DAY}" for place in (1, 2))
    return _where(tests, f"CAST({later} AS bigint)")


_MONTHS = "(extract(year FROM {}) * 12 + extract(month FROM {}))"
# date_diff, by the unit whose boundaries between two moments are counted
DIFFERENCES: dict[str, str] = {
    "second": _difference("floor(extract(epoch FROM {}))"),
    "minute": _difference("floor(extract(epoch FROM {}) / 60)"),
    "hour": _difference("floor(extract(epoch FROM {}) / 3600)"),
    "day": _difference("floor(extract(epoch FROM {}) / 86400)"),
    "week": _difference("floor((extract(epoch FROM {}) / 86400 + 3) / 7)"),
    "month": _difference(_MONTHS),
    "quarter": _difference(f"floor(({_MONTHS} - 1) / 3)"),
    "year": _difference("extract(year FROM {})"),
    "decade": _difference("floor(extract(year FROM {}) / 10)"),
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
    "bit_count": "it counts the bits of another number of bits there",
    **dict.fromkeys(("even", "era"), "there is none"),
    **dict.fromkeys(("md5", "sha256"), "it reads texts as another engine stores them"),
    **dict.fromkeys(
        "lpad rpad bitand bitor bitxor truncate millisecond microsecond millennium julian time_bucket "
        "date_sub".split(),
        "no form of it has been tried",
    ),
    **dict.fromkeys(("make_timestamp", "from_epoch"), "it fails on a moment that does not exist"),
    "reverse": "letters of several characters come apart there",
    "log2": "it has none with the same digits",
    "%": "it has no remainder of DOUBLE",
    "//": "it has no whole division of DOUBLE",
}
# of functions whose form holds for some arguments only
CONDITIONS: dict[str, str] = {
    "substring": "only with a constant start from 1 on, and a constant length",
    **dict.fromkeys(("left", "right"), "only with a constant number of letters"),
    "split_part": "only with a constant part from 1 on, and a separator",
    "round": "a DOUBLE only to whole numbers",
    "date_trunc": "not to centuries",
    "date_diff": "not in centuries",
    **dict.fromkeys(("hour", "minute", "second"), "not of a TIME"),
}
