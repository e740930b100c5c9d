"""The ways in which a member runs a statement whose partitions are known: here, by scatter, or as a job.

*Local* is what :mod:`~secateur.cluster.member.statements.local_execution` does over rows of this member, *scatter* what
:mod:`~secateur.cluster.member.statements.scattered_statements` does, and *distributed* what
:class:`DistributedStatements` does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec
import pyarrow as pa
from msgspec import structs

from secateur.cluster.member.admission.statement_admission import Admissions
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.member_threads import MemberThreads
from secateur.cluster.member.monitoring.stored_stats import EstimateMisses
from secateur.cluster.member.replication.replication import Replication
from secateur.cluster.member.statements.first_stages import FirstStages
from secateur.cluster.member.statements.local_execution import LocalExecution
from secateur.cluster.member.statements.native_answers import NativeAnswer, NativeAnswers
from secateur.cluster.member.statements.open_results import within_bounds
from secateur.cluster.member.statements.plans import MemberPlans
from secateur.cluster.member.statements.prepared_statements import OwnView, PreparedStatements, marks_of, read_here
from secateur.cluster.member.statements.scattered_statements import ScatteredRows, ScatteredStatements
from secateur.cluster.member.statements.serving_programs import Served, ServingProgram, compile_program
from secateur.cluster.peers import MemberConnections
from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.kernels.fragment import open_answer, run
from secateur.engine.runtime.result import JobResult, ResultCollector, ResultQueue
from secateur.engine.runtime.running_job import RunningJob
from secateur.engine.runtime.runtime import JobRuntime
from secateur.engine.sql.row_stream import FragmentRowStream, JobRowStream, LocalRowStream, RowStream
from secateur.engine.sql.select_job import select_dag
from secateur.engine.sql.select_plan import PinnedScan, SelectPlan
from secateur.engine.threads import WORK, StatementWork, in_thread
from secateur.errors import DataChangedError, DataError
from secateur.native import native_module
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.access import Admitted
from secateur.protocol.metrics import VertexMetrics
from secateur.protocol.query import Execute, Executed
from secateur.wire import PeerInfo, Reply, Request, ShortTable, encode_table


class StatementRun(msgspec.Struct, frozen=True):
    """The parts of an answer that describe the run, beside its rows."""

    plan: SelectPlan
    partitions: list[Sequence[int]]
    topology: Topology
    execution: str
    published: tuple[tuple[int, int], ...] = ()
    statistics_version: int = 0

    def executed(
        self, members: list[str] | None = None, rows: int = 0, values: Sequence[list[Any]] | None = None
    ) -> Executed:
        """The answer; without ``members``, this member alone worked for it."""
        read, total, execution = 0, 0, self.execution
        for ids, scan in zip(self.partitions, self.plan.scans, strict=True):
            read += len(ids)
            total += scan.tree.total
        if self.plan.reads_fetched_rows:
            fetched = [scan.fetched for scan in self.plan.scans if isinstance(scan, PinnedScan)]
            # Such a scan has counted as one partition, like that of a replicated table.
            read += sum(rows.partitions_read - 1 for rows in fetched)
            total += sum(rows.partitions_total - 1 for rows in fetched)
            readers = {member for rows in fetched for member in rows.members}
            if readers:
                members = sorted({*readers, *(members or ())})
            execution = "distributed" if len(readers) > 1 else execution
        version = self.topology.version
        published, statistics = self.published, self.statistics_version
        return Executed(execution, read, total, version, rows, values, members, False, published, (), statistics)

    def reply(self, result: pa.Table | ShortTable, members: list[str] | None = None) -> Reply[Executed]:
        """A whole answer."""
        if isinstance(result, ShortTable):
            return Reply(self.executed(members, result.num_rows, result.columns))
        return Reply(self.executed(members, result.num_rows), encode_table(result))


T = TypeVar("T")

_LOAD_WAIT_S: Final = 10.0
_LOAD_PAUSE_S: Final = 0.002


async def in_some_form(plan: SelectPlan, run: Callable[[SelectPlan], Awaitable[T]]) -> T:
    """Run the stages of a plan.

    If an error in the data need not be one of the statement, run other stages, in which it would be.
    """
    try:
        return await while_loads_end(lambda: run(plan))
    except DataError:
        if not plan.gathered:
            raise
        return await while_loads_end(lambda: run(structs.replace(plan, stages=plan.gathered, gathered=())))


async def while_loads_end(run: Callable[[], Awaitable[T]]) -> T:
    """Run, and run again while a load is published on some of the members, for about a round trip."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + _LOAD_WAIT_S
    while True:
        try:
            return await run()
        except DataChangedError:
            if loop.time() > deadline_s:
                raise
            await asyncio.sleep(_LOAD_PAUSE_S)


_BYTES_BEFORE_FIRST: Final = 16 << 20
"""Bytes of a placed statement's result that are made before the first are sent.

Until then the statement can still be run in another form.
"""
_LATE: Final = (
    "rows of the result had been read when this came up, too late to run the statement in a form that evaluates nothing"
    " else than it asks for: if a filter or a join leaves the value out, use TRY_CAST or CASE where it is evaluated"
)


class DistributedStatements:
    """Starts the jobs of statements. Lives on the member's event loop.

    Args:
        storage: What this member keeps.
        jobs: Its engine.
        misses: Counts the scans whose estimates were badly wrong.
    """

    def __init__(self, storage: MemberStorage, jobs: JobRuntime, misses: EstimateMisses) -> None:
        self._member_id = storage.member_id
        self._store = storage.store
        self._results = storage.results
        self._jobs = jobs
        self._misses = misses

    async def run(self, request: Request[Execute], ran: StatementRun) -> Reply[Executed]:
        """Run a statement, and answer with its rows, or with the first of them.

        Raises:
            Error: The error of the statement, or of a member that works for it.
        """
        asked, plan, partitions, topology = request.message, ran.plan, ran.partitions, ran.topology
        if asked.grant is None:
            with self._results.running(request.peer):
                _, result = await self.result_of(
                    plan, asked, partitions, topology, lambda: ResultCollector(self._results.bytes_max)
                )
            return ran.reply(result.table(), self.touched(result))
        grant = within_bounds(asked.grant)

        async def first_rows(plan: SelectPlan) -> Reply[Executed]:
            # Where another form of the statement may be needed, the first part waits for more: the form can be chosen
            # until it is sent. A member that finds keys changed reports it long before.
            before, when_late = (_BYTES_BEFORE_FIRST, _LATE) if plan.gathered else (0, "")
            queue = ResultQueue(max(2 * grant, before))
            job = await self._start(plan, asked, partitions, topology, queue)
            rows = JobRowStream(job, queue, lambda: plan.stages[-1].fragment.schema, before, when_late)
            return await self._results.open(
                request.peer, rows, grant, ran.executed(sorted({self._member_id, *job.plan.job.participants}))
            )

        with self._results.running(request.peer):
            return await in_some_form(plan, first_rows)

    async def result_of(
        self,
        plan: SelectPlan,
        asked: Execute,
        partitions: list[Sequence[int]],
        topology: Topology,
        collector: Callable[[], ResultCollector],
    ) -> tuple[SelectPlan, JobResult]:
        """Run the stages, in the form that has an answer; returns that and the result."""

        async def run(plan: SelectPlan) -> tuple[SelectPlan, JobResult]:
            return plan, await (await self._start(plan, asked, partitions, topology, collector())).result()

        return await in_some_form(plan, run)

    def touched(self, result: JobResult) -> list[str]:
        """The members that have worked for a result, this one included."""
        return sorted({self._member_id, *result.members_touched})

    async def _start(
        self,
        plan: SelectPlan,
        asked: Execute,
        partitions: list[Sequence[int]],
        topology: Topology,
        result: ResultCollector,
    ) -> RunningJob:
        published = {
            scan.table_id: self._store.data_version(scan.table_id).published
            for scan in plan.scans
            if not scan.is_fetched
        }
        dag, config = select_dag(
            plan,
            partitions,
            published=published,
            search_keys=asked.pruning,
            mark=asked.mark,
            since=marks_of(plan, asked),
        )
        job = await self._jobs.start_job(dag, config, asked.params, topology, result=result)
        job.when_done(lambda: self._misses.compare_scans(plan, job.metrics) if job.is_complete else None)
        work = WORK.get()
        if work is not None:
            job.when_done(lambda: _count(work, job.metrics))
        return job


class RunModes(PreparedStatements):
    """Runs statements that have been prepared. Lives on the member's event loop.

    Args:
        storage: What this member keeps.
        connections: The controller and the other members.
        copies: Knows which changes are acknowledged.
        plans: The plans.
        jobs: Its engine, for statements that need other members.
        admissions: The turns of the statements of clients.
        threads: For kernel calls.

    Attributes:
        misses: Counts the scans whose estimates were badly wrong.
        first_stages: Answers the members and clients that scatter statements themselves.
        native: The native executor; None where there is none.
    """

    def __init__(
        self,
        storage: MemberStorage,
        connections: MemberConnections,
        copies: Replication,
        plans: MemberPlans,
        jobs: JobRuntime,
        admissions: Admissions,
        threads: MemberThreads,
    ) -> None:
        super().__init__(storage, connections, plans, jobs, threads)
        self._limits = jobs.limits
        self._results = storage.results
        self._hot_keys = storage.hot_keys
        self._admissions = admissions
        self._statistics_version = plans.statistics_version
        acknowledged = self._acknowledged = copies.acknowledgements.acknowledged
        self.misses = EstimateMisses(jobs.limits.estimate_miss_factor)
        self._distributed = DistributedStatements(storage, jobs, self.misses)
        self._scattered = ScatteredStatements(storage, connections.peers, threads.quick, acknowledged)
        native = native_module()
        self.native = None if native is None else NativeAnswers(native, storage, plans, acknowledged)
        self._programs: dict[str, ServingProgram | None] = {}
        self._programs_of: OwnView | None = None
        self.first_stages = FirstStages(storage, plans, self._joined, self._scattered, acknowledged, self.native)

    def answered(self, frame: bytes, admitted: Admitted | None) -> NativeAnswer | None:
        """The answer of the native executor to a frame; None where it is to be handled as any other.

        Args:
            frame: The frame.
            admitted: The plans that its sender may execute; None for all.
        """
        if self.native is None:
            return None
        answer = self.native.answer(frame, self._view, admitted)
        if answer is not None and answer.plan_id is not None and answer.plan_id in self._plans:
            self._plans.move_to_end(answer.plan_id)
        return answer

    def learn_table(self, table_id: int) -> None:
        """Have the native executor, if there is one, read rows of a table by their keys from now on."""
        if self.native is not None and self._view is not None:
            self.native.learn_table(table_id, self._view)

    def _served(self, plan: SelectPlan, asked: Execute) -> Served | None:
        """The answer of the program of a plan; None where it has none, or declines.

        Raises:
            Error: Of the execution.
        """
        view = self._view
        if self._programs_of is not view or view is None:
            self._programs_of = view = self._joined()
            self._programs.clear()
        try:
            program = self._programs[plan.plan_id]
        except KeyError:
            if len(self._programs) >= self.plans.kept_max:
                self._programs.clear()
            program = compile_program(plan, self._store, view, self._statistics_version)
            self._programs[plan.plan_id] = program
            if self.native is not None:
                self.native.learn(plan, view)
        if program is None:
            return None
        served = program(asked)
        if served is not None:
            self._sample(plan, asked)
        return served

    def _sample(self, plan: SelectPlan, asked: Execute) -> None:
        hot_keys = self._hot_keys
        hot_keys.left -= 1
        if not hot_keys.left:
            hot_keys.note_statement(plan, asked.params)

    def _ran_here(
        self, plan: SelectPlan, asked: Execute, partitions: list[Sequence[int]], topology: Topology
    ) -> StatementRun:
        """The description of a run that is about to read its rows here."""
        published = (
            () if asked.mark is None and asked.since is None else read_here(self._store, plan, asked, partitions)
        )
        return self._ran(plan, partitions, topology, "local", published)

    def _ran(
        self,
        plan: SelectPlan,
        partitions: list[Sequence[int]],
        topology: Topology,
        execution: str,
        published: tuple[tuple[int, int], ...] = (),
    ) -> StatementRun:
        statistics_version = self._statistics_version() if plan.is_estimated else 0
        return StatementRun(plan, partitions, topology, execution, published, statistics_version)

    async def _run_in_thread(
        self, call: LocalExecution, request: Request[Execute], ran: StatementRun
    ) -> Reply[Executed]:
        params, grant, peer = request.message.params, request.message.grant, request.peer
        work = WORK.get()
        if work is not None:
            work.rows_read += call.rows
        with self._results.running(peer):
            if grant is None:
                return ran.reply(
                    self._results.checked(await in_thread(self._threads.of(call, peer), whole(call, params)))
                )
            return await self._results.open(
                peer, self._rows_of(call, params, peer), within_bounds(grant), ran.executed()
            )

    def _rows_of(self, call: LocalExecution, params: list[Any], peer: PeerInfo) -> RowStream:
        """The rows of a call, made as they are taken."""
        threads = self._threads.of(call, peer)
        if not call.is_long_row_by_row:
            return LocalRowStream(
                lambda stop: open_answer(call.fragment, call.relations, params, cancellation=stop), threads
            )
        ((name, relation),) = call.relations.items()
        return FragmentRowStream(
            relation,
            lambda piece, stop: run(call.fragment, {name: piece}, params, cancellation=stop),
            threads,
            self._limits,
        )

    async def _scatter(
        self, plan: SelectPlan, asked: Execute, partitions: list[Sequence[int]], topology: Topology
    ) -> ScatteredRows | None:
        """Run a statement by scatter; None if it has to run as a job."""
        try:
            found = await while_loads_end(lambda: self._scattered.run(plan, asked.params, partitions, topology))
        except DataError:
            if not plan.gathered:
                raise
            return None  # the error need not be one of the statement; a job finds the form in which it would be
        work = WORK.get()
        if work is not None and found is not None:
            others = [part for member, part in found.parts.items() if member != self._member_id]
            work.processor_times.extend(part.kernel_s + part.busy_s for part in others)
            work.rows_read += sum(part.rows_read for part in found.parts.values())
        return found


def _count(work: StatementWork, metrics: Sequence[VertexMetrics]) -> None:
    """Count the work of a job, at all members, and the rows that its scans have passed on."""
    work.kernel_times.extend(entry.offload_s for entry in metrics)
    work.processor_times.extend(entry.processor_s + entry.busy_s for entry in metrics)
    work.rows_read += sum(entry.rows_out for entry in metrics if not entry.inputs)
    work.added_late()


def whole(call: LocalExecution, params: Sequence[Any]) -> Callable[[Cancellation], pa.Table]:
    """A call in a thread, for all of its rows."""
    return lambda stop: run(call.fragment, call.relations, params, cancellation=stop)
