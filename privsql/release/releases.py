"""A workload of marginals goes in; it is planned, charged and measured, and a QueryRelease comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privsql.answers.derivation import is_as_good
from privsql.answers.release_file import Entry, NoisyArrays, ReleaseFile
from privsql.answers.stored import Shown
from privsql.budget.ledger import Charge
from privsql.budget.released import Released
from privsql.engines.duckdb.calculator import calculator
from privsql.equivalence.written import digest
from privsql.errors import BudgetError, PrivsqlError, Refused
from privsql.noise.marginals.mwem_rounds import Estimate, Measured, mwem_rounds
from privsql.noise.marginals.residual_noise import NoisyResiduals, release_residuals
from privsql.planning.marginals.mwem_plan import MwemPlan
from privsql.planning.marginals.plan_residuals import ResidualTask, plan_mwem, plan_residuals
from privsql.planning.marginals.residual_measurement import NOISE
from privsql.planning.marginals.residual_plan import ResidualPlan
from privsql.planning.plan import Plan
from privsql.planning.public_look import PublicLook
from privsql.privacy.marginals.residual_price import Columns
from privsql.privacy.weighted_sums import variance
from privsql.release.query_reader import QueryReader
from privsql.release.query_release import QueryRelease
from privsql.release.release_request import ReleaseRequest
from privsql.release.residual_tables import ResidualTables
from privsql.requests.pipeline import Outcome, Pipeline


@dataclass(frozen=True)
class KeptRelease:
    """A release, of one version of the data. `entry`: what a file keeps of it; None where it does."""

    release: QueryRelease
    version: str | None
    entry: Callable[[str], Entry] | None = None


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
                try:
                    release = self._read(entry)
                except (PrivsqlError, KeyError, TypeError, ValueError, AttributeError):
                    continue  # refused under this policy, or written by somebody else
                if release is not None:
                    self._kept[key] = KeptRelease(release, entry.version)

    def _read(self, entry: Entry) -> QueryRelease | None:
        """The release planned again, with its noisy numbers; None if it means something else now."""
        plan = self._planned(ReleaseRequest.of_json(entry.asked))
        noisy = residuals_of(plan, entry.noisy)
        if _signature(plan) != entry.signature or noisy is None:
            return None
        return self._release(plan, noisy, entry.when)

    def explain(self, request: ReleaseRequest) -> ResidualPlan:
        """What a release would do, what errors to expect, and whether the budget allows it. Reads no data."""
        with self._pipeline.snapshot():
            plan = self._planned(request)
            self._read_file()
            stored = self._key(plan) in self._kept
            why = ""
            try:
                if not stored:
                    self._pipeline.ledger.expect([[plan.measurement.event]], self._pipeline.analyst)
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
            bill = [Released(NOISE, plan.what, plan.measurement.event)]
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
        self, plan: ResidualPlan | MwemPlan, bill: Sequence[Released], work: Callable[[Charge], Outcome]
    ) -> Outcome:
        """Charge a plan, and do what was charged; a failure is recorded."""
        pipeline = self._pipeline
        pipeline.engine.check(plan.sql, pipeline.schema)
        pipeline.give_notice(plan)
        named = [(bill, plan.what)]
        with pipeline.ledger.running(named, pipeline.policy.neighbours, pipeline.analyst) as (charge,):
            return pipeline.after_charge(charge, lambda: work(charge))

    def _planned(self, request: ReleaseRequest) -> ResidualPlan:
        plan = plan_residuals(self._task(request))
        return replace(plan, rho=self._pipeline.ledger.rho([plan.measurement.event]))

    def _planned_mwem(self, request: ReleaseRequest, rounds: int) -> MwemPlan:
        plan = plan_mwem(self._task(request), rounds)
        rho = self._pipeline.ledger.rho([event for _, event in plan.measurement.events])
        return replace(plan, rho=rho)

    def _task(self, request: ReleaseRequest) -> ResidualTask:
        pipeline, offer = self._pipeline, request.offer()
        scan = pipeline.scan(request.table)
        table = pipeline.schema.table(scan.table)
        declared = pipeline.policy.table(scan.table)
        columns = () if table is None else table.columns
        enumerated = [
            each.name
            for each in columns
            if each.labels is not None and declared.column(each.name).values is None
        ]
        engine = pipeline.engine
        return ResidualTask(
            scan,
            request.workload,
            pipeline.policy.neighbours,
            offer,
            enumerated,
            calculator().evaluate,
            PublicLook(engine.read_public, engine.dialect),
            engine.dialect,
        )

    def _key(self, plan: ResidualPlan) -> tuple[str, str | None]:
        """What makes a release the same: what is counted, in which state of the data, and the noise."""
        return _signature(plan), self._pipeline.version()

    def _measured(self, plan: ResidualPlan, request: ReleaseRequest, charge: Charge) -> QueryRelease:
        pipeline = self._pipeline
        version = pipeline.version()
        exact = pipeline.engine.run(plan.sql, plan.keys)
        noisy = release_residuals(plan, exact, pipeline.randomness)
        release = self._release(plan, noisy, charge.when)

        def entry(version: str) -> Entry:
            asked, arrays = request.to_json(), {_name(each): array for each, array in noisy.items()}
            return Entry(charge.number, plan.what, charge.when, version, asked, _signature(plan), arrays)

        # here, so that Ctrl-C while the time is padded does not lose what was charged
        kept = self._kept[_signature(plan), version] = KeptRelease(release, version, entry)
        self._unwritten[charge.number] = kept
        return release

    def _release(self, plan: ResidualPlan, noisy: NoisyResiduals, when: str) -> QueryRelease:
        pipeline = self._pipeline
        reader = QueryReader(pipeline.schema, pipeline.policy, pipeline.engine.dialect)
        return QueryRelease(plan, ResidualTables(plan.measurement, noisy), reader, when)


def _signature(plan: ResidualPlan) -> str:
    """What tells a release from others, whatever the state of the data."""
    noise = plan.measurement.epsilon, plan.measurement.delta, plan.measurement.by
    return digest(repr((plan.sql, plan.columns, noise, plan.sets)))


def _name(columns: Columns) -> str:
    return ",".join(map(str, columns))


def residuals_of(plan: ResidualPlan, noisy: NoisyArrays) -> NoisyResiduals | None:
    """The noisy residuals of a plan; None where these are not as many whole numbers as it measures."""
    found = {each: noisy[_name(each)] for each in plan.residuals if _name(each) in noisy}
    sizes = plan.measurement.sizes
    fits = len(found) == len(noisy) == len(plan.residuals) and all(
        array.dtype == np.int64 and array.shape == tuple(sizes[each] for each in columns)
        for columns, array in found.items()
    )
    return found if fits else None


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
