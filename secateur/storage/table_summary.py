"""Collects the statistics of one member's rows of a table.

Rows, NULLs, bytes, minimum and maximum cover all rows; distinct values are estimated from a sample, since hashing is
the expensive part: exact statistics have cost others a quarter of their throughput (Citus #6850).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.partitioning.schemes.hashing import SPARK_SEED, hash_columns
from secateur.partitioning.tables.statistics import ColumnSummary, DistinctSketch, TableSummary
from secateur.partitioning.tables.table import TableDef
from secateur.partitioning.types.arrow_layout import empty_table, fixed_width
from secateur.partitioning.types.column_type import OPAQUE, SqlType, TypeKind
from secateur.partitioning.types.encoding import EncodedColumn, WordKeys, encode_array
from secateur.storage.snapshot import PartitionSnapshot

SAMPLED_ROWS_MAX: Final = 131_072
"""Rows of a table that one member hashes: some 10 ms a column."""

_TEXT_MAX: Final = 64
"""Characters or bytes of a minimum or maximum that is kept."""

_UNORDERED: Final = OPAQUE | {TypeKind.UUID}
_WIDEST_DECIMAL: Final = SqlType(TypeKind.DECIMAL, 38, 0)


def summarize(table: TableDef, snapshots: Sequence[PartitionSnapshot]) -> TableSummary:
    """Summarize the rows of some partitions. Safe in any thread.

    Returns:
        Their summary. Cost: some 15 ms a column for :data:`SAMPLED_ROWS_MAX` rows and more, of which 1 ms for each
        further million rows.
    """
    pieces = [snapshot.table for snapshot in snapshots if snapshot.rows]
    whole = pa.concat_tables(pieces) if pieces else empty_table(table.arrow_schema)
    sampled = _sample(pieces) if whole.num_rows > SAMPLED_ROWS_MAX else whole
    columns = tuple(
        _summary(column.type, whole.column(position), sampled.column(position))
        for position, column in enumerate(table.columns)
    )
    return TableSummary(whole.num_rows, columns)


def _sample(pieces: Sequence[pa.Table]) -> pa.Table:
    """Rows drawn by chance: neighbours are alike, since partitions are sorted by primary key.

    The same rows each time.
    """
    share = SAMPLED_ROWS_MAX / sum(piece.num_rows for piece in pieces)
    chance = np.random.default_rng(0)
    return pa.concat_tables(
        [piece.take(pa.array(np.flatnonzero(chance.random(piece.num_rows) < share))) for piece in pieces]
    )


def _summary(type_: SqlType, column: pa.ChunkedArray, sampled: pa.ChunkedArray) -> ColumnSummary:
    minimum, maximum = _bounds(type_, column)
    sketch = None if type_.kind in OPAQUE else _sketch(type_, sampled)
    return ColumnSummary(column.nbytes, column.null_count, minimum, maximum, sketch)


def _bounds(type_: SqlType, column: pa.ChunkedArray) -> tuple[Any, Any]:
    if type_.kind in _UNORDERED or not len(column):
        return None, None
    found = pc.min_max(column)
    try:
        minimum, maximum = found["min"].as_py(), found["max"].as_py()
    except (ValueError, OverflowError):  # a date or timestamp that Python's calendar does not reach
        return None, None
    if isinstance(minimum, str | bytes):
        return minimum[:_TEXT_MAX], maximum if len(maximum) <= _TEXT_MAX else None
    return minimum, maximum


def _sketch(type_: SqlType, column: pa.ChunkedArray) -> DistinctSketch:
    hashes = [np.empty(0, np.uint64)]
    # A call for each partition takes longer than the values of a small one: 0.1 ms. Only long texts stay in pieces.
    for chunk in pa.table([column], ["sampled"]).combine_chunks().column(0).chunks:
        values = chunk.drop_null() if chunk.null_count else chunk
        hashes.append(hash_columns([_encoded(type_, values)], SPARK_SEED, len(values)))
    return DistinctSketch.of(np.concatenate(hashes))


def _encoded(type_: SqlType, values: pa.Array) -> EncodedColumn:
    """The values as bytes to hash; beyond the types that partition, those that only have statistics."""
    match type_.kind:
        case TypeKind.FLOAT:
            return WordKeys(
                (fixed_width(values, np.float32) + np.float32(0)).view(np.uint32), None
            )  # -0.0 + 0.0 is 0.0
        case TypeKind.DOUBLE:
            return WordKeys((fixed_width(values, np.float64) + 0.0).view(np.uint64), None)
        case TypeKind.TIME:
            return WordKeys(fixed_width(values, np.uint64), None)
        case TypeKind.HUGEINT:
            return encode_array(values, _WIDEST_DECIMAL)
        case _:
            return encode_array(values, type_)
