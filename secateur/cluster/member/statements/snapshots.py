"""Snapshots: rows of this member's partitions that are kept as they were, for tasks that read them in pieces.

A partition never changes rows that it has handed out, so a snapshot holds references, and costs the memory of what was
replaced since. It ends by itself, because those who read it are processes of a job elsewhere, of which nobody tells
when the last one has ended.

**Invariant**: all pieces of a snapshot, read in any order and repeatedly, are rows of one moment, which was
acknowledged: a partition that was opened again after its snapshot had ended is read only if its version is the same,
which the client checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa

from secateur.cluster.member.admission.statement_admission import Admissions
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.member.member_threads import MemberThreads
from secateur.cluster.member.replication.replication import Replication
from secateur.cluster.member.statements.open_snapshots import KeptSnapshot, Pin
from secateur.cluster.member.statements.prepared_statements import PreparedStatements
from secateur.engine.kernels.duckdb.cancellation import Cancellation
from secateur.engine.kernels.fragment import Fragment, run
from secateur.engine.sql.select_plan import ScanPlan
from secateur.engine.threads import in_thread
from secateur.errors import ProtocolError
from secateur.protocol.message import Acknowledged
from secateur.protocol.snapshots import (
    CloseSnapshot,
    OpenSnapshot,
    ReadSnapshot,
    SnapshotOpened,
    SnapshotPiece,
    SnapshotRows,
)
from secateur.wire import PeerInfo, Reply, Request, encode_table

_LEASE_MAX_S: Final = 3600.0
"""A longer lease is not granted: a reader that dies leaves its snapshot behind."""


class MemberSnapshots:
    """Answers ``open_snapshot``, ``read_snapshot`` and ``close_snapshot``. Lives on the member's event loop.

    Args:
        admissions: Reads take their turn as statements do.
    """

    def __init__(
        self,
        storage: MemberStorage,
        prepared: PreparedStatements,
        copies: Replication,
        admissions: Admissions,
        threads: MemberThreads,
    ) -> None:
        self._store = storage.store
        self._open = storage.snapshots
        self._results = storage.results
        self._prepared = prepared
        self._copies = copies
        self._admissions = admissions
        self._threads = threads

    async def open(self, request: Request[OpenSnapshot]) -> Reply[SnapshotOpened]:
        """Pin the partitions of the request, all in one turn of the event loop; answer at once over few bytes.

        Raises:
            TopologyChangedError: A partition is not this member's, or the plan is outdated; nothing was opened.
            Error: As :meth:`read`, if it is answered at once.
        """
        asked = request.message
        plan, execution = await self._prepared.placed_rows(asked.run, asked.partitions)
        if plan is None:
            return Reply(SnapshotOpened(is_row_by_row=False))
        (scan,) = plan.scans
        before = self._open.find(asked.snapshot)
        kept = {} if before is None else {number: before.pinned.get(number) for number in asked.partitions}
        keys, is_decided = scan.keys.search(execution.params) if execution.pruning else (None, False)
        published = self._store.data_version(scan.table_id).published
        new = [number for number in asked.partitions if kept.get(number) is None]
        rows = self._store.pin(scan.table_id, new, scan.columns, keys)
        pins = [Pin(found, published, self._copies.last(scan.table_id, found.partition)) for found in rows]
        waiting = self._copies.acknowledgements.acknowledged((scan.table_id, found.partition) for found in rows)
        if waiting is not None:
            await waiting()
        searched = plan.searched if is_decided else None
        fragment = plan.local if searched is None else searched
        described = [pin.described for pin in (*filter(None, kept.values()), *pins)]
        opened = SnapshotOpened(is_row_by_row=True, published=published, partitions=described)
        snapshot = _snapshot(asked, fragment, scan, execution.params, pins)
        if before is None and asked.answer_bytes and sum(pin.rows.nbytes for pin in pins) <= asked.answer_bytes:
            pieces = [SnapshotPiece(found.partition, 0, found.rows) for found in described]
            table = await self._answered(request.peer, snapshot, pieces)
            return Reply(msgspec.structs.replace(opened, is_answered=True), encode_table(table))
        self._open.keep(asked.snapshot, snapshot)
        return Reply(opened)

    async def read(self, request: Request[ReadSnapshot]) -> Reply[SnapshotRows]:
        """Answer the statement of a snapshot over some of its rows.

        Raises:
            LimitExceededError: The answer would take more memory than results may, or too many statements wait.
            ProtocolError: A piece is outside of its partition's rows.
            Error: The statement fails over these rows, such as by a cast.
        """
        asked = request.message
        snapshot = self._open.find(asked.snapshot)
        if snapshot is None or not snapshot.pinned.keys() >= {piece.partition for piece in asked.pieces}:
            return Reply(SnapshotRows(is_open=False))
        self._open.renew(asked.snapshot, snapshot)
        table = await self._answered(request.peer, snapshot, asked.pieces)
        return Reply(SnapshotRows(is_open=True, rows=table.num_rows), encode_table(table))

    def close(self, request: Request[CloseSnapshot]) -> Reply[Acknowledged]:
        """End a snapshot."""
        self._open.close(request.message.snapshot)
        return Reply(Acknowledged())

    async def _answered(self, peer: PeerInfo, snapshot: KeptSnapshot, pieces: Sequence[SnapshotPiece]) -> pa.Table:
        """The answer over some pieces, in its turn."""
        rows = sum(piece.rows for piece in pieces)
        async with self._admissions.of(rows).admitted(peer):
            with self._results.running(peer):
                table = await in_thread(self._threads.of(rows, peer), lambda stop: _answer(snapshot, pieces, stop))
        return self._results.checked(table)


def _snapshot(
    asked: OpenSnapshot, fragment: Fragment, scan: ScanPlan, params: Sequence[Any], pins: Sequence[Pin]
) -> KeptSnapshot:
    lease_s = asked.lease_s if 0 <= asked.lease_s <= _LEASE_MAX_S else _LEASE_MAX_S
    pinned = {pin.rows.partition: pin for pin in pins}
    return KeptSnapshot(fragment, scan.relation, scan.table, params, pinned, lease_s)


def _answer(snapshot: KeptSnapshot, pieces: Sequence[SnapshotPiece], cancellation: Cancellation) -> pa.Table:
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
