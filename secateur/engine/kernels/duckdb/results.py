"""Takes DuckDB's results as Arrow, and converts the data of its lossless export to the Arrow form of our types.

DuckDB offers two exports. The lossy one writes UUID as text and silently wraps a HUGEINT of more than 38 digits to a
wrong number. The lossless one keeps both as 16 raw bytes, which become ``pa.uuid()`` and ``decimal128(38, 0)`` (the
same bytes under another type) without cost; its only cost is BOOLEAN, a byte per value that has to be packed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import duckdb
import numpy as np
import pyarrow as pa

from secateur.errors import DataError, InternalError, LimitExceededError
from secateur.partitioning.types.arrow_layout import with_parts
from secateur.partitioning.types.held_values import check_held

if TYPE_CHECKING:
    from secateur.engine.kernels.duckdb.cancellation import Cancellation


_HUGEINT: Final = pa.decimal128(38, 0)
_DIGITS_HIGH: Final = 10**38 >> 64
"""Upper 8 bytes of 10**38, the first integer that has 39 digits."""
RESULT_BYTES_MAX: Final = 2 << 30

_BATCH_ROWS: Final = 65_536
_BATCH_ROWS_MIN: Final = 2_048
_BATCH_BYTES: Final = 1 << 20
_SAMPLED_ROWS: Final = 1_024

_CLASSES: Final[dict[str, type[duckdb.Error]]] = {
    "Binder": duckdb.BinderException,
    "Constraint": duckdb.ConstraintException,
    "Conversion": duckdb.ConversionException,
    "FATAL": duckdb.FatalException,
    "IO": duckdb.IOException,
    "INTERNAL": duckdb.InternalException,
    "INTERRUPT": duckdb.InterruptException,
    "Invalid Input": duckdb.InvalidInputException,
    "Invalid type": duckdb.InvalidTypeException,
    "Mismatch Type": duckdb.TypeMismatchException,
    "Not implemented": duckdb.NotImplementedException,
    "Out of Memory": duckdb.OutOfMemoryException,
    "Out of Range": duckdb.OutOfRangeException,
    "Permission": duckdb.PermissionException,
}
"""The exception classes by DuckDB's name for them in messages. A stream raises OSError for all of them."""


def conform(table: pa.Table, types: list[pa.DataType], names: list[str]) -> pa.Table:
    """Give the columns of an exported table their names and delivered types.

    Args:
        table: The result of DuckDB's lossless export, columns in order.
        types: The delivered Arrow type of each column (``result_types.arrow_type``).
        names: The name of each column; names may repeat.

    Returns:
        The same rows. Columns whose type is already right are passed on without a copy.

    Raises:
        DataError: A HUGEINT has more than 38 digits, or a TIME is the end of a day.
    """
    for column, name in zip(table.columns, names, strict=True):
        check_held(column, name)
    columns = [
        (
            column
            if column.type.equals(wanted)
            else pa.chunked_array([_converted(chunk, wanted) for chunk in column.chunks], wanted)
        )
        for column, wanted in zip(table.columns, types, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=names)


def _converted(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    given = array.type
    if given.equals(wanted):
        return array
    if isinstance(given, pa.Bool8Type):
        return array.storage.cast(pa.bool_())
    if isinstance(given, pa.JsonType):
        return array.storage
    if isinstance(given, pa.OpaqueType) and given.type_name == "hugeint":
        return _decimal_of_hugeint(array.storage)
    if pa.types.is_map(given):
        return with_parts(array, lambda part, at: _converted(part, (wanted.key_type, wanted.item_type)[at]), wanted)
    if pa.types.is_nested(given):
        return with_parts(array, lambda part, at: _converted(part, wanted.field(at).type), wanted)
    if pa.types.is_timestamp(given) or pa.types.is_null(given) or pa.types.is_dictionary(given):  # that of an ENUM
        return array.cast(wanted)
    raise InternalError(
        f"DuckDB exported {given} where {wanted} was expected; this is a bug, please report it with the statement"
    )


def _decimal_of_hugeint(storage: pa.FixedSizeBinaryArray) -> pa.Array:
    """Read 16-byte little-endian integers as ``decimal128(38, 0)``.

    The bytes stay the same, once none of them is found to have more than 38 digits.
    """
    validity, data = storage.buffers()
    count, offset = len(storage), storage.offset
    if data is None:
        return pa.nulls(count, _HUGEINT)
    halves = np.frombuffer(data, dtype=np.dtype([("low", "<u8"), ("high", "<i8")]), count=count, offset=offset * 16)
    high = halves["high"]
    suspects = np.flatnonzero((high >= _DIGITS_HIGH) | (high <= -_DIGITS_HIGH - 1))
    for index in suspects:
        value = (int(high[index]) << 64) + int(halves["low"][index])
        if abs(value) >= 10**38 and storage[int(index)].is_valid:
            raise DataError(
                f"HUGEINT value {value} of the result has more than 38 digits; cast it to DOUBLE or VARCHAR"
            )
    return pa.Array.from_buffers(_HUGEINT, count, [validity, data], offset=offset)


def exported(relation: duckdb.DuckDBPyRelation, bytes_max: int, cancellation: Cancellation | None) -> pa.Table:
    """Run a relation and take all of its rows, in batches of some 65,000 rows.

    DuckDB's memory limit covers its working memory: the Arrow table of a result does not count, and a join without a
    condition makes one that exceeds any machine. A result is therefore taken batch by batch, which takes the same time,
    and given up when it has grown too large.

    Raises:
        LimitExceededError: They are more than ``bytes_max`` bytes.
        JobCancelledError: ``cancellation`` was used.
        duckdb.Error: Running it fails, perhaps after some rows.
    """
    reader = reader_of(relation)
    batches: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches_from(reader, cancellation):
        held_bytes += batch.get_total_buffer_size()
        if held_bytes > bytes_max:
            raise LimitExceededError(
                f"a result of one step of the statement is larger than {bytes_max:,} bytes; restrict the join, filter"
                " or aggregate more, or add a LIMIT"
            )
        batches.append(batch)
    return pa.Table.from_batches(batches, reader.schema)


def reader_of(relation: duckdb.DuckDBPyRelation, batch_rows: int = _BATCH_ROWS) -> pa.RecordBatchReader:
    """Start a relation, whose rows are then made as they are read.

    Raises:
        DataError: A column has more levels of lists and structs than Arrow passes on.
        duckdb.Error: It does not begin.
    """
    try:
        return relation.to_arrow_reader(batch_rows)
    except pa.ArrowInvalid as error:
        raise DataError(f"a column is nested too deeply ({error}): CAST it to VARCHAR") from error


def batch_rows_over(relations: Iterable[pa.Table]) -> int:
    """Return how many rows make about a megabyte, if each has all columns of every relation.

    The result lies between 2,048, DuckDB's own unit, and 65,536.
    """
    row_bytes = 0.0
    for table in relations:
        sample = table.slice(0, _SAMPLED_ROWS)
        row_bytes += sample.nbytes / max(sample.num_rows, 1)
    return max(_BATCH_ROWS_MIN, min(_BATCH_ROWS, int(_BATCH_BYTES / max(row_bytes, 1.0))))


def batches_from(reader: pa.RecordBatchReader, cancellation: Cancellation | None) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a reader of DuckDB.

    Raises:
        JobCancelledError: ``cancellation`` was used.
        duckdb.Error: Running the relation fails, perhaps after some rows.
    """
    while True:
        try:
            batch = next(reader, None)
        except OSError as error:
            text = str(error)
            raise _CLASSES.get(text.partition(" Error: ")[0], duckdb.Error)(text) from error
        if batch is None:
            return
        if cancellation is not None:
            cancellation.check()
        yield batch
