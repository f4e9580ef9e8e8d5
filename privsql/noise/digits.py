"""A positive fraction x goes in; the base-2^32 digits of exp(-x) or of 1/(1+exp(x)) come out, each one exact.

A sampler compares uniform words with these digits, so a wrong digit would be a wrong probability. Each digit
is therefore read off an interval that provably holds the probability, and the precision is raised until both
ends of the interval agree. That ends, since both numbers are irrational for rational x > 0 (Lindemann).
"""

from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import Literal, assert_never

DIGIT_BITS = 32
_DIGIT_MASK = (1 << DIGIT_BITS) - 1
_FIRST_COUNT = 2  # digits computed at first; a sampler needs a third once in 2^64 draws
_FIRST_GUARD_BITS = 32  # both ends mostly agree at once; not for 1/(1+exp(2^-52)) = 1/2 - 2^-54 + 2^-162...
_THOUSAND_LOG_2_ABOVE = 694  # ln 2 = 0.6931...


@dataclass(frozen=True, eq=False)
class Probability:
    """exp(-x) ("exponential") or 1/(1+exp(x)) ("logistic") for x = exponent > 0, digit by digit."""

    form: Literal["exponential", "logistic"]
    exponent: Fraction
    # Only ever gains entries, so that threads may share one Probability without a lock.
    _known: dict[int, int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.exponent.numerator <= 0:
            raise ValueError(f"the exponent must be positive, not {self.exponent}")

    def digit(self, index: int) -> int:
        """Digit `index` of the expansion: floor(probability * 2^(32 (index+1))) modulo 2^32."""
        known = self._known.get(index)
        if known is not None:
            return known
        if index < 0:
            raise IndexError(f"digits are counted from 0, not {index}")
        # Both forms are below exp(-x), so x >= 32 (index+1) ln 2 proves this digit and all before it zero.
        # That keeps exp(-1000000) cheap: its first 45,000 digits are never computed.
        zero_from = DIGIT_BITS * (index + 1) * _THOUSAND_LOG_2_ABOVE
        if self.exponent.numerator * 1000 >= zero_from * self.exponent.denominator:
            self._known[index] = 0
        else:
            self._expand(max(_FIRST_COUNT, 1 << index.bit_length()))
        return self._known[index]

    def _expand(self, count: int) -> None:
        bits = count * DIGIT_BITS
        guard_bits = _FIRST_GUARD_BITS
        while True:
            low, high = self._interval(bits + guard_bits)
            low, high = low >> guard_bits, high >> guard_bits
            # The probability is strictly below 1, or below 1/2. Without this clamp, x = 10^-1000 would need a
            # thousand digits of precision to separate 0.111... from 1.
            high = min(high, (1 << bits) - 1 if self.form == "exponential" else (1 << (bits - 1)) - 1)
            if low == high:
                break
            guard_bits *= 2
        for place in range(count):
            self._known[place] = low >> (bits - DIGIT_BITS * (place + 1)) & _DIGIT_MASK

    def _interval(self, bits: int) -> tuple[int, int]:
        """Integers with low <= probability * 2^bits <= high."""
        low, high = exponential_interval(self.exponent, bits)
        one = 1 << bits
        match self.form:
            case "exponential":
                return low, high
            case "logistic":  # q/(1+q) with q = exp(-x), which grows with q
                return (low << bits) // (one + low), -((-high << bits) // (one + high))
            case _ as unknown:
                assert_never(unknown)


@lru_cache(maxsize=4096)
def exponential_probability(exponent: Fraction) -> Probability:
    """exp(-exponent)."""
    return Probability("exponential", exponent)


@lru_cache(maxsize=4096)
def logistic_probability(exponent: Fraction) -> Probability:
    """1/(1+exp(exponent))."""
    return Probability("logistic", exponent)


def exponential_interval(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Integers with low <= exp(-exponent) * 2^bits <= high, a few units apart.

    This relies on Decimal's exp being correctly rounded (to nearest), as the decimal module promises: the
    true value then lies between the neighbours of the computed one.
    """
    # A bit is 0.301 decimal places; the whole part of x comes on top. So x is rounded up to some y with
    # y - x <= 10^-(0.31 bits + 1) <= 2^-bits / 10, and exp(-y) <= exp(-x) <= exp(-y) + 2^-bits / 10.
    places = bits * 31 // 100 + 2
    # All settings are passed explicitly: a program that alters decimal.DefaultContext must not alter a digit.
    context = Context(
        prec=places + len(str(int(exponent))),
        rounding=ROUND_CEILING,
        Emin=MIN_EMIN,
        Emax=MAX_EMAX,
        capitals=1,
        clamp=0,
        flags=[],
        traps=[InvalidOperation],
    )
    rounded_up = context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    computed = context.exp(rounded_up.copy_negate())
    low, low_scale = computed.next_minus(context).as_integer_ratio()
    high, high_scale = computed.next_plus(context).as_integer_ratio()
    return (low << bits) // low_scale, -((-high << bits) // high_scale) + 1
