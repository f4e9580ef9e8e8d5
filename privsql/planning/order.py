"""MEDIAN, quantiles, MIN and MAX go in; measurements of their arguments' values come out, each with a
statement of its own.

The statement counts the rows of every key and value: a histogram, of which nothing is let out but the grid
points that the exponential mechanism chooses in each key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from privsql.algebra.describe import describe
from privsql.algebra.expressions import Aggregate, Expression
from privsql.algebra.relations import Choose, Limits, Release
from privsql.algebra.reserved import ROWS_COLUMN, VALUE_COLUMN
from privsql.analysis.derive import domain_of
from privsql.analysis.keys import KeySpace, evaluated_domain
from privsql.errors import Place, Refused
from privsql.planning import render
from privsql.planning.bins import FEWEST, Bins
from privsql.planning.estimates import Estimate, Placed
from privsql.planning.grid import LARGEST_VALUE
from privsql.planning.key_tests import keys_and_tests, limits_on_keys
from privsql.planning.parts import Part, Surroundings, filtered
from privsql.planning.render_choice import kept_up_to, key_rank
from privsql.planning.render_rows import rows
from privsql.planning.value_grid import ValueGrid, value_grid
from privsql.policy import Neighbours
from privsql.privacy.order import Change, Sought
from privsql.types import DOUBLE, MOMENTS, Kind

ORDER = frozenset({"quantile_cont", "quantile_disc", "min", "max"})


@dataclass(frozen=True)
class OrderPart(Part):
    """Quantiles of one argument. `value` is its SQL, `where` of the rows that have one."""

    sought: Sought = field(default_factory=lambda: Sought((), Change(1, False, False), 1))
    grid: ValueGrid = field(default_factory=lambda: ValueGrid(DOUBLE, Fraction(0), Fraction(1), 1))
    value: str = ""
    where: str = ""

    @property
    def noise(self) -> float:
        return float(self.sought.at(Fraction(1)).span)


def order_parts(
    aggregates: Sequence[tuple[str, Aggregate]], number: int, around: Surroundings
) -> tuple[list[OrderPart], dict[str, Estimate]]:
    """One measurement for each argument and condition, with a column for every different fraction of it."""
    parts: list[OrderPart] = []
    estimates: dict[str, Estimate] = {}
    together: dict[tuple[Expression | None, Expression | None], list[tuple[str, Aggregate]]] = {}
    for name, each in aggregates:
        together.setdefault((each.argument, each.condition), []).append((name, each))
    for (argument, condition), same in together.items():
        assert argument is not None
        grid = _grid(argument, condition, around, same[0][1].place)
        fractions = sorted({_fraction(each) for _, each in same})
        columns = [f"order_{number + index}" for index in range(len(fractions))]
        number += len(columns)
        parts.append(_part(argument, condition, tuple(columns), tuple(fractions), grid, around))
        for name, each in same:
            column = columns[fractions.index(_fraction(each))]
            estimates[name] = Placed(column, grid.type.kind, each.type.kind, grid.low, grid.step, grid.points)
    return parts, estimates


def _part(
    argument: Expression,
    condition: Expression | None,
    columns: tuple[str, ...],
    fractions: tuple[Fraction, ...],
    grid: ValueGrid,
    around: Surroundings,
) -> OrderPart:
    stable = around.stability
    assert stable.rows is not None
    # one who comes may take rows of others away (adds is false): then rows are not exchanged one for one,
    # even in one cell
    apart = around.key_columns is not None or not stable.adds
    change = Change(max(1, stable.rows), around.neighbours is Neighbours.REPLACE_ONE, apart)
    value = render.expression(argument)
    tests = [f"({value}) IS NOT NULL", *([] if condition is None else [render.expression(condition)])]
    where = "" if condition is None else f" where {describe(condition)}"
    return OrderPart(
        columns=columns,
        sql=(),
        # as of any histogram: a row counts in one cell of keys and value
        sensitivity=around.bound(
            1, 1, max(2, grid.points), f"values clamped into {grid.text}, counted; a row counts once"
        ),
        what=f"quantiles of {describe(argument)}{where}",
        sought=Sought(fractions, change, grid.points, argument.type.kind not in MOMENTS),
        grid=grid,
        value=value,
        where=" AND ".join(tests),
    )


def _fraction(aggregate: Aggregate) -> Fraction:
    """MIN and MAX are the first and the last quantile."""
    if aggregate.function in ("min", "max"):
        return Fraction(0 if aggregate.function == "min" else 1)
    fraction = aggregate.parameters[0]
    assert isinstance(fraction, Fraction)
    return fraction


def _grid(
    argument: Expression, condition: Expression | None, around: Surroundings, place: Place | None
) -> ValueGrid:
    facts = filtered(around.facts, condition)
    domain = domain_of(argument, facts)
    if not domain.bounded:
        domain = evaluated_domain(argument, facts, around.evaluate) or domain
    if not domain.bounded:
        raise Refused(
            "refused-unbounded",
            "a quantile is chosen from a known range: that of its argument is not known",
            around.ways_to_bound(argument, condition),
            place,
        )
    whole = argument.type.kind is Kind.INTEGER
    if whole and not domain.empty and max(abs(domain.low), abs(domain.high)) > LARGEST_VALUE:
        raise Refused(
            "refused-too-large",
            f"values past {float(LARGEST_VALUE):.1e} are not put in order",
            "ask about a smaller unit (x / 1000), or declare a narrower range",
            place,
        )
    return value_grid(argument.type, domain)


# -- the statements ------------------------------------------------------------------------------------------
def value_bins(
    release: Release | Choose, part: OrderPart, space: KeySpace, limits: Limits | None
) -> Bins | None:
    """The same in a shorter form, where that is faster: where a unit's rows need not be looked at
    together.
    """
    if limits is not None or part.sought.points < FEWEST:
        return None
    keys, tests = keys_and_tests(release, space)
    names = [render.identifier(key.name) for key in release.keys]
    return Bins(
        tuple(names),
        tuple(keys),
        tuple(tests),
        part.value,
        part.grid,
        f"{rows(release.input)} WHERE {part.where}",
    )


def value_sql(release: Release | Choose, part: OrderPart, space: KeySpace, limits: Limits | None) -> str:
    """Keys, a value's grid point and its rows: one row for every key among the declared ones and value that
    occur.
    """
    keys, tests = keys_and_tests(release, space)
    names = [render.identifier(key.name) for key in release.keys]
    source = rows(release.input, unit=limits is not None)
    by = ", ".join(str(index + 1) for index in range(len(keys) + 1 + (limits is not None)))
    shown = ", ".join(
        [
            *([render.UNIT] if limits is not None else []),
            *keys,
            f"{part.grid.place(part.value)} AS {VALUE_COLUMN}",
        ]
    )
    cells = f"SELECT {shown}, count(*) AS {ROWS_COLUMN} FROM {source} WHERE {part.where} GROUP BY {by}"
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    if limits is None:
        # keys nobody declared are left out after grouping, as elsewhere
        return f"SELECT * FROM ({cells} OFFSET 0) AS privsql_cells{where}" if tests else cells
    return _bounded(
        names, f"SELECT * FROM ({cells}) AS privsql_cells{where}", *limits_on_keys(release, space, limits)
    )


def _bounded(names: Sequence[str], cells: str, limits: Limits, ranked: bool) -> str:
    """At most so many keys of a unit, those with the smallest hash of unit and key; in each at most so many
    rows, evenly spaced in the order of their values: chosen by that unit's own rows alone.
    """
    steps, last = [f"privsql_units AS ({cells})"], "privsql_units"
    if ranked:
        rank = key_rank(names, "dense_rank")
        steps.append(f"privsql_kept AS (SELECT * FROM {last} QUALIFY {rank} <= {limits.max_groups})")
        last = "privsql_kept"
    own = [render.UNIT, *names]
    over = f"sum({ROWS_COLUMN}) OVER (PARTITION BY {', '.join(own)}"
    sums = {
        "privsql_all": f"{over})",
        "privsql_upto": f"{over} ORDER BY {VALUE_COLUMN} ASC NULLS LAST ROWS UNBOUNDED PRECEDING)",
    }
    placed = ", ".join(f"TRY_CAST({total} AS BIGINT) AS {name}" for name, total in sums.items())
    steps.append(f"privsql_placed AS (SELECT *, {placed} FROM {last})")
    ends = ("privsql_upto", f"(privsql_upto - {ROWS_COLUMN})")
    after, before = (kept_up_to(end, "privsql_all", limits.max_rows, own) for end in ends)
    steps.append(
        f"privsql_chosen AS (SELECT * REPLACE ({after} - {before} AS {ROWS_COLUMN}) FROM privsql_placed)"
    )
    total = f"TRY_CAST(sum({ROWS_COLUMN}) AS BIGINT) AS {ROWS_COLUMN}"
    columns = ", ".join([*names, VALUE_COLUMN])
    by = ", ".join(str(index + 1) for index in range(len(names) + 1))
    return f"WITH {', '.join(steps)} SELECT {columns}, {total} FROM privsql_chosen WHERE {ROWS_COLUMN} > 0 GROUP BY {by}"
