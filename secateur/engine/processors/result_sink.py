"""The sink whose rows become the result of the job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from secateur.dag.codec import portable
from secateur.dag.placement import OnCoordinator, Placement
from secateur.dag.processor import Processor
from secateur.dag.supplier import ProcessorMetaSupplier, ProcessorSupplier, SupplierContext
from secateur.engine.processors.row_limit import LimitedRows, RowLimit
from secateur.engine.runtime.result import ResultCollector


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
