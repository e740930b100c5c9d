"""The work of a vertex on one member: counters of processors and edges."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import asdict


class TaskletMetrics(msgspec.Struct, frozen=True, array_like=True):
    """The work of one processor.

    Attributes:
        index: Its number among the processors of its vertex on its member, from 0.
        batches_in: Batches taken from inbound edges.
        rows_in: Their rows.
        bytes_in: Their bytes.
        batches_out: Batches offered, counted once for each outbound edge.
        rows_out: Their rows.
        bytes_out: Their bytes.
        busy_s: Seconds that its turns took, with the routing of what it offered and without what it offloaded; in its
            own thread, seconds in its calls.
        offload_s: Seconds spent in what it offloaded, such as kernel calls.
    """

    index: int
    batches_in: int
    rows_in: int
    bytes_in: int
    batches_out: int
    rows_out: int
    bytes_out: int
    busy_s: float
    offload_s: float = 0.0


class InputMetrics(msgspec.Struct, frozen=True, array_like=True):
    """One inbound edge of a vertex on one member: what its processors have taken, and what waits for them.

    Attributes:
        edge: Name of the edge.
        batches: Batches taken.
        rows: Their rows.
        bytes: Their bytes.
        queued_batches: Batches that wait now, in the queues of all processors.
        queued_bytes: Their bytes.
        fill: How full the fullest queue is, 0 to 1; at 1, producers wait.
    """

    edge: str
    batches: int
    rows: int
    bytes: int
    queued_batches: int
    queued_bytes: int
    fill: float


class OutputMetrics(msgspec.Struct, frozen=True, array_like=True):
    """One outbound edge of a vertex on one member: what its processors have offered.

    Attributes:
        edge: Name of the edge.
        batches: Batches offered.
        rows: Their rows.
        bytes: Their bytes.
        sent_bytes: Bytes sent to other members, as messages.
    """

    edge: str
    batches: int
    rows: int
    bytes: int
    sent_bytes: int = 0


class VertexMetrics(msgspec.Struct, frozen=True, array_like=True):
    """The work of one vertex on one member.

    Attributes:
        vertex: Name of the vertex.
        member: Id of the member.
        processors: How many processors it had there.
        batches_in: Batches taken from inbound edges.
        rows_in: Their rows.
        batches_out: Batches offered, counted once for each outbound edge.
        rows_out: Their rows.
        bytes_out: Their bytes.
        busy_s: Seconds that its processors were busy: see :class:`TaskletMetrics`.
        bytes_in: Bytes taken from inbound edges.
        offload_s: Seconds spent in what the processors offloaded, such as kernel calls.
        tasklets: Its processors one by one.
        inputs: Its inbound edges, by ordinal.
        outputs: Its outbound edges, by ordinal.
    """

    vertex: str
    member: str
    processors: int
    batches_in: int
    rows_in: int
    batches_out: int
    rows_out: int
    bytes_out: int
    busy_s: float
    bytes_in: int = 0
    offload_s: float = 0.0
    tasklets: tuple[TaskletMetrics, ...] = ()
    inputs: tuple[InputMetrics, ...] = ()
    outputs: tuple[OutputMetrics, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        nested = {name: [asdict(entry) for entry in getattr(self, name)] for name in ("tasklets", "inputs", "outputs")}
        return {**asdict(self), **nested}
