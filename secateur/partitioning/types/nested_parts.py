"""The elements of Arrow lists and the entries of Arrow maps, of their own rows alone.

A slice shares the elements of the array that it was cut from, and a NULL may have elements underneath. Arrow's own
``flatten()`` knows no maps, and no elements of some extension types.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.partitioning.types.row_numbers import row_numbers

__all__ = ["list_elements", "map_entries"]


def list_elements(array: pa.Array) -> pa.Array:
    """The elements of an Arrow list array of any kind, without those that a NULL has underneath."""
    if pa.types.is_fixed_size_list(array.type):
        return array.flatten()
    lengths = _lengths(array)
    if array.null_count and lengths[_null_rows(array)].any():
        return array.flatten()
    return array.values.slice(array.offsets[0].as_py() if len(array) else 0, int(lengths.sum()))


def map_entries(array: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return the entries of an Arrow map array.

    Returns:
        Offsets (int32, one more than rows), keys, and values. Entries behind a NULL are left out.
    """
    lengths, keys, items = _lengths(array), array.keys, array.items
    first = array.offsets[0].as_py() if len(array) else 0
    if array.null_count:
        is_null = _null_rows(array)
        if lengths[is_null].any():
            kept = row_numbers(first + np.flatnonzero(np.repeat(~is_null, lengths)))
            keys, items = keys.take(kept), items.take(kept)
            first = 0
        lengths = np.where(is_null, 0, lengths)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    count = int(offsets[-1])
    return row_numbers(offsets), keys.slice(first, count), items.slice(first, count)


def _lengths(array: pa.Array) -> npt.NDArray[np.int64]:
    return np.diff(array.offsets.to_numpy()).astype(np.int64) if len(array) else np.empty(0, np.int64)


def _null_rows(array: pa.Array) -> npt.NDArray[np.bool_]:
    rows: npt.NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return rows
