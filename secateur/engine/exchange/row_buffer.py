"""Rows that a processor keeps: batches of one schema, with counts."""

from __future__ import annotations

import pyarrow as pa

from secateur.engine.exchange.batches import bytes_of
from secateur.errors import DagError


class RowBuffer:
    """Collects batches that agree in the names and types of their columns.

    They may differ in properties that change no value: nullability, metadata, the dictionary of a dictionary column;
    and a column may be of type ``null`` in some.

    Attributes:
        rows: Rows held.
        bytes: Bytes held, as :func:`~secateur.engine.exchange.batches.bytes_of` counts them.
        schema: The schema of the rows held now or taken before; None before the first batch.
    """

    __slots__ = ("_batches", "bytes", "rows", "schema")

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self.rows = 0
        self.bytes = 0
        self.schema: pa.Schema | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep a batch; of one without rows only the schema.

        Raises:
            DagError: Its columns are not those of the batches before.
        """
        if self.schema is None:
            self.schema = batch.schema
        elif not self.schema.equals(batch.schema):
            self.schema = _unified(self.schema, batch.schema)
        if batch.num_rows:
            self._batches.append(batch)
            self.rows += batch.num_rows
            self.bytes += bytes_of(batch)

    def take(self) -> pa.Table | None:
        """All rows held, in the order of arrival, and empty the buffer; None when no batch has come yet."""
        if self.schema is None:
            return None
        schema = self.schema
        held, self._batches = self._batches, []
        self.rows = self.bytes = 0
        return pa.Table.from_batches(
            [batch if batch.schema.equals(schema) else batch.cast(schema) for batch in held], schema
        )


def together(first: pa.Table | None, second: pa.Table) -> pa.Table:
    """The rows of one table followed by those of another with the same columns, as :class:`RowBuffer` means it.

    Copies nothing.
    """
    if first is None:
        return second
    if first.schema.equals(second.schema):
        return pa.concat_tables([first, second])
    schema = _unified(first.schema, second.schema)
    return pa.concat_tables([first.cast(schema), second.cast(schema)])


def _unified(first: pa.Schema, second: pa.Schema) -> pa.Schema:
    if first.names != second.names:
        raise DagError(
            f"batches of different columns arrived: {', '.join(first.names)}, then {', '.join(second.names)}; select"
            " the same ones upstream"
        )
    fields = []
    for one, other in zip(first, second, strict=True):
        if one.type.equals(other.type) or pa.types.is_null(other.type):
            fields.append(pa.field(one.name, one.type))
        elif pa.types.is_null(one.type):
            fields.append(pa.field(one.name, other.type))
        else:
            raise DagError(
                f"column {one.name!r} arrived as {one.type} and as {other.type}; cast it to one type upstream, for"
                " example in map_batches()"
            )
    return pa.schema(fields)
