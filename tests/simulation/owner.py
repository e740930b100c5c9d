"""The owner of a simulated cluster, who has it grow and shrink while everything else happens."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

import secateur
from faults import HOSTS_MAX
from machine import Process
from secateur.cluster import Cluster
from secateur.errors import OperationalError
from world import CONTROLLER_ADDRESS, World

__all__ = ["Owner"]

_LOOK_S: Final = 0.02
_START_S: Final = 8.0


class Owner:
    """Calls the real :meth:`Cluster.scale` again and again, until it is over.

    Args:
        world: The cluster.
        members_min: The fewest members that there are to be.
        pause_s: The longest rest between two calls.

    Attributes:
        is_over: Whether it makes no further call.
        is_running: Whether it has not ended yet.
        done: What it has done, and when.
    """

    def __init__(self, world: World, members_min: int, pause_s: float) -> None:
        self._world = world
        self._members_min = members_min
        self._pause_s = pause_s
        self.is_over = False
        self.is_running = True
        self.done: list[str] = []

    def run(self, _: Process) -> None:
        """Scale, in a process of its own."""
        world, draw = self._world, self._world.random
        settings = replace(world.settings, start_timeout_s=_START_S)
        cluster = Cluster(settings, _SimulatedRuntime(world), CONTROLLER_ADDRESS)
        while not self.is_over:
            members = draw.randint(self._members_min, HOSTS_MAX)
            self._note(f"scale to {members}")
            try:
                cluster.scale(members)
                self._note(f"{members} members")
            except OperationalError as error:
                self._note(f"scale failed: {error}")
            except secateur.Error as error:
                world.violated(f"scale failed for good: {type(error).__name__}: {error}")
            time.sleep(draw.uniform(0.1, self._pause_s))
        self.is_running = False

    def _note(self, sentence: str) -> None:
        self.done.append(f"{self._world.now_s:.4f} owner: {sentence}")


class _SimulatedRuntime:
    """Starts and ends members on hosts of their own."""

    name = "simulated"

    def __init__(self, world: World) -> None:
        self._world = world

    def start_controller(self, *, is_cold_start: bool = False) -> str:
        raise NotImplementedError("the cluster runs already")

    def start_members(self, member_ids: list[str]) -> None:
        world = self._world
        for member_id in member_ids:
            while world.is_off:
                time.sleep(_LOOK_S)
            host, end_s = world.add_host(), world.now_s + _START_S
            world.start_member(host, member_id)
            while host.host is None:
                if world.now_s > end_s:
                    raise OperationalError(f"{member_id} did not come up within {_START_S:g} s")
                time.sleep(_LOOK_S)

    def stop_member(self, member_id: str) -> None:
        for host in list(self._world.hosts):
            if host.host is not None and host.host.member_id == member_id:
                self._world.remove_host(host)

    def kill_controller(self) -> None:
        raise NotImplementedError("faults do")

    def kill_member(self, member_id: str) -> None:
        raise NotImplementedError("faults do")

    def leave(self) -> None:
        """It ends with the run."""

    def stop(self) -> None:
        """It ends with the run."""
