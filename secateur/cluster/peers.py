"""Connections from one process of the cluster to the members, and those of a member to the controller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import pyarrow as pa

from secateur.client.execution.retry_policy import CONTROLLER_WAIT_S
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import peer_at
from secateur.errors import Error, InterfaceError, MemberLostError, UnreachableError
from secateur.partitioning.tables.table import ExternalTable
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.catalog import GetExternalTable
from secateur.protocol.membership import ReportCopyLost
from secateur.protocol.message import Message, Notice, Role
from secateur.protocol.operations import operation_of
from secateur.protocol.query import DescribeStatement, ReadSystemTable, StatementDescription, StatementEntry
from secateur.wire import Answer, Payload, decode_table
from secateur.wire.peer import Peer

R = TypeVar("R")

_PAUSE_S: Final = 0.1


class MemberCaller(Protocol):
    """The one method of :class:`Peers` that most parts of the controller need: requests to members."""

    def call(self, member_id: str, message: Message[R]) -> Coroutine[Any, Any, R]:
        """Send a housekeeping request and return what the answer says."""
        ...


class Peers:
    """The members of the newest topology, reachable by id. Lives on one event loop. It is the engine's Transport.

    Args:
        name: How this side calls itself in the members' logs.
        role: The role of this side, which it proves to the members.
        on_broken: Called with the id of a member that has not left, when one-way messages to it may be lost.
    """

    def __init__(
        self,
        name: str,
        role: Role,
        settings: ClusterSettings,
        on_broken: Callable[[str, Error], None] = lambda _member, _error: None,
    ) -> None:
        self._name = name
        self._role = role
        self._settings = settings
        self._on_broken = on_broken
        self._addresses: dict[str, tuple[str, int]] = {}
        self._peers: dict[str, Peer] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._is_cut = False

    def update(self, topology: Topology) -> None:
        """Take over the addresses of a topology; connections to members that left or moved are closed."""
        self._addresses = {member.id: (member.host, member.port) for member in topology.members}
        for member_id, peer in list(self._peers.items()):
            if self._addresses.get(member_id) != (peer.host, peer.port):
                task = asyncio.get_running_loop().create_task(self._peers.pop(member_id).close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)
                if member_id in self._addresses:
                    moved = MemberLostError(f"another process has come back as member {member_id}", member=member_id)
                    self._on_broken(member_id, moved)

    def cut(self) -> None:
        """Send nothing more and hear nothing more, as if this process had ended; whoever asks is cancelled."""
        self._is_cut = True

    def peer(self, member_id: str) -> Peer:
        """The connection to a member.

        Raises:
            MemberLostError: The topology has no such member.
        """
        peer = self._peers.get(member_id)
        if peer is None:
            address = self._addresses.get(member_id)
            if address is None:
                raise MemberLostError(f"member {member_id} has left the cluster", member=member_id, has_left=True)
            broken = partial(self._on_broken, member_id)
            peer = peer_at(*address, self._settings, name=self._name, role=self._role, on_broken=broken)
            self._peers[member_id] = peer
        return peer

    async def call(self, member_id: str, message: Message[R], payload: Payload = b"") -> R:
        """Send a request to a member and return what its answer says.

        Raises:
            Error: As :meth:`ask`.
        """
        return (await self.ask(member_id, message, payload)).message

    async def ask(self, member_id: str, message: Message[R], payload: Payload = b"") -> Answer[R]:
        """Send a request to a member and return its answer.

        Raises:
            Error: It answers with an error, or cannot be reached.
            MemberLostError: It left the cluster before it answered; whether the request was carried out is unknown.
        """
        if self._is_cut:
            raise asyncio.CancelledError
        peer = self.peer(member_id)
        try:
            return await peer.request(message, payload)
        except InterfaceError as error:
            if self._addresses.get(member_id) == (peer.host, peer.port):
                raise
            # It was update() that closed the connection under the request.
            raise MemberLostError(
                f"member {member_id} left the cluster before it answered {operation_of(message).title!r}",
                member=member_id,
            ) from error

    def ask_now(
        self, member_id: str, message: Message[R], payload: Payload, heard: Callable[[R | Error], None]
    ) -> bool:
        """Send a request to a member in this turn of the loop, if it is connected; see :meth:`Peer.ask_now`."""
        peer = None if self._is_cut else self._peers.get(member_id)
        return peer is not None and peer.ask_now(message, payload, heard)

    async def is_gone(self, member_id: str, timeout_s: float) -> bool:
        """Whether the process of a member certainly does not exist any more: its address refuses a connection.

        Also of one that left the topology.

        Args:
            member_id: Its id.
            timeout_s: How long the connection may take.
        """
        address = self._addresses.get(member_id)
        if self._is_cut:
            return False
        if address is None:
            return True
        try:
            async with asyncio.timeout(timeout_s):
                _, writer = await asyncio.open_connection(*address)
        except ConnectionRefusedError:
            return True
        except (OSError, TimeoutError):
            return False
        writer.transport.abort()
        return False

    async def send(self, member_id: str, notice: Notice, payload: Payload) -> None:
        """Send a one-way message to a member, in order; see :class:`secateur.engine.exchange.exchange.Transport`."""
        await self.peer(member_id).notify(notice, payload)

    async def close(self) -> None:
        """Close every connection."""
        await asyncio.gather(*(peer.close() for peer in self._peers.values()), *self._closing)
        self._peers.clear()


class ControllerRequests:
    """Sends requests to the controller, again and again for a while if repeating them does no harm."""

    def __init__(self, controller: Peer) -> None:
        self._controller = controller

    async def request(self, message: Message[R], payload: Payload = b"") -> Answer[R]:
        """Send a request and wait for the whole answer.

        Raises:
            Error: As :meth:`secateur.wire.Peer.request`.
        """
        loop = asyncio.get_running_loop()
        end_s: float | None = None  # counted from the first failure: the request may have waited long for its answer
        while True:
            try:
                return await self._controller.request(message, payload)
            except (UnreachableError, MemberLostError) as error:
                end_s = end_s or loop.time() + CONTROLLER_WAIT_S
                is_own = error.details.get("address") == self._controller.address  # else the controller's answer
                if not is_own or not operation_of(message).is_idempotent or loop.time() >= end_s:
                    raise
            await asyncio.sleep(_PAUSE_S)


class MemberConnections:
    """Those whom a member asks, and what it asks the controller. Lives on the member's event loop.

    Args:
        controller_address: ``host:port`` of the controller.
        on_broken: Called with the id of a member that has not left, when one-way messages to it may be lost.

    Attributes:
        controller: The controller.
        patient: The controller, which is asked again for a while.
        peers: The other members.
    """

    def __init__(
        self,
        member_id: str,
        settings: ClusterSettings,
        controller_address: str,
        on_broken: Callable[[str, Error], None],
    ) -> None:
        host, _, port = controller_address.rpartition(":")
        self.controller = peer_at(host, int(port), settings, name=member_id, role=Role.MEMBER)
        self.patient = ControllerRequests(self.controller)
        self.peers = Peers(member_id, Role.MEMBER, settings, on_broken)

    async def system_table(self, name: str) -> pa.Table:
        """The rows of a system table."""
        answer = await self.patient.request(ReadSystemTable(name))
        return decode_table(answer.payload, ranges=False)

    async def external_table(self, table_id: int) -> ExternalTable:
        """An external table by its id."""
        return (await self.patient.request(GetExternalTable(table_id))).message.table

    async def describe_statement(self, entry: StatementEntry) -> StatementDescription:
        """The text of a statement that has ended, and how it is pruned."""
        return (await self.controller.request(DescribeStatement(entry))).message

    async def report_out_of_sync(self, table_id: int, partition: int, member: str) -> None:
        """Have the cluster count a member out as a holder of a partition."""
        await self.patient.request(ReportCopyLost(table_id, partition, member))

    async def close(self) -> None:
        """Close every connection."""
        await self.peers.close()
        await self.controller.close()
