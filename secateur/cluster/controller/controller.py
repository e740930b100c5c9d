"""The controller: the requests that it answers, and who carries them out.

It has no rows, and no query passes through it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from secateur.cluster.callers import CONTROLLER_CALLERS, check_caller
from secateur.cluster.controller.cluster_state import ClusterState
from secateur.cluster.controller.holders import by_primary, copies_of, served_by
from secateur.cluster.controller.jobs import ControllerJobs
from secateur.cluster.controller.joining import Joining
from secateur.cluster.controller.loads import CoordinatedChange, LoadPublication, LoadPublisher, PartitionwiseChange
from secateur.cluster.controller.member_list import MemberList
from secateur.cluster.controller.membership import CopyLost
from secateur.cluster.controller.planning import PlanningThreads
from secateur.cluster.controller.statement_replies import Params, PlanningView, StatementReplies
from secateur.cluster.controller.statistics_cache import StatisticsCache
from secateur.cluster.controller.system_tables import SystemTables
from secateur.cluster.controller.table_commands import TableCommands
from secateur.cluster.controller.view_commands import ViewCommands
from secateur.cluster.lease import LeaseOutcome as LeaseAnswer
from secateur.cluster.member.changes import ATTEMPT
from secateur.cluster.member.local_execution import bound_partitions
from secateur.cluster.peers import Peers
from secateur.cluster.request_args import CONTROLLER_ARGS, check_args
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import listening
from secateur.cluster.threads_end import threads_end
from secateur.errors import ProtocolError, TopologyChangedError, UnknownTableError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import MemberAddress
from secateur.planner.statement import (
    AlterTable,
    CreateIndex,
    CreateTable,
    CreateTableAs,
    CreateView,
    DropIndex,
    DropTable,
    DropView,
)
from secateur.storage.change import MIXED, ChangeOperation
from secateur.wire import PeerInfo, Reply, Request, Role, pack

__all__ = ["Controller"]

_log = logging.getLogger(__name__)
_ABANDONABLE: Final = frozenset({"explain", "table_statistics", "change", "change_whole"})
"""Requests that end where they are when nobody waits for their answer any more; a change whose publication has begun is
published all the same.
"""

T = TypeVar("T")
Answer = Reply | Awaitable[Reply] | AsyncIterator[Reply]


class Controller:
    """The controller of one cluster. Lives on one event loop.

    Args:
        settings: Of the cluster.
    """

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._server = listening(self, settings, on_gone=self._gone, abandonable_ops=_ABANDONABLE, port=settings.port)
        self._peers = Peers("controller", Role.CONTROLLER, settings)
        self._state = ClusterState(
            self._peers,
            lambda member_id: self._jobs.member_lost(member_id),
            settings.lease_times,
            stall_s=settings.member_stall_s,
        )
        self._joining = Joining(self._state, settings)
        self._loads = LoadPublisher(self._state, lambda member_id: member_id in self._state.topology.member_ids)
        self._statistics = StatisticsCache(self._peers, self._served)
        self._last_load = 0
        self._watching: asyncio.Task[None] | None = None
        self._planning = PlanningThreads()  # while the loop goes on serving
        self._schemes = ThreadPoolExecutor(1, thread_name_prefix="secateur-schemes")
        self._statements = StatementReplies(settings.plan_cache_max, settings.cost_model)
        self._table_commands = TableCommands(self._state, self._loads, self._statistics, self._schemes)
        self._view_commands = ViewCommands(self._state)
        self._jobs = ControllerJobs(
            self._peers,
            lambda: self._state.topology,
            self._group_of,
            self._state.check_member,
            allow_code=settings.accepts_code,
        )
        members = MemberList(self._state, self._peers)
        system_tables = SystemTables(self._state, self._peers, members, self._jobs, self._statements.text)
        self._ops: dict[str, Callable[[Request], Answer]] = {
            "hello": self._hello,
            "topology": self._send_topology,
            "catalog": self._send_catalog,
            "table_versions": self._send_table_versions,
            "table_statistics": self._send_table_statistics,
            "prepare": self._prepare,
            "explain": self._explain,
            "plan": self._send_plan,
            "make_ranges": self._make_ranges,
            "load_publish": lambda request: self._publishing(self._publish_load, request),
            "load_abort": self._abort_load,
            "change": lambda request: self._publishing(self._change_rows, request),
            "change_whole": lambda request: self._publishing(self._change_whole, request),
            "members": members.members,
            "system_table": system_tables.answer,
            "join": self._join,
            "new_member": self._name_member,
            "lease": self._lease,
            "member_lost": self._member_lost,
            "copy_lost": self._copy_lost,
            "job_new": self._jobs.new,
            "job_wait": self._jobs.wait,
            "job_cancel": self._jobs.cancel,
            "job_plan": self._jobs.plan,
            "job_ended": self._jobs.ended,
            "jobs": self._jobs.summaries,
        }

    async def start(self) -> str:
        """Listen; returns ``host:port``.

        Raises:
            OperationalError: The socket is not to be had.
        """
        await self._server.start()
        self._watching = asyncio.get_running_loop().create_task(self._watch())
        return f"{self._server.host}:{self._server.port}"

    async def stop(self) -> None:
        """Drop every connection and everything that runs."""
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching
        self._loads.close()
        await self._server.stop()
        await self._jobs.close()
        await self._statistics.close()
        await self._state.close()
        await self._peers.close()
        await self._planning.close()
        await threads_end(self._schemes)

    def handle(self, request: Request) -> Answer:
        """Answer a request; see :class:`secateur.wire.Handler`."""
        answer = self._ops.get(request.op)
        if answer is None:
            raise ProtocolError(
                f"a controller does not know the operation {request.op!r}; does the address belong to a member?"
            )
        check_caller(request, CONTROLLER_CALLERS)
        check_args(request, CONTROLLER_ARGS)
        return answer(request)

    def notify(self, request: Request) -> None:
        """Nobody sends one-way messages to a controller."""
        raise ProtocolError(f"a controller takes no one-way messages; got {request.op!r}")

    # -- what clients and members may know

    def _hello(self, _: Request) -> Reply:
        return Reply(
            {"cluster_id": self._settings.cluster_id, **self._versions()}, pack(self._state.topology.to_wire())
        )

    def _versions(self) -> dict[str, Any]:
        return {
            "catalog_version": self._state.catalog.version,
            "topology_version": self._state.topology.version,
            "statistics_version": self._statistics.statistics_snapshot.version,
        }

    def _send_topology(self, _: Request) -> Reply:
        return Reply(self._versions(), pack(self._state.topology.to_wire()))

    def _send_catalog(self, request: Request) -> Reply:
        name = request.args.get("name")
        tables = self._state.catalog.tables() if name is None else (self._state.catalog.table(str(name)),)
        known = request.args.get("known")
        return Reply(
            {
                **self._versions(),
                "tables": [
                    table.to_wire(by_reference=known is not None and known == table.scheme.reference)
                    for table in tables
                ],
            }
        )

    def _send_table_versions(self, request: Request) -> Reply:
        known = {table.table_id: table.version for table in self._state.catalog.tables()}
        return Reply({**self._versions(), "tables": [known.get(table_id) for table_id in request.args["tables"]]})

    async def _send_table_statistics(self, request: Request) -> Reply:
        """Look at the rows of a table now."""
        table = self._state.catalog.table(request.args["table"])
        statistics = await self._statistics.refresh(table.table_id)
        if statistics is None:
            raise UnknownTableError(
                f"table {table.name!r} was dropped while its members were asked for statistics", table=table.name
            )
        return Reply({**self._versions(), "statistics": statistics.to_wire()})

    def _send_plan(self, request: Request) -> Reply:
        return Reply({}, pack(self._statements.plan(request.args["plan_id"]).to_wire()))

    def _served(self, table_id: int) -> tuple[TableDef, dict[str, list[int]]] | None:
        """A table, and which member serves which rows of it; each row once."""
        table = next((table for table in self._state.catalog.tables() if table.table_id == table_id), None)
        return None if table is None else (table, served_by(self._state.topology, table))

    # -- statements

    async def _prepare(self, request: Request) -> Reply:
        statement, reply = await self._plan(self._statements.prepare, request)
        match statement:
            case CreateTable(table, if_not_exists, or_replace):
                await self._table_commands.create(table, if_not_exists=if_not_exists, or_replace=or_replace)
            case CreateTableAs(table, if_not_exists, or_replace):
                if if_not_exists and self._state.catalog.find(table.name) is not None:
                    reply = Reply({"statement": {"kind": "ddl", "message": "table exists"}})
                else:  # the client creates it once it has the rows
                    self._state.catalog.with_table(table, or_replace=or_replace)
            case CreateIndex(table, index, if_not_exists):
                await self._table_commands.create_index(table, index, if_not_exists=if_not_exists)
            case DropIndex(name, if_exists):
                await self._table_commands.drop_index(name, if_exists=if_exists)
            case DropTable(name, if_exists):
                await self._table_commands.drop(name, if_exists=if_exists)
            case AlterTable(table, changes):
                await self._table_commands.alter(table.name, changes)
            case CreateView(view, or_replace, if_not_exists):
                await self._view_commands.create(view, or_replace=or_replace, if_not_exists=if_not_exists)
            case DropView(name, if_exists):
                await self._view_commands.drop(name, if_exists=if_exists)
            case _:  # the client does the rest
                pass
        return Reply({**reply.header, **self._versions()}, reply.payload)

    async def _make_ranges(self, request: Request) -> Reply:
        args = request.args
        await self._table_commands.make_ranges(args["table"], args["table_id"], args["cells"])
        return Reply(self._versions())

    async def _explain(self, request: Request) -> Reply:
        return await self._plan(self._statements.explain, request)

    async def _plan(self, work: Callable[[str, Params, Mapping[str, Any], PlanningView], T], request: Request) -> T:
        args = request.args
        view = PlanningView(self._state.catalog, self._state.topology, self._statistics.statistics_snapshot)
        planning = partial(work, args["sql"], args["params"], args.get("settings") or {}, view)
        return await self._planning.run(request.peer.connection_id, planning)

    def _gone(self, peer: PeerInfo) -> None:
        self._planning.gone(peer.connection_id)
        if peer.role is Role.MEMBER:  # perhaps its process ended as well
            self._state.doubt(peer.client)

    # -- loads

    async def _publishing(self, answer: Callable[[Request], Awaitable[Reply]], request: Request) -> Reply:
        """Publish rows while no member joins: it would miss them."""
        async with self._joining.loads.shared():
            return await answer(request)

    async def _publish_load(self, request: Request) -> Reply:
        args = request.args
        table = self._state.catalog.table(args["table"])
        if args.get("table_id", table.table_id) != table.table_id:
            raise TopologyChangedError(
                f"table {table.name} was dropped and created again while rows were staged for it; nothing was loaded",
                table=table.name,
            )
        try:
            attempts = {
                int(partition): [int(attempt) for attempt in counted] for partition, counted in args["parts"].items()
            }
        except (TypeError, ValueError) as error:
            raise ProtocolError(
                f"load_publish: parts gives the numbers of attempts by partition, and cannot be read: {error}"
            ) from error
        published = await self._loads.publish(self._new_load(args["load_id"], table, args["mode"], attempts))
        if args["mode"] == ChangeOperation.OVERWRITE:
            self._statistics.replaced(table.table_id)
        else:
            self._statistics.written(table.table_id, published.rows)
        return Reply({"rows": published.rows, "work": published.work, **self._versions()})

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

    async def _change_rows(self, request: Request) -> Reply:
        """Carry out an UPDATE or DELETE that concerns several partitions, or a replicated table."""
        args, topology = request.args, self._state.topology
        plan = self._statements.plan(args["plan"])
        scan = plan.scans[0]
        table = self._state.catalog.table(scan.table)
        if (table.table_id, table.version) != (scan.table_id, scan.table_version):
            raise TopologyChangedError(
                f"table {table.name} has changed since the statement was planned: plan it again; nothing was changed",
                table=table.name,
            )
        ids = bound_partitions(plan, args["params"], pruning=args["pruning"])[0]
        partitions = {topology.member_ids[0]: [0]} if table.replicated else by_primary(topology, table, ids)
        topology.check_live(list(partitions))
        load = self._new_load(args["load_id"], table, args["operation"], {})
        passed = {
            **{name: args[name] for name in ("plan", "params", "pruning", "operation")},
            "profile": args.get("profile", False),
        }
        changed = await self._loads.change(PartitionwiseChange(load, ATTEMPT, partitions, passed))
        self._statistics.written(table.table_id, changed.rows)
        held = {member_id for member_id, copies in load.copies.items() if not copies.isdisjoint(ids)}
        return Reply({"rows": changed.rows, "members_touched": len(held), "work": changed.work, **self._versions()})

    async def _change_whole(self, request: Request) -> Reply:
        """Carry out a change that one member works out for all partitions."""
        args, topology = request.args, self._state.topology
        table, plan = self._state.catalog.table(args["table"]), self._statements.plan(args["plan"])
        if (table.table_id, table.version) != (args["table_id"], args["table_version"]):
            raise TopologyChangedError(
                f"table {table.name} has changed since the statement was planned: plan it again; nothing was changed",
                table=table.name,
            )
        topology.check_any()
        bound = bound_partitions(plan, args["params"], pruning=args["pruning"])
        owners = [
            topology.ownership(scan.group).primary(ids[0])
            for scan, ids in zip(plan.scans, bound, strict=True)
            if len(ids) and not scan.replicated
        ]
        coordinator = owners[0] if owners else topology.member_ids[0]
        topology.check_live([coordinator])
        load = self._new_load(args["load_id"], table, MIXED, {})
        passed = {
            **{name: args[name] for name in ("plan", "params", "pruning", "meeting", "returning", "names_action")},
            "profile": args.get("profile", False),
        }
        worked_out = await self._loads.change_whole(CoordinatedChange(load, coordinator, passed))
        if worked_out.missing_cells:
            await self._table_commands.make_ranges(table.name, table.table_id, worked_out.missing_cells)
            raise TopologyChangedError(
                f"ranges of {table.name} were made for rows of the statement: plan it again; nothing was changed",
                table=table.name,
            )
        self._statistics.written(table.table_id, worked_out.rows)
        answer = {
            "rows": worked_out.rows,
            "members_touched": len(load.copies),
            "coordinator": coordinator,
            "work": worked_out.work,
        }
        return Reply({**answer, **self._versions()})

    async def _abort_load(self, request: Request) -> Reply:
        await self._loads.abort(request.args["load_id"], self._state.topology.member_ids)
        return Reply()

    # -- members

    async def _join(self, request: Request) -> Reply:
        args = request.args
        await self._joining.join(MemberAddress(args["member"], args["host"], args["port"]))
        return Reply({**self._versions(), "views": [view.view_id for view in self._state.catalog.views.values()]})

    def _name_member(self, request: Request) -> Reply:
        """An id for a member that comes back."""
        self._check_cluster(request)
        return Reply({"member": self._joining.new_id()})

    def _check_cluster(self, request: Request) -> None:
        if request.args["cluster"] != self._settings.cluster_id:
            raise ProtocolError(
                f"this is the controller of cluster {self._settings.cluster_id}, not of {request.args['cluster']}"
            )

    def _lease(self, request: Request) -> Reply:
        """A member asks for a lease, and tells how many rows were written to it; see :mod:`secateur.cluster.lease`."""
        args = request.args
        self._check_cluster(request)
        answer = self._state.heard(args["member"], stalled_s=args["stalled_s"])
        if answer is LeaseAnswer.GRANTED:
            self._statistics.counted(args["member"], args["written"])
        return Reply({"answer": answer.value})

    async def _member_lost(self, request: Request) -> Reply:
        await self._state.give_up(request.args["member"])
        await self._state.all_reached()
        return Reply(self._versions())

    async def _copy_lost(self, request: Request) -> Reply:
        args = request.args
        await self._state.change(CopyLost(args["group"], args["partition"], args["member"]))
        return Reply(self._versions())

    def _group_of(self, table: str) -> str:
        return self._state.catalog.table(table).scheme.affinity_group()

    async def _watch(self) -> None:
        """Find out that a member is lost although nobody said so."""
        while True:
            await asyncio.sleep(self._settings.lease_times.interval_s)
            try:
                self._state.look()
            except Exception:  # the watch must go on: nobody else would notice the next loss
                _log.exception("the watch over the members met an error")
