"""Epsilon, delta and a squared l2-sensitivity go in; the variance of rounded Gaussian noise comes out, or its
tails.

The noise is normal, rounded to a whole number: x + round(sigma Z) = round(x + sigma Z) for whole x, so what
is true of continuous noise on any number of cells is true of it as post-processing. For continuous noise only
ratio = l2/sigma matters. With F(x) = P(N <= x) for a standard normal N:
- noise is (epsilon, delta)-private if and only if (Balle, Wang 2018, theorem 8)
    F(a) - exp(epsilon) F(-b) <= delta, a = ratio/2 - epsilon/ratio, b = ratio/2 + epsilon/ratio;          (*)
- it is ratio^2/2-zCDP (Bun, Steinke 2016), and rho-zCDP is (epsilon, delta)-private if for some order a > 1
  (Canonne, Kamath, Steinke 2020, corollary 13)
    ln delta >= (a-1) (a rho - epsilon + ln(1 - 1/a)) - ln a.                                          (**)
The best ratio or order is guessed in floats, and what it proves is then computed in fractions, rounded to the
safe side, so no decision depends on a float.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache

from privsql.privacy.bounds import logarithm_bounds, root_bounds
from privsql.privacy.normal import density_bounds, mills_bounds

_VARIANCE_BITS = 12  # a variance is rounded up by less than one part in 2^11
_RATIO_BITS = 32
_CLOSE = 2.0**-20  # a ratio is within this of the greatest, relatively
_MOST_STEPS = 64
_ORDER_RANGE = (-60.0, 60.0)  # of ln(a - 1)
_HALVINGS = 60
_EXTREME = 10**100  # beyond this, or its inverse, floats could not even guess
_SLACK = 1e-12  # for rounding errors in half_width, which informs and protects nobody


# --- (epsilon, delta), analytically ---


def least_variance(l2_squared: int | Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The least variance by (*) that makes a vector of this squared l2-sensitivity (epsilon, delta)-private.

    It is rounded up to a multiple of a power of two, so that arithmetic stays cheap. One release may have
    parts with squared sensitivities s_i and variances v_i: divided by the root of its variance, each part has
    noise of variance 1 and squared sensitivity s_i/v_i, so it suffices that the s_i/v_i sum to at most
    1/least_variance(1, ...).
    """
    if l2_squared <= 0:
        raise ValueError(f"the squared sensitivity must be positive, not {l2_squared}")
    return rounded_up(l2_squared / greatest_ratio(epsilon, delta) ** 2)


@lru_cache(maxsize=1024)
def greatest_ratio(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Nearly the greatest ratio = l2/sigma by (*) such that noise is (epsilon, delta)-private.

    Let D(ratio) be the left side of (*). Its derivative is f(a), with f the normal density, since
    exp(epsilon) f(b) = f(a). So D = exp(h) for an h that is increasing and concave in u = ln(ratio), as
    ln(f(a) ratio) is, and Newton steps towards h(u) = ln(delta) stay below the solution. So does the first
    guess, since D <= F(a)
    <= exp(-a^2/2)/2 for a < 0, and D <= ratio f(0).
    """
    _check(epsilon, delta)
    wanted, loss = float(logarithm_bounds(delta)[0]), float(epsilon)
    reach = math.sqrt(max(0.0, -2.0 * (wanted + math.log(2.0))))
    guess = max(
        2.0 * loss / (reach + math.sqrt(reach**2 + 2.0 * loss)), math.exp(wanted) * math.sqrt(2.0 * math.pi)
    )
    for _ in range(_MOST_STEPS):
        ratio = _short(guess)
        low, high = _delta_bounds(ratio, epsilon)
        if low <= 0:
            break
        reached = float(logarithm_bounds(low)[0])
        log_density = -(float(ratio / 2 - epsilon / ratio) ** 2 + math.log(2.0 * math.pi)) / 2.0
        step = (wanted - reached) / math.exp(math.log(ratio) + log_density - reached)
        if high <= delta and step < _CLOSE:
            return ratio
        guess = float(ratio) * math.exp(step - _CLOSE / 16.0)
    raise ValueError(f"no Gaussian noise is found for epsilon {epsilon} and delta {delta}: too extreme")


def analytic_delta(l2_squared: int | Fraction, variance: Fraction, epsilon: Fraction) -> Fraction:
    """Nearly the least delta by (*) such that noise of this variance is (epsilon, delta)-private; 0 for
    l2 = 0.
    """
    if l2_squared < 0 or variance <= 0 or epsilon <= 0:
        raise ValueError(
            "needs a squared sensitivity of at least 0, a positive variance and a positive epsilon"
        )
    if l2_squared == 0:
        return Fraction(0)
    _, ratio = root_bounds(l2_squared / variance)
    return min(Fraction(1), _delta_bounds(rounded_up(ratio, _RATIO_BITS), epsilon)[1])


def _delta_bounds(ratio: Fraction, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of the left side of (*), which increases with the ratio.

    With R(z) = F(-z)/f(z) and exp(epsilon) f(b) = f(a) it is f(a) (R(-a) - R(b)) or, with F(a) = 1 - f(a)
    R(a), 1 - f(a) (R(a) + R(b)).
    """
    near, far = ratio / 2 - epsilon / ratio, ratio / 2 + epsilon / ratio
    density_low, density_high = density_bounds(near)
    near_low, near_high = mills_bounds(abs(near))
    far_low, far_high = mills_bounds(far)
    if near < 0:
        return density_low * (near_low - far_high), density_high * (near_high - far_low)
    return 1 - density_high * (near_high + far_high), 1 - density_low * (near_low + far_low)


def rounded_up(number: Fraction, bits: int = _VARIANCE_BITS) -> Fraction:
    """The next number with this many binary digits, or one more: greater by less than one part in
    2^(bits-1).
    """
    size = number.numerator.bit_length() - number.denominator.bit_length()
    step = Fraction(2) ** (size - bits)
    return math.ceil(number / step) * step


# --- zCDP ---


def zcdp(l2_squared: int, variance: Fraction) -> Fraction:
    """The rho of noise of this variance on integers of this squared l2-sensitivity."""
    if l2_squared < 0 or variance <= 0:
        raise ValueError("zCDP needs a squared sensitivity of at least 0 and a positive variance")
    return l2_squared / (2 * variance)


def greatest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Nearly the greatest rho by (**) such that rho-zCDP is (epsilon, delta)-private.

    (**) solved for rho: rho <= (epsilon - ln(1 - 1/a) + (ln delta + ln a)/(a-1)) / a. At the best a the
    derivative of (**) in a is zero, (2a-1) rho = epsilon - ln(1 - 1/a); put into (**), this leaves ln delta =
    -(a-1)^2 (epsilon - ln(1 - 1/a)) / (2a-1) - ln a, which falls as a grows.
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


def tail_above(variance: Fraction, bound: int) -> Fraction:
    """A close upper bound of P(X > bound) for rounded Gaussian X of this variance.

    X > bound if and only if sigma Z >= bound + 1/2; a smaller z has the greater tail f(z) R(z).
    """
    if bound < 0:
        return Fraction(1)
    root, _ = root_bounds(Fraction((2 * bound + 1) ** 2, 4) / variance)
    z = Fraction(math.floor(root * 2**_RATIO_BITS), 2**_RATIO_BITS)
    return density_bounds(z)[1] * mills_bounds(z)[1]


def half_width(variance: Fraction, level: float) -> int:
    """The least whole h with P(|X| <= h) >= level for rounded Gaussian X, where |X| > h means
    |sigma Z| >= h + 1/2.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level is between 0 and 1, not {level}")
    deviation = math.sqrt(2.0 * float(variance))

    def covered(width: int) -> bool:
        return math.erfc((width + 0.5) / deviation) <= (1.0 - level) * (1.0 - _SLACK)

    return bisect_left(range(math.ceil(9.0 * deviation) + 1), True, key=covered)  # erfc(9) < 1e-36


def _short(number: float) -> Fraction:
    """The number to 32 binary digits, rounded down."""
    fraction, exponent = math.frexp(number)
    return Fraction(math.floor(fraction * 2**_RATIO_BITS)) * Fraction(2) ** (exponent - _RATIO_BITS)


def _check(epsilon: Fraction, delta: Fraction) -> None:
    if not 1 < epsilon * _EXTREME < _EXTREME**2:
        raise ValueError(f"epsilon must be positive and not extreme, not {epsilon}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must be between 0 and 1, not {delta}")
