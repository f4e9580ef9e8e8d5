"""A function that answers queries goes in; what it gives away about single people comes out.

These are the attacks that make noise and a budget necessary (notes 000, 002 and 004), for owners who want to
see what their answers would reveal. Each works on any function, with privsql or without. docs/theory.md shows
them.
"""

from privsql.attacks.membership import Membership, membership
from privsql.attacks.reconstruction import Reconstruction, reconstruct
from privsql.attacks.repetition import Average, CountDifference, averaging, differencing
from privsql.attacks.tightness import half_answers

__all__ = [
    "Average",
    "CountDifference",
    "Membership",
    "Reconstruction",
    "averaging",
    "differencing",
    "half_answers",
    "membership",
    "reconstruct",
]
