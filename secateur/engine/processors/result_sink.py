"""The sink whose rows become the result of the job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from secateur.dag.codec import portable
from secateur.dag.placement import OnCoordinator, Placement
from secateur.dag.processor import Processor
from secateur.dag.supplier import ProcessorMetaSupplier, ProcessorSupplier, SupplierContext
from secateur.engine.result import ResultCollector

__all__ = ["ResultSink"]


@portable("result-sink")
class ResultSink(ProcessorMetaSupplier):
    """One processor at the coordinator that keeps what it receives, in the order of arrival; the job's result has it under the name of the vertex.

    Feed it through distributed edges, unless what feeds it runs at the coordinator only. A job in which no row can reach it has an empty result.
    """

    works_without_input = True
    init_is_cooperative = True
    close_is_cooperative = True

    def placement(self) -> Placement:
        return OnCoordinator()

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {member: _ResultSinkSupplier() for member in members}

    def to_spec(self) -> Any:
        return None

    @classmethod
    def from_spec(cls, spec: Any) -> ResultSink:
        return cls()


class _ResultSinkSupplier(ProcessorSupplier):
    """Runs at the coordinator only, so it never travels."""

    init_is_cooperative = True
    close_is_cooperative = True

    def __init__(self) -> None:
        self._collector: ResultCollector | None = None
        self._vertex = ""

    def init(self, context: SupplierContext) -> None:
        self._collector = context.service(ResultCollector)
        self._vertex = context.vertex
        self._collector.expect(context.vertex)

    def get(self, count: int) -> Sequence[Processor]:
        assert self._collector is not None
        return [_Keep(self._collector, self._vertex) for _ in range(count)]


class _Keep(Processor):
    def __init__(self, collector: ResultCollector, vertex: str) -> None:
        self._collector = collector
        self._vertex = vertex

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        return self._collector.add(self._vertex, batch)
