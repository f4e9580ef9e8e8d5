"""Two of rows, accuracy and confidence of some counts, and an epsilon, go in; the third comes out (note 001).

The k counts are normalised: shares of n rows, under replace-one neighbours. With probability 1 - `missing`
all of them are at once within `within` of the truth; each may fail with probability missing/k (union bound).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal

from privsql.errors import ArgumentError, did_you_mean
from privsql.privacy.accuracy import laplace_half_width
from privsql.privacy.flips import contrast
from privsql.theory.checked import epsilon_given, missing_given, share, whole

RowsMechanism = Literal["laplace", "partition", "randomised-response"]


def rows_needed(
    *,
    within: Any,
    epsilon: Any,
    queries: int = 1,
    confidence: float = 0.95,
    mechanism: RowsMechanism = "laplace",
) -> int:
    """How many rows a table needs for shares of its rows, COUNT(*) FILTER (...) / n, to be this accurate.

    Neighbours are replace-one.

    Arguments:
        within: how far every share may be off, such as 0.05.
        epsilon: the cost of all queries together.
        queries: how many shares are released.
        confidence: the probability that all of them are that close.
        mechanism: "laplace" for counts that may overlap; "partition" if each row is in at most one of them,
            as with GROUP BY; "randomised-response" if people flip their own answers, each at epsilon/queries.

    Returns:
        The least number of rows.

    Raises:
        ArgumentError: an argument is out of range.

    Example:
        >>> from privsql import mechanisms
        >>> mechanisms.rows_needed(within=0.05, epsilon=1.0)
        60
    """
    loss, missing = float(epsilon_given(epsilon)), missing_given(confidence)
    asked = whole(queries, "queries", "argument-queries")
    return _ROWS[_known(mechanism)](asked, share(within), missing, loss)


def share_error(
    *,
    rows: int,
    epsilon: Any,
    queries: int = 1,
    confidence: float = 0.95,
    mechanism: RowsMechanism = "laplace",
) -> float:
    """How far shares of so many rows may be off, all of them at once: the converse of `rows_needed`.

    Arguments:
        rows: how many rows the table has; public, as neighbours are replace-one.
        epsilon, queries, confidence, mechanism: as for `rows_needed`.

    Returns:
        The error, as a share of the rows, that none of the answers exceeds with this confidence.

    Raises:
        ArgumentError: an argument is out of range.

    Example:
        >>> from privsql import theory
        >>> round(theory.share_error(rows=1060, epsilon=1.0, queries=10), 3)
        0.05
    """
    loss, missing = float(epsilon_given(epsilon)), missing_given(confidence)
    asked, people = whole(queries, "queries", "argument-queries"), whole(rows, "rows", "argument-rows")
    if _known(mechanism) == "randomised-response":
        return math.sqrt(math.log(2.0 * asked / missing) / (2.0 * people)) / contrast(loss / asked)
    return laplace_half_width(_rate(mechanism, asked, loss), 1.0 - missing / asked) / people


def share_failure(
    *, within: Any, rows: int, epsilon: Any, queries: int = 1, mechanism: RowsMechanism = "laplace"
) -> float:
    """The probability with which some share is off by more than `within`, at most.

    It is the note's k exp(-within epsilon n / k), with the exact tail of the discrete noise that counts get.

    Arguments:
        within: how far every share may be off, such as 0.05.
        rows, epsilon, queries, mechanism: as for `share_error`.

    Returns:
        A probability, at most 1.

    Raises:
        ArgumentError: an argument is out of range.

    Example:
        >>> from privsql import theory
        >>> theory.share_failure(within=0.05, rows=1060, epsilon=1.0, queries=10) <= 0.05
        True
    """
    loss, most = float(epsilon_given(epsilon)), share(within)
    asked, people = whole(queries, "queries", "argument-queries"), whole(rows, "rows", "argument-rows")
    if _known(mechanism) == "randomised-response":
        one = 2.0 * math.exp(-2.0 * people * (float(most) * contrast(loss / asked)) ** 2)
    else:
        rate = _rate(mechanism, asked, loss)
        one = 2.0 * math.exp(-rate * (math.floor(most * people) + 1)) / (1.0 + math.exp(-rate))
    return min(1.0, asked * one)


def repeats_to_average(*, epsilon: Any, confidence: float = 0.95) -> int:
    """How many independent answers to one count give it away: note 000, section 3.

    Laplace noise of scale 1/epsilon has a standard deviation of up to sqrt(2)/epsilon (the note has
    1/epsilon). By Chernoff's bound the mean of T answers is off by a half or more, and rounds to a wrong
    number, with probability at most 2 exp(-T (t/2 - ln M(t))) for every t, where M(t) = E[exp(t noise)]. So
    about 16 ln(2/b) / epsilon^2 answers suffice.

    Arguments:
        epsilon: of each answer.
        confidence: with which the rounded mean is the true count.

    Returns:
        How many answers suffice.

    Raises:
        ArgumentError: an argument is out of range.

    Example:
        >>> from privsql import theory
        >>> theory.repeats_to_average(epsilon=0.1)
        5900
    """
    loss, missing = epsilon_given(epsilon), missing_given(confidence)
    return math.ceil(math.log(2.0 / missing) / _exponent_of_means(float(loss)))


def _exponent_of_means(epsilon: float) -> float:
    """The greatest t/2 - ln M(t), where M(t) = 1 / (1 - (sinh(t/2) / sinh(epsilon/2))^2) for discrete Laplace
    noise and t < epsilon. It is concave in t, and thirds find its top; every t is safe, and so is more noise.
    """
    rate = min(epsilon, 700.0)  # of more, floats overflow

    def exponent(t: float) -> float:
        return t / 2.0 + math.log1p(-((math.sinh(t / 2.0) / math.sinh(rate / 2.0)) ** 2))

    low, high = 0.0, rate * (1.0 - 1e-9)
    for _ in range(100):
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (left, high) if exponent(left) < exponent(right) else (low, right)
    return exponent(low)


def _known(mechanism: RowsMechanism) -> RowsMechanism:
    if mechanism not in _ROWS:
        raise ArgumentError(
            "argument-mechanism",
            f"mechanism must be one of {', '.join(_ROWS)}",
            did_you_mean(str(mechanism), _ROWS),
        )
    return mechanism


def _rate(mechanism: RowsMechanism, queries: int, epsilon: float) -> float:
    """Of the noise: the l1 of counts that overlap is their number, that of a partition is 2."""
    return epsilon / (queries if mechanism == "laplace" else 2)


def _laplace_rows(queries: int, within: Fraction, missing: float, epsilon: float) -> int:
    """For counts that may overlap: k/n is their l1, so the noise has scale k/(n epsilon).

    The note's n >= k ln(k/missing) / (within epsilon) is this with continuous noise; here it is the tail of
    the discrete noise that counts get.
    """
    return _rows(laplace_half_width(_rate("laplace", queries, epsilon), 1.0 - missing / queries), within)


def _partition_rows(queries: int, within: Fraction, missing: float, epsilon: float) -> int:
    """For counts of which each row is in at most one: their l1 is 2/n, however many there are."""
    return _rows(laplace_half_width(_rate("partition", queries, epsilon), 1.0 - missing / queries), within)


def _randomised_response_rows(queries: int, within: Fraction, missing: float, epsilon: float) -> int:
    """For answers that people flip themselves, each at epsilon/k.

    By Hoeffding's inequality an average of n independent bits is off by u or more with probability at most
    2 exp(-2 n u^2), and an estimate is off by u/(1 - 2q). So n >= ln(2k/missing) / (2 within^2
    tanh(epsilon/2k)^2), about 2 k^2 ln(2k/missing) / (within epsilon)^2. The note's k^2 ln(k/missing) /
    (within epsilon)^2 has the right order, but leaves out the constant: that many are too few.
    """
    bits = 2.0 * (float(within) * contrast(epsilon / queries)) ** 2
    return max(1, math.ceil(math.log(2.0 * queries / missing) / bits))


def _rows(half_width: int, within: Fraction) -> int:
    """The least n with half_width <= within n."""
    return max(1, math.ceil(half_width / within))


_ROWS = {
    "laplace": _laplace_rows,
    "partition": _partition_rows,
    "randomised-response": _randomised_response_rows,
}
