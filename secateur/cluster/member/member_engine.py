"""The engine of a member, and the jobs that clients and the controller have it run.

The processors of a job write to any partition of the cluster, from their threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from secateur.cluster.member.changes.change_registry import RecordedChange
from secateur.cluster.member.changes.writes import MemberWrites
from secateur.cluster.member.jobs import MemberAttempts, MemberJobs
from secateur.cluster.member.kept_jobs import JobFiles, KeptJobsOfMember, LiveMetrics
from secateur.cluster.member.member_replication import MemberReplication
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.member_threads import MemberThreads
from secateur.cluster.member.monitoring.stored_stats import WorkCounts
from secateur.cluster.member.statements.plans import MemberPlans
from secateur.cluster.peers import ControllerRequests, MemberConnections, Peers
from secateur.cluster.plan_source import SourceQueries
from secateur.cluster.settings import ClusterSettings
from secateur.engine.kernels.fragment import run
from secateur.engine.runtime.runtime import JobRuntime
from secateur.engine.runtime.services import MemberServices
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.owner_routing import split
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.catalog import MakeRanges
from secateur.protocol.changes import WriteRows
from secateur.protocol.jobs import (
    GetJobMetrics,
    JobMetrics,
    RunAttempt,
    SubmitJob,
)
from secateur.protocol.operations import Operation, OperationBase
from secateur.storage.change import load_mode
from secateur.wire import Handled, Reply, Request, encode_table

_AT_ONCE: Final = 8
"""Writes of one call that are on their way together: enough to hide the way to another member, few enough to leave its
loop to others.
"""


class MemberEngine:
    """Runs a member's part of jobs, and coordinates those that it was asked for. Lives on the member's event loop.

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
        self._light = MemberJobs(self.runtime, owners)
        self.attempts = MemberAttempts(self.runtime, patient, owners)
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


class JobWrites:
    """The member's :class:`~secateur.engine.runtime.services.RowsWriter`.

    Made on the event loop of the member, called from other threads.

    Args:
        table: Finds a table by name, as it is now.
    """

    def __init__(
        self,
        member_id: str,
        writes: MemberWrites,
        peers: Peers,
        controller: ControllerRequests,
        table: Callable[[str], TableDef],
        topology: Callable[[], Topology],
    ) -> None:
        self._member_id = member_id
        self._writes = writes
        self._peers = peers
        self._controller = controller
        self._table = table
        self._topology = topology
        self._loop = asyncio.get_running_loop()

    def __call__(self, table: TableDef, rows: pa.Table, mode: str, change_id: str) -> int:
        """See :class:`~secateur.engine.runtime.services.RowsWriter`."""
        table = self._with_ranges_for(self._table(table.name), rows)
        return asyncio.run_coroutine_threadsafe(
            self._write_all(table, split(rows, table), mode, change_id), self._loop
        ).result()

    def _with_ranges_for(self, table: TableDef, rows: pa.Table) -> TableDef:
        """The table once it has the ranges that the rows need; every member has them by then, this one too."""
        cells = table.scheme.missing_cells(rows)
        if not cells:
            return table
        request = self._controller.request(MakeRanges(table.name, table.table_id, sorted(cells)))
        asyncio.run_coroutine_threadsafe(request, self._loop).result()
        return self._table(table.name)

    async def _write_all(self, table: TableDef, parts: Mapping[int, pa.Table], mode: str, change_id: str) -> int:
        slots = asyncio.Semaphore(_AT_ONCE)

        async def write(partition: int, rows: pa.Table) -> int:
            async with slots:
                return await self._write(table, partition, rows, mode, f"{change_id}/{partition}")

        outcomes = await asyncio.gather(
            *(write(partition, rows) for partition, rows in parts.items()), return_exceptions=True
        )
        written = 0
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            written += outcome
        return written

    async def _write(self, table: TableDef, partition: int, rows: pa.Table, mode: str, change_id: str) -> int:
        topology, operation = self._topology(), load_mode(mode)
        primary = topology.ownership(table.scheme.affinity_group()).primary(partition)
        if primary == self._member_id:

            async def make() -> RecordedChange:
                return self._writes.apply(table.table_id, partition, operation, rows, change_id)[0]

            return await self._writes.write_once(table.table_id, partition, change_id, make)
        return (
            await self._peers.call(primary, WriteRows(table.table_id, partition, mode, change_id), encode_table(rows))
        ).rows
