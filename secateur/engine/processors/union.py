"""Union: the rows of several inputs, in the order of arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from secateur.dag.codec import portable
from secateur.dag.processor import Processor
from secateur.dag.supplier import ProcessorSupplier
from secateur.engine.processors.kernel import column_of
from secateur.errors import DagError
from secateur.partitioning.types.arrow_form import cast_to_arrow


def union(schema: pa.Schema | None = None) -> UnionSupplier:
    """A vertex that passes on the rows of all its inputs, including duplicates (UNION ALL by name).

    Put :func:`distinct` after it for UNION.

    Args:
        schema: The columns to pass on, by name and in this order; values are converted exactly. None: those of the
            first batch that arrives, with exactly their types.

    Raises:
        DagError: Running, when a batch lacks a column, has one too many, or has another type and there is no
            ``schema``.
        DataError: Running, when a value is none of the type wanted.
    """
    return UnionSupplier(schema)


@portable("union")
@dataclass(eq=False)
class UnionSupplier(ProcessorSupplier):
    """The supplier of :func:`union`."""

    init_is_cooperative = True
    close_is_cooperative = True

    schema: pa.Schema | None

    def get(self, count: int) -> Sequence[Processor]:
        return [_Union(self.schema) for _ in range(count)]


class _Union(Processor):
    def __init__(self, schema: pa.Schema | None) -> None:
        self._schema = schema
        self._casts = schema is not None

    def process(self, ordinal: int, batch: pa.RecordBatch) -> bool:
        if self._schema is None:
            self._schema = batch.schema
        return self.outbox.offer(
            batch if batch.schema.equals(self._schema) else self._conformed(ordinal, batch, self._schema)
        )

    def _conformed(self, ordinal: int, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        if sorted(batch.schema.names) != sorted(schema.names):
            raise DagError(
                f"input {ordinal} has the columns {', '.join(batch.schema.names)}, wanted are"
                f" {', '.join(schema.names)}; select and rename upstream"
            )
        columns = [self._cast(ordinal, batch.column(column_of(batch.schema, field.name)), field) for field in schema]
        return pa.RecordBatch.from_arrays(columns, names=schema.names)

    def _cast(self, ordinal: int, column: pa.Array, field: pa.Field) -> pa.Array:
        if column.type.equals(field.type):
            return column
        if not self._casts:
            raise DagError(
                f"column {field.name!r} of input {ordinal} is {column.type}, but {field.type} came first; pass the"
                " schema wanted to union()"
            )
        return cast_to_arrow(column, field.type, name=field.name)
