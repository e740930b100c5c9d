"""Presents a DAG to people: as text, as plain data for JSON, and as the diagram that becomes DOT and SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from secateur.dag.edge import (
    AllToOne,
    Broadcast,
    Distributed,
    DistributedTo,
    Edge,
    FanOut,
    Isolated,
    Local,
    Partitioned,
    Routing,
    Unicast,
)
from secateur.dag.vertex import Vertex
from secateur.drawing.diagram import Diagram, DiagramEdge, DiagramNode


def routing_name(routing: Routing) -> str:
    """The word for a routing in EXPLAIN, plans and diagrams."""
    match routing:
        case Unicast():
            return "unicast"
        case Partitioned():
            return "partitioned"
        case Broadcast():
            return "broadcast"
        case Isolated():
            return "isolated"
        case AllToOne():
            return "all-to-one"
        case FanOut():
            return "fan-out"
        case _:
            assert_never(routing)


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
            "kind": routing_name(edge.routing),
            "distributed": edge.is_distributed,
        }
        for edge in edges
    ]
    return {"vertices": boxes, "edges": arrows}


def edge_words(edge: Edge) -> list[str]:
    """Describe an edge in words: routing, distance and priority, each only if it is not the default."""
    words = [routing_name(edge.routing)]
    match edge.routing:
        case Partitioned(columns, _, table):
            words[0] += f"({', '.join(columns)})" if columns else ""
            words[0] += "" if table is None else f" like {table}"
        case AllToOne(key) if key:
            words[0] += f"({key})"
        case _:
            pass
    match edge.reach:
        case Local():
            pass
        case Distributed():
            words.append("distributed")
        case DistributedTo(member):
            words.append(f"distributed to {member}")
        case _:
            assert_never(edge.reach)
    if edge.priority:
        words.append(f"priority {edge.priority}")
    return words
