"""Arrow batches of the caller as the source of a DAG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from secateur.dag.codec import portable
from secateur.dag.placement import Anywhere, Placement
from secateur.dag.processor import Emitter, Params, Processor
from secateur.dag.supplier import ProcessorMetaSupplier, ProcessorSupplier
from secateur.engine.exchange.batches import batches_of
from secateur.errors import DagError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.job_requirements import JobRequirements
from secateur.protocol.arrow_ipc import decode_table, encode_table

__all__ = ["BatchSource", "batch_source"]


def batch_source(rows: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]) -> BatchSource:
    """A source of rows that are sent with the DAG: one processor in the job, on a member that takes part anyway.

    Args:
        rows: A table, or batches of one schema; at least one batch, so that the schema is known.
    """
    if isinstance(rows, pa.RecordBatch):
        return BatchSource(pa.Table.from_batches([rows]))
    if isinstance(rows, pa.Table):
        return BatchSource(rows)
    batches = list(rows)
    if not batches:
        raise DagError("batch_source() was given no batch; pass an empty table of the right schema instead")
    try:
        return BatchSource(pa.Table.from_batches(batches))
    except pa.ArrowInvalid as error:
        raise DagError(f"batch_source() was given batches of different schemas: {error}") from error


@portable("batch-source")
class BatchSource(ProcessorMetaSupplier):
    """The meta-supplier of :func:`batch_source`."""

    init_is_cooperative = True
    close_is_cooperative = True

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def needs(self, vertex: str, params: Params, table: Callable[[str], TableDef]) -> JobRequirements | None:
        return JobRequirements()

    def placement(self) -> Placement:
        return Anywhere()

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {member: _BatchSourceSupplier(self._table) for member in members}

    def to_spec(self) -> Any:
        return bytes(encode_table(self._table))

    @classmethod
    def from_spec(cls, spec: Any) -> BatchSource:
        return cls(decode_table(spec))


@portable("batch-source-supplier")
class _BatchSourceSupplier(ProcessorSupplier):
    init_is_cooperative = True
    close_is_cooperative = True

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def get(self, count: int) -> Sequence[Processor]:
        return [_Emit(self._table) for _ in range(count)]

    def to_spec(self) -> Any:
        return bytes(encode_table(self._table))

    @classmethod
    def from_spec(cls, spec: Any) -> _BatchSourceSupplier:
        return cls(decode_table(spec))


class _Emit(Processor):
    def __init__(self, table: pa.Table) -> None:
        self._batches = batches_of(table)
        self._emitter: Emitter | None = None

    def complete(self) -> bool:
        if self._emitter is None:
            self._emitter = Emitter(self.outbox, self._batches)
        return self._emitter.emit()
