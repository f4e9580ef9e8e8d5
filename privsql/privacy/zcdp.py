"""An event goes in; its rho and delta under zero-concentrated differential privacy come out. A rho and a
delta go in; an epsilon comes out.

A release is d-approximate rho-zCDP if its laws on neighbours are P = (1-d) P' + d P'' and Q = (1-d) Q' + d
Q'', where P' and Q' are rho-zCDP: their Renyi divergences of every order a > 1, both ways, are at most a rho
(Bun, Steinke 2016). Both rho and d add up over independent and adaptive releases; docs/accounting.md has the
proofs.

Range. Suppose that L = ln(P'/Q') lies in an interval of length w. K(a) = ln E[exp(a L)] under Q' has K(0) =
K(1) = 0, and K'' is the variance of a variable in that interval, at most w^2/4. So K(a) <= a (a-1) w^2/8, and
the divergence K(a)/(a-1) is at most a w^2/8: rho = w^2/8. This is epsilon^2/2 if L is only known to be within
+-epsilon, and epsilon^2/8 for bounded range. Also, a divergence is at most the greatest L, epsilon <= a
epsilon: rho = epsilon, which is less if epsilon is large.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import assert_never

from privsql.privacy.bounds import logarithm_bounds
from privsql.privacy.events import Choice, Event, Gaussian, GaussianKeys, Keys, Laplace, Pure

_ORDER_RANGE = (-60.0, 60.0)  # of ln(a - 1)
_HALVINGS = 60


def zcdp_of(event: Event) -> tuple[Fraction, Fraction]:
    """(rho, delta): the event is delta-approximate rho-zCDP."""
    match event:
        case Pure():
            return _of_ranges(2, event.epsilon, event.parts), Fraction(0)
        case Choice():
            return _of_ranges(1, event.epsilon, event.parts), Fraction(0)
        case Laplace():
            # a cell that moves by x is (x/scale)-private, and cells are independent: rho is the sum of
            # (x/scale)^2/2, and the squares of x sum to at most l1 linf
            apart = Fraction(event.l1 * event.linf) / event.scale**2 / 2
            return min(apart, _of_ranges(2, event.epsilon, 1)), Fraction(0)
        case Gaussian():
            return Fraction(event.ratio) / 2, Fraction(0)
        case Keys():
            # (e, d)-private laws are simulated by a coin that reveals everything with probability d and is
            # e-private otherwise (Kairouz, Oh, Viswanath 2015); keys are independent
            return _of_ranges(2, event.epsilon, event.changes), event.delta
        case GaussianKeys():
            # given that no exclusive key is shown, the others are a function of their noisy counts
            return Fraction(event.ratio) / 2, event.exclusive
        case _ as unknown:
            assert_never(unknown)


def _of_ranges(width: int, epsilon: Fraction, parts: int) -> Fraction:
    """The rho of this many equal parts, each with a range of `width` times its epsilon."""
    each = Fraction(epsilon) / parts
    return parts * min((width * each) ** 2 / 8, each)


def least_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """Nearly the least epsilon such that rho-zCDP is (epsilon, delta)-private; 0 for rho = 0.

    By (*) of gaussian.py any order a > 1 proves epsilon = a rho + ln(1 - 1/a) - (ln delta + ln a)/(a-1). Its
    derivative in a is rho + (ln delta + ln a)/(a-1)^2, which is 0 where rho (a-1)^2 = -ln delta - ln a: one
    side increases, the other decreases. The best order is guessed in floats; what it proves is computed in
    fractions, rounded up.
    """
    if rho < 0 or not 0 < delta < 1:
        raise ValueError(f"needs a rho of at least 0 and a delta between 0 and 1, not {rho} and {delta}")
    if rho == 0:
        return Fraction(0)
    log_delta, _ = logarithm_bounds(delta)
    wanted, slope = -float(log_delta), float(rho)
    low, high = _ORDER_RANGE
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        above = math.exp(middle)  # a - 1
        low, high = (middle, high) if slope * above**2 < wanted - math.log1p(above) else (low, middle)
    above_one = Fraction(math.exp(high))
    order = 1 + above_one
    log_order, _ = logarithm_bounds(order)
    _, log_part = logarithm_bounds(above_one / order)  # ln(1 - 1/a)
    return max(Fraction(0), order * rho + log_part - (log_delta + log_order) / above_one)
