"""The mechanisms by themselves, without SQL: scores or values and an epsilon go in, a private choice or noisy
numbers come out.

Here the caller states how far one person can move the input (`sensitivity`), which privsql derives for SQL,
and nothing is charged to a budget. docs/mechanisms.md states and proves what each function promises.
"""

from privsql.mechanisms.noisy_choice import (
    above_threshold,
    exponential,
    exponential_probabilities,
    noisy_max,
    permute_and_flip,
    permute_and_flip_probabilities,
)
from privsql.mechanisms.numbers import gaussian, laplace
from privsql.mechanisms.responses import RandomisedResponse, randomised_response
from privsql.mechanisms.sample_size import rows_needed

__all__ = [
    "RandomisedResponse",
    "above_threshold",
    "exponential",
    "exponential_probabilities",
    "gaussian",
    "laplace",
    "noisy_max",
    "permute_and_flip",
    "permute_and_flip_probabilities",
    "randomised_response",
    "rows_needed",
]
