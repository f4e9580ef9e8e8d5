"""A workload of marginals goes in; it is planned, charged and measured, and a QueryRelease comes out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction

from privsql.budget.ledger import Charge
from privsql.budget.released import Released
from privsql.engines.duckdb.calculator import calculator
from privsql.errors import ArgumentError, BudgetError
from privsql.noise.marginals.mwem_rounds import Estimate, Measured, mwem_rounds
from privsql.noise.marginals.residual_noise import release_residuals
from privsql.planning.marginals.mwem_plan import MwemPlan
from privsql.planning.marginals.plan_residuals import ResidualTask, plan_mwem, plan_residuals
from privsql.planning.marginals.residual_measurement import NOISE
from privsql.planning.marginals.residual_plan import ResidualPlan
from privsql.planning.marginals.workload import Marginals
from privsql.planning.pricing import Offer
from privsql.planning.public_look import PublicLook
from privsql.policy.checks import delta_of, epsilon_of, limit_of
from privsql.release.query_release import QueryRelease
from privsql.release.residual_tables import ResidualTables
from privsql.request import argument
from privsql.requests.pipeline import Outcome, Pipeline


@dataclass(frozen=True)
class ReleaseRequest:
    """A workload over one table, and what it may cost.

    `Session.release` and `Session.explain_release` take these arguments.
    """

    workload: Marginals = field(metadata={"help": "what privsql.marginals makes"})
    table: str = field(metadata={"help": "the name of the table"})
    epsilon: float | Fraction | None = argument(None, "the privacy loss of the whole release")
    delta: float = argument(0.0, "the chance that the promise fails; above 0, as the noise is Gaussian")
    _: KW_ONLY
    max_groups: int | None = argument(None, "combinations of cells that one unit may be in")
    max_rows: int | None = argument(None, "rows that one unit may have in one combination")

    def offer(self) -> Offer:
        """The price and the limits, after a check of every argument."""
        if not isinstance(self.workload, Marginals):
            problem = "a workload is made by privsql.marginals"
            raise ArgumentError("argument-workload", problem, 'privsql.marginals(["age", "state"], ways=2)')
        wanted = {"max_groups": self.max_groups, "max_rows": self.max_rows}
        checked = {name: limit_of(value, name, "argument-limits") for name, value in wanted.items()}
        limits = {name: value for name, value in checked.items() if value is not None}
        return Offer(epsilon_of(self.epsilon), delta_of(self.delta), limits=limits)


class StoredReleases:
    """The releases of one session: a second request for the same is answered by the first, free."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._kept: dict[Hashable, QueryRelease] = {}

    def explain(self, request: ReleaseRequest) -> ResidualPlan:
        """What a release would do, what errors to expect, and whether the budget allows it. Reads no data."""
        with self._pipeline.snapshot():
            plan = self._planned(request)
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
            stored = self._kept.get(key)
            if stored is not None:
                return stored.again()
            bill = [Released(NOISE, plan.what, plan.measurement.event)]
            return self._paid(plan, bill, lambda charge: self._measured(plan, key, charge))

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

    def _key(self, plan: ResidualPlan) -> Hashable:
        """What makes a release the same: what is counted, in which state of the data, and the noise."""
        noise = plan.measurement.epsilon, plan.measurement.delta, tuple(plan.residuals.items())
        return plan.sql, plan.columns, self._pipeline.version(), noise

    def _measured(self, plan: ResidualPlan, key: Hashable, charge: Charge) -> QueryRelease:
        pipeline = self._pipeline
        exact = pipeline.engine.run(plan.sql, plan.keys)
        noisy = release_residuals(plan, exact, pipeline.randomness)
        release = QueryRelease(plan, ResidualTables(plan.measurement, noisy), pipeline, charge.when)
        # here, so that Ctrl-C while the time is padded does not lose what was charged
        self._kept[key] = release
        return release
