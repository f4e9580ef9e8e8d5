"""A function that counts over subsets of people goes in; a guess of everybody's secret bit comes out (Dinur
and Nissim 2003; note 004, 1.4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privsql.attacks.asking import answers_to
from privsql.errors import ArgumentError, did_you_mean
from privsql.noise.randomness import SystemRandomness
from privsql.results.extras import optional
from privsql.theory.checked import as_written, whole

Method = Literal["linear", "least-squares"]
Subset = NDArray[np.bool_]

_METHODS = ("linear", "least-squares")
_WORD_BITS = 32


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """What an attacker makes of the answers.

    Attributes:
        bits: the guess of everybody's bit.
        shares: the solution before rounding.
        asked: how many queries were answered.
        refused: whether the budget ended the attack.
    """

    bits: Subset
    shares: NDArray[np.float64]
    asked: int
    refused: bool

    def share_of(self, truth: Any) -> float:
        """The share of people whose bit is guessed right; half of them by a coin.

        Example:
            >>> from privsql import attacks
            >>> secret = [True, False, True]
            >>> ask = lambda subset: (subset & secret).sum()
            >>> found = attacks.reconstruct(ask, 3, queries=50, method="least-squares")
            >>> found.share_of(secret)
            1.0
        """
        return float((self.bits == np.asarray(truth, dtype=np.bool_)).mean())


def reconstruct(
    ask: Callable[[Subset], Any],
    people: int,
    *,
    queries: int | None = None,
    error: Any = 0,
    method: Method = "linear",
) -> Reconstruction:
    """Rebuild a column of bits from counts over random subsets of the people.

    Answers that are off by less than the order of sqrt(n) give nearly everybody away: n log^2 n of them
    suffice. The linear program of note 004 seeks shares c_i from 0 to 1 with |sum of c_i over Q - answer| <=
    error for every subset Q asked; where there are none, the error is raised as little as possible. Rounding
    gives bits.

    Arguments:
        ask: answers one query: from an array of booleans, who is meant, to the (noisy) number of ones among
            them.
        people: n, how many people there are.
        queries: how many subsets to ask; by default n ln(n)^2.
        error: how far answers are known to be off at most; 0 if nothing is known.
        method: "linear" (needs scipy: pip install 'privsql[attacks]') or "least-squares", without bounds on
            c.

    Returns:
        A Reconstruction. A BudgetError of `ask` ends the questions, and what was answered until then is used.

    Raises:
        ArgumentError: an argument is out of range, an answer is not a number, or scipy is missing.

    Example:
        >>> import numpy as np
        >>> from privsql import attacks
        >>> secret = np.arange(40) % 3 == 0
        >>> attacks.reconstruct(lambda subset: (subset & secret).sum() + 0.2, 40).share_of(secret)
        1.0
    """
    size = whole(people, "people", "argument-rows")
    asked = max(1, round(size * math.log(size) ** 2)) if queries is None else queries
    subsets = _random_subsets(whole(asked, "queries", "argument-queries"), size)
    if method not in _METHODS:
        raise ArgumentError(
            "argument-mechanism",
            f"method must be one of {', '.join(_METHODS)}",
            did_you_mean(str(method), _METHODS),
        )
    known = float(as_written(error, "error"))
    solve = optional("scipy.optimize", "attacks").linprog if method == "linear" else None
    answers, refused = answers_to(ask, ((subset.copy(),) for subset in subsets))
    shares = np.full(size, 0.5)
    if answers:
        rows = subsets[: len(answers)].astype(np.float64)
        given = np.array(answers)
        shares = (
            _feasible(solve, rows, given, known) if solve else np.linalg.lstsq(rows, given, rcond=None)[0]
        )
    return Reconstruction(shares > 0.5, shares, len(answers), refused)


def _random_subsets(count: int, people: int) -> Subset:
    """Each person is in each subset with probability one half."""
    words = SystemRandomness().integers(count * -(-people // _WORD_BITS))
    bits = np.unpackbits(words.view(np.uint8)).reshape(count, -1)
    return bits[:, :people].astype(np.bool_)


def _feasible(
    solve: Any, rows: NDArray[np.float64], answers: NDArray[np.float64], error: float
) -> NDArray[np.float64]:
    """c in [0, 1]^n and the least t >= 0 with |rows c - answers| <= error + t."""
    raised = np.ones((len(rows), 1))
    found = solve(
        c=np.append(np.zeros(rows.shape[1]), 1.0),
        A_ub=np.block([[rows, -raised], [-rows, -raised]]),
        b_ub=np.concatenate([answers + error, error - answers]),
        bounds=[*[(0.0, 1.0)] * rows.shape[1], (0.0, None)],
        method="highs",
    )
    shares: NDArray[np.float64] = found.x[:-1]
    return shares
