"""The rung *scatter*: this member asks the owners of a few partitions once each, and combines their rows.

:mod:`secateur.engine.sql.scatter` says which statements. Consistency is that of a job: every owner checks that the
partitions are its own, that the load which was the last one here when the statement began is the last one there, and
that what it has read is acknowledged. So rows of two publications are never combined.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa

from secateur.client.execution.retry_policy import PlanBackoff
from secateur.cluster.member.admission.statement_admission import Admissions
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.member_threads import THIS_MEMBER, MemberThreads
from secateur.cluster.member.statements.first_stages import FirstStage, FirstStages, is_short
from secateur.cluster.member.statements.reads import (
    Acknowledgements,
    Deliver,
    Found,
    Read,
    Taken,
    partitions_read,
    while_loads_end,
)
from secateur.cluster.peers import Peers
from secateur.cluster.statement_profile import work_of
from secateur.engine.kernels.fragment import CompleteResult, answer, run
from secateur.engine.sql.row_stream import LocalRowStream
from secateur.engine.sql.scatter import combined_rows, is_scattered, partitions_by_member
from secateur.engine.sql.select_job import vertex_names
from secateur.engine.sql.select_plan import SelectPlan
from secateur.engine.threads import WORK, in_thread
from secateur.errors import DataError, DeadlineError, MemberLostError, UnreachableError
from secateur.protocol.metrics import StageWork
from secateur.protocol.query import ExecuteFirstStage
from secateur.wire import Reply, ShortTable, decode_tables


class ScatteredRows(msgspec.Struct, frozen=True):
    """The answer of a scattered statement.

    Attributes:
        result: Its rows.
        members: The members that took part, this one among them.
        parts: The rows of the first stage, by member.
        combining_s: Seconds spent on the last stage.
    """

    result: pa.Table | ShortTable
    members: list[str]
    parts: Mapping[str, FirstStage]
    combining_s: float


class ScatteredStatements:
    """Runs statements by scatter. Lives on the member's event loop."""

    def __init__(
        self,
        storage: MemberStorage,
        peers: Peers,
        first_stages: FirstStages,
        admissions: Admissions,
        threads: MemberThreads,
        acknowledged: Acknowledgements,
    ) -> None:
        self._member_id = storage.member_id
        self._store = storage.store
        self._results = storage.results
        self._peers = peers
        self._first_stages = first_stages
        self._admissions = admissions
        self._threads = threads.quick
        self._acknowledged = acknowledged
        self._backoff = PlanBackoff()

    def take(self, read: Read) -> Taken | None:
        """As :meth:`~secateur.cluster.member.statements.reads.Rung.take`.

        One whose rows have to be in a certain state is run as a job. A statement that was declined is for a while.
        """
        plan, asked = read.plan, read.asked
        if (
            read.peer is THIS_MEMBER
            or not asked.pruning
            or asked.mark is not None
            or asked.since is not None
            or not is_scattered(plan, read.partitions)
            or not self._backoff.is_due(plan.plan_id)
        ):
            return None
        return Taken(self._admissions.quick, partial(self._run, read))

    async def _run(self, read: Read, deliver: Deliver) -> Reply[Any] | None:
        """Run a statement; None if an owner has too many rows for this."""
        try:
            scattered = await while_loads_end(lambda: self._scatter(read))
        except DataError:
            if not read.plan.gathered:
                raise
            return None  # the error need not be one of the statement; a job finds the form in which it would be
        if scattered is None:
            return None
        counted = WORK.get()
        if counted is not None:
            others = [part for member, part in scattered.parts.items() if member != self._member_id]
            counted.processor_times.extend(part.kernel_s + part.busy_s for part in others)
            counted.rows_read += sum(part.rows_read for part in scattered.parts.values())
        rows, grant = scattered.result, read.asked.grant
        if isinstance(rows, pa.Table):
            whole = CompleteResult(rows)
            rows = (
                self._results.checked(rows)
                if grant is None or rows.nbytes <= grant
                else LocalRowStream(lambda _: whole, self._threads)
            )

        async def work(_rows: int, _size: int) -> Sequence[StageWork]:
            return _work(read, scattered, self._member_id)

        return await deliver(Found(rows, "scatter", scattered.members, work=work))

    async def _scatter(self, read: Read) -> ScatteredRows | None:
        """Ask the owners once.

        Raises:
            DataChangedError: A load was published on some of the members; to be run again.
            TopologyChangedError: A partition is not where the topology says.
            MemberLostError: An owner does not answer.
            Error: The error of the statement.
        """
        plan, params = read.plan, read.asked.params
        by_member = partitions_by_member(plan, read.partitions, read.topology)
        published = [self._store.data_version(scan.table_id).published for scan in plan.scans]
        here = by_member.pop(self._member_id, None)
        own, waiting = None, None
        if here is not None:
            own = self._first_stages.read(plan, params, here, published)
            if own is None:
                self._backoff.note(plan.plan_id, used=False)
                return None
            waiting = self._acknowledged(partitions_read(plan, here))
        asking = [
            asyncio.ensure_future(
                self._ask(plan, member, ExecuteFirstStage(plan.plan_id, list(params), ids, published))
            )
            for member, ids in by_member.items()
        ]
        parts: dict[str, FirstStage | None] = {}
        try:
            if own is not None:
                await asyncio.sleep(0)  # the others are asked before the kernel here holds the event loop
                parts[self._member_id] = await self._first_stages.answered(plan, params, own)
                if waiting is not None:
                    await waiting()
            parts.update(zip(by_member, await asyncio.gather(*asking), strict=True))
        except BaseException:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
            raise
        found = {member: part for member, part in parts.items() if part is not None}
        self._backoff.note(plan.plan_id, used=len(found) == len(parts))
        return await self._combined(plan, params, found) if len(found) == len(parts) else None

    async def _ask(self, plan: SelectPlan, member: str, message: ExecuteFirstStage) -> FirstStage | None:
        try:
            answered = await self._peers.ask(member, message)
        except (MemberLostError, UnreachableError, DeadlineError) as error:
            if isinstance(error, MemberLostError) and "member" in error.details:
                raise
            raise MemberLostError(
                f"member {member} did not answer for its partitions: {error.message}", member=member
            ) from error
        said = answered.message
        if said.is_declined:
            return None
        rows = ShortTable(said.values, said.rows) if said.values is not None else decode_tables(answered.parts)
        sent = sum(map(len, answered.parts))
        return FirstStage(rows, said.rows_read, said.kernel_ms / 1000, said.busy_ms / 1000, sent)

    async def _combined(
        self, plan: SelectPlan, params: Sequence[Any], parts: Mapping[str, FirstStage]
    ) -> ScatteredRows:
        """Run the last stage over the rows of the first one."""
        first, last = plan.stages
        (name,) = last.relations
        relations = {name: combined_rows(first.fragment, [part.rows for part in parts.values()])}
        started_s = time.perf_counter()
        result: pa.Table | ShortTable
        if not is_short(last.fragment, relations):
            result = await in_thread(
                self._threads, lambda stop: run(last.fragment, relations, params, cancellation=stop)
            )
        elif last.limit is None and all(isinstance(part.rows, ShortTable) for part in parts.values()):
            result = answer(last.fragment, relations, params)
        else:
            result = run(last.fragment, relations, params)
        if last.limit is not None and isinstance(result, pa.Table):
            result = result.slice(last.limit.skipped, last.limit.taken)
        return ScatteredRows(result, sorted({self._member_id, *parts}), parts, time.perf_counter() - started_s)


def _work(read: Read, scattered: ScatteredRows, coordinator: str) -> list[StageWork]:
    """The work of both stages of a statement on each member; ``coordinator`` ran the last one."""
    plan = read.plan
    first, last = vertex_names(plan)
    by_member = partitions_by_member(plan, read.partitions, read.topology)
    replicated = sum(scan.replicated for scan in plan.scans)
    parts = sorted(scattered.parts.items(), key=lambda item: (len(item[0]), item[0]))
    work = [
        work_of(
            first,
            member,
            partitions=sum(map(len, by_member[member])) + replicated,
            rows_in=part.rows_read,
            rows_out=part.rows.num_rows,
            bytes_out=part.nbytes,
            sent_bytes=part.sent_bytes,
            kernel_s=part.kernel_s,
            busy_s=part.busy_s,
        )
        for member, part in parts
    ]
    result = scattered.result
    combined = work_of(
        last,
        coordinator,
        rows_in=sum(part.rows.num_rows for _, part in parts),
        rows_out=result.num_rows,
        bytes_out=0 if isinstance(result, ShortTable) else result.nbytes,
        busy_s=scattered.combining_s,
    )
    return [*work, combined]
