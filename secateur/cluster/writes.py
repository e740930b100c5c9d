"""Writes on a member: direct writes, staging and publishing of loads, and the copies on the backups.

A write goes to the primary of its partition; the primary applies it and sends it to the backups of that partition; it is acknowledged when all have it. Both
steps happen in one turn of the event loop and connections keep their order, so backups apply writes in the primary's order.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from typing import Any, Final

import pyarrow as pa

from secateur.cluster.change_book import Applied, ChangeBook
from secateur.cluster.peers import Peers
from secateur.cluster.write_gate import WriteGate
from secateur.errors import MemberLostError, ProtocolError, TopologyChangedError, UnreachableError
from secateur.partitioning.table import TableDef
from secateur.partitioning.topology import Topology
from secateur.storage.change import Operation, load_mode
from secateur.storage.member_store import MemberStore
from secateur.wire import Payload, Reply, Request, decode_table, encode_table

__all__ = ["MemberWrites"]

_ABANDONED_AFTER_S: Final = 3600.0
_NOTICE_S: Final = 10.0
"""How long an acknowledgement waits for the controller to notice that a backup is lost; it looks every second."""
_NOTICE_PAUSE_S: Final = 0.05


class MemberWrites:
    """Answers ``write``, ``stage`` and ``load_*`` requests. Lives on the member's event loop.

    Args:
        member_id: This member.
        store: Its partitions.
        peers: The other members.
        executor: Threads for sorting and merging.
    """

    def __init__(self, member_id: str, store: MemberStore, peers: Peers, executor: Executor) -> None:
        self._member_id = member_id
        self._store = store
        self._peers = peers
        self._executor = executor
        self._tables: dict[int, TableDef] = {}
        self._gates: dict[int, WriteGate] = {}
        self._closed_by: dict[str, WriteGate] = {}
        self._book = ChangeBook()
        self._topology: Topology | None = None

    def update(self, topology: Topology) -> None:
        """Take over a newer topology."""
        self._topology = topology

    def add_table(self, table: TableDef) -> None:
        self._tables[table.table_id] = table
        self._gates.setdefault(table.table_id, WriteGate(table.name))

    def gate(self, table_id: int) -> WriteGate:
        """The gate of a table's direct writes."""
        return self._gates[table_id]

    def remove_table(self, table_id: int) -> None:
        self._tables.pop(table_id, None)
        self._gates.pop(table_id, None)

    def table(self, table_id: int) -> TableDef:
        """A table of this member.

        Raises:
            TopologyChangedError: It is not here.
        """
        return self._place(table_id)[1]

    async def write(self, request: Request) -> Reply:
        """Write rows of one partition, visible at once. Under a ``change_id`` that was used before nothing is written again.

        Raises:
            TopologyChangedError: This member is not the primary; nothing was written.
            DuplicateKeyError: An appended key is already there; nothing was written.
            MemberLostError: The rows are visible here, but a backup that the cluster counts on has not confirmed them.
        """
        args, rows = request.args, decode_table(request.payload, validate=True)
        table_id, partition, change_id = args["table_id"], args["partition"], args.get("change_id") or uuid.uuid4().hex
        if args.get("copy"):
            return self._take_copy(args, rows, change_id)
        operation = load_mode(args["mode"])
        self.backups(table_id, [partition])

        async def make() -> Applied:
            return self.apply(table_id, partition, operation, rows, change_id, request.payload)

        return Reply({"rows": await self.write_once(table_id, change_id, make)})

    async def write_once(self, table_id: int, change_id: str, make: Callable[[], Awaitable[Applied]]) -> int:
        """Make a change to this primary while no load is being published, unless it was made before; returns the rows it concerned, once all copies have it.

        Raises:
            DeadlineError: A load has been between prepare and publish for too long; nothing was written.
            Error: As :meth:`~secateur.cluster.change_book.ChangeBook.once`.
        """
        self._place(table_id)
        async with self._gates[table_id].writing():
            return await self._book.once(change_id, make)

    def apply(self, table_id: int, partition: int, operation: Operation, rows: pa.Table, change_id: str, payload: Payload | None = None) -> Applied:
        """Change a partition of which this member is the primary, inside :meth:`write_once`, and have the backups do the same.

        Args:
            table_id: The table.
            partition: The partition that all rows belong to.
            operation: What to do.
            rows: Complete rows, or keys for a deletion.
            change_id: By which the change is known.
            payload: The rows as bytes, when there are any already.

        Raises:
            TopologyChangedError: This member is not the primary; nothing was written. The owners may have changed since somebody looked.
            Error: As ``Partition.apply``; nothing was written.
        """
        topology, _ = self._place(table_id)
        backups = self.backups(table_id, [partition]) if rows.num_rows else {}
        written = self._store.apply(table_id, partition, operation, rows)
        sent = encode_table(rows) if payload is None and backups else payload or b""
        args = {
            "table_id": table_id,
            "partition": partition,
            "mode": operation.value,
            "change_id": change_id,
            "topology_version": topology.version,
            "copy": True,
        }
        return Applied(written, asyncio.gather(*(self._copy(member, args, sent) for member in backups)))

    def _take_copy(self, args: dict[str, Any], rows: pa.Table, change_id: str) -> Reply:
        """Write what the primary has written.

        Raises:
            TopologyChangedError: This member has become the primary meanwhile: whoever sent this has been left behind; nothing was written.
        """
        partition, mode = args["partition"], args["mode"]
        topology, table = self._place(args["table_id"])
        ownership = topology.owners.get(table.scheme.affinity_group())
        is_late = topology.version > args.get("topology_version", topology.version)
        if is_late and ownership is not None and ownership.primary(partition) == self._member_id:
            raise TopologyChangedError(
                f"partition {partition} of {table.name} belongs to {self._member_id} at topology version {topology.version}: no copies are taken; "
                "nothing was written",
                topology_version=topology.version,
            )
        operation = Operation.DELETE if mode == Operation.DELETE else load_mode(mode)
        written = self._store.apply(table.table_id, partition, operation, rows)
        self._book.note(change_id, written)
        return Reply({"rows": written})

    async def _copy(self, member: str, args: dict[str, Any], payload: Payload) -> None:
        """Have a backup write what was written here. One that is out of reach need not, once the cluster has noticed that it is lost.

        Raises:
            MemberLostError: It is out of reach, and the cluster goes on counting on it; or it has other owners in mind, so that this member was left behind.
        """
        try:
            await self._peers.call(member, "write", args, payload)
        except TopologyChangedError as error:
            # Not as it is: it says that nothing was written, and here it was.
            raise MemberLostError(f"the rows are visible on {self._member_id}, but {member} refused their copy: {error.message}", member=member) from error
        except (MemberLostError, UnreachableError) as error:
            for _ in range(round(_NOTICE_S / _NOTICE_PAUSE_S)):
                if self._topology is None or member not in self._topology.member_ids:
                    return
                await asyncio.sleep(_NOTICE_PAUSE_S)
            raise MemberLostError(
                f"the rows are visible on {self._member_id}, but their backup on {member} was not confirmed: look whether they are there. {error.message}",
                member=member,
            ) from error

    async def stage(self, request: Request) -> Reply:
        """Keep rows of a load aside, here and on the backups.

        Raises:
            TopologyChangedError: This member is not the primary of a partition; nothing was staged.
        """
        args, rows = request.args, decode_table(request.payload, validate=True)
        table_id, parts = args["table_id"], args["parts"]
        if sum(count for _, count in parts) != rows.num_rows:
            raise ProtocolError(f"stage: the parts name {sum(count for _, count in parts)} rows, the payload has {rows.num_rows}")
        pieces = dict(_pieces(parts, rows))
        copies = {} if args.get("copy") else self.backups(table_id, pieces)
        await self.stage_pieces(args["load_id"], table_id, args["attempt"], pieces, copies, keys=bool(args.get("keys")))
        return Reply({"rows": rows.num_rows})

    async def stage_pieces(
        self, load_id: str, table_id: int, attempt: int, pieces: Mapping[int, pa.Table], copies: Mapping[str, Sequence[int]], *, keys: bool
    ) -> None:
        """Keep rows of a load aside by partition, here and on other members.

        Args:
            load_id: The load.
            table_id: Its table.
            attempt: The number of the attempt that brings the rows.
            pieces: The rows by partition.
            copies: The partitions that other members keep copies of, by member; those without rows do not matter.
            keys: Whether the rows are keys, for a deletion.

        Raises:
            Error: As ``MemberStore.stage``.
        """
        for partition, piece in pieces.items():
            self._store.stage(load_id, table_id, partition, attempt, piece, keys=keys)
        args = {"load_id": load_id, "table_id": table_id, "attempt": attempt, "keys": keys, "copy": True}
        sends = []
        for member, partitions in copies.items():
            copied = [(partition, pieces[partition]) for partition in partitions if partition in pieces]
            if copied:
                parts = [[partition, piece.num_rows] for partition, piece in copied]
                sends.append(self._peers.call(member, "stage", {**args, "parts": parts}, encode_table(pa.concat_tables([piece for _, piece in copied]))))
        await asyncio.gather(*sends)

    @asynccontextmanager
    async def closed_unless_failed(self, load_id: str, table_id: int) -> AsyncIterator[None]:
        """Around the staging of what was read from this member's partitions: other writes wait until the load is published or aborted, or this fails."""
        self._place(table_id)
        gate = self._closed_by[load_id] = self._gates[table_id]
        await gate.close(load_id)
        try:
            yield
        except BaseException:
            self._closed_by.pop(load_id, None)  # an abort that came before the gate was closed has taken it out, but could not open it
            await gate.open(load_id)
            raise

    async def prepare(self, request: Request) -> Reply:
        """First phase of publishing a load; see :mod:`secateur.cluster.loads`. Sorting and merging happen in a thread."""
        args = request.args
        load_id, table_id = args["load_id"], args["table_id"]
        async with self.closed_unless_failed(load_id, table_id):
            preparation = self._store.begin_prepare(load_id, table_id, args["mode"], dict(args["parts"]))
            await asyncio.get_running_loop().run_in_executor(self._executor, preparation.run)
            rows = self._store.finish_prepare(preparation)
        prepared = preparation.prepared or []
        primaries = self._primaries(table_id)
        return Reply({"rows": rows, "rows_primary": sum(part.rows.rows for part in prepared if part.partition in primaries)})

    async def publish(self, request: Request) -> Reply:
        """Second phase of publishing a load: make it visible."""
        try:
            rows = self._store.publish(request.args["load_id"], request.args["number"])
        finally:
            await self._reopen(request.args["load_id"])  # also when the table was dropped meanwhile: its writes wait here, and shall learn of it
        return Reply({"rows": rows})

    async def abort(self, request: Request) -> Reply:
        """Drop a load."""
        dropped = self._store.abort(request.args["load_id"])
        await self._reopen(request.args["load_id"])
        return Reply({"dropped": dropped})

    def drop_abandoned_loads(self) -> None:
        """Forget loads whose client has gone without a word, so that their rows do not stay for ever."""
        for load in self._store.loads():
            if not load.prepared and load.idle_s > _ABANDONED_AFTER_S:
                self._store.abort(load.load_id)

    async def _reopen(self, load_id: str) -> None:
        gate = self._closed_by.pop(load_id, None)
        if gate is not None:
            await gate.open(load_id)

    def _primaries(self, table_id: int) -> frozenset[int]:
        topology, table = self._place(table_id)
        if table.replicated:
            # Every member has all rows; one of them counts.
            return frozenset({0} if topology.member_ids[0] == self._member_id else ())
        return frozenset(topology.ownership(table.scheme.affinity_group()).partitions_of(self._member_id))

    def other_copies(self, table_id: int, partitions: Iterable[int]) -> dict[str, list[int]]:
        """The partitions by the other members that keep a copy of them: all members for a replicated table, else the backups.

        Raises:
            TopologyChangedError: As :meth:`backups`.
        """
        topology, table = self._place(table_id)
        if table.replicated:
            return {member: list(partitions) for member in topology.member_ids if member != self._member_id}
        return self.backups(table_id, partitions)

    def backups(self, table_id: int, partitions: Iterable[int]) -> dict[str, list[int]]:
        """The partitions by the members that keep a backup of them.

        Raises:
            TopologyChangedError: One of them has its primary elsewhere.
        """
        topology, table = self._place(table_id)
        if table.replicated:
            return {}
        ownership = topology.ownership(table.scheme.affinity_group())
        alive = set(topology.member_ids)
        backups: defaultdict[str, list[int]] = defaultdict(list)
        for partition in partitions:
            primary, *others = ownership.holders(partition)
            if primary != self._member_id:
                raise TopologyChangedError(
                    f"partition {partition} of {table.name} belongs to {primary} at topology version {topology.version}, not to {self._member_id}; "
                    "nothing was written",
                    topology_version=topology.version,
                )
            for member in others:
                if member in alive:
                    backups[member].append(partition)
        return backups

    def _place(self, table_id: int) -> tuple[Topology, TableDef]:
        if self._topology is None or table_id not in self._tables:
            raise TopologyChangedError(f"member {self._member_id} does not know table {table_id}: dropped, or this member has just joined", table_id=table_id)
        return self._topology, self._tables[table_id]


def _pieces(parts: Sequence[Sequence[int]], rows: pa.Table) -> Iterable[tuple[int, pa.Table]]:
    start = 0
    for partition, count in parts:
        yield partition, rows.slice(start, count)
        start += count
