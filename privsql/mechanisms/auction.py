"""Bids and an epsilon go in; one price for everybody comes out: an auction of unlimited supply (note 004)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from fractions import Fraction
from typing import Any

from privsql.errors import ArgumentError
from privsql.mechanisms.arguments import as_float
from privsql.mechanisms.noisy_choice import exponential, exponential_probabilities
from privsql.theory.checked import as_written, exact

_PRICES = 100


def auction(bids: Any, epsilon: Any, prices: Any = _PRICES) -> float:
    """Set one price for a good of which there is enough, so that the revenue is high and bids stay private.

    The exponential mechanism with the revenue p sum of b_i(p) at each price p, sensitivity 1. Nobody counts
    for more than 1: what a bidder would spend beyond that is clamped. The expected revenue is at least
    `theory.auction_revenue`, whose proof needs evenly spaced prices and demand that falls as prices rise.

    Arguments:
        bids: one for each bidder: a number, the most that the bidder pays for one unit; or a function from a
            price to the units wanted at that price.
        epsilon: the cost of the auction; the note's epsilon is half of it.
        prices: how many evenly spaced prices up to 1, or a list of prices above 0 and up to 1. They are
            public.

    Returns:
        The price.

    Raises:
        ArgumentError: a price is not above 0 and at most 1, a bid is not a number or below 0, or epsilon is
            out of range.

    Example:
        >>> from privsql import mechanisms
        >>> mechanisms.auction([0.5] * 2000 + [1] * 10, epsilon=1.0, prices=4)
        0.5
    """
    return as_float(exponential(_revenues(bids, prices), epsilon))


def auction_probabilities(bids: Any, epsilon: Any, prices: Any = _PRICES) -> dict[float, float]:
    """The probability with which `auction` sets each price. Not private: for planning.

    Arguments:
        bids, epsilon, prices: as for `auction`.

    Returns:
        A dict from price to probability.

    Raises:
        ArgumentError: as `auction` does.

    Example:
        >>> from privsql import mechanisms
        >>> chances = mechanisms.auction_probabilities([0.5, 0.5, 1], epsilon=1.0, prices=[0.5, 1])
        >>> {price: round(chance, 3) for price, chance in chances.items()}
        {0.5: 0.562, 1.0: 0.438}
    """
    chances = exponential_probabilities(_revenues(bids, prices), epsilon)
    return {as_float(price): chance for price, chance in chances.items()}


def auction_revenues(bids: Any, prices: Any = _PRICES) -> dict[float, float]:
    """The revenue at each price. Not private: for planning.

    Arguments:
        bids, prices: as for `auction`.

    Returns:
        A dict from price to revenue, everybody's part clamped to 1.

    Raises:
        ArgumentError: as `auction` does.

    Example:
        >>> from privsql import mechanisms
        >>> mechanisms.auction_revenues([0.5, 0.5, 1], prices=[0.5, 1])
        {0.5: 1.5, 1.0: 1.0}
    """
    return {as_float(price): as_float(each) for price, each in _revenues(bids, prices).items()}


def _revenues(bids: Any, prices: Any) -> dict[Fraction, Fraction]:
    if not isinstance(bids, Iterable) or isinstance(bids, (str, bytes, Mapping, Set)):
        raise _no_bids()
    offered, grid = list(bids), _grid(prices)
    if not offered:
        raise _no_bids()
    limits = sorted(_limit(bid) for bid in offered if not isinstance(bid, Callable))  # type: ignore[arg-type]
    demands = [bid for bid in offered if isinstance(bid, Callable)]  # type: ignore[arg-type]
    revenues, sold_out = {}, 0
    for price in grid:  # rising: who does not pay this does not pay more
        while sold_out < len(limits) and limits[sold_out] < price:
            sold_out += 1
        spent = (price * _units(demand, price) for demand in demands)
        revenues[price] = price * (len(limits) - sold_out) + sum(
            (min(each, Fraction(1)) for each in spent), Fraction(0)
        )
    return revenues


def _limit(bid: Any) -> Fraction:
    limit = as_written(bid, "bid")
    if limit < 0:
        raise _no_bids()
    return limit


def _units(demand: Callable[[float], Any], price: Fraction) -> Fraction:
    units = exact(demand(as_float(price)), "demand")
    if units < 0:
        raise _no_bids()
    return units


def _grid(prices: Any) -> list[Fraction]:
    if isinstance(prices, int) and not isinstance(prices, bool) and 1 <= prices <= 1_000_000:
        return [Fraction(step, prices) for step in range(1, prices + 1)]
    listed = isinstance(prices, Iterable) and not isinstance(prices, (str, bytes, Mapping))
    grid = sorted({as_written(price, "price") for price in prices}) if listed else []
    if not grid or not 0 < grid[0] <= grid[-1] <= 1:
        raise ArgumentError(
            "argument-shape",
            "prices must be above 0 and at most 1, since nobody's part of the revenue may exceed 1",
            "pass their number, such as prices=100, or divide all amounts by the highest price",
        )
    return grid


def _no_bids() -> ArgumentError:
    return ArgumentError(
        "argument-numbers",
        "bids must be a list: of what each bidder pays at most, 0 or more, or of demand functions",
        "try [0.5, 0.8, lambda price: 0.3 / price]",
    )
