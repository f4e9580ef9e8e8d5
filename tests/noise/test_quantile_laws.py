"""Quantiles against their laws, computed from the definition, and those against the privacy bound over all small neighbours."""

# ruff: noqa: E501 -- tables read better in one line each
import itertools
import math
import time
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats

from privsql.noise.histograms import Histograms, histograms
from privsql.noise.quantile_sampler import quantiles
from privsql.noise.runs import Runs, _falling, _happens, _Sum, draw, uniform_below
from privsql.privacy.quantile_search import Search, search
from privsql.privacy.quantile_steps import Change, Step, fraction_of, log_weight
from tests.noise.statistics import FALSE_ALARM, LAST_WORD, SOURCE, Buffered, Script, p_value

HALF, UNDETERMINED = Fraction(1, 2), -1
COMES, REPLACED, KEYED = Change(1, False, False), Change(1, True, False), Change(1, True, True)


def sought(*fractions, margins=None, change=COMES, loss=Fraction(1), points=5, shift=2):
    """A search on a small grid; `margins` are written over its own, and nothing leans."""
    found = search([fraction_of(Fraction(q)) for q in fractions], change, loss, points, leans=margins is None)
    levels = found.levels
    if margins is not None:
        levels = tuple(tuple(replace(step, margin=margins[step.place]) for step in level) for level in levels)
    return Search(levels, found.change, found.rate, points, shift)


# --- the law, from the definition ---


def mass_below(values, point, fine):
    """A row at x has 1/fine of its mass at each of the fine points of x."""
    return sum(Fraction(min(max(point - x * fine, 0), fine), fine) for x in values)


def weights_of(distances, rate, halvings):
    weights = [
        math.exp(-float(rate * each)) / 2**half for each, half in zip(distances, halvings, strict=True)
    ]
    return [each / sum(weights) for each in weights]


def zone_of(value, points, step):
    """How many zones a value is away from the one where weights are greatest; 0 everywhere where nothing leans."""
    starts = step.zones(points)[1:]
    return sum(1 for start in starts if (value >= start if step.lean > 0 else value < start))


@cache
def step_law(values, step, low, high, rate, points, shift):
    """P(point of the finer grid, or of the grid where nothing is parted) between the cuts low and high."""
    fine = 1 << shift
    start, end = mass_below(values, low, fine), mass_below(values, high, fine)
    target = start + step.fraction * (end - start)
    if step.margin:
        kept = max if step.fraction < HALF else min
        target = kept(target, Fraction(step.margin if step.fraction < HALF else len(values) - step.margin))
    if step.parts:
        candidates = range(low, min(high, points * fine - 1) + 1)
        distances = [abs(mass_below(values, point, fine) - target) for point in candidates]
    else:
        candidates = range(low >> shift, min(high >> shift, points - 1) + 1)
        ends = [(sum(x < v for x in values), sum(x <= v for x in values)) for v in candidates]
        distances = [max(0, below - target, target - up_to) for below, up_to in ends]
    halvings = [zone_of(v, points, step) for v in candidates]
    if step.root:  # a candidate more, 19 times as heavy as all points together or a little heavier: there are too few rows
        candidates = [*candidates, UNDETERMINED]
        distances.append(
            len(values) * (Fraction(1) if step.margin else max(step.fraction, 1 - step.fraction))
        )
        halvings.append(-math.ceil(math.log2(19 * sum(2.0**-half for half in halvings)) - 1e-12))
    return dict(zip(candidates, weights_of(distances, rate, halvings), strict=True))


def law(values, found):
    """P(what every step gives), steps in the order of their levels; before sorting, so that nothing is hidden."""
    outcomes = {(): 1.0}
    steps = [step for level in found.levels for step in level]
    for number, step in enumerate(steps):
        longer = {}
        for known, chance in outcomes.items():
            cuts = {steps[index].place: point for index, point in enumerate(known)}
            if UNDETERMINED in (cuts.get(step.below), cuts.get(step.above)):
                longer[(*known, UNDETERMINED)] = chance
                continue
            low = 0 if step.below is None else cuts[step.below]
            high = found.points << found.shift if step.above is None else cuts[step.above]
            for point, own in step_law(
                values, step, low, high, found.rate, found.points, found.shift
            ).items():
                longer[(*known, point)] = chance * own
        outcomes = longer
        assert number < len(steps)
    return outcomes


def shown_law(values, found):
    """P(grid points, in order), as they are released, with `UNDETERMINED` for whatever stands there."""
    steps = [step for level in found.levels for step in level]
    result = Counter()
    for outcome, chance in law(values, found).items():
        by_place = sorted(
            (s.place, p >> found.shift if s.parts else p) for s, p in zip(steps, outcome, strict=True)
        )
        rising = iter(sorted(point for _, point in by_place if point != UNDETERMINED))
        result[tuple(UNDETERMINED if point == UNDETERMINED else next(rising) for _, point in by_place)] += (
            chance
        )
    return result


def cells_of(*cells, points=5):
    rows = [(index, value, 1) for index, values in enumerate(cells) for value in values]
    columns = [np.array([row[i] for row in rows], dtype=np.int64) for i in range(3)]
    return histograms(len(cells), points, *columns)


# --- privacy, computed ---

MULTISETS = [
    values for size in range(5) for values in itertools.combinations_with_replacement(range(4), size)
]


def neighbours(values, change):
    """Multisets one row away."""
    smaller = [values[:i] + values[i + 1 :] for i in range(len(values))]
    if not change.replaced:
        return smaller
    return [tuple(sorted((*each, new))) for each in smaller for new in range(4)]


def loss_between(one, other):
    return max(abs(math.log(one[each] / other[each])) for each in one)


SEARCHES = {
    "median": ((HALF,), None),
    "quartile": ((Fraction(1, 4),), None),
    "ninth decile": ((Fraction(9, 10),), None),
    "min": ((0,), None),
    "max": ((1,), None),
    "min of dates": ((0,), [1]),
    "max of dates": ((1,), [2]),
    "near the top": ((Fraction(19, 20),), None),
    "near the bottom": ((Fraction(1, 20),), None),
    "two": ((Fraction(1, 3), Fraction(3, 4)), None),
    "min and median": ((0, HALF), None),
    "min and median of dates": ((0, HALF), [1, 0]),
    "quartiles": ((Fraction(1, 4), HALF, Fraction(3, 4)), None),
    "three uneven ones": ((Fraction(1, 10), Fraction(1, 5), Fraction(9, 10)), None),
    "quartiles and max": ((Fraction(1, 4), HALF, Fraction(3, 4), 1), None),
}


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("change", [COMES, REPLACED], ids=["add-remove", "replace-one"])
def test_quantiles_are_private_on_neighbours(name, change):
    fractions, margins = SEARCHES[name]
    found = sought(*fractions, margins=margins, change=change, points=4, shift=1)
    assert found.loss == 1
    sets = MULTISETS if len(fractions) < 3 else [each for each in MULTISETS if len(each) < 4]
    laws = {values: law(values, found) for values in sets}
    worst = max(loss_between(laws[a], laws[b]) for a in sets for b in neighbours(a, change) if b in laws)
    assert worst <= 1 + 1e-9
    assert worst > 0.35  # on so few points; it nears 1 on more: the bound is not idle


@pytest.mark.parametrize("fraction", [HALF, Fraction(9, 10), 1, 0])
def test_a_person_who_moves_between_cells_is_protected(fraction):
    found = sought(fraction, change=KEYED, points=4)
    laws = {values: law(values, found) for values in MULTISETS}
    apart = max(loss_between(laws[a], laws[b]) for a in MULTISETS for b in neighbours(a, COMES))
    within = max(loss_between(laws[a], laws[b]) for a in MULTISETS for b in neighbours(a, REPLACED))
    assert 2 * apart <= 1 + 1e-9
    assert within <= 1 + 1e-9
    assert max(2 * apart, within) > 0.4


def test_a_person_of_many_rows_pays_for_each():
    one, three = sought(HALF), sought(HALF, change=Change(3, False, False))
    assert three.rate * 3 == one.rate
    assert three.loss == one.loss == 1


@pytest.mark.parametrize("fraction", [0, HALF, 1])
@pytest.mark.parametrize("replaced", [False, True], ids=["add-remove", "replace-one"])
def test_a_person_with_two_rows_is_protected(fraction, replaced):
    change = Change(2, replaced, False)
    found = sought(fraction, change=change, points=4)
    laws = {values: law(values, found) for values in MULTISETS}
    pairs = (
        (a, c)
        for a in MULTISETS
        for b in neighbours(a, change)
        for c in (b, *neighbours(b, change))
        if c in laws
    )
    worst = max(loss_between(laws[a], laws[b]) for a, b in pairs)
    assert 0.5 < worst <= 1 + 1e-9


@pytest.mark.parametrize("values", [(), (1, 1, 1, 2), (0, 3, 3)])
def test_a_row_far_away_counts_no_more_than_one_nearby(values):
    found = sought(HALF, points=4)
    laws = [law(tuple(sorted((*values, x))), found) for x in range(4)]
    assert max(loss_between(law(values, found), each) for each in laws) <= 1 + 1e-9


# --- the prices ---


def test_spans_match_hand_computed_values():
    assert sought(HALF).rate == 1  # moves by 1/2 as a row comes, twice
    assert sought(HALF, change=REPLACED).rate == HALF
    assert sought(HALF, change=KEYED).rate == HALF
    assert sought(Fraction(1, 4)).rate == Fraction(2, 3)
    assert sought(Fraction(1, 4), change=KEYED).rate == Fraction(1, 3)
    assert sought(1).rate == 1  # one row moves all scores the same way
    assert sought(1, change=REPLACED).rate == 1
    assert sought(1, change=KEYED).rate == HALF
    assert sought(1, margins=[3]).rate == HALF
    assert sought(1, margins=[3], change=REPLACED).rate == HALF
    assert sought(1, margins=[3], change=KEYED).rate == Fraction(1, 4)
    assert sought(Fraction(99, 100)).rate == Fraction(50, 99)
    quartiles = [Fraction(1, 4), HALF, Fraction(3, 4)]
    assert [len(level) for level in sought(*quartiles).levels] == [1, 2]
    assert sought(*quartiles).rate == HALF  # two levels of 1/2; each by itself: 1/4
    assert sought(*quartiles, change=REPLACED).rate == Fraction(1, 4)  # each by itself: 1/6
    assert [len(level) for level in sought(Fraction(1, 4), Fraction(3, 4)).levels] == [1, 1]
    uneven = sought(Fraction(1, 10), Fraction(1, 5), Fraction(9, 10), change=REPLACED)
    assert uneven.rate == 1 / (
        2 * (1 + HALF + Fraction(7, 8))
    )  # a row that leaves one side, at 1/2, and enters the other, at 7/8
    deciles = [Fraction(i, 10) for i in range(1, 10)]
    assert [len(level) for level in sought(*deciles).levels] == [1, 2, 4, 2]
    assert sought(*deciles).rate > 2.5 / (2 * sum(max(q, 1 - q) for q in deciles))
    mixed = sought(0, *quartiles, 1)
    assert [len(level) for level in mixed.levels] == [1, 2, 1, 1]
    hundredths = sought(*(Fraction(i, 100) for i in range(1, 100)))
    assert [len(level) for level in hundredths.levels] == [
        1,
        2,
        4,
        8,
        16,
        32,
        36,
    ]  # none leans: that would cost too much
    assert not any(step.lean for step in hundredths.steps)


def _law_of_max(rows, points, step, rate):
    """P(v) on a large grid."""
    n, up_to = rows.sum(), np.cumsum(np.concatenate([rows, np.zeros(points - len(rows), dtype=np.int64)]))
    target = n - step.margin
    away = np.maximum(0, np.maximum(np.concatenate([[0], up_to[:-1]]) - target, target - up_to))
    zone = np.searchsorted(step.zones(points), np.arange(points), side="right") - 1
    weights = np.exp(-rate * away) * 2.0**-zone
    return weights / weights.sum()


def test_a_maximum_is_near_the_data_in_a_wide_range():
    """Of rows from 0 to 999 in ranges up to a thousand times as wide."""
    rows = np.bincount(np.random.default_rng(1).integers(0, 1000, 5000))
    for points in (1000, 2000, 10**4, 10**5, 10**6):
        step = sought(1, points=points).steps[0]
        assert step == Step(0, Fraction(1), lean=1)
        chances = _law_of_max(rows, points, step, 1.0)
        first = max(1000, points // 128)  # within the first zone all points are alike
        assert chances[990 : first * 3 // 2].sum() > 0.85
        assert chances[first * 3 :].sum() < 0.01
        assert (
            points < 10**5 or _law_of_max(rows, points, replace(step, lean=0), 1.0)[first * 3 :].sum() > 0.95
        )
    few = np.bincount(np.random.default_rng(1).integers(0, 1000, 40), minlength=1000)
    assert (
        _law_of_max(few, 1000, sought(1, points=1000).steps[0], 1.0)[900:].sum() > 0.9
    )  # they outweigh what is far below
    dates = search([Fraction(1)], COMES, Fraction(1), 10**6, leans=False).steps[0]
    assert dates == Step(0, Fraction(1), margin=math.ceil((math.log(10**6) + 5) / 0.5))
    assert _law_of_max(rows, 10**6, dates, 0.5)[980:1000].sum() > 0.99
    assert sought(1, points=10**6, loss=Fraction(10)).steps[0] == Step(
        0, Fraction(1), margin=4
    )  # a few rows: surer than to lean
    assert [step.lean for step in sought(0, Fraction(1, 20), 1, loss=Fraction(50)).steps] == [0, -1, 0]


def test_a_minimum_is_near_the_data_in_a_range_from_0():
    """Of rows from 300 to 999 in ranges up to ten times as wide: below the rows points weigh the less the nearer they are to 0."""
    rows = np.bincount(np.random.default_rng(1).integers(300, 1000, 5000))
    for points in (1000, 2000, 10**4):
        step = sought(0, points=points).steps[0]
        assert step == Step(0, Fraction(0), lean=-1)
        below = np.concatenate([[0], np.cumsum(rows)[:-1], np.full(points - len(rows), rows.sum())])
        zones = np.array([zone_of(value, points, step) for value in range(points)])
        for halvings, least in ((zones, 0.8), (0 * zones, 0.0)):
            weights = np.exp(-1.0 * below) * 2.0**-halvings
            chances = weights / weights.sum()
            assert chances[310:].sum() < 0.01
            assert least < chances[200:310].sum() < (1 if least else 0.5)


def test_zones_are_a_part_of_all_before_them():
    extreme, near, plain = Step(0, Fraction(1), lean=1), Step(0, Fraction(1, 50), lean=-1), Step(0, HALF)
    assert extreme.zones(1) == plain.zones(100) == (0,)
    assert near.zones(20) == (*range(17), 18)
    starts = np.array(extreme.zones(2**20))
    assert (starts == near.zones(2**20)).all()
    assert (starts[:2] == [0, 2**13]).all()
    growth = np.diff(starts)[1:] / starts[1:-1]
    assert (growth <= 1 / 8).all()
    assert (growth > 1 / 8.1).all()
    for points, step in ((7, extreme), (300, near), (300, extreme), (5, plain)):
        weights = [2.0 ** -zone_of(value, points, step) for value in range(points)]
        assert math.isclose(log_weight(points, step), math.log(sum(weights) / min(weights)), rel_tol=1e-12)


def test_invalid_searches_are_refused():
    step = Step(0, HALF)
    with pytest.raises(ValueError):
        Search(((step,),), COMES, Fraction(0), 5)
    with pytest.raises(ValueError):
        Search(((step, Step(1, Fraction(1, 4))),), COMES, HALF, 5)  # both over all rows
    with pytest.raises(ValueError):
        Search(((step,), (Step(1, HALF, 0, 0, None),)), COMES, HALF, 5)  # the first does not part the rows
    with pytest.raises(ValueError):
        Search(((Step(0, HALF, parts=True),), (Step(1, HALF, 0, 0), Step(2, HALF, 0, 0))), COMES, HALF, 5)
    with pytest.raises(ValueError):
        Search(((step,), (step,)), COMES, HALF, 5)
    for wrong in ({"margin": 1}, {"margin": -1}, {"lean": 1, "parts": True}, {"lean": -1, "below": 1}):
        with pytest.raises(ValueError):
            Step(0, HALF, **wrong)
    with pytest.raises(ValueError):
        Step(0, Fraction(3, 2))
    with pytest.raises(ValueError):
        Step(0, Fraction(1, 10**7))
    with pytest.raises(ValueError):
        Change(0, False, False)


# --- the sampler against the law ---

DRAWS = 20_000
SAMPLES = [
    (0, 1, 1, 1, 4),
    (2, 2, 2, 2, 2, 2),
    (),
    (3,),
    (0, 0, 4, 4),
    (0,) * 4 + (1,) * 12 + (4,) * 4,
]  # few rows, and some


@pytest.mark.parametrize("name", SEARCHES)
def test_frequencies_follow_the_law(name):
    fractions, margins = SEARCHES[name]
    found = sought(*fractions, margins=margins, loss=Fraction(3))
    noisy = {values: _drawn(values, found) for values in SAMPLES}
    for values in SAMPLES:
        assert _agreement(noisy[values], shown_law(values, found)) > FALSE_ALARM
    # power: other ranks and rates would have been noticed
    other = Search(found.levels, found.change, found.rate * Fraction(7, 10), 5, 2)
    assert min(_agreement(noisy[values], shown_law(values, other)) for values in SAMPLES) < FALSE_ALARM


def _drawn(values, found, draws=DRAWS):
    """How often each answer was drawn."""
    exact = cells_of(values)
    many = Histograms(
        np.arange(draws + 1) * len(exact.values), np.tile(exact.values, draws), np.tile(exact.counts, draws)
    )
    return Counter(
        zip(
            *(np.maximum(each, UNDETERMINED).tolist() for each in quantiles(many, found, Buffered())),
            strict=True,
        )
    )


def _agreement(noisy, chances):
    """P-value of the draws against a law."""
    assert set(noisy) <= set(chances)
    draws = noisy.total()
    large = [each for each, chance in chances.items() if chance * draws >= 20]
    counts = [noisy[each] for each in large]
    rest, rest_chance = draws - sum(counts), 1 - sum(chances[each] for each in large)
    if rest_chance * draws >= 20:
        return p_value([*counts, rest], [*(chances[each] for each in large), rest_chance])
    given = np.array([chances[each] for each in large])
    return p_value(counts, given / given.sum()) if len(large) > 1 else 1.0


@pytest.mark.slow
def test_on_the_finest_grid_the_sampler_gives_the_law_of_its_limit():
    """Between shift 2 and shift 20 the law hardly changes, and its parts have another order of size."""
    values = (0, 1, 1, 1, 1, 1, 1, 2, 4)
    coarse = sought(Fraction(1, 4), HALF, Fraction(3, 4), loss=Fraction(2), shift=7)
    chances = shown_law(values, sought(Fraction(1, 4), HALF, Fraction(3, 4), loss=Fraction(2), shift=5))
    for found in (coarse, Search(coarse.levels, coarse.change, coarse.rate, 5, 20)):
        noisy = _drawn(values, found, draws=60_000)
        off = sum(abs(noisy[each] / 60_000 - chance) for each, chance in chances.items())
        assert off < 0.06  # 0.04 of it by chance alone


def _in_bins(values, found, bins, draws):
    """As many cells of these values, known by bins only; value by value on demand."""
    exact = cells_of(values, points=found.points)
    asked = []

    def whole():
        asked.append(1)
        return Histograms(
            np.arange(draws + 1) * len(exact.values),
            np.tile(exact.values, draws),
            np.tile(exact.counts, draws),
        )

    rows = [(start, sum(start <= x < start + width for x in values), width) for start, width in bins]
    starts, counts, widths = (np.array([row[i] for row in rows if row[1]], dtype=np.int64) for i in range(3))
    cells = np.repeat(np.arange(draws), len(starts))
    rough = histograms(
        draws,
        found.points,
        cells,
        np.tile(starts, draws),
        np.tile(counts, draws),
        np.tile(widths, draws),
        whole,
    )
    noisy = (np.maximum(each, UNDETERMINED).tolist() for each in quantiles(rough, found, Buffered()))
    return Counter(zip(*noisy, strict=True)), asked


@pytest.mark.parametrize("draws", [1000, pytest.param(8000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["median", "max", "min", "max of dates", "quartiles", "near the bottom"])
@pytest.mark.parametrize(
    "bins", [[(0, 2), (2, 1), (3, 2)], [(0, 3), (3, 2)], [(0, 1), (1, 1), (2, 1024)]], ids=str
)
def test_bins_do_not_change_the_law(name, bins, draws):
    """Bins that are near on purpose, at so small a rate that they are chosen often, and looked into."""
    fractions, margins = SEARCHES[name]
    found = sought(*fractions, margins=margins, loss=Fraction(3, 2))
    for values in [(0, 1, 1, 1, 4), (0, 0, 4, 4), (0, 0, 1, 1, 1, 1, 1, 1, 4, 4)]:
        noisy, asked = _in_bins(values, found, bins, draws)
        assert asked or len(values) > 5  # with more rows what is far away is chosen less often
        assert _agreement(noisy, shown_law(values, found)) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("extreme", [0, 1])
def test_one_bin_over_many_zones_does_not_change_the_law(extreme):
    """All but the outermost rows in one bin, as MIN and MAX have them, in which weights are halved from zone to zone."""
    points, draws = 600, 12_000
    found = sought(extreme, loss=Fraction(1, 3), points=points)
    (step,) = found.steps
    zones = np.array(step.zones(points))
    assert step.lean and len(zones) > 8
    values = (3, 40, 41, 200, 333, 420, 580)
    bins = [(3, 1), (4, 596)] if extreme == 0 else [(0, 580), (580, 1)]
    noisy, asked = _in_bins(values, found, bins, draws)
    assert asked
    chances, counts = np.zeros(len(zones)), np.zeros(len(zones))
    shown = shown_law(values, found)
    hidden, missed = shown.pop((UNDETERMINED,)), noisy.pop((UNDETERMINED,))
    assert p_value([missed, draws - missed], [hidden, 1 - hidden]) > FALSE_ALARM
    draws -= missed
    for (point,), chance in shown.items():
        chances[np.searchsorted(zones, point, side="right") - 1] += chance / (1 - hidden)
    for (point,), count in noisy.items():
        counts[np.searchsorted(zones, point, side="right") - 1] += count
    some = chances * draws >= 5
    merged = [np.append(each[some], each[~some].sum()) for each in (counts, chances)]
    kept = merged[1] > 0
    assert p_value(merged[0][kept], merged[1][kept]) > FALSE_ALARM
    flat = np.diff([*zones, points])  # power: weights that do not lean would have been noticed
    other = np.append(flat[some], flat[~some].sum())[kept] / points
    assert p_value(merged[0][kept], other) < FALSE_ALARM


def test_distant_bins_are_not_read_value_by_value():
    found = sought(HALF, loss=Fraction(2), points=5)
    noisy, asked = _in_bins((0,) * 500 + (2,) * 400 + (4,) * 500, found, [(0, 2), (2, 1), (3, 2)], 1000)
    assert not asked
    assert set(noisy) == {(2,)}


# --- cells, sizes, extremes ---


def test_cells_do_not_mix():
    found = sought(Fraction(1, 4), HALF, Fraction(3, 4), loss=Fraction(2000), points=100, shift=20)
    cells = [[10] * 50, [], [1] * 40 + [5] * 40 + [99] * 40, [0], [7] * 10 + [50] * 90]
    noisy = quantiles(cells_of(*cells, points=100), found, SOURCE)
    assert [each[0] for each in noisy] == [10, 10, 10]
    assert [each[2] for each in noisy] == [1, 5, 99]
    assert [each[4] for each in noisy] == [50, 50, 50]
    assert all(0 <= value < 100 for each in noisy for value in each[[0, 2, 3, 4]])
    assert all(-100 <= each[1] < 100 for each in noisy)


def test_ties_are_split_at_the_rank():
    """With nearly all rows at one value the others' quantiles are still theirs."""
    found = sought(Fraction(1, 100), HALF, Fraction(99, 100), loss=Fraction(500), points=1000, shift=20)
    values = [3] * 50 + [500] * 9900 + [900] * 50
    noisy = quantiles(cells_of(values, points=1000), found, SOURCE)
    assert [int(each[0]) for each in noisy] in (
        [3, 500, 900],
        [500, 500, 500],
        [3, 500, 500],
        [500, 500, 900],
    )
    wide = quantiles(cells_of([3] * 500 + [500] * 9000 + [900] * 500, points=1000), found, SOURCE)
    assert [int(each[0]) for each in wide] == [3, 500, 900]


def test_histograms_put_rows_in_order_and_add_up():
    columns = [np.array(each, dtype=np.int64) for each in ([1, 0, 1, 1], [3, 2, 0, 3], [5, 1, 2, 4])]
    exact = histograms(3, 5, *columns)
    assert exact.offsets.tolist() == [0, 1, 3, 3]
    assert exact.values.tolist() == [2, 0, 3]
    assert exact.counts.tolist() == [1, 2, 9]
    outside = histograms(2, 5, *[np.array(each, dtype=np.int64) for each in ([0, 1], [-3, 77], [1, 1])])
    assert outside.values.tolist() == [0, 4]
    assert outside.offsets.tolist() == [0, 1, 2]


def test_counts_of_any_size_do_not_overflow():
    exact = Histograms(np.array([0, 3]), np.array([0, 7, 2**20 - 1]), np.array([2**62, 2**61, 2**62]))
    found = sought(Fraction(1, 4), HALF, Fraction(3, 4), loss=Fraction(10**4), points=2**20, shift=20)
    noisy = quantiles(exact, found, SOURCE)
    assert [int(each[0]) for each in noisy] == [0, 7, 2**20 - 1]


def test_small_rates_and_margins_past_the_rows():
    found = sought(1, loss=Fraction(1, 10**6))
    assert -5 <= int(quantiles(cells_of((3, 3)), found, SOURCE)[0][0]) < 5
    strict = sought(1, margins=[1000], loss=Fraction(100))
    for _ in range(50):
        point = int(quantiles(cells_of((3, 3)), strict, SOURCE)[0][0])
        assert point < 0 or point in (
            0,
            1,
            2,
            3,
        )  # fewer rows than the margin: the low end, if it is determined


# --- too few rows ---

KINDS = [
    "median",
    "quartile",
    "near the top",
    "min",
    "max",
    "max of dates",
    "two",
    "quartiles",
    "quartiles and max",
]


def _undetermined(values, found, draws=DRAWS):
    """Draws of each quantile: what is undetermined, and the point that stands there."""
    exact = cells_of(values, points=found.points)
    many = Histograms(
        np.arange(draws + 1) * len(exact.values), np.tile(exact.values, draws), np.tile(exact.counts, draws)
    )
    noisy = np.stack(quantiles(many, found, Buffered()))
    return noisy < 0, np.where(noisy < 0, -1 - noisy, noisy)


@pytest.mark.parametrize("name", KINDS)
def test_a_cell_without_rows_is_undetermined(name):
    fractions, margins = SEARCHES[name]
    for points in (1, 5, 121, 10**6):
        found = sought(*fractions, margins=margins, points=points, shift=2)
        hidden, _ = _undetermined((), found, 3000)
        assert (hidden.mean(axis=1) > 0.93).all()  # 95% or more: five standard deviations
        for step in found.steps:
            if step.root:
                total = (
                    math.exp(log_weight(points, step))
                    / 2 ** (len(step.zones(points)) - 1)
                    * (4 if step.parts else 1)
                )
                assert 19 * total * (1 - 1e-9) <= 2 ** found.doublings(step) < 38 * total


@pytest.mark.parametrize("name", KINDS)
def test_enough_rows_make_a_cell_determined(name):
    """Whatever the values: all alike, in the middle, at an end, far apart."""
    fractions, margins = SEARCHES[name]
    found = sought(*fractions, margins=margins, points=5, shift=2, loss=Fraction(2))
    for level in (0.5, 0.95):
        for place in range(len(fractions)):
            rows, root = found.rows_needed(place, level), found._root(place)
            assert root.root
            bounds = []
            for values in (
                (0,) * rows,
                (2,) * rows,
                (4,) * rows,
                (0,) * (rows // 2) + (4,) * (rows - rows // 2),
            ):
                chances = step_law(values, root, 0, 5 << 2, found.rate, 5, 2)
                bounds.append(chances[UNDETERMINED])
                fewer = step_law(values[: rows // 3], root, 0, 5 << 2, found.rate, 5, 2)
                assert fewer[UNDETERMINED] > 1 - level  # and the bound is not idle
            assert max(bounds) <= 1 - level + 1e-12


def test_the_value_of_an_undetermined_quantile_is_independent_of_the_rows():
    """A point as of a cell without rows, whatever the rows are: their quantiles are drawn from none."""
    for fractions in ((HALF,), (1,), (Fraction(1, 4), HALF, Fraction(3, 4))):
        found = replace(sought(*fractions, points=40), rate=Fraction(1))  # at which four rows would show
        laws = []
        for values in ((), (7,) * 4, (33,) * 4):
            hidden, points = _undetermined(values, found)
            assert (points < 40).all()
            laws.append(
                [np.bincount(each[gone], minlength=40) for gone, each in zip(hidden, points, strict=True)]
            )
        for one, two in itertools.combinations(laws, 2):
            for counts, others in zip(one, two, strict=True):
                assert stats.chi2_contingency(np.stack([counts, others]) + 1).pvalue > FALSE_ALARM


def test_steps_below_an_undetermined_one_are_undetermined():
    found = sought(Fraction(1, 4), HALF, Fraction(3, 4), points=5)
    hidden, points = _undetermined((0, 1, 1, 2, 4, 4), found)
    assert 0.02 < hidden.mean() < 0.99
    assert (hidden == hidden[0]).all()
    assert (np.diff(points, axis=0) >= 0).all()
    apart = sought(0, 1, points=5)
    hidden, points = _undetermined((0, 1, 1, 2, 4, 4, 4, 4), apart)
    assert (hidden[0] != hidden[1]).mean() > 0.05  # each by itself
    both = hidden[0] == hidden[1]
    assert (points[0] <= points[1])[both].all()


@pytest.mark.slow
def test_many_values_and_cells_are_fast():
    values = np.arange(2**20, dtype=np.int64)
    one = Histograms(np.array([0, 2**20]), values, np.ones(2**20, dtype=np.int64))
    found = sought(Fraction(1, 4), HALF, Fraction(3, 4), points=2**20, shift=20)
    started = time.process_time()
    low, middle, high = (int(each[0]) for each in quantiles(one, found, SOURCE))
    assert abs(low - 2**18) < 2000 and abs(middle - 2**19) < 2000 and abs(high - 3 * 2**18) < 2000
    many = Histograms(np.arange(100_001) * 10, np.tile(np.arange(10) * 9, 100_000), np.full(10**6, 50))
    found = sought(HALF, points=100)
    assert abs(float(np.mean(quantiles(many, found, SOURCE)[0])) - 40.5) < 2
    assert time.process_time() - started < 20  # about 2 s; generous, for a busy machine


# --- runs ---


def test_runs_follow_their_weights_for_any_proposal():
    """Runs of slopes from nothing to steep, and a proposal of weight nearly 0."""
    base, slope, lengths = [0.5, 0.0, 3.0, 40.0, 1.0], [0.0, 1.25, 0.015625, 0.0, 2.0], [3, 4, 50, 7, 0]
    cells = 40_000

    def exact(run):
        return Fraction(base[run % 5]), Fraction(slope[run % 5])

    runs = Runs(
        np.arange(cells + 1) * 5, np.tile(base, cells), np.tile(slope, cells), np.tile(lengths, cells), exact
    )
    chosen, position = draw(runs, Buffered())
    noisy = Counter(zip((chosen % 5).tolist(), position.tolist(), strict=True))
    weights = {(r, j): math.exp(-base[r] - slope[r] * j) for r in range(5) for j in range(lengths[r])}
    total = sum(weights.values())
    likely = [each for each in weights if weights[each] / total * cells > 10]
    assert set(noisy) <= set(weights)
    kept = sum(noisy[each] for each in likely)
    given = np.array([weights[each] for each in likely])
    assert kept > 0.99 * cells
    assert p_value([noisy[each] for each in likely], given / given.sum()) > FALSE_ALARM
    skewed = given * np.where(np.arange(len(given)) % 2 == 0, 1.1, 0.9)
    assert p_value([noisy[each] for each in likely], skewed / skewed.sum()) < FALSE_ALARM


@pytest.mark.parametrize(
    ("slope", "length"), [(Fraction(1, 1000), 20), (Fraction(1), 20), (Fraction(1, 8), 13), (Fraction(30), 4)]
)
def test_falling_positions(slope, length):
    size = 50_000
    noisy = _falling(np.full(size, float(slope)), np.full(size, length), lambda row: slope, Buffered())
    chances = np.array([math.exp(-float(slope) * j) for j in range(length)])
    chances /= chances.sum()
    assert noisy.max() < length
    kept = chances * size > 10
    counts = np.bincount(noisy, minlength=length)[kept]
    assert kept.sum() < 2 or p_value(counts, chances[kept] / chances[kept].sum()) > FALSE_ALARM


def test_undecided_floats_are_decided_by_digits():
    half = _Sum(Fraction(0), Fraction(0), 1)
    assert _happens(2**31 - 1, half, HALF, Script())
    assert not _happens(
        2**31, half, HALF, Script([0])
    )  # 1/2 is not below 1/2; a tie of digits is broken by the next
    third = _Sum(Fraction(7, 2), Fraction(1, 3), 9)
    true = sum(math.exp(-3.5 - j / 3) for j in range(9))
    digit = int(true * 2**32)
    assert _happens(digit - 1, third, Fraction(1), Script())
    assert not _happens(digit + 1, third, Fraction(1), Script())
    assert _happens(digit, third, Fraction(1), Script([0]))
    assert not _happens(digit, third, Fraction(1), Script([LAST_WORD]))
    assert not _happens(0, _Sum(Fraction(10**6), Fraction(0), 5), Fraction(1), Script([0], [1]))


def test_rejected_proposals_are_redrawn():
    """Two runs of one point each, the second all but weightless; words are so chosen that it is proposed first."""
    runs = Runs(
        np.array([0, 2]),
        np.array([0.0, 5000.0]),
        np.zeros(2),
        np.array([1, 1]),
        lambda run: (Fraction(5000 * run), Fraction(0)),
    )
    first = int(np.floor(np.ldexp(np.exp(-1.0) * (1 + 2**-20), 61)) + 1)
    chosen, _ = draw(runs, Script([first >> 32, first % 2**32], [5], [0, 0], [0], [0, 0]))
    assert chosen.tolist() == [0]


def test_intervals_contain_their_sums():
    for base, slope, length in [
        (Fraction(1, 3), Fraction(1, 10**9), 2**20),
        (Fraction(5), Fraction(2), 3),
        (Fraction(0), Fraction(1, 7), 100),
    ]:
        low, high = _Sum(base, slope, length).interval(128)
        fall = float(slope)
        true = math.exp(-float(base)) * math.expm1(-fall * length) / math.expm1(-fall)
        assert low <= high
        assert float(low) == pytest.approx(true, rel=1e-9)
        assert float(high) == pytest.approx(true, rel=1e-9)


def test_uniform_below():
    bounds = np.array([1, 2, 3, 10, 2**40 + 1, 2**63], dtype=np.uint64)
    drawn = np.stack([uniform_below(bounds, SOURCE) for _ in range(300)])
    assert (drawn < bounds).all()
    small = uniform_below(np.full(60_000, 6, dtype=np.uint64), SOURCE)
    assert p_value(np.bincount(small.astype(np.int64), minlength=6), np.full(6, 1 / 6)) > FALSE_ALARM
