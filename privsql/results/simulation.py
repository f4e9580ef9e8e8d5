"""The answers of releases and the SQL above them go in; simulated noise around the released numbers, and the
intervals that follow from it, come out.

A smooth function of released numbers moves with their noise as it would have moved had the exact numbers been
those released, up to the curvature of the function. So the interval is the released value less the quantiles
of what simulated noise adds to it: exact for linear functions, approximate for others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from privsql.noise.gaussian_sampler import rounded_gaussian
from privsql.noise.randomness import Randomness, SystemRandomness
from privsql.noise.samplers import discrete_laplace
from privsql.planning.plan import Plan
from privsql.planning.precision.noise_of_rows import alike_rows
from privsql.privacy.accuracy import GaussianLaw, LaplaceLaw
from privsql.privacy.weighted_sums import Noise, variance
from privsql.results.answer import Answer
from privsql.results.finish import finish
from privsql.tables import Integers, NoisyTable
from privsql.types import Kind

Floats = npt.NDArray[np.float64]
Finish = Callable[..., list[Any]]

DRAWS = 399  # one less than a round number: the quantiles are order statistics
_MOST_SKEWED = 3.0  # beyond this ratio of its two sides, a simulated interval is not shown
_GREATEST_RATE = 50.0  # beyond it the noise is 0
_STEPS = 1_000_000  # of a variance that is known as a float


@dataclass(frozen=True)
class Ends:
    """The two ends of an interval, row by row; NaN where there is none."""

    low: Floats
    high: Floats


def simulate(answer: Answer, finished: Finish, draws: int = DRAWS) -> list[Sequence[Any]]:
    """The arrays of an answer with simulated noise added to what was released, as often as wanted."""
    source = SystemRandomness()
    cells = len(answer.noisy.cells)
    noise = {
        name: _drawn(source, each, (draws, cells)) for name, each in _noise_of(answer.plan, cells).items()
    }
    shown = replace(answer.plan, post_processing=replace(answer.plan.post_processing, show_all=True))
    found = []
    for draw in range(draws):
        columns = {
            name: values + noise[name][draw] if name in noise else values
            for name, values in answer.noisy.noisy_columns.items()
        }
        again = finish(shown, NoisyTable(answer.noisy.cells, columns, answer.noisy.keys), finished)
        found.append(_in_order(again, answer))
    return found


def _in_order(again: Answer, answer: Answer) -> Sequence[Any]:
    """The rows in the order of the answer, whichever order their noise gives them."""
    if np.array_equal(again.cells, answer.cells):
        return again.arrays
    places = {int(cell): place for place, cell in enumerate(again.cells)}
    order = [places[int(cell)] for cell in answer.cells]
    return [array[order] for array in again.arrays]


def _noise_of(plan: Plan, cells: int) -> dict[str, list[tuple[Integers | slice, Noise]]]:
    """The noise of each noisy column, for groups of its rows."""
    found: dict[str, list[tuple[Integers | slice, Noise]]] = {}
    for kind in alike_rows(plan):
        for name, noise in kind.noise.items():
            rows: Integers | slice = slice(0, cells) if kind.rows is None else kind.rows
            found.setdefault(name, []).append((rows, noise))
    return found


def _drawn(
    source: Randomness, noise: Sequence[tuple[Integers | slice, Noise]], shape: tuple[int, int]
) -> Integers:
    drawn = np.zeros(shape, dtype=np.int64)
    for rows, each in noise:
        part = drawn[:, rows]
        drawn[:, rows] = _of_law(source, each, part.size).reshape(part.shape)
    return drawn


def _of_law(source: Randomness, noise: Noise, size: int) -> Integers:
    """Draws of one law; of a sum of noises, of a Gaussian of its variance."""
    match noise:
        case LaplaceLaw(rate=rate):
            return discrete_laplace(Fraction(min(rate, _GREATEST_RATE)), size, source)
        case GaussianLaw():
            return rounded_gaussian(Fraction(noise.variance), size, source)
        case _:
            whole = Fraction(variance(noise)).limit_denominator(_STEPS)
            return rounded_gaussian(whole, size, source) if whole else np.zeros(size, dtype=np.int64)


def simulated_ends(value: Floats, draws: Floats, level: float) -> Ends:
    """The interval of each row from what simulated noise adds to it; NaN where a draw has no value, or where
    the noise pulls much further to one side than to the other, or for a level that needs more draws.
    """
    added = np.sort(draws - value, axis=0)
    rank = round((len(draws) + 1) * (1.0 - level) / 2.0) - 1
    if rank < 0:  # even the extremes of the draws are not so sure
        nothing = np.full(value.shape, np.nan)
        return Ends(nothing, nothing)
    below, above = added[rank], added[len(draws) - 1 - rank]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.abs(below) / np.abs(above)
    usable = np.isfinite(draws).all(axis=0) & np.isfinite(value)
    skewed = (ratio > _MOST_SKEWED) | (ratio < 1.0 / _MOST_SKEWED)
    usable &= ~skewed | (below == above)
    return Ends(np.where(usable, value - above, np.nan), np.where(usable, value - below, np.nan))


def as_floats(array: Any) -> Floats:
    """A column of numbers, with NaN for NULL."""
    return np.ma.filled(np.ma.asarray(array).astype(np.float64), np.nan)


def is_number(array: Any) -> bool:
    """Whether a column of a result has numbers that an interval can be of."""
    return np.ma.asarray(array).dtype.kind in "iuf"


def tables_with(answer: Answer, arrays: Sequence[Any]) -> Mapping[str, tuple[Any, Any]]:
    """An answer as a table of the SQL above, with other values in its cells."""
    types = [each.expression.type for each in answer.plan.outputs]
    return dict(zip(answer.columns, zip(arrays, types, strict=True), strict=True))


def ends_of_cells(answer: Answer, level: float) -> tuple[list[Any], list[Any]]:
    """The columns of an answer with each released number at the lower and the upper end of its interval."""
    table = answer.intervals(level)
    low, high = [], []
    for name, array, output in zip(answer.columns, answer.arrays, answer.plan.outputs, strict=True):
        known = f"{name}_low" in table.columns and output.expression.type.kind in (Kind.INTEGER, Kind.DOUBLE)
        low.append(_end(table[f"{name}_low"], array) if known else array)
        high.append(_end(table[f"{name}_high"], array) if known else array)
    return low, high


def _end(values: Any, like: Any) -> Any:
    """An end of an interval in the type of the column: integers stay integers, and have integer ends."""
    found = values.to_numpy(dtype=float, na_value=np.nan)
    kind = np.ma.asarray(like).dtype
    finite = np.isfinite(found)
    if kind.kind in "iu":
        return np.ma.array(np.where(finite, found, 0).astype(kind), mask=~finite)
    return np.ma.array(found, mask=~finite)


def rows_of(columns: Sequence[Any], size: int = 0) -> list[tuple[Any, ...]]:
    """The rows of some columns, as keys of a dict; without columns, `size` empty rows."""
    listed = [[_hashable(value) for value in np.ma.asarray(each).tolist()] for each in columns]
    return list(zip(*listed, strict=True)) if listed else [()] * size


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, (list, dict, np.ndarray)) else value
