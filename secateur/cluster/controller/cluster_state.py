"""The controller's state: tables, members and owners; and how members are informed of changes.

The members keep the state for the controller: each change is delivered to them with the topology, and a command is
acknowledged once all members have it (:meth:`ClusterState.all_reached`).

Everything else at the controller reads it from here when it needs it. The catalog changes only under
:attr:`ClusterState.changing`. The loss of a member is applied without waiting: a change in progress finds out by the
error of its call to that member, and asks the others again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Final, TypeVar

from secateur.cluster.controller.catalog import Catalog
from secateur.cluster.controller.history import EventLog
from secateur.cluster.controller.leaving import Leaving
from secateur.cluster.controller.membership import Event, MemberLost, absent_owners, advance
from secateur.cluster.controller.recovery import RecordEncoder, RestOfState, changing_of
from secateur.cluster.controller.stream_batches import StreamBatches
from secateur.cluster.controller.topology_delivery import TopologyDelivery
from secateur.cluster.lease import LeaseOutcome, LeaseTimes, MemberWatch
from secateur.cluster.loop_thread import BackgroundTasks
from secateur.cluster.peers import Peers
from secateur.errors import MemberLostError, UnreachableError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import MemberAddress, Topology
from secateur.protocol.access import AccessRecord
from secateur.protocol.hello import GivenVersions, Pruning
from secateur.protocol.message import Message
from secateur.protocol.operations import operation_of
from secateur.protocol.recovery import ControllerState, LastLoad
from secateur.storage.read_lease import lease_clock_s
from secateur.wire import Payload

_log = logging.getLogger(__name__)

GONE: Final = (MemberLostError, UnreachableError)
"""A connection broke or could not be made.

The process may live all the same: :meth:`ClusterState.still_there` finds out.
"""

_PROBE_PAUSE_S: Final = 0.05
_DONE_MAX: Final = 1_000
_LOST_MAX: Final = 1_000
"""Members that have left and are still shown: each process that is replaced is one more."""

R = TypeVar("R")


class ClusterState:
    """Catalog and topology. Lives on the controller's event loop.

    Args:
        on_lost: Called with the id of each member that left.
        stall_s: Seconds for which the event loop of a member may stand still.
        pruning: The setting of sessions that have not set their own.
        on_superseded: Called when a member knows a controller of a later epoch.
        on_access: Called with what says who may do what whenever it changes.
        last_loads: Gives what members were told to publish that have left as the last owners of partitions.

    Attributes:
        times: As given.
        last_member: The newest number of a member.
        joining: The members that are about to join.
        events: What has happened to the cluster.
        changing: The lock for a change of the catalog, or of the topology for any other reason than a loss. It is held
            from the first read of the old state to the end of the change.
    """

    def __init__(
        self,
        peers: Peers,
        on_lost: Callable[[str], None],
        times: LeaseTimes,
        *,
        stall_s: float = 60.0,
        pruning: Pruning = Pruning.ON,
        on_superseded: Callable[[], None] = lambda: None,
        on_access: Callable[[AccessRecord], None] = lambda _: None,
        last_loads: Callable[[Collection[str]], Mapping[str, Mapping[int, LastLoad]]] = lambda _: {},
    ) -> None:
        self._peers = peers
        self._on_lost = on_lost
        self.times = times
        self._watch = MemberWatch(times, stall_s)
        self._delivery = TopologyDelivery(peers, epoch=1, on_superseded=on_superseded)
        self._encoder = RecordEncoder()
        self._topology = Topology(1, (), {})
        self._lost: dict[str, MemberAddress] = {}
        self.joining: list[MemberAddress] = []
        self._beats: Counter[str] = Counter()
        self._beat = asyncio.Event()
        self._probing: set[str] = set()
        self._background = BackgroundTasks()
        self._rest = RestOfState(pruning=pruning)
        self.last_member = 0
        self._on_access = on_access
        self._last_loads = last_loads
        self._request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
        self.events = EventLog()
        self.changing = asyncio.Lock()

    @property
    def topology(self) -> Topology:
        """Members and owners."""
        return self._topology

    @property
    def catalog(self) -> Catalog:
        """The tables and views; replaced as a whole, under :attr:`changing`."""
        return self._rest.catalog

    @catalog.setter
    def catalog(self, catalog: Catalog) -> None:
        request_id, done = self._request_id.get(), self._rest.done
        if request_id is not None and request_id not in done:
            done = (*done, request_id)[-_DONE_MAX:]
        self._take(replace(self._rest, catalog=catalog, changing=None, changing_for=None, done=done))

    def versions(self, statistics_version: int) -> GivenVersions:
        """The versions that every answer to a client carries; that of the statistics is kept elsewhere."""
        return {
            "catalog_version": self.catalog.version,
            "topology_version": self._topology.version,
            "statistics_version": statistics_version,
            "pruning": self.pruning,
        }

    def spend_id(self, table_id: int) -> None:
        """An id of a table is used, whatever becomes of the table."""
        self._rest = replace(self._rest, catalog=replace(self.catalog, last_table_id=table_id))

    @contextmanager
    def on_behalf_of(self, request_id: str | None) -> Iterator[None]:
        """Changes of the catalog that are made here fulfil a request; it is done with the first of them."""
        token = self._request_id.set(request_id)
        try:
            yield
        finally:
            self._request_id.reset(token)

    def is_done(self, request_id: str) -> bool:
        """Whether a request has changed the catalog."""
        return request_id in self._rest.done

    @property
    def changing_table(self) -> TableDef | None:
        """The table whose ranges are being changed, as it is to be; a new catalog ends the change."""
        return self._rest.changing

    @changing_table.setter
    def changing_table(self, table: TableDef | None) -> None:
        self._take(replace(self._rest, changing=table, changing_for=self._request_id.get()))

    @property
    def pruning(self) -> Pruning:
        """The setting of sessions that have not set their own."""
        return self._rest.pruning

    @pruning.setter
    def pruning(self, pruning: Pruning) -> None:
        self._take(replace(self._rest, pruning=pruning))

    @property
    def streams(self) -> StreamBatches:
        """The last batch of each stream for each table."""
        return self._rest.streams

    @streams.setter
    def streams(self, streams: StreamBatches) -> None:
        self._take(replace(self._rest, streams=streams))

    @property
    def access(self) -> AccessRecord:
        """The tokens of clients beside that of the cluster, roles and policies; replaced as a whole."""
        return self._rest.access

    @access.setter
    def access(self, access: AccessRecord) -> None:
        if access is not self.access:
            self._on_access(access)
            self._take(replace(self._rest, access=access))

    @property
    def leaving(self) -> Leaving:
        """The members that are to leave."""
        return self._rest.leaving

    @leaving.setter
    def leaving(self, leaving: Leaving) -> None:
        self._take(replace(self._rest, leaving=leaving))

    @property
    def epoch(self) -> int:
        """Grows with every controller of this cluster that starts."""
        return self._delivery.epoch

    @property
    def lost(self) -> list[MemberAddress]:
        """The newest members that have left and not come back."""
        return list(self._lost.values())

    @property
    def suspects(self) -> frozenset[str]:
        """The members that have been silent for a while, and may be lost."""
        return frozenset(self._watch.suspects())

    # -- changes

    def after(self, event: Event) -> Topology:
        """The topology that :meth:`apply` takes over, if nothing else happens and nobody is told to leave before.

        Raises:
            Error: As :func:`~secateur.cluster.controller.membership.advance`.
        """
        return advance(self._topology, event, self.leaving)

    def apply(self, event: Event, first: Collection[str] = (), why: str = "") -> None:
        """Take over the next topology, and begin to take it to the members, to some of them first.

        Args:
            event: What has happened.
            first: The members that are told first.
            why: Why a member is lost, for ``secateur.events``.
        """
        before, self._topology = self._topology, self.after(event)
        if self._topology is before:
            return
        gone = {member.id: member for member in before.members if member.id not in self._topology.member_ids}
        drained = self.leaving.drained
        self._rest = replace(self._rest, leaving=self.leaving.ended(gone))
        self._lost.update((member_id, member) for member_id, member in gone.items() if member_id not in drained)
        for member_id in self._topology.member_ids:
            self._lost.pop(member_id, None)
            if member_id not in before.member_ids:
                self._watch.joined(member_id, lease_clock_s())
                self.events.add("member_joined", member_id, f"at {self._topology.member(member_id).host}")
        self._peers.update(self._topology)
        self._deliver(first)
        while len(self._lost) > _LOST_MAX:
            del self._lost[next(iter(self._lost))]
        for member_id in gone:
            self._beats.pop(member_id, None)
            if member_id in drained:
                self.events.add("member_left", member_id, "")
            else:
                self.events.add("member_lost", member_id, why)
            self._watch.left(member_id)
            self._on_lost(member_id)
        self._stir()

    def restore(self, epoch: int, topology: Topology, catalog: Catalog, state: ControllerState) -> None:
        """Go on from what an earlier controller left, in a later epoch."""
        self._delivery.epoch = epoch
        self._topology, self.last_member = topology, state.last_member
        self._rest = RestOfState(
            catalog=catalog,
            changing=changing_of(state),
            changing_for=state.changing_for,
            pruning=state.pruning,
            done=state.done,
            streams=StreamBatches(state.streams),
            access=state.access,
            leaving=Leaving(frozenset(state.draining), frozenset(state.drained).intersection(topology.member_ids)),
        )
        self._on_access(state.access)
        for member_id in topology.member_ids:
            self._watch.joined(member_id, lease_clock_s())
        self._peers.update(topology)
        self._deliver()

    async def advance(self, event: Event, first: Collection[str] = ()) -> None:
        """:meth:`apply`, and wait until every member that stays acts on it; only while holding :attr:`changing`."""
        self.apply(event, first)
        await self._delivery.reached()

    async def change(self, event: Event) -> None:
        """Wait for changes under way, then :meth:`advance`."""
        async with self.changing:
            await self.advance(event)

    async def all_reached(self) -> None:
        """Wait until every member acts on the topology of this moment and keeps the record, or has left."""
        await self._delivery.reached()

    async def recorded(self) -> None:
        """Have every member keep the record as it is now, and wait until it does, or has left."""
        self._deliver()
        await self.all_reached()

    def _take(self, rest: RestOfState) -> None:
        self._rest = rest
        self._deliver()

    def _deliver(self, first: Collection[str] = ()) -> None:
        last_loads = self._last_loads(absent_owners(self._topology))
        rest = self._rest = replace(self._rest, last_member=self.last_member, last_loads=last_loads)
        self._delivery.send(self._topology, lambda: self._encoder.encoded(rest), first)

    # -- calls

    async def call(self, member_id: str, message: Message[R], payload: Payload = b"") -> R:
        """Send a request to a member that acts on the topology of this moment; returns what its answer says.

        What is idempotent is asked again while the connection to a member that lives breaks.

        Raises:
            Error: It answers with an error, or cannot be reached.
            MemberLostError: It left the cluster before it answered.
        """
        while True:
            await self._delivery.reached([member_id])
            try:
                return await self._peers.call(member_id, message, payload)
            except GONE:
                if not operation_of(message).is_idempotent or not await self.still_there(member_id):
                    raise

    async def call_all(
        self, message: Callable[[str], Message[R]], members: Iterable[str] | None = None
    ) -> dict[str, R | BaseException]:
        """Send a request to all members at once; return the answers and errors, when the last one has come.

        Args:
            message: Makes the request to a member.
            members: Those that are asked; None for all of this moment.
        """
        asked = self._topology.member_ids if members is None else tuple(members)
        outcomes = await asyncio.gather(
            *(self.call(member_id, message(member_id)) for member_id in asked), return_exceptions=True
        )
        return dict(zip(asked, outcomes, strict=True))

    # -- who lives

    def has_member(self, member_id: str) -> bool:
        """Whether a member is in the cluster."""
        return self._topology.has_member(member_id)

    def heard(self, member_id: str, *, stalled_s: float) -> LeaseOutcome:
        """A member asks for a lease.

        Args:
            member_id: Its id.
            stalled_s: For how long its event loop has not turned.
        """
        answer = self._watch.heard(member_id, lease_clock_s(), stalled_s=stalled_s)
        if answer is LeaseOutcome.GRANTED:
            self._beats[member_id] += 1
            self._stir()
        return answer

    def look(self) -> None:
        """Give up the members that have been silent for too long; to be called again and again."""
        for member_id in self._watch.look(lease_clock_s()):
            self._lose(member_id, self._watch.why(member_id))
        for member_id in self._watch.suspects():
            self.doubt(member_id)

    def doubt(self, member_id: str) -> None:
        """Check in the background whether the process of a member still exists, after an error or silence."""
        if member_id in self._topology.member_ids and member_id not in self._probing:
            self._probing.add(member_id)
            self._background.start(self._doubted(member_id), f"probe {member_id}")

    async def still_there(self, member_id: str) -> bool:
        """Wait until a silent member sends again or is removed; return whether it is still in the cluster."""
        beats = self._beats[member_id]
        await self._probe(member_id)
        while member_id in self._topology.member_ids and self._beats[member_id] == beats:
            await self._beat.wait()
        return member_id in self._topology.member_ids

    async def check_member(self, member_id: str) -> None:
        """Find out now whether the process of a member still exists, rather than by its silence."""
        if member_id in self._topology.member_ids:
            await self._probe(member_id)

    def condemn(self, member_id: str) -> None:
        """Have a member removed when its lease has ended; it gets no other one."""
        self._watch.condemn(member_id)

    def is_condemned(self, member_id: str) -> bool:
        """Whether a member is to be removed, or was."""
        return self._watch.is_condemned(member_id)

    async def give_up(self, member_id: str) -> None:
        """Remove a member that is known to be lost; returns when it is removed.

        That is at once if its process is gone, else when its lease has ended.
        """
        self.condemn(member_id)
        while True:
            await self.check_member(member_id)
            if member_id not in self._topology.member_ids:
                return
            await asyncio.sleep(_PROBE_PAUSE_S)
            self.look()

    async def close(self) -> None:
        """End what runs in the background."""
        await asyncio.gather(self._background.close(), self._delivery.close())

    async def _doubted(self, member_id: str) -> None:
        try:
            await self._probe(member_id)
        finally:
            self._probing.discard(member_id)

    async def _probe(self, member_id: str) -> None:
        if member_id not in self._topology.member_ids:
            return
        probed = self._topology.member(member_id)
        # Another process may have come back as the same member meanwhile.
        if await self._peers.is_gone(member_id, self.times.interval_s) and self._is_as(probed):
            self._lose(member_id, "its process has ended: its address refuses connections")

    def _is_as(self, probed: MemberAddress) -> bool:
        return self._topology.has_member(probed.id) and self._topology.member(probed.id) is probed

    def _lose(self, member_id: str, why: str) -> None:
        if member_id in self._topology.member_ids:
            _log.warning("member %s is removed: %s", member_id, why)
            self.apply(MemberLost(member_id), why=why)

    def _stir(self) -> None:
        self._beat.set()
        self._beat = asyncio.Event()


def answers_of(outcomes: Mapping[str, R | BaseException]) -> list[R]:
    """The answers of members, if all have answered.

    Raises:
        Error: That of the first one that has not.
    """
    answers = []
    for outcome in outcomes.values():
        if isinstance(outcome, BaseException):
            raise outcome
        answers.append(outcome)
    return answers
