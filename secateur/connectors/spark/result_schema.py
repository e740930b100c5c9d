"""The schema of a query in Spark, and its rows as Spark wants them.

=========================================  ===============================================
secateur                                   Spark
=========================================  ===============================================
BOOLEAN, VARCHAR, BLOB, DATE, DECIMAL      the same
TINYINT, SMALLINT, INTEGER, BIGINT         the same
UTINYINT, USMALLINT, UINTEGER              the next larger signed type
UBIGINT, HUGEINT                           DECIMAL(20,0), DECIMAL(38,0)
FLOAT, DOUBLE                              the same
TIMESTAMP, TIMESTAMP WITH TIME ZONE        TIMESTAMP_NTZ, TIMESTAMP
TIME                                       TIME, which ``spark.sql.timeType.enabled`` allows
UUID                                       STRING
lists, STRUCT, MAP                         ARRAY, STRUCT, MAP
INTERVAL                                   none: Spark's intervals have months or days
=========================================  ===============================================
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from secateur.engine.kernels.duckdb.result_types import arrow_type
from secateur.errors import DataError, NotSupportedError
from secateur.protocol.statements import ResultColumn

__all__ = ["BATCH_ROWS", "spark_batches", "spark_schema", "spark_table"]

BATCH_ROWS: Final = 65_536
"""Rows of a batch, at most: Spark holds one at a time."""
_CHUNK_ROWS_MIN: Final = 8_192
"""Chunks of so many rows on average are sent as they are: a batch costs Spark little beside their rows, and less than
copying them to longer ones.
"""
_WIDER: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}
_DASHES: Final = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))


def spark_schema(columns: Sequence[ResultColumn]) -> StructType:
    """The columns of a query as Spark names their types; each may be NULL.

    Raises:
        NotSupportedError: Spark has no type for a column.
    """
    return StructType(
        [
            StructField(column.name, from_arrow_type(_spark_arrow(arrow_type(column.type), column)), nullable=True)
            for column in columns
        ]
    )


def spark_table(table: pa.Table, columns: Sequence[ResultColumn], schema: StructType) -> pa.Table:
    """The rows of a query in exactly the Arrow schema that Spark expects.

    Args:
        table: The rows.
        columns: The columns of the query.
        schema: Spark's; names are matched without regard to case, and columns that it does not have are left out.

    Raises:
        DataError: A value that Spark's type does not hold, or a column that the query does not have.
    """
    wanted = to_arrow_schema(schema, timezone="UTC")
    by_name = {column.name.casefold(): index for index, column in enumerate(columns)}
    arrays = []
    for field in wanted:
        index = by_name.get(field.name.casefold())
        if index is None:
            raise DataError(
                f"the query has no column {field.name!r}; it has {', '.join(column.name for column in columns)}",
                column=field.name,
            )
        arrays.append(_converted(table.column(index), columns[index], field.type))
    return pa.Table.from_arrays(arrays, schema=wanted)


def spark_batches(table: pa.Table, columns: Sequence[ResultColumn], schema: StructType) -> Iterator[pa.RecordBatch]:
    """The batches of :func:`spark_table`."""
    converted = spark_table(table, columns, schema)
    if converted.num_rows:
        is_in_long_chunks = converted.num_rows >= _CHUNK_ROWS_MIN * max(
            column.num_chunks for column in converted.columns
        )
        whole = converted if is_in_long_chunks else converted.combine_chunks()
        yield from whole.to_batches(max_chunksize=BATCH_ROWS)


def _spark_arrow(kind: pa.DataType, column: ResultColumn, *, is_part: bool = False) -> pa.DataType:
    """The Arrow type of the Spark type that holds every value of an Arrow type."""
    part = partial(_spark_arrow, column=column, is_part=True)
    if kind in _WIDER:
        return _WIDER[kind]
    if kind == pa.uuid() and not is_part:
        return pa.string()
    if kind == pa.uuid() or pa.types.is_interval(kind):
        raise NotSupportedError(
            f"column {column.name!r} is of type {column.type}, which Spark does not have: name other columns, or read"
            f" a query that casts it to VARCHAR",
            column=column.name,
        )
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(part(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(part(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(part(kind.key_type), part(kind.item_type))
    return kind


def _converted(values: pa.ChunkedArray, column: ResultColumn, wanted: pa.DataType) -> pa.ChunkedArray:
    if values.type == wanted:
        return values
    try:
        if values.type == pa.uuid():
            values = pa.chunked_array([_uuid_texts(chunk) for chunk in values.chunks], pa.string())
        return values.cast(wanted)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"column {column.name!r} of type {column.type} has a value that Spark's {wanted} does not hold ({error}):"
            " read a query that casts it to VARCHAR",
            column=column.name,
        ) from error


def _uuid_texts(values: pa.Array) -> pa.Array:
    """UUIDs as text of 8-4-4-4-12 hexadecimal digits."""
    storage = values.storage
    data = np.frombuffer(storage.buffers()[1], np.uint8)[16 * storage.offset : 16 * (storage.offset + len(storage))]
    digits = np.frombuffer(binascii.hexlify(data.tobytes()), "S1").reshape(-1, 32)
    parts = [digits[:, start:stop] for start, stop in _DASHES]
    dash = np.full((len(digits), 1), b"-", "S1")
    joined = np.concatenate([piece for part in parts for piece in (part, dash)][:-1], axis=1)
    offsets = np.arange(0, 36 * len(digits) + 1, 36, dtype=np.int32)
    texts = pa.Array.from_buffers(
        pa.string(), len(digits), [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(joined))]
    )
    return pc.if_else(storage.is_valid(), texts, None)
