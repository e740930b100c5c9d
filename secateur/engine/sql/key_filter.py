"""Rows of some keys that are not a prefix of the primary key and therefore cannot be searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from secateur.partitioning.types.comparable_columns import comparable
from secateur.partitioning.types.empty_rows import empty_table


def rows_with_keys(table: pa.Table, columns: Sequence[str], keys: Sequence[tuple[Any, ...]]) -> pa.Table:
    """The rows whose ``columns`` equal one of ``keys``, in their order.

    Args:
        table: The rows.
        columns: The columns of a key.
        keys: Canonical values in the order of ``columns``; None among them matches nothing.

    Returns:
        A copy of those rows. Cost: O(rows) for one column, O(rows * keys) for several.
    """
    keys = [key for key in keys if None not in key]
    if not keys:
        return empty_table(table.schema)
    stored = [comparable(table.column(name)) for name in columns]
    wanted = [
        comparable(pa.array(values, table.schema.field(name).type))
        for name, values in zip(columns, zip(*keys, strict=True), strict=True)
    ]
    if len(columns) == 1:
        return table.filter(pc.is_in(stored[0], value_set=wanted[0]))
    mask = None
    for key in zip(*wanted, strict=True):
        matches = None
        for column, value in zip(stored, key, strict=True):
            equal = pc.equal(column, value)
            matches = equal if matches is None else pc.and_(matches, equal)
        mask = matches if mask is None else pc.or_(mask, matches)
    return table.filter(mask)
