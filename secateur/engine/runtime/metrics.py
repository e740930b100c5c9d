"""What a job costs: counters of processors and edges, read while it runs and when it has ended.

Counting happens once a batch, at places that handle the batch anyway; nothing is summed up before somebody asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from secateur.engine.execution_plan.member_plan import EdgePlan
from secateur.engine.runtime.tasklet import Tasklet

__all__ = ["InputMetrics", "OutputMetrics", "TaskletMetrics", "VertexMetrics", "measure"]


@dataclass(frozen=True, slots=True)
class TaskletMetrics:
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


@dataclass(frozen=True, slots=True)
class InputMetrics:
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


@dataclass(frozen=True, slots=True)
class OutputMetrics:
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


@dataclass(frozen=True, slots=True)
class VertexMetrics:
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

    def to_wire(self) -> list[Any]:
        """Plain data for msgpack; :meth:`from_wire` reads it back."""
        *plain, tasklets, inputs, outputs = _values(self)
        return [
            *plain,
            [_values(entry) for entry in tasklets],
            [_values(entry) for entry in inputs],
            [_values(entry) for entry in outputs],
        ]

    @classmethod
    def from_wire(cls, data: Sequence[Any]) -> VertexMetrics:
        tasklets, inputs, outputs = data[-3:]
        return replace(
            cls(*data[:-3]),
            tasklets=tuple(TaskletMetrics(*entry) for entry in tasklets),
            inputs=tuple(InputMetrics(*entry) for entry in inputs),
            outputs=tuple(OutputMetrics(*entry) for entry in outputs),
        )


def measure(
    vertex: str, member: str, tasklets: Sequence[Tasklet], edges: Sequence[EdgePlan], sent_bytes: Mapping[int, int]
) -> VertexMetrics:
    """What a vertex has done on a member so far. On the event loop; costs some microseconds a processor.

    Args:
        vertex: Name of the vertex.
        member: Id of the member.
        tasklets: Its processors there.
        edges: All edges of the job.
        sent_bytes: What the member has sent to others, by edge.
    """
    each = tuple(_measure_tasklet(index, tasklet) for index, tasklet in enumerate(tasklets))
    inbound = sorted((edge for edge in edges if edge.destination == vertex), key=lambda edge: edge.destination_ordinal)
    outbound = sorted((edge for edge in edges if edge.source == vertex), key=lambda edge: edge.source_ordinal)
    return VertexMetrics(
        vertex=vertex,
        member=member,
        processors=len(each),
        batches_in=sum(entry.batches_in for entry in each),
        rows_in=sum(entry.rows_in for entry in each),
        batches_out=sum(entry.batches_out for entry in each),
        rows_out=sum(entry.rows_out for entry in each),
        bytes_out=sum(entry.bytes_out for entry in each),
        busy_s=sum(entry.busy_s for entry in each),
        bytes_in=sum(entry.bytes_in for entry in each),
        offload_s=sum(entry.offload_s for entry in each),
        tasklets=each,
        inputs=tuple(_measure_input(edge, tasklets) for edge in inbound),
        outputs=tuple(
            _measure_output(edge, position, tasklets, sent_bytes.get(edge.index, 0))
            for position, edge in enumerate(outbound)
        ),
    )


def _measure_tasklet(index: int, tasklet: Tasklet) -> TaskletMetrics:
    inboxes = [item.inbox for item in tasklet.inputs]
    return TaskletMetrics(
        index=index,
        batches_in=sum(inbox.taken_batches for inbox in inboxes),
        rows_in=sum(inbox.taken_rows for inbox in inboxes),
        bytes_in=sum(inbox.taken_bytes for inbox in inboxes),
        batches_out=sum(writer.batches for writer in tasklet.writers),
        rows_out=sum(writer.rows for writer in tasklet.writers),
        bytes_out=sum(writer.bytes for writer in tasklet.writers),
        busy_s=tasklet.busy_s,
        offload_s=tasklet.offload_s,
    )


def _measure_input(edge: EdgePlan, tasklets: Sequence[Tasklet]) -> InputMetrics:
    inboxes = [item.inbox for tasklet in tasklets for item in tasklet.inputs if edge.is_input(item.ordinal)]
    return InputMetrics(
        edge=edge.name,
        batches=sum(inbox.taken_batches for inbox in inboxes),
        rows=sum(inbox.taken_rows for inbox in inboxes),
        bytes=sum(inbox.taken_bytes for inbox in inboxes),
        queued_batches=sum(len(inbox) for inbox in inboxes),
        queued_bytes=sum(inbox.queued_bytes for inbox in inboxes),
        fill=max((inbox.fill for inbox in inboxes), default=0.0),
    )


def _measure_output(edge: EdgePlan, position: int, tasklets: Sequence[Tasklet], sent_bytes: int) -> OutputMetrics:
    writers = [tasklet.writers[position] for tasklet in tasklets]
    return OutputMetrics(
        edge=edge.name,
        batches=sum(writer.batches for writer in writers),
        rows=sum(writer.rows for writer in writers),
        bytes=sum(writer.bytes for writer in writers),
        sent_bytes=sent_bytes,
    )


def _values(entry: Any) -> list[Any]:
    """The fields in order, as they are; ``dataclasses.astuple`` would copy each of them."""
    return [getattr(entry, name) for name in entry.__slots__]
