"""A member: the socket, the partitions behind it, and who answers which request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from secateur.cluster.callers import MEMBER_CALLERS, NOTICE_CALLERS, check_caller
from secateur.cluster.lease import Promises
from secateur.cluster.load_leases import LoadLeases
from secateur.cluster.member.attempts import MemberAttempts
from secateur.cluster.member.change_registry import ChangeRegistry
from secateur.cluster.member.changes import MemberChanges
from secateur.cluster.member.copies import MemberCopies
from secateur.cluster.member.job_writes import JobWrites
from secateur.cluster.member.jobs import MemberJobs
from secateur.cluster.member.lease_keeper import LeaseKeeper
from secateur.cluster.member.live_metrics import LiveMetrics
from secateur.cluster.member.loads import MemberLoads
from secateur.cluster.member.open_results import OpenResults
from secateur.cluster.member.ranges import MemberRanges, RangeChanges
from secateur.cluster.member.replication import Replication
from secateur.cluster.member.statement_log import StatementLog
from secateur.cluster.member.statements import StatementRunner, StatementThreads
from secateur.cluster.member.statistics import MemberStatistics
from secateur.cluster.member.table_directory import TableDirectory
from secateur.cluster.member.whole_changes import MemberCoordinatedChanges
from secateur.cluster.member.writes import MemberWrites
from secateur.cluster.peers import Peers
from secateur.cluster.plan_source import PlanSource
from secateur.cluster.request_args import MEMBER_ARGS, check_args
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import listening, peer_at
from secateur.cluster.threads_end import threads_end
from secateur.engine.kernels.fragment import run
from secateur.engine.runtime.elastic_threads import ElasticThreads
from secateur.engine.runtime.runtime import JobRuntime
from secateur.engine.runtime.services import EngineLimits, MemberServices
from secateur.errors import ProtocolError, UnknownTableError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.storage.member_store import MemberStore
from secateur.storage.read_lease import lease_clock_s
from secateur.wire import PeerInfo, Reply, Request, Role, decode_table, pack, unpack

__all__ = ["Member"]

_HOUSEKEEPING: Final = frozenset(
    {
        "hello",
        "create_table",
        "drop_table",
        "views",
        "copies_tails",
        "copies_settled",
        "topology",
        "change_close",
        "load_prepare",
        "load_publish",
        "load_abort",
        "load_hold",
        "load_standing",
        "load_decide",
        "load_settle",
        "alter_prepare",
        "alter_commit",
        "alter_abort",
        "alter_hold",
        "alter_standing",
        "alter_decide",
        "alter_settle",
        "owners",
        "promise",
        "plan",
        "catch_up",
        "copy_table",
        "stats",
        "statements",
        "statistics",
    }
)
"""Requests of the controller and of other members that are part of no execution, and so do not count as frames
received.
"""

_ABANDONABLE = frozenset({"execute", "profile", "result_next", "change_stage", "change_work_out", "statistics"})
"""Requests that end where they are when nobody waits for their answer any more; what a change has staged, whoever asked
for it aborts.
"""

_QUICK_THREADS_MAX: Final = 16
_CHANGING_THREADS_MAX: Final = 8
"""Calls that turn out to be long count as well."""

Answer = Reply | Awaitable[Reply] | AsyncIterator[Reply]


class Member:
    """One member. Lives on one event loop.

    Args:
        member_id: Its id.
        settings: Of the cluster.
        controller_address: ``host:port`` of the controller, which it joins at :meth:`start`.
        on_given_up: Called on the event loop when the cluster has gone on without this member: it answers nothing any
            more, and has to be stopped.
    """

    def __init__(
        self, member_id: str, settings: ClusterSettings, controller_address: str, on_given_up: Callable[[], None]
    ) -> None:
        host, _, port = controller_address.rpartition(":")
        self.member_id = member_id
        self._settings = settings
        self._on_given_up = on_given_up
        self._controller = peer_at(host, int(port), settings, name=member_id, role=Role.MEMBER)
        self._results = OpenResults(settings.result_bytes_max)
        self._server = listening(self, settings, on_gone=self._gone, abandonable_ops=_ABANDONABLE)
        # Long kernel calls wait for each other. Short ones, and what loads and changes do while writes wait for them,
        # have threads of their own.
        self._executor = ThreadPoolExecutor(settings.kernel_threads, thread_name_prefix=f"secateur-{member_id}-kernel")
        self._quick = ElasticThreads(f"secateur-{member_id}-kernel-quick", settings.kernel_threads, _QUICK_THREADS_MAX)
        self._changing = ElasticThreads(
            f"secateur-{member_id}-kernel-change", settings.kernel_threads, _CHANGING_THREADS_MAX
        )
        self._store = MemberStore()
        self._statement_log = StatementLog(member_id)
        self._tables: dict[str, TableDef] = {}
        self._peers = Peers(member_id, Role.MEMBER, settings)
        self._jobs: JobRuntime
        self._client_jobs: MemberJobs
        self._attempts: MemberAttempts
        self._live_metrics: LiveMetrics
        self._statements: StatementRunner
        self._changes: MemberChanges
        self._whole_changes: MemberCoordinatedChanges
        self._places = TableDirectory(member_id, self._store.lease)
        self._copies = MemberCopies(self._store, self._peers)
        written = ChangeRegistry()
        self._replication = Replication(
            member_id, self._store, self._places, self._peers, written, self._report_out_of_sync
        )
        self._writes = MemberWrites(self._store, self._places, self._replication, written)
        self._leases = LoadLeases(member_id, self._store.loads, self._peers, self._places.member_ids)
        self._loads = MemberLoads(
            self._store, self._places, self._peers, self._replication, self._leases, self._changing
        )
        range_changes = RangeChanges(self._store, self._adopt_table)
        self._range_leases = LoadLeases(member_id, range_changes, self._peers, self._places.member_ids, kind="alter")
        self._ranges = MemberRanges(self._store, self._places.latch, self._changing, range_changes, self._range_leases)
        self._topology = Topology(0, (), {})
        self._promises = Promises(settings.lease_times)
        self._plan_source = PlanSource(
            member_id, self._controller, self._peers, self._places.member_ids, settings.member_silence_s
        )
        self._controller_address = controller_address
        self._lease: LeaseKeeper | None = None
        self._turning: asyncio.Task[None] | None = None
        self._views_version = 0
        self._frames_received = 0
        self._executions = 0
        self._ops: dict[str, Callable[[Request], Answer]] = {
            "hello": self._hello,
            "execute": self._execute,
            "profile": self._profile,
            "result_next": lambda request: self._statement_log.next(request, self._results.next),
            "result_close": self._close_result,
            "job_submit": self._submit_job,
            "job_resolve": lambda request: self._client_jobs.resolve(request),
            "job_stop": lambda request: self._client_jobs.stop(request),
            "job_run": self._run_job,
            "job_halt": lambda request: self._attempts.cancel(request),
            "job_metrics": self._send_job_metrics,
            "job_counters": lambda request: self._live_metrics.counters(request),
            "job_result": lambda request: self._attempts.result(request),
            "change": self._change,
            "change_stage": self._stage_change,
            "change_close": lambda request: self._whole_changes.close(request),
            "change_work_out": self._work_out_change,
            "change_returned": lambda request: self._whole_changes.returned(request),
            "write": self._writes.write,
            "write_copy": self._replication.write_copy,
            "copies_tails": self._replication.tails,
            "copies_settled": self._replication.copies_settled,
            "stage": self._loads.stage,
            "stage_copy": self._loads.stage_copy,
            "load_prepare": self._loads.prepare,
            "load_publish": self._loads.publish,
            "load_abort": self._loads.abort,
            "load_hold": self._leases.renew,
            "load_standing": self._leases.standing,
            "load_decide": self._leases.decide,
            "load_settle": self._leases.settle,
            "create_table": self._create_table,
            "drop_table": self._drop_table,
            "views": self._take_views,
            "alter_prepare": self._ranges.prepare,
            "alter_commit": self._ranges.commit,
            "alter_abort": self._ranges.abort,
            "alter_hold": self._range_leases.renew,
            "alter_standing": self._range_leases.standing,
            "alter_decide": self._range_leases.decide,
            "alter_settle": self._range_leases.settle,
            "topology": self._take_topology,
            "owners": self._send_topology,
            "catch_up": self._catch_up,
            "copy_table": self._copies.copy_table,
            "promise": self._promise,
            "plan": self._send_plan,
            "statements": self._statement_log.send,
            "stats": self._stats,
            "statistics": MemberStatistics(self._store).summary,
        }

    async def start(self) -> None:
        """Listen, and join the cluster.

        Raises:
            OperationalError: The socket or the controller is not to be had.
        """
        spill_directory = None if self._settings.spill_directory is None else Path(self._settings.spill_directory)
        if self._settings.kernel_memory_bytes_max is not None or spill_directory is not None:
            # Imported here: a member without a limit loads DuckDB at the first statement that needs it.
            from secateur.engine.kernels.duckdb.kernel import configure

            configure(memory_limit_bytes=self._settings.kernel_memory_bytes_max, spill_directory=spill_directory)
        write_rows = JobWrites(
            self.member_id, self._writes, self._peers, self._controller, self._table, lambda: self._topology
        )
        services = MemberServices(
            self._store,
            run,
            self._executor,
            table=self._table,
            write_rows=write_rows,
            allow_code=self._settings.accepts_code,
            quick_executor=self._quick,
            spill_directory=spill_directory,
            limits=EngineLimits(gathered_bytes_max=self._settings.gathered_bytes_max),
        )
        self._jobs = JobRuntime(self.member_id, services, self._peers)
        self._client_jobs = MemberJobs(self._jobs, lambda: self._topology, allow_code=self._settings.accepts_code)
        self._live_metrics = LiveMetrics(self._jobs, self._peers)
        self._attempts = MemberAttempts(
            self._jobs, self._controller, lambda: self._topology, allow_code=self._settings.accepts_code
        )
        threads = StatementThreads(self._executor, self._quick, self._changing)
        self._statements = StatementRunner(
            self.member_id,
            self._store,
            self._jobs,
            threads,
            self._plan_source.fetch,
            self._fetch_system_table,
            self._results,
            self._settings.plan_cache_max,
        )
        self._changes = MemberChanges(
            self._store, self._statements, self._places, self._writes, self._loads, self._results, self._changing
        )
        self._whole_changes = MemberCoordinatedChanges(
            self.member_id, self._store, self._statements, self._places, self._loads, self._peers, self._changing
        )
        await self._server.start()
        self._lease = LeaseKeeper(
            self.member_id, self._settings, self._controller_address, self._store.lease, self._on_given_up
        )
        joined = await self._controller.request(
            "join", {"member": self.member_id, "host": self._server.host, "port": self._server.port}
        )
        self._know_views(joined.header["catalog_version"], joined.header["views"])
        self._turning = asyncio.get_running_loop().create_task(self._turn(), name=f"member {self.member_id} turns")
        await self._lease.start()

    async def stop(self) -> None:
        """Drop every connection and everything that runs, without a word to the others."""
        await self._server.stop()
        if self._turning is not None:
            self._turning.cancel()
        if self._lease is not None:
            await self._lease.stop()
        self._results.close_all()
        await self._attempts.close()
        await self._jobs.close()
        await self._leases.stop()
        await self._range_leases.stop()
        await self._replication.close()
        await self._peers.close()
        await self._controller.close()
        await asyncio.gather(*(threads_end(threads) for threads in (self._executor, self._quick, self._changing)))

    def handle(self, request: Request) -> Answer:
        """Answer a request; see :class:`secateur.wire.Handler`."""
        answer = self._ops.get(request.op)
        if answer is None:
            raise ProtocolError(
                f"a member does not know the operation {request.op!r}; does the address belong to a controller?"
            )
        check_caller(request, MEMBER_CALLERS)
        check_args(request, MEMBER_ARGS)
        if request.op not in _HOUSEKEEPING:
            self._frames_received += 1
        return answer(request)

    def notify(self, request: Request) -> None:
        """Take a one-way message: those of jobs."""
        check_caller(request, NOTICE_CALLERS)
        self._frames_received += 1
        if request.op == "job_start":
            self._executions += 1
        self._jobs.on_message({**request.args, "op": request.op}, request.payload)

    def _hello(self, request: Request) -> Reply:
        self._results.connected(request.peer)
        return Reply({"member": self.member_id})

    def _execute(self, request: Request) -> Answer:
        self._executions += 1
        return self._statement_log.execute(request, self._run_statement)

    def _run_statement(self, request: Request) -> Reply | Awaitable[Reply]:
        return self._statements.execute(request)

    def _profile(self, request: Request) -> Answer:
        self._executions += 1
        return self._statements.profile(request)

    def _close_result(self, request: Request) -> Reply:
        self._results.close(request.peer)
        self._statement_log.close(request.peer)
        return Reply()

    def _gone(self, peer: PeerInfo) -> None:
        self._results.gone(peer)
        self._statement_log.close(peer)
        self._leases.connection_gone(peer.connection_id)
        self._range_leases.connection_gone(peer.connection_id)

    def _change(self, request: Request) -> Answer:
        self._executions += 1
        return self._statement_log.execute(request, self._changes.change)

    def _stage_change(self, request: Request) -> Answer:
        self._executions += 1
        return self._statement_log.execute(request, self._changes.stage)

    def _work_out_change(self, request: Request) -> Answer:
        self._executions += 1
        return self._statement_log.execute(request, self._whole_changes.work_out)

    def _submit_job(self, request: Request) -> Answer:
        self._executions += 1
        return self._client_jobs.submit(request)

    def _run_job(self, request: Request) -> Answer:
        self._executions += 1
        return self._attempts.run(request)

    async def _send_job_metrics(self, request: Request) -> Reply:
        job_id = request.args["job"]
        job = self._attempts.running(job_id) or self._client_jobs.running(job_id)
        return Reply({"metrics": [] if job is None else await self._live_metrics.of(job)})

    async def _fetch_system_table(self, name: str) -> pa.Table:
        answer = await self._controller.request("system_table", {"table": name})
        return decode_table(answer.payload, ranges=False)

    async def _report_out_of_sync(self, group: str, partition: int, member: str) -> None:
        await self._controller.request("copy_lost", {"group": group, "partition": partition, "member": member})

    def _create_table(self, request: Request) -> Reply:
        table = TableDef.from_wire(request.args["table"])
        self._store.create_table(table, request.args["partitions"])
        self._adopt_table(table)
        return Reply()

    async def _catch_up(self, request: Request) -> Reply:
        """Have a table that the other members have already; this member is about to join."""
        table = TableDef.from_wire(request.args["table"])
        await self._copies.catch_up(table, request.args["source"])
        self._adopt_table(table)
        return Reply()

    def _adopt_table(self, table: TableDef) -> None:
        self._tables[table.name.casefold()] = table
        self._places.add_table(table)

    def _drop_table(self, request: Request) -> Reply:
        table_id = request.args["table_id"]
        self._store.drop_table(table_id)
        self._replication.forget(table_id)
        self._places.remove_table(table_id)
        self._tables = {name: table for name, table in self._tables.items() if table.table_id != table_id}
        return Reply()

    def _take_views(self, request: Request) -> Reply:
        self._know_views(request.args["catalog_version"], request.args["views"])
        return Reply()

    def _know_views(self, catalog_version: int, views: list[int]) -> None:
        if catalog_version > self._views_version:
            self._views_version = catalog_version
            self._store.views = frozenset(views)

    def _take_topology(self, request: Request) -> Answer:
        """Act on a newer topology, once nothing is promised any more to a member that it leaves out."""
        topology = Topology.from_wire(unpack(request.payload))
        wait_s = self._promises.heard(topology.version, topology.member_ids, lease_clock_s()) - lease_clock_s()
        return self._act_on_later(topology, wait_s) if wait_s > 0 else self._act_on(topology)

    async def _act_on_later(self, topology: Topology, wait_s: float) -> Reply:
        await asyncio.sleep(wait_s)
        return self._act_on(topology)

    def _act_on(self, topology: Topology) -> Reply:
        if topology.version > self._topology.version:
            for lost in set(self._topology.member_ids) - set(topology.member_ids):
                self._jobs.member_lost(lost)
            self._topology = topology
            self._peers.update(topology)
            self._statements.update(topology)
            self._places.update(topology)
            self._replication.update(topology)
            if self._lease is not None:
                self._lease.topology_changed(topology)
        return Reply()

    def _send_topology(self, _: Request) -> Reply:
        """The owners as far as this member has heard, for clients that cannot reach the controller."""
        return Reply({"topology_version": self._topology.version}, pack(self._topology.to_wire()))

    def _send_plan(self, request: Request) -> Reply:
        """A plan that this member has run, for another one that has not and cannot reach the controller."""
        return Reply({}, pack(self._statements.kept_plan(request.args["plan_id"]).to_wire()))

    def _promise(self, request: Request) -> Reply:
        """Another member cannot reach the controller, and asks for a lease; see :mod:`secateur.cluster.lease`."""
        answer = self._promises.asked(request.args["member"], request.args["topology_version"], lease_clock_s())
        return Reply({"answer": answer.value})

    async def _turn(self) -> None:
        """Show that the event loop turns, and do what has to be done now and then."""
        while True:
            if self._lease is not None:
                self._lease.turned(self._store.rows_written())
            self._loads.drop_abandoned()
            await asyncio.sleep(self._settings.lease_times.interval_s)

    def _stats(self, _: Request) -> Reply:
        tables: list[dict[str, Any]] = [
            {
                "table_id": stats.table_id,
                "rows": dict(stats.partition_rows),
                "bytes": stats.nbytes,
                "partitions": stats.partitions,
            }
            for stats in self._store.stats()
        ]
        return Reply(
            {
                "tables": tables,
                "executions": self._executions,
                "frames_received": self._frames_received,
                "running_jobs": self._jobs.running_executions,
                "open_results": self._results.count,
                "open_result_bytes": self._results.held_bytes,
            }
        )

    def _table(self, name: str) -> TableDef:
        table = self._tables.get(name.casefold())
        if table is None:
            raise UnknownTableError(f"table {name!r} does not exist on member {self.member_id}", table=name)
        return table
