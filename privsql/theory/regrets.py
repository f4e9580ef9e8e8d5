"""How many candidates there are and an epsilon go in; how much worse than the best the chosen one may be
comes out (notes 000 and 002).

Each candidate with a score more than t below the best is chosen with probability at most exp(-epsilon t /
(2 Delta)): by the exponential mechanism, by permute-and-flip and by noisy max with exponential noise alike.
At most d - 1 of d candidates are below the best; the notes count all d.
"""

from __future__ import annotations

import math
from typing import Any

from privsql.theory.checked import as_written, epsilon_given, missing_given, positive, share, whole


def selection_regret(
    *, candidates: int, epsilon: Any, sensitivity: Any = 1, confidence: float = 0.95
) -> float:
    """How far below the best score the chosen one may be: 2 Delta (ln d + ln(1/b)) / epsilon.

    Theorem 6 of note 000 (exponential mechanism) and theorem 6 of note 002 (noisy max with exponential noise,
    where the note's factor 4 is twice what is needed). It also holds for permute-and-flip.

    Arguments:
        candidates: how many there are.
        epsilon: the cost of the choice.
        sensitivity: the most that one person can change any score.
        confidence: the probability 1 - b that the bound holds.

    Returns:
        The regret that is not exceeded with this confidence.

    Raises:
        ArgumentError: an argument is out of range.

    Example:
        >>> from privsql import theory
        >>> round(theory.selection_regret(candidates=99, epsilon=1.0, sensitivity=0.99), 2)
        15.03
    """
    d = whole(candidates, "candidates", "argument-candidates")
    scale = 2.0 * float(positive(sensitivity)) / float(epsilon_given(epsilon))
    return scale * (math.log(d) - math.log(missing_given(confidence)))


def selection_failure(*, candidates: int, regret: Any, epsilon: Any, sensitivity: Any = 1) -> float:
    """The probability of choosing a candidate more than `regret` below the best, at most:
    d exp(-epsilon regret / (2 Delta)), theorem 6 of note 000.

    Arguments:
        candidates, epsilon, sensitivity: as for `selection_regret`.
        regret: a difference of scores, 0 or more.

    Returns:
        A probability, at most 1.

    Raises: ArgumentError, as `selection_regret` does.

    Example:
        >>> from privsql import theory
        >>> round(theory.selection_failure(candidates=2, regret=80, epsilon=0.2, sensitivity=2), 4)
        0.0366
    """
    d = whole(candidates, "candidates", "argument-candidates")
    rate = float(epsilon_given(epsilon)) / (2.0 * float(positive(sensitivity)))
    return min(1.0, d * math.exp(-rate * max(0.0, float(as_written(regret, "regret")))))


def expected_regret(*, candidates: int, epsilon: Any, sensitivity: Any = 1) -> float:
    """How far below the best score the chosen one is on average, at most: 2 Delta ln(d) / epsilon.

    Note 002 has O(Delta ln(d) / epsilon). The exponential mechanism maximises rate E[score] + entropy, so
    rate E[score] + ln d >= rate best, with rate = epsilon / (2 Delta); permute-and-flip is never worse.

    Arguments:
        candidates, epsilon, sensitivity: as for `selection_regret`.

    Returns:
        A bound on the expected regret.

    Raises: ArgumentError, as `selection_regret` does.

    Example:
        >>> from privsql import theory
        >>> round(theory.expected_regret(candidates=99, epsilon=1.0, sensitivity=0.99), 2)
        9.1
    """
    d = whole(candidates, "candidates", "argument-candidates")
    return 2.0 * float(positive(sensitivity)) / float(epsilon_given(epsilon)) * math.log(d)


def rows_to_select(*, candidates: int, within: Any, epsilon: Any, confidence: float = 0.95) -> int:
    """How many rows a table needs for the chosen of d statistical queries to be this near the greatest.

    The queries are shares of n rows, so that Delta = 1/n: the error is of the order ln(d) / (n epsilon).

    Arguments:
        candidates, epsilon, confidence: as for `selection_regret`.
        within: how far the share of the chosen one may be below the greatest, such as 0.05.

    Returns:
        How many rows suffice.

    Raises: ArgumentError, as `selection_regret` does.

    Example:
        >>> from privsql import theory
        >>> theory.rows_to_select(candidates=100, within=0.05, epsilon=1.0)
        305
    """
    regret = selection_regret(candidates=candidates, epsilon=epsilon, confidence=confidence)
    return max(1, math.ceil(regret / float(share(within))))
