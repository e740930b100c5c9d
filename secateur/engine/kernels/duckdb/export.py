"""DuckDB's results as Arrow: batch by batch, or whole up to a number of bytes.

DuckDB's memory limit covers its working memory: the Arrow table of a result does not count, and a join without a
condition makes one that exceeds any machine. A result is therefore taken batch by batch, which takes the same time, and
given up when it has grown too large.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import duckdb
import pyarrow as pa

from secateur.errors import DataError, LimitExceededError

if TYPE_CHECKING:
    from secateur.engine.kernels.duckdb.cancellation import Cancellation

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


def exported(relation: duckdb.DuckDBPyRelation, bytes_max: int, cancellation: Cancellation | None) -> pa.Table:
    """Run a relation and take all of its rows, in batches of some 65,000 rows.

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
