"""Carries out the moves of copies that :mod:`~secateur.cluster.controller.rebalancing` decides, one after the other.

While a batch of copies is built, no load is published and no change of several partitions is made, so the new copies
cannot miss one; batches are small, and between two of them others have their turn. Writes of single partitions go on.
No partition has fewer copies than before at any moment, and none is without a primary for longer than it takes to tell
its old and its new primary.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from typing import Final

from secateur.cluster.controller.cluster_state import ClusterState
from secateur.cluster.controller.joining import Joining
from secateur.cluster.controller.membership import CopiesDropped, CopiesMoved, CopiesWanted, CopyLost, PrimariesMoved
from secateur.cluster.controller.rebalancing import CopiesOfGroup, Move, empty, moves_of
from secateur.cluster.loop_thread import BackgroundTasks
from secateur.errors import Error, TopologyChangedError
from secateur.partitioning.topology.topology import MemberAddress, Topology
from secateur.protocol import copies as protocol
from secateur.protocol.message import Acknowledged, Message
from secateur.wire import Reply, Request

_log = logging.getLogger(__name__)

_LOOK_S: Final = 0.1
_EPOCH_BITS: Final = 32
_FAILURES_MAX: Final = 3
_PAUSE_MIN_S: Final = 0.1
_PAUSE_MAX_S: Final = 2.0


class Rebalancer:
    """Keeps as many copies as the tables ask for, spread evenly. Lives on the controller's event loop.

    Args:
        joining: Its lock keeps publications away while copies are built.
        is_on: Whether copies are built and moved at all.
    """

    def __init__(self, state: ClusterState, joining: Joining, *, is_on: bool) -> None:
        self._state = state
        self._joining = joining
        self._events = state.events
        self._is_on = is_on
        self._lost_copies: set[tuple[int, int, str]] = set()
        self._settled_at: object = None
        self._moves_left: int | None = None
        self._shared_among: tuple[MemberAddress, ...] = ()
        self._kept_drained: frozenset[str] = frozenset()  # drained, and the next controller would know it
        self._error: str | None = None
        self._attempts = 0
        self._failures = 0
        self._background = BackgroundTasks()

    def start(self) -> None:
        """Look after the copies from now on."""
        self._kept_drained = self._state.leaving.drained
        if self._is_on:
            self._background.start(self._run(), "controller rebalances")

    async def close(self) -> None:
        """Move nothing more."""
        await self._background.close()

    async def copy_lost(self, table_id: int, partition: int, member_id: str) -> None:
        """A copy is out of sync: have no member count on it, and its member forget it.

        If it is being built, it does not become an owner. Returns when no member counts on it.
        """
        self._lost_copies.add((table_id, partition, member_id))
        attempt = self._next_attempt()  # a copy that is built from now on is another one
        async with self._state.changing:  # a change of ranges, which ends now, gives the table another group
            table = self._state.catalog.by_id(table_id)
            if table is None:
                return
            group = table.scheme.affinity_group()
            await self._state.advance(CopyLost(group, partition, member_id))
        self._background.start(self._drop(group, member_id, [partition], attempt), f"drop a copy of {member_id}")

    async def drain(self, request: Request[protocol.DrainMembers]) -> Reply[Acknowledged]:
        """Answer ``drain_members`` when the members keep it for the next controller."""
        self._settled_at, self._moves_left = None, None
        self._state.leaving = self._state.leaving.asked(request.message.members)
        await self._state.all_reached()
        return Reply(Acknowledged())

    def progress(self, _: Request[protocol.GetRebalancing]) -> Reply[protocol.Rebalancing]:
        """Answer ``get_rebalancing``."""
        if not self._is_on:
            return Reply(protocol.Rebalancing(0))
        leaving = self._state.leaving
        is_settled = self._looked_at() == self._settled_at
        return Reply(
            protocol.Rebalancing(
                self._moves_left if is_settled else None,
                self._error,
                tuple(sorted(leaving.draining | (leaving.drained - self._kept_drained))),
                tuple(sorted(leaving.drained & self._kept_drained)),
            )
        )

    # --

    def _looked_at(self) -> object:
        """A value that is equal as long as nothing has changed on which the placement of copies depends."""
        return self._state.topology.version, self._state.catalog.version, self._state.leaving

    async def _run(self) -> None:
        pause_s = _PAUSE_MIN_S
        while True:
            if self._looked_at() == self._settled_at and not self._moves_left:
                await asyncio.sleep(_LOOK_S)
                continue
            try:
                await self._look()
                self._error, pause_s = None, _PAUSE_MIN_S
            except Error as error:
                _log.info("copies could not be moved now: %s", error)
                self._failures += 1
                self._error = str(error)
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, _PAUSE_MAX_S)
            except Exception as error:  # nobody else would look after the copies
                _log.exception("the rebalancing met an error")
                self._error = f"{type(error).__name__}: {error}"
                await asyncio.sleep(_PAUSE_MAX_S)

    async def _look(self) -> None:
        """Carry out the moves that are needed, until the members or tables change for another reason.

        One that fails holds none of the others up.

        Raises:
            Error: Of the first that failed.
        """
        await self._drain()
        await self._share_rows()
        looked_at = self._looked_at()
        there_is = self._state.topology, self._wanted(), self._state.leaving
        moves = await asyncio.get_running_loop().run_in_executor(None, moves_of, *there_is)
        if self._moves_left in (None, 0) and moves:
            self._events.add("rebalancing_started", None, f"{len(moves)} moves")
        elif self._moves_left and not moves:
            self._events.add("rebalancing_finished", None, "")
        self._settled_at, self._moves_left = looked_at, len(moves)
        failures: list[Error] = []
        for left, move in zip(range(len(moves), 0, -1), moves, strict=True):
            if left < len(moves) and self._looked_at() != self._settled_at:
                break  # the first move is made in any case: it is checked, and somebody may change tables all the time
            self._moves_left = left + len(failures)
            try:
                await self._carry_out(move)
            except Error as error:
                failures.append(error)
            else:
                self._settled_at = self._looked_at()
        if failures:
            raise failures[0]
        self._failures = 0
        if moves:
            self._settled_at = None  # look again: a move may have made another one possible

    async def _drain(self) -> None:
        """Record the leaving members that own nothing as drained; from then on no partition is moved to them.

        Moves to them that were decided before have ended: nobody else carries out moves.
        """
        state = self._state
        if state.leaving.draining:
            async with state.changing:
                found = empty(state.topology, self._wanted(), state.leaving.draining)
                if found:
                    state.leaving = state.leaving.found_empty(found, state.topology.member_ids)
        if not state.leaving.drained <= self._kept_drained:
            await state.all_reached()
            for member_id in sorted(state.leaving.drained - self._kept_drained):
                self._events.add("member_drained", member_id, "")
            self._kept_drained = state.leaving.drained

    async def _share_rows(self) -> None:
        """Members that lack the rows of a replicated table get them, whenever others are members.

        Loads and changes of tables wait for that, so it is left out where no member lacks any. A replicated table that
        is created later is created with its rows, of which it has none, on all members of then.
        """
        state = self._state
        if state.topology.members == self._shared_among:
            return
        if not self._joining.may_lack_rows:
            self._shared_among = state.topology.members
            return
        async with self._joining.loads.alone(), state.changing:
            members = state.topology.members
            await self._joining.share_rows()
            self._shared_among = members

    def _wanted(self) -> dict[str, CopiesOfGroup]:
        wanted: dict[str, CopiesOfGroup] = {}
        for table in self._state.catalog.tables():
            if not table.replicated:
                group = table.scheme.affinity_group()
                others = wanted.get(group)
                copies = max(1 + table.backups, 0 if others is None else others.copies)
                wanted[group] = CopiesOfGroup(copies, table.scheme.live_partitions())
        return wanted

    async def _carry_out(self, move: Move) -> None:
        match move:
            case CopiesMoved():
                await self._move_copies(move)
            case PrimariesMoved(group, moves):
                async with self._state.changing:
                    self._check(group, [partition for partition, _ in moves])
                    before = self._state.topology.ownership(group)
                    losing = {before.primary(partition) for partition, _ in moves}
                    await self._state.advance(move, first=losing)
                self._events.add("primaries_moved", None, f"{len(moves)} partitions")
            case CopiesDropped(group, member_id, partitions):
                async with self._state.changing:
                    self._check(group, partitions)
                    await self._state.advance(move)
                await self._drop(group, member_id, partitions)
            case CopiesWanted():
                async with self._state.changing:
                    await self._state.advance(move)

    async def _move_copies(self, move: CopiesMoved) -> None:
        """Build copies on a member, and make it their owner."""
        partitions = move.partitions
        async with self._joining.loads.alone(), AsyncExitStack() as held:
            if self._failures >= _FAILURES_MAX:  # tables come and go all the time: they wait for this batch
                await held.enter_async_context(self._state.changing)
            tables = self._tables(move.group)
            self._lost_copies.clear()
            attempt = self._next_attempt()
            try:
                await self._state.call(move.target, protocol.BuildCopies(tables, partitions, move.source, attempt))
                await self._state.call(move.source, protocol.CountCopies(tables, partitions, move.target, attempt))
                if self._failures < _FAILURES_MAX:
                    await held.enter_async_context(self._state.changing)
                self._check(move.group, partitions, tables)
                self._check_still(move, tables, self._state.topology)
                is_successor = any(replaced == move.source for _, replaced in move.moves)
                await self._state.advance(move, first={move.source} if is_successor else ())
            except Exception:
                await self._tell(move.source, protocol.ForgetCopies(tables, partitions, move.target, attempt))
                await self._tell(move.target, protocol.DropCopies(tables, partitions, attempt))
                raise
        self._events.add("copies_built", move.target, f"{len(partitions)} partitions, from {move.source}")
        replaced: defaultdict[str, list[int]] = defaultdict(list)
        for partition, member in move.moves:
            if member is not None:
                replaced[member].append(partition)
        for member, dropped in replaced.items():
            await self._drop(move.group, member, dropped)

    def _check_still(self, move: CopiesMoved, tables: Sequence[int], topology: Topology) -> None:
        """Refuse to make a member an owner if its copies may lack a write.

        Raises:
            TopologyChangedError: The primary has changed since, or has counted a copy out.
        """
        ownership = topology.ownership(move.group)
        for partition, replaced in move.moves:
            holders = ownership.holders(partition)
            is_lost = any((table_id, partition, move.target) in self._lost_copies for table_id in tables)
            if is_lost or holders[0] != move.source or (replaced is not None and replaced not in holders):
                raise TopologyChangedError(
                    f"the owners of partition {partition} have changed while {move.target} built a copy",
                    topology_version=topology.version,
                )
        topology.member(move.target)
        topology.member(move.source)

    def _check(self, group: str, partitions: Collection[int], tables: Sequence[int] | None = None) -> None:
        """Refuse a move that was decided for other tables.

        Raises:
            TopologyChangedError: Tables were created, dropped or altered since.
        """
        ownership = self._state.topology.owners.get(group)
        if (
            ownership is None
            or max(partitions, default=-1) >= ownership.partitions
            or (tables is not None and tables != self._tables(group))
        ):
            raise TopologyChangedError("tables have changed while copies of their partitions were moved")

    def _tables(self, group: str) -> list[int]:
        return [
            table.table_id
            for table in self._state.catalog.tables()
            if not table.replicated and table.scheme.affinity_group() == group
        ]

    async def _drop(self, group: str, member_id: str, partitions: Sequence[int], attempt: int | None = None) -> None:
        """Have a member forget rows that it does not own any more; if it does not, they only take memory."""
        if member_id in self._state.topology.member_ids:
            attempt = self._next_attempt() if attempt is None else attempt
            await self._tell(member_id, protocol.DropCopies(self._tables(group), list(partitions), attempt))

    def _next_attempt(self) -> int:
        self._attempts += 1
        return (self._state.epoch << _EPOCH_BITS) + self._attempts

    async def _tell(self, member_id: str, message: Message[Acknowledged]) -> None:
        try:
            await self._state.call(member_id, message)
        except Error as error:
            _log.info("member %s did not take %s: %s", member_id, type(message).__name__, error)
