"""A few rows as plain values: results in the header of an answer, and rows of a write as its payload.

An Arrow stream costs some ten microseconds to write, as many to read, and more to become Python values, however small
it is. The answer of a key lookup or of one customer's aggregate is a handful of values that its receiver wants as
Python values: as msgpack they cost one microsecond. As Arrow they raised the time for one key's aggregate from 0.30 to
0.58 of an empty Ray call. All other results stay in Arrow, and a short table is converted to an Arrow table on demand.

Payloads of both forms may follow each other: the first byte tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa

from secateur.errors import ProtocolError
from secateur.partitioning.types.column_type import NESTED, TEXTUAL, SqlType, TypeKind
from secateur.partitioning.types.python_column import canonical_column
from secateur.protocol.arrow_ipc import decode_table, encode_table
from secateur.protocol.values import pack, unpack

SHORT_ROWS_MAX: Final = 32
"""More rows are cheaper as columns of Arrow."""
SHORT_CHARACTERS_MAX: Final = 8192
"""Texts longer than this together are cheaper as a payload, and headers are bounded."""
VALUE_BYTES: Final = 16
"""The memory of a value, about, without the bytes of a text."""
_LONG_KINDS: Final = TEXTUAL | {TypeKind.VARCHAR, TypeKind.BLOB}
# INTERVAL and TIMESTAMP_NS have parts that their Python values do not have; nested values may be long.
_PLAIN_KINDS: Final = frozenset(TypeKind) - NESTED - {TypeKind.INTERVAL, TypeKind.TIMESTAMP_NS}


class ShortTable(msgspec.Struct, frozen=True):
    """A table as plain values.

    Attributes:
        columns: The values of each column as Python has them: int for HUGEINT, naive and UTC datetimes, Decimal,
            uuid.UUID, None for NULL.
        num_rows: The length of each.
    """

    columns: Sequence[list[Any]]
    num_rows: int

    @property
    def nbytes(self) -> int:
        """The bytes that the values take, about."""
        size = VALUE_BYTES * self.num_rows * len(self.columns)
        for column in self.columns:
            for value in column:
                if isinstance(value, (str, bytes)):
                    size += len(value)
        return size

    def to_table(self, fields: Sequence[tuple[str, SqlType]]) -> pa.Table:
        """The same as an Arrow table with columns of these names and types."""
        types = [kind for _, kind in fields]
        return self.in_schema(types, pa.schema([pa.field(name, kind.arrow) for name, kind in fields]))

    def in_schema(self, types: Sequence[SqlType], schema: pa.Schema) -> pa.Table:
        """The same as an Arrow table of a schema with these types. Costs some ten microseconds a column."""
        arrays = [canonical_column(values, kind) for values, kind in zip(self.columns, types, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)


def travels_short(types: Sequence[SqlType]) -> bool:
    """Whether columns of these types may be a short table: Python values represent them completely."""
    return all(kind.kind in _PLAIN_KINDS for kind in types)


def shorten(arrays: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[SqlType], num_rows: int) -> ShortTable | None:
    """Return the short form of columns, or None if there is none.

    The columns are of types that :func:`travels_short`, with at most :data:`SHORT_ROWS_MAX` rows. There is none if
    texts are long, or Python has no object for a value, such as a date after the year 9999.
    """
    columns = []
    try:
        for array, kind in zip(arrays, types, strict=True):
            if kind.kind in _LONG_KINDS and array.nbytes > SHORT_CHARACTERS_MAX:
                return None
            columns.append(_values(array, kind))
    except (ValueError, OverflowError):
        return None
    return ShortTable(columns, num_rows)


def is_short(columns: Sequence[list[Any]], types: Sequence[SqlType]) -> bool:
    """Whether all texts in columns of plain values are short."""
    return short_check(types)(columns)


def short_check(types: Sequence[SqlType]) -> Callable[[Sequence[list[Any]]], bool]:
    """:func:`is_short` for columns of certain types, worked out once."""
    texts = [position for position, kind in enumerate(types) if kind.kind in _LONG_KINDS]

    def check(columns: Sequence[list[Any]]) -> bool:
        characters = 0
        for position in texts:
            for value in columns[position]:
                if value is not None:
                    characters += len(value)
        return characters <= SHORT_CHARACTERS_MAX

    return check


def _values(array: pa.Array | pa.ChunkedArray, kind: SqlType) -> list[Any]:
    values: list[Any] = (
        array.chunk(0) if isinstance(array, pa.ChunkedArray) and array.num_chunks == 1 else array
    ).to_pylist()
    return values if kind.kind is not TypeKind.HUGEINT else [None if value is None else int(value) for value in values]


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
    if not payload or payload[0] != _FEW:
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
