"""Columns that Arrow has no conversion to: UUIDs out of texts or bytes, and decimals out of floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import SqlType, TypeKind
from secateur.partitioning.types.decimals import unscaled

_UUID_TEXT_BYTES: Final = 36
_DASHES: Final = [8, 13, 18, 23]
_DIGITS: Final = np.array([i for i in range(_UUID_TEXT_BYTES) if i not in _DASHES])
_NOT_HEX: Final = 255
_NIBBLE: Final = np.full(256, _NOT_HEX, dtype=np.uint8)
_NIBBLE[list(b"0123456789abcdef")] = range(16)
_NIBBLE[list(b"ABCDEF")] = range(10, 16)


def wrap_uuids(array: pa.Array) -> pa.Array:
    """Take binary values of 16 bytes for UUIDs.

    Raises:
        pa.ArrowInvalid: A value has another number of bytes.
    """
    return pa.ExtensionArray.from_storage(pa.uuid(), array.cast(pa.binary()).cast(pa.binary(16)))


def parse_uuids(array: pa.Array) -> pa.Array:
    """Parse 8-4-4-4-12 text without a Python object per row.

    Raises:
        ValueError: A text is something else.
    """
    present = array.drop_null().cast(pa.large_binary())
    if not pc.all(pc.equal(pc.binary_length(present), _UUID_TEXT_BYTES), min_count=0).as_py():
        raise ValueError("a text is no UUID: 8-4-4-4-12 hexadecimal digits")
    raw: npt.NDArray[np.uint8] = np.empty((0, 16), dtype=np.uint8)
    if len(present):
        _, offsets, data = present.buffers()
        start = int(np.frombuffer(offsets, dtype=np.int64, count=1, offset=8 * present.offset)[0])
        text = np.frombuffer(data, dtype=np.uint8, count=len(present) * _UUID_TEXT_BYTES, offset=start).reshape(
            -1, _UUID_TEXT_BYTES
        )
        nibbles = _NIBBLE[text[:, _DIGITS]]
        if (nibbles == _NOT_HEX).any() or (text[:, _DASHES] != ord("-")).any():
            raise ValueError("a text is no UUID: 8-4-4-4-12 hexadecimal digits")
        raw = (nibbles[:, 0::2] << np.uint8(4)) | nibbles[:, 1::2]
    return pa.ExtensionArray.from_storage(pa.uuid(), _fixed_binary(raw, array))


def _fixed_binary(raw: npt.NDArray[np.uint8], like: pa.Array) -> pa.Array:
    """16-byte values, one per non-null row of ``like``, as an array with nulls where ``like`` has them."""
    values = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), len(raw), [None, pa.py_buffer(np.ascontiguousarray(raw).tobytes())]
    )
    if like.null_count == 0:
        return values
    valid = like.is_valid().to_numpy(zero_copy_only=False)
    return values.take(pa.array(np.cumsum(valid) - 1, mask=~valid))


def decimals_of_floats(type_: SqlType) -> Callable[[pa.Array], pa.Array]:
    """Return the conversion of float arrays to DECIMAL or HUGEINT.

    19.99 has no float of its own, and everybody who writes 19.99 as a float means it. So a float is the decimal of the
    column's scale of which it is the nearest float, as for :mod:`~secateur.partitioning.types.coerce`, which decides
    about numbers of more digits than all floats tell apart, and raises a DataError for a float that is none.

    Cost: some 30 ns a value, and 2 us for one with many digits.
    """
    scale, power = type_.scale, 10.0**type_.scale

    def convert(array: pa.Array) -> pa.Array:
        floats = array.fill_null(0).to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore", invalid="ignore"):
            units = np.rint(floats.astype(np.float64) * power)
            # Two numbers of so few digits are never the same float.
            digits_max = min(type_.precision or 38, np.finfo(floats.dtype).precision)
            is_plain = np.abs(units) < 10.0**digits_max
            is_plain &= (units / power).astype(floats.dtype) == floats
        words = np.zeros((len(floats), 2), "<i8")
        words[is_plain, 0] = units[is_plain].astype(np.int64)
        words[:, 1] = words[:, 0] >> 63
        for row in np.flatnonzero(~is_plain).tolist():
            number = coerce(floats[row], type_)
            whole = number if type_.kind is TypeKind.HUGEINT else unscaled(number, scale)
            words[row] = np.frombuffer(whole.to_bytes(16, "little", signed=True), "<i8")
        values = pa.Array.from_buffers(type_.arrow, len(floats), [None, pa.py_buffer(words)])
        return values if not array.null_count else pc.if_else(array.is_valid(), values, pa.scalar(None, type_.arrow))

    return convert
