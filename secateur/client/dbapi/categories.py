"""Columns of ENUM as Arrow's dictionaries, as DuckDB gives them: a library shows these as its categories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.result_type import column_type_of
from secateur.protocol.statements import ResultColumn

_INDEXES: tuple[tuple[int, pa.DataType], ...] = ((2**8, pa.uint8()), (2**16, pa.uint16()), (2**32, pa.uint32()))


def with_categories(table: pa.Table, columns: Iterable[ResultColumn], *, ordered: bool = False) -> pa.Table:
    """The rows of a result with each column of ENUM as a dictionary of its values, in their order.

    Args:
        table: The rows.
        columns: Its columns. Those that have an ENUM inside stay texts.
        ordered: Whether the dictionaries say that their order counts.
    """
    for position, type_ in _enums(columns):
        values, field = _values(type_), table.schema.field(position)
        kind = pa.dictionary(_index_type(values), values.type, ordered)
        column = table.column(position)
        chunks = [
            pa.DictionaryArray.from_arrays(pc.index_in(chunk, values).cast(kind.index_type), values, ordered=ordered)
            for chunk in column.chunks
        ]
        table = table.set_column(position, field.with_type(kind), pa.chunked_array(chunks, kind))
    return table


def schema_with_categories(schema: pa.Schema, columns: Iterable[ResultColumn]) -> pa.Schema:
    """The schema of :func:`with_categories`."""
    for position, type_ in _enums(columns):
        values = _values(type_)
        kind = pa.dictionary(_index_type(values), values.type)
        schema = schema.set(position, schema.field(position).with_type(kind))
    return schema


def _enums(columns: Iterable[ResultColumn]) -> list[tuple[int, SqlType]]:
    found: Sequence[SqlType | None] = [
        column_type_of(column.type) if column.type.startswith("ENUM(") else None for column in columns
    ]
    return [(at, type_) for at, type_ in enumerate(found) if type_ is not None and type_.kind is TypeKind.ENUM]


def _values(type_: SqlType) -> pa.Array:
    return pa.array(type_.values, pa.string())


def _index_type(values: pa.Array) -> pa.DataType:
    return next(kind for count, kind in _INDEXES if len(values) < count)
