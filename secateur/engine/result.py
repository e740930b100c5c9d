"""What a job gives back: the rows of its result sinks, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from secateur.errors import InterfaceError, LimitExceededError

__all__ = ["JobResult", "ResultCollector", "VertexMetrics"]


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
        busy_s: Seconds spent in calls of the processors, without what they offloaded.
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

    def to_wire(self) -> list[Any]:
        """Plain data for msgpack; :meth:`from_wire` reads it back."""
        return [
            self.vertex,
            self.member,
            self.processors,
            self.batches_in,
            self.rows_in,
            self.batches_out,
            self.rows_out,
            self.bytes_out,
            self.busy_s,
        ]

    @classmethod
    def from_wire(cls, data: list[Any]) -> VertexMetrics:
        return cls(*data)


@dataclass(frozen=True, slots=True)
class JobResult:
    """The outcome of a job that succeeded.

    Attributes:
        job_id: Unique in the cluster.
        tables: The rows of each result sink, by name of its vertex. A sink that received no batch at all has no entry.
        members_touched: Ids of the participants, sorted; the coordinator is in it only if it took part.
        metrics: One entry for each vertex and member.
    """

    job_id: str
    tables: Mapping[str, pa.Table]
    members_touched: tuple[str, ...]
    metrics: tuple[VertexMetrics, ...]

    def table(self) -> pa.Table:
        """The rows of the only result sink.

        Raises:
            InterfaceError: The job has none or several that received rows.
        """
        if len(self.tables) != 1:
            raise InterfaceError(
                f"job {self.job_id} has {len(self.tables)} results ({', '.join(map(repr, self.tables)) or 'none'}); read JobResult.tables by vertex name"
            )
        return next(iter(self.tables.values()))


class ResultCollector:
    """Collects the batches of a job's result sinks at the coordinator, up to a number of bytes. Used on the event loop."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._batches: dict[str, list[pa.RecordBatch]] = {}

    def add(self, sink: str, batch: pa.RecordBatch) -> None:
        """Keep a batch.

        Raises:
            LimitExceededError: The results of the job have become too large.
            pa.ArrowInvalid: Its schema differs from the sink's earlier batches.
        """
        self._bytes += batch.nbytes
        if self._bytes > self._bytes_max:
            raise LimitExceededError(
                f"the result of the job is larger than {self._bytes_max:,} bytes; aggregate or filter more of it at the members, "
                "or raise JobConfig.result_bytes_max"
            )
        self._batches.setdefault(sink, []).append(batch)

    def tables(self) -> dict[str, pa.Table]:
        """What was collected, without a copy."""
        return {sink: pa.Table.from_batches(batches) for sink, batches in self._batches.items()}
