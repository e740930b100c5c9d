"""The Ray runtime: the controller and each member are Ray actors.

Ray places the processes (spread over the nodes), names them, and ends them with the driver; it carries no query: each
actor opens a socket of its own, served by an event loop in a thread of its own, and everything else goes over that.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any, Final

import ray
from ray.actor import ActorHandle
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from secateur.cluster.runtimes import ray_actors
from secateur.cluster.runtimes.controller_actor import ControllerActor
from secateur.cluster.runtimes.member_actor import MemberActor
from secateur.cluster.runtimes.ray_session import ray_session
from secateur.cluster.settings import ClusterSettings
from secateur.cluster.sockets import EVERY_INTERFACE
from secateur.errors import OperationalError, ProgrammingError

_STOP_S: Final = 10.0
_STANDBY_S: Final = 5.0
"""The standby comes so long after the members: its start takes two seconds of processor time, which the first
statements of a cluster need more, and a cluster that ends sooner never needs it.
"""


class RayRuntime:
    """Runs a cluster on Ray: the one that this process is connected to, that of ``ray_address``, or a private one.

    Args:
        is_running: Whether it runs already, and this process is connected to its Ray.

    Raises:
        OperationalError: Ray could not be reached or started within ``start_timeout_s``.
    """

    name = "ray"

    def __init__(self, settings: ClusterSettings, *, is_running: bool = False) -> None:
        self._settings = settings
        self._controller: ActorHandle[Any] | None = None
        self._standby: ActorHandle[Any] | None = None
        self._standby_timer: threading.Timer | None = None
        self._lock = threading.Lock()
        self._members: dict[str, ActorHandle[Any]] = {}
        self._address = ""
        self._end_s = time.monotonic() + settings.start_timeout_s
        if not is_running:
            ray_session.enter(settings.ray_address, settings.start_timeout_s)
        self._entered = True
        self._is_on_one_machine = ray_session.is_private
        self._lifetime = "detached" if settings.detached else None
        if not is_running:
            self._check_host()
            self._check_detached()

    @classmethod
    def attached(cls, name: str, ray_address: str | None, timeout_s: float) -> tuple[RayRuntime, ClusterSettings, str]:
        """The runtime of a detached cluster that runs, its settings and its address.

        Raises:
            ProgrammingError: No cluster of that name runs on this Ray.
            OperationalError: Ray does not answer.
        """
        if ray_address is None and not ray.is_initialized():
            raise ProgrammingError(f"attach({name!r}): give ray_address=, the address of the Ray on which it runs")
        ray_session.enter(ray_address, timeout_s)
        try:
            wanted = ClusterSettings(detached=True, name=name, ray_address=ray_address)
            controller = ray_actors.controller_actor(wanted)
            if controller is None:
                raise ProgrammingError(
                    f"no cluster named {name!r} runs on the Ray at {ray.get_runtime_context().gcs_address}: start one"
                    f" with secateur.start(detached=True, name={name!r}), or check ray_address"
                )
            try:
                settings, address = ray.get(controller.description.remote(), timeout=timeout_s)
            except RayError as error:
                raise OperationalError(f"the controller of cluster {name!r} does not answer: {error}") from error
            runtime = cls(settings, is_running=True)
        except BaseException:
            ray_session.leave()
            raise
        runtime._controller, runtime._address = controller, address
        runtime._standby = ray_actors.controller_actor(settings, ray_actors.STANDBY)
        runtime._members = ray_actors.member_actors(settings)
        return runtime, settings, address

    def start_controller(self, *, is_cold_start: bool = False) -> str:
        self._controller = self._new_controller(ray_actors.CONTROLLER, "", is_cold_start=is_cold_start)
        self._address = self._get("the controller", [self._controller.start.remote()])[0]
        return self._address

    def _new_controller(self, part: str, address: str, *, is_cold_start: bool = False) -> ActorHandle[Any]:
        # A controller belongs beside the driver: clients dial it first, and it lives and ends with the driver. A soft
        # affinity would not do: Ray places actors that ask for no CPU on any node then.
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        actor = ray.remote(ControllerActor).options(
            name=ray_actors.actor_name(self._settings, part),
            namespace=ray_actors.NAMESPACE,
            lifetime=self._lifetime,
            num_cpus=0,
            max_restarts=-1,
            scheduling_strategy=here,
        )
        return actor.remote(self._settings, self._is_on_one_machine, is_cold_start, address)

    def start_members(self, member_ids: list[str]) -> None:
        starting = []
        if self._members:  # the cluster is up, and grows
            self._end_s = time.monotonic() + self._settings.start_timeout_s
        restarts = -1 if self._settings.replace_members else 0
        for member_id in member_ids:
            actor = ray.remote(MemberActor).options(
                name=ray_actors.actor_name(self._settings, member_id),
                namespace=ray_actors.NAMESPACE,
                lifetime=self._lifetime,
                max_restarts=restarts,
                **{"num_cpus": 0, "scheduling_strategy": "SPREAD", **(self._settings.ray_actor_options or {})},
            )
            self._members[member_id] = handle = actor.remote(
                member_id, self._settings, self._address, self._is_on_one_machine
            )
            starting.append(handle.start.remote())
        self._get(f"members {', '.join(member_ids)}", starting)
        if self._settings.standby_controller and self._is_beside_controller():
            if self._settings.detached:  # this process may leave it at any time
                self._start_standby()
            elif self._standby_timer is None:
                self._standby_timer = threading.Timer(_STANDBY_S, self._start_standby)
                self._standby_timer.daemon = True
                self._standby_timer.start()

    def _start_standby(self) -> None:
        with self._lock:
            if self._entered and self._standby is None:
                self._standby = self._new_controller(ray_actors.STANDBY, self._address)  # nobody waits for it

    def _is_beside_controller(self) -> bool:
        """Whether this process runs on the machine of the controller; on another one, its address would seem free."""
        here = ray_actors.address_of_actor(self._settings, self._is_on_one_machine)
        return here.advertised_host == self._address.rpartition(":")[0]

    def kill_controller(self) -> None:
        for controller in self._controllers:
            asked = controller.serves.remote()
            answered, _ = ray.wait([asked], timeout=self._settings.member_silence_s)
            with contextlib.suppress(RayError):  # its process has ended
                if answered and ray.get(asked):
                    ray.kill(controller, no_restart=False)
                    return

    @property
    def _controllers(self) -> list[ActorHandle[Any]]:
        return [actor for actor in (self._controller, self._standby) if actor is not None]

    def kill_member(self, member_id: str) -> None:
        self._name_members_again()
        ray.kill(self._members[member_id], no_restart=not self._settings.replace_members)
        if not self._settings.replace_members:
            del self._members[member_id]

    def stop_member(self, member_id: str) -> None:
        self._name_members_again()
        actor = self._members.get(member_id)
        if actor is None:
            return
        stopping = actor.stop_as.remote(member_id)
        ended, _ = ray.wait([stopping], timeout=_STOP_S)
        if not ended:  # it may be about to be another member by now, which is not to be killed
            raise OperationalError(
                f"member {member_id} owns nothing any more, and its process has not answered for {_STOP_S:g} s: call"
                " scale() again when it does, or when it is gone"
            )
        with contextlib.suppress(RayError):  # its process has ended before
            if ray.get(stopping):
                del self._members[member_id]
                ray.kill(actor)

    def stop(self) -> None:
        with self._lock:
            if not self._entered:
                return
            self._entered = False
        if self._standby_timer is not None:
            self._standby_timer.cancel()
        controllers, actors = self._controllers, [*self._controllers, *self._members.values()]
        self._controller = self._standby = None
        self._members.clear()
        if ray.is_initialized() and not ray_session.is_last:  # else they end with Ray
            standing_down = [actor.stand_down.remote() for actor in controllers]
            if standing_down:
                ray.wait(standing_down, num_returns=len(standing_down), timeout=_STOP_S)
            stopping = [actor.stop.remote() for actor in actors]
            if stopping:
                ray.wait(stopping, num_returns=len(stopping), timeout=_STOP_S)
            for actor in actors:
                ray.kill(actor)
        ray_session.leave()

    def _check_host(self) -> None:
        """Refuse one address for the processes of several machines."""
        host = self._settings.host
        nodes = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
        if host is None or host in EVERY_INTERFACE or len(nodes) == 1:
            return
        self.stop()
        raise ProgrammingError(
            f"host={host!r} is one address, and this Ray has nodes at {', '.join(sorted(nodes))}: leave host out,"
            ' so that each process listens on the address of its node, or give "0.0.0.0"'
        )

    def _check_detached(self) -> None:
        """Refuse a cluster that would end with this process after all, and a name that is taken."""
        name = self._settings.name
        if name is None:
            return
        is_private, is_taken = ray_session.is_private, ray_actors.controller_actor(self._settings) is not None
        if is_private or is_taken:
            self.leave()
        if is_private:
            raise ProgrammingError(
                f"detached=True, name={name!r}: the Ray of this process ends with it; give ray_address=, the address of"
                " a Ray that goes on, as `ray start --head` prints it"
            )
        if is_taken:
            raise ProgrammingError(
                f"a cluster named {name!r} runs on this Ray already: secateur.attach({name!r}) finds it, and its"
                " stop() ends it"
            )

    def leave(self) -> None:
        with self._lock:
            if not self._entered:
                return
            self._entered = False
        ray_session.leave()

    def _name_members_again(self) -> None:
        """Find out under which ids members have come back; two may have taken each other's places.

        An actor that does not answer keeps the id that it had.
        """
        asked = [(handle.member_id.remote(), member_id) for member_id, handle in self._members.items()]
        answered, _ = ray.wait(
            [call for call, _ in asked], num_returns=len(asked), timeout=self._settings.member_silence_s
        )
        named: dict[str, ActorHandle[Any]] = {}
        unnamed: dict[str, ActorHandle[Any]] = {}
        for call, before in asked:
            name = ""
            if call in answered:
                with contextlib.suppress(RayError):  # its actor is dead
                    name = ray.get(call)
            (named if name else unnamed)[name or before] = self._members[before]
        for before, handle in unnamed.items():
            named[before if before not in named else f"{before}, before another process was it"] = handle
        self._members = named

    def _get(self, who: str, calls: list[Any]) -> list[Any]:
        try:
            return list(ray.get(calls, timeout=max(self._end_s - time.monotonic(), 0.001)))
        except RayError as error:
            cause = error.__cause__ or error
            advice = (
                "; raise start_timeout_s (secateur start --start-timeout), or look for what keeps the machine busy"
                if isinstance(error, GetTimeoutError)
                else ""
            )
            raise OperationalError(
                f"Ray could not start {who} within start_timeout_s = {self._settings.start_timeout_s:g} s:"
                f" {cause}{advice}"
            ) from error
