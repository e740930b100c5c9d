"""The resolved plan of a job: who takes part, what each member runs and reads, and which rows are sent where.

Source: Hazelcast Jet's management center, which draws a job's DAG with what flows over its edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any, Final

from secateur.drawing.diagram import Diagram, DiagramEdge, DiagramNode, Drawable, abbreviated
from secateur.drawing.quantity import byte_text, count_text, duration_text
from secateur.protocol.job_description import JobPlacement, PlacedVertex, ResolvedEdge, ResolvedVertex

_SHOWN_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class ResolvedPlan(JobPlacement, Drawable):
    """A job as it runs, or would run: made by :meth:`Connection.plan` and :meth:`Job.plan`.

    A notebook shows it as a picture. What it says is in the attributes of
    :class:`~secateur.protocol.job_description.JobPlacement`.
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
        """List the participants, then for each member what it runs and reads, then where rows are sent."""
        lines = [*_head(self), *(f"{vertex.name}: {text}" for vertex in self.vertices for text in _scan_texts(vertex))]
        for member in self.participants:
            lines.append(f"{member}:")
            lines += [
                f"  {vertex.name} {_placed(placed)}"
                for vertex in self.vertices
                for placed in vertex.placed
                if placed.member == member
            ]
        left_out = [vertex.name for vertex in self.vertices if not vertex.placed]
        if left_out:
            lines.append(f"left out, since no row can reach them: {', '.join(left_out)}")
        if self.edges:
            lines.append("edges:")
            lines += [
                f"  {edge.source} -> {edge.destination}: {', '.join([*edge.words, *_route(edge), *_edge_flow(edge)])}"
                for edge in self.edges
            ]
        return "\n".join(lines)

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
        """A box for each vertex with a line for each of its members, faint if it is left out; an arrow for each edge.

        Texts that do not fit are in the tooltips.
        """
        return Diagram(tuple(map(_box, self.vertices)), tuple(map(_arrow, self.edges)), tuple(_head(self)))


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


def _head(plan: JobPlacement) -> Iterator[str]:
    """Yield the participants, and the number of messages."""
    skipped = f", skipped{_listed(plan.skipped)}" if plan.skipped else ""
    yield f"runs on {len(plan.participants)} of {len(plan.members)} members{_listed(plan.participants)}{skipped}"
    yield (
        f"coordinator {plan.coordinator}, {count_text(plan.start_messages, 'start message')}, topology version"
        f" {plan.topology_version}"
    )


def _scan_texts(vertex: ResolvedVertex) -> Iterator[str]:
    """Describe the scan of a source, and why it is not smaller; nothing if it names its partitions or keys."""
    scan = vertex.scan
    if scan is None or (scan.filter is None and scan.reason is None):
        return
    kept = f"{scan.partitions_read} of {count_text(scan.partitions_total, 'partition')}"
    yield f"keeps {kept}{'' if scan.tree is None else f' by {scan.tree}'}"
    if scan.reason is not None:
        yield f"not fewer: {scan.reason}"
    if scan.filter is not None:
        applied = "searches the primary key and filters" if scan.searches else "filters"
        yield f"{applied} by {' '.join(scan.filter.split())}"
    if scan.columns is not None:
        yield f"reads the columns {', '.join(scan.columns)}"


def _partitions_text(placed: PlacedVertex) -> str:
    """The partitions that a vertex reads on a member; empty for one that reads none."""
    if placed.partition_count is None or placed.partitions is None:
        return ""
    shown = [f"p{partition}" for partition in placed.partitions[:_SHOWN_MAX]]
    more = placed.partition_count - len(shown)
    return f"{count_text(placed.partition_count, 'partition')} [{', '.join(shown)}{f', {more} more' if more else ''}]"


def _route(edge: ResolvedEdge) -> Iterator[str]:
    """Describe from which members to which the rows of a distributed edge go."""
    if not edge.origins:
        yield "left out"
    elif edge.distributed:
        yield f"from{_listed(edge.origins)} to{_listed([target.member for target in edge.targets])}"
        assigned = [f"{target.routing_partitions}" for target in edge.targets if target.routing_partitions is not None]
        if assigned:
            yield f"routing partitions dealt{_listed(assigned)}"


def _edge_flow(edge: ResolvedEdge) -> Iterator[str]:
    """Yield the rows sent over an edge; nothing in a plan without measurements."""
    if edge.rows is not None and edge.bytes is not None:
        yield f"{count_text(edge.rows, 'row')}, {byte_text(edge.bytes)}"
    if edge.fill is not None and edge.fill >= 1:
        yield "producers wait"


def _work(placed: PlacedVertex) -> Iterator[str]:
    """Yield the work of a vertex on a member; nothing in a plan without measurements."""
    if placed.rows_in is not None and placed.rows_out is not None and placed.busy_s is not None:
        yield f"rows {placed.rows_in:,} in and {placed.rows_out:,} out"
        yield f"busy {duration_text(placed.busy_s)}"


def _placed(placed: PlacedVertex) -> str:
    words = [f"x{placed.processors}"]
    partitions = _partitions_text(placed)
    if partitions:
        words.append(f"reads {partitions}")
    return ", ".join([*words, *_work(placed)])


def _listed(names: Sequence[str]) -> str:
    shown = list(islice(names, _SHOWN_MAX))
    more = f", {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f" [{', '.join(shown)}{more}]"


_MEMBERS_SHOWN_MAX: Final = 6
_PARTITIONS_SHOWN_MAX: Final = 3


def _box(vertex: ResolvedVertex) -> DiagramNode:
    if not vertex.placed:
        return DiagramNode(vertex.name, ("left out",), "no row can reach it", is_faint=True)
    busy = () if vertex.busy_s is None else (f"busy {duration_text(vertex.busy_s)}",)
    return DiagramNode(
        vertex.name,
        (*abbreviated([_line(placed) for placed in vertex.placed], _MEMBERS_SHOWN_MAX), *busy),
        "\n".join([*map(_detail, vertex.placed), *_scan_texts(vertex)]),
    )


def _line(placed: PlacedVertex) -> str:
    words = [placed.member, f"x{placed.processors}"]
    if placed.partition_count is not None and placed.partitions is not None:
        few = placed.partition_count <= _PARTITIONS_SHOWN_MAX
        words += (
            [f"p{partition}" for partition in placed.partitions]
            if few
            else [count_text(placed.partition_count, "partition")]
        )
    return " ".join(words)


def _detail(placed: PlacedVertex) -> str:
    words = [f"{placed.member} x{placed.processors}"]
    partitions = _partitions_text(placed)
    if partitions:
        words.append(partitions)
    return ", ".join([*words, *_work(placed)])


def _arrow(edge: ResolvedEdge) -> DiagramEdge:
    is_left_out = not edge.origins
    return DiagramEdge(
        edge.source,
        edge.destination,
        (*edge.words, *_edge_flow(edge)),
        "\n".join([edge.name, *_route(edge)]),
        is_bold=edge.distributed,
        is_dashed=edge.priority > 0,
        is_faint=is_left_out,
    )
