"""Running a statement by scatter: this member asks the owners of its partitions once each, and combines their rows.

:mod:`secateur.engine.sql.scatter` says which statements. Consistency is that of a job: every owner checks that the
partitions are its own, that the load which was the last one here when the statement began is the last one there, and
that what it has read is acknowledged. So rows of two publications are never combined.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec
import pyarrow as pa

from secateur.client.execution.retry_policy import PlanBackoff
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.statements.serving_programs import FewRowsRead, compile_few
from secateur.cluster.peers import Peers
from secateur.cluster.statement_profile import work_of
from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.kernels.fragment import Fragment, answer, open_answer, run
from secateur.engine.sql.fragment_call import INLINE_ROWS_MAX
from secateur.engine.sql.fragment_stage import MemberScan
from secateur.engine.sql.scatter import combined_rows, is_scattered, partitions_by_member
from secateur.engine.sql.select_job import vertex_names
from secateur.engine.sql.select_plan import SelectPlan
from secateur.engine.threads import in_thread, is_long_over
from secateur.errors import DeadlineError, MemberLostError, UnreachableError
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.metrics import StageWork
from secateur.protocol.query import Execute, ExecuteFirstStage, FirstStageRows
from secateur.wire import Reply, ShortTable, decode_tables, encode_table

T = TypeVar("T")

Waiting: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
Acknowledgements: TypeAlias = Callable[[Iterable[tuple[int, int]]], Waiting | None]
"""Gives what waits until the changes that readers of some partitions see now are acknowledged; None if they are."""

_ROWS_READ_MAX: Final = 20_000
"""Rows that one owner reads of partitioned tables; the arrow kernel is done with them in less than a millisecond."""
_PLANS_MAX: Final = 512
"""Plans whose way to few rows is kept."""
_PART_BYTES_MAX: Final = 4 << 20
"""Bytes of the rows that one owner answers with: no queue bounds them."""
_REPLICATED_PARTITIONS: Final = (0,)


class FirstStage(msgspec.Struct, frozen=True):
    """The rows of the first stage on one member, and what they cost.

    Attributes:
        rows: The rows.
        rows_read: Rows of the tables that it has read.
        kernel_s: Seconds spent in a kernel call in a thread.
        busy_s: Seconds spent in a kernel call on the event loop.
        sent_bytes: Bytes of the rows as they came from another member; 0 for few rows, and for this member.
    """

    rows: pa.Table | ShortTable
    rows_read: int
    kernel_s: float = 0.0
    busy_s: float = 0.0
    sent_bytes: int = 0

    @property
    def nbytes(self) -> int:
        return 0 if isinstance(self.rows, ShortTable) else self.rows.nbytes


class SeenVersions(NamedTuple):
    """The versions that a member knows when a client asks it.

    Attributes:
        topology: Of the owners.
        statistics: Of the statistics; 0 for a plan that does not depend on them.
    """

    topology: int
    statistics: int


_UNSEEN: Final = SeenVersions(0, 0)
"""The versions in an answer for another member, which knows them itself."""


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
    """Runs statements by scatter. Lives on the member's event loop.

    Args:
        storage: What this member keeps.
        peers: The other members.
        threads: For kernel calls over few rows that are not certain to be short.
        acknowledged: As :data:`Acknowledgements`.
    """

    def __init__(self, storage: MemberStorage, peers: Peers, threads: Executor, acknowledged: Acknowledgements) -> None:
        self._member_id = storage.member_id
        self._store = storage.store
        self._peers = peers
        self._threads = threads
        self._acknowledged = acknowledged
        self._backoff = PlanBackoff()
        self._few: dict[str, FewRowsRead | None] = {}

    def is_due(self, plan: SelectPlan, asked: Execute, partitions: Sequence[Sequence[int]]) -> bool:
        """Whether to scatter an execution over these partitions.

        One whose rows have to be in a certain state is run as a job. A statement that was declined is for a while.
        """
        return (
            asked.pruning
            and asked.mark is None
            and asked.since is None
            and is_scattered(plan, partitions)
            and self._backoff.is_due(plan.plan_id)
        )

    async def run(
        self, plan: SelectPlan, params: Sequence[Any], partitions: Sequence[Sequence[int]], topology: Topology
    ) -> ScatteredRows | None:
        """Run a statement.

        Args:
            plan: The statement.
            params: Its parameters, with the values of its expressions behind them.
            partitions: For each scan, the partitions to read.
            topology: Their owners.

        Returns:
            The rows; None if an owner has too many for this.

        Raises:
            DataChangedError: A load was published on some of the members; to be run again.
            TopologyChangedError: A partition is not where the topology says.
            MemberLostError: An owner does not answer.
            Error: The error of the statement.
        """
        by_member = partitions_by_member(plan, partitions, topology)
        published = [self._store.data_version(scan.table_id).published for scan in plan.scans]
        here = by_member.pop(self._member_id, None)
        own, waiting = None, None
        if here is not None:
            own = self._read(plan, params, here, published)
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
                parts[self._member_id] = await self._answered(plan, params, own)
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

    def answer(
        self, plan: SelectPlan, asked: ExecuteFirstStage, seen: SeenVersions
    ) -> Reply[FirstStageRows] | Coroutine[Any, Any, Any]:
        """Answer whoever combines the rows of a statement.

        The caller has checked the plan, and that the partitions are this member's. A client is answered at once or not
        at all: where a call takes long, a member coordinates the statement, and admits it in its turn.

        Raises:
            DataChangedError: Another load was the last one published here.
            Error: The error of the statement.
        """
        if asked.published is None:
            return self._answer_client(plan, asked, seen)
        relations = self._read(plan, asked.params, asked.partitions, asked.published)
        if relations is None:
            return Reply(FirstStageRows(0, is_declined=True))
        if _is_short(plan.stages[0].fragment, relations):
            return _reply(_at_once(plan.stages[0].fragment, relations, asked.params))
        return self._reply_later(plan, asked, relations)

    def _answer_client(self, plan: SelectPlan, asked: ExecuteFirstStage, seen: SeenVersions) -> Reply[FirstStageRows]:
        """Answer a client with rows and the versions of which they are, if that takes not long."""
        found = self._few_rows(plan, asked)
        if found is None:
            relations = self._read(plan, asked.params, asked.partitions, None)
            if relations is None or not _is_short(plan.stages[0].fragment, relations):
                return Reply(FirstStageRows(0, is_declined=True))
            found = _at_once(plan.stages[0].fragment, relations, asked.params)
        published = [self._store.data_version(scan.table_id).published for scan in plan.scans]
        return _reply(found, published, seen)

    def _few_rows(self, plan: SelectPlan, asked: ExecuteFirstStage) -> FirstStage | None:
        """The rows of the first stage, if they come of few rows that are found by key."""
        started_s = time.perf_counter()
        try:
            read = self._few[plan.plan_id]
        except KeyError:
            if len(self._few) >= _PLANS_MAX:
                self._few.clear()
            fragment = plan.first_stage_over_few_rows
            read = None if fragment is None else compile_few(self._store, plan.scans, fragment)
            self._few[plan.plan_id] = read
        few = None if read is None else read(asked.partitions, asked.params)
        if few is None:
            return None
        return FirstStage(*few, busy_s=time.perf_counter() - started_s)

    async def _reply_later(
        self, plan: SelectPlan, asked: ExecuteFirstStage, relations: Mapping[str, pa.Table]
    ) -> Reply[FirstStageRows]:
        return _reply(await self._answered(plan, asked.params, relations))

    def _read(
        self,
        plan: SelectPlan,
        params: Sequence[Any],
        partitions: Sequence[Sequence[int]],
        published: Sequence[int] | None,
    ) -> dict[str, pa.Table] | None:
        """Read the rows of the first stage here, in this turn of the event loop; None if they are too many."""
        relations, partitioned, total = {}, 0, 0
        for number in plan.stages[0].scans:
            scan = plan.scans[number]
            rows = MemberScan(
                scan.relation,
                scan.table_id,
                _REPLICATED_PARTITIONS if scan.replicated else tuple(partitions[number]),
                scan.columns,
                scan.keys.bind(params),
                None if published is None else published[number],
            ).read(self._store)
            relations[scan.relation] = rows
            partitioned += 0 if scan.replicated else rows.num_rows
            total += rows.num_rows
        return None if partitioned > _ROWS_READ_MAX or is_long_over(total) else relations

    async def _answered(
        self, plan: SelectPlan, params: Sequence[Any], relations: Mapping[str, pa.Table]
    ) -> FirstStage | None:
        """The rows of the first stage here; None if they are too many."""
        fragment = plan.stages[0].fragment
        if _is_short(fragment, relations):
            return _at_once(fragment, relations, params)
        started_s = time.perf_counter()
        rows = await in_thread(self._threads, lambda stop: _bounded(fragment, relations, params, stop))
        return None if rows is None else FirstStage(rows, _count(relations), kernel_s=time.perf_counter() - started_s)

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
        if not _is_short(last.fragment, relations):
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


def scattered_work(
    plan: SelectPlan,
    partitions: Sequence[Sequence[int]],
    topology: Topology,
    scattered: ScatteredRows,
    coordinator: str,
) -> list[StageWork]:
    """The work of both stages of a statement on each member.

    Args:
        plan: The statement.
        partitions: For each scan, what was read.
        topology: The owners.
        scattered: The outcome.
        coordinator: The member that ran the last stage.
    """
    first, last = vertex_names(plan)
    read = partitions_by_member(plan, partitions, topology)
    replicated = sum(scan.replicated for scan in plan.scans)
    parts = sorted(scattered.parts.items(), key=lambda item: (len(item[0]), item[0]))
    work = [
        work_of(
            first,
            member,
            partitions=sum(map(len, read[member])) + replicated,
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


async def after(waiting: Waiting, answering: Reply[T] | Coroutine[Any, Any, Reply[T]]) -> Reply[T]:
    """An answer of rows that are read already, once the changes in them are acknowledged."""
    try:
        await waiting()
    except BaseException:
        if not isinstance(answering, Reply):
            answering.close()
        raise
    return answering if isinstance(answering, Reply) else await answering


def partitions_read(plan: SelectPlan, partitions: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
    """The partitions of members that a statement reads, by table and number."""
    for scan, ids in zip(plan.scans, partitions, strict=True):
        if not scan.is_fetched:
            for partition in (0,) if scan.replicated else ids:
                yield scan.table_id, partition


def _is_short(fragment: Fragment, relations: Mapping[str, pa.Table]) -> bool:
    """Whether the call takes less time than handing it to a thread and back."""
    return fragment.arrow is not None and _count(relations) <= INLINE_ROWS_MAX


def _count(relations: Mapping[str, pa.Table]) -> int:
    return sum(relation.num_rows for relation in relations.values())


def _at_once(fragment: Fragment, relations: Mapping[str, pa.Table], params: Sequence[Any]) -> FirstStage | None:
    """The rows of a stage, on the event loop; None if they have too many bytes."""
    started_s = time.perf_counter()
    rows = answer(fragment, relations, params)
    found = FirstStage(rows, _count(relations), busy_s=time.perf_counter() - started_s)
    return found if found.nbytes <= _PART_BYTES_MAX else None


def _bounded(
    fragment: Fragment, relations: Mapping[str, pa.Table], params: Sequence[Any], cancellation: Cancellation
) -> pa.Table | None:
    """The answer of a fragment; None if it has too many bytes. For a thread."""
    found = open_answer(fragment, relations, params, cancellation=cancellation)
    try:
        parts = [found.take(_PART_BYTES_MAX)]
        while not found.is_done and sum(part.nbytes for part in parts) <= _PART_BYTES_MAX:
            parts.append(found.take(_PART_BYTES_MAX))
        rows = pa.concat_tables(parts)
        return rows if found.is_done and rows.nbytes <= _PART_BYTES_MAX else None
    finally:
        found.close()


def _reply(
    found: FirstStage | None, published: Sequence[int] = (), seen: SeenVersions = _UNSEEN
) -> Reply[FirstStageRows]:
    if found is None:
        return Reply(FirstStageRows(0, is_declined=True))
    rows = found.rows
    values, payload = (rows.columns, b"") if isinstance(rows, ShortTable) else (None, encode_table(rows))
    said = FirstStageRows(
        rows.num_rows,
        values,
        False,
        found.rows_read,
        1000 * found.kernel_s,
        1000 * found.busy_s,
        list(published),
        seen.topology,
        seen.statistics,
    )
    return Reply(said, payload)
