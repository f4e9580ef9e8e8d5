"""A workload of marginals goes in; it is planned, charged and measured, and a QueryRelease comes out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from privsql.answers.derivation import is_as_good
from privsql.answers.release_file import ReleaseEntry, ReleaseFile
from privsql.answers.stored import Shown
from privsql.budget.ledger import Charge
from privsql.budget.released import Released
from privsql.errors import BudgetError, Refused
from privsql.noise.marginals.mwem_rounds import Estimate, Measured, mwem_rounds
from privsql.noise.marginals.strategy_noise import release_part
from privsql.planning.marginals.mwem_plan import MwemPlan
from privsql.planning.marginals.plan_residuals import plan_mwem
from privsql.planning.marginals.residual_measurement import NOISE
from privsql.planning.marginals.workload import Marginals
from privsql.planning.plan import Plan
from privsql.policy import Policy
from privsql.privacy.weighted_sums import variance
from privsql.release.noisy_parts import (
    arrays_of,
    event_of,
    part_with,
    parts_of_arrays,
    parts_of_plan,
    signature_of,
)
from privsql.release.plan_release import plan_release, task_of
from privsql.release.query_reader import QueryReader
from privsql.release.query_release import NoisyPart, QueryRelease, ReleasedPlan
from privsql.release.release_request import ReleaseRequest
from privsql.requests.pipeline import Outcome, Pipeline


@dataclass(frozen=True)
class KeptRelease:
    """A release, of one version of the data. `entry`: what a file keeps of it; None where it does."""

    release: QueryRelease
    version: str | None
    entry: Callable[[str], ReleaseEntry] | None = None


class StoredReleases:
    """The releases of one session and its ledger. A second request for the same is answered by the first, and
    so are single queries that follow from a release, free.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._kept: dict[tuple[str, str | None], KeptRelease] = {}
        self._unwritten: dict[int, KeptRelease] = {}
        path = pipeline.ledger.path
        self._file = None if path is None else ReleaseFile(path, pipeline.ledger.charged)
        pipeline.releases = self

    # -- queries that follow ---------------------------------------------------------------------------------
    def answered(self, plan: Plan, version: str | None, as_good: bool) -> Shown | None:
        """How the most accurate of all releases answers a query; None where none does.

        `as_good`: no cell may be noisier than the plan would make it. A release of users with many rows
        counts the rows that its own limits keep, so it stands for no query.
        """
        self._read_file()
        releases = [each.release for each in self._kept.values() if each.version == version]
        found = [
            shown
            for release in releases
            if not release.plan.bounding
            for each in (plan, plan.apart)
            if each is not None and (shown := _followed(release, plan, each, as_good)) is not None
        ]
        return min(found, key=lambda shown: _worst(shown[0]), default=None)

    def share(self, number: int) -> None:
        """Write the release of this charge to the ledger's file of answers, for other sessions."""
        kept = self._unwritten.pop(number, None)
        if (
            kept is not None
            and kept.entry is not None
            and kept.version is not None
            and self._file is not None
        ):
            self._file.keep(kept.entry(kept.version))

    def _read_file(self) -> None:
        """Take over what other sessions have released under this ledger."""
        for entry in () if self._file is None else self._file.newer():
            key = entry.signature, entry.version
            if key not in self._kept:
                release = None
                with contextlib.suppress(Exception):  # refused by this policy, or written by somebody else
                    release = self._read(entry)
                if release is not None:
                    self._kept[key] = KeptRelease(release, entry.version)

    def _read(self, entry: ReleaseEntry) -> QueryRelease | None:
        """The release planned again, with its noisy numbers; None if it means something else now."""
        request = ReleaseRequest.of_json(entry.asked)
        plan = self._planned(request)
        parts = parts_of_arrays(parts_of_plan(plan), entry.noisy)
        if signature_of(plan) != entry.signature or parts is None:
            return None
        return self._release(plan, parts, request, entry.when)

    def explain(self, request: ReleaseRequest) -> ReleasedPlan:
        """What a release would do, what errors to expect, and whether the budget allows it. Reads no data."""
        with self._pipeline.snapshot():
            plan = self._planned(request)
            self._read_file()
            stored = self._key(plan) in self._kept
            why = ""
            try:
                if not stored:
                    self._pipeline.ledger.expect([[event_of(plan)]], self._pipeline.analyst)
            except BudgetError as refusal:
                why = refusal.message
            return replace(plan, stored=stored, refusal=why)

    def release(self, request: ReleaseRequest) -> QueryRelease:
        """The stored release of the same workload, or one that is charged and measured."""
        pipeline = self._pipeline
        with pipeline.snapshot():
            plan = self._planned(request)
            key = self._key(plan)
            self._read_file()
            stored = self._kept.get(key)
            if stored is not None:
                return stored.release.again()
            bill = [Released(NOISE, plan.what, event_of(plan))]
            return self._paid(plan, bill, lambda charge: self._measured(plan, request, charge))

    def mwem(
        self, request: ReleaseRequest, rounds: int, estimate: Estimate
    ) -> tuple[MwemPlan, list[Measured]]:
        """The plan and the noisy marginals of MWEM, charged anew each time."""
        pipeline = self._pipeline
        with pipeline.snapshot():
            plan = self._planned_mwem(request, rounds)
            bill = [Released(name, plan.what, event) for name, event in plan.measurement.events]
            run = pipeline.engine.run
            return plan, self._paid(
                plan,
                bill,
                lambda _: mwem_rounds(plan, run(plan.sql, plan.keys), estimate, pipeline.randomness),
            )

    def plan_mwem(self, request: ReleaseRequest, rounds: int) -> MwemPlan:
        """What MWEM would do. Reads no private data."""
        with self._pipeline.snapshot():
            return self._planned_mwem(request, rounds)

    def _paid(
        self, plan: ReleasedPlan | MwemPlan, bill: Sequence[Released], work: Callable[[Charge], Outcome]
    ) -> Outcome:
        """Charge a plan, and do what was charged; a failure is recorded."""
        pipeline = self._pipeline
        pipeline.engine.check(plan.sql, pipeline.schema)
        pipeline.give_notice(plan)
        named = [(bill, plan.what)]
        with pipeline.ledger.running(named, pipeline.policy.neighbours, pipeline.analyst) as (charge,):
            return pipeline.after_charge(charge, lambda: work(charge))

    def _planned(self, request: ReleaseRequest) -> ReleasedPlan:
        plan = plan_release(request, self._pipeline)
        return replace(plan, rho=self._pipeline.ledger.rho([event_of(plan)]))

    def _planned_mwem(self, request: ReleaseRequest, rounds: int) -> MwemPlan:
        (workload,) = request.listed
        assert request.table is not None and isinstance(workload, Marginals)
        plan = plan_mwem(task_of(request, request.table, self._pipeline), workload, rounds)
        rho = self._pipeline.ledger.rho([event for _, event in plan.measurement.events])
        return replace(plan, rho=rho)

    def _key(self, plan: ReleasedPlan) -> tuple[str, str | None]:
        """What makes a release the same: what is counted, in which state of the data, and the noise."""
        return signature_of(plan), self._pipeline.version()

    def _measured(self, plan: ReleasedPlan, request: ReleaseRequest, charge: Charge) -> QueryRelease:
        pipeline = self._pipeline
        version = pipeline.version()
        exact = pipeline.engine.run(plan.sql, plan.keys)
        listed = parts_of_plan(plan)
        parts = tuple(part_with(each, release_part(each, exact, pipeline.randomness)) for each in listed)
        release = self._release(plan, parts, request, charge.when)

        def entry(version: str) -> ReleaseEntry:
            asked, signature = request.to_json(), signature_of(plan)
            return ReleaseEntry(
                charge.number, plan.what, charge.when, version, asked, signature, arrays_of(release.parts)
            )

        # here, so that Ctrl-C while the time is padded does not lose what was charged
        kept = self._kept[signature_of(plan), version] = KeptRelease(release, version, entry)
        self._unwritten[charge.number] = kept
        return release

    def _release(
        self, plan: ReleasedPlan, parts: tuple[NoisyPart, ...], request: ReleaseRequest, when: str
    ) -> QueryRelease:
        pipeline = self._pipeline
        policy = pipeline.policy
        # what is pickled with a release names no analysts, and no budget
        public = Policy(
            neighbours=policy.neighbours,
            time_zone=policy.time_zone,
            min_units=policy.min_units,
            tables=policy.tables,
        )
        reader = QueryReader(pipeline.schema, public, pipeline.engine.dialect)
        return QueryRelease(plan, parts, reader, when, tuple(request.texts), request.dialect)


def _followed(release: QueryRelease, asked: Plan, plan: Plan, as_good: bool) -> Shown | None:
    """How a release answers a plan, which may have counts measured separately from the one that was asked."""
    try:
        answered, cells = release.answer(plan)
    except Refused:
        return None
    assert answered.derived is not None
    if not {column for each in plan.measurements for column in each.columns} <= cells.noisy_columns.keys():
        return None
    return None if as_good and not is_as_good(asked, plan, answered.derived) else (answered, cells)


def _worst(plan: Plan) -> float:
    """The greatest variance of a cell."""
    assert plan.derived is not None
    return max((variance(each) for _, noise in plan.derived.kinds for each in noise.values()), default=0.0)
