"""Results of a few rows as plain values, which are sent in the header of an answer.

An Arrow stream costs some ten microseconds to write, as many to read, and more to become Python values, however small
it is. The answer of a key lookup or of one customer's aggregate is a handful of values that its receiver wants as
Python values: as msgpack they cost one microsecond. All other results stay in Arrow, and a short table is converted to
an Arrow table on demand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa

from secateur.partitioning.types.column_type import NESTED, SqlType, TypeKind

SHORT_ROWS_MAX: Final = 32
"""More rows are cheaper as columns of Arrow."""
_CHARACTERS_MAX: Final = 8192
"""Texts longer than this together are cheaper as a payload, and headers are bounded."""
_VALUE_BYTES: Final = 16
"""The memory of a value, about, without the bytes of a text."""
_LONG_KINDS: Final = frozenset({TypeKind.VARCHAR, TypeKind.BLOB})
# INTERVAL has months and nanoseconds that its Python value does not have; nested values may be long.
_PLAIN_KINDS: Final = frozenset(TypeKind) - NESTED - {TypeKind.INTERVAL}


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
        size = _VALUE_BYTES * self.num_rows * len(self.columns)
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
        arrays = [_array(values, kind) for values, kind in zip(self.columns, types, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)


def travels_short(types: Sequence[SqlType]) -> bool:
    """Whether columns of these types may be a short table: Python values represent them completely."""
    return all(kind.kind in _PLAIN_KINDS for kind in types)


def shorten(arrays: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[SqlType], num_rows: int) -> ShortTable | None:
    """Return the short form of columns, or None if there is none.

    There is none if texts are long, or Python has no object for a value, such as a date after the year 9999.

    Args:
        arrays: The columns, of types that :func:`travels_short`.
        types: Their types.
        num_rows: Their length, at most :data:`SHORT_ROWS_MAX`.
    """
    columns = []
    try:
        for array, kind in zip(arrays, types, strict=True):
            if kind.kind in _LONG_KINDS and array.nbytes > _CHARACTERS_MAX:
                return None
            columns.append(_values(array, kind))
    except (ValueError, OverflowError):
        return None
    return ShortTable(columns, num_rows)


def is_short(columns: Sequence[list[Any]], types: Sequence[SqlType]) -> bool:
    """Whether all texts in columns of plain values are short."""
    characters = 0
    for column, kind in zip(columns, types, strict=True):
        if kind.kind in _LONG_KINDS:
            for value in column:
                if value is not None:
                    characters += len(value)
    return characters <= _CHARACTERS_MAX


def _values(array: pa.Array | pa.ChunkedArray, kind: SqlType) -> list[Any]:
    values: list[Any] = (
        array.chunk(0) if isinstance(array, pa.ChunkedArray) and array.num_chunks == 1 else array
    ).to_pylist()
    return values if kind.kind is not TypeKind.HUGEINT else [None if value is None else int(value) for value in values]


def _array(values: list[Any], kind: SqlType) -> pa.Array:
    if kind.kind is TypeKind.UUID:
        return pa.ExtensionArray.from_storage(
            kind.arrow, pa.array([None if value is None else value.bytes for value in values], kind.arrow.storage_type)
        )
    return pa.array(values, kind.arrow)
