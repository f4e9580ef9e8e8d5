"""Several queries go in; their answers come out, for one epsilon, split so that their errors are small.

What is the same, or follows from another one, is paid for once. All are priced and charged before the first
is run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from privsql.answers.batch import Shares, shared
from privsql.budget.ledger import Charge
from privsql.engines.duckdb.calculator import calculator
from privsql.errors import ArgumentError, PrivsqlError
from privsql.planning.limits.range_histograms import unknown_ranges
from privsql.planning.plan import Plan
from privsql.policy.checks import delta_of, epsilon_of
from privsql.requests.pipeline import Pipeline, Priced, finished
from privsql.requests.stage import Stage
from privsql.requests.text_options import refuse_options
from privsql.results.answer import Answer
from privsql.sql.parse.tokens import options_in

Now = Callable[[Priced, Mapping[int, Answer]], Priced]


@dataclass(frozen=True)
class Batch:
    """Priced queries; those that are paid for; those that read noisy values of others which are not known
    yet; those that follow from what is still to be paid for; and all that follow from another one.
    """

    priced: Sequence[Priced]
    paid: dict[int, Priced]
    later: Collection[int] = ()
    following: Collection[int] = ()
    repeated: Collection[int] = ()

    @property
    def free(self) -> list[int]:
        """The places whose answers are known before anything is charged."""
        waiting = {*self.paid, *self.later, *self.following}
        return [place for place in range(len(self.priced)) if place not in waiting]


def stages_of(
    texts: Sequence[str], epsilon: object, delta: object, dialect: str, show_all: bool, analyst: str | None
) -> tuple[list[Stage], Fraction]:
    """The queries of a batch, each with an equal part of epsilon and delta, and the whole epsilon."""
    if isinstance(texts, str) or not isinstance(texts, Sequence) or not texts:
        raise ArgumentError(
            "argument-batch", "queries must be a list of SQL texts", '["SELECT ...", "SELECT ..."]'
        )
    for sql in texts:
        refuse_options(options_in(sql, dialect))
    whole, part = epsilon_of(epsilon), float(delta_of(delta) / len(texts))
    each = epsilon_of(whole / len(texts))
    listed = [Stage(sql, each, part, dialect=dialect, show_all=show_all, analyst=analyst) for sql in texts]
    return listed, whole


def answer_batch(listed: Sequence[Stage], whole: Fraction, pipeline: Pipeline) -> list[Answer]:
    """Plan all, charge all that must be paid at once, run it, and answer the others from it."""
    with pipeline.snapshot():
        batch = plan_batch(listed, whole, pipeline)
        for priced in batch.priced:
            pipeline.give_notice(priced.plan)
        return run_batch(batch, pipeline)


def plan_batch(
    listed: Sequence[Stage],
    whole: Fraction,
    pipeline: Pipeline,
    alone: Collection[int] = (),
    later: Collection[int] = (),
) -> Batch:
    """Plan all, and split epsilon over what must be paid; charges nothing.

    `alone`: the places of those that read noisy values of others, and are paid for by themselves. `later`:
    those of them whose values are not known yet, so that nobody can know whether their answers are stored.
    """
    return _split(_planned(listed, pipeline), whole, pipeline, alone, later)


def run_batch(batch: Batch, pipeline: Pipeline, now: Now | None = None) -> list[Answer]:
    """Charge all that must be paid at once, run it, and answer the others from it.

    `now`: what to run at a later place, once the answers before it are known.
    """
    first = [place for place in range(len(batch.priced)) if place not in batch.later]
    answers: dict[int, Answer] = {}
    with _charged(batch, pipeline) as charges:
        for place in first:
            if place in charges:
                answers[place] = pipeline.run(batch.priced[place], charges[place])
        for place in first:
            if place not in charges or not batch.priced[place].stage.fresh:
                answers[place] = answer_of(batch, place, pipeline)
        trouble: PrivsqlError | None = None
        for place in sorted(batch.later):
            assert now is not None, "somebody knows how to read the values of earlier answers"
            try:
                priced = now(batch.priced[place], answers)
            except PrivsqlError as error:  # it depends on noisy values only: no failure of the engine
                trouble = error
                break
            answers[place] = pipeline.run(priced, charges[place])
    if trouble is not None:
        raise trouble
    return [answers[place] for place in range(len(batch.priced))]


@contextlib.contextmanager
def _charged(batch: Batch, pipeline: Pipeline) -> Iterator[dict[int, Charge]]:
    """Charge what must be paid, and say by which charge each place is."""
    if not batch.paid:
        yield {}
        return
    later = [number for number, place in enumerate(batch.paid) if place in batch.later]
    with pipeline.charged(list(batch.paid.values()), later) as charges:
        yield dict(zip(batch.paid, charges, strict=True))


def answer_of(batch: Batch, place: int, pipeline: Pipeline) -> Answer:
    """From all that is known now, the answer at a place."""
    return _answer(batch.priced[place].plan, place in batch.paid, pipeline)


def _planned(listed: Sequence[Stage], pipeline: Pipeline) -> list[Priced]:
    queries = [pipeline.read(each) for each in listed]
    if any(unknown_ranges(query) for query in queries):
        raise ArgumentError(
            "argument-batch",
            "a range is not known yet, and is not looked for in a batch",
            "declare it, or run this query separately",
        )
    priced = [pipeline.plan(each, query) for each, query in zip(listed, queries, strict=True)]
    return priced


def _split(
    priced: list[Priced], whole: Fraction, pipeline: Pipeline, alone: Collection[int], later: Collection[int]
) -> Batch:
    """Choose what is paid for, and split epsilon over it; what is stored costs nothing."""
    private = {place: each.plan for place, each in enumerate(priced) if not each.plan.public}
    places, plans = list(private), list(private.values())
    apart = {number for number, place in enumerate(places) if place in alone}
    shares = shared(plans, whole, calculator().evaluate, apart) if private else Shares({}, {})
    for number, other in shares.follows.items():
        priced[places[number]] = _repriced(priced[places[number]], shares.paid[other])
    paid: dict[int, Priced] = {}
    for number, share in shares.paid.items():
        place = places[number]
        priced[place] = _repriced(priced[place], share)
        follow = [priced[places[each]].plan for each, other in shares.follows.items() if other == number]
        spent = place in later or priced[place].stage.fresh
        if spent or not _is_known(priced[place].plan, follow, pipeline):
            paid[place] = priced[place]
    following = {places[number] for number, other in shares.follows.items() if places[other] in paid}
    return Batch(priced, paid, later, following, {places[number] for number in shares.follows})


def _repriced(priced: Priced, epsilon: Fraction) -> Priced:
    return Priced(replace(priced.stage, epsilon=epsilon), priced.plan.repriced(epsilon))


def _is_known(plan: Plan, followers: Sequence[Plan], pipeline: Pipeline) -> bool:
    """Whether it need not be paid for.

    A query that follows from it need not follow from what it is computed from itself.
    """
    return pipeline.find(plan) is not None and all(pipeline.known(each) is not None for each in followers)


def _answer(plan: Plan, paid: bool, pipeline: Pipeline) -> Answer:
    """From all that is known now, which answers it."""
    if plan.public:
        return pipeline.public(plan)
    stored = (pipeline.found_again(plan) if paid else None) or pipeline.known(plan)
    assert stored is not None, "it was paid for, or follows from what was"
    return replace(finished(stored), stored=not paid)
