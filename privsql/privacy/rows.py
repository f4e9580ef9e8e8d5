"""How many counts, how near and how sure go in; how many rows that needs at epsilon comes out (note 001).

The k counts are normalised: shares of n rows, under replace-one neighbours. Error at most `within` in all of
them at once, but for a chance `missing`; each count has missing/k of it (union bound).
"""

from __future__ import annotations

import math
from fractions import Fraction

from privsql.privacy.accuracy import laplace_half_width
from privsql.privacy.flips import contrast


def laplace_rows(queries: int, within: Fraction, missing: float, epsilon: float) -> int:
    """For counts that may overlap: k/n is their l1, so noise of scale k/(n epsilon). The note's n >= k
    ln(k/missing)/ (within epsilon) is this with continuous noise; here it is the tail of the discrete noise
    that counts get.
    """
    return _rows(laplace_half_width(epsilon / queries, 1.0 - missing / queries), within)


def partition_rows(queries: int, within: Fraction, missing: float, epsilon: float) -> int:
    """For counts of which each row is in at most one: 2/n is their l1, however many they are."""
    return _rows(laplace_half_width(epsilon / 2.0, 1.0 - missing / queries), within)


def randomised_response_rows(queries: int, within: Fraction, missing: float, epsilon: float) -> int:
    """For answers that everybody turns round themselves, each at epsilon/k.

    By Hoeffding an average of n independent bits is off by u or more with chance at most 2 exp(-2 n u^2), and
    an estimate is off by u/(1 - 2q): n >= ln(2k/missing) / (2 within^2 tanh(epsilon/2k)^2), about 2 k^2
    ln(2k/missing)/(within epsilon)^2. The note's k^2 ln(k/missing)/(within epsilon)^2 gives the order and
    leaves out the constant: so many are too few.
    """
    bits = 2.0 * (float(within) * contrast(epsilon / queries)) ** 2
    return max(1, math.ceil(math.log(2.0 * queries / missing) / bits))


def _rows(half_width: int, within: Fraction) -> int:
    """The least n with half_width <= within n."""
    return max(1, math.ceil(half_width / within))
