"""The first row of each primary key, for statements in which only that row counts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.comparable_columns import comparable

_POSITION = "position"


def first_of_each_key(rows: pa.Table, tdef: TableDef) -> pa.Table:
    """The rows whose key has not come before among them, in the order given.

    Args:
        rows: With the key columns of ``tdef``, in its types.
        tdef: The table they are for.

    Returns:
        ``rows`` itself when every key comes once. Cost: one hash table over the keys; nothing for a single row.
    """
    first = first_positions(rows, tdef)
    return rows if first is None else rows.take(first)


def first_positions(rows: pa.Table, tdef: TableDef) -> pa.Array | None:
    """Return the positions of the rows of :func:`first_of_each_key`, ascending int64; None for all rows."""
    if rows.num_rows < 2:
        return None
    names = [f"key{number}" for number in range(len(tdef.primary_key))]
    keys = [comparable(rows.column(name)) for name in tdef.primary_key]
    numbered = pa.table([*keys, pa.array(np.arange(rows.num_rows))], names=[*names, _POSITION])
    grouped = numbered.group_by(names, use_threads=False).aggregate([(_POSITION, "min")])
    if grouped.num_rows == rows.num_rows:
        return None
    return pa.array(np.sort(grouped.column(f"{_POSITION}_min").to_numpy()))
