"""A batch of counting queries goes in; its answers come out, from one joint release where that is more
accurate than noise of their own for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from privsql.answers.derivation import variances
from privsql.errors import PrivsqlError
from privsql.policy.checks import delta_of
from privsql.release.plan_release import plan_of_queries
from privsql.release.query_release import QueryRelease
from privsql.release.release_request import ReleaseRequest
from privsql.release.releases import StoredReleases
from privsql.requests.batches import Batch, plan_batch
from privsql.requests.pipeline import Pipeline
from privsql.requests.stage import Stage
from privsql.results.answer import Answer
from privsql.results.release_answer import Price, ReleaseAnswer


def answer_jointly(
    listed: Sequence[Stage], whole: Fraction, delta: float, releases: StoredReleases, pipeline: Pipeline
) -> list[Answer] | None:
    """The answers of a batch, if it counts rows of one table and a joint release has the smaller predicted
    error.

    None otherwise: where there is no delta, where something is stored already, where users have many rows,
    and where the batch is refused, or a release at its price, which it then says itself. All that decides is
    public.
    """
    first, *others = listed
    if not others or not delta or first.show_all or first.analyst is not None:
        return None
    texts = [each.sql for each in listed]
    request = ReleaseRequest(texts, None, whole, float(delta_of(delta)), dialect=first.dialect)
    try:
        with pipeline.snapshot():
            plan, joint = plan_of_queries(request, pipeline)
            if plan.bounding or not joint < _own_variance(plan_batch(listed, whole, pipeline)):
                return None
            # as one release it may cost more than one query may, where query by query it does not
            pipeline.ledger.expect([[plan.event]], pipeline.analyst)
    except PrivsqlError:
        return None
    release = releases.release(request)
    return _with_prices(release)


def _with_prices(release: QueryRelease) -> list[Answer]:
    """The answers of a release that stands for a batch: each has an equal share of its price."""
    answers = release.answers()
    paid, many = release.plan, len(answers)
    shares = paid.epsilon / many, paid.delta / many, None if paid.rho is None else paid.rho / many
    return [
        replace(each, stored=release.stored, price=None if release.stored else Price(*shares))
        for each in answers
        if isinstance(each, ReleaseAnswer)
    ]


def _own_variance(batch: Batch) -> float:
    """At most the mean variance of the counts of a batch: what follows from others is at least as noisy as
    its own share would make it. 0 where something is stored.
    """
    if batch.free:
        return 0.0
    plans = [each.plan for each in batch.priced]
    cells = [len(each.space) for each in plans]
    worst = [max(variances(each).values(), default=0.0) for each in plans]
    return float(np.average(worst, weights=cells))
