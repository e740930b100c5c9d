"""What a job gives back: the rows of its result sinks, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from secateur.engine.metrics import VertexMetrics
from secateur.errors import InterfaceError, LimitExceededError

__all__ = ["JobResult", "ResultCollector"]


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
