"""The parts of nested Arrow arrays: elements of lists, entries of maps, fields of structs; of their own rows alone.

A slice shares the elements of the array that it was cut from, and a NULL may have elements underneath. Arrow's own
``flatten()`` knows no maps, and no elements of some extension types.

Arrow does not demand that the keys of a map differ and are not NULL; the dialect does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.partitioning.types.row_numbers import row_numbers

INTERVAL_LAYOUT: Final = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
"""Arrow's layout of an INTERVAL."""


def leaves(array: pa.Array) -> Iterator[pa.Array]:
    """The arrays without parts of their own that an array has inside; an array without parts is its own."""
    kind = array.type
    if pa.types.is_struct(kind):
        parts: list[pa.Array] = array.flatten()
    elif pa.types.is_map(kind):
        parts = list(map_entries(array)[1:])
    elif pa.types.is_nested(kind):
        parts = [list_elements(array)]
    else:
        yield array
        return
    for part in parts:
        yield from leaves(part)


def map_leaves(array: pa.Array, converted: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """The same values, with each of :func:`leaves` converted."""
    if pa.types.is_nested(array.type):
        return with_parts(array, lambda part, _: map_leaves(part, converted))
    return converted(array)


def with_parts(
    array: pa.Array, converted: Callable[[pa.Array, int], pa.Array], wanted: pa.DataType | None = None
) -> pa.Array:
    """The same values with other parts.

    Args:
        array: A struct, map or list of any kind.
        converted: The new part for a part and its number: a field of a struct; 0 for keys and elements, 1 for values.
        wanted: The type of the result, with the types of the new parts; None for that of ``array`` with them. A list of
            any kind may become one of variable length.
    """
    kind = array.type
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        children = [converted(child, index) for index, child in enumerate(array.flatten())]
        fields = wanted or [kind.field(index).with_type(child.type) for index, child in enumerate(children)]
        return pa.StructArray.from_arrays(children, fields=list(fields), mask=mask)
    if pa.types.is_map(kind):
        offsets, keys, items = map_entries(array)
        return pa.MapArray.from_arrays(offsets, converted(keys, 0), converted(items, 1), type=wanted, mask=mask)
    if pa.types.is_fixed_size_list(kind if wanted is None else wanted):
        # Values of NULL slots are kept: flatten() would drop them and shift the rest.
        values = array.values.slice(array.offset * kind.list_size, len(array) * kind.list_size)
        return pa.FixedSizeListArray.from_arrays(
            converted(values, 0), None if wanted else kind.list_size, type=wanted, mask=mask
        )
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy()
    offsets = row_numbers(np.concatenate(([0], np.cumsum(lengths)))).cast(pa.int32())  # refuses what is too long
    return pa.ListArray.from_arrays(offsets, converted(list_elements(array), 0), type=wanted, mask=mask)


def in_fixed_lists(elements: pa.Array, array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The elements of the lists of an array, as :func:`list_elements` gives them, in lists of a fixed length.

    Args:
        elements: The elements, converted; as many for each list as the length.
        array: The lists of any kind. A NULL has NULL elements underneath.
        wanted: The type of the result.
    """
    if not array.null_count:
        return pa.FixedSizeListArray.from_arrays(elements, type=wanted)
    valid = np.repeat(array.is_valid().to_numpy(zero_copy_only=False), wanted.list_size)
    places = pa.array(np.cumsum(valid) - 1, mask=~valid)
    return pa.FixedSizeListArray.from_arrays(elements.take(places), type=wanted, mask=array.is_null())


def interval_cells(array: pa.Array) -> npt.NDArray[Any]:
    """The months, days and nanoseconds of an INTERVAL array, as :data:`INTERVAL_LAYOUT`; anything for a NULL."""
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), INTERVAL_LAYOUT)
    return np.frombuffer(data, INTERVAL_LAYOUT, len(array), array.offset * INTERVAL_LAYOUT.itemsize)


def list_elements(array: pa.Array) -> pa.Array:
    """The elements of an Arrow list array of any kind, without those that a NULL has underneath."""
    if isinstance(array, (pa.ListViewArray, pa.LargeListViewArray)):  # a view has any order
        return array.flatten()
    if isinstance(array, pa.FixedSizeListArray):
        # Of NULLs alone there are no elements, which Arrow cannot make of every type.
        return array.flatten() if array.null_count < len(array) else array.values.slice(0, 0)
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
