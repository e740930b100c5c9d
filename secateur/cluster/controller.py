"""The controller: catalog, topology, planner, publishing of loads. It has no rows, and no query passes through it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np

from secateur.cluster.catalog import Catalog
from secateur.cluster.controller_jobs import ControllerJobs
from secateur.cluster.loads import Change, Load, LoadPublisher
from secateur.cluster.local_call import bound_partitions
from secateur.cluster.member_changes import ATTEMPT
from secateur.cluster.membership import Event, MemberJoined, MemberLost, OwnersForgotten, RangesChanged, TableCreated, advance, group_after
from secateur.cluster.peers import Peers
from secateur.cluster.range_change import RangeChanger
from secateur.cluster.request_args import CONTROLLER_ARGS, check_args
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.statement_replies import Params, PlanningView, StatementReplies
from secateur.cluster.statistics_book import StatisticsBook
from secateur.errors import MemberLostError, OperationalError, ProtocolError, TopologyChangedError, UnknownTableError, UnreachableError
from secateur.partitioning.range_changes import RangeChange, alter_ranges
from secateur.partitioning.ranges_on_demand import with_cells
from secateur.partitioning.scheme import PartitionScheme
from secateur.partitioning.table import TableDef
from secateur.partitioning.topology import MemberAddress, Topology
from secateur.planner.statement import AlterTable, CreateTable, DropTable
from secateur.storage.change import Operation
from secateur.wire import FrameServer, Reply, Request, pack

__all__ = ["Controller"]

_log = logging.getLogger(__name__)
_WATCH_INTERVAL_S: Final = 1.0
_GONE: Final = (MemberLostError, UnreachableError)
"""A connection that breaks or is refused means a dead process. A late answer does not: the member may only be busy."""

T = TypeVar("T")
Answer = Reply | Awaitable[Reply] | AsyncIterator[Reply]


class Controller:
    """The controller of one cluster. Lives on one event loop.

    Args:
        settings: Of the cluster.
    """

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._server = FrameServer(self, host=settings.host, port=settings.port, token=settings.token, limits=settings.limits)
        self._peers = Peers("controller", settings)
        self._loads = LoadPublisher(self._peers)
        self._ranges = RangeChanger(self._peers)
        self._statistics = StatisticsBook(self._peers, self._served)
        self._last_load = 0
        self._catalog = Catalog()
        self._topology = Topology(1, (), {})
        self._lost: dict[str, MemberAddress] = {}
        self._changing = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None
        self._planning = ThreadPoolExecutor(1, thread_name_prefix="secateur-planner")  # plans while the loop goes on serving
        self._statements = StatementReplies(settings.plan_cache_max)
        self._jobs = ControllerJobs(self._peers, lambda: self._topology, self._group_of, self._check_member, allow_code=settings.allow_code)
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
            "load_publish": self._publish_load,
            "load_abort": self._abort_load,
            "change": self._change_rows,
            "members": self._members,
            "join": self._join,
            "member_lost": self._member_lost,
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
        await self._server.stop()
        await self._jobs.close()
        await self._statistics.close()
        await self._peers.close()
        self._planning.shutdown(wait=True, cancel_futures=True)

    def handle(self, request: Request) -> Answer:
        """Answer a request; see :class:`secateur.wire.Handler`."""
        answer = self._ops.get(request.op)
        if answer is None:
            raise ProtocolError(f"a controller does not know the operation {request.op!r}; does the address belong to a member?")
        check_args(request, CONTROLLER_ARGS)
        return answer(request)

    def notify(self, request: Request) -> None:
        """Nobody sends one-way messages to a controller."""
        raise ProtocolError(f"a controller takes no one-way messages; got {request.op!r}")

    # -- what clients and members may know

    def _hello(self, _: Request) -> Reply:
        return Reply({"cluster_id": self._settings.cluster_id, **self._versions()}, pack(self._topology.to_wire()))

    def _versions(self) -> dict[str, Any]:
        return {
            "catalog_version": self._catalog.version,
            "topology_version": self._topology.version,
            "statistics_version": self._statistics.picture.version,
        }

    def _send_topology(self, _: Request) -> Reply:
        return Reply(self._versions(), pack(self._topology.to_wire()))

    def _send_catalog(self, request: Request) -> Reply:
        name = request.args.get("name")
        tables = self._catalog.tables() if name is None else (self._catalog.table(str(name)),)
        known = request.args.get("known")
        return Reply({**self._versions(), "tables": [table.to_wire(by_reference=known is not None and known == table.scheme.reference) for table in tables]})

    def _send_table_versions(self, request: Request) -> Reply:
        known = {table.table_id: table.version for table in self._catalog.tables()}
        return Reply({**self._versions(), "tables": [known.get(table_id) for table_id in request.args["tables"]]})

    async def _send_table_statistics(self, request: Request) -> Reply:
        """Look at the rows of a table now."""
        table = self._catalog.table(request.args["table"])
        statistics = await self._statistics.refresh(table.table_id)
        if statistics is None:
            raise UnknownTableError(f"table {table.name!r} was dropped while its members were asked for statistics", table=table.name)
        return Reply({**self._versions(), "statistics": statistics.to_wire()})

    def _send_plan(self, request: Request) -> Reply:
        return Reply({}, pack(self._statements.plan(request.args["plan_id"]).to_wire()))

    async def _members(self, _: Request) -> Reply:
        addresses = self._topology.members
        answers = await asyncio.gather(*(self._peers.call(member.id, "stats", {}) for member in addresses), return_exceptions=True)
        rows = []
        for member, answer in zip(addresses, answers, strict=True):
            if isinstance(answer, _GONE):
                await self._change(MemberLost(member.id))
            elif isinstance(answer, BaseException):
                raise answer
            else:
                rows.append(self._describe(member, answer))
        rows.extend(_describe_lost(member) for member in self._lost.values())
        return Reply({"members": sorted(rows, key=lambda row: (len(row["id"]), row["id"]))})

    def _describe(self, member: MemberAddress, stats: dict[str, Any]) -> dict[str, Any]:
        primaries = {table.table_id: set(self._primaries(table, member.id)) for table in self._catalog.tables()}
        known = [table for table in stats["tables"] if table["table_id"] in primaries]
        served = sum(len(partitions) for partitions in primaries.values())
        return {
            "id": member.id,
            "address": f"{member.host}:{member.port}",
            "state": "active",
            "partitions_primary": served,
            "partitions_backup": sum(table["partitions"] for table in known) - served,
            "rows": sum(rows for table in known for partition, rows in table["rows"].items() if partition in primaries[table["table_id"]]),
            "bytes": sum(table["bytes"] for table in known),
            "executions": stats["executions"],
            "frames_received": stats["frames_received"],
        }

    def _primaries(self, table: TableDef, member_id: str) -> list[int]:
        if table.replicated:
            return [0]
        return _live(table, self._topology.ownership(table.scheme.affinity_group()).partitions_of(member_id))

    def _served(self, table_id: int) -> tuple[TableDef, dict[str, list[int]]] | None:
        """A table, and which member serves which rows of it; each row once."""
        table = next((table for table in self._catalog.tables() if table.table_id == table_id), None)
        if table is None:
            return None
        members = self._topology.member_ids
        if table.replicated:
            return table, {member_id: [0] if member_id == members[0] else [] for member_id in members}
        return table, {member_id: self._primaries(table, member_id) for member_id in members}

    # -- statements

    async def _prepare(self, request: Request) -> Reply:
        statement, reply = await self._plan(self._statements.prepare, request)
        match statement:
            case CreateTable(table, if_not_exists):
                await self.create_table(table, if_not_exists=if_not_exists)
            case DropTable(name, if_exists):
                await self.drop_table(name, if_exists=if_exists)
            case AlterTable(table, changes):
                await self.alter_table(table.name, changes)
            case _:  # the client does the rest
                pass
        return Reply({**reply.header, **self._versions()}, reply.payload)

    async def _explain(self, request: Request) -> Reply:
        return await self._plan(self._statements.explain, request)

    async def _plan(self, work: Callable[[str, Params, Mapping[str, Any], PlanningView], T], request: Request) -> T:
        args = request.args
        view = PlanningView(self._catalog, self._topology, self._statistics.picture)
        return await asyncio.get_running_loop().run_in_executor(self._planning, work, args["sql"], args["params"], args.get("settings") or {}, view)

    async def create_table(self, table: TableDef, *, if_not_exists: bool) -> None:
        """Give a table its id and owners, and tell the members.

        Raises:
            TableExistsError: The name is taken.
            NotSupportedError: It wants more backups than the tables that it is co-located with.
            PartitionLostError: No member is left.
        """
        async with self._changing:
            if if_not_exists and self._catalog.find(table.name) is not None:
                return
            catalog, created = self._catalog.with_table(table)
            while not await self._create_at_members(created):
                catalog, created = self._catalog.with_table(table)
            self._catalog = catalog

    async def _create_at_members(self, table: TableDef) -> bool:
        """Give a table owners and tell the members; False when one of them turned out to be lost: the id is spent then, and the survivors are to be asked anew.

        The owners count only once every member has the table, so that nothing is left of a table that could not be created.
        """
        event = TableCreated(table)
        topology = advance(self._topology, event)
        self._catalog = replace(self._catalog, last_table_id=table.table_id)
        outcomes = await asyncio.gather(
            *(
                self._peers.call(member_id, "create_table", {"table": table.to_wire(), "partitions": _hosted(topology, table, member_id)})
                for member_id in topology.member_ids
            ),
            return_exceptions=True,
        )
        failures = {member_id: outcome for member_id, outcome in zip(topology.member_ids, outcomes, strict=True) if isinstance(outcome, BaseException)}
        if not failures:
            await self._advance(event)
            return True
        for member_id, failure in failures.items():
            if isinstance(failure, _GONE):
                await self._advance(MemberLost(member_id))
        await self._drop_at_members(table)
        for failure in failures.values():
            if not isinstance(failure, _GONE):
                raise failure
        return False

    async def drop_table(self, name: str, *, if_exists: bool) -> None:
        """Forget a table everywhere.

        Raises:
            UnknownTableError: There is no such table.
        """
        async with self._changing:
            if if_exists and self._catalog.find(name) is None:
                return
            self._catalog, table = self._catalog.without_table(name)
            await self._drop_at_members(table)
            self._loads.forget(table.table_id)
            self._statistics.forget(table.table_id)
            await self._forget_owners(table.scheme.affinity_group())

    async def alter_table(self, name: str, changes: Sequence[RangeChange]) -> TableDef:
        """Change the ranges of a table: all the changes, or an error and none.

        Raises:
            UnknownTableError: There is no such table.
            SchemeError: The changes do not fit its ranges as they are now, or a range is to be added whose rows the catch-all has.
            PartitionLostError: No member is left.
        """
        table = self._catalog.table(name)
        async with self._loads.exclusive(table.table_id), self._changing:
            before = self._catalog.table(name)
            types = {column.name: column.type for column in before.columns}
            change = partial(alter_ranges, before.scheme, changes, types=types, primary_key=before.primary_key, table=before.name)
            return await self._change_ranges(before, change)

    async def _make_ranges(self, request: Request) -> Reply:
        """Make the ranges that rows need, which are on their way to a table with EVERY. They take nothing from anybody, so loads need not wait."""
        args = request.args
        async with self._changing:
            table = self._catalog.table(args["table"])
            if table.table_id != args["table_id"]:
                raise TopologyChangedError(f"table {table.name} was dropped and created again while rows were on their way to it", table=table.name)
            cells = args["cells"]
            if not all(type(cell) is int for cell in cells):
                raise ProtocolError("make_ranges: cells are numbers")
            await self._change_ranges(table, partial(with_cells, table.scheme, cells, table=table.name))
        return Reply(self._versions())

    async def _change_ranges(self, before: TableDef, change: Callable[[], PartitionScheme]) -> TableDef:
        def changed() -> PartitionScheme:
            scheme = change()
            scheme.resolve()
            scheme.structure()
            return scheme

        # With many ranges this takes its time, which the event loop does not have.
        scheme = await asyncio.get_running_loop().run_in_executor(self._planning, changed)
        if scheme is before.scheme:
            return before
        while not await self._change_at_members(before, scheme):
            pass  # one of the members turned out to be lost: the survivors are asked anew
        await self._forget_owners(before.scheme.affinity_group())
        return self._catalog.table(before.name)

    async def _change_at_members(self, before: TableDef, scheme: PartitionScheme) -> bool:
        """Give new ranges owners and tell the members; False when one of them turned out to be lost, and nothing was changed."""
        taken = {other.scheme.affinity_group() for other in self._catalog.tables() if not other.replicated and other.table_id != before.table_id}
        unique = f"{before.table_id}.{before.version + 1}"
        scheme = scheme.in_group(group_after(self._topology, before.scheme, scheme, taken, unique))
        catalog, after = self._catalog.with_scheme(before.name, scheme)
        await self._advance(RangesChanged(before.scheme, scheme))
        try:
            await self._ranges.change(after, {member_id: _hosted(self._topology, after, member_id) for member_id in self._topology.member_ids})
        except MemberLostError as lost:
            await self._advance(MemberLost(lost.details["member"]))
            await self._forget_owners(scheme.affinity_group())
            return False
        except BaseException:
            await self._forget_owners(scheme.affinity_group())
            raise
        self._catalog = catalog
        return True

    async def _forget_owners(self, group: str) -> None:
        if all(table.replicated or table.scheme.affinity_group() != group for table in self._catalog.tables()):
            await self._advance(OwnersForgotten(group))

    async def _drop_at_members(self, table: TableDef) -> None:
        await asyncio.gather(
            *(self._peers.call(member_id, "drop_table", {"table_id": table.table_id}) for member_id in self._topology.member_ids), return_exceptions=True
        )

    # -- loads

    async def _publish_load(self, request: Request) -> Reply:
        args = request.args
        table = self._catalog.table(args["table"])
        if args.get("table_id", table.table_id) != table.table_id:
            raise TopologyChangedError(f"table {table.name} was dropped and created again while rows were staged for it; nothing was loaded", table=table.name)
        try:
            attempts = {int(partition): [int(attempt) for attempt in counted] for partition, counted in args["parts"].items()}
        except (TypeError, ValueError) as error:
            raise ProtocolError(f"load_publish: parts gives the numbers of attempts by partition, and cannot be read: {error}") from error
        rows = await self._loads.publish(self._new_load(args["load_id"], table, args["mode"], attempts))
        if args["mode"] == Operation.OVERWRITE:
            self._statistics.replaced(table.table_id)
        else:
            self._statistics.written(table.table_id, rows)
        return Reply({"rows": rows, **self._versions()})

    def _new_load(self, load_id: str, table: TableDef, mode: str, attempts: Mapping[int, Sequence[int]]) -> Load:
        # Also those without a copy: readers compare the numbers of the last publication.
        copies = {member_id: frozenset(_hosted(self._topology, table, member_id)) for member_id in self._topology.member_ids}
        self._last_load += 1
        return Load(load_id, self._last_load, table, mode, attempts, copies)

    async def _change_rows(self, request: Request) -> Reply:
        """Carry out an UPDATE or DELETE that concerns several partitions, or a replicated table."""
        args, topology = request.args, self._topology
        plan = self._statements.plan(args["plan"])
        scan = plan.scans[0]
        table = self._catalog.table(scan.table)
        if (table.table_id, table.version) != (scan.table_id, scan.table_version):
            raise TopologyChangedError(f"table {table.name} has changed since the statement was planned: plan it again; nothing was changed", table=table.name)
        ids = bound_partitions(plan, args["params"], pruning=args["pruning"])[0]
        partitions = {topology.member_ids[0]: [0]} if table.replicated else _by_primary(topology, table, ids)
        topology.check_live(list(partitions))
        load = self._new_load(args["load_id"], table, args["operation"], {})
        passed = {name: args[name] for name in ("plan", "params", "pruning", "operation")}
        rows = await self._loads.change(Change(load, ATTEMPT, partitions, passed))
        self._statistics.written(table.table_id, rows)
        held = {member_id for member_id, copies in load.copies.items() if not copies.isdisjoint(ids)}
        return Reply({"rows": rows, "members_touched": len(held), **self._versions()})

    async def _abort_load(self, request: Request) -> Reply:
        await self._loads.abort(request.args["load_id"], self._topology.member_ids)
        return Reply()

    # -- members

    async def _join(self, request: Request) -> Reply:
        args = request.args
        await self._change(MemberJoined(MemberAddress(args["member"], args["host"], args["port"])))
        return Reply(self._versions())

    async def _member_lost(self, request: Request) -> Reply:
        await self._change(MemberLost(request.args["member"]))
        return Reply(self._versions())

    async def _check_member(self, member_id: str) -> None:
        """Find out now whether a member is alive, rather than at the next look of the watch."""
        try:
            await self._peers.call(member_id, "ping", {})
        except _GONE:
            await self._change(MemberLost(member_id))
        except OperationalError:
            pass  # late, not dead

    def _group_of(self, table: str) -> str:
        return self._catalog.table(table).scheme.affinity_group()

    async def _change(self, event: Event) -> None:
        async with self._changing:
            await self._advance(event)

    async def _advance(self, event: Event) -> None:
        """Take over the next topology and send it to the members. A member that cannot be reached is found by the watch."""
        before, self._topology = self._topology, advance(self._topology, event)
        if self._topology is before:
            return
        gone = {member.id: member for member in before.members if member.id not in self._topology.member_ids}
        self._lost.update(gone)
        for member_id in self._topology.member_ids:
            self._lost.pop(member_id, None)
        self._peers.update(self._topology)
        for member_id in gone:
            self._jobs.member_lost(member_id)
        payload = pack(self._topology.to_wire())
        outcomes = await asyncio.gather(
            *(self._peers.call(member_id, "topology", {}, payload) for member_id in self._topology.member_ids), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, OperationalError):
                raise outcome

    async def _watch(self) -> None:
        """Find out that a member died although nobody said so."""
        while True:
            await asyncio.sleep(_WATCH_INTERVAL_S)
            members = self._topology.member_ids
            answers = await asyncio.gather(*(self._peers.call(member_id, "ping", {}) for member_id in members), return_exceptions=True)
            for member_id, answer in zip(members, answers, strict=True):
                if isinstance(answer, dict):
                    self._statistics.counted(member_id, answer["written"])
                elif isinstance(answer, _GONE):
                    try:
                        await self._change(MemberLost(member_id))
                    except Exception:  # the watch must go on: nobody else would notice the next loss
                        _log.exception("member %s is lost, but not every member could be told", member_id)


def _hosted(topology: Topology, table: TableDef, member_id: str) -> list[int]:
    return [0] if table.replicated else _live(table, topology.ownership(table.scheme.affinity_group()).held_by(member_id))


def _live(table: TableDef, partitions: list[int]) -> list[int]:
    """Without the ids of dropped ranges, which have owners but no rows."""
    component = table.scheme.range
    if component is None or not component.retired:
        return partitions
    live: list[int] = np.intersect1d(partitions, table.scheme.live_partitions(), assume_unique=True).tolist()
    return live


def _by_primary(topology: Topology, table: TableDef, partitions: Sequence[int]) -> dict[str, list[int]]:
    ownership = topology.ownership(table.scheme.affinity_group())
    found: defaultdict[str, list[int]] = defaultdict(list)
    for partition in partitions:
        found[ownership.primary(partition)].append(partition)
    return dict(found)


def _describe_lost(member: MemberAddress) -> dict[str, Any]:
    counters = dict.fromkeys(("partitions_primary", "partitions_backup", "rows", "bytes", "executions", "frames_received"), 0)
    return {"id": member.id, "address": f"{member.host}:{member.port}", "state": "lost", **counters}
