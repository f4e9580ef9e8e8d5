"""The name of what is not supported goes in; the refusal comes out: what it is, why, and what to write.

What several places refuse is worded once, here.
"""

from __future__ import annotations

from sqlglot import exp

from privsql.errors import Place, Refused

# By the class of sqlglot's node; the code is refused-<class in lower case>.
WAYS_OUT = {
    "Join": (
        "This kind of JOIN is not supported.",
        "Use JOIN ... ON, LEFT JOIN, SEMI JOIN or ANTI JOIN.",
    ),
    "Window": (
        "Window functions over private rows are supported within one person only: others would depend on "
        "many people.",
        "Write PARTITION BY the unit below the aggregate, in a subquery. Or aggregate with GROUP BY first: "
        "windows over noisy totals are supported.",
    ),
    "TableSample": (
        "Sampling is not supported: a random sample protects nobody by itself, and who is in it is private.",
        "Query all rows. If the answer may be noisier, choose a lower epsilon: that protects more.",
    ),
    "CurrentDate": (
        "The current date and time are not supported: the same text would be another query each time.",
        "Write the date out: DATE '2024-01-31'.",
    ),
    "Columns": (
        "COLUMNS() is not supported: it stands for columns that the query does not name.",
        "Name the columns.",
    ),
    "Exists": (
        "A subquery inside an expression is not supported: its value can depend on many people's rows.",
        "Write EXISTS (...) or IN (SELECT ...) as a condition of WHERE by itself, joined with AND. Or join "
        "the "
        "rows: JOIN (SELECT user_id, COUNT(*) AS n FROM t GROUP BY user_id) AS q ON ..., or CROSS JOIN one "
        "row of "
        "public values.",
    ),
    "Any": (
        "ANY and ALL are supported as x = ANY and x <> ALL of a list of constants only.",
        "Write x IN (1, 2), or x = ANY([1, 2]).",
    ),
    "Lateral": (
        "LATERAL is not supported.",
        "Write a join: JOIN (SELECT ... GROUP BY the unit) ON ...",
    ),
    "Distinct": (
        "DISTINCT ON is supported for the rows of one person at a time only: it would show one row of many "
        "people's.",
        "Write DISTINCT ON (the unit) in a subquery, and aggregate over it. Or GROUP BY declared keys.",
    ),
    "ArrayAgg": (
        "This aggregate is not supported: it would show people's own values.",
        "Ask for COUNT(*) ... GROUP BY declared keys. Within one person, first(x ORDER BY day) is the "
        "first x "
        "by day.",
    ),
    "BitwiseOrAgg": (
        "BIT_OR, BIT_AND and BIT_XOR are not supported: one person's row can change the result by the whole "
        "range of its type, so noise that hides one person would drown the answer.",
        "Count the rows that have a bit: COUNT(*) FILTER (WHERE x // 4 % 2 = 1) counts the third bit of "
        "numbers that are not negative.",
    ),
    "Qualify": (
        "QUALIFY is supported over the rows of one person at a time only: it filters by window functions, "
        "whose results would depend on many people.",
        "Write it in a subquery whose windows have PARTITION BY the unit. Or use HAVING over the noisy "
        "aggregates.",
    ),
    "Except": (
        "EXCEPT is supported within one person only: it compares rows of many people.",
        "Select the unit on both sides, first the people's rows. Or filter with WHERE.",
    ),
    "Intersect": (
        "INTERSECT is supported within one person only: it compares rows of many people.",
        "Select the unit on both sides, first the people's rows. Or filter with WHERE.",
    ),
    "Pivot": (
        "PIVOT is not supported: it makes column names out of data.",
        "Use GROUP BY.",
    ),
    "Recursive": (
        "Recursive queries are not supported: how often they repeat a person's rows is not known.",
        "Write the steps out.",
    ),
    "Schema": (
        "Only tables and their columns are named with a schema.",
        "Leave the schema out.",
    ),
    "Unnest": (
        "UNNEST is supported for a list column of a table, by itself in SELECT or in FROM.",
        "Write FROM t, UNNEST(list_distinct(t.tags)) AS u(tag), with the table that has the list before it.",
    ),
}
SAME_AS = {
    "GroupConcat": "ArrayAgg",
    "Explode": "Unnest",
    "ArrayContains": "Unnest",
    "BitwiseAndAgg": "BitwiseOrAgg",
    "BitwiseXorAgg": "BitwiseOrAgg",
    "All": "Exists",
    **dict.fromkeys(
        ("CurrentTimestamp", "CurrentTime", "CurrentDatetime", "Localtime", "Localtimestamp"), "CurrentDate"
    ),
}


def refusal(name: str, place: Place | None = None) -> Refused:
    """The refusal of what WAYS_OUT knows by this name."""
    return Refused(f"refused-{name.lower()}", *WAYS_OUT[name], place)


def way_out_of(node: exp.Expr) -> str | None:
    """The name in WAYS_OUT for a node; None where it has no reason of its own."""
    name = SAME_AS.get(type(node).__name__, type(node).__name__)
    return name if name in WAYS_OUT else None


def only_select(place: Place | None) -> Refused:
    return Refused("refused-statement", "Only SELECT is supported.", "Write SELECT ... FROM ...", place)


def rows_shown(place: Place | None) -> Refused:
    return Refused(
        "refused-rows",
        "This would show people's rows as they are.",
        "Ask for an aggregate: SELECT COUNT(*), AVG(x) ... GROUP BY ...",
        place,
    )


def value_of_one_person(place: Place | None) -> Refused:
    return Refused(
        "refused-choice",
        "arg_max and arg_min over rows are not supported: the result would be one person's value.",
        "Choose among groups: SELECT arg_max(k, n) FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k).",
        place,
    )


def distinct_aggregate(place: Place | None) -> Refused:
    return Refused(
        "refused-distinct",
        "DISTINCT is supported inside COUNT, SUM, AVG, MIN and MAX only.",
        "Leave it out, or write COUNT(DISTINCT x).",
        place,
    )


def distinct_within_unit(name: str, place: Place | None) -> Refused:
    return Refused(
        "refused-distinct",
        f"{name.upper()}(DISTINCT x) of one unit's own rows is supported for whole numbers only.",
        "Write a cast: SUM(DISTINCT CAST(x AS INTEGER)).",
        place,
    )


def over_noisy_answer(code: str, what: str, way_out: str, place: Place | None) -> Refused:
    """The refusal of a clause that needs rows but is applied to the noisy answer of a subquery."""
    return Refused(code, f"{what} a noisy answer is not supported.", way_out, place)
