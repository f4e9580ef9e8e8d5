"""Notes 000 and 003: SmallDB, a small table that answers all queries at once; VC dimension; sparse vector."""

import itertools
from fractions import Fraction

import numpy as np

from privsql import mechanisms, theory

# People are smokers or not, over 30 or not: four kinds. The queries are all 16 sets of kinds.
counts = {"young smoker": 900, "young": 150, "old smoker": 610, "old": 340}
queries = list(itertools.product((0, 1), repeat=4))
ROWS, EPSILON, ALPHA = sum(counts.values()), 1.0, 0.25

print(
    f"1. There is a small table with error at most {ALPHA} on all {len(queries)} queries"
    " (claim 7, theorem 5)."
)
small = mechanisms.smalldb(counts, queries, epsilon=EPSILON, within=ALPHA)
print(f"   of {small.rows} rows each there are {small.candidates} candidate tables")
chances = mechanisms.smalldb_probabilities(counts, queries, epsilon=EPSILON, within=ALPHA)
print(f"   the probability of each is known; the most likely has {max(chances.values()):.1%}")
assert small.rows == theory.small_table_rows(within=ALPHA, queries=16) == 28
assert len(chances) == small.candidates == theory.candidate_tables(universe=4, rows=small.rows)

print(
    f"\n2. The exponential mechanism chooses one, at epsilon {EPSILON:g}; a row moves a score by 1/n at most."
)
print(f"   chosen: {small.table}")
print(f"   its share of smokers is {small.answers[queries.index((1, 0, 1, 0))]:.3f}, exactly {1510 / ROWS}")
bounds = small.bounds
print(f"   largest error {small.error(counts):.4f} (which only the owner may compute)")
print(f"   the best table: at most {bounds.claim_7:.3f} (claim 7); the chosen one, with 95% confidence:")
print(f"   {bounds.proposition_6:.3f} (proposition 6); for the best number of rows {bounds.theorem_7:.3f}")
print(
    f"   (theorem 7, closed form) and {bounds.theorem_11:.3f} (theorem 11, VC dimension {bounds.dimension})"
)
assert bounds.claim_7 <= ALPHA
assert small.error(counts) <= 2 * bounds.proposition_6
rows = theory.smalldb_rows_needed(within=0.1, universe=4, queries=16, epsilon=EPSILON)
print(f"   theorem 7, solved: {rows} people suffice for an error of 10%")

print("\n3. The same 16 answers with independent Laplace noise: l1 is 16/n, as it grows with the queries.")
true = [Fraction(sum(c for c, q in zip(counts.values(), query, strict=True) if q), ROWS) for query in queries]
noisy = mechanisms.laplace(true, epsilon=EPSILON, sensitivity=Fraction(16, ROWS))
worst = max(abs(a - b) for a, b in zip(noisy, true, strict=True))
print(f"   largest error {float(worst):.4f}; SmallDB's grows with the logarithm of the number of queries")

print("\n4. Shattering, and the VC dimension of the queries: at most log2 of their number (lemma 10).")
planes = theory.HalfPlanes()
for what, points in (
    ("two points", [(0, 0), (1, 2)]),
    ("three points", [(0, 0), (1, 0), (0, 1)]),
    ("three points on a line", [(0, 0), (1, 1), (2, 2)]),
    ("a quadrilateral", [(0, 0), (1, 0), (1, 1), (0, 1)]),
):
    print(f"   half-planes shatter {what}: {theory.shatters(planes, points)}")
dimensions = {
    "all sets of 4 kinds": theory.vc_dimension(queries),
    "intervals": theory.vc_dimension(theory.Intervals()),
    "half-planes": theory.vc_dimension(planes),
    "rectangles": theory.vc_dimension(theory.Rectangles(2)),
    "conjunctions of 5 variables": theory.vc_dimension(theory.Conjunctions(5)),
}
print("  ", ", ".join(f"{name} {dimension}" for name, dimension in dimensions.items()))
assert list(dimensions.values()) == [4, 2, 3, 4, 5]

print(
    "\n5. Sparse vector: of 500 counts asked one after the other, the first that reach 1000, for one epsilon."
)
stream = [int(count) for count in [*np.arange(400) % 60, 1900, *np.arange(99)]]
found = mechanisms.above_threshold(stream, threshold=1000, epsilon=1.0)
print(f"   exact: number 400; privsql: number {found}")
assert found == 400
stream[100] = stream[450] = 2500
several = mechanisms.above_threshold(stream, threshold=1200, epsilon=1.0, count=3)
print(f"   the first three: {several}, all of them paid for in advance")
assert several == [100, 400, 450]
