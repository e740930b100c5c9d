"""Draws a resolved plan as boxes and arrows."""

from __future__ import annotations

from typing import Final

from secateur.client.jobs.plan_text import edge_flow, head, partitions_text, route, scan_texts, work
from secateur.drawing.diagram import Diagram, DiagramEdge, DiagramNode, abbreviated
from secateur.drawing.quantity import count_text, duration_text
from secateur.protocol.job_placement import JobPlacement, PlacedVertex, ResolvedEdge, ResolvedVertex

_MEMBERS_SHOWN_MAX: Final = 6
_PARTITIONS_SHOWN_MAX: Final = 3


def plan_diagram(plan: JobPlacement) -> Diagram:
    """Draw a box for each vertex with a line for each of its members, faint if it is left out.

    Texts that do not fit are in the tooltips.
    """
    return Diagram(tuple(map(_box, plan.vertices)), tuple(map(_arrow, plan.edges)), tuple(head(plan)))


def _box(vertex: ResolvedVertex) -> DiagramNode:
    if not vertex.placed:
        return DiagramNode(vertex.name, ("left out",), "no row can reach it", is_faint=True)
    busy = () if vertex.busy_s is None else (f"busy {duration_text(vertex.busy_s)}",)
    return DiagramNode(
        vertex.name,
        (*abbreviated([_line(placed) for placed in vertex.placed], _MEMBERS_SHOWN_MAX), *busy),
        "\n".join([*map(_detail, vertex.placed), *scan_texts(vertex)]),
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
    partitions = partitions_text(placed)
    if partitions:
        words.append(partitions)
    return ", ".join([*words, *work(placed)])


def _arrow(edge: ResolvedEdge) -> DiagramEdge:
    is_left_out = not edge.origins
    return DiagramEdge(
        edge.source,
        edge.destination,
        (*edge.words, *edge_flow(edge)),
        "\n".join([edge.name, *route(edge)]),
        is_bold=edge.distributed,
        is_dashed=edge.priority > 0,
        is_faint=is_left_out,
    )
