"""The description of a job as plain values: its arguments, the partitions it requires, and its placement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

import msgspec

from secateur.errors import DagError
from secateur.partitioning.topology.topology import Topology

RESULT_BYTES_MAX: Final = 1 << 30
PARTITIONS_LISTED_MAX: Final = 64


class OnMemberLost(StrEnum):
    """The treatment of a job that cannot continue because a member was lost, or partitions moved or changed."""

    RESTART = "restart"
    """It runs again from the beginning; its sinks write their rows again."""
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class JobConfig:
    """Options of a job.

    Attributes:
        name: ``Connection.job`` finds the job by it; unique among the jobs that have not ended, or None. For light
            jobs only a label.
        required_partitions: The partitions that the job can touch, by table name or affinity group. Only the members
            that own one of them take part, and a source that requires more than this is refused. None: the
            requirements that the sources declare decide.
        member_pruning: False deploys to every member, whatever is required. Use it to find out whether member pruning
            causes a problem.
        pruning: False has sources with a condition of SQL read every partition and test the condition on every row.
            ``SET pruning = off`` of a connection does the same for the jobs that it submits.
        timeout_s: The job fails with ``DeadlineError`` after that many seconds, restarts included; None: no limit.
        result_bytes_max: Most bytes that the result sinks of the job may collect at the coordinator.
        kernel_bytes_max: Most memory that the kernel calls of the job (sorts, joins, aggregates) use for intermediate
            results on each member. Beyond it they spill to disk where members have a spill directory, and fail the job
            with ``LimitExceededError`` where they have none. None: the job shares the member's kernel, and its limit,
            with everything else. A limit costs the job some milliseconds on each member, for a kernel of its own, which
            needs about 50 MB to be able to spill.
        on_member_lost: ``"restart"`` repeats the whole job; choose ``"fail"`` when a sink must not get rows twice.
            Light jobs always fail.
    """

    name: str | None = None
    required_partitions: Mapping[str, frozenset[int]] | None = None
    member_pruning: bool = True
    timeout_s: float | None = None
    result_bytes_max: int = RESULT_BYTES_MAX
    on_member_lost: str = OnMemberLost.RESTART
    kernel_bytes_max: int | None = None
    pruning: bool = True

    def __post_init__(self) -> None:
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise DagError(
                f"JobConfig.timeout_s is {self.timeout_s!r}; it must be a positive number of seconds, or None"
            )
        if self.result_bytes_max < 1:
            raise DagError(f"JobConfig.result_bytes_max is {self.result_bytes_max!r}; it must be at least 1")
        if self.kernel_bytes_max is not None and self.kernel_bytes_max < 1:
            raise DagError(
                f"JobConfig.kernel_bytes_max is {self.kernel_bytes_max!r}; it must be at least 1, or None for the limit"
                " of the member"
            )
        if self.on_member_lost not in tuple(OnMemberLost):
            raise DagError(
                f"JobConfig.on_member_lost is {self.on_member_lost!r}; it must be one of"
                f" {', '.join(repr(str(choice)) for choice in OnMemberLost)}"
            )
        for key, partitions in (self.required_partitions or {}).items():
            if not all(isinstance(partition, int) and partition >= 0 for partition in partitions):
                raise DagError(
                    f"JobConfig.required_partitions[{key!r}] must hold partition ids (integers from 0), not"
                    f" {sorted(map(repr, partitions))[:5]}"
                )
        if self.required_partitions is not None:
            frozen = {key: frozenset(partitions) for key, partitions in self.required_partitions.items()}
            object.__setattr__(self, "required_partitions", frozen)


class JobRequirements(msgspec.Struct, frozen=True, array_like=True):
    """The partitions and members without which a job cannot run; ``|`` unites two requirements.

    They choose the coordinator: a member that takes part anyway. The participants are determined when the job starts,
    by the placements of its vertices.

    Attributes:
        partitions: By table name or affinity group.
        members: Ids of the members that are named.
    """

    partitions: Mapping[str, frozenset[Annotated[int, msgspec.Meta(ge=0)]]] = {}
    members: frozenset[str] = frozenset()

    def __or__(self, other: JobRequirements) -> JobRequirements:
        partitions = dict(self.partitions)
        for name, ids in other.partitions.items():
            partitions[name] = partitions.get(name, frozenset()) | ids
        return JobRequirements(partitions, self.members | other.members)


def coordinators(needs: JobRequirements, topology: Topology, group_of: Callable[[str], str]) -> list[str]:
    """Return the members that may coordinate a job, sorted; all members if the job requires none in particular.

    Args:
        needs: Partitions, and members by name; names that are not in the topology are left to the builder of the plan.
        topology: Members and owners.
        group_of: The affinity group of a table, by name; raises ``UnknownTableError``.

    Raises:
        DagError: A partition is named that its table does not have.
        UnknownTableError: A table is named that does not exist.
        PartitionLostError: A partition had its only copy on a member that has left, or no member is left.
    """
    found: set[str] = set()
    for name, partitions in needs.partitions.items():
        ownership = topology.owners.get(name if name in topology.owners else group_of(name))
        if ownership is None:
            continue
        unknown = sorted(partition for partition in partitions if partition >= ownership.partitions)
        if unknown:
            raise DagError(
                f"JobConfig.required_partitions: {name} has the partitions 0 to {ownership.partitions - 1}, not"
                f" {', '.join(map(str, unknown[:10]))}"
            )
        found.update(ownership.primaries(sorted(partitions)))
    topology.check_any()
    topology.check_live(found)
    return sorted(found | needs.members.intersection(topology.member_ids)) or list(topology.member_ids)


@dataclass(frozen=True, slots=True)
class PlacedVertex:
    """A vertex on one member.

    Attributes:
        member: Id of the member.
        processors: How many it has there.
        partition_count: How many partitions they read together; None for a vertex that reads none.
        partitions: The ids of these, sorted, at most the first 64; None if ``partition_count`` is None.
        rows_in: Rows that they have taken; None in a plan without measurements.
        rows_out: Rows that they have offered.
        busy_s: Seconds spent in their calls, without offloaded ones.
    """

    member: str
    processors: int
    partition_count: int | None = None
    partitions: tuple[int, ...] | None = None
    rows_in: int | None = None
    rows_out: int | None = None
    busy_s: float | None = None


@dataclass(frozen=True, slots=True)
class SourceScan:
    """The scan of a table by a source, in the words of EXPLAIN.

    Attributes:
        table: The name of the table.
        partitions_read: How many partitions it reads.
        partitions_total: How many the table has.
        tree: The partition tree, open in the parameters of the condition; None where the source names partitions or
            keys.
        filter: The condition that the members apply to the rows of these partitions; None for all rows.
        columns: The columns that are read, those of the filter included; None for all.
        searches: Whether the filter bounds the primary key, so that a search replaces the scan of a partition.
        reason: Why no partition was left out, in words a user can act on; None where some were.
    """

    table: str
    partitions_read: int
    partitions_total: int
    tree: str | None = None
    filter: str | None = None
    columns: tuple[str, ...] | None = None
    searches: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ResolvedVertex:
    """A vertex.

    Attributes:
        name: Its name.
        placed: The members it runs on, in topology order. Empty: it is left out, since no row can reach it.
        scan: The scan of a source that describes it.
    """

    name: str
    placed: tuple[PlacedVertex, ...]
    scan: SourceScan | None = None

    @property
    def busy_s(self) -> float | None:
        """Seconds spent on all members; None in a plan that was not measured."""
        measured = [placed.busy_s for placed in self.placed if placed.busy_s is not None]
        return sum(measured) if measured else None


@dataclass(frozen=True, slots=True)
class EdgeTarget:
    """A member to which an edge delivers.

    Attributes:
        member: Its id.
        consumers: Processors of the destination there.
        routing_partitions: How many of the partitions into which keys are hashed were assigned to it; None where keys
            do not decide.
    """

    member: str
    consumers: int
    routing_partitions: int | None = None


@dataclass(frozen=True, slots=True)
class ResolvedEdge:
    """An edge.

    Attributes:
        name: In messages and metrics.
        source: Name of the vertex that produces.
        destination: Name of the vertex that consumes.
        kind: Its routing, such as ``partitioned``.
        words: Routing, reach and priority, as far as they are not the default.
        distributed: Whether rows may leave their member.
        priority: Inputs with a smaller number are drained first.
        origins: The members that produce. Empty: it is left out with its destination.
        targets: The members that consume.
        rows: Rows that were offered to it; None in a plan that was not measured.
        bytes: Their bytes.
        fill: How full the fullest queue of its consumers is, 0 to 1; at 1, producers wait.
    """

    name: str
    source: str
    destination: str
    kind: str
    words: tuple[str, ...]
    distributed: bool
    priority: int
    origins: tuple[str, ...]
    targets: tuple[EdgeTarget, ...]
    rows: int | None = None
    bytes: int | None = None
    fill: float | None = None


@dataclass(frozen=True, slots=True)
class JobPlacement:
    """The placement of a job's vertices and edges.

    Attributes:
        coordinator: Id of the member that coordinates; where several may, another one may do so next time.
        topology_version: The version of the topology for which the plan was made.
        members: All members of the cluster, in topology order.
        participants: Those that take part.
        vertices: In topological order.
        edges: In the order of their sources.
    """

    coordinator: str
    topology_version: int
    members: tuple[str, ...]
    participants: tuple[str, ...]
    vertices: tuple[ResolvedVertex, ...]
    edges: tuple[ResolvedEdge, ...]

    @property
    def skipped(self) -> tuple[str, ...]:
        """The members that take no part: they get no plan and no message, and run nothing."""
        taking_part = {*self.participants, self.coordinator}
        return tuple(member for member in self.members if member not in taking_part)

    @property
    def start_messages(self) -> int:
        """The messages that start the job: one from the coordinator to each other participant.

        Each answers once, at its end.
        """
        return sum(member != self.coordinator for member in self.participants)
