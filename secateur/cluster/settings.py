"""The settings of a cluster."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, Final

from secateur.cluster.lease import LeaseTimes
from secateur.engine_limits import EngineLimits
from secateur.errors import ProgrammingError
from secateur.planner.cost_model import CostModel
from secateur.protocol.hello import Pruning
from secateur.protocol.job_description import RESULT_BYTES_MAX
from secateur.protocol.message import Role
from secateur.structured_logs import LOG_FORMATS
from secateur.tunable import description_of, setting, tunables_of
from secateur.wire import ClusterIdentity, Jwt, Limits, Tls

_MEMBERS_MAX = 1024
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_FUNCTION: Final = re.compile(r"\w+(\.\w+)*:\w+")
_RAY_OPTIONS: Final = frozenset(
    {"num_cpus", "num_gpus", "memory", "resources", "scheduling_strategy", "label_selector", "runtime_env"}
)
_NUMBERS: Final = ("engine_limits", "cost_model")
"""Settings that are groups of numbers, each of which is a row."""
_HIDDEN: Final = "(hidden)"
_MADE_AT_RANDOM: Final = frozenset({"cluster_id", "token"})


class Fsync(StrEnum):
    """The moment at which an acknowledged write is on disk.

    Loads and definitions of tables are on disk before they are acknowledged, unless it is ``off``.
    """

    ALWAYS = "always"
    """Before the write is acknowledged, on all copies."""
    INTERVAL = "interval"
    """A twentieth of a second later. Writes acknowledged since are lost if all copies end at once."""
    OFF = "off"
    """Whenever the operating system writes it: a power failure loses more than with ``interval``, the end of processes
    as much."""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Settings that every process of a cluster shares.

    Each field says what it does, to readers here and in ``secateur.settings``; docs/settings.md says the same.
    """

    members: int = setting("how many members to start", default=3)
    host: str | None = setting(
        "the address that the controller and the members listen on. By default loopback, if the cluster "
        "runs in this process or on a Ray that was started for it; on any other Ray, each process listens "
        'on the address of its own node. `"0.0.0.0"` listens on every interface',
        default=None,
    )
    port: int = setting("the controller's port; 0 takes any free one", default=0)
    token: str | None = setting(
        'the secret that connections have to prove; by default it is random, see `cluster.token`; `""` '
        "requires none, and then the cluster runs no functions",
        default=None,
        repr=False,
    )
    tls: Tls | None = setting(
        "encrypts all connections, those between members too: `secateur.Tls(certificate=..., key=..., ca=...)`, "
        "with files that every machine has under these paths; a connection without TLS is then refused. By "
        "default nothing is encrypted; see docs/security.md",
        default=None,
    )
    jwt: Jwt | None = setting(
        "lets clients connect with JWTs of an issuer of your own, as the one they name and with the roles of SQL that "
        "they list: `secateur.Jwt(keys=..., issuer=..., audience=...)`, with a file that every machine has under this "
        "path; by default no such token is accepted, see docs/security.md",
        default=None,
    )
    allow_code: bool = setting(
        "whether clients that have proved the token may submit jobs with Python functions",
        default=True,
    )
    memory_limit: int | None = setting(
        "bytes that one member may take for tables, older rows of them that snapshots keep, staged rows, "
        "results and its kernel; by default the `memory` of `ray_actor_options`, else 80 % of the machine or "
        "container divided by the number of members. A load or write that would not fit is refused with "
        "`LimitExceededError`, and nothing of it is written. Second forms of often scanned columns, indexes and "
        "buffers come on top: leave a quarter of the machine",
        default=None,
    )
    kernel_memory_bytes_max: int | None = setting(
        "memory that DuckDB may use in one member process; by default a quarter of `memory_limit`, or 80 % "
        "of the machine if neither is set. A statement that needs more spills, or fails with "
        "`LimitExceededError`",
        default=None,
    )
    spill_directory: str | None = setting(
        "where intermediate results that pass a limit are written; by default, passing a limit is an error",
        default=None,
    )
    external_directories: tuple[str, ...] = setting(
        "directories of the members' machines whose files external tables may read, with all that is below "
        "them; none by default",
        default=(),
    )
    data_directory: str | None = setting(
        "a directory that every process of the cluster sees under this path: tables are kept there and are "
        "back when a cluster is started on it again, see docs/operations.md; by default nothing is on disk",
        default=None,
    )
    fsync: Fsync = setting(
        'when an acknowledged write is on disk: `"always"`: before it is acknowledged; `"interval"`: a '
        'twentieth of a second later; `"off"`: when the operating system writes it',
        default=Fsync.INTERVAL,
    )
    gathered_bytes_max: int = setting(
        "bytes of rows that one statement may gather from other members on one member",
        default=2 << 30,
    )
    result_bytes_max: int = setting(
        "bytes of results that a member holds while clients read them",
        default=RESULT_BYTES_MAX,
    )
    kernel_threads: int = setting(
        "kernel calls over many rows that a member runs at the same time; short calls have as many threads "
        "of their own, and so have loads and changes",
        default=2,
    )
    max_running_statements: int = setting(
        "statements that read many rows, or rows of several members, and that one member runs or "
        "coordinates at the same time; further ones wait, and connections take turns. Statements over few "
        "rows of one member do not wait for these",
        default=16,
    )
    max_waiting_statements: int = setting(
        "statements that wait at one member, changes of several partitions that wait for one table, or changes that "
        "wait for one partition. One more is "
        "refused with `LimitExceededError` (`retry_safe`), "
        "that of the connection with most waiting ones first",
        default=1000,
    )
    slow_statement_s: float | None = setting(
        "seconds from which on a statement is slow: the member that ran it logs it in one line, with the reason, see "
        "docs/operations.md; 0 logs all. By default none is logged",
        default=None,
    )
    hot_key_sampling: int = setting(
        "one in so many statements, gets and writes is looked at for the hottest values of the partitioning keys, "
        "which `secateur.hot_keys` and the dashboard show; 0 samples none, and no value of a key is kept",
        default=64,
    )
    log_format: str = setting(
        'how the controller and the members write their log lines: `"text"`: as `logging` is configured in their '
        'processes; `"json"`: each as an object in a line on standard error, see docs/operations.md',
        default="text",
    )
    tracing: str | None = setting(
        'a function, as `"module:function"`, that each process of a cluster on Ray calls before it serves, to '
        "configure OpenTelemetry there, see docs/tracing.md; by default there are no spans of these processes",
        default=None,
    )
    planning_timeout_s: float = setting(
        "seconds that planning one statement may take at the controller, which plans for all connections: a text of "
        "many thousand conditions is refused with `LimitExceededError` then; lists as `IN` or as parameters take no "
        "time",
        default=30.0,
    )
    plan_cache_max: int = setting("plans kept by the controller and by each member", default=1024)
    start_timeout_s: float = setting(
        "seconds that the cluster may take to come up, Ray included",
        default=60.0,
    )
    ray_address: str | None = setting(
        "the Ray to run on, as for `ray.init(address=...)`; by default the one that this process is "
        "connected to, else a private one that ends with the last cluster of the process. `RAY_ADDRESS` and"
        " Ray's directories are not used to find one",
        default=None,
    )
    ray_actor_options: Mapping[str, Any] | None = setting(
        'what each member asks Ray for: `{"num_cpus": 4, "memory": 8 << 30, "resources": {"serving": 1}}`, '
        "as `options()` of a Ray actor takes it. By default a member asks for nothing, and Ray spreads the "
        "members over its nodes",
        default=None,
    )
    member_silence_s: float = setting(
        "seconds of silence after which a member is removed: its backups take over, and rows without a "
        "backup are out of reach; if the member lives, it comes back with these, or as a new, empty one if "
        "others have everything",
        default=5.0,
    )
    member_stall_s: float = setting(
        "seconds for which a function may hold the event loop of a living member before the member is removed",
        default=60.0,
    )
    staged_load_idle_s: float = setting(
        "seconds after which a member drops the rows of a load that is not being published and for which none "
        "have come since, because its client is gone; if it is not, its load fails and has to start again",
        default=3600.0,
    )
    rebalancing: bool = setting(
        "whether lost copies are built again, and partitions moved to members that come, by themselves",
        default=True,
    )
    replace_members: bool = setting(
        "whether a member whose process has ended is replaced by a new one",
        default=True,
    )
    standby_controller: bool = setting(
        "whether a second process waits to be the controller when that has ended; without one, a new process is "
        "started then, which takes seconds. On Ray only",
        default=True,
    )
    cluster_id: str = setting(
        "identifies the cluster; by default it is random",
        default_factory=lambda: secrets.token_hex(4),
    )
    detached: bool = setting(
        "whether the cluster outlives the process that starts it, on the Ray of `ray_address`; "
        "`secateur.attach(name)` finds it again, and `stop()` ends it",
        default=False,
    )
    name: str | None = setting("the name of a detached cluster", default=None)
    limits: Limits = setting(
        "bounds of every connection (sizes of frames, requests in flight) and of all together (connections,"
        " sockets that have not said hello, bytes of frames in memory)",
        default_factory=Limits,
    )
    engine_limits: EngineLimits = setting(
        "block sizes, queues and bounds of the storage and the engine of each member",
        default_factory=EngineLimits,
    )
    cost_model: CostModel = setting(
        "by what the planner chooses between plans that give the same rows",
        default_factory=CostModel,
    )
    pruning: Pruning = setting(
        "whether statements run only on the partitions that they need, in connections that have not set it "
        'themselves (`"on"`, `"off"` or `"verify"`); `SET GLOBAL pruning = off` changes it while the '
        "cluster runs",
        default=Pruning.ON,
    )
    secret: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)
    """The secret by which members and controller recognise each other; random, and given to no client."""

    def identity(self, role: Role) -> ClusterIdentity:
        """The identity that a process of this cluster proves in its hello."""
        return ClusterIdentity(role, self.secret)

    @property
    def accepts_code(self) -> bool:
        """Whether Python functions of clients are run: only of clients that have proved a secret."""
        return self.allow_code and self.token is not None

    @property
    def spill_path(self) -> Path | None:
        """Where kernels and jobs spill what does not fit into memory; None for nowhere."""
        return None if self.spill_directory is None else Path(self.spill_directory)

    @property
    def lease_times(self) -> LeaseTimes:
        """The durations of leases."""
        return LeaseTimes(self.member_silence_s)

    def __post_init__(self) -> None:
        if self.token is not None and not self.token:
            raise ProgrammingError("token='' proves nothing: a cluster without a secret has token=None in its settings")
        if self.tls is not None and self.tls.certificate is None:
            raise ProgrammingError("tls= of a cluster needs a certificate: Tls(certificate=..., key=..., ca=...)")
        if self.jwt is not None and self.token is None:
            raise ProgrammingError(
                "jwt= of a cluster with token='': it lets everybody in, so a JWT would keep nobody out; start it with a"
                " token"
            )
        if self.detached != (self.name is not None):
            raise ProgrammingError(
                f"detached={self.detached!r}, name={self.name!r}: a detached cluster has a name, by which attach(name)"
                " finds it, and no other cluster has one"
            )
        for name, is_possible, wanted in self._bounds():
            if not is_possible:
                raise ProgrammingError(f"{name}={getattr(self, name)!r}: {wanted}")
        _ = self.lease_times

    def _bounds(self) -> Iterator[tuple[str, bool, str]]:
        """Each setting with a bound of its own, whether it is within that, and what it is to be."""
        yield "members", 1 <= self.members <= _MEMBERS_MAX, f"a cluster has 1 to {_MEMBERS_MAX} members"
        are_absolute = all(Path(directory).is_absolute() for directory in self.external_directories)
        yield "external_directories", are_absolute, "a list of absolute paths of the members' machines"
        is_absolute = self.data_directory is None or Path(self.data_directory).is_absolute()
        yield "data_directory", is_absolute, "an absolute path, the same for every process of the cluster"
        formats = ", ".join(map(repr, LOG_FORMATS))
        yield "log_format", self.log_format in LOG_FORMATS, f"it is one of {formats}"
        is_function = self.tracing is None or _FUNCTION.fullmatch(self.tracing) is not None
        yield "tracing", is_function, 'a function without arguments, as "module:function"'
        is_name = self.name is None or _NAME.fullmatch(self.name) is not None
        yield "name", is_name, "letters, digits, _ and -, at most 64, beginning with a letter"
        refused = sorted(set(self.ray_actor_options or ()) - _RAY_OPTIONS)
        options = ", ".join(sorted(_RAY_OPTIONS))
        yield "ray_actor_options", not refused, f"{', '.join(refused)} is not for users; there is {options}"
        kernel = self.kernel_memory_bytes_max
        has_room = self.memory_limit is None or self.memory_limit > (kernel or 0)
        yield "memory_limit", has_room, f"a number of bytes, more than kernel_memory_bytes_max, which is {kernel!r}"
        yield "max_running_statements", self.max_running_statements >= 1, "a number of statements, at least 1"
        yield "max_waiting_statements", self.max_waiting_statements >= 0, "a number of statements, at least 0"
        yield "result_bytes_max", self.result_bytes_max >= 1, "a number of bytes, at least 1"
        yield "planning_timeout_s", self.planning_timeout_s > 0, "a number of seconds, more than 0"
        is_slow = self.slow_statement_s is None or self.slow_statement_s >= 0
        yield "slow_statement_s", is_slow, "a number of seconds, at least 0, or None to log none"
        yield "hot_key_sampling", self.hot_key_sampling >= 0, "a number of statements, or 0 to sample none"
        is_longer = self.member_stall_s >= self.member_silence_s
        yield "member_stall_s", is_longer, f"at least member_silence_s, which is {self.member_silence_s!r}"
        yield "staged_load_idle_s", self.staged_load_idle_s > 0, "a number of seconds, more than 0"


DEFAULTS: Final = ClusterSettings()
"""The defaults of a cluster; their ids and secrets belong to no cluster."""


def setting_rows(settings: ClusterSettings, pruning: Pruning) -> Iterator[dict[str, str | None]]:
    """List the settings of :func:`secateur.start`, then the numbers of its ``engine_limits`` and ``cost_model``.

    Args:
        settings: Those of this cluster.
        pruning: What SET GLOBAL pruning has made of it since.

    Yields:
        ``name``, ``value``, ``default`` and ``description``. Values are texts, and None where a setting is not set; a
        token is not shown.
    """
    for one in fields(ClusterSettings):
        description = description_of(one)
        if description is None or one.name in _NUMBERS:
            continue
        value = pruning if one.name == "pruning" else getattr(settings, one.name)
        yield {
            "name": one.name,
            "value": _HIDDEN if one.name == "token" and value is not None else _text(value),
            "default": None if one.name in _MADE_AT_RANDOM else _text(getattr(DEFAULTS, one.name)),
            "description": description,
        }
    for group in _NUMBERS:
        numbers = getattr(settings, group)
        for number in tunables_of(type(numbers)):
            yield {
                "name": number.name,
                "value": str(getattr(numbers, number.name)),
                "default": str(number.default),
                "description": f"{number.effect} ({number.unit}; a number of {group})",
            }


def _text(value: Any) -> str | None:
    if value is None or value == ():
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return str(value.value)
    return ", ".join(value) if isinstance(value, tuple) else str(value)
