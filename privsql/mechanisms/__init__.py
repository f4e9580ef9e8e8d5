"""Scores or values and a price go in; a private choice or noisy numbers come out: the mechanisms themselves,
without SQL.

What one person can change (`sensitivity`) is the caller's word here, where SQL derives it; and nothing is
charged to a budget. docs/mechanisms.md states and proves what each function promises.
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
