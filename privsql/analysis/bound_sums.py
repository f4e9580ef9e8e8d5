"""Stability and the size of one row's contribution go in; l1 and linf of a vector of sums come out, with the
reason.

Write R for the number of rows that one person's row becomes, p for how many of them can fall into one cell,
and let each row add to the vector a contribution of l1-norm at most `size`, every coordinate within a span of
`width` (0 included unless every row always counts). Then, for add-remove neighbours, l1 <= R size and linf <=
p size. For replace-one, a row's old contribution is removed and a new one added: l1 <= 2 R size; with a
single cell the total moves by at most R width. Over several sets of keys a row counts once in every set: l1
is the sum over the sets, linf the greatest of them. Where there are few cells in all, l1 <= cells linf may be
less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from privsql.analysis.stability import Stability
from privsql.neighbours import Neighbours
from privsql.privacy.sensitivity import Sensitivity


def sensitivity_of(
    stability: Stability,
    neighbours: Neighbours,
    keys: list[str] | None,
    size: int,
    width: int,
    cells: int,
    what: str,
    monotone: bool = False,
) -> Sensitivity:
    """Bounds for `cells` columns per key (`keys` None: no GROUP BY), when one row adds at most `size` and
    spans `width`.
    """
    assert stability.rows is not None, "rows are bounded first"
    rows = max(1, stability.rows)
    shared = rows if keys is None else max(1, stability.sharing(keys))
    single = keys is None and cells == 1
    if neighbours is Neighbours.ADD_REMOVE:
        l1, linf = rows * size, shared * size
        reason = "one person comes or goes"
    elif single:
        l1 = linf = rows * width
        reason = "one person is replaced, and the total moves by at most the span of one part"
    else:
        l1, linf = 2 * rows * size, shared * width
        reason = "one person is replaced: leaves some cells and enters others, so twice"
    l1, linf = max(1, l1), max(1, linf)  # a total that cannot move still gets the smallest noise
    copies = f"{rows} rows a person, " if rows > 1 else ""
    return Sensitivity(
        l1, min(l1, linf), f"{what}; {copies}{reason}", monotone and neighbours is Neighbours.ADD_REMOVE
    )


def at_most(sensitivity: Sensitivity, cells: int) -> Sensitivity:
    """The same sensitivity, for a vector with this many cells in all."""
    most = max(1, cells) * sensitivity.linf
    if most >= sensitivity.l1:
        return sensitivity
    return replace(
        sensitivity, l1=most, why=f"{sensitivity.why}; no more than linf in each of {cells:,} cells"
    )


def over_sets(of_sets: Sequence[Sensitivity], total: int | None) -> Sensitivity:
    """The sensitivity of one vector of sums over several sets of keys; `total`: the set that is the sum over
    all keys.

    If the total moves half as far as the others, it is counted twice: then every set has the same share of
    epsilon.
    """
    times = [1] * len(of_sets)
    if total is not None:
        others = max(each.l1 for place, each in enumerate(of_sets) if place != total)
        times[total] = max(1, others // of_sets[total].l1)
    bounds = [(many * each.l1, many * each.linf) for many, each in zip(times, of_sets, strict=True)]
    first = next(each for place, each in enumerate(of_sets) if place != total)
    doubled = "" if max(times) == 1 else f", the total {max(times)} times, since it moves so much less"
    return Sensitivity(
        l1=sum(l1 for l1, _ in bounds),
        linf=max(linf for _, linf in bounds),
        why=f"{first.why}; once in each of {len(of_sets)} sets of keys{doubled}",
        squares=sum(l1 * linf for l1, linf in bounds),
        total_times=max(times),
    )
