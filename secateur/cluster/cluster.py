"""The cluster object that a user starts and stops, in the process that started it."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import inspect
import os
import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, ParamSpec, Self, TypeVar

from secateur import errors
from secateur.client.connect import connect, forget_cluster, remember_tls, remember_token
from secateur.client.dbapi.connection import Connection
from secateur.client.dbapi.shown_rows import html_records
from secateur.client.execution.retry_policy import CONTROLLER_WAIT_S
from secateur.client.tokens import Tokens
from secateur.cluster.data_directory import claimed, members_to_start
from secateur.cluster.runtimes.embedded import EmbeddedRuntime
from secateur.cluster.runtimes.runtime import Runtime
from secateur.cluster.settings import DEFAULTS, ClusterSettings, Fsync
from secateur.connectors.spark.endpoint import answer_spark
from secateur.dependencies import log_untested
from secateur.engine_limits import EngineLimits
from secateur.planner.cost_model import CostModel
from secateur.protocol.copies import DrainMembers, GetRebalancing
from secateur.protocol.hello import Pruning
from secateur.protocol.membership import GetMembers, MemberInfo, NameMember, ReportMemberLost
from secateur.protocol.message import Message, Role
from secateur.wire import Channel, Jwt, Limits, Tls, hello

P = ParamSpec("P")
R = TypeVar("R")

_TOKEN_BYTES: Final = 32
_BALANCE_LOOK_S: Final = 0.02


class Cluster:
    """A running cluster. Made by :func:`start`; a context manager that stops it.

    Attributes:
        address: ``secateur://host:port``, what :func:`secateur.connect` takes.
        token: The secret that clients have to prove; None when the cluster has none. Connections and Spark writes of
            this process carry it by themselves unless it was chosen by the user; to other processes it is passed on
            purpose, best as the variable ``SECATEUR_TOKEN``.
    """

    def __init__(self, settings: ClusterSettings, runtime: Runtime, running_at: str | None = None) -> None:
        self._settings = settings
        self._runtime = runtime
        self._lock = threading.Lock()
        self._stopped = False
        self._process = os.getpid()
        self._at_exit = self.leave if settings.detached else self.stop
        atexit.register(self._at_exit)
        member_ids, is_cold_start = members_to_start(settings) if running_at is None else ([], False)
        try:
            host_port = running_at or runtime.start_controller(is_cold_start=is_cold_start)
            if running_at is None:
                runtime.start_members(member_ids)
        except BaseException:
            self.stop()
            raise
        host, _, port = host_port.rpartition(":")
        self.address = f"secateur://{host_port}"
        self.token = settings.token
        self._channel = Channel(
            host,
            int(port),
            hello(settings.token, "cluster owner", settings.identity(Role.CONTROLLER)),
            timeout_s=settings.start_timeout_s,
            tls=settings.tls,
        )
        remember_tls(host_port, settings.tls)
        if is_cold_start:
            try:
                self._channel.request(GetMembers())  # answered once the controller knows the cluster again
                self._end_drained()
            except BaseException:
                self.stop()
                raise

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled.

        Raises:
            SerializationError: Always.
        """
        raise errors.SerializationError(
            f"a Cluster cannot be pickled or copied: send its address, {self.address!r}, and its token, and call"
            " secateur.connect(address, token) where it is needed"
        )

    def connect(self) -> Connection:
        """Open a connection; the same as ``secateur.connect(cluster.address, token=...)``."""
        self._check_running()
        return connect(self.address, token=self.token or "")

    @property
    def tokens(self) -> Tokens:
        """Tokens with a role, for clients that are not to do everything; see :class:`secateur.client.tokens.Tokens`."""
        self._check_running()
        return Tokens(lambda message: self._channel.request(message).message)

    def members(self) -> list[MemberInfo]:
        """Ask for the state of all members. Costs one round trip to each; not counted in ``frames_received``."""
        self._check_running()
        return self._ask(GetMembers()).members

    def scale(self, members: int) -> None:
        """Change the number of members while serving; returns when all partitions are where they belong.

        New members get their share of the partitions, one batch after the other; the newest members are the ones that
        leave, and first give away what they have. Statements go on meanwhile. If this fails or is interrupted, members
        that have come stay, and those that were to leave keep what they still have, unless that is nothing; call it
        again to go on. If this process is lost meanwhile, those that were to leave give away what they have all the
        same; the next call, from any process, ends those that have nothing, and the others may stay.

        Args:
            members: How many members there are to be.

        Raises:
            ProgrammingError: Not a possible number.
            OperationalError: A member did not come up or did not end, or partitions cannot be moved.
        """
        self._check_running()
        checked = dataclasses.replace(self._settings, members=members)
        if self._ask(GetRebalancing()).draining:
            self._ask(DrainMembers([]))  # by a call that was lost: from now on nobody leaves but by this one
        there = self._let_leave(members)
        if there < members:
            named = [self._ask(NameMember(self._settings.cluster_id)).member for _ in range(members - there)]
            self._runtime.start_members(named)
        self._await_balance([])
        self._settings = checked

    def _end_drained(self) -> None:
        """End the processes of members that own nothing any more, and never will.

        :meth:`scale` does, and :func:`attach`, for a process that was lost while it scaled the cluster down.

        Raises:
            OperationalError: A process does not end.
        """
        for member_id in self._ask(GetRebalancing()).drained:
            self._runtime.stop_member(member_id)
            self._ask(ReportMemberLost(member_id))

    def _let_leave(self, members: int) -> int:
        """Return with the number of members that are there, when they are not more than these.

        Those that have come in the place of others that ended while they were about to leave have to leave as well; and
        a controller of a cluster that was started anew as a whole does not know any more who is to leave.

        Raises:
            ProgrammingError: Members would have to leave, and partitions cannot be moved.
            OperationalError: They could not be moved for too long, others are to leave, or a process does not end.
        """
        while True:
            self._end_drained()
            there = sorted(
                (member.id for member in self.members() if member.is_alive),
                key=lambda member_id: (len(member_id), member_id),
            )
            excess = there[members:]
            if not excess:
                return len(there)
            if not self._settings.rebalancing:
                raise errors.ProgrammingError(
                    f"scale({members}): members leave when their partitions have moved, and this cluster was started"
                    " with rebalancing=False"
                )
            try:
                self._ask(DrainMembers(excess))
                self._await_balance(excess)
            except BaseException:
                with suppress(errors.Error):
                    if set(self._ask(GetRebalancing()).draining) <= set(excess):  # else another call has others leave
                        self._ask(DrainMembers([]))
                raise

    def _ask(self, message: Message[R]) -> R:
        """Ask the controller what may be asked again, also while it is started anew.

        Raises:
            Error: It answers with an error, or is away for too long.
        """
        deadline_s = time.monotonic() + CONTROLLER_WAIT_S
        while True:
            try:
                return self._channel.request(message).message
            except (errors.MemberLostError, errors.UnreachableError):
                if time.monotonic() >= deadline_s:
                    raise
                time.sleep(_BALANCE_LOOK_S)

    def _await_balance(self, leaving: Collection[str]) -> None:
        """Return when all partitions are where they belong, and nobody is to leave who still owns something.

        Args:
            leaving: The members that are to leave.

        Raises:
            OperationalError: Partitions could not be moved for too long, or others are to leave.
        """
        failing_since_s: float | None = None
        while True:
            state = self._ask(GetRebalancing())
            still_own = sorted(set(state.draining).difference(state.drained))
            if leaving and not set(still_own) <= set(leaving):
                raise errors.OperationalError(
                    f"scale(): {', '.join(leaving)} were to leave, and another call of scale() has"
                    f" {', '.join(still_own)} leave; what was moved stays where it is, call scale() again when"
                    " that has returned"
                )
            if not still_own and (state.moves == 0 or leaving):
                return
            error = state.error
            if error is None and state.moves == 0:
                error = f"there is no other member for what {', '.join(still_own)} have"
            now_s = time.monotonic()
            failing_since_s = None if error is None else failing_since_s or now_s
            if failing_since_s is not None and now_s > failing_since_s + self._settings.start_timeout_s:
                raise errors.OperationalError(
                    f"partitions could not be moved for {self._settings.start_timeout_s:g} s: {error}; what was moved"
                    " stays where it is, call scale() again to go on"
                )
            time.sleep(_BALANCE_LOOK_S)

    def kill_member(self, member_id: str) -> None:
        """End a member as a crash would, for tests of what happens then.

        Returns when the controller has noticed: backups serve what the member served, and another member takes its
        place, unless ``replace_members=False``. A partition without a backup is unavailable until its table is loaded
        again.

        Raises:
            ProgrammingError: No live member has that id.
        """
        self._check_running()
        alive = [member.id for member in self.members() if member.is_alive]
        if member_id not in alive:
            raise errors.ProgrammingError(f"there is no live member {member_id!r}; there is {', '.join(alive)}")
        self._runtime.kill_member(member_id)
        self._ask(ReportMemberLost(member_id))

    def kill_controller(self) -> None:
        """End the controller as a crash would, for tests of what happens then; another one starts at its address.

        Statements that members know already run on; others wait until the new controller knows the cluster again.
        """
        self._check_running()
        self._runtime.kill_controller()

    def stop(self) -> None:
        """End all processes, sockets and threads of the cluster.

        May be called twice; runs by itself at exit of the process, unless the cluster is detached.
        """
        self._end(self._runtime.stop)

    def leave(self) -> None:
        """Let go of a detached cluster, which goes on; any other cluster ends. May be called twice."""
        self._end(self._runtime.leave if self._settings.detached else self._runtime.stop)

    def _end(self, end: Callable[[], None]) -> None:
        with self._lock:
            if self._stopped or self._process != os.getpid():  # in one that was forked, the cluster is its parent's
                return
            self._stopped = True
        atexit.unregister(self._at_exit)
        channel = getattr(self, "_channel", None)
        if channel is not None:
            forget_cluster(channel.address)
            channel.close()
        end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _repr_html_(self) -> str:
        """Its members, as a notebook shows them; only its address if it does not answer."""
        head = f"<pre>{escape(repr(self))}</pre>"
        try:
            members = self.members()
        except errors.Error:
            return head
        return head + html_records(
            ("member", "state", "address", "primary partitions", "backup partitions", "rows", "megabytes"),
            [
                (
                    *(member.id, member.state, member.address),
                    *(member.partitions_primary, member.partitions_backup),
                    *(f"{member.rows:,}", f"{member.bytes / 1e6:,.1f}"),
                )
                for member in members
            ],
        )

    def __repr__(self) -> str:
        state = "stopped" if self._stopped else f"{self._settings.members} members"
        return f"<Cluster {getattr(self, 'address', '')} {self._runtime.name} {state}>"

    def _check_running(self) -> None:
        if self._stopped:
            raise errors.InterfaceError("the cluster is stopped; start another with secateur.start()")


def _naming_unknown_settings(function: Callable[P, Cluster]) -> Callable[P, Cluster]:
    """Say which settings there are, where Python would only say that one is none."""
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Cluster:
        unknown = [name for name in kwargs if name not in known]
        if unknown:
            raise errors.ProgrammingError(
                f"secateur.start: there is no setting {unknown[0]!r}; known settings: {', '.join(known)}"
            )
        return function(*args, **kwargs)

    return checked


@_naming_unknown_settings
def start(  # noqa: D417
    members: int = DEFAULTS.members,
    runtime: Literal["ray", "embedded"] = "ray",
    *,
    ray_address: str | None = DEFAULTS.ray_address,
    ray_actor_options: Mapping[str, Any] | None = DEFAULTS.ray_actor_options,
    detached: bool = False,
    name: str | None = None,
    token: str | None = None,
    tls: Tls | None = DEFAULTS.tls,
    jwt: Jwt | None = DEFAULTS.jwt,
    allow_code: bool = DEFAULTS.allow_code,
    host: str | None = DEFAULTS.host,
    port: int = DEFAULTS.port,
    start_timeout_s: float = DEFAULTS.start_timeout_s,
    member_silence_s: float = DEFAULTS.member_silence_s,
    member_stall_s: float = DEFAULTS.member_stall_s,
    staged_load_idle_s: float = DEFAULTS.staged_load_idle_s,
    rebalancing: bool = DEFAULTS.rebalancing,
    replace_members: bool = DEFAULTS.replace_members,
    standby_controller: bool = DEFAULTS.standby_controller,
    memory_limit: int | None = DEFAULTS.memory_limit,
    kernel_memory_bytes_max: int | None = DEFAULTS.kernel_memory_bytes_max,
    kernel_threads: int = DEFAULTS.kernel_threads,
    spill_directory: str | None = DEFAULTS.spill_directory,
    external_directories: Sequence[str | Path] = DEFAULTS.external_directories,
    data_directory: str | Path | None = DEFAULTS.data_directory,
    fsync: Literal["always", "interval", "off"] = "interval",
    gathered_bytes_max: int = DEFAULTS.gathered_bytes_max,
    result_bytes_max: int = DEFAULTS.result_bytes_max,
    max_running_statements: int = DEFAULTS.max_running_statements,
    max_waiting_statements: int = DEFAULTS.max_waiting_statements,
    slow_statement_s: float | None = DEFAULTS.slow_statement_s,
    hot_key_sampling: int = DEFAULTS.hot_key_sampling,
    log_format: Literal["text", "json"] = "text",
    tracing: str | None = DEFAULTS.tracing,
    planning_timeout_s: float = DEFAULTS.planning_timeout_s,
    plan_cache_max: int = DEFAULTS.plan_cache_max,
    cluster_id: str | None = None,
    limits: Limits = DEFAULTS.limits,
    engine_limits: EngineLimits = DEFAULTS.engine_limits,
    cost_model: CostModel = DEFAULTS.cost_model,
    pruning: Literal["on", "off", "verify"] = "on",
) -> Cluster:
    """Start a cluster and return when all members serve.

    The arguments that are not below are fields of :class:`~secateur.cluster.settings.ClusterSettings`; docs/settings.md
    has the table. A ``data_directory`` that is not absolute begins at the current directory.

    Args:
        members: How many members.
        runtime: ``"ray"`` runs them as Ray actors, on the Ray that this process is connected to, on that of
            ``ray_address``, or else on one that is started for this process alone; ``"embedded"`` in this process,
            without Ray.
        detached: Whether the cluster outlives this process, on the Ray of ``ray_address``. :func:`attach` finds it in
            any process, by its ``name``, and :meth:`Cluster.stop` ends it.
        name: The name of a detached cluster, of which one may run on a Ray.
        token: Left out, or None, it is made at random: connections and Spark writes of this process carry it by
            themselves, other processes need ``cluster.token``. ``""`` is a cluster without a secret, which every
            process that reaches its port may read and write, and which therefore runs no Python functions of clients.

    Raises:
        ProgrammingError: An unknown runtime or setting, or a value out of bounds.
        OperationalError: The processes did not come up.
        DiskError: The data directory cannot be used; another cluster may be using it.
    """
    given: dict[str, Any] = dict(locals())  # a setting is an argument of the same name
    if fsync not in tuple(Fsync):
        raise errors.ProgrammingError(f"fsync={fsync!r}: it is one of {', '.join(map(repr, map(str, Fsync)))}")
    if isinstance(external_directories, str):
        raise errors.ProgrammingError(f"external_directories={external_directories!r}: a list of paths, not one path")
    if pruning not in tuple(Pruning):
        raise errors.ProgrammingError(f"pruning={pruning!r}: it is one of {', '.join(map(repr, Pruning))}")
    if detached and runtime == "embedded":
        raise errors.ProgrammingError(
            'detached=True: a cluster that lives in this process ends with it; use runtime="ray"'
        )
    given |= {
        "token": secrets.token_urlsafe(_TOKEN_BYTES) if token is None else token or None,
        "external_directories": tuple(map(str, external_directories)),
        "data_directory": None if data_directory is None else str(Path(data_directory).absolute()),
        "fsync": Fsync(fsync),
        "cluster_id": secrets.token_hex(4) if cluster_id is None else cluster_id,
        "pruning": Pruning(pruning),
    }
    del given["runtime"]
    chosen = claimed(ClusterSettings(**given), is_named=cluster_id is not None)
    cluster = Cluster(chosen, _runtime(runtime, chosen))
    answer_spark()
    if token is None and chosen.token is not None:
        remember_token(cluster.address.removeprefix("secateur://"), chosen.token)
    log_untested()
    return cluster


def attach(name: str, *, ray_address: str | None = None, timeout_s: float = DEFAULTS.start_timeout_s) -> Cluster:
    """Find a detached cluster that runs; the same as what :func:`start` has returned for it.

    Whoever may use the Ray on which it runs gets its token. Members that were to leave, and that the process which had
    them leave did not end before it was lost, are ended.

    Args:
        name: Its name.
        ray_address: The Ray on which it runs, as for :func:`start`; None for that of this process.
        timeout_s: Seconds that this may take.

    Raises:
        ProgrammingError: No cluster of that name runs there.
        OperationalError: Ray, or the cluster, does not answer.
    """
    from secateur.cluster.runtimes.ray import RayRuntime

    runtime, settings, address = RayRuntime.attached(name, ray_address, timeout_s)
    cluster = Cluster(settings, runtime, address)
    answer_spark()
    try:
        cluster._end_drained()
    except BaseException:
        cluster.leave()
        raise
    if settings.token is not None:
        remember_token(address, settings.token)
    return cluster


def _runtime(name: str, settings: ClusterSettings) -> Runtime:
    match name:
        case "embedded":
            return EmbeddedRuntime(settings)
        case "ray":
            try:
                from secateur.cluster.runtimes.ray import RayRuntime
            except ImportError as error:
                raise errors.ProgrammingError(
                    'runtime="ray" needs Ray: pip install "secateur[ray]", or use runtime="embedded"'
                ) from error
            return RayRuntime(settings)
        case _:
            raise errors.ProgrammingError(f'runtime={name!r}: use "ray" or "embedded"')
