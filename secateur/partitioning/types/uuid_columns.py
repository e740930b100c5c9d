"""Columns of UUIDs out of texts or bytes."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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
