"""The work of a run: of each vertex of a job on one member, and of a statement by stage (EXPLAIN ANALYZE)."""

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
        processor_s: Seconds of processor time of these, at a member that has tenants; else 0.
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
    processor_s: float = 0.0


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
        processor_s: As there.
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
    processor_s: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        nested = {name: [asdict(entry) for entry in getattr(self, name)] for name in ("tasklets", "inputs", "outputs")}
        return {**asdict(self), **nested}


class StageWork(msgspec.Struct, frozen=True, array_like=True):
    """The work of one stage of a query on one member.

    Attributes:
        stage: Its name, as EXPLAIN has it; a query that one member answers whole has the one stage ``local``, what is
            changed in several partitions ends with the stage ``publish``, what is changed in one with ``copy``, for the
            members that keep a backup of it.
        member: Id of the member.
        partitions: Partitions read there, a replicated table counting as one; 0 for a stage that reads none.
        rows_in: Rows that came from other stages; for ``local``, the rows read from the partitions.
        rows_out: Rows made.
        bytes_out: Their bytes.
        sent_bytes: Bytes sent to other members.
        kernel_ms: Milliseconds spent in kernel calls in threads.
        busy_ms: Milliseconds spent on the event loop, also in kernel calls over a few rows; for ``publish`` and rows
            that a client sends, until the member had answered.
    """

    stage: str
    member: str
    partitions: int = 0
    rows_in: int = 0
    rows_out: int = 0
    bytes_out: int = 0
    sent_bytes: int = 0
    kernel_ms: float = 0.0
    busy_ms: float = 0.0


class RunProfile(msgspec.Struct, frozen=True):
    """The work of a run of a query.

    Attributes:
        rows: Rows of its result.
        bytes: Their bytes.
        work: In the order of the stages; of a query in steps, those of each step before those of the rest, with the
            number of the step before their names.
    """

    rows: int
    bytes: int
    work: tuple[StageWork, ...]

    @property
    def kernel_ms(self) -> float:
        """Milliseconds spent in kernel calls in threads, of all stages and members together."""
        return sum(work.kernel_ms for work in self.work)

    @property
    def exchange_bytes(self) -> int:
        """Bytes that members sent to one another."""
        return sum(work.sent_bytes for work in self.work)

    @property
    def stages(self) -> dict[str, list[StageWork]]:
        """The work of each stage, by its name."""
        stages: dict[str, list[StageWork]] = {}
        for work in self.work:
            stages.setdefault(work.stage, []).append(work)
        return stages

    def to_json(self) -> dict[str, Any]:
        """The JSON form in ``EXPLAIN (ANALYZE, FORMAT JSON)``."""
        stages = [
            {
                "name": name,
                "rows": sum(work.rows_out for work in works),
                "bytes": sum(work.bytes_out for work in works),
                "members": [{key: value for key, value in asdict(work).items() if key != "stage"} for work in works],
            }
            for name, works in self.stages.items()
        ]
        return {
            "result_bytes": self.bytes,
            "kernel_ms": self.kernel_ms,
            "exchange_bytes": self.exchange_bytes,
            "stages": stages,
        }
