"""The host of a member: a process of the Ray runtime, or a part of this one.

A member that was removed but is alive finds out from the first answer it gets. If it was the last owner of some
partition, the controller lets it in again with that. Otherwise its data may be outdated, so it ends, and a new one
replaces it, with an id of its own and without partitions, until the controller moves some to it.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from secateur.cluster.data_directory import members_on_disk
from secateur.cluster.member.member import Member
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import LOOPBACK, ProcessAddress, peer_at
from secateur.errors import DiskError, Error, OperationalError
from secateur.protocol.membership import MemberName, NameMember
from secateur.protocol.message import Role
from secateur.storage.log.disk import Disk, LocalDisk

_log = logging.getLogger(__name__)


class MemberDisks:
    """The data directories of the members on one machine, below one."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def has(self, member_id: str) -> bool:
        """Whether there are data of a member."""
        return (self._path / member_id).is_dir()

    def recorded(self) -> list[str]:
        """The members of the newest record here that have their data here; processes of them may live.

        Raises:
            DiskError: It cannot be read.
        """
        return members_on_disk(str(self._path))

    def open(self, member_id: str) -> Disk:
        """The disk of a member, new if it has none.

        Raises:
            DiskError: Another process uses it.
        """
        return LocalDisk(self._path / member_id)


class MemberHost:
    """Runs a member, and the next one when that is given up. Made and used on one event loop.

    Args:
        member_id: Id of the first member.
        controller_address: ``host:port`` of the controller.
        disks: The disks of this machine; None takes the directories below the cluster's data directory, if it has one.

    Attributes:
        member: The one that lives here now.
    """

    def __init__(
        self,
        member_id: str,
        settings: ClusterSettings,
        controller_address: str,
        own_address: ProcessAddress = LOOPBACK,
        disks: MemberDisks | None = None,
    ) -> None:
        self._disks = disks or _disks_of(settings)
        self._settings = settings
        self._controller_address = controller_address
        self._own_address = own_address
        self.member = self._new_member(member_id)
        self._coming_back: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._is_ending = False
        self._is_given_up = False
        self._may_return = False

    @classmethod
    async def replacement(
        cls,
        settings: ClusterSettings,
        controller_address: str,
        own_address: ProcessAddress = LOOPBACK,
        disks: MemberDisks | None = None,
    ) -> MemberHost:
        """Start a member in the place of one whose process has ended, as soon as the controller accepts it.

        If one that has left was the last owner of partitions, and its data directory is here, that one comes back. If
        the controller has been started anew as well, it may be that everything has ended: a member whose data are here
        is then started with them, and reports to it.
        """
        disks = disks or _disks_of(settings)
        while True:
            try:
                has_data = disks is not None and bool(disks.recorded())
                name = await _new_name(settings, controller_address, may_report=has_data)
                if name.wants_report and disks is not None:
                    host = await cls._reporting(settings, controller_address, own_address, disks)
                    if host is not None:
                        return host
                    name = await _new_name(settings, controller_address)
                on_disk = [] if disks is None else [member for member in name.absent if disks.has(member)]
                for member_id in (*on_disk, name.member):
                    host = cls(member_id, settings, controller_address, own_address, disks)
                    try:
                        if await host._started(is_new=member_id == name.member):
                            return host
                    except BaseException:
                        await host.stop()
                        raise
                    await host.stop()
            except Error as error:
                _log.warning("a member cannot be replaced yet: %s", error)
                await asyncio.sleep(settings.lease_times.interval_s)

    @classmethod
    async def _reporting(
        cls, settings: ClusterSettings, controller_address: str, own_address: ProcessAddress, disks: MemberDisks
    ) -> MemberHost | None:
        """Start a member whose data are here; None if processes have them all.

        It goes on as that member if the controller finds that all members have ended. Otherwise others have gone on
        without it, and it comes back as any member does that was given up.
        """
        for member_id in disks.recorded():
            try:
                host = cls(member_id, settings, controller_address, own_address, disks)
            except DiskError as error:
                _log.info("%s", error)
                continue
            try:
                await host.start()
            except BaseException:
                await host.stop()
                raise
            return host
        return None

    async def _started(self, *, is_new: bool) -> bool:
        """Start the member; false for one that comes back although others have its data."""
        if not is_new:
            return await self.member.start_in_place()
        await self.start()
        return True

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

    async def stop_as(self, member_id: str) -> bool:
        """:meth:`stop`, unless the member that lives here now is another one, which others may count on.

        Returns:
            Whether it has ended.
        """
        if self.member_id != member_id:
            return False
        await self.stop()
        return True

    def _given_up(self) -> None:
        self._is_given_up = self._may_return = True
        if not self._is_ending and (self._coming_back is None or self._coming_back.done()):
            self._coming_back = asyncio.get_running_loop().create_task(
                self._come_back(), name=f"{self.member_id} comes back"
            )

    async def _come_back(self) -> None:
        """Have the removed member in the cluster again, or a new one, as soon as the controller accepts it.

        The one may be removed while it returns, and the other before it has joined.
        """
        while self._is_given_up and not self._is_ending:
            self._is_given_up = False
            self._starting = asyncio.get_running_loop().create_task(self._return_or_start_another())
            (outcome,) = await asyncio.gather(self._starting, return_exceptions=True)
            if outcome is not None:
                _log.warning("member %s was removed, and cannot come back yet: %s", self.member_id, outcome)
                self._is_given_up = True
                await asyncio.sleep(0 if self._is_ending else self._settings.lease_times.interval_s)

    async def _return_or_start_another(self) -> None:
        given_up = self.member_id
        if self._may_return:
            if await self._returned():
                _log.warning("member %s was removed from the cluster although it lives: it is back", given_up)
                return
            self._may_return = False
        await self.member.stop()
        self.member = self._new_member((await _new_name(self._settings, self._controller_address)).member)
        await self.member.start()
        _log.warning(
            "member %s was removed from the cluster although it lives: others have what it had, and it has joined again"
            " as %s",
            given_up,
            self.member_id,
        )

    async def _returned(self) -> bool:
        """Whether the member is in the cluster again.

        Raises:
            OperationalError: The cluster is not ready for it; later it may be. Until then nothing is given up: what
                this member has may be the only copy.
        """
        try:
            return await self.member.come_back()
        except OperationalError:
            raise
        except Error as error:
            _log.warning("member %s cannot return with its data: %s", self.member_id, error)
            return False

    def _new_member(self, member_id: str) -> Member:
        disk = None if self._disks is None else self._disks.open(member_id)
        return Member(member_id, self._settings, self._controller_address, self._given_up, self._own_address, disk)


def _disks_of(settings: ClusterSettings) -> MemberDisks | None:
    return None if settings.data_directory is None else MemberDisks(Path(settings.data_directory))


async def _new_name(settings: ClusterSettings, controller_address: str, *, may_report: bool = False) -> MemberName:
    """Ask the controller for an id that no member has had, and for the ids under which lost members can come back."""
    host, _, port = controller_address.rpartition(":")
    controller = peer_at(host, int(port), settings, name="a member that comes back", role=Role.MEMBER)
    try:
        return (await controller.request(NameMember(settings.cluster_id, may_report))).message
    finally:
        await controller.close()
