"""What the lecture notes prove, as calculators: sizes and an epsilon go in, an accuracy, a number of rows or
a VC dimension comes out. They read no data. docs/theory.md names the theorem of each.
"""

from privsql.theory.auctions import (
    auction_revenue,
    epsilon_for_truthfulness,
    gain_from_lying,
    truthfulness,
)
from privsql.theory.query_classes import Conjunctions, HalfPlanes, Intervals, Rectangles
from privsql.theory.regrets import expected_regret, rows_to_select, selection_failure, selection_regret
from privsql.theory.shares import repeats_to_average, rows_needed, share_error, share_failure
from privsql.theory.shattering import shatters, vc_dimension
from privsql.theory.small_tables import (
    candidate_tables,
    small_table_error,
    small_table_rows,
    smalldb_error,
    smalldb_error_of_theorem_7,
    smalldb_rows_needed,
)

__all__ = [
    "Conjunctions",
    "HalfPlanes",
    "Intervals",
    "Rectangles",
    "auction_revenue",
    "candidate_tables",
    "epsilon_for_truthfulness",
    "expected_regret",
    "gain_from_lying",
    "repeats_to_average",
    "rows_needed",
    "rows_to_select",
    "selection_failure",
    "selection_regret",
    "share_error",
    "share_failure",
    "shatters",
    "small_table_error",
    "small_table_rows",
    "smalldb_error",
    "smalldb_error_of_theorem_7",
    "smalldb_rows_needed",
    "truthfulness",
    "vc_dimension",
]
