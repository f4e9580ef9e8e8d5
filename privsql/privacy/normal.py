"""A fraction goes in; lower and upper bounds of the standard normal density, or of its tail, come out.

Tails are given as Mills' ratio R(z) = P(N >= z)/f(z), f being the density: it does not vanish far out, and
its differences lose no digits there. Numbers are whole multiples of 2^-192, rounded outwards at every step.
"""

from __future__ import annotations

import math
from fractions import Fraction

from privsql.privacy.bounds import exponential_bounds, root_bounds

_BITS = 192
_ONE = 1 << _BITS
_PI = Fraction(31415926535897932384626433832795028841971, 10**40)  # from below, by less than 10^-40
_PI_ABOVE = _PI + Fraction(1, 10**40)
_HALF_CIRCLE = root_bounds(_PI / 2)[0], root_bounds(_PI_ABOVE / 2)[1]  # sqrt(pi/2), which is R(0)
_CIRCLE = root_bounds(2 * _PI)[0], root_bounds(2 * _PI_ABOVE)[1]  # sqrt(2 pi)
_SERIES_BELOW = 4  # above, the continued fraction is fast, and the series would lose a factor exp(z^2/2)


def density_bounds(number: Fraction) -> tuple[Fraction, Fraction]:
    """low <= exp(-number^2/2)/sqrt(2 pi) <= high."""
    low, high = exponential_bounds(-(number**2) / 2)
    return low / _CIRCLE[1], high / _CIRCLE[0]


def mills_bounds(number: Fraction) -> tuple[Fraction, Fraction]:
    """low <= R(number) <= high for number >= 0, within 1e-21 of each other, relatively."""
    if number < 0:
        raise ValueError(f"only for numbers from 0 on, not {number}")
    least = math.floor(number * _ONE)
    return _by_series(number, least) if number < _SERIES_BELOW else _by_fraction(least)


def _by_series(number: Fraction, least: int) -> tuple[Fraction, Fraction]:
    """R(z) = sqrt(pi/2) exp(z^2/2) - (z + z^3/3 + z^5/(3*5) + ...)."""
    square_low, square_high = least * least >> _BITS, ((least + 1) * (least + 1) >> _BITS) + 1
    low = term_low = least
    high = term_high = least + 1
    odd = 1
    while term_high > 2 or 2 * square_high > odd << _BITS:
        odd += 2
        term_low = (term_low * square_low >> _BITS) // odd
        term_high = (term_high * square_high >> _BITS) // odd + 1
        low, high = low + term_low, high + term_high
    high += term_high  # each remaining term is at most half the one before
    growth_low, growth_high = exponential_bounds(number**2 / 2)
    return _HALF_CIRCLE[0] * growth_low - Fraction(high, _ONE), _HALF_CIRCLE[1] * growth_high - Fraction(
        low, _ONE
    )


def _by_fraction(least: int) -> tuple[Fraction, Fraction]:
    """R(z) = 1/B1 with Bi = z + i/B(i+1). Every B is above z, so that B(n+1) is between z and z + (n+1)/z."""
    steps = 8 + math.ceil((30 / (least >> _BITS)) ** 2)
    low, high = least, least + ((steps + 1) << 2 * _BITS) // least + 2
    for step in range(steps, 0, -1):
        numerator = step << 2 * _BITS
        low, high = least + numerator // high, least + numerator // low + 2
    return Fraction(_ONE, high), Fraction(_ONE, low)
