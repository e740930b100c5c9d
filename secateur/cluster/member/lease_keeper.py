"""Renews a member's lease in a thread of its own.

Long work on the member's event loop, or a function that blocks it, does not make the member silent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, assert_never

from secateur.cluster.lease import AskPeers, Effect, LeaseHolder, LeaseOutcome, MemberRemoved
from secateur.cluster.loop_thread import LoopThread, ends
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import peer_at
from secateur.errors import DeadlineError, Error, MemberLostError, UnreachableError
from secateur.partitioning.topology.topology import MemberAddress, Topology
from secateur.protocol.membership import AskForPromise, LeaseAnswer, RenewLease
from secateur.protocol.message import Role
from secateur.storage.read_lease import ReadLease, lease_clock_s
from secateur.wire import Answer as WireAnswer
from secateur.wire.peer import Peer

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S: Final = 0.02


class LeaseKeeper:
    """Keeps one member's lease; carries out what its :class:`~secateur.cluster.lease.LeaseHolder` decides.

    Made and used on the member's event loop.

    Args:
        controller_address: ``host:port`` of the controller.
        own_address: Where the member is reached, once it listens.
        lease: Is set as the lease is renewed.
        on_given_up: Called on the member's event loop when the cluster has gone on without this member.
        on_report_wanted: Called there when a controller that has started anew wants to know what this member keeps.

    Attributes:
        statistics_version: The newest version of the statistics that the controller has told; any thread may read it.
    """

    def __init__(
        self,
        member_id: str,
        settings: ClusterSettings,
        controller_address: str,
        own_address: Callable[[], MemberAddress],
        lease: ReadLease,
        on_given_up: Callable[[], None],
        on_report_wanted: Callable[[], None],
    ) -> None:
        self._member_id = member_id
        self._settings = settings
        self._times = settings.lease_times
        self._own_address = own_address
        self._lease = lease
        self._lease.until_s = -1.0  # nothing is answered before the first lease
        self._on_given_up = on_given_up
        self._on_report_wanted = on_report_wanted
        self._holder = LeaseHolder(self._times)
        self._loop = asyncio.get_running_loop()
        self._thread = LoopThread(f"secateur-{member_id}-lease")
        self._topology = Topology(0, (), {})
        self._turned_s = lease_clock_s()
        self._written: Mapping[int, int] = {}
        self._misses: Mapping[int, int] = {}
        self.statistics_version = 0
        host, _, port = controller_address.rpartition(":")
        self._controller = self._peer(host, int(port))
        self._peers: dict[str, Peer] = {}
        self._asking: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._is_over = False

    async def start(self) -> None:
        """Get the first lease, and keep it from now on.

        Raises:
            DeadlineError: There is none to be had within the time that members have to come up.
            MemberLostError: The member was stopped meanwhile, as one is that the cluster has gone on without.
        """
        try:
            await asyncio.wrap_future(self._thread.submit(self._first()))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._is_over or task is None or task.cancelling():
                raise
            # It is the keeper that has ended, and not who waits for it: that may start another member.
            raise MemberLostError(
                f"member {self._member_id} was stopped while it waited for its first lease: it was removed from the"
                " cluster before it was up, or its process ends",
                member=self._member_id,
            ) from None
        self._thread.submit(self._keep())

    async def resume(self) -> None:
        """Keep a lease again after the member was given up, and let in again.

        Raises:
            DeadlineError: As :meth:`start`, like MemberLostError.
        """
        await asyncio.wrap_future(self._thread.submit(self._begin_anew()))
        await self.start()

    async def stop(self) -> None:
        """Let the lease end as it will."""
        if self._thread.is_running:
            await asyncio.wrap_future(self._thread.submit(self._close()))
            await ends(self._thread.stop)

    def topology_changed(self, topology: Topology) -> None:
        """The member acts on a newer topology."""
        self._topology = topology

    def turned(self, written: Mapping[int, int], misses: Mapping[int, int]) -> None:
        """The member's event loop turns; the fields of :class:`RenewLease` are the next report to the controller."""
        self._turned_s, self._written, self._misses = lease_clock_s(), written, misses

    # -- in the keeper's own thread

    async def _begin_anew(self) -> None:
        if self._keeping is not None:
            await asyncio.gather(self._keeping, return_exceptions=True)
        self._holder, self._is_over = LeaseHolder(self._times), False

    async def _first(self) -> None:
        deadline_s = lease_clock_s() + self._settings.start_timeout_s
        while not self._lease.is_valid and not self._is_over:
            await self._renew()
            if self._lease.is_valid:
                return
            await asyncio.sleep(_FIRST_PAUSE_S)  # one that is refused is so at once
            if lease_clock_s() > deadline_s:
                raise DeadlineError(
                    f"member {self._member_id} got no lease from the controller within"
                    f" {self._settings.start_timeout_s:g} s"
                )

    async def _keep(self) -> None:
        self._keeping = asyncio.current_task()
        while not self._is_over:
            await asyncio.sleep(self._times.interval_s)
            try:
                await self._renew()
            except Exception:  # whatever it was, a member that does not ask again is lost
                _log.exception("member %s could not renew its lease", self._member_id)

    async def _close(self) -> None:
        self._is_over = True
        # They end before the connections are closed, so that none is made behind that.
        ending = [task for task in (self._keeping, self._asking) if task is not None]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        await asyncio.gather(self._controller.close(), *(peer.close() for peer in self._peers.values()))

    async def _renew(self) -> None:
        topology = self._topology
        await self._close_peers(topology)
        self._holder.topology_changed(
            {member.id: (member.host, member.port) for member in topology.members if member.id != self._member_id}
        )
        await self._ask_controller(lease_clock_s(), topology)

    async def _carry_out(self, effects: list[Effect], topology: Topology) -> None:
        for effect in effects:
            match effect:
                case AskPeers(_, peers):
                    await asyncio.gather(*(self._ask_peer(effect, peer, topology) for peer in peers))
                case MemberRemoved():
                    self._give_up()
                case _:
                    assert_never(effect)
        self._lease.until_s = self._holder.until_s if not self._is_over else -1.0

    async def _close_peers(self, topology: Topology) -> None:
        """Close the connections to members that have left, or listen elsewhere by now."""
        addresses = {member.id: (member.host, member.port) for member in topology.members}
        gone = [member for member, peer in self._peers.items() if addresses.get(member) != (peer.host, peer.port)]
        await asyncio.gather(*(self._peers.pop(member).close() for member in gone))

    async def _ask_controller(self, asked_s: float, topology: Topology) -> None:
        """Wait for an answer a short while; one that comes later counts as well, from when it was asked for."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._controller_round(asked_s, topology))
        done, _ = await asyncio.wait([self._asking], timeout=self._times.patience_s)
        if not done:
            await self._carry_out(
                self._holder.controller_answered(asked_s, LeaseOutcome.SILENT, lease_clock_s()), topology
            )

    async def _controller_round(self, asked_s: float, topology: Topology) -> None:
        stalled_s = max(0.0, lease_clock_s() - self._turned_s)
        at = self._own_address()
        asked = RenewLease(
            self._settings.cluster_id,
            self._member_id,
            stalled_s,
            dict(self._written),
            dict(self._misses),
            f"{at.host}:{at.port}",
        )

        async def ask() -> WireAnswer[LeaseAnswer]:
            told = await self._controller.request(asked)
            self.statistics_version = max(self.statistics_version, told.message.statistics_version)
            if told.message.wants_report:
                self._loop.call_soon_threadsafe(self._on_report_wanted)
            return told

        answer = await _verdict(ask)
        await self._carry_out(self._holder.controller_answered(asked_s, answer, lease_clock_s()), topology)

    async def _ask_peer(self, asked: AskPeers, member_id: str, topology: Topology) -> None:
        if not topology.has_member(member_id):  # it has joined since this round began; the next one asks it
            return
        address = topology.member(member_id)
        peer = self._peers.get(member_id)
        if peer is None or (peer.host, peer.port) != (address.host, address.port):
            peer = self._peers[member_id] = self._peer(address.host, address.port)
        promise = AskForPromise(self._member_id, topology.version)
        try:
            async with asyncio.timeout(self._times.interval_s):
                answer = await _verdict(lambda: peer.request(promise))
        except TimeoutError:
            answer = LeaseOutcome.SILENT
        await self._carry_out(self._holder.peer_answered(asked, member_id, answer, lease_clock_s()), topology)

    def _give_up(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._loop.call_soon_threadsafe(self._on_given_up)

    def _peer(self, host: str, port: int) -> Peer:
        return peer_at(
            host, port, self._settings, name=self._member_id, role=Role.MEMBER, timeout_s=self._times.silence_s
        )


async def _verdict(ask: Callable[[], Awaitable[WireAnswer[LeaseAnswer]]]) -> LeaseOutcome:
    """The outcome of a request; a request whose connection broke is sent again at once."""
    for is_last in (False, True):
        try:
            return LeaseOutcome((await ask()).message.answer)
        except MemberLostError:
            if is_last:
                return LeaseOutcome.SILENT
        except UnreachableError as error:
            return LeaseOutcome.GONE if error.details.get("refused") else LeaseOutcome.SILENT
        except DeadlineError:
            return LeaseOutcome.SILENT
        except Error:
            return LeaseOutcome.REFUSED
    raise AssertionError("the second try returns")
