"""The settings of a cluster."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from secateur.cluster.fsync import Fsync
from secateur.cluster.lease import LeaseTimes
from secateur.engine_limits import EngineLimits
from secateur.errors import ProgrammingError
from secateur.planner.cost_model import CostModel
from secateur.protocol.job_config import RESULT_BYTES_MAX
from secateur.protocol.message import Role
from secateur.protocol.pruning import Pruning
from secateur.wire import ClusterIdentity, Limits

__all__ = ["DEFAULTS", "ClusterSettings"]

_MEMBERS_MAX = 1024
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_RAY_OPTIONS: Final = frozenset(
    {"num_cpus", "num_gpus", "memory", "resources", "scheduling_strategy", "label_selector", "runtime_env"}
)


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Settings that every process of a cluster shares.

    Attributes:
        members: How many members to start.
        host: The address that controller and members listen on. None: loopback, if all run on this machine; on a Ray
            that was not started for this process, each process listens on the address of its own Ray node.
            ``"0.0.0.0"`` listens on every interface of each node.
        port: The controller's port; 0 takes any free one.
        token: The secret that every connection has to prove; None asks for none. :func:`secateur.start` makes one by
            default.
        allow_code: Whether clients that have proved the secret may submit DAGs that carry Python functions. Without a
            secret no client may.
        memory_limit: Bytes that one member may take for tables, staged rows, results and its kernel; rows that would
            not fit are refused with LimitExceededError, and nothing of them is written. None: the ``memory`` of
            ``ray_actor_options``, else 80 % of the machine or container divided by the number of members.
        kernel_memory_bytes_max: The memory that the duckdb kernel of one member process may use; a statement that needs
            more spills, or fails with LimitExceededError. None: a quarter of ``memory_limit``, or where that is not set
            either DuckDB's default, 80 % of the machine.
        spill_directory: A directory of the members' machines for intermediate results that pass a limit; None: passing
            the limit is an error. Files left there by a killed process belong to no other process.
        external_directories: The directories of the members' machines whose files external tables may read, with all
            that is below them; none by default. Files outside of them are never read, whatever links and ``..`` lead
            there.
        data_directory: A directory that every process of the cluster sees under this path, for data that survive the
            end of all processes: each member has a directory of its own in it. None: nothing is on disk. A cluster that
            is started on a directory that was used before has the tables that were there.
        fsync: When an acknowledged write is on disk: ``"always"``: before it is acknowledged; ``"interval"``: a
            twentieth of a second later; ``"off"``: when the operating system writes it.
        gathered_bytes_max: Bytes of each other's rows that the stages of one statement may gather on one member; a
            statement that needs more fails with LimitExceededError.
        result_bytes_max: Bytes of results that one member holds while clients read them, all together; more is a
            LimitExceededError. Rows that can be made as they are read do not count, only those of results that are made
            whole.
        kernel_threads: Kernel calls over many rows that one member runs at the same time. Short ones have as many
            threads of their own, and so have loads and changes; a call there that turns out to be long no longer
            counts.
        plan_cache_max: Plans kept by the controller and by each member.
        start_timeout_s: Seconds that the cluster may take to come up, Ray included.
        ray_address: The Ray to run on, as ``ray.init(address=...)`` takes it; None: the one that this process is
            connected to, else one that is started for this process and ends with its last cluster. ``RAY_ADDRESS`` is
            not followed.
        ray_actor_options: What each member asks Ray for, as :meth:`ray.actor.ActorClass.options` takes it:
            ``{"num_cpus": 4, "memory": 8 << 30, "resources": {"serving": 1}}``. By default a member asks for nothing,
            and members are spread over the nodes. Names, restarts and the like are secateur's.
        member_silence_s: Seconds of silence after which a member is given up: its backups serve its partitions from
            then on, and partitions without a backup are lost. A member that lives comes back as a new one. Pauses of a
            machine that are to be survived have to be shorter.
        member_stall_s: Seconds for which a member may be unable to answer although its process lives, because a
            function holds its event loop, before it is given up as well.
        rebalancing: Whether copies that were lost are built again, and partitions moved to members that come, by
            themselves.
        replace_members: Whether a member whose process has ended is replaced by a new one.
        cluster_id: Tells clusters apart: in Ray actor names, and so that a client notices that an address belongs to
            another cluster now.
        detached: Whether the cluster outlives the process that starts it.
        name: The name under which a detached cluster is found again; None for other clusters.
        limits: Bounds of every connection.
        engine_limits: Bounds of the storage and the engine of each member.
        cost_model: The costs by which the planner chooses between plans that give the same rows; a session may set
            single numbers.
        pruning: Whether statements run only on the partitions that they need, in sessions that have not set it
            themselves: ``"on"``, ``"off"`` or ``"verify"``. ``SET GLOBAL pruning`` changes it later.
        secret: The secret by which members and controller recognise each other; made at random, and given to no client.
    """

    members: int = 3
    host: str | None = None
    port: int = 0
    token: str | None = field(default=None, repr=False)
    allow_code: bool = True
    memory_limit: int | None = None
    kernel_memory_bytes_max: int | None = None
    spill_directory: str | None = None
    external_directories: tuple[str, ...] = ()
    data_directory: str | None = None
    fsync: Fsync = Fsync.INTERVAL
    gathered_bytes_max: int = 2 << 30
    result_bytes_max: int = RESULT_BYTES_MAX
    kernel_threads: int = 2
    plan_cache_max: int = 1024
    start_timeout_s: float = 60.0
    ray_address: str | None = None
    ray_actor_options: Mapping[str, Any] | None = None
    member_silence_s: float = 5.0
    member_stall_s: float = 60.0
    rebalancing: bool = True
    replace_members: bool = True
    cluster_id: str = field(default_factory=lambda: secrets.token_hex(4))
    detached: bool = False
    name: str | None = None
    limits: Limits = field(default_factory=Limits)
    engine_limits: EngineLimits = field(default_factory=EngineLimits)
    cost_model: CostModel = field(default_factory=CostModel)
    pruning: Pruning = Pruning.ON
    secret: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)

    def identity(self, role: Role) -> ClusterIdentity:
        """The identity that a process of this cluster proves in its hello."""
        return ClusterIdentity(role, self.secret)

    @property
    def accepts_code(self) -> bool:
        """Whether Python functions of clients are run: only of clients that have proved a secret."""
        return self.allow_code and self.token is not None

    @property
    def lease_times(self) -> LeaseTimes:
        """How long leases last."""
        return LeaseTimes(self.member_silence_s)

    def __post_init__(self) -> None:
        if not 1 <= self.members <= _MEMBERS_MAX:
            raise ProgrammingError(f"members={self.members!r}: a cluster has 1 to {_MEMBERS_MAX} members")
        if self.token is not None and not self.token:
            raise ProgrammingError("token='' proves nothing: a cluster without a secret has token=None in its settings")
        if not all(Path(directory).is_absolute() for directory in self.external_directories):
            raise ProgrammingError(
                f"external_directories={self.external_directories!r}: a list of absolute paths of the members' machines"
            )
        if self.memory_limit is not None and not self.memory_limit > (self.kernel_memory_bytes_max or 0):
            raise ProgrammingError(
                f"memory_limit={self.memory_limit!r}: a number of bytes, more than kernel_memory_bytes_max, which is"
                f" {self.kernel_memory_bytes_max!r}"
            )
        if self.data_directory is not None and not Path(self.data_directory).is_absolute():
            raise ProgrammingError(
                f"data_directory={self.data_directory!r}: an absolute path, the same for every process of the cluster"
            )
        if self.result_bytes_max < 1:
            raise ProgrammingError(f"result_bytes_max={self.result_bytes_max!r}: a number of bytes, at least 1")
        if not self.member_stall_s >= self.member_silence_s:
            raise ProgrammingError(
                f"member_stall_s={self.member_stall_s!r}: at least member_silence_s, which is {self.member_silence_s!r}"
            )
        if self.detached != (self.name is not None):
            raise ProgrammingError(
                f"detached={self.detached!r}, name={self.name!r}: a detached cluster has a name, by which attach(name)"
                " finds it, and no other cluster has one"
            )
        if self.name is not None and not _NAME.fullmatch(self.name):
            raise ProgrammingError(f"name={self.name!r}: letters, digits, _ and -, at most 64, beginning with a letter")
        if refused := sorted(set(self.ray_actor_options or ()) - _RAY_OPTIONS):
            raise ProgrammingError(
                f"ray_actor_options={self.ray_actor_options!r}: {', '.join(refused)} is not for users; there is"
                f" {', '.join(sorted(_RAY_OPTIONS))}"
            )
        _ = self.lease_times


DEFAULTS: Final = ClusterSettings()
"""The defaults of a cluster; their ids and secrets belong to no cluster."""
