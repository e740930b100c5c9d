"""The rows of a query as Spark wants them: in the Arrow types of :mod:`~secateur.connectors.spark.read_plan`.

Intervals become Spark's, which have a length: INTERVAL DAY TO SECOND.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from secateur.errors import DataError

BATCH_ROWS: Final = 65_536
"""Rows of a batch, at most: Spark holds one at a time."""
_CHUNK_ROWS_MIN: Final = 8_192
"""Chunks of so many rows on average are sent as they are: a batch costs Spark little beside their rows, and less than
copying them to longer ones.
"""
_DASHES: Final = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
_DAY_MICROS: Final = 86_400_000_000


def spark_table(table: pa.Table, columns: Sequence[tuple[str, str]], schema: StructType) -> pa.Table:
    """The rows of a query in exactly the Arrow schema that Spark expects.

    Args:
        table: The rows.
        columns: The columns of the query: their names and the SQL texts of their types.
        schema: Spark's; names are matched without regard to case, and columns that it does not have are left out.

    Raises:
        DataError: A value that Spark's type does not hold, a NULL where Spark expects none, or a column that the query
            does not have.
    """
    wanted = to_arrow_schema(schema, timezone="UTC")
    by_name = {name.casefold(): index for index, (name, _) in enumerate(columns)}
    arrays = []
    for field in wanted:
        index = by_name.get(field.name.casefold())
        if index is None:
            raise DataError(
                f"the query has no column {field.name!r}; it has {', '.join(name for name, _ in columns)}",
                column=field.name,
            )
        values = table.column(index)
        if not field.nullable and values.null_count:
            raise DataError(
                f"column {field.name!r} has a NULL, and was NOT NULL when the DataFrame was made: the table has been"
                " made anew since; read it again",
                column=field.name,
            )
        arrays.append(_converted(values, columns[index], field.type))
    return pa.Table.from_arrays(arrays, schema=wanted)


def spark_batches(table: pa.Table, columns: Sequence[tuple[str, str]], schema: StructType) -> Iterator[pa.RecordBatch]:
    """The batches of :func:`spark_table`."""
    converted = spark_table(table, columns, schema)
    if converted.num_rows:
        is_in_long_chunks = converted.num_rows >= _CHUNK_ROWS_MIN * max(
            column.num_chunks for column in converted.columns
        )
        whole = converted if is_in_long_chunks else converted.combine_chunks()
        yield from whole.to_batches(max_chunksize=BATCH_ROWS)


def _converted(values: pa.ChunkedArray, column: tuple[str, str], wanted: pa.DataType) -> pa.ChunkedArray:
    if values.type == wanted:
        return values
    if not len(values):
        return pa.chunked_array([], wanted)
    try:
        if "interval" in str(values.type):  # perhaps inside of a list, a struct or a map
            values = pa.chunked_array([with_durations(chunk) for chunk in values.chunks])
        elif values.type == pa.uuid():
            values = pa.chunked_array([_uuid_texts(chunk) for chunk in values.chunks], pa.string())
        return values.cast(wanted)
    except pa.ArrowInvalid as error:
        name, sql_type = column
        raise DataError(
            f"column {name!r} of type {sql_type} has a value that Spark's {wanted} does not hold ({error}):"
            " read a query that casts it to VARCHAR",
            column=name,
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


def with_durations(values: pa.Array) -> pa.Array:
    """Values with :func:`durations` in place of the intervals inside of them.

    Raises:
        ArrowInvalid: As there.
    """
    from secateur.partitioning.types.arrow_layout import map_leaves  # which tasks without intervals need not load

    return map_leaves(values, durations)


def durations(values: pa.Array) -> pa.Array:
    """Intervals as microseconds, as Spark has them: a day has 24 hours, as where SQL compares. Others as they are.

    Raises:
        ArrowInvalid: One has months, or its microseconds take more than 64 bits.
    """
    if not pa.types.is_interval(values.type):
        return values
    from secateur.partitioning.types.arrow_layout import interval_cells

    is_null = values.is_null().to_numpy(zero_copy_only=False)
    cells = interval_cells(values)
    if (cells["months"][~is_null] != 0).any():
        raise pa.ArrowInvalid("it has months, which have no length in days")
    days, micros = cells["days"].astype(np.int64), cells["nanoseconds"] // 1000
    total = days * _DAY_MICROS + micros
    # What does not fit is off by a multiple of 2^64, and the nearest float by less than 2^20.
    if (np.abs(total - (days.astype(float) * _DAY_MICROS + micros))[~is_null] > 2.0**62).any():
        raise pa.ArrowInvalid("it is longer than 292,000 years")
    return pa.array(total, mask=is_null).view(pa.duration("us"))
