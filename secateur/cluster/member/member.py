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
from typing import Any

from secateur.cluster.member.admission.memory_admission import kernel_memory_of
from secateur.cluster.member.admission.tenant_gate import TenantGate
from secateur.cluster.member.changes.writes import ManyWrites
from secateur.cluster.member.member_parts import MemberParts, spill_directory
from secateur.cluster.member.monitoring.stored_stats import StoredStats
from secateur.cluster.member.monitoring.tenant_ledger import TenantLedger
from secateur.cluster.member.persistence.persistence import Persistence
from secateur.cluster.member.statement_handlers import StatementHandlers
from secateur.cluster.member.tables.background_folds import BackgroundFolds
from secateur.cluster.member.tables.stored_tables import MemberStatistics
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import LOOPBACK, ProcessAddress
from secateur.engine_limits import EngineLimits
from secateur.errors import DamagedDirectoryError
from secateur.protocol.hello import Greeting, Hello
from secateur.protocol.jobs import GetJobMetrics, JobMetrics, RunAttempt, SubmitJob
from secateur.protocol.membership import JoinRequest
from secateur.protocol.message import Role
from secateur.protocol.operations import Operation, OperationBase
from secateur.protocol.recovery import AskToReturn
from secateur.storage.log.disk import Disk
from secateur.wire import Handled, PeerInfo, Reply, Request

_log = logging.getLogger(__name__)


class Member(MemberParts):
    """One member. Made and used on one event loop; :meth:`start` lets the cluster know of it.

    It is made as :class:`~secateur.cluster.member.member_parts.MemberParts`.
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
        super().__init__(member_id, settings, controller_address, on_given_up, own_address, disk)
        self._stopping: asyncio.Task[None] | None = None
        statement_handlers = self._statement_handlers = StatementHandlers(
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
            self._statement_log.totals,
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
            Operation.GET_JOB_LOGS: lambda request: Reply(self._jobs.logs.lines(request.message.job)),
            Operation.CLOSE_FOR_CHANGE: self._coordinated_changes.close,
            Operation.GET_RETURNED_ROWS: self._coordinated_changes.returned,
            Operation.WRITE_ROWS: self._writes.write,
            Operation.WRITE_MANY: ManyWrites(self._writes).write,
            Operation.WRITE_COPY: self._replication.received.write_copy,
            Operation.WRITE_COPIES: self._replication.received.write_copies,
            Operation.GET_COPY_TAILS: self._replication.received.tails,
            Operation.TELL_SETTLED: self._replication.received.copies_settled,
            Operation.STAGE_ROWS: self._loads.stage,
            Operation.STAGE_COPY: self._loads.stage_copy,
            Operation.PREPARE_LOAD: self._loads.prepare,
            Operation.PUBLISH_PREPARED_LOAD: self._loads.publish,
            Operation.PUBLISHED_EVERYWHERE: self._replication.publications.told,
            Operation.GET_PUBLICATION: self._loads.last_publication,
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
            Operation.PREPARE_ALTER: self._alterations.prepare,
            Operation.COMMIT_ALTER: self._stored_tables.commit_alter,
            Operation.ABORT_ALTER: self._alterations.abort,
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
            Operation.GET_HOT_KEYS: self._hot_keys.send,
            Operation.GET_TENANT_HOURS: self._statement_log.send_tenants,
            Operation.GET_MEMBER_STATS: stats.tell,
            Operation.GET_VITALS: stats.tell_vitals,
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
            self._background.start(self._load_kernels(), f"member {self.member_id} loads its kernels")
            return
        at = self._address()
        joining = JoinRequest(at.id, at.host, at.port, at.node)
        joined = (await self._patient.request(joining)).message
        self._membership.know_views(joined.catalog_version, joined.views)
        if not self._server.knows_tokens:  # the record may have told it of newer ones meanwhile
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
        self._results.close_all()
        await self._attempts.close()
        await self._jobs.close()
        await self._leases.stop()
        await self._alter_leases.stop()
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
        return self._checked(request) if self._tenants is None else self._tenants.handle(request, self._checked)

    def _checked(self, request: Request[Any]) -> Handled:
        handler, rights = self.handlers[request.operation], request.peer.rights
        return handler(request) if rights is None else self._table_checks.handle(request, rights, handler)

    def answered(self, frame: bytes, peer: PeerInfo) -> bytes | None:
        """The frame that answers a short request of a peer; None where it is to be handled as any other."""
        if self._tenants is None:
            return self._statement_handlers.answered(frame, peer)
        account = self._accounts.of(peer)
        if not account.is_free and not self._tenants.may_answer(account):
            return None
        return self._statement_handlers.answered(frame, peer, account)

    def notify(self, request: Request[Any]) -> None:
        """Take a one-way message: those of jobs."""
        self._counts.frames_received += 1
        if request.operation is Operation.START_RUN:
            self._counts.executions += 1
        self._jobs.on_message(request.message, request.payload)

    def _hello(self, request: Request[Hello]) -> Reply[Greeting]:
        self._results.connected(request.peer)
        if request.peer.role is Role.CLIENT:
            self._accounts.connected(request.peer)
            if request.peer.tenant and self._tenants is None:  # the gate is there from the first tenant on
                self._tenants = TenantGate(self._accounts, self._admissions, self._results)
                self._statement_log.ledger = TenantLedger(self._accounts)
        return Reply(Greeting(member=self.member_id))

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

    async def _turn(self) -> None:
        """Show that the event loop turns, and do what has to be done now and then."""
        while True:
            try:
                self._stepped.misses.forget_dropped(lambda table_id: self._store.find(table_id) is not None)
                self._lease.turned(self._store.rows_written(), self._stepped.misses.by_table())
                self._loads.drop_abandoned()
                self._snapshots.drop_ended()
                if self._statement_log.ledger is not None:
                    self._statement_log.ledger.turned()
            except Exception:  # the loop must go on: without it the cluster takes this member for lost
                _log.exception("member %s could not look after its loads", self.member_id)
            await asyncio.sleep(self._settings.lease_times.interval_s)


def _configure_duckdb(settings: ClusterSettings) -> None:
    slots, memory = settings.engine_limits.duckdb_slots_max, kernel_memory_of(settings)
    spill = spill_directory(settings)
    if memory is None and spill is None and slots == EngineLimits().duckdb_slots_max:
        return
    # Imported here: a member without a limit loads DuckDB at the first statement that needs it.
    from secateur.engine.kernels.duckdb.kernel import configure

    configure(memory_limit_bytes=memory, spill_directory=spill, slots_kept_max=slots)
