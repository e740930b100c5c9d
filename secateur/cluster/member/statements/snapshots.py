"""Snapshots: rows of this member's partitions that are kept as they were, for tasks that read them in pieces.

A partition never changes rows that it has handed out, so a snapshot holds references, and costs the memory of what was
replaced since. It ends by itself, because those who read it are processes of a job elsewhere, of which nobody tells
when the last one has ended.

**Invariant**: all pieces of a snapshot, read in any order and repeatedly, are rows of one moment, which was
acknowledged: a partition that was opened again after its snapshot had ended is read only if its version is the same,
which the client checks.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa

from secateur.cluster.member.admission.statement_admission import Admissions
from secateur.cluster.member.member_threads import StatementThreads
from secateur.cluster.member.statements.open_results import OpenResults
from secateur.cluster.member.statements.statements import StatementRunner
from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.kernels.fragment import Fragment, run
from secateur.engine.sql.select_plan import ScanPlan
from secateur.engine.threads import in_thread, is_long_over
from secateur.errors import ProtocolError
from secateur.protocol.message import Acknowledged
from secateur.protocol.snapshots import (
    CloseSnapshot,
    OpenSnapshot,
    PinnedPartition,
    ReadSnapshot,
    SnapshotOpened,
    SnapshotPiece,
    SnapshotRows,
)
from secateur.storage.member_store import MemberStore
from secateur.storage.pinned_rows import PinnedRows, bytes_kept
from secateur.wire import PeerInfo, Reply, Request, encode_table

SNAPSHOTS_MAX: Final = 256
"""Snapshots kept; those that were not read for longest go first. Whoever still reads one opens it again."""
_LEASE_MAX_S: Final = 3600.0
"""A longer lease is not granted: a reader that dies leaves its snapshot behind."""


@dataclass(frozen=True, slots=True)
class _Pin:
    """A pinned partition.

    Attributes:
        rows: Its rows.
        published: The number of the last load of the table that is in them.
        version: The number of the last change of the partition.
    """

    rows: PinnedRows
    published: int
    version: int

    @property
    def described(self) -> PinnedPartition:
        rows = self.rows
        return PinnedPartition(rows.partition, self.published, self.version, rows.rows, rows.nbytes)


@dataclass(slots=True)
class _Snapshot:
    """One open snapshot.

    Attributes:
        fragment: The fragment that is answered over its rows.
        relation: The name of the relation of the fragment.
        table: The name of the table.
        params: The parameters of the fragment.
        pinned: By partition.
        lease_s: How long it lives without a read.
        ends_s: When it ends.
    """

    fragment: Fragment
    relation: str
    table: str
    params: Sequence[Any]
    pinned: dict[int, _Pin]
    lease_s: float
    ends_s: float


class MemberSnapshots:
    """Answers ``open_snapshot``, ``read_snapshot`` and ``close_snapshot``. Lives on the member's event loop.

    Args:
        store: The partitions.
        statements: Has the plans, and knows which partitions are this member's.
        results: Bounds an answer.
        admissions: Reads take their turn as statements do.
        threads: For kernel calls.
        acknowledged: Waits until the changes that readers of some partitions see now are acknowledged.
        version: The number of the last change of a partition of a table.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        store: MemberStore,
        statements: StatementRunner,
        results: OpenResults,
        admissions: Admissions,
        threads: StatementThreads,
        acknowledged: Callable[[Iterable[tuple[int, int]]], Callable[[], Any] | None],
        version: Callable[[int, int], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._statements = statements
        self._results = results
        self._admissions = admissions
        self._threads = threads
        self._acknowledged = acknowledged
        self._version = version
        self._clock = clock
        self._open: OrderedDict[str, _Snapshot] = OrderedDict()

    @property
    def count(self) -> int:
        """The number of open snapshots."""
        return len(self._open)

    @property
    def kept_bytes(self) -> int:
        """Bytes that are in memory for snapshots alone; some microseconds per pinned partition."""
        return bytes_kept(pin.rows for snapshot in self._open.values() for pin in snapshot.pinned.values())

    def table_of(self, snapshot: str) -> str | None:
        """The name of the table that an open snapshot is of; None if there is no such snapshot."""
        found = self._open.get(snapshot)
        return None if found is None else found.table

    async def open(self, request: Request[OpenSnapshot]) -> Reply[SnapshotOpened]:
        """Pin the partitions of the request, all in one turn of the event loop; answer at once over few bytes.

        Raises:
            TopologyChangedError: A partition is not this member's, or the plan is outdated; nothing was opened.
            Error: As :meth:`read`, if it is answered at once.
        """
        asked = request.message
        plan, execution = await self._statements.placed_rows(asked.run, asked.partitions)
        if plan is None:
            return Reply(SnapshotOpened(is_row_by_row=False))
        (scan,) = plan.scans
        before = self._open.get(asked.snapshot)
        kept = {} if before is None else {number: before.pinned.get(number) for number in asked.partitions}
        keys, is_decided = scan.keys.search(execution.params) if execution.pruning else (None, False)
        published = self._store.data_version(scan.table_id).published
        new = [number for number in asked.partitions if kept.get(number) is None]
        rows = self._store.pin(scan.table_id, new, scan.columns, keys)
        pins = [_Pin(found, published, self._version(scan.table_id, found.partition)) for found in rows]
        waiting = self._acknowledged((scan.table_id, found.partition) for found in rows)
        if waiting is not None:
            await waiting()
        searched = plan.searched if is_decided else None
        fragment = plan.local if searched is None else searched
        described = [pin.described for pin in (*filter(None, kept.values()), *pins)]
        opened = SnapshotOpened(is_row_by_row=True, published=published, partitions=described)
        if before is None and asked.answer_bytes and sum(pin.rows.nbytes for pin in pins) <= asked.answer_bytes:
            whole = _snapshot(asked, fragment, scan, execution.params, pins)
            pieces = [SnapshotPiece(found.partition, 0, found.rows) for found in described]
            table = await self._answered(request.peer, whole, pieces)
            return Reply(msgspec.structs.replace(opened, is_answered=True), encode_table(table))
        self._keep(asked, fragment, scan, execution.params, pins)
        return Reply(opened)

    async def read(self, request: Request[ReadSnapshot]) -> Reply[SnapshotRows]:
        """Answer the statement of a snapshot over some of its rows.

        Raises:
            LimitExceededError: The answer would take more memory than results may, or too many statements wait.
            ProtocolError: A piece is outside of its partition's rows.
            Error: The statement fails over these rows, such as by a cast.
        """
        asked = request.message
        snapshot = self._open.get(asked.snapshot)
        if snapshot is None or not snapshot.pinned.keys() >= {piece.partition for piece in asked.pieces}:
            return Reply(SnapshotRows(is_open=False))
        self._renew(asked.snapshot, snapshot)
        table = await self._answered(request.peer, snapshot, asked.pieces)
        return Reply(SnapshotRows(is_open=True, rows=table.num_rows), encode_table(table))

    def close(self, request: Request[CloseSnapshot]) -> Reply[Acknowledged]:
        """End a snapshot."""
        self._open.pop(request.message.snapshot, None)
        return Reply(Acknowledged())

    def drop_ended(self) -> None:
        """Forget the snapshots whose lease has ended."""
        now_s = self._clock()
        for name in [name for name, snapshot in self._open.items() if snapshot.ends_s <= now_s]:
            del self._open[name]

    async def _answered(self, peer: PeerInfo, snapshot: _Snapshot, pieces: Sequence[SnapshotPiece]) -> pa.Table:
        """The answer over some pieces, in its turn."""
        is_long = is_long_over(sum(piece.rows for piece in pieces))
        admission = self._admissions.long if is_long else self._admissions.quick
        threads = self._threads.long if is_long else self._threads.quick
        async with admission.admitted(peer):
            with self._results.running(peer):
                table = await in_thread(threads, lambda stop: _answer(snapshot, pieces, stop))
        return self._results.checked(table)

    def _keep(
        self, asked: OpenSnapshot, fragment: Fragment, scan: ScanPlan, params: Sequence[Any], pins: Sequence[_Pin]
    ) -> None:
        """Have the rows under the name of the snapshot."""
        snapshot = self._open.get(asked.snapshot)
        if snapshot is None:
            snapshot = self._open[asked.snapshot] = _snapshot(asked, fragment, scan, params, pins)
        for pin in pins:
            snapshot.pinned.setdefault(pin.rows.partition, pin)
        self._renew(asked.snapshot, snapshot)
        while len(self._open) > SNAPSHOTS_MAX:
            self._open.popitem(last=False)

    def _renew(self, name: str, snapshot: _Snapshot) -> None:
        snapshot.ends_s = self._clock() + snapshot.lease_s
        self._open.move_to_end(name)


def _snapshot(
    asked: OpenSnapshot, fragment: Fragment, scan: ScanPlan, params: Sequence[Any], pins: Sequence[_Pin]
) -> _Snapshot:
    lease_s = asked.lease_s if 0 <= asked.lease_s <= _LEASE_MAX_S else _LEASE_MAX_S
    pinned = {pin.rows.partition: pin for pin in pins}
    return _Snapshot(fragment, scan.relation, scan.table, params, pinned, lease_s, 0.0)


def _answer(snapshot: _Snapshot, pieces: Sequence[SnapshotPiece], cancellation: Cancellation) -> pa.Table:
    """The answer over some pieces. Runs in a thread."""
    tables = []
    for piece in pieces:
        pinned = snapshot.pinned[piece.partition].rows
        if piece.offset < 0 or piece.rows < 0 or piece.offset + piece.rows > pinned.rows:
            raise ProtocolError(
                f"rows {piece.offset} to {piece.offset + piece.rows} of partition {piece.partition} were requested; the"
                f" snapshot has {pinned.rows} of it"
            )
        tables.append(pinned.read().slice(piece.offset, piece.rows))
    if not tables:
        return snapshot.fragment.schema.empty_table()
    relation = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
    return run(snapshot.fragment, {snapshot.relation: relation}, snapshot.params, cancellation=cancellation)
