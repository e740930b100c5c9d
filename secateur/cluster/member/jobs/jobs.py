"""Light jobs on a member: coordinates the jobs that clients submit and answers with their results."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from typing import Final

from secateur.cluster.member.jobs.describe_job import describe_job
from secateur.dag.dag import FrozenDAG
from secateur.engine.runtime.running_job import RunningJob
from secateur.engine.runtime.runtime import JobRuntime
from secateur.errors import JobCancelledError
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.jobs import FinishedJob, JobAttempt, ResolvedJob, ResolveJob, StopJob, SubmitJob
from secateur.protocol.message import Acknowledged
from secateur.wire import Reply, Request, encode_table

_STOPPED_MAX: Final = 1024


class MemberJobs:
    """Answers ``submit_job``, ``stop_job`` and ``resolve_job``. Lives on the member's event loop.

    Args:
        runtime: The member's engine.
        topology: Gives the newest topology.
        allow_code: Whether DAGs may carry functions.
    """

    def __init__(self, runtime: JobRuntime, topology: Callable[[], Topology], *, allow_code: bool) -> None:
        self._runtime = runtime
        self._topology = topology
        self._allow_code = allow_code
        self._running: dict[str, RunningJob] = {}
        self._stopped: OrderedDict[str, None] = OrderedDict()

    async def submit(self, request: Request[SubmitJob]) -> AsyncIterator[Reply[FinishedJob]]:
        """Run a job; answers with one piece for each result sink, and its metrics.

        Raises:
            Error: Why it could not start or did not succeed.
        """
        client_job, config = request.message.job, request.message.config
        dag = FrozenDAG.decoded(request.payload, allow_code=self._allow_code and request.peer.authenticated)
        if client_job in self._stopped:
            raise JobCancelledError(f"job {client_job} was cancelled before it began", job=client_job)
        job = self._running[client_job] = await self._runtime.start_job(
            dag, config, request.message.params, self._topology(), logged_as=JobAttempt(client_job)
        )
        try:
            result = await job.result()
        finally:
            del self._running[client_job]
        finished = FinishedJob(list(result.tables), list(result.members_touched), list(result.metrics))
        if not result.tables:
            yield Reply(finished)
        for table in result.tables.values():
            yield Reply(finished, encode_table(table))

    async def resolve(self, request: Request[ResolveJob]) -> Reply[ResolvedJob]:
        """The plan that a job would have if it were submitted here now; nothing is started.

        Raises:
            Error: Why it could not start.
        """
        dag = FrozenDAG.decoded(request.payload, allow_code=self._allow_code and request.peer.authenticated)
        plan = await self._runtime.resolve(dag, request.message.config, request.message.params, self._topology())
        return Reply(ResolvedJob(describe_job(plan)))

    def running(self, job_id: str) -> RunningJob | None:
        """A job that this member coordinates now, by the id that its client gave it."""
        return self._running.get(job_id)

    def stop(self, request: Request[StopJob]) -> Reply[Acknowledged]:
        """Stop a job, also one that is still on its way here."""
        client_job = request.message.job
        job = self._running.get(client_job)
        if job is None:
            self._stopped[client_job] = None
            while len(self._stopped) > _STOPPED_MAX:
                self._stopped.popitem(last=False)
        else:
            job.cancel()
        return Reply(Acknowledged())
