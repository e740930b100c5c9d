"""Describes how a client merges the rows of the owners of a statement, when it asks all of them itself.

It is data, so that a client needs no kernel for it. Only what Python does exactly as the kernels do has a form here:
rows one after the other, groups and aggregates of values that Python has exactly, and their order.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class MergeFunction(StrEnum):
    """The function that makes one value from those of all owners; each skips NULL, and is NULL for no value."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"


class MergedColumn(msgspec.Struct, frozen=True, array_like=True):
    """A column of the merged rows.

    Attributes:
        source: The index of the column of the owners' rows from which it is made.
        function: How the values of one group are merged; None for a column by which rows are grouped, and for every
            column of rows that are not grouped.
        type: The SQL type of its values.
    """

    source: int
    function: MergeFunction | None
    type: str


class MergedOrder(msgspec.Struct, frozen=True, array_like=True):
    """A term of the order of the merged rows.

    Attributes:
        column: The index of the merged column.
        descending: Whether larger values come first.
        nulls_first: Whether NULL comes first.
    """

    column: int
    descending: bool
    nulls_first: bool


class RowMerge(msgspec.Struct, frozen=True, cache_hash=True, array_like=True):
    """The merging of the owners' rows into the answer.

    Attributes:
        columns: The merged columns.
        is_grouped: Whether rows that agree in the columns without a function become one. Where all columns have one,
            all rows become one.
        outputs: For each column of the answer the index of the merged column.
        counts: The outputs that are 0 where their value is NULL.
        order: The order of the answer, the most significant term first; empty for any.
        limit: The most rows of the answer; None for all.
        offset: Rows that are left out at its start.
        partitions_max: A client asks the owners itself for at most so many partitions.
    """

    columns: tuple[MergedColumn, ...]
    is_grouped: bool
    outputs: tuple[int, ...]
    counts: tuple[int, ...]
    order: tuple[MergedOrder, ...]
    limit: int | None
    offset: int
    partitions_max: int
