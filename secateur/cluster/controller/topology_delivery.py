"""Delivers each topology to every member separately, so that a silent one delays no other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from functools import partial

from secateur.cluster.peers import MemberCaller
from secateur.errors import Error
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.catalog import TakeTopology

__all__ = ["TopologyDelivery"]

_log = logging.getLogger(__name__)


class TopologyDelivery:
    """Sends the newest topology to each of its members until it acts on it. Lives on the controller's event loop.

    Args:
        members: How to reach the members.
        pause_s: Seconds between two tries to reach a member.
    """

    def __init__(self, members: MemberCaller, *, pause_s: float = 0.1) -> None:
        self._members = members
        self._pause_s = pause_s
        self._topology = Topology(0, (), {})
        self._message = TakeTopology(self._topology)
        self._reached: dict[str, int] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._moved = asyncio.Event()

    def send(self, topology: Topology) -> None:
        """Take this topology to its members from now on."""
        self._topology, self._message = topology, TakeTopology(topology)
        members = frozenset(topology.member_ids)
        self._reached = {member: version for member, version in self._reached.items() if member in members}
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
        """Wait until all members, or the named ones, act on the current topology or a later one, or have left."""
        version = self._topology.version
        wanted = set(self._topology.member_ids if members is None else members)
        while any(self._reached.get(member, 0) < version for member in wanted.intersection(self._topology.member_ids)):
            await self._moved.wait()

    async def close(self) -> None:
        """Send nothing more."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _take(self, member: str) -> None:
        while (version := self._topology.version) > self._reached.get(member, 0):
            try:
                await self._members.call(member, self._message)
            except Error as error:
                _log.info("topology %d did not reach member %s: %s", version, member, error)
                await asyncio.sleep(self._pause_s)
            except Exception:  # a member whose topology nobody delivers would be waited for without end
                _log.exception("topology %d could not be sent to member %s", version, member)
                await asyncio.sleep(self._pause_s)
            else:
                self._reached[member] = version
                self._stir()

    def _ended(self, member: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(member) is task:
            del self._tasks[member]

    def _stir(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()
