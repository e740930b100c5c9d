"""The layout of Arrow's arrays: the parts of nested ones, and forms that kernels and DuckDB compute with.

Elements of lists, entries of maps and fields of structs are those of an array's own rows alone.

A slice shares the elements of the array that it was cut from, and a NULL may have elements underneath. Arrow's own
``flatten()`` knows no maps, and no elements of some extension types.

Arrow does not demand that the keys of a map differ and are not NULL; the dialect does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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


def map_leaf_types(kind: pa.DataType, converted: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with each of those inside that have no parts converted; the same object where none changes."""
    if not pa.types.is_nested(kind):
        return converted(kind)
    parts = [kind.field(index) for index in range(kind.num_fields)]
    replaced = [part.with_type(map_leaf_types(part.type, converted)) for part in parts]
    if replaced == parts:
        return kind
    if pa.types.is_struct(kind):
        return pa.struct(replaced)
    if pa.types.is_map(kind):
        return pa.map_(*replaced[0].type)
    return pa.list_(replaced[0], kind.list_size if pa.types.is_fixed_size_list(kind) else -1)


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
        array: An array that is NULL where the lists are. Those have NULL elements underneath.
        wanted: The type of the result.
    """
    if not array.null_count:
        return pa.FixedSizeListArray.from_arrays(elements, type=wanted)
    valid = np.repeat(array.is_valid().to_numpy(zero_copy_only=False), wanted.list_size)
    return pa.FixedSizeListArray.from_arrays(spread(elements, valid), type=wanted, mask=array.is_null())


def spread(values: pa.Array, valid: npt.NDArray[np.bool_]) -> pa.Array:
    """The values at the valid places, in their order, and NULL at the others."""
    return values.take(pa.array(np.cumsum(valid) - 1, mask=~valid))


def fixed_width(array: pa.Array, dtype: Any) -> npt.NDArray[Any]:
    """The buffer of an array of a fixed width as values of a type of numpy, without a copy; anything for a NULL."""
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype, len(array), array.offset * np.dtype(dtype).itemsize)


def interval_cells(array: pa.Array) -> npt.NDArray[Any]:
    """The months, days and nanoseconds of an INTERVAL array, as :data:`INTERVAL_LAYOUT`; anything for a NULL."""
    return fixed_width(array, INTERVAL_LAYOUT)


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


def row_numbers(values: npt.NDArray[Any]) -> pa.Array:
    """Integers of numpy as an Arrow array of the same width, none of them NULL.

    ``pyarrow.array`` loads pandas, if it is installed, to find out whether it was given some of it: 0.4 s of processor
    time in a fresh process, such as a worker of Spark, and memory for as long as the process lives.

    The array shares the memory of contiguous integers, which must not change any more.
    """
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))]
    )


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values that an array of a type stands for; the type itself where these are its own."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind


def plain_values(array: pa.Array) -> pa.Array:
    """An array of :func:`plain_type`, of the same length; the array itself where it is one."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return plain_values(array.dictionary).take(array.indices)  # Arrow decodes no dictionary of views itself
    if pa.types.is_run_end_encoded(kind):
        # Arrow decodes no run ends of dictionaries or views itself.
        rows = np.arange(array.offset, array.offset + len(array))
        runs = np.searchsorted(array.run_ends.to_numpy(), rows, side="right")
        return plain_values(array.values).take(row_numbers(runs))
    plain = plain_type(kind)
    return array if plain is kind else array.cast(plain)


def without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch in whose columns Arrow can choose and reorder rows: no views, no run ends, no dictionary of either.

    There are none inside of nested columns either. Costs a microsecond for a column that is none of these.
    """
    kept = [_has_kernels(kind) for kind in batch.schema.types]
    if all(kept):
        return batch
    columns = [
        column if is_kept else _with_kernels(column) for column, is_kept in zip(batch.columns, kept, strict=True)
    ]
    fields = [field.with_type(column.type) for field, column in zip(batch.schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, batch.schema.metadata))


def _with_kernels(array: pa.Array) -> pa.Array:
    if _has_kernels(array.type):
        return array
    if _has_parts(array.type):
        return with_parts(array, lambda part, _: _with_kernels(part))
    return plain_values(array)


def _has_kernels(kind: pa.DataType) -> bool:
    if _has_parts(kind):
        return all(_has_kernels(kind.field(index).type) for index in range(kind.num_fields))
    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    return plain_type(values) == values


def _has_parts(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind) and not pa.types.is_run_end_encoded(kind))


def without_struct_offsets(table: pa.Table) -> pa.Table:
    """The same rows, each struct at the start of its array.

    Rows with structs as DuckDB reads them: DuckDB 2.0 refuses structs that are slices of longer ones.

    Its error says "an Arrow batch carried column 0 with a struct or union below an offset the conversion would drop". A
    slice of a partition, such as the rows of a key, is such a struct.

    Cost: under a microsecond a column if there is no struct. A struct of a column is moved without a copy of its
    values; one inside of lists and maps is copied.
    """
    if not any(_has_struct(column.type) for column in table.columns):
        return table
    # As batches: DuckDB reads these, and where columns have other chunks, each batch has slices.
    return pa.Table.from_batches(
        [
            pa.RecordBatch.from_arrays([_at_start(column) for column in batch.columns], schema=batch.schema)
            for batch in table.to_batches()
        ],
        table.schema,
    )


def _has_struct(kind: pa.DataType) -> bool:
    count = kind.num_fields
    if not count:
        return False
    return bool(pa.types.is_struct(kind)) or any(_has_struct(kind.field(index).type) for index in range(count))


def _at_start(array: pa.Array) -> pa.Array:
    kind = array.type
    if not _has_struct(kind) or not _is_moved(array):
        return array
    if not pa.types.is_struct(kind):
        return array.take(row_numbers(np.arange(len(array))))
    return pa.StructArray.from_arrays(
        [_at_start(child) for child in array.flatten()],
        fields=[kind.field(index) for index in range(kind.num_fields)],
        mask=array.is_null() if array.null_count else None,
    )


def _is_moved(array: pa.Array) -> bool:
    """Whether a struct anywhere in an array is a slice."""
    kind = array.type
    if not _has_struct(kind):
        return False
    if pa.types.is_struct(kind):
        return array.offset > 0 or any(_is_moved(array.field(index)) for index in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _is_moved(array.keys) or _is_moved(array.items)
    return _is_moved(array.values)


_SIGN_MASK: Final = np.int64(2**63 - 1)

Column = TypeVar("Column", pa.Array, pa.ChunkedArray)


def comparable(column: Column) -> Column:
    """Return the values of a column as ones of which Arrow finds equal what SQL does, in the same order.

    Arrow has no comparisons for extension types, such as that of UUIDs. For floats it follows IEEE 754, where NaN
    differs from itself, and its hash tables tell -0.0 from 0.0; in SQL every NaN equals every other and is greater than
    all numbers, and both zeros are one value.

    NULL stays NULL. The values are of a type that keys can have.

    Returns:
        The storage of an extension type; int64 for floats; of other types the column itself. Cost: nothing but for
        floats, which take 8 bytes a row.
    """
    if isinstance(column, pa.ChunkedArray):
        if isinstance(column.type, pa.BaseExtensionType) or pa.types.is_floating(column.type):
            chunks = [comparable(chunk) for chunk in column.chunks]
            return pa.chunked_array(chunks, comparable(pa.array([], column.type)).type)
        return column
    if isinstance(column.type, pa.BaseExtensionType):
        return column.storage
    if pa.types.is_floating(column.type):
        is_null = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
        return pa.array(order_floats(column.to_numpy(zero_copy_only=False)), mask=is_null)
    return column


def order_floats(values: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """Map floats to integers that compare in SQL order.

    -0.0 equals 0.0, and every NaN equals every other and is greater than all numbers.

    Source: the total order of IEEE 754 bit patterns (the sign-magnitude flip known from radix sorting of floats), with
    zeros and NaNs made one.
    """
    numbers = values.astype(np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    bits = numbers.view(np.int64)
    return np.where(bits < 0, bits ^ _SIGN_MASK, bits)


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A batch of these columns without rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def empty_table(schema: pa.Schema) -> pa.Table:
    """A table of these columns without rows.

    Arrow's own ``Schema.empty_table()`` makes each column from an empty list, which fails for some nested types, such
    as lists of UUIDs.
    """
    return pa.Table.from_batches([empty_batch(schema)])
