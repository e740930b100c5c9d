"""Arrow batches of the caller as the source of a DAG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from secateur.dag.codec import portable
from secateur.dag.placement import Anywhere, Placement
from secateur.dag.processor import Emitter, Params, Processor
from secateur.dag.supplier import ProcessorMetaSupplier, ProcessorSupplier
from secateur.engine.exchange.batches import batches_of
from secateur.errors import DagError
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.topology.job_requirements import JobRequirements
from secateur.partitioning.types.held_values import check_texts


def batch_source(rows: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]) -> BatchSource:
    """A source of rows that are sent with the DAG: one processor in the job, on a member that takes part anyway.

    Args:
        rows: A table, or batches of one schema; at least one batch, so that the schema is known.

    Raises:
        DagError: There is no batch, or their schemas differ.
        DataError: A text is not UTF-8.
    """
    if isinstance(rows, pa.Table):
        table = rows
    else:
        batches = [rows] if isinstance(rows, pa.RecordBatch) else list(rows)
        if not batches:
            raise DagError("batch_source() was given no batch; pass an empty table of the right schema instead")
        try:
            table = pa.Table.from_batches(batches)
        except pa.ArrowInvalid as error:
            raise DagError(f"batch_source() was given batches of different schemas: {error}") from error
    check_texts(table)
    return BatchSource(table)


@portable("batch-source")
@dataclass(eq=False)
class BatchSource(ProcessorMetaSupplier):
    """The meta-supplier of :func:`batch_source`."""

    init_is_cooperative = True
    close_is_cooperative = True

    table: pa.Table

    def needs(self, vertex: str, params: Params, table: Callable[[str], TableDef]) -> JobRequirements | None:
        return JobRequirements()

    def placement(self) -> Placement:
        return Anywhere()

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {member: _BatchSourceSupplier(self.table) for member in members}


@portable("batch-source-supplier")
@dataclass(eq=False)
class _BatchSourceSupplier(ProcessorSupplier):
    init_is_cooperative = True
    close_is_cooperative = True

    table: pa.Table

    def get(self, count: int) -> Sequence[Processor]:
        return [_Emit(self.table) for _ in range(count)]


class _Emit(Processor):
    def __init__(self, table: pa.Table) -> None:
        self._batches = batches_of(table)
        self._emitter: Emitter | None = None

    def complete(self) -> bool:
        if self._emitter is None:
            self._emitter = Emitter(self.outbox, self._batches)
        return self._emitter.emit()
