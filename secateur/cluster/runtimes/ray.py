"""The Ray runtime: the controller and each member are Ray actors.

Ray places the processes (spread over the nodes), names them, and ends them with the driver; it carries no query (DESIGN section 3): each actor opens
a socket of its own, served by an event loop in a thread of its own, and everything else goes over that.
"""

from __future__ import annotations

import contextlib
import gc
import os
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from secateur.cluster.controller import Controller
from secateur.cluster.loop_thread import LoopThread
from secateur.cluster.member_host import MemberHost
from secateur.cluster.runtimes.process_memory import keep_freed_memory
from secateur.cluster.settings import ClusterSettings
from secateur.errors import OperationalError

__all__ = ["RayRuntime"]

_NAMESPACE = "secateur"
_GC_THRESHOLD = 20_000


class _ControllerActor:
    """Hosts the controller in a Ray worker process."""

    def __init__(self, settings: ClusterSettings) -> None:
        self._loop = LoopThread("secateur-controller")
        self._controller = Controller(settings)
        self._start_timeout_s = settings.start_timeout_s

    def start(self) -> str:
        return self._loop.run(self._controller.start(), self._start_timeout_s)

    def stop(self) -> None:
        self._loop.run(self._controller.stop())
        self._loop.stop()


class _MemberActor:
    """Hosts a member in a Ray worker process."""

    def __init__(self, member_id: str, settings: ClusterSettings, controller_address: str) -> None:
        keep_freed_memory()
        self._loop = LoopThread(f"secateur-{member_id}")
        self._host = MemberHost(member_id, settings, controller_address)
        self._start_timeout_s = settings.start_timeout_s

    def start(self) -> None:
        self._loop.run(self._host.start(), self._start_timeout_s)
        # What is loaded by now stays: the collector need not look at it again in the middle of a statement, nor come by every few statements.
        gc.freeze()
        gc.set_threshold(_GC_THRESHOLD)

    def member_id(self) -> str:
        return self._host.member_id

    def stop(self) -> None:
        self._loop.run(self._host.stop())
        self._loop.stop()


class RayRuntime:
    """Runs a cluster on Ray: on the one this process is connected to, else on one started here and ended with the cluster.

    Args:
        settings: What the cluster is started with.
    """

    name = "ray"

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._owns_ray = not ray.is_initialized()
        self._controller: ActorHandle[Any] | None = None
        self._members: dict[str, ActorHandle[Any]] = {}
        self._address = ""
        if self._owns_ray:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init(include_dashboard=False, log_to_driver=False, logging_level="error", namespace=_NAMESPACE)

    def start_controller(self) -> str:
        # The controller belongs beside the driver: clients dial it first, and it lives and ends with the driver.
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        actor = ray.remote(_ControllerActor).options(
            name=f"secateur-{self._settings.cluster_id}-controller", namespace=_NAMESPACE, num_cpus=0, scheduling_strategy=here
        )
        self._controller = actor.remote(self._settings)
        self._address = self._get("the controller", [self._controller.start.remote()])[0]
        return self._address

    def start_members(self, member_ids: list[str]) -> None:
        starting = []
        for member_id in member_ids:
            actor = ray.remote(_MemberActor).options(
                name=f"secateur-{self._settings.cluster_id}-{member_id}", namespace=_NAMESPACE, num_cpus=0, scheduling_strategy="SPREAD"
            )
            self._members[member_id] = handle = actor.remote(member_id, self._settings, self._address)
            starting.append(handle.start.remote())
        self._get(f"members {', '.join(member_ids)}", starting)

    def kill_member(self, member_id: str) -> None:
        if member_id not in self._members:
            self._name_members_again()
        ray.kill(self._members.pop(member_id))

    def stop(self) -> None:
        if not ray.is_initialized():
            return
        if self._owns_ray:
            ray.shutdown()
            return
        actors = [actor for actor in (self._controller, *self._members.values()) if actor is not None]
        stopping = [actor.stop.remote() for actor in actors]
        ray.wait(stopping, num_returns=len(stopping), timeout=self._settings.start_timeout_s)
        for actor in actors:
            ray.kill(actor)
        self._controller = None
        self._members.clear()

    def _name_members_again(self) -> None:
        """Find out under which ids members have come back. An actor that does not answer keeps the one that it had."""
        asked = [(handle.member_id.remote(), member_id) for member_id, handle in self._members.items()]
        answered, _ = ray.wait([call for call, _ in asked], num_returns=len(asked), timeout=self._settings.member_silence_s)
        for call, before in asked:
            if call in answered:
                with contextlib.suppress(RayError):  # its actor is dead
                    self._members[ray.get(call)] = self._members.pop(before)

    def _get(self, who: str, calls: list[Any]) -> list[Any]:
        try:
            return list(ray.get(calls, timeout=self._settings.start_timeout_s))
        except RayError as error:
            cause = error.__cause__ or error
            raise OperationalError(f"Ray could not start {who} within {self._settings.start_timeout_s:g} s: {cause}") from error
