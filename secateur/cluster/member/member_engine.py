"""The engine of a member, and the jobs that clients and the controller have it run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from secateur.cluster.member.jobs.attempts import MemberAttempts
from secateur.cluster.member.jobs.jobs import JobWrites, MemberJobs
from secateur.cluster.member.jobs.kept_jobs import JobFiles, KeptJobsOfMember, LiveMetrics
from secateur.cluster.member.member_connections import MemberConnections
from secateur.cluster.member.member_replication import MemberReplication
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.member_threads import MemberThreads
from secateur.cluster.member.monitoring.stored_stats import WorkCounts
from secateur.cluster.member.statements.plans import MemberPlans
from secateur.cluster.plan_source import SourceQueries
from secateur.cluster.settings import ClusterSettings
from secateur.engine.kernels.fragment import run
from secateur.engine.runtime.runtime import JobRuntime
from secateur.engine.runtime.services import MemberServices
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.jobs import GetJobMetrics, JobMetrics, RunAttempt, SubmitJob
from secateur.protocol.operations import Operation, OperationBase
from secateur.wire import Handled, Reply, Request


class MemberEngine:
    """Runs a member's part of jobs, and coordinates those that it was asked for. Lives on the member's event loop.

    Args:
        settings: The settings of the cluster.
        storage: What the member keeps.
        connections: The controller and the other members.
        replication: Writes the rows of jobs, and knows which changes are acknowledged.
        plans: The plans, for the SELECTs of sources.
        threads: For kernel calls.
        counts: Counts the jobs.

    Attributes:
        runtime: Runs them.
        attempts: Those on record.
        kept: Those that it keeps for a controller that starts anew.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        storage: MemberStorage,
        connections: MemberConnections,
        replication: MemberReplication,
        plans: MemberPlans,
        threads: MemberThreads,
        counts: WorkCounts,
    ) -> None:
        member_id, table, peers, patient = (
            storage.member_id,
            storage.places.named,
            connections.peers,
            connections.patient,
        )

        def owners() -> Topology:
            return replication.copies.topology

        services = MemberServices(
            storage.store,
            run,
            threads.long,
            table=table,
            write_rows=JobWrites(member_id, replication.writes, peers, patient, table, owners),
            acknowledged=replication.copies.acknowledgements.acknowledged,
            plan_query=SourceQueries(storage.store, plans, patient).planned,
            allow_code=settings.accepts_code,
            quick_executor=threads.staged,
            spill_directory=settings.spill_path,
            external_directories=tuple(map(Path, settings.external_directories)),
            limits=storage.limits,
            gathered_bytes_max=settings.gathered_bytes_max,
        )
        self._counts = counts
        self.runtime = JobRuntime(member_id, services, peers)
        self._light = MemberJobs(self.runtime, owners, allow_code=services.allow_code)
        self.attempts = MemberAttempts(self.runtime, patient, owners, allow_code=services.allow_code)
        self.kept = KeptJobsOfMember(None if storage.log is None else JobFiles(storage.log.disk))
        self._metrics = LiveMetrics(self.runtime, peers)

    def handlers(self) -> dict[OperationBase, Callable[[Request[Any]], Handled]]:
        """The handler of each operation."""
        return {
            Operation.SUBMIT_JOB: self._submit,
            Operation.RESOLVE_JOB: self._light.resolve,
            Operation.STOP_JOB: self._light.stop,
            Operation.RUN_ATTEMPT: self._run_attempt,
            Operation.HALT_ATTEMPT: self.attempts.cancel,
            Operation.KEEP_JOB: self.kept.keep,
            Operation.LIST_KEPT_JOBS: self.kept.versions,
            Operation.GET_KEPT_JOB: self.kept.get,
            Operation.GET_JOB_METRICS: self._send_metrics,
            Operation.GET_JOB_COUNTERS: self._metrics.counters,
            Operation.GET_JOB_RESULT: self.attempts.result,
            Operation.GET_JOB_LOGS: lambda request: Reply(self.runtime.logs.lines(request.message.job)),
        }

    def notify(self, request: Request[Any]) -> None:
        """Take a one-way message of a job."""
        if request.operation is Operation.START_RUN:
            self._counts.executions += 1
        self.runtime.on_message(request.message, request.payload)

    async def close(self) -> None:
        """End everything that runs."""
        await self.attempts.close()
        await self.runtime.close()

    def _submit(self, request: Request[SubmitJob]) -> Handled:
        self._counts.executions += 1
        return self._light.submit(request)

    def _run_attempt(self, request: Request[RunAttempt]) -> Handled:
        self._counts.executions += 1
        return self.attempts.run(request)

    async def _send_metrics(self, request: Request[GetJobMetrics]) -> Reply[JobMetrics]:
        job_id = request.message.job
        job = self.attempts.running(job_id) or self._light.running(job_id)
        return Reply(JobMetrics([] if job is None else await self._metrics.of(job)))
