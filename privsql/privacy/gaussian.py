"""Epsilon, delta and a squared l2-sensitivity go in; the variance of discrete Gaussian noise comes out, or its tails.

Noise of variance v on every cell of an integer vector whose squared l2-sensitivity is s is rho-zCDP with
rho = s/(2v), in any number of dimensions (Canonne, Kamath, Steinke 2020, theorem 14). rho-zCDP is
(epsilon, delta)-private (the same, corollary 13) if for some order a > 1
    ln delta >= (a-1) (a rho - epsilon + ln(1 - 1/a)) - ln a.                                            (*)
Any a proves something; the best is guessed in floats, and what it proves is then worked out in fractions, rounded
to the safe side. So no float decides.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction

from privsql.privacy.bounds import exponential_bounds, logarithm_bounds, root_bounds

_VARIANCE_BITS = 12  # a variance is rounded up by less than one part in 2^11
_ORDER_RANGE = (-60.0, 60.0)  # of ln(a - 1)
_HALVINGS = 60
_PI_BELOW = Fraction(103993, 33102)  # 3.14159265301 < pi
_MILLS_STEPS = 40
_SUMMED = 1024
_SLACK = 1e-12  # for rounding in half_width, which informs but protects nobody


def zcdp(l2_squared: int, variance: Fraction) -> Fraction:
    """The rho of noise of this variance on integers of this squared l2-sensitivity."""
    if l2_squared < 0 or variance <= 0:
        raise ValueError("zCDP needs a squared sensitivity of at least 0 and a positive variance")
    return l2_squared / (2 * variance)


def greatest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A rho, next to the greatest by (*), such that rho-zCDP is (epsilon, delta)-private.

    (*) solved for rho: rho <= (epsilon - ln(1 - 1/a) + (ln delta + ln a)/(a-1)) / a. At the best a the derivative
    of (*) in a is zero, (2a-1) rho = epsilon - ln(1 - 1/a); put into (*), this leaves
    ln delta = -(a-1)^2 (epsilon - ln(1 - 1/a)) / (2a-1) - ln a, which falls as a grows.
    """
    _check(epsilon, delta)
    log_delta, _ = logarithm_bounds(delta)
    wanted, loss = float(log_delta), float(epsilon)
    low, high = _ORDER_RANGE
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        above = math.exp(middle)  # a - 1
        reached = -(above**2) * (loss + math.log1p(1.0 / above)) / (1.0 + 2.0 * above) - math.log1p(above)
        low, high = (middle, high) if reached > wanted else (low, middle)
    above_one = _short(math.exp(high))
    order = 1 + above_one
    log_order, _ = logarithm_bounds(order)
    inverse_log, _ = logarithm_bounds(order / above_one)  # -ln(1 - 1/a)
    rho = (epsilon + inverse_log + (log_delta + log_order) / above_one) / order
    if rho <= 0:
        raise ValueError(f"no zCDP is found for epsilon {epsilon} and delta {delta}: too extreme")
    return rho


def zcdp_delta(rho: Fraction, epsilon: Fraction) -> Fraction:
    """A delta, next to the least by (*), such that rho-zCDP is (epsilon, delta)-private; 0 for rho = 0."""
    if rho < 0 or epsilon <= 0:
        raise ValueError("needs rho of at least 0 and a positive epsilon")
    if rho == 0:
        return Fraction(0)
    loss, slope = float(epsilon), float(rho)
    low, high = _ORDER_RANGE
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        above = math.exp(middle)
        low, high = (middle, high) if (1.0 + 2.0 * above) * slope - math.log1p(1.0 / above) < loss else (low, middle)
    above_one = _short(math.exp(high))
    order = 1 + above_one
    log_order, _ = logarithm_bounds(order)
    inverse_log, _ = logarithm_bounds(order / above_one)
    _, delta = exponential_bounds(above_one * (order * rho - epsilon - inverse_log) - log_order)
    return min(Fraction(1), delta)


def least_variance(l2_squared: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The least variance by (*) that makes integers of this squared l2-sensitivity (epsilon, delta)-private.

    Rounded up to a multiple of a power of two, so that arithmetic stays cheap; never less than what is needed.
    """
    if l2_squared < 1:
        raise ValueError(f"the squared sensitivity must be at least 1, not {l2_squared}")
    return rounded_up(l2_squared / (2 * greatest_rho(epsilon, delta)))


def rounded_up(variance: Fraction) -> Fraction:
    """The next number that has twelve binary digits, or thirteen: greater by less than one part in 2^11."""
    size = variance.numerator.bit_length() - variance.denominator.bit_length()
    step = Fraction(2) ** (size - _VARIANCE_BITS)
    return math.ceil(variance / step) * step


def tail_above(variance: Fraction, bound: int) -> Fraction:
    """Never less than P(X > bound) for discrete Gaussian X of this variance, and close to it far out.

    f(x) = exp(-x^2/(2 variance)) is convex from sigma on, so for bound + 1/2 >= sigma f(x) is at most its mean over
    [x - 1/2, x + 1/2], and the sum of f beyond `bound` at most its integral from bound + 1/2. The sum of f over all
    integers is at least its integral (Poisson's summation formula). So P(X > bound) <= P(N >= z) for N a standard
    normal, z = (bound + 1/2)/sigma. And P(N >= z) = exp(-z^2/2)/sqrt(2 pi) / (z + 1/(z + 2/(z + 3/(z + ...)))), where
    stopping the fraction before an odd number only makes the result greater. With w = z^2, B_i = z (z + i/(z + ...)) is
    w + i w/B_(i+1), and P(N >= z) = exp(-w/2)/sqrt(2 pi w) w/B_1.
    """
    if bound < 0:
        return Fraction(1)
    least_square = Fraction((2 * bound + 1) ** 2, 4) / variance
    if least_square < 1:
        return Fraction(1, 2)
    square = Fraction(math.floor(least_square * 2**40), 2**40)  # a smaller z has the greater tail
    chain = square
    for step in reversed(range(1, _MILLS_STEPS + 1)):
        chain = square + step * square / chain
    _, density = exponential_bounds(-square / 2)
    root, _ = root_bounds(2 * _PI_BELOW * square)
    return min(Fraction(1, 2), density / root * square / chain)


def half_width(variance: Fraction, level: float) -> int:
    """The least whole h with P(|X| <= h) >= level for discrete Gaussian X; above variance 1,024, one that is provably
    enough and no more than one too great.

    Up to there the chances are summed. Above, P(|X| > h) <= P(|N| >= z) as in `tail_above` for h + 1/2 >= sigma. For
    h + 1/2 < sigma f is concave over [-h - 1/2, h + 1/2], so its sum over |x| <= h is at least its integral, and its sum
    over all integers is its integral but for a factor 1 + 2 exp(-2 pi^2 variance) + ..., which is 1 to a float.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level is between 0 and 1, not {level}")
    sigma = math.sqrt(variance)
    reach = math.ceil(12.0 * sigma) + 12  # what lies beyond weighs exp(-72)
    weights = [math.exp(-(x**2) / float(2 * variance)) for x in range(reach)] if variance <= _SUMMED else []

    def covered(width: int) -> bool:
        if weights:
            beyond = 2.0 * math.fsum(weights[width + 1 :]) / (2.0 * math.fsum(weights) - 1.0)
        else:
            beyond = math.erfc((width + 0.5) / (sigma * math.sqrt(2.0)))
        return beyond <= (1.0 - level) * (1.0 - _SLACK)

    return bisect_left(range(reach), True, key=covered)


def _short(number: float) -> Fraction:
    """The number to sixteen binary digits: near the best order, (*) hardly changes."""
    fraction, exponent = math.frexp(number)
    return Fraction(math.ceil(fraction * 2**16)) * Fraction(2) ** (exponent - 16)


def _check(epsilon: Fraction, delta: Fraction) -> None:
    if epsilon <= 0:
        raise ValueError(f"epsilon must be positive, not {epsilon}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must be between 0 and 1, not {delta}")
