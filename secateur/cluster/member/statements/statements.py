"""Running a planned SELECT on a member: the execution modes *local*, *scatter* and *distributed*.

What the runner does is in layers of one object: :mod:`~secateur.cluster.member.statements.prepared_statements` finds
plans and partitions, :mod:`~secateur.cluster.member.statements.run_modes` runs them, and
:class:`ProfiledStatements` runs them for EXPLAIN ANALYZE. As objects that the runner
holds, the layers would cost a short statement an attribute and a call at each of its steps.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa

from secateur.cluster.member.admission.statement_admission import StatementAdmission
from secateur.cluster.member.member_threads import THIS_MEMBER
from secateur.cluster.member.statements.local_execution import local_execution
from secateur.cluster.member.statements.open_results import GRANT_BYTES_MAX, within_bounds
from secateur.cluster.member.statements.run_modes import RunModes, whole
from secateur.cluster.member.statements.scattered_statements import (
    ScatteredRows,
    after,
    partitions_read,
    scattered_work,
)
from secateur.cluster.statement_profile import CountedResult, fetched_work, job_work, local_work
from secateur.engine.kernels.fragment import CompleteResult, answer_by_arrow
from secateur.engine.runtime.result import ResultCollector
from secateur.engine.sql.row_stream import LocalRowStream
from secateur.engine.sql.select_plan import SelectPlan
from secateur.engine.threads import in_thread
from secateur.partitioning.topology.topology import Topology
from secateur.partitioning.types.column_type import parse_type
from secateur.protocol.message import Role
from secateur.protocol.metrics import RunProfile, StageWork
from secateur.protocol.operations import Operation
from secateur.protocol.query import Execute, Executed, Profile, Profiled
from secateur.wire import PeerInfo, Reply, Request, ShortTable, decode_table, decode_tables


class ProfiledStatements(RunModes):
    """Runs statements as it runs them for their rows, and counts the work. Lives on the member's event loop."""

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
            if peer is not THIS_MEMBER and self._scattered.is_due(plan, asked, partitions):
                scattered = await self._scatter(plan, asked, partitions, topology)
                if scattered is not None:
                    return self._profile_scattered(plan, partitions, topology, scattered, has_rows=has_rows)
            counted = CountedResult()
            collector = (lambda: ResultCollector(self._results.bytes_max)) if has_rows else counted.anew
            run, result = await self._distributed.result_of(plan, asked, partitions, topology, collector)
        ran, touched = self._ran(plan, partitions, topology, "distributed"), self._distributed.touched(result)
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
            table = self._results.checked(await in_thread(self._threads.of(call, peer), whole(call, params)))
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


A = TypeVar("A", bound="Reply[Executed] | None")

_NO_PAYLOAD: Final = memoryview(b"")
_Answering: TypeAlias = Reply[Executed] | Coroutine[Any, Any, Reply[Executed]]


class StatementRunner(ProfiledStatements):
    """Answers ``execute`` requests. Lives on the member's event loop.

    It is made as :class:`~secateur.cluster.member.statements.run_modes.RunModes`.
    """

    def execute(self, request: Request[Execute]) -> _Answering:
        """Answer one execution of a plan.

        Args:
            request: The plan to run, undivided. :mod:`secateur.cluster.member.statements.open_results` is about results
                in parts, :mod:`secateur.cluster.member.statements.query_steps` about queries in steps.

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

    def executed_now(self, plan: SelectPlan, asked: Execute, peer: PeerInfo) -> Executed | None:
        """The answer of a plan that is kept here, if it is a few rows that are found without waiting; else None.

        Raises:
            Error: As :meth:`execute`.
        """
        served = self._served(plan, asked)
        if served is not None:
            said, read = served
            return said if self._acknowledged(partitions_read(plan, read)) is None else None
        if plan.reads_fetched_rows or plan.expressions:
            return None
        partitions, topology, is_here = self._placed(plan, asked)
        if not is_here or self._acknowledged(partitions_read(plan, partitions)) is not None:
            return None
        request = Request(Operation.EXECUTE, asked, _NO_PAYLOAD, peer)
        answer = self._run_local(plan, request, partitions, topology)
        if not isinstance(answer, Reply):
            answer.close()
            return None
        return None if answer.message.values is None else answer.message

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
            profiled_reply = await self.profile_part(asked, THIS_MEMBER, has_rows=True)
            payload, result, work = (
                profiled_reply.payload,
                profiled_reply.message.result,
                profiled_reply.message.profile.work,
            )
        else:
            asked = await self._completed(plan, asked)
            answer = self._run(plan, Request(Operation.EXECUTE_PART, asked, _NO_PAYLOAD, THIS_MEMBER))
            reply = answer if isinstance(answer, Reply) else await answer
            payload, result = reply.payload, reply.message
        if result.values is None:
            return decode_tables([payload] if isinstance(payload, (bytes, memoryview)) else payload), work
        return (
            ShortTable(result.values, result.rows).to_table([(name, parse_type(text)) for name, text in plan.columns]),
            work,
        )

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
        served = self._served(plan, request.message)
        if served is not None:
            said, partitions_served = served
            reply = Reply(said)
            # What this member works out for a change need not wait: it is acknowledged behind the changes that it has
            # read.
            is_own = request.peer is THIS_MEMBER
            waiting = None if is_own else self._acknowledged(partitions_read(plan, partitions_served))
            return reply if waiting is None else after(waiting, reply)
        if request.message.as_written:
            plan = plan.as_written()
        partitions, topology, is_here = self._placed(plan, request.message)
        self._sample(plan, request.message)
        if not is_here:
            if request.peer is not THIS_MEMBER and self._scattered.is_due(plan, request.message, partitions):
                return self._run_scattered(plan, request, partitions, topology)
            return self._in_turn(
                self._admissions.long,
                plan,
                request,
                lambda: self._distributed.run(request, self._ran(plan, partitions, topology, "distributed")),
            )
        answering = self._run_local(plan, request, partitions, topology)
        waiting = None if request.peer is THIS_MEMBER else self._acknowledged(partitions_read(plan, partitions))
        return answering if waiting is None else after(waiting, answering)

    def _run_local(
        self, plan: SelectPlan, request: Request[Execute], partitions: list[Sequence[int]], topology: Topology
    ) -> _Answering:
        asked = request.message
        params, ran = asked.params, self._ran_here(plan, asked, partitions, topology)
        call = local_execution(self._store, plan, params, partitions, pruning=asked.pruning)
        if call.is_quick:
            found = answer_by_arrow(call.fragment, call.relations, params)
            if found is not None:
                return ran.reply(found)
            call = call.by_duckdb()
        if plan.empty is not None and call.is_empty:
            return ran.reply(decode_table(plan.empty, ranges=False))
        return self._in_turn(self._admissions.of(call), plan, request, lambda: self._run_in_thread(call, request, ran))

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
            return await self._distributed.run(request, self._ran(plan, partitions, topology, "distributed"))

        return await self._in_turn(self._admissions.long, plan, request, run_job)
