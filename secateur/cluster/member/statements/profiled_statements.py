"""Running a statement for its profile: the figures of EXPLAIN ANALYZE."""

from __future__ import annotations

import time
from collections.abc import Sequence

from secateur.cluster.member.member_threads import THIS_MEMBER
from secateur.cluster.member.statements.local_execution import local_execution
from secateur.cluster.member.statements.open_results import GRANT_BYTES_MAX
from secateur.cluster.member.statements.run_modes import RunModes, whole
from secateur.cluster.member.statements.scattered_statements import ScatteredRows, scattered_work
from secateur.cluster.statement_profile import CountedResult, fetched_work, job_work, local_work
from secateur.engine.runtime.result import ResultCollector
from secateur.engine.sql.kernel_call import in_thread
from secateur.engine.sql.select_plan import SelectPlan
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.message import Role
from secateur.protocol.profile import RunProfile
from secateur.protocol.query import Execute, Profile, Profiled
from secateur.wire import PeerInfo, Reply, Request, ShortTable


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
            collector = (lambda: ResultCollector(self._results.held_bytes_max)) if has_rows else counted.anew
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
