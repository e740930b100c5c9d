"""The placement of a job: its vertices, edges and members, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PARTITIONS_LISTED_MAX: Final = 64


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
