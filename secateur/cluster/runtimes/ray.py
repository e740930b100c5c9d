"""The Ray runtime: the controller and each member are Ray actors.

Ray places the processes (spread over the nodes), names them, and ends them with the driver; it carries no query: each
actor opens a socket of its own, served by an event loop in a thread of its own, and everything else goes over that.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import shutil
import tempfile
import threading
import time
from concurrent.futures import Future
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from secateur.cluster.controller.controller import Controller
from secateur.cluster.controller.standby import serve_when_free
from secateur.cluster.loop_thread import LoopThread
from secateur.cluster.member.host import MemberHost
from secateur.cluster.process_address import EVERY_INTERFACE, LOOPBACK, ProcessAddress, address_at
from secateur.cluster.runtimes.process_memory import keep_freed_memory
from secateur.cluster.runtimes.process_tracing import configure_tracing
from secateur.cluster.settings import ClusterSettings
from secateur.errors import OperationalError, ProgrammingError

__all__ = ["RayRuntime"]

_log = logging.getLogger(__name__)

_NAMESPACE = "secateur"
_CONTROLLER = "controller"
_STANDBY = "standby"
_GC_THRESHOLD = 20_000
_NICENESS = "RAY_worker_niceness"
"""Ray's variable. Its own default of 15 lets every other process of the machine go before the members, and clients
then wait for them behind each other.
"""
_STOP_S = 10.0
_DIRECTORY_CHARS_MAX = 20


class _ControllerActor:
    """Hosts a controller in a Ray worker process: the first one of a cluster, or one that waits for that to end.

    One that Ray has started anew waits too, unless nobody listens at the address: it goes on from what members keep.

    Args:
        settings: The settings of the cluster.
        is_on_one_machine: Whether all processes of the cluster are on one.
        is_cold_start: Whether the cluster goes on from what is on disk.
        address: ``host:port`` of the controller that runs, for one that waits; "" for the first one.
    """

    def __init__(self, settings: ClusterSettings, is_on_one_machine: bool, is_cold_start: bool, address: str) -> None:
        configure_tracing(settings.tracing)
        if ray.get_runtime_context().was_current_actor_reconstructed:
            address, is_cold_start = address or _controller_address_at_members(settings), False
        self._loop = LoopThread("secateur-controller")
        self._own_address = own_address = _address_here(settings, is_on_one_machine)
        port = _port(address) if address else None
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


class _MemberActor:
    """Hosts a member in a Ray worker process; one that Ray has started anew has another member come, or come back."""

    def __init__(
        self, member_id: str, settings: ClusterSettings, controller_address: str, is_on_one_machine: bool
    ) -> None:
        keep_freed_memory()
        configure_tracing(settings.tracing)
        own_address = _address_here(settings, is_on_one_machine)
        self._loop = LoopThread(f"secateur-{member_id}")
        self._controller_address = controller_address
        self._start_timeout_s = settings.start_timeout_s
        self._host: MemberHost | None = None
        self._coming: Future[None] | None = None
        if ray.get_runtime_context().was_current_actor_reconstructed:
            # It answers meanwhile: the controller may be started anew as well, and ask for its address.
            self._coming = self._loop.submit(self._come(settings, own_address))
        else:
            self._host = self._loop.call(lambda: MemberHost(member_id, settings, controller_address, own_address))

    async def _come(self, settings: ClusterSettings, own_address: ProcessAddress) -> None:
        try:
            self._host = await MemberHost.replacement(settings, self._controller_address, own_address)
            _started()
        except Exception:
            _log.exception("no member can come in the place of one that has ended")
            raise

    def start(self) -> None:
        assert self._host is not None, "called once, by the process that has made it"
        self._loop.run(self._host.start(), self._start_timeout_s)
        _started()

    def member_id(self) -> str:
        """The member that lives here; "" if it is still to come."""
        return "" if self._host is None else self._host.member_id

    def controller_address(self) -> str:
        return self._controller_address

    def stop_as(self, member_id: str) -> bool:
        if self._host is None or not self._loop.run(self._host.stop_as(member_id)):
            return False
        self._loop.stop()
        return True

    def stop(self) -> None:
        if self._coming is not None:
            self._coming.cancel()
        if self._host is not None:
            self._loop.run(self._host.stop())
        self._loop.stop()


def _started() -> None:
    """A member serves from now on.

    What is loaded by now stays: the collector need not look at it again in the middle of a statement, nor come by every
    few statements.
    """
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)


def _address_here(settings: ClusterSettings, is_on_one_machine: bool) -> ProcessAddress:
    """Where an actor listens that runs on this Ray node."""
    if is_on_one_machine and settings.host is None:
        return LOOPBACK
    return address_at(ray.util.get_node_ip_address(), settings.host)


def _actor_name(settings: ClusterSettings, part: str) -> str:
    return f"{_NAMESPACE}-{settings.name or settings.cluster_id}.{part}"


def _member_actors(settings: ClusterSettings) -> dict[str, ActorHandle[Any]]:
    """The actors of the members of a cluster, by the ids under which they were started."""
    prefix, found = _actor_name(settings, ""), {}
    controllers = {_actor_name(settings, part) for part in (_CONTROLLER, _STANDBY)}
    for entry in ray.util.list_named_actors(all_namespaces=True):
        name = entry["name"]
        if entry["namespace"] == _NAMESPACE and name.startswith(prefix) and name not in controllers:
            with contextlib.suppress(ValueError):  # it has ended meanwhile
                found[name.removeprefix(prefix)] = ray.get_actor(name, namespace=_NAMESPACE)
    return found


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def _controller_address_at_members(settings: ClusterSettings) -> str:
    """The address at which members dial the controller of their cluster.

    Raises:
        OperationalError: No member is left.
    """
    asking = [member.controller_address.remote() for member in _member_actors(settings).values()]
    while asking:
        (answered, *_), asking = ray.wait(asking)
        with contextlib.suppress(RayError):  # its actor is dead
            return str(ray.get(answered))
    raise OperationalError(f"no member of cluster {settings.cluster_id} is left from which its controller could go on")


class _Session:
    """The connection of this process to Ray, which all of its clusters share: there can be one at a time.

    A Ray that the process had connected to before is left alone. Any other is started here, private to this process, or
    connected to by the address that the user gave; it is left, or ended, with the last cluster that needs it.
    Environment variables and files of an earlier Ray that name other Rays on this machine are ignored: the user did not
    ask to join those.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._ended_with_us = False
        self._directory: str | None = None
        self._attempt: _Connecting | None = None

    def enter(self, address: str | None, timeout_s: float) -> None:
        """A cluster needs Ray.

        Args:
            address: The address of the Ray to use; None for that of this process, or a private one.
            timeout_s: Seconds that this may take.

        Raises:
            ProgrammingError: The process is connected to another Ray than that.
            OperationalError: Ray did not come up, or did not answer at the address, in time.
        """
        with self._lock:
            if ray.is_initialized():
                used = ray.get_runtime_context().gcs_address
                if address not in (None, used):
                    raise ProgrammingError(
                        f"ray_address={address!r}: this process is connected to the Ray at {used}, and can be to one"
                        " only; ray.shutdown() ends that"
                    )
            else:
                self._users = 0
                self._connect(address, timeout_s)
                self._ended_with_us = True
            self._users += 1

    def leave(self) -> bool:
        """A cluster does not need Ray any more; whether Ray ended with it, and all of its actors."""
        with self._lock:
            self._users -= 1
            if self._users or not self._ended_with_us or not ray.is_initialized():
                return False
            self._ended_with_us = False
            ray.shutdown()
            self._release()
            self._forget_directory()
            return True

    @property
    def is_private(self) -> bool:
        """Whether Ray was started for this process, and has no other node."""
        with self._lock:
            return self._directory is not None

    @property
    def is_last(self) -> bool:
        """Whether Ray will end with the next cluster that leaves."""
        with self._lock:
            return self._users == 1 and self._ended_with_us and self._directory is not None

    def _connect(self, address: str | None, timeout_s: float) -> None:
        """Connect in a thread that can be given up: Ray's own time-outs are longer, and end the process."""
        if self._attempt is not None and not self._attempt.has_ended(timeout_s):
            raise OperationalError(
                "an abandoned attempt to connect to Ray still runs in this process: start the cluster from another one"
            )
        self._release()
        attempt = self._attempt = _Connecting(address, self._new_directory() if address is None else None)
        threading.Thread(target=attempt.run, name="secateur-ray", daemon=True).start()
        failure = attempt.wait(timeout_s)
        if failure is None:
            return
        self._forget_directory()
        where = "a private Ray did not start" if address is None else f"the Ray at {address} did not answer"
        advice = (
            "raise start_timeout_s (secateur start --start-timeout), or look for what keeps the machine busy"
            if address is None
            else "check ray_address, or leave it out for a private Ray"
        )
        cause = "" if isinstance(failure, TimeoutError) else f": {failure}"
        raise OperationalError(f"{where} within start_timeout_s = {timeout_s:g} s{cause}; {advice}") from failure

    def _release(self) -> None:
        if self._attempt is not None:
            self._attempt.release()

    def _new_directory(self) -> str:
        """Make a separate directory for the files of a private Ray, so that several on one machine do not collide."""
        wanted = os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()
        # The paths of Ray's sockets have to fit into the 107 bytes that the operating system has for them.
        base = wanted if len(wanted) <= _DIRECTORY_CHARS_MAX else "/tmp"
        self._directory = tempfile.mkdtemp(prefix="scr-", dir=base)
        return self._directory

    def _forget_directory(self) -> None:
        directory, self._directory = self._directory, None
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)


class _Connecting:
    """One attempt to connect, in a thread of its own, which lives for as long as Ray is needed.

    The processes of a Ray end with the thread that started them.

    Args:
        address: The address of a running Ray; None to start one.
        directory: For the files of one that is started.
    """

    def __init__(self, address: str | None, directory: str | None) -> None:
        self._address = address
        self._directory = directory
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._given_up = False
        self._released = threading.Event()

    def run(self) -> None:
        try:
            options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error", "namespace": _NAMESPACE}
            if self._address is None:
                ray.init(
                    address="local",
                    include_dashboard=False,
                    _temp_dir=self._directory,
                    _system_config={"worker_niceness": int(os.environ.get(_NICENESS, "0"))},
                    **options,
                )
            else:
                ray.init(address=self._address, **options)
        except BaseException as error:
            self._failure = error
        with self._lock:
            if self._given_up:
                ray.shutdown()
                self._released.set()
            self._ended.set()
        if self._failure is None:
            self._released.wait()

    def release(self) -> None:
        """Ray has ended, or is not needed any more."""
        self._released.set()

    def has_ended(self, timeout_s: float) -> bool:
        """Whether the attempt has ended, well or not, after a while at the latest."""
        return self._ended.wait(timeout_s)

    def wait(self, timeout_s: float) -> BaseException | None:
        """Why it failed; None when it did not. After a time-out the attempt is undone when it ends."""
        self._ended.wait(timeout_s)
        with self._lock:
            if not self._ended.is_set():
                self._given_up = True
                return TimeoutError()
        return self._failure


def _controller_actor(settings: ClusterSettings, part: str = _CONTROLLER) -> ActorHandle[Any] | None:
    try:
        return ray.get_actor(_actor_name(settings, part), namespace=_NAMESPACE)
    except ValueError:
        return None


_session = _Session()


class RayRuntime:
    """Runs a cluster on Ray: the one that this process is connected to, that of ``ray_address``, or a private one.

    Args:
        settings: The settings of the cluster.
        is_running: Whether it runs already, and this process is connected to its Ray.

    Raises:
        OperationalError: Ray could not be reached or started within ``start_timeout_s``.
    """

    name = "ray"

    def __init__(self, settings: ClusterSettings, *, is_running: bool = False) -> None:
        self._settings = settings
        self._controller: ActorHandle[Any] | None = None
        self._standby: ActorHandle[Any] | None = None
        self._members: dict[str, ActorHandle[Any]] = {}
        self._address = ""
        self._end_s = time.monotonic() + settings.start_timeout_s
        if not is_running:
            _session.enter(settings.ray_address, settings.start_timeout_s)
        self._entered = True
        self._is_on_one_machine = _session.is_private
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
        _session.enter(ray_address, timeout_s)
        try:
            wanted = ClusterSettings(detached=True, name=name, ray_address=ray_address)
            controller = _controller_actor(wanted)
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
            _session.leave()
            raise
        runtime._controller, runtime._address = controller, address
        runtime._standby = _controller_actor(settings, _STANDBY)
        runtime._members = _member_actors(settings)
        return runtime, settings, address

    def start_controller(self, *, is_cold_start: bool = False) -> str:
        self._controller = self._new_controller(_CONTROLLER, "", is_cold_start=is_cold_start)
        self._address = self._get("the controller", [self._controller.start.remote()])[0]
        return self._address

    def _new_controller(self, part: str, address: str, *, is_cold_start: bool = False) -> ActorHandle[Any]:
        # A controller belongs beside the driver: clients dial it first, and it lives and ends with the driver. A soft
        # affinity would not do: Ray places actors that ask for no CPU on any node then.
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        actor = ray.remote(_ControllerActor).options(
            name=_actor_name(self._settings, part),
            namespace=_NAMESPACE,
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
            actor = ray.remote(_MemberActor).options(
                name=_actor_name(self._settings, member_id),
                namespace=_NAMESPACE,
                lifetime=self._lifetime,
                max_restarts=restarts,
                **{"num_cpus": 0, "scheduling_strategy": "SPREAD", **(self._settings.ray_actor_options or {})},
            )
            self._members[member_id] = handle = actor.remote(
                member_id, self._settings, self._address, self._is_on_one_machine
            )
            starting.append(handle.start.remote())
        self._get(f"members {', '.join(member_ids)}", starting)
        if self._settings.standby_controller and self._standby is None and self._is_beside_controller():
            self._standby = self._new_controller(_STANDBY, self._address)  # nobody waits for it

    def _is_beside_controller(self) -> bool:
        """Whether this process runs on the machine of the controller; on another one, its address would seem free."""
        here = _address_here(self._settings, self._is_on_one_machine)
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
        if not self._entered:
            return
        self._entered = False
        controllers, actors = self._controllers, [*self._controllers, *self._members.values()]
        self._controller = self._standby = None
        self._members.clear()
        if ray.is_initialized() and not _session.is_last:  # else they end with Ray
            standing_down = [actor.stand_down.remote() for actor in controllers]
            if standing_down:
                ray.wait(standing_down, num_returns=len(standing_down), timeout=_STOP_S)
            stopping = [actor.stop.remote() for actor in actors]
            if stopping:
                ray.wait(stopping, num_returns=len(stopping), timeout=_STOP_S)
            for actor in actors:
                ray.kill(actor)
        _session.leave()

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
        is_private, is_taken = _session.is_private, _controller_actor(self._settings) is not None
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
        if self._entered:
            self._entered = False
            _session.leave()

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
