"""The ladder: the ways in which a member answers an execution of a planned SELECT, and the one place that chooses.

From the cheapest on, each is tried until one answers:

1. The native executor, from the bytes of a frame, in :mod:`~secateur.cluster.member.statements.native_answers`;
2. the program of a plan over few rows that are found by key, in
   :mod:`~secateur.cluster.member.statements.serving_programs`;
3. the rungs of :mod:`~secateur.cluster.member.statements.reads`, once the partitions are known: *local*, *scatter*,
   *distributed*.

A profiled run begins with the third, where there is something to measure. What may not wait ends with the answers that
are given in one turn of the event loop.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Final, TypeAlias

import pyarrow as pa
from msgspec import structs

from secateur.cluster.member.admission.statement_admission import Admissions
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.member_threads import THIS_MEMBER, MemberThreads
from secateur.cluster.member.replication.replication import Replication
from secateur.cluster.member.statements.distributed_statements import DistributedStatements
from secateur.cluster.member.statements.first_stages import FirstStages
from secateur.cluster.member.statements.local_reads import LocalReads
from secateur.cluster.member.statements.native_answers import MakeNative
from secateur.cluster.member.statements.open_results import within_bounds
from secateur.cluster.member.statements.plans import MemberPlans
from secateur.cluster.member.statements.prepared_statements import PreparedStatements
from secateur.cluster.member.statements.reads import Deliver, Found, Read, Rung, Taken, after, partitions_read
from secateur.cluster.member.statements.scattered_statements import ScatteredStatements
from secateur.cluster.member.statements.serving_programs import ServingPrograms
from secateur.cluster.peers import MemberConnections
from secateur.cluster.statement_profile import fetched_work
from secateur.engine.runtime.runtime import JobRuntime
from secateur.engine.sql.select_plan import SelectPlan
from secateur.partitioning.types.column_type import parse_type
from secateur.protocol.message import Role
from secateur.protocol.metrics import RunProfile, StageWork
from secateur.protocol.operations import Operation
from secateur.protocol.query import Execute, Executed, Profile, Profiled
from secateur.wire import PeerInfo, Reply, Request, ShortTable, decode_tables

Answering: TypeAlias = Reply[Executed] | Coroutine[Any, Any, Reply[Executed]]

_EXECUTE: Final = Operation.EXECUTE
"""Looked up once: that takes as long as two calls."""
_PROFILED_BYTES: Final = 4 << 20
"""Bytes of rows that are made at a time, and dropped, for a profile without them."""


class StatementRunner:
    """Answers ``execute`` and ``profile`` requests. Lives on the member's event loop.

    Args:
        native: Makes the native executor; None where there is none.

    Attributes:
        prepared: Finds plans, and the partitions of their executions.
        native: The native executor; None where there is none.
        first_stages: Answers the members and clients that scatter statements themselves.
        misses: Counts the scans whose estimates were badly wrong.
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
        native: MakeNative | None,
    ) -> None:
        self._results = storage.results
        self._hot_keys = storage.hot_keys
        self._kept = plans.kept
        self._admissions = admissions
        acknowledged = self._acknowledged = copies.acknowledgements.acknowledged
        self.prepared = PreparedStatements(storage, connections, plans, jobs, threads)
        self.native = None if native is None else native(self.prepared)
        self._programs = ServingPrograms(storage, self.prepared, self.native)
        self.first_stages = FirstStages(storage, self.prepared, self.native, threads.quick, acknowledged)
        distributed = DistributedStatements(storage, jobs, admissions)
        self.misses = distributed.misses
        self._local = LocalReads(storage, admissions, threads, jobs.limits)
        self._rungs: tuple[Rung, ...] = (
            self._local,
            ScatteredStatements(storage, connections.peers, self.first_stages, admissions, threads, acknowledged),
            distributed,
        )

    def execute(self, request: Request[Execute]) -> Answering:
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
        asked, waits = request.message, request.operation is _EXECUTE
        plan = self._kept.get(asked.plan)
        if plan is None or plan.reads_fetched_rows or plan.expressions:
            return self._fetch_and_run(asked, request.peer, waits=waits)
        self._kept.move_to_end(asked.plan)
        return self._run(plan, asked, request.peer, waits=waits)

    def executed_now(self, plan: SelectPlan, asked: Execute, peer: PeerInfo) -> Executed | None:
        """The answer of a plan that is kept here, if it is a few rows that are found without waiting; else None.

        Raises:
            Error: As :meth:`execute`.
        """
        served = self._programs.answer(plan, asked)
        if served is not None:
            said, partitions = served
            return said if self._acknowledged(partitions_read(plan, partitions)) is None else None
        if plan.reads_fetched_rows or plan.expressions:
            return None
        read = self.prepared.placed(plan, asked, peer)
        if not read.is_here or self._acknowledged(partitions_read(plan, read.partitions)) is not None:
            return None
        answer = self._local.take(read)
        return answer.message if isinstance(answer, Reply) and answer.message.values is not None else None

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
        plan, asked = await self.prepared.ready(asked)
        asked = structs.replace(asked, grant=None if has_rows else _PROFILED_BYTES)
        read, waiting = self.prepared.placed(plan, asked, peer, is_profiled=True), None
        rungs, profiled = iter(self._rungs), None
        while profiled is None:
            taken = self._taken(read, rungs)
            assert not isinstance(taken, Reply)
            if read.is_here and peer is not THIS_MEMBER:
                waiting = self._acknowledged(partitions_read(plan, read.partitions))
            profiled = await self._ran(taken, read, partial(_profiled, read))
        return profiled if waiting is None else await after(waiting, profiled)

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
            profile = await self.profile_part(asked, THIS_MEMBER, has_rows=True)
            payload, result, work = profile.payload, profile.message.result, profile.message.profile.work
        else:
            answer = self._run(plan, await self.prepared.completed(plan, asked), THIS_MEMBER, waits=False)
            reply = answer if isinstance(answer, Reply) else await answer
            payload, result = reply.payload, reply.message
        if result.values is None:
            return decode_tables([payload] if isinstance(payload, (bytes, memoryview)) else payload), work
        columns = [(name, parse_type(text)) for name, text in plan.columns]
        return ShortTable(result.values, result.rows).to_table(columns), work

    async def _fetch_and_run(self, asked: Execute, peer: PeerInfo, *, waits: bool) -> Reply[Executed]:
        plan, asked = await self.prepared.ready(asked)
        reply = self._run(plan, asked, peer, waits=waits)
        return reply if isinstance(reply, Reply) else await reply

    def _run(self, plan: SelectPlan, asked: Execute, peer: PeerInfo, *, waits: bool) -> Answering:
        """Go up the ladder; ``waits`` for the statement of a client, which has its turn where it takes long."""
        answering: Answering
        served = self._programs.answer(plan, asked)
        if served is not None:
            said, partitions = served
            answering = Reply(said)
        else:
            if asked.as_written:
                plan = plan.as_written()
            read = self.prepared.placed(plan, asked, peer)
            self._hot_keys.executed(plan, asked.params)
            rungs = iter(self._rungs)
            first = self._taken(read, rungs)
            answering = first if isinstance(first, Reply) else self._run_later(first, rungs, read, waits=waits)
            if not read.is_here:
                return answering  # the owners wait
            partitions = read.partitions
        # What this member works out for a change need not wait: it is acknowledged behind the changes that it has read.
        waiting = None if peer is THIS_MEMBER else self._acknowledged(partitions_read(plan, partitions))
        return answering if waiting is None else after(waiting, answering)

    def _taken(self, read: Read, rungs: Iterator[Rung]) -> Reply[Executed] | Taken:
        """What the next rung that takes a read does for it."""
        for rung in rungs:
            taken = rung.take(read)
            if taken is not None:
                return taken
        raise AssertionError("the last rung runs every read")

    async def _run_later(
        self, taken: Reply[Executed] | Taken, rungs: Iterator[Rung], read: Read, *, waits: bool
    ) -> Reply[Executed]:
        """Run a read on the first rung that does not leave it to the next, each in its turn.

        Raises:
            LimitExceededError: Too many statements wait; nothing was done.
        """
        waits = waits and not read.plan.reads_system_tables_only
        while not isinstance(taken, Reply):
            async with taken.admission.admitted(read.peer) if waits else nullcontext(False) as has_waited:
                if has_waited:  # over the rows and owners of now
                    answer = self._run(read.plan, read.asked, read.peer, waits=False)
                    return answer if isinstance(answer, Reply) else await answer
                reply: Reply[Executed] | None = await self._ran(taken, read, partial(self._reply, read))
            if reply is not None:
                return reply
            taken = self._taken(read, rungs)
        return taken

    async def _ran(self, taken: Taken, read: Read, deliver: Deliver) -> Reply[Any] | None:
        with self._results.running(read.peer):
            return await taken.run(deliver)

    async def _reply(self, read: Read, found: Found) -> Reply[Executed]:
        """What was found, or the first part of it."""
        rows, grant = found.rows, read.asked.grant
        if isinstance(rows, (pa.Table, ShortTable)):
            return read.reply(found)
        assert grant is not None
        return await self._results.open(read.peer, rows, within_bounds(grant), read.executed(found))


async def _profiled(read: Read, found: Found) -> Reply[Profiled]:
    """The profile of a run, with its rows unless they come as a stream, which is read to its end."""
    rows, count, size = found.rows, 0, 0
    if isinstance(rows, (pa.Table, ShortTable)):
        count, size = rows.num_rows, 0 if isinstance(rows, ShortTable) else rows.nbytes
    else:
        try:
            while not rows.is_done:
                part = await rows.take(_PROFILED_BYTES)
                count, size = count + part.num_rows, size + part.nbytes
        except BaseException:
            rows.close()
            raise
    assert found.work is not None
    profile = RunProfile(count, size, (*fetched_work(read.plan), *await found.work(count, size)))
    if read.asked.grant is not None:
        return Reply(Profiled(read.executed(found, count), profile))
    reply = read.reply(found)
    return Reply(Profiled(reply.message, profile), reply.payload)
