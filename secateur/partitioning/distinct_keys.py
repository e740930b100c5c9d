"""Of rows that have one primary key the first, for statements in which only that one counts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from secateur.partitioning.table import TableDef

__all__ = ["first_of_each_key"]

_POSITION = "position"


def first_of_each_key(rows: pa.Table, tdef: TableDef) -> pa.Table:
    """The rows whose key has not come before among them, in the order given.

    Args:
        rows: With the key columns of ``tdef``, in its types.
        tdef: The table they are for.

    Returns:
        ``rows`` itself when every key comes once. Cost: one hash table over the keys; nothing for a single row.
    """
    if rows.num_rows < 2:
        return rows
    names = [f"key{number}" for number in range(len(tdef.primary_key))]
    keys = [_hashable(rows.column(name)) for name in tdef.primary_key]
    numbered = pa.table([*keys, pa.array(np.arange(rows.num_rows))], names=[*names, _POSITION])
    grouped = numbered.group_by(names, use_threads=False).aggregate([(_POSITION, "min")])
    if grouped.num_rows == rows.num_rows:
        return rows
    return rows.take(pa.array(np.sort(grouped.column(f"{_POSITION}_min").to_numpy())))


def _hashable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values of a column in a type that Arrow groups by: an extension type in that of its storage."""
    if isinstance(column.type, pa.BaseExtensionType):
        return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    return column
