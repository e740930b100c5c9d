"""Statistics that one member has collected of its rows of a table, in a form that can be merged over members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from secateur.partitioning.tables.distinct_sketch import DistinctSketch
from secateur.partitioning.tables.statistics import ColumnStatistics, TableStatistics
from secateur.partitioning.tables.table import TableDef


class ColumnSummary(msgspec.Struct, frozen=True, array_like=True):
    """One column on one member.

    Attributes:
        nbytes: Bytes of its Arrow buffers.
        nulls: Rows with NULL.
        minimum: Smallest value as Python has it, perhaps a prefix of it; None where there is none.
        maximum: Largest value; None where there is none, or it is too long.
        sketch: A sketch of its values in the sample; None where the type has no hash.
    """

    nbytes: int
    nulls: int
    minimum: Any
    maximum: Any
    sketch: DistinctSketch | None


class TableSummary(msgspec.Struct, frozen=True, array_like=True):
    """The rows of a table in some partitions of one member.

    Attributes:
        rows: How many there are.
        columns: One for each column of the table, in its order.
    """

    rows: int
    columns: tuple[ColumnSummary, ...]


def total(table: TableDef, summaries: Sequence[TableSummary]) -> TableStatistics:
    """Merge the summaries of members, which together have every row once, into the statistics of a table."""
    rows = sum(summary.rows for summary in summaries)
    columns = {
        column.name: _total(rows, [summary.columns[position] for summary in summaries])
        for position, column in enumerate(table.columns)
    }
    return TableStatistics(table.table_id, rows, columns)


def _total(rows: int, parts: Sequence[ColumnSummary]) -> ColumnStatistics:
    nulls = sum(part.nulls for part in parts)
    minima = [part.minimum for part in parts if part.minimum is not None]
    filled = [part for part in parts if part.minimum is not None]
    has_maximum = bool(filled) and all(part.maximum is not None for part in filled)
    sketches = [part.sketch for part in parts if part.sketch is not None]
    return ColumnStatistics(
        nbytes=sum(part.nbytes for part in parts),
        nulls=nulls,
        distinct=DistinctSketch.merged(sketches).estimate(rows - nulls) if len(sketches) == len(parts) else None,
        minimum=min(minima, default=None),
        maximum=max(part.maximum for part in filled) if has_maximum else None,
    )
