"""Note 003: SmallDB, a small table that answers all queries at once, at toy scale; VC dimension; sparse
vector.
"""

import itertools
import math
from fractions import Fraction

import numpy as np

from privsql import mechanisms

# People are smokers or not, over 30 or not: four kinds. The queries are all 16 sets of kinds.
KINDS, ROWS, EPSILON, ALPHA, BETA = 4, 2000, 1.0, 0.25, 0.05
queries = np.array(list(itertools.product((0, 1), repeat=KINDS)))
exact = np.array([900, 150, 610, 340])  # how many of each kind there are

print(f"1. There is a small table with error at most {ALPHA} on all {len(queries)} queries (theorem 5).")
small = math.ceil(math.log(2 * len(queries) + 1) / (2 * ALPHA**2))
tables = [
    np.diff((-1, *cuts, small + KINDS - 1)) - 1
    for cuts in itertools.combinations(range(small + KINDS - 1), KINDS - 1)
]
true = queries @ exact
scores = [
    -Fraction(int(np.abs(small * true - ROWS * (queries @ each)).max()), small * ROWS) for each in tables
]
best = float(-max(scores))
print(f"   of {small} rows each there are {len(tables)} tables; the best has error {best:.4f}")
assert best <= ALPHA

print(
    f"\n2. The exponential mechanism chooses one, at epsilon {EPSILON:g}; "
    "replacing a row moves a score by 1/n at most."
)
chosen = mechanisms.exponential(scores, epsilon=EPSILON, sensitivity=Fraction(1, ROWS))
error = float(-scores[chosen])
bound = ALPHA + 2 * (math.log(len(tables)) + math.log(1 / BETA)) / (EPSILON * ROWS)
print(
    f"   chosen: {tables[chosen].tolist()} of {small} rows, for {exact.tolist()} of {ROWS}; "
    f"largest error {error:.4f}"
)
chances = mechanisms.exponential_probabilities(scores, epsilon=EPSILON, sensitivity=Fraction(1, ROWS))
missed = sum(chance for chance, score in zip(chances, scores, strict=True) if -score > bound)
mean = sum(chance * float(-score) for chance, score in zip(chances, scores, strict=True))
print(
    f"   check: the error is above {bound:.4f} (proposition 6) with probability {missed:.1e}, "
    f"at most {BETA}; its mean is {mean:.4f}"
)
assert missed <= BETA

print(
    "\n3. The same 16 answers with independent Laplace noise: l1 is 16/n, "
    "and the error grows with the number of queries."
)
noisy = mechanisms.laplace(
    [Fraction(int(each), ROWS) for each in true], epsilon=EPSILON, sensitivity=Fraction(16, ROWS)
)
print(
    f"   largest error {np.abs(np.array(noisy) - true / ROWS).max():.4f}; "
    "SmallDB's grows with their logarithm"
)

print("\n4. The VC dimension of the queries is at most log2 of their number (lemma 10).")
shattered = max(
    size
    for size in range(KINDS + 1)
    for points in itertools.combinations(range(KINDS), size)
    if len({tuple(row) for row in queries[:, list(points)].tolist()}) == 2**size
)
print(f"   dimension {shattered}, log2 {math.log2(len(queries)):g}")
assert shattered <= math.log2(len(queries))

print(
    "\n5. Sparse vector: of 500 counts asked one after the other, "
    "the first that reaches 1000, for one epsilon."
)
stream = (int(count) for count in [*np.arange(400) % 60, 1900, *np.arange(99)])
found = mechanisms.above_threshold(stream, threshold=1000, epsilon=1.0)
print(f"   exact: number 400; privsql: number {found}")
assert found == 400
