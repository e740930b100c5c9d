"""The source of a DAG that reads partitions of an external table, spread over the members."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from secateur.connectors.external.connector import (
    Connector,
    ConnectorContext,
    ConnectorPartition,
    ExternalScanRequest,
    decode_connector,
)
from secateur.connectors.external.connector_call import naming_connector
from secateur.connectors.pull import Pull
from secateur.dag.codec import portable
from secateur.dag.placement import Placement, Spread
from secateur.dag.processor import Processor, ProcessorContext
from secateur.dag.supplier import ProcessorMetaSupplier, ProcessorSupplier, SupplierContext
from secateur.engine.exchange.batches import batches_of
from secateur.engine.runtime.services import MemberServices
from secateur.errors import DataError
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.cast import cast_column
from secateur.partitioning.types.held_values import check_held

__all__ = ["ExternalSource", "needed_rows"]


@portable("external-source")
@dataclass(eq=False)
class ExternalSource(ProcessorMetaSupplier):
    """Reads partitions of an external table on as many members as it has partitions, the coordinator first.

    Attributes:
        table: The name of the table.
        connector: Its encoded connector.
        columns: Its columns.
        partitions: The partitions to read.
        request: What is needed of each.
    """

    init_is_cooperative = True
    close_is_cooperative = True

    table: str
    connector: bytes
    columns: tuple[Column, ...]
    partitions: tuple[ConnectorPartition, ...]
    request: ExternalScanRequest

    def placement(self) -> Placement:
        return Spread(len(self.partitions))

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {
            member: _ExternalReader(
                self.table, self.connector, self.columns, self.partitions[index :: len(members)], self.request
            )
            for index, member in enumerate(members)
        }


@portable("external-reader")
@dataclass(eq=False)
class _ExternalReader(ProcessorSupplier):
    """Reads partitions on one member; each of its processors takes the next one when it has read one."""

    close_is_cooperative = True

    table: str
    connector: bytes
    columns: tuple[Column, ...]
    partitions: tuple[ConnectorPartition, ...]
    request: ExternalScanRequest

    def init(self, context: SupplierContext) -> None:
        services = context.service(MemberServices)
        self._context = ConnectorContext(context.member, services.external_directories)
        self._connector = decode_connector(self.connector, allow_code=services.allow_code, table=self.table)
        self._waiting = deque(self.partitions)

    def get(self, count: int) -> Sequence[Processor]:
        return [Pull(self._batches) for _ in range(count)]

    def _batches(self, _: ProcessorContext) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                partition = self._waiting.popleft()
            except IndexError:
                return
            rows = needed_rows(self._connector, self.table, self.columns, partition, self.request, self._context)
            for table in rows:
                yield from batches_of(table)


def needed_rows(
    connector: Connector,
    table: str,
    columns: Sequence[Column],
    partition: ConnectorPartition,
    request: ExternalScanRequest,
    context: ConnectorContext,
) -> Iterator[pa.Table]:
    """The rows of a partition, in the columns of the request and their types in SQL, without rows that are not needed.

    Raises:
        Error: See :func:`~secateur.connectors.external.connector_call.naming_connector`.
        DataError: A batch lacks a column, or has a value that the column's type cannot hold.
    """
    types = {column.name: column.type for column in columns}
    wanted = [column for column in columns if column.name in request.columns]
    keep = request.predicate.to_arrow({name: types[name] for name in request.columns})
    left = request.limit
    doing = f"read(partition {partition.key!r})"
    with naming_connector(connector, table, doing, context.member):
        batches = iter(connector.read(partition, request, context))
        try:
            for batch in batches:
                rows = _in_types(batch, wanted, partition)
                rows = rows if keep is None else rows.filter(keep)
                if left is not None:
                    rows = rows.slice(0, left)
                    left -= rows.num_rows
                if rows.num_rows:
                    yield rows
                if left == 0:
                    return
        finally:
            if isinstance(batches, Generator):
                batches.close()


def _in_types(batch: Any, columns: Sequence[Column], partition: ConnectorPartition) -> pa.Table:
    if not isinstance(batch, pa.RecordBatch | pa.Table):
        raise DataError(f"read() has to return batches of Arrow, and partition {partition.key!r} gave {type(batch)}")
    rows = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
    found = []
    for column in columns:
        positions = rows.schema.get_all_field_indices(column.name)
        if len(positions) != 1:
            how = "lacks" if not positions else "has twice"
            raise DataError(f"a batch of partition {partition.key!r} {how} the column {column.name!r}")
        converted = cast_column(rows.column(positions[0]), column.type, name=column.name)
        check_held(converted, column.name)
        found.append(converted)
    return pa.Table.from_arrays(found, schema=pa.schema([(column.name, column.type.arrow) for column in columns]))
