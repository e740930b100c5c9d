"""The plan of one member: the resolved form of a DAG, without vertices that can receive nothing there.

Source: Hazelcast Jet, ``ExecutionPlan``, ``VertexDef`` and ``EdgeDef``: description and resolved form are two types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from secateur.dag.codec import decode_part, decode_routing, encode_part, encode_routing
from secateur.dag.edge import AllToOne, EdgeConfig, Routing
from secateur.dag.processor import Params
from secateur.dag.supplier import ProcessorSupplier
from secateur.errors import Error, ProtocolError
from secateur.protocol.values import pack, unpack

__all__ = [
    "DestinationMember",
    "EdgePlan",
    "MemberPlan",
    "SharedJobPlan",
    "VertexPlan",
    "pack_job",
    "pack_plan",
    "unpack_plan",
]


@dataclass(frozen=True, slots=True)
class DestinationMember:
    """A member that an edge delivers to.

    Attributes:
        member: Its id.
        consumers: Processors of the destination vertex there.
    """

    member: str
    consumers: int


@dataclass(frozen=True, slots=True)
class EdgePlan:
    """An edge as it runs; the same value on every member of the job.

    Attributes:
        index: Position in the job; exchange messages carry it.
        name: For messages and metrics.
        source: Name of the vertex that produces.
        source_ordinal: Its bucket.
        destination: Name of the vertex that consumes.
        destination_ordinal: Its input.
        routing: Which consumer gets which rows.
        is_distributed: Whether rows may leave the member. If not, each member is its own and only target.
        priority: Inputs with a smaller number are drained first.
        config: Bounds of the queues.
        origins: Members that run the source, in topology order.
        targets: Members that run the destination and may receive, in topology order.
        owners: For a partitioned distributed edge, the index in ``targets`` of the owner of each routing partition,
            uint16; their number says that its rows are dropped. Else empty.
    """

    index: int
    name: str
    source: str
    source_ordinal: int
    destination: str
    destination_ordinal: int
    routing: Routing
    is_distributed: bool
    priority: int
    config: EdgeConfig
    origins: tuple[str, ...]
    targets: tuple[DestinationMember, ...]
    owners: npt.NDArray[np.uint16]

    @property
    def is_apart(self) -> bool:
        """Whether each of its origins is a separate input."""
        return isinstance(self.routing, AllToOne) and self.routing.apart

    def is_input(self, ordinal: int) -> bool:
        """Whether it is the input of its destination with that ordinal, or one of those."""
        return self.is_apart or ordinal == self.destination_ordinal

    def consumers_on(self, member: str) -> int:
        """The number of consumers on a member; 0 when it is no target."""
        return next((target.consumers for target in self.targets if target.member == member), 0)

    def origins_of(self, member: str) -> tuple[str, ...]:
        """The members whose rows can reach ``member`` over this edge."""
        if not self.is_distributed:
            return (member,) if member in self.origins else ()
        return self.origins


@dataclass(frozen=True, slots=True)
class VertexPlan:
    """A vertex as it runs on one member.

    Attributes:
        name: Name of the vertex.
        supplier: Makes its processors here.
        local_parallelism: How many.
        first_global_index: The position in the job of the first of them.
        total_parallelism: Processors of the vertex in the whole job.
    """

    name: str
    supplier: ProcessorSupplier
    local_parallelism: int
    first_global_index: int
    total_parallelism: int


@dataclass(frozen=True, slots=True)
class SharedJobPlan:
    """The part of the plan that all members of a job share.

    Attributes:
        job_id: Unique in the cluster.
        coordinator: The member that coordinates; it need not take part.
        participants: The members that take part, in topology order.
        timeout_s: Seconds after which a participant gives up even without a message from the coordinator; None for
            never.
        result_bytes_max: Most bytes that result sinks may collect.
        kernel_bytes_max: Most memory of the kernel calls on each member; None for the member's own limit.
        topology_version: The topology the plan was made for.
        params: The parameters of the job.
        edges: All edges that run anywhere.
    """

    job_id: str
    coordinator: str
    participants: tuple[str, ...]
    timeout_s: float | None
    result_bytes_max: int
    kernel_bytes_max: int | None
    topology_version: int
    params: Params
    edges: tuple[EdgePlan, ...]


@dataclass(frozen=True, slots=True)
class MemberPlan:
    """The part of a job that one participant runs.

    Attributes:
        member: Its id.
        job: The part that all members share.
        vertices: In topological order.
    """

    member: str
    job: SharedJobPlan
    vertices: tuple[VertexPlan, ...]


def pack_job(job: SharedJobPlan) -> bytes:
    """The shared part as msgpack: packed once for all participants."""
    params = dict(job.params) if isinstance(job.params, Mapping) else list(job.params)
    edges = [_edge_to_wire(edge) for edge in job.edges]
    limits = [job.timeout_s, job.result_bytes_max, job.kernel_bytes_max]
    shared = [job.job_id, job.coordinator, list(job.participants), limits, job.topology_version, params, edges]
    return pack(shared)


def pack_plan(plan: MemberPlan, job: bytes, *, allow_code: bool) -> bytes:
    """A plan as msgpack; :func:`unpack_plan` reads it back.

    Args:
        plan: The plan.
        job: Its shared part, packed.
        allow_code: Whether suppliers may travel as code.

    Raises:
        SerializationError: A supplier cannot travel.
    """
    vertices = [
        [
            v.name,
            v.local_parallelism,
            v.first_global_index,
            v.total_parallelism,
            encode_part(v.supplier, allow_code=allow_code, vertex=v.name),
        ]
        for v in plan.vertices
    ]
    return pack([plan.member, vertices, job])


def unpack_plan(data: bytes | memoryview, *, allow_code: bool) -> MemberPlan:
    """The plan that :func:`pack_plan` wrote.

    Raises:
        ProtocolError: The bytes are none of ours.
        SerializationError: A supplier is code and code is not allowed, or it does not load.
    """
    try:
        member, vertices, shared = unpack(data)
        (
            job_id,
            coordinator,
            participants,
            (timeout_s, result_bytes_max, kernel_bytes_max),
            topology_version,
            params,
            edges,
        ) = unpack(shared)
        job = SharedJobPlan(
            job_id,
            coordinator,
            tuple(participants),
            timeout_s,
            result_bytes_max,
            kernel_bytes_max,
            topology_version,
            params,
            tuple(_edge_from_wire(edge) for edge in edges),
        )
        return MemberPlan(member, job, tuple(_vertex_from_wire(vertex, allow_code) for vertex in vertices))
    except Error:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(
            f"a job's plan arrived that cannot be read ({type(error).__name__}: {error}); do all members run the same"
            " version?"
        ) from error


def _vertex_from_wire(data: Sequence[Any], allow_code: bool) -> VertexPlan:
    name, local_parallelism, first_global_index, total_parallelism, part = data
    supplier = decode_part(part, allow_code=allow_code, vertex=name)
    if not isinstance(supplier, ProcessorSupplier):
        raise ProtocolError(f"vertex {name!r} carries a {type(supplier).__name__}, not a ProcessorSupplier")
    return VertexPlan(name, supplier, local_parallelism, first_global_index, total_parallelism)


def _edge_to_wire(edge: EdgePlan) -> list[Any]:
    config = edge.config
    return [
        edge.index,
        edge.name,
        edge.source,
        edge.source_ordinal,
        edge.destination,
        edge.destination_ordinal,
        encode_routing(edge.routing),
        edge.is_distributed,
        edge.priority,
        [config.queue_batches_max, config.queue_bytes_max, config.window_bytes_max],
        list(edge.origins),
        [[target.member, target.consumers] for target in edge.targets],
        edge.owners.tobytes(),
    ]


def _edge_from_wire(data: Sequence[Any]) -> EdgePlan:
    (
        index,
        name,
        source,
        source_ordinal,
        destination,
        destination_ordinal,
        routing,
        is_distributed,
        priority,
        config,
        origins,
        targets,
        owners,
    ) = data
    return EdgePlan(
        index=index,
        name=name,
        source=source,
        source_ordinal=source_ordinal,
        destination=destination,
        destination_ordinal=destination_ordinal,
        routing=decode_routing(routing),
        is_distributed=is_distributed,
        priority=priority,
        config=EdgeConfig(*config),
        origins=tuple(origins),
        targets=tuple(DestinationMember(member, consumers) for member, consumers in targets),
        owners=np.frombuffer(owners, dtype=np.uint16),
    )
