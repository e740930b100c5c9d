"""The cost of a job: counters of processors and edges, read while it runs and when it has ended.

Counting happens once a batch, at places that handle the batch anyway; sums are computed on demand. The counters of
queues are those by which the queues are bounded. All of it costs about 2 % on batches of 100 rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from secateur.engine.execution_plan.member_plan import EdgePlan
from secateur.engine.runtime.tasklet import Tasklet
from secateur.protocol.metrics import InputMetrics, OutputMetrics, TaskletMetrics, VertexMetrics


def measure(
    vertex: str, member: str, tasklets: Sequence[Tasklet], edges: Sequence[EdgePlan], sent_bytes: Mapping[int, int]
) -> VertexMetrics:
    """The work of a vertex on a member so far. On the event loop; costs some microseconds a processor.

    Args:
        vertex: Name of the vertex.
        member: Id of the member.
        tasklets: Its processors there.
        edges: All edges of the job.
        sent_bytes: The bytes that the member has sent to others, by edge.
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
