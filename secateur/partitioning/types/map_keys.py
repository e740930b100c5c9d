"""The keys of MAP values in Arrow: whether one is NULL, or there twice.

Arrow itself does not demand that the keys of a map differ; the dialect does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.partitioning.types.nested_parts import map_entries


def has_invalid_keys(array: pa.Array) -> bool:
    """Whether some value of an Arrow map array has a NULL key, or one key twice.

    Cost: a hash and a sort of all keys; for keys that are nested themselves, a Python object for each.
    """
    offsets, keys, _ = map_entries(array)
    if keys.null_count:
        return True
    rows = np.repeat(np.arange(len(array)), np.diff(offsets.to_numpy()))
    if not len(rows) or len(np.unique(rows)) == len(rows):
        return False
    pairs = np.stack([rows, _numbered(keys)], axis=1)
    return len(np.unique(pairs, axis=0)) < len(pairs)


def _numbered(keys: pa.Array) -> npt.NDArray[np.int64]:
    """A number for each key; equal keys have one number."""
    if isinstance(keys, pa.ExtensionArray):
        keys = keys.storage
    if pa.types.is_floating(keys.type):
        keys = pa.array(keys.to_numpy() + 0.0)  # -0.0 + 0.0 is 0.0
    if pa.types.is_nested(keys.type) or pa.types.is_interval(keys.type):
        numbers: dict[Any, int] = {}
        return np.array([numbers.setdefault(repr(key), len(numbers)) for key in keys.to_pylist()], np.int64)
    codes: npt.NDArray[np.int64] = keys.dictionary_encode().indices.to_numpy().astype(np.int64)
    return codes
