"""A member's part in membership: it acts on topologies, and keeps the cluster's record for a controller that starts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from secateur.cluster.lease import Promises
from secateur.cluster.loop_thread import BackgroundTasks
from secateur.cluster.member.member_replication import MemberReplication
from secateur.cluster.member.member_storage import MemberStorage
from secateur.cluster.peers import MemberConnections
from secateur.cluster.settings import ClusterSettings
from secateur.errors import Error, ProtocolError, TopologyChangedError
from secateur.partitioning.topology.topology import MemberAddress, Topology, gains_copies
from secateur.protocol import changes, recovery
from secateur.protocol.access import AccessRecord, KnownAccess
from secateur.protocol.catalog import AdoptViews, TakeTopology
from secateur.protocol.codec import decode
from secateur.protocol.membership import (
    AskForPromise,
    LeaseAnswer,
)
from secateur.protocol.message import Acknowledged
from secateur.storage.read_lease import lease_clock_s
from secateur.wire import Reply, Request

_log = logging.getLogger(__name__)


class Membership:
    """Takes topologies and records, and reports to the controller. Lives on the member's event loop.

    Args:
        address: Where this member is reached, once it listens.
        take_access: Has this process act on what the record says of who may do what.
        on_lost: Called for a member that has left the cluster.
        followers: Called in this order with a newer topology, once the connections and the copies have it.

    Attributes:
        topology: The newest one that this member acts on; of version 0 before the first.
        record: The newest record of the cluster; of version 0 before the first.
        damage: What is wrong with the data directory; nothing, as a rule.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        address: Callable[[], MemberAddress],
        connections: MemberConnections,
        storage: MemberStorage,
        replication: MemberReplication,
        take_access: Callable[[AccessRecord], None],
        on_lost: Callable[[str], None],
        followers: Sequence[Callable[[Topology], None]],
    ) -> None:
        self._member_id = storage.member_id
        self._settings = settings
        self._address = address
        self._connections = connections
        self._store = storage.store
        self._places = storage.places
        self._replication = replication
        self._take_access = take_access
        self._on_lost = on_lost
        self._followers = followers
        self.topology = Topology(0, (), {})
        self.record = recovery.ClusterRecord(0, 0, self.topology, b"")
        self.damage = ""
        self._promises = Promises(settings.lease_times)
        self._background = BackgroundTasks()
        self._views_version = 0
        self._is_restored = False
        self._is_reporting = False
        self._has_old_builds = False

    def recovered(self, record: recovery.ClusterRecord) -> None:
        """The record was on disk when this member was started."""
        self.record = record
        self._is_restored = True
        self._know_access(record.state)

    async def close(self) -> None:
        """End a report that is under way."""
        await self._background.close()

    async def begin_return(self, request: Request[recovery.BeginReturn]) -> Reply[recovery.MemberReport]:
        """The controller is about to let this member in again; of each table it says afterwards what is outdated."""
        topology = request.message.topology
        for settled in request.message.settled:
            self._replication.load_leases.settled(settled)
        if self._replication.copies.is_settling:
            await self._settle_loads(topology)
        await self._take(topology)
        await asyncio.gather(*(leases.settle_held() for leases in self._replication.leases))
        return Reply(self.report())

    async def take_topology(self, request: Request[TakeTopology]) -> Reply[Acknowledged]:
        """Keep the record, and act on a newer topology once nothing is promised to a member that it leaves out.

        The record is on disk, if there is one, before anything follows from it.
        """
        self._keep(request.message)
        topology, persistence = request.message.topology, self._replication.persistence
        if persistence is not None and self.record.version:
            await persistence.keep(self.record)
        if self._replication.copies.is_settling:
            await self._settle_loads(topology)
        await self._take(topology)
        return Reply(Acknowledged())

    async def _settle_loads(self, topology: Topology) -> None:
        """Have the members decide loads that were prepared before this one was started anew."""
        self._connections.peers.update(topology)
        self._places.update(topology)
        prepared = {
            load.load_id: (load.table_id, self._places.latch(load.table_id)) for load in self._store.loads.prepared()
        }
        await self._replication.load_leases.settle_prepared(prepared)

    async def _take(self, topology: Topology) -> None:
        gains = gains_copies(self.topology, topology, self._member_id)
        may_act_s = self._promises.heard(topology.version, topology.member_ids, lease_clock_s(), gains_copies=gains)
        wait_s = may_act_s - lease_clock_s()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        self._act_on(topology)

    def _keep(self, told: TakeTopology) -> None:
        """Keep the record for a controller that starts anew.

        Raises:
            TopologyChangedError: It comes from a controller that another one has replaced.
        """
        before = self.record
        if told.version and told.epoch < before.epoch:
            raise TopologyChangedError(
                f"member {self._member_id} takes no topology of the controller of epoch {told.epoch}: that of epoch"
                f" {before.epoch} has taken over",
                superseded=True,
            )
        if not told.version or (before.epoch, before.version) > (told.epoch, told.version):
            return
        state = before.state if told.state is None else told.state
        if not state:
            raise ProtocolError(f"member {self._member_id} has no record yet: it has to be sent as a whole")
        self.record = recovery.ClusterRecord(told.epoch, told.version, told.topology, state)
        self._is_restored = False
        if told.state is not None:
            self._know_access(told.state)
        if told.epoch > before.epoch:
            for leases in self._replication.leases:
                leases.controller_replaced()
            self._replication.alterations.controller_replaced()
            self._has_old_builds = True

    def take_views(self, request: Request[AdoptViews]) -> Reply[Acknowledged]:
        self.know_views(request.message.catalog_version, request.message.views)
        return Reply(Acknowledged())

    def know_views(self, catalog_version: int, views: list[int]) -> None:
        if catalog_version > self._views_version:
            self._views_version = catalog_version
            self._store.views = frozenset(views)

    def _know_access(self, state: bytes) -> None:
        """Act on what an encoded :class:`~secateur.protocol.recovery.ControllerState` says of who may do what."""
        if state:
            self._take_access(decode(state, KnownAccess).access)

    def report(self) -> recovery.MemberReport:
        persistence = self._replication.persistence
        in_doubt = {load.table_id: load.load_id for load in self._store.loads.prepared()}
        published = {
            outcome.number: load_id for load_id, outcome in self._store.loads.registry.outcomes() if outcome.published
        }
        return recovery.MemberReport(
            address=self._address(),
            record=self.record,
            # Before it knows the others, a member that was started anew has nobody to ask for a lease.
            holds_lease=self._store.lease.is_valid and not self._is_restored,
            tables=tuple(
                recovery.HeldTable(
                    table.table_id,
                    table.version,
                    number := self._store.data_version(table.table_id).published,
                    table.table_id in in_doubt,
                    self._complete(table.table_id) if self._is_restored else None,
                    in_doubt.get(table.table_id) or published.get(number, ""),
                    table.created_as,
                )
                for table in self._store.tables()
            ),
            views_version=self._views_version,
            alterations_in_doubt=self._replication.alter_leases.held,
            damage=self.damage,
            cut_bytes=0 if persistence is None else persistence.cut_bytes,
            is_restored=self._is_restored,
        )

    def _complete(self, table_id: int) -> tuple[int, ...]:
        return tuple(sorted(set(self._store.hosted(table_id)).difference(self._store.arriving(table_id))))

    def report_soon(self) -> None:
        if not self._is_reporting:
            self._is_reporting = True
            self._background.start(self.report_to_controller(), f"member {self._member_id} reports")

    async def report_to_controller(self) -> None:
        try:
            await self._connections.controller.request(
                recovery.ReportToController(self._settings.cluster_id, self.report())
            )
        except Error as error:
            _log.info("member %s could not report to the controller: %s", self._member_id, error)  # it will ask again
        finally:
            self._is_reporting = False

    def _act_on(self, topology: Topology) -> None:
        if topology.version > self.topology.version:
            for lost in set(self.topology.member_ids) - set(topology.member_ids):
                self._on_lost(lost)
            self.topology = topology
            self._connections.peers.update(topology)
            self._places.update(topology)
            self._replication.update(topology)
            for follow in self._followers:
                follow(topology)
        if self._has_old_builds and topology.version >= self.record.topology.version:
            # Copies that the controller before had built, or let build, and had not made owners: nobody knows of them.
            self._has_old_builds = False
            self._replication.built_copies.forget_outdated()
            for table in self._places.tables():
                # Of ranges that are not those of now, which a disk may have lost, this topology has no owners.
                if not table.replicated and table.scheme.affinity_group() in topology.owners:
                    self._replication.built_copies.drop_outdated(table.table_id)

    def decide_load(self, request: Request[changes.DecideLoad]) -> Reply[changes.LoadVerdict]:
        if not self._places.member_ids():
            raise TopologyChangedError(f"member {self._member_id} has just been started, and does not know the others")
        return self._replication.leases_of(request.message.kind).decide(request)

    def promise(self, request: Request[AskForPromise]) -> Reply[LeaseAnswer]:
        """Another member cannot reach the controller, and asks for a lease; see :mod:`secateur.cluster.lease`."""
        answer = self._promises.asked(request.message.member, request.message.topology_version, lease_clock_s())
        return Reply(LeaseAnswer(answer.value))
