"""The resolved plan of a job: who takes part, what each member runs and reads, and which rows are sent where.

Source: Hazelcast Jet's management center, which draws a job's DAG with what flows over its edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from secateur.client.jobs.plan_forms import plan_diagram, plan_text
from secateur.drawing.diagram import Diagram
from secateur.drawing.drawable import Drawable
from secateur.protocol.job_placement import JobPlacement, PlacedVertex, ResolvedEdge, ResolvedVertex


@dataclass(frozen=True, slots=True)
class ResolvedPlan(JobPlacement, Drawable):
    """A job as it runs, or would run: made by :meth:`Connection.plan` and :meth:`Job.plan`.

    A notebook shows it as a picture. What it says is in the attributes of
    :class:`~secateur.protocol.job_placement.JobPlacement`.
    """

    @classmethod
    def of(cls, placement: JobPlacement) -> ResolvedPlan:
        """The plan of a placement that a member has sent."""
        return cls(*(getattr(placement, field.name) for field in fields(JobPlacement)))

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
        """Return the plan with the work of its vertices and edges.

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
        """List the participants, what each member runs and reads, and where rows are sent."""
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
                {
                    "name": vertex.name,
                    "members": [_plain(placed) for placed in vertex.placed],
                    **({} if vertex.scan is None else {"scan": _plain(vertex.scan)}),
                }
                for vertex in self.vertices
            ],
            "edges": [_plain_edge(edge) for edge in self.edges],
        }

    def diagram(self) -> Diagram:
        """A box for each vertex with the members it runs on, and an arrow for each edge."""
        return plan_diagram(self)


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


def _plain(value: Any) -> dict[str, Any]:
    """The fields by name, without those of a measurement that was not made."""
    fields = ((name, getattr(value, name)) for name in value.__slots__)
    return {name: list(field) if isinstance(field, tuple) else field for name, field in fields if field is not None}


def _plain_edge(edge: ResolvedEdge) -> dict[str, Any]:
    plain = _plain(edge)
    ends = {"from": plain.pop("source"), "to": plain.pop("destination")}
    return {**ends, **plain, "targets": [_plain(target) for target in edge.targets]}
