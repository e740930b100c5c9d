"""The plan of one member: the resolved form of a DAG, without vertices that can receive nothing there.

Source: Hazelcast Jet, ``ExecutionPlan``, ``VertexDef`` and ``EdgeDef``: description and resolved form are two types.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from secateur.dag.codec import EncodedSupplier, decode_supplier, encode_supplier
from secateur.dag.edge import EdgeConfig, Reach, Routing
from secateur.dag.processor import Params
from secateur.dag.supplier import ProcessorSupplier
from secateur.protocol.codec import decode, encode
from secateur.protocol.jobs import JobAttempt


class DestinationMember(msgspec.Struct, frozen=True, array_like=True):
    """A member that an edge delivers to, and how many processors of the destination vertex are there."""

    member: str
    consumers: int


class EdgePlan(msgspec.Struct, frozen=True, array_like=True):
    """An edge as it runs; the same value on every member of the job.

    Attributes:
        index: Position in the job; exchange messages carry it.
        name: For messages and metrics.
        source: Name of the vertex that produces.
        source_ordinal: Its bucket.
        destination: Name of the vertex that consumes.
        destination_ordinal: Its input.
        routing: Which consumer gets which rows.
        reach: Which members the rows may go to.
        priority: Inputs with a smaller number are drained first.
        config: Bounds of the queues.
        origins: Members that run the source, in topology order.
        targets: Members that run the destination and may receive, in topology order.
        owner_bytes: For a partitioned distributed edge, the index in ``targets`` of the owner of each partition, as the
            bytes of uint16; their number says that its rows are dropped. Else empty. See :attr:`owners`.
    """

    index: int
    name: str
    source: str
    source_ordinal: int
    destination: str
    destination_ordinal: int
    routing: Routing
    reach: Reach
    priority: int
    config: EdgeConfig
    origins: tuple[str, ...]
    targets: tuple[DestinationMember, ...]
    owner_bytes: bytes

    @property
    def owners(self) -> npt.NDArray[np.uint16]:
        """The owner of each partition, uint16, read-only."""
        return np.frombuffer(self.owner_bytes, dtype=np.uint16)

    def is_input(self, ordinal: int) -> bool:
        """Whether it is the input of its destination with that ordinal, or one of those."""
        return self.routing.apart or ordinal == self.destination_ordinal

    def origins_of(self, member: str) -> tuple[str, ...]:
        """The origins whose rows may go to ``member``, which is a target."""
        return tuple([origin for origin in self.origins if self.reach.targets(origin, (member,))])

    def targets_of(self, member: str) -> list[DestinationMember]:
        """The targets to which rows that are made on ``member`` may go."""
        by_name = {target.member: target for target in self.targets}
        return [by_name[name] for name in self.reach.targets(member, tuple(by_name))]


@dataclass(frozen=True, slots=True)
class VertexPlan:
    """A vertex as it runs on one member.

    ``first_global_index`` is the position in the job of its first processor here.
    """

    name: str
    supplier: ProcessorSupplier
    local_parallelism: int
    first_global_index: int
    total_parallelism: int


class SharedJobPlan(msgspec.Struct, frozen=True, array_like=True):
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
        logged_as: Under which name its lines are kept; None for statements, of which none are.
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
    logged_as: JobAttempt | None = None


@dataclass(frozen=True, slots=True)
class MemberPlan:
    """The part of a job that one participant runs, its vertices in topological order."""

    member: str
    job: SharedJobPlan
    vertices: tuple[VertexPlan, ...]


class EncodedVertexPlan(msgspec.Struct, frozen=True, array_like=True):
    """A :class:`VertexPlan` as it travels."""

    name: str
    supplier: EncodedSupplier
    local_parallelism: int
    first_global_index: int
    total_parallelism: int


class EncodedMemberPlan(msgspec.Struct, frozen=True, array_like=True):
    """A :class:`MemberPlan` as it travels; ``job`` is the encoded :class:`SharedJobPlan`."""

    member: str
    vertices: tuple[EncodedVertexPlan, ...]
    job: bytes


def encode_plan(plan: MemberPlan, job: bytes, *, allow_code: bool) -> bytes:
    """A plan as bytes; :func:`decode_plan` reads it back. Its shared part is encoded once for all participants.

    Raises:
        SerializationError: A supplier cannot travel.
    """
    vertices = tuple(
        EncodedVertexPlan(
            vertex.name,
            encode_supplier(vertex.supplier, allow_code=allow_code, vertex=vertex.name),
            vertex.local_parallelism,
            vertex.first_global_index,
            vertex.total_parallelism,
        )
        for vertex in plan.vertices
    )
    return encode(EncodedMemberPlan(plan.member, vertices, job))


def decode_plan(data: bytes | memoryview, *, allow_code: bool) -> MemberPlan:
    """The plan that :func:`encode_plan` wrote.

    Raises:
        ProtocolError: The bytes are not a plan.
        SerializationError: A supplier is code and code is not allowed, or it does not load.
        DagError: What a vertex carries makes no processors.
    """
    found = decode(data, EncodedMemberPlan)
    vertices = tuple(
        VertexPlan(
            vertex.name,
            decode_supplier(vertex.supplier, ProcessorSupplier, allow_code=allow_code, vertex=vertex.name),
            vertex.local_parallelism,
            vertex.first_global_index,
            vertex.total_parallelism,
        )
        for vertex in found.vertices
    )
    return MemberPlan(found.member, decode(found.job, SharedJobPlan), vertices)
