"""Finds the range partition of a key by lexicographic search, for one key and for whole columns.

Sorted disjoint ranges need one binary search over their lower bounds and one comparison with the upper bound found. For
many rows the same works on *codes*: a value becomes twice the number of bounds at or below it, less one when it equals
a bound. Comparing codes gives what comparing the values with a bound gives, codes of several columns fold into one
integer, most significant column first, and there are so few codes that a table holds the answer for each.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.partitioning.schemes.components import RangePartition
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.encoding import decimal_words, is_narrow_decimal, order_array, order_key_of, uuid_bytes

NO_RANGE: Final = -1

_WORD: Final = 2**64


class RangeIndex:
    """A search structure over intervals of the range columns, which are sorted by lower bound and disjoint.

    Positions are indexes into them; :data:`NO_RANGE` says that none holds the key.
    """

    __slots__ = ("_first_is_open", "_last", "_last_is_open", "_lowers", "_rows", "_types", "_uppers")

    def __init__(self, ranges: Sequence[RangePartition], types: Sequence[SqlType]) -> None:
        self._first_is_open = bool(ranges) and ranges[0].lower is None
        self._last_is_open = bool(ranges) and ranges[-1].upper is None
        self._last = len(ranges) - 1
        # Sorted and disjoint: only the first range can be open below, only the last open above.
        self._lowers = [r.lower for r in ranges if r.lower is not None]
        self._uppers = [r.upper for r in ranges if r.upper is not None]
        self._types = tuple(types)
        self._rows: _RowIndex | None = None

    def locate(self, key: tuple[Any, ...]) -> int:
        """The position of the range that holds a key of canonical, non-null values.

        Cost: under 1 microsecond for 1,000 ranges.
        """
        position = bisect_right(self._lowers, key) - (not self._first_is_open)
        if position < 0:
            return NO_RANGE
        if position == self._last and self._last_is_open:
            return position
        return position if key < self._uppers[position] else NO_RANGE

    def locate_rows(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        """The position of the range of each row, whose columns have the range columns' own types, without nulls.

        Returns:
            int64 of shape (rows,), :data:`NO_RANGE` where no range holds the row.
            Cost: 30-80 ns per row for a fixed-width column; for strings and binaries a dictionary of the distinct
            values is built and searched instead. The first call costs some microseconds per range, which a caller that
            only routes single keys never pays.
        """
        if self._rows is None:
            self._rows = _RowIndex(
                self._lowers,
                self._uppers,
                self._types,
                first_is_open=self._first_is_open,
                last_is_open=self._last_is_open,
            )
        return self._rows.locate(columns)


class _RowIndex:
    """:class:`RangeIndex` for whole columns, by codes."""

    __slots__ = ("_columns", "_positions", "_prefixes")

    def __init__(
        self,
        lowers: Sequence[tuple[Any, ...]],
        uppers: Sequence[tuple[Any, ...]],
        types: Sequence[SqlType],
        *,
        first_is_open: bool,
        last_is_open: bool,
    ) -> None:
        bounds = [*lowers, *uppers]
        self._columns = [_ColumnCodes(type_, [bound[i] for bound in bounds]) for i, type_ in enumerate(types)]
        # The columns before column i, folded: renumbered among the bounds they stay below 4 * (number of bounds)^2,
        # however many columns there are.
        self._prefixes: list[npt.NDArray[np.int64]] = []
        folded = self._columns[0].of_bounds
        for column in self._columns[1:]:
            self._prefixes.append(np.unique(folded))
            folded = _codes(self._prefixes[-1], folded) * column.span + column.of_bounds
        if len(self._columns) > 1:
            self._prefixes.append(np.unique(folded))
            folded = _codes(self._prefixes[-1], folded)
        lower_codes, upper_codes = np.split(folded, [len(lowers)])
        self._positions = _position_of_each_code(
            lower_codes, upper_codes, first_is_open=first_is_open, last_is_open=last_is_open
        )

    def locate(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        codes = self._columns[0].of_array(columns[0])
        for prefixes, column, array in zip(self._prefixes, self._columns[1:], columns[1:], strict=False):
            codes = _codes(prefixes, codes) * column.span + column.of_array(array)
        if len(self._columns) > 1:
            codes = _codes(self._prefixes[-1], codes)
        return self._positions[codes]


def _position_of_each_code(
    lowers: npt.NDArray[np.int64], uppers: npt.NDArray[np.int64], *, first_is_open: bool, last_is_open: bool
) -> npt.NDArray[np.int64]:
    """The position for each code that a row can have, given the codes of the bounds."""
    codes = np.arange(max(int(lowers.max(initial=0)), int(uppers.max(initial=0))) + 2)
    if not len(lowers) and not first_is_open:
        return np.full(len(codes), NO_RANGE, dtype=np.int64)
    if last_is_open:
        uppers = np.append(uppers, len(codes))
    position = np.searchsorted(lowers, codes, side="right") - (not first_is_open)
    # At position -1 the comparison reads the last upper bound, and its outcome is not used.
    return np.where((position >= 0) & (codes < uppers[position]), position, NO_RANGE)


class _ColumnCodes:
    """The codes of one range column relative to the distinct values that bounds have in it."""

    __slots__ = ("_keys", "_sorted", "_type", "of_bounds", "span")

    def __init__(self, type_: SqlType, bound_values: Sequence[Any]) -> None:
        self._type = type_
        ordered = list(map(order_key_of(type_), bound_values))
        self._keys = sorted(set(ordered))
        self._sorted: npt.NDArray[Any] | None = None
        self.span = np.int64(2 * len(self._keys) + 1)
        codes = {key: 2 * position + 1 for position, key in enumerate(self._keys)}
        self.of_bounds = np.array([codes[key] for key in ordered], dtype=np.int64)

    def of_array(self, array: pa.Array) -> npt.NDArray[np.int64]:
        match self._type.kind:
            case TypeKind.VARCHAR | TypeKind.BLOB:
                distinct = array.cast(pa.binary()).dictionary_encode()
                of_distinct = np.array(
                    [_code(self._keys, value) for value in distinct.dictionary.to_pylist()], dtype=np.int64
                )
                return of_distinct[distinct.indices.to_numpy()]
            case TypeKind.UUID:
                words = uuid_bytes(array).view(">u8").astype(np.uint64)
                return _wide_codes([divmod(key, _WORD) for key in self._keys], words[:, 0], words[:, 1])
            case TypeKind.DECIMAL if not is_narrow_decimal(self._type):
                words = decimal_words(array)
                return _wide_codes([divmod(key, _WORD) for key in self._keys], words[:, 1].view(np.int64), words[:, 0])
            case _:
                values = order_array(array, self._type)
                if self._sorted is None:
                    self._sorted = np.array(self._keys, dtype=values.dtype)
                return _codes(self._sorted, values)


def _code(keys: list[Any], value: Any) -> int:
    return bisect_left(keys, value) + bisect_right(keys, value)


def _codes(keys: npt.NDArray[Any], values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """:func:`_code` of many values among sorted distinct keys."""
    if not len(keys):
        return np.zeros(len(values), dtype=np.int64)
    above = np.searchsorted(keys, values, side="right")
    # A value below all keys reads the greatest key by its index of -1, and is less than that one too.
    return 2 * above - (keys[above - 1] == values)


def _wide_codes(
    keys: Sequence[tuple[int, int]], high: npt.NDArray[Any], low: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """Return codes of 128-bit values given as two words, which are folded as :class:`RangeIndex` folds two columns."""
    key_high = np.array([k[0] for k in keys], dtype=high.dtype)
    key_low = np.array([k[1] for k in keys], dtype=np.uint64)
    highs, lows = np.unique(key_high), np.unique(key_low)
    span = np.int64(2 * len(lows) + 1)
    return _codes(
        _codes(highs, key_high) * span + _codes(lows, key_low), _codes(highs, high) * span + _codes(lows, low)
    )
