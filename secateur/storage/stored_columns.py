"""The columns of stored rows, which also read few rows as Python values.

The native executor reads their buffers, of which nothing is copied.

Reading values through Arrow costs a microsecond for a scalar, and several for a slice that becomes a list; a look-up
reads a handful of values. Most columns are numbers and texts, which are read here where they lie in the buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import pyarrow as pa

from secateur.native import native_module
from secateur.partitioning.types.column_type import OPAQUE, TEXTUAL, SqlType, TypeKind
from secateur.partitioning.types.decimals import from_unscaled

_WORDS: Final = {
    pa.int8(): "b",
    pa.int16(): "h",
    pa.int32(): "i",
    pa.int64(): "q",
    pa.uint8(): "B",
    pa.uint16(): "H",
    pa.uint32(): "I",
    pa.uint64(): "Q",
    pa.float32(): "f",
    pa.float64(): "d",
}
"""The ``struct`` characters of types whose values lie in the buffer as Python's struct has them."""


_WORD_PRECISION_MAX: Final = 18
"""Decimals of so many digits fit into a signed word."""


class _Reader(NamedTuple):
    """The functions that read a column: the value at a position, and those from a position to another one."""

    one: Callable[[int], Any]
    run: Callable[[int, int], list[Any]]


class StoredColumns(tuple[pa.ChunkedArray, ...]):
    """The columns of a table that owns its memory. Safe to read from any thread.

    All values are those that Arrow gives with ``as_py()``.

    Cost: 0.1 microseconds for a number, 0.3 for a text, a microsecond or more for a value of another type. The first
    call makes what the others read.
    """

    _made: tuple[_Reader, ...] | None = None

    @property
    def is_read(self) -> bool:
        """Whether values were read, so that the next ones cost less."""
        return self._made is not None

    def be_read(self) -> None:
        """Make now what the first call makes."""
        self._readers()

    def row(self, position: int) -> list[Any]:
        """The values of the row at a position, which is not negative.

        Raises:
            IndexError: There is no such row.
            ValueError, OverflowError: Python has no object for a value.
        """
        return [reader.one(position) for reader in self._made or self._readers()]

    def run(self, columns: Sequence[int], start: int, stop: int) -> list[list[Any]]:
        """The values of neighbouring rows, from ``start`` up to the one before ``stop``, by column.

        Raises:
            ValueError, OverflowError: Python has no object for a value.
        """
        readers = self._made or self._readers()
        if stop - start == 1:
            return [[readers[column].one(start)] for column in columns]
        return [readers[column].run(start, stop) for column in columns]

    def _readers(self) -> tuple[_Reader, ...]:
        made = self._made
        if made is None:
            # Two threads may both get here; they make equal readers and either may stay.
            made = self._made = tuple(map(_reader, self))
        return made


def _reader(column: pa.ChunkedArray) -> _Reader:
    if column.num_chunks != 1:
        return _by_arrow(column)
    array = column.chunk(0)
    found = _words_reader(array) or _texts_reader(array) or _decimals_reader(array)
    if found is None:
        return _by_arrow(array)
    if not array.null_count:
        return found
    return _Reader(_or_null(found.one, memoryview(array.buffers()[0]), array.offset), _by_arrow(array).run)


def _by_arrow(array: pa.Array | pa.ChunkedArray) -> _Reader:
    return _Reader(
        lambda position: array[position].as_py(), lambda start, stop: array.slice(start, stop - start).to_pylist()
    )


def _words_reader(array: pa.Array) -> _Reader | None:
    word: Any = _WORDS.get(array.type)
    if word is None:
        return None
    words = memoryview(array.buffers()[1]).cast("B").cast(word)[array.offset : array.offset + len(array)]
    return _Reader(words.__getitem__, lambda start, stop: words[start:stop].tolist())


def _texts_reader(array: pa.Array) -> _Reader | None:
    if array.type != pa.string():
        return None
    _, offsets, buffer = array.buffers()
    ends = memoryview(offsets).cast("B").cast("i")[array.offset : array.offset + len(array) + 1]
    data = memoryview(b"" if buffer is None else buffer)

    def one(position: int) -> str:
        return str(data[ends[position] : ends[position + 1]], "utf-8")

    def run(start: int, stop: int) -> list[str]:
        bounds = ends[start : stop + 1].tolist()
        first, last = bounds[0], bounds[-1]
        whole = str(data[first:last], "utf-8")
        if len(whole) < last - first:
            return [str(data[begin:end], "utf-8") for begin, end in pairwise(bounds)]
        # Each byte is a character. To cut a text takes a fifth of what it takes to decode a piece of the buffer.
        return [whole[begin - first : end - first] for begin, end in pairwise(bounds)]

    return _Reader(one, run)


def _decimals_reader(array: pa.Array) -> _Reader | None:
    if not pa.types.is_decimal128(array.type) or array.type.precision > _WORD_PRECISION_MAX:
        return None
    scale = array.type.scale
    # The low words alone are the numbers: the high ones repeat their signs.
    words = memoryview(array.buffers()[1]).cast("B").cast("q")[2 * array.offset : 2 * (array.offset + len(array)) : 2]
    return _Reader(
        lambda position: from_unscaled(words[position], scale),
        lambda start, stop: [from_unscaled(units, scale) for units in words[start:stop].tolist()],
    )


def _or_null(one: Callable[[int], Any], validity: memoryview, offset: int) -> Callable[[int], Any]:
    def one_or_null(position: int) -> Any:
        bit = offset + position
        return one(position) if validity[bit >> 3] >> (bit & 7) & 1 else None

    return one_or_null


_MODULE: Final = native_module()
_SCALE_MAX: Final = 6
"""Python writes small numbers with more digits behind the point with an exponent."""
_LEFT_OUT: Final = OPAQUE - TEXTUAL | {TypeKind.HUGEINT, TypeKind.DECIMAL}
_KINDS: Final[dict[pa.DataType, str]] = {
    **{
        kind: str(kind)
        for kind in (
            *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
            *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
            *(pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary()),
        )
    },
    pa.date32(): "date32",
    pa.time64("us"): "time64",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamptz",
    pa.uuid(): "uuid",
}


def is_native(kind: SqlType) -> bool:
    """Whether the native executor writes values of a type, and the bytes of each are those that Python writes."""
    if kind.kind is TypeKind.DECIMAL:
        return kind.precision <= _WORD_PRECISION_MAX and kind.scale <= _SCALE_MAX
    return kind.kind not in _LEFT_OUT


def native_rows(table: pa.Table, keys: Sequence[str]) -> Any | None:
    """The rows of a table in the order of a key, for the native executor; None without it.

    Args:
        table: The rows, one chunk a column, sorted.
        keys: The columns of the key, none of which has a NULL.

    Cost: some microseconds.
    """
    if _MODULE is None:
        return None
    columns = [_column(column) for column in table.columns]
    return _MODULE.Rows(columns, [table.schema.get_field_index(name) for name in keys], table.num_rows)


def _column(column: pa.ChunkedArray) -> tuple[Any, ...] | None:
    kind, scale = _KINDS.get(column.type), 0
    if pa.types.is_decimal128(column.type) and column.type.precision <= _WORD_PRECISION_MAX:
        kind, scale = "decimal", column.type.scale
    if kind is None or column.num_chunks != 1 or scale > _SCALE_MAX:
        return None
    array = column.chunk(0)
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    validity, *offsets, values = array.buffers()
    return (
        kind,
        scale,
        _bytes(values),
        _bytes(offsets[0]) if offsets else None,
        _bytes(validity) if array.null_count else None,
        array.offset,
    )


def _bytes(buffer: pa.Buffer | None) -> memoryview:
    return memoryview(b"") if buffer is None else memoryview(buffer).cast("B")
