"""Running a planned SELECT on a member: the execution modes *local*, *scatter* and *distributed*.

The member binds the plan's partition trees itself: a client with an old topology may ask the wrong member, but never
gets a wrong answer.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
import pyarrow as pa
from msgspec import structs

from secateur.cluster.member.estimate_misses import EstimateMisses
from secateur.cluster.member.external_reads import ExternalReads
from secateur.cluster.member.few_row_reads import answer_few
from secateur.cluster.member.local_execution import (
    LocalExecution,
    bound_partitions,
    check_bound,
    check_count,
    check_versions,
    local_execution,
)
from secateur.cluster.member.open_results import GRANT_BYTES_MAX, OpenResults, within_bounds
from secateur.cluster.member.read_state import check_state, marks_of, read_here
from secateur.cluster.member.scattered_statements import (
    Acknowledgements,
    ScatteredRows,
    ScatteredStatements,
    SeenVersions,
    Waiting,
    partitions_read,
    scattered_work,
)
from secateur.cluster.member.statement_admission import StatementAdmission
from secateur.cluster.statement_profile import CountedResult, fetched_work, job_work, local_work
from secateur.engine.kernels.chunked_result import CompleteResult
from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.kernels.fragment import answer_by_arrow, open_answer, run
from secateur.engine.runtime.result import JobResult, ResultCollector
from secateur.engine.runtime.result_queue import ResultQueue
from secateur.engine.runtime.runtime import JobRuntime, RunningJob
from secateur.engine.sql.kernel_call import KERNEL_TIMES, in_thread, is_long_over
from secateur.engine.sql.row_stream import FragmentRowStream, JobRowStream, LocalRowStream, RowStream
from secateur.engine.sql.select_job import select_dag
from secateur.engine.sql.select_plan import FetchedRows, PinnedScan, SelectPlan
from secateur.errors import DataChangedError, DataError, ProtocolError, TopologyChangedError
from secateur.expression_values import complete, complete_without_evaluation
from secateur.partitioning.topology.topology import Topology
from secateur.partitioning.types.column_type import parse_type
from secateur.protocol.message import Role
from secateur.protocol.operations import Operation
from secateur.protocol.profile import RunProfile, StageWork
from secateur.protocol.query import Execute, Executed, ExecuteFirstStage, FirstStageRows, Profile, Profiled
from secateur.protocol.steps import ReadRequirements
from secateur.storage.member_store import MemberStore
from secateur.wire import PeerInfo, Reply, Request, ShortTable, decode_table, decode_tables, encode_table

__all__ = ["Admissions", "StatementRunner", "StatementThreads"]

T = TypeVar("T")
A = TypeVar("A", bound="Reply[Executed] | None")

_LOAD_WAIT_S: Final = 10.0
_LOAD_PAUSE_S: Final = 0.002
_BYTES_BEFORE_FIRST: Final = 16 << 20
"""Bytes of a placed statement's result that are made before the first are sent."""
_LATE: Final = (
    "rows of the result had been read when this came up, too late to run the statement in a form that evaluates nothing"
    " else than it asks for: if a filter or a join leaves the value out, use TRY_CAST or CASE where it is evaluated"
)
_ITSELF: Final = PeerInfo(0, "", "this member", True)
_NONE: Final[frozenset[int]] = frozenset()
_NO_PAYLOAD: Final = memoryview(b"")
_Answering: TypeAlias = Reply[Executed] | Coroutine[Any, Any, Reply[Executed]]
_AnsweringStage: TypeAlias = Coroutine[Any, Any, Reply[FirstStageRows]]


@dataclass(frozen=True, slots=True)
class _View:
    """This member's view of the cluster at one topology version.

    Attributes:
        topology: Members and owners.
        mine: The partitions that this member serves, by affinity group.
    """

    topology: Topology
    mine: dict[str, frozenset[int]]


@dataclass(frozen=True, slots=True)
class StatementThreads:
    """The threads in which a member runs kernel calls of statements.

    Attributes:
        long: Few, for calls over many rows: these wait for each other.
        quick: For calls over few rows.
        changing: For the queries of changes, whatever they read: writes wait until they have ended.
    """

    long: Executor
    quick: Executor
    changing: Executor

    def of(self, call: LocalExecution, peer: PeerInfo) -> Executor:
        """The executor for one call of a peer."""
        if peer is _ITSELF:
            return self.changing
        return self.long if is_long_over(call.rows) else self.quick


@dataclass(frozen=True, slots=True)
class Admissions:
    """The admission of the statements of clients; each kind waits for its own.

    Attributes:
        long: Statements that read many rows, or rows of several members, or run in steps.
        quick: Statements over few rows of this member, or of a few partitions of several.
    """

    long: StatementAdmission
    quick: StatementAdmission

    def of(self, call: LocalExecution) -> StatementAdmission:
        """The admission for a statement that is one call on this member."""
        return self.long if is_long_over(call.rows) else self.quick

    def is_waiting(self, task: asyncio.Task[Any]) -> bool:
        """Whether the statement on which a task works waits for its turn."""
        return self.long.is_waiting(task) or self.quick.is_waiting(task)

    def waited_s(self, task: asyncio.Task[Any]) -> float:
        """Seconds for which the statement on which a task works has waited for its turn."""
        return self.long.waited_s(task) + self.quick.waited_s(task)


class StatementRunner:
    """Answers ``execute`` requests. Lives on the member's event loop.

    Args:
        member_id: This member.
        store: Its partitions.
        jobs: Its engine, for statements that need other members.
        misses: Counts the scans whose estimates were badly wrong.
        threads: For kernel calls.
        fetch_plan: Gets a plan that is not kept here by its id.
        fetch_system_table: Gets the rows of a system table from the controller by its name.
        external_reads: Gets the rows of external tables.
        results: Keeps what clients are still reading.
        admissions: The turns of the statements of clients.
        scattered: Asks the owners of a few partitions without a job.
        plans_max: Plans kept.
        statistics_version: The newest version of the statistics that this member has heard of.
        acknowledged: Waits until the changes that readers of some partitions see now are acknowledged; None if they
            are.
    """

    def __init__(
        self,
        member_id: str,
        store: MemberStore,
        jobs: JobRuntime,
        misses: EstimateMisses,
        threads: StatementThreads,
        fetch_plan: Callable[[str], Awaitable[SelectPlan]],
        fetch_system_table: Callable[[str], Awaitable[pa.Table]],
        external_reads: ExternalReads,
        results: OpenResults,
        admissions: Admissions,
        scattered: ScatteredStatements,
        plans_max: int,
        statistics_version: Callable[[], int] = lambda: 0,
        acknowledged: Acknowledgements = lambda _: None,
    ) -> None:
        self._member_id = member_id
        self._store = store
        self._jobs = jobs
        self._misses = misses
        self._threads = threads
        self._fetch_plan = fetch_plan
        self._fetch_system_table = fetch_system_table
        self._external_reads = external_reads
        self._results = results
        self._admissions = admissions
        self._scattered = scattered
        self._plans: OrderedDict[str, SelectPlan] = OrderedDict()
        self._plans_max = plans_max
        self._statistics_version = statistics_version
        self._acknowledged = acknowledged
        self._view: _View | None = None

    def update(self, topology: Topology) -> None:
        """Take over a newer topology."""
        mine = {
            group: frozenset(ownership.partitions_of(self._member_id)) for group, ownership in topology.owners.items()
        }
        self._view = _View(topology, mine)

    def execute(self, request: Request[Execute]) -> _Answering:
        """Answer one execution of a plan.

        Args:
            request: The plan to run, undivided. :mod:`secateur.cluster.member.open_results` is about results in parts,
                :mod:`secateur.cluster.member.query_steps` about queries in steps.

        Raises:
            TopologyChangedError: A required partition has no owner here or elsewhere as far as this member knows, or a
                table has other ranges by now; nothing was done.
            KeysChangedError: Rows have changed since keys were found in them; nothing was done.
            LimitExceededError: The result would take more memory than results may, or too many statements wait.
        """
        plan = self._plans.get(request.message.plan)
        if plan is None or plan.reads_fetched_rows or plan.expressions:
            return self._fetch_and_run(request)
        self._plans.move_to_end(plan.plan_id)
        return self._run(plan, request)

    async def placed_rows(self, asked: Execute, partitions: Sequence[int]) -> tuple[SelectPlan | None, Execute]:
        """The plan of a statement that is answered piece by piece over rows of this member, and its execution.

        Args:
            asked: The execution.
            partitions: The partitions of the one table that it reads.

        Returns:
            The plan, or None if the statement is of another kind; the execution with the values of its expressions.

        Raises:
            TopologyChangedError: A partition is not this member's, or the table has other ranges by now.
        """
        plan = await self.plan(asked.plan)
        if len(plan.scans) != 1 or plan.reads_fetched_rows or not plan.local.is_row_by_row:
            return None, asked
        asked = await self._completed(plan, asked)
        view, (scan,) = self._joined(), plan.scans
        check_versions(self._store, plan)
        check_bound(plan, asked.params)
        if not (scan.replicated or view.mine.get(scan.group, _NONE).issuperset(partitions)):
            raise TopologyChangedError(
                f"member {self._member_id} does not own all of the partitions of {scan.table} that were asked for:"
                " fetch the owners again, and retry",
                table=scan.table,
                topology_version=view.topology.version,
            )
        return plan, asked

    async def requirements(self, plan: SelectPlan, asked: Execute) -> ReadRequirements:
        """The partitions that an execution reads, and the owners that it needs.

        Raises:
            TopologyChangedError: As :meth:`execute`.
        """
        partitions, topology, _ = self._placed(plan, await self._completed(plan, asked))
        owners: set[str] = set()
        for scan, ids in zip(plan.scans, partitions, strict=True):
            if len(ids) and not scan.replicated:
                owners |= topology.ownership(scan.group).owners_of(ids)
        return ReadRequirements(sum(map(len, partitions)), tuple(sorted(owners)))

    def kept_plan(self, plan_id: str) -> SelectPlan:
        """A plan that is kept here.

        Raises:
            TopologyChangedError: There is none of this id.
        """
        plan = self._plans.get(plan_id)
        if plan is None:
            raise TopologyChangedError(f"member {self._member_id} does not keep plan {plan_id}", plan=plan_id)
        return plan

    async def plan(self, plan_id: str) -> SelectPlan:
        """A plan, fetched unless it is kept here.

        Raises:
            TopologyChangedError: The controller does not keep it any more; the client has to prepare its statement
                again.
            UnreachableError: The controller does not answer, and no other member has it.
        """
        plan = self._plans.get(plan_id)
        if plan is None:
            plan = self._plans[plan_id] = await self._fetch_plan(plan_id)
            while len(self._plans) > self._plans_max:
                self._plans.popitem(last=False)
        return plan

    async def rows(
        self, plan: SelectPlan, params: Sequence[Any], *, pruning: bool, profiled: bool
    ) -> tuple[pa.Table, tuple[StageWork, ...]]:
        """The rows of a query, for another part of this member, and the work of the run, if that is requested.

        Raises:
            Error: As :meth:`execute`.
        """
        asked = Execute(plan.plan_id, list(params), pruning)
        work: tuple[StageWork, ...] = ()
        if profiled:
            profiled_reply = await self.profile_part(asked, _ITSELF, has_rows=True)
            payload, result, work = (
                profiled_reply.payload,
                profiled_reply.message.result,
                profiled_reply.message.profile.work,
            )
        else:
            asked = await self._completed(plan, asked)
            answer = self._run(plan, Request(Operation.EXECUTE_PART, asked, _NO_PAYLOAD, _ITSELF))
            reply = answer if isinstance(answer, Reply) else await answer
            payload, result = reply.payload, reply.message
        if result.values is None:
            return decode_tables([payload] if isinstance(payload, (bytes, memoryview)) else payload), work
        return (
            ShortTable(result.values, result.rows).to_table([(name, parse_type(text)) for name, text in plan.columns]),
            work,
        )

    async def with_values(self, plan: SelectPlan, params: list[Any]) -> list[Any]:
        """The parameters of a plan with the values of its expressions behind them, for one execution.

        Raises:
            ParameterError: Another number of parameters than the statement has.
        """
        if not plan.expressions:
            return params
        check_count(plan, params)
        completed = complete_without_evaluation(params, plan.expressions)
        if completed is not None:
            return completed
        return await in_thread(self._threads.quick, lambda _: complete(params, plan.expressions))

    async def _completed(self, plan: SelectPlan, asked: Execute) -> Execute:
        if not plan.expressions:
            return asked
        return structs.replace(asked, params=await self.with_values(plan, asked.params))

    async def _ready(self, asked: Execute) -> tuple[SelectPlan, Execute]:
        """A plan with the rows of the system tables and external tables that it reads, as they are now.

        With it comes the execution with the values of its expressions.
        """
        plan = await self.plan(asked.plan)
        asked = await self._completed(plan, asked)
        if not plan.reads_fetched_rows:
            return plan, asked
        view = self._joined()
        check_versions(self._store, plan)
        tables = await asyncio.gather(*map(self._fetch_system_table, plan.system_tables))
        rows = dict(zip(plan.system_tables, tables, strict=True))
        fetched = {scan.relation: FetchedRows(rows[scan.system]) for scan in plan.scans if scan.system is not None}
        external = await self._external_reads.rows(
            plan,
            asked.params,
            view.topology,
            pruning=asked.pruning,
            in_parts=asked.pruning and not asked.as_written,
        )
        return plan.pinned({**fetched, **external}), asked

    async def _fetch_and_run(self, request: Request[Execute]) -> Reply[Executed]:
        plan, asked = await self._ready(request.message)
        reply = self._run(plan, Request(request.operation, asked, request.payload, request.peer))
        return reply if isinstance(reply, Reply) else await reply

    async def _in_turn(
        self,
        admission: StatementAdmission,
        plan: SelectPlan,
        request: Request[Execute],
        run: Callable[[], Awaitable[A]],
    ) -> A | Reply[Executed]:
        """Run a statement of a client when it is its turn; one about the cluster, or a part of an admitted one, now.

        Raises:
            LimitExceededError: Too many statements wait; nothing was done.
        """
        if request.operation is not Operation.EXECUTE or plan.reads_system_tables_only:
            return await run()
        async with admission.admitted(request.peer) as has_waited:
            if not has_waited:
                return await run()
            admitted = Request(Operation.EXECUTE_PART, request.message, request.payload, request.peer)
            reply = self._run(plan, admitted)  # over the rows and owners of now
            return reply if isinstance(reply, Reply) else await reply

    def _run(self, plan: SelectPlan, request: Request[Execute]) -> _Answering:
        if request.message.as_written:
            plan = plan.as_written()
        partitions, topology, is_here = self._placed(plan, request.message)
        if not is_here:
            if request.peer is not _ITSELF and self._scattered.is_due(plan, request.message, partitions):
                return self._run_scattered(plan, request, partitions, topology)
            return self._in_turn(
                self._admissions.long, plan, request, lambda: self._run_distributed(plan, request, partitions, topology)
            )
        answering = self._run_local(plan, request, partitions, topology)
        # What this member works out for a change need not wait: it is acknowledged behind the changes that it has read.
        waiting = None if request.peer is _ITSELF else self._acknowledged(partitions_read(plan, partitions))
        return answering if waiting is None else _after(waiting, answering)

    def _joined(self) -> _View:
        if self._view is None:
            raise TopologyChangedError(f"member {self._member_id} has not joined yet; try again")
        return self._view

    def _placed(self, plan: SelectPlan, asked: Execute) -> tuple[list[Sequence[int]], Topology, bool]:
        """The partitions of each scan, the topology, and whether this member has all of them."""
        view = self._joined()
        check_versions(self._store, plan)
        check_state(self._store, plan, asked, view.topology)
        partitions = bound_partitions(plan, asked.params, pruning=asked.pruning)
        for scan, ids in zip(plan.scans, partitions, strict=True):
            if not (scan.replicated or view.mine.get(scan.group, _NONE).issuperset(ids)):
                break
        else:
            return partitions, view.topology, True
        for scan, ids in zip(plan.scans, partitions, strict=True):
            if not scan.replicated:
                if scan.group not in view.topology.owners:
                    raise TopologyChangedError(
                        f"member {self._member_id} does not know the owners of {scan.group} yet; try again"
                    )
                view.topology.check_live(view.topology.primaries(scan.group, ids))
        return partitions, view.topology, False

    def _run_local(
        self, plan: SelectPlan, request: Request[Execute], partitions: list[Sequence[int]], topology: Topology
    ) -> _Answering:
        asked = request.message
        params, ran = asked.params, self._ran_here(plan, asked, partitions, topology)
        if asked.pruning and plan.searched is not None:
            few = answer_few(self._store, plan.scans[0], plan.searched, partitions[0], params)
            if few is not None:
                return ran.reply(few.rows)
        call = local_execution(self._store, plan, params, partitions, pruning=asked.pruning)
        if call.is_quick:
            found = answer_by_arrow(call.fragment, call.relations, params)
            if found is not None:
                return ran.reply(found)
            call = call.by_duckdb()
        if plan.empty is not None and call.is_empty:
            return ran.reply(decode_table(plan.empty, ranges=False))
        return self._in_turn(self._admissions.of(call), plan, request, lambda: self._run_in_thread(call, request, ran))

    def _ran_here(self, plan: SelectPlan, asked: Execute, partitions: list[Sequence[int]], topology: Topology) -> _Ran:
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
    ) -> _Ran:
        statistics_version = self._statistics_version() if plan.is_estimated else 0
        return _Ran(plan, partitions, topology, execution, published, statistics_version)

    async def _run_in_thread(self, call: LocalExecution, request: Request[Execute], ran: _Ran) -> Reply[Executed]:
        params, grant, peer = request.message.params, request.message.grant, request.peer
        with self._results.running(peer):
            if grant is None:
                return ran.reply(
                    self._results.checked(await in_thread(self._threads.of(call, peer), _whole(call, params)))
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
            self._jobs.limits,
        )

    async def _run_scattered(
        self, plan: SelectPlan, request: Request[Execute], partitions: list[Sequence[int]], topology: Topology
    ) -> Reply[Executed]:
        """Run a statement over a few partitions by scatter, or as a job if an owner has too many rows."""
        asked, peer = request.message, request.peer

        async def scatter() -> Reply[Executed] | None:
            with self._results.running(peer):
                scattered = await self._scatter(plan, asked, partitions, topology)
                if scattered is None:
                    return None
                ran, result, members = (
                    self._ran(plan, partitions, topology, "scatter"),
                    scattered.result,
                    scattered.members,
                )
                if isinstance(result, pa.Table) and asked.grant is not None and result.nbytes > asked.grant:
                    rows = LocalRowStream(lambda _: CompleteResult(result), self._threads.quick)
                    return await self._results.open(peer, rows, within_bounds(asked.grant), ran.executed(members))
                return ran.reply(result if isinstance(result, ShortTable) else self._results.checked(result), members)

        reply = await self._in_turn(self._admissions.quick, plan, request, scatter)
        if reply is not None:
            return reply

        async def run_job() -> Reply[Executed]:
            return await self._run_distributed(plan, request, partitions, topology)

        return await self._in_turn(self._admissions.long, plan, request, run_job)

    async def _scatter(
        self, plan: SelectPlan, asked: Execute, partitions: list[Sequence[int]], topology: Topology
    ) -> ScatteredRows | None:
        """Run a statement by scatter; None if it has to run as a job."""
        try:
            return await _while_loads_end(lambda: self._scattered.run(plan, asked.params, partitions, topology))
        except DataError:
            if not plan.gathered:
                raise
            return None  # the error need not be one of the statement; a job finds the form in which it would be

    def run_first_stage(self, request: Request[ExecuteFirstStage]) -> Reply[FirstStageRows] | _AnsweringStage:
        """Answer the member that coordinates a scattered statement, or the client that asks all of its owners.

        Raises:
            TopologyChangedError: A partition is not this member's, or a table has other ranges by now.
            DataChangedError: Another load was the last one published here.
            Error: The error of the statement.
        """
        plan = self._plans.get(request.message.plan)
        if plan is None:
            return self._fetch_and_run_first_stage(request)
        self._plans.move_to_end(plan.plan_id)
        return self._run_first_stage(plan, request)

    async def _fetch_and_run_first_stage(self, request: Request[ExecuteFirstStage]) -> Reply[FirstStageRows]:
        reply = self._run_first_stage(await self.plan(request.message.plan), request)
        return reply if isinstance(reply, Reply) else await reply

    def _run_first_stage(
        self, plan: SelectPlan, request: Request[ExecuteFirstStage]
    ) -> Reply[FirstStageRows] | _AnsweringStage:
        asked, view = request.message, self._joined()
        check_versions(self._store, plan)
        if len(asked.partitions) != len(plan.scans):
            raise ProtocolError(f"plan {plan.plan_id} has {len(plan.scans)} scans, not {len(asked.partitions)}")
        for scan, ids in zip(plan.scans, asked.partitions, strict=True):
            if not (scan.replicated or view.mine.get(scan.group, _NONE).issuperset(ids)):
                raise TopologyChangedError(
                    f"member {self._member_id} does not own all of the partitions of {scan.table} that it was asked"
                    " for: the owners have changed since the statement began",
                    table=scan.table,
                    topology_version=view.topology.version,
                )
        if asked.published is None and not (
            plan.scatter_partitions_max and _agree(bound_partitions(plan, asked.params, pruning=True), asked)
        ):
            return Reply(FirstStageRows(0, is_declined=True))
        seen = SeenVersions(view.topology.version, self._statistics_version() if plan.is_estimated else 0)
        answering = self._scattered.answer(plan, asked, seen)
        waiting = self._acknowledged(partitions_read(plan, asked.partitions))
        return answering if waiting is None else _after(waiting, answering)

    async def _run_distributed(
        self, plan: SelectPlan, request: Request[Execute], partitions: list[Sequence[int]], topology: Topology
    ) -> Reply[Executed]:
        asked = request.message
        ran = self._ran(plan, partitions, topology, "distributed")
        if asked.grant is None:
            with self._results.running(request.peer):
                _, result = await self._result_of(
                    plan, asked, partitions, topology, lambda: ResultCollector(self._results.held_bytes_max)
                )
            return ran.reply(result.table(), self._touched(result))
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
            return await _in_some_form(plan, first_rows)

    async def _result_of(
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

        return await _in_some_form(plan, run)

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
        times = KERNEL_TIMES.get()
        if times is not None:
            job.when_done(lambda: times.extend(entry.offload_s for entry in job.metrics))
        return job

    def _touched(self, result: JobResult) -> list[str]:
        return sorted({self._member_id, *result.members_touched})

    async def profile(self, request: Request[Profile]) -> Reply[Profiled]:
        """Answer one execution of a plan as :meth:`execute` does, with its profile in the header.

        Raises:
            Error: As :meth:`execute`.
        """
        asked, peer = request.message, request.peer
        if peer.role is not Role.CLIENT:
            return await self.profile_part(asked.run, peer, has_rows=asked.has_rows)
        async with self._admissions.long.admitted(peer):
            return await self.profile_part(asked.run, peer, has_rows=asked.has_rows)

    async def profile_part(self, asked: Execute, peer: PeerInfo, *, has_rows: bool) -> Reply[Profiled]:
        """As :meth:`profile`, for a part of a statement that was admitted.

        Raises:
            Error: As :meth:`execute`.
        """
        plan, asked = await self._ready(asked)
        partitions, topology, is_here = self._placed(plan, asked)
        with self._results.running(peer):
            if is_here:
                return await self._profile_local(plan, asked, peer, partitions, topology, has_rows=has_rows)
            if peer is not _ITSELF and self._scattered.is_due(plan, asked, partitions):
                scattered = await self._scatter(plan, asked, partitions, topology)
                if scattered is not None:
                    return self._profile_scattered(plan, partitions, topology, scattered, has_rows=has_rows)
            counted = CountedResult()
            whole = (lambda: ResultCollector(self._results.held_bytes_max)) if has_rows else counted.anew
            run, result = await self._result_of(plan, asked, partitions, topology, whole)
        ran, touched = self._ran(plan, partitions, topology, "distributed"), self._touched(result)
        work = (*fetched_work(plan), *job_work(run, partitions, topology, result.metrics))
        if not has_rows:
            return Reply(Profiled(ran.executed(touched, counted.rows), RunProfile(counted.rows, counted.bytes, work)))
        table = result.table()
        reply = ran.reply(table, touched)
        return Reply(Profiled(reply.message, RunProfile(table.num_rows, table.nbytes, work)), reply.payload)

    def _profile_scattered(
        self,
        plan: SelectPlan,
        partitions: list[Sequence[int]],
        topology: Topology,
        scattered: ScatteredRows,
        *,
        has_rows: bool,
    ) -> Reply[Profiled]:
        ran, result, members = self._ran(plan, partitions, topology, "scatter"), scattered.result, scattered.members
        work = scattered_work(plan, partitions, topology, scattered, self._member_id)
        size = 0 if isinstance(result, ShortTable) else result.nbytes
        profile = RunProfile(result.num_rows, size, tuple(work))
        if not has_rows:
            return Reply(Profiled(ran.executed(members, result.num_rows), profile))
        reply = ran.reply(result, members)
        return Reply(Profiled(reply.message, profile), reply.payload)

    async def _profile_local(
        self,
        plan: SelectPlan,
        asked: Execute,
        peer: PeerInfo,
        partitions: list[Sequence[int]],
        topology: Topology,
        *,
        has_rows: bool,
    ) -> Reply[Profiled]:
        params, ran = asked.params, self._ran_here(plan, asked, partitions, topology)
        call = local_execution(self._store, plan, params, partitions, pruning=asked.pruning)
        rows_read = sum(relation.num_rows for relation in call.relations.values())
        started_s = time.perf_counter()
        if has_rows:
            table = self._results.checked(await in_thread(self._threads.of(call, peer), _whole(call, params)))
            rows, size = table.num_rows, table.nbytes
        else:
            stream, rows, size = self._rows_of(call, params, peer), 0, 0
            while not stream.is_done:
                table = await stream.take(GRANT_BYTES_MAX)
                rows, size = rows + table.num_rows, size + table.nbytes
        work = local_work(self._member_id, partitions, rows_read, rows, size, time.perf_counter() - started_s)
        profile = RunProfile(rows, size, (*fetched_work(plan), *work))
        if not has_rows:
            return Reply(Profiled(ran.executed(rows=rows), profile))
        reply = ran.reply(table)
        return Reply(Profiled(reply.message, profile), reply.payload)


class _Ran(msgspec.Struct, frozen=True):
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


async def _after(waiting: Waiting, answering: Reply[T] | Coroutine[Any, Any, Reply[T]]) -> Reply[T]:
    """An answer of rows that are read already, once the changes in them are acknowledged."""
    try:
        await waiting()
    except BaseException:
        if not isinstance(answering, Reply):
            answering.close()
        raise
    return answering if isinstance(answering, Reply) else await answering


def _agree(bound: Sequence[Sequence[int]], asked: ExecuteFirstStage) -> bool:
    """Whether a client that asks all owners has found the partitions that this member finds for a statement.

    Each owner looks at its own part, and the one that lists the statement at how many there are in all.
    """
    if asked.run is not None and asked.run.partitions_read != sum(map(len, bound)):
        return False
    return all(frozenset(ids).issuperset(part) for ids, part in zip(bound, asked.partitions, strict=True))


async def _in_some_form(plan: SelectPlan, run: Callable[[SelectPlan], Awaitable[T]]) -> T:
    """Run the stages of a plan.

    If an error in the data need not be one of the statement, run other stages, in which it would be.
    """
    try:
        return await _while_loads_end(lambda: run(plan))
    except DataError:
        if not plan.gathered:
            raise
        return await _while_loads_end(lambda: run(structs.replace(plan, stages=plan.gathered, gathered=())))


async def _while_loads_end(run: Callable[[], Awaitable[T]]) -> T:
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


def _whole(call: LocalExecution, params: Sequence[Any]) -> Callable[[Cancellation], pa.Table]:
    return lambda stop: run(call.fragment, call.relations, params, cancellation=stop)
