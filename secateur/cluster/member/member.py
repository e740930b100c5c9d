"""A member: its socket, its partitions, and the parts that answer each request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from secateur.cluster.background_tasks import BackgroundTasks
from secateur.cluster.controller_requests import ControllerRequests
from secateur.cluster.load_leases import LoadLeases
from secateur.cluster.member.admissions import Admissions
from secateur.cluster.member.attempts import MemberAttempts
from secateur.cluster.member.background_folds import BackgroundFolds
from secateur.cluster.member.built_copies import BuiltCopies
from secateur.cluster.member.change_feeds import MemberChangeFeeds
from secateur.cluster.member.change_registry import ChangeRegistry
from secateur.cluster.member.changes import MemberChanges
from secateur.cluster.member.coordinated_changes import MemberCoordinatedChanges
from secateur.cluster.member.copies import MemberCopies
from secateur.cluster.member.estimate_misses import EstimateMisses
from secateur.cluster.member.external_reads import ExternalReads
from secateur.cluster.member.job_files import JobFiles
from secateur.cluster.member.job_writes import JobWrites
from secateur.cluster.member.jobs import MemberJobs
from secateur.cluster.member.kept_jobs import KeptJobsOfMember
from secateur.cluster.member.key_reads import KeyReads
from secateur.cluster.member.known_metadata import KnownMetadata
from secateur.cluster.member.lease_keeper import LeaseKeeper
from secateur.cluster.member.live_metrics import LiveMetrics
from secateur.cluster.member.loads import MemberLoads
from secateur.cluster.member.member_threads import QUICK_THREADS_MAX, MemberThreads
from secateur.cluster.member.membership import Membership
from secateur.cluster.member.memory_admission import (
    STAGED_FACTOR,
    MemoryAdmission,
    kernel_memory_of,
    memory_limit_of,
)
from secateur.cluster.member.open_results import OpenResults
from secateur.cluster.member.persistence import Persistence
from secateur.cluster.member.query_steps import SteppedQueries
from secateur.cluster.member.ranges import MemberRanges, RangeChanges
from secateur.cluster.member.replication import Replication
from secateur.cluster.member.scattered_statements import ScatteredStatements
from secateur.cluster.member.slow_statements import SlowStatements
from secateur.cluster.member.snapshots import MemberSnapshots
from secateur.cluster.member.source_queries import SourceQueries
from secateur.cluster.member.statement_admission import StatementAdmission, full_member
from secateur.cluster.member.statement_handlers import StatementHandlers
from secateur.cluster.member.statement_log import StatementLog
from secateur.cluster.member.statement_threads import StatementThreads
from secateur.cluster.member.statements import StatementRunner
from secateur.cluster.member.statistics import MemberStatistics
from secateur.cluster.member.stored_stats import StoredStats
from secateur.cluster.member.stored_tables import StoredTables
from secateur.cluster.member.table_checks import MemberTableChecks
from secateur.cluster.member.table_directory import TableDirectory
from secateur.cluster.member.work_counts import WorkCounts
from secateur.cluster.member.writes import MemberWrites
from secateur.cluster.peers import Peers
from secateur.cluster.plan_source import PlanSource
from secateur.cluster.process_address import LOOPBACK, ProcessAddress
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import listening, peer_at
from secateur.cluster.termination_protocol import TerminationProtocol
from secateur.dag.source_query import SourceQuery
from secateur.engine.kernels.fragment import run
from secateur.engine.runtime.runtime import JobRuntime
from secateur.engine.runtime.services import MemberServices
from secateur.engine.sql.planned_query import PlannedQuery
from secateur.engine_limits import EngineLimits
from secateur.errors import DamagedDirectoryError, Error
from secateur.partitioning.tables.external_table import ExternalTable
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import MemberAddress, Topology
from secateur.protocol.changes import (
    TwoPhaseKind,
)
from secateur.protocol.external_tables import GetExternalTable
from secateur.protocol.hello import Greeting, Hello
from secateur.protocol.jobs import GetJobMetrics, JobMetrics, RunAttempt, SubmitJob
from secateur.protocol.membership import (
    JoinRequest,
    ReportCopyLost,
)
from secateur.protocol.message import Role
from secateur.protocol.operation import OperationBase
from secateur.protocol.operations import MEMBER_OPERATIONS, Operation
from secateur.protocol.query import (
    DescribeStatement,
    ReadSystemTable,
    StatementDescription,
    StatementEntry,
)
from secateur.protocol.recovery import (
    AskToReturn,
)
from secateur.storage.log.disk import Disk
from secateur.storage.member_store import MemberStore
from secateur.wire import Handled, PeerInfo, Reply, Request, decode_table

__all__ = ["Member"]

_log = logging.getLogger(__name__)


class Member:
    """One member. Made and used on one event loop; :meth:`start` lets the cluster know of it.

    Args:
        member_id: Its id.
        settings: The settings of the cluster.
        controller_address: ``host:port`` of the controller, which it joins at :meth:`start`.
        on_given_up: Called on the event loop when the cluster has gone on without this member: it answers nothing any
            more, and has to be stopped.
        own_address: Where it listens.
        disk: Its disk, for a cluster with a data directory.

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
        self._server = listening(self, MEMBER_OPERATIONS, settings, own_address, on_gone=self._gone)
        self._background = BackgroundTasks()
        threads = self._threads = MemberThreads(member_id, settings)
        self._store = MemberStore(limits=limits)
        self._persistence = None if disk is None else Persistence(member_id, settings, disk, self._store)
        self._log = None if self._persistence is None else self._persistence.log
        self._results = OpenResults(settings.result_bytes_max)
        waiting_max = settings.max_waiting_statements
        self._admissions = Admissions(
            long=_admission(member_id, settings.max_running_statements, waiting_max),
            quick=_admission(member_id, QUICK_THREADS_MAX, waiting_max),
        )
        self._statement_log = StatementLog(
            member_id,
            self._admissions.is_waiting,
            waited_s=self._admissions.waited_s,
            slow_s=settings.slow_statement_s,
            on_slow=SlowStatements(member_id, self._describe_statement, self._background.start).note,
        )
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
            self._store, self._places, self._replication, change_registry, self._admission, self._log
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
        range_changes = RangeChanges(self._store, self._adopt_ranges)
        self._range_leases = LoadLeases(
            TerminationProtocol(member_id, range_changes, member_ids, TwoPhaseKind.RANGES), self._peers
        )
        self._ranges = MemberRanges(
            self._store, self._places.latch, threads.changing, range_changes, self._range_leases
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
            spill_directory=_spill_directory(settings),
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
        statement_threads = StatementThreads(threads.long, threads.quick, threads.changing)
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
        self._key_reads = KeyReads(self._store, self._places, self._replication.acknowledgements.acknowledged)
        self._source_queries = SourceQueries(self._store, self._statements, self._patient)
        self._stepped = SteppedQueries(member_id, self._statements, self._peers, misses, self._admissions.long)
        self._changes = MemberChanges(
            self._store,
            self._statements,
            self._places,
            self._writes,
            self._loads,
            self._results,
            threads.changing,
            waiting_max,
        )
        self._coordinated_changes = MemberCoordinatedChanges(
            member_id, self._store, self._statements, self._places, self._loads, self._peers, threads.changing
        )
        self._stored_tables = StoredTables(
            self._store,
            self._places,
            self._replication,
            self._copies,
            self._built_copies,
            self._ranges,
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
            self._range_leases,
            self._ranges,
            self._persistence,
            self._server.take_tokens,
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
            self._statements, self._snapshots, self._places.table, lambda: tuple(self._places.tables())
        )
        self._metadata = KnownMetadata(self._owners, self._places, self._statements)
        statement_handlers = StatementHandlers(
            self._counts,
            self._statement_log,
            self._results,
            self._statements,
            self._stepped,
            self._snapshots,
            self._key_reads,
            self._changes,
            self._coordinated_changes,
        )
        self.handlers = statement_handlers.handlers() | self._handlers()

    def _handlers(self) -> dict[OperationBase, Callable[[Request[Any]], Handled]]:
        leases_of = self._membership.leases_of
        stats = StoredStats(
            self._store,
            self._counts,
            self._jobs,
            self._results,
            self._memory_limit,
            self._admission,
            self._admissions,
        )
        return {
            Operation.HELLO: self._hello,
            Operation.READ_SNAPSHOT: self._snapshots.read,
            Operation.READ_CHANGES: self._change_feeds.read,
            Operation.BOUND_CHANGES: self._change_feeds.bound,
            Operation.CLOSE_SNAPSHOT: self._snapshots.close,
            Operation.SUBMIT_JOB: self._submit_job,
            Operation.RESOLVE_JOB: self._client_jobs.resolve,
            Operation.STOP_JOB: self._client_jobs.stop,
            Operation.RUN_ATTEMPT: self._run_job,
            Operation.HALT_ATTEMPT: self._attempts.cancel,
            Operation.KEEP_JOB: self._kept_jobs.keep,
            Operation.LIST_KEPT_JOBS: self._kept_jobs.versions,
            Operation.GET_KEPT_JOB: self._kept_jobs.get,
            Operation.GET_JOB_METRICS: self._send_job_metrics,
            Operation.GET_JOB_COUNTERS: self._live_metrics.counters,
            Operation.GET_JOB_RESULT: self._attempts.result,
            Operation.CLOSE_FOR_CHANGE: self._coordinated_changes.close,
            Operation.GET_RETURNED_ROWS: self._coordinated_changes.returned,
            Operation.WRITE_ROWS: self._writes.write,
            Operation.WRITE_COPY: self._replication.received.write_copy,
            Operation.GET_COPY_TAILS: self._replication.received.tails,
            Operation.TELL_SETTLED: self._replication.received.copies_settled,
            Operation.STAGE_ROWS: self._loads.stage,
            Operation.STAGE_COPY: self._loads.stage_copy,
            Operation.PREPARE_LOAD: self._loads.prepare,
            Operation.PUBLISH_PREPARED_LOAD: self._loads.publish,
            Operation.ABORT_STAGED_LOAD: self._loads.abort,
            Operation.GET_LOAD_OUTCOME: self._loads.outcome,
            Operation.GET_STAGED_LOADS: self._loads.under_way,
            Operation.HOLD_LOAD: lambda request: leases_of(request.message.kind).renew(request),
            Operation.STANDING_OF_LOAD: lambda request: leases_of(request.message.kind).standing(request),
            Operation.DECIDE_LOAD: self._membership.decide_load,
            Operation.SETTLE_LOAD: lambda request: leases_of(request.message.kind).settle(request),
            Operation.CREATE_STORED_TABLE: self._stored_tables.create,
            Operation.DROP_STORED_TABLE: self._stored_tables.drop,
            Operation.CLOSE_IF_UNUSED: self._loads.close_if_unused,
            Operation.ADOPT_VIEWS: self._membership.take_views,
            Operation.PREPARE_RANGES: self._ranges.prepare,
            Operation.COMMIT_RANGES: self._stored_tables.commit_ranges,
            Operation.ABORT_RANGES: self._ranges.abort,
            Operation.TAKE_TOPOLOGY: self._membership.take_topology,
            Operation.BEGIN_RETURN: self._membership.begin_return,
            Operation.GET_REPORT: lambda _: Reply(self._membership.report()),
            Operation.GET_OWNERS: self._metadata.topology,
            Operation.GET_OWNER_PAGES: self._metadata.owner_pages,
            Operation.GET_RANGES: self._metadata.ranges,
            Operation.CATCH_UP: self._stored_tables.catch_up,
            Operation.COPY_TABLE: self._copies.copy_table,
            Operation.ASK_FOR_PROMISE: self._membership.promise,
            Operation.GET_PLAN: self._metadata.plan,
            Operation.GET_STATEMENTS: self._statement_log.send,
            Operation.GET_MEMBER_STATS: stats.tell,
            Operation.BUILD_COPIES: self._built_copies.build,
            Operation.OPEN_COPIES: self._built_copies.open,
            Operation.FETCH_COPY: self._built_copies.fetch,
            Operation.COUNT_COPIES: self._built_copies.count,
            Operation.FORGET_COPIES: self._built_copies.forget,
            Operation.DROP_COPIES: self._built_copies.drop,
            Operation.DESCRIBE_CONNECTOR: self._external_reads.describe,
            Operation.LIST_EXTERNAL_PARTITIONS: self._external_reads.list_partitions,
            Operation.LOOK_AT_STATISTICS: MemberStatistics(self._store).summary,
        }

    async def start(self) -> None:
        """Listen, and join the cluster.

        Raises:
            OperationalError: The socket, the controller or the data directory is not to be had.
        """
        await self._open()
        if self._persistence is not None and (self._membership.record.version or self._membership.damage):
            # The controller starts anew as well, and wants reports of all members before it grants a lease to one.
            await self._membership.report_to_controller()
            self._background.start(self._lease.start(), f"member {self.member_id} waits for its lease")
            return
        at = self._address()
        joining = JoinRequest(at.id, at.host, at.port, at.node)
        joined = (await self._patient.request(joining)).message
        self._membership.know_views(joined.catalog_version, joined.views)
        if not self._server.knows_tokens:  # the record may have told it of newer ones meanwhile
            self._server.take_tokens(joined.tokens)
        await self._lease.start()

    async def _open(self) -> None:
        """Have what is on disk, and listen."""
        _configure_duckdb(self._settings)
        if self._persistence is not None:
            await self._recover(self._persistence)
        await self._server.start()
        self._background.start(self._turn(), f"member {self.member_id} turns")
        folds = BackgroundFolds(self._store.folds, self._places, self._threads.changing)
        self._background.start(folds.run(), f"member {self.member_id} merges recent changes")

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
        await self._kept_jobs.forget()  # others may have forgotten since what is here
        asked = AskToReturn(self._settings.cluster_id, self._address())
        if not (await self._controller.request(asked)).message.is_member:
            return False
        await self._lease.resume()
        return True

    async def _recover(self, persistence: Persistence) -> None:
        """Have what is on disk; if that is damaged, the cluster goes on without it."""
        try:
            await persistence.begin(self._replication, self._change_registry)
        except DamagedDirectoryError as error:
            _log.exception("member %s cannot use its data directory", self.member_id)
            self._membership.damage = str(error)
            return
        for table in self._store.tables():
            self._places.add_table(table)
        await self._kept_jobs.recover()
        if persistence.record is not None:
            self._membership.recovered(persistence.record)

    async def stop(self) -> None:
        """Drop every connection and everything that runs, without a word to the others."""
        await self._server.stop()
        await self._background.close()
        await self._membership.close()
        await self._lease.stop()
        self._results.close_all()
        await self._attempts.close()
        await self._jobs.close()
        await self._leases.stop()
        await self._range_leases.stop()
        await self._replication.close()
        await self._peers.close()
        await self._controller.close()
        if self._log is not None:
            await self._log.close()
        await self._threads.end()

    def handle(self, request: Request[Any]) -> Handled:
        """Answer a request; see :class:`secateur.wire.Handler`."""
        if not request.operation.is_housekeeping:
            self._counts.frames_received += 1
        handler, rights = self.handlers[request.operation], request.peer.rights
        return handler(request) if rights is None else self._table_checks.handle(request, rights, handler)

    def notify(self, request: Request[Any]) -> None:
        """Take a one-way message: those of jobs."""
        self._counts.frames_received += 1
        if request.operation is Operation.START_RUN:
            self._counts.executions += 1
        self._jobs.on_message(request.message, request.payload)

    def _hello(self, request: Request[Hello]) -> Reply[Greeting]:
        self._results.connected(request.peer)
        return Reply(Greeting(member=self.member_id))

    def _connection_lost(self, member_id: str, error: Error) -> None:
        self._jobs.connection_lost(member_id, error)

    def _gone(self, peer: PeerInfo) -> None:
        self._results.gone(peer)
        self._statement_log.close(peer)
        self._leases.connection_gone(peer.connection_id)
        self._range_leases.connection_gone(peer.connection_id)

    def _submit_job(self, request: Request[SubmitJob]) -> Handled:
        self._counts.executions += 1
        return self._client_jobs.submit(request)

    def _run_job(self, request: Request[RunAttempt]) -> Handled:
        self._counts.executions += 1
        return self._attempts.run(request)

    async def _send_job_metrics(self, request: Request[GetJobMetrics]) -> Reply[JobMetrics]:
        job_id = request.message.job
        job = self._attempts.running(job_id) or self._client_jobs.running(job_id)
        return Reply(JobMetrics([] if job is None else await self._live_metrics.of(job)))

    async def _plan_query(self, query: SourceQuery) -> PlannedQuery:
        return await self._source_queries.planned(query)

    async def _fetch_system_table(self, name: str) -> pa.Table:
        answer = await self._patient.request(ReadSystemTable(name))
        return decode_table(answer.payload, ranges=False)

    async def _fetch_external_table(self, table_id: int) -> ExternalTable:
        return (await self._patient.request(GetExternalTable(table_id))).message.table

    async def _describe_statement(self, entry: StatementEntry) -> StatementDescription:
        return (await self._controller.request(DescribeStatement(entry))).message

    async def _report_out_of_sync(self, group: str, partition: int, member: str) -> None:
        await self._patient.request(ReportCopyLost(group, partition, member))

    def _address(self) -> MemberAddress:
        at = self._own_address
        return MemberAddress(self.member_id, at.advertised_host, self._server.port, at.node)

    def _adopt_ranges(self, table: TableDef) -> None:
        """The ranges of a table have changed."""
        self._places.add_table(table)
        self._replication.forget_dropped_ranges(table)
        self._built_copies.forget_dropped_ranges(table)

    async def _turn(self) -> None:
        """Show that the event loop turns, and do what has to be done now and then."""
        while True:
            try:
                self._lease.turned(self._store.rows_written(), self._stepped.misses.by_table())
                self._loads.drop_abandoned()
                self._snapshots.drop_ended()
            except Exception:  # the loop must go on: without it the cluster takes this member for lost
                _log.exception("member %s could not look after its loads", self.member_id)
            await asyncio.sleep(self._settings.lease_times.interval_s)

    def _wants_report(self) -> None:
        self._membership.report_soon()

    def _owners(self) -> Topology:
        return self._membership.topology


def _admission(member_id: str, running_max: int, waiting_max: int) -> StatementAdmission:
    return StatementAdmission(running_max, waiting_max, full_member(member_id, running_max))


def _spill_directory(settings: ClusterSettings) -> Path | None:
    return None if settings.spill_directory is None else Path(settings.spill_directory)


def _configure_duckdb(settings: ClusterSettings) -> None:
    slots, memory = settings.engine_limits.duckdb_slots_max, kernel_memory_of(settings)
    spill_directory = _spill_directory(settings)
    if memory is None and spill_directory is None and slots == EngineLimits().duckdb_slots_max:
        return
    # Imported here: a member without a limit loads DuckDB at the first statement that needs it.
    from secateur.engine.kernels.duckdb.kernel import configure

    configure(memory_limit_bytes=memory, spill_directory=spill_directory, slots_kept_max=slots)
