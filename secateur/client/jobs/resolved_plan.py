"""Where a job runs: who takes part and who is left out, what each member runs and reads, and which rows go where.

Source: Hazelcast Jet's management center, which draws a job's DAG with what flows over its edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from secateur.client.jobs.plan_diagram import plan_diagram
from secateur.client.jobs.plan_text import plan_text
from secateur.drawing import Diagram, Drawable
from secateur.errors import ProtocolError

__all__ = ["PARTITIONS_LISTED_MAX", "EdgeTarget", "PlacedVertex", "ResolvedEdge", "ResolvedPlan", "ResolvedVertex"]

PARTITIONS_LISTED_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class PlacedVertex:
    """A vertex on one member.

    Attributes:
        member: Id of the member.
        processors: How many it has there.
        partition_count: How many partitions they read together; None for a vertex that reads none.
        partitions: The ids of these, sorted; of many, the first 64. None like their number.
        rows_in: Rows that they have taken; None in a plan that was not measured.
        rows_out: Rows that they have offered.
        busy_s: Seconds spent in their calls, without what they offloaded.
    """

    member: str
    processors: int
    partition_count: int | None = None
    partitions: tuple[int, ...] | None = None
    rows_in: int | None = None
    rows_out: int | None = None
    busy_s: float | None = None


@dataclass(frozen=True, slots=True)
class ResolvedVertex:
    """A vertex.

    Attributes:
        name: Its name.
        placed: The members it runs on, in topology order. None: it is left out, since no row can reach it.
    """

    name: str
    placed: tuple[PlacedVertex, ...]

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
        origins: The members that produce. None: it is left out with its destination.
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
class ResolvedPlan(Drawable):
    """A job as it runs, or would run: made by :meth:`Connection.plan` and :meth:`Job.plan`.

    A notebook shows it as a picture.

    Attributes:
        coordinator: Id of the member that coordinates; where several may, another one may do so next time.
        topology_version: Of the topology that the plan is for.
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
        """The messages that start the job: one from the coordinator to each other participant, which answers once, at
        its end.
        """
        return sum(member != self.coordinator for member in self.participants)

    def vertex(self, name: str) -> ResolvedVertex:
        """The vertex of that name.

        Raises:
            KeyError: There is none.
        """
        for vertex in self.vertices:
            if vertex.name == name:
                return vertex
        raise KeyError(name)

    def measured(self, metrics: Sequence[Mapping[str, Any]]) -> ResolvedPlan:
        """The plan with what its vertices and edges have done.

        Args:
            metrics: From :meth:`Job.metrics`.
        """
        by_place = {(entry["vertex"], entry["member"]): entry for entry in metrics}
        vertices = tuple(
            replace(
                vertex,
                placed=tuple(
                    _with_work(placed, by_place.get((vertex.name, placed.member))) for placed in vertex.placed
                ),
            )
            for vertex in self.vertices
        )
        offered = [output for entry in metrics for output in entry["outputs"]]
        taken = [taking for entry in metrics for taking in entry["inputs"]]
        return replace(self, vertices=vertices, edges=tuple(_with_flow(edge, offered, taken) for edge in self.edges))

    def to_text(self) -> str:
        """Who takes part, what each member runs and reads, and where rows go."""
        return plan_text(self)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, in the words of EXPLAIN (FORMAT JSON)."""
        return {
            "coordinator": self.coordinator,
            "topology_version": self.topology_version,
            "required_members": list(self.participants),
            "skipped_members": list(self.skipped),
            "members_total": len(self.members),
            "start_messages": self.start_messages,
            "vertices": [
                {"name": vertex.name, "members": [_plain(placed) for placed in vertex.placed]}
                for vertex in self.vertices
            ],
            "edges": [_plain_edge(edge) for edge in self.edges],
        }

    def diagram(self) -> Diagram:
        """A box for each vertex with the members it runs on, and an arrow for each edge."""
        return plan_diagram(self)

    def to_wire(self) -> list[Any]:
        """Plain data for msgpack; :meth:`from_wire` reads it back."""
        vertices = [[vertex.name, [_values(placed) for placed in vertex.placed]] for vertex in self.vertices]
        edges = [
            [*_values(replace(edge, targets=())), [_values(target) for target in edge.targets]] for edge in self.edges
        ]
        return [self.coordinator, self.topology_version, self.members, self.participants, vertices, edges]

    @classmethod
    def from_wire(cls, data: Sequence[Any]) -> ResolvedPlan:
        """The plan that :meth:`to_wire` wrote.

        Raises:
            ProtocolError: It is none.
        """
        try:
            coordinator, topology_version, members, participants, vertices, edges = data
            return cls(
                coordinator,
                topology_version,
                tuple(members),
                tuple(participants),
                tuple(
                    ResolvedVertex(name, tuple(_read(PlacedVertex, entry) for entry in placed))
                    for name, placed in vertices
                ),
                tuple(
                    replace(_read(ResolvedEdge, edge), targets=tuple(_read(EdgeTarget, target) for target in targets))
                    for *edge, targets in edges
                ),
            )
        except (LookupError, TypeError, ValueError) as error:
            raise ProtocolError(
                f"a plan arrived that cannot be read ({type(error).__name__}: {error}); is the client's version the"
                " cluster's?"
            ) from error


def _with_work(placed: PlacedVertex, entry: Mapping[str, Any] | None) -> PlacedVertex:
    return (
        placed
        if entry is None
        else replace(placed, rows_in=entry["rows_in"], rows_out=entry["rows_out"], busy_s=entry["busy_s"])
    )


def _with_flow(
    edge: ResolvedEdge, offered: Sequence[Mapping[str, Any]], taken: Sequence[Mapping[str, Any]]
) -> ResolvedEdge:
    here = [entry for entry in offered if entry["edge"] == edge.name]
    if not here:
        return edge
    fill = max((entry["fill"] for entry in taken if entry["edge"] == edge.name), default=None)
    return replace(
        edge, rows=sum(entry["rows"] for entry in here), bytes=sum(entry["bytes"] for entry in here), fill=fill
    )


def _values(value: Any) -> list[Any]:
    return [getattr(value, name) for name in value.__slots__]


def _plain(value: Any) -> dict[str, Any]:
    """The fields by name, without those of a measurement that was not made."""
    fields = ((name, getattr(value, name)) for name in value.__slots__)
    return {name: list(field) if isinstance(field, tuple) else field for name, field in fields if field is not None}


def _plain_edge(edge: ResolvedEdge) -> dict[str, Any]:
    plain = _plain(edge)
    ends = {"from": plain.pop("source"), "to": plain.pop("destination")}
    return {**ends, **plain, "targets": [_plain(target) for target in edge.targets]}


def _read(kind: Any, values: Sequence[Any]) -> Any:
    return kind(*(tuple(value) if isinstance(value, list) else value for value in values))
