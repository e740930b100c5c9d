"""The controller: the requests that it answers, and the parts that execute them.

It has no rows, and no query passes through it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from secateur.cluster.controller.access_commands import TokenCommands
from secateur.cluster.controller.catalog_changes import ExternalTableCommands
from secateur.cluster.controller.cluster_state import ClusterState
from secateur.cluster.controller.commands import ControllerCommands
from secateur.cluster.controller.jobs import ControllerJobs
from secateur.cluster.controller.joining import Joining
from secateur.cluster.controller.loads import LoadPublisher
from secateur.cluster.controller.member_list import MemberList
from secateur.cluster.controller.publications import Publications
from secateur.cluster.controller.rebalancer import Rebalancer
from secateur.cluster.controller.recovery import first_of
from secateur.cluster.controller.running_requests import RunningRequests
from secateur.cluster.controller.statement_replies import StatementReplies
from secateur.cluster.controller.statement_requests import StatementRequests
from secateur.cluster.controller.statistics_cache import StatisticsCache
from secateur.cluster.controller.system_tables import SystemTables
from secateur.cluster.controller.table_checks import ControllerTableChecks
from secateur.cluster.controller.table_commands import TableCommands
from secateur.cluster.controller.takeover import Takeover
from secateur.cluster.lease import LeaseOutcome as LeaseVerdict
from secateur.cluster.loop_thread import BackgroundTasks, threads_end
from secateur.cluster.member.changes.change_turns import ChangeTurns, full_table
from secateur.cluster.member.table_directory import owner_pages, range_pages
from secateur.cluster.peers import Peers
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import LOOPBACK, ProcessAddress, listening
from secateur.errors import ProtocolError, UnknownTableError
from secateur.partitioning.tables.table import TableDef, TableDefinition
from secateur.partitioning.topology.owner_routing import served_by
from secateur.partitioning.topology.topology import MemberAddress
from secateur.protocol import catalog, membership, recovery
from secateur.protocol.catalog import RegisterExternalTable
from secateur.protocol.hello import GivenVersions, Greeting, Hello, Versions
from secateur.protocol.message import Acknowledged, Role
from secateur.protocol.operations import CONTROLLER_OPERATIONS, Operation, OperationBase
from secateur.wire import Handled, PeerInfo, Reply, Request

_log = logging.getLogger(__name__)

_EARLY: Final = frozenset({Operation.RENEW_LEASE, Operation.REPORT_TO_CONTROLLER, Operation.NAME_MEMBER})


class Controller:
    """The controller of one cluster. Lives on one event loop.

    Args:
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
        state = self._state = ClusterState(
            self._peers,
            self._left,
            settings.lease_times,
            stall_s=settings.member_stall_s,
            pruning=settings.pruning,
            on_superseded=self._superseded,
            on_access=self._server.take_access,
            last_loads=lambda owners: self._loads.numbers.last_loads(owners),
        )
        loads = self._loads = LoadPublisher(state, state.has_member)
        joining = self._joining = Joining(state, settings, loads.numbers)
        self._rebalancer = Rebalancer(state, joining, is_on=settings.rebalancing)
        statistics = self._statistics = StatisticsCache(self._peers, self._served)
        self._background = BackgroundTasks()
        requests = RunningRequests()
        self._schemes = ThreadPoolExecutor(1, thread_name_prefix="secateur-schemes")
        replies = StatementReplies(settings.plan_cache_max, settings.cost_model)
        tables = self._table_commands = TableCommands(state, loads, joining.loads.shared, statistics, self._schemes)
        allow_code = settings.accepts_code
        external = self._external_tables = ExternalTableCommands(state, allow_code=allow_code)
        self._jobs = ControllerJobs(state, self._peers, allow_code=allow_code)
        self._commands = ControllerCommands(state, tables, external, self._jobs, requests)
        statements = self._statements = StatementRequests(
            state, statistics, replies, self._commands, external, requests, settings.planning_timeout_s
        )
        turns = ChangeTurns(settings.max_waiting_statements, full_table)
        publications = self._publications = Publications(
            state, loads, joining, statistics, statements, tables, requests, turns
        )
        self._takeover = Takeover(
            state,
            self._peers,
            tables,
            self._begin_epoch,
            self._resume,
            is_over=not (is_recovering or is_cold_start),
            is_cold_start=is_cold_start,
        )
        self._members = MemberList(state, self._peers)
        self._system_tables = SystemTables(
            state, self._members, self._jobs, replies.facts, requests.rows, publications.history, settings
        )
        self._table_checks = ControllerTableChecks(replies, lambda: state.catalog)
        self.handlers = self._handlers()

    def _handlers(self) -> dict[OperationBase, Callable[[Request[Any]], Handled]]:
        has_token = self._settings.token is not None
        tokens = TokenCommands(self._state, self._server.tokens.find, has_token=has_token)
        return {
            Operation.HELLO: self._hello,
            Operation.GET_TOPOLOGY: self._send_topology,
            Operation.GET_TABLES: self._send_tables,
            Operation.GET_OWNER_PAGES: lambda request: Reply(owner_pages(self._state.topology, request.message)),
            Operation.GET_RANGES: lambda request: Reply(range_pages(self._state.catalog.tables(), request.message)),
            Operation.GET_TABLE_VERSIONS: self._send_table_versions,
            Operation.REFRESH_STATISTICS: self._refresh_statistics,
            Operation.PREPARE: self._statements.prepare,
            Operation.EXPLAIN: self._statements.explain,
            Operation.GET_PLAN: self._statements.plan,
            Operation.MAKE_RANGES: self._make_ranges,
            Operation.DROP_UNUSED_TABLE: self._drop_unused_table,
            Operation.PUBLISH_LOAD: self._publications.publish_load,
            Operation.ABORT_LOAD: self._publications.abort_load,
            Operation.CHANGE_SEVERAL_PARTITIONS: self._publications.change_several,
            Operation.CHANGE_TABLE: self._publications.change_table,
            Operation.GET_MEMBERS: self._members.members,
            Operation.READ_SYSTEM_TABLE: self._system_tables.answer,
            Operation.DESCRIBE_STATEMENT: self._system_tables.describe,
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
        self._background.start(self._system_tables.history.keep(), "controller keeps the history")
        if self._takeover.is_over:
            self._server.take_access(self._state.access)
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
        await self._commands.close()
        await self._statements.close()
        await self._jobs.close()
        await self._statistics.close()
        await self._state.close()
        await self._peers.close()
        await threads_end(self._schemes)

    async def kill(self) -> None:
        """End as a crash would, without a word to members, for tests of what happens then."""
        self._peers.cut()
        await self.stop()

    def handle(self, request: Request[Any]) -> Handled:
        """Answer a request; see :class:`secateur.wire.Handler`."""
        if not self._takeover.is_over and not _is_answered_early(request):
            return self._handle_later(request)
        return self._handle(request)

    def _handle(self, request: Request[Any]) -> Handled:
        rights = request.peer.rights
        if rights is not None:
            self._table_checks.check(request, rights)
        return self.handlers[request.operation](request)

    async def _handle_later(self, request: Request[Any]) -> Any:
        await self._takeover.wait()
        answer = self._handle(request)
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
        return self._state.versions(self._statistics.version)

    def _send_topology(self, _: Request[catalog.GetTopology]) -> Reply[catalog.TopologyAnswer]:
        return Reply(catalog.TopologyAnswer(topology=self._state.topology.outline, **self._versions()))

    def _send_tables(self, request: Request[catalog.GetTables]) -> Reply[catalog.Tables]:
        name, known = request.message.name, request.message.known
        tables = self._state.catalog.tables() if name is None else (self._state.catalog.table(name),)
        rights = request.peer.rights
        if rights is not None:
            tables = tuple(table for table in tables if rights.may_name(table.name.casefold()))
        outlines = request.message.outlines
        definitions = [TableDefinition.of(table, known=known, outline=outlines) for table in tables]
        return Reply(catalog.Tables(tables=definitions, **self._versions()))

    def _send_table_versions(self, request: Request[catalog.GetTableVersions]) -> Reply[catalog.TableVersions]:
        known = {table.table_id: table.version for table in self._state.catalog.tables()}
        return Reply(
            catalog.TableVersions(
                tables=[known.get(table_id) for table_id in request.message.tables], **self._versions()
            )
        )

    async def _refresh_statistics(
        self, request: Request[catalog.RefreshStatistics]
    ) -> Reply[catalog.RefreshedStatistics]:
        """Look at the rows of a table now."""
        table = self._state.catalog.table(request.message.table)
        statistics = await self._statistics.refresh(table.table_id)
        if statistics is None:
            raise UnknownTableError(
                f"table {table.name!r} was dropped while its members collected statistics", table=table.name
            )
        return Reply(catalog.RefreshedStatistics(statistics=statistics, **self._versions()))

    def _served(self, table_id: int) -> tuple[TableDef, dict[str, list[int]]] | None:
        """A table, and which member serves which rows of it; each row once."""
        table = self._state.catalog.by_id(table_id)
        return None if table is None else (table, served_by(self._state.topology, table))

    # -- tables

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

    async def _make_ranges(self, request: Request[catalog.MakeRanges]) -> Reply[Versions]:
        asked = request.message
        await self._table_commands.make_ranges(asked.table, asked.table_id, asked.cells)
        await self._state.all_reached()
        return Reply(Versions(**self._versions()))

    async def _drop_unused_table(self, request: Request[catalog.DropUnusedTable]) -> Reply[catalog.UnusedTableDropped]:
        asked = request.message
        is_gone = await self._table_commands.drop_unused(asked.table, asked.table_id)
        await self._state.all_reached()
        return Reply(catalog.UnusedTableDropped(is_gone=is_gone, **self._versions()))

    def _gone(self, peer: PeerInfo) -> None:
        self._statements.gone(peer.connection_id)
        if peer.role is Role.MEMBER:  # perhaps its process ended as well
            self._state.doubt(peer.client)

    # -- members

    async def _join(self, request: Request[membership.JoinRequest]) -> Reply[membership.Joined]:
        asked = request.message
        await self._joining.join(MemberAddress(asked.member, asked.host, asked.port, asked.node))
        self._jobs.member_joined(asked.member)
        state = self._state
        return Reply(membership.Joined(views=state.catalog.adopted_ids, access=state.access, **self._versions()))

    async def _name_member(self, request: Request[membership.NameMember]) -> Reply[membership.MemberName]:
        """An id for a member that comes, or the ids of those in whose place it can come.

        While this controller does not know the cluster, those that have data are asked to report them.
        """
        self._check_cluster(request.message.cluster)
        if not self._takeover.is_over:
            if request.message.may_report and not self._state.topology.members:
                return Reply(membership.MemberName("", wants_report=True))
            await self._takeover.wait()
        # A process that is started anew asks before the end of the one before was noticed.
        await asyncio.gather(*(self._state.check_member(member_id) for member_id in self._state.topology.member_ids))
        absent = await self._joining.may_return()
        return Reply(membership.MemberName(await self._joining.new_id(), absent))

    async def _let_back(self, request: Request[recovery.AskToReturn]) -> Reply[recovery.ReturnAnswer]:
        """A member that has left wants to come back with what it has."""
        self._check_cluster(request.message.cluster)
        is_member = await self._joining.let_back(request.message.address)
        if is_member:
            self._jobs.member_joined(request.message.address.id)
        return Reply(recovery.ReturnAnswer(is_member))

    def _left(self, member_id: str) -> None:
        """A member has left the cluster."""
        self._jobs.member_lost(member_id)
        self._statistics.member_left(member_id)

    def _check_cluster(self, cluster_id: str) -> None:
        if cluster_id != self._settings.cluster_id:
            raise ProtocolError(f"this is the controller of cluster {self._settings.cluster_id}, not of {cluster_id}")

    def _lease(self, request: Request[membership.RenewLease]) -> Reply[membership.LeaseAnswer]:
        """A member asks for a lease, and reports what matters to statistics; see :mod:`secateur.cluster.lease`."""
        asked = request.message
        self._check_cluster(asked.cluster)
        if not self._takeover.is_over and not self._state.topology.members:
            return Reply(membership.LeaseAnswer(LeaseVerdict.REFUSED.value, wants_report=True))
        if not self._is_at(asked.member, asked.address):
            # A process with the data of a member that has ended: it may come back, but has not been let in yet.
            self._state.doubt(asked.member)
            return Reply(membership.LeaseAnswer(LeaseVerdict.REFUSED.value))
        answer = self._state.heard(asked.member, stalled_s=asked.stalled_s)
        if answer is LeaseVerdict.GRANTED:
            self._statistics.counted(asked.member, asked.written, asked.misses)
        return Reply(membership.LeaseAnswer(answer.value, self._statistics.version))

    def _is_at(self, member_id: str, address: str) -> bool:
        """Whether the topology has a member, if it has it, at this address."""
        topology = self._state.topology
        if not topology.has_member(member_id):
            return True
        at = topology.member(member_id)
        return f"{at.host}:{at.port}" == address

    # -- recovery

    def _take_report(self, request: Request[recovery.ReportToController]) -> Reply[Acknowledged]:
        self._check_cluster(request.message.cluster)
        self._takeover.take_report(request.message.report)
        return Reply(Acknowledged())

    async def _recover(self) -> None:
        await self._takeover.run()
        if self._takeover.is_over:
            self._rebalancer.start()

    def _begin_epoch(
        self,
        record: recovery.ClusterRecord,
        reports: Mapping[str, recovery.MemberReport],
        state: recovery.ControllerState,
    ) -> None:
        self._loads.numbers.last = first_of(record.epoch)
        self._loads.numbers.taken_over(reports, record.topology.member_ids, state.last_loads)
        self._background.start(self._loads.numbers.settled(), "controller learns how loads in doubt have ended")

    async def _resume(self) -> None:
        """Members and catalog are as they were: so are statistics, jobs and streams from now on."""
        epoch = self._state.epoch
        self._statistics.start_anew(epoch, [table.table_id for table in self._state.catalog.tables()])
        await self._jobs.restore(epoch, is_cold_start=self._takeover.is_cold_start)
        await self._publications.streams.settle()

    def _superseded(self) -> None:
        """A later controller has taken over: this one serves nobody any more."""
        self._background.start(self._server.stop(), "superseded controller stops")

    # -- losses

    async def _member_lost(self, request: Request[membership.ReportMemberLost]) -> Reply[Versions]:
        await self._state.give_up(request.message.member)
        await self._state.all_reached()
        return Reply(Versions(**self._versions()))

    async def _copy_lost(self, request: Request[membership.ReportCopyLost]) -> Reply[Versions]:
        lost = request.message
        table = self._state.catalog.by_id(lost.table_id)
        name = f"table {lost.table_id}" if table is None else table.name
        self._state.events.add("copy_lost", lost.member, f"partition {lost.partition} of {name} is out of sync")
        await self._rebalancer.copy_lost(lost.table_id, lost.partition, lost.member)
        return Reply(Versions(**self._versions()))

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
