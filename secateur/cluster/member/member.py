"""A member: how it starts, comes back and ends, and who answers each request.

A member is one process with one event loop, in whose turns short statements are answered. A second loop in a thread
would add nothing: Python 3.11 runs one of them at a time, and handing the lock over costs each answer 0 to 30 % more
processor time (``benchmarks/serving/member_cores.py``). A second process over the same partitions would need a log of
changes with terms and sequence numbers to see each acknowledged write, and to stop when the lease ends: that is what a
backup has. So a host with more cores runs more members, as it does with processes of Redis or shards of ScyllaDB.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from secateur.cluster.loop_thread import BackgroundTasks
from secateur.cluster.member.admission.memory_admission import kernel_memory_of
from secateur.cluster.member.admission.statement_admission import Admissions
from secateur.cluster.member.admission.tenant_gate import TenantGate
from secateur.cluster.member.admission.tenants import TenantAccounts
from secateur.cluster.member.changes.changes import MemberChanges
from secateur.cluster.member.changes.coordinated_changes import MemberCoordinatedChanges
from secateur.cluster.member.changes.row_guards import RowGuards
from secateur.cluster.member.lease_keeper import LeaseKeeper
from secateur.cluster.member.member_engine import MemberEngine
from secateur.cluster.member.member_replication import MemberReplication
from secateur.cluster.member.member_statements import StatementHandlers
from secateur.cluster.member.member_storage import MemberStorage, merge_changes
from secateur.cluster.member.member_threads import MemberThreads
from secateur.cluster.member.membership import Membership
from secateur.cluster.member.monitoring.slow_statements import SlowStatements
from secateur.cluster.member.monitoring.statement_log import StatementLog
from secateur.cluster.member.monitoring.stored_stats import StoredStats, WorkCounts
from secateur.cluster.member.monitoring.tenant_ledger import TenantLedger
from secateur.cluster.member.persistence import Persistence
from secateur.cluster.member.statements.native_answers import NativeAnswers
from secateur.cluster.member.statements.plans import MemberPlans
from secateur.cluster.member.statements.statements import StatementRunner
from secateur.cluster.member.table_checks import MemberTableChecks
from secateur.cluster.member.table_directory import owner_pages, range_pages
from secateur.cluster.peers import MemberConnections
from secateur.cluster.plan_source import PlanSource
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import LOOPBACK, ProcessAddress, listening
from secateur.engine_limits import EngineLimits
from secateur.errors import DamagedDirectoryError, TopologyChangedError
from secateur.native import native_module
from secateur.partitioning.topology.topology import MemberAddress
from secateur.protocol.access import AccessRecord
from secateur.protocol.catalog import TopologyAnswer
from secateur.protocol.hello import Greeting, Hello
from secateur.protocol.membership import JoinRequest
from secateur.protocol.message import Role
from secateur.protocol.operations import MEMBER_OPERATIONS, Operation, OperationBase
from secateur.protocol.query import GetPlan, PlanAnswer
from secateur.protocol.recovery import AskToReturn
from secateur.storage.log.disk import Disk
from secateur.wire import Handled, PeerInfo, Reply, Request

_log = logging.getLogger(__name__)


class Member:
    """One member. Made and used on one event loop; :meth:`start` lets the cluster know of it.

    Args:
        controller_address: ``host:port`` of the controller, which it joins at :meth:`start`.
        on_given_up: Called on the event loop when the cluster has gone on without this member: it answers nothing any
            more, and has to be stopped.
        disk: Its disk, for a cluster with a data directory.

    Attributes:
        member_id: Its id.
        handlers: The handler of each operation.

    Raises:
        DiskError: Its directory is in use.
    """

    def __init__(
        self,
        member_id: str,
        settings: ClusterSettings,
        controller_address: str,
        on_given_up: Callable[[], None],
        own_address: ProcessAddress = LOOPBACK,
        disk: Disk | None = None,
    ) -> None:
        self.member_id = member_id
        self._settings = settings
        self._own_address = own_address
        self._stopping: asyncio.Task[None] | None = None
        self._background = BackgroundTasks()
        self._counts = WorkCounts()
        self._server = listening(
            self,
            MEMBER_OPERATIONS,
            settings,
            own_address,
            on_gone=self._gone,
            answered=lambda: self._statement_handlers.answered,
        )
        threads = self._threads = MemberThreads(member_id, settings)
        connections = self._connections = MemberConnections(
            member_id, settings, controller_address, lambda *lost: self._engine.runtime.connection_lost(*lost)
        )
        storage = self._storage = MemberStorage(member_id, settings, disk)
        lease = self._lease = LeaseKeeper(
            member_id,
            settings,
            controller_address,
            self._address,
            storage.store.lease,
            on_given_up,
            lambda: self._membership.report_soon(),
        )
        replication = self._replication = MemberReplication(settings, storage, connections, threads.changing)
        source = PlanSource(
            member_id, connections.controller, connections.peers, storage.places.member_ids, settings.member_silence_s
        )
        plans = self._plans = MemberPlans(
            source.fetch, settings.plan_cache_max, threads.quick, lambda: lease.statistics_version
        )
        self._engine = MemberEngine(settings, storage, connections, replication, plans, threads, self._counts)
        jobs = self._engine.runtime
        self._accounts = TenantAccounts()
        self._tenants: TenantGate | None = None  # until one comes
        admissions = self._admissions = Admissions.of_member(member_id, settings, self._accounts)
        slow = SlowStatements(member_id, connections.describe_statement, self._background.start)
        log = self._statement_log = StatementLog(
            member_id,
            admissions.is_waiting,
            is_system=plans.is_system,
            waited_s=admissions.waited_s,
            slow_s=settings.slow_statement_s,
            on_slow=slow.note,
        )
        module, acknowledged = native_module(), replication.copies.acknowledgements
        native = None if module is None else partial(NativeAnswers, module, storage, acknowledged, self._counts, log)
        copies, peers = replication.copies, connections.peers
        statements = self._statements = StatementRunner(
            storage, connections, copies, plans, jobs, admissions, threads, native
        )
        row_guards = RowGuards(self._server.tokens.rights)
        changes = MemberChanges(
            storage, plans, replication, threads.changing, row_guards, settings.max_waiting_statements
        )
        coordinated = MemberCoordinatedChanges(
            storage, statements, replication.loads, peers, threads.changing, row_guards
        )
        self._statement_handlers = StatementHandlers(
            self._counts, log, storage, peers, copies, admissions, threads, statements, changes, coordinated
        )
        followers = statements.prepared.update, lease.topology_changed
        self._membership = Membership(
            settings, self._address, connections, storage, replication, self._take_access, jobs.member_lost, followers
        )
        self._table_checks = MemberTableChecks(plans, storage, row_guards)
        self.handlers = self._handlers()

    def _handlers(self) -> dict[OperationBase, Callable[[Request[Any]], Handled]]:
        storage, membership = self._storage, self._membership
        stats = StoredStats(storage, self._counts, self._engine.runtime, self._admissions, self._statement_log.totals)
        return {
            **self._statement_handlers.handlers(),
            **self._replication.handlers(),
            **self._engine.handlers(),
            Operation.HELLO: self._hello,
            Operation.DECIDE_LOAD: membership.decide_load,
            Operation.ADOPT_VIEWS: membership.take_views,
            Operation.TAKE_TOPOLOGY: membership.take_topology,
            Operation.BEGIN_RETURN: membership.begin_return,
            Operation.GET_REPORT: lambda _: Reply(membership.report()),
            Operation.ASK_FOR_PROMISE: membership.promise,
            # Clients and other members ask so when they cannot reach the controller.
            Operation.GET_OWNERS: lambda _: Reply(TopologyAnswer(topology=membership.topology.outline)),
            Operation.GET_OWNER_PAGES: lambda request: Reply(owner_pages(membership.topology, request.message)),
            Operation.GET_RANGES: lambda request: Reply(range_pages(storage.places.tables(), request.message)),
            Operation.GET_PLAN: self._send_plan,
            Operation.GET_HOT_KEYS: storage.hot_keys.send,
            Operation.GET_MEMBER_STATS: stats.tell,
            Operation.GET_VITALS: stats.tell_vitals,
            Operation.LOOK_AT_STATISTICS: stats.summary,
        }

    async def start(self) -> None:
        """Listen, and join the cluster.

        Raises:
            OperationalError: The socket, the controller or the data directory is not to be had.
        """
        await self._open()
        if self._replication.persistence is not None and (self._membership.record.version or self._membership.damage):
            # The controller starts anew as well, and wants reports of all members before it grants a lease to one.
            await self._membership.report_to_controller()
            self._background.start(self._lease.start(), f"member {self.member_id} waits for its lease")
            self._background.start(self._load_kernels(), f"member {self.member_id} loads its kernels")
            return
        at = self._address()
        joining = JoinRequest(at.id, at.host, at.port, at.node)
        joined = (await self._connections.patient.request(joining)).message
        self._membership.know_views(joined.catalog_version, joined.views)
        if not self._server.tokens.is_complete:  # the record may have told it of newer ones meanwhile
            self._take_access(joined.access)
        await self._lease.start()
        self._background.start(self._load_kernels(), f"member {self.member_id} loads its kernels")

    async def _load_kernels(self) -> None:
        """Load what the first statement needs, which would be loaded on the event loop while nothing else is answered.

        That takes a quarter of a second where pandas is installed: Arrow loads it with the first value that it makes of
        one of Python's. A member that is to replace another joins first.
        """

        def load() -> None:
            import secateur.engine.kernels.arrow.kernel
            import secateur.engine.sql.serving_program  # noqa: F401

        await asyncio.get_running_loop().run_in_executor(self._threads.long, load)

    async def _open(self) -> None:
        """Have what is on disk, and listen."""
        _configure_duckdb(self._settings)
        if self._replication.persistence is not None:
            await self._recover(self._replication.persistence)
        await self._server.start()
        self._background.start(self._turn(), f"member {self.member_id} turns")
        merging = merge_changes(self._storage, self._threads.changing)
        self._background.start(merging, f"member {self.member_id} merges recent changes")

    async def start_in_place(self) -> bool:
        """Start with the data of a member whose process has ended, and :meth:`come_back` as that member.

        Returns:
            Whether it is in the cluster.

        Raises:
            Error: As :meth:`come_back`, or as :meth:`start`.
        """
        await self._open()
        return await self.come_back()

    async def come_back(self) -> bool:
        """Have the controller let this member in again, which was given up although it has its data.

        Returns:
            Whether it is in the cluster again; False: others have everything that it has, so it is to be stopped.

        Raises:
            Error: The controller could not be asked, or the member could not catch up.
        """
        await self._engine.kept.forget()  # others may have forgotten since what is here
        asked = AskToReturn(self._settings.cluster_id, self._address())
        if not (await self._connections.controller.request(asked)).message.is_member:
            return False
        await self._lease.resume()
        return True

    async def _recover(self, persistence: Persistence) -> None:
        """Have what is on disk; if that is damaged, the cluster goes on without it."""
        try:
            await persistence.begin()
        except DamagedDirectoryError as error:
            _log.exception("member %s cannot use its data directory", self.member_id)
            self._membership.damage = str(error)
            return
        for table in self._storage.store.tables():
            self._storage.places.add_table(table)
        await self._engine.kept.recover()
        if persistence.record is not None:
            self._membership.recovered(persistence.record)

    async def stop(self) -> None:
        """Drop every connection and everything that runs, without a word to the others.

        Once it has begun, it goes on to its end, also when the caller is cancelled; another call waits for that.
        """
        if self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._stop(), name=f"{self.member_id} stops")
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        await self._server.stop()
        await self._background.close()
        await self._membership.close()
        await self._lease.stop()
        self._storage.results.close_all()
        await self._engine.close()
        await self._replication.close()
        await self._connections.close()
        if self._storage.log is not None:
            await self._storage.log.close()
        await self._threads.end()

    def handle(self, request: Request[Any]) -> Handled:
        """Answer a request; see :class:`secateur.wire.Handler`."""
        if not request.operation.is_housekeeping:
            self._counts.frames_received += 1
        return self._checked(request) if self._tenants is None else self._tenants.handle(request, self._checked)

    def _checked(self, request: Request[Any]) -> Handled:
        handler, rights = self.handlers[request.operation], request.peer.rights
        return handler(request) if rights is None else self._table_checks.handle(request, rights, handler)

    def notify(self, request: Request[Any]) -> None:
        """Take a one-way message: those of jobs."""
        self._counts.frames_received += 1
        self._engine.notify(request)

    def _hello(self, request: Request[Hello]) -> Reply[Greeting]:
        self._storage.results.connected(request.peer)
        if request.peer.role is Role.CLIENT:
            self._accounts.connected(request.peer)
            if request.peer.tenant and self._tenants is None:  # the gate is there from the first tenant on
                self._tenants = TenantGate(self._accounts, self._admissions, self._storage.results)
                self._statement_log.ledger = TenantLedger(self._accounts)
                self._statement_handlers.meter(self._accounts, self._tenants.may_answer)
        return Reply(Greeting(member=self.member_id))

    def _send_plan(self, request: Request[GetPlan]) -> Reply[PlanAnswer]:
        """A plan that this member has run, for another one that has not."""
        plan_id = request.message.plan_id
        plan = self._plans.used(plan_id)
        if plan is None:
            raise TopologyChangedError(f"member {self.member_id} does not keep plan {plan_id}", plan=plan_id)
        return Reply(PlanAnswer(plan.encoded()))

    def _take_access(self, access: AccessRecord) -> None:
        self._server.take_access(access)
        self._accounts.take_groups(access.groups)
        self._admissions.shares_changed()

    def _gone(self, peer: PeerInfo) -> None:
        self._accounts.gone(peer)
        if self._tenants is not None:
            self._tenants.gone(peer)
        self._storage.results.gone(peer)
        self._statement_log.close(peer)
        self._replication.gone(peer)

    def _address(self) -> MemberAddress:
        at = self._own_address
        return MemberAddress(self.member_id, at.advertised_host, self._server.port, at.node)

    async def _turn(self) -> None:
        """Show that the event loop turns, and do what has to be done now and then."""
        store, misses = self._storage.store, self._statements.misses
        while True:
            try:
                misses.forget_dropped(lambda table_id: store.find(table_id) is not None)
                self._lease.turned(store.rows_written(), misses.by_table())
                self._replication.loads.drop_abandoned()
                self._storage.snapshots.drop_ended()
                if self._statement_log.ledger is not None:
                    self._statement_log.ledger.turned()
            except Exception:  # the loop must go on: without it the cluster takes this member for lost
                _log.exception("member %s could not look after its loads", self.member_id)
            await asyncio.sleep(self._settings.lease_times.interval_s)


def _configure_duckdb(settings: ClusterSettings) -> None:
    slots, memory = settings.engine_limits.duckdb_slots_max, kernel_memory_of(settings)
    spill = settings.spill_path
    if memory is None and spill is None and slots == EngineLimits().duckdb_slots_max:
        return
    # Imported here: a member without a limit loads DuckDB at the first statement that needs it.
    from secateur.engine.kernels.duckdb.kernel import configure

    configure(memory_limit_bytes=memory, spill_directory=spill, slots_kept_max=slots)
