"""Jobs on a member: coordinates those that clients submit, answers with their results, and shows their plans."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable
from typing import Final

from secateur.dag.dag import FrozenDAG
from secateur.dag.edge import Edge
from secateur.dag.placement import OnPartitions
from secateur.dag.render import edge_words
from secateur.engine.execution_plan.member_plan import EdgePlan
from secateur.engine.execution_plan.plan_builder import ExecutionPlan
from secateur.engine.runtime.running_job import RunningJob
from secateur.engine.runtime.runtime import JobRuntime
from secateur.errors import JobCancelledError
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.job_placement import (
    PARTITIONS_LISTED_MAX,
    EdgeTarget,
    JobPlacement,
    PlacedVertex,
    ResolvedEdge,
    ResolvedVertex,
)
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
