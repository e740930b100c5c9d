"""The parts of a member, and what each of them is given of the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from secateur.cluster.load_leases import LoadLeases
from secateur.cluster.loop_thread import BackgroundTasks
from secateur.cluster.member.admission.memory_admission import (
    STAGED_FACTOR,
    MemoryAdmission,
    kernel_memory_of,
    memory_limit_of,
)
from secateur.cluster.member.admission.statement_admission import Admissions, StatementAdmission, full_member
from secateur.cluster.member.admission.tenant_gate import TenantGate
from secateur.cluster.member.admission.tenants import TenantAccounts
from secateur.cluster.member.changes.change_feeds import MemberChangeFeeds
from secateur.cluster.member.changes.change_registry import ChangeRegistry
from secateur.cluster.member.changes.changes import MemberChanges
from secateur.cluster.member.changes.coordinated_changes import MemberCoordinatedChanges
from secateur.cluster.member.changes.loads import MemberLoads
from secateur.cluster.member.changes.row_guards import RowGuards
from secateur.cluster.member.changes.writes import MemberWrites
from secateur.cluster.member.jobs.attempts import MemberAttempts
from secateur.cluster.member.jobs.jobs import JobWrites, MemberJobs
from secateur.cluster.member.jobs.kept_jobs import JobFiles, KeptJobsOfMember, LiveMetrics
from secateur.cluster.member.member_threads import QUICK_THREADS_MAX, MemberThreads, StatementThreads
from secateur.cluster.member.membership.lease_keeper import LeaseKeeper
from secateur.cluster.member.membership.membership import KnownMetadata, Membership
from secateur.cluster.member.monitoring.hot_keys import HotKeySampler
from secateur.cluster.member.monitoring.slow_statements import SlowStatements
from secateur.cluster.member.monitoring.statement_log import StatementLog
from secateur.cluster.member.monitoring.stored_stats import EstimateMisses, WorkCounts
from secateur.cluster.member.persistence.persistence import Persistence
from secateur.cluster.member.replication.built_copies import BuiltCopies
from secateur.cluster.member.replication.replication import Replication
from secateur.cluster.member.statements.external_reads import ExternalReads
from secateur.cluster.member.statements.key_reads import KeyReads
from secateur.cluster.member.statements.open_results import OpenResults
from secateur.cluster.member.statements.query_steps import SteppedQueries
from secateur.cluster.member.statements.scattered_statements import ScatteredStatements
from secateur.cluster.member.statements.snapshots import MemberSnapshots
from secateur.cluster.member.statements.statements import StatementRunner
from secateur.cluster.member.table_checks import MemberTableChecks
from secateur.cluster.member.tables.alterations import Alterations, MemberAlterations
from secateur.cluster.member.tables.stored_tables import MemberCopies, StoredTables
from secateur.cluster.member.tables.table_directory import TableDirectory
from secateur.cluster.peers import ControllerRequests, Peers
from secateur.cluster.plan_source import PlanSource, SourceQueries
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import LOOPBACK, ProcessAddress, listening, peer_at
from secateur.cluster.termination_protocol import TerminationProtocol
from secateur.dag.supplier import SourceQuery
from secateur.engine.kernels.fragment import run
from secateur.engine.runtime.runtime import JobRuntime
from secateur.engine.runtime.services import MemberServices, PlannedQuery
from secateur.errors import Error
from secateur.native import native_module
from secateur.partitioning.tables.table import ExternalTable, TableDef
from secateur.partitioning.topology.topology import MemberAddress, Topology
from secateur.protocol.access import AccessRecord
from secateur.protocol.catalog import GetExternalTable
from secateur.protocol.changes import TwoPhaseKind
from secateur.protocol.membership import ReportCopyLost
from secateur.protocol.message import Role
from secateur.protocol.operations import MEMBER_OPERATIONS
from secateur.protocol.query import DescribeStatement, ReadSystemTable, StatementDescription, StatementEntry
from secateur.storage.log.disk import Disk
from secateur.storage.member_store import MemberStore
from secateur.wire import Handled, PeerInfo, Request, decode_table

_QUICK_SLOTS: Final = 2
"""Statements over few rows that run at once where there are tenants, for each kernel thread."""


class MemberParts(ABC):
    """Makes the parts of one member on its event loop.

    Args:
        member_id: Its id.
        settings: The settings of the cluster.
        controller_address: ``host:port`` of the controller, which it joins at :meth:`start`.
        on_given_up: Called on the event loop when the cluster has gone on without this member: it answers nothing any
            more, and has to be stopped.
        own_address: The addresses on which it listens.
        disk: Its disk, for a cluster with a data directory.

    Attributes:
        member_id: Its id.

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
        host, _, port = controller_address.rpartition(":")
        limits, accepts_code = settings.engine_limits, settings.accepts_code
        self.member_id = member_id
        self._settings = settings
        self._own_address = own_address
        self._counts = WorkCounts()
        self._controller = peer_at(host, int(port), settings, name=member_id, role=Role.MEMBER)
        self._patient = ControllerRequests(self._controller)
        self._peers = Peers(member_id, Role.MEMBER, settings, self._connection_lost)
        native = native_module()
        answered = None if native is None else self.answered
        self._server = listening(self, MEMBER_OPERATIONS, settings, own_address, on_gone=self._gone, answered=answered)
        self._background = BackgroundTasks()
        threads = self._threads = MemberThreads(member_id, settings)
        self._store = MemberStore(limits=limits)
        self._persistence = None if disk is None else Persistence(member_id, settings, disk, self._store)
        self._log = None if self._persistence is None else self._persistence.log
        self._results = OpenResults(settings.result_bytes_max)
        self._accounts = TenantAccounts()
        waiting_max = settings.max_waiting_statements
        accounts, slots = self._accounts, settings.kernel_threads
        self._admissions = Admissions(
            long=_admission(member_id, settings.max_running_statements, waiting_max, slots, accounts),
            quick=_admission(member_id, QUICK_THREADS_MAX, waiting_max, _QUICK_SLOTS * slots, accounts),
        )
        self._tenants: TenantGate | None = None  # until one comes
        self._statement_log = StatementLog(
            member_id,
            self._admissions.is_waiting,
            is_system=lambda plan_id: self._statements.is_system(plan_id),
            waited_s=self._admissions.waited_s,
            slow_s=settings.slow_statement_s,
            on_slow=SlowStatements(member_id, self._describe_statement, self._background.start).note,
        )
        self._hot_keys = HotKeySampler(self._store.find, settings.hot_key_sampling, member_id)
        self._places = TableDirectory(member_id, self._store.lease, limits)
        self._copies = MemberCopies(self._store, self._peers)
        self._lease = LeaseKeeper(
            member_id, settings, controller_address, self._address, self._store.lease, on_given_up, self._wants_report
        )

        change_registry = self._change_registry = ChangeRegistry()
        self._replication = Replication(
            member_id,
            self._store,
            self._places,
            self._peers,
            change_registry,
            self._report_out_of_sync,
            limits,
            self._log,
        )
        self._built_copies = BuiltCopies(
            member_id, self._store, self._peers, self._replication, change_registry, threads.changing, self._log
        )
        self._memory_limit = memory_limit_of(settings)
        self._admission = MemoryAdmission(
            self._memory_limit - (kernel_memory_of(settings) or 0),
            lambda: self._store.table_bytes + self._snapshots.kept_bytes,
            lambda: STAGED_FACTOR * self._store.loads.staged_bytes + self._results.held_bytes,
        )
        self._writes = MemberWrites(
            self._store,
            self._places,
            self._replication,
            change_registry,
            self._admission,
            self._log,
            self._hot_keys,
        )
        member_ids = self._places.member_ids
        self._leases = LoadLeases(TerminationProtocol(member_id, self._store.loads, member_ids), self._peers)
        self._loads = MemberLoads(
            self._store,
            self._places,
            self._peers,
            self._replication,
            self._leases,
            threads.changing,
            self._admission,
            self._log,
            abandoned_after_s=settings.staged_load_idle_s,
        )
        alterations = Alterations(self._store, self._adopt_altered)
        self._alter_leases = LoadLeases(
            TerminationProtocol(member_id, alterations, member_ids, TwoPhaseKind.ALTER), self._peers
        )
        self._alterations = MemberAlterations(
            self._store, self._places.latch, threads.changing, alterations, self._alter_leases, self._replication.level
        )

        services = MemberServices(
            self._store,
            run,
            threads.long,
            table=self._places.named,
            write_rows=JobWrites(member_id, self._writes, self._peers, self._patient, self._places.named, self._owners),
            acknowledged=self._replication.acknowledgements.acknowledged,
            plan_query=self._plan_query,
            allow_code=accepts_code,
            quick_executor=threads.staged,
            spill_directory=spill_directory(settings),
            external_directories=tuple(map(Path, settings.external_directories)),
            limits=limits,
            gathered_bytes_max=settings.gathered_bytes_max,
        )
        self._jobs = JobRuntime(member_id, services, self._peers)
        self._client_jobs = MemberJobs(self._jobs, self._owners, allow_code=accepts_code)
        self._attempts = MemberAttempts(self._jobs, self._patient, self._owners, allow_code=accepts_code)
        self._kept_jobs = KeptJobsOfMember(None if disk is None else JobFiles(disk))
        self._live_metrics = LiveMetrics(self._jobs, self._peers)

        self._external_reads = ExternalReads(member_id, self._jobs, threads.quick, self._fetch_external_table)
        plans = PlanSource(member_id, self._controller, self._peers, member_ids, settings.member_silence_s)
        misses = EstimateMisses(limits.estimate_miss_factor)
        statement_threads = StatementThreads(threads.long, threads.quick, threads.changing, threads.staged)
        self._statements = StatementRunner(
            member_id,
            self._store,
            self._jobs,
            misses,
            statement_threads,
            plans.fetch,
            self._fetch_system_table,
            self._external_reads,
            self._results,
            self._admissions,
            ScatteredStatements(
                member_id, self._store, self._peers, threads.quick, self._replication.acknowledgements.acknowledged
            ),
            settings.plan_cache_max,
            lambda: self._lease.statistics_version,
            self._replication.acknowledgements.acknowledged,
            self._hot_keys,
            native,
        )
        self._change_feeds = MemberChangeFeeds(
            self._store, self._places, self._replication.last, self._replication.acknowledgements.acknowledged
        )
        self._snapshots = MemberSnapshots(
            self._store,
            self._statements,
            self._results,
            self._admissions,
            statement_threads,
            self._replication.acknowledgements.acknowledged,
            self._replication.last,
        )
        self._key_reads = KeyReads(
            self._store, self._places, self._replication.acknowledgements.acknowledged, self._hot_keys
        )
        self._source_queries = SourceQueries(self._store, self._statements, self._patient)
        self._stepped = SteppedQueries(member_id, self._statements, self._peers, misses, self._admissions.long)
        row_guards = RowGuards()
        self._changes = MemberChanges(
            self._store,
            self._statements,
            self._places,
            self._writes,
            self._loads,
            self._results,
            threads.changing,
            row_guards,
            self._server.rights_of,
            waiting_max,
        )
        self._coordinated_changes = MemberCoordinatedChanges(
            member_id,
            self._store,
            self._statements,
            self._places,
            self._loads,
            self._peers,
            threads.changing,
            row_guards,
            self._server.rights_of,
        )
        self._stored_tables = StoredTables(
            self._store,
            self._places,
            self._replication,
            self._copies,
            self._built_copies,
            self._alterations,
            threads.changing,
            self._log,
            self._owners,
        )
        self._membership = Membership(
            member_id,
            settings,
            self._address,
            self._controller,
            self._peers,
            self._store,
            self._places,
            self._replication,
            self._built_copies,
            self._leases,
            self._alter_leases,
            self._alterations,
            self._persistence,
            self._take_access,
            self._jobs.member_lost,
            (
                self._peers.update,
                self._statements.update,
                self._places.update,
                self._replication.update,
                self._built_copies.update,
                self._lease.topology_changed,
            ),
        )
        self._table_checks = MemberTableChecks(
            self._statements,
            self._snapshots,
            self._places.table,
            lambda: tuple(self._places.tables()),
            row_guards,
        )
        self._metadata = KnownMetadata(self._owners, self._places, self._statements)

    @abstractmethod
    def handle(self, request: Request[Any]) -> Handled:
        """Answer a request; see :class:`secateur.wire.Handler`."""

    @abstractmethod
    def answered(self, frame: bytes, peer: PeerInfo) -> bytes | None:
        """The frame that answers a short request of a peer; None where it is to be handled as any other."""

    @abstractmethod
    def notify(self, request: Request[Any]) -> None:
        """Take a one-way message: those of jobs."""

    def _connection_lost(self, member_id: str, error: Error) -> None:
        self._jobs.connection_lost(member_id, error)

    def _take_access(self, access: AccessRecord) -> None:
        self._server.take_access(access)
        self._accounts.take_groups(access.groups)
        self._admissions.long.shares_changed()
        self._admissions.quick.shares_changed()

    def _gone(self, peer: PeerInfo) -> None:
        self._accounts.gone(peer)
        if self._tenants is not None:
            self._tenants.gone(peer)
        self._results.gone(peer)
        self._statement_log.close(peer)
        self._leases.connection_gone(peer.connection_id)
        self._alter_leases.connection_gone(peer.connection_id)

    async def _plan_query(self, query: SourceQuery) -> PlannedQuery:
        return await self._source_queries.planned(query)

    async def _fetch_system_table(self, name: str) -> pa.Table:
        answer = await self._patient.request(ReadSystemTable(name))
        return decode_table(answer.payload, ranges=False)

    async def _fetch_external_table(self, table_id: int) -> ExternalTable:
        return (await self._patient.request(GetExternalTable(table_id))).message.table

    async def _describe_statement(self, entry: StatementEntry) -> StatementDescription:
        return (await self._controller.request(DescribeStatement(entry))).message

    async def _report_out_of_sync(self, table_id: int, partition: int, member: str) -> None:
        await self._patient.request(ReportCopyLost(table_id, partition, member))

    def _address(self) -> MemberAddress:
        at = self._own_address
        return MemberAddress(self.member_id, at.advertised_host, self._server.port, at.node)

    def _adopt_altered(self, table: TableDef) -> None:
        """The ranges of a table have changed, or its columns, and then its id."""
        before = None if table.succession is None else table.succession.before
        if before is not None and self._places.knows(before):
            self._places.remove_table(before)
            self._places.add_table(table)
            self._built_copies.forget_table(before)
            self._change_registry.succeed(before, table.table_id)
            self._replication.succeed(before, table)
            return
        self._places.add_table(table)
        self._replication.forget_dropped_ranges(table)
        self._built_copies.forget_dropped_ranges(table)

    def _wants_report(self) -> None:
        self._membership.report_soon()

    def _owners(self) -> Topology:
        return self._membership.topology


def _admission(
    member_id: str, running_max: int, waiting_max: int, slots: int, tenants: TenantAccounts
) -> StatementAdmission:
    refusal = full_member(member_id, running_max)
    return StatementAdmission(running_max, waiting_max, refusal, slots=slots, tenants=tenants)


def spill_directory(settings: ClusterSettings) -> Path | None:
    """The directory to which kernels and jobs spill what does not fit into memory; None if there is none."""
    return None if settings.spill_directory is None else Path(settings.spill_directory)
