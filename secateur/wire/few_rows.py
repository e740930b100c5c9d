"""Rows of a write as a payload: a few of them as plain values, more as an Arrow stream.

An Arrow stream of one row takes its writer and each of its readers some fifty microseconds, most of it for what is the
same in every stream. A few rows as msgpack take one. Both may follow each other: the first byte tells them apart.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from secateur.errors import ProtocolError
from secateur.protocol.arrow_ipc import decode_table, encode_table
from secateur.protocol.values import pack, unpack
from secateur.wire.short_table import SHORT_ROWS_MAX, ShortTable

_FEW: Final = 0xC1
"""A byte that begins no msgpack value, and no Arrow stream: that begins with 0xFF, or with a length."""
_PREFIX: Final = bytes([_FEW])


def encode_rows(rows: ShortTable | pa.Table) -> bytes | memoryview:
    """Write rows as a payload.

    Args:
        rows: At most :data:`~secateur.wire.short_table.SHORT_ROWS_MAX` rows as plain values, or any number in Arrow.

    Raises:
        SerializationError: A value does not travel.
    """
    return _PREFIX + pack(rows.columns) if isinstance(rows, ShortTable) else encode_table(rows)


def has_few_rows(payload: bytes | memoryview) -> bool:
    """Whether a payload holds plain values, so that :func:`decode_rows` returns a short table."""
    return len(payload) > 0 and payload[0] == _FEW


def decode_rows(payload: bytes | memoryview) -> ShortTable | pa.Table:
    """Read what :func:`encode_rows` wrote.

    Returns:
        A short table, whose values are of no certain types: whoever stores them checks each. Or an Arrow table.

    Raises:
        ProtocolError, LimitExceededError: As :func:`~secateur.protocol.arrow_ipc.decode_table`; or the plain values are
            no columns of one length.
    """
    if not has_few_rows(payload):
        return decode_table(payload)
    columns = unpack(payload[1:])
    if not isinstance(columns, list) or not columns or set(map(type, columns)) != {list}:
        raise ProtocolError(f"a payload of {len(payload)} bytes should be columns of plain values and is not")
    lengths = set(map(len, columns))
    rows = max(lengths)
    if rows > SHORT_ROWS_MAX or len(lengths) > 1:
        raise ProtocolError(
            f"columns of plain values have one length of at most {SHORT_ROWS_MAX}, and a payload has columns of"
            f" {', '.join(str(len(column)) for column in columns[:10])}"
        )
    return ShortTable(columns, rows)
