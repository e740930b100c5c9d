"""What DuckDB answers, as Arrow and up to a number of bytes.

DuckDB's memory limit is about what it works with: the Arrow table that it makes of a result is not counted, and a join that was forgotten to be restricted
makes one that no machine holds. So a result is taken batch by batch, for the same time as at once, and given up when it has grown too large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import duckdb
import pyarrow as pa

from secateur.errors import LimitExceededError

if TYPE_CHECKING:
    from secateur.engine.kernels.cancellation import Cancellation

__all__ = ["RESULT_BYTES_MAX", "exported"]

RESULT_BYTES_MAX: Final = 2 << 30

_BATCH_ROWS: Final = 65_536

#: What DuckDB calls its exceptions in messages. A stream raises OSError for all of them.
_CLASSES: Final[dict[str, type[duckdb.Error]]] = {
    "Binder": duckdb.BinderException,
    "Constraint": duckdb.ConstraintException,
    "Conversion": duckdb.ConversionException,
    "IO": duckdb.IOException,
    "INTERRUPT": duckdb.InterruptException,
    "Invalid Input": duckdb.InvalidInputException,
    "Invalid type": duckdb.InvalidTypeException,
    "Mismatch Type": duckdb.TypeMismatchException,
    "Not implemented": duckdb.NotImplementedException,
    "Out of Memory": duckdb.OutOfMemoryException,
    "Out of Range": duckdb.OutOfRangeException,
    "Permission": duckdb.PermissionException,
}


def exported(relation: duckdb.DuckDBPyRelation, bytes_max: int, cancellation: Cancellation | None) -> pa.Table:
    """Run a relation and take all of its rows, in batches of some 65,000 rows.

    Raises:
        LimitExceededError: They are more than ``bytes_max`` bytes.
        JobCancelledError: ``cancellation`` was used.
        duckdb.Error: What running it raises, also in the midst of it.
    """
    reader = relation.to_arrow_reader(_BATCH_ROWS)
    batches: list[pa.RecordBatch] = []
    held_bytes = 0
    try:
        for batch in reader:
            held_bytes += batch.get_total_buffer_size()
            if held_bytes > bytes_max:
                raise LimitExceededError(
                    f"a result of one step of the statement is larger than {bytes_max:,} bytes; restrict the join, filter or aggregate more, or add a LIMIT"
                )
            if cancellation is not None:
                cancellation.check()
            batches.append(batch)
    except OSError as error:
        text = str(error)
        raise _CLASSES.get(text.partition(" Error: ")[0], duckdb.Error)(text) from error
    return pa.Table.from_batches(batches, reader.schema)
