"""The source of a DAG that reads partitions of an external table, spread over the members."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from secateur.connectors.external import connector as interface
from secateur.connectors.external.connector import naming_connector
from secateur.connectors.functions import Pull
from secateur.dag.codec import portable
from secateur.dag.placement import Placement, Spread
from secateur.dag.processor import Processor, ProcessorContext
from secateur.dag.supplier import ProcessorMetaSupplier, ProcessorSupplier, SupplierContext
from secateur.engine.exchange.batches import batches_of
from secateur.engine.kernels.fragment import Fragment
from secateur.engine.runtime.services import MemberServices
from secateur.engine.sql.fragment_call import FragmentCall
from secateur.errors import DataError
from secateur.partitioning.pruning.row_predicate import rows_among
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.cast import cast_column, scalar_text
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.held_values import check_held, check_texts_of_column

_LOOKED_UP: Final = frozenset({TypeKind.HUGEINT, TypeKind.UUID, TypeKind.BLOB, TypeKind.TIMESTAMPTZ, TypeKind.BOOLEAN})
"""Types that Arrow may compare in another way than the dialect."""


class ExternalPartitions(msgspec.Struct, frozen=True):
    """Partitions of an external table, by its encoded connector, and what a statement needs of each.

    ``partial`` is computed over the rows where they are read; its rows are then the source's. None: the rows themselves
    are.
    """

    table: str
    connector: bytes
    columns: tuple[Column, ...]
    partitions: tuple[interface.ConnectorPartition, ...]
    request: interface.ExternalScanRequest
    partial: Fragment | None = None


@portable("external-source")
@dataclass(eq=False)
class ExternalSource(ProcessorMetaSupplier):
    """Reads partitions of an external table on as many members as it has partitions, the coordinator first."""

    init_is_cooperative = True
    close_is_cooperative = True

    wanted: ExternalPartitions

    def placement(self) -> Placement:
        return Spread(len(self.wanted.partitions))

    def get(self, members: Sequence[str]) -> Mapping[str, ProcessorSupplier]:
        return {
            member: _ExternalReader(replace(self.wanted, partitions=self.wanted.partitions[index :: len(members)]))
            for index, member in enumerate(members)
        }


@portable("external-reader")
@dataclass(eq=False)
class _ExternalReader(ProcessorSupplier):
    """Reads partitions on one member; each of its processors takes the next one when it has read one."""

    close_is_cooperative = True

    wanted: ExternalPartitions

    def init(self, context: SupplierContext) -> None:
        services = context.service(MemberServices)
        self._context = interface.ConnectorContext(context.member, services.external_directories)
        self._connector = interface.decode_connector(
            self.wanted.connector, allow_code=services.allow_code, table=self.wanted.table
        )
        self._waiting = deque(self.wanted.partitions)
        partial = self.wanted.partial
        self._partial = None if partial is None else FragmentCall.of(partial, context)

    def get(self, count: int) -> Sequence[Processor]:
        return [Pull(self._batches) for _ in range(count)]

    def _batches(self, _: ProcessorContext) -> Iterator[pa.RecordBatch]:
        rows = self._rows()
        for table in rows if self._partial is None else _partial_rows(self._partial, rows):
            yield from batches_of(table)

    def _rows(self) -> Iterator[pa.Table]:
        while True:
            try:
                partition = self._waiting.popleft()
            except IndexError:
                return
            wanted = self.wanted
            yield from needed_rows(
                self._connector, wanted.table, wanted.columns, partition, wanted.request, self._context
            )


def needed_rows(
    connector: interface.Connector,
    table: str,
    columns: Sequence[Column],
    partition: interface.ConnectorPartition,
    request: interface.ExternalScanRequest,
    context: interface.ConnectorContext,
    *,
    checks_values: bool = True,
) -> Iterator[pa.Table]:
    """The rows of a partition, in the columns of the request and their types in SQL, without rows that are not needed.

    ``checks_values`` refuses rows outside of the values that the partition declares.

    Raises:
        Error: See :func:`~secateur.connectors.external.connector.naming_connector`.
        DataError: A batch lacks a column, or has a value that the column's type cannot hold, or one that the partition
            does not declare: other statements leave the partition out and lose that row.
    """
    types = {column.name: column.type for column in columns}
    wanted = [column for column in columns if column.name in request.columns]
    keep = request.predicate.to_arrow({name: types[name] for name in request.columns})
    declared = [column for column in wanted if checks_values and column.name in partition.values]
    left = request.limit
    doing = f"read(partition {partition.key!r})"
    with naming_connector(connector, table, doing, context.member):
        batches = iter(connector.read(partition, request, context))
        try:
            for batch in batches:
                rows = _in_types(batch, wanted, partition)
                for column in declared:
                    _check_declared(rows.select([column.name]), column.type, partition)
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


def _check_declared(rows: pa.Table, column_type: SqlType, partition: interface.ConnectorPartition) -> None:
    """Refuse rows of one column outside of the values that their partition declares.

    Arrow compares most types, a whole column at a time; of some others each distinct value is looked up. No statement
    leaves out a partition for what is declared of the rest, but for NULL.
    """
    (name,) = rows.schema.names
    said, column = partition.values[name], rows.column(0)
    among = rows_among(said, name, column_type)
    if among is not None:
        outside = list(map(scalar_text, rows.filter(~pc.coalesce(among, pc.scalar(False))).column(0).slice(0, 1)))
    elif column_type.kind in _LOOKED_UP and not said.values.is_everything:
        found = (coerce(value, column_type, column=name) for value in set(column.to_pylist()))
        outside = [repr(value) for value in found if not said.holds(value)]
    else:
        outside = ["None"] if column.null_count and not said.has_null else []
    if not outside:
        return
    raise DataError(
        f"partition {partition.key!r} has a row with the value {outside[0]} in column {name}, and partitions() does"
        " not declare it: statements that leave the partition out would lose the row"
    )


def _in_types(batch: Any, columns: Sequence[Column], partition: interface.ConnectorPartition) -> pa.Table:
    if not isinstance(batch, pa.RecordBatch | pa.Table):
        raise DataError(f"read() has to return batches of Arrow, and partition {partition.key!r} gave {type(batch)}")
    rows = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
    found = []
    for column in columns:
        positions = rows.schema.get_all_field_indices(column.name)
        if len(positions) != 1:
            how = "lacks" if not positions else "has twice"
            raise DataError(f"a batch of partition {partition.key!r} {how} the column {column.name!r}")
        try:
            check_texts_of_column(rows.column(positions[0]), column.name)
            converted = cast_column(rows.column(positions[0]), column.type, name=column.name)
            check_held(converted, column.name)
        except DataError as error:
            raise type(error)(f"partition {partition.key!r}: {error.message}", **error.details) from error
        found.append(converted)
    return pa.Table.from_arrays(found, schema=pa.schema([(column.name, column.type.arrow) for column in columns]))


def _partial_rows(call: FragmentCall, rows: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the partial rows of some rows, of which there may be none, in the thread of a reader.

    The fragment of the call is the partial part, over one relation. Any division of the rows into pieces gives the same
    final rows, so a reader holds the rows of one piece at a time. The larger a piece, the fewer partial rows there are.

    Source: aggregation that is pushed below the exchange, as in Trino and Spark; the division into partial and final is
        that of :mod:`secateur.planner.distribute.aggregation`.
    """
    (relation,) = call.fragment.relations
    held: list[pa.Table] = []
    held_bytes = 0
    for table in rows:
        if not table.num_rows:
            continue
        held.append(table)
        held_bytes += table.nbytes
        if held_bytes >= call.limits.piece_bytes_max:
            yield call.run({relation: pa.concat_tables(held)})
            held, held_bytes = [], 0
    if held:
        yield call.run({relation: pa.concat_tables(held)})
