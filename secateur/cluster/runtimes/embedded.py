"""The embedded runtime: controller and members in this process, on one event loop thread, behind real sockets.

The same code as in the Ray runtime runs here, only closer together: for tests, notebooks and small services. It starts in milliseconds.
"""

from __future__ import annotations

import logging
from typing import Final

from secateur.cluster.controller import Controller
from secateur.cluster.loop_thread import LoopThread
from secateur.cluster.member import Member
from secateur.cluster.settings import ClusterSettings
from secateur.errors import DeadlineError

__all__ = ["EmbeddedRuntime"]

_log = logging.getLogger(__name__)
_STOP_S: Final = 10.0


class EmbeddedRuntime:
    """Runs a cluster inside this process.

    Args:
        settings: What the cluster is started with.
    """

    name = "embedded"

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._loop = LoopThread(f"secateur-{settings.cluster_id}")
        self._controller = Controller(settings)
        self._address = ""
        self._members: dict[str, Member] = {}

    def start_controller(self) -> str:
        self._address = self._loop.run(self._controller.start(), self._settings.start_timeout_s)
        return self._address

    def start_members(self, member_ids: list[str]) -> None:
        for member_id in member_ids:
            member = Member(member_id, self._settings, self._address)
            self._members[member_id] = member
            self._loop.run(member.start(), self._settings.start_timeout_s)

    def kill_member(self, member_id: str) -> None:
        self._loop.run(self._members.pop(member_id).stop())

    def stop(self) -> None:
        if not self._loop.is_running:
            return
        parts: list[Controller | Member] = [self._controller, *self._members.values()]
        for part in parts:
            try:
                self._loop.run(part.stop(), _STOP_S)
            except DeadlineError:
                _log.warning("%s did not stop within %g s; what it does is left to the process", type(part).__name__, _STOP_S)
        self._members.clear()
        self._loop.stop()
