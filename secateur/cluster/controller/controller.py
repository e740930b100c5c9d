"""The controller: the requests that it answers, and the parts that execute them.

It has no rows, and no query passes through it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from secateur.cluster.background_tasks import BackgroundTasks
from secateur.cluster.controller.cluster_state import ClusterState
from secateur.cluster.controller.external_table_commands import ExternalTableCommands
from secateur.cluster.controller.holders import by_primary, copies_of, served_by
from secateur.cluster.controller.jobs import ControllerJobs
from secateur.cluster.controller.joining import Joining
from secateur.cluster.controller.load_answers import LoadAnswers
from secateur.cluster.controller.load_history import LoadHistory
from secateur.cluster.controller.loads import LoadPublication, LoadPublisher
from secateur.cluster.controller.member_list import MemberList
from secateur.cluster.controller.membership import SettingChanged, absent_owners
from secateur.cluster.controller.planning import PlanningThreads
from secateur.cluster.controller.rebalancer import Rebalancer
from secateur.cluster.controller.recovery import first_of
from secateur.cluster.controller.running_requests import CONTROLLER, RequestState, RunningRequests
from secateur.cluster.controller.statement_replies import (
    Params,
    PlanningView,
    Prepared,
    StatementReplies,
    estimated_tables,
    outlines_of,
)
from secateur.cluster.controller.statement_role import check_statement
from secateur.cluster.controller.statistics_cache import StatisticsCache
from secateur.cluster.controller.stream_publisher import StreamPublisher
from secateur.cluster.controller.system_tables import SystemTables
from secateur.cluster.controller.table_commands import TableCommands
from secateur.cluster.controller.takeover import Takeover
from secateur.cluster.controller.token_commands import TokenCommands
from secateur.cluster.controller.view_commands import ViewCommands
from secateur.cluster.lease import LeaseOutcome as LeaseVerdict
from secateur.cluster.member.changes import ATTEMPT
from secateur.cluster.member.local_execution import bound_partitions
from secateur.cluster.owner_pages import owner_pages
from secateur.cluster.peers import Peers
from secateur.cluster.process_address import LOOPBACK, ProcessAddress
from secateur.cluster.range_pages import range_pages
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import listening
from secateur.cluster.threads_end import threads_end
from secateur.errors import ProgrammingError, ProtocolError, TopologyChangedError, UnknownTableError
from secateur.partitioning.schemes.whole_ranges import whole_ranges
from secateur.partitioning.tables.table import TableDef, TableDefinition
from secateur.partitioning.topology.topology import MemberAddress
from secateur.planner.statement import (
    AlterTable,
    Command,
    CreateExternalTable,
    CreateIndex,
    CreateTable,
    CreateView,
    DropIndex,
    DropTable,
    DropView,
    KillJob,
    KillStatement,
    SetGlobalPruning,
)
from secateur.protocol.catalog import (
    GetOwnerPages,
    GetRanges,
    GetTables,
    GetTableVersions,
    GetTopology,
    MakeRanges,
    OwnerPages,
    RangePages,
    RefreshedStatistics,
    RefreshStatistics,
    Tables,
    TableVersions,
    TopologyAnswer,
)
from secateur.protocol.changes import (
    AbortLoad,
    ChangedTable,
    ChangeSeveralPartitions,
    ChangeTable,
    LoadedRows,
    PublishLoad,
)
from secateur.protocol.external_tables import RegisterExternalTable
from secateur.protocol.hello import GivenVersions, Greeting, Hello, Versions
from secateur.protocol.membership import (
    Joined,
    JoinRequest,
    LeaseAnswer,
    MemberName,
    NameMember,
    RenewLease,
    ReportCopyLost,
    ReportMemberLost,
)
from secateur.protocol.message import Acknowledged, Role
from secateur.protocol.operation import OperationBase
from secateur.protocol.operations import CONTROLLER_OPERATIONS, Operation
from secateur.protocol.query import (
    Explained,
    ExplainRequest,
    GetPlan,
    KillRunningStatement,
    PlanAnswer,
    Prepare,
    PreparedAnswer,
)
from secateur.protocol.recovery import (
    AskToReturn,
    ReportToController,
    ReturnAnswer,
)
from secateur.protocol.statements import CreateTableAs, Done
from secateur.storage.change import MIXED, ChangeOperation
from secateur.wire import Handled, PeerInfo, Reply, Request

__all__ = ["Controller"]

_log = logging.getLogger(__name__)

_EARLY: Final = frozenset({Operation.RENEW_LEASE, Operation.REPORT_TO_CONTROLLER})
_UNDOING_S: Final = 0.1

T = TypeVar("T")
M = TypeVar("M", PublishLoad, ChangeSeveralPartitions, ChangeTable)
R = TypeVar("R")


class Controller:
    """The controller of one cluster. Lives on one event loop.

    Args:
        settings: The settings of the cluster.
        own_address: Where it listens.
        port: The port at which it listens; None takes that of the settings.
        is_recovering: Whether a controller of this cluster ran before: this one goes on from what the members have kept
            for it, and until it knows that, everything else waits.
        is_cold_start: Whether the members are started anew as well, with what is in their data directories: then it
            waits for all of them.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        own_address: ProcessAddress = LOOPBACK,
        *,
        port: int | None = None,
        is_recovering: bool = False,
        is_cold_start: bool = False,
    ) -> None:
        self._settings = settings
        self._own_address = own_address
        port = settings.port if port is None else port
        self._server = listening(self, CONTROLLER_OPERATIONS, settings, own_address, on_gone=self._gone, port=port)
        self._peers = Peers("controller", Role.CONTROLLER, settings)
        self._state = ClusterState(
            self._peers,
            self._left,
            settings.lease_times,
            stall_s=settings.member_stall_s,
            pruning=settings.pruning,
            on_superseded=self._superseded,
            on_tokens=self._server.take_tokens,
        )
        self._joining = Joining(self._state, settings)
        self._rebalancer = Rebalancer(self._state, self._joining, self._state.events, is_on=settings.rebalancing)
        self._loads = LoadPublisher(self._state, lambda member_id: member_id in self._state.topology.member_ids)
        self._statistics = StatisticsCache(self._peers, self._served)
        self._last_load = 0
        self._load_history = LoadHistory()
        self._answers = LoadAnswers(self._state.call, lambda: self._state.topology.member_ids)
        self._streams = StreamPublisher(self._state, self._answers.rows_published)
        self._commands: dict[str, asyncio.Task[str]] = {}
        self._background = BackgroundTasks()
        self._planning = PlanningThreads()  # while the loop goes on serving
        self._requests = RunningRequests()
        self._schemes = ThreadPoolExecutor(1, thread_name_prefix="secateur-schemes")
        self._statements = StatementReplies(settings.plan_cache_max, settings.cost_model)
        self._table_commands = TableCommands(self._state, self._loads, self._statistics, self._schemes)
        self._view_commands = ViewCommands(self._state)
        tokens = TokenCommands(self._state, has_token=settings.token is not None)
        self._jobs = ControllerJobs(
            self._peers,
            lambda: self._state.topology,
            self._group_of,
            self._state.check_member,
            allow_code=settings.accepts_code,
        )
        self._takeover = Takeover(
            self._state,
            self._peers,
            self._table_commands,
            self._view_commands,
            self._jobs,
            self._statistics,
            settings.lease_times,
            self._begin_epoch,
            self._streams.settle,
            is_over=not (is_recovering or is_cold_start),
            is_cold_start=is_cold_start,
        )
        self._external_tables = ExternalTableCommands(
            self._state, self._view_commands.adopt, allow_code=settings.accepts_code
        )
        members = MemberList(self._state, self._peers)
        system_tables = SystemTables(
            self._state,
            self._peers,
            members,
            self._jobs,
            self._statements.facts,
            self._requests.rows,
            self._load_history,
            settings,
        )
        self.handlers: dict[OperationBase, Callable[[Request[Any]], Handled]] = {
            Operation.HELLO: self._hello,
            Operation.GET_TOPOLOGY: self._send_topology,
            Operation.GET_TABLES: self._send_tables,
            Operation.GET_OWNER_PAGES: self._send_owner_pages,
            Operation.GET_RANGES: self._send_ranges,
            Operation.GET_TABLE_VERSIONS: self._send_table_versions,
            Operation.REFRESH_STATISTICS: self._refresh_statistics,
            Operation.PREPARE: self._prepare,
            Operation.EXPLAIN: self._explain,
            Operation.GET_PLAN: self._send_plan,
            Operation.MAKE_RANGES: self._make_ranges,
            Operation.PUBLISH_LOAD: lambda request: self._publishing(self._publish_load, request, self._loaded),
            Operation.ABORT_LOAD: self._abort_load,
            Operation.CHANGE_SEVERAL_PARTITIONS: lambda request: self._publishing(
                self._change_several, request, self._changed
            ),
            Operation.CHANGE_TABLE: lambda request: self._publishing(self._change_table, request, self._changed),
            Operation.GET_MEMBERS: members.members,
            Operation.READ_SYSTEM_TABLE: system_tables.answer,
            Operation.JOIN: self._join,
            Operation.NAME_MEMBER: self._name_member,
            Operation.ASK_TO_RETURN: self._let_back,
            Operation.RENEW_LEASE: self._lease,
            Operation.REPORT_TO_CONTROLLER: self._take_report,
            Operation.REPORT_MEMBER_LOST: self._member_lost,
            Operation.REPORT_COPY_LOST: self._copy_lost,
            Operation.GET_REBALANCING: self._rebalancer.progress,
            Operation.DRAIN_MEMBERS: self._rebalancer.drain,
            Operation.REGISTER_EXTERNAL_TABLE: self._register_external_table,
            Operation.GET_EXTERNAL_TABLE: self._external_tables.get,
            Operation.NEW_JOB: self._jobs.new,
            Operation.WAIT_FOR_JOB: self._jobs.wait,
            Operation.CANCEL_JOB: self._jobs.cancel,
            Operation.GET_JOB_PLAN: self._jobs.plan,
            Operation.REPORT_JOB_ENDED: self._jobs.ended,
            Operation.LIST_JOBS: self._jobs.summaries,
            Operation.CREATE_TOKEN: tokens.create,
            Operation.LIST_TOKENS: tokens.listed,
            Operation.REVOKE_TOKEN: tokens.revoke,
        }

    async def start(self) -> str:
        """Listen; returns the ``host:port`` that others reach it at.

        Raises:
            OperationalError: The socket is not to be had.
        """
        await self._server.start()
        self._background.start(self._watch(), "controller watches members")
        if self._takeover.is_over:
            self._server.take_tokens(self._state.tokens)
            self._rebalancer.start()
        else:
            self._background.start(self._recover(), "controller recovers")
        return f"{self._own_address.advertised_host}:{self._server.port}"

    async def stop(self) -> None:
        """Drop every connection and everything that runs."""
        await self._rebalancer.close()
        await self._background.close()
        self._loads.close()
        await self._server.stop()
        while running := [command for command in self._commands.values() if not command.done()]:
            for command in running:  # again for one that undoes its work, which may wait for members that have ended
                command.cancel()
            await asyncio.wait(running, timeout=_UNDOING_S)
        await self._jobs.close()
        await self._statistics.close()
        await self._state.close()
        await self._peers.close()
        await self._planning.close()
        await threads_end(self._schemes)

    async def kill(self) -> None:
        """End as a crash would, without a word to members, for tests of what happens then."""
        self._peers.cut()
        await self.stop()

    def handle(self, request: Request[Any]) -> Handled:
        """Answer a request; see :class:`secateur.wire.Handler`."""
        if not self._takeover.is_over and not _is_answered_early(request):
            return self._handle_later(request)
        return self.handlers[request.operation](request)

    async def _handle_later(self, request: Request[Any]) -> Any:
        await self._takeover.wait()
        answer = self.handlers[request.operation](request)
        return await answer if isinstance(answer, Awaitable) else answer

    def notify(self, request: Request[Any]) -> None:
        """The controller receives no one-way messages."""
        raise ProtocolError(f"a controller takes no one-way messages; got {request.operation.title!r}")

    # -- what clients and members may know

    def _hello(self, _: Request[Hello]) -> Reply[Greeting]:
        return Reply(
            Greeting(
                cluster_id=self._settings.cluster_id,
                topology=self._state.topology.outline,
                silence_s=self._settings.member_silence_s,
                **self._versions(),
            )
        )

    def _versions(self) -> GivenVersions:
        """The versions that every answer to a client carries."""
        return {
            "catalog_version": self._state.catalog.version,
            "topology_version": self._state.topology.version,
            "statistics_version": self._statistics.statistics_snapshot.version,
            "pruning": self._state.pruning,
        }

    def _send_topology(self, _: Request[GetTopology]) -> Reply[TopologyAnswer]:
        return Reply(TopologyAnswer(topology=self._state.topology.outline, **self._versions()))

    def _send_tables(self, request: Request[GetTables]) -> Reply[Tables]:
        name, known = request.message.name, request.message.known
        tables = self._state.catalog.tables() if name is None else (self._state.catalog.table(name),)
        outlines = request.message.outlines
        definitions = [TableDefinition.of(table, known=known, outline=outlines) for table in tables]
        return Reply(Tables(tables=definitions, **self._versions()))

    def _send_owner_pages(self, request: Request[GetOwnerPages]) -> Reply[OwnerPages]:
        return Reply(owner_pages(self._state.topology, request.message))

    def _send_ranges(self, request: Request[GetRanges]) -> Reply[RangePages]:
        return Reply(range_pages(self._state.catalog.tables(), request.message))

    def _send_table_versions(self, request: Request[GetTableVersions]) -> Reply[TableVersions]:
        known = {table.table_id: table.version for table in self._state.catalog.tables()}
        return Reply(
            TableVersions(tables=[known.get(table_id) for table_id in request.message.tables], **self._versions())
        )

    async def _refresh_statistics(self, request: Request[RefreshStatistics]) -> Reply[RefreshedStatistics]:
        """Look at the rows of a table now."""
        table = self._state.catalog.table(request.message.table)
        statistics = await self._statistics.refresh(table.table_id)
        if statistics is None:
            raise UnknownTableError(
                f"table {table.name!r} was dropped while its members collected statistics", table=table.name
            )
        return Reply(RefreshedStatistics(statistics=statistics, **self._versions()))

    def _send_plan(self, request: Request[GetPlan]) -> Reply[PlanAnswer]:
        return Reply(PlanAnswer(self._statements.plan(request.message.plan_id).encoded()))

    def _served(self, table_id: int) -> tuple[TableDef, dict[str, list[int]]] | None:
        """A table, and which member serves which rows of it; each row once."""
        table = next((table for table in self._state.catalog.tables() if table.table_id == table_id), None)
        return None if table is None else (table, served_by(self._state.topology, table))

    # -- statements

    async def _prepare(self, request: Request[Prepare]) -> Reply[PreparedAnswer]:
        request_id = request.message.request_id
        if request_id is not None and (done := self._commands.get(request_id)) is not None:
            await asyncio.wait([done])
        if request_id is not None and self._state.is_done(request_id):
            await self._state.all_reached()
            return Reply(PreparedAnswer(outlines=(), statement=Done("carried out before"), **self._versions()))
        planned, statistics_version = await self._plan(self._statements.prepare, request)
        check_statement(planned.statement if isinstance(planned, Prepared) else planned, request.peer)
        prepared = (
            planned if isinstance(planned, Prepared) else Prepared(Done(await self._carry_out(planned, request_id)))
        )
        if isinstance(prepared.statement, CreateTableAs):
            create, catalog = prepared.statement, self._state.catalog
            if create.if_not_exists and catalog.find(create.table.name) is not None:
                prepared = Prepared(Done("table exists"))
            else:  # the client creates it once it has the rows
                catalog.with_table(create.table, or_replace=create.or_replace)
        versions: GivenVersions = {**self._versions(), "statistics_version": statistics_version}
        statement = prepared.statement
        answer = PreparedAnswer(outlines=outlines_of(statement), statement=statement, **versions)
        return Reply(answer, prepared.rows)

    async def _carry_out(self, command: Command, request_id: str | None) -> str:
        """Carry out DDL; returns what has been done, once all members have it on record."""

        async def carry_out() -> str:
            with self._state.on_behalf_of(request_id):
                done = await self._carried_out(command)
            await self._state.all_reached()
            return done

        if request_id is None:
            return await carry_out()
        task = self._commands[request_id] = asyncio.ensure_future(carry_out())
        task.add_done_callback(lambda _: self._commands.pop(request_id, None))
        return await asyncio.shield(task)

    async def _carried_out(self, command: Command) -> str:
        match command:
            case CreateTable(table, if_not_exists, or_replace):
                await self._table_commands.create(table, if_not_exists=if_not_exists, or_replace=or_replace)
                return "table created"
            case CreateIndex(table, index, if_not_exists):
                await self._table_commands.create_index(table, index, if_not_exists=if_not_exists)
                return "index created"
            case DropIndex(name, if_exists):
                await self._table_commands.drop_index(name, if_exists=if_exists)
                return "index dropped"
            case DropTable(name) if self._state.catalog.external_table(name) is not None:
                await self._external_tables.drop(name)
                return "external table dropped"
            case CreateExternalTable(name, connector, if_not_exists, or_replace, sql):
                await self._external_tables.create(
                    name,
                    connector,
                    if_not_exists=if_not_exists,
                    or_replace=or_replace,
                    is_authenticated=False,  # a connector of SQL is no code
                    sql=sql,
                )
                return "external table created"
            case DropTable(name, if_exists):
                await self._table_commands.drop(name, if_exists=if_exists)
                return "table dropped"
            case AlterTable(table, changes):
                await self._table_commands.alter(table.name, changes)
                return "table altered"
            case CreateView(view, or_replace, if_not_exists):
                await self._view_commands.create(view, or_replace=or_replace, if_not_exists=if_not_exists)
                return "view created"
            case DropView(name, if_exists):
                await self._view_commands.drop(name, if_exists=if_exists)
                return "view dropped"
            case KillStatement(member, number):
                await self._kill_statement(member, number)
                return f"statement {command.statement_id} killed"
            case KillJob(job):
                self._jobs.end(job)
                return f"job {job} is being stopped"
            case SetGlobalPruning(value):
                self._state.pruning = value
                await self._state.change(SettingChanged())
                return f"pruning is {value.value}"

    async def _kill_statement(self, member: str, number: int) -> None:
        if member == CONTROLLER:
            self._requests.kill(number)
            return
        if member not in self._state.topology.member_ids:
            raise ProgrammingError(
                f"there is no member {member!r} of which a statement could be killed; there are"
                f" {', '.join(self._state.topology.member_ids)}"
            )
        await self._state.call(member, KillRunningStatement(number))

    async def _register_external_table(self, request: Request[RegisterExternalTable]) -> Reply[Versions]:
        asked = request.message
        await self._external_tables.create(
            asked.name,
            asked.connector,
            or_replace=asked.or_replace,
            is_authenticated=request.peer.authenticated,
        )
        await self._state.all_reached()
        return Reply(Versions(**self._versions()))

    async def _make_ranges(self, request: Request[MakeRanges]) -> Reply[Versions]:
        asked = request.message
        await self._table_commands.make_ranges(asked.table, asked.table_id, asked.cells)
        await self._state.all_reached()
        return Reply(Versions(**self._versions()))

    async def _explain(self, request: Request[ExplainRequest]) -> Reply[Explained]:
        return Reply((await self._plan(self._statements.explain, request))[0])

    async def _plan(
        self,
        work: Callable[[str, Params, Mapping[str, Any], PlanningView], T],
        request: Request[Prepare] | Request[ExplainRequest],
    ) -> tuple[T, int]:
        """What a planning has made, and the version of the statistics that it had."""
        planned, version = await self._plan_now(work, request)
        tables = None if isinstance(planned, Explained) else estimated_tables(planned)
        if tables is None or tables:
            # Statistics that are about to arrive are worth a short wait, and a second planning if they have.
            await self._statistics.arrived(tables)
            if self._statistics.statistics_snapshot.version != version:
                return await self._plan_now(work, request)
        return planned, version

    async def _plan_now(
        self,
        work: Callable[[str, Params, Mapping[str, Any], PlanningView], T],
        request: Request[Prepare] | Request[ExplainRequest],
    ) -> tuple[T, int]:
        asked, statistics = request.message, self._statistics.statistics_snapshot
        listing = partial(self._external_tables.list_partitions, asyncio.get_running_loop())
        view = PlanningView(self._state.catalog, self._state.topology, statistics, listing)
        planning = partial(work, asked.sql, asked.params, asked.settings, view)
        planned = self._planning.run(request.peer.connection_id, planning)
        return await self._requests.run(RequestState.PLANNING, asked.sql, planned), statistics.version

    def _gone(self, peer: PeerInfo) -> None:
        self._planning.gone(peer.connection_id)
        if peer.role is Role.MEMBER:  # perhaps its process ended as well
            self._state.doubt(peer.client)

    # -- loads

    async def _publishing(
        self,
        publish: Callable[[Request[M]], Coroutine[Any, Any, Reply[R]]],
        request: Request[M],
        answer: Callable[[int], Reply[R]],
    ) -> Reply[R]:
        """Publish rows once, while no member joins: it would miss them."""
        asked = request.message
        async with self._joining.loads.shared():
            return await self._answers.once(
                asked.load_id, is_repeat=asked.is_repeat, work=lambda: publish(request), answer=answer
            )

    def _loaded(self, rows: int) -> Reply[LoadedRows]:
        return Reply(LoadedRows(rows=rows, **self._versions()))

    def _changed(self, rows: int) -> Reply[ChangedTable]:
        return Reply(ChangedTable(rows=rows, members_touched=0, **self._versions()))

    async def _publish_load(self, request: Request[PublishLoad]) -> Reply[LoadedRows]:
        asked = request.message
        table = self._state.catalog.table(asked.table)
        if asked.stream is None:
            return await self._publish_rows(asked, table)
        answer = await self._streams.once(table, asked.stream, asked.load_id, lambda: self._publish_rows(asked, table))
        if answer is not None:
            return answer
        await self._loads.abort(asked.load_id, self._state.topology.member_ids)
        return Reply(LoadedRows(rows=0, was_published=True, **self._versions()))

    async def _publish_rows(self, asked: PublishLoad, table: TableDef) -> Reply[LoadedRows]:
        if asked.table_id is not None and asked.table_id != table.table_id:
            raise TopologyChangedError(
                f"table {table.name} was dropped and created again while rows were staged for it; nothing was loaded",
                table=table.name,
            )
        parts: Mapping[int, Sequence[int]] = asked.parts
        if asked.mode == ChangeOperation.OVERWRITE_RANGES:
            if table.scheme.range is None:
                raise ProgrammingError(
                    f"table {table.name} has no range partitions, of which some could be overwritten: overwrite the"
                    " whole table, or upsert",
                    table=table.name,
                )
            parts = {partition: parts.get(partition, ()) for partition in whole_ranges(table.scheme, parts)}
        is_overwritten = asked.mode in (ChangeOperation.OVERWRITE, ChangeOperation.OVERWRITE_RANGES)
        if is_overwritten and not table.replicated:
            # Rows of a partition that is lost must not be there again when its last owner comes back.
            live = table.scheme.live_partitions().tolist()
            if asked.mode == ChangeOperation.OVERWRITE_RANGES:
                live = sorted(parts.keys() & set(live))
            topology = self._state.topology
            topology.check_live(topology.ownership(table.scheme.affinity_group()).owners_of(live) if live else ())
        load = self._new_load(asked.load_id, table, asked.mode, parts)
        published = await self._killable(load, f"load {load.load_id} into {table.name}", self._loads.publish(load))
        self._load_history.published(
            load.load_id,
            table.table_id,
            rows=published.rows,
            partitions=sum(map(bool, parts.values())),
            age_s=published.age_s,
            stream=asked.stream,
        )
        if is_overwritten:
            self._statistics.replaced(table.table_id)
        else:
            self._statistics.written(table.table_id, published.rows)
        return Reply(LoadedRows(rows=published.rows, work=published.work, **self._versions()))

    async def _killable(self, load: LoadPublication, statement: str, work: Awaitable[T]) -> T:
        """Publish a load, or carry out a change, that KILL ends unless its publication has begun."""
        return await self._requests.run(
            RequestState.PUBLISHING, statement, work, lambda: not self._loads.is_publishing(load.load_id)
        )

    def _text_of(self, plan_id: str) -> str:
        facts = self._statements.facts(plan_id)
        return f"plan {plan_id}" if facts is None else facts.statement

    def _new_load(
        self, load_id: str, table: TableDef, mode: str, attempts: Mapping[int, Sequence[int]]
    ) -> LoadPublication:
        # Also those without a copy: readers compare the numbers of the last publication.
        copies = {
            member_id: frozenset(copies_of(self._state.topology, table, member_id))
            for member_id in self._state.topology.member_ids
        }
        self._last_load += 1
        return LoadPublication(load_id, self._last_load, table, mode, attempts, copies)

    async def _change_several(self, request: Request[ChangeSeveralPartitions]) -> Reply[ChangedTable]:
        """Carry out an UPDATE or DELETE that concerns several partitions, or a replicated table."""
        asked, topology = request.message, self._state.topology
        plan = self._statements.plan(asked.plan)
        scan = plan.scans[0]
        table = self._state.catalog.table(scan.table)
        if (table.table_id, table.version) != (scan.table_id, scan.table_version):
            raise TopologyChangedError(
                f"table {table.name} has changed since the statement was planned: plan it again; nothing was changed",
                table=table.name,
            )
        ids = bound_partitions(plan, asked.params, pruning=asked.pruning)[0]
        partitions = {topology.member_ids[0]: [0]} if table.replicated else by_primary(topology, table, ids)
        topology.check_live(list(partitions))
        load = self._new_load(asked.load_id, table, asked.operation, {})
        changed = await self._killable(
            load, self._text_of(asked.plan), self._loads.change(load, ATTEMPT, partitions, asked)
        )
        self._statistics.written(table.table_id, changed.rows)
        held = {member_id for member_id, copies in load.copies.items() if not copies.isdisjoint(ids)}
        return Reply(ChangedTable(rows=changed.rows, members_touched=len(held), work=changed.work, **self._versions()))

    async def _change_table(self, request: Request[ChangeTable]) -> Reply[ChangedTable]:
        """Carry out a change that one member works out for all partitions."""
        asked, topology = request.message, self._state.topology
        table, plan = self._state.catalog.table(asked.table), self._statements.plan(asked.plan)
        if (table.table_id, table.version) != (asked.table_id, asked.table_version):
            raise TopologyChangedError(
                f"table {table.name} has changed since the statement was planned: plan it again; nothing was changed",
                table=table.name,
            )
        topology.check_any()
        bound = bound_partitions(plan, asked.params, pruning=asked.pruning)
        owners = [
            topology.ownership(scan.group).primary(ids[0])
            for scan, ids in zip(plan.scans, bound, strict=True)
            if len(ids) and not scan.replicated
        ]
        coordinator = owners[0] if owners else topology.member_ids[0]
        topology.check_live([coordinator])
        load = self._new_load(asked.load_id, table, MIXED, {})
        worked_out = await self._killable(
            load, self._text_of(asked.plan), self._loads.change_whole(load, coordinator, asked)
        )
        if worked_out.missing_cells:
            await self._table_commands.make_ranges(table.name, table.table_id, worked_out.missing_cells)
            raise TopologyChangedError(
                f"ranges of {table.name} were made for rows of the statement: plan it again; nothing was changed",
                table=table.name,
            )
        self._statistics.written(table.table_id, worked_out.rows)
        touched = len(load.copies)
        return Reply(
            ChangedTable(
                rows=worked_out.rows,
                members_touched=touched,
                coordinator=coordinator,
                work=worked_out.work,
                **self._versions(),
            )
        )

    async def _abort_load(self, request: Request[AbortLoad]) -> Reply[Acknowledged]:
        await self._loads.abort(request.message.load_id, self._state.topology.member_ids)
        return Reply(Acknowledged())

    # -- members

    async def _join(self, request: Request[JoinRequest]) -> Reply[Joined]:
        asked = request.message
        await self._joining.join(MemberAddress(asked.member, asked.host, asked.port, asked.node))
        self._jobs.member_joined(asked.member)
        state = self._state
        return Reply(Joined(views=state.catalog.adopted_ids, tokens=state.tokens, **self._versions()))

    async def _name_member(self, request: Request[NameMember]) -> Reply[MemberName]:
        """An id for a member that comes, or the ids of those in whose place it can come."""
        self._check_cluster(request.message.cluster)
        # A process that is started anew asks before the end of the one before was noticed.
        await asyncio.gather(*(self._state.check_member(member_id) for member_id in self._state.topology.member_ids))
        return Reply(MemberName(self._joining.new_id(), tuple(sorted(absent_owners(self._state.topology)))))

    async def _let_back(self, request: Request[AskToReturn]) -> Reply[ReturnAnswer]:
        """A member that has left wants to come back with what it has."""
        self._check_cluster(request.message.cluster)
        is_member = await self._joining.let_back(request.message.address, lambda: self._last_load)
        if is_member:
            self._jobs.member_joined(request.message.address.id)
        return Reply(ReturnAnswer(is_member))

    def _left(self, member_id: str) -> None:
        """A member has left the cluster."""
        self._joining.member_left(member_id, self._last_load)
        self._jobs.member_lost(member_id)

    def _check_cluster(self, cluster_id: str) -> None:
        if cluster_id != self._settings.cluster_id:
            raise ProtocolError(f"this is the controller of cluster {self._settings.cluster_id}, not of {cluster_id}")

    def _lease(self, request: Request[RenewLease]) -> Reply[LeaseAnswer]:
        """A member asks for a lease, and reports what matters to statistics; see :mod:`secateur.cluster.lease`."""
        asked = request.message
        self._check_cluster(asked.cluster)
        if not self._takeover.is_over and not self._state.topology.members:
            return Reply(LeaseAnswer(LeaseVerdict.REFUSED.value, wants_report=True))
        answer = self._state.heard(asked.member, stalled_s=asked.stalled_s)
        if answer is LeaseVerdict.GRANTED:
            self._statistics.counted(asked.member, asked.written, asked.misses)
        return Reply(LeaseAnswer(answer.value, self._statistics.statistics_snapshot.version))

    # -- recovery

    def _take_report(self, request: Request[ReportToController]) -> Reply[Acknowledged]:
        self._check_cluster(request.message.cluster)
        self._takeover.take_report(request.message.report)
        return Reply(Acknowledged())

    async def _recover(self) -> None:
        await self._takeover.run()
        if self._takeover.is_over:
            self._rebalancer.start()

    def _begin_epoch(self, epoch: int) -> None:
        self._last_load = first_of(epoch)

    def _superseded(self) -> None:
        """A later controller has taken over: this one serves nobody any more."""
        self._background.start(self._server.stop(), "superseded controller stops")

    # -- losses

    async def _member_lost(self, request: Request[ReportMemberLost]) -> Reply[Versions]:
        await self._state.give_up(request.message.member)
        if request.message.is_expected:
            self._state.forget_lost(request.message.member)
        await self._state.all_reached()
        return Reply(Versions(**self._versions()))

    async def _copy_lost(self, request: Request[ReportCopyLost]) -> Reply[Versions]:
        lost = request.message
        self._state.events.add("copy_lost", lost.member, f"partition {lost.partition} of {lost.group} is out of sync")
        await self._rebalancer.copy_lost(lost.group, lost.partition, lost.member)
        return Reply(Versions(**self._versions()))

    def _group_of(self, table: str) -> str:
        return self._state.catalog.table(table).scheme.affinity_group()

    async def _watch(self) -> None:
        """Detect lost members that no process has reported."""
        while True:
            await asyncio.sleep(self._settings.lease_times.interval_s)
            try:
                self._state.look()
            except Exception:  # the watch must go on: nobody else would notice the next loss
                _log.exception("the watch over the members met an error")


def _is_answered_early(request: Request[Any]) -> bool:
    """Whether a controller answers before it knows the cluster."""
    is_hello_of_member = request.operation is Operation.HELLO and request.peer.role is Role.MEMBER
    return is_hello_of_member or request.operation in _EARLY
