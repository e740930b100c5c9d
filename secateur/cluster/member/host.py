"""The host of a member: a process of the Ray runtime, or a part of this one.

A member that was removed but is alive finds out from the first answer it gets. Its data may be outdated, so it ends,
and a new one replaces it, with an id of its own and without partitions, until the controller moves some to it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from secateur.cluster.member.member import Member
from secateur.cluster.process_address import LOOPBACK, ProcessAddress
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import peer_at
from secateur.errors import Error
from secateur.protocol.membership import NameMember
from secateur.protocol.message import Role
from secateur.storage.log.disk import Disk, LocalDisk

__all__ = ["MemberHost"]

_log = logging.getLogger(__name__)


class MemberHost:
    """Runs a member, and the next one when that is given up. Made and used on one event loop.

    Args:
        member_id: Id of the first member.
        settings: The settings of the cluster.
        controller_address: ``host:port`` of the controller.
        own_address: Where it listens.
        open_disk: Opens the disk of a member, by its id; None takes its directory below the cluster's data directory.

    Attributes:
        member: The one that lives here now.
    """

    def __init__(
        self,
        member_id: str,
        settings: ClusterSettings,
        controller_address: str,
        own_address: ProcessAddress = LOOPBACK,
        open_disk: Callable[[str], Disk] | None = None,
    ) -> None:
        self._open_disk = open_disk
        self._settings = settings
        self._controller_address = controller_address
        self._own_address = own_address
        self.member = self._new_member(member_id)
        self._coming_back: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._is_ending = False

    @classmethod
    async def replacement(
        cls, settings: ClusterSettings, controller_address: str, own_address: ProcessAddress = LOOPBACK
    ) -> MemberHost:
        """Start a member in the place of one whose process has ended, as soon as the controller accepts it."""
        while True:
            try:
                host = cls(await _new_id(settings, controller_address), settings, controller_address, own_address)
                try:
                    await host.start()
                except BaseException:
                    await host.stop()
                    raise
            except Error as error:
                _log.warning("a member cannot be replaced yet: %s", error)
                await asyncio.sleep(settings.lease_times.interval_s)
            else:
                return host

    @property
    def member_id(self) -> str:
        """The id of the member that lives here now."""
        return self.member.member_id

    async def start(self) -> None:
        """Start the first member.

        Raises:
            OperationalError: As :meth:`Member.start`.
        """
        await self.member.start()

    async def stop(self) -> None:
        """End the member, and let none come in its place."""
        self._is_ending = True
        if self._starting is not None:
            self._starting.cancel()
        if self._coming_back is not None:
            await self._coming_back
        await self.member.stop()

    def _given_up(self) -> None:
        if not self._is_ending and (self._coming_back is None or self._coming_back.done()):
            self._coming_back = asyncio.get_running_loop().create_task(
                self._come_back(), name=f"{self.member_id} comes back"
            )

    async def _come_back(self) -> None:
        """End a member that was removed, and add a new one to the cluster as soon as the controller accepts it."""
        given_up = self.member_id
        await self.member.stop()
        while not self._is_ending:
            self._starting = asyncio.get_running_loop().create_task(self._start_another())
            (outcome,) = await asyncio.gather(self._starting, return_exceptions=True)
            if outcome is None:
                _log.warning(
                    "member %s was removed from the cluster although it lives: it has dropped its rows and"
                    " joined again as %s",
                    given_up,
                    self.member_id,
                )
                return
            _log.warning("member %s was removed, and cannot come back yet: %s", given_up, outcome)
            await self.member.stop()
            await asyncio.sleep(0 if self._is_ending else self._settings.lease_times.interval_s)

    async def _start_another(self) -> None:
        self.member = self._new_member(await _new_id(self._settings, self._controller_address))
        await self.member.start()

    def _new_member(self, member_id: str) -> Member:
        disk = None
        if self._open_disk is not None:
            disk = self._open_disk(member_id)
        elif self._settings.data_directory is not None:
            disk = LocalDisk(Path(self._settings.data_directory) / member_id)
        return Member(member_id, self._settings, self._controller_address, self._given_up, self._own_address, disk)


async def _new_id(settings: ClusterSettings, controller_address: str) -> str:
    """An id that no member of the cluster has had."""
    host, _, port = controller_address.rpartition(":")
    controller = peer_at(host, int(port), settings, name="a member that comes back", role=Role.MEMBER)
    try:
        return (await controller.request(NameMember(settings.cluster_id))).message.member
    finally:
        await controller.close()
