"""Splits a table into its partitions in one pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.row_numbers import row_numbers


def split(table: pa.Table | pa.RecordBatch, tdef: TableDef) -> dict[int, pa.Table]:
    """Group rows by partition.

    Args:
        table: Rows in ``tdef.arrow_schema`` (see :func:`~secateur.partitioning.tables.conform.conform`).
        tdef: The table they belong to.

    Returns:
        The rows of each partition that has any, by ascending partition id, each in the order they had. All are slices
        of one table: of the input when its rows come grouped already, else of one copy. Keep a slice only as long as
        the whole may live.

    Raises:
        NoRangeError: A row that no range covers; nothing is split then.
    """
    rows = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
    if rows.num_rows == 0:
        return {}
    ids = tdef.scheme.partitions_of(rows)
    if (ids[1:] < ids[:-1]).any():
        # numpy sorts 16-bit integers by radix, in linear time.
        order = np.argsort(ids.astype(np.uint16) if tdef.partition_count <= 2**16 else ids, kind="stable")
        ids = ids[order]
        rows = _take(rows, order)
    starts = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))
    ends = np.append(starts[1:], len(ids))
    return {
        int(ids[start]): rows.slice(start, end - start)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    }


def _take(rows: pa.Table, order: npt.NDArray[np.int64]) -> pa.Table:
    return rows.combine_chunks().take(row_numbers(order))
