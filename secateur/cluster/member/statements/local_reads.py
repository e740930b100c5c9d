"""The rung *local*: all partitions of a read are on this member, which answers it by one kernel call.

A call over few rows that the arrow kernel does is done in this turn of the event loop; any other waits for its turn and
runs in a thread, over the rows as they were when the read was taken.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from secateur.cluster.member.admission.statement_admission import Admissions
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.member_threads import MemberThreads
from secateur.cluster.member.statements.prepared_statements import read_here
from secateur.cluster.member.statements.reads import Deliver, Found, Read, Taken
from secateur.cluster.statement_profile import work_of
from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.kernels.fragment import Fragment, answer_by_arrow, open_answer, run
from secateur.engine.sql.row_stream import LocalRowStream, RowStream, answered_by_piece
from secateur.engine.sql.select_plan import PinnedScan, SelectPlan
from secateur.engine.threads import WORK, in_thread
from secateur.engine_limits import EngineLimits
from secateur.protocol.metrics import StageWork
from secateur.protocol.query import Executed
from secateur.storage.member_store import MemberStore
from secateur.wire import Reply, decode_table

_INLINE_ROWS_MAX: Final = 20_000
"""Up to here the arrow kernel is done before a thread would have woken up; the event loop is held for less than a
millisecond.
"""


class LocalReads:
    """Answers reads over rows of this member. Lives on its event loop.

    Args:
        limits: How many bytes a call reads at a time where it may read part by part.
    """

    def __init__(
        self, storage: MemberStorage, admissions: Admissions, threads: MemberThreads, limits: EngineLimits
    ) -> None:
        self._member_id = storage.member_id
        self._store = storage.store
        self._results = storage.results
        self._admissions = admissions
        self._threads = threads
        self._limits = limits

    def take(self, read: Read) -> Reply[Executed] | Taken | None:
        """As :meth:`~secateur.cluster.member.statements.reads.Rung.take`; the rows are those of now."""
        if not read.is_here:
            return None
        plan, asked, partitions = read.plan, read.asked, read.partitions
        has_state = asked.mark is not None or asked.since is not None
        published = read_here(self._store, plan, asked, partitions) if has_state else ()
        call = local_execution(self._store, plan, asked.params, partitions, pruning=asked.pruning)
        if not read.is_profiled:
            if call.is_quick:
                found = answer_by_arrow(call.fragment, call.relations, asked.params)
                if found is not None:
                    return read.reply(Found(found, "local", None, published))
                call = call.by_duckdb()
            if plan.empty is not None and call.is_empty:
                return read.reply(Found(decode_table(plan.empty, ranges=False), "local", None, published))
        return Taken(self._admissions.of(call.rows), partial(self._run, read, call, published))

    async def _run(
        self, read: Read, call: LocalExecution, published: tuple[tuple[int, int], ...], deliver: Deliver
    ) -> Reply[Any]:
        params, peer, started_s = read.asked.params, read.peer, time.perf_counter()
        counted = WORK.get()
        if counted is not None:
            counted.rows_read += call.rows
        rows: pa.Table | RowStream
        if read.asked.grant is None:
            threads = self._threads.of(call.rows, peer)
            rows = self._results.checked(await in_thread(threads, partial(call.answered, params)))
        else:
            rows = self._stream(read, call)

        async def work(made: int, size: int) -> Sequence[StageWork]:
            return [
                work_of(
                    "local",
                    self._member_id,
                    partitions=sum(map(len, read.partitions)),
                    rows_in=call.rows,
                    rows_out=made,
                    bytes_out=size,
                    kernel_s=time.perf_counter() - started_s,
                )
            ]

        return await deliver(Found(rows, "local", None, published, work))

    def _stream(self, read: Read, call: LocalExecution) -> RowStream:
        """The rows of a call, made as they are taken."""
        params, threads = read.asked.params, self._threads.of(call.rows, read.peer)
        if not call.is_long_row_by_row:
            return LocalRowStream(
                lambda stop: open_answer(call.fragment, call.relations, params, cancellation=stop), threads
            )
        ((name, relation),) = call.relations.items()
        return LocalRowStream(
            answered_by_piece(
                relation, lambda piece, stop: run(call.fragment, {name: piece}, params, cancellation=stop), self._limits
            ),
            threads,
        )


class LocalExecution(msgspec.Struct, frozen=True):
    """One kernel call.

    Attributes:
        fragment: The fragment to run.
        relations: The rows it reads, as they were when the call was made.
        is_quick: Whether it may run on the event loop.
    """

    fragment: Fragment
    relations: dict[str, pa.Table]
    is_quick: bool

    def by_duckdb(self) -> LocalExecution:
        """The same call after the arrow kernel has declined it: for a thread, as DuckDB may take long."""
        return LocalExecution(replace(self.fragment, arrow=None), self.relations, False)

    def answered(self, params: Sequence[Any], stop: Cancellation | None = None) -> pa.Table:
        """All rows of the answer; in a thread with what stops the call."""
        return run(self.fragment, self.relations, params, cancellation=stop)

    @property
    def rows(self) -> int:
        """The number of rows that it reads."""
        return sum(relation.num_rows for relation in self.relations.values())

    @property
    def is_long_row_by_row(self) -> bool:
        """Whether it reads many rows of one relation and may answer them part by part."""
        return self.fragment.is_row_by_row and all(
            relation.num_rows > _INLINE_ROWS_MAX for relation in self.relations.values()
        )

    @property
    def is_empty(self) -> bool:
        """Whether it reads no row, because the requested keys do not exist.

        The plan's answer over no rows, if it has one, is then the answer.
        """
        return not any(relation.num_rows for relation in self.relations.values())


def local_execution(
    store: MemberStore, plan: SelectPlan, params: Sequence[Any], partitions: Sequence[Sequence[int]], *, pruning: bool
) -> LocalExecution:
    """Read the partitions of each scan, and choose the fragment.

    Raises:
        UnknownTableError, TopologyChangedError: They are not here.
    """
    arrow = plan.local.arrow
    relations, rows, is_decided = {}, 0, False
    for scan, ids in zip(plan.scans, partitions, strict=True):
        if isinstance(scan, PinnedScan):
            name, relation = scan.given
        else:
            keys, is_decided = scan.keys.search(params) if pruning else (None, False)
            name, relation = scan.relation, store.relation(scan.table_id, ids, scan.columns, keys)
        relations[name] = relation
        rows += relation.num_rows
    if arrow is not None and arrow.sources:
        rows -= sum(relations[name].num_rows for name in arrow.searched_relations)
    if arrow is None or rows > _INLINE_ROWS_MAX:
        return LocalExecution(plan.local, relations, False)
    searched = plan.searched if is_decided else None
    return LocalExecution(plan.local if searched is None else searched, relations, True)
