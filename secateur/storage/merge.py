"""Sorts and merges whole batches by primary key in Arrow's kernels; no step costs Python work per row.

All operations work in the same way: the key columns of the stored and of the incoming rows are concatenated and sorted
stably, and neighbours are compared. Equal neighbours have the same key, the older row first. A batch that is sorted
already (Spark sorts before it writes) skips the sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.partitioning.tables.conform import made_default_name
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.python_column import canonical_column
from secateur.storage.block import concatenate, gather
from secateur.storage.change import ChangeOperation, DuplicateKeys
from secateur.storage.layout import TableLayout
from secateur.storage.sorted_rows import SortedRows

_FEW_ROWS: Final = 32
"""So many rows are arranged in a tenth of the time as Python values: each of Arrow's functions costs microseconds."""


def sort_rows(layout: TableLayout, tables: Sequence[pa.Table], repeats: DuplicateKeys) -> SortedRows:
    """Copy rows into primary-key order, every key once.

    Args:
        layout: The table's.
        tables: Rows with the table's columns, or with its key columns only, in any order and chunks.
        repeats: The treatment of several rows with one key.

    Raises:
        DuplicateKeyError: A key occurs twice and ``repeats`` refuses that; names the smallest such key.
        LimitExceededError: The rows do not fit into one partition.
    """
    together = pa.concat_tables(tables) if tables else layout.no_rows
    arrangement = _arrange(layout.order.sortable(together))
    if len(arrangement.repeats) and repeats is DuplicateKeys.REFUSED:
        raise layout.duplicate(together, arrangement.first_repeated, "occurs more than once among the rows given")
    kept = arrangement.oldest() if repeats is DuplicateKeys.FIRST_WINS else arrangement.newest()
    return SortedRows(gather([together], kept, at_rest=True), layout.order)


def merge(layout: TableLayout, base: SortedRows, incoming: SortedRows, operation: ChangeOperation) -> SortedRows:
    """Return the rows of a partition after a change.

    For a deletion, keys suffice as ``incoming``. Rows of an upsert may lack columns, which then keep their values.

    Returns:
        New rows; ``base`` and ``incoming`` stay as they are. It is ``incoming`` itself where that is the answer.

    Raises:
        DuplicateKeyError: An appended key is there already; names the smallest such key.
        LimitExceededError: The rows do not fit into one partition.
    """
    if operation is ChangeOperation.UPSERT:
        incoming = completed(layout, base, incoming)
    match operation:
        case ChangeOperation.OVERWRITE | ChangeOperation.OVERWRITE_RANGES:
            return incoming
        case ChangeOperation.APPEND | ChangeOperation.UPSERT | ChangeOperation.IGNORE if base.rows == 0:
            return incoming
        case _ if base.rows == 0 or incoming.rows == 0:
            return base
        case ChangeOperation.APPEND:
            arrangement = _arrange(_keys_of_both(layout, base, incoming))
            if len(arrangement.repeats):
                raise layout.duplicate(incoming.table, arrangement.first_repeated - base.rows, "is already there")
            merged = gather([base.table, incoming.table], arrangement.newest(), at_rest=True)
        case ChangeOperation.UPSERT:
            arrangement = _arrange(_keys_of_both(layout, base, incoming))
            merged = gather([base.table, incoming.table], arrangement.newest(), at_rest=True)
        case ChangeOperation.IGNORE:
            arrangement = _arrange(_keys_of_both(layout, base, incoming))
            if len(arrangement.repeats) == incoming.rows:
                return base
            merged = gather([base.table, incoming.table], arrangement.oldest(), at_rest=True)
        case ChangeOperation.DELETE:
            arrangement = _arrange(_keys_of_both(layout, base, incoming))
            if not len(arrangement.repeats):
                return base
            kept = np.delete(np.arange(base.rows), arrangement.superseded)
            merged = gather([base.table], pa.array(kept), at_rest=True)
        case _:
            assert_never(operation)
    rows = SortedRows(merged, layout.order)
    rows.ready_as(base)
    return rows


def completed(layout: TableLayout, base: SortedRows, incoming: SortedRows) -> SortedRows:
    """Rows with the columns that they lack: the values that ``base`` has with the same key; else their defaults."""
    if layout.is_complete(incoming.table):
        return incoming
    sources = np.full(incoming.rows, -1)
    if base.rows and incoming.rows:
        arrangement = _arrange(_keys_of_both(layout, base, incoming))
        if len(arrangement.repeats):
            sources[arrangement.repeating - base.rows] = arrangement.superseded
    return SortedRows(filled(layout, incoming.table, base.table, sources), layout.order)


def filled(layout: TableLayout, rows: pa.Table, before: pa.Table, sources: npt.NDArray[np.int64]) -> pa.Table:
    """Rows with the columns that they lack taken from others.

    Args:
        layout: The table's.
        rows: Rows that lack columns; in their place they have what was made for those with a default that is not
            constant.
        before: Rows with all columns.
        sources: For each of ``rows``, the one of ``before`` that has the values; -1 for the default, or NULL.
    """
    taken = pa.array(sources, pa.int64(), mask=sources < 0)
    given = set(rows.schema.names)
    columns = []
    for column in layout.tdef.columns:
        if column.name in given:
            columns.append(rows.column(column.name))
            continue
        kept = (
            before.column(column.name).take(taken)
            if before.num_rows
            else pa.chunked_array([pa.nulls(rows.num_rows, column.type.arrow)])
        )
        columns.append(kept if column.default is None else _with_default(layout, column, rows, kept, sources < 0))
    return pa.Table.from_arrays(columns, schema=layout.schema)


def _with_default(
    layout: TableLayout, column: Column, rows: pa.Table, kept: pa.ChunkedArray, is_new: npt.NDArray[np.bool_]
) -> pa.ChunkedArray:
    """What rows that are there keep of a column, and new ones get."""
    places = np.arange(len(is_new))
    made = made_default_name(column.name)
    if made in rows.schema.names:
        new = rows.column(made).chunks
        places[is_new] += len(kept)
    else:
        new = [canonical_column([layout.tdef.defaults[column.name].constant], column.type)]
        places[is_new] = len(kept)
    return pa.chunked_array([*kept.chunks, *new], column.type.arrow).take(pa.array(places, pa.int64()))


def new_rows(layout: TableLayout, base: SortedRows, incoming: SortedRows) -> SortedRows:
    """The rows of ``incoming`` whose keys ``base`` does not hold; ``incoming`` itself when that is all of them."""
    if base.rows == 0 or incoming.rows == 0:
        return incoming
    arrangement = _arrange(_keys_of_both(layout, base, incoming))
    if not len(arrangement.repeats):
        return incoming
    kept = np.delete(np.arange(incoming.rows), arrangement.repeating - base.rows)
    return SortedRows(gather([incoming.table], pa.array(kept), at_rest=True), layout.order)


def matching_rows(layout: TableLayout, base: SortedRows, keys: SortedRows) -> pa.Table:
    """The rows of ``base`` with a key of ``keys``, in key order."""
    if base.rows == 0 or keys.rows == 0:
        return layout.no_rows
    arrangement = _arrange(_keys_of_both(layout, base, keys))
    return base.table.take(pa.array(arrangement.superseded)) if len(arrangement.repeats) else layout.no_rows


def common_row(layout: TableLayout, left: SortedRows, right: SortedRows) -> int | None:
    """Position in ``right`` of the smallest key that both hold, or None when they have no key in common."""
    if left.rows == 0 or right.rows == 0:
        return None
    arrangement = _arrange(_keys_of_both(layout, left, right))
    return arrangement.first_repeated - left.rows if len(arrangement.repeats) else None


@dataclass(frozen=True, slots=True)
class _Arrangement:
    """Rows in key order.

    Attributes:
        order: int64, row numbers in key order, equal keys in the order given; None when the rows ascend strictly as
            they are.
        repeats: int64, positions in ``order`` whose key equals that of the position before.
    """

    order: npt.NDArray[np.int64] | None
    repeats: npt.NDArray[np.int64]

    @property
    def first_repeated(self) -> int:
        """The row number that first repeats a key."""
        assert self.order is not None
        return int(self.order[self.repeats[0]])

    @property
    def superseded(self) -> npt.NDArray[np.int64]:
        """The row numbers whose key comes again later."""
        assert self.order is not None
        return self.order[self.repeats - 1]

    @property
    def repeating(self) -> npt.NDArray[np.int64]:
        """The row numbers whose key has come before."""
        assert self.order is not None
        return self.order[self.repeats]

    def oldest(self) -> pa.Array | None:
        """Row numbers in key order, with only the first of equal keys.

        None stands for all rows in their order, which copies faster.
        """
        return None if self.order is None else pa.array(np.delete(self.order, self.repeats))

    def newest(self) -> pa.Array | None:
        """Row numbers in key order, of equal keys only the last; None for all rows as they are, which copies faster."""
        return None if self.order is None else pa.array(np.delete(self.order, self.repeats - 1))


def _keys_of_both(layout: TableLayout, older: SortedRows, newer: SortedRows) -> list[pa.Array]:
    pairs = zip(layout.order.sortable(older.table), layout.order.sortable(newer.table), layout.key_schema, strict=True)
    return [concatenate([left, right], field) for left, right, field in pairs]


def _arrange(keys: list[pa.Array]) -> _Arrangement:
    few = _arrange_few(keys) if len(keys[0]) <= _FEW_ROWS else None
    if few is not None:
        return few
    if _ascend_strictly(keys):
        return _Arrangement(None, np.empty(0, dtype=np.int64))
    names = [str(position) for position in range(len(keys))]
    order = pc.sort_indices(
        pa.RecordBatch.from_arrays(keys, names=names), sort_keys=[(name, "ascending") for name in names]
    )
    repeated: Any = None
    for key in keys:
        moved = key.take(order)
        equal = pc.equal(moved[1:], moved[:-1])
        repeated = equal if repeated is None else pc.and_(repeated, equal)
    return _Arrangement(order.to_numpy().astype(np.int64), np.flatnonzero(repeated.to_numpy(zero_copy_only=False)) + 1)


def _arrange_few(keys: list[pa.Array]) -> _Arrangement | None:
    """As :func:`_arrange`, over Python values, whose order is the same; None if Python has no object for one."""
    try:
        values = list(zip(*(key.to_pylist() for key in keys), strict=True))
    except (ValueError, OverflowError):  # a date outside the years of Python
        return None
    order = sorted(range(len(values)), key=values.__getitem__)
    repeats = [at for at in range(1, len(order)) if values[order[at]] == values[order[at - 1]]]
    is_arranged = not repeats and order == list(range(len(order)))
    return _Arrangement(None if is_arranged else np.array(order, dtype=np.int64), np.array(repeats, dtype=np.int64))


def _ascend_strictly(keys: list[pa.Array]) -> bool:
    # From the last column to the first: rows ascend where a column does, or where it ties and the columns after it
    # ascend.
    ascending: Any = None
    for key in reversed(keys):
        less = pc.less(key[:-1], key[1:])
        ascending = less if ascending is None else pc.or_(less, pc.and_(pc.equal(key[:-1], key[1:]), ascending))
    # No row and a single row have nothing to compare; Arrow's `all` of nothing is true.
    return bool(pc.all(ascending, min_count=0).as_py())
