"""A fraction goes in; two fractions come out, between which its exponential, its logarithm or its square root
lies.

Exponential and logarithm rest on Decimal's being correctly rounded (to nearest), which the decimal module
promises: of n digits, the computed value is then off by less than one part in 10^(n-1), and 0 is exact.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction
from math import isqrt

_PLACES = 50  # decimal places, relative to the result: far more than any choice here can tell apart
_ERROR = Fraction(1, 10 ** (_PLACES - 1))
_ROOT_BITS = 160
GREATEST_EXPONENT = 10_000  # its exponential has 4,300 digits; fractions of many more would take their time


def exponential_bounds(exponent: Fraction) -> tuple[Fraction, Fraction]:
    """low <= exp(exponent) <= high, 1e-48 apart, relatively; below -10,000 it is between 0 and
    exp(-10,000).
    """
    if exponent > GREATEST_EXPONENT:
        raise ValueError(f"the exponent {exponent} is above {GREATEST_EXPONENT}")
    if exponent < -GREATEST_EXPONENT:
        return Fraction(0), exponential_bounds(Fraction(-GREATEST_EXPONENT))[1]
    # an error in the argument is a relative one of the result, so the digits before its point come on top
    places = _PLACES + len(str(int(abs(exponent))))
    low, high = _rounded(exponent, places)
    context = _context(places, ROUND_FLOOR)
    return Fraction(context.exp(low)) * (1 - _ERROR), Fraction(context.exp(high)) * (1 + _ERROR)


def logarithm_bounds(number: Fraction) -> tuple[Fraction, Fraction]:
    """low <= ln(number) <= high, about 1e-49 apart, or 1e-49 times the logarithm where that is more."""
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
    # Everything is given, so that a program that alters decimal.DefaultContext cannot alter a bound.
    return Context(places, rounding, MIN_EMIN, MAX_EMAX, 1, 0, [], [InvalidOperation])
