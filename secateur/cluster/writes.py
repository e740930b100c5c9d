"""Direct writes on a member, and the copies on the backups.

A write goes to the primary of its partition; the primary applies it and sends it to the backups of that partition; it is acknowledged when all have it. Both
steps happen in one turn of the event loop and connections keep their order, so backups apply writes in the primary's order.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pyarrow as pa

from secateur.cluster.change_book import Applied, ChangeBook
from secateur.cluster.peers import Peers
from secateur.cluster.table_places import TablePlaces
from secateur.errors import MemberLostError, TopologyChangedError, UnreachableError
from secateur.storage.change import Operation, load_mode
from secateur.storage.member_store import MemberStore
from secateur.wire import Payload, Reply, Request, decode_table, encode_table

__all__ = ["MemberWrites"]

_NOTICE_S: Final = 10.0
"""How long an acknowledgement waits for the controller to notice that a backup is lost; it looks every second."""
_NOTICE_PAUSE_S: Final = 0.05


class MemberWrites:
    """Answers ``write`` requests. Lives on the member's event loop.

    Args:
        member_id: This member.
        store: Its partitions.
        places: Who keeps copies of them, and their gates.
        peers: The other members.
    """

    def __init__(self, member_id: str, store: MemberStore, places: TablePlaces, peers: Peers) -> None:
        self._member_id = member_id
        self._store = store
        self._places = places
        self._peers = peers
        self._book = ChangeBook()

    async def write(self, request: Request) -> Reply:
        """Write rows of one partition, visible at once. Under a ``change_id`` that was used before nothing is written again.

        Raises:
            TopologyChangedError: This member is not the primary; nothing was written.
            DuplicateKeyError: An appended key is already there; nothing was written.
            MemberLostError: The rows are visible here, but a backup that the cluster counts on has not confirmed them.
        """
        args, rows = request.args, decode_table(request.payload)
        table_id, partition, change_id = args["table_id"], args["partition"], args.get("change_id") or uuid.uuid4().hex
        operation = load_mode(args["mode"])
        self._places.backups(table_id, [partition])

        async def make() -> Applied:
            return self.apply(table_id, partition, operation, rows, change_id, request.payload)

        return Reply({"rows": await self.write_once(table_id, change_id, make)})

    async def write_once(self, table_id: int, change_id: str, make: Callable[[], Awaitable[Applied]]) -> int:
        """Make a change to this primary while no load is being published, unless it was made before; returns the rows it concerned, once all copies have it.

        Raises:
            DeadlineError: A load has been between prepare and publish for too long; nothing was written.
            Error: As :meth:`~secateur.cluster.change_book.ChangeBook.once`.
        """
        self._places.place(table_id)
        async with self._places.gate(table_id).writing():
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
        topology, _ = self._places.place(table_id)
        backups = self._places.backups(table_id, [partition]) if rows.num_rows else {}
        written = self._store.apply(table_id, partition, operation, rows)
        sent = encode_table(rows) if payload is None and backups else payload or b""
        args = {
            "table_id": table_id,
            "partition": partition,
            "mode": operation.value,
            "change_id": change_id,
            "topology_version": topology.version,
        }
        return Applied(written, asyncio.gather(*(self._copy(member, args, sent) for member in backups)), len(backups) * len(sent))

    def write_copy(self, request: Request) -> Reply:
        """Write what the primary has written.

        Raises:
            TopologyChangedError: This member has become the primary meanwhile: whoever sent this has been left behind; nothing was written.
        """
        args, rows = request.args, decode_table(request.payload)
        partition, mode = args["partition"], args["mode"]
        topology, table = self._places.place(args["table_id"])
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
        self._book.note(args["change_id"], written)
        return Reply({"rows": written})

    async def _copy(self, member: str, args: dict[str, Any], payload: Payload) -> None:
        """Have a backup write what was written here. One that is out of reach need not, once the cluster has noticed that it is lost.

        Raises:
            MemberLostError: It is out of reach, and the cluster goes on counting on it; or it has other owners in mind, so that this member was left behind.
        """
        try:
            await self._peers.call(member, "write_copy", args, payload)
        except TopologyChangedError as error:
            # Not as it is: it says that nothing was written, and here it was.
            raise MemberLostError(f"the rows are visible on {self._member_id}, but {member} refused their copy: {error.message}", member=member) from error
        except (MemberLostError, UnreachableError) as error:
            for _ in range(round(_NOTICE_S / _NOTICE_PAUSE_S)):
                if not self._places.has_member(member):
                    return
                await asyncio.sleep(_NOTICE_PAUSE_S)
            raise MemberLostError(
                f"the rows are visible on {self._member_id}, but their backup on {member} was not confirmed: look whether they are there. {error.message}",
                member=member,
            ) from error
