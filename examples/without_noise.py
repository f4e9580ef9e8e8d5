"""For owners: what answers give away without noise, and what privsql leaves of it, in four attacks."""

import numpy as np
import pandas as pd

import privsql
from privsql import attacks

PEOPLE, GENES = 100, 1500
generator = np.random.default_rng()
table = pd.DataFrame({"id": np.arange(PEOPLE), "ill": generator.integers(0, 2, PEOPLE) == 1})
ill = table["ill"].to_numpy()


def without(subset: np.ndarray) -> int:
    """A dashboard that counts exactly, and lets everybody choose whom to count."""
    return int((subset & ill).sum())


def protected(budget: float):
    """The same dashboard, answered by privsql at epsilon 0.1 a count."""
    session = privsql.connect({"people": table}, {"budget": {"epsilon": budget}})

    def ask(subset: np.ndarray) -> int:
        ids = ", ".join(str(place) for place in np.flatnonzero(subset))
        count = f"SELECT COUNT(*) AS n FROM people WHERE ill AND id IN ({ids})"
        return session.query(count, epsilon=0.1).fetchall()[0][0]

    return ask


print("1. Differencing: everybody, then everybody but one.")
person = int(generator.integers(PEOPLE))
found = attacks.differencing(without, PEOPLE, person)
print(
    f"   exact counts: person {person} is {'ill' if found.bit else 'not ill'}; in truth: {bool(ill[person])}"
)
assert found.bit == ill[person]
found = attacks.differencing(protected(1.0), PEOPLE, person)
print(f"   privsql: the difference of two counts is {found.estimate:g}, where 0 or 1 was to be told apart")

print("\n2. Averaging: the same count again and again, each time with a little noise of its own.")
everybody = np.ones(PEOPLE, dtype=bool)
found = attacks.averaging(lambda: without(everybody) + generator.normal(0, 5), 4000)
print(f"   home-made noise: the mean is {found.estimate:.2f}, exactly {ill.sum()}")
assert round(found.estimate) == ill.sum()
ask = protected(1.0)
found = attacks.averaging(lambda: ask(everybody), 50)
print(f"   privsql: {found.distinct} answer in {found.asked} tries, {found.estimate:g}")
assert found.distinct == 1

print("\n3. Reconstruction: counts over random groups, and a linear program.")
found = attacks.reconstruct(without, PEOPLE)
print(f"   exact counts: {found.share_of(ill):.0%} of all people's illness is read off {found.asked} counts")
assert found.share_of(ill) == 1.0
found = attacks.reconstruct(protected(2.0), PEOPLE)
print(
    f"   privsql: {found.share_of(ill):.0%} right after {found.asked} counts, when the budget is spent; "
    "a coin: 50%"
)
assert found.refused and found.share_of(ill) < 0.9

print("\n4. Membership: is somebody in the study? From the means of many genes.")
shares = generator.uniform(0.2, 0.8, GENES)
study, strangers = ((generator.random((size, GENES)) < shares).astype(int) for size in (50, 200))
means = study.mean(axis=0)
found = [attacks.membership(lambda gene: means[gene], someone, strangers) for someone in study[:20]]
print(f"   exact means: {sum(each.member for each in found)} of 20 members are found out")
assert sum(each.member for each in found) >= 15
genes = privsql.connect(
    {"study": pd.DataFrame(study[:, :20]).add_prefix("gene")}, {"budget": {"epsilon": 1.0}}
)


def noisy_mean(gene: int) -> float:
    count = genes.query(f"SELECT COUNT(*) AS n FROM study WHERE gene{gene} = 1", epsilon=0.1).fetchall()[0][0]
    return count / 50


found = attacks.membership(noisy_mean, study[0, :20], strangers[:, :20])
print(f"   privsql: after {found.asked} means the budget is spent; p-value {found.p_value:.2f}")
assert found.refused and found.asked == 10
