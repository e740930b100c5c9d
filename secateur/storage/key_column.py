"""One primary-key column as sortable values, as a view for binary search, and its cells.

Arrow sorts the values in SQL order; a Python value is converted to a cell to be searched for in the view,
without copying the column.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa

from secateur.errors import DataError, NotSupportedError
from secateur.partitioning.types.arrow_layout import order_floats
from secateur.partitioning.types.column_type import OPAQUE, UNIT_TIMESTAMPS, SqlType, TypeKind
from secateur.partitioning.types.decimals import unscaled

NOT_OF_TYPE: Final = (TypeError, ValueError, ArithmeticError)
"""The errors of a conversion of a value of another Python type."""
INTEGER_FORMATS: Final[dict[TypeKind, IntegerFormat]] = {
    TypeKind.TINYINT: "b",
    TypeKind.SMALLINT: "h",
    TypeKind.INTEGER: "i",
    TypeKind.BIGINT: "q",
    TypeKind.UTINYINT: "B",
    TypeKind.USMALLINT: "H",
    TypeKind.UINTEGER: "I",
    TypeKind.UBIGINT: "Q",
    TypeKind.DATE: "i",
    TypeKind.TIME: "q",
    TypeKind.TIMESTAMP: "q",
    TypeKind.TIMESTAMPTZ: "q",
}
"""The ``struct`` character of the width and signedness of each kind that lies in memory as an integer."""
_DECIMALS: Final = frozenset({TypeKind.DECIMAL, TypeKind.HUGEINT})
_HUGEINT_PRECISION: Final = 38
_UUID_BYTES: Final = 16
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_UTC: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """The order of one primary-key column.

    The order is that of the SQL dialect: text by UTF-8 bytes, false before true, NaN last.

    Attributes:
        table: Name of the table, for messages.
        name: Name of the column.
        type: Its type.
        to_cell: :meth:`cell`, which raises one of :data:`NOT_OF_TYPE` as it comes.
    """

    table: str
    name: str
    type: SqlType
    to_cell: Callable[[Any], Cell]

    @classmethod
    def of(cls, table: str, name: str, type_: SqlType) -> KeyColumn:
        """Describe a key column.

        Raises:
            NotSupportedError: The type is one of those that are no keys, such as INTERVAL, or is nested.
        """
        if type_.kind in OPAQUE:
            advice = "use TIMESTAMP, or keep" if type_.kind in UNIT_TIMESTAMPS else "keep"
            raise NotSupportedError(
                f"table {table}: column {name} of type {type_} cannot be part of a key or index; {advice} it as a plain"
                " column"
            )
        return cls(table, name, type_, _cell_maker(type_))

    def view(self, array: pa.Array) -> CellView:
        """The array as a sequence of cells for binary search; nothing is copied except for FLOAT and DOUBLE.

        Args:
            array: One chunk of exactly ``type.arrow`` without NULLs.
        """
        kind = self.type.kind
        if len(array) == 0:
            return ()
        if kind in INTEGER_FORMATS:
            return integer_view(array, INTEGER_FORMATS[kind])
        if kind in _DECIMALS:
            return decimal_view(array, self.type.precision or _HUGEINT_PRECISION)
        if kind is TypeKind.BOOLEAN:
            return _Bits(memoryview(array.buffers()[1]), array.offset, len(array))
        if kind is TypeKind.UUID:
            return _FixedBytes(array.storage, _UUID_BYTES)
        if self.type.is_float:
            return order_floats(array.to_numpy()).data
        return bytes_view(array)

    def cell(self, value: Any) -> Cell:
        """Convert a canonical Python value (see ``secateur.partitioning.types.coerce``), not None, to a cell.

        Raises:
            DataError: The value is of another Python type.
        """
        try:
            return self.to_cell(value)
        except NOT_OF_TYPE as error:
            message = (
                f"{self.table}.{self.name}: {value!r} ({type(value).__name__}) is not a value of type"
                f" {self.type}; coerce it to the column type first"
            )
            raise DataError(message, table=self.table, column=self.name) from error


def _of_blob(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError
    return value


def _of_date(value: Any) -> int:
    # A datetime is a date to Python; read as one, its time of day would be lost.
    if type(value) is not date:
        raise TypeError
    return value.toordinal() - _EPOCH_DAY


def _of_time(value: Any) -> int:
    if not isinstance(value, time):
        raise TypeError
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _of_timestamp(epoch: datetime, value: Any) -> int:
    # Subtracting a naive from an aware datetime raises TypeError: TIMESTAMP and TIMESTAMPTZ do not mix by accident.
    return int((value - epoch) // _MICROSECOND)


def _of_uuid(value: Any) -> bytes:
    if not isinstance(value, UUID):
        raise TypeError
    return value.bytes


def _of_decimal(scale: int, value: Any) -> int:
    return unscaled(value, scale) if isinstance(value, Decimal) else operator.index(value) * 10**scale


def _of_float(value: Any) -> int:
    return int(order_floats(np.array([float(value)]))[0])


_CELLS: Final[dict[TypeKind, Callable[[Any], Cell]]] = {
    TypeKind.VARCHAR: str.encode,
    TypeKind.BLOB: _of_blob,
    TypeKind.DATE: _of_date,
    TypeKind.TIME: _of_time,
    TypeKind.TIMESTAMP: partial(_of_timestamp, _EPOCH),
    TypeKind.TIMESTAMPTZ: partial(_of_timestamp, _EPOCH_UTC),
    TypeKind.UUID: _of_uuid,
    TypeKind.FLOAT: _of_float,
    TypeKind.DOUBLE: _of_float,
}


def _cell_maker(type_: SqlType) -> Callable[[Any], Cell]:
    if type_.kind is TypeKind.DECIMAL:
        return partial(_of_decimal, type_.scale)
    return _CELLS.get(type_.kind, operator.index)


Cell: TypeAlias = int | bytes
IntegerFormat: TypeAlias = Literal["b", "B", "h", "H", "i", "I", "q", "Q"]


class CellView(Protocol):
    """The sequence protocol that ``bisect`` needs, with cells of one kind throughout."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Cell: ...


def integer_view(array: pa.Array, fmt: IntegerFormat) -> CellView:
    """View a fixed-width integer-like array (integers, DATE, TIME, TIMESTAMP).

    Args:
        array: Without NULLs.
        fmt: The ``struct`` character of its width and signedness.
    """
    values = memoryview(array.buffers()[1]).cast(fmt)
    return values[array.offset : array.offset + len(array)]


def decimal_view(array: pa.Array, precision: int) -> CellView:
    """View a ``decimal128`` array as its unscaled integers; up to 18 digits the low words alone are exact."""
    words = memoryview(array.buffers()[1])
    window = slice(2 * array.offset, 2 * (array.offset + len(array)))
    low_signed = words.cast("q")[window]
    if precision <= 18:
        return low_signed[::2]
    return _WideIntegers(low_signed[1::2], words.cast("Q")[window][::2])


def bytes_view(array: pa.Array) -> CellView:
    """View a ``string`` or ``binary`` array (32-bit offsets) as byte strings."""
    _, offsets, data = array.buffers()
    window = memoryview(offsets).cast("i")[array.offset : array.offset + len(array) + 1]
    return _VariableBytes(window, memoryview(data if data is not None else b""))


class _WideIntegers:
    __slots__ = ("_high", "_low")

    def __init__(self, high: memoryview[int], low: memoryview[int]) -> None:
        self._high = high
        self._low = low

    def __len__(self) -> int:
        return len(self._high)

    def __getitem__(self, index: int, /) -> int:
        return (self._high[index] << 64) | self._low[index]


class _Bits:
    __slots__ = ("_bits", "_offset", "_rows")

    def __init__(self, bits: memoryview[int], offset: int, rows: int) -> None:
        self._bits = bits
        self._offset = offset
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, index: int, /) -> int:
        bit = self._offset + index
        return (self._bits[bit >> 3] >> (bit & 7)) & 1


class _VariableBytes:
    __slots__ = ("_data", "_offsets")

    def __init__(self, offsets: memoryview[int], data: memoryview[int]) -> None:
        self._offsets = offsets
        self._data = data

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: int, /) -> bytes:
        offsets = self._offsets
        return self._data[offsets[index] : offsets[index + 1]].tobytes()


class _FixedBytes:
    __slots__ = ("_data", "_rows", "_width")

    def __init__(self, array: pa.Array, width: int) -> None:
        self._data = memoryview(array.buffers()[1])[array.offset * width : (array.offset + len(array)) * width]
        self._width = width
        self._rows = len(array)

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, index: int, /) -> bytes:
        start = index * self._width
        return self._data[start : start + self._width].tobytes()
