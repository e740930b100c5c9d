"""Jobs on a member: coordinates those that clients submit, answers with their results, and shows their plans.

The processors of a job write to any partition of the cluster, from their threads.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

import pyarrow as pa

from secateur.cluster.member.changes.change_registry import RecordedChange
from secateur.cluster.member.changes.writes import MemberWrites
from secateur.cluster.peers import ControllerRequests, Peers
from secateur.dag.dag import FrozenDAG, edge_words
from secateur.dag.edge import Edge
from secateur.dag.placement import OnPartitions
from secateur.engine.execution_plan.member_plan import EdgePlan
from secateur.engine.execution_plan.plan_builder import ExecutionPlan
from secateur.engine.runtime.running_job import RunningJob
from secateur.engine.runtime.runtime import JobRuntime
from secateur.errors import JobCancelledError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.owner_routing import split
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.catalog import MakeRanges
from secateur.protocol.changes import WriteRows
from secateur.protocol.job_description import (
    PARTITIONS_LISTED_MAX,
    EdgeTarget,
    JobPlacement,
    PlacedVertex,
    ResolvedEdge,
    ResolvedVertex,
)
from secateur.protocol.jobs import FinishedJob, JobAttempt, ResolvedJob, ResolveJob, StopJob, SubmitJob
from secateur.protocol.message import Acknowledged
from secateur.storage.change import load_mode
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


def describe_job(plan: ExecutionPlan) -> JobPlacement:
    """The plan without anything that only members need. Costs some microseconds for each vertex and member."""
    placed: dict[str, list[PlacedVertex]] = {vertex.name: [] for vertex in plan.dag.vertices}
    for member, member_plan in plan.members.items():
        for vertex in member_plan.vertices:
            placed[vertex.name].append(_placed(plan, vertex.name, member, vertex.local_parallelism))
    running = {edge.name: edge for edge in plan.job.edges}
    return JobPlacement(
        coordinator=plan.job.coordinator,
        topology_version=plan.job.topology_version,
        members=plan.cluster,
        participants=plan.job.participants,
        vertices=tuple(ResolvedVertex(name, tuple(entries), plan.scans.get(name)) for name, entries in placed.items()),
        edges=tuple(_edge(edge, running.get(edge.name)) for edge in plan.dag.edges),
    )


def _placed(plan: ExecutionPlan, vertex: str, member: str, processors: int) -> PlacedVertex:
    match plan.placements[vertex]:
        case OnPartitions(_, by_member):
            partitions = sorted(by_member[member])
            return PlacedVertex(member, processors, len(partitions), tuple(partitions[:PARTITIONS_LISTED_MAX]))
        case _:
            return PlacedVertex(member, processors)


def _edge(edge: Edge, running: EdgePlan | None) -> ResolvedEdge:
    """An edge that does not run has no origins and no targets."""
    assigned = Counter() if running is None else Counter(running.owners.tolist())
    targets = () if running is None else running.targets
    return ResolvedEdge(
        name=edge.name,
        source=edge.source,
        destination=edge.destination,
        kind=edge.routing.name,
        words=tuple(edge_words(edge)),
        distributed=edge.is_distributed,
        priority=edge.priority,
        origins=() if running is None else running.origins,
        targets=tuple(
            EdgeTarget(target.member, target.consumers, assigned[index] if assigned else None)
            for index, target in enumerate(targets)
        ),
    )


_AT_ONCE: Final = 8
"""Writes of one call that are on their way together: enough to hide the way to another member, few enough to leave its
loop to others.
"""


class JobWrites:
    """The member's :class:`~secateur.engine.runtime.services.RowsWriter`.

    Made on the event loop of the member, called from other threads.

    Args:
        member_id: This member.
        writes: Its own partitions.
        peers: The other members.
        controller: Makes ranges on demand.
        table: Finds a table by name, as it is now.
        topology: Gives the newest topology.
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
