"""The values of a column as the dialect writes them into text."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import NotSupportedError

__all__ = ["csv_texts"]

_PLAIN_BYTES = frozenset(range(0x20, 0x7F)) - {0x22, 0x27, 0x5C}


def csv_texts(column: pa.ChunkedArray, name: str) -> list[str | None]:
    """The texts of a column; None for NULL.

    Args:
        column: In the Arrow form of its SQL type.
        name: Its name, for messages.

    Raises:
        NotSupportedError: An INTERVAL, whose text is DuckDB's own.
    """
    kind = column.type
    if pa.types.is_string(kind):
        return list(column.to_pylist())
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_date(kind):
        return list(pc.cast(column, pa.string()).to_pylist())
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        zone = "" if pa.types.is_time(kind) or kind.tz is None else "+00"
        return [None if text is None else _trimmed(text.removesuffix("Z")) + zone for text in pc.cast(column, pa.string()).to_pylist()]
    if kind == pa.float32():
        return [None if value is None else str(np.float32(value)) for value in column.to_pylist()]
    if pa.types.is_interval(kind) or pa.types.is_duration(kind):
        raise NotSupportedError(f"column {name} is an INTERVAL: CAST it to VARCHAR in the query")
    return [None if value is None else _text(value) for value in column.to_pylist()]


def _text(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case float():
            return repr(value)
        case bytes():
            return "".join(chr(byte) if byte in _PLAIN_BYTES else f"\\x{byte:02X}" for byte in value)
        case UUID():
            return str(value)
        case list():
            return f"[{', '.join(map(_text, value))}]"
        case _:
            return str(value)


def _trimmed(text: str) -> str:
    """Without zeros at the end of a fraction of a second."""
    return text.rstrip("0").rstrip(".") if "." in text else text
