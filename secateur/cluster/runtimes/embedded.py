"""The embedded runtime: controller and members in this process, on one event loop thread, behind real sockets.

It runs the same code as the Ray runtime, for tests, notebooks and small services, and starts in milliseconds.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from secateur.cluster.controller.controller import Controller
from secateur.cluster.loop_thread import BackgroundTasks, LoopThread
from secateur.cluster.member.host import MemberHost
from secateur.cluster.member.member import Member
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import LOOPBACK, address_at, machine_address
from secateur.errors import DeadlineError
from secateur.structured_logs import use_log_format

_log = logging.getLogger(__name__)
_STOP_S: Final = 10.0


class EmbeddedRuntime:
    """Runs a cluster inside this process."""

    name = "embedded"

    def __init__(self, settings: ClusterSettings) -> None:
        use_log_format(settings.log_format)
        self._settings = settings
        self._loop = LoopThread(f"secateur-{settings.cluster_id}")
        self._own_address = LOOPBACK if settings.host is None else address_at(machine_address(), settings.host)
        self._controller: Controller | None = None
        self._address = ""
        self._hosts: list[MemberHost] = []
        self._replacing = BackgroundTasks()

    @property
    def _members(self) -> dict[str, Member]:
        """The members that live here now, by id."""
        return {host.member_id: host.member for host in self._hosts}

    def start_controller(self, *, is_cold_start: bool = False) -> str:
        self._controller = self._loop.call(
            partial(Controller, self._settings, self._own_address, is_cold_start=is_cold_start)
        )
        self._address = self._loop.run(self._controller.start(), self._settings.start_timeout_s)
        return self._address

    def start_members(self, member_ids: list[str]) -> None:
        for member_id in member_ids:
            host = self._loop.call(partial(MemberHost, member_id, self._settings, self._address, self._own_address))
            self._hosts.append(host)
            self._loop.run(host.start(), self._settings.start_timeout_s)

    def kill_controller(self) -> None:
        if self._controller is not None:
            self._loop.run(self._controller.kill())
        port = int(self._address.rpartition(":")[2])
        self._controller = self._loop.call(
            partial(Controller, self._settings, self._own_address, port=port, is_recovering=True)
        )
        self._loop.run(self._controller.start(), self._settings.start_timeout_s)

    def kill_member(self, member_id: str) -> None:
        host = next(host for host in self._hosts if host.member_id == member_id)
        self._hosts.remove(host)
        self._loop.run(host.stop())
        if self._settings.replace_members:
            self._loop.run(self._replace_later())

    def stop_member(self, member_id: str) -> None:
        for host in list(self._hosts):
            if self._loop.run(host.stop_as(member_id)):
                self._hosts.remove(host)

    async def _replace_later(self) -> None:
        self._replacing.start(self._replace(), "replace a member")

    async def _replace(self) -> None:
        self._hosts.append(await MemberHost.replacement(self._settings, self._address, self._own_address))

    def leave(self) -> None:
        self.stop()

    def stop(self) -> None:
        if not self._loop.is_running:
            return
        self._loop.run(self._replacing.close(), _STOP_S)
        parts: list[Controller | MemberHost] = [*([self._controller] if self._controller else []), *self._hosts]
        for part in parts:
            try:
                self._loop.run(part.stop(), _STOP_S)
            except DeadlineError:
                _log.warning(
                    "%s did not stop within %g s; what it does is left to the process", type(part).__name__, _STOP_S
                )
        self._hosts.clear()
        self._loop.stop()
