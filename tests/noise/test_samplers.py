"""Digits against exact integer series; samplers against exact laws. A false alarm has a chance near 1e-9."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privsql.noise.digits import Probability, exponential_probability, logistic_probability
from privsql.noise.samplers import (
    GREATEST_NOISE,
    LEAST_RATE,
    _edges,
    _joined,
    bernoulli,
    discrete_laplace,
    geometric,
)
from tests.noise.statistics import FALSE_ALARM, LAST_WORD, SOURCE, Script, p_value_between, scaled_exponential

SIZE = 100_000
LAST_DIGITS = 2**64 - 1


# --- randomness ---


def test_words_are_32_bits_and_complete_across_chunks():
    words = SOURCE.integers((1 << 19) + 3)
    assert words.dtype == np.uint32 and words.size == (1 << 19) + 3
    assert SOURCE.integers(0).size == 0
    for position in range(32):  # every bit is fair, in the last chunk too
        ones = int(np.count_nonzero(words >> np.uint32(position) & np.uint32(1)))
        assert stats.binomtest(ones, words.size, 0.5).pvalue > FALSE_ALARM
    assert np.unique(words[-1000:]).size > 990


# --- digits ---


def digits_of(probability: Probability, count: int) -> int:
    number = 0
    for index in range(count):
        number = number << 32 | probability.digit(index)
    return number


EXPONENTS = [
    Fraction(1),
    Fraction(1, 2),
    Fraction(1, 3),
    Fraction(22, 7),
    Fraction(64),
    Fraction(300),
    Fraction(2001, 2),
    Fraction(1, 10**15),
    Fraction(1, 2**52),
    Fraction(3, 2**31),
    Fraction(123456789, 10**9 + 7),
]


@pytest.mark.parametrize("exponent", EXPONENTS, ids=str)
@pytest.mark.parametrize("count", [1, 2, 3, 9, 60])
def test_digits_are_those_of_a_series_with_more_precision(exponent, count):
    bits = 32 * count
    more = bits + 300  # enough for 1/(1+exp(2^-52)) = 1/2 - 2^-54 + 2^-160/3: a hundred digits 0 in a row
    q = scaled_exponential(-exponent, more)
    for probability, scaled in (
        (exponential_probability(exponent), q),
        (logistic_probability(exponent), (q << more) // ((1 << more) + q)),
    ):
        low, high = scaled - (1 << 40) >> more - bits, scaled + (1 << 40) >> more - bits
        if scaled >= 1 << 40:
            assert low == high  # the comparison itself is not in doubt
        assert digits_of(probability, count) == scaled >> more - bits


def test_known_digits():
    # exp(-1) = 0.5E2D58D8 B3BCDF1A BADEC782 9054F90D ... in base 16
    hexadecimal = [f"{exponential_probability(Fraction(1)).digit(index):08X}" for index in range(4)]
    assert hexadecimal == ["5E2D58D8", "B3BCDF1A", "BADEC782", "9054F90D"]


def test_a_fresh_probability_gives_the_same_digits_in_any_order():
    forwards = Probability("logistic", Fraction(5, 3))
    backwards = Probability("logistic", Fraction(5, 3))
    assert [forwards.digit(index) for index in range(20)] == [
        backwards.digit(index) for index in reversed(range(20))
    ][::-1]


@pytest.mark.parametrize("make", [exponential_probability, logistic_probability])
def test_tiny_probabilities_have_leading_zeros_at_once(make):
    probability = make(Fraction(10**6))
    assert [probability.digit(index) for index in (0, 1, 2, 1000, 45000)] == [0] * 5
    assert make(Fraction(10**30)).digit(0) == 0


def test_probabilities_next_to_one_and_to_a_half():
    exponent = Fraction(1, 10**1000)
    assert exponential_probability(exponent).digit(0) == LAST_WORD
    assert exponential_probability(exponent).digit(5) == LAST_WORD
    assert logistic_probability(exponent).digit(0) == 2**31 - 1
    assert logistic_probability(exponent).digit(1) == LAST_WORD


def test_the_first_digit_not_provably_zero_is_computed():
    # exp(-22.18) is just above 2^-32 and exp(-22.19) just below; 0.694 * 32 = 22.208 proves only the rest.
    assert exponential_probability(Fraction(2218, 100)).digit(0) == 1
    assert exponential_probability(Fraction(2219, 100)).digit(0) == 0
    assert exponential_probability(Fraction(22209, 1000)).digit(1) > 0


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(-1)])
def test_probabilities_need_a_positive_exponent(exponent):
    with pytest.raises(ValueError):
        exponential_probability(exponent)
    with pytest.raises(ValueError):
        logistic_probability(exponent)


def test_digits_are_counted_from_zero():
    with pytest.raises(IndexError):
        exponential_probability(Fraction(1)).digit(-1)


# --- bernoulli ---


def test_bernoulli_compares_digit_by_digit():
    probability = exponential_probability(Fraction(1))
    first, second, third = (probability.digit(index) for index in range(3))
    source = Script(
        [first - 1, first, 0, first, LAST_WORD, first, first + 1],  # three ties: places 1, 3 and 5
        [second + 1, second, second - 1],  # one tie: place 3
        [third],  # and again
        [probability.digit(3) - 1],
    )
    outcomes = bernoulli(probability, 7, source)
    assert outcomes.tolist() == [True, False, True, True, False, True, False]
    assert source.answers == []


def test_bernoulli_without_ties_draws_one_word_each():
    probability = exponential_probability(Fraction(1))
    source = Script([5, LAST_WORD])
    assert bernoulli(probability, 2, source).tolist() == [True, False]


def test_bernoulli_of_a_tiny_probability_needs_every_leading_word_to_be_zero():
    probability = exponential_probability(Fraction(64))  # two digits 0, the third not
    third = probability.digit(2)
    assert (probability.digit(0), probability.digit(1)) == (0, 0) and third > 0
    source = Script([0, 0, 1, 0], [0, 1, 0], [third - 1, third + 1])
    assert bernoulli(probability, 4, source).tolist() == [True, False, False, False]


@pytest.mark.parametrize("exponent", [Fraction(1, 1000), Fraction(1), Fraction(6)], ids=str)
def test_bernoulli_frequencies(exponent):
    for probability, expected in (
        (exponential_probability(exponent), math.exp(-exponent)),
        (logistic_probability(exponent), 1 / (1 + math.exp(exponent))),
    ):
        successes = int(bernoulli(probability, SIZE, SOURCE).sum())
        assert stats.binomtest(successes, SIZE, expected).pvalue > FALSE_ALARM


# --- geometric, discrete Laplace: structure, exactly ---

STRUCTURE = [Fraction(1, 3), Fraction(5, 2), Fraction(50), Fraction(1, 7), Fraction(1, 1000), LEAST_RATE]
BITS = 320


def edge(rate: Fraction, shift: int, signed: bool, place: int) -> Fraction:
    """By the definition of the law, from a series that shares no code with the sampler; right to some 2^-500."""

    def power(exponent: Fraction) -> Fraction:
        return Fraction(scaled_exponential(-exponent, 560), 2**560)

    step, positive = rate * 2**shift, 1 / (1 + power(rate))
    if not signed:
        return 1 - power(step * place) if place > 0 else Fraction(0)
    return 1 - positive * power(step * place) if place > 0 else (1 - positive) * power(step * -place)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("rate", STRUCTURE, ids=str)
def test_edges_are_where_the_law_puts_them(rate, signed):
    edges = _edges(rate, signed)
    assert edges.shift == 0 or Fraction(1, 4) <= rate * 2**edges.shift < Fraction(1, 2)
    reach = (edges.first_digits.size if not signed else edges.first_digits.size // 2) + 1
    real = 0
    for index, digits in enumerate(edges.first_digits.tolist()):
        place = edges.before + 1 + index
        if place > reach or (real and digits == LAST_DIGITS):
            assert digits == LAST_DIGITS  # what the table is filled up with
            continue
        true = edge(rate, edges.shift, signed, place)
        assert digits == int(true * 2**64)
        low, high = edges.interval(place, BITS)
        assert (
            Fraction(low, 2**BITS) - Fraction(1, 2**500)
            <= true
            <= Fraction(high, 2**BITS) + Fraction(1, 2**500)
        )
        assert high - low < 2**20
        real += 1
    assert real >= 1 and edges.first_digits[-1] == LAST_DIGITS
    assert not signed or edges.first_digits[0] == 0


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(5, 2), Fraction(50), Fraction(1, 7)], ids=str)
def test_edges_and_accepted_proposals_together_are_the_law(rate):
    """P(X = x) = P(place) exp(-rate low) / sum over low, and that is tanh(rate/2) exp(-rate |x|)."""
    q = as_fraction(exponential_probability(rate))
    for signed in (False, True):
        edges = _edges(rate, signed)
        size = 2**edges.shift
        weights = [q**low for low in range(size)]
        for value in [*range(-20 if signed else 0, 20), size * 9 + 1]:
            magnitude = value if value >= 0 else -1 - value
            place, low = magnitude >> edges.shift, magnitude % size
            place = place if value >= 0 else -1 - place
            after, before = (Fraction(edges.interval(each, 320)[0], 2**320) for each in (place + 1, place))
            chance = (after - before) * weights[low] / sum(weights)
            law = (1 - q) / (1 + q) * q ** abs(value) if signed else (1 - q) * q**value
            assert abs(chance - law) < Fraction(1, 2**240)


def as_fraction(probability: Probability) -> Fraction:
    return Fraction(digits_of(probability, 8), 2**256)


def halves(digits: int) -> list[int]:
    """64 binary digits, as the two words they are drawn as."""
    return [digits & LAST_WORD, digits >> 32]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(30), Fraction(7, 3)], ids=str)
def test_a_number_just_above_and_below_each_edge_has_its_place(rate, signed):
    edges = _edges(rate, signed)
    sampler = discrete_laplace if signed else geometric
    apart = [
        (edges.before + 1 + index, digits)
        for index, digits in enumerate(edges.first_digits.tolist())
        if 2**16 < digits < 2**64 - 2**16  # nearer to the ends edges are closer to each other
    ]
    words = [each for _, digits in apart for each in halves(digits - 1) + halves(digits + 1)]
    expected = [value for place, _ in apart for value in (place - 1, place)]
    assert len(apart) >= 1 and sampler(rate, 2 * len(apart), Script(words)).tolist() == expected


@pytest.mark.parametrize("place", [-3, -1, 0, 1, 4])
def test_ties_with_an_edge_are_decided_by_further_digits(place):
    rate = Fraction(1, 2)
    edges = _edges(rate, True)
    digits, more = (int(edge(rate, 0, True, place) * 2**bits) for bits in (64, 128))
    third, fourth = more >> 32 & LAST_WORD, more & LAST_WORD
    assert digits == edges.first_digits[place - edges.before - 1] and 0 < third < LAST_WORD and fourth > 0
    for further, expected in (
        ([[third - 1]], place - 1),
        ([[third + 1]], place),
        ([[third], [fourth - 1]], place - 1),
        ([[third], [fourth + 1]], place),
    ):
        source = Script(halves(digits), *further)
        assert discrete_laplace(rate, 1, source).tolist() == [expected]
        assert source.answers == []


def test_beyond_the_table_places_are_counted_on():
    """64 digits 0, or 1, are nearer to the end than all edges in the table: what follows decides."""
    rate = Fraction(1)
    for place in (44, 60, 100):
        middle = (edge(rate, 0, True, place) + edge(rate, 0, True, place + 1)) / 2
        words = [int(middle * 2**bits) & LAST_WORD for bits in range(96, 64 + 32 * 12, 32)]
        assert int(middle * 2**64) == LAST_DIGITS
        source = Script(halves(LAST_DIGITS), *([each] for each in words))
        assert discrete_laplace(rate, 1, source).tolist() == [place]
        mirrored = Script(halves(0), *([LAST_WORD - each] for each in words))
        assert discrete_laplace(rate, 1, mirrored).tolist() == [-place]


def test_proposals_are_accepted_with_their_probability():
    rate = Fraction(1, 8)  # shift 1, and chances 1 and exp(-1/8)
    digits = [exponential_probability(rate).digit(index) for index in range(3)]
    zero_place = halves(1 << 63)  # 1/2 is the middle of place 0, signed or not ... and of low 0 or 1
    assert _edges(rate, True).shift == 1
    low_1, low_0 = [1 << 31], [0]
    for script, expected in (
        (([low_0[0]], [LAST_WORD]), 0),  # chance 1: accepted by any word
        ((low_1, [digits[0] - 1]), 1),
        ((low_1, [digits[0] + 1], low_0, [7]), 0),  # rejected, and proposed again
        ((low_1, [digits[0]], [digits[1] - 1]), 1),  # decided by a further word
        ((low_1, [digits[0]], [digits[1] + 1], low_0, [7]), 0),
    ):
        source = Script(*script, zero_place)
        found = discrete_laplace(rate, 1, source).tolist()
        assert source.answers == []
        assert found in ([expected], [-1 - expected])


@pytest.mark.parametrize(
    ("rate", "most"), [(Fraction(1), 2.0), (Fraction(1, 2**20), 4.6), (LEAST_RATE, 5.9)], ids=str
)
def test_few_words_are_drawn(rate, most):
    """Two for the place, and where there is a lower part two or three a proposal, of which most are accepted."""
    drawn = Counting()
    discrete_laplace(rate, SIZE, drawn)
    assert drawn.words <= most * SIZE


class Counting:
    """Counts the words."""

    words = 0

    def integers(self, count):
        self.words += count
        return SOURCE.integers(count)


@pytest.mark.parametrize("shift", [0, 7, 37, 58])
def test_joining_clamps_like_python_integers(shift):
    lows = [0, (1 << shift) // 2, (1 << shift) - 1]
    edge_place = GREATEST_NOISE >> shift
    places = [0, 1, edge_place - 1, edge_place, edge_place + 1, edge_place + 2, 2**62]
    for low in lows:
        for place in [*places, *(-1 - place for place in places)]:
            joined = _joined(np.array([low]), np.array([place]), shift)
            whole = low + (place << shift) if place >= 0 else -1 - (low + (-1 - place << shift))
            expected = max(-GREATEST_NOISE, min(GREATEST_NOISE, whole))
            assert joined.dtype == np.int64 and joined.tolist() == [expected]


@pytest.mark.parametrize("sampler", [geometric, discrete_laplace])
@pytest.mark.parametrize("rate", [Fraction(0), Fraction(-1), LEAST_RATE * Fraction(999, 1000)], ids=str)
def test_rates_without_noise_or_beyond_64_bits_are_refused(sampler, rate):
    with pytest.raises(ValueError):
        sampler(rate, 1, SOURCE)


@pytest.mark.parametrize("sampler", [geometric, discrete_laplace])
def test_edges_of_size_and_rate(sampler):
    assert sampler(Fraction(1), 0, SOURCE).size == 0
    noise = sampler(LEAST_RATE, 1000, SOURCE)
    assert noise.dtype == np.int64
    assert 2**50 < np.abs(noise).mean() < 2**54
    assert not sampler(Fraction(10**6), 1000, SOURCE).any()


# --- geometric, discrete Laplace: frequencies ---


def geometric_at_least(rate, value):
    return math.exp(-rate * max(value, 0))


def laplace_at_least(rate, value):
    if value <= 0:
        return 1 - laplace_at_least(rate, 1 - value)
    return math.exp(-rate * value) / (1 + math.exp(-rate))


def chi_square(sample, rate, at_least):
    """p-value of the sample under the law at that rate, over cells that expect 100 values or more each."""
    least = min(0.04, 0.2 * at_least(rate, 1))
    widest = math.ceil(40 / rate)
    step = max(1, math.ceil(0.05 / rate))
    edges = []
    left = 1.0
    value = -widest if at_least(rate, -1) != 1.0 else 1
    while value <= widest:
        right = at_least(rate, value)
        if left - right >= least and right >= least:
            edges.append(value)
            left = right
        value += step
    return p_value_between(sample, edges, [at_least(rate, edge) for edge in edges], 100)


LAWS = [(geometric, geometric_at_least), (discrete_laplace, laplace_at_least)]
RATES = [Fraction(6), Fraction(7, 3), Fraction(1, 2), Fraction(1, 100), Fraction(1, 2**31), LEAST_RATE * 2]


@pytest.mark.parametrize(("sampler", "at_least"), LAWS, ids=["geometric", "discrete_laplace"])
@pytest.mark.parametrize("rate", RATES, ids=str)
def test_the_right_rate_passes_and_others_fail(sampler, at_least, rate):
    assert chi_square(sampler(rate, SIZE, SOURCE), float(rate), at_least) > FALSE_ALARM
    for wrong in (Fraction(7, 10), Fraction(13, 10)):
        assert chi_square(sampler(rate * wrong, SIZE, SOURCE), float(rate), at_least) < FALSE_ALARM


def test_the_chi_square_test_detects_other_laws():
    rate = Fraction(1, 2)
    sample = np.abs(discrete_laplace(rate, SIZE, SOURCE))  # 0 is too rare
    assert chi_square(sample, float(rate), geometric_at_least) < FALSE_ALARM


@pytest.mark.parametrize("rate", [Fraction(1, 2**31), Fraction(1, 2)], ids=str)
def test_mean_and_variance(rate):
    # 8 standard errors, since the squares have tails heavier than normal. Kurtosis: 9 and 6 in the limit of
    # small rates, and a little more at 1/2, so 10 serves for both.
    q = math.exp(-rate)
    lost = -math.expm1(-rate)
    for sample, mean, variance in (
        (geometric(rate, SIZE, SOURCE), q / lost, q / lost**2),
        (discrete_laplace(rate, SIZE, SOURCE), 0.0, 2 * q / lost**2),
    ):
        values = sample.astype(np.float64)
        assert abs(values.mean() - mean) < 8 * math.sqrt(variance / SIZE)
        assert abs(values.var() / variance - 1) < 8 * math.sqrt(9 / SIZE)


def test_neighbouring_draws_are_independent():
    sample = discrete_laplace(Fraction(1, 2), SIZE, SOURCE)
    positive, zero = sample > 0, sample == 0
    pairs = np.bincount(3 * (positive + 2 * zero)[:-1:2] + (positive + 2 * zero)[1::2], minlength=9)
    assert stats.chi2_contingency(pairs.reshape(3, 3)).pvalue > FALSE_ALARM
    low_digits = geometric(Fraction(1, 2**31), SIZE, SOURCE) & 3  # lowest binary digits: fair and independent
    assert stats.chisquare(np.bincount(low_digits, minlength=4)).pvalue > FALSE_ALARM
