"""A resolved plan as lines for people, and as boxes and arrows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from secateur.drawing.diagram import Diagram, DiagramEdge, DiagramNode, abbreviated
from secateur.drawing.quantity import byte_text, count_text, duration_text
from secateur.protocol.job_placement import JobPlacement, PlacedVertex, ResolvedEdge, ResolvedVertex

_SHOWN_MAX: Final = 16


def plan_text(plan: JobPlacement) -> str:
    """List the participants, then for each member what it runs and reads, then where rows are sent."""
    lines = [*head(plan), *(f"{vertex.name}: {text}" for vertex in plan.vertices for text in scan_texts(vertex))]
    for member in plan.participants:
        lines.append(f"{member}:")
        lines += [
            f"  {vertex.name} {_placed(placed)}"
            for vertex in plan.vertices
            for placed in vertex.placed
            if placed.member == member
        ]
    left_out = [vertex.name for vertex in plan.vertices if not vertex.placed]
    if left_out:
        lines.append(f"left out, since no row can reach them: {', '.join(left_out)}")
    if plan.edges:
        lines.append("edges:")
        lines += [
            f"  {edge.source} -> {edge.destination}: {', '.join([*edge.words, *route(edge), *edge_flow(edge)])}"
            for edge in plan.edges
        ]
    return "\n".join(lines)


def head(plan: JobPlacement) -> Iterator[str]:
    """Yield the participants, and the number of messages."""
    skipped = f", skipped{_listed(plan.skipped)}" if plan.skipped else ""
    yield f"runs on {len(plan.participants)} of {len(plan.members)} members{_listed(plan.participants)}{skipped}"
    yield (
        f"coordinator {plan.coordinator}, {count_text(plan.start_messages, 'start message')}, topology version"
        f" {plan.topology_version}"
    )


def scan_texts(vertex: ResolvedVertex) -> Iterator[str]:
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


def partitions_text(placed: PlacedVertex) -> str:
    """The partitions that a vertex reads on a member; empty for one that reads none."""
    if placed.partition_count is None or placed.partitions is None:
        return ""
    shown = [f"p{partition}" for partition in placed.partitions[:_SHOWN_MAX]]
    more = placed.partition_count - len(shown)
    return f"{count_text(placed.partition_count, 'partition')} [{', '.join(shown)}{f', {more} more' if more else ''}]"


def route(edge: ResolvedEdge) -> Iterator[str]:
    """Describe from which members to which the rows of a distributed edge go."""
    if not edge.origins:
        yield "left out"
    elif edge.distributed:
        yield f"from{_listed(edge.origins)} to{_listed([target.member for target in edge.targets])}"
        assigned = [f"{target.routing_partitions}" for target in edge.targets if target.routing_partitions is not None]
        if assigned:
            yield f"routing partitions dealt{_listed(assigned)}"


def edge_flow(edge: ResolvedEdge) -> Iterator[str]:
    """Yield the rows sent over an edge; nothing in a plan without measurements."""
    if edge.rows is not None and edge.bytes is not None:
        yield f"{count_text(edge.rows, 'row')}, {byte_text(edge.bytes)}"
    if edge.fill is not None and edge.fill >= 1:
        yield "producers wait"


def work(placed: PlacedVertex) -> Iterator[str]:
    """Yield the work of a vertex on a member; nothing in a plan without measurements."""
    if placed.rows_in is not None and placed.rows_out is not None and placed.busy_s is not None:
        yield f"rows {placed.rows_in:,} in and {placed.rows_out:,} out"
        yield f"busy {duration_text(placed.busy_s)}"


def _placed(placed: PlacedVertex) -> str:
    words = [f"x{placed.processors}"]
    partitions = partitions_text(placed)
    if partitions:
        words.append(f"reads {partitions}")
    return ", ".join([*words, *work(placed)])


def _listed(names: Sequence[str]) -> str:
    shown = list(islice(names, _SHOWN_MAX))
    more = f", {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f" [{', '.join(shown)}{more}]"


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
