"""Refuses texts that are not UTF-8 where Arrow data come in: Arrow's own readers and functions let them pass."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from secateur.errors import DataError
from secateur.partitioning.types.cast import scalar_text

_NO_UTF8: Final = "Invalid UTF8"


def check_texts(rows: pa.Table | pa.RecordBatch, first_row: int = 0) -> None:
    """Check all columns, as :func:`check_texts_of_column` does."""
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        check_texts_of_column(column, name, first_row)


def check_texts_of_column(column: pa.ChunkedArray | pa.Array, name: str, first_row: int = 0) -> None:
    """Check a column, at every depth.

    Args:
        column: Any Arrow column.
        name: Its name, for the message.
        first_row: The number of the first row among the caller's rows, for the message.

    Raises:
        DataError: It has a text that is not UTF-8. Cost: some 40 ns a text; nothing for a column without texts.
    """
    if not _has_texts(column.type):
        return
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        try:
            chunk.validate(full=True)
        except pa.ArrowInvalid as error:
            if _NO_UTF8 in str(error):  # the rest of the array is as it should be: Arrow looks at texts last
                _refuse_first(chunk, name, first_row, error)
        first_row += len(chunk)


def _has_texts(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _has_texts(kind.value_type)
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or any(_has_texts(kind.field(index).type) for index in range(kind.num_fields))
    )


def _refuse_first(array: pa.Array, name: str, first_row: int, error: pa.ArrowInvalid) -> None:
    """Name the first row with such a text; there is none if it is outside of the slice that the array is."""
    for row, value in enumerate(array, first_row):
        try:
            value.as_py()
        except UnicodeDecodeError:
            shown = scalar_text(value)
            raise DataError(
                f"column {name}, row {row}: {shown} is no UTF-8: decode it by its own encoding, or use a BLOB",
                column=name,
                row=row,
            ) from error
        except (OverflowError, ValueError):  # a day beyond Python's calendar
            continue
