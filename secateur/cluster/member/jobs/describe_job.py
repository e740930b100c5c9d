"""The plan of a job as its user sees it, made from the one that members run."""

from __future__ import annotations

from collections import Counter

from secateur.dag.edge import Edge
from secateur.dag.placement import OnPartitions
from secateur.dag.render import edge_words, routing_name
from secateur.engine.execution_plan.member_plan import EdgePlan
from secateur.engine.execution_plan.plan_builder import ExecutionPlan
from secateur.protocol.job_placement import (
    PARTITIONS_LISTED_MAX,
    EdgeTarget,
    JobPlacement,
    PlacedVertex,
    ResolvedEdge,
    ResolvedVertex,
)


def describe_job(plan: ExecutionPlan) -> JobPlacement:
    """The plan without anything that only members need. Costs some microseconds for each vertex and member."""
    placed: dict[str, list[PlacedVertex]] = {vertex.name: [] for vertex in plan.dag.vertices}
    for member, member_plan in plan.members.items():
        for vertex in member_plan.vertices:
            placed[vertex.name].append(_placed(plan, vertex.name, member, vertex.local_parallelism))
    running = {edge.name: edge for edge in plan.job.edges}
    return JobPlacement(
        coordinator=plan.job.coordinator,
        topology_version=plan.job.topology_version,
        members=plan.cluster,
        participants=plan.job.participants,
        vertices=tuple(ResolvedVertex(name, tuple(entries), plan.scans.get(name)) for name, entries in placed.items()),
        edges=tuple(_edge(edge, running.get(edge.name)) for edge in plan.dag.edges),
    )


def _placed(plan: ExecutionPlan, vertex: str, member: str, processors: int) -> PlacedVertex:
    match plan.placements[vertex]:
        case OnPartitions(_, by_member):
            partitions = sorted(by_member[member])
            return PlacedVertex(member, processors, len(partitions), tuple(partitions[:PARTITIONS_LISTED_MAX]))
        case _:
            return PlacedVertex(member, processors)


def _edge(edge: Edge, running: EdgePlan | None) -> ResolvedEdge:
    """An edge that does not run has no origins and no targets."""
    assigned = Counter() if running is None else Counter(running.owners.tolist())
    targets = () if running is None else running.targets
    return ResolvedEdge(
        name=edge.name,
        source=edge.source,
        destination=edge.destination,
        kind=routing_name(edge.routing),
        words=tuple(edge_words(edge)),
        distributed=edge.is_distributed,
        priority=edge.priority,
        origins=() if running is None else running.origins,
        targets=tuple(
            EdgeTarget(target.member, target.consumers, assigned[index] if assigned else None)
            for index, target in enumerate(targets)
        ),
    )
