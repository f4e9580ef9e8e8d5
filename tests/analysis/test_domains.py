"""What expressions may hold, and which conditions exclude each other: against DuckDB's own answers, NULL and NaN included."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import random
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from scipy import integrate

import privsql
from privsql.algebra.exact import Name
from privsql.algebra.expressions import Literal
from privsql.algebra.relations import Filter, Project, Scan, walk
from privsql.analysis.derive import derive
from privsql.analysis.disjoint import are_disjoint
from privsql.analysis.domain import DayRange, Domain, exact, of_values, tighten, union
from privsql.analysis.facts import domain_of, refine
from privsql.errors import PrivsqlError
from privsql.planning.grids.grid import MOST_STEPS, grid_of
from privsql.planning.public_look import PublicLook
from privsql.privacy.accuracy import LaplaceLaw, combined_half_width, selection_epsilon_of_histogram
from privsql.render.duckdb import DUCKDB
from privsql.sql.bind.catalogue import Catalogue
from privsql.sql.read import read
from privsql.types import BIGINT, BOOLEAN, DATE, DOUBLE, TEXT, decimal, integer

SMALL = integer(-100, 100)

ROWS = list(
    itertools.product(
        [None, -1, 0, 1, 2, 3],
        [None, math.nan, math.inf, -math.inf, -0.5, 0.0, 1.0, 1.5, 2.0],
        [None, "", "a", "A", "b", "ab"],
        [None, True, False],
    )
)
POLICY = {
    "tables": {
        "t": {
            "columns": {
                "i": {"range": [-1, 3]},
                "f": {"range": [-2, 2]},
                "s": {"values": ["", "a", "A", "b", "ab"]},
            }
        }
    }
}


@pytest.fixture(scope="module")
def plain():
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (i INTEGER, f DOUBLE, s VARCHAR, b BOOLEAN, d DATE)")
        connection.executemany(
            "INSERT INTO t VALUES (?, ?, ?, ?, DATE '2024-02-27' + coalesce(CAST(? AS INTEGER), 9))",
            [(*row, row[0]) for row in ROWS],
        )
        yield connection


@pytest.fixture(scope="module")
def session(plain):
    return privsql.connect(
        plain,
        {
            "tables": {
                "t": {
                    "columns": {
                        **POLICY["tables"]["t"]["columns"],
                        "d": {"range": ["2024-02-26", "2024-03-07"]},
                    }
                }
            }
        },
    )


# -- disjoint --------------------------------------------------------------------------------------------------
def atoms(dice: random.Random) -> str:
    i, f = (
        dice.choice([-1, 0, 1, 2, 3, "1.5", "2.0", "'2'"]),
        dice.choice(["0", "1.0", "1.5", "2", "-0.5", "'nan'::DOUBLE", "'inf'::DOUBLE", "0.1"]),
    )
    s = dice.choice(["''", "'a'", "'A'", "'b'", "'ab'"])
    comparison = dice.choice(["=", "<>", "<", "<=", ">", ">="])
    return dice.choice(
        [
            f"i {comparison} {i}",
            f"f {comparison} {f}",
            f"s {comparison} {s}",
            f"{f} {comparison} f",
            f"{i} {comparison} i",
            "b",
            "NOT b",
            "b IS TRUE",
            "b IS FALSE",
            "b = TRUE",
            "b = FALSE",
            "b IS NULL",
            "b IS NOT NULL",
            "i IS NULL",
            "f IS NOT NULL",
            f"i IN ({i}, 0)",
            f"s IN ({s}, 'a')",
            f"s NOT IN ({s}, 'b')",
            f"i NOT IN ({i}, NULL)",
            f"f IN ({f}, 1)",
            f"i BETWEEN 0 AND {i}",
            f"f BETWEEN {f} AND 1.5",
            f"i IS NOT DISTINCT FROM {i}",
            f"s IS DISTINCT FROM {s}",
            "i = f",
            "i < f",
            f"i + 1 {comparison} {i}",
            f"lower(s) = {s}",
            f"CAST(i AS DOUBLE) {comparison} 1.5",
            f"coalesce(i, 0) {comparison} {i}",
            f"abs(f) {comparison} {f}",
            f"(CASE WHEN b THEN i ELSE 0 END) {comparison} {i}",
            "(i > 1) IS NULL",
            "(i > 1) = b",
            "(i > 1) = TRUE",
            f"i {comparison} NULL",
            f"s LIKE {s}",
            "isnan(f)",
            f"CAST(f AS INTEGER) {comparison} 1",
            f"CAST(f AS DECIMAL(4,1)) {comparison} 1.5",
            f"i // 2 {comparison} 0",
        ]
    )


def condition(dice: random.Random, depth: int = 0) -> str:
    roll = dice.random()
    if depth > 2 or roll < 0.45:
        return atoms(dice)
    if roll < 0.55:
        return f"NOT ({condition(dice, depth + 1)})"
    joint = " AND " if roll < 0.85 else " OR "
    return f"({joint.join(condition(dice, depth + 1) for _ in range(2))})"


def predicate_of(session: privsql.Session, text: str):
    question = read(
        f"SELECT COUNT(*) FROM t WHERE {text}", Catalogue(session._pipeline.schema, session._pipeline.policy)
    )
    return next(each for each in walk(question.relation) if isinstance(each, Filter)).predicate


def pairs(session, seed: int, count: int):
    dice, made = random.Random(seed), []
    while len(made) < count:
        text = condition(dice)
        try:
            made.append((text, predicate_of(session, text)))
        except PrivsqlError:
            continue
    for _ in range(count * 6):
        yield dice.choice(made), dice.choice(made)
    for text, predicate in made:
        yield (text, predicate), (f"NOT ({text})", predicate_of(session, f"NOT ({text})"))
        yield (text, predicate), (f"({text}) IS FALSE", predicate_of(session, f"({text}) IS FALSE"))


def check_disjoint(plain, session, seed: int, count: int) -> int:
    claimed: dict[tuple[str, str], None] = {}
    for (one, first), (two, second) in pairs(session, seed, count):
        if are_disjoint(first, second):
            assert are_disjoint(second, first), (one, two)
            claimed[DUCKDB.expression(first), DUCKDB.expression(second)] = None
    for start in range(0, len(claimed), 100):
        batch = list(claimed)[start : start + 100]
        tests = ", ".join(f"count(*) FILTER (WHERE {one} AND {two})" for one, two in batch)
        overlaps = plain.execute(f"SELECT {tests} FROM t").fetchall()[0]
        assert not any(overlaps), [pair for pair, many in zip(batch, overlaps, strict=True) if many]
    return len(claimed)


def test_disjointness_is_never_claimed_wrongly(plain, session):
    assert check_disjoint(plain, session, seed=5, count=50) > 20


@pytest.mark.slow
def test_disjointness_is_never_claimed_wrongly_at_length(plain, session):
    assert check_disjoint(plain, session, seed=6, count=2_000) > 800


@pytest.mark.parametrize(
    ("one", "two", "apart"),
    [
        ("i < 2", "i >= 2", True),
        ("i < 2", "i > 2", True),
        ("i <= 2", "i >= 2", False),
        ("i = 1", "i = 2", True),
        ("s = 'a'", "s = 'A'", True),
        ("s IN ('a', 'b')", "s = 'ab'", True),
        ("s IN ('a', 'b')", "s IN ('b', 'ab')", False),
        ("b", "NOT b", True),
        ("b", "b IS FALSE", True),
        ("i IS NULL", "i IS NOT NULL", True),
        ("i BETWEEN 0 AND 1", "i BETWEEN 2 AND 3", True),
        ("i BETWEEN 0 AND 2", "i BETWEEN 2 AND 3", False),
        ("b AND i < 1", "i > 1 AND s = 'a'", True),
        ("i < 1", "f > 1", False),
        ("f > 1", "f <= 1", True),
        ("i < 1 OR i > 2", "i = 2", False),
        ("i = 1", "i IS NULL", True),
        ("2 > i", "i > 3", True),
        ("i % 2 = 0", "i % 2 = 1", True),
        ("lower(s) = 'a'", "lower(s) = 'b'", True),
    ],
)
def test_obviously_disjoint_conditions_are_recognized(session, one, two, apart):
    """False where nothing is known is always sound; True is what makes several counts cheap."""
    assert are_disjoint(predicate_of(session, one), predicate_of(session, two)) is apart


def test_no_condition_is_not_disjoint_with_no_condition():
    assert not are_disjoint(None, None)


# -- domains ---------------------------------------------------------------------------------------------------
EXPRESSIONS = [
    "i",
    "f",
    "s",
    "b",
    "d",
    "i + 1",
    "i - 7",
    "i * i",
    "i * f",
    "-i",
    "abs(i)",
    "abs(f)",
    "i / 2",
    "i // 2",
    "i % 2",
    "f / 4",
    "i / nullif(i, 0)",
    "least(i, 2)",
    "greatest(i, 0)",
    "greatest(f, 1)",
    "round(f)",
    "round(f, 1)",
    "floor(f)",
    "ceil(f)",
    "trunc(f)",
    "sign(i)",
    "pow(i, 2)",
    "exp(f)",
    "sqrt(abs(i))",
    "ln(i + 2)",
    "coalesce(i, 9)",
    "coalesce(s, 'none')",
    "nullif(i, 2)",
    "CASE WHEN i > 1 THEN i ELSE 0 END",
    "CASE WHEN b THEN 'x' WHEN s = 'a' THEN 'y' END",
    "CASE i WHEN 1 THEN 10 WHEN 2 THEN 20 ELSE 30 END",
    "CAST(i AS DOUBLE)",
    "CAST(f AS INTEGER)",
    "CAST(b AS INTEGER)",
    "CAST(i AS VARCHAR)",
    "length(s)",
    "upper(s)",
    "s || '!'",
    "i > 1",
    "b AND i > 1",
    "i IS NULL",
    "s IN ('a', 'b')",
    "year(d)",
    "month(d)",
    "day(d)",
    "dayofweek(d)",
    "quarter(d)",
    "date_trunc('month', d)",
    "date_trunc('week', d)",
    "dayname(d)",
    "monthname(d)",
    "d + 1",
    "d - DATE '2024-01-01'",
    "extract(doy FROM d)",
    "CAST(d AS TIMESTAMP)",
    "i + f",
    "sin(f)",
    "cos(i)",
    "f * f",
    "(i - 1) * (i - 1)",
    "i % 3 + 1",
    "i // (i - 1)",
    "CAST(i AS DECIMAL(5, 1)) / 4",
    "atan(f)",
    "degrees(f)",
    "bit_count(i)",
    "strpos(s, 'b')",
]
WHERES = [
    "TRUE",
    "i > 0",
    "i BETWEEN 1 AND 2",
    "s IN ('a', 'b') AND b",
    "i = 2 OR i = 3",
    "f < 1",
    "i IS NOT NULL AND s <> 'a'",
    "NOT b",
    "i IS NULL",
    "i NOT IN (0, 2) AND s NOT IN ('a', NULL)",
    "NOT (i = 1 OR s = 'a')",
    "NOT (i > 1 AND s <> 'a')",
    "NOT (NOT (1 < i)) AND NOT lower(s) LIKE 'b%'",
    "NOT (f >= 1) OR NOT (i + 1 = 2)",
    "NOT (lower(s) IS NULL) AND 'a' <> s",
]


def inside(value, domain: Domain) -> bool:
    """Values outside their declared range may leave the domain; here all rows keep to it."""
    if value is None:
        return domain.nullable
    if isinstance(value, float) and not math.isfinite(value):
        return True  # NaN and infinities are clamped, never trusted
    if domain.empty:
        return False
    number = exact(value) if not isinstance(value, (dt.date, str)) else value
    if domain.values is not None and not isinstance(value, float):
        return value in domain.values
    if isinstance(value, (dt.date, str, bool)):
        bound = (domain.low, domain.high)
        return all(each is None for each in bound) or bound[0] <= value <= bound[1]
    slack = Fraction(1, 10**9)
    return (domain.low is None or number >= domain.low - slack) and (
        domain.high is None or number <= domain.high + slack
    )


NOTHING = PublicLook(lambda sql: [], DUCKDB)  # there are no public tables here


@pytest.mark.parametrize("where", WHERES)
def test_domains_contain_every_value_that_occurs(plain, session, where):
    """A domain is only a claim, but claims that exclude honest values would lose them."""
    catalogue = Catalogue(session._pipeline.schema, session._pipeline.policy)
    kept = f"(f IS NULL OR (f BETWEEN -2 AND 2)) AND ({where})"
    for text in EXPRESSIONS:
        question = read(f"SELECT COUNT(e) FROM (SELECT {text} AS e FROM t WHERE {kept})", catalogue)
        project = next(each for each in walk(question.release.input) if isinstance(each, Project))
        facts = derive(project.input, frozenset(each.name for each in project.input.fields), NOTHING)
        (expression,) = [each for name, each in project.columns if name == "e"]
        domain = domain_of(expression, facts)
        found = plain.execute(
            f"SELECT DISTINCT {DUCKDB.expression(expression)} FROM {DUCKDB.rows(project.input)}"
        ).fetchall()
        wrong = [value for (value,) in found if not inside(value, domain)]
        assert not wrong, (text, where, domain, wrong[:5])


def test_where_narrows_domains(session):
    catalogue = Catalogue(session._pipeline.schema, session._pipeline.policy)

    def domain(column, where):
        question = read(f"SELECT COUNT(*) FROM t WHERE {where}", catalogue)
        facts = derive(question.release.input, frozenset({column}), NOTHING)
        return next(known for each, known in facts.items() if getattr(each, "name", None) == column)

    assert list(domain("i", "i > 0").finite()) == [1, 2, 3]
    assert not domain("i", "i > 0").nullable
    assert list(domain("i", "i IN (1, 3, 99)").finite()) == [1, 3]
    assert list(domain("s", "s IN ('b', 'zz')").finite()) == ["b"]
    assert list(domain("b", "b").finite()) == [True]
    assert domain("i", "i IS NULL").empty
    assert domain("i", "s = 'a'").nullable
    assert list(domain("i", "i = 1 OR i = 2").finite()) == [1, 2]
    assert (domain("f", "f > 1").low, domain("f", "f <= 1").high) == (1, 1)
    assert domain("i", "i > 1 AND i < 2").empty
    assert list(domain("i", "i < 1.5").finite()) == [-1, 0, 1]


def test_sets_and_ranges():
    numbers = Domain(SMALL, low=Fraction(0), high=Fraction(9))
    assert list(numbers.finite()) == list(range(10))
    assert list(tighten(numbers, low=Fraction(5, 2)).finite()) == list(range(3, 10))
    assert tighten(numbers, low=Fraction(99)).empty
    assert list(tighten(numbers, values=[3, 77]).finite()) == [3]
    assert not tighten(numbers, low=0).nullable
    both = union(SMALL, [of_values(SMALL, (1, 2), nullable=False), of_values(SMALL, (2, 9), nullable=True)])
    assert (both.values, both.low, both.high, both.nullable) == ((1, 2, 9), 1, 9, True)
    assert union(SMALL, [numbers, Domain(SMALL)]).low is None
    assert union(SMALL, [numbers, Domain(SMALL, empty=True, values=())]).high == 9
    assert of_values(TEXT, (), nullable=True).empty
    assert Domain(DOUBLE, low=Fraction(0), high=Fraction(1)).finite() is None
    assert len(Domain(BIGINT, low=Fraction(-(10**30)), high=Fraction(10**30)).finite()) > 10**6
    days = Domain(DATE, low=dt.date(2024, 2, 28), high=dt.date(2024, 3, 1)).finite()
    assert list(days) == [dt.date(2024, 2, 28), dt.date(2024, 2, 29), dt.date(2024, 3, 1)]
    assert days[1:] == [dt.date(2024, 2, 29), dt.date(2024, 3, 1)]
    assert len(DayRange(dt.date(2024, 1, 2), dt.date(2024, 1, 1))) == 0
    assert exact(math.inf) is None
    assert exact(0.5) == Fraction(1, 2)
    assert list(of_values(BOOLEAN, (False, True), nullable=False).finite()) == [False, True]
    assert refine({}, Literal(True, BOOLEAN)) == {}


# -- keys ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("i", [-1, 0, 1, 2, 3, None]),
        ("i // 2", [0, 1, None]),
        ("i % 2", [-1, 0, 1, None]),
        ("b", [False, True, None]),
        ("coalesce(b, FALSE)", [False, True]),
        ("upper(s)", ["", "A", "B", "AB", None]),
        ("i >= 2", [False, True, None]),
        ("CASE WHEN i > 1 THEN 'hi' ELSE 'lo' END", ["hi", "lo"]),
        ("year(d)", [2024, None]),
        ("monthname(d)", ["February", "March", None]),
        ("length(s)", [0, 1, 2, None]),
        ("i + i", [-2, 0, 2, 4, 6, None]),
        ("coalesce(s, 'none')", ["", "a", "A", "b", "ab", "none"]),
    ],
)
def test_key_sets(plain, session, keys, expected):
    rows = session.query(f"SELECT {keys} AS k, COUNT(*) AS n FROM t GROUP BY 1", epsilon=10_000).fetchall()
    assert sorted((row[0] for row in rows), key=repr) == sorted(expected, key=repr)
    theirs = dict(plain.execute(f"SELECT {keys} AS k, count(*) FROM t GROUP BY 1").fetchall())
    assert {key: n for key, n in rows if n} == {key: n for key, n in theirs.items() if key in expected}


def test_dependent_keys_are_listed_as_combinations(session):
    plan = session.explain("SELECT i, i % 2 AS odd, b, COUNT(*) FROM t GROUP BY ALL", epsilon=1)
    assert plan.cells == 6 * 3  # not 6 * 4 * 3: i decides whether it is odd


# -- grid ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("type_", "low", "high"),
    [
        (SMALL, 0, 10),
        (BIGINT, -(2**40), 2**41),
        (DOUBLE, 0, 1),
        (DOUBLE, -3.7, 1e6),
        (DOUBLE, 1e-300, 2e-300),
        (DOUBLE, 0, 1e-322),
        (decimal(8, 2), Fraction("-1.25"), Fraction("99.99")),
        (DOUBLE, 5, 5),
        (SMALL, 0, 0),
        (decimal(38, 30), 0, 10**8),
        (DOUBLE, 0, 2**62),
    ],
)
@pytest.mark.parametrize("nullable", [True, False])
def test_grids_cover_their_range_in_few_steps(type_, low, high, nullable):
    grid = grid_of(type_, Domain(type_, nullable=nullable, low=Fraction(low), high=Fraction(high)))
    assert grid.low * grid.step <= Fraction(low)
    assert grid.high * grid.step >= Fraction(high)
    assert grid.magnitude <= MOST_STEPS + 1
    assert (Fraction(low) - grid.low * grid.step) < grid.step
    assert (grid.high * grid.step - Fraction(high)) < grid.step
    values = [
        None,
        "nan",
        "inf",
        "-inf",
        "0",
        "-0.0",
        "1e308",
        "-1e308",
        "5e-324",
        repr(float(low)),
        repr(float(high)),
        repr((float(low) + float(high)) / 2),
    ]
    if type_ == DOUBLE:
        with duckdb.connect() as plain:
            plain.execute("CREATE TABLE v (x DOUBLE)")
            plain.executemany("INSERT INTO v VALUES (CAST(? AS DOUBLE))", [(each,) for each in values])
            clamped = [
                row[0]
                for row in plain.execute(f"SELECT {DUCKDB.scalar(grid.clamped(Name('x')))} FROM v").fetchall()
            ]
        assert all(grid.low <= each <= grid.high for each in clamped if each is not None)
        assert (clamped[0] is None) == nullable
        assert sum(each is None for each in clamped) == nullable


# -- accuracy --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("first", [(1.0, 0.5), (-3.0, 0.1), (1.0, 0.01)])
@pytest.mark.parametrize("second", [(1.0, 0.5), (2.0, 0.05), (0.001, 1.0), (1.0, 0.010001)])
@pytest.mark.parametrize("level", [0.95, 0.5, 0.999])
def test_weighted_half_widths_against_simulation_and_integration(first, second, level):
    width = combined_half_width([(weight, LaplaceLaw(rate)) for weight, rate in (first, second)], level)
    dice, size = np.random.default_rng(3), 200_000

    def discrete(rate):
        p = -math.expm1(-rate)
        return dice.geometric(p, size) - dice.geometric(p, size)

    total = np.abs(first[0] * discrete(first[1]) + second[0] * discrete(second[1]))
    covered = np.mean(total <= width + 1e-9)
    spread = 6.5 * math.sqrt(level * (1 - level) / size)
    assert covered >= level - spread
    needed = np.quantile(total, level)
    assert width <= needed * 1.05 + 2 * (abs(first[0]) + abs(second[0]))
    scales = [abs(weight) / rate for weight, rate in (first, second)]
    inner = width - abs(first[0]) - abs(second[0])

    def tail(x):  # P(|Y| > inner - x) for the second, given the first
        return math.exp(-max(0.0, inner - x) / scales[1]) * 0.5 + math.exp(-(inner + x) / scales[1]) * 0.5

    inside_part = integrate.quad(
        lambda x: math.exp(-x / scales[0]) / scales[0] * tail(x), 0, inner, limit=500
    )[0]
    outside = integrate.quad(
        lambda x: (
            math.exp(-x / scales[0])
            / scales[0]
            * (1 - 0.5 * math.exp(-(x - inner) / scales[1]) + 0.5 * math.exp(-(x + inner) / scales[1]))
        ),
        inner,
        inner + 60 * scales[0],
        limit=500,
    )[0]
    assert inside_part + outside == pytest.approx(1 - level, rel=0.02, abs=1e-6)


def test_a_histogram_needs_more_rows_than_a_selection():
    for candidates in (2, 5, 100, 10_000):
        assert 1 < selection_epsilon_of_histogram(candidates, 2, 2) < 3
    assert selection_epsilon_of_histogram(1, 2, 2) == 1
    assert selection_epsilon_of_histogram(50, 20, 2) > 10 * selection_epsilon_of_histogram(50, 2, 2) * 0.99


def test_scans_carry_the_claims_of_the_policy(session):
    question = read("SELECT COUNT(*) FROM t", Catalogue(session._pipeline.schema, session._pipeline.policy))
    scan = next(each for each in walk(question.relation) if isinstance(each, Scan))
    assert {name: (claim.low, claim.high) for name, claim in scan.claims.items()}["i"] == (-1, 3)


@pytest.mark.parametrize(
    ("check", "rows", "asked", "total"),
    [
        ("k IN (1, NULL)", "(1, 0), (5, 0), (5, 0)", "k", 11),  # never false: whatever is in the table passes
        ("NOT (k NOT IN (1, NULL))", "(1, 0), (5, 0)", "k", 6),
        ("k IS NULL OR k IN (1, NULL)", "(1, 0), (5, 0), (NULL, 3)", "k", 6),
        ("k NOT IN (1, NULL)", "(5, 0), (NULL, 3)", "k", 5),
        # one part is unknown where k is NULL, so that the other says nothing of k
        ("NOT (k <= 1 OR coalesce(k, j) > 5)", "(NULL, 0), (NULL, 0), (3, 0)", "coalesce(k, j)", 3),
        (
            "(k > 1 AND coalesce(k, j) < 5) OR (k > 1 AND coalesce(k, j) < 6)",
            "(NULL, 0), (3, 0)",
            "coalesce(k, j)",
            3,
        ),
        ("(k > 1 AND coalesce(k, j) < 5) IS NOT FALSE", "(NULL, 0), (3, 0)", "coalesce(k, j)", 3),
    ],
)
def test_a_check_constraint_allows_null(check: str, rows: str, asked: str, total: int) -> None:
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE TABLE t (k INTEGER, j INTEGER, CHECK ({check})); INSERT INTO t VALUES {rows}"
        )
        ranges = {"k": {"range": [0, 10]}, "j": {"range": [0, 10]}}
        session = privsql.connect(connection, {"tables": {"t": {"columns": ranges}}})
        ((found,),) = session.query(f"SELECT SUM({asked}) AS s FROM t", epsilon=9000).fetchall()
        assert found == total
