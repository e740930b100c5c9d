"""Builds the plans of all participants from a DAG, its arguments and the topology.

Source: Hazelcast Jet, ``ExecutionPlanBuilder``, with the member pruning of its job partition pruning design.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, assert_never

from secateur.dag.dag import FrozenDAG
from secateur.dag.edge import Edge
from secateur.dag.placement import Anywhere, OnCoordinator, OnMembers, OnPartitions, Placement, Spread, Unrestricted
from secateur.dag.processor import Params
from secateur.dag.supplier import MetaContext, ProcessorMetaSupplier, ProcessorSupplier
from secateur.dag.vertex import Vertex
from secateur.engine.execution_plan.member_plan import (
    DestinationMember,
    EdgePlan,
    MemberPlan,
    SharedJobPlan,
    VertexPlan,
)
from secateur.engine.execution_plan.partial_aggregation import with_partial_aggregation
from secateur.engine.execution_plan.participants import choose_participants
from secateur.engine.failure import located
from secateur.errors import DagError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.topology import Topology
from secateur.protocol.job_description import JobConfig, SourceScan
from secateur.protocol.jobs import JobAttempt

_DEFAULT_PARALLELISM = 1
"""Cooperative processors of a member share one event loop, so a second one adds switching and no speed; kernels have
threads of their own.
"""


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """A job, resolved.

    Attributes:
        dag: The DAG that it was built from, with aggregations split into stages.
        job: The part of the plan that all participants share.
        members: One plan for each participant, in topology order.
        placements: The placement of each vertex, by its name.
        cluster: All members, including those that take no part, in topology order.
        scans: What the sources read that say so, by the name of the vertex.
    """

    dag: FrozenDAG
    job: SharedJobPlan
    members: Mapping[str, MemberPlan]
    placements: Mapping[str, Placement]
    cluster: tuple[str, ...]
    scans: Mapping[str, SourceScan]

    def to_dict(self) -> dict[str, Any]:
        """The ``dag`` object of EXPLAIN (FORMAT JSON): vertices with the members they run on, and edges."""
        placed: dict[str, tuple[list[str], int]] = {}
        for member, plan in self.members.items():
            for vertex in plan.vertices:
                members, parallelism = placed.get(vertex.name, ([], 0))
                placed[vertex.name] = ([*members, member], max(parallelism, vertex.local_parallelism))
        return self.dag.to_dict(placed)


class ExecutionPlanBuilder:
    """Builds the plan of one run.

    Use it once: :meth:`build`, and :meth:`close` when the run has ended, also if ``build`` failed.

    ``planned`` has the plans of the SELECTs that sources read, by the name of the vertex.
    """

    def __init__(
        self,
        dag: FrozenDAG,
        config: JobConfig,
        *,
        job_id: str,
        coordinator: str,
        topology: Topology,
        params: Params,
        table: Callable[[str], TableDef],
        planned: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._dag = with_partial_aggregation(dag)
        self._config = config
        self._job_id = job_id
        self._coordinator = coordinator
        self._topology = topology
        self._params = params
        self._table = table
        self._planned = planned
        self._meta_suppliers = {vertex.name: copy(vertex.meta_supplier) for vertex in self._dag.vertices}
        self._begun: list[ProcessorMetaSupplier] = []

    @property
    def init_is_cooperative(self) -> bool:
        """Whether :meth:`build` may run on the event loop."""
        return all(meta.init_is_cooperative for meta in self._meta_suppliers.values())

    @property
    def close_is_cooperative(self) -> bool:
        """Whether :meth:`close` may run on the event loop."""
        return all(meta.close_is_cooperative for meta in self._meta_suppliers.values())

    def build(self, logged_as: JobAttempt | None = None) -> ExecutionPlan:
        """Initialise the meta-suppliers, choose the participants, place vertices and resolve edges.

        Args:
            logged_as: Under which name the lines of the job are kept; None keeps none.

        Raises:
            DagError: The DAG cannot run as it is: see the message.
            Error: A meta-supplier refused, with the vertex named.
        """
        placements = {vertex.name: self._init(vertex) for vertex in self._dag.vertices}
        participants = choose_participants(
            self._dag, placements, self._config, self._topology, self._coordinator, self._table
        )
        allowed = {name: self._allowed(placement, participants) for name, placement in placements.items()}
        presence = self._place(allowed, participants)
        parallelism = {
            vertex.name: self._parallelism(vertex, placements[vertex.name], presence[vertex.name])
            for vertex in self._dag.vertices
        }
        edges = self._resolve_edges(placements, allowed, presence, parallelism)
        job = SharedJobPlan(
            job_id=self._job_id,
            coordinator=self._coordinator,
            participants=tuple(
                member for member in participants if any(member in members for members in presence.values())
            ),
            timeout_s=self._config.timeout_s,
            result_bytes_max=self._config.result_bytes_max,
            kernel_bytes_max=self._config.kernel_bytes_max,
            topology_version=self._topology.version,
            params=self._params,
            edges=tuple(edges),
            logged_as=logged_as,
        )
        vertices: dict[str, list[VertexPlan]] = {member: [] for member in job.participants}
        for vertex in self._dag.vertices:
            counts = parallelism[vertex.name]
            first = 0
            for member, supplier in self._suppliers(vertex, presence[vertex.name]).items():
                vertices[member].append(VertexPlan(vertex.name, supplier, counts[member], first, sum(counts.values())))
                first += counts[member]
        members = {member: MemberPlan(member, job, tuple(plans)) for member, plans in vertices.items()}
        found = {name: meta.scan() for name, meta in self._meta_suppliers.items()}
        scans = {name: scan for name, scan in found.items() if scan is not None}
        return ExecutionPlan(self._dag, job, members, placements, self._topology.member_ids, scans)

    def close(self, error: BaseException | None) -> None:
        """Close every meta-supplier whose init was begun; exceptions are dropped, because the outcome stands."""
        begun, self._begun = self._begun, []
        for meta in begun:
            try:
                meta.close(error)
            except Exception:
                continue

    def _init(self, vertex: Vertex) -> Placement:
        meta = self._meta_suppliers[vertex.name]
        self._begun.append(meta)
        context = MetaContext(
            self._job_id,
            vertex.name,
            self._coordinator,
            self._config,
            self._params,
            self._topology,
            self._table,
            self._planned.get(vertex.name),
        )
        try:
            meta.init(context)
            return meta.placement()
        except Exception as error:
            raise located(error, vertex.name, self._coordinator, "its meta-supplier's init()") from error

    def _suppliers(self, vertex: Vertex, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        if not members:
            return {}
        try:
            suppliers = self._meta_suppliers[vertex.name].get(members)
        except Exception as error:
            raise located(error, vertex.name, self._coordinator, "its meta-supplier's get()") from error
        missing = [member for member in members if not isinstance(suppliers.get(member), ProcessorSupplier)]
        if missing:
            raise DagError(
                f"the meta-supplier of vertex {vertex.name!r} returned no ProcessorSupplier for member"
                f" {missing[0]}; expected one for each of {', '.join(members)}"
            )
        return {member: suppliers[member] for member in members}

    def _place(self, allowed: Mapping[str, tuple[str, ...]], participants: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The members on which each vertex runs: where it may run and something can reach it.

        Sources run wherever they may.
        """
        presence: dict[str, tuple[str, ...]] = {}
        for vertex in self._dag.vertices:
            here = allowed[vertex.name]
            edges = self._dag.inbound[vertex.name]
            if edges:
                works_without_input = self._meta_suppliers[vertex.name].works_without_input
                reached: set[str] = set()
                for edge in edges:
                    _check_reach(edge, presence[edge.source], here)
                    reached.update(
                        _destinations(
                            edge, presence[edge.source] or (participants if works_without_input else ()), here
                        )
                    )
                here = tuple(member for member in here if member in reached)
            presence[vertex.name] = here
        return presence

    def _allowed(self, placement: Placement, participants: Sequence[str]) -> tuple[str, ...]:
        match placement:
            case Unrestricted():
                return tuple(participants)
            case OnPartitions(_, by_member):
                return tuple(member for member in participants if by_member.get(member))
            case OnMembers(members):
                return tuple(member for member in participants if member in members)
            case OnCoordinator():
                return (self._coordinator,)
            case Anywhere():
                return (self._coordinator if self._coordinator in participants else participants[0],)
            case Spread(parts):
                chosen = sorted(participants, key=self._coordinator.__ne__)[:parts]
                return tuple(member for member in participants if member in chosen)
            case _:
                assert_never(placement)

    def _parallelism(self, vertex: Vertex, placement: Placement, members: Sequence[str]) -> dict[str, int]:
        wished = (
            vertex.local_parallelism
            or self._meta_suppliers[vertex.name].preferred_local_parallelism
            or _DEFAULT_PARALLELISM
        )
        match placement:
            case Unrestricted():
                return dict.fromkeys(members, wished)
            case OnPartitions(_, by_member):
                # Processor pruning: no more processors than partitions to read.
                return {member: min(wished, len(by_member[member])) for member in members}
            case OnMembers(_, most):
                self._check_at_most(vertex, most)
                return dict.fromkeys(members, min(wished, most))
            case OnCoordinator():
                self._check_at_most(vertex, 1)
                return dict.fromkeys(members, 1)
            case Anywhere():
                return dict.fromkeys(members, 1)
            case Spread(parts):
                return {
                    member: min(wished, len(range(index, parts, len(members)))) for index, member in enumerate(members)
                }
            case _:
                assert_never(placement)

    def _check_at_most(self, vertex: Vertex, most: int) -> None:
        if vertex.local_parallelism is not None and vertex.local_parallelism > most:
            raise DagError(
                f"vertex {vertex.name!r} has local_parallelism {vertex.local_parallelism}, but its supplier allows"
                f" {most}; leave it out"
            )

    def _resolve_edges(
        self,
        placements: Mapping[str, Placement],
        allowed: Mapping[str, tuple[str, ...]],
        presence: Mapping[str, tuple[str, ...]],
        parallelism: Mapping[str, Mapping[str, int]],
    ) -> list[EdgePlan]:
        plans: list[EdgePlan] = []
        for edge in self._dag.edges:
            origins, runs_on = presence[edge.source], presence[edge.destination]
            if not runs_on:
                continue  # the destination was dropped because nothing can reach it: the source runs nowhere either
            reached = _destinations(edge, origins or runs_on, allowed[edge.destination])
            routing = edge.routing.resolved(edge.name, self._table)
            targets = [member for member in runs_on if member in reached]
            has_owners = edge.is_distributed and targets
            placement = placements[edge.destination]
            plans.append(
                EdgePlan(
                    index=len(plans),
                    name=edge.name,
                    source=edge.source,
                    source_ordinal=edge.source_ordinal,
                    destination=edge.destination,
                    destination_ordinal=edge.destination_ordinal,
                    routing=routing,
                    reach=edge.reach,
                    priority=edge.priority,
                    config=edge.config,
                    origins=origins,
                    targets=tuple(
                        DestinationMember(member, parallelism[edge.destination][member]) for member in targets
                    ),
                    owner_bytes=routing.owners(targets, self._topology, placement).tobytes() if has_owners else b"",
                )
            )
        return plans


def _destinations(edge: Edge, origins: Sequence[str], allowed: Sequence[str]) -> set[str]:
    """Return the members to which an edge can deliver rows.

    Its source runs on ``origins`` and its destination may run on ``allowed``.
    """
    found: set[str] = set()
    for origin in origins:
        found.update(edge.routing.targets(edge.reach.targets(origin, allowed)))
        if len(found) == len(allowed):
            break
    return found


def _check_reach(edge: Edge, origins: Sequence[str], allowed: Sequence[str]) -> None:
    """Rows must never be made where they have nowhere to go."""
    stranded = next((origin for origin in origins if not edge.reach.targets(origin, allowed)), None)
    if stranded is not None:
        runs = (
            f"only on {', '.join(allowed)}; make the edge distributed" if allowed else "nowhere, as it has no partition"
        )
        raise DagError(
            f"edge {edge.name} is {edge.reach.words}, and rows of {edge.source!r} on member {stranded} have nowhere to"
            f" go: {edge.destination!r} runs {runs}"
        )
