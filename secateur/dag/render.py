"""Presents a DAG to people: as text, as plain data for JSON, and as the diagram that becomes DOT and SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from secateur.dag.edge import Edge
from secateur.dag.vertex import Vertex
from secateur.drawing.diagram import Diagram, DiagramEdge, DiagramNode


def to_text(vertices: Sequence[Vertex], edges: Sequence[Edge]) -> str:
    """One line for each vertex and, below it, one for each edge that leaves it.

    >>> from secateur.dag import DAG, Processor, between
    >>> dag = DAG()
    >>> _ = dag.new_vertex("scan", Processor, 2), dag.new_vertex("sum", Processor)
    >>> _ = dag.edge(between("scan", "sum").partitioned("k").distributed())
    >>> print(dag.to_text())
    scan x2
      -> sum partitioned(k) distributed
    sum
    """
    lines: list[str] = []
    for vertex in vertices:
        lines.append(vertex.name if vertex.local_parallelism is None else f"{vertex.name} x{vertex.local_parallelism}")
        lines += [
            f"  -> {edge.destination} {' '.join(edge_words(edge))}" for edge in edges if edge.source == vertex.name
        ]
    return "\n".join(lines)


def diagram_of(vertices: Sequence[Vertex], edges: Sequence[Edge]) -> Diagram:
    """Draw a box for each vertex and an arrow for each edge.

    An arrow is bold if rows may leave the member, and dashed if its input is read late.
    """
    boxes = tuple(
        DiagramNode(vertex.name, () if vertex.local_parallelism is None else (f"x{vertex.local_parallelism}",))
        for vertex in vertices
    )
    arrows = tuple(
        DiagramEdge(
            edge.source,
            edge.destination,
            tuple(edge_words(edge)),
            edge.name,
            is_bold=edge.is_distributed,
            is_dashed=edge.priority > 0,
        )
        for edge in edges
    )
    return Diagram(boxes, arrows)


def to_dict(
    vertices: Sequence[Vertex],
    edges: Sequence[Edge],
    placed: Mapping[str, tuple[Sequence[str], int]] | None = None,
) -> dict[str, Any]:
    """Plain data in the form of EXPLAIN (FORMAT JSON).

    Args:
        vertices: The vertices of the DAG.
        edges: Its edges.
        placed: For each vertex that runs, the members it runs on and its processors on a member; a vertex that is not
            in it was dropped. Without, members are null.
    """
    boxes = [
        {
            "name": vertex.name,
            "members": None if placed is None else list(placed.get(vertex.name, ((), 0))[0]),
            "local_parallelism": vertex.local_parallelism if placed is None else placed.get(vertex.name, ((), 0))[1],
        }
        for vertex in vertices
    ]
    arrows = [
        {
            "from": edge.source,
            "to": edge.destination,
            "kind": edge.routing.name,
            "distributed": edge.is_distributed,
        }
        for edge in edges
    ]
    return {"vertices": boxes, "edges": arrows}


def edge_words(edge: Edge) -> list[str]:
    """Describe an edge in words: routing, distance and priority, each only if it is not the default."""
    words = [edge.routing.words]
    if edge.is_distributed:
        words.append(edge.reach.words)
    if edge.priority:
        words.append(f"priority {edge.priority}")
    return words
