"""A fraction goes in; lower and upper bounds of its exponential, logarithm or square root come out.

Exponential and logarithm rely on the decimal module rounding correctly (to nearest), as it promises: a result
of n digits is then off by less than one part in 10^(n-1), and 0 is exact.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction
from math import isqrt

_PLACES = 50  # significant digits of a result: far more than any decision here depends on
_ERROR = Fraction(1, 10 ** (_PLACES - 1))
_ROOT_BITS = 160
GREATEST_EXPONENT = 10_000  # its exponential has 4,300 digits; fractions with many more are slow


def exponential_bounds(exponent: Fraction) -> tuple[Fraction, Fraction]:
    """low <= exp(exponent) <= high, within 1e-48 of each other, relatively; below -10,000 the bounds are 0
    and exp(-10,000).
    """
    if exponent > GREATEST_EXPONENT:
        raise ValueError(f"the exponent {exponent} is above {GREATEST_EXPONENT}")
    if exponent < -GREATEST_EXPONENT:
        return Fraction(0), exponential_bounds(Fraction(-GREATEST_EXPONENT))[1]
    # an absolute error of the argument is a relative error of the result: add the digits before the point
    places = _PLACES + len(str(int(abs(exponent))))
    low, high = _rounded(exponent, places)
    context = _context(places, ROUND_FLOOR)
    return Fraction(context.exp(low)) * (1 - _ERROR), Fraction(context.exp(high)) * (1 + _ERROR)


def logarithm_bounds(number: Fraction) -> tuple[Fraction, Fraction]:
    """low <= ln(number) <= high, about 1e-49 apart, or 1e-49 times the logarithm if that is more."""
    if number <= 0:
        raise ValueError(f"only positive numbers have a logarithm, not {number}")
    low, high = _rounded(number, _PLACES)
    context = _context(_PLACES, ROUND_FLOOR)
    least, most = Fraction(context.ln(low)), Fraction(context.ln(high))
    return least - abs(least) * _ERROR, most + abs(most) * _ERROR


def root_bounds(number: Fraction) -> tuple[Fraction, Fraction]:
    """low <= sqrt(number) <= high for number >= 0, 2^-160 apart."""
    scaled = (number.numerator << 2 * _ROOT_BITS) // number.denominator
    low = isqrt(scaled)
    return Fraction(low, 1 << _ROOT_BITS), Fraction(low + 1, 1 << _ROOT_BITS)


def _rounded(number: Fraction, places: int) -> tuple[Decimal, Decimal]:
    numerator, denominator = Decimal(number.numerator), Decimal(number.denominator)
    down, up = _context(places, ROUND_FLOOR), _context(places, ROUND_CEILING)
    return down.divide(numerator, denominator), up.divide(numerator, denominator)


def _context(places: int, rounding: str) -> Context:
    # Every setting is passed, so that a program that alters decimal.DefaultContext cannot alter a bound.
    return Context(places, rounding, MIN_EMIN, MAX_EMAX, 1, 0, [], [InvalidOperation])
