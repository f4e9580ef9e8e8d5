"""A workload, a table or a stream of counts goes in; what answers for free afterwards comes out.

These are the methods of a Session that release much at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Never

from privsql.errors import no_more_arguments
from privsql.planning.composed_plan import AnyPlan
from privsql.release.online import Online, opened
from privsql.release.query_release import QueryRelease, ReleasedPlan
from privsql.release.release_request import ReleaseRequest
from privsql.release.releases import StoredReleases
from privsql.release.rows.synthesis import SynthesisRequest, synthesize
from privsql.release.rows.synthetic import Synthetic
from privsql.request import Request, takes
from privsql.requests.pipeline import Pipeline
from privsql.results.composed_answer import AnyAnswer


class ReleasingSession(ABC):
    """Releases of a session, which answer queries at no cost. Session has everything else."""

    _pipeline: Pipeline
    _releases: StoredReleases

    @abstractmethod
    def ask(self, request: Request) -> AnyAnswer:
        """Answer a request."""

    @abstractmethod
    def plan(self, request: Request) -> AnyPlan:
        """Plan a request without answering it."""

    @takes(ReleaseRequest)
    def release(self, request: ReleaseRequest) -> QueryRelease:
        """Pay once for a workload of counts, which are then answered at no cost.

        Returns:
            The release; a repeated call returns the stored one.

        Raises:
            PrivsqlError: as `query` raises it.

        Example:
            >>> asked = privsql.marginals(["state"], ways=1)
            >>> session.release(asked, "visits", epsilon=1.0, delta=1e-6).df(["state"]).columns.tolist()
            ['state', 'n', 'n_low', 'n_high']
        """
        return self._releases.release(request)

    @takes(ReleaseRequest)
    def explain_release(self, request: ReleaseRequest) -> ReleasedPlan:
        """Show what release() would do, with the error of every marginal. Spends nothing.

        Returns:
            The plan of the release.

        Raises:
            PrivsqlError: as `explain` raises it.

        Example:
            >>> asked = privsql.marginals(["state"], ways=1)
            >>> session.explain_release(asked, "visits", epsilon=1.0, delta=1e-6).epsilon
            1.0
        """
        return self._releases.explain(request)

    @takes(SynthesisRequest)
    def synthesize(self, request: SynthesisRequest) -> Synthetic:
        """Pay once for a table of made-up rows that are like the real ones.

        Returns:
            The table, to be queried at no cost.

        Raises:
            PrivsqlError: as `query` raises it.

        Example:
            >>> session.synthesize("visits", ["state"], epsilon=1.0, delta=1e-6).df().columns.tolist()
            ['state']
        """
        return synthesize(request, self._releases, self._pipeline)

    def online(
        self,
        table: str,
        epsilon: float,
        *,
        within: float | None = None,
        confidence: float = 0.95,
        **unknown: Never,
    ) -> Online:
        """Open a stream of counting queries, each answered from what was released before where it can be.

        Arguments:
            table: the table whose rows are counted.
            epsilon: what the stream may cost in all; each query is charged when it has to be paid for.
            within: how far off an answer may be, unless a query says it itself.
            confidence: how surely `within` holds.

        Returns:
            The stream, whose `query` answers free within the predicted error, or for the least epsilon.

        Raises:
            ArgumentError: an argument is wrong.

        Example:
            >>> session.online("visits", epsilon=1.0, within=20).remaining
            1.0
        """
        no_more_arguments(unknown, ("table", "epsilon", "within", "confidence"))
        return opened(self._pipeline, (self.ask, self.plan), table, epsilon, within, confidence)
