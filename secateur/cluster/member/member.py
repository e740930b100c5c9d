"""A member: its socket, its partitions, and the parts that answer each request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from secateur.cluster.background_tasks import BackgroundTasks
from secateur.cluster.controller_requests import ControllerRequests
from secateur.cluster.lease import Promises
from secateur.cluster.load_leases import LoadLeases
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
from secateur.cluster.member.job_writes import JobWrites
from secateur.cluster.member.jobs import MemberJobs
from secateur.cluster.member.kept_jobs import KeptJobsOfMember
from secateur.cluster.member.key_reads import KeyReads
from secateur.cluster.member.lease_keeper import LeaseKeeper
from secateur.cluster.member.live_metrics import LiveMetrics
from secateur.cluster.member.loads import MemberLoads
from secateur.cluster.member.memory_admission import (
    STAGED_FACTOR,
    MemoryAdmission,
    kernel_memory_of,
    memory_limit_of,
)
from secateur.cluster.member.open_results import OpenResults
from secateur.cluster.member.persistence import Persistence
from secateur.cluster.member.query_steps import SteppedQueries
from secateur.cluster.member.ranges import MemberRanges, RangeChanges, resolved_table
from secateur.cluster.member.replication import Replication
from secateur.cluster.member.scattered_statements import ScatteredStatements
from secateur.cluster.member.snapshots import MemberSnapshots
from secateur.cluster.member.source_queries import SourceQueries
from secateur.cluster.member.statement_admission import StatementAdmission
from secateur.cluster.member.statement_log import StatementLog
from secateur.cluster.member.statements import Admissions, StatementRunner, StatementThreads
from secateur.cluster.member.statistics import MemberStatistics
from secateur.cluster.member.table_directory import TableDirectory
from secateur.cluster.member.writes import MemberWrites
from secateur.cluster.owner_pages import owner_pages
from secateur.cluster.peers import Peers
from secateur.cluster.plan_source import PlanSource
from secateur.cluster.process_address import LOOPBACK, ProcessAddress
from secateur.cluster.range_pages import range_pages
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import listening, peer_at
from secateur.cluster.termination_protocol import TerminationProtocol
from secateur.cluster.threads_end import threads_end
from secateur.dag.source_query import SourceQuery
from secateur.engine.kernels.fragment import run
from secateur.engine.runtime.elastic_threads import ElasticThreads
from secateur.engine.runtime.runtime import JobRuntime
from secateur.engine.runtime.services import MemberServices
from secateur.engine.sql.planned_query import PlannedQuery
from secateur.engine_limits import EngineLimits
from secateur.errors import DamagedDirectoryError, Error, ProtocolError, TopologyChangedError, UnknownTableError
from secateur.partitioning.tables.external_table import ExternalTable
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.copies_gained import gains_copies
from secateur.partitioning.topology.topology import MemberAddress, Topology
from secateur.protocol.catalog import (
    AdoptViews,
    CatchUp,
    CommitRanges,
    CreateStoredTable,
    DropStoredTable,
    GetOwnerPages,
    GetOwners,
    GetRanges,
    OwnerPages,
    RangePages,
    TakeTopology,
    TopologyKnown,
)
from secateur.protocol.changes import (
    ChangeOnePartition,
    DecideLoad,
    LoadVerdict,
    StageChange,
    TwoPhaseKind,
    WorkOutChange,
)
from secateur.protocol.codec import decode
from secateur.protocol.external_tables import GetExternalTable
from secateur.protocol.hello import Greeting, Hello
from secateur.protocol.jobs import GetJobMetrics, JobMetrics, RunAttempt, SubmitJob
from secateur.protocol.key_value import GetRows
from secateur.protocol.membership import (
    AskForPromise,
    GetMemberStats,
    JoinRequest,
    LeaseAnswer,
    MemberStats,
    ReportCopyLost,
    StoredTable,
)
from secateur.protocol.message import Acknowledged, Role
from secateur.protocol.operation import OperationBase
from secateur.protocol.operations import MEMBER_OPERATIONS, Operation
from secateur.protocol.query import (
    CloseResult,
    Execute,
    ExecuteFirstStage,
    ExecutePart,
    GetPlan,
    KillRunningStatement,
    PlanAnswer,
    Profile,
    ReadSystemTable,
)
from secateur.protocol.recovery import (
    AskToReturn,
    BeginReturn,
    ClusterRecord,
    HeldTable,
    MemberReport,
    ReportToController,
)
from secateur.protocol.snapshots import OpenSnapshot
from secateur.protocol.tokens import KnownTokens
from secateur.storage.log.disk import Disk
from secateur.storage.member_store import MemberStore
from secateur.storage.read_lease import lease_clock_s
from secateur.wire import Handled, PeerInfo, Reply, Request, decode_table

__all__ = ["Member"]

_log = logging.getLogger(__name__)

_QUICK_THREADS_MAX: Final = 16
_CHANGING_THREADS_MAX: Final = 8
"""Calls that turn out to be long count as well."""


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

    Attributes:
        record: The newest record of the cluster, which it keeps for the controller; of version 0 before the first.

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
        self._topology = Topology(0, (), {})
        self._tables: dict[str, TableDef] = {}
        self._views_version = 0
        self.record = ClusterRecord(0, 0, self._topology, b"")
        self._is_reporting = False
        self._has_old_builds = False
        self._damage = ""
        self._frames_received = 0
        self._executions = 0
        self._controller = peer_at(host, int(port), settings, name=member_id, role=Role.MEMBER)
        self._patient = ControllerRequests(self._controller)
        self._peers = Peers(member_id, Role.MEMBER, settings, self._connection_lost)
        self._server = listening(self, MEMBER_OPERATIONS, settings, own_address, on_gone=self._gone)
        self._background = BackgroundTasks()
        # Long kernel calls wait for each other. Short ones, and what loads and changes do while writes wait for them,
        # have threads of their own.
        kernel = f"secateur-{member_id}-kernel"
        self._executor = ThreadPoolExecutor(settings.kernel_threads, thread_name_prefix=kernel)
        self._quick = ElasticThreads(f"{kernel}-quick", settings.kernel_threads, _QUICK_THREADS_MAX)
        self._changing = ElasticThreads(f"{kernel}-change", settings.kernel_threads, _CHANGING_THREADS_MAX)
        self._store = MemberStore(limits=limits)
        self._persistence = None if disk is None else Persistence(member_id, settings, disk, self._store)
        self._log = None if self._persistence is None else self._persistence.log
        self._results = OpenResults(settings.result_bytes_max)
        waiting_max = settings.max_waiting_statements
        self._admissions = Admissions(
            long=StatementAdmission(member_id, settings.max_running_statements, waiting_max),
            quick=StatementAdmission(member_id, _QUICK_THREADS_MAX, waiting_max),
        )
        self._statement_log = StatementLog(member_id, self._admissions.is_waiting)
        self._places = TableDirectory(member_id, self._store.lease, limits)
        self._copies = MemberCopies(self._store, self._peers)
        self._promises = Promises(settings.lease_times)
        self._lease = LeaseKeeper(
            member_id, settings, controller_address, self._store.lease, on_given_up, self._report_soon
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
            member_id, self._store, self._peers, self._replication, change_registry, self._changing, self._log
        )
        self._memory_limit = memory_limit_of(settings)
        self._admission = MemoryAdmission(
            self._memory_limit - (kernel_memory_of(settings) or 0),
            lambda: self._store.table_bytes,
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
            self._changing,
            self._admission,
            self._log,
            abandoned_after_s=settings.staged_load_idle_s,
        )
        range_changes = RangeChanges(self._store, self._adopt_table)
        self._range_leases = LoadLeases(
            TerminationProtocol(member_id, range_changes, member_ids, TwoPhaseKind.RANGES), self._peers
        )
        self._ranges = MemberRanges(self._store, self._places.latch, self._changing, range_changes, self._range_leases)

        services = MemberServices(
            self._store,
            run,
            self._executor,
            table=self._table,
            write_rows=JobWrites(member_id, self._writes, self._peers, self._patient, self._table, self._owners),
            acknowledged=self._replication.acknowledged,
            plan_query=self._plan_query,
            allow_code=accepts_code,
            quick_executor=self._quick,
            spill_directory=_spill_directory(settings),
            external_directories=tuple(map(Path, settings.external_directories)),
            limits=limits,
            gathered_bytes_max=settings.gathered_bytes_max,
        )
        self._jobs = JobRuntime(member_id, services, self._peers)
        self._client_jobs = MemberJobs(self._jobs, self._owners, allow_code=accepts_code)
        self._attempts = MemberAttempts(self._jobs, self._patient, self._owners, allow_code=accepts_code)
        self._kept_jobs = KeptJobsOfMember()
        self._live_metrics = LiveMetrics(self._jobs, self._peers)

        self._external_reads = ExternalReads(member_id, self._jobs, self._quick, self._fetch_external_table)
        plans = PlanSource(member_id, self._controller, self._peers, member_ids, settings.member_silence_s)
        misses = EstimateMisses(limits.estimate_miss_factor)
        threads = StatementThreads(self._executor, self._quick, self._changing)
        self._statements = StatementRunner(
            member_id,
            self._store,
            self._jobs,
            misses,
            threads,
            plans.fetch,
            self._fetch_system_table,
            self._external_reads,
            self._results,
            self._admissions,
            ScatteredStatements(member_id, self._store, self._peers, self._quick, self._replication.acknowledged),
            settings.plan_cache_max,
            lambda: self._lease.statistics_version,
            self._replication.acknowledged,
        )
        self._change_feeds = MemberChangeFeeds(
            self._store, self._places, self._replication.last, self._replication.acknowledged
        )
        self._snapshots = MemberSnapshots(
            self._store,
            self._statements,
            self._results,
            self._admissions,
            threads,
            self._replication.acknowledged,
            self._replication.last,
        )
        self._key_reads = KeyReads(self._store, self._places, self._replication.acknowledged)
        self._source_queries = SourceQueries(self._store, self._statements, self._patient)
        self._stepped = SteppedQueries(member_id, self._statements, self._peers, misses, self._admissions.long)
        self._changes = MemberChanges(
            self._store, self._statements, self._places, self._writes, self._loads, self._results, self._changing
        )
        self._coordinated_changes = MemberCoordinatedChanges(
            member_id, self._store, self._statements, self._places, self._loads, self._peers, self._changing
        )
        self._dropped_meanwhile: list[set[int]] = []  # for each table that is being created, the ids dropped since
        self.handlers = self._handlers()

    def _handlers(self) -> dict[OperationBase, Callable[[Request[Any]], Handled]]:
        return {
            Operation.HELLO: self._hello,
            Operation.EXECUTE: self._execute,
            Operation.EXECUTE_PART: self._execute_part,
            Operation.EXECUTE_FIRST_STAGE: self._execute_first_stage,
            Operation.PROFILE: self._profile,
            Operation.NEXT_ROWS: lambda request: self._statement_log.next(request, self._results.next),
            Operation.CLOSE_RESULT: self._close_result,
            Operation.GET_ROWS: self._get_rows,
            Operation.OPEN_SNAPSHOT: self._open_snapshot,
            Operation.READ_SNAPSHOT: self._snapshots.read,
            Operation.READ_CHANGES: self._change_feeds.read,
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
            Operation.CHANGE_ONE_PARTITION: self._change,
            Operation.STAGE_CHANGE: self._stage_change,
            Operation.CLOSE_FOR_CHANGE: self._coordinated_changes.close,
            Operation.WORK_OUT_CHANGE: self._work_out_change,
            Operation.GET_RETURNED_ROWS: self._coordinated_changes.returned,
            Operation.WRITE_ROWS: self._writes.write,
            Operation.WRITE_COPY: self._replication.write_copy,
            Operation.GET_COPY_TAILS: self._replication.tails,
            Operation.TELL_SETTLED: self._replication.copies_settled,
            Operation.STAGE_ROWS: self._loads.stage,
            Operation.STAGE_COPY: self._loads.stage_copy,
            Operation.PREPARE_LOAD: self._loads.prepare,
            Operation.PUBLISH_PREPARED_LOAD: self._loads.publish,
            Operation.ABORT_STAGED_LOAD: self._loads.abort,
            Operation.GET_LOAD_OUTCOME: self._loads.outcome,
            Operation.GET_STAGED_LOADS: self._loads.under_way,
            Operation.HOLD_LOAD: lambda request: self._leases_of(request.message.kind).renew(request),
            Operation.STANDING_OF_LOAD: lambda request: self._leases_of(request.message.kind).standing(request),
            Operation.DECIDE_LOAD: self._decide_load,
            Operation.SETTLE_LOAD: lambda request: self._leases_of(request.message.kind).settle(request),
            Operation.CREATE_STORED_TABLE: self._create_table,
            Operation.DROP_STORED_TABLE: self._drop_table,
            Operation.ADOPT_VIEWS: self._take_views,
            Operation.PREPARE_RANGES: self._ranges.prepare,
            Operation.COMMIT_RANGES: self._commit_ranges,
            Operation.ABORT_RANGES: self._ranges.abort,
            Operation.TAKE_TOPOLOGY: self._take_topology,
            Operation.BEGIN_RETURN: self._begin_return,
            Operation.GET_REPORT: lambda _: Reply(self._report()),
            Operation.GET_OWNERS: self._send_topology,
            Operation.GET_OWNER_PAGES: self._send_owner_pages,
            Operation.GET_RANGES: self._send_ranges,
            Operation.CATCH_UP: self._catch_up,
            Operation.COPY_TABLE: self._copies.copy_table,
            Operation.ASK_FOR_PROMISE: self._promise,
            Operation.GET_PLAN: self._send_plan,
            Operation.GET_STATEMENTS: self._statement_log.send,
            Operation.KILL_STATEMENT: self._kill_statement,
            Operation.GET_MEMBER_STATS: self._stats,
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
        if self._persistence is not None and (self.record.version or self._damage):
            # The controller starts anew as well, and wants reports of all members before it grants a lease to one.
            await self._report_to_controller()
            self._background.start(self._lease.start(), f"member {self.member_id} waits for its lease")
            return
        at = self._address
        joining = JoinRequest(at.id, at.host, at.port, at.node)
        joined = (await self._patient.request(joining)).message
        self._know_views(joined.catalog_version, joined.views)
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
        folds = BackgroundFolds(self._store.folds, self._changing)
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
        asked = AskToReturn(self._settings.cluster_id, self._address)
        if not (await self._controller.request(asked)).message.is_member:
            return False
        await self._lease.resume()
        return True

    async def _begin_return(self, request: Request[BeginReturn]) -> Reply[MemberReport]:
        """The controller is about to let this member in again; of each table it says afterwards what is outdated."""
        topology = request.message.topology
        if self._replication.is_settling:
            await self._settle_loads(topology)
        answer = self._take(topology)
        if isinstance(answer, Awaitable):
            await answer
        await asyncio.gather(self._leases.settle_held(), self._range_leases.settle_held())
        return Reply(self._report())

    async def _recover(self, persistence: Persistence) -> None:
        """Have what is on disk; if that is damaged, the cluster goes on without it."""
        try:
            await persistence.begin(self._replication, self._change_registry)
        except DamagedDirectoryError as error:
            _log.exception("member %s cannot use its data directory", self.member_id)
            self._damage = str(error)
            return
        for table in self._store.tables():
            self._adopt_table(table)
        if persistence.record is not None:
            self.record = persistence.record
            self._know_tokens(persistence.record.state)

    async def stop(self) -> None:
        """Drop every connection and everything that runs, without a word to the others."""
        await self._server.stop()
        await self._background.close()
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
        await asyncio.gather(*(threads_end(threads) for threads in (self._executor, self._quick, self._changing)))

    def handle(self, request: Request[Any]) -> Handled:
        """Answer a request; see :class:`secateur.wire.Handler`."""
        if not request.operation.is_housekeeping:
            self._frames_received += 1
        return self.handlers[request.operation](request)

    def notify(self, request: Request[Any]) -> None:
        """Take a one-way message: those of jobs."""
        self._frames_received += 1
        if request.operation is Operation.START_RUN:
            self._executions += 1
        self._jobs.on_message(request.message, request.payload)

    def _hello(self, request: Request[Hello]) -> Reply[Greeting]:
        self._results.connected(request.peer)
        return Reply(Greeting(member=self.member_id))

    def _execute(self, request: Request[Execute]) -> Handled:
        self._executions += 1
        is_stepped = request.message.steps is not None
        return self._statement_log.execute(request, self._stepped.execute if is_stepped else self._statements.execute)

    def _execute_part(self, request: Request[ExecutePart]) -> Handled:
        self._executions += 1
        return self._statements.execute(request)

    def _execute_first_stage(self, request: Request[ExecuteFirstStage]) -> Handled:
        self._executions += 1
        return self._statements.run_first_stage(request)

    def _profile(self, request: Request[Profile]) -> Handled:
        self._executions += 1
        is_stepped = request.message.run.steps is not None
        return self._stepped.profile(request) if is_stepped else self._statements.profile(request)

    def _open_snapshot(self, request: Request[OpenSnapshot]) -> Handled:
        self._executions += 1
        return self._snapshots.open(request)

    def _get_rows(self, request: Request[GetRows]) -> Handled:
        self._executions += 1
        return self._key_reads.get(request)

    def _close_result(self, request: Request[CloseResult]) -> Reply[Acknowledged]:
        self._results.close(request.peer)
        self._statement_log.close(request.peer)
        return Reply(Acknowledged())

    def _kill_statement(self, request: Request[KillRunningStatement]) -> Reply[Acknowledged]:
        reader = self._statement_log.kill(request.message.number)
        if reader is not None:
            self._results.close(reader)
        return Reply(Acknowledged())

    def _connection_lost(self, member_id: str, error: Error) -> None:
        self._jobs.connection_lost(member_id, error)

    def _gone(self, peer: PeerInfo) -> None:
        self._results.gone(peer)
        self._statement_log.close(peer)
        self._leases.connection_gone(peer.connection_id)
        self._range_leases.connection_gone(peer.connection_id)

    def _change(self, request: Request[ChangeOnePartition]) -> Handled:
        self._executions += 1
        return self._statement_log.execute(request, self._changes.change)

    def _stage_change(self, request: Request[StageChange]) -> Handled:
        self._executions += 1
        return self._statement_log.execute(request, self._changes.stage)

    def _work_out_change(self, request: Request[WorkOutChange]) -> Handled:
        self._executions += 1
        return self._statement_log.execute(request, self._coordinated_changes.work_out)

    def _submit_job(self, request: Request[SubmitJob]) -> Handled:
        self._executions += 1
        return self._client_jobs.submit(request)

    def _run_job(self, request: Request[RunAttempt]) -> Handled:
        self._executions += 1
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

    async def _report_out_of_sync(self, group: str, partition: int, member: str) -> None:
        await self._patient.request(ReportCopyLost(group, partition, member))

    async def _create_table(self, request: Request[CreateStoredTable]) -> Reply[Acknowledged]:
        dropped: set[int] = set()
        self._dropped_meanwhile.append(dropped)
        try:
            table = await resolved_table(request.message.table, self._changing)
        finally:
            self._dropped_meanwhile = [other for other in self._dropped_meanwhile if other is not dropped]
        if table.table_id in dropped:
            raise TopologyChangedError(f"table {table.name} was dropped before it was there", table=table.name)
        self._store.create_table(table, request.message.partitions)
        self._adopt_table(table)
        return await self._recorded()

    async def _recorded(self) -> Reply[Acknowledged]:
        """Acknowledge a change of definitions once it is on disk."""
        if self._log is not None:
            await self._log.flushed()
        return Reply(Acknowledged())

    async def _catch_up(self, request: Request[CatchUp]) -> Reply[Acknowledged]:
        """Have a table that the other members have already; this member is about to join, or to return."""
        table = await resolved_table(request.message.table, self._changing)
        if self._store.find(table.table_id) is not None and not table.replicated:
            self._adopt_table(table)
            self._replication.take_over_again(table)
            self._built_copies.drop_outdated(table.table_id)
        ownership = None if table.replicated else self._topology.owners.get(table.scheme.affinity_group())
        last_owned = [] if ownership is None else ownership.partitions_of(self.member_id)
        await self._copies.catch_up(
            table, request.message.source, last_owned=last_owned, is_current=request.message.is_current
        )
        self._adopt_table(table)
        return await self._recorded()

    def _adopt_table(self, table: TableDef) -> None:
        self._tables[table.name.casefold()] = table
        self._places.add_table(table)

    async def _drop_table(self, request: Request[DropStoredTable]) -> Reply[Acknowledged]:
        table_id = request.message.table_id
        for dropped in self._dropped_meanwhile:
            dropped.add(table_id)
        self._store.drop_table(table_id)
        self._replication.forget(table_id)
        self._places.remove_table(table_id)
        self._tables = {name: table for name, table in self._tables.items() if table.table_id != table_id}
        return await self._recorded()

    async def _commit_ranges(self, request: Request[CommitRanges]) -> Reply[Acknowledged]:
        await self._ranges.commit(request)
        return await self._recorded()

    def _take_views(self, request: Request[AdoptViews]) -> Reply[Acknowledged]:
        self._know_views(request.message.catalog_version, request.message.views)
        return Reply(Acknowledged())

    def _know_views(self, catalog_version: int, views: list[int]) -> None:
        if catalog_version > self._views_version:
            self._views_version = catalog_version
            self._store.views = frozenset(views)

    def _know_tokens(self, state: bytes) -> None:
        """Accept the tokens of an encoded :class:`~secateur.protocol.recovery.ControllerState`."""
        if state:
            self._server.take_tokens(decode(state, KnownTokens).tokens)

    def _take_topology(self, request: Request[TakeTopology]) -> Handled:
        """Keep the record, and act on a newer topology once nothing is promised to a member that it leaves out."""
        self._keep(request.message)
        topology = request.message.topology
        return self._take(topology) if self._persistence is None else self._take_durably(topology, self._persistence)

    async def _take_durably(self, topology: Topology, persistence: Persistence) -> Reply[Acknowledged]:
        """As :meth:`_take_topology`, with the record on disk before anything follows from it."""
        if self.record.version:
            await persistence.keep(self.record)
        if self._replication.is_settling:
            await self._settle_loads(topology)
        answer = self._take(topology)
        return await answer if isinstance(answer, Awaitable) else answer

    async def _settle_loads(self, topology: Topology) -> None:
        """Have the members decide loads that were prepared before this one was started anew."""
        self._peers.update(topology)
        self._places.update(topology)
        prepared = {
            load.load_id: (load.table_id, self._places.latch(load.table_id)) for load in self._store.loads.prepared()
        }
        await self._leases.settle_prepared(prepared)

    def _take(self, topology: Topology) -> Reply[Acknowledged] | Awaitable[Reply[Acknowledged]]:
        gains = gains_copies(self._topology, topology, self.member_id)
        may_act_s = self._promises.heard(topology.version, topology.member_ids, lease_clock_s(), gains_copies=gains)
        wait_s = may_act_s - lease_clock_s()
        return self._act_on_later(topology, wait_s) if wait_s > 0 else self._act_on(topology)

    def _keep(self, told: TakeTopology) -> None:
        """Keep the record for a controller that starts anew.

        Raises:
            TopologyChangedError: It comes from a controller that another one has replaced.
        """
        before = self.record
        if told.version and told.epoch < before.epoch:
            raise TopologyChangedError(
                f"member {self.member_id} takes no topology of the controller of epoch {told.epoch}: that of epoch"
                f" {before.epoch} has taken over",
                superseded=True,
            )
        if not told.version or (before.epoch, before.version) > (told.epoch, told.version):
            return
        state = before.state if told.state is None else told.state
        if not state:
            raise ProtocolError(f"member {self.member_id} has no record yet: it has to be sent as a whole")
        self.record = ClusterRecord(told.epoch, told.version, told.topology, state)
        if told.state is not None:
            self._know_tokens(told.state)
        if told.epoch > before.epoch:
            self._leases.controller_replaced()
            self._range_leases.controller_replaced()
            self._ranges.controller_replaced()
            self._has_old_builds = True

    @property
    def _address(self) -> MemberAddress:
        at = self._own_address
        return MemberAddress(self.member_id, at.advertised_host, self._server.port, at.node)

    def _report(self) -> MemberReport:
        in_doubt = {load.table_id for load in self._store.loads.prepared()}
        return MemberReport(
            address=self._address,
            record=self.record,
            holds_lease=self._store.lease.is_valid,
            tables=tuple(
                HeldTable(
                    table.table_id,
                    table.version,
                    self._store.data_version(table.table_id).published,
                    table.table_id in in_doubt,
                )
                for table in self._store.tables()
            ),
            views_version=self._views_version,
            range_changes_in_doubt=self._range_leases.held,
            damage=self._damage,
            cut_bytes=0 if self._persistence is None else self._persistence.cut_bytes,
        )

    def _report_soon(self) -> None:
        if not self._is_reporting:
            self._is_reporting = True
            self._background.start(self._report_to_controller(), f"member {self.member_id} reports")

    async def _report_to_controller(self) -> None:
        try:
            await self._controller.request(ReportToController(self._settings.cluster_id, self._report()))
        except Error as error:
            _log.info("member %s could not report to the controller: %s", self.member_id, error)  # it will ask again
        finally:
            self._is_reporting = False

    async def _act_on_later(self, topology: Topology, wait_s: float) -> Reply[Acknowledged]:
        await asyncio.sleep(wait_s)
        return self._act_on(topology)

    def _act_on(self, topology: Topology) -> Reply[Acknowledged]:
        if topology.version > self._topology.version:
            for lost in set(self._topology.member_ids) - set(topology.member_ids):
                self._jobs.member_lost(lost)
            self._topology = topology
            self._peers.update(topology)
            self._statements.update(topology)
            self._places.update(topology)
            self._replication.update(topology)
            self._built_copies.update(topology)
            self._lease.topology_changed(topology)
        if self._has_old_builds and topology.version >= self.record.topology.version:
            # Copies that the controller before had built, or let build, and had not made owners: nobody knows of them.
            self._has_old_builds = False
            self._built_copies.forget_outdated()
            for table in self._places.tables():
                if not table.replicated:
                    self._built_copies.drop_outdated(table.table_id)
        return Reply(Acknowledged())

    def _send_topology(self, _: Request[GetOwners]) -> Reply[TopologyKnown]:
        """Send the owners of this member's newest topology, for clients that cannot reach the controller."""
        return Reply(TopologyKnown(self._topology.outline))

    def _send_owner_pages(self, request: Request[GetOwnerPages]) -> Reply[OwnerPages]:
        """Send owners of a large group, for clients that cannot reach the controller."""
        return Reply(owner_pages(self._topology, request.message))

    def _send_ranges(self, request: Request[GetRanges]) -> Reply[RangePages]:
        """Send ranges of a table, for clients that cannot reach the controller."""
        return Reply(range_pages(self._tables.values(), request.message))

    def _send_plan(self, request: Request[GetPlan]) -> Reply[PlanAnswer]:
        """A plan that this member has run, for another one that has not and cannot reach the controller."""
        return Reply(PlanAnswer(self._statements.kept_plan(request.message.plan_id).encoded()))

    def _decide_load(self, request: Request[DecideLoad]) -> Reply[LoadVerdict]:
        if not self._places.member_ids():
            raise TopologyChangedError(f"member {self.member_id} has just been started, and does not know the others")
        return self._leases_of(request.message.kind).decide(request)

    def _leases_of(self, kind: TwoPhaseKind) -> LoadLeases:
        return self._leases if kind is TwoPhaseKind.LOAD else self._range_leases

    def _promise(self, request: Request[AskForPromise]) -> Reply[LeaseAnswer]:
        """Another member cannot reach the controller, and asks for a lease; see :mod:`secateur.cluster.lease`."""
        answer = self._promises.asked(request.message.member, request.message.topology_version, lease_clock_s())
        return Reply(LeaseAnswer(answer.value))

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

    def _stats(self, _: Request[GetMemberStats]) -> Reply[MemberStats]:
        tables = [
            StoredTable(
                stats.table_id,
                dict(stats.partition_rows),
                dict(stats.partition_bytes),
                stats.nbytes,
                stats.partitions,
            )
            for stats in self._store.stats()
        ]
        return Reply(
            MemberStats(
                tables=tables,
                executions=self._executions,
                frames_received=self._frames_received,
                running_jobs=self._jobs.running_executions,
                open_results=self._results.count,
                open_result_bytes=self._results.held_bytes,
                memory_limit=self._memory_limit,
                memory_used=self._admission.used_bytes,
                running_statements=self._admissions.long.running + self._admissions.quick.running,
                waiting_statements=self._admissions.long.waiting + self._admissions.quick.waiting,
                refused_statements=self._admissions.long.refused + self._admissions.quick.refused,
            )
        )

    def _owners(self) -> Topology:
        return self._topology

    def _table(self, name: str) -> TableDef:
        table = self._tables.get(name.casefold())
        if table is None:
            raise UnknownTableError(f"table {name!r} does not exist on member {self.member_id}", table=name)
        return table


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
