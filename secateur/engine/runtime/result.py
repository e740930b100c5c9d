"""The result of a job: its sinks, their rows, and its cost."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from secateur.client.jobs.job import only_result
from secateur.dag.codec import portable
from secateur.dag.placement import OnCoordinator, Placement
from secateur.dag.processor import Processor
from secateur.dag.supplier import ProcessorMetaSupplier, ProcessorSupplier, SupplierContext
from secateur.engine.exchange.batches import RowBuffer, bytes_of
from secateur.engine.processors.order_and_limit import LimitedRows, RowLimit
from secateur.errors import LimitExceededError
from secateur.protocol.metrics import VertexMetrics


@dataclass(frozen=True, slots=True)
class JobResult:
    """The outcome of a job that succeeded.

    Attributes:
        job_id: Unique in the cluster.
        tables: The rows of each result sink, by name of its vertex; without columns, if the sink received no batch.
        members_touched: Ids of the participants, sorted; the coordinator is in it only if it took part.
        metrics: One entry for each vertex and member.
    """

    job_id: str
    tables: Mapping[str, pa.Table]
    members_touched: tuple[str, ...]
    metrics: tuple[VertexMetrics, ...]

    def table(self) -> pa.Table:
        """The rows of the only result sink; a table without rows and columns if the job has none.

        Raises:
            InterfaceError: The job has several.
        """
        return only_result(self.job_id, self.tables)


class ResultCollector:
    """Collects the batches of a job's result sinks at the coordinator, up to a number of bytes. Used on the event loop.

    Attributes:
        is_enough: To be called when no further row is wanted; the job sets it.
    """

    def __init__(self, bytes_max: int) -> None:
        self.is_enough: Callable[[], None] = lambda: None
        self._bytes_max = bytes_max
        self._bytes = 0
        self._rows: dict[str, RowBuffer] = {}

    def expect(self, sink: str) -> None:
        """A sink has begun: the result has its rows, were it none."""
        self._rows.setdefault(sink, RowBuffer())

    def add(self, sink: str, batch: pa.RecordBatch) -> bool:
        """Keep a batch for a sink that has begun. False when there is no room for it now: it is to be offered again.

        Raises:
            LimitExceededError: The results of the job have become too large.
            DagError: Its columns are not those of the batches before.
        """
        self._bytes += bytes_of(batch)
        if self._bytes > self._bytes_max:
            raise LimitExceededError(
                f"the result is larger than {self._bytes_max:,} bytes, its result_bytes_max: aggregate or filter more"
                " of it at the members, or raise that",
                limit="result_bytes_max",
            )
        self._rows[sink].add(batch)
        return True

    def tables(self) -> dict[str, pa.Table]:
        """The collected rows, without a copy. Called once, at the end."""
        return {sink: pa.table({}) if rows.schema is None else rows.take() for sink, rows in self._rows.items()}


class ResultQueue(ResultCollector):
    """A bounded queue that stands in for the collector of a job with one result sink. Used on the event loop.

    Args:
        bytes_max: Bytes from which on the sink has to wait; a batch more may be held.
    """

    def __init__(self, bytes_max: int) -> None:
        super().__init__(bytes_max)
        self.bytes = 0
        """Bytes held."""
        self.rows = 0
        """Rows held."""
        self.schema: pa.Schema | None = None
        """The schema of the rows; None before the first batch."""
        self._bytes_queued_max = bytes_max
        self._batches: deque[pa.RecordBatch] = deque()
        self._wanted = 0
        self._changed = asyncio.Event()
        self._is_closed = False

    def add(self, sink: str, batch: pa.RecordBatch) -> bool:
        """Keep a batch, unless the queue is full."""
        if self._is_closed:
            return True
        if self.bytes >= self._bytes_queued_max:
            return False
        self.schema = self.schema or batch.schema
        if batch.num_rows:
            self._batches.append(batch)
            self.rows += batch.num_rows
            self.bytes += batch.nbytes
            if self.bytes >= self._wanted:
                self._changed.set()
        return True

    def tables(self) -> dict[str, pa.Table]:
        """Return nothing: the rows are taken from the queue."""
        return {}

    async def wait(self, bytes_wanted: int, is_over: Callable[[], bool]) -> None:
        """Until so many bytes are held, or the queue is full, or it is over."""
        self._wanted = min(bytes_wanted, self._bytes_queued_max)
        while self.bytes < self._wanted and not is_over():
            self._changed.clear()
            await self._changed.wait()

    def wake(self) -> None:
        """Have :meth:`wait` look again."""
        self._changed.set()

    def take(self, bytes_wanted: int) -> list[pa.RecordBatch]:
        """Return the held batches in the order of arrival, up to as many bytes as wanted.

        It returns at least one batch, if there is one.
        """
        taken: list[pa.RecordBatch] = []
        taken_bytes = 0
        while self._batches and taken_bytes < bytes_wanted:
            batch = self._batches.popleft()
            taken.append(batch)
            taken_bytes += batch.nbytes
            self.rows -= batch.num_rows
        self.bytes -= taken_bytes
        return taken

    def close(self) -> None:
        """Drop the held rows and all later ones."""
        self._is_closed = True
        self._batches.clear()
        self.rows = self.bytes = 0
        self._changed.set()


@portable("result-sink")
@dataclass(eq=False)
class ResultSink(ProcessorMetaSupplier):
    """One processor at the coordinator that keeps its rows in the order of arrival.

    The job's result has them under the name of the vertex.

    Feed it through distributed edges, unless what feeds it runs at the coordinator only. A job in which no row can
    reach it has an empty result.

    Args:
        limit: Which of the rows are the result; once it has them, the job ends everywhere, and well. None for all.
    """

    works_without_input = True
    init_is_cooperative = True
    close_is_cooperative = True

    limit: RowLimit | None = None

    def placement(self) -> Placement:
        return OnCoordinator()

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {member: _ResultSinkSupplier(self.limit) for member in members}


class _ResultSinkSupplier(ProcessorSupplier):
    """Runs only at the coordinator, so it is never sent."""

    init_is_cooperative = True
    close_is_cooperative = True

    def __init__(self, limit: RowLimit | None) -> None:
        self._limit = limit
        self._collector: ResultCollector | None = None
        self._vertex = ""

    def init(self, context: SupplierContext) -> None:
        self._collector = context.service(ResultCollector)
        self._vertex = context.vertex
        self._collector.expect(context.vertex)

    def get(self, count: int) -> Sequence[Processor]:
        assert self._collector is not None
        if self._limit is not None:
            return [_KeepSome(self._collector, self._vertex, self._limit) for _ in range(count)]
        return [_Keep(self._collector, self._vertex) for _ in range(count)]


class _Keep(Processor):
    def __init__(self, collector: ResultCollector, vertex: str) -> None:
        self._collector = collector
        self._vertex = vertex

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        return self._collector.add(self._vertex, batch)


class _KeepSome(_Keep):
    def __init__(self, collector: ResultCollector, vertex: str, limit: RowLimit) -> None:
        super().__init__(collector, vertex)
        self._rows = LimitedRows(limit)

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        if not super().process(ordinal, self._rows.of(batch)):
            return False
        self._rows.count(batch)
        if self._rows.is_full:
            self._collector.is_enough()
        return True
