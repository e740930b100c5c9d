"""Jobs at the member that coordinates them: those that clients submit, and the attempts of jobs on record."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, Final

import pyarrow as pa

from secateur.cluster.loop_thread import BackgroundTasks
from secateur.cluster.peers import ControllerRequests
from secateur.dag.dag import FrozenDAG
from secateur.dag.edge import Edge
from secateur.dag.placement import OnPartitions
from secateur.engine.execution_plan.member_plan import EdgePlan
from secateur.engine.execution_plan.plan_builder import ExecutionPlan
from secateur.engine.runtime.running_job import RunningJob
from secateur.engine.runtime.runtime import JobRuntime
from secateur.errors import (
    DeadlineError,
    Error,
    InternalError,
    JobCancelledError,
    LimitExceededError,
    MemberLostError,
    UnreachableError,
)
from secateur.partitioning.topology.topology import Topology
from secateur.protocol import jobs
from secateur.protocol.job_description import (
    PARTITIONS_LISTED_MAX,
    EdgeTarget,
    JobPlacement,
    PlacedVertex,
    ResolvedEdge,
    ResolvedVertex,
)
from secateur.protocol.jobs import (
    FinishedJob,
    JobAttempt,
    ResolvedJob,
    ResolveJob,
    StopJob,
    SubmitJob,
)
from secateur.protocol.message import Acknowledged, Failure
from secateur.tracing import ServedSpan
from secateur.wire import Reply, Request, encode_table

_COUNT_MAX: Final = 256
_BYTES_MAX: Final = 256 << 20
_REPORT_DELAY_S: Final = 0.1
_REPORT_TRIES_MAX: Final = 50
_HALTED_MAX: Final = 1024
_ENDS_MAX: Final = 1024
_STOPPED_MAX: Final = 1024


class KeptResults:
    """The newest results, bounded by number and bytes.

    The newest one is kept whatever its size, which ``JobConfig.result_bytes_max`` bounds.
    """

    def __init__(self, count_max: int = _COUNT_MAX, bytes_max: int = _BYTES_MAX) -> None:
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._results: OrderedDict[str, Mapping[str, pa.Table]] = OrderedDict()

    def keep(self, job_id: str, tables: Mapping[str, pa.Table]) -> None:
        """Keep the rows of a job, by sink, and drop the oldest that are too many.

        Those of an earlier attempt of the job are replaced.
        """
        self._bytes -= _size(self._results.pop(job_id, {}))
        self._results[job_id] = tables
        self._bytes += _size(tables)
        while len(self._results) > 1 and (len(self._results) > self._count_max or self._bytes > self._bytes_max):
            _, dropped = self._results.popitem(last=False)
            self._bytes -= _size(dropped)

    def find(self, job_id: str) -> Mapping[str, pa.Table] | None:
        """The rows of a job, by sink; None if they were dropped, or this process never had them."""
        return self._results.get(job_id)

    def tables(self, job_id: str) -> Mapping[str, pa.Table]:
        """The rows of a job, by sink.

        Raises:
            LimitExceededError: They were dropped.
        """
        found = self.find(job_id)
        if found is None:
            raise LimitExceededError(
                f"the result of job {job_id} was dropped: a member keeps the newest {self._count_max} results, up to"
                f" {self._bytes_max:,} bytes, for as long as its process lives; submit the job again, and fetch it"
                " sooner, or write it to a sink",
                job=job_id,
            )
        return found


def _size(tables: Mapping[str, pa.Table]) -> int:
    return sum(table.nbytes for table in tables.values())


class MemberAttempts:
    """Answers ``run_attempt``, ``halt_attempt`` and ``get_job_result``. Lives on the member's event loop."""

    def __init__(self, runtime: JobRuntime, controller: ControllerRequests, topology: Callable[[], Topology]) -> None:
        self._runtime = runtime
        self._controller = controller
        self._topology = topology
        self._running: dict[tuple[str, int], RunningJob] = {}
        self._started: OrderedDict[tuple[str, int], asyncio.Future[JobPlacement]] = OrderedDict()
        self._ends: OrderedDict[tuple[str, int], jobs.ReportJobEnded] = OrderedDict()
        self._cancelled: OrderedDict[tuple[str, int], Error] = OrderedDict()
        self._background = BackgroundTasks()
        self._results = KeptResults()

    async def run(self, request: Request[jobs.RunAttempt]) -> Reply[jobs.ResolvedJob]:
        """Start an attempt; answers with its plan when it runs.

        The request ``report_job_ended`` reports its end, and may overtake the answer. An attempt that was started
        before is not started again: a controller that starts anew asks for it, and hears of its end.

        Raises:
            Error: Why it could not start; nothing runs then.
        """
        key = request.message.job, request.message.attempt
        started = self._started.get(key)
        if started is None:
            started = self._started[key] = asyncio.ensure_future(self._start(request))
            _shorten(self._started, _ENDS_MAX)
        elif (end := self._ends.get(key)) is not None:
            self._background.start(self._report(end), f"the end of job {end.job}")
        return Reply(jobs.ResolvedJob(await asyncio.shield(started)))

    async def _start(self, request: Request[jobs.RunAttempt]) -> JobPlacement:
        asked = request.message
        key = asked.job, asked.attempt
        dag = _dag_of(request, self._runtime)
        starting = self._runtime.start_job(
            dag, asked.config, asked.params, self._topology(), logged_as=jobs.JobAttempt(asked.job, asked.attempt)
        )
        span = self._span_of(asked)
        job = await (starting if span is None else _in_span(span, starting))
        self._running[key] = job
        cancelled = self._cancelled.pop(key, None)
        if cancelled is not None:
            job.stop(cancelled)
        self._background.start(self._follow(key, job, span), f"job {asked.job}")
        return describe_job(job.plan)

    def _span_of(self, asked: jobs.RunAttempt) -> ServedSpan | None:
        if asked.trace is None:
            return None
        described = {"secateur.member": self._runtime.member_id, "secateur.job": asked.job}
        return ServedSpan(asked.trace, "secateur.job", described)

    def cancel(self, request: Request[jobs.HaltAttempt]) -> Reply[Acknowledged]:
        """Stop an attempt, also one that is being built or on its way here."""
        asked = request.message
        key, error = (asked.job, asked.attempt), asked.error.to_error()
        job = self._running.get(key)
        if job is not None:
            job.stop(error)
        else:
            self._cancelled[key] = error
            _shorten(self._cancelled, _HALTED_MAX)
        return Reply(Acknowledged())

    async def result(self, request: Request[jobs.GetJobResult]) -> AsyncIterator[Reply[jobs.JobSinks]]:
        """The rows of a job that this member coordinated to its end: one piece for each result sink.

        Raises:
            LimitExceededError: They were dropped, for newer ones.
        """
        tables = self._results.tables(request.message.job)
        sinks = jobs.JobSinks(list(tables))
        if not tables:
            yield Reply(sinks)
        for table in tables.values():
            yield Reply(sinks, encode_table(table))

    def running(self, job_id: str) -> RunningJob | None:
        """The newest attempt of a job that this member coordinates now."""
        return max(
            ((attempt, job) for (known, attempt), job in self._running.items() if known == job_id),
            default=(0, None),
            key=lambda found: found[0],
        )[1]

    async def close(self) -> None:
        """Give up what is followed, without a word: the controller notices by itself that this member is gone."""
        await self._background.close()

    async def _follow(self, key: tuple[str, int], job: RunningJob, span: ServedSpan | None) -> None:
        failure: Failure | None = None
        members: list[str] = []
        try:
            result = await job.result()
        except Error as error:
            failure = Failure.of(error)
        except Exception as error:  # the controller must hear of the end, whatever it was
            failure = Failure.of(InternalError(f"job {key[0]} ended with {type(error).__name__}: {error}"))
        else:
            self._results.keep(key[0], result.tables)
            members = list(result.members_touched)
        finally:
            del self._running[key]
            if span is not None:
                span.end(None if failure is None else failure.to_error())
        end = self._ends[key] = jobs.ReportJobEnded(*key, self._runtime.member_id, failure, members, list(job.metrics))
        _shorten(self._ends, _ENDS_MAX)
        await self._report(end)

    async def _report(self, report: jobs.ReportJobEnded) -> None:
        """Report the end to the controller, repeatedly if need be; receiving it twice does no harm."""
        for _ in range(_REPORT_TRIES_MAX):
            try:
                await self._controller.request(report)
                return
            except (MemberLostError, UnreachableError, DeadlineError):
                await asyncio.sleep(_REPORT_DELAY_S)
            except Exception as error:  # the controller waits for a report: a shorter one, if this one cannot be sent
                unsent = InternalError(f"job {report.job} ended, and its report could not be sent: {error}")
                report = jobs.ReportJobEnded(report.job, report.attempt, report.member, Failure.of(unsent), [], [])


def _dag_of(request: Request[Any], runtime: JobRuntime) -> FrozenDAG:
    """The DAG of a request, with functions if the cluster takes them from its sender."""
    return FrozenDAG.decoded(request.payload, allow_code=runtime.services.allow_code and request.peer.authenticated)


async def _in_span(span: ServedSpan, starting: Coroutine[Any, Any, RunningJob]) -> RunningJob:
    """Start an attempt in its own span: that of the request ends when the attempt has begun."""
    try:
        return await asyncio.create_task(starting, context=span.context)
    except BaseException as error:
        span.end(error)
        raise


def _shorten(remembered: OrderedDict[Any, Any], count_max: int) -> None:
    while len(remembered) > count_max:
        remembered.popitem(last=False)


class MemberJobs:
    """Answers ``submit_job``, ``stop_job`` and ``resolve_job``. Lives on the member's event loop."""

    def __init__(self, runtime: JobRuntime, topology: Callable[[], Topology]) -> None:
        self._runtime = runtime
        self._topology = topology
        self._running: dict[str, RunningJob] = {}
        self._stopped: OrderedDict[str, None] = OrderedDict()

    async def submit(self, request: Request[SubmitJob]) -> AsyncIterator[Reply[FinishedJob]]:
        """Run a job; answers with one piece for each result sink, and its metrics.

        Raises:
            Error: Why it could not start or did not succeed.
        """
        client_job, config = request.message.job, request.message.config
        dag = _dag_of(request, self._runtime)
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
        dag = _dag_of(request, self._runtime)
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
            _shorten(self._stopped, _STOPPED_MAX)
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
        words=tuple(edge.words),
        distributed=edge.is_distributed,
        priority=edge.priority,
        origins=() if running is None else running.origins,
        targets=tuple(
            EdgeTarget(target.member, target.consumers, assigned[index] if assigned else None)
            for index, target in enumerate(targets)
        ),
    )
