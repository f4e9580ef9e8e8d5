"""The mechanisms by themselves, without SQL: scores or values and an epsilon go in, a private choice or noisy
numbers come out.

Here the caller states how far one person can move the input (`sensitivity`), which privsql derives for SQL,
and nothing is charged to a budget. docs/mechanisms.md states and proves what each function promises.
"""

from privsql.mechanisms.auction import auction, auction_probabilities, auction_revenues
from privsql.mechanisms.interval_choice import exponential_interval, exponential_interval_probabilities
from privsql.mechanisms.noisy_choice import (
    above_threshold,
    exponential,
    exponential_probabilities,
    noisy_max,
    permute_and_flip,
    permute_and_flip_probabilities,
)
from privsql.mechanisms.numbers import gaussian, laplace
from privsql.mechanisms.responses import (
    RandomisedColumns,
    RandomisedResponse,
    randomised_columns,
    randomised_response,
)
from privsql.mechanisms.smalldb import SmallBounds, SmallTable, smalldb, smalldb_probabilities
from privsql.theory.shares import rows_needed

__all__ = [
    "RandomisedColumns",
    "RandomisedResponse",
    "SmallBounds",
    "SmallTable",
    "above_threshold",
    "auction",
    "auction_probabilities",
    "auction_revenues",
    "exponential",
    "exponential_interval",
    "exponential_interval_probabilities",
    "exponential_probabilities",
    "gaussian",
    "laplace",
    "noisy_max",
    "permute_and_flip",
    "permute_and_flip_probabilities",
    "randomised_columns",
    "randomised_response",
    "rows_needed",
    "smalldb",
    "smalldb_probabilities",
]
