"""The actor that hosts a controller."""

from __future__ import annotations

from concurrent.futures import Future

import ray

from secateur.cluster.controller.controller import Controller
from secateur.cluster.controller.standby import serve_when_free
from secateur.cluster.loop_thread import LoopThread
from secateur.cluster.runtimes.ray_actors import address_of_actor, configure_tracing, controller_address_at_members
from secateur.cluster.settings import ClusterSettings
from secateur.structured_logs import use_log_format


class ControllerActor:
    """Hosts a controller in a Ray worker process: the first one of a cluster, or one that waits for that to end.

    One that Ray has started anew waits too, unless nobody listens at the address: it goes on from what members keep.

    Args:
        is_on_one_machine: Whether all processes of the cluster are on one.
        is_cold_start: Whether the cluster goes on from what is on disk.
        address: ``host:port`` of the controller that runs, for one that waits; "" for the first one.
    """

    def __init__(self, settings: ClusterSettings, is_on_one_machine: bool, is_cold_start: bool, address: str) -> None:
        use_log_format(settings.log_format, "controller")
        configure_tracing(settings.tracing)
        if ray.get_runtime_context().was_current_actor_reconstructed:
            address, is_cold_start = address or controller_address_at_members(settings), False
        self._loop = LoopThread("secateur-controller")
        self._own_address = own_address = address_of_actor(settings, is_on_one_machine)
        port = int(address.rpartition(":")[2]) if address else None
        self._controller = self._loop.call(
            lambda: Controller(
                settings, own_address, port=port, is_recovering=bool(address), is_cold_start=is_cold_start
            )
        )
        self._settings = settings
        self._address = address
        self._waiting: Future[None] | None = None
        if port is not None:
            self._waiting = self._loop.submit(serve_when_free(self._controller, own_address.bind_host, port))

    def start(self) -> str:
        self._address = self._loop.run(self._controller.start(), self._settings.start_timeout_s)
        return self._address

    def serves(self) -> bool:
        """Whether this process is the controller, and not one that waits."""
        return self._waiting is None or self._waiting.done()

    def description(self) -> tuple[ClusterSettings, str]:
        """The settings of the cluster, its secrets included, and its address, for a process that may ask Ray."""
        return self._settings, self._address

    def stand_down(self) -> None:
        """Do not wait any more."""
        if self._waiting is not None:
            self._waiting.cancel()

    def stop(self) -> None:
        self._loop.run(self._controller.stop())
        self._loop.stop()
