"""Delivers each topology, and the record, to every member separately, so that a silent one delays no other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable
from functools import partial
from typing import Any

from secateur.cluster.peers import MemberCaller
from secateur.errors import Error
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.catalog import TakeTopology

_log = logging.getLogger(__name__)

RestOfRecord = Callable[[], Coroutine[Any, Any, bytes]]


class TopologyDelivery:
    """Sends the newest topology and record to each of its members until it has them. Lives on the controller's loop.

    The larger part of the record is the catalog, so each member receives that only when it has changed.

    Args:
        pause_s: Seconds between two tries to reach a member.
        on_superseded: Called when a member knows a controller of a later epoch.
    """

    def __init__(
        self,
        members: MemberCaller,
        *,
        epoch: int = 0,
        pause_s: float = 0.1,
        on_superseded: Callable[[], None] = lambda: None,
    ) -> None:
        self.epoch = epoch
        self._members = members
        self._pause_s = pause_s
        self._on_superseded = on_superseded
        self._topology = Topology(0, (), {})
        self._rest: RestOfRecord
        self._version = 0
        self._reached: dict[str, int] = {}
        self._kept: dict[str, bytes] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._moved = asyncio.Event()
        self._first: list[tuple[int, frozenset[str]]] = []  # who acts first on a version, and on those behind it

    def send(self, topology: Topology, rest: RestOfRecord, first: Collection[str] = ()) -> None:
        """Take this topology to its members from now on.

        Args:
            topology: Members and owners.
            rest: Encodes the rest of the record that belongs to it.
            first: Members that others wait for: the others act on it only when these do, or have left.
        """
        self._version += 1
        self._topology, self._rest = topology, rest
        if first:
            self._first.append((self._version, frozenset(first)))
        members = frozenset(topology.member_ids)
        self._reached = {member: version for member, version in self._reached.items() if member in members}
        self._kept = {member: rest for member, rest in self._kept.items() if member in members}
        for member in self._tasks.keys() - members:
            self._tasks.pop(member).cancel()
        for member in members:
            if member not in self._tasks or self._tasks[member].done():
                self._tasks[member] = task = asyncio.get_running_loop().create_task(
                    self._take(member), name=f"topology to {member}"
                )
                task.add_done_callback(partial(self._ended, member))
        self._stir()

    async def reached(self, members: Iterable[str] | None = None) -> None:
        """Wait until all members, or the named ones, have the current topology and record or later ones, or left."""
        version = self._version
        while self._lacks(version, self._topology.member_ids if members is None else members):
            await self._moved.wait()

    async def close(self) -> None:
        """Send nothing more."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _lacks(self, version: int, members: Iterable[str]) -> bool:
        """Whether one of these members has not left, and does not have a version yet."""
        return any(
            self._reached.get(member, 0) < version for member in set(members).intersection(self._topology.member_ids)
        )

    async def _turn_of(self, member: str) -> None:
        """Wait for those who have to act on a version before this member does."""
        while True:
            self._first = [(version, first) for version, first in self._first if self._lacks(version, first)]
            if not any(
                member not in first and self._reached.get(member, 0) < version for version, first in self._first
            ):
                return
            await self._moved.wait()

    async def _take(self, member: str) -> None:
        while (version := self._version) > self._reached.get(member, 0):
            await self._turn_of(member)
            version = self._version
            topology, rest = self._topology, self._rest
            try:
                state = await rest()
                told = None if self._kept.get(member) == state else state
                await self._members.call(member, TakeTopology(topology, self.epoch, version, told))
            except Error as error:
                if error.details.get("superseded"):
                    _log.error("this controller is superseded: %s", error)
                    self._on_superseded()
                    return
                self._kept.pop(member, None)  # perhaps it does not have it
                _log.info("topology %d did not reach member %s: %s", topology.version, member, error)
                await asyncio.sleep(self._pause_s)
            except Exception:  # a member whose topology nobody delivers would be waited for without end
                self._kept.pop(member, None)
                _log.exception("topology %d could not be sent to member %s", topology.version, member)
                await asyncio.sleep(self._pause_s)
            else:
                self._kept[member] = state
                self._reached[member] = version
                self._stir()

    def _ended(self, member: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(member) is task:
            del self._tasks[member]

    def _stir(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()
