"""The first stage of a scattered statement on one of the members that own its partitions."""

from __future__ import annotations

import time
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, Final, TypeAlias

import msgspec
import pyarrow as pa

from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.statements.native_answers import NativeAnswers
from secateur.cluster.member.statements.plans import bound_partitions, check_versions
from secateur.cluster.member.statements.prepared_statements import PreparedStatements
from secateur.cluster.member.statements.reads import Acknowledgements, after, partitions_read
from secateur.cluster.member.statements.serving_programs import FewRowsRead, compile_few
from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.kernels.fragment import Fragment, answer, open_answer
from secateur.engine.sql.fragment_call import INLINE_ROWS_MAX
from secateur.engine.sql.fragment_stage import MemberScan
from secateur.engine.sql.select_plan import SelectPlan
from secateur.engine.threads import in_thread, is_long_over
from secateur.errors import ProtocolError, TopologyChangedError
from secateur.protocol.query import ExecuteFirstStage, FirstStageRows
from secateur.wire import Reply, Request, ShortTable, encode_table

_Answering: TypeAlias = Reply[FirstStageRows] | Coroutine[Any, Any, Reply[FirstStageRows]]

_ROWS_READ_MAX: Final = 20_000
"""Rows that one owner reads of partitioned tables; the arrow kernel is done with them in less than a millisecond."""
_PLANS_MAX: Final = 512
"""Plans whose way to few rows is kept."""
_PART_BYTES_MAX: Final = 4 << 20
"""Bytes of the rows that one owner answers with: no queue bounds them."""
_REPLICATED_PARTITIONS: Final = (0,)
_DECLINED: Final = Reply(FirstStageRows(0, is_declined=True))


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


class FirstStages:
    """Answers those who combine the rows of several owners. Lives on the member's event loop.

    Args:
        native: Learns what clients ask for; None where there is no native executor.
        threads: For kernel calls over few rows that are not certain to be short.
    """

    def __init__(
        self,
        storage: MemberStorage,
        prepared: PreparedStatements,
        native: NativeAnswers | None,
        threads: Executor,
        acknowledged: Acknowledgements,
    ) -> None:
        self._member_id = storage.member_id
        self._store = storage.store
        self._hot_keys = storage.hot_keys
        self._prepared = prepared
        self._plans = prepared.plans
        self._native = native
        self._threads = threads
        self._acknowledged = acknowledged
        self._few: dict[str, FewRowsRead | None] = {}

    def run(self, request: Request[ExecuteFirstStage]) -> _Answering:
        """Answer the member that coordinates a scattered statement, or the client that asks all of its owners.

        Raises:
            TopologyChangedError: A partition is not this member's, or a table has other ranges by now.
            DataChangedError: Another load was the last one published here.
            Error: The error of the statement.
        """
        plan = self._plans.used(request.message.plan)
        return self._fetch_and_run(request.message) if plan is None else self._run(plan, request.message)

    async def _fetch_and_run(self, asked: ExecuteFirstStage) -> Reply[FirstStageRows]:
        reply = self._run(await self._plans.plan(asked.plan), asked)
        return reply if isinstance(reply, Reply) else await reply

    def _run(self, plan: SelectPlan, asked: ExecuteFirstStage) -> _Answering:
        view = self._prepared.joined()
        check_versions(self._store, plan)
        if len(asked.partitions) != len(plan.scans):
            raise ProtocolError(f"plan {plan.plan_id} has {len(plan.scans)} scans, not {len(asked.partitions)}")
        for scan, ids in zip(plan.scans, asked.partitions, strict=True):
            if not view.has(scan, ids):
                raise TopologyChangedError(
                    f"member {self._member_id} does not own all of the partitions of {scan.table} that it was asked"
                    " for: the owners have changed since the statement began",
                    table=scan.table,
                    topology_version=view.topology.version,
                )
        if asked.published is None and not (
            plan.scatter_partitions_max and _agree(bound_partitions(plan, asked.params, pruning=True), asked)
        ):
            return _DECLINED
        if asked.run is not None:  # by the one that lists the statement, so that it counts once
            self._hot_keys.executed(plan, asked.params)
        answering: _Answering
        if asked.published is None:
            if self._native is not None:
                self._native.learn(plan)
            answering = self._answer_client(plan, asked, view.topology.version)
        else:
            answering = self._answer_member(plan, asked, asked.published)
        waiting = self._acknowledged(partitions_read(plan, asked.partitions))
        return answering if waiting is None else after(waiting, answering)

    def _answer_client(
        self, plan: SelectPlan, asked: ExecuteFirstStage, topology_version: int
    ) -> Reply[FirstStageRows]:
        """Answer a client with rows and the versions of which they are.

        It is answered at once or not at all: where a call takes long, a member coordinates the statement, and admits it
        in its turn.
        """
        found = self._few_rows(plan, asked)
        if found is None:
            relations = self.read(plan, asked.params, asked.partitions, None)
            if relations is None or not is_short(plan.stages[0].fragment, relations):
                return _DECLINED
            found = _at_once(plan.stages[0].fragment, relations, asked.params)
        published = [self._store.data_version(scan.table_id).published for scan in plan.scans]
        return _reply(found, published, topology_version, self._plans.statistics_of(plan))

    def _answer_member(self, plan: SelectPlan, asked: ExecuteFirstStage, published: Sequence[int]) -> _Answering:
        relations = self.read(plan, asked.params, asked.partitions, published)
        if relations is None:
            return _DECLINED
        if is_short(plan.stages[0].fragment, relations):
            return _reply(_at_once(plan.stages[0].fragment, relations, asked.params))
        return self._reply_later(plan, asked.params, relations)

    async def _reply_later(
        self, plan: SelectPlan, params: Sequence[Any], relations: Mapping[str, pa.Table]
    ) -> Reply[FirstStageRows]:
        return _reply(await self.answered(plan, params, relations))

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

    def read(
        self,
        plan: SelectPlan,
        params: Sequence[Any],
        partitions: Sequence[Sequence[int]],
        published: Sequence[int] | None,
    ) -> dict[str, pa.Table] | None:
        """Read the rows of the first stage here, in this turn of the event loop; None if they are too many.

        Args:
            plan: The statement.
            params: Its parameters, with the values of its expressions behind them.
            partitions: For each scan the partitions to read here.
            published: For each scan the number of the load that has to be the last one published here.

        Raises:
            DataChangedError: Another load was the last one.
        """
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

    async def answered(
        self, plan: SelectPlan, params: Sequence[Any], relations: Mapping[str, pa.Table]
    ) -> FirstStage | None:
        """The rows of the first stage over rows that were read here; None if they are too many."""
        fragment = plan.stages[0].fragment
        if is_short(fragment, relations):
            return _at_once(fragment, relations, params)
        started_s = time.perf_counter()
        rows = await in_thread(self._threads, lambda stop: _bounded(fragment, relations, params, stop))
        return None if rows is None else FirstStage(rows, _count(relations), kernel_s=time.perf_counter() - started_s)


def is_short(fragment: Fragment, relations: Mapping[str, pa.Table]) -> bool:
    """Whether the call takes less time than handing it to a thread and back."""
    return fragment.arrow is not None and _count(relations) <= INLINE_ROWS_MAX


def _count(relations: Mapping[str, pa.Table]) -> int:
    return sum(relation.num_rows for relation in relations.values())


def _agree(bound: Sequence[Sequence[int]], asked: ExecuteFirstStage) -> bool:
    """Whether a client that asks all owners has found the partitions that this member finds for a statement.

    Each owner looks at its own part, and the one that lists the statement at how many there are in all.
    """
    if asked.run is not None and asked.run.partitions_read != sum(map(len, bound)):
        return False
    return all(frozenset(ids).issuperset(part) for ids, part in zip(bound, asked.partitions, strict=True))


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
    found: FirstStage | None,
    published: Sequence[int] = (),
    topology_version: int = 0,
    statistics_version: int = 0,
) -> Reply[FirstStageRows]:
    """The answer; with the versions that this member knows if it is a client's, as another member knows them itself."""
    if found is None:
        return _DECLINED
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
        topology_version,
        statistics_version,
    )
    return Reply(said, payload)
