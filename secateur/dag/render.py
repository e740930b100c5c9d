"""A DAG for the eye: text, Graphviz DOT, and plain data for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from secateur.dag.dag import FrozenDAG
from secateur.dag.edge import AllToOne, Broadcast, Distributed, DistributedTo, Edge, FanOut, Isolated, Local, Partitioned, Routing, Unicast

__all__ = ["routing_name", "to_dict", "to_dot", "to_text"]


def routing_name(routing: Routing) -> str:
    """The word for a routing in EXPLAIN, metrics and the dashboard."""
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


def to_text(dag: FrozenDAG) -> str:
    """One line for each vertex and, below it, one for each edge that leaves it.

    >>> from secateur.dag import DAG, Processor, between
    >>> dag = DAG()
    >>> _ = dag.new_vertex("scan", Processor, 2), dag.new_vertex("sum", Processor)
    >>> _ = dag.edge(between("scan", "sum").partitioned("k").distributed())
    >>> print(to_text(dag.freeze()))
    scan x2
      -> sum partitioned(k) distributed
    sum
    """
    lines: list[str] = []
    for vertex in dag.vertices:
        lines.append(vertex.name if vertex.local_parallelism is None else f"{vertex.name} x{vertex.local_parallelism}")
        lines += [f"  -> {edge.destination} {_edge_label(edge)}" for edge in dag.outbound[vertex.name]]
    return "\n".join(lines)


def to_dot(dag: FrozenDAG) -> str:
    """Graphviz DOT; distributed edges are bold, edges that are read late are dashed."""
    lines = ["digraph dag {", "  rankdir=LR;", "  node [shape=box];"]
    lines += [f"  {_quote(vertex.name)};" for vertex in dag.vertices]
    for edge in dag.edges:
        style = ",".join(word for word, on in (("bold", edge.is_distributed), ("dashed", edge.priority > 0)) if on) or "solid"
        lines.append(f"  {_quote(edge.source)} -> {_quote(edge.destination)} [label={_quote(_edge_label(edge))}, style={_quote(style)}];")
    return "\n".join([*lines, "}"])


def to_dict(dag: FrozenDAG, placed: Mapping[str, tuple[Sequence[str], int]] | None = None) -> dict[str, Any]:
    """Plain data in the form of EXPLAIN (FORMAT JSON).

    Args:
        dag: The DAG.
        placed: For each vertex that runs, the members it runs on and its processors on a member; a vertex that is not in it was dropped. Without, members are
            null.
    """
    vertices = [
        {
            "name": vertex.name,
            "members": None if placed is None else list(placed.get(vertex.name, ((), 0))[0]),
            "local_parallelism": vertex.local_parallelism if placed is None else placed.get(vertex.name, ((), 0))[1],
        }
        for vertex in dag.vertices
    ]
    edges = [{"from": edge.source, "to": edge.destination, "kind": routing_name(edge.routing), "distributed": edge.is_distributed} for edge in dag.edges]
    return {"vertices": vertices, "edges": edges}


def _edge_label(edge: Edge) -> str:
    words = [routing_name(edge.routing)]
    if isinstance(edge.routing, Partitioned):
        words[0] += f"({', '.join(edge.routing.columns)})"
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
    return " ".join(words)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
